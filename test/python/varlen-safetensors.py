# RUN: %python %s %t
"""Round trips of every dtype, and broken files."""

import pathlib
import runpy
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

# What varlen-run refuses, in its words (test/Runner/bad-files.mlir).
BAD = {
    "short": "is truncated: a safetensors file has at least 8 bytes, this one 5",
    "no-header": "is truncated: the header ends at byte ",
    "truncated": "is truncated: tensor 's' ends at byte 52 of the data, the file at 48",
    "trailing": "the last tensor ends at byte 52 of the data: expected 53, where the file ends",
    "no-safetensors": "is not a safetensors file: it would have a header of ",
    "no-json": "the header is not JSON: ",
    "no-object": "the header is not a JSON object",
    "deep": "the header nests too deep",
    "entry": "tensor 'x': expected an object in the header",
    "bad-dtype": "tensor 'x' has dtype 'F8', which is not supported",
    "bad-shape": "tensor 'x': expected 'shape' to be a list of non-negative integers",
    "bad-range": "tensor 'x': expected 'data_offsets' to be [begin, end]",
    "bad-size": "tensor 'x' has 24 bytes, which is not what dtype F32 and shape [5] need",
    "overflow": "tensor 'x' has 24 bytes, which is not what dtype F32 and shape "
    "[4611686018427387904, 4] need",
    "overlap": "tensor 'y' begins at byte 8 of the data: expected 12, where the one before it ends",
    "hole": "tensor 'y' begins at byte 16 of the data: expected 12, where the one before it ends",
    "late": "tensor 'x' begins at byte 4 of the data: expected 0, where the one before it ends",
    "twice": "the header has 'x' twice",
    "field-twice": "the header has 'dtype' twice",
    "fraction": "the header has the number '3.0': expected an integer of 64 bits",
    "leading-zero": "the header is not JSON: ",
    "zero-overflow": "tensor 'x' has 0 bytes, which is not what dtype F32 and shape "
    "[4611686018427387904, 8, 0] need",
    "metadata": "expected '__metadata__' to be an object of strings",
    "no-dtype": "tensor 'x': expected 'dtype' to be a string",
    "long-name": "tensor 'nnnnnnnn",
    "escape": "tensor '\\x1b[31m': expected an object in the header",
    "long-shape": "tensor 'x' has 24 bytes, which is not what dtype F32 and shape "
    "[1, 1, 1, 1, 1, 1, 1, 1, ...] need",
    "other-dtype": "tensor 'z' has dtype 'F8_E4M3', which is not supported",
}
broken = folder / "broken"
make_files = pathlib.Path(__file__).parents[1] / "Runner" / "Inputs" / "make-files.py"
sys.argv[1] = str(broken)
runpy.run_path(str(make_files))
for file in sorted(broken.iterdir()):
    message = None
    try:
        safetensors.read(file)
    except ValueError as error:
        message = str(error)
    expected = BAD.pop(file.stem, None)
    assert (message is None) == (expected is None), (file.stem, message)
    if expected:
        assert message.startswith(f"{file}: {expected}"), message
        assert len(message) < len(str(file)) + 200, (file.stem, len(message))
    file.unlink()
assert not BAD, BAD
broken.rmdir()

# A write that fails leaves the old file and nothing else.
safetensors.write(path, {"x": np.zeros(3)})
before = path.read_bytes()
try:
    safetensors.write(path, {"x": np.zeros(3), "y": np.zeros(3, np.complex64)})
except TypeError as error:
    assert "complex64" in str(error), error
else:
    raise AssertionError("a complex array was written")
assert path.read_bytes() == before
assert [entry.name for entry in folder.iterdir()] == [path.name]
