"""varlen.append: keys and values of new tokens into a cache."""

from __future__ import annotations

import functools

from . import _library, text
from ._arrays import (
    Array, check_description, check_writable, describe, is_on_cuda, refuse_unsigned,
)  # fmt: skip
from ._attention import QUANTISED, _compile, call_frames, stream_error
from ._options import as_flag

# Rank, extents by name and elements of operands, in their order: T is the type of k, C that of
# caches, I that of cu_seqlens.
_OPERANDS = {
    "k": (3, "rows, heads, head_dim", "T"),
    "v": (3, "rows, heads, head_dim", "T"),
    "cu_seqlens": (1, "sequences + 1", "I"),
    "seqused_k": (1, "sequences", "I"),
    "block_table": (2, "sequences, pages", "B"),
    "cos": (2, "positions, pairs", "R"),
    "sin": (2, "positions, pairs", "R"),
    "k_cache": (4, "pages, rows, heads, head_dim", "C"),
    "v_cache": (4, "pages, rows, heads, head_dim", "C"),
    "k_scale": (3, "pages, rows, heads", "S"),
    "v_scale": (3, "pages, rows, heads", "S"),
}
_FLOATS = ("f16", "bf16", "f32", "f64")
_ELEMENTS = {
    "T": _FLOATS, "C": (*_FLOATS, *QUANTISED), "R": _FLOATS, "S": ("f32",),
    "I": ("i32", "i64"), "B": ("i32",),
}  # fmt: skip


def _make_source(given, interleaved):
    """The text of a function for these arrays. Raises TypeError and ValueError where ranks or
    elements are wrong; what else the operation asks for, its compilation says."""
    types = {name: describe(name, array) for name, array in given.items()}
    return append_source(given, types, interleaved)


def append_source(given, types, interleaved):
    """The same for arrays and their Descriptions, by name."""
    for name, array in given.items():
        rank, extents, kind = _OPERANDS[name]
        check_description(name, types[name], rank, extents, _ELEMENTS[kind])
        if kind == "C":
            refuse_unsigned(name, array, types[name].element)
    opened = ((name, x.element, text.open_extents(name, x.shape)) for name, x in types.items())
    return _find_text(tuple(opened), interleaved)


@functools.cache
def _find_text(operands, interleaved):
    types = {name: (element, shape) for name, element, shape in operands}
    return text.append_function(types, interleaved=interleaved)


# Frames by what a function follows from.
_frames: dict[tuple, _library.Frames] = {}


# Whose last extent alone is part of the code.
_WITH_ONE = ("cos", "sin", "k_scale", "v_scale")


def _find_frames(given, interleaved):
    key = (
        interleaved, *given, *(x.dtype for x in given.values()),
        *(given[name].shape[-2:] for name in ("k", "v", "k_cache", "v_cache")),
        *(given[name].shape[-1:] for name in _WITH_ONE if name in given),
        *(len(x.shape) for x in given.values()),
    )  # fmt: skip
    frames = _frames.get(key)
    if frames is None:
        function = _compile(_make_source(given, interleaved))
        frames = _frames[key] = _library.Frames(function, _make_frame)
    return frames


def _make_frame(function):
    frame = _library.Frame(function)
    frame.options.separate_writes = True
    return frame


def append(
    k_cache: Array,
    v_cache: Array,
    k: Array,
    v: Array,
    cu_seqlens: Array,
    seqused_k: Array,
    *,
    block_table: Array | None = None,
    cos: Array | None = None,
    sin: Array | None = None,
    interleaved: bool = False,
    k_scale: Array | None = None,
    v_scale: Array | None = None,
    num_threads: int | None = None,
    stream: int | None = None,
) -> None:
    """Writes keys and values of new tokens into a cache, behind those that it has.

    Row cu_seqlens[s] + i of k and v is that of position p = seqused_k[s] + i of sequence s, and
    becomes row p % page of page block_table[s, p // page]. No other row of the cache changes.
    Arrays of any library with DLPack whose memory can be written to, on the CPU or all on one
    CUDA device.

    Args:
        k_cache: (P, page, Hkv, D), of f16, bf16, f32 or f64 (T), or with scales of int8 or
            float8_e4m3fn. Any strides but the last, which is 1. What is written to overlaps no
            other array.
        v_cache: (P, page, Hkv, Dv), as k_cache.
        k: (T, Hkv, D), T.
        v: (T, Hkv, Dv), T.
        cu_seqlens: (N + 1), i32 or i64: where the new rows of each sequence begin, and the end of
            the last.
        seqused_k: (N), as cu_seqlens: how many keys each sequence has in the cache, without
            the new ones.
        block_table: (N, pages), i32, rows of any distance. None: page s is that of sequence s, a
            slot of a contiguous cache.
        cos, sin: (positions, R), of any type of floats: turn the first 2R numbers of each head of
            k on the way, in pairs by the angle of their position.
        interleaved: Numbers 2j and 2j + 1 are a pair, else j and j + R.
        k_scale, v_scale: (P, page, Hkv), f32, of quantised caches: what the numbers of a row of a
            head are multiplied by is written to these, and is the largest magnitude of the row
            over the largest number of the type. T is not f64 then.
        num_threads: Threads of this call; None: what set_num_threads says.
        stream: Of arrays on a CUDA device: the handle (CUstream) of a stream, for which the call
            waits. None: the stream that is current in k's library (torch, cupy), for which it
            does not; where lists or the table are wrong nothing is written then, and no error
            is raised.

    Raises:
        TypeError: an argument is no array, or its elements are not of these types.
        ValueError: extents are not what they should be, lists are not valid, a sequence has no
            room, an entry of the table is no page, or two entries that are written to are the
            same page. Then nothing is written.
    """
    given = {"k": k, "v": v, "cu_seqlens": cu_seqlens, "seqused_k": seqused_k}
    if block_table is not None:
        given["block_table"] = block_table
    if (cos is None) != (sin is None):
        raise ValueError("expected cos and sin, or neither, got one of them")
    if cos is not None:
        given |= {"cos": cos, "sin": sin}
    given |= {"k_cache": k_cache, "v_cache": v_cache}
    if (k_scale is None) != (v_scale is None):
        raise ValueError("expected k_scale and v_scale, or neither, got one of them")
    if k_scale is not None:
        given |= {"k_scale": k_scale, "v_scale": v_scale}
    if type(interleaved) is not bool:
        interleaved = as_flag("interleaved", interleaved)
    if interleaved and cos is None:
        raise ValueError("interleaved: expected cos and sin beside it")
    if is_on_cuda(k):
        from . import _cuda

        return _cuda.append(given, interleaved, stream)
    if stream is not None:
        raise stream_error()
    _run(given, interleaved, num_threads)


def _run(given, interleaved, num_threads):
    try:
        frames = _find_frames(given, interleaved)
    # RuntimeError: a nested tensor of torch has no shape.
    except (AttributeError, IndexError, RuntimeError, TypeError):
        _make_source(given, interleaved)  # Says what is wrong.
        raise
    for name in text.WRITTEN:
        if name in given:
            check_writable(name, given[name])
    call_frames(frames, given.values(), num_threads, _make_source, given, interleaved)
