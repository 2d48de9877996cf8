"""Normal random numbers that are the same on every machine, and the same as those
of `varlen-run --random`.

A value depends on the seed, the tensor's name and the element's index only. It is
computed with IEEE additions, multiplications, divisions and square roots in a
fixed order: no logarithm or cosine of a library, whose last bits differ.
"""

import math

import numpy as np

from . import dtypes

_MASK = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15


def _mix(x):
    """The finaliser of splitmix64, on an array of uint64."""
    x = x ^ (x >> np.uint64(30))
    x = x * np.uint64(0xBF58476D1CE4E5B9)
    x = x ^ (x >> np.uint64(27))
    x = x * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def _mix_int(x):
    return int(_mix(np.array([x & _MASK], np.uint64))[0])


def _stream(seed, name):
    """FNV-1a of the name, mixed with the seed."""
    value = 0xCBF29CE484222325
    for byte in name.encode():
        value = ((value ^ byte) * 0x100000001B3) & _MASK
    return _mix_int(value + _mix_int(seed + _GOLDEN))


def _uniform(stream, counter):
    """Uniform in (0, 1)."""
    steps = (counter + np.uint64(1)) * np.uint64(_GOLDEN)
    bits = _mix(np.uint64(stream) + steps)
    return ((bits >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53


def _logarithm(x):
    mantissa, exponent = np.frexp(x)
    small = mantissa < float.fromhex("0x1.6a09e667f3bcdp-1")
    mantissa = np.where(small, mantissa * 2, mantissa)
    exponent = (exponent - small).astype(np.float64)
    s = (mantissa - 1) / (mantissa + 1)
    y = s * s
    series = np.zeros_like(y)
    for k in range(21, 0, -2):
        series = series * y + 1.0 / k
    return 2 * s * series + exponent * float.fromhex("0x1.62e42fefa39efp-1")


def _cosine_of_turns(t):
    t = np.abs(t)
    t = np.where(t > 0.5, 1 - t, t)
    mirrored = t > 0.25
    t = np.where(mirrored, 0.5 - t, t)
    x = t * float.fromhex("0x1.921fb54442d18p+2")
    y = x * x
    series = np.ones_like(y)
    for k in range(18, 0, -2):
        series = 1 - series * y * (1.0 / (k * (k - 1)))
    return np.where(mirrored, -series, series)


def normal(seed, name, shape, dtype="f32"):
    """N(0, 1) of a shape, rounded to f32 and then to `dtype` (an MLIR name); 32 times that
    of i8, as rows of a cache whose scale is 1/32."""
    size = math.prod(shape)
    pairs = np.arange((size + 1) // 2, dtype=np.uint64)
    with np.errstate(over="ignore"):  # products of hashes wrap
        stream = _stream(seed, name)
        u = _uniform(stream, np.uint64(2) * pairs)
        turns = _uniform(stream, np.uint64(2) * pairs + np.uint64(1))
    radius = np.sqrt(-2 * _logarithm(u))
    values = np.empty((len(pairs), 2))
    values[:, 0] = radius * _cosine_of_turns(turns)
    values[:, 1] = radius * _cosine_of_turns(turns - 0.25)
    values = values.reshape(-1)[:size].astype(np.float32)
    if dtype == "i8":
        values = np.rint((values * np.float32(32)).clip(-127, 127))
    return dtypes.narrow(values, dtype).reshape(shape)
