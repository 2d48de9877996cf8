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
from ._arrays import (
    COMMON_NAMES,
    Description,
    export_on_cuda,
    find_library,
    is_read_only,
    read_description,
    refuse_negative_view,
)
from ._attention import accumulation_element, kinds_of, make_source, source_error, type_of
from ._extents import check_extents
from ._launcher import find_target, load

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


def _library_of(array):
    name = find_library(array)
    for library in (_Torch, _Cupy):
        if name == library.name:
            return library
    if not hasattr(array, "__array_namespace__"):
        raise TypeError(
            "q: expected an array on a CUDA device of torch, cupy or a library that follows the "
            f"array API, got {type(array).__name__}"
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
    """A launch: operands, then results, then what is launched on both. All of it while q's
    device is the library's current one."""

    def __init__(self, operation, given, options, stream):
        self._operation, self._options = operation, options
        self._q = q = given["q"]
        self._library = _library_of(q)
        self._device = q.__dlpack_device__()
        # The library's allocator follows its current stream, and no other.
        self._waits = stream is not None
        if stream is None:
            if self._library.current_stream is None:
                raise ValueError(
                    f"stream: expected the handle of a CUDA stream for {type(q).__name__}, whose "
                    "library does not say which is current, got None"
                )
            stream = self._library.current_stream()
        self._stream = stream
        self._operands = {name: self._export(name, array) for name, array in given.items()}
        descriptions = {name: x.description for name, x in self._operands.items()}
        captures = options[-1].captures if options[-1] else {}
        kinds = kinds_of(captures)
        paged = "block_table" in given
        self._types = tuple(
            type_of(name, *description, kinds.get(name), paged=paged)
            for name, description in descriptions.items()
        )
        if descriptions["q"].element == "f64":
            raise TypeError("q: expected elements of f16, bf16, f32 on a CUDA device, got f64")
        check_extents({name: x.shape for name, x in descriptions.items()}, captures)
        self._descriptions = descriptions
        self._element = descriptions["q"].element

    def _export(self, name, array):
        address, owner = export_on_cuda(name, array, self._device, self._stream)
        tensor = _library.Tensor.from_address(address)
        return _Operand(tensor, read_description(name, tensor, array), owner)

    def empty(self, *shape, is_sum=False):
        """An array for a result, of q's elements or of those that sums are in."""
        dtype = self._q.dtype
        if is_sum:
            name = COMMON_NAMES[accumulation_element(self._element)]
            dtype = self._library.dtype(self._q, name)
        return self._library.empty(self._q, shape, dtype)

    def shape(self, name):
        return self._descriptions[name].shape

    def launch(self, results):
        """Has the results, by name, written."""
        operands = [*self._operands.values()]
        for name, array in results.items():
            refuse_negative_view(name, array)
            operands.append(self._export(name, array))
            if is_read_only(operands[-1].owner):
                raise ValueError(
                    f"{name}: expected an array that can be written, got a read-only one"
                )
        tensors = [operand.tensor for operand in operands]
        is_dense = all(map(_is_dense, tensors))
        launcher = self._find_launcher(is_dense)
        size = launcher.workspace_size(tensors)
        # From a library that aligns to less.
        bytes = self._library.dtype(self._q, "uint8")
        memory = self._library.empty(self._q, (size + _WORKSPACE_ALIGNMENT - 1,), bytes)
        workspace = self._export("workspace", memory)
        address = workspace.tensor.data + workspace.tensor.byte_offset
        address += -address % _WORKSPACE_ALIGNMENT
        launcher.launch(tensors, address, size, self._stream)
        if self._waits:
            launcher.check(address, self._stream)

    def _find_launcher(self, is_dense):
        key = self._operation, *self._operands, self._types, self._options
        source = _sources.get(key)
        if source is None:
            source = make_source(self._operation, self._descriptions, *self._options)
            _sources[key] = source
        try:
            return load(source, find_target(self._device[1]), strided=not is_dense)
        except _library.CompileError as error:
            raise source_error(error) from None


def _on_device_of_q(function):
    """Runs a function while the device of given["q"] is the current one of its library."""

    @functools.wraps(function)
    def run(given, *arguments):
        with _library_of(given["q"]).device(given["q"]):
            return function(given, *arguments)

    return run


@_on_device_of_q
def run(given, operation, options, results):
    """Has results, arrays by name, written, in the current stream of their library."""
    _Call(operation, given, options, None).launch(results)


@_on_device_of_q
def attn(given, options, out, return_lse, stream):
    """varlen.attn on arrays of a CUDA device."""
    call = _Call("attn", given, options, stream)
    rows, heads, _ = call.shape("q")
    shape = rows, heads, call.shape("v")[-1]
    if out is not None and tuple(out.shape) != shape:
        raise ValueError(f"out: expected an array of shape {shape}, got {tuple(out.shape)}")
    result = call.empty(*shape) if out is None else out
    lse = call.empty(heads, rows, is_sum=True)
    call.launch({"out": result, "lse": lse})
    return (result, lse) if return_lse else result


@_on_device_of_q
def attn_grad(given, options, stream):
    """varlen.attn_grad on arrays of a CUDA device."""
    call = _Call("attn_grad", given, options, stream)
    results = {f"d{name}": call.empty(*call.shape(name)) for name in ("q", "k", "v")}
    captures = options[-1].captures if options[-1] else ()
    for name in (*(["sink"] if "sink" in given else []), *captures):
        results[f"d{name}"] = call.empty(*call.shape(name), is_sum=True)
    call.launch(results)
    return tuple(results.values())


@_on_device_of_q
def attn_jvp(given, options, stream):
    """varlen.attn_jvp on arrays of a CUDA device."""
    call = _Call("attn_jvp", given, options, stream)
    rows, heads, _ = call.shape("q")
    results = {}
    for prefix in ("", "t"):
        results[f"{prefix}out"] = call.empty(rows, heads, call.shape("v")[-1])
        results[f"{prefix}lse"] = call.empty(heads, rows, is_sum=True)
    call.launch(results)
    return tuple(results.values())
