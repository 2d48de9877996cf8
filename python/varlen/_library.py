"""libvarlen-c by ctypes: what is compiled with it, and called.

    program = compile(text)                   # Program; options by keyword
    function = program["attention"]           # Function; program[None]: the only one
    function.arguments[0].shape               # Parameter: None is a dynamic extent
    inputs = function.pointers(a, b, c)       # addresses of DLTensor structs
    outputs = function.result_pointers(out)
    function.call(inputs, outputs)            # releases the GIL; raises on an error

A DLTensor may be `Tensor` below, or what a capsule of `__dlpack__` holds
(`dltensor_address`). The library keeps no address longer than a call, so arrays of
addresses may be made once and called with many times; what they point to must live
meanwhile. A Function keeps its Program. All may be used from several threads.

A status of the library is an exception with its message:

| VARLEN_INVALID_ARGUMENT, BAD_DATA, CHECK_FAILED, WORKSPACE_TOO_SMALL | ValueError |
| VARLEN_PARSE_ERROR, COMPILE_ERROR | CompileError |
| VARLEN_NOT_FOUND | LookupError |
| VARLEN_OUT_OF_MEMORY | MemoryError |
| VARLEN_UNSUPPORTED | NotImplementedError |
| VARLEN_DEVICE_ERROR | RuntimeError |

Needs the standard library only.
"""

from __future__ import annotations

import atexit
import ctypes
import functools
import os
import pathlib
import struct
import threading
from typing import NamedTuple

_NAME = "libvarlen-c.so"


class CompileError(Exception):
    """A module that cannot be compiled. `diagnostics` are all that the compiler has
    said, "FILE:LINE:COLUMN: error: MESSAGE" each."""

    def __init__(self, message, diagnostics=()):
        super().__init__(message)
        self.diagnostics = tuple(diagnostics)


# By VarlenStatus.
_EXCEPTIONS = {
    1: ValueError,
    2: CompileError,
    3: CompileError,
    4: LookupError,
    5: ValueError,
    6: ValueError,
    7: MemoryError,
    8: ValueError,
    9: NotImplementedError,
}


class Tensor(ctypes.Structure):
    """VarlenTensor, which is DLTensor. `shape` and `strides` (in elements; null:
    dense) are addresses of int64_t."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("byte_offset", ctypes.c_uint64),
    ]


# Kinds of elements and devices, with DLPack's numbers.
INT, UINT, FLOAT, BFLOAT, BOOL, FLOAT8_E4M3FN = 0, 1, 2, 4, 6, 10
CPU, CUDA, CUDA_HOST, CUDA_MANAGED = 1, 2, 3, 13


class Parameter(NamedTuple):
    """An argument or a result of a function."""

    name: str
    code: int  # of its elements, as in Tensor
    bits: int
    is_scalar: bool  # passed as a tensor of rank 0
    is_written: bool
    shape: tuple  # None: a dynamic extent
    strides: tuple | None  # None: dense; None within: a dynamic stride


class _Parameter(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("is_scalar", ctypes.c_bool),
        ("is_written", ctypes.c_bool),
        ("rank", ctypes.c_int32),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
    ]

    def read(self):
        def extents(values):
            return tuple(None if n < 0 else n for n in values[: self.rank])

        return Parameter(
            self.name.decode(), self.code, self.bits, self.is_scalar, self.is_written,
            extents(self.shape) if self.rank else (),
            extents(self.strides) if self.strides else None,
        )  # fmt: skip


class _Diagnostic(ctypes.Structure):
    _fields_ = [
        ("severity", ctypes.c_int),
        ("message", ctypes.c_char_p),
        ("file", ctypes.c_char_p),
        ("line", ctypes.c_int64),
        ("column", ctypes.c_int64),
    ]

    def __str__(self):
        place = f"{self.file.decode()}:{self.line}:{self.column}: " if self.line else ""
        severity = ("note", "warning", "error", "remark")[self.severity]
        return f"{place}{severity}: {self.message.decode(errors='replace')}"


DiagnosticFn = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.POINTER(_Diagnostic))


class _CompileOptions(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("target", ctypes.c_char_p),
        ("on_diagnostic", DiagnosticFn),
        ("diagnostic_context", ctypes.c_void_p),
        ("strided_tensors", ctypes.c_bool),
        ("runtime_checks", ctypes.c_bool),
    ]


class CallOptions(ctypes.Structure):
    """VarlenCallOptions. Made with `call_options`."""

    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("num_threads", ctypes.c_int64),
        ("parallel_for", ctypes.c_void_p),
        ("parallel_for_context", ctypes.c_void_p),
        ("workspace", ctypes.c_void_p),
        ("workspace_size", ctypes.c_size_t),
        ("separate_writes", ctypes.c_bool),
    ]


def call_options(num_threads=0):
    """Options for Function.call; 0: as many threads as `set_num_threads` says."""
    return CallOptions(ctypes.sizeof(CallOptions), num_threads)


# ===----------------------------------------------------------------------===#
# The library
# ===----------------------------------------------------------------------===#


def find_library():
    """The path of libvarlen-c: VARLEN_LIBRARY, else of the build that VARLEN_BUILD
    names, else within this package, or in the build/ of its checkout."""
    if path := os.environ.get("VARLEN_LIBRARY"):
        places = [pathlib.Path(path)]
    elif build := os.environ.get("VARLEN_BUILD"):
        places = [pathlib.Path(build) / "lib" / _NAME]
    else:
        package = pathlib.Path(__file__).resolve().parent
        places = [
            package / "lib" / _NAME,
            package.parent.parent / "build" / "lib" / _NAME,
        ]
    for place in places:
        if place.is_file():
            return place
    raise FileNotFoundError(
        f"no libvarlen-c at {', '.join(map(str, places))}: build it, or set "
        "VARLEN_LIBRARY or VARLEN_BUILD"
    )


# What each function returns, and its parameters.
_status, _pointer, _size = ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t
_SIGNATURES = {
    "varlenGetLastError": (ctypes.c_char_p,),
    "varlenGetVersion": (ctypes.c_char_p,),
    "varlenCompile": (_status, _pointer, _size, _pointer, _pointer),
    "varlenProgramDestroy": (None, _pointer),
    "varlenProgramGetFunction": (_status, _pointer, ctypes.c_char_p, _pointer),
    "varlenGetIdentity": (ctypes.c_char_p,),
    "varlenProgramSerialize": (_status, _pointer, _pointer),
    "varlenProgramDeserialize": (_status, _pointer, _size, _pointer),
    "varlenCodeGetData": (_pointer, _pointer),
    "varlenCodeGetSize": (_size, _pointer),
    "varlenCodeDestroy": (None, _pointer),
    "varlenFunctionGetName": (ctypes.c_char_p, _pointer),
    "varlenFunctionGetNumArguments": (_size, _pointer),
    "varlenFunctionGetNumResults": (_size, _pointer),
    "varlenFunctionGetArgument": (ctypes.POINTER(_Parameter), _pointer, _size),
    "varlenFunctionGetResult": (ctypes.POINTER(_Parameter), _pointer, _size),
    "varlenFunctionCall": (
        _status, _pointer, _pointer, _size, _pointer, _size,
        ctypes.POINTER(CallOptions),
    ),
    "varlenFunctionGetResultShapes": (
        _status, _pointer, _pointer, _size, _pointer, _size,
    ),
    "varlenFunctionGetWorkspaceSize": (
        _status, _pointer, _pointer, _size, ctypes.POINTER(CallOptions), _pointer,
    ),
    "varlenLauncherCompile": (_status, _pointer, _size, _pointer, _pointer),
    "varlenLauncherDestroy": (None, _pointer),
    "varlenLauncherSetImage": (_status, _pointer, _pointer, _size),
    "varlenLauncherSerialize": (_status, _pointer, _pointer),
    "varlenLauncherDeserialize": (_status, _pointer, _size, _pointer),
    "varlenLauncherGetWorkspaceSize": (_status, _pointer, _pointer, _size, _pointer),
    "varlenLauncherLaunch": (
        _status, _pointer, _pointer, _size, _pointer, _size, _pointer,
    ),
    "varlenLauncherCheck": (_status, _pointer, _pointer),
    "varlenLauncherEnqueue": (
        _status, _pointer, _pointer, _size, _pointer, _size, _pointer,
    ),
    "varlenLauncherPoll": (_status, ctypes.c_int32),
    "varlenLauncherGetNumTensors": (_size, _pointer),
    "varlenLauncherGetTensor": (ctypes.POINTER(_Parameter), _pointer, _size),
    "varlenPlanCreate": (
        _status, _pointer, _pointer, _pointer, _size, ctypes.c_int64, _pointer, _pointer,
    ),
    "varlenPlanDestroy": (None, _pointer),
    "varlenPlanWithMask": (_status, _pointer, ctypes.c_char_p, _pointer),
    "varlenPlanGetChunks": (_pointer, _pointer, ctypes.c_int64, _pointer),
    "varlenOverlapLaunches": (None, ctypes.c_bool),
    "varlenSetNumThreads": (None, ctypes.c_int64),
    "varlenGetNumThreads": (ctypes.c_int64,),
}  # fmt: skip


# What works with LLVM, whose global objects the end of a process destroys.
_COMPILERS = (
    "varlenCompile", "varlenProgramDeserialize", "varlenLauncherCompile",
    "varlenLauncherDeserialize",
)  # fmt: skip


class _Compilations:
    """Counts the calls of compilers, so that the interpreter waits at its end for
    compilations in daemon threads. Later ones never begin, as no daemon thread goes on then; but
    handlers of the thread that ends it may compile."""

    def __init__(self):
        self._condition = threading.Condition()
        self._running = 0
        self._ending = None  # The identifier of the thread.

    def wrap(self, function):
        def call(*arguments):
            with self._condition:
                self._condition.wait_for(
                    lambda: self._ending in (None, threading.get_ident())
                )
                self._running += 1
            try:
                return function(*arguments)
            finally:
                with self._condition:
                    self._running -= 1
                    self._condition.notify_all()

        return call

    def end(self):
        with self._condition:
            self._ending = threading.get_ident()
            self._condition.wait_for(lambda: self._running == 0)


@functools.cache
def library():
    """The library, loaded once. Its calls release the GIL."""
    loaded = ctypes.CDLL(str(find_library()))
    for name, (result, *parameters) in _SIGNATURES.items():
        function = getattr(loaded, name)
        function.restype, function.argtypes = result, parameters
    compilations = _Compilations()
    # A forked child has no threads of its parent to wait for.
    os.register_at_fork(after_in_child=compilations.__init__)
    atexit.register(compilations.end)
    for name in _COMPILERS:
        setattr(loaded, name, compilations.wrap(getattr(loaded, name)))
    return loaded


def raise_error(status, diagnostics=()):
    """Raises the exception of a VarlenStatus that is not VARLEN_OK, with the message
    of this thread's last call."""
    message = library().varlenGetLastError().decode(errors="replace")
    kind = _EXCEPTIONS.get(status, RuntimeError)
    raise kind(message, diagnostics) if kind is CompileError else kind(message)


def version():
    """The version of the library, such as "0.1.0"."""
    return library().varlenGetVersion().decode()


def identity():
    """What programs are for: the build of the library and the CPU, in words; None if
    the library cannot serialize them."""
    name = library().varlenGetIdentity()
    return None if name is None else name.decode()


def set_num_threads(threads):
    """Threads of a call that does not say how many; 0: all that the process may run
    on, which is the default."""
    if threads < 0:
        raise ValueError(f"expected a number of threads of at least 0, got {threads}")
    library().varlenSetNumThreads(threads)


def get_num_threads():
    """Threads of a call that does not say how many."""
    return library().varlenGetNumThreads()


def overlap_launches(overlap):
    """Whether kernels on a GPU may start while those before them in their stream still run,
    in the whole process: False at first."""
    library().varlenOverlapLaunches(bool(overlap))


# ===----------------------------------------------------------------------===#
# Programs and functions
# ===----------------------------------------------------------------------===#


def compile(source, *, strided=False, runtime_checks=False, target=None):
    """Compiles MLIR text or bytecode.

    `strided`: tensors may have any strides but the last, which is 1; without it
    they are dense. `runtime_checks`: also check what linalg, tensor and memref
    operations assume of dynamic extents. `target`: a row of the target table that
    this machine can run; None: the best.
    """
    if isinstance(source, str):
        source = source.encode()
    diagnostics = []

    @DiagnosticFn
    def keep(_, diagnostic):
        diagnostics.append(str(diagnostic.contents))

    options = _CompileOptions(
        ctypes.sizeof(_CompileOptions), target.encode() if target else None, keep, None,
        strided, runtime_checks,
    )  # fmt: skip
    handle = ctypes.c_void_p()
    status = library().varlenCompile(
        source, len(source), ctypes.byref(options), ctypes.byref(handle)
    )
    if status:
        raise_error(status, diagnostics)
    return Program(handle)


def deserialize(data):
    """The Program of what Program.serialize has returned, without compiling. Bytes
    that were changed are a ValueError, those of another build of the library or CPU
    a NotImplementedError. They are code: load them only from places that no other user can write to."""
    handle = ctypes.c_void_p()
    status = library().varlenProgramDeserialize(data, len(data), ctypes.byref(handle))
    if status:
        raise_error(status)
    return Program(handle)


def read_code(serialize, handle):
    """The bytes that a function of the library makes of an object."""
    c, code = library(), ctypes.c_void_p()
    status = serialize(handle, ctypes.byref(code))
    if status:
        raise_error(status)
    try:
        return ctypes.string_at(c.varlenCodeGetData(code), c.varlenCodeGetSize(code))
    finally:
        c.varlenCodeDestroy(code)


class Program:
    """A compiled module; destroyed with the last reference to it or a function."""

    def __init__(self, handle):
        self._handle = handle
        self._destroy = library().varlenProgramDestroy
        self._functions = {}

    def __del__(self):
        self._destroy(self._handle)

    def serialize(self):
        """The program as bytes, for processes whose `identity` is the same."""
        return read_code(library().varlenProgramSerialize, self._handle)

    def __getitem__(self, name):
        """The public function of that name; None: the only one."""
        if name not in self._functions:
            self._functions[name] = self._find(name)
        return Function(self, *self._functions[name])

    def _find(self, name):
        handle = ctypes.c_void_p()
        status = library().varlenProgramGetFunction(
            self._handle, name.encode() if name is not None else None, ctypes.byref(handle)
        )
        if status:
            raise_error(status)
        return handle, _read_signature(handle)


def read_parameters(handle, count, get):
    return tuple(get(handle, i).contents.read() for i in range(count(handle)))


def _read_signature(handle):
    c = library()
    return (
        c.varlenFunctionGetName(handle).decode(),
        read_parameters(handle, c.varlenFunctionGetNumArguments, c.varlenFunctionGetArgument),
        read_parameters(handle, c.varlenFunctionGetNumResults, c.varlenFunctionGetResult),
    )


class Function:
    """A function of a program: its `name`, `arguments` and `results` (Parameters)."""

    __slots__ = (
        "_call", "_handle", "_num_arguments", "_num_results", "_program", "arguments",
        "name", "pointers", "result_pointers", "results",
    )  # fmt: skip

    def __init__(self, program, handle, signature):
        self._program, self._handle = program, handle
        self.name, self.arguments, self.results = signature
        self._num_arguments, self._num_results = len(self.arguments), len(self.results)
        # Arrays of addresses: types, so that making one is one step.
        self.pointers = ctypes.c_void_p * self._num_arguments
        self.result_pointers = ctypes.c_void_p * self._num_results
        self._call = library().varlenFunctionCall

    def call(self, arguments, results, options=None):
        """Calls the function with `pointers(...)` and `result_pointers(...)`: results
        are written whole, and may overlap nothing else. `options`: of
        `call_options`."""
        status = self._call(
            self._handle, arguments, self._num_arguments, results, self._num_results,
            options,
        )  # fmt: skip
        if status:
            raise_error(status)

    def result_shapes(self, arguments):
        """The shapes of all results for `pointers(...)`, whose data may be null."""
        ranks = [len(result.shape) for result in self.results]
        extents = (ctypes.c_int64 * sum(ranks))()
        status = library().varlenFunctionGetResultShapes(
            self._handle, arguments, self._num_arguments, extents, len(extents)
        )
        if status:
            raise_error(status)
        ends = [sum(ranks[: i + 1]) for i in range(len(ranks))]
        return [tuple(extents[end - n : end]) for end, n in zip(ends, ranks)]

    def workspace_size(self, arguments, options=None):
        """Bytes of a workspace that is enough for these extents."""
        size = ctypes.c_size_t()
        status = library().varlenFunctionGetWorkspaceSize(
            self._handle, arguments, self._num_arguments, options, ctypes.byref(size)
        )
        if status:
            raise_error(status)
        return size.value


class Frame:
    """What calls of a function take, one at a time: making it costs more than a call, so
    frames are kept. `set_addresses(...)` takes those of the DLTensors of all arguments,
    then of all results, `call()` returns the status; `options` may be changed between
    calls."""

    __slots__ = ("_addresses", "_function", "call", "options", "set_addresses")

    def __init__(self, function):
        num_arguments, num_results = len(function.arguments), len(function.results)
        count, size = num_arguments + num_results, ctypes.sizeof(ctypes.c_void_p)
        self._function = function
        self._addresses = (ctypes.c_void_p * count)()
        self.set_addresses = functools.partial(
            struct.Struct(f"{count}P").pack_into, self._addresses, 0
        )
        self.options = call_options()
        begin = ctypes.addressof(self._addresses)
        # All arguments have the types of C, so that there is nothing to convert.
        self.call = functools.partial(
            plain("varlenFunctionCall"), function._handle,
            ctypes.c_void_p(begin), ctypes.c_size_t(num_arguments),
            ctypes.c_void_p(begin + num_arguments * size), ctypes.c_size_t(num_results),
            ctypes.byref(self.options),
        )  # fmt: skip


class Frames:
    """Frames of a function for any number of threads, made by `make(function)`."""

    __slots__ = ("_free", "_function", "_make")

    def __init__(self, function, make=Frame):
        self._function, self._make = function, make
        self._free = []  # its pop and append are atomic

    def take(self):
        try:
            return self._free.pop()
        except IndexError:
            return self._make(self._function)

    def give_back(self, frame):
        self._free.append(frame)


@functools.cache
def plain(name):
    """A function of the library without the conversions of `library`: all its arguments
    have the types of C."""
    return library()[name]


# ===----------------------------------------------------------------------===#
# DLPack
# ===----------------------------------------------------------------------===#

# They want the GIL, unlike the library's.
_get_name = ctypes.pythonapi.PyCapsule_GetName
_get_name.restype, _get_name.argtypes = ctypes.c_char_p, [ctypes.py_object]
_get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_get_pointer.restype = ctypes.c_void_p
_get_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]

# Where the DLTensor begins in a DLManagedTensorVersioned: version, context, deleter, flags.
_VERSIONED_OFFSET = 32


def dltensor_address(capsule):
    """The address of the DLTensor in a capsule of `__dlpack__`, with or without a
    version. It is valid as long as the capsule."""
    if _get_name(capsule) == b"dltensor_versioned":
        return _get_pointer(capsule, b"dltensor_versioned") + _VERSIONED_OFFSET
    return _get_pointer(capsule, b"dltensor")
