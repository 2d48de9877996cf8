# RUN: %python %s
"""Rounding to bf16: to nearest, ties to even; infinities and NaN stay."""

import numpy as np

from varlen import dtypes


def bits(value):
    return int(dtypes.narrow(np.float32(value), "bf16").view(np.uint16))


def from_bits(pattern):
    return np.array(pattern, np.uint32).view(np.float32)[()]


assert bits(1.0) == 0x3F80
assert bits(from_bits(0x3F808000)) == 0x3F80, "a tie goes to the even neighbour"
assert bits(from_bits(0x3F818000)) == 0x3F82, "a tie goes to the even neighbour"
assert bits(from_bits(0x3F808001)) == 0x3F81
assert bits(from_bits(0x3F807FFF)) == 0x3F80
assert bits(np.inf) == 0x7F80 and bits(-np.inf) == 0xFF80
assert bits(from_bits(0x7F7FFFFF)) == 0x7F80, "above the largest: infinity"
for pattern in (0x7FFFFFFF, 0x7F800001, 0xFFC00000):
    assert np.isnan(dtypes.round_to(from_bits(pattern), "bf16")), hex(pattern)

# Every bf16 value is its own rounding.
every = np.arange(1 << 16, dtype=np.uint16).view(dtypes.bfloat16)
wide = dtypes.widen(every, np.float32)
numbers = ~np.isnan(wide)
assert (dtypes.narrow(wide, "bf16").view(np.uint16) == every.view(np.uint16))[numbers].all()

# Rounding is to the nearest of all bf16 values.
random = np.random.default_rng(1).standard_normal(1000).astype(np.float32)
grid = np.sort(wide[np.isfinite(wide)].astype(np.float64))
nearest = np.abs(grid[None, :] - random[:50, None].astype(np.float64)).min(axis=1)
error = np.abs(dtypes.round_to(random[:50], "bf16") - random[:50].astype(np.float64))
assert (error == nearest).all()

# f16, whose values are widened in a way of its own here, too.
every = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
wide, wanted = dtypes.widen(every), every.astype(np.float64)
numbers = ~np.isnan(wanted)
assert (np.isnan(wide) == ~numbers).all()
assert (wide.view(np.uint64) == wanted.view(np.uint64))[numbers].all()

# Rounding to f16, which has a way of its own here, is numpy's.
patterns = np.random.default_rng(2).integers(0, 1 << 32, 1 << 20, dtype=np.uint32)
limits = [65504, 65519.99, 65520, 2**-14, 2**-24, 2**-25, 1.5 * 2**-25, 3 * 2**-25, 0, np.inf]
halfway = (np.arange(1 << 12, dtype=np.float32) + 0.5) * np.float32(2**-24)
values = np.concatenate([patterns.view(np.float32), np.float32(limits), halfway])
values = np.concatenate([values, -values])
with np.errstate(over="ignore", invalid="ignore"):
    wanted = values.astype(np.float16).astype(np.float32)
    got = dtypes.round_to(values, "f16", np.float32)
assert (np.isnan(got) == np.isnan(wanted)).all()
numbers = ~np.isnan(wanted)
assert (got.view(np.uint32) == wanted.view(np.uint32))[numbers].all()
assert dtypes.round_to(np.float64(0.1), "f16") == np.float64(np.float16(0.1))
