"""Compiled attention, and calls of it on tensors of PyTorch.

A kernel is compiled once for each element type, number of heads, head_dim, mask and
scale. Rows, sequences and strides are read from the tensors of each call: other
lengths compile nothing.
"""

import ctypes
import functools

import torch

from .. import _arrays, _library
from .._attention import _compile
from .._extents import find_rules

NAMES = {
    torch.float16: "f16",
    torch.bfloat16: "bf16",
    torch.float32: "f32",
    torch.float64: "f64",
    torch.int32: "i32",
    torch.int64: "i64",
}


@functools.cache
def find(
    module, more, dtype, index, heads, kv_heads, head_dim, v_head_dim, left, right, scale,
    seqused_k, sink, score, seqused_q, q_offset, chunk,
):  # fmt: skip
    """The kernel of one of the functions of `text`, `module`: of its operands and results, in
    its order. `index` is the dtype of cu_seqlens; the names of optional operands say whether
    there is one; `score` is one, or None; `chunk` is the size of chunks, or None; `more` are
    pairs of the name and the value of an option that not all modules have."""
    return Kernel(
        module, dtype, index, heads=heads, kv_heads=kv_heads, head_dim=head_dim,
        v_head_dim=v_head_dim, window=(left, right) if chunk is None else chunk, scale=scale,
        seqused_q=seqused_q, seqused_k=seqused_k, q_offset=q_offset, sink=sink, score=score,
        **dict(more),
    )  # fmt: skip


class Kernel:
    """A function of tensors, all on one device: compiled for the CPU, and for each kind of
    GPU, by the first call with such tensors. Operands are read and results, which are the
    last tensors, written."""

    __slots__ = ("_captures", "_compiled", "_source")

    def __init__(self, module, dtype, index, **options):
        if not dtype.is_floating_point or dtype not in NAMES:
            raise ValueError(
                "expected q, k and v of torch.float16, torch.bfloat16, torch.float32 or "
                f"torch.float64, got {dtype}"
            )
        if index.is_floating_point or index not in NAMES:
            raise ValueError(f"expected cu_seqlens of torch.int32 or torch.int64, got {index}")
        self._source = module(dtype=NAMES[dtype], index=NAMES[index], **options)
        score = options["score"]
        self._captures = score.captures if score else {}
        self._compiled = {}  # by the number of the device, -1 is the CPU

    def __call__(self, tensors):
        device = tensors[0].get_device()
        compiled = self._compiled.get(device)
        if compiled is None:
            compiled = self._compiled[device] = self._compile(device)
        compiled(tensors)

    def _compile(self, device):
        if device < 0:
            return OnCPU(self._source)
        from ._launches import OnCUDA

        rules = functools.partial(find_rules, captures=self._captures)
        return OnCUDA(self._source, rules, device)


class OnCPU:
    """A compiled function of tensors on the CPU: operands, then results. Operands may be copied,
    but not those that it writes to."""

    __slots__ = ("_frames", "_function")

    def __init__(self, source):
        self._function = _compile(source)
        self._frames = _library.Frames(self._function, _Frame)

    def __call__(self, tensors):
        frame = self._frames.take()
        try:
            for tensor, address in zip(tensors, frame.addresses, strict=True):
                export(tensor, address)
            threads = torch.get_num_threads()
            if threads != frame.threads:
                frame.set_threads(threads)
            status = frame.call()
            if status:
                _library.raise_error(status)
        except ValueError:
            arguments = self._function.arguments
            kept = {i for i, argument in enumerate(arguments) if argument.is_written}
            if not call_on_copies(self, tensors, len(arguments), kept):
                raise
        finally:
            self._frames.give_back(frame)


def call_on_copies(kernel, tensors, num_operands, kept=()):
    """Calls the kernel on copies of those tensors whose last stride is not 1, but for the
    operands with the numbers `kept`, and copies their results back; False if there are none."""
    copies = [x if i in kept else with_unit_stride(x) for i, x in enumerate(tensors)]
    if all(copy is tensor for copy, tensor in zip(copies, tensors)):
        return False
    kernel(copies)
    for copy, tensor in list(zip(copies, tensors))[num_operands:]:
        if copy is not tensor:
            tensor.copy_(copy)
    return True


def with_unit_stride(tensor):
    """The tensor, or a copy where the last stride is not 1, as of expanded gradients."""
    if tensor.dim() == 0 or tensor.stride(-1) == 1:
        return tensor
    return tensor.contiguous()


class _Frame(_library.Frame):
    """A frame with DLTensors of its own, whose `addresses` are those of its calls."""

    __slots__ = ("_openmp", "_parallel_for", "_tensors", "addresses", "threads")

    def __init__(self, function):
        super().__init__(function)
        count = len(function.arguments) + len(function.results)
        self._tensors = (_library.Tensor * count)()
        begin, size = ctypes.addressof(self._tensors), ctypes.sizeof(_library.Tensor)
        self.addresses = [begin + size * i for i in range(count)]
        self.set_addresses(*self.addresses)
        self.options.separate_writes = any(x.is_written for x in function.arguments)
        gomp_parallel, parallel_for = _find_openmp()
        self._openmp = _OpenMP(gomp_parallel, 0)
        self._parallel_for = parallel_for if gomp_parallel else None
        self.options.parallel_for_context = ctypes.addressof(self._openmp)
        self.threads = None

    def set_threads(self, threads):
        self.threads = self.options.num_threads = self._openmp.num_threads = threads
        # A single thread wakes no other.
        self.options.parallel_for = self._parallel_for if threads > 1 else None


class _OpenMP(ctypes.Structure):
    """VarlenOpenMP."""

    _fields_ = (("parallel", ctypes.c_void_p), ("num_threads", ctypes.c_int64))


@functools.cache
def _find_openmp():
    """The addresses of GOMP_parallel, None if PyTorch has no OpenMP, and of a
    parallelFor on it: PyTorch's threads do the work. They stay awake for a while after an
    operator, and threads of the library's own would wait for the cores."""
    gomp_parallel = getattr(ctypes.CDLL(None), "GOMP_parallel", None)
    parallel_for = _library.library().varlenParallelForOpenMP
    return tuple(
        function and ctypes.cast(function, ctypes.c_void_p).value
        for function in (gomp_parallel, parallel_for)
    )


export = _arrays.find_tensor_writer(torch.Tensor)
if export is None:
    raise ImportError(
        "varlen.torch: expected DLPack's exchange API of version 1 in PyTorch, got none "
        f"in {torch.__version__}"
    )
