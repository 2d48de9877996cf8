"""Batches, and what attention of them is, for the tests of varlen.torch."""

import math

import torch
from device import NAME, settle


def attention(
    q, k, v, cu_q, cu_k, window=(-1, -1), scale=None, sink=None, used_k=None, score=None
):  # fmt: skip
    """(out, lse) from the definition, each sequence on its own, with autograd's
    gradients; in float64 whatever the inputs are. `score(scores, distance, s)` changes
    the scaled products (Hq, q, k) of sequence s; a key has a distance of its query."""
    q, k, v = (x.double() for x in (q, k, v))
    left, right = window
    scale = 1 / math.sqrt(q.shape[2]) if scale is None else scale
    group = q.shape[1] // k.shape[1]
    k, v = (x.repeat_interleave(group, dim=1) for x in (k, v))
    # A batch may have no sequences, of which there is nothing to concatenate.
    outs, lses = [v[:0].sum(1, keepdim=True).expand(0, q.shape[1], -1)], [q[:0, :, 0].T]
    for s, (q0, q1) in enumerate(zip(cu_q, cu_q[1:])):
        k0 = cu_k[s]
        k1 = cu_k[s + 1] if used_k is None else k0 + used_k[s]
        scores = scale * torch.einsum("ihd,jhd->hij", q[q0:q1], k[k0:k1])
        distance = (
            torch.arange(k1 - k0, device=q.device)
            - (torch.arange(q1 - q0, device=q.device) + (k1 - k0) - (q1 - q0))[:, None]
        )
        if score is not None:
            scores = score(scores, distance, s)
        hidden = torch.zeros_like(distance, dtype=torch.bool)
        if left >= 0:
            hidden |= distance < -left
        if right >= 0:
            hidden |= distance > right
        scores = scores.masked_fill(hidden, -math.inf)
        if sink is not None:
            column = sink.double()[:, None, None].expand(-1, q1 - q0, 1)
            scores = torch.cat([scores, column], 2)
        lse = torch.logsumexp(scores, 2)
        # No key, no weight: exp(-inf - 0).
        shift = lse.masked_fill(lse == -math.inf, 0)
        weights = torch.exp(scores - shift[..., None])[..., : k1 - k0]
        outs.append(torch.einsum("hij,jhd->ihd", weights, v[k0:k1]))
        lses.append(lse)
    return torch.cat(outs), torch.cat(lses, 1)


def offsets(lengths, dtype=torch.int32):
    """cu_seqlens of these lengths."""
    return torch.tensor([0, *lengths], device=NAME).cumsum(0).to(dtype)


def normal(*shape, dtype=torch.float32, grad=True):
    return torch.randn(shape, device=NAME).to(dtype).requires_grad_(grad)


# How far results may be from the reference's: a few roundings to the type.
TOLERANCE = {
    torch.float64: 1e-12,
    torch.float32: 2e-5,
    torch.float16: 6e-3,
    torch.bfloat16: 5e-2,
}


def assert_close(got, wanted, dtype, what=""):
    """Within the tolerance of dtype, relative to the largest number; infinities where
    they belong."""
    assert got.shape == wanted.shape, (what, got.shape, wanted.shape)
    infinite = torch.isinf(wanted)
    assert torch.equal(torch.isinf(got), infinite), what
    if wanted.numel() == 0 or infinite.all():
        return
    finite = wanted[~infinite]
    error = (got.double()[~infinite] - finite).abs().max().item()
    bound = TOLERANCE[dtype] * max(1, finite.abs().max().item())
    assert error <= bound, f"{what}: off by {error}, at most {bound} wanted"


def fails(kind, words, call):
    """The message of the exception of that kind that call() raises, or the device reports
    afterwards, which has these words."""
    try:
        call()
        settle()
    except kind as error:
        assert words in str(error), f"expected {words!r} in {error}"
        return str(error)
    raise AssertionError(f"expected {kind.__name__} with {words!r}")
