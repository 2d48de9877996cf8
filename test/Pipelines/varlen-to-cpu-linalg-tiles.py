"""Tiles of attention by the passes for linalg: the forward's results are those of the
tile vectoriser bit for bit; gradients, which are summed in another order, are close."""

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


def check(make, dtype, tolerance, **options):
    function = make(dtype=dtype, heads=2, head_dim=40, **options)
    given = inputs(dtype, 2, 40, make is text.attn_grad)
    golden = varlen.run(function, given, threads=1)
    found = varlen.run(function, given, threads=2, pipeline=PIPELINE)
    for name, value in golden.items():
        a, b = dtypes.widen(value), dtypes.widen(found[name])
        if tolerance == 0:
            assert np.array_equal(a, b), (name, dtype, options)
        scale = np.abs(a[np.isfinite(a)]).max()
        assert np.array_equal(np.isfinite(a), np.isfinite(b)), (name, dtype, options)
        with np.errstate(invalid="ignore"):
            error = np.nanmax(np.abs(a - b)) / scale
        assert error <= tolerance, (name, dtype, options, error)


for dtype in ("f32", "f16", "bf16"):
    check(text.attn, dtype, 0, window=(-1, 0))
check(text.attn, "f32", 0, window=(48, 16), score=scores.softcap(10.0))
for dtype, tolerance in (("f32", 1e-5), ("f64", 1e-13)):
    check(text.attn_grad, dtype, tolerance, window=(-1, 0))
