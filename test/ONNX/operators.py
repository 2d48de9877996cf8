# RUN: %python %s | FileCheck %s
# CHECK: {{[1-9][0-9]+}} models

"""Operators around attention compute what ONNX's reference does."""

import ml_dtypes
import numpy as np
from oracle import Cases

rng = np.random.default_rng(1)
cases = Cases()


def normal(*shape, dtype=np.float32):
    return rng.standard_normal(shape).astype(dtype)


def integers(*values, dtype=np.int64):
    return np.array(values, dtype)


x, y = normal(3, 5), normal(3, 5)
rows = {0: ["N", 5], 1: ["N", 5]}

# Elementwise: dynamic extents, broadcasts on either side, scalars, other types.
for op in ("Add", "Sub", "Mul", "Div", "Max", "Min"):
    cases.add(op, [x, y], dims=rows)
cases.add("Add", [normal(2, 1, 5), normal(4, 1)], dims={0: ["B", 1, "D"]})
cases.add("Mul", [normal(4, 3), normal(2, 1, 3)], dims={0: [None, 3], 1: [None, 1, 3]})
cases.add("Sub", [normal(2, 3), np.array(0.3, np.float32)], constants=[1])
cases.add("Sum", [x, y, normal(5)])
for dtype in (np.float64, np.float16, ml_dtypes.bfloat16):
    cases.add("Add", [x.astype(dtype), y.astype(dtype)], dims=rows)
cases.add("Mul", [integers(3, -4), integers(-5, 6)])
cases.add("Div", [integers(7, -7), integers(2)], constants=[1])
for op in (
    "Exp",
    "Erf",
    "Tanh",
    "Sigmoid",
    "Sin",
    "Cos",
    "Neg",
    "Abs",
    "Relu",
    "Reciprocal",
    "Round",
    "Floor",
    "Ceil",
):
    cases.add(op, [x], dims=rows)
for op in ("Sqrt", "Log"):
    cases.add(op, [np.abs(x)])
cases.add("Sigmoid", [np.array([-200, 200, -np.inf, np.inf, np.nan], np.float32)])
cases.add("Clip", [x, np.array(-0.5, np.float32), np.array(0.5, np.float32)])
cases.add("Clip", [x, None, np.array(0.5, np.float32)], constants=[2])
cases.add("Clip", [integers(-3, 5), np.array(0), np.array(4)])
cases.add("Gelu", [x], dims=rows)
cases.add("Gelu", [x], approximate="tanh")
cases.add("Gelu", [x.astype(np.float16)], approximate="tanh")
for exponent in (2.0, 0.5, 1.7):
    cases.add("Pow", [np.abs(x), np.array(exponent, np.float32)], constants=[1])
cases.add("Pow", [np.abs(x), y])
for op in ("Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"):
    cases.add(op, [integers(1, 2, 3), integers(2)])
cases.add("Less", [x, y])
cases.add("And", [x > 0, y > 0])
cases.add("Not", [x > 0])
cases.add("Where", [x > 0, x, np.array(-1, np.float32)])
cases.add("IsNaN", [np.array([np.nan, 1, np.inf], np.float32)])
for to in (1, 6, 7, 9, 10, 11, 16):
    cases.add("Cast", [x * 3], to=to)
cases.add("Cast", [x > 0], to=1)
cases.add("Cast", [integers(-3, 5, 0)], to=9)
cases.add("Cast", [x.astype(np.float16)], to=16)

# By ONNX's own definitions.
cases.add("LeakyRelu", [x], alpha=0.1)
cases.add("Softplus", [x])
cases.add("HardSwish", [x])
cases.add("Swish", [x], opset=24)

# Products.
for left, right in (((4, 3), (3, 5)), ((2, 4, 3), (3, 5)), ((2, 4, 3), (2, 3, 5)), ((3,), (3, 5)), ((4, 3), (3,)),
                    ((2, 1, 4, 3), (6, 3, 5)), ((2, 4, 3), (1, 3, 1)), ((3,), (3,))):  # fmt: skip
    cases.add("MatMul", [normal(*left), normal(*right)])
cases.add(
    "MatMul",
    [normal(2, 7, 4, 3), normal(2, 7, 3, 5)],
    dims={0: ["B", 7, "S", 3], 1: ["B", 7, 3, "T"]},
)
cases.add("MatMul", [normal(2, 4, 3), normal(3, 5)], dims={0: ["B", "S", 3]}, constants=[1])
for dtype in (np.float64, np.float16, ml_dtypes.bfloat16):
    cases.add("MatMul", [normal(2, 4, 6, dtype=dtype), normal(6, 5, dtype=dtype)])
cases.add("Gemm", [normal(4, 3), normal(3, 5)])
cases.add(
    "Gemm", [normal(4, 3), normal(5, 3), normal(5)], transB=1, dims={0: ["N", 3]}, constants=[1, 2]
)
cases.add("Gemm", [normal(3, 4), normal(3, 5), normal(4, 1)], transA=1, alpha=0.5, beta=2.0)

# Reductions.
z = normal(2, 3, 4)
for op in ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceSumSquare"):
    cases.add(op, [z, integers(-1)], dims={0: ["B", None, 4]}, constants=[1])
cases.add("ReduceMean", [z, integers(0, 2)], dims={0: ["B", None, 4]}, constants=[1], keepdims=0)
cases.add("ReduceSum", [z])
cases.add("ReduceSum", [z], noop_with_empty_axes=1)
cases.add("ReduceMean", [z.astype(np.float16), integers(1)], constants=[1])
for dtype in (np.float32, np.float64, np.float16, np.int64, np.int32):
    for exclusive, reverse in ((0, 0), (1, 0), (0, 1), (1, 1)):
        cases.add(
            "CumSum", [(4 * normal(2, 5, 3)).astype(dtype), np.array(1)], constants=[1],
            dims={0: ["B", "S", 3]}, exclusive=exclusive, reverse=reverse,
        )  # fmt: skip
cases.add("CumSum", [normal(7), np.array(-1)], constants=[1])
cases.add("CumSum", [normal(1, 1), np.array(0)], constants=[1], exclusive=1)
cases.add("CumSum", [normal(3, 0), np.array(1)], constants=[1], dims={0: ["B", "S"]})
cases.add("Softmax", [z], dims={0: [None, None, None]})
cases.add("Softmax", [z], axis=1)
cases.add("Softmax", [np.array([[-np.inf, 0, 1], [300, 301, -300]], np.float32)])
cases.add("LogSoftmax", [z])
cases.add(
    "LayerNormalization", [z, normal(4), normal(4)], 3, dims={0: ["B", "S", 4]}, constants=[1, 2]
)
cases.add("LayerNormalization", [z, normal(3, 4)], ["y0"], axis=1, epsilon=1e-3)
cases.add(
    "LayerNormalization",
    [z.astype(ml_dtypes.bfloat16), np.ones(4, ml_dtypes.bfloat16)],
    ["y0"],
    axis=-1,
)
cases.add("RMSNormalization", [z, normal(4)], dims={0: ["B", "S", 4]}, constants=[1])
cases.add("RMSNormalization", [z.astype(np.float16), normal(4, dtype=np.float16)])

# Rotary embeddings: of 4 and 3 dimensions, halves and neighbours, a part of head_dim.
positions = np.array([[0, 1, 5], [2, 2, 0]], np.int64)
cos, sin = normal(6, 4), normal(6, 4)
for interleaved in (0, 1):
    cases.add("RotaryEmbedding", [normal(2, 2, 3, 8), cos, sin, positions], interleaved=interleaved)
cases.add("RotaryEmbedding", [normal(2, 3, 16), cos, sin, positions], num_heads=2)
cases.add(
    "RotaryEmbedding",
    [normal(2, 2, 3, 12), normal(2, 3, 4), normal(2, 3, 4)],
    rotary_embedding_dim=8,
)

# Shapes.
cases.add("Reshape", [z, integers(6, 4)], constants=[1])
cases.add("Reshape", [z, integers(0, -1, 2)], dims={0: ["B", "S", 4]}, constants=[1])
cases.add("Reshape", [z, integers(-1, 4)], dims={0: ["B", "S", 4]}, constants=[1])
cases.add("Reshape", [z, integers(4, 3, 2)], dims={0: [None, 3, 4]}, constants=[1])
cases.add("Reshape", [z, integers(-1, 6)], dims={0: [None, None, 4]}, constants=[1])
cases.add("Reshape", [normal(1, 1), np.zeros(0, np.int64)], constants=[1])
cases.add("Flatten", [z], axis=2)
cases.add("Transpose", [z], perm=[2, 0, 1], dims={0: ["B", "S", 4]})
cases.add("Transpose", [normal(1, 4, 3)], perm=[1, 0, 2])
cases.add("Transpose", [z])
cases.add("Unsqueeze", [z, integers(0, -1)], dims={0: ["B", "S", 4]}, constants=[1])
cases.add("Squeeze", [normal(1, 3, 1), integers(0)], dims={0: [None, 3, 1]}, constants=[1])
cases.add("Squeeze", [normal(1, 3, 1)])
cases.add("Concat", [z, normal(2, 5, 4)], axis=1, dims={0: ["B", "S", 4], 1: ["B", None, 4]})
cases.add("Split", [normal(2, 7)], 3, axis=-1, num_outputs=3)
cases.add("Split", [normal(6, 2), integers(1, 5)], 2, constants=[1])
cases.add("Split", [normal(6, 2)], 2, num_outputs=2, dims={0: ["N", 2]})
for start, end, step in ((1, 3, 1), (-2, 1 << 40, 1), (0, -1, 2), (2, 2, 1), (-9, 9, 1)):
    bounds = [integers(n) for n in (start, end)] + [integers(0), integers(step)]
    cases.add("Slice", [normal(5, 2), *bounds], constants=[1, 2, 3, 4])
    cases.add("Slice", [normal(5, 2), *bounds], dims={0: ["N", 2]}, constants=[1, 2, 3, 4])
cases.add("Expand", [normal(3, 1), integers(2, 1, 6)], constants=[1])
cases.add("Tile", [normal(2, 3), integers(2, 3)], constants=[1], dims={0: ["A", "B"]})
cases.add("Tile", [normal(1, 3), integers(4, 1)], constants=[1], dims={0: [1, None]})
cases.add("Tile", [normal(2, 3), integers(0, 1)], constants=[1])
cases.add("Tile", [np.array(2, np.float32), np.zeros(0, np.int64)], constants=[1])
cases.add("Shape", [z], dims={0: ["B", "S", 4]}, start=1)
cases.add("Size", [z], dims={0: ["B", "S", 4]})
cases.add("Trilu", [normal(3, 4, 5)], dims={0: ["B", None, None]})
cases.add("Trilu", [normal(4, 4), np.array(-1)], upper=0)
cases.add("Identity", [z])

cases.check()
