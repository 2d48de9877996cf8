"""Kernels of a GPU by libvarlen-c: compiled, and launched in a stream of the CUDA driver."""

from __future__ import annotations

import ctypes
import functools
import re
from typing import NamedTuple

from . import _cache, _library
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


# Kinds of code by VarlenCodeFormat.
_FORMATS = {"cubin": 0, "ptx": 1, "fatbin": 2}


# ===----------------------------------------------------------------------===#
# Devices
# ===----------------------------------------------------------------------===#


class Target(NamedTuple):
    """What kernels are compiled for."""

    chip: str
    ptx: int  # the version of PTX, times 10; 0: the library's


_MAJOR, _MINOR = 75, 76  # of the compute capability: CUdevice_attribute
_LEAST_CAPABILITY, _LEAST_CUDA = (8, 0), 12000
# The version of PTX that came with a version of CUDA, as cuDriverGetVersion counts these (PTX
# ISA, release notes); before and after these, the library's messages say what is missing.
_PTX_OF_CUDA = {
    12000: 80, 12010: 81, 12020: 82, 12030: 83, 12040: 84, 12050: 85, 12060: 85, 12070: 86,
    12080: 87, 12090: 88,
}  # fmt: skip


@functools.cache
def find_target(device):
    """The target of kernels for the CUDA device of that number. RuntimeError if the driver
    or the GPU is too old, or not there."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        raise RuntimeError(f"no CUDA driver: {error}") from None

    def call(function, *arguments):
        if status := getattr(driver, function)(*arguments):
            raise RuntimeError(
                f"expected to find CUDA device {device}, got error {status} of {function}"
            )

    def read(function, *arguments):
        value = ctypes.c_int()
        call(function, ctypes.byref(value), *arguments)
        return value.value

    version = read("cuDriverGetVersion")
    if version < _LEAST_CUDA:
        raise RuntimeError(
            "expected a CUDA driver of CUDA 12.0 or newer, got one of CUDA "
            f"{version // 1000}.{version % 1000 // 10}"
        )
    call("cuInit", 0)
    handle = read("cuDeviceGet", device)
    capability = tuple(read("cuDeviceGetAttribute", x, handle) for x in (_MAJOR, _MINOR))
    if capability < _LEAST_CAPABILITY:
        name = ctypes.create_string_buffer(96)
        call("cuDeviceGetName", name, len(name), handle)
        raise RuntimeError(
            "expected a GPU of compute capability 8.0 or newer, got CUDA device "
            f"{device} ({name.value.decode()}) of {'.'.join(map(str, capability))}"
        )
    return Target(chip_of(*capability), _PTX_OF_CUDA.get(version, 0))


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


# ===----------------------------------------------------------------------===#
# Launchers
# ===----------------------------------------------------------------------===#


def load(source, target, *, strided, image="ptx"):
    """The Launcher of a source for a Target, which stays until the process ends.
    NotImplementedError for what CPUs alone have kernels for."""

    def compile():
        try:
            launcher = Launcher(source, target.chip, strided=strided, ptx=target.ptx, image=image)
            return _keep(launcher)
        except _library.CompileError as error:
            _refuse_without_tiles(error)
            raise

    def deserialize(data):
        return _keep(Launcher.deserialize(data))

    return _cache.find("launcher", source, (*target, strided, image), compile, deserialize)


def _keep(launcher):
    """Kernels may run until the process ends, after Python has."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(launcher))
    return launcher


def _refuse_without_tiles(error):
    """The compiler says in a remark what its target has no kernel for; then the operation is
    one that it does not know."""
    for diagnostic in error.diagnostics:
        if found := re.search(r"remark: (no tiles for .*?)(;|$)", diagnostic):
            raise NotImplementedError(f"no kernel for this GPU: {found[1]}") from None


class Launcher:
    """The kernels of a module's only function for a GPU of the target table: as PTX, which the
    driver assembles, or as an `image` of another kind ("cubin", "fatbin"), by ptxas.
    Tensors are its arguments, then its results, in memory of the GPU, dense or, with
    `strided`, of any strides but the last, which is 1."""

    def __init__(self, source, chip, *, strided=False, ptx=0, image="ptx"):
        source = source.encode() if isinstance(source, str) else source
        diagnostics = []

        @DiagnosticFn
        def keep(_, diagnostic):
            diagnostics.append(str(diagnostic.contents))

        options = _KernelOptions(
            ctypes.sizeof(_KernelOptions), chip.encode(), _FORMATS[image], ptx,
            on_diagnostic=keep,
            strided_tensors=strided,
        )  # fmt: skip
        self._handle = ctypes.c_void_p()
        self._destroy = library().varlenLauncherDestroy
        status = library().varlenLauncherCompile(
            source, len(source), ctypes.byref(options), ctypes.byref(self._handle)
        )
        if status:
            raise_error(status, diagnostics)

    @classmethod
    def deserialize(cls, data):
        """The Launcher of what `serialize` has returned, without compiling. Bytes that were
        changed are a ValueError, those of another build a NotImplementedError. They are code:
        load them only from places that no other user can write to."""
        handle = ctypes.c_void_p()
        status = library().varlenLauncherDeserialize(data, len(data), ctypes.byref(handle))
        if status:
            raise_error(status)
        launcher = cls.__new__(cls)
        launcher._handle, launcher._destroy = handle, library().varlenLauncherDestroy
        return launcher

    def serialize(self):
        """The launcher as bytes, for processes whose `identity` is the same."""
        return _library.read_code(library().varlenLauncherSerialize, self._handle)

    def __del__(self):
        self._destroy(self._handle)

    @functools.cached_property
    def parameters(self):
        """The parameters of the function: its arguments, then its results."""
        c = library()
        return _library.read_parameters(
            self._handle, c.varlenLauncherGetNumTensors, c.varlenLauncherGetTensor
        )

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
        of so many bytes, a multiple of 256, not used otherwise until they are done."""
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


def poll(device):
    """ValueError if kernels that a LaunchFrame has launched on that device have found an
    error which no call has told. Does not wait."""
    if status := library().varlenLauncherPoll(device):
        raise_error(status)


class LaunchFrame:
    """What launches of kernels take, one at a time, as a Frame of _library is for calls:
    DLTensors are written to `addresses`, `measure()` stores in `size` how many bytes of
    workspace they take, and `enqueue()` launches in `stream`, with the workspace at
    `workspace`. Both return the status."""

    __slots__ = ("_kept", "addresses", "enqueue", "measure", "size", "stream", "workspace")

    def __init__(self, launcher):
        count = len(launcher.parameters)
        tensors = (_library.Tensor * count)()
        begin, bytes = ctypes.addressof(tensors), ctypes.sizeof(_library.Tensor)
        self.addresses = [begin + bytes * i for i in range(count)]
        pointers = (ctypes.c_void_p * count)(*self.addresses)
        self._kept = launcher, tensors, pointers
        self.size, self.stream = ctypes.c_size_t(), ctypes.c_void_p()
        self.workspace = ctypes.c_void_p()
        launch = launcher._handle, pointers, ctypes.c_size_t(count)
        self.measure = functools.partial(
            _library.plain("varlenLauncherGetWorkspaceSize"), *launch, ctypes.byref(self.size)
        )
        self.enqueue = functools.partial(
            _library.plain("varlenLauncherEnqueue"),
            *launch, self.workspace, self.size, self.stream,
        )  # fmt: skip


def _addresses_of(tensors):
    return (ctypes.c_void_p * len(tensors))(*map(ctypes.addressof, tensors))
