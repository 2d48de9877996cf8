# RUN: %python %s
"""Results and gradients of varlen_attn against the definition, in every type, and what
they may not depend on."""

import itertools
import math

import torch
from device import of_device
from packed import assert_close, attention, normal, offsets

from varlen.torch import AuxRequest, varlen_attn, varlen_attn_out

LSE = AuxRequest(lse=True)


def check(lengths, lengths_k, heads, kv_heads, dim, value_dim, window, dtype, **more):
    """Both results and all gradients, with a cotangent for each result."""
    rows, rows_k = sum(lengths), sum(lengths_k)
    q = normal(rows, heads, dim, dtype=dtype)
    k = normal(rows_k, kv_heads, dim, dtype=dtype)
    v = normal(rows_k, kv_heads, value_dim, dtype=dtype)
    wide = torch.float64 if dtype == torch.float64 else torch.float32
    sink = normal(heads, dtype=wide) if more.pop("has_sink", False) else None
    index = more.pop("index", torch.int32)
    cu_q, cu_k = offsets(lengths, index), offsets(lengths_k, index)
    out, lse = varlen_attn(
        q, k, v, cu_q, cu_k, max(lengths, default=0), max(lengths_k, default=0),
        return_aux=LSE, window_size=window, enable_gqa=True, sink=sink, **more,
    )  # fmt: skip
    assert out.dtype == dtype and lse.dtype == wide
    wanted = attention(q, k, v, cu_q.tolist(), cu_k.tolist(), window, more.get("scale"), sink)
    what = f"{lengths} {lengths_k} {heads}/{kv_heads} {dim}/{value_dim} {window} {dtype}"
    assert_close(out, wanted[0], dtype, what)
    assert_close(lse, wanted[1], dtype, what)
    inputs = [q, k, v] if sink is None else [q, k, v, sink]
    # The gradient of an lse of -inf counts for nothing, but multiplies 0.
    seen = torch.isfinite(wanted[1])
    douts = torch.randn_like(out), torch.randn_like(lse) * seen
    got = torch.autograd.grad((out, lse), inputs, douts)
    loss = (wanted[0] * douts[0]).sum() + (wanted[1].masked_fill(~seen, 0) * douts[1]).sum()
    expected = torch.autograd.grad(loss, inputs, allow_unused=True, materialize_grads=True)
    for name, a, b in zip("qkvs", got, expected):
        assert a.dtype == b.dtype
        assert_close(a, b.double(), dtype, f"d{name} of {what}")


torch.manual_seed(0)
TYPES = of_device(torch.float64, torch.float32, torch.float16, torch.bfloat16)
BATCHES = (
    ([5, 70, 12], [5, 70, 12]),
    ([0, 3, 0, 0, 40, 0], [0, 3, 0, 0, 40, 0]),
    ([9, 1, 20, 4], [3, 17, 0, 4]),
    ([0, 0], [4, 2]),
    ([1], [1]),
    ([0], [0]),
    ([], []),
)
for dtype, (lengths, lengths_k) in itertools.product(TYPES, BATCHES):
    check(lengths, lengths_k, 4, 2, 16, 24, (-1, 0), dtype, has_sink=True)
# Large head dims are in provider-contracts.py.
for window in ((-1, -1), (0, 0), (-1, 2), (1025, 1025)):
    check([30, 0, 7], [25, 4, 7], 2, 2, 16, 16, window, torch.float32)
check([30, 7], [30, 7], 6, 1, 40, 8, (-1, 0), torch.bfloat16, scale=0.3, index=torch.int64)
check([5, 6], [5, 6], 2, 1, 1, 1, (2, -1), torch.float32, scale=1e-5)

# Of both ways to say that a mask is causal, of scale's default, and of the order of
# positional arguments in torch 2.10.
q, k, v = (normal(12, 2, 16) for _ in range(3))
cu = offsets([5, 7])
causal = varlen_attn(q, k, v, cu, cu, 7, 7, window_size=(-1, 0))
assert torch.equal(causal, varlen_attn(q, k, v, cu, cu, 7, 7, True))
assert torch.equal(causal, varlen_attn(q, k, v, cu, cu, is_causal=True, scale=0.25))
assert torch.equal(causal, varlen_attn(q, k, v, cu, cu, 7, 7, True, LSE)[0])
assert not torch.equal(causal, varlen_attn(q, k, v, cu, cu, 7, 7))
wanted = varlen_attn(q, k, v, cu, cu, window_size=(2, 0))
for right in (-1, 0):
    near = varlen_attn(q, k, v, cu, cu, is_causal=True, window_size=(2, right))
    assert torch.equal(near, wanted)
# Too small a max_q or max_k hides nothing.
assert torch.equal(causal, varlen_attn(q, k, v, cu, cu, 1, 1, True))

# A gradient of lse alone: log-sum-exp's is the softmax.
lse = varlen_attn(q, k, v, cu, cu, return_aux=LSE)[1]
got = torch.autograd.grad(lse.sum(), (q, k, v))
wanted = torch.autograd.grad(attention(q, k, v, [0, 5, 12], [0, 5, 12])[1].sum(), (q, k))
assert_close(got[0], wanted[0].double(), torch.float32)
assert_close(got[1], wanted[1].double(), torch.float32)
assert not got[2].any()
# pytorch/torchtitan#4796: a gate made from lse and a sink, with one key, moves q and k.
one = [torch.full((1, 1, 1), x, requires_grad=True) for x in (1.0, 1.0, 2.0)]
out, lse = varlen_attn(*one, offsets([1]), offsets([1]), return_aux=LSE, scale=1.0)
(out * torch.sigmoid(lse - 0.0).T[..., None]).sum().backward()
assert (
    abs(one[0].grad.item() - 0.39322387) < 1e-6 and abs(one[1].grad.item() - 0.39322387) < 1e-6
)

# Keys that do not count, and rows that belong to no sequence, may be NaN.
slots = [8, 8, 8]
used = torch.tensor([8, 0, 3], dtype=torch.int32)
q, k, v = normal(20, 4, 16), normal(30, 4, 16, grad=False), normal(30, 4, 16, grad=False)
cu_q, cu_k = offsets([4, 4, 8]), offsets(slots)
for x in (k, v):
    for begin, end in ((8, 16), (19, 30)):
        x[begin:end] = math.nan
with torch.no_grad():
    q[16:] = math.nan
k.requires_grad_(), v.requires_grad_()
out, lse = varlen_attn(q, k, v, cu_q, cu_k, is_causal=True, seqused_k=used, return_aux=LSE)
cu_q, cu_k = cu_q.tolist(), cu_k.tolist()
wanted = attention(q, k, v, cu_q, cu_k, (-1, 0), used_k=used.tolist())
assert_close(out[:16], wanted[0], torch.float32)
assert (
    not out[16:].any()
    and torch.isneginf(lse[:, 16:]).all()
    and torch.isneginf(lse[:, 4:8]).all()
)
dout = torch.randn_like(out)
got = torch.autograd.grad(out, (q, k, v), dout)
# NaN times 0 is NaN in the reference: it gets tensors without it.
inputs = [x.detach().nan_to_num().requires_grad_() for x in (q, k, v)]
reference = attention(*inputs, cu_q, cu_k, (-1, 0), used_k=used.tolist())[0]
wanted = torch.autograd.grad(reference, inputs, dout[:16].double())
for a, b in zip(got, wanted):
    assert_close(a, b.double(), torch.float32)

# Slices of one buffer, tensors with their heads first, indices with gaps, expanded and
# misaligned gradients: the same bits as of dense tensors.
for dtype in (torch.float32, torch.bfloat16):
    buffer = torch.randn(12, 6 + 2 + 2, 16).to(dtype)
    fused = buffer.split([6, 2, 2], 1)
    gaps = torch.stack([cu, cu + 99], 1)[:, 0]
    assert gaps.stride() == (2,)
    first = [x.transpose(0, 1).contiguous().transpose(0, 1) for x in fused]
    last = [x.transpose(1, 2).contiguous().transpose(1, 2) for x in fused]
    want = None
    for tensors, indices in (
        ([x.contiguous() for x in fused], cu), (fused, gaps), (first, cu), (last, gaps)
    ):  # fmt: skip
        leaves = [x.detach().requires_grad_() for x in tensors]
        out = varlen_attn(*leaves, indices, indices, is_causal=True, enable_gqa=True)
        if tensors is first:
            assert out.stride() == leaves[0].stride() and not out.is_contiguous()
        ones = torch.ones(1, dtype=dtype)
        results = [out]
        for dout in (
            ones.expand(12, 6, 16),
            torch.ones(12 * 6 * 16 + 1, dtype=dtype)[1:].view(12, 6, 16),
            torch.ones(16, 6, 12, dtype=dtype).permute(2, 1, 0),
        ):
            results += torch.autograd.grad(out, leaves, dout, retain_graph=True)
        assert want is None or all(map(torch.equal, results, want))
        want = results if want is None else want

# varlen_attn_out: the same bits in memory of the caller, of any strides.
q, k, v = (torch.randn(12, 2, 16) for _ in range(3))
wanted, lse = varlen_attn(q, k, v, cu, cu, return_aux=LSE)
buffer = torch.full((2, 16, 12, 2), math.nan)
for out in (torch.empty(12, 2, 16), buffer[0].permute(1, 2, 0), buffer[1].permute(1, 2, 0)):
    result = varlen_attn_out(out, q, k, v, cu, cu, 7, 7, return_aux=LSE)
    assert result[0] is out and torch.equal(out, wanted) and torch.equal(result[1], lse)
wide = torch.full((12, 5, 16), math.nan)
varlen_attn_out(wide[:, 1:3], q, k, v, cu, cu)
assert (
    torch.equal(wide[:, 1:3], wanted) and wide[:, 3:].isnan().all() and wide[:, 0].isnan().all()
)
saved = torch.randn(12, 2, 16, requires_grad=True)
square = saved.clone()
loss = (square * square).sum()
varlen_attn_out(square.detach(), q, k, v, cu, cu)
try:
    loss.backward()
except RuntimeError as error:
    assert "modified by an inplace operation" in str(error)
else:
    raise AssertionError("expected autograd to notice what varlen_attn_out wrote to")

# Alone or in a batch, on any number of threads: the same bits.
lengths = [300, 1, 0, 170]
cu = offsets(lengths)
for dtype, window in ((torch.float32, (-1, -1)), (torch.bfloat16, (100, 0))):
    inputs = [normal(sum(lengths), 4, 64, dtype=dtype) for _ in range(3)]
    dout = torch.randn_like(inputs[0])
    results = []
    for threads in (1, 2, 5):
        torch.set_num_threads(threads)
        out, lse = varlen_attn(*inputs, cu, cu, window_size=window, return_aux=LSE)
        results.append([out, lse, *torch.autograd.grad(out, inputs, dout)])
    assert all(torch.equal(a, b) for more in results[1:] for a, b in zip(results[0], more))
    for begin, end in itertools.pairwise(cu.tolist()):
        alone = [x[begin:end].detach().requires_grad_() for x in inputs]
        end_only = offsets([end - begin])
        out, lse = varlen_attn(*alone, end_only, end_only, window_size=window, return_aux=LSE)
        got = [out, lse.T, *torch.autograd.grad(out, alone, dout[begin:end])]
        batch = [results[0][0], results[0][1].T, *results[0][2:]]
        assert all(torch.equal(a, b[begin:end]) for a, b in zip(got, batch))
