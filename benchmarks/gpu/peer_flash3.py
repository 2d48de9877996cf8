"""FlashAttention 3 on packed batches, forward and backward, without a framework: the package
dew-flash-attn-cu13 has its kernels behind handlers of XLA's foreign function interface, which
are called here with frames as XLA makes them, in PyTorch's current stream."""

import ctypes
import functools
import lzma
import pathlib

import torch
from peer_batch import Refused, prepared
from peer_packages import CALLER, LIBRARY

HERE = pathlib.Path(__file__).resolve().parent
HEAD_DIMS = (64, 128, 192, 256)

# XLA's numbers of elements.
_PRED, _S64, _F64 = 1, 5, 12
_ELEMENTS = {torch.float16: 10, torch.float32: 11, torch.bfloat16: 16, torch.int32: 4}
_EXECUTE = 3
_allocator = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_size_t)


@functools.cache
def _libraries():
    """The caller of handlers and the package's library, which is unpacked first."""
    folder = HERE / "peers"
    packed, library, caller = folder / f"{LIBRARY}.xz", folder / LIBRARY, folder / CALLER
    if not caller.exists() or not (packed.exists() or library.exists()):
        raise Refused("the kit was made without it")
    if not library.exists():
        library.write_bytes(lzma.decompress(packed.read_bytes()))
    call = ctypes.CDLL(str(caller))
    call.makeContext.restype, call.callStage.restype = ctypes.c_void_p, ctypes.c_char_p
    return call, ctypes.CDLL(str(library))


class _Call:
    """A custom call: buffers are operands, then results."""

    def __init__(self, name, attributes, operands, results):
        self.caller, library = _libraries()
        self.handler = getattr(library, name)
        self.context = ctypes.c_void_p(self.caller.makeContext(None))
        # What handlers take as scratch lives as long as the call: graphs may have it.
        self.scratch = []
        self.allocate = _allocator(self._allocate)
        self.caller.setAllocator(self.context, self.allocate)
        self.device, self.buffers = operands[0].device, (*operands, *results)
        names, values = zip(*sorted(attributes.items()))
        self.values = [kind(value) for _, kind, value in values]
        self.dims = [(ctypes.c_int64 * x.dim())(*x.shape) for x in self.buffers]
        self.arguments = (
            len(names), (ctypes.c_char_p * len(names))(*(n.encode() for n in names)),
            (ctypes.c_int * len(names))(*(element for element, _, _ in values)),
            (ctypes.c_void_p * len(names))(*map(ctypes.addressof, self.values)),
            len(operands), len(self.buffers),
            (ctypes.c_void_p * len(self.buffers))(*(x.data_ptr() for x in self.buffers)),
            (ctypes.c_int * len(self.buffers))(*(_ELEMENTS[x.dtype] for x in self.buffers)),
            (ctypes.c_int * len(self.buffers))(*(x.dim() for x in self.buffers)),
            (ctypes.c_void_p * len(self.buffers))(*map(ctypes.addressof, self.dims)),
        )  # fmt: skip

    def _allocate(self, size):
        self.scratch.append(torch.empty(size, dtype=torch.uint8, device=self.device))
        return self.scratch[-1].data_ptr()

    def __call__(self):
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        self.caller.setStream(self.context, stream)
        error = self.caller.callStage(self.handler, _EXECUTE, self.context, *self.arguments)
        if error:
            raise RuntimeError(error.decode())


def _attributes(shared):
    return {
        "is_causal": (_PRED, ctypes.c_bool, shared.config.mask == "causal"),
        "max_seqlen": (_S64, ctypes.c_int64, shared.longest_q),
        "max_seqlen_k": (_S64, ctypes.c_int64, shared.longest_k),
        "softmax_scale": (_F64, ctypes.c_double, shared.scale),
        "window_size_left": (_S64, ctypes.c_int64, shared.left),
        "window_size_right": (_S64, ctypes.c_int64, shared.right),
    }


def _forward(shared, q, k, v):
    """(call, out, lse): what the call writes."""
    if q.shape[2] not in HEAD_DIMS:
        raise Refused(f"it has kernels of head_dim {', '.join(map(str, HEAD_DIMS))}")
    out = torch.zeros_like(q)
    lse = torch.zeros(q.shape[1], q.shape[0], dtype=torch.float32, device=q.device)
    # Results for split keys, which packed batches have not.
    parts = [lse.new_zeros((1,) * rank) for rank in (4, 3)]
    operands = (q, k, v, shared.cu_q, shared.cu_k)
    call = _Call("dew_flash3_mha_varlen_fwd", _attributes(shared), operands, (out, lse, *parts))
    return call, out, lse


def forward(shared):
    """A call on (q, k, v) for each set of inputs."""
    return prepared(lambda *inputs: _forward(shared, *inputs)[:2])


def gradients(shared, dout, q, k, v):
    """A call of the backward, on what its forward returns."""
    forward, out, lse = _forward(shared, q, k, v)
    forward()
    results = tuple(torch.empty_like(x) for x in (q, k, v))
    # Rows of each head, those of a sequence rounded up to a block of at most 128.
    rows = q.shape[1] * (q.shape[0] + 128 * len(shared.cu_q))
    scratch = [lse.new_empty(rows) for _ in range(2)]
    operands = (dout, q, k, v, out, lse, shared.cu_q, shared.cu_k)
    call = _Call("dew_flash3_mha_varlen_bwd", _attributes(shared), operands, (*results, *scratch))

    def run():
        call()
        return results

    return run
