# RUN: %python %s | FileCheck %s
# CHECK: {{[1-9][0-9]+}} models

"""Gather, GatherElements and GatherND read what ONNX's reference does, and nothing that is
out of range."""

import numpy as np
import varlen
from checks import raises
from oracle import Cases, model_of
from varlen.onnx import ModelError, import_model

rng = np.random.default_rng(3)
cases = Cases()


def normal(*shape, dtype=np.float32):
    return rng.standard_normal(shape).astype(dtype)


def indices(extent, *shape, dtype=np.int64):
    """Some of them count from the end."""
    return rng.integers(-extent, extent, shape).astype(dtype)


cases.add("Gather", [normal(7, 3), np.array([[0, -1], [6, 2]])], dims={0: ["V", 3], 1: ["B", "S"]})
cases.add("Gather", [normal(2, 7, 3), indices(7, 2, dtype=np.int32)], axis=1)
cases.add("Gather", [normal(2, 7, 3), np.array(-2)], axis=1, constants=[1], dims={0: ["B", 7, 3]})

cases.add("GatherElements", [normal(3, 4, 5), indices(4, 3, 6, 5)], axis=1,
          dims={0: ["B", "S", 5], 1: ["B", "T", 5]})  # fmt: skip
cases.add("GatherElements", [normal(5), indices(5, 3)])
cases.add("GatherElements", [normal(5), indices(5, 0)], dims={1: ["N"]})
cases.add("GatherElements", [rng.random((2, 3)) < 0.5, indices(3, 2, 7, dtype=np.int32)], axis=1)

cases.add("GatherND", [normal(3, 4, 5), indices(3, 2, 6, 2)], dims={0: ["B", "S", 5], 1: ["C", "T", 2]})
cases.add("GatherND", [rng.random((3, 4)) < 0.5, indices(3, 2, 1, 1, 6, 2)], dims={0: ["B", "S"], 1: ["C", 1, 1, "T", 2]})
cases.add("GatherND", [normal(2, 3, 4, 5), indices(3, 2, 6, 1)], batch_dims=1,
          dims={0: ["B", "S", 4, 5], 1: ["B", "T", 1]})  # fmt: skip
cases.add("GatherND", [normal(2, 3, 4, 5), indices(4, 2, 3, 2)], batch_dims=2)
cases.add("GatherND", [normal(2, 3, 4), indices(2, 0, 2)], dims={1: ["T", 2]})
cases.add("GatherND", [normal(3, 1, 4), indices(1, 5, 3)])
cases.add("GatherND", [normal(3, 4), indices(3, 2)])
cases.add("GatherND", [normal(3, 4), indices(3, 0, 2)], dims={1: ["T", 2]})
cases.check()


def program_of(op, inputs, **options):
    return varlen.compile(import_model(model_of(op, inputs, **options)).text)


# Indices that are fewer than entries of other dimensions, which the reference has not.
data, some = normal(3, 4), indices(4, 2, 5)
elements = program_of(
    "GatherElements", [data, some], axis=-1, dims={0: ["B", "S"], 1: ["C", "T"]}, is_valid=False
)
assert np.array_equal(elements(data, some), np.take_along_axis(data[:2], some, 1))
raises(ValueError, "expected no more indices than entries of dimension 0", elements, data[:1], some)
for index in (-5, 4):
    raises(
        ValueError, "expected indices within the S entries of dimension 1",
        elements, data, np.full((2, 1), index),
    )  # fmt: skip

pairs = np.array([[2, 3], [-3, -4]])
entries = program_of("GatherND", [data, pairs], dims={0: ["B", "S"]})
assert np.array_equal(entries(data, pairs), [data[2, 3], data[0, 0]])
for i, index, dim in ((0, 3, "B entries of dimension 0"), (1, -5, "S entries of dimension 1")):
    wrong = pairs.copy()
    wrong[1, i] = index
    raises(ValueError, f"expected indices within the {dim}", entries, data, wrong)
raises(ValueError, "expected indices within the B entries", entries, data[:0], pairs)
batches = program_of("GatherND", [data, pairs[:, :1]], batch_dims=1, is_valid=False,
                     dims={0: ["B", 4], 1: ["C", 1]})  # fmt: skip
raises(ValueError, "expected data and indices of one extent of batch dimension 0", batches, data, pairs[:, :1])


def refused(message, op, inputs, **options):
    raises(ModelError, message, import_model, model_of(op, inputs, is_valid=False, **options))


refused("expected indices of 2 dimensions, as data has, got 3", "GatherElements", [data, some[None]])
refused("expected batch_dims of 0 and more, less than the 2 dimensions of data and the 2 of indices, got 2",
        "GatherND", [data, pairs], batch_dims=2)  # fmt: skip
refused("expected indices of 1 to 2 static coordinates, got 3", "GatherND", [data, pairs[:, [0, 1, 1]]])
refused("expected indices of 1 to 2 static coordinates, got ", "GatherND", [data, pairs], dims={1: [2, "K"]})
