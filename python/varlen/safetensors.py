"""Reads and writes safetensors files: 8 bytes of header length, a JSON header,
the tensors' bytes."""

import json
import os
import struct
import tempfile

import numpy as np

from . import dtypes

# Of a header; the format's own library has the same.
_MAX_HEADER_BYTES = 100_000_000


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


def _quote(name):
    """A name as messages have it: short, and nothing that a terminal acts on."""
    return repr(name if len(name) <= 64 else name[:64] + "...")


def _parse_pairs(pairs):
    value = {}
    for name, item in pairs:
        if name in value:
            raise ValueError(f"the header has {_quote(name)} twice")
        value[name] = item
    return value


def _parse_number(text):
    # -0 is no integer to the format's own library.
    if text.lstrip("-").isdigit() and text != "-0" and len(text) <= 20:
        value = int(text)
        if -(2**63) <= value < 2**63:
            return value
    raise ValueError(
        f"the header has the number {_quote(text)}: expected an integer of 64 bits"
    )


def _parse_header(text):
    try:
        header = json.loads(
            text.decode(),
            object_pairs_hook=_parse_pairs,
            parse_int=_parse_number,
            parse_float=_parse_number,
            parse_constant=_parse_number,
        )
    except RecursionError:
        raise ValueError("the header nests too deep") from None
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"the header is not JSON: {error}") from None
    if not isinstance(header, dict):
        raise ValueError("the header is not a JSON object")
    metadata = header.pop("__metadata__", None)
    is_text = isinstance(metadata, dict) and all(
        isinstance(value, str) for value in metadata.values()
    )
    if not is_text and metadata is not None:
        raise ValueError("expected '__metadata__' to be an object of strings")
    return header


def _count_bytes(shape, dtype):
    """The bytes of a tensor; None if they are too many."""
    # In order, as the format's own library counts: it accepts extents whose
    # product overflows only where a 0 comes before.
    count = 1
    for factor in (*shape, dtype.itemsize):
        count *= factor
        if count >= 2**64:
            return None
    return count


def _parse_entry(name, entry):
    """Returns the dtype, the shape and the range of bytes of a tensor."""
    tensor = f"tensor {_quote(name)}"
    if not isinstance(entry, dict):
        raise ValueError(f"{tensor}: expected an object in the header")
    label, shape, offsets = map(entry.get, ("dtype", "shape", "data_offsets"))
    if not isinstance(label, str):
        raise ValueError(f"{tensor}: expected 'dtype' to be a string")

    def is_list(value):
        # True is an integer to Python.
        return isinstance(value, list) and all(type(x) is int and x >= 0 for x in value)

    if not is_list(shape):
        raise ValueError(
            f"{tensor}: expected 'shape' to be a list of non-negative integers"
        )
    if not is_list(offsets) or len(offsets) != 2 or offsets[0] > offsets[1]:
        raise ValueError(f"{tensor}: expected 'data_offsets' to be [begin, end]")
    dtype = dtypes.by_safetensors_name.get(label)
    if dtype is None:
        raise ValueError(f"{tensor} has dtype {_quote(label)}, which is not supported")
    begin, end = offsets
    if _count_bytes(shape, dtype) != end - begin:
        listed = ", ".join(map(str, shape[:8])) + ", ..." * (len(shape) > 8)
        raise ValueError(
            f"{tensor} has {end - begin} bytes, which is not what dtype {label} and "
            f"shape [{listed}] need"
        )
    return dtype, shape, begin, end


def _check_ranges(entries, data_bytes):
    """That the tensors lie one behind the other, and fill the file."""
    last = 0
    for (begin, end), name in sorted((entry[2:], name) for name, entry in entries.items()):
        tensor = f"tensor {_quote(name)}"
        if begin != last:
            raise ValueError(
                f"{tensor} begins at byte {begin} of the data: expected {last}, where "
                "the one before it ends"
            )
        if end > data_bytes:
            raise ValueError(
                f"is truncated: {tensor} ends at byte {end} of the data, the file at "
                f"{data_bytes}"
            )
        last = end
    if last != data_bytes:
        raise ValueError(
            f"the last tensor ends at byte {last} of the data: expected {data_bytes}, "
            "where the file ends"
        )


def _parse(content):
    if len(content) < 8:
        raise ValueError(
            "is truncated: a safetensors file has at least 8 bytes, this one "
            f"{len(content)}"
        )
    (header_bytes,) = struct.unpack_from("<Q", content)
    if header_bytes > _MAX_HEADER_BYTES:
        raise ValueError(
            "is not a safetensors file: it would have a header of "
            f"{header_bytes} bytes"
        )
    data = 8 + header_bytes
    if data > len(content):
        raise ValueError(
            f"is truncated: the header ends at byte {data}, the file at {len(content)}"
        )
    header = _parse_header(content[8:data])
    entries = {name: _parse_entry(name, entry) for name, entry in header.items()}
    _check_ranges(entries, len(content) - data)
    return {
        name: np.frombuffer(content[data + begin : data + end], dtype).reshape(shape).copy()
        for name, (dtype, shape, begin, end) in entries.items()
    }


def read(path):
    """Reads a file into a dict of arrays (bf16: dtype `dtypes.bfloat16`). One that
    varlen-run refuses is a ValueError with the same message."""
    with open(path, "rb") as file:
        content = file.read()
    try:
        return _parse(content)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
