"""When a result counts as right, as PyTorch and FlashAttention have it:

    max|out - golden| <= 2 * max|plain - golden| + 2 * max|(golden + 0.3 - 0.3) - golden|

`golden` is the precise result, `plain` the attention computed step by step in the
inputs' type (see reference.py). Gradients of f32 may have 3 times its error: both
round in the compute type then, the plain ones from a P that no lse has rounded
before. The last term is evaluated in f32, for f32 and f64 inputs in f64: it allows
for rounding of the golden result itself.
"""

import numpy as np

from . import dtypes

# Between 1 and the next number.
EPSILON = {"f64": 2.0**-52, "f32": 2.0**-23, "f16": 2.0**-10, "bf16": 2.0**-7}


def _pieces(*arrays):
    """The same elements of each, as many as a cache holds."""
    arrays = [np.asarray(array).reshape(-1) for array in arrays]
    for first in range(0, arrays[0].size, 1 << 16):
        yield [array[first : first + (1 << 16)] for array in arrays]


def max_error(values, golden):
    """The largest difference; infinite where one is not finite and the other is
    not the same."""
    # Longer floats only where they say more: numpy's are slow.
    longest = np.longdouble if np.asarray(golden).dtype == np.longdouble else np.float64
    if np.shape(values) != np.shape(golden):
        raise ValueError(f"expected shape {np.shape(golden)}, got {np.shape(values)}")
    largest = 0.0
    for piece in _pieces(values, golden):
        ours, wanted = (dtypes.widen(x, longest) for x in piece)
        with np.errstate(invalid="ignore"):
            error = np.abs(ours - wanted)
        finite = np.isfinite(error)
        if not finite.all():
            same = (ours == wanted) | (np.isnan(ours) & np.isnan(wanted))
            if not (finite | same).all():
                return np.inf
            error = error[finite]
        largest = max(largest, float(error.max(initial=0)))
    return largest


def bound(golden, plain, dtype, gradient=False):
    """The largest error that a result of inputs of `dtype` (an MLIR name) may have."""
    kept = np.float64 if dtype in ("f32", "f64") else np.float32
    shift, rounding = kept(0.3), 0.0
    for (piece,) in _pieces(golden):
        piece = piece.astype(kept)
        piece = piece[np.isfinite(piece)]
        error = np.abs((piece + shift - shift) - piece).max(initial=0)
        rounding = max(rounding, float(error))
    factor = 3 if gradient and kept == np.float64 else 2
    return factor * max_error(plain, golden) + 2 * rounding


def check(values, golden, plain, dtype, what="result", gradient=False):
    """Raises AssertionError if `values` breaks the rule; else returns its error."""
    error, limit = max_error(values, golden), bound(golden, plain, dtype, gradient)
    if not error <= limit:
        raise AssertionError(
            f"{what}: largest error {error:.3g}, expected at most {limit:.3g}"
        )
    return error
