"""Functions of PyTorch for linalg-corpus.py, lowered to linalg by torch-mlir.

torch-mlir is made for one version of PyTorch's nightly builds and is not among what the
tests install, so what it makes is kept, in corpus-torch.mlir. This script writes it:

    pip install --no-deps torch-mlir==20261001
    PYTHONPATH=python python test/Integration/Inputs/corpus_torch.py
"""

import pathlib

import numpy as np
import torch
import torch.nn.functional as F
from corpus import Case, choose, floats, integers, positive

FILE = pathlib.Path(__file__).parent / "corpus-torch.mlir"
SEPARATOR = "// ----- "


def evaluate(case, with_gradients):
    """Results, and the cotangents of the floats among the inputs, all in f64."""
    inputs = [torch.from_numpy(np.asarray(x)) for x in case.widened()]
    moving = [x.requires_grad_(with_gradients) for x in inputs if x.is_floating_point()]
    results = case.function(*inputs)
    results = results if isinstance(results, tuple) else (results,)
    arrays = [x.detach().numpy() for x in results]
    if not with_gradients:
        return arrays, []
    varying = [x for x in results if x.requires_grad]
    cotangents = [torch.from_numpy(case.cotangent(tuple(x.shape))) for x in varying]
    gradients = torch.autograd.grad(
        varying, moving, cotangents, allow_unused=True, materialize_grads=True
    )
    return arrays, [x.numpy() for x in gradients]


def layer_norm(x, weight, bias):
    return F.layer_norm(x, x.shape[-1:], weight, bias)


def rms_norm(x, weight):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * weight


def rope(x, cos, sin):
    left, right = x.chunk(2, dim=-1)
    return x * cos + torch.cat([-right, left], dim=-1) * sin


def attention(q, k, v):
    scores = torch.einsum("qhd,khd->hqk", q, k) / q.shape[-1] ** 0.5
    mask = torch.ones(scores.shape[1:], dtype=torch.bool).tril()
    return torch.einsum("hqk,khd->qhd", scores.masked_fill(~mask, -torch.inf).softmax(-1), v)


def swiglu(x, gate, up, down):
    return (F.silu(x @ gate) * (x @ up)) @ down


M, N, V = (4, 6), (3, 6), (6,)

UNARY = {
    "abs": torch.abs, "ceil": torch.ceil, "cos": torch.cos, "exp": torch.exp,
    "expm1": torch.expm1, "floor": torch.floor, "neg": torch.neg, "round": torch.round,
    "sign": torch.sign, "sin": torch.sin, "tanh": torch.tanh, "atan": torch.atan,
    "erf": torch.erf, "relu": F.relu, "sigmoid": torch.sigmoid, "softplus": F.softplus,
    "silu": F.silu, "elu": F.elu, "gelu": F.gelu, "hardswish": F.hardswish,
    "leaky_relu": F.leaky_relu, "mish": F.mish, "logsigmoid": F.logsigmoid,
    "square": torch.square,
}  # fmt: skip
UNARY_POSITIVE = {
    "log": torch.log, "log2": torch.log2, "log1p": torch.log1p, "sqrt": torch.sqrt,
    "rsqrt": torch.rsqrt, "reciprocal": torch.reciprocal, "pow": lambda x: x**2.5,
}  # fmt: skip
BINARY = {
    "add": torch.add, "sub": torch.sub, "mul": torch.mul, "maximum": torch.maximum,
    "minimum": torch.minimum, "atan2": torch.atan2, "lerp": lambda x, y: torch.lerp(x, y, 0.3),
}  # fmt: skip

# Dynamic: extents of the inputs by position, as names; of one name they are one.
CASES = [
    *(Case(name, f, [floats(5)]) for name, f in UNARY.items()),
    *(Case(name, f, [positive(5)]) for name, f in UNARY_POSITIVE.items()),
    *(Case(name, f, [floats(*M), floats(*M)]) for name, f in BINARY.items()),
    # torch-mlir has 0.797724 for the root of 2 / pi.
    Case("gelu_tanh", lambda x: F.gelu(x, approximate="tanh"), [floats(5)], tolerance=1e-4),
    Case("div", torch.div, [floats(*M), positive(*M)]),
    Case("add_row", torch.add, [floats(*M), floats(6)], [("a", "b"), ("b",)]),
    Case("scalar_power", lambda x: x**3, [floats()]),
    Case("var_dynamic", lambda x: x.var(-1), [floats(*M)], [("a", "b")]),
    Case("mean_dynamic", torch.mean, [floats(*M)], [("a", "b")]),
    Case("embedding_dynamic", lambda table, i: F.embedding(i, table),
         [floats(7, 4), integers(7, 5).astype(np.int64)], [(None, None), ("a",)]),
    Case("add_broadcast", torch.add, [floats(2, 1, 6), floats(4, 1)]),
    # Without loops, and of extents 0 and 1.
    Case("scalar", lambda x, y: x.tanh() * y + 1, [floats(), floats()]),
    Case("one_row", lambda x: x.softmax(-1), [floats(1, 6)]),
    Case("one_column", lambda x: x.softmax(-1), [floats(6, 1)]),
    Case("one_product", torch.matmul, [floats(1, 1), floats(1, 1)]),
    Case("empty", lambda x: (2 * x).sum(0), [floats(0, 3)]),
    # Reductions.
    Case("sum", torch.sum, [floats(*M)]),
    Case("sum_rows", lambda x: x.sum(0), [floats(*M)]),
    Case("sum_keep", lambda x: x.sum(-1, keepdim=True), [floats(*M)]),
    Case("mean", torch.mean, [floats(*M)]),
    Case("mean_square", lambda x: (x**2).mean(), [floats(*M)]),
    Case("var", torch.var, [floats(*M)]),
    Case("std", lambda x: x.std(1), [floats(*M)]),
    Case("amax", lambda x: x.amax(1), [floats(*M)]),
    Case("max", torch.max, [floats(*M)]),
    Case("min_values", lambda x: x.min(1)[0], [floats(*M)]),
    Case("prod", lambda x: x.prod(1), [floats(*M)]),
    Case("argmax", lambda x: x.argmax(1), [floats(*M)]),
    Case("any", lambda x: (x > 1).any(1), [floats(*M)]),
    Case("norm", lambda x: x.norm(dim=-1), [floats(*M)]),
    Case("logsumexp", lambda x: x.logsumexp(-1), [floats(*M)]),
    Case("cumsum", lambda x: x.cumsum(1), [floats(*M)]),
    # Norms, losses.
    Case("softmax", lambda x: x.softmax(-1), [floats(*M)], [("a", "b")]),
    Case("softmax_first", lambda x: x.softmax(0), [floats(*M)]),
    Case("log_softmax", lambda x: x.log_softmax(-1), [floats(*M)]),
    Case("layer_norm", layer_norm, [floats(*M), floats(*V), floats(*V)], [("a", None), None, None]),
    Case("rms_norm", rms_norm, [floats(*M), floats(*V)], [("a", None), None]),
    Case("group_norm", lambda x: F.group_norm(x, 2), [floats(2, 4, 3)]),
    Case("normalize", lambda x: F.normalize(x, dim=-1), [floats(*M)]),
    Case("mse_loss", F.mse_loss, [floats(*M), floats(*M)]),
    Case("l1_loss", F.l1_loss, [floats(*M), floats(*M)]),
    Case("huber_loss", F.huber_loss, [floats(*M), floats(*M)]),
    Case("cross_entropy", F.cross_entropy, [floats(*M), integers(6, 4).astype(np.int64)]),
    Case("nll_loss", F.nll_loss, [floats(*M), integers(6, 4).astype(np.int64)]),
    Case("binary_cross_entropy", F.binary_cross_entropy_with_logits, [floats(*M), choose(*M)]),
    Case("kl_div", lambda x, y: F.kl_div(x, y, reduction="batchmean"), [floats(*M), positive(*M)]),
    # Shapes.
    Case("reshape", lambda x: x.reshape(2, 12), [floats(*M)]),
    Case("view_dynamic", lambda x: x.view(x.shape[0], 2, 3), [floats(*M)], [("a", None)]),
    Case("permute", lambda x: x.permute(2, 0, 1).contiguous(), [floats(2, 3, 4)]),
    Case("squeeze", lambda x: x.squeeze(1), [floats(4, 1, 3)]),
    Case("unsqueeze", lambda x: x.unsqueeze(1), [floats(*M)]),
    Case("expand", lambda x: x.expand(3, 6), [floats(1, 6)]),
    Case("flip", lambda x: x.flip(0), [floats(*M)]),
    Case("roll", lambda x: x.roll(2, 1), [floats(*M)]),
    Case("repeat", lambda x: x.repeat(2, 2), [floats(2, 3)]),
    Case("stack", lambda x, y: torch.stack([x, y]), [floats(*V), floats(*V)]),
    Case("cat", lambda x, y: torch.cat([x, y]), [floats(*M), floats(*N)],
         [("a", None), ("b", None)]),
    Case("cat_columns", lambda x, y: torch.cat([x.sin(), y], 1), [floats(3, 2), floats(3, 4)]),
    Case("split", lambda x: x.split(2, 1), [floats(*M)]),
    Case("slice", lambda x: x[1:3, ::2], [floats(*M)]),
    Case("narrow", lambda x: x.narrow(0, 1, 2), [floats(*M)]),
    Case("pad", lambda x: F.pad(x, (1, 2)), [floats(*M)]),
    Case("pad_value", lambda x: F.pad(x, (1, 0, 0, 2), value=7.0), [floats(*M)]),
    Case("tril", torch.tril, [floats(5, 5)]),
    Case("triu", lambda x: x.triu(1), [floats(5, 5)]),
    Case("where", torch.where, [choose(*M) > 0, floats(*M), floats(*M)]),
    Case("masked_fill", lambda x, m: x.masked_fill(m, -7.0), [floats(*M), choose(*M) > 0]),
    Case("clamp", lambda x: x.clamp(-0.5, 0.5), [floats(*M)]),
    Case("to_integers", lambda x: (3 * x).to(torch.int32), [floats(*M)]),
    Case("arange", lambda x: x + torch.arange(6), [floats(*M)]),
    Case("one_hot", lambda i: F.one_hot(i, 6), [integers(6, 4).astype(np.int64)]),
    # Places.
    Case("embedding", lambda table, i: F.embedding(i, table),
         [floats(7, 4), integers(7, 2, 3).astype(np.int64)]),
    Case("index_select", lambda x, i: x.index_select(0, i),
         [floats(*M), integers(4, 5).astype(np.int64)]),
    Case("gather", lambda x, i: x.gather(1, i), [floats(*M), integers(6, 4, 2).astype(np.int64)]),
    Case("index", lambda x, i: x[i], [floats(*M), integers(4, 5).astype(np.int64)]),
    Case("index_pairs", lambda x, i, j: x[i, j],
         [floats(*M), integers(4, 5).astype(np.int64), integers(6, 5).astype(np.int64)]),
    Case("index_add", lambda x, i, y: x.index_add(0, i, y),
         [floats(*M), np.array([2, 0, 2]), floats(3, 6)]),
    Case("slice_scatter", lambda x, y: x.slice_scatter(y, 0, 1, 3), [floats(*M), floats(2, 6)]),
    Case("topk", lambda x: x.topk(2)[0], [floats(*M)]),
    Case("sort", lambda x: x.sort()[0], [floats(*M)]),
    # Products.
    Case("mm", torch.mm, [floats(4, 6), floats(6, 5)], [("a", "b"), ("b", None)]),
    Case("bmm", torch.bmm, [floats(2, 4, 6), floats(2, 6, 5)],
         [("a", "b", None), ("a", None, "c")]),
    Case("matvec", torch.mv, [floats(4, 6), floats(6)]),
    Case("dot", torch.dot, [floats(6), floats(6)]),
    Case("outer", torch.outer, [floats(4), floats(6)]),
    Case("matmul_broadcast", torch.matmul, [floats(2, 4, 6), floats(6, 5)]),
    Case("linear", F.linear, [floats(4, 6), floats(5, 6), floats(5)], [("a", None), None, None]),
    Case("addmm", torch.addmm, [floats(5), floats(4, 6), floats(6, 5)]),
    Case("einsum_heads", lambda x, y: torch.einsum("qhd,khd->hqk", x, y),
         [floats(4, 2, 3), floats(5, 2, 3)]),
    Case("conv1d", F.conv1d, [floats(1, 2, 8), floats(3, 2, 3)]),
    Case("max_pool1d", lambda x: F.max_pool1d(x, 2), [floats(1, 2, 8)]),
    Case("avg_pool1d", lambda x: F.avg_pool1d(x, 2), [floats(1, 2, 8)]),
    # Parts of models.
    Case("rope", rope, [floats(5, 2, 8), floats(5, 1, 8), floats(5, 1, 8)]),
    Case("attention", attention, [floats(5, 2, 4), floats(5, 2, 4), floats(5, 2, 4)]),
    Case("scaled_dot_product_attention",
         lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
         [floats(1, 2, 5, 4), floats(1, 2, 5, 4), floats(1, 2, 5, 4)]),
    Case("sdpa_dynamic", F.scaled_dot_product_attention,
         [floats(1, 2, 5, 4), floats(1, 2, 5, 4), floats(1, 2, 5, 4)],
         3 * [(None, None, "a", None)]),
    Case("swiglu", swiglu, [floats(3, 4), floats(4, 6), floats(4, 6), floats(6, 4)]),
    Case("mlp", lambda x, w, b: F.gelu(F.linear(x, w, b)), [floats(3, 4), floats(5, 4), floats(5)]),
]  # fmt: skip


class Module(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *inputs):
        return self.function(*inputs)


def read():
    """What is kept: the module of each case by name."""
    parts = FILE.read_text(encoding="utf-8").split(SEPARATOR)[1:]
    return dict(part.split("\n", 1) for part in parts)


def lower(case):
    """The module that torch-mlir makes of a case."""
    from torch_mlir import fx

    dynamic = None
    if case.dynamic:
        given = {name for dims in case.dynamic for name in dims or () if name}
        names = {name: torch.export.Dim(name) for name in given}
        dynamic = (tuple(
            {d: names[name] for d, name in enumerate(dims or ()) if name} for dims in case.dynamic
        ),)  # fmt: skip
    inputs = tuple(torch.from_numpy(np.asarray(x)) for x in case.inputs)
    program = torch.export.export(Module(case.function), inputs, dynamic_shapes=dynamic)
    return str(fx.export_and_import(program, output_type=fx.OutputType.LINALG_ON_TENSORS))


def write():
    from importlib.metadata import version

    text = [f"// By corpus_torch.py, with torch-mlir {version('torch-mlir')} and PyTorch "
            f"{torch.__version__}.\n"]  # fmt: skip
    text += [f"{SEPARATOR}{case.name}\n{lower(case).strip()}\n" for case in CASES]
    FILE.write_text("".join(text), encoding="utf-8")


if __name__ == "__main__":
    write()
