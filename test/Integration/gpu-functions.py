"""Functions without attention on a GPU, in the executor: the results of the same
functions for a CPU, for empty extents too, without a hazard."""

# REQUIRES: venv
# RUN: %python %s %S/Inputs/gpu-functions.mlir

import concurrent.futures
import sys

import numpy as np

import varlen
from varlen import dtypes

# Of sums of about 100 products; of other values the type's.
TOLERANCE_OF_PRODUCTS = 2e-5
TOLERANCE = {"f64": 1e-12, "f32": 2e-6, "f16": 1e-3, "bf16": 8e-3}
rng = np.random.default_rng(17)


def floats(*shape, dtype="f32", scale=1.0):
    return dtypes.narrow(scale * rng.standard_normal(shape), dtype)


def cases():
    for m, n in [(0, 5), (5, 0), (1, 1), (37, 70)]:
        yield "softmax", {"x": floats(m, n)}
        yield "sums", {"x": floats(m, n), "z": floats(n, dtype="f64"), "h": floats(m, 32, dtype="f16")}
        yield "argmax", {"x": floats(m, n)}
    for n in (0, 1, 300):
        yield "functions", {"x": floats(n), "w": floats(n, dtype="bf16")}
        yield "doubles", {"x": floats(n, dtype="f64")}
        yield "moves", {"x": floats(n, 12, dtype="f16"), "flags": rng.random(n) < 0.5}
        yield "numbers", {"x": floats(n, scale=0.01), "s": np.float32(0.5).reshape(())}
        if n: yield "gather", {"table": floats(7, 8), "ids": rng.integers(0, 7, n).astype(np.int32)}
    for m in (0, 1, 75):
        yield "matmul", {"a": floats(m, 48), "b": floats(48, 24), "c": floats(m, 24)}
    for m, n, k in [(0, 3, 2), (4, 5, 0), (9, 33, 40)]:
        yield "contractions", {"a": floats(m, 3, k, dtype="bf16"), "b": floats(n, 3, k, dtype="bf16"),
                               "v": floats(n, scale=0.1), "d": floats(m, k, dtype="f64")}  # fmt: skip
    for m, k in [(0, 0), (70, 37)]:
        yield "products", {"a": floats(m, 128, dtype="bf16"), "b": floats(128, 48, dtype="bf16"),
                           "x": floats(k, 48), "y": floats(k, 80), "p": floats(m, 3, 32, dtype="f16"),
                           "q": floats(64, 3, 32, dtype="f16"), "d": floats(48, 80)}  # fmt: skip
    for trips in (0, 5):
        yield "control", {"x": floats(9, 6), "n": np.int64(trips).reshape(())}
    yield "convolution", {"x": floats(2, 14, 3), "k": floats(4, 3, 5), "y": floats(2, 11, 5)}
    lse = floats(4, 6)
    lse[1, 2] = -np.inf
    yield "merge", {"a": floats(6, 4, 16), "la": lse, "b": floats(6, 4, 16), "lb": floats(4, 6)}


def check(case):
    entry, inputs = case
    expected = varlen.run(sys.argv[1], inputs, entry=entry, threads=1)
    values = varlen.run(sys.argv[1], inputs, entry=entry, device="sim:sm_80", sim_runs=2)
    for name, want in expected.items():
        tolerance = TOLERANCE.get(dtypes.name_of(want), 0)
        if entry == "products":
            tolerance = TOLERANCE_OF_PRODUCTS
        got, want = (np.asarray(dtypes.widen(x), np.float64) for x in (values[name], want))
        same = (got == want) | (np.isnan(got) & np.isnan(want))
        with np.errstate(invalid="ignore"):
            error = np.max(np.where(same, 0, np.abs(got - want) / (1 + np.abs(want))), initial=0)
        if not error <= tolerance:
            shapes = {key: value.shape for key, value in inputs.items()}
            return f"FAIL {entry} {shapes}: '{name}' is off by {error:.1e}, wanted {tolerance:.0e}"
    return None


def check_powers():
    """Against C's pow, with all that it says of negative bases, zeros, infinities and NaN."""
    bases = [-3.0, -2.0, -1.0, -0.5, -0.0, 0.0, 0.5, 1.0, 2.5, np.inf, -np.inf, np.nan]
    exponents = [-3.0, -2.5, -1.0, 0.0, 0.5, 1.0, 2.0, 3.0, 2.0**25, np.inf, -np.inf, np.nan]
    x, y = (z.ravel().astype(np.float32) for z in np.meshgrid(bases, exponents))
    n = np.where(np.isfinite(y), np.trunc(y), 5).astype(np.int32)
    values = varlen.run(sys.argv[1], {"x": x, "y": y, "n": n}, entry="powers", device="sim:sm_80")
    for name, exponent in [("powf", y), ("fpowi", n)]:
        with np.errstate(all="ignore"):
            want = np.float32(np.power(x.astype(np.float64), exponent))
        same = np.isclose(values[name], want, rtol=1e-5, atol=0, equal_nan=True)
        if not same.all():
            at = np.flatnonzero(~same)[0]
            return f"FAIL {name}: {x[at]} to {exponent[at]}: wanted {want[at]}, got {values[name][at]}"
    return None


def check_pairs():
    """atan2 and powf of bf16, of all pairs of 256 numbers: within the last place of the exact
    ones, on a CPU and in the executor. Results below the normal numbers may be 0."""
    special = [0.0, -0.0, 1.0, -1.0, 3.0, -3.0, np.inf, -np.inf, np.nan, 3e38, -3e38, 2e-38]
    several = rng.standard_normal(256 - len(special)) * np.exp(rng.uniform(-6, 6, 256 - len(special)))
    numbers = dtypes.narrow(np.append(special, several), "bf16")
    x, y = (z.ravel() for z in np.meshgrid(numbers, numbers))
    a, b = (np.asarray(dtypes.widen(z), np.float64) for z in (x, y))
    for options in ({"threads": 1}, {"device": "sim:sm_80"}):
        values = varlen.run(sys.argv[1], {"x": x, "y": y}, entry="pairs", **options)
        for name, function in [("atan2", np.arctan2), ("powf", np.power)]:
            with np.errstate(all="ignore"):
                exact = function(a, b)
                want = np.asarray(dtypes.widen(dtypes.narrow(exact, "bf16")), np.float64)
            got = np.asarray(dtypes.widen(values[name]), np.float64)
            same = (got == want) & (np.signbit(got) == np.signbit(want)) | np.isnan(got) & np.isnan(want)
            with np.errstate(all="ignore"):
                same |= abs(got - exact) <= abs(exact) * 2.0**-8 * 1.001
            same |= (abs(exact) < 2.0**-125) & (abs(got) < 2.0**-125) & (np.signbit(got) == np.signbit(exact))
            if not same.all():
                at = np.flatnonzero(~same)[0]
                return f"FAIL {name} {options} of {a[at]}, {b[at]}: wanted {want[at]}, got {got[at]}"
    return None


def check_angles():
    """Against f64: positions make large ones."""
    x = np.append(rng.uniform(-1e5, 1e5, 1000), [0.0, -0.0, np.inf, np.nan]).astype(np.float32)
    values = varlen.run(sys.argv[1], {"x": x}, entry="angles", device="sim:sm_80")
    for name, function in [("sin", np.sin), ("cos", np.cos)]:
        with np.errstate(invalid="ignore"):
            want = function(x.astype(np.float64))
        if not np.allclose(values[name], want, rtol=0, atol=1e-6, equal_nan=True):
            return f"FAIL {name} is off by {np.nanmax(np.abs(values[name] - want)):.1e}, wanted 1e-06"
    return None


if __name__ == "__main__":
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        results = [*pool.map(check, list(cases())), check_angles(), check_powers(), check_pairs()]
    failures = [text for text in results if text]
    print("\n".join(failures))
    sys.exit(bool(failures))
