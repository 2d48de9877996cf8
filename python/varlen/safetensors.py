"""Reads and writes safetensors files, by the format's own package."""

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from . import dtypes


def write(path, tensors):
    """Writes a dict of arrays, of the dtypes of `dtypes.by_name`."""
    save_file({name: dtypes.normalize(array) for name, array in tensors.items()}, path)


def read(path):
    """Reads a file into a dict of arrays. One that is not whole, or has dtypes that
    numpy and ml_dtypes have not, is a ValueError."""
    try:
        # A copy: what it returns may be memory that must not be written to.
        return {name: np.array(array) for name, array in load_file(path).items()}
    except (AttributeError, SafetensorError, TypeError) as error:
        raise ValueError(f"{path}: {error}") from None
