"""Runs ONNX's own test models of one node that can be imported, and says why the others
cannot: `make conformance`."""

import collections
import re
import sys
import warnings

import numpy as np
import onnx
import varlen
from onnx.backend.test.case.node import collect_testcases
from oracle import difference
from varlen.onnx import ModelError, import_model

# ONNX's own tests allow for less.
TOLERANCES = {"f64": 1e-7, "f32": 2e-5}
# Compiled together.
GROUP = 40


def array_of(value):
    return onnx.numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else value


def import_all():
    """Cases with their functions, and how many are refused for which reason."""
    imported, refused = [], collections.Counter()
    for case in collect_testcases(None):
        if case.model is None:
            continue
        try:
            imported.append((case, import_model(case.model, name=case.name, inline_bytes=64)))
        except ModelError as error:
            # Without what it is of, and what differs from model to model.
            reason = re.sub(r"'[^']*'|\bgot .*|node .*?\): ", "", str(error))
            refused[reason.splitlines()[0][:100]] += 1
    return imported, refused


def check(program, case, function):
    """What is wrong with the results of a case."""
    names = [info.name for info in case.model.graph.input]
    for inputs, outputs in case.data_sets:
        feeds = dict(zip(names, map(array_of, inputs)))
        arguments = [np.array(feeds[name], order="C") for name in function.inputs]
        results = program[case.name](*arguments, *function.weights.values())
        results = results if isinstance(results, tuple) else (results,)
        for name, ours, theirs in zip(function.outputs, results, map(array_of, outputs)):
            theirs = np.asarray(theirs)
            tolerance = TOLERANCES.get(varlen.dtypes.name_of(theirs))
            message = difference(ours, theirs, tolerance)
            if message:
                yield f"{case.name} {name}: {message}"


def main():
    warnings.filterwarnings("ignore")
    imported, refused = import_all()
    failures = []
    for first in range(0, len(imported), GROUP):
        group = imported[first : first + GROUP]
        program = varlen.compile("\n".join(function.text for _, function in group))
        for case, function in group:
            failures += check(program, case, function)
    for reason, count in refused.most_common():
        print(f"{count:5} refused: {reason}")
    attentions = sum("varlen.attn" in function.text for _, function in imported)
    print(f"{len(imported)} models of ONNX run, {attentions} of them with attention")
    print("\n".join(failures))
    return int(bool(failures) or not imported)


if __name__ == "__main__":
    sys.exit(main())
