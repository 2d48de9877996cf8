"""varlen.attn and its derivatives on arrays."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from . import _cache, _library, text
from ._arrays import (
    Array, Maker, check_description, check_writable, describe, export_all, is_on_cuda, maker_of,
    read_floats, refuse_unsigned,
)  # fmt: skip
from ._dropout import add_score, check_rate
from ._options import check_options, check_score, check_threads, read_options, show
from .scores import CAPTURES, Score, dropout_words

# Rank, extents by name, and what the elements are: of q ("T"), of cu_seqlens ("I"),
# or those that sums are in ("A").
_OPERANDS = {
    "q": (3, "rows, heads, head_dim", "T"),
    "k": (3, "rows, heads, head_dim", "T"),
    "v": (3, "rows, heads, head_dim", "T"),
    "out": (3, "rows, heads, head_dim", "T"),
    "dout": (3, "rows, heads, head_dim", "T"),
    "lse": (2, "heads, rows", "A"),
    "dlse": (2, "heads, rows", "A"),
    "cu_seqlens_q": (1, "sequences + 1", "I"),
    "cu_seqlens_k": (1, "sequences + 1", "I"),
    "seqused_q": (1, "sequences", "I"),
    "seqused_k": (1, "sequences", "I"),
    "q_offset": (1, "sequences", "I"),
    "sink": (1, "heads", "A"),
    "block_table": (2, "sequences, pages", "B"),
}
_OPERANDS |= {f"t{name}": _OPERANDS[name] for name in ("q", "k", "v", "sink", "out", "lse")}
_OPERANDS |= {f"dt{name}": _OPERANDS[name] for name in ("out", "lse")}
# In place of k and v, of keys in pages.
_PAGED = (4, "pages, rows, heads, head_dim", "T")
# What a number of a scale is of, by the rank of the scale, and in pages.
_SCALES = {1: "heads", 2: "rows, heads"}
_PAGED_SCALES = {1: "heads", 2: "pages, heads", 3: "pages, rows, heads"}
_ELEMENTS = {
    "T": ("f16", "bf16", "f32", "f64"),
    "I": ("i32", "i64"),
    "A": ("f32", "f64"),
    "B": ("i32",),
}
QUANTISED = ("i8", "f8E4M3FN")
# In which they are operands.
_LATER = ("seqused_q", "seqused_k", "q_offset", "sink")
ORDER = {
    "attn": ("q", "k", "v", "cu_seqlens_q", "cu_seqlens_k", *_LATER),
    "attn_grad": (
        "dout", "q", "k", "v", "out", "lse", "cu_seqlens_q", "cu_seqlens_k", "dlse",
        *_LATER,
    ),
    "attn_jvp": (
        "q", "k", "v", "tq", "tk", "tv", "cu_seqlens_q", "cu_seqlens_k", *_LATER, "tsink",
    ),
    "attn_jvp_grad": (
        "dtout", "q", "k", "v", "tq", "tk", "tv", "out", "lse", "tout", "tlse", "cu_seqlens_q",
        "cu_seqlens_k", "dtlse", "dout", "dlse", *_LATER, "tsink",
    ),
}  # fmt: skip


def order_of(operation, captures):
    """Names of all operands that an operation may have, in its order."""
    tangents = [f"t{name}" for name in captures] if "tq" in ORDER[operation] else ()
    return *ORDER[operation], *captures, *tangents, *text.CACHE


# Extents that are part of the type, so that code is made for them; others are
# whatever they are in a call.
_STATIC = {
    "q": (1, 2), "k": (1, 2), "v": (1, 2), "out": (1, 2), "dout": (1, 2),
    "lse": (0,), "dlse": (0,), "sink": (0,),
}  # fmt: skip
_STATIC |= {f"t{name}": _STATIC[name] for name in ("q", "k", "v", "sink", "out", "lse")}
_STATIC |= {f"dt{name}": _STATIC[name] for name in ("out", "lse")}


class _Plan(NamedTuple):
    """A compiled function's frames, and how its results are made."""

    frames: _library.Frames
    maker: Maker
    dtypes: tuple


# What a capture of a score is.
_CAPTURES = {
    of: (len(extents), ", ".join(extents), "A") for of, extents in CAPTURES.items()
}


def type_of(name, element, shape, of=None, *, paged=False, quantised=False):
    """The MLIR type of an operand, or of a capture that has something of each `of`; of k
    and v that are `paged`, in pages; `quantised`: whether they may be."""
    if name in ("k_scale", "v_scale"):
        return _type_of_scale(name, element, shape, _PAGED_SCALES if paged else _SCALES)
    paged = paged and name in ("k", "v")
    rank, extents, kind = _CAPTURES[of] if of else _PAGED if paged else _OPERANDS[name]
    elements = _ELEMENTS[kind] + (QUANTISED if quantised and name in ("k", "v") else ())
    check_description(name, (element, shape), rank, extents, elements)
    static = (0,) if of else (1, 2, 3) if paged else _STATIC.get(name, ())
    dims = "".join(f"{n if d in static else '?'}x" for d, n in enumerate(shape))
    return f"tensor<{dims}{element}>"


def kinds_of(captures):
    """What operands have something of each of, by name: captures, and their tangents."""
    return captures | {f"t{name}": of for name, of in captures.items()}


def _type_of_scale(name, element, shape, ranks):
    if len(shape) not in ranks:
        kinds = " or ".join(f"{rank} ({extents})" for rank, extents in ranks.items())
        raise ValueError(f"{name}: expected an array of rank {kinds}, got shape {shape}")
    if element != "f32":
        raise TypeError(f"{name}: expected elements of f32, got {element}")
    return f"tensor<{'?x' * (len(shape) - 1)}{shape[-1]}xf32>"


def _compile(source, *, strided=True):
    try:
        # Any strides: the code is as fast, and slices go in without a copy.
        return _cache.load(source, strided=strided)[None]
    except _library.CompileError as error:
        raise source_error(error) from None


def source_error(error):
    """A ValueError for what the compiler says of a source that was made here: the rules of
    the op, with their numbers; a place in the text says nothing to the caller."""
    return ValueError(re.sub(r"^module:\d+:\d+: '[\w.]+' op ", "", str(error)))


def make_source(operation, given, window, chunk, alignment, scale, score=None, quantised=False):
    """The text of a function for operands of these Descriptions, by name; `quantised`: whether
    keys and values may be. Raises TypeError and ValueError where ranks, elements or options are
    wrong; what else the op asks for, its compilation says."""
    window = check_options(window, chunk, alignment, scale)
    captures = dict(score.captures) if score else {}
    kinds = kinds_of(captures)
    paged = "block_table" in given
    types = {
        name: type_of(name, *description, kinds.get(name), paged=paged, quantised=quantised)
        for name, description in given.items()
    }
    same_cu = "cu_seqlens_k" not in given and not paged
    if same_cu:
        types["cu_seqlens_k"] = types["cu_seqlens_q"]
    types = {name: types[name] for name in order_of(operation, captures) if name in types}
    options = {"window": window, "alignment": alignment, "scale": scale, "same_cu": same_cu}
    options["score"] = score
    if operation in ("attn_grad", "attn_jvp_grad"):
        make = text.attn_grad_function if operation == "attn_grad" else text.attn_jvp_grad_function
        return make(types, **options)
    element, (_, heads, _) = given["q"]
    compute = accumulation_element(element)
    results = {
        "out": f"tensor<?x{heads}x{given['v'].shape[-1]}x{element}>",
        "lse": f"tensor<{heads}x?x{compute}>",
    }
    make = text.attn_jvp_function if operation == "attn_jvp" else text.attn_function
    return make(types, results, **options)


def accumulation_element(element):
    """What lse and sinks are of."""
    return "f64" if element == "f64" else "f32"


def _plan(operation, given, window, chunk, alignment, scale, score):
    """The plan of a call with arrays of these types."""
    descriptions = {name: describe(name, array) for name, array in given.items()}
    for name in ("k", "v"):
        refuse_unsigned(name, given[name], descriptions[name].element)
    source = make_source(
        operation, descriptions, window, chunk, alignment, scale, score, operation == "attn"
    )
    element = descriptions["q"].element
    compute = accumulation_element(element)
    made = (element,) * 3 + (compute,) if operation == "attn_grad" else (element, compute)
    maker = maker_of(given["q"])
    frames = _library.Frames(_compile(source))
    return _Plan(frames, maker, tuple(map(maker.dtype_of, made)))


# By what a plan follows from. Types that are not in the key follow from it, or the
# call refuses them.
_plans: dict[tuple, _Plan] = {}


def _find_plan(operation, given, options):
    try:
        q, k, v = given["q"], given["k"], given["v"]
        key = (
            operation, *given, type(q), q.dtype, q.shape[1:], k.shape[1:-1], v.shape[-1],
            given["cu_seqlens_q"].dtype, options,
        )  # fmt: skip
        if k.dtype != q.dtype:
            ranks = [len(given[name].shape) for name in text.CACHE if name in given]
            key = (*key, k.dtype, *ranks)
        plan = _plans.get(key)
    # RuntimeError: a nested tensor of torch has no shape.
    except (AttributeError, IndexError, RuntimeError, TypeError):
        _plan(operation, given, *options)  # Says what is wrong.
        raise
    if plan is None:
        plan = _plans[key] = _plan(operation, given, *options)
    return plan


def call_frames(frames, arrays, num_threads, explain, *what):
    """Calls the function on the arrays. explain(*what) raises where an argument is wrong in its
    type, of which it has more to say than the call."""
    frame = frames.take()
    try:
        frame.options.num_threads = 0 if num_threads is None else check_threads(num_threads)
        # The owners live until the call is over.
        addresses, _owners = export_all(arrays)
        frame.set_addresses(*addresses)
        status = frame.call()
        if status:
            _library.raise_error(status)
    except (BufferError, RuntimeError, TypeError, ValueError):
        explain(*what)
        raise
    finally:
        frames.give_back(frame)


def _run(plan, operation, given, options, results, num_threads):
    arrays = *given.values(), *results
    call_frames(plan.frames, arrays, num_threads, _plan, operation, given, *options)


def attn(
    q: Array,
    k: Array,
    v: Array,
    cu_seqlens_q: Array,
    cu_seqlens_k: Array | None = None,
    *,
    is_causal: bool = False,
    window: tuple[int, int] = (-1, -1),
    chunk: int | None = None,
    alignment: str = "bottom_right",
    scale: float | None = None,
    sink: Array | None = None,
    seqused_q: Array | None = None,
    seqused_k: Array | None = None,
    q_offset: Array | None = None,
    score: Score | None = None,
    captures: Sequence[Array] = (),
    dropout_p: float = 0.0,
    seed: int | None = None,
    sequence_ids: Array | None = None,
    block_table: Array | None = None,
    k_scale: Array | None = None,
    v_scale: Array | None = None,
    return_lse: bool = False,
    out: Array | None = None,
    num_threads: int | None = None,
    stream: int | None = None,
) -> Any:
    """Attention over sequences of different lengths that are packed without padding.

    Arrays of any library with DLPack (numpy, torch, jax, ...) in memory of the CPU, or
    all on one CUDA device. Rows of sequence s are cu_seqlens[s] to cu_seqlens[s + 1] - 1. Nothing is compiled
    again when only rows and sequences change in number.

    Args:
        q: (Tq, Hq, D), of f16, bf16, f32 or f64 (T). Any strides but the last, which
            is 1: slices of a fused array of q, k and v are not copied.
        k: (Tk, Hkv, D), T. Hq is a multiple of Hkv.
        v: (Tk, Hkv, Dv), T.
        cu_seqlens_q: (N + 1), i32 or i64: where each sequence begins, and the end of
            the last. Starts at 0, does not decrease, ends within q's rows.
        cu_seqlens_k: The same for k and v; None: that of the queries.
        is_causal: A query sees no key after itself: window (-1, 0).
        window: (left, right): keys before and after its own that a query sees; -1: all.
        chunk: A query sees the keys up to its own that are in its chunk of that many.
        alignment: "bottom_right": the last query and the last key of a sequence have
            one position; "top_left": the first ones.
        scale: A factor of the scores; None: 1/sqrt(D).
        sink: (Hq), f32 (f64 for f64): a score for each head that has no value.
        seqused_q, seqused_k: (N), as cu_seqlens: how many rows of a slot count.
        q_offset: (N), as cu_seqlens: is added to the positions of queries.
        score: Changes scores or hides keys: one of `varlen.scores`, or one of your own.
        captures: What the score reads, in its order: (Hq) or (Hq, Tq), tables (Hq, M)
            or (Hq, Tq, M), of keys (Hq, Tk), of f32 (f64 for f64).
        dropout_p: The part of the probabilities that are 0, others are divided by
            1 - dropout_p; from 0 to less than 1.
        seed: Of dropout, an integer of 64 bits: which probabilities are 0 follows from it, the
            sequence, the head and the places of query and key, and from nothing else.
        sequence_ids: (N), integers that name sequences for dropout, by their low 32 bits; None:
            their places in the batch.
        block_table: (N, pages), i32, rows of any distance: keys and values are in pages. k is
            (P, page, Hkv, D) and v (P, page, Hkv, Dv); key j of sequence s is row j % page of
            page block_table[s, j // page]. seqused_k says how many keys a sequence has; there
            is no cu_seqlens_k, and no gradient. No other entry or row is read.
        k_scale, v_scale: Of f32: k and v are quantised, of int8 or float8_e4m3fn, beside q of
            f16, bf16 or f32, and are multiplied by these: (Hkv), or a number for each row and
            head, (Tk, Hkv), in pages (P, page, Hkv), or for each page and head, (P, Hkv).
            None: 1. Numbers that are not finite are keys or values that are not; of heads, on the
            CPU, they are a ValueError.
        return_lse: Also return lse, the logarithm of each row's sum of exponentials.
        out: Where to write the result; overlaps no other array. None: a new array.
        num_threads: Threads of this call; None: what set_num_threads says.
        stream: Of arrays on a CUDA device: the handle (CUstream) of a stream, for which
            the call waits. None: the stream that is current in q's library (torch, cupy),
            for which it does not; wrong cu_seqlens make results NaN then.

    Returns:
        out (Tq, Hq, Dv), T, or with return_lse (out, lse), lse (Hq, Tq) of f32 (f64
        for f64). A query that sees no key has out 0 and lse -inf (or the sink).

    Raises:
        TypeError: an argument is no array, or its elements are not of these types.
        ValueError: ranks, extents, strides or devices are not what they should be, or
            cu_seqlens or a block_table are not valid; the message has what was wanted and
            what was got.
    """
    if type(dropout_p) is not float or dropout_p:
        score, captures = _add_dropout(
            score, captures, dropout_p, seed, sequence_ids, q, cu_seqlens_q
        )
    options = read_options(is_causal, window, chunk, alignment, scale, score)
    given = {"q": q, "k": k, "v": v, "cu_seqlens_q": cu_seqlens_q}
    _add_others(given, cu_seqlens_k, None, seqused_q, seqused_k, q_offset, sink)
    if score is not None or type(captures) is not tuple or captures:
        add_captures(given, score, captures)
    if block_table is not None:
        _add_block_table(given, block_table, cu_seqlens_k)
    if k_scale is not None:
        given["k_scale"] = k_scale
    if v_scale is not None:
        given["v_scale"] = v_scale
    if is_on_cuda(q):
        from . import _cuda

        return _cuda.attn(given, options, out, return_lse, stream)
    if stream is not None:
        raise stream_error()
    for name, scale in (("k_scale", k_scale), ("v_scale", v_scale)):
        if scale is not None:
            _check_finite(name, scale)
    plan = _find_plan("attn", given, options)
    maker, (dtype, compute) = plan.maker, plan.dtypes
    rows, heads = q.shape[:2]
    if out is None:
        result = maker.empty((rows, heads, v.shape[-1]), dtype)
    else:
        check_writable("out", out)
        result = out
    lse = maker.empty((heads, rows), compute)
    _run(plan, "attn", given, options, (result, lse), num_threads)
    if out is None:
        result = maker.finish(result)
    return (result, maker.finish(lse)) if return_lse else result


def attn_grad(
    dout: Array,
    q: Array,
    k: Array,
    v: Array,
    out: Array,
    lse: Array,
    cu_seqlens_q: Array,
    cu_seqlens_k: Array | None = None,
    *,
    dlse: Array | None = None,
    is_causal: bool = False,
    window: tuple[int, int] = (-1, -1),
    chunk: int | None = None,
    alignment: str = "bottom_right",
    scale: float | None = None,
    sink: Array | None = None,
    seqused_q: Array | None = None,
    seqused_k: Array | None = None,
    q_offset: Array | None = None,
    score: Score | None = None,
    captures: Sequence[Array] = (),
    dropout_p: float = 0.0,
    seed: int | None = None,
    sequence_ids: Array | None = None,
    num_threads: int | None = None,
    stream: int | None = None,
) -> tuple:
    """The gradients of `attn`: its vector-Jacobian product.

    Args:
        dout: (Tq, Hq, Dv), T: the gradient of a loss by out.
        out, lse: What `attn` has returned for the other arguments, which are its own.
        dlse: (Hq, Tq), as lse: the gradient of the loss by lse; None: 0.

    Returns:
        (dq, dk, dv), of the shapes and types of q, k and v, with a sink also dsink, then
        the gradients of captures. Rows that no sequence has are 0.

    Raises:
        As `attn`.
    """
    if type(dropout_p) is not float or dropout_p:
        score, captures = _add_dropout(
            score, captures, dropout_p, seed, sequence_ids, q, cu_seqlens_q
        )
    options = read_options(is_causal, window, chunk, alignment, scale, score)
    given = {"dout": dout, "q": q, "k": k, "v": v, "out": out, "lse": lse}
    given["cu_seqlens_q"] = cu_seqlens_q
    _add_others(given, cu_seqlens_k, dlse, seqused_q, seqused_k, q_offset, sink)
    if score is not None or type(captures) is not tuple or captures:
        add_captures(given, score, captures)
    if is_on_cuda(q):
        from . import _cuda

        return _cuda.attn_grad(given, options, stream)
    if stream is not None:
        raise stream_error()
    plan = _find_plan("attn_grad", given, options)
    maker, (dtype, _, _, compute) = plan.maker, plan.dtypes
    empty = maker.empty
    try:
        results = [empty(x.shape, dtype) for x in (q, k, v)]
        sums = captures if sink is None else (sink, *captures)
        results += [empty(x.shape, compute) for x in sums]
    except (AttributeError, RuntimeError, TypeError):
        _plan("attn_grad", given, options)  # Says what is wrong.
        raise
    _run(plan, "attn_grad", given, options, results, num_threads)
    return tuple(map(maker.finish, results) if maker.finishes else results)


def attn_jvp(
    q: Array,
    k: Array,
    v: Array,
    tq: Array,
    tk: Array,
    tv: Array,
    cu_seqlens_q: Array,
    cu_seqlens_k: Array | None = None,
    *,
    is_causal: bool = False,
    window: tuple[int, int] = (-1, -1),
    chunk: int | None = None,
    alignment: str = "bottom_right",
    scale: float | None = None,
    sink: Array | None = None,
    tsink: Array | None = None,
    seqused_q: Array | None = None,
    seqused_k: Array | None = None,
    q_offset: Array | None = None,
    score: Score | None = None,
    captures: Sequence[Array] = (),
    tcaptures: Sequence[Array | None] = (),
    dropout_p: float = 0.0,
    seed: int | None = None,
    sequence_ids: Array | None = None,
    num_threads: int | None = None,
    stream: int | None = None,
) -> tuple:
    """`attn` and its tangents: its Jacobian-vector product.

    Args:
        tq, tk, tv: As q, k and v: their tangents, the direction of the derivative.
        tsink: As sink, its tangent; None: 0.
        tcaptures: The tangent of each capture, or None where it is 0; (): all are 0.

    Other arguments are those of `attn`. Without keys in pages.

    Returns:
        (out, lse, tout, tlse): the results of `attn`, and the derivatives of both along the
        direction, of their shapes and types. Rows that no sequence has are 0.

    Raises:
        As `attn`.
    """
    tangents = _tangents_of_captures(tcaptures, score)
    if type(dropout_p) is not float or dropout_p:
        score, captures = _add_dropout(
            score, captures, dropout_p, seed, sequence_ids, q, cu_seqlens_q
        )
    options = read_options(is_causal, window, chunk, alignment, scale, score)
    given = {"q": q, "k": k, "v": v, "tq": tq, "tk": tk, "tv": tv, "cu_seqlens_q": cu_seqlens_q}
    _add_others(given, cu_seqlens_k, None, seqused_q, seqused_k, q_offset, sink)
    _add_tsink(given, tsink)
    add_captures(given, score, captures)
    given |= tangents
    if is_on_cuda(q):
        from . import _cuda

        return _cuda.attn_jvp(given, options, stream)
    if stream is not None:
        raise stream_error()
    plan = _find_plan("attn_jvp", given, options)
    maker, (dtype, compute) = plan.maker, plan.dtypes
    rows, heads = q.shape[:2]
    shapes = ((rows, heads, v.shape[-1]), dtype), ((heads, rows), compute)
    results = [maker.empty(*x) for x in shapes * 2]
    _run(plan, "attn_jvp", given, options, results, num_threads)
    return tuple(map(maker.finish, results))


def _add_tsink(given, tsink):
    if tsink is None:
        return
    if "sink" not in given:
        raise ValueError("tsink: expected a sink beside it, got None")
    given["tsink"] = tsink


def _tangents_of_captures(tcaptures, score):
    """The tangents of captures that there are, by name."""
    if not isinstance(tcaptures, Sequence) or isinstance(tcaptures, (str, bytes)):
        raise TypeError(f"tcaptures: expected a sequence of arrays, got {show(tcaptures)}")
    names = tuple(score.captures) if isinstance(score, Score) else ()
    if len(tcaptures) not in (0, len(names)):
        raise ValueError(
            f"tcaptures: expected none or {len(names)} arrays ({', '.join(names)}), "
            f"got {len(tcaptures)}"
        )
    return {f"t{name}": x for name, x in zip(names, tcaptures) if x is not None}


def attn_jvp_grad(
    dtout: Array,
    q: Array,
    k: Array,
    v: Array,
    tq: Array,
    tk: Array,
    tv: Array,
    out: Array,
    lse: Array,
    tout: Array,
    tlse: Array,
    cu_seqlens_q: Array,
    cu_seqlens_k: Array | None = None,
    *,
    dtlse: Array | None = None,
    dout: Array | None = None,
    dlse: Array | None = None,
    is_causal: bool = False,
    window: tuple[int, int] = (-1, -1),
    chunk: int | None = None,
    alignment: str = "bottom_right",
    scale: float | None = None,
    sink: Array | None = None,
    tsink: Array | None = None,
    seqused_q: Array | None = None,
    seqused_k: Array | None = None,
    q_offset: Array | None = None,
    score: Score | None = None,
    captures: Sequence[Array] = (),
    tcaptures: Sequence[Array | None] = (),
    dropout_p: float = 0.0,
    seed: int | None = None,
    sequence_ids: Array | None = None,
    num_threads: int | None = None,
    stream: int | None = None,
) -> tuple:
    """The gradients of `attn_jvp` by what tangents are of, its second derivatives. Those by the
    tangents themselves are `attn_grad` of dtout and dtlse.

    Args:
        dtout: (Tq, Hq, Dv), T: the gradient of a loss by tout.
        out, lse, tout, tlse: What `attn_jvp` has returned for the other arguments, which are
            its own.
        dtlse: (Hq, Tq), as lse: the gradient of the loss by tlse; None: 0.
        dout, dlse: The gradients of the loss by out and lse; None: 0.

    Returns:
        (dq, dk, dv), of the shapes and types of q, k and v, with a sink also dsink, then the
        gradients of the captures that have a tangent. Rows that no sequence has are 0.

    Raises:
        As `attn`.
    """
    tangents = _tangents_of_captures(tcaptures, score)
    if type(dropout_p) is not float or dropout_p:
        score, captures = _add_dropout(
            score, captures, dropout_p, seed, sequence_ids, q, cu_seqlens_q
        )
    options = read_options(is_causal, window, chunk, alignment, scale, score)
    given = {
        "dtout": dtout, "q": q, "k": k, "v": v, "tq": tq, "tk": tk, "tv": tv, "out": out,
        "lse": lse, "tout": tout, "tlse": tlse, "cu_seqlens_q": cu_seqlens_q,
    }  # fmt: skip
    if cu_seqlens_k is not None:
        given["cu_seqlens_k"] = cu_seqlens_k
    cotangents = {"dtlse": dtlse, "dout": dout, "dlse": dlse}
    given |= {name: x for name, x in cotangents.items() if x is not None}
    _add_others(given, None, None, seqused_q, seqused_k, q_offset, sink)
    _add_tsink(given, tsink)
    add_captures(given, score, captures)
    given |= tangents
    if is_on_cuda(q):
        from . import _cuda

        return _cuda.attn_jvp_grad(given, options, stream)
    if stream is not None:
        raise stream_error()
    plan = _find_plan("attn_jvp_grad", given, options)
    maker, (dtype, compute) = plan.maker, plan.dtypes
    results = [maker.empty(x.shape, dtype) for x in (q, k, v)]
    sums = [] if sink is None else [sink]
    sums += [given[name.removeprefix("t")] for name in tangents]
    results += [maker.empty(x.shape, compute) for x in sums]
    _run(plan, "attn_jvp_grad", given, options, results, num_threads)
    return tuple(map(maker.finish, results))


def _add_dropout(score, captures, rate, seed, sequence_ids, q, cu_seqlens_q):
    """The score and its captures with dropout, if there is some."""
    rate = check_rate("dropout_p", rate)
    if rate == 0:
        return score, captures
    if is_on_cuda(q):
        raise NotImplementedError(
            "dropout_p: expected arrays in memory of the CPU; on CUDA devices varlen.torch and "
            "varlen.jax take it, and varlen.attn scores.dropout(dropout_p) with its words"
        )
    if seed is None:
        raise ValueError("seed: expected an integer beside dropout_p, got None")
    element, shape = describe("q", q)
    type_of("q", element, shape)
    dtype = "float64" if element == "f64" else "float32"
    words = dropout_words(seed, cu_seqlens_q, shape[1], shape[0], sequence_ids, dtype)
    return add_score(score, captures, rate, words)


def _check_finite(name, scale):
    """That scales of heads are numbers: not all of rows and of pages are read."""
    try:
        wrong = [x for x in read_floats(scale) if not math.isfinite(x)]
    except (AttributeError, BufferError, RuntimeError, TypeError, ValueError):
        return  # The call says what it is.
    if wrong:
        raise ValueError(f"{name}: expected finite numbers, got {wrong[0]}")


def _add_block_table(given, block_table, cu_seqlens_k):
    """Adds the table of pages, the last operand."""
    if cu_seqlens_k is not None:
        raise ValueError("cu_seqlens_k: expected None beside a block_table")
    given["block_table"] = block_table


def stream_error():
    return ValueError("stream: expected none for arrays in memory of the CPU")


def _add_others(given, cu_seqlens_k, dlse, seqused_q, seqused_k, q_offset, sink):
    """Adds the operands that there are, in the op's order."""
    if cu_seqlens_k is not None and cu_seqlens_k is not given["cu_seqlens_q"]:
        given["cu_seqlens_k"] = cu_seqlens_k
    if dlse is not None:
        given["dlse"] = dlse
    if seqused_q is not None:
        given["seqused_q"] = seqused_q
    if seqused_k is not None:
        given["seqused_k"] = seqused_k
    if q_offset is not None:
        given["q_offset"] = q_offset
    if sink is not None:
        given["sink"] = sink


def add_captures(given, score, captures):
    """Adds what the score reads, after all other operands."""
    check_score(score)
    names = tuple(score.captures) if score else ()
    if not isinstance(captures, Sequence) or isinstance(captures, (str, bytes)):
        raise TypeError(f"captures: expected a sequence of arrays, got {show(captures)}")
    if len(names) != len(captures):
        raise ValueError(
            f"captures: expected {len(names)} arrays ({', '.join(names)}), "
            f"got {len(captures)}"
        )
    for name in names:
        if name in _OPERANDS:
            raise ValueError(f"captures: expected names that no operand has, got '{name}'")
    given.update(zip(names, captures))
