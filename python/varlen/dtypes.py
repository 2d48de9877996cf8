"""Element types by their MLIR names, and rounding to them. bf16 is ml_dtypes'."""

import ml_dtypes
import numpy as np

bfloat16 = np.dtype(ml_dtypes.bfloat16)

# MLIR name, numpy dtype, safetensors name.
_TABLE = (
    ("f64", np.dtype("<f8"), "F64"),
    ("f32", np.dtype("<f4"), "F32"),
    ("f16", np.dtype("<f2"), "F16"),
    ("bf16", bfloat16, "BF16"),
    ("i64", np.dtype("<i8"), "I64"),
    ("i32", np.dtype("<i4"), "I32"),
    ("i16", np.dtype("<i2"), "I16"),
    ("i8", np.dtype("i1"), "I8"),
    ("ui64", np.dtype("<u8"), "U64"),
    ("ui32", np.dtype("<u4"), "U32"),
    ("ui16", np.dtype("<u2"), "U16"),
    ("ui8", np.dtype("u1"), "U8"),
    ("i1", np.dtype("?"), "BOOL"),
)
by_name = {name: dtype for name, dtype, _ in _TABLE}
by_safetensors_name = {label: dtype for _, dtype, label in _TABLE}
_names = {dtype: name for name, dtype, _ in _TABLE}
_safetensors_names = {dtype: label for _, dtype, label in _TABLE}


def normalize(array):
    """`array` as a C-contiguous array of one of our dtypes."""
    array = np.asarray(array)
    if array.dtype not in _names:
        little = array.dtype.newbyteorder("<")
        if little not in _names:
            raise TypeError(f"expected a dtype of {', '.join(by_name)}, got {array.dtype}")
        array = array.astype(little)
    return np.require(array, requirements="C")


def name_of(array):
    """The MLIR name of an array's element type: "bf16", "i32", ..."""
    return _names[normalize(array).dtype]


def safetensors_name_of(array):
    return _safetensors_names[normalize(array).dtype]


def widen(array, dtype=np.float64):
    """The values of `array` in a numpy float type."""
    array = np.asarray(array)
    if array.dtype == np.longdouble:  # no element type of a tensor
        return array.astype(dtype)
    return normalize(array).astype(dtype)


def narrow(values, name):
    """`values` rounded (to nearest, even) to the type of that MLIR name.

    To 16 bits through f32: rounded twice, which is what f32 hardware does.
    """
    values = np.asarray(values)
    # Infinities and NaN are what they should become.
    with np.errstate(over="ignore", invalid="ignore"):
        if name in ("bf16", "f16"):
            values = values.astype(np.float32)
        return values.astype(by_name[name])


def _round_to_f16(values):
    """f32 values rounded to f16, as f32: numpy's own conversions take ten times as long
    where results are subnormal, as most weights of a softmax are."""
    magnitude = np.abs(values)
    bits = magnitude.view(np.uint32)
    # To nearest, even, by adding half of the last place that stays, less one bit if it is 0.
    rounded = bits >> np.uint32(13)
    rounded &= np.uint32(1)
    rounded += np.uint32(0xFFF)
    rounded += bits
    rounded &= np.uint32(0xFFFFE000)
    rounded = rounded.view(np.float32)
    # Subnormal results are multiples of 2^-24, the last place of 0.5.
    half = np.float32(0.5)
    np.copyto(rounded, magnitude + half - half, where=magnitude < np.float32(2**-14))
    # Halfway from the largest number to the next power of two, and NaN.
    if not magnitude.max(initial=0) < 65520:
        np.copyto(rounded, magnitude * np.float32(np.inf), where=~(magnitude < 65520))
    return np.copysign(rounded, values)


def round_to(values, name, dtype=np.float64):
    """`values` rounded to the type `name` as by `narrow`, kept in a numpy float type."""
    if name == "f16":
        with np.errstate(over="ignore", invalid="ignore"):
            single = np.asarray(values, np.float32)
            return _round_to_f16(single.reshape(-1)).reshape(single.shape).astype(dtype)
    return widen(narrow(values, name), dtype)
