# RUN: %python %s %t
"""Round trips of every dtype, and broken files."""

import pathlib
import struct
import sys

import numpy as np

import varlen
from varlen import dtypes, safetensors

folder = pathlib.Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
path = folder / "all.safetensors"

tensors = {}
for name, dtype in dtypes.by_name.items():
    values = np.arange(6).reshape(2, 3)
    tensors[name] = (
        dtypes.narrow(values, name) if dtype.kind in "fV" else values.astype(dtype)
    )
tensors["scalar"] = np.array(2.5, np.float32)
tensors["empty"] = np.zeros((0, 7), np.int64)
tensors["big endian"] = np.arange(3, dtype=">i4")
tensors["transposed"] = np.arange(6, dtype=np.int32).reshape(2, 3).T
safetensors.write(path, tensors)
read = safetensors.read(path)
assert sorted(read) == sorted(tensors)
for name, expected in tensors.items():
    got = read[name]
    assert got.shape == expected.shape, name
    assert dtypes.name_of(got) == dtypes.name_of(expected), name
    assert (dtypes.widen(got) == dtypes.widen(expected)).all(), name
assert read["bf16"].dtype == varlen.bfloat16

# The layout of the file: 8-byte length, JSON, data aligned to 8.
content = path.read_bytes()
(length,) = struct.unpack_from("<Q", content)
assert length % 8 == 0 and content[8:9] == b"{"

for size in (3, 40, len(content) - 1):
    path.write_bytes(content[:size])
    try:
        safetensors.read(path)
    except ValueError as error:
        assert str(path) in str(error), error
    else:
        raise AssertionError(f"a file of {size} bytes was read")

try:
    safetensors.write(path, {"x": np.zeros(3), "y": np.zeros(3, np.complex64)})
except TypeError as error:
    assert "complex64" in str(error), error
else:
    raise AssertionError("complex64 was written")
