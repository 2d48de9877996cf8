"""The operators on tensors of the CPU and of CUDA devices: kernels are compiled for the device
that the tensors are on."""

import functools

import torch

from .. import text
from ..scores import parse
from . import _kernels
from ._checks import check
from ._operators import (
    attn, attn_backward, attn_jvp, attn_jvp_backward, attn_out, library, name_arguments,
)  # fmt: skip
from ._results import new_gradients, new_lse, new_results


def _explained(op):
    """Has what is wrong with arguments said as by all kernels of the operator."""

    def explain(kernel):
        @functools.wraps(kernel)
        def run(*arguments, **options):
            try:
                return kernel(*arguments, **options)
            except (ValueError, RuntimeError):  # PyTorch's, where DLPack cannot have a tensor
                check(name_arguments(op, arguments, options))
                raise

        return run

    return explain


def _geometry(
    q, k, v, cu_seqlens_q, seqused_k, sink, left, right, scale, score, seqused_q, q_offset, chunk
):  # fmt: skip
    """The arguments of _kernels.find behind the first two."""
    _, heads, head_dim = q.shape
    *_, kv_heads, _ = k.shape
    *_, value_dim = v.shape
    if chunk is not None and (left, right) != (-1, -1):
        raise ValueError(f"expected window or chunk, got both: {(left, right)}, {chunk}")
    return (
        q.dtype, cu_seqlens_q.dtype, heads, kv_heads, head_dim, value_dim, left, right,
        scale, seqused_k is not None, sink is not None, parse(score) if score else None,
        seqused_q is not None, q_offset is not None, chunk,
    )  # fmt: skip


def _operands(first, seqused_q, seqused_k, q_offset, sink, captures):
    """With those after `first` that are given, in the op's order."""
    if seqused_q is not None:
        first.append(seqused_q)
    if seqused_k is not None:
        first.append(seqused_k)
    if q_offset is not None:
        first.append(q_offset)
    if sink is not None:
        first.append(sink)
    if captures:
        # The dispatcher does this for all but lists of tensors.
        first += [capture.resolve_neg() for capture in captures]
    return first


def _find_forward(
    q, k, v, cu_seqlens_q, cu_seqlens_k, seqused_k, sink, left, right, scale, score, captures,
    seqused_q, q_offset, chunk, block_table,
):  # fmt: skip
    """The kernel of out and lse, and its operands."""
    geometry = _geometry(
        q, k, v, cu_seqlens_q, seqused_k, sink, left, right, scale, score, seqused_q, q_offset,
        chunk,
    )  # fmt: skip
    first, page = [q, k, v, cu_seqlens_q], None
    if block_table is None:
        first.append(cu_seqlens_k)
    else:
        _, page, *_ = k.shape
    # check has the words.
    is_paged = page is not None
    if (cu_seqlens_k is None) != is_paged or (is_paged and (seqused_k is None or not page)):
        raise ValueError("expected cu_seqlens_k, or seqused_k and a block_table of pages with rows")
    operands = _operands(first, seqused_q, seqused_k, q_offset, sink, captures)
    if block_table is not None:
        operands.append(block_table)
    return _kernels.find(text.attn, (("page", page),), *geometry), operands


@_explained(attn)
def attn_on_device(
    q, k, v, cu_seqlens_q, cu_seqlens_k, seqused_k=None, sink=None,
    left=-1, right=-1, scale=None, score="", captures=None, seqused_q=None, q_offset=None,
    chunk=None, block_table=None,
):  # fmt: skip
    kernel, operands = _find_forward(
        q, k, v, cu_seqlens_q, cu_seqlens_k, seqused_k, sink, left, right, scale, score, captures,
        seqused_q, q_offset, chunk, block_table,
    )  # fmt: skip
    results = out, lse = new_results(q, v)
    kernel([*operands, out, lse])
    return results


@_explained(attn_out)
def attn_out_on_device(
    out, q, k, v, cu_seqlens_q, cu_seqlens_k, seqused_k=None, sink=None,
    left=-1, right=-1, scale=None, score="", captures=None, seqused_q=None, q_offset=None,
    chunk=None, block_table=None,
):  # fmt: skip
    kernel, operands = _find_forward(
        q, k, v, cu_seqlens_q, cu_seqlens_k, seqused_k, sink, left, right, scale, score, captures,
        seqused_q, q_offset, chunk, block_table,
    )  # fmt: skip
    if out.dim() != 3 or out.size(0) != q.size(0):
        raise ValueError("expected an out with q's rows")  # check has the words
    lse = new_lse(q)
    kernel([*operands, out, lse])
    return lse


@_explained(attn_backward)
def attn_backward_on_device(
    dout, dlse, q, k, v, out, lse, cu_seqlens_q, cu_seqlens_k, seqused_k=None, sink=None,
    left=-1, right=-1, scale=None, score="", captures=None, seqused_q=None, q_offset=None,
    chunk=None,
):  # fmt: skip
    geometry = _geometry(
        q, k, v, cu_seqlens_q, seqused_k, sink, left, right, scale, score, seqused_q, q_offset,
        chunk,
    )  # fmt: skip
    if dout is None:
        dout = torch.zeros_like(out)
    dq, dk, dv, dsink, dcaptures = new_gradients(q, k, v, sink, captures)
    kernel = _kernels.find(text.attn_grad, (("dlse", dlse is not None),), *geometry)
    first = [dout, q, k, v, out, lse, cu_seqlens_q, cu_seqlens_k]
    if dlse is not None:
        first.append(dlse)
    results = (dq, dk, dv) if sink is None else (dq, dk, dv, dsink)
    operands = _operands(first, seqused_q, seqused_k, q_offset, sink, captures)
    kernel([*operands, *results, *dcaptures])
    return dq, dk, dv, dsink, dcaptures


@_explained(attn_jvp)
def attn_jvp_on_device(
    q, k, v, tq, tk, tv, cu_seqlens_q, cu_seqlens_k, seqused_k=None, sink=None,
    left=-1, right=-1, scale=None, score="", captures=None, seqused_q=None, q_offset=None,
    chunk=None, tsink=None, tcaptures=None,
):  # fmt: skip
    geometry = _geometry(
        q, k, v, cu_seqlens_q, seqused_k, sink, left, right, scale, score, seqused_q, q_offset,
        chunk,
    )  # fmt: skip
    first = [q, k, v, tq, tk, tv, cu_seqlens_q, cu_seqlens_k]
    operands = _operands_with_tangents(
        first, seqused_q, seqused_k, q_offset, sink, tsink, captures, tcaptures
    )
    results = *new_results(q, v), *new_results(q, v)
    kernel = _kernels.find(text.attn_jvp, (("wrt_captures", bool(tcaptures)),), *geometry)
    kernel([*operands, *results])
    return results


def _operands_with_tangents(
    first, seqused_q, seqused_k, q_offset, sink, tsink, captures, tcaptures
):  # fmt: skip
    """As _operands."""
    if (tsink is not None and sink is None) or len(tcaptures or ()) not in (0, len(captures or ())):
        raise ValueError("expected tangents of operands that are there")  # check has the words
    operands = _operands(first, seqused_q, seqused_k, q_offset, sink, None)
    if sink is not None:
        operands.append(torch.zeros_like(sink) if tsink is None else tsink)
    operands += [x.resolve_neg() for x in (*(captures or ()), *(tcaptures or ()))]
    return operands


@_explained(attn_jvp_backward)
def attn_jvp_backward_on_device(
    dtout, dtlse, dout, dlse, q, k, v, tq, tk, tv, out, lse, tout, tlse, cu_seqlens_q,
    cu_seqlens_k, seqused_k=None, sink=None, left=-1, right=-1, scale=None, score="",
    captures=None, seqused_q=None, q_offset=None, chunk=None, tsink=None, tcaptures=None,
):  # fmt: skip
    geometry = _geometry(
        q, k, v, cu_seqlens_q, seqused_k, sink, left, right, scale, score, seqused_q, q_offset,
        chunk,
    )  # fmt: skip
    if dtout is None:
        dtout = torch.zeros_like(out)
    if captures and not tcaptures:
        tcaptures = [torch.zeros_like(capture) for capture in captures]
    optional = {"dtlse": dtlse, "dout": dout, "dlse": dlse}
    first = [dtout, q, k, v, tq, tk, tv, out, lse, tout, tlse, cu_seqlens_q, cu_seqlens_k]
    first += [x for x in optional.values() if x is not None]
    operands = _operands_with_tangents(
        first, seqused_q, seqused_k, q_offset, sink, tsink, captures, tcaptures
    )
    dq, dk, dv, dsink, dcaptures = new_gradients(q, k, v, sink, captures)
    results = (dq, dk, dv) if sink is None else (dq, dk, dv, dsink)
    more = tuple((name, x is not None) for name, x in optional.items())
    _kernels.find(text.attn_jvp_grad, more, *geometry)([*operands, *results, *dcaptures])
    return dq, dk, dv, dsink, dcaptures


for _device in ("CPU", "CUDA"):
    library.impl("attn", attn_on_device, _device)
    library.impl("attn_out", attn_out_on_device, _device)
    library.impl("attn_backward", attn_backward_on_device, _device)
    library.impl("attn_jvp", attn_jvp_on_device, _device)
    library.impl("attn_jvp_backward", attn_jvp_backward_on_device, _device)
