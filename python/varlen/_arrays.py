"""Arrays of any library that has DLPack: their DLTensors, and new ones of its kind.

Nothing is imported that the caller has not imported: an array's type leads to its
library.
"""

from __future__ import annotations

import ctypes
import functools
import operator
import sys
from typing import Any, NamedTuple, Protocol

from . import _library
from ._library import (
    BFLOAT, BOOL, CPU, CUDA, CUDA_HOST, CUDA_MANAGED, FLOAT, FLOAT8_E4M3FN, INT, UINT,
    Tensor,
)  # fmt: skip


class Array(Protocol):
    """An array that exports DLPack: numpy.ndarray, torch.Tensor, jax.Array, ..."""

    shape: Any
    dtype: Any

    def __dlpack__(self, **options: Any) -> Any: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...


# MLIR's names of elements by DLPack's kind and bits. MLIR's integers have no sign.
ELEMENTS = {
    (FLOAT, 16): "f16",
    (BFLOAT, 16): "bf16",
    (FLOAT, 32): "f32",
    (FLOAT, 64): "f64",
    (INT, 8): "i8",
    (INT, 16): "i16",
    (INT, 32): "i32",
    (INT, 64): "i64",
    (UINT, 8): "i8",
    (UINT, 16): "i16",
    (UINT, 32): "i32",
    (UINT, 64): "i64",
    (BOOL, 8): "i1",
    (FLOAT8_E4M3FN, 8): "f8E4M3FN",
}
# What others call them.
COMMON_NAMES = {
    "f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64",
    "i1": "bool", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64",
    "f8E4M3FN": "float8_e4m3fn",
}  # fmt: skip

# ===----------------------------------------------------------------------===#
# DLTensors
# ===----------------------------------------------------------------------===#

_get_pointer = _library._get_pointer
_VERSION = (1, 0)
# DLManagedTensorVersioned: version, context, deleter, flags, tensor.
_FLAGS_OFFSET, _TENSOR_OFFSET = 24, 32
# Packages that have more of their arrays than DLPack says.
_LIBRARIES = ("torch", "numpy", "jax", "jaxlib", "cupy")
_READ_ONLY = 1


def _export_versioned(array):
    capsule = array.__dlpack__(max_version=_VERSION)
    return _get_pointer(capsule, b"dltensor_versioned") + _TENSOR_OFFSET, capsule


def _export_plain(array):
    capsule = array.__dlpack__()
    return _get_pointer(capsule, b"dltensor"), capsule


_ML_DTYPES = {"bfloat16": BFLOAT, "float8_e4m3fn": FLOAT8_E4M3FN}


def _export_numpy(array):
    try:
        return _export_versioned(array)
    except BufferError:
        # It does not know the types of ml_dtypes.
        code = _ML_DTYPES.get(array.dtype.name)
        if code is None:
            raise
        address, capsule = _export_versioned(array.view(f"u{array.itemsize}"))
        Tensor.from_address(address).code = code
        return address, capsule


def find_library(array):
    """The name of the package that the array's type is of, or for a user's own type the one
    that it derives from."""
    return _find_library(type(array))


@functools.cache
def _find_library(array_type):
    names = [of.__module__.partition(".")[0] for of in array_type.__mro__]
    return next((name for name in names if name in _LIBRARIES), names[0])


class _ExchangeAPI(ctypes.Structure):
    """DLPackExchangeAPI of DLPack 1.2, up to the function that is used."""

    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("previous", ctypes.c_void_p),
        ("allocate", ctypes.c_void_p),
        ("managed_from_object", ctypes.c_void_p),
        ("managed_to_object", ctypes.c_void_p),
        ("tensor_from_object", ctypes.c_void_p),
    ]


def find_tensor_writer(array_type: type) -> Any:
    """The function (array, address) that writes an array's DLTensor: a tenth of the time
    that __dlpack__ takes, with nothing to release. None if the array's library
    has no exchange API of DLPack 1."""
    table = getattr(array_type, "__dlpack_c_exchange_api__", None)
    if table is None:
        return None
    api = _ExchangeAPI.from_address(_get_pointer(table, b"dlpack_exchange_api"))
    if api.major != _VERSION[0] or not api.tensor_from_object:
        return None
    function = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_void_p)
    return function(api.tensor_from_object)


def _refuse_gradient(tensor):
    """Refuses tensors of torch with derivatives, which results would not have."""
    if tensor.requires_grad and sys.modules["torch"].is_grad_enabled():
        raise ValueError(
            "expected torch tensors that need no gradient, got one with "
            "requires_grad: detach it, or use varlen.torch"
        )
    forward_ad = sys.modules["torch"].autograd.forward_ad
    if forward_ad._current_level >= 0 and forward_ad.unpack_dual(tensor).tangent is not None:
        raise ValueError("expected torch tensors without a tangent, got a dual tensor")


def _make_torch_exporter(array):
    fill = find_tensor_writer(type(array))

    def export(array):
        if not array.is_cpu:
            raise ValueError(
                f"expected a tensor in memory of the CPU, got one on {array.device}"
            )
        _refuse_gradient(array)
        tensor = Tensor()
        address = ctypes.addressof(tensor)
        try:
            if array.is_neg():
                array = array.resolve_neg()
            if fill is None:
                return _export_plain(array.detach())
            fill(array, address)
        except Exception:
            kind = name_layout(array) or _name_missing_memory(array)
            if kind:
                raise ValueError(f"expected a dense tensor, got {kind}") from None
            raise
        return address, (tensor, array)

    return export


def name_layout(tensor):
    """What a tensor of torch is that has no strided memory, in words; None if it has."""
    if tensor.is_nested:
        return "a nested one, of which values() and offsets() are the packed rows and cu_seqlens"
    if tensor.is_quantized:
        return "a quantized one"
    layout = str(tensor.layout)
    return None if layout == "torch.strided" else f"one of layout {layout}"


def _name_missing_memory(tensor):
    try:
        tensor.data_ptr()
    except RuntimeError:
        return "one without memory, such as those of torch.vmap and of tracing: use varlen.torch"
    return None


def refuse_masked(array):
    """Refuses arrays that have a mask beside their numbers, which nothing here reads."""
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(array, numpy.ma.MaskedArray):
        raise TypeError("expected an array without a mask, got a numpy.ma.MaskedArray")


def _has(array, method):
    """Whether it has a method of DLPack; a class of arrays is none itself."""
    return not isinstance(array, type) and hasattr(array, method)


def _find_exporter(array):
    refuse_masked(array)
    if not _has(array, "__dlpack__"):
        raise TypeError(
            "expected an array with __dlpack__, such as numpy.ndarray or "
            f"torch.Tensor, got {type(array).__name__}"
        )
    library = find_library(array)
    if library == "torch":
        return _make_torch_exporter(array)
    try:
        _export_versioned(array)
    except (TypeError, ValueError):
        # Older than DLPack 1.0: no such parameter, or a capsule without a version.
        return _export_plain
    except BufferError:
        pass
    return _export_numpy if library == "numpy" else _export_versioned


_exporters: dict[type, Any] = {}
# Types whose capsules have a version.
_with_version: set[type] = set()


def export(array):
    """The address of the array's DLTensor, and what has to live as long."""
    exporter = _exporters.get(type(array))
    if exporter is None:
        exporter = _exporters[type(array)] = _find_exporter(array)
        if exporter in (_export_numpy, _export_versioned):
            _with_version.add(type(array))
    return exporter(array)


def export_all(arrays):
    """Addresses of the DLTensors, and what has to live as long."""
    # Most arrays are of one kind; a call for each would cost as much as the rest.
    if _with_version.issuperset(map(type, arrays)):
        try:
            owners = [array.__dlpack__(max_version=_VERSION) for array in arrays]
        except BufferError:
            pass  # bfloat16 in numpy, or an array that cannot be exported.
        else:
            return [
                _get_pointer(owner, b"dltensor_versioned") + _TENSOR_OFFSET
                for owner in owners
            ], owners
    exported = [export(array) for array in arrays]
    return [address for address, _ in exported], exported


class Description(NamedTuple):
    """What types follow from."""

    element: str  # MLIR's name
    shape: tuple[int, ...]


def _named_error(name, error):
    """What an array's library says where it exports none, of the argument of that name. What
    DLPack cannot say of an array is a TypeError."""
    is_type = isinstance(error, (TypeError, BufferError))
    # PyTorch appends the place in its own code, and a stack trace.
    message = " ".join(str(error).split()).partition(" Exception raised from ")[0]
    return (TypeError if is_type else ValueError)(f"{name}: {message}")


def describe(name, array):
    """The Description of an argument that errors call `name`."""
    try:
        _refuse_traced(array)
        if _has(array, "__dlpack_device__") and not hasattr(array, "is_cpu"):
            check_device(*array.__dlpack_device__())
        address, _owner = export(array)
    except Exception as error:
        raise _named_error(name, error) from None
    return read_description(name, Tensor.from_address(address), array)


def check_description(name, description, rank, extents, elements):
    """That the array has that rank, of those extents by name, and one of the elements."""
    element, shape = description
    if len(shape) != rank:
        raise ValueError(
            f"{name}: expected an array of rank {rank} ({extents}), got shape {shape}"
        )
    if element not in elements:
        raise TypeError(f"{name}: expected elements of {', '.join(elements)}, got {element}")


def read_description(name, tensor, array):
    """The Description of the array, of which this is the DLTensor."""
    element = ELEMENTS.get((tensor.code, tensor.bits))
    if element is None or tensor.lanes != 1:
        raise TypeError(
            f"{name}: expected elements of {', '.join(COMMON_NAMES.values())}, got "
            f"{getattr(array, 'dtype', 'others')}"
        )
    shape = (ctypes.c_int64 * tensor.ndim).from_address(tensor.shape) if tensor.ndim else ()
    return Description(element, tuple(shape))


def _refuse_traced(array):
    if type(array).__module__.startswith("jax.") and isinstance(
        array, sys.modules["jax"].core.Tracer
    ):
        raise ValueError("expected an array with values, got one that jax traces: use varlen.jax")


def check_device(device, index):
    if device not in (CPU, CUDA_HOST, CUDA_MANAGED):
        kind = {2: "CUDA", 8: "Metal", 10: "ROCm"}.get(device, f"of DLPack's type {device}")
        raise ValueError(
            f"expected an array in memory of the CPU, got one on device {index} ({kind})"
        )


# ===----------------------------------------------------------------------===#
# Arrays on CUDA devices
# ===----------------------------------------------------------------------===#

# By type: a function that says of an array whether it is there; None if none is.
_device_tests: dict[type, Any] = {}


def _find_device_test(array):
    library = find_library(array)
    # jax's cannot be written to.
    if library in ("numpy", "jax", "jaxlib") or not _has(array, "__dlpack_device__"):
        return None
    return operator.attrgetter("is_cuda") if library == "torch" else _says_cuda


def _says_cuda(array):
    try:
        return array.__dlpack_device__()[0] == CUDA
    except Exception:
        return False  # describe() says of the argument what is wrong.


def is_on_cuda(array):
    """Whether kernels of a GPU have to read the array."""
    try:
        test = _device_tests[type(array)]
    except KeyError:
        test = _device_tests[type(array)] = _find_device_test(array)
    return test is not None and test(array)


def export_on_cuda(name, array, device, stream, first="q"):
    """As `export`, of an array that has to be on that device (DLPack's type and number), as the
    one called `first` is; what is in it, is there for work in the stream."""
    if not hasattr(array, "__dlpack_device__"):
        raise TypeError(f"{name}: expected an array with __dlpack__, got {type(array).__name__}")
    if tuple(array.__dlpack_device__()) != tuple(device):
        kind, number = array.__dlpack_device__()
        place = "in memory of the CPU" if kind == CPU else f"on device {number} (type {kind})"
        raise ValueError(
            f"{name}: expected an array on CUDA device {device[1]}, as {first} is, got one {place}"
        )
    try:
        if find_library(array) == "torch":
            _refuse_gradient(array)
            array = array.resolve_neg()
            fill = find_tensor_writer(type(array))
            if fill is not None:
                tensor = Tensor()
                fill(array, ctypes.addressof(tensor))
                return ctypes.addressof(tensor), (tensor, array)
            array = array.detach()
        # DLPack's number of the legacy default stream, which is 0 for CUDA.
        stream = stream or 1
        try:
            capsule = array.__dlpack__(stream=stream, max_version=_VERSION)
        except TypeError:
            capsule = array.__dlpack__(stream=stream)
    except Exception as error:
        raise _named_error(name, error) from None
    return _library.dltensor_address(capsule), capsule


# ===----------------------------------------------------------------------===#
# New arrays
# ===----------------------------------------------------------------------===#


class Maker:
    """Makes arrays of one library: `empty(shape, dtype)` has memory that may be
    written, `finish(array)` gives it to the caller; nothing to do unless `finishes`."""

    can_write, finishes = True, False

    def __init__(self, empty, dtype_of):
        self.empty, self.dtype_of = empty, functools.cache(dtype_of)

    def finish(self, array):
        return array


def _find_numpy_dtype(element):
    import numpy

    name = COMMON_NAMES[element]
    if name not in _ML_DTYPES:
        return numpy.dtype(name)
    try:
        import ml_dtypes
    except ImportError:
        raise ImportError(
            f"expected the package ml_dtypes for {name} in numpy: pip install ml_dtypes"
        ) from None
    return numpy.dtype(getattr(ml_dtypes, name))


def _find_standard_dtype(namespace, element):
    name = COMMON_NAMES[element]
    try:
        return getattr(namespace, name)
    except AttributeError:
        raise TypeError(
            f"expected a library of arrays that has {name}, got "
            f"{getattr(namespace, '__name__', 'one')} without"
        ) from None


class _JaxMaker(Maker):
    """jax's arrays do not change: what was written to numpy's is copied to them."""

    can_write, finishes = False, True

    def __init__(self):
        import numpy

        super().__init__(numpy.empty, _find_numpy_dtype)

    def finish(self, array):
        return sys.modules["jax"].numpy.asarray(array)


def _make_maker(array):
    library = find_library(array)
    if library == "torch":
        torch = sys.modules["torch"]
        return Maker(
            lambda shape, dtype: torch.empty(shape, dtype=dtype),
            lambda element: getattr(torch, COMMON_NAMES[element]),
        )
    if library in ("jax", "jaxlib"):
        return _JaxMaker()
    if library != "numpy" and hasattr(array, "__array_namespace__"):
        namespace = array.__array_namespace__()
        return Maker(
            lambda shape, dtype: namespace.empty(shape, dtype=dtype),
            lambda element: _find_standard_dtype(namespace, element),
        )
    import numpy

    return Maker(numpy.empty, _find_numpy_dtype)


_makers: dict[type, Maker] = {}


def maker_of(array):
    """The Maker of the library that the array is of; numpy's if that makes none."""
    maker = _makers.get(type(array))
    if maker is None:
        maker = _makers[type(array)] = _make_maker(array)
    return maker


def check_writable(name, array):
    """That the array may be written to, as far as its library says."""
    if not maker_of(array).can_write:
        raise ValueError(
            f"{name}: expected an array that can be written, got {type(array).__name__}"
        )
    refuse_negative_view(name, array)
    try:
        _, owner = export(array)
    except Exception as error:
        raise _named_error(name, error) from None
    if is_read_only(owner):
        raise ValueError(f"{name}: expected an array that can be written, got a read-only one")


def read_floats(array):
    """The numbers of an array of rank 1 and of f32 on the CPU whose stride is 1; of others none."""
    address, _owner = export(array)
    tensor = Tensor.from_address(address)
    if (tensor.ndim, tensor.code, tensor.bits) != (1, FLOAT, 32) or not tensor.data:
        return ()
    count = ctypes.c_int64.from_address(tensor.shape).value
    if tensor.strides and ctypes.c_int64.from_address(tensor.strides).value != 1 and count > 1:
        return ()
    return tuple((ctypes.c_float * count).from_address(tensor.data + tensor.byte_offset))


def refuse_unsigned(name, array, element):
    """MLIR's integers have no sign, but those of quantised rows have."""
    if element == "i8" and str(array.dtype).endswith("uint8"):
        raise TypeError(f"{name}: expected elements of int8, got {array.dtype}")


def refuse_negative_view(name, array):
    """Refuses a tensor of torch whose memory has its numbers with the other sign: DLPack cannot
    say so. What is read is resolved."""
    if find_library(array) == "torch" and array.is_neg():
        raise ValueError(
            f"{name}: expected an array that can be written, got a view with the negative bit"
        )


def is_read_only(owner):
    """Whether what `export` returns with an address says that the array is."""
    if isinstance(owner, tuple) or _library._get_name(owner) == b"dltensor":
        return False
    managed = _get_pointer(owner, b"dltensor_versioned")
    return bool(ctypes.c_uint64.from_address(managed + _FLAGS_OFFSET).value & _READ_ONLY)
