"""varlen_attn and varlen_attn_out, with the parameters of torch.nn.attention.varlen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch

from .._attention import check_score
from . import _ops as _ops  # registers torch.ops.varlen

if TYPE_CHECKING:
    from torch.nn.attention.varlen import AuxRequest

    from ..scores import Score


def varlen_attn(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    cu_seq_q: torch.Tensor,
    cu_seq_k: torch.Tensor,
    max_q: int | None = None,
    max_k: int | None = None,
    is_causal: bool = False,
    return_aux: AuxRequest | None = None,
    *,
    scale: float | None = None,
    window_size: tuple[int, int] = (-1, -1),
    enable_gqa: bool = False,
    seqused_q: torch.Tensor | None = None,
    seqused_k: torch.Tensor | None = None,
    q_offset: torch.Tensor | None = None,
    chunk: int | None = None,
    block_table: torch.Tensor | None = None,
    num_splits: int | None = None,
    sink: torch.Tensor | None = None,
    score: Score | None = None,
    captures: Sequence[torch.Tensor] = (),
) -> torch.Tensor | tuple[torch.Tensor, torch.Tensor]:
    """Attention over packed sequences of different lengths.

    Args:
        query: (Tq, Hq, D), of float16, bfloat16, float32 or float64. The last stride of
            tensors should be 1, others may be anything; what is different is copied.
        key: (Tk, Hkv, D), of query's dtype.
        value: (Tk, Hkv, Dv), of query's dtype.
        cu_seq_q, cu_seq_k: (N + 1,), int32 or int64: the first row of each sequence,
            and the end of the last one. Empty sequences are allowed.
        max_q, max_k: not needed, and not read.
        is_causal: as window_size=(left, 0), the signature of torch 2.10.
        return_aux: AuxRequest(lse=True) returns (out, lse).
        scale: of the products of queries and keys; None is 1 / sqrt(D).
        window_size: (left, right): a query sees so many keys before and after the one
            at its place, places counted from the end of the sequence; -1 is all.
        enable_gqa: allows Hq to be a multiple of Hkv.
        seqused_q, seqused_k: (N,), the dtype of cu_seq_k: how many rows of each sequence
            count.
        q_offset: (N,), the dtype of cu_seq_k: is added to the positions of queries.
        chunk: a query sees the keys up to its own that are in its chunk of that many.
        num_splits: not needed: results never depend on the batch.
        sink: (Hq,), float32, for float64 queries float64: exp(sink) is added to the
            sum of each softmax of a head.
        score: changes scores or hides keys: one of `varlen.scores`, or one of your own.
        captures: what the score reads, in its order: (Hq,) or (Hq, Tq), tables (Hq, M) or
            (Hq, Tq, M), of keys (Hq, Tk), float32, for float64 queries float64.

    Returns:
        out (Tq, Hq, Dv) of query's dtype, and lse (Hq, Tq), float32 or float64, if it
        is asked for. Rows that see no key are 0, their lse is -inf. Both have gradients,
        by captures too.

    Raises:
        ValueError: shapes, dtypes, scale, cu_seq or captures that do not go together.
        NotImplementedError: a block_table.
    """
    arguments = _check(
        query, key, cu_seq_k, is_causal, scale, window_size, enable_gqa, block_table
    )
    out, lse = _ops.attn(
        query, key, value, cu_seq_q, cu_seq_k, seqused_k, sink, *arguments,
        *read_options(score, captures, query, seqused_q, q_offset, chunk),
    )  # fmt: skip
    return (out, lse) if return_aux is not None and return_aux.lse else out


def varlen_attn_out(
    out: torch.Tensor,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    cu_seq_q: torch.Tensor,
    cu_seq_k: torch.Tensor,
    max_q: int | None = None,
    max_k: int | None = None,
    is_causal: bool = False,
    return_aux: AuxRequest | None = None,
    *,
    scale: float | None = None,
    window_size: tuple[int, int] = (-1, -1),
    enable_gqa: bool = False,
    seqused_q: torch.Tensor | None = None,
    seqused_k: torch.Tensor | None = None,
    q_offset: torch.Tensor | None = None,
    chunk: int | None = None,
    block_table: torch.Tensor | None = None,
    num_splits: int | None = None,
    sink: torch.Tensor | None = None,
    score: Score | None = None,
    captures: Sequence[torch.Tensor] = (),
) -> torch.Tensor | tuple[torch.Tensor, torch.Tensor]:
    """`varlen_attn` that writes to `out`, (Tq, Hq, Dv) of any strides, which may overlap
    no other tensor. It has no gradient. Returns out, or (out, lse)."""
    arguments = _check(
        query, key, cu_seq_k, is_causal, scale, window_size, enable_gqa, block_table
    )
    lse = _ops.attn_out(
        out, query, key, value, cu_seq_q, cu_seq_k, seqused_k, sink, *arguments,
        *read_options(score, captures, query, seqused_q, q_offset, chunk),
    )  # fmt: skip
    return (out, lse) if return_aux is not None and return_aux.lse else out


def _check(query, key, cu_seq_k, is_causal, scale, window_size, enable_gqa, block_table):
    """Refuses what torch.nn.attention.varlen refuses, in its words; returns the bounds
    of the window and the scale."""
    refuse_pages(cu_seq_k, block_table)
    heads, kv_heads = query.shape[1], key.shape[1]
    if not enable_gqa and heads != kv_heads:
        raise ValueError(
            "Expect query and key/value to have the same number of heads but got "
            f"Hq={heads} and Hkv={kv_heads}. Try setting enable_gqa=True for GQA."
        )
    if enable_gqa and (kv_heads == 0 or heads % kv_heads):
        raise ValueError(
            "Expect number of query heads to be a multiple of kv heads for GQA but got "
            f"Hq={heads} and Hkv={kv_heads}."
        )
    return *read_window(is_causal, window_size), read_scale(scale)


def refuse_pages(cu_seq_k, block_table):
    if block_table is not None:
        raise NotImplementedError(
            "block_table: Varlen offers no paged keys and values; gather the pages, or "
            "use slots of a packed tensor with seqused_k"
        )
    if cu_seq_k is None:
        raise ValueError("expected cu_seq_k, which only paged keys go without, got None")


def read_window(is_causal, window_size):
    """(left, right) of both ways to say it."""
    if window_size is None:
        window_size = (-1, -1)
    if len(window_size) != 2:
        raise ValueError(f"window_size must have length 2, got {len(window_size)}")
    left, right = window_size
    # Below -1 is as open as -1, as in FlashAttention.
    return -1 if left < -1 else left, 0 if is_causal else -1 if right < -1 else right


def read_score(score, captures, query):
    """Both as the operators take them; nothing, which costs least, if there are none."""
    if score is None and not captures:
        return ()
    check_score(score)
    names = score.names if score else ()
    if len(names) != len(captures):
        raise ValueError(
            f"captures: expected {len(names)} tensors ({', '.join(names)}), got {len(captures)}"
        )
    text = score.texts[query.dtype is torch.float64]
    return text or score.written("f64" if query.dtype is torch.float64 else "f32"), list(captures)


def read_options(score, captures, query, seqused_q, q_offset, chunk):
    """The last arguments of the operators; nothing, which costs least, if there are none."""
    options = read_score(score, captures, query)
    if seqused_q is None and q_offset is None and chunk is None:
        return options
    return *(options or ("", None)), seqused_q, q_offset, chunk


def read_scale(scale):
    if scale is not None and not scale > 0:
        raise ValueError(f"scale must be greater than 0, got {scale}")
    return scale
