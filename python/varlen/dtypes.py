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
    ("f8E4M3FN", np.dtype(ml_dtypes.float8_e4m3fn), "F8_E4M3"),
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
    array = normalize(array)
    if array.dtype == np.float16 and dtype != np.float16:
        with np.errstate(invalid="ignore"):  # NaN of both kinds
            return _widen_f16(array).astype(dtype, copy=False)
    return array.astype(dtype)


def _widen_f16(array):
    """As f32: numpy's own conversion takes five times as long."""
    bits = array.view(np.int16).astype(np.int32)
    bits <<= 13  # fraction on fraction, exponent on the lower bits of the exponent
    bits &= np.int32(~0x70000000)  # copies of the sign
    values = bits.view(np.float32)
    values *= np.float32(2.0**112)  # between the exponents' biases; subnormals, too
    # Infinities and NaN have the largest exponent, which is one of numbers here.
    special = np.abs(values) >= 65536
    if special.any():
        values[special] = array[special]
    return values


def narrow(values, name):
    """`values` rounded (to nearest, even) to the type of that MLIR name.

    To 16 bits through f32: rounded twice, which is what f32 hardware does.
    """
    values = np.asarray(values)
    # Infinities and NaN are what they should become.
    with np.errstate(over="ignore", invalid="ignore"):
        if name in ("bf16", "f16"):
            values = values.astype(np.float32, copy=False)
        return values.astype(by_name[name])


def _round_to_f16(values):
    """f32 values rounded to f16, as f32: numpy's own conversions take ten times as long
    where results are subnormal, as most weights of a softmax are."""
    # A value's power of two, or that of the smallest normal number, times 1.5 * 2^13: added
    # and subtracted, it leaves of the 24 places of a value those that an f16 has.
    power = (values.view(np.uint32) & np.uint32(0x7F800000)).view(np.float32)
    adder = np.maximum(power, np.float32(2**-14))
    adder *= np.float32(1.5 * 2**13)
    rounded = values + adder
    rounded -= adder
    # Halfway from the largest number to the next power of two, and NaN.
    if not power.max(initial=0) < 2**15:
        magnitude = np.abs(values)
        np.copyto(rounded, magnitude * np.float32(np.inf), where=~(magnitude < 65520))
    return np.copysign(rounded, values, out=rounded)


def round_to(values, name, dtype=np.float64):
    """`values` rounded to the type `name` as by `narrow`, kept in a numpy float type."""
    values = np.asarray(values)
    if name == "f16":
        with np.errstate(over="ignore", invalid="ignore"):
            single = values.astype(np.float32, copy=False)
            rounded = _round_to_f16(single.reshape(-1)).reshape(single.shape)
            return rounded.astype(dtype, copy=False)
    if values.dtype == by_name[name] == dtype:
        return values
    return widen(narrow(values, name), dtype)
