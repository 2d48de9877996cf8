"""Attention on arrays in memory of a CUDA device: kernels that the C library compiles for
it, launched in the caller's stream.

Results and the workspace are arrays of the library that q is of. Where that allocates for a
stream of its own (torch, cupy), a call launches in that stream and returns before the
kernels are done: the workspace may go, as later work in the stream is all that can get its
memory. In a stream that the caller has named, a call waits.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import sys
from typing import NamedTuple

from . import _library
from ._append import append_source
from ._arrays import (
    COMMON_NAMES,
    Description,
    export_on_cuda,
    find_library,
    is_read_only,
    read_description,
    refuse_negative_view,
    refuse_unsigned,
)
from ._attention import accumulation_element, kinds_of, make_source, source_error, type_of
from ._extents import check_append_extents, check_extents
from ._launcher import find_target, load
from .text import WRITTEN

# Multiples at which a workspace begins, and at which rows of dense arrays do.
_WORKSPACE_ALIGNMENT, _ROW_ALIGNMENT = 256, 16

# ===----------------------------------------------------------------------===#
# Libraries of arrays
# ===----------------------------------------------------------------------===#


class _Torch:
    name = "torch"

    @staticmethod
    def device(array):
        return sys.modules["torch"].cuda.device(array.device)

    @staticmethod
    def current_stream():
        return sys.modules["torch"].cuda.current_stream().cuda_stream

    @staticmethod
    def dtype(array, name):
        return getattr(sys.modules["torch"], name)

    @staticmethod
    def empty(array, shape, dtype):
        return array.new_empty(shape, dtype=dtype)


class _Cupy:
    name = "cupy"

    @staticmethod
    def device(array):
        return array.device

    @staticmethod
    def current_stream():
        return sys.modules["cupy"].cuda.get_current_stream().ptr

    @staticmethod
    def dtype(array, name):
        return name

    @staticmethod
    def empty(array, shape, dtype):
        return sys.modules["cupy"].empty(shape, dtype)


class _Standard:
    """A library that follows the array API, which knows no streams."""

    name = None
    current_stream = None

    @staticmethod
    def device(array):
        return contextlib.nullcontext()

    @staticmethod
    def dtype(array, name):
        return getattr(array.__array_namespace__(), name)

    @staticmethod
    def empty(array, shape, dtype):
        return array.__array_namespace__().empty(shape, dtype=dtype, device=array.device)


def _library_of(called, array):
    name = find_library(array)
    for library in (_Torch, _Cupy):
        if name == library.name:
            return library
    if not hasattr(array, "__array_namespace__"):
        raise TypeError(
            f"{called}: expected an array on a CUDA device of torch, cupy or a library that "
            f"follows the array API, got {type(array).__name__}"
        )
    return _Standard


# ===----------------------------------------------------------------------===#
# Kernels
# ===----------------------------------------------------------------------===#


# Sources by what they follow from: to make one takes longer than to launch it.
_sources: dict[tuple, str] = {}


def _is_dense(tensor):
    """Whether rows can be copied whole: kernels for other arrays read single elements."""
    rank = tensor.ndim
    if rank > 2 and ((tensor.data or 0) + tensor.byte_offset) % _ROW_ALIGNMENT:
        return False
    if not tensor.strides or rank < 2:
        return True
    shape = (ctypes.c_int64 * rank).from_address(tensor.shape)
    strides = (ctypes.c_int64 * rank).from_address(tensor.strides)
    wanted = 1
    if 0 in shape:
        return True
    for extent, stride in zip(reversed(shape), reversed(strides)):
        if extent > 1 and stride != wanted:
            return False
        wanted *= extent
    return True


# ===----------------------------------------------------------------------===#
# Calls
# ===----------------------------------------------------------------------===#


class _Operand(NamedTuple):
    tensor: _library.Tensor
    description: Description
    owner: object  # what has to live as long


class _Call:
    """A launch: operands, then what is written, then what is launched on both. All of it while
    the device of the operand called `first` is the library's current one."""

    def __init__(self, given, stream, first="q"):
        self._name, self._first = first, given[first]
        self._library = _library_of(first, self._first)
        self._device = self._first.__dlpack_device__()
        # The library's allocator follows its current stream, and no other.
        self._waits = stream is not None
        if stream is None:
            if self._library.current_stream is None:
                raise ValueError(
                    "stream: expected the handle of a CUDA stream for "
                    f"{type(self._first).__name__}, whose library does not say which is current, "
                    "got None"
                )
            stream = self._library.current_stream()
        self._stream = stream
        self._operands = {name: self._export(name, array) for name, array in given.items()}

    def _export(self, name, array):
        address, owner = export_on_cuda(name, array, self._device, self._stream, self._name)
        tensor = _library.Tensor.from_address(address)
        return _Operand(tensor, read_description(name, tensor, array), owner)

    def empty(self, shape, dtype):
        """A new array, of a type of the first operand's or of that name."""
        if isinstance(dtype, str):
            dtype = self._library.dtype(self._first, dtype)
        return self._library.empty(self._first, shape, dtype)

    def describe(self):
        """The Descriptions of operands, by name."""
        return {name: x.description for name, x in self._operands.items()}

    def shape(self, name):
        return self._operands[name].description.shape

    def add_written(self, arrays):
        """Adds arrays, by name, that the kernels write to."""
        for name, array in arrays.items():
            refuse_negative_view(name, array)
            self._operands[name] = operand = self._export(name, array)
            if is_read_only(operand.owner):
                raise ValueError(
                    f"{name}: expected an array that can be written, got a read-only one"
                )

    def is_dense(self):
        return all(_is_dense(operand.tensor) for operand in self._operands.values())

    def launch(self, source, *, strided):
        """Launches the kernels of a source."""
        try:
            launcher = load(source, find_target(self._device[1]), strided=strided)
        except _library.CompileError as error:
            raise source_error(error) from None
        tensors = [operand.tensor for operand in self._operands.values()]
        size = launcher.workspace_size(tensors)
        # From a library that aligns to less.
        memory = self.empty((size + _WORKSPACE_ALIGNMENT - 1,), "uint8")
        workspace = self._export("workspace", memory)
        address = workspace.tensor.data + workspace.tensor.byte_offset
        address += -address % _WORKSPACE_ALIGNMENT
        launcher.launch(tensors, address, size, self._stream)
        if self._waits:
            launcher.check(address, self._stream)


class _Attention(_Call):
    """One of attention or its derivatives."""

    def __init__(self, operation, given, options, stream):
        super().__init__(given, stream)
        descriptions = self.describe()
        captures = options[-1].captures if options[-1] else {}
        kinds = kinds_of(captures)
        paged, quantised = "block_table" in given, operation == "attn"
        for name in ("k", "v"):
            refuse_unsigned(name, given[name], descriptions[name].element)
        types = tuple(
            type_of(name, *description, kinds.get(name), paged=paged, quantised=quantised)
            for name, description in descriptions.items()
        )
        self._element = descriptions["q"].element
        if self._element == "f64":
            raise TypeError("q: expected elements of f16, bf16, f32 on a CUDA device, got f64")
        check_extents({name: x.shape for name, x in descriptions.items()}, captures)
        self._key = operation, *given, types, options
        self._source = functools.partial(
            make_source, operation, descriptions, *options, quantised=quantised
        )

    def new(self, *shape, is_sum=False):
        """An array for a result, of q's elements or of those that sums are in."""
        sums = COMMON_NAMES[accumulation_element(self._element)]
        return self.empty(shape, sums if is_sum else self._first.dtype)

    def compute(self, results):
        """Has the results, by name, written."""
        self.add_written(results)
        source = _sources.get(self._key)
        if source is None:
            source = _sources[self._key] = self._source()
        self.launch(source, strided=not self.is_dense())


def _on_device_of(name):
    """Runs a function while the device of given[name] is the current one of its library."""

    def decorate(function):
        @functools.wraps(function)
        def run(given, *arguments):
            with _library_of(name, given[name]).device(given[name]):
                return function(given, *arguments)

        return run

    return decorate


@_on_device_of("q")
def attn(given, options, out, return_lse, stream):
    """varlen.attn on arrays of a CUDA device."""
    call = _Attention("attn", given, options, stream)
    rows, heads, _ = call.shape("q")
    shape = rows, heads, call.shape("v")[-1]
    if out is not None and tuple(out.shape) != shape:
        raise ValueError(f"out: expected an array of shape {shape}, got {tuple(out.shape)}")
    result = call.new(*shape) if out is None else out
    lse = call.new(heads, rows, is_sum=True)
    call.compute({"out": result, "lse": lse})
    return (result, lse) if return_lse else result


def _differentiate(operation, given, options, stream, captures):
    """The gradients of q, k, v, of a sink that there is, and of these captures."""
    call = _Attention(operation, given, options, stream)
    results = {f"d{name}": call.new(*call.shape(name)) for name in ("q", "k", "v")}
    for name in (*(["sink"] if "sink" in given else []), *captures):
        results[f"d{name}"] = call.new(*call.shape(name), is_sum=True)
    call.compute(results)
    return tuple(results.values())


@_on_device_of("q")
def attn_grad(given, options, stream):
    """varlen.attn_grad on arrays of a CUDA device."""
    captures = options[-1].captures if options[-1] else ()
    return _differentiate("attn_grad", given, options, stream, captures)


@_on_device_of("q")
def attn_jvp(given, options, stream):
    """varlen.attn_jvp on arrays of a CUDA device."""
    call = _Attention("attn_jvp", given, options, stream)
    rows, heads, _ = call.shape("q")
    results = {}
    for prefix in ("", "t"):
        results[f"{prefix}out"] = call.new(rows, heads, call.shape("v")[-1])
        results[f"{prefix}lse"] = call.new(heads, rows, is_sum=True)
    call.compute(results)
    return tuple(results.values())


@_on_device_of("q")
def attn_jvp_grad(given, options, stream):
    """varlen.attn_jvp_grad on arrays of a CUDA device."""
    captures = options[-1].captures if options[-1] else ()
    varied = [name for name in captures if f"t{name}" in given]
    return _differentiate("attn_jvp_grad", given, options, stream, varied)


@_on_device_of("k")
def append(given, interleaved, stream):
    """varlen.append on arrays of a CUDA device."""
    written = {name: given[name] for name in WRITTEN if name in given}
    call = _Call({name: x for name, x in given.items() if name not in written}, stream, "k")
    call.add_written(written)
    descriptions = call.describe()
    source = append_source(given, descriptions, interleaved)
    check_append_extents({name: x.shape for name, x in descriptions.items()})
    # Rows are written a number at a time, whatever their strides are.
    call.launch(source, strided=True)
