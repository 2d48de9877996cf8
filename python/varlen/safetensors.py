"""Reads and writes safetensors files: 8 bytes of header length, a JSON header,
the tensors' bytes."""

import json
import math
import os
import struct
import tempfile

import numpy as np

from . import dtypes


def write(path, tensors):
    """Writes a dict of arrays; all of the file or none of it."""
    header, chunks, offset = {}, [], 0
    for name, array in tensors.items():
        array = dtypes.normalize(array)
        header[name] = {
            "dtype": dtypes.safetensors_name_of(array),
            "shape": list(array.shape),
            "data_offsets": [offset, offset + array.nbytes],
        }
        chunks.append(array)
        offset += array.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    folder = os.path.dirname(os.path.abspath(path))
    descriptor, temporary = tempfile.mkstemp(dir=folder, suffix=".tmp")
    try:
        with open(descriptor, "wb") as file:
            file.write(struct.pack("<Q", len(text)) + text)
            for array in chunks:
                file.write(array.tobytes())
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def read(path):
    """Reads a file into a dict of arrays (bf16: dtype `dtypes.bfloat16`)."""
    with open(path, "rb") as file:
        content = file.read()
    if len(content) < 8:
        raise ValueError(f"{path} is truncated: {len(content)} bytes")
    (header_bytes,) = struct.unpack_from("<Q", content)
    begin = 8 + header_bytes
    if begin > len(content):
        raise ValueError(
            f"{path} is truncated: the header ends at byte {begin}, "
            f"the file at {len(content)}"
        )
    tensors = {}
    for name, entry in json.loads(content[8:begin]).items():
        if name == "__metadata__":
            continue
        dtype = dtypes.by_safetensors_name.get(entry["dtype"])
        if dtype is None:
            raise ValueError(
                f"{path}: tensor '{name}' has dtype {entry['dtype']}, "
                "which is not supported"
            )
        lo, hi = entry["data_offsets"]
        shape = entry["shape"]
        if hi - lo != math.prod(shape) * dtype.itemsize or begin + hi > len(content):
            raise ValueError(f"{path}: tensor '{name}' has too many or too few bytes")
        data = np.frombuffer(content[begin + lo : begin + hi], dtype)
        tensors[name] = data.reshape(shape).copy()
    return tensors
