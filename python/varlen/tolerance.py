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


def max_error(values, golden):
    """The largest difference; infinite where one is not finite and the other is
    not the same."""
    # Longer floats only where they say more: numpy's are slow.
    longest = np.longdouble if np.asarray(golden).dtype == np.longdouble else np.float64
    values, golden = (dtypes.widen(x, longest) for x in (values, golden))
    if values.shape != golden.shape:
        raise ValueError(f"expected shape {golden.shape}, got {values.shape}")
    finite = np.isfinite(values) & np.isfinite(golden)
    same = (values == golden) | (np.isnan(values) & np.isnan(golden))
    if not (finite | same).all():
        return np.inf
    return float(np.abs(values[finite] - golden[finite]).max(initial=0))


def bound(golden, plain, dtype, gradient=False):
    """The largest error that a result of inputs of `dtype` (an MLIR name) may have."""
    kept = np.float64 if dtype in ("f32", "f64") else np.float32
    golden_kept = np.asarray(golden).astype(kept)
    golden_kept = golden_kept[np.isfinite(golden_kept)]
    shift = kept(0.3)
    rounding = np.abs((golden_kept + shift - shift) - golden_kept).max(initial=0)
    factor = 3 if gradient and kept == np.float64 else 2
    return factor * max_error(plain, golden) + 2 * float(rounding)


def check(values, golden, plain, dtype, what="result", gradient=False):
    """Raises AssertionError if `values` breaks the rule; else returns its error."""
    error, limit = max_error(values, golden), bound(golden, plain, dtype, gradient)
    if not error <= limit:
        raise AssertionError(
            f"{what}: largest error {error:.3g}, expected at most {limit:.3g}"
        )
    return error
