"""The operators on tensors of CUDA devices: operands and results by name, as varlen.attn
launches them."""

import torch

from ..scores import find_score
from . import _kernels
from ._operators import library
from ._results import new_gradients, new_lse, new_results


def _launch(operation, given, captures, options, results):
    from .. import _cuda

    left, right, scale, score = options
    score = find_score(score) if score else None
    given |= zip(score.captures if score else (), captures or ())
    given = {name: x for name, x in given.items() if x is not None}
    given = {name: _kernels.with_unit_stride(x) for name, x in given.items()}
    _cuda.run(given, operation, ((left, right), None, "bottom_right", scale, score), results)


def _attend_cuda(
    out, lse, q, k, v, cu_seqlens_q, cu_seqlens_k, seqused_k=None, sink=None,
    left=-1, right=-1, scale=None, score="", captures=None,
):  # fmt: skip
    given = {
        "q": q, "k": k, "v": v, "cu_seqlens_q": cu_seqlens_q, "cu_seqlens_k": cu_seqlens_k,
        "seqused_k": seqused_k, "sink": sink,
    }  # fmt: skip
    options = left, right, scale, score
    _launch("attn", given, captures, options, {"out": out, "lse": lse})


def attn_cuda(q, k, v, *arguments, **options):
    results = out, lse = new_results(q, v)
    _attend_cuda(out, lse, q, k, v, *arguments, **options)
    return results


def attn_out_cuda(out, q, *arguments, **options):
    written, lse = _kernels.with_unit_stride(out), new_lse(q)
    _attend_cuda(written, lse, q, *arguments, **options)
    if written is not out:
        out.copy_(written)
    return lse


def attn_backward_cuda(
    dout, dlse, q, k, v, out, lse, cu_seqlens_q, cu_seqlens_k, seqused_k=None, sink=None,
    left=-1, right=-1, scale=None, score="", captures=None,
):  # fmt: skip
    gradients = dq, dk, dv, dsink, dcaptures = new_gradients(q, k, v, sink, captures)
    given = {
        "dout": torch.zeros_like(out) if dout is None else dout, "q": q, "k": k, "v": v,
        "out": out, "lse": lse, "cu_seqlens_q": cu_seqlens_q, "cu_seqlens_k": cu_seqlens_k,
        "dlse": dlse, "seqused_k": seqused_k, "sink": sink,
    }  # fmt: skip
    results = {"dq": dq, "dk": dk, "dv": dv}
    if sink is not None:
        results["dsink"] = dsink
    results |= {f"dcapture{i}": x for i, x in enumerate(dcaptures)}
    options = left, right, scale, score
    _launch("attn_grad", given, captures, options, results)
    return gradients


library.impl("attn", attn_cuda, "CUDA")
library.impl("attn_out", attn_out_cuda, "CUDA")
library.impl("attn_backward", attn_backward_cuda, "CUDA")
