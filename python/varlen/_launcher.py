"""Kernels of a GPU by libvarlen-c: compiled, and launched in a stream of the CUDA driver."""

from __future__ import annotations

import ctypes

from ._library import DiagnosticFn, library, raise_error


class _KernelOptions(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("chip", ctypes.c_char_p),
        ("format", ctypes.c_int),
        ("ptx_version", ctypes.c_int32),
        ("allow_spills", ctypes.c_bool),
        ("on_diagnostic", DiagnosticFn),
        ("diagnostic_context", ctypes.c_void_p),
        ("strided_tensors", ctypes.c_bool),
    ]


_PTX = 1


def chip_of(major, minor):
    """The target of a compute capability. From 9.0 on a GPU has instructions that only
    its own code may use."""
    return f"sm_{major}{minor}" + ("a" if int(major) >= 9 else "")


def common_chip(capabilities):
    """The target of kernels for GPUs of all these compute capabilities, (major, minor). Of
    different ones it is the least, without the instructions that only its own code may use:
    newer GPUs run such PTX, too."""
    least, *others = sorted(set(capabilities))
    return "sm_{}{}".format(*least) if others else chip_of(*least)


class Launcher:
    """The kernels of a module's only function, as PTX for a GPU of the target table.
    Tensors are its arguments, then its results, in memory of the GPU, dense or, with
    `strided`, of any strides but the last, which is 1."""

    def __init__(self, source, chip, *, strided=False):
        source = source.encode() if isinstance(source, str) else source
        diagnostics = []

        @DiagnosticFn
        def keep(_, diagnostic):
            diagnostics.append(str(diagnostic.contents))

        options = _KernelOptions(
            ctypes.sizeof(_KernelOptions), chip.encode(), _PTX, on_diagnostic=keep,
            strided_tensors=strided,
        )  # fmt: skip
        self._handle = ctypes.c_void_p()
        self._destroy = library().varlenLauncherDestroy
        status = library().varlenLauncherCompile(
            source, len(source), ctypes.byref(options), ctypes.byref(self._handle)
        )
        if status:
            raise_error(status, diagnostics)

    def __del__(self):
        self._destroy(self._handle)

    def set_image(self, image):
        """Takes other code of the same kernels, in place of the PTX."""
        status = library().varlenLauncherSetImage(self._handle, image, len(image))
        if status:
            raise_error(status)

    def workspace_size(self, tensors):
        """Bytes of device memory for a launch on these Tensors, whose data may be null."""
        size = ctypes.c_size_t()
        status = library().varlenLauncherGetWorkspaceSize(
            self._handle, _addresses_of(tensors), len(tensors), ctypes.byref(size)
        )
        if status:
            raise_error(status)
        return size.value

    def launch(self, tensors, workspace, size, stream):
        """Launches the kernels in a stream, and does not wait. `workspace` is the address
        of so many bytes, a multiple of 256, for nobody else until they are done."""
        status = library().varlenLauncherLaunch(
            self._handle, _addresses_of(tensors), len(tensors), workspace, size, stream
        )
        if status:
            raise_error(status)

    def check(self, workspace, stream):
        """Waits for the stream; ValueError for what kernels have found wrong."""
        status = library().varlenLauncherCheck(workspace, stream)
        if status:
            raise_error(status)


def _addresses_of(tensors):
    return (ctypes.c_void_p * len(tensors))(*map(ctypes.addressof, tensors))
