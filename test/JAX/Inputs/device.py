"""The device that tests of varlen.jax run on: VARLEN_TEST_DEVICE, cpu (the default) or cuda.
Tests import it before jax, and the modules of test/Python/Inputs after it."""

import os
import pathlib
import sys

DEVICE = os.environ.get("VARLEN_TEST_DEVICE", "cpu")
if DEVICE not in ("cpu", "cuda"):
    raise SystemExit(f"VARLEN_TEST_DEVICE: expected cpu or cuda, got {DEVICE!r}")
IS_CUDA = DEVICE == "cuda"
# JAX looks for no other devices. Tests that run at once share a GPU's memory.
os.environ["JAX_PLATFORMS"] = "cuda,cpu" if IS_CUDA else "cpu"
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
sys.path.append(str(pathlib.Path(__file__).parents[2] / "Python/Inputs"))

import jax
import numpy as np
from checks import NUMPY_TYPES

# The element types that attention has there.
TYPES = {name: type for name, type in NUMPY_TYPES.items() if name != "f64" or not IS_CUDA}


def skip(reason):
    """Ends the test, which test/python/run_scripts.py and people then find skipped."""
    print(f"skipped: {reason}")
    sys.exit(0)


def need(count):
    """The test wants so many devices; a CPU becomes them."""
    if share(count) < count:
        skip(f"expected {count} devices, got {jax.device_count()}")


def share(count):
    """So many devices where there are as many, else 1."""
    if not IS_CUDA:
        jax.config.update("jax_num_cpu_devices", count)
    return count if jax.device_count() >= count else 1


def same(got, wanted):
    """Whether results are those of other code: to the bit where both ran on a CPU."""
    if not IS_CUDA:
        return np.array_equal(got, wanted)
    return np.allclose(got, wanted, rtol=1e-5, atol=1e-5, equal_nan=True)


if IS_CUDA:
    try:
        jax.devices("cuda")
    except RuntimeError as error:
        skip(f"no CUDA device: {error}")
