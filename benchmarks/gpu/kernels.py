"""Compiled kernels of functions of tensors, for the GPU of this machine: compiled here, with
this machine's ptxas, by the library's launchers."""

import ctypes
import math
import shutil

import rehearsal
import varlen
from varlen import _library
from varlen._launcher import find_target, load

# Kind and bits of elements as DLPack has them.
_ELEMENTS = {
    "float32": (_library.FLOAT, 32), "float16": (_library.FLOAT, 16),
    "bfloat16": (_library.BFLOAT, 16), "int32": (_library.INT, 32),
    "int64": (_library.INT, 64), "int8": (_library.INT, 8),
}  # fmt: skip


class Missing(Exception):
    """A function that is not compiled, and why."""


def find_chip():
    """The target of kernels for the first CUDA device."""
    return find_target(0).chip


def image_kind():
    """Machine code where there is ptxas, else PTX, which the driver assembles."""
    return "cubin" if shutil.which("ptxas") and not rehearsal.FOLDER else "ptx"


def compile(text, strided=False):
    """The launcher of a module's function, of tensors that are dense unless they are
    `strided`. Threads may compile at once; what another process has compiled is in the cache."""
    target = find_target(0)
    try:
        launcher = load(text, target, strided=strided, image=image_kind())
    except (varlen.CompileError, NotImplementedError) as error:
        lines = str(error).splitlines()
        errors = [line for line in lines if "error:" in line] or lines
        raise Missing(errors[0][:300]) from None
    if rehearsal.FOLDER:
        rehearsal.use_executor(launcher, text, strided)
    return launcher


def tensor(address, shape, dtype, strides=None):
    """A tensor of this device for a launch; `dtype` is a name as numpy has it, strides count
    elements; None: dense."""
    if strides is None:
        strides = [math.prod(shape[i + 1 :]) for i in range(len(shape))]
    code, bits = _ELEMENTS[dtype]
    numbers = ctypes.c_int64 * len(shape)
    owners = numbers(*shape), numbers(*strides)
    result = _library.Tensor(
        address, _library.CUDA, 0, len(shape), code, bits, 1, *map(ctypes.addressof, owners)
    )
    result.owners = owners
    return result
