# RUN: %python %s
# REQUIRES: torch, onnxscript

"""Models of PyTorch that call varlen_attn, exported by torch.onnx with torch_translations,
compute what they do in PyTorch."""

import warnings

import numpy as np
import onnx
import torch
import varlen
from checks import raises
from varlen import scores
from varlen.onnx import ModelError, import_model, torch_translations
from varlen.torch import varlen_attn

warnings.filterwarnings("ignore")
torch.manual_seed(0)


class Model(torch.nn.Module):
    """Projections, an attention and its lse. `options` are of varlen_attn; names among
    its values are of inputs."""

    def __init__(self, heads, kv_heads, d, dtype, options):
        super().__init__()
        self.heads, self.kv_heads, self.d = heads, kv_heads, d
        self.options = options
        self.inner = torch.nn.Linear(24, (heads + 2 * kv_heads) * d, dtype=dtype)

    def forward(self, x, cu_seqlens, others):
        rows = self.inner(x).view(-1, self.heads + 2 * self.kv_heads, self.d)
        q, k, v = rows.split([self.heads, self.kv_heads, self.kv_heads], 1)
        options = {
            name: [others[o] for o in value] if isinstance(value, list)
            else others[value] if isinstance(value, str) else value
            for name, value in self.options.items()
        }  # fmt: skip
        aux = varlen.torch.AuxRequest(lse=True)
        out, lse = varlen_attn(q, k, v, cu_seqlens, cu_seqlens, return_aux=aux, enable_gqa=True, **options)
        return out.flatten(1), lse


cu_seqlens = torch.tensor([0, 7, 7, 12])
rows, heads = 12, 4
others = {
    "used": torch.tensor([5, 0, 3]), "used_q": torch.tensor([4, 0, 5]), "offset": torch.tensor([1, 0, 2]),
    "sink": torch.randn(heads), "slopes": torch.randn(heads), "wide_sink": torch.randn(heads, dtype=torch.float64),
}  # fmt: skip
cases = {
    "causal": (torch.float32, {"window_size": (-1, 0), "sink": "sink", "scale": 0.3}),
    "used": (torch.float16, {"window_size": (2, 0), "seqused_k": "used", "seqused_q": "used_q"}),
    "chunk": (torch.float32, {"chunk": 4}),
    # A scale that f32 does not have.
    "wide": (torch.float64, {"scale": 1 / 3, "sink": "wide_sink", "score": scores.softcap(3.0)}),
    "score": (torch.float32, {"score": scores.alibi(), "captures": ["slopes"], "q_offset": "offset", "seqused_k": "used"}),
}  # fmt: skip
limits = {torch.float16: 2e-3, torch.float32: 1e-5, torch.float64: 1e-13}
functions, models = {}, {}
for name, (dtype, options) in cases.items():
    model = Model(heads, 2, 16, dtype, options).eval()
    wanted = {o for value in options.values() for o in (value if isinstance(value, list) else [value])
              if isinstance(o, str)}  # fmt: skip
    given = {o: others[o] for o in sorted(wanted)}
    x = torch.randn(rows, 24, dtype=dtype)
    tokens, sequences = torch.export.Dim("tokens"), torch.export.Dim("entries")
    exported = torch.onnx.export(
        model, (x, cu_seqlens), kwargs={"others": given}, dynamo=True, opset_version=23, verbose=False,
        dynamic_shapes={"x": {0: tokens}, "cu_seqlens": {0: sequences}, "others": {o: {} for o in given}},
        custom_translation_table=torch_translations(),
    ).model_proto  # fmt: skip
    functions[name] = import_model(exported, name=name)
    assert functions[name].text.count("varlen.attn ") == 1, functions[name].text
    models[name] = model, x, given, exported
program = varlen.compile("\n".join(function.text for function in functions.values()))
for name, function in functions.items():
    model, x, given, _ = models[name]
    arguments = [x, cu_seqlens, *given.values()]
    with torch.no_grad():
        expected = model(x, cu_seqlens, given)
    got = program[name](*(a.numpy() for a in arguments), *function.weights.values())
    for ours, theirs in zip(got, expected):
        theirs = theirs.numpy()
        finite = np.isfinite(theirs)
        assert ours.shape == theirs.shape and ours.dtype == theirs.dtype, name
        assert np.array_equal(finite, np.isfinite(ours)), name
        error = np.abs(ours.astype(float) - theirs)[finite].max() / np.abs(theirs[finite]).max()
        assert error < limits[model.inner.weight.dtype], (name, error)


def broken(name, change):
    model = onnx.ModelProto()
    model.CopyFrom(models[name][3])
    (node,) = (n for n in model.graph.node if n.op_type == "attn")
    change(node)
    return model


def set_score(node):
    for attribute in node.attribute:
        if attribute.name == "score":
            attribute.s = b"score (%score: f32) { varlen.yield %score : f32 } func.func @more() { return }"


raises(ModelError, "(varlen.attn, opset 1): ", import_model, broken("score", set_score))
raises(ModelError, "expected the captures of the score (slopes), got 0", import_model,
       broken("score", lambda node: node.input.pop()))  # fmt: skip
raises(ModelError, "expected an input cu_seqlens_k", import_model, broken("chunk", lambda node: node.input.pop()))
