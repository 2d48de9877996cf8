"""Writes safetensors files, whole and broken, into the folder of its argument."""

import json
import pathlib
import struct
import sys

import numpy as np

import varlen

folder = pathlib.Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)


def write(name, **tensors):
    varlen.safetensors.write(folder / f"{name}.safetensors", tensors)


x = np.arange(6, dtype=np.float32).reshape(2, 3)
y = np.full((2, 3), 10, np.float32)
s = np.array(0.5, np.float32)
write("good", x=x, y=y, s=s)
write("more", x=x, y=y, s=s, other=np.zeros(7, np.int8))
write("missing", x=x, s=s)
write("rank", x=x[0], y=y, s=s)
write("extent", x=x[:, :2].copy(), y=y, s=s)
write("dtype", x=x, y=y.astype(np.float16), s=s)
write("scalar", x=x, y=y, s=np.zeros(1, np.float32))
write(
    "dtypes",
    h=np.array([1.5, -2], np.float16),
    b=varlen.dtypes.narrow([1.5, -2], "bf16"),
    d=np.array([0.1, -2]),
    i=np.array([-3, 2**31 - 1], np.int32),
    l=np.array([-3, 2**63 - 1], np.int64),
    n=np.array([-3, 127], np.int8),
    u=np.array([253, 127], np.uint8),
    p=np.array([True, False]),
    empty=np.zeros((0, 4), np.float32),
)

good = (folder / "good.safetensors").read_bytes()
header_bytes = struct.unpack_from("<Q", good)[0]


def raw(name, content):
    (folder / f"{name}.safetensors").write_bytes(content)


def header(name, text, data=b"\0" * 24):
    text = text if isinstance(text, bytes) else json.dumps(text).encode()
    raw(name, struct.pack("<Q", len(text)) + text + data)


raw("short", good[:5])
raw("no-header", good[: 8 + header_bytes // 2])
raw("truncated", good[:-4])
raw("trailing", good + b"\0")
raw("no-safetensors", b"func.func @f() { return }")
header("no-json", b"{'x': 1}")
header("no-object", [1])
header("deep", b'{"x": ' + b"[" * 100000)
header("entry", {"x": 3})
header("bad-dtype", {"x": {"dtype": "F8", "shape": [24], "data_offsets": [0, 24]}})
header("bad-shape", {"x": {"dtype": "F32", "shape": [-6], "data_offsets": [0, 24]}})
header("bad-range", {"x": {"dtype": "F32", "shape": [6], "data_offsets": [24, 0]}})
header("bad-size", {"x": {"dtype": "F32", "shape": [5], "data_offsets": [0, 24]}})
huge = {"dtype": "F32", "shape": [2**62, 4], "data_offsets": [0, 24]}
header("overflow", {"x": huge})

# What the format's own library refuses, too, and names that occur twice.
ENTRY = '{"dtype": "F32", "shape": [%s], "data_offsets": [%d, %d]}'
first, second = ENTRY % (3, 0, 12), ENTRY % (3, 12, 24)
header("overlap", f'{{"x": {first}, "y": {ENTRY % (3, 8, 20)}}}'.encode(), b"\0" * 20)
header("hole", f'{{"x": {first}, "y": {ENTRY % (3, 16, 28)}}}'.encode(), b"\0" * 28)
header("late", f'{{"x": {ENTRY % (3, 4, 16)}}}'.encode(), b"\0" * 16)
header("twice", f'{{"x": {first}, "\\u0078": {second}}}'.encode())
header("field-twice", f'{{"x": {first[:-1]}, "dtype": "F32"}}}}'.encode(), b"\0" * 12)
header("fraction", f'{{"x": {ENTRY % ("3.0", 0, 12)}}}'.encode(), b"\0" * 12)
header("leading-zero", f'{{"x": {ENTRY % ("03", 0, 12)}}}'.encode(), b"\0" * 12)
header("zero-overflow", f'{{"x": {ENTRY % ("4611686018427387904, 8, 0", 0, 0)}}}'.encode(), b"")
header("metadata", b'{"__metadata__": {"step": 3}}', b"")
header("no-dtype", b'{"x": {"shape": [], "data_offsets": [0, 0]}}', b"")

# A message stays short and prints nothing that the terminal would act on.
header("long-name", {"n" * 100000: 3})
header("escape", {"\x1b[31m": 3})
huge = {"dtype": "F32", "shape": [1] * 100000, "data_offsets": [0, 24]}
header("long-shape", {"x": huge})
empty = {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}
header("many", {f"tensor {i:05}": empty for i in range(10000)}, b"")

# A dtype that is not supported matters where the tensor is asked for, only.
entries = json.loads(good[8 : 8 + header_bytes])
end = len(good) - 8 - header_bytes
entries["z"] = {"dtype": "F8_E4M3", "shape": [3], "data_offsets": [end, end + 3]}
header("other-dtype", entries, good[8 + header_bytes :] + b"\0" * 3)
