"""flash_attn_varlen_func, for programs that were written for flash-attn."""

import torch

from .. import scores
from .._options import as_flag, as_integer
from .._row_range import find_sequences
from . import _ops
from ._checks import FLOATS, either
from ._dropout import add_dropout
from ._functions import (
    check_dense, check_layouts, check_lists, check_number, check_optional, check_tensors,
    name_given, name_keys, name_optional, read_chunk, read_pages, read_scale, read_score, read_sides,
    refuse_layout,
)  # fmt: skip
from ._quantised import QUANTISED, attend_with_descales


def flash_attn_varlen_func(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    cu_seqlens_q: torch.Tensor,
    cu_seqlens_k: torch.Tensor | None,
    max_seqlen_q: int | None = None,
    max_seqlen_k: int | None = None,
    dropout_p: float = 0.0,
    softmax_scale: float | None = None,
    causal: bool = False,
    window_size: tuple[int, int] = (-1, -1),
    softcap: float = 0.0,
    alibi_slopes: torch.Tensor | None = None,
    deterministic: bool = False,
    return_attn_probs: bool = False,
    block_table: torch.Tensor | None = None,
    *,
    seqused_q: torch.Tensor | None = None,
    seqused_k: torch.Tensor | None = None,
    attention_chunk: int = 0,
    learnable_sink: torch.Tensor | None = None,
    s_aux: torch.Tensor | None = None,
    q_descale: torch.Tensor | None = None,
    k_descale: torch.Tensor | None = None,
    v_descale: torch.Tensor | None = None,
):
    """flash-attn's function of that name on `varlen_attn`, which says what shapes and
    dtypes are. `softcap` bounds the scaled products, to softcap * tanh(s / softcap); 0 does
    not. `alibi_slopes`, (Hq) or (N, Hq), float32: slope * |i - j| is subtracted from a score, of
    positions i and j counted from the end of a sequence. `deterministic` changes nothing:
    everything is. `return_attn_probs` returns (out, lse, None): lse (Hq, Tq), and no
    probabilities, as no array has them. With `causal` the right side of
    `window_size` is 0, whatever it says.

    Of FlashAttention 3 and 4, and of vLLM: `seqused_q` and `seqused_k`, (N); `attention_chunk`,
    with `causal`: a query sees the keys of its chunk of that many, 0 is no chunk; the sink of
    each head, (Hq) of float16 to float64, `learnable_sink` or `s_aux`. k and v of float8_e4m3fn or
    int8 on the CPU, times `k_descale` and `v_descale`, (N, Hkv), float32; q of float8_e4m3fn, too,
    times `q_descale`: out is bfloat16 then.

    `dropout_p`, with a seed from PyTorch's generator, is `varlen_attn`'s, and so is `block_table`:
    beside one `seqused_k`, or where there is none `cu_seqlens_k`, says how many keys a sequence
    has.

    Raises NotImplementedError for a gradient of keys in pages, and a chunk that is not causal or
    has a window."""
    check_tensors(q=q, k=k, v=v, cu_seqlens_q=cu_seqlens_q)
    rank = 3 if block_table is None else 4
    if q.dim() != 3 or k.dim() != rank or cu_seqlens_q.dim() != 1:
        refuse_layout(cu_seqlens_q, rank, q=q, k=k, v=v)
    check_number("dropout_p", dropout_p)
    if block_table is not None and seqused_k is None and cu_seqlens_k is not None:
        check_dense(cu_seqlens_k=cu_seqlens_k)
        if cu_seqlens_k.dim() != 1:
            refuse_layout(cu_seqlens_k, rank, q=q, k=k, v=v)
        seqused_k = cu_seqlens_k.diff()
    cu_seqlens_k = read_pages(cu_seqlens_k, seqused_k, block_table)
    where = name_keys(cu_seqlens_k, block_table, "cu_seqlens_k")
    check_tensors(**where)
    left, right = read_sides(window_size)
    if causal is not False:
        causal = as_flag("causal", causal)
    right = 0 if causal else right
    chunk = None
    if attention_chunk is not None and as_integer("attention_chunk", attention_chunk):
        if not causal or left >= 0:
            raise NotImplementedError(
                "attention_chunk: Varlen offers chunks with causal=True and without a window, "
                f"got causal={causal} and window_size={tuple(window_size)}"
            )
        right, chunk = -1, read_chunk("attention_chunk", attention_chunk)
    sink = _read_sink(learnable_sink, s_aux, q)
    check_optional(seqused_q, seqused_k, None, sink, ())
    scale = read_scale(softmax_scale)
    try:
        score, captures = _find_scored(softcap, alibi_slopes, q, cu_seqlens_q)
        if dropout_p:
            score, captures = add_dropout(
                score, captures, dropout_p, None, None, q, "cu_seqlens_q", cu_seqlens_q
            )
        score = read_score(score, captures, q) or ("", None)
        operands = (
            q, k, v, cu_seqlens_q, cu_seqlens_k, seqused_k, sink, left, right, scale, *score,
            seqused_q, None, chunk, block_table,
        )  # fmt: skip
        descales = name_given(q_descale=q_descale, k_descale=k_descale, v_descale=v_descale)
        check_dense(**descales)
        if k.dtype in QUANTISED:
            out, lse = attend_with_descales(operands, **descales)
        elif descales:
            raise ValueError(
                f"{next(iter(descales))}: expected k and v of torch.float8_e4m3fn or torch.int8 "
                f"beside it, got {k.dtype}"
            )
        else:
            out, lse = _ops.attn(*operands)
    except Exception:
        check_layouts(
            q=q, k=k, v=v, cu_seqlens_q=cu_seqlens_q, **where,
            **name_optional(seqused_q, seqused_k, None, sink, ()),
        )  # fmt: skip
        raise
    return (out, lse, None) if return_attn_probs else out


def _read_sink(learnable_sink, s_aux, q):
    """The sink, of the type that Varlen has it in."""
    if learnable_sink is not None and s_aux is not None:
        raise ValueError("expected learnable_sink or s_aux, two names of one thing, got both")
    sink = s_aux if learnable_sink is None else learnable_sink
    if sink is None:
        return None
    check_dense(sink=sink)
    if sink.dtype not in FLOATS:
        raise ValueError(f"sink: expected a tensor of {either(FLOATS)}, got one of {sink.dtype}")
    return sink.to(torch.float64 if q.dtype is torch.float64 else torch.float32)


def _find_scored(softcap, slopes, q, cu_seqlens_q):
    """The score and its captures; None and nothing if there is none."""
    check_number("softcap", softcap)
    if not softcap >= 0:
        raise ValueError(f"softcap: expected 0 or more, got {softcap}")
    if slopes is None:
        return _find_score(softcap, 0), ()
    _check_slopes(slopes, q, cu_seqlens_q)
    rank = slopes.dim()
    if rank == 2:
        # The slopes of each query's sequence; any for rows behind the last one.
        check_lists(q, "cu_seqlens_q", cu_seqlens_q)
        rows = torch.arange(q.size(0), device=q.device, dtype=cu_seqlens_q.dtype)
        # Of one stride, or searchsorted warns.
        slopes = slopes.t()[:, find_sequences(torch, cu_seqlens_q.contiguous(), rows)]
    return _find_score(softcap, rank), (slopes,)


def _check_slopes(slopes, q, cu_seqlens_q):
    check_dense(alibi_slopes=slopes)
    heads, count = q.size(1), cu_seqlens_q.size(0) - 1
    shapes = [(heads,), *([(count, heads)] if count else [])]
    dtype = torch.float64 if q.dtype is torch.float64 else torch.float32
    if slopes.dtype is not dtype or slopes.device != q.device or tuple(slopes.shape) not in shapes:
        raise ValueError(
            f"alibi_slopes: expected a tensor of {dtype} on {q.device} and of shape "
            f"{' or '.join(map(str, shapes))}, got one of {slopes.dtype} on {slopes.device} and of "
            f"shape {tuple(slopes.shape)}"
        )


def _find_score(softcap, rank):
    """The score for slopes of that rank; 0: there are none."""
    alibi = scores.query_alibi() if rank == 2 else scores.alibi() if rank else None
    if not softcap:
        return alibi
    cap = scores.softcap(softcap)
    # The bias is added to what softcap makes of the product, as in flash-attn.
    return scores.compose(cap, alibi) if rank else cap
