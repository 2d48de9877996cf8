"""Others' ways to run a packed batch on a GPU, each prepared at its best.

What a framework user does once per batch (padding, block masks, planning, compiling) is
prepared outside of what is measured. A peer that cannot do a configuration raises
Refused, with the reason. Here are PyTorch's; FlashAttention 3 and cuDNN have files of
their own.
"""

import inspect

import peer_cudnn
import peer_flash3
import rehearsal
import torch
import torch.nn.functional as functional
from peer_batch import Batch, Refused

__all__ = ["ALL", "GRADIENTS", "Batch", "Refused", "wanted", "wants_flex"]


def _flash2_mask(shared):
    """(is_causal, the window if there is one)."""
    causal = shared.config.mask == "causal"
    if causal or (shared.left < 0 and shared.right < 0):
        return causal, {}
    return causal, {"window_size_left": shared.left, "window_size_right": shared.right}


def _flash2_forward(shared, q, k, v):
    causal, window = _flash2_mask(shared)
    return torch.ops.aten._flash_attention_forward(
        q, k, v, shared.cu_q, shared.cu_k, shared.longest_q, shared.longest_k,
        0.0, causal, False, **window,
    )  # fmt: skip


def flash2(shared):
    """FlashAttention 2 as PyTorch ships it, below its public function."""
    return lambda q, k, v: _flash2_forward(shared, q, k, v)[0]


def flash2_gradients(shared, dout, q, k, v):
    """A call of its backward, on what its forward returns."""
    causal, window = _flash2_mask(shared)
    out, lse, seed, offset, _ = _flash2_forward(shared, q, k, v)
    return lambda: torch.ops.aten._flash_attention_backward(
        dout, q, k, v, out, lse, shared.cu_q, shared.cu_k, shared.longest_q,
        shared.longest_k, 0.0, causal, seed, offset, **window,
    )  # fmt: skip


def varlen_attn(shared):
    """PyTorch's public function of packed batches."""
    from torch.nn.attention import varlen

    names = inspect.signature(varlen.varlen_attn).parameters
    if "window_size" in names:
        more = {"window_size": (shared.left, shared.right)}
        if shared.grouped and "enable_gqa" in names:
            more["enable_gqa"] = True
    elif shared.config.mask in ("full", "causal"):
        more = {"is_causal": shared.config.mask == "causal"}
    else:
        raise Refused("knows no windows in this version")
    return lambda q, k, v: varlen.varlen_attn(
        q, k, v, shared.cu_q, shared.cu_k, shared.longest_q, shared.longest_k, **more
    )


def _pad(packed, lengths, longest):
    padded = packed.new_zeros(len(lengths), longest, *packed.shape[1:])
    row = 0
    for i, length in enumerate(lengths):
        padded[i, :length] = packed[row : row + length]
        row += length
    return padded.transpose(1, 2)


def padded(shared):
    """scaled_dot_product_attention on a batch padded to its longest sequence. Of
    queries and keys of the same lengths, padding needs no mask: causal rows see
    none of it. Full ones do; without a mask that is less work than what is
    wanted, in favour of the peer."""
    batch = shared.config.batch
    if shared.config.mask not in ("full", "causal"):
        raise Refused("windows need a mask, which rules out the fast ways")
    cells = len(batch.q_lengths) * shared.longest_k
    if cells > 4 * batch.tokens_k:
        raise Refused(f"padding would make {batch.tokens_k} rows {cells}")
    causal = shared.config.mask == "causal"

    def prepare(q, k, v):
        return (
            _pad(q, batch.q_lengths, shared.longest_q),
            _pad(k, batch.k_lengths, shared.longest_k),
            _pad(v, batch.k_lengths, shared.longest_k),
        )

    def call(q, k, v):
        return functional.scaled_dot_product_attention(
            q, k, v, is_causal=causal, enable_gqa=shared.grouped
        )

    call.prepare = prepare
    return call


def flex(shared):
    """Compiled FlexAttention with a document mask."""
    from torch.nn.attention import flex_attention as flex

    batch, device = shared.config.batch, shared.device
    if batch.q_lengths != batch.k_lengths:
        raise Refused("wanted equal lengths of queries and keys")
    lengths = torch.tensor(batch.q_lengths, device=device)
    documents = torch.repeat_interleave(torch.arange(len(batch.q_lengths), device=device), lengths)
    left, right = shared.left, shared.right

    def visible(_b, _h, q, k):
        same = documents[q] == documents[k]
        if left >= 0:
            same = same & (k >= q - left)
        if right >= 0:
            same = same & (k <= q + right)
        return same

    rows = batch.tokens_q
    mask = flex.create_block_mask(visible, None, None, rows, rows, device=device)
    torch._dynamo.reset()
    compiled = flex.flex_attention
    if not rehearsal.FOLDER:
        compiled = torch.compile(compiled, dynamic=False)

    def prepare(q, k, v):
        return tuple(x.transpose(0, 1)[None].contiguous() for x in (q, k, v))

    def call(q, k, v):
        return compiled(q, k, v, block_mask=mask, enable_gqa=shared.grouped)

    call.prepare = prepare
    call.packed = lambda out: out[0].transpose(0, 1)
    return call


def flex_gradients(shared, dout, q, k, v):
    """A call of its backward by autograd, whose forward is not in it."""
    make = flex(shared)
    leaves = [x.detach().requires_grad_() for x in make.prepare(q, k, v)]
    out = make(*leaves)
    dout = dout.transpose(0, 1)[None].contiguous()
    return lambda: _packed(torch.autograd.grad(out, leaves, dout, retain_graph=True))


def _packed(tensors):
    return [x[0].transpose(0, 1) for x in tensors]


ALL = {
    "fa3": peer_flash3.forward,
    "cudnn": peer_cudnn.forward,
    "fa2": flash2,
    "varlen_attn": varlen_attn,
    "padded": padded,
    "flex": flex,
}
GRADIENTS = {
    "fa3": peer_flash3.gradients,
    "cudnn": peer_cudnn.gradients,
    "fa2": flash2_gradients,
    "flex": flex_gradients,
}


def wanted(config, gradients):
    """The peers that are worth their time for a configuration, but for Flex, which compiles
    for tens of seconds."""
    batch = config.batch
    yield from ("fa3", "cudnn", "fa2")
    if gradients:
        return
    if batch.set == "pr164502" and config.dtype == "bf16":
        yield "varlen_attn"
    if batch.set == "pr164502" or batch.name == "constant":
        yield "padded"


def wants_flex(config):
    batch = config.batch
    return config.dtype == "bf16" and (
        (batch.set == "pr164502" and config.head_dim <= 128)
        or (batch.name == "exact" and config.window == (512, 0))
        or (batch.name == "longtail" and config.head_dim == 128)
    )
