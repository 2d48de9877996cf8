"""Models of one node beside ONNX's reference implementation."""

import dataclasses

import numpy as np
import onnx
import varlen
import varlen.onnx
from onnx.reference import ReferenceEvaluator

# Largest error of a result beside its largest element.
TOLERANCES = {"f64": 1e-13, "f32": 3e-6, "f16": 5e-3, "bf16": 3e-2}


def model_of(
    op, inputs, outputs=1, *, dims=None, constants=(), opset=23, is_valid=True, **attributes
):
    """A model of one node.

    Args:
        inputs: Arrays; None where the node has no such input.
        outputs: How many, or the names, "" for those that are not wanted.
        dims: Of inputs by position: their extents, None or a name where dynamic. Others
            are static.
        constants: Positions of inputs that are initializers.
        is_valid: Whether the reference can run it.
    """
    names = ["" if array is None else f"x{i}" for i, array in enumerate(inputs)]
    outputs = [f"y{i}" for i in range(outputs)] if isinstance(outputs, int) else outputs
    node = onnx.helper.make_node(op, names, outputs, name=op.lower(), **attributes)
    infos, initializers = [], []
    for i, (name, array) in enumerate(zip(names, inputs)):
        if array is None:
            continue
        if i in constants:
            initializers.append(onnx.numpy_helper.from_array(array, name))
            continue
        type = onnx.helper.np_dtype_to_tensor_dtype(array.dtype)
        shape = (dims or {}).get(i, array.shape)
        infos.append(onnx.helper.make_tensor_value_info(name, type, shape))
    graph = onnx.helper.make_graph(
        [node], op, infos, [onnx.ValueInfoProto(name=n) for n in outputs if n], initializers
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", opset)])
    # Types of results, which a model has to have.
    results = run_reference(model, inputs, constants) if is_valid else inputs
    for info, array in zip(graph.output, results):
        type = onnx.helper.np_dtype_to_tensor_dtype(array.dtype)
        info.CopyFrom(onnx.helper.make_tensor_value_info(info.name, type, [None] * array.ndim))
    model.graph.CopyFrom(graph)
    return model


def feeds_of(inputs, constants=()):
    return {
        f"x{i}": array for i, array in enumerate(inputs) if array is not None and i not in constants
    }


def run_reference(model, inputs, constants=()):
    return [np.asarray(a) for a in ReferenceEvaluator(model).run(None, feeds_of(inputs, constants))]


@dataclasses.dataclass
class Case:
    name: str
    model: onnx.ModelProto
    inputs: list
    constants: tuple = ()
    tolerance: float | None = None


class Cases:
    """Cases that are compiled together: one module has a function for each."""

    def __init__(self):
        self.cases = []

    def add(self, op, inputs, *arguments, tolerance=None, **options):
        model = model_of(op, inputs, *arguments, **options)
        name = f"{op}_{len(self.cases)}"
        self.cases.append(Case(name, model, inputs, options.get("constants", ()), tolerance))

    def check(self):
        functions = [
            varlen.onnx.import_model(c.model, name=c.name, inline_bytes=64) for c in self.cases
        ]
        program = varlen.compile("\n".join(f.text for f in functions))
        failed = 0
        for case, function in zip(self.cases, functions):
            wanted = run_reference(case.model, case.inputs, case.constants)
            feeds = feeds_of(case.inputs)
            arguments = [*(feeds[name] for name in function.inputs), *function.weights.values()]
            got = program[case.name](*arguments)
            got = got if isinstance(got, tuple) else (got,)
            for name, ours, theirs in zip(function.outputs, got, wanted):
                message = difference(ours, theirs, case.tolerance)
                if message:
                    failed += 1
                    print(
                        f"{case.name} {name}: {message}\n{onnx.printer.to_text(case.model.graph)}"
                    )
        assert not failed, f"{failed} results differ"
        print(f"{len(self.cases)} models")


def difference(ours, theirs, tolerance=None):
    """What is wrong with an array; empty: nothing."""
    if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
        return f"expected {theirs.dtype} {theirs.shape}, got {ours.dtype} {ours.shape}"
    element = varlen.dtypes.name_of(theirs)
    if element not in TOLERANCES:
        return "" if np.array_equal(ours, theirs) else f"expected {theirs}, got {ours}"
    ours, theirs = varlen.dtypes.widen(ours), varlen.dtypes.widen(theirs)
    finite = np.isfinite(theirs)
    same = (ours == theirs) | (np.isnan(ours) & np.isnan(theirs))
    if not (same | finite).all():
        return f"expected {theirs}, got {ours}"
    largest = np.abs(theirs[finite]).max(initial=1e-30)
    error = np.abs(ours - theirs)[finite].max(initial=0) / largest
    limit = tolerance or TOLERANCES[element]
    return "" if error <= limit else f"expected an error of at most {limit}, got {error:.2e}"
