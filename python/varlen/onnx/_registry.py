"""The table of ONNX operators, and what an emitter sees of a node."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import onnx

from ._builder import Builder, ModelError

# From type numbers of ONNX.
ELEMENTS = {
    onnx.TensorProto.FLOAT: "f32", onnx.TensorProto.DOUBLE: "f64",
    onnx.TensorProto.FLOAT16: "f16", onnx.TensorProto.BFLOAT16: "bf16",
    onnx.TensorProto.INT64: "i64", onnx.TensorProto.INT32: "i32",
    onnx.TensorProto.INT16: "i16", onnx.TensorProto.INT8: "i8",
    onnx.TensorProto.BOOL: "i1",
}  # fmt: skip

# The domain of operators of Varlen's own.
OWN_DOMAIN, OWN_VERSION = "varlen", 1

# Emitters by domain, "" for ONNX's own, and operator. They take a Node and return its results: a Value, or a tuple
# with None where an optional one is not made.
EMITTERS: dict[tuple[str, str], Callable[..., Any]] = {}


def operator(*names, domain=""):
    """Registers an emitter of operators."""

    def register(emit):
        for name in names:
            EMITTERS[domain, name] = emit
        return emit

    return register


def key_of(proto):
    """The domain, "" for ONNX's own, and the operator of a node."""
    return "" if proto.domain == "ai.onnx" else proto.domain, proto.op_type


def element_of(data_type, what):
    """MLIR's name of an element type of ONNX."""
    if data_type not in ELEMENTS:
        name = onnx.TensorProto.DataType.Name(data_type)
        wanted = ", ".join(onnx.TensorProto.DataType.Name(t) for t in ELEMENTS)
        raise ModelError(f"{what}: expected an element type of {wanted}, got {name}")
    return ELEMENTS[data_type]


def describe(node, opsets):
    """The node, for messages. `opsets` has versions by domain."""
    named = f"'{node.name}' " if node.name else f"that makes '{node.output[0]}' "
    domain = node.domain or "ai.onnx"
    version = opsets.get("" if domain == "ai.onnx" else domain, "of none")
    return f"node {named}({domain}.{node.op_type}, opset {version})"


class Node:
    """A node with its inputs as values; those that it has not are None."""

    def __init__(self, builder: Builder, proto: onnx.NodeProto, opsets: dict[str, int], inputs):
        self.b = builder
        self.proto = proto
        self.opsets = opsets
        self.inputs: list[Any] = list(inputs)
        self._attributes = {a.name: a for a in proto.attribute}

    @property
    def op(self):
        return self.proto.op_type

    @property
    def stem(self):
        """What values of the node are called."""
        return self.proto.output[0]

    def error(self, message):
        return ModelError(f"{describe(self.proto, self.opsets)}: {message}")

    def attribute(self, name, default=None):
        if name not in self._attributes:
            return default
        value = onnx.helper.get_attribute_value(self._attributes[name])
        return value.decode() if isinstance(value, bytes) else value

    def input(self, i):
        return self.inputs[i] if i < len(self.inputs) else None

    def has_output(self, i):
        return i < len(self.proto.output) and self.proto.output[i] != ""

    def axis(self, axis, rank, what="axis"):
        """An axis from 0 to rank - 1 of one that may count from the end."""
        if not -rank <= axis < rank:
            raise self.error(f"expected {what} from {-rank} to {rank - 1}, got {axis}")
        return axis % rank

    def numbers(self, i, what):
        """The integers that input i holds, as far as they are known: ints and Extents."""
        value = self.input(i)
        if value.numbers is None:
            raise self.error(f"expected {what} to follow from constants and extents, got "
                             "values that are known only when the model runs")  # fmt: skip
        return list(value.numbers.reshape(-1))

    def integers(self, i, what):
        """As `numbers`, without Extents."""
        numbers = self.numbers(i, what)
        if not all(isinstance(n, int) for n in numbers):
            raise self.error(f"expected {what} to be constant, got {numbers}")
        return numbers
