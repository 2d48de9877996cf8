# RUN: %python %s
"""The tolerance rule, on numbers small enough to follow."""

import numpy as np

from varlen import tolerance

inf, nan = np.inf, np.nan


def fails(*arguments):
    try:
        tolerance.check(*arguments)
    except AssertionError as error:
        return str(error)
    return None


golden = np.array([0.0, 1.0, -inf])
plain = np.array([0.0, 1.5, -inf])
assert tolerance.max_error(plain, golden) == 0.5
# Twice the plain error, and what f32 loses by adding 0.3.
assert 1.0 <= tolerance.bound(golden, plain, "bf16") < 1.0 + 1e-6
assert tolerance.check(np.array([1.0, 1.0, -inf]), golden, plain, "bf16") == 1.0
message = fails(np.array([1.01, 1.0, -inf]), golden, plain, "bf16", "out")
assert message == "out: largest error 1.01, expected at most 1", message

# A result in parts has the largest errors of any.
parts = tolerance.Bound("bf16")
for part in (slice(0, 1), slice(1, 3), slice(3, 3)):
    parts.add(golden[part], plain[part])
assert float(parts) == tolerance.bound(golden, plain, "bf16")
assert tolerance.Bound("f32", gradient=True).add(golden, plain).factor == 3

# What is not finite has to be the same.
assert tolerance.max_error([inf], [-inf]) == inf
assert tolerance.max_error([0.0], [-inf]) == inf
assert tolerance.max_error([nan], [0.0]) == inf
assert tolerance.max_error([nan, -inf], [nan, -inf]) == 0
assert np.isnan(tolerance.largest_difference([nan, 1.0], [nan, 1.0]))
assert tolerance.largest_difference([2.0, 1.0], [-1.0, 1.0]) == 3
assert fails(np.array([0.0, 1.0, nan]), golden, plain, "bf16")
assert fails(np.array([0.0, 1.0, 0.0]), golden, plain, "bf16")

# A plain attention without error leaves the rounding of the golden result: of f32,
# and of f64 for inputs of f32.
exact = np.array([0.1, 0.7])
assert 1e-9 < tolerance.bound(exact, exact, "f16") < 3e-7
assert 1e-18 < tolerance.bound(exact, exact, "f32") < 1e-15

assert tolerance.max_error(np.zeros(0), np.zeros(0)) == 0
try:
    tolerance.max_error(np.zeros(2), np.zeros(3))
except ValueError as error:
    assert str(error) == "expected shape (3,), got (2,)", error
else:
    raise AssertionError("two shapes were compared")
