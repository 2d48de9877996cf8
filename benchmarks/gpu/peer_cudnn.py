"""cuDNN's attention of packed batches, forward and backward, by the Python frontend of its
graph API. A plan is made once for a configuration; executing it can be captured."""

import functools
import itertools

import torch
from peer_batch import Refused


@functools.cache
def _frontend():
    try:
        import cudnn
    except ImportError as error:
        raise Refused(f"no frontend: {error}") from None
    return cudnn, cudnn.create_handle()


def _elements(cudnn, dtype):
    return {torch.bfloat16: cudnn.data_type.BFLOAT16, torch.float16: cudnn.data_type.HALF}[dtype]


class _Attention:
    """A graph of one operation under construction, and the tensors that it is executed on:
    packed rows are batches whose sequences begin at ragged offsets, in elements."""

    def __init__(self, shared, dtype):
        self.cudnn, self.handle = _frontend()
        self.shared, self.bindings, self.offsets = shared, {}, {}
        float32 = self.cudnn.data_type.FLOAT
        self.graph = self.cudnn.pygraph(
            io_data_type=_elements(self.cudnn, dtype), intermediate_data_type=float32,
            compute_data_type=float32, handle=self.handle,
        )  # fmt: skip
        self.of = {
            "q": (shared.cu_q, shared.longest_q), "k": (shared.cu_k, shared.longest_k)
        }  # fmt: skip
        self.sequences = len(shared.cu_q) - 1
        self.lengths = {
            side: self._bind(f"length_{side}", cu.diff(), (self.sequences, 1, 1, 1))
            for side, (cu, _) in self.of.items()
        }

    def _bind(self, name, data, shape, strides=None, dtype=None):
        """A tensor of the graph with its data."""
        if strides is None:
            strides = [*itertools.accumulate(reversed(shape[1:]), lambda a, b: a * b, initial=1)][
                ::-1
            ]
        dtype = dtype or self.cudnn.data_type.INT32
        tensor = self.graph.tensor(
            name=name, dim=list(shape), stride=list(strides), data_type=dtype
        )
        self.bindings[tensor] = data
        return tensor

    def _offsets(self, side, row):
        """Where sequences begin, where a token has `row` elements."""
        name = f"offsets_{side}_{row}"
        if name not in self.offsets:
            cu, _ = self.of[side]
            self.offsets[name] = self._bind(name, cu * row, (self.sequences + 1, 1, 1, 1))
        return self.offsets[name]

    def rows(self, name, data, side):
        """Packed rows (tokens, heads, head_dim)."""
        tensor = self._bind(
            name, data, *self._layout(data, side), _elements(self.cudnn, data.dtype)
        )
        tensor.set_ragged_offset(self._offsets(side, data.shape[1] * data.shape[2]))
        return tensor

    def _layout(self, data, side):
        (_, heads, d), longest = data.shape, self.of[side][1]
        return (self.sequences, heads, longest, d), (longest * heads * d, d, heads * d, 1)

    def result(self, tensor, data, side):
        """Packed rows that the operation writes."""
        shape, strides = self._layout(data, side)
        tensor.set_output(True).set_dim(list(shape)).set_stride(list(strides))
        tensor.set_ragged_offset(self._offsets(side, data.shape[1] * data.shape[2]))
        self.bindings[tensor] = data

    def statistics(self, data, tensor=None):
        """The log-sum-exp (tokens, heads), f32: an operand, or a result of the operation."""
        heads, longest = data.shape[1], self.of["q"][1]
        shape, strides = (self.sequences, heads, longest, 1), (longest * heads, 1, heads, 1)
        if tensor is None:
            tensor = self._bind("lse", data, shape, strides, self.cudnn.data_type.FLOAT)
        else:
            tensor.set_output(True).set_dim(list(shape)).set_stride(list(strides))
            tensor.set_data_type(self.cudnn.data_type.FLOAT)
            self.bindings[tensor] = data
        tensor.set_ragged_offset(self._offsets("q", heads))
        return tensor

    def options(self):
        """Those that both passes have."""
        shared = self.shared
        band = {}
        if shared.config.mask != "full":
            if shared.config.batch.q_lengths != shared.config.batch.k_lengths:
                raise Refused("wanted equal lengths of queries and keys for a mask")
            # Its left bound is the first distance that is hidden.
            left = shared.left + 1 if shared.left >= 0 else None
            right = shared.right if shared.right >= 0 else None
            band = {"diagonal_band_left_bound": left, "diagonal_band_right_bound": right}
            band = {name: bound for name, bound in band.items() if bound is not None}
        return {
            "attn_scale": shared.scale, "use_padding_mask": True,
            "seq_len_q": self.lengths["q"], "seq_len_kv": self.lengths["k"], **band,
        }  # fmt: skip

    def build(self):
        """Plans; returns a call that executes the plan in the current stream."""
        cudnn, graph, handle = self.cudnn, self.graph, self.handle
        try:
            graph.validate()
            graph.build_operation_graph()
            graph.create_execution_plans([cudnn.heur_mode.A, cudnn.heur_mode.FALLBACK])
            graph.check_support()
            graph.build_plans()
        except cudnn.cudnnGraphNotSupportedError as error:
            raise Refused(str(error).splitlines()[0][:300]) from None
        workspace = torch.empty(
            max(1, graph.get_workspace_size()), dtype=torch.uint8, device=self.shared.device
        )
        bindings = self.bindings

        def call():
            cudnn.set_stream(handle=handle, stream=torch.cuda.current_stream().cuda_stream)
            graph.execute(bindings, workspace, handle=handle)

        return call


def _check(shared, q):
    if q.shape[2] > 256:
        raise Refused("head_dim above 256")


def _forward(shared, q, k, v):
    """(call, out, lse): what the call writes."""
    _check(shared, q)
    attention = _Attention(shared, q.dtype)
    out = torch.zeros(*q.shape[:2], v.shape[2], dtype=q.dtype, device=q.device)
    lse = torch.zeros(*q.shape[:2], dtype=torch.float32, device=q.device)
    operands = attention.rows("q", q, "q"), attention.rows("k", k, "k"), attention.rows("v", v, "k")
    o, statistics = attention.graph.sdpa(
        *operands, generate_stats=True, name="sdpa", **attention.options()
    )
    attention.result(o, out, "q")
    attention.statistics(lse, statistics)
    return attention.build(), out, lse


def forward(shared):
    """A call on (q, k, v) for each set of inputs, planned when they are prepared."""

    def prepare(q, k, v):
        return _forward(shared, q, k, v)

    def call(execute, out, lse):
        execute()
        return out

    call.prepare = prepare
    return call


def gradients(shared, dout, q, k, v):
    """A call of the backward, on what its forward returns."""
    forward, out, lse = _forward(shared, q, k, v)
    forward()
    attention = _Attention(shared, q.dtype)
    operands = (
        attention.rows("q", q, "q"), attention.rows("k", k, "k"), attention.rows("v", v, "k"),
        attention.rows("o", out, "q"), attention.rows("dout", dout, "q"), attention.statistics(lse),
    )  # fmt: skip
    results = tuple(torch.empty_like(x) for x in (q, k, v))
    written = attention.graph.sdpa_backward(
        *operands, max_total_seq_len_q=q.shape[0], max_total_seq_len_kv=k.shape[0],
        name="sdpa_backward", **attention.options(),
    )  # fmt: skip
    for tensor, data, side in zip(written, results, "qkk"):
        attention.result(tensor, data, side)
    execute = attention.build()

    def call():
        execute()
        return results

    return call
