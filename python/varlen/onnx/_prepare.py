"""A model in the form that the importer reads: one graph of operators that it knows, with
functions in place of their calls, and operators that ONNX defines by others."""

from __future__ import annotations

import dataclasses

import onnx
import onnx.inliner
import onnx.shape_inference

from ._builder import ModelError
from ._registry import EMITTERS, describe, key_of

# What the emitters have been written for; ONNX's version converter has the others.
OPSETS = range(18, 29)

# The largest model: a function that calls another one twice, which does so too, is small
# as a file.
MAX_NODES = 1 << 18

# Operators that ONNX defines by loops and others that are not supported, which its
# definitions would be refused for, and what they are.
_REFUSED = {
    ("ai.onnx.preview", "FlexAttention"): "attention whose scores are changed by graphs",
    ("", "LinearAttention"): "attention without softmax, by a state of each head",
}


@dataclasses.dataclass
class Prepared:
    """A model without calls, and where nodes are from that it did not have.

    labels: What its own nodes make.
    defined: Operators in whose place ONNX's definitions are.
    """

    model: onnx.ModelProto
    labels: set[str]
    defined: list[str]

    def origin(self, node):
        """Where a node is from, for messages: nothing for one of the model."""
        if not self.defined or any(label in self.labels for label in node.output):
            return ""
        return f" (in ONNX's definition of {' or '.join(self.defined)})"


def opsets_of(model):
    """Versions by domain, "" for ONNX's own."""
    return {
        "" if entry.domain == "ai.onnx" else entry.domain: entry.version
        for entry in model.opset_import
    }


def check_opset(opsets):
    opset = opsets.get("")
    if opset not in OPSETS:
        raise ModelError(
            f"expected a model of opset {OPSETS[0]} to {OPSETS[-1]}, got {opset}: "
            "onnx.version_converter.convert_version makes one of another"
        )


def prepare(model: onnx.ModelProto, opsets) -> Prepared:
    """The model without calls of functions, but for those that have emitters."""
    try:
        onnx.checker.check_model(model)
    except (onnx.checker.ValidationError, RuntimeError, ValueError) as error:
        raise ModelError(f"expected a valid model: {error}") from None
    _check_size(model)
    try:
        model = onnx.inliner.inline_selected_functions(model, list(EMITTERS), exclude=True)
    except (RuntimeError, ValueError) as error:
        raise ModelError(f"the model's functions cannot be inlined: {error}") from None
    others = [
        n for n in model.graph.node if key_of(n) not in EMITTERS and n.op_type != "Constant"
    ]
    for node in others:
        if key_of(node) in _REFUSED:
            what = _REFUSED[key_of(node)]
            raise ModelError(f"{describe(node, opsets)}: {what} is not supported")
    if not others:
        return Prepared(model, set(), [])
    labels = {label for node in model.graph.node for label in node.output if label}
    names = sorted({node.op_type for node in others})
    for node in others:
        _add_defaults(node, opsets[""])
    try:
        # Of some operators the definition depends on types.
        model = onnx.shape_inference.infer_shapes(model)
        model = onnx.inliner.inline_selected_functions(
            model, list(EMITTERS), exclude=True, inline_schema_functions=True
        )
    except (onnx.shape_inference.InferenceError, RuntimeError, ValueError) as error:
        raise ModelError(
            f"ONNX cannot say what {', '.join(names)} are by its definitions: {error}"
        ) from None
    return Prepared(model, labels, names)


def _check_size(model):
    """That the model, whose functions are known not to call themselves, has a limited
    number of nodes where calls are replaced."""
    functions = {(f.domain, f.name, f.overload): f for f in model.functions}
    sizes: dict[tuple[str, str, str], int] = {}
    # Functions whose sizes are needed, callees above their callers.
    stack = list(functions)
    while stack:
        function = functions[stack[-1]]
        missing = {c for c in map(_callee, _nodes(function)) if c in functions and c not in sizes}
        if missing:
            stack += missing
        else:
            sizes[stack.pop()] = _size(function, sizes)
    size = _size(model.graph, sizes)
    if size > MAX_NODES:
        raise ModelError(
            f"expected a model of at most {MAX_NODES} nodes, got {size} with functions in place of their calls"
        )


def _callee(node):
    return node.domain, node.op_type, node.overload


def _nodes(graph):
    """All nodes of a graph or function, those of graphs in attributes, too."""
    stack = list(graph.node)
    while stack:
        node = stack.pop()
        yield node
        for attribute in node.attribute:
            for inner in (attribute.g, *attribute.graphs):
                stack += inner.node


def _size(graph, sizes):
    return sum(sizes.get(_callee(node), 1) for node in _nodes(graph))


def _add_defaults(node, opset):
    """Gives a node the attributes that it leaves to be what they are by default, which
    ONNX's inliner does not."""
    if node.domain not in ("", "ai.onnx") or not onnx.defs.has(node.op_type):
        return
    given = {attribute.name for attribute in node.attribute}
    for name, attribute in onnx.defs.get_schema(node.op_type, opset).attributes.items():
        if name not in given and attribute.default_value.type != onnx.AttributeProto.UNDEFINED:
            node.attribute.append(attribute.default_value)
