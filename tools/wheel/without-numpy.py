"""Calls an attention of an installed wheel with the standard library alone."""

import array
import ctypes
import pathlib
import sys

import varlen
from varlen import _cache, _library, text

assert pathlib.Path(sys.prefix) in pathlib.Path(varlen.__file__).parents, varlen.__file__
assert pathlib.Path(sys.prefix) in _library.find_library().parents


def tensor(data, code, shape):
    extents = (ctypes.c_int64 * len(shape))(*shape)
    address, _ = data.buffer_info()
    result = _library.Tensor(
        address, _library.CPU, 0, len(shape), code, 8 * data.itemsize, 1,
        ctypes.addressof(extents),
    )  # fmt: skip
    result.owners = data, extents
    return result


# Each query of a causal sequence of equal keys takes the mean of the values so far.
lengths, rows, width = (3, 1), 4, 16
q = array.array("f", [1] * rows * width)
v = array.array("f", [row for row in range(rows) for _ in range(width)])
cu = array.array("i", [0, 3, 4])
out, lse = array.array("f", [0] * rows * width), array.array("f", [0] * rows)
function = _cache.load(text.attn(heads=1, head_dim=width, window=(-1, 0), same_cu=True))[None]
tensors = [
    tensor(q, _library.FLOAT, (rows, 1, width)),
    tensor(q, _library.FLOAT, (rows, 1, width)),
    tensor(v, _library.FLOAT, (rows, 1, width)),
    tensor(cu, _library.INT, (3,)),
    tensor(out, _library.FLOAT, (rows, 1, width)),
    tensor(lse, _library.FLOAT, (1, rows)),
]
addresses = [ctypes.addressof(t) for t in tensors]
function.call(function.pointers(*addresses[:4]), function.result_pointers(*addresses[4:]))
assert [round(x, 5) for x in out[::width]] == [0, 0.5, 1, 3], out
assert "numpy" not in sys.modules
