# RUN: %python %s | FileCheck %s
# CHECK: {{[1-9][0-9]+}} models

"""Attention of opset 23 to 25 in all its forms is what ONNX's reference computes."""

import ml_dtypes
import numpy as np
from oracle import Cases

rng = np.random.default_rng(0)
cases = Cases()


def normal(*shape, dtype=np.float32):
    return rng.standard_normal(shape).astype(dtype)


def qkv(batch, rows, keys, heads, kv_heads, d=8, dv=8, dtype=np.float32, is_flat=False):
    shapes = (batch, heads, rows, d), (batch, kv_heads, keys, d), (batch, kv_heads, keys, dv)
    arrays = [normal(*shape, dtype=dtype) for shape in shapes]
    if is_flat:
        arrays = [a.transpose(0, 2, 1, 3).reshape(batch, a.shape[2], -1) for a in arrays]
    return arrays


def dynamic(arrays):
    """The extents of 4-D inputs: batch and rows are dynamic, and those of k and v one."""
    q, *keys = arrays
    dims = [["B", q.shape[1], "S", q.shape[3]]]
    return dict(enumerate(dims + [["B", a.shape[1], "T", a.shape[3]] for a in keys]))


# 4-D and 3-D, causal or not, grouped heads, Dv != D, more and fewer queries than keys.
for rows, keys, heads, kv_heads, causal, is_flat in (
    (5, 5, 2, 2, 1, False), (3, 7, 6, 2, 1, False), (6, 2, 4, 1, 0, False), (1, 9, 2, 2, 0, False),
    (5, 5, 6, 2, 1, True), (6, 2, 2, 2, 1, True), (3, 7, 4, 1, 0, True),
):  # fmt: skip
    arrays = qkv(2, rows, keys, heads, kv_heads, dv=16, is_flat=is_flat)
    if not is_flat:
        cases.add("Attention", arrays, dims=dynamic(arrays), is_causal=causal)
        continue
    q, k, v = (a.shape[2] for a in arrays)
    dims = {0: [None, None, q], 1: ["B", "T", k], 2: ["B", "T", v]}
    cases.add(
        "Attention", arrays, dims=dims, is_causal=causal, q_num_heads=heads, kv_num_heads=kv_heads
    )

# Extents of 1, of which no stride matters: head_dims, one query, one head, one sequence.
for batch, rows, keys, heads, d, dv in (
    (1, 1, 1, 1, 1, 1), (2, 1, 3, 1, 1, 1), (2, 1, 3, 2, 1, 4), (2, 5, 3, 1, 4, 1), (1, 1, 9, 1, 8, 8),
):  # fmt: skip
    arrays = qkv(batch, rows, keys, heads, heads, d, dv)
    cases.add("Attention", arrays)
    cases.add("Attention", arrays, dims=dynamic(arrays))

# Static extents, scales, element types.
for dtype, tolerance in ((np.float64, 1e-7), (np.float16, None), (ml_dtypes.bfloat16, None)):
    # The reference takes the root of the scale in f32.
    cases.add(
        "Attention", qkv(2, 4, 4, 2, 2, dtype=dtype), is_causal=1, scale=0.3, tolerance=tolerance
    )
cases.add("Attention", qkv(1, 4, 4, 2, 1), is_causal=1, softmax_precision=1)

# Scores within a bound, before the mask hides some.
for dtype, cap in ((np.float64, 0.5), (np.float32, 2.0), (np.float32, 1e20), (np.float16, 1.0)):
    cases.add(
        "Attention", qkv(2, 3, 7, 6, 2, dtype=dtype), is_causal=1, softcap=cap,
        tolerance=1e-7 if dtype == np.float64 else None,
    )  # fmt: skip

# Caches: new rows behind old ones, which come back; as many rows as queries, or not.
for rows, new, past, kv_heads, causal in (
    (3, 3, 6, 1, 1),
    (2, 4, 6, 2, 1),
    (3, 3, 0, 2, 1),
    (2, 4, 6, 1, 0),
):
    arrays = qkv(2, rows, new, 2, kv_heads)
    old = [normal(2, kv_heads, past, 8) for _ in range(2)]
    dims = dynamic(arrays) | {i: ["B", kv_heads, "P", 8] for i in (4, 5)}
    cases.add("Attention", [*arrays, None, *old], 3, dims=dims, is_causal=causal, opset=24)
    flat = qkv(2, rows, new, 2, kv_heads, is_flat=True)
    cases.add("Attention", [*flat, None, *old], 3, dims={i: ["B", kv_heads, "P", 8] for i in (4, 5)},
              is_causal=causal, q_num_heads=2, kv_num_heads=kv_heads)  # fmt: skip

# Rows of a cache that are in use; fewer than queries, and none.
for kv_heads, causal, is_flat in ((1, 1, False), (3, 0, False), (3, 1, True), (1, 0, True)):
    arrays = qkv(4, 3, 6, 3, kv_heads, is_flat=is_flat)
    heads = {"q_num_heads": 3, "kv_num_heads": kv_heads} if is_flat else {}
    used = np.array([6, 4, 1, 0], np.int64)
    for array in arrays[1:]:  # What is not in use reaches nothing.
        array[3] = np.nan
    reference = [np.nan_to_num(a) for a in arrays]
    cases.add("Attention", [*reference, None, None, None, used], dims={6: ["B"]}, is_causal=causal,
              opset=24, **heads)  # fmt: skip

# Windows, with caches, used rows and causal masks.
old, used = [normal(2, 1, 4, 8) for _ in range(2)], np.array([6, 2], np.int64)
for left, right, causal, inputs in (
    (2, -1, 0, qkv(2, 5, 5, 2, 2)), (-1, 1, 0, qkv(2, 3, 6, 2, 1)), (1, 2, 1, qkv(2, 5, 5, 2, 1)),
    (1, 2, 0, [*qkv(2, 3, 3, 2, 1), None, *old]), (2, -1, 1, [*qkv(2, 2, 3, 2, 1), None, *old]),
    (1, 1, 0, [*qkv(2, 3, 6, 2, 2), None, None, None, used]), (0, 0, 1, [*qkv(2, 3, 6, 2, 1), None, None, None, used]),
):  # fmt: skip
    cases.add("Attention", inputs, 3 if len(inputs) == 6 else 1, left_window_size=left, right_window_size=right,
              is_causal=causal, opset=25)  # fmt: skip

# Masks of all ranks and kinds, with extents that are shared and that are not: of keys
# alone, of pairs; ones that end early; grouped heads in both layouts; with what else masks.
def mask_of(*shape, dtype=np.float32):
    """Numbers, some of them -inf, or booleans; the first query sees nothing."""
    seen = rng.random(shape) < 0.6
    if len(shape) > 1:
        seen[..., 0, :] = shape[-2] == 1
    if dtype == bool:
        return seen
    return np.where(seen, rng.standard_normal(shape), -np.inf).astype(dtype)


for shape, dtype, is_flat, options in (
    ((7,), bool, False, {}), ((2, 1, 1, 7), np.float32, True, {"softcap": 2.0}),
    ((6, 5, 7), bool, True, {}), ((2, 1, 5, 7), np.float32, False, {"softcap": 2.0}),
    ((2, 6, 5, 4), bool, False, {"is_causal": 1}), ((2, 6, 1, 4), np.float32, True, {}),
    ((5, 1), np.float32, False, {}),
):  # fmt: skip
    heads = {"q_num_heads": 6, "kv_num_heads": 2} if is_flat else {}
    arrays = qkv(2, 5, 7, 6, 2, is_flat=is_flat)
    dims = {} if is_flat else dynamic(arrays)
    cases.add("Attention", [*arrays, mask_of(*shape, dtype=dtype)], dims=dims, **heads, **options)
for dtype, tolerance in ((np.float64, 1e-7), (ml_dtypes.bfloat16, None)):
    arrays = qkv(2, 5, 7, 2, 2, dtype=dtype)
    dims = dynamic(arrays) | {3: ["B", 1, "S", "T"]}
    cases.add("Attention", [*arrays, mask_of(2, 1, 5, 7, dtype=dtype)], dims=dims, tolerance=tolerance)
for dtype in (np.int8, np.int64):
    added = rng.integers(-100, 4, (2, 1, 5, 7)).astype(dtype)
    cases.add("Attention", [*qkv(2, 5, 7, 6, 2, is_flat=True), added], q_num_heads=6, kv_num_heads=2)
arrays = [*qkv(2, 3, 4, 2, 1), mask_of(3, 7), *(normal(2, 1, 3, 8) for _ in range(2))]
cases.add("Attention", arrays, 3, dims={3: ["S", "T"]}, is_causal=1, opset=24)
arrays = [*qkv(2, 3, 6, 2, 2), mask_of(2, 1, 1, 6), None, None, np.array([6, 2], np.int64)]
cases.add("Attention", arrays, opset=25, left_window_size=2)
# The lowest numbers, of all keys and of some, which are more than a block has.
lowest = np.where(rng.random((3, 600)) < 0.5, np.finfo(np.float32).min, 0).astype(np.float32)
lowest[:, :300], lowest[1] = np.finfo(np.float32).min, np.finfo(np.float32).min
cases.add("Attention", [*qkv(1, 3, 600, 2, 2), lowest])

cases.check()
