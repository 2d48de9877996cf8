"""varlen_attn and varlen_attn_out, with the parameters of torch.nn.attention.varlen."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import SymFloat, SymInt, Tensor

from .._arrays import name_layout, refuse_negative_view
from .._dropout import check_sequences
from .._options import as_flag, as_integer, check_chunk, check_score, is_positive_number, show
from . import _ops as _ops  # registers torch.ops.varlen
from ._quantised import QUANTISED, attend_quantised, refuse_scales

if TYPE_CHECKING:
    from torch.nn.attention.varlen import AuxRequest

    from ..scores import Score


# Farther than that a window is open.
_FARTHEST = 2**62


def varlen_attn(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    cu_seq_q: torch.Tensor,
    cu_seq_k: torch.Tensor | None,
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
    dropout_p: float = 0.0,
    seed: int | torch.Tensor | None = None,
    sequence_ids: torch.Tensor | None = None,
    k_scale: torch.Tensor | None = None,
    v_scale: torch.Tensor | None = None,
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
        is_causal: as window_size=(left, 0), the signature of torch 2.10. It goes with no
            window that looks ahead.
        return_aux: AuxRequest(lse=True) returns (out, lse).
        scale: of the products of queries and keys; None is 1 / sqrt(D).
        window_size: (left, right): a query sees so many keys before and after the one
            at its place, places counted from the end of the sequence; -1 is all.
        enable_gqa: allows Hq to be a multiple of Hkv.
        seqused_q, seqused_k: (N,), the dtype of cu_seq_k: how many rows of each sequence
            count.
        q_offset: (N,), the dtype of cu_seq_k: is added to the positions of queries.
        chunk: a query sees the keys up to its own that are in its chunk of that many.
        block_table: (N, pages), int32: keys and values are in pages. key is (P, page, Hkv, D) and
            value (P, page, Hkv, Dv); key j of sequence s is row j % page of page
            block_table[s, j // page]. seqused_k, of the dtype of cu_seq_q, says how many keys a
            sequence has, and cu_seq_k is not read. No other entry or row is read, and there is
            no gradient.
        num_splits: not needed: results never depend on the batch.
        sink: (Hq,), float32, for float64 queries float64: exp(sink) is added to the
            sum of each softmax of a head.
        score: changes scores or hides keys: one of `varlen.scores`, or one of your own.
        captures: what the score reads, in its order: (Hq,) or (Hq, Tq), tables (Hq, M) or
            (Hq, Tq, M), of keys (Hq, Tk), float32, for float64 queries float64.
        dropout_p: the part of the probabilities that are 0, others are divided by
            1 - dropout_p; from 0 to less than 1.
        seed: of dropout, an integer of 64 bits or a tensor of one int64; None: drawn from the
            default generator of query's device. Which probabilities are 0 follows from it, the
            sequence, the head and the places of query and key, and from nothing else.
        sequence_ids: (N,), int32 or int64, names sequences for dropout, by their low 32 bits;
            None: their places in the batch.
        k_scale, v_scale: float32: key and value are quantised, of int8 or float8_e4m3fn, beside a
            query of float16, bfloat16 or float32, and are multiplied by these: (Hkv,), (Tk, Hkv),
            in pages (P, Hkv) or (P, page, Hkv); None is 1. On the CPU, and without gradients.

    Returns:
        out (Tq, Hq, Dv) of query's dtype, and lse (Hq, Tq), float32 or float64, if it
        is asked for. Rows that see no key are 0, their lse is -inf. Both have gradients,
        by captures too.

    Raises:
        TypeError: what is no tensor, number or score where one is expected.
        ValueError: shapes, dtypes, scale, cu_seq, block_table or captures that do not go together.
        NotImplementedError: a gradient of keys in pages.
    """
    cu_seq_k = read_pages(cu_seq_k, seqused_k, block_table)
    arguments = _check(
        query, key, value, cu_seq_q, cu_seq_k, is_causal, scale, window_size, enable_gqa,
        block_table, chunk,
    )  # fmt: skip
    check_optional(seqused_q, seqused_k, q_offset, sink, captures)
    returns_lse = return_aux is not None and read_aux(return_aux)
    try:
        if type(dropout_p) is not float or dropout_p:
            score, captures = _add_dropout(
                score, captures, dropout_p, seed, sequence_ids, query, "cu_seq_q", cu_seq_q
            )
        options = read_options(score, captures, query, seqused_q, q_offset, chunk, block_table)
        operands = query, key, value, cu_seq_q, cu_seq_k, seqused_k, sink, *arguments, *options
        if key.dtype in QUANTISED:
            check_dense(**name_given(k_scale=k_scale, v_scale=v_scale))
            out, lse = attend_quantised(operands, k_scale, v_scale)
        else:
            refuse_scales(k_scale, v_scale, key)
            out, lse = _ops.attn(*operands)
    except Exception:
        check_layouts(
            query=query, key=key, value=value, cu_seq_q=cu_seq_q,
            **name_keys(cu_seq_k, block_table),
            **name_optional(seqused_q, seqused_k, q_offset, sink, captures),
        )  # fmt: skip
        raise
    return (out, lse) if returns_lse else out


def varlen_attn_out(
    out: torch.Tensor,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    cu_seq_q: torch.Tensor,
    cu_seq_k: torch.Tensor | None,
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
    dropout_p: float = 0.0,
    seed: int | torch.Tensor | None = None,
    sequence_ids: torch.Tensor | None = None,
) -> torch.Tensor | tuple[torch.Tensor, torch.Tensor]:
    """`varlen_attn` that writes to `out`, (Tq, Hq, Dv) of any strides, which may overlap
    no other tensor. It has no gradient. Returns out, or (out, lse)."""
    if not isinstance(out, Tensor):
        check_tensors(out=out)
    # A graph that is compiled has no such view.
    if not torch.compiler.is_compiling():
        refuse_negative_view("out", out)
    cu_seq_k = read_pages(cu_seq_k, seqused_k, block_table)
    arguments = _check(
        query, key, value, cu_seq_q, cu_seq_k, is_causal, scale, window_size, enable_gqa,
        block_table, chunk,
    )  # fmt: skip
    check_optional(seqused_q, seqused_k, q_offset, sink, captures)
    returns_lse = return_aux is not None and read_aux(return_aux)
    try:
        if type(dropout_p) is not float or dropout_p:
            score, captures = _add_dropout(
                score, captures, dropout_p, seed, sequence_ids, query, "cu_seq_q", cu_seq_q
            )
        options = read_options(score, captures, query, seqused_q, q_offset, chunk, block_table)
        lse = _ops.attn_out(
            out, query, key, value, cu_seq_q, cu_seq_k, seqused_k, sink, *arguments, *options
        )
    except Exception:
        check_layouts(
            out=out, query=query, key=key, value=value, cu_seq_q=cu_seq_q,
            **name_keys(cu_seq_k, block_table),
            **name_optional(seqused_q, seqused_k, q_offset, sink, captures),
        )  # fmt: skip
        raise
    return (out, lse) if returns_lse else out


def _add_dropout(*arguments):
    from ._dropout import add_dropout  # which imports from here

    return add_dropout(*arguments)


def _check(
    query, key, value, cu_seq_q, cu_seq_k, is_causal, scale, window_size, enable_gqa, block_table,
    chunk,
):  # fmt: skip
    """Refuses what torch.nn.attention.varlen refuses, in its words; returns the bounds
    of the window and the scale."""
    # The dispatcher would print what is no tensor, all of it.
    if not (
        isinstance(query, Tensor)
        and isinstance(key, Tensor)
        and isinstance(value, Tensor)
        and isinstance(cu_seq_q, Tensor)
        and isinstance(cu_seq_k if block_table is None else block_table, Tensor)
    ):
        check_tensors(
            query=query, key=key, value=value, cu_seq_q=cu_seq_q,
            **name_keys(cu_seq_k, block_table),
        )  # fmt: skip
    rank = 3 if block_table is None else 4
    if query.dim() != 3 or key.dim() != rank or value.dim() != rank or query.is_nested:
        refuse_layout(cu_seq_q, rank, query=query, key=key, value=value)
    if type(enable_gqa) is not bool:
        enable_gqa = as_flag("enable_gqa", enable_gqa)
    heads, kv_heads = query.shape[1], key.shape[rank - 2]
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
    return *read_window(is_causal, window_size, chunk), read_scale(scale)


def check_tensors(**named):
    for name, x in named.items():
        if not isinstance(x, Tensor):
            kind = f"{type(x).__module__}.{type(x).__qualname__}".removeprefix("builtins.")
            hint = "; torch.from_numpy makes one" if kind == "numpy.ndarray" else ""
            raise TypeError(f"{name}: expected a torch.Tensor, got a {kind}{hint}")


def check_dense(**named):
    """Refuses what is no tensor with strides, before anything is computed from it."""
    check_tensors(**named)
    check_layouts(**named)


def check_optional(seqused_q, seqused_k, q_offset, sink, captures):
    """check_tensors of those that are given."""
    if (
        seqused_q is None
        and seqused_k is None
        and q_offset is None
        and sink is None
        and type(captures) is tuple
        and not captures
    ):
        return
    if isinstance(captures, Tensor) or not isinstance(captures, Sequence):
        kind = type(captures).__name__
        raise TypeError(f"captures: expected a sequence of torch.Tensor, got a {kind}")
    check_tensors(**name_optional(seqused_q, seqused_k, q_offset, sink, captures))


def name_optional(seqused_q, seqused_k, q_offset, sink, captures):
    """Those that are given, by name."""
    given = name_given(seqused_q=seqused_q, seqused_k=seqused_k, q_offset=q_offset, sink=sink)
    return given | {f"captures[{i}]": x for i, x in enumerate(captures)}


def name_given(**optional):
    return {name: x for name, x in optional.items() if x is not None}


def check_lists(query, name, cu_seqlens, sequence_ids=None):
    """Refuses lists of sequences that numbers of query's rows cannot be computed from, where
    that is done before an operator is called."""
    if sequence_ids is not None:
        check_dense(sequence_ids=sequence_ids)
    is_integer, are_integers = (
        x is not None and x.dtype in (torch.int32, torch.int64)
        for x in (cu_seqlens, sequence_ids)
    )
    check_sequences(name, cu_seqlens, is_integer, sequence_ids, are_integers)
    for name, x in ((name, cu_seqlens), ("sequence_ids", sequence_ids)):
        if x is not None and x.device != query.device:
            raise ValueError(
                f"{name}: expected a tensor on {query.device}, as q is, got one on {x.device}"
            )


def check_layouts(**named):
    """Refuses tensors that the dispatcher has no kernel for, in its words with a list of all
    that it has. They cost a call nothing where it asks after an error."""
    for name, x in named.items():
        if kind := name_layout(x):
            raise ValueError(f"{name}: expected a dense tensor, got {kind}")


def refuse_layout(cu_seqlens, rank=3, **named):
    """Says what is wrong with queries, keys and values, which are not all of rank 3, or keys and
    values of rank 4 where they are in pages, or else with cu_seqlens."""
    check_layouts(**named, cu_seqlens=cu_seqlens)
    first, *others = named
    if any(x.dim() != (3 if name == first else rank) for name, x in named.items()):
        shapes = ", ".join(f"{name} {tuple(x.shape)}" for name, x in named.items())
        wanted = f"{', '.join(named)} of rank 3 (rows, heads, head_dim)"
        if rank == 4:
            wanted = (
                f"{first} of rank 3 (rows, heads, head_dim), and {', '.join(others)} of rank 4 "
                "(pages, rows, heads, head_dim)"
            )
        raise ValueError(f"expected {wanted}, got shapes {shapes}")
    raise ValueError(
        f"cu_seqlens: expected a tensor of rank 1, got shape {tuple(cu_seqlens.shape)}"
    )


def read_pages(cu_seq_k, seqused_k, block_table):
    """The list of keys, of which those in pages have none."""
    if block_table is None:
        if cu_seq_k is None:
            raise ValueError("expected cu_seq_k, which only paged keys go without, got None")
        return cu_seq_k
    if seqused_k is None:
        raise ValueError("expected seqused_k with a block_table, got none")
    return None


def name_keys(cu_seq_k, block_table, name="cu_seq_k"):
    """What says where keys are, by name."""
    return {name: cu_seq_k} if block_table is None else {"block_table": block_table}


def read_aux(return_aux):
    """Whether lse is asked for."""
    try:
        return return_aux.lse
    except AttributeError:
        raise TypeError(
            f"return_aux: expected None or an AuxRequest, got {show(return_aux)}"
        ) from None


def read_window(is_causal, window_size, chunk=None):
    """(left, right) of both ways to say it."""
    left, right = read_sides(window_size)
    if is_causal is not False:
        is_causal = as_flag("is_causal", is_causal)
    if chunk is not None and (is_causal or left >= 0 or right >= 0):
        raise ValueError("expected one of is_causal, window_size and chunk, got several")
    if is_causal and right > 0:
        raise ValueError(
            "expected is_causal or a window_size that looks ahead, got both: "
            f"window_size={tuple(window_size)}"
        )
    return left, 0 if is_causal else right


def read_sides(window_size):
    """(left, right), -1 where a side is open."""
    if window_size is None:
        return -1, -1
    # The check that takes longer comes second.
    if type(window_size) is not tuple and (
        not isinstance(window_size, Sequence) or isinstance(window_size, (bytes, bytearray))
    ):
        raise TypeError(
            f"window_size: expected two integers (left, right), got {show(window_size)}"
        )
    if len(window_size) != 2:
        raise ValueError(f"window_size must have length 2, got {len(window_size)}")
    left, right = window_size
    if type(left) is not int or type(right) is not int:
        left, right = as_integer("window_size", left), as_integer("window_size", right)
    # Below -1 is as open as -1, as in FlashAttention, and so is what no sequence is long enough
    # for, of which not every number is one of the operators' 64 bits.
    left = -1 if left < -1 or left > _FARTHEST else left
    return left, -1 if right < -1 or right > _FARTHEST else right


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
    # Dynamo of torch 2.11 takes no bool for an index.
    text = score.texts[int(query.dtype is torch.float64)]
    return text or score.written("f64" if query.dtype is torch.float64 else "f32"), list(captures)


def read_options(score, captures, query, seqused_q, q_offset, chunk, block_table):
    """The last arguments of the operators; nothing, which costs least, if there are none."""
    options = read_score(score, captures, query)
    if seqused_q is None and q_offset is None and chunk is None and block_table is None:
        return options
    if chunk is not None:
        chunk = read_chunk("chunk", chunk)
    options = *(options or ("", None)), seqused_q, q_offset, chunk
    return options if block_table is None else (*options, block_table)


def read_chunk(name, chunk):
    """The number of keys in a chunk."""
    return check_chunk(name, chunk if type(chunk) is int else as_integer(name, chunk))


def check_number(name, value):
    # Dynamo's symbols are numbers, too, but have no attributes to ask for.
    if not isinstance(value, (numbers.Real, SymFloat, SymInt)) or isinstance(value, bool):
        raise TypeError(
            f"{name}: expected a Python number, which code is made for, got {type(value).__name__}"
        )


def read_scale(scale):
    if scale is None:
        return None
    check_number("scale", scale)
    if not scale > 0:
        raise ValueError(f"scale must be greater than 0, got {show(scale)}")
    if type(scale) is int and not is_positive_number(scale):
        raise ValueError(f"scale: expected a positive, finite number, got {show(scale)}")
    return float(scale)
