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
    for first in range(0, arrays[0].size, 1 << 15):
        yield [array[first : first + (1 << 15)] for array in arrays]


def _widen(values, golden):
    """Both in one type: longer floats only where they say more, as numpy's are slow."""
    longest = np.longdouble if golden.dtype == np.longdouble else np.float64
    return dtypes.widen(values, longest), dtypes.widen(golden, longest)


def largest_difference(values, golden):
    """The largest difference; NaN or infinite where one is not finite."""
    if np.shape(values) != np.shape(golden):
        raise ValueError(f"expected shape {np.shape(golden)}, got {np.shape(values)}")
    largest = [0.0]
    for piece in _pieces(values, golden):
        ours, wanted = _widen(*piece)
        with np.errstate(invalid="ignore"):
            ours -= wanted
        largest.append(float(np.abs(ours, out=ours).max()))
    return float(np.max(largest))


def max_error(values, golden):
    """The largest difference; infinite where one is not finite and the other is
    not the same."""
    error = largest_difference(values, golden)
    if np.isfinite(error):
        return error
    ours, wanted = _widen(np.asarray(values), np.asarray(golden))
    finite = np.isfinite(ours) & np.isfinite(wanted)
    same = (ours == wanted) | (np.isnan(ours) & np.isnan(wanted))
    if not (finite | same).all():
        return np.inf
    return largest_difference(ours[finite], wanted[finite])


class Bound:
    """The largest error that a result of inputs of `dtype` (an MLIR name) may have, of which
    `add` takes one part after the other."""

    def __init__(self, dtype, gradient=False):
        self.kept = np.float64 if dtype in ("f32", "f64") else np.float32
        self.factor = 3 if gradient and self.kept == np.float64 else 2
        self.error = self.rounding = 0.0

    def add(self, golden, plain):
        self.error = max(self.error, max_error(plain, golden))
        shift = self.kept(0.3)
        for (piece,) in _pieces(golden):
            piece = piece.astype(self.kept)
            with np.errstate(invalid="ignore"):
                error = np.abs((piece + shift - shift) - piece)
            # Of finite results: the others' is NaN.
            self.rounding = max(self.rounding, float(np.fmax.reduce(error, initial=0)))
        return self

    def __float__(self):
        return float(self.factor * self.error + 2 * self.rounding)


def bound(golden, plain, dtype, gradient=False):
    """The same of a result as a whole."""
    return float(Bound(dtype, gradient).add(golden, plain))


def check(values, golden, plain, dtype, what="result", gradient=False):
    """Raises AssertionError if `values` breaks the rule; else returns its error."""
    error, limit = max_error(values, golden), bound(golden, plain, dtype, gradient)
    if not error <= limit:
        raise AssertionError(
            f"{what}: largest error {error:.3g}, expected at most {limit:.3g}"
        )
    return error
