"""Compiled attention, and calls of it on tensors of PyTorch.

A kernel is compiled once for each element type, number of heads, head_dim, mask and
scale. Rows, sequences and strides are read from the tensors of each call: other
lengths compile nothing.
"""

import ctypes
import functools
import typing

import torch

from .. import _library

_MLIR_NAMES = {
    torch.float16: "f16",
    torch.bfloat16: "bf16",
    torch.float32: "f32",
    torch.float64: "f64",
    torch.int32: "i32",
    torch.int64: "i64",
}
# Each is some 100 KiB; a scale or a window that changes all the time must not pile up.
_MAX_KERNELS = 256


def accumulation_type(dtype):
    """The dtype of lse and of sinks."""
    return torch.float64 if dtype == torch.float64 else torch.float32


class Geometry(typing.NamedTuple):
    """What a kernel is compiled for."""

    dtype: torch.dtype
    index: torch.dtype
    heads: int
    kv_heads: int
    head_dim: int
    value_dim: int
    left: int
    right: int
    scale: float | None
    has_seqused_k: bool
    has_sink: bool

    def describe(self, name):
        """The dtype and the rank of a tensor of that name."""
        return self._tensors()[name][0], len(self._tensors()[name][1])

    def type(self, name):
        """Its MLIR type."""
        dtype, shape = self._tensors()[name]
        extents = "".join(f"{'?' if extent is None else extent}x" for extent in shape)
        return f"tensor<{extents}{_MLIR_NAMES[dtype]}>"

    def _tensors(self):
        wide = accumulation_type(self.dtype)
        q = self.dtype, (None, self.heads, self.head_dim)
        k = self.dtype, (None, self.kv_heads, self.head_dim)
        v = self.dtype, (None, self.kv_heads, self.value_dim)
        out = self.dtype, (None, self.heads, self.value_dim)
        lse, sink = (wide, (self.heads, None)), (wide, (self.heads,))
        indices = self.index, (None,)
        return {
            "q": q, "k": k, "v": v, "out": out, "lse": lse, "sink": sink,
            "cu_seqlens_q": indices, "cu_seqlens_k": indices, "seqused_k": indices,
            "dout": out, "dlse": lse, "dq": q, "dk": k, "dv": v, "dsink": sink,
        }  # fmt: skip

    def module(self, operation, operands, results):
        """A function of one operation, with operands and results of these names."""
        required = [name for name in operands if name not in _CLAUSES]
        clauses = " ".join(f"{name}(%{name})" for name in operands if name in _CLAUSES)
        attributes = [f"mask = #varlen.mask<window = ({self.left}, {self.right})>"]
        if self.scale is not None:
            wide = _MLIR_NAMES[accumulation_type(self.dtype)]
            attributes.append(f"scale = {self.scale:.17e} : {wide}")

        def declare(name):
            return f'{self.type(name)} {{varlen.name = "{name}"}}'

        arguments = ", ".join(f"%{name}: {declare(name)}" for name in operands)
        declared = ", ".join(declare(name) for name in results)
        returned = ", ".join(self.type(name) for name in results)
        values = ", ".join(f"%r{i}" for i in range(len(results)))
        return f"""
func.func @{operation}({arguments}) -> ({declared}) {{
  {values} = varlen.{operation} {", ".join("%" + name for name in required)} {clauses}
      {{{", ".join(attributes)}}}
      : ({", ".join(self.type(name) for name in operands)}) -> ({returned})
  return {values} : {returned}
}}
"""


# Operands that follow the others as `name(%name)`, in the order of their types.
_CLAUSES = ("dlse", "seqused_k", "sink")


def _check(geometry):
    """What has to hold for there to be a module at all; its verifier does the rest."""
    if geometry.dtype not in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        raise ValueError(
            "expected q, k and v of torch.float16, torch.bfloat16, torch.float32 or "
            f"torch.float64, got {geometry.dtype}"
        )
    if geometry.index not in (torch.int32, torch.int64):
        raise ValueError(
            f"expected cu_seqlens of torch.int32 or torch.int64, got {geometry.index}"
        )
    return geometry


def _clauses(geometry):
    names = ["seqused_k"] if geometry.has_seqused_k else []
    return names + ["sink"] if geometry.has_sink else names


@functools.lru_cache(_MAX_KERNELS)
def forward(geometry):
    """The kernel (q, k, v, cu_seqlens_q, cu_seqlens_k[, seqused_k][, sink], out, lse)."""
    geometry = _check(Geometry(*geometry))
    operands = ["q", "k", "v", "cu_seqlens_q", "cu_seqlens_k", *_clauses(geometry)]
    return Kernel(geometry, "attn", operands, ["out", "lse"])


@functools.lru_cache(_MAX_KERNELS)
def backward(geometry, has_dlse):
    """The kernel (dout, q, k, v, out, lse, cu_seqlens_q, cu_seqlens_k[, dlse]
    [, seqused_k][, sink], dq, dk, dv[, dsink])."""
    geometry = _check(Geometry(*geometry))
    operands = ["dout", "q", "k", "v", "out", "lse", "cu_seqlens_q", "cu_seqlens_k"]
    operands += (["dlse"] if has_dlse else []) + _clauses(geometry)
    results = ["dq", "dk", "dv"] + (["dsink"] if geometry.has_sink else [])
    return Kernel(geometry, "attn_grad", operands, results)


class Kernel:
    """A compiled function of tensors on the CPU."""

    def __init__(self, geometry, operation, operands, results):
        module = geometry.module(operation, operands, results)
        self._function = _library.compile(module, strided=True)[None]
        self._num_operands = len(operands)
        self._described = [(name, *geometry.describe(name)) for name in [*operands, *results]]
        # Frames of calls that have returned; pop and append of a list are atomic.
        self._frames = []

    def __call__(self, tensors):
        """Reads the operands and writes the results, which are the last tensors."""
        try:
            frame = self._frames.pop()
        except IndexError:
            frame = _Frame(self._function)
        for tensor, address in zip(tensors, frame.addresses, strict=True):
            _export(tensor, address)
        frame.options.num_threads = torch.get_num_threads()
        try:
            self._function.call(frame.operands, frame.results, frame.options)
        except ValueError:
            self._check(tensors)
            copies = [_with_unit_stride(tensor) for tensor in tensors]
            if all(copy is tensor for copy, tensor in zip(copies, tensors)):
                raise
            self(copies)
            for copy, tensor in list(zip(copies, tensors))[self._num_operands :]:
                if copy is not tensor:
                    tensor.copy_(copy)
        finally:
            self._frames.append(frame)

    def _check(self, tensors):
        """Says what the library would say of a tensor in PyTorch's words."""
        for tensor, (name, dtype, rank) in zip(tensors, self._described):
            if tensor.dtype != dtype or tensor.dim() != rank:
                raise ValueError(
                    f"{name}: expected a tensor of {dtype} and rank {rank}, got one of "
                    f"{tensor.dtype} and rank {tensor.dim()}"
                )


def _with_unit_stride(tensor):
    """The tensor, or a copy where the last stride is not 1, as of expanded gradients."""
    return tensor if tensor.stride(-1) == 1 else tensor.contiguous()


class _Frame:
    """The DLTensors of one call, with their addresses."""

    def __init__(self, function):
        count = len(function.arguments) + len(function.results)
        self._tensors = (_library.Tensor * count)()
        begin, size = ctypes.addressof(self._tensors), ctypes.sizeof(_library.Tensor)
        self.addresses = [begin + size * i for i in range(count)]
        self.operands = function.pointers(*self.addresses[: len(function.arguments)])
        self.results = function.result_pointers(*self.addresses[len(function.arguments) :])
        self.options = _library.call_options()


class _ExchangeAPI(ctypes.Structure):
    """DLPackExchangeAPI, what PyTorch gives to C: two versions, a chain, functions."""

    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("previous", ctypes.c_void_p),
        ("allocate", ctypes.c_void_p),
        ("export_managed", ctypes.c_void_p),
        ("import_managed", ctypes.c_void_p),
        ("export_tensor", ctypes.c_void_p),
        ("current_stream", ctypes.c_void_p),
    )


def _find_export():
    """The function that writes the DLTensor of a torch.Tensor to an address: a tenth
    of the time that __dlpack__ takes, and nobody has to release anything."""
    get_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", ctypes.pythonapi)
    )
    capsule = torch.Tensor.__dlpack_c_exchange_api__
    api = _ExchangeAPI.from_address(get_pointer(capsule, b"dlpack_exchange_api"))
    if api.major != 1 or not api.export_tensor:
        raise ImportError(
            f"varlen.torch: expected version 1 of DLPack's exchange functions, got "
            f"{api.major}.{api.minor} of PyTorch {torch.__version__}"
        )
    function = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_void_p)
    return function(api.export_tensor)


_export = _find_export()
