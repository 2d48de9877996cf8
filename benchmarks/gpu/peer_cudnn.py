"""cuDNN's attention of packed batches, forward and backward, by the Python frontend of its
graph API. A plan is made once for a configuration; executing it can be captured."""

import functools

import torch
from peer_batch import Refused, prepared


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
    """A graph of one operation: packed rows are batches whose sequences begin at ragged
    offsets, in elements."""

    def __init__(self, shared, dtype):
        self.cudnn, self.handle = _frontend()
        self.shared, self.offsets = shared, {}
        self.constants = {}  # what it is executed on each time, by tensor
        self.named = {}  # tensors whose data each execution brings
        float32 = self.cudnn.data_type.FLOAT
        self.graph = self.cudnn.pygraph(
            io_data_type=_elements(self.cudnn, dtype), intermediate_data_type=float32,
            compute_data_type=float32, handle=self.handle,
        )  # fmt: skip
        self.of = {"q": (shared.cu_q, shared.longest_q), "k": (shared.cu_k, shared.longest_k)}
        self.sequences = len(shared.cu_q) - 1
        self.lengths = {
            side: self._constant(f"length_{side}", cu.diff(), self.sequences)
            for side, (cu, _) in self.of.items()
        }

    def _constant(self, name, data, count):
        """An operand of `count` integers."""
        tensor = self.graph.tensor(
            name=name, dim=[count, 1, 1, 1], stride=[1, 1, 1, 1],
            data_type=self.cudnn.data_type.INT32,
        )  # fmt: skip
        self.constants[tensor] = data.int()
        return tensor

    def _set_offsets(self, tensor, side, row):
        """Where sequences begin, where a token has `row` elements."""
        name = f"offsets_{side}_{row}"
        if name not in self.offsets:
            cu, _ = self.of[side]
            self.offsets[name] = self._constant(name, cu * row, self.sequences + 1)
        tensor.set_ragged_offset(self.offsets[name])

    def _layout(self, like, side):
        (_, heads, d), longest = like.shape, self.of[side][1]
        return [self.sequences, heads, longest, d], [longest * heads * d, d, heads * d, 1]

    def operand(self, name, like, side):
        """Packed rows (tokens, heads, head_dim)."""
        shape, strides = self._layout(like, side)
        tensor = self.graph.tensor(
            name=name, dim=shape, stride=strides, data_type=_elements(self.cudnn, like.dtype)
        )
        self._set_offsets(tensor, side, like.shape[1] * like.shape[2])
        self.named[name] = tensor
        return tensor

    def result(self, name, tensor, like, side):
        """Packed rows that the operation writes."""
        shape, strides = self._layout(like, side)
        tensor.set_output(True).set_dim(shape).set_stride(strides)
        self._set_offsets(tensor, side, like.shape[1] * like.shape[2])
        self.named[name] = tensor

    def statistics(self, heads, tensor=None):
        """The log-sum-exp (tokens, heads), f32: an operand, or a result of the operation."""
        longest, float32 = self.of["q"][1], self.cudnn.data_type.FLOAT
        shape, strides = [self.sequences, heads, longest, 1], [longest * heads, 1, heads, 1]
        if tensor is None:
            tensor = self.graph.tensor(name="lse", dim=shape, stride=strides, data_type=float32)
        else:
            tensor.set_output(True).set_dim(shape).set_stride(strides).set_data_type(float32)
        self._set_offsets(tensor, "q", heads)
        self.named["lse"] = tensor
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

    def plan(self):
        """Plans; returns a function that makes a call on tensors by name, which executes
        the plan in the current stream."""
        cudnn, graph, handle = self.cudnn, self.graph, self.handle
        try:
            graph.validate()
            graph.build_operation_graph()
            graph.create_execution_plans([cudnn.heur_mode.A, cudnn.heur_mode.FALLBACK])
            graph.check_support()
            graph.build_plans()
        except cudnn.cudnnGraphNotSupportedError as error:
            raise Refused(" ".join(str(error).split())[:300]) from None
        size = max(1, graph.get_workspace_size())
        workspace = torch.empty(size, dtype=torch.uint8, device=self.shared.device)

        def bind(**data):
            bindings = self.constants | {self.named[name]: x for name, x in data.items()}

            def call():
                cudnn.set_stream(handle=handle, stream=torch.cuda.current_stream().cuda_stream)
                graph.execute(bindings, workspace, handle=handle)

            return call

        return bind


def _plan(shared, name, make):
    """The plan of a pass, which all sets of inputs of a configuration share."""
    if name not in shared.plans:
        shared.plans[name] = make().plan()
    return shared.plans[name]


def _make_forward(shared, q, k, v):
    attention = _Attention(shared, q.dtype)
    operands = [attention.operand(*x) for x in (("q", q, "q"), ("k", k, "k"), ("v", v, "k"))]
    out, statistics = attention.graph.sdpa(
        *operands, generate_stats=True, name="sdpa", **attention.options()
    )
    attention.result("out", out, q, "q")
    attention.statistics(q.shape[1], statistics)
    return attention


def _make_backward(shared, q, k, v):
    attention = _Attention(shared, q.dtype)
    rows = ("q", q, "q"), ("k", k, "k"), ("v", v, "k"), ("out", q, "q"), ("dout", q, "q")
    operands = [attention.operand(*x) for x in rows]
    written = attention.graph.sdpa_backward(
        *operands, attention.statistics(q.shape[1]), max_total_seq_len_q=q.shape[0],
        max_total_seq_len_kv=k.shape[0], name="sdpa_backward", **attention.options(),
    )  # fmt: skip
    for name, tensor, like, side in zip(("dq", "dk", "dv"), written, (q, k, v), "qkk", strict=True):
        attention.result(name, tensor, like, side)
    return attention


def _forward(shared, q, k, v):
    """(call, out, lse): what the call writes."""
    if q.shape[2] > 256:
        raise Refused("head_dim above 256")
    bind = _plan(shared, "forward", lambda: _make_forward(shared, q, k, v))
    out = torch.zeros_like(q)
    lse = torch.zeros(*q.shape[:2], dtype=torch.float32, device=q.device)
    return bind(q=q, k=k, v=v, out=out, lse=lse), out, lse


def forward(shared):
    """A call on (q, k, v) for each set of inputs."""
    return prepared(lambda *inputs: _forward(shared, *inputs)[:2])


def gradients(shared, dout, q, k, v):
    """A call of the backward, on what its forward returns."""
    run, out, lse = _forward(shared, q, k, v)
    run()
    bind = _plan(shared, "backward", lambda: _make_backward(shared, q, k, v))
    dq, dk, dv = results = tuple(torch.empty_like(x) for x in (q, k, v))
    execute = bind(q=q, k=k, v=v, out=out, dout=dout, lse=lse, dq=dq, dk=dk, dv=dv)

    def call():
        execute()
        return results

    return call
