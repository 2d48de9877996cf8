"""Writes models: FOLDER/block.onnx, attention of 3-D inputs with projections, and
FOLDER/heads.onnx, of 4-D inputs with used rows of a cache; FOLDER/in.safetensors has inputs
of the first."""

import pathlib
import sys

import numpy as np
import onnx
import varlen
from onnx.helper import make_graph, make_model, make_node, make_opsetid, make_tensor_value_info

folder = pathlib.Path(sys.argv[1])
rng = np.random.default_rng(0)


def save(name, nodes, inputs, outputs, weights=()):
    infos = [
        [make_tensor_value_info(label, type, shape) for label, type, shape in values]
        for values in (inputs, outputs)
    ]
    initializers = [onnx.numpy_helper.from_array(array, label) for label, array in weights]
    graph = make_graph(nodes, name, *infos, initializers)
    onnx.save(make_model(graph, opset_imports=[make_opsetid("", 24)]), folder / f"{name}.onnx")


F32 = onnx.TensorProto.FLOAT
widths = {"wq": 64, "wk": 32, "wv": 32}
save(
    "block",
    [*(make_node("MatMul", ["x", w], [w[1]]) for w in widths),
     make_node("Attention", ["q", "k", "v"], ["y"], name="attention", is_causal=1, q_num_heads=4, kv_num_heads=2)],
    [("x", F32, ["B", "S", 5])], [("y", F32, ["B", "S", 64])],
    [(w, rng.standard_normal((5, n)).astype(np.float32)) for w, n in widths.items()],
)  # fmt: skip
save(
    "heads",
    [make_node("Attention", ["q", "k", "v", "", "", "", "used"], ["y"], name="attention")],
    [("q", F32, ["B", 4, "S", 16]), ("k", F32, ["B", 4, "T", 16]), ("v", F32, ["B", 4, "T", 16]),
     ("used", onnx.TensorProto.INT64, ["B"])],
    [("y", F32, ["B", 4, "S", 16])],
)  # fmt: skip
varlen.safetensors.write(
    folder / "in.safetensors", {"x": rng.standard_normal((2, 7, 5)).astype(np.float32)}
)
