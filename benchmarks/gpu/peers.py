"""PyTorch's ways to run a packed batch on a GPU, each prepared at its best.

What a framework user does once per batch (padding, block masks, compiling) is
prepared outside of what is measured. A peer that cannot do a configuration raises
Refused, with the reason.
"""

import inspect
import itertools

import torch
import torch.nn.functional as functional


class Refused(Exception):
    pass


def offsets(lengths, device):
    values = [0, *itertools.accumulate(lengths)]
    return torch.tensor(values, dtype=torch.int32, device=device)


class Batch:
    """A configuration on a device: what all peers of it share."""

    def __init__(self, config, device="cuda"):
        batch = config.batch
        self.config, self.device = config, device
        self.cu_q = offsets(batch.q_lengths, device)
        self.cu_k = offsets(batch.k_lengths, device)
        self.longest_q = max(batch.q_lengths)
        self.longest_k = max(batch.k_lengths)
        self.left, self.right = config.window
        self.grouped = batch.heads != batch.kv_heads


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


def cudnn(shared):
    """cuDNN's attention of packed batches."""
    if shared.config.mask not in ("full", "causal"):
        raise Refused("PyTorch gives it no windows")
    if shared.grouped:
        raise Refused("PyTorch gives it no grouped heads in packed batches")
    causal = shared.config.mask == "causal"

    def call(q, k, v):
        return torch.ops.aten._cudnn_attention_forward(
            q, k, v, None, shared.cu_q, shared.cu_k, shared.longest_q, shared.longest_k,
            True, 0.0, causal, False,
        )[0]  # fmt: skip

    # It plans on the host for tens of milliseconds in each call (PyTorch 2.11 with cuDNN
    # 9.19), and the end of a capture of it has crashed.
    call.only_kernels = True
    return call


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
    documents = torch.repeat_interleave(
        torch.arange(len(batch.q_lengths), device=device), lengths
    )
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
    compiled = torch.compile(flex.flex_attention, dynamic=False)

    def prepare(q, k, v):
        return tuple(x.transpose(0, 1)[None].contiguous() for x in (q, k, v))

    def call(q, k, v):
        return compiled(q, k, v, block_mask=mask, enable_gqa=shared.grouped)

    call.prepare = prepare
    call.packed = lambda out: out[0].transpose(0, 1)
    return call


ALL = {
    "fa2": flash2,
    "varlen_attn": varlen_attn,
    "cudnn": cudnn,
    "padded": padded,
    "flex": flex,
}


GRADIENTS = {"fa2": flash2_gradients}


def wanted(config):
    """The peers that are worth their time for a configuration."""
    batch = config.batch
    yield "fa2"
    if batch.set == "pr164502" and config.dtype == "bf16":
        yield "varlen_attn"
    yield "cudnn"
    if batch.set == "pr164502" or batch.name == "constant":
        yield "padded"
    # It compiles for tens of seconds.
    if config.dtype == "bf16" and (
        (batch.set == "pr164502" and config.head_dim <= 128)
        or (batch.name == "exact" and config.window == (512, 0))
        or (batch.name == "longtail" and config.head_dim == 128)
    ):
        yield "flex"
