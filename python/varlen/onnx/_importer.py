"""From a model of ONNX to a function of MLIR."""

from __future__ import annotations

import dataclasses
import os

import numpy as np
import onnx
import onnx.numpy_helper
import onnx.reference

# Each registers its operators.
from . import (  # noqa: F401
    _attention,
    _contrib,
    _convolution,
    _elementwise,
    _gathers,
    _own,
    _products,
    _reductions,
    _shapes,
)
from ._builder import Builder, ModelError, Value
from ._prepare import OPSETS, check_opset, opsets_of, prepare
from ._registry import EMITTERS, Node, describe, element_of, key_of

__all__ = ["OPSETS", "Function", "import_model"]

# Results of these differ from call to call.
_RANDOM = {
    "Bernoulli",
    "Multinomial",
    "RandomNormal",
    "RandomNormalLike",
    "RandomUniform",
    "RandomUniformLike",
}


@dataclasses.dataclass
class Function:
    """A function that was imported.

    name: What the text calls it.
    text: MLIR: func, linalg, tensor, arith, math, cf and varlen.
    inputs, outputs: Names of the model, which arguments and results have as varlen.name.
    weights: Arrays of the other arguments, by name, which come behind the inputs.
    """

    name: str
    text: str
    inputs: list[str]
    outputs: list[str]
    weights: dict[str, np.ndarray]


def import_model(model: str | os.PathLike | onnx.ModelProto, *, name: str = "main",
                 inline_bytes: int = 1024) -> Function:  # fmt: skip
    """The function that a model is.

    Args:
        model: A model, or the path of a file with one.
        name: The function's name.
        inline_bytes: Weights of at most as many bytes become constants in the text, the
            others arguments.

    Raises:
        ModelError: the model is not valid, or has what is not supported.
        OSError: the file cannot be read.
    """
    loaded = model if isinstance(model, onnx.ModelProto) else _load(model)
    opsets = opsets_of(loaded)
    check_opset(opsets)
    prepared = prepare(loaded, opsets)
    importer = _Importer(Builder(inline_bytes), opsets | opsets_of(prepared.model), prepared)
    return importer.import_graph(prepared.model.graph, name)


def _load(path):
    try:
        return onnx.load(path)
    except OSError:
        raise
    except Exception as error:  # protobuf's own types, and those of external data
        raise ModelError(f"{os.fspath(path)}: expected a model of ONNX: {error}") from None


class _Importer:
    def __init__(self, builder, opsets, prepared):
        self.b = builder
        self.opsets = opsets
        self.prepared = prepared
        self.values: dict[str, Value] = {}

    def import_graph(self, graph, name):
        arrays = {t.name: _array(t) for t in graph.initializer}
        if graph.sparse_initializer:
            raise ModelError("sparse initializers are not supported")
        inputs = [info for info in graph.input if info.name not in arrays]
        for info in inputs:
            self.values[info.name] = self._input(info)
        for label, array in arrays.items():
            self.values[label] = self.b.constant(array, label)
        for proto in graph.node:
            self._import_node(proto)
        outputs = [info.name for info in graph.output]
        for label in outputs:
            if label not in self.values:
                raise ModelError(f"output '{label}': no node makes it")
        text = self.b.text(name, [(self.values[label], label) for label in outputs])
        return Function(name, text, [info.name for info in inputs], outputs, self.b.weights)

    def _input(self, info):
        what = f"input '{info.name}'"
        if info.type.WhichOneof("value") != "tensor_type":
            raise ModelError(f"{what}: expected a tensor, got {info.type.WhichOneof('value')}")
        type = info.type.tensor_type
        element = element_of(type.elem_type, what)
        if not type.HasField("shape"):
            raise ModelError(f"{what}: expected a number of dimensions")
        shape = []
        for dim in type.shape.dim:
            kind = dim.WhichOneof("value")
            shape.append(dim.dim_value if kind == "dim_value" else dim.dim_param or None)
        return self.b.argument(info.name, shape, element)

    def _import_node(self, proto):
        where = describe(proto, self.opsets)
        if key_of(proto) not in EMITTERS and not self._is_constant(proto):
            origin = self.prepared.origin(proto)
            raise ModelError(f"{where}{origin}: the operator is not supported")
        inputs = []
        for label in proto.input:
            if label and label not in self.values:
                raise ModelError(f"{where}: no value '{label}'")
            inputs.append(self.values[label] if label else None)
        results = self._fold(proto, inputs)
        if results is None:
            node = Node(self.b, proto, self.opsets, inputs)
            try:
                results = EMITTERS[key_of(proto)](node)
            except ModelError as error:
                message = str(error).removeprefix(f"{where}: ")
                raise ModelError(f"{where}{self.prepared.origin(proto)}: {message}") from None
            results = [results] if isinstance(results, Value) else results
        for label, value in zip(proto.output, results):
            if label:
                self.values[label] = value

    def _is_constant(self, proto):
        """Whether ONNX's own evaluator computes the node here."""
        if key_of(proto)[0]:
            return False
        known = all(not label or self._array_of(label) is not None for label in proto.input)
        return (
            known
            and proto.op_type not in _RANDOM
            and not any(a.HasField("g") for a in proto.attribute)
        )

    def _array_of(self, label):
        value = self.values.get(label)
        return None if value is None else value.array

    def _fold(self, proto, inputs):
        """The results of a node all of whose inputs are constant."""
        if not self._is_constant(proto) or proto.op_type == "ConstantOfShape":
            return None
        opsets = [onnx.helper.make_opsetid("", self.opsets[""])]
        feeds = {label: value.array for label, value in zip(proto.input, inputs) if label}
        labels = [label for label in proto.output if label]
        inner = onnx.helper.make_graph(
            [proto], "constant",
            [onnx.helper.make_tensor_value_info(label, onnx.helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
             for label, array in feeds.items()],
            [onnx.ValueInfoProto(name=label) for label in labels],
        )  # fmt: skip
        try:
            model = onnx.helper.make_model(inner, opset_imports=opsets)
            arrays = onnx.reference.ReferenceEvaluator(model).run(labels, feeds)
        except Exception as error:  # whatever an implementation raises
            raise ModelError(
                f"{describe(proto, self.opsets)}: cannot be computed: {error}"
            ) from None
        made = dict(zip(labels, arrays))
        return [
            self._constant(proto, made[label], label) if label else None for label in proto.output
        ]

    def _constant(self, proto, array, label):
        array = np.asarray(array)
        element_of(onnx.helper.np_dtype_to_tensor_dtype(array.dtype), describe(proto, self.opsets))
        return self.b.constant(array, label)


def _array(tensor):
    element_of(tensor.data_type, f"initializer '{tensor.name}'")
    return onnx.numpy_helper.to_array(tensor)
