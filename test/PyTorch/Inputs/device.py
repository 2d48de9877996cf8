"""The device that the tests run on: VARLEN_TEST_DEVICE, "cpu" or "cuda". Tensors are made
there where nothing else is said."""

import os
import sys

import torch

import varlen.torch

NAME = os.environ.get("VARLEN_TEST_DEVICE", "cpu")
ON_CUDA = NAME == "cuda"
if NAME not in ("cpu", "cuda"):
    raise ValueError(f"VARLEN_TEST_DEVICE: expected cpu or cuda, got {NAME!r}")
if ON_CUDA and not torch.cuda.is_available():
    raise RuntimeError("VARLEN_TEST_DEVICE is cuda: expected a CUDA device, found none")
if ON_CUDA:
    # Of this thread: others name the device.
    torch.set_default_device("cuda")
# PyTorch's build for the CPU with CUDA tensors (fake_device.py), which compiles no kernels of
# its own for them.
IS_FAKE = ON_CUDA and torch.version.cuda is None and torch.version.hip is None
HAS_F64 = not ON_CUDA


def of_device(*dtypes):
    """The types among these that the device has kernels for."""
    return [dtype for dtype in dtypes if HAS_F64 or dtype != torch.float64]


def skip(reason):
    """Ends a test that is not for this device."""
    print(f"skipped: {reason}")
    sys.exit(0)


def settle():
    """Has what kernels have found wrong be raised, which on a GPU a call does not wait for."""
    if ON_CUDA:
        varlen.torch.check()
