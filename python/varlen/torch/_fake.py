"""The operators on tensors without data: what torch.compile and the meta device run."""

import torch

from ._operators import library
from ._results import new_gradients, new_lse, new_results


@torch.library.register_fake("varlen::attn", lib=library)
def _attn_fake(q, k, v, *args, **kwargs):
    return new_results(q, v)


@torch.library.register_fake("varlen::attn_out", lib=library)
def _attn_out_fake(out, q, *args, **kwargs):
    return new_lse(q)


@torch.library.register_fake("varlen::attn_backward", lib=library)
def _attn_backward_fake(
    dout, dlse, q, k, v, out, lse, cu_seqlens_q, cu_seqlens_k, seqused_k=None, sink=None,
    left=-1, right=-1, scale=None, score="", captures=None, seqused_q=None, q_offset=None,
    chunk=None,
):  # fmt: skip
    return new_gradients(q, k, v, sink, captures)
