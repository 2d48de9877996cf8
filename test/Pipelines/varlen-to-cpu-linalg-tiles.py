"""Tiles of attention by the passes for linalg: results are those of the tile vectoriser
bit for bit."""

# REQUIRES: venv
# RUN: %python %s

import numpy as np

import varlen
from varlen import dtypes, scores, text

PIPELINE = "builtin.module(varlen-to-cpu{linalg-tiles})"
LENGTHS = [70, 1, 300]
rng = np.random.default_rng(3)


def inputs(dtype, heads, head_dim, gradients):
    rows = sum(LENGTHS)

    def tensor(*shape):
        return rng.standard_normal(shape).astype(np.float64)

    names = ("q", "k", "v") + (("dout", "out") if gradients else ())
    values = {n: dtypes.narrow(tensor(rows, heads, head_dim), dtype) for n in names}
    if gradients:
        values["lse"] = dtypes.narrow(tensor(heads, rows) + 3, "f64" if dtype == "f64" else "f32")
    offsets = np.cumsum([0, *LENGTHS]).astype(np.int32)
    return values | {"cu_seqlens_q": offsets, "cu_seqlens_k": offsets}


def check(make, dtype, head_dim=40, **options):
    function = make(dtype=dtype, heads=2, head_dim=head_dim, **options)
    given = inputs(dtype, 2, head_dim, make is text.attn_grad)
    golden = varlen.run(function, given, threads=1)
    found = varlen.run(function, given, threads=2, pipeline=PIPELINE)
    for name, value in golden.items():
        a, b = dtypes.widen(value), dtypes.widen(found[name])
        assert np.array_equal(a, b, equal_nan=True), (name, dtype, options)


for dtype in ("f32", "f16", "bf16", "f64"):
    check(text.attn, dtype, window=(-1, 0))
    check(text.attn_grad, dtype, window=(-1, 0))
for dtype in ("f32", "bf16"):
    check(text.attn, dtype, 64)
    check(text.attn, dtype, window=(48, 16), score=scores.softcap(10.0))
    check(text.attn_grad, dtype, 128, window=(48, 16))
