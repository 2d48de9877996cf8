"""Inputs of append.mlir in a folder; with --check whether the results are right."""

import pathlib
import sys

import numpy as np
from varlen import dtypes, reference, safetensors

folder = pathlib.Path(sys.argv[1])
rng = np.random.default_rng(0)


def draw(*shape):
    return dtypes.narrow(rng.standard_normal(shape), "bf16")


angles = rng.uniform(0, 6, (9, 5))
tensors = {
    "k": draw(6, 2, 16), "v": draw(6, 2, 24), "cu": np.array([0, 5, 5, 6], "i4"),
    "used": np.array([3, 0, 2], "i4"), "table": np.array([[4, 1], [9, 9], [0, -1]], "i4"),
    "cos": np.cos(angles).astype("f4"), "sin": np.sin(angles).astype("f4"),
    "k_cache": draw(5, 4, 2, 16), "v_cache": draw(5, 4, 2, 24),
}  # fmt: skip
if len(sys.argv) == 2:
    safetensors.write(folder / "good.safetensors", tensors)
    tensors["table"] = np.array([[4, 1], [9, 9], [1, -1]], "i4")
    safetensors.write(folder / "twice.safetensors", tensors)
else:
    names = "k_cache", "v_cache", "k", "v", "cu", "used"
    options = {"block_table": tensors["table"], "cos": tensors["cos"], "sin": tensors["sin"]}
    wanted = reference.append(*(tensors[name] for name in names), **options)
    found = safetensors.read(folder / "out.safetensors")
    assert found["new_v"].tobytes() == wanted[1].tobytes()
    error = np.abs(found["new_k"].astype("f8") - wanted[0].astype("f8")).max()
    assert error <= 2**-7, error
    assert (found["new_k"][2:4] == tensors["k_cache"][2:4]).all()
