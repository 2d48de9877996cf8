"""Compiled functions on a GPU, by ctypes: no compiler, no framework.

A function takes descriptors of buffers in device memory; the owner of the memory,
a framework or the runtime library, does not matter.
"""

import ctypes
import pathlib

import numpy

# Sizes and strides of a dense row-major memref.
_HEAD = [("allocated", ctypes.c_void_p), ("aligned", ctypes.c_void_p), ("offset", ctypes.c_int64)]


class Error(Exception):
    """What the runtime library says has gone wrong."""


def _descriptor(pointer, shape):
    rank = len(shape)
    fields = [*_HEAD, ("sizes", ctypes.c_int64 * rank), ("strides", ctypes.c_int64 * rank)]
    strides = [1] * rank
    for d in reversed(range(rank - 1)):
        strides[d] = strides[d + 1] * shape[d + 1]
    kind = type("Descriptor", (ctypes.Structure,), {"_fields_": fields})
    array = ctypes.c_int64 * rank
    return kind(pointer, pointer, 0, array(*shape), array(*strides))


class Buffer:
    """Memory of the device that the runtime library has allocated."""

    def __init__(self, runtime, array):
        self.runtime, self.dtype, self.shape = runtime, array.dtype, array.shape
        self.bytes = array.nbytes
        self.pointer = runtime.library.varlen_gpu_allocate(array.nbytes)
        runtime.raise_error()
        self.store(array)

    def store(self, array):
        source = numpy.ascontiguousarray(array).ctypes.data
        self.runtime.copy(self.pointer, source, self.bytes)

    def load(self):
        array = numpy.empty(self.shape, self.dtype)
        self.runtime.copy(array.ctypes.data, self.pointer, self.bytes)
        return array

    def free(self):
        self.runtime.library.varlen_gpu_free(self.pointer)


class Runtime:
    """The runtime library of a folder, on a device: cuda or executor."""

    def __init__(self, folder, device="cuda"):
        self.folder = pathlib.Path(folder)
        # The functions find their symbols in it.
        self.library = ctypes.CDLL(
            str(self.folder / "libVarlenGPU.so"), mode=ctypes.RTLD_GLOBAL
        )
        pointer, size = ctypes.c_void_p, ctypes.c_uint64
        for name, result, arguments in (
            ("varlen_last_error", ctypes.c_char_p, []),
            ("varlen_clear_error", None, []),
            ("varlen_gpu_set_backend", None, [pointer]),
            ("varlen_gpu_capability", ctypes.c_int32, []),
            ("varlen_gpu_set_stream", None, [pointer]),
            ("varlen_gpu_unset_stream", None, []),
            ("varlen_gpu_check", ctypes.c_int32, [pointer]),
            ("varlen_gpu_prepare", ctypes.c_int32, []),
            ("varlen_gpu_allocate", pointer, [size]),
            ("varlen_gpu_free", None, [pointer]),
            ("varlen_gpu_copy", ctypes.c_int32, [pointer, pointer, size]),
            ("varlen_gpu_synchronize", ctypes.c_int32, []),
        ):
            function = getattr(self.library, name)
            function.restype, function.argtypes = result, arguments
        backend = getattr(self.library, f"varlen_gpu_{device}", None)
        if backend is None:
            raise Error(f"the library of {folder} knows no device '{device}'")
        backend.restype = pointer
        self.library.varlen_gpu_set_backend(backend())
        self.capability = self.library.varlen_gpu_capability()
        self.raise_error()

    def raise_error(self):
        message = self.library.varlen_last_error()
        if message:
            text = message.decode()
            self.library.varlen_clear_error()
            raise Error(text)

    def copy(self, to, source, count):
        self.library.varlen_gpu_copy(to, source, count)
        self.library.varlen_gpu_synchronize()
        self.raise_error()

    def buffer(self, array):
        return Buffer(self, array)

    def check(self, stream=None):
        """Waits for the stream; raises what kernels have found wrong."""
        self.library.varlen_gpu_check(stream)
        self.raise_error()

    def function(self, path, name):
        return Function(self, path, name)


class Function:
    def __init__(self, runtime, path, name):
        self.runtime = runtime
        self.library = ctypes.CDLL(str(path))
        runtime.raise_error()
        self.entry = getattr(self.library, f"_mlir_ciface_{name}")
        self.entry.restype = None

    def bind(self, buffers):
        """A call of the function on (pointer, shape) pairs. What it enqueues has
        errors later: see Runtime.check. `raise_error` after it has those of the
        launch."""
        descriptors = [_descriptor(pointer, tuple(shape)) for pointer, shape in buffers]
        references = [ctypes.byref(descriptor) for descriptor in descriptors]
        entry = self.entry
        return lambda: entry(*references)
