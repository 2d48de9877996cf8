"""Reads and writes safetensors files, by the format's own package."""

import numpy as np
from safetensors import SafetensorError, deserialize
from safetensors.numpy import save_file

from . import dtypes


def write(path, tensors):
    """Writes a dict of arrays, of the dtypes of `dtypes.by_name`."""
    save_file({name: dtypes.normalize(array) for name, array in tensors.items()}, path)


def read(path):
    """Reads a file into a dict of arrays. One that is not whole, or has dtypes that
    `dtypes.by_safetensors_name` has not, is a ValueError."""
    # Not by `load_file`, which looks for all dtypes in numpy.
    with open(path, "rb") as file:
        content = file.read()
    try:
        found = dict(deserialize(content))
    except SafetensorError as error:
        raise ValueError(f"{path}: {error}") from None
    return {name: _make_array(path, name, **fields) for name, fields in found.items()}


def _make_array(path, name, dtype, shape, data):
    known = dtypes.by_safetensors_name.get(dtype)
    if known is None:
        wanted = ", ".join(dtypes.by_safetensors_name)
        raise ValueError(f"{path}: {name}: expected a dtype of {wanted}, got {dtype}")
    return np.frombuffer(data, known).reshape(shape).copy()
