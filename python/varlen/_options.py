"""Options of attention: what each may be, and how errors say so."""

from __future__ import annotations

import math
import numbers
import operator

from ._show import show
from .scores import Score

# As of #varlen.mask and of an integer attribute.
MAX_CHUNK = 1 << 28
MAX_BOUND = (1 << 63) - 1


def as_integer(name, value):
    """The int that value is, such as one of numpy; no bool, which would be 0 or 1."""
    try:
        if not isinstance(value, bool):
            return operator.index(value)
    except TypeError:
        pass
    raise TypeError(f"{name}: expected integers, got {show(value)}")


def as_flag(name, value):
    """The bool that value is, such as one of numpy; no text, of which any is true."""
    kind = str(getattr(value, "dtype", "")).removeprefix("torch.")
    is_scalar = getattr(value, "shape", None) == () and kind.startswith(("bool", "int", "uint"))
    try:
        if is_scalar or isinstance(value, numbers.Integral):
            return bool(value)
    except Exception:  # pylint: disable=broad-except
        pass  # It has no value: it is traced, or on no device.
    raise TypeError(f"{name}: expected a bool, got {show(value)}")


def check_threads(num_threads):
    """The number of threads of a call; 0 would be the default."""
    if isinstance(num_threads, bool) or not hasattr(num_threads, "__index__"):
        raise TypeError(f"num_threads: expected a positive integer, got {show(num_threads)}")
    if not 1 <= num_threads <= MAX_BOUND:
        raise ValueError(f"num_threads: expected a positive integer, got {show(num_threads)}")
    return operator.index(num_threads)


def check_chunk(name, chunk):
    """The number of keys in a chunk."""
    if not _is_integer(chunk) or not 1 <= chunk <= MAX_CHUNK:
        raise ValueError(f"{name}: expected an integer from 1 to {MAX_CHUNK}, got {show(chunk)}")
    return operator.index(chunk)


def check_score(score):
    if score is not None and not isinstance(score, Score):
        raise TypeError(
            "score: expected None or a varlen.scores.Score, such as varlen.scores.alibi(), "
            f"got {show(score)}"
        )


def read_options(is_causal, window, chunk, alignment, scale, score):
    """The options of a call, to find what was compiled for them: window, chunk, alignment,
    scale and score. Integers of any library are Python's, so that 3.0 and True are not found
    where 3 and 1 are."""
    if isinstance(window, (tuple, list)):
        window = tuple(n if type(n) is int else _read_int(n) for n in window)
    chunk = chunk if chunk is None or type(chunk) is int else _read_int(chunk)
    check_options(window, chunk, alignment, scale)
    if is_causal is not False and as_flag("is_causal", is_causal):
        if window not in ((-1, -1), (-1, 0)) or chunk is not None:
            raise ValueError("expected one of is_causal, window and chunk, got several")
        window = (-1, 0)
    return window, chunk, alignment, scale, score


def _read_int(value):
    """The int that an integer of another library is; other values are returned as they are."""
    if isinstance(value, (bool, float)):
        return value
    try:
        return operator.index(value)
    except TypeError:
        return value


def _is_integer(value):
    return hasattr(value, "__index__") and not isinstance(value, bool)


def is_positive_number(value):
    """Whether it is a number that f64 has, above 0."""
    if not isinstance(value, numbers.Real) or isinstance(value, bool):
        return False
    try:
        return math.isfinite(value) and value > 0
    except OverflowError:  # an integer
        return False


def check_options(window, chunk, alignment, scale):
    """The window as the text of a module wants it."""
    if not isinstance(alignment, str) or alignment not in ("bottom_right", "top_left"):
        raise ValueError(
            f'alignment: expected "bottom_right" or "top_left", got {show(alignment)}'
        )
    if scale is not None and not is_positive_number(scale):
        raise ValueError(f"scale: expected a positive, finite number, got {show(scale)}")
    if chunk is not None:
        if window != (-1, -1):
            raise ValueError(f"expected window or chunk, got both: {show(window)}, {show(chunk)}")
        return check_chunk("chunk", chunk)
    if (
        not isinstance(window, tuple)
        or len(window) != 2
        or not all(_is_integer(n) and -1 <= n <= MAX_BOUND for n in window)
    ):
        raise ValueError(
            "window: expected two integers (left, right), each from -1, which is open, to "
            f"2^63 - 1, got {show(window)}"
        )
    return tuple(map(operator.index, window))
