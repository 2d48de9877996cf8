# RUN: %python %s

"""Gradients of tangents in tiles, on a CPU: against those of varlen-decompose-attn, which
test/PyTorch/second-derivatives.py compares with finite differences, in f64.

Whatever no sequence uses is NaN, in rows, tangents, results and cotangents, and has gradients of
exactly 0. Results have the bits of any threads and of a sequence beside others.
"""

import functools
import pathlib
import sys

import numpy as np
import varlen
from varlen import dtypes, scores

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "Inputs"))
from second_batch import ALL, Second, check
from tangent_batch import Batch

# -- f64, each clause and score -----------------------------------------------

MORE = {"heads": 4, "kv_heads": 2, "window": (-1, 0), "sink": True, "ghosts": 1}
BATCHES = {
    "full, one query": (Batch([1, 70], [300, 70], heads=2, kv_heads=2, d=17, dv=1), ()),
    "top left, Tq > Tk": (
        Batch([50, 2], [20, 60], window=(7, 0), alignment="top_left", heads=2, scale=0.5),
        ("dout", "dtlse"),
    ),
    "chunks, groups, Dv > D": (
        Batch([30, 2], [40, 33], window=16, heads=6, kv_heads=2, d=2, dv=9), ("dlse",),
    ),
    "everything": (
        Batch(
            [40, 0, 33, 1], [50, 2, 42, 0], heads=4, kv_heads=2, d=12, dv=7, window=(20, 1),
            sink=True, seqused_q=[33, 0, 33, 1], seqused_k=[44, 2, 42, 0], q_offset=[1, 0, -1, 0],
            ghosts=2, scale=0.7,
        ), ALL,
    ),
    "no sequences": (Batch([], [], ghosts=3, sink=True), ALL),
}  # fmt: skip
for label, (batch, given) in BATCHES.items():
    check(label, Second(batch, given), 1e-12)
SCORES = (
    (scores.gains(), scores.softcap(2.0), scores.key_bias(), scores.dropout(0.3)),
    (scores.query_gains(), scores.position_bias(), scores.dilated(3)), (scores.t5_bias(),),
)  # fmt: skip
for parts in SCORES:
    score = functools.reduce(scores.compose, parts)
    batch = Batch([37, 1, 25], [37, 40, 21], score=score, d=10, **MORE)
    check(score.name, Second(batch), 1e-12)
# Captures that are constants.
check("constant gains", Second(
    Batch([20], [30], score=scores.compose(scores.gains(), scores.softcap(1.5))),
    ("dout",), wrt_captures=False,
), 1e-12)  # fmt: skip

# A sink of -inf has no gradient, whatever its tangent is.
batch = Batch([9], [9], heads=2, kv_heads=2, sink=True)
batch.values["sink"][1], batch.tangents["sink"][1] = -np.inf, np.nan
second = Second(batch)
results = second.run()
assert results["dsink"][1] == 0 and all(np.isfinite(x).all() for x in results.values())

# -- Other types, over tile boundaries -----------------------------------------

score = scores.compose(scores.gains(), scores.softcap(3.0))
LENGTHS = [47, 48, 97, 1, 130], [128, 48, 129, 1, 260]
for most, given, batch in (
    (2e-6, ALL, Batch(*LENGTHS, dtype="f32", d=64, **MORE)),
    (2e-2, (), Batch(*LENGTHS, dtype="bf16", d=40, dv=24, **MORE)),
    (2e-3, ALL, Batch(*LENGTHS, dtype="f16", d=64, dv=128, heads=2, window=(33, 5))),
    (2e-2, ALL, Batch([60, 70], [60, 90], dtype="bf16", score=score, d=32, **MORE)),
):
    check(batch.dtype, Second(batch, given), most)

# -- Isolation ----------------------------------------------------------------

# Rows of the first sequence that threads share: its item is cut.
batch = Batch([1300, 1, 50], [1500, 70, 60], dtype="f32", heads=2, window=(-1, 0), ghosts=1)
second = Second(batch)
whole = second.run(threads=1)
clean, beside = second.run([second.arguments(), second.arguments(batch.poison_first)], threads=3)
assert all(np.array_equal(clean[name], whole[name]) for name in whole)
for name, cu in (("dq", batch.cu_q), ("dk", batch.cu_k), ("dv", batch.cu_k)):
    assert np.array_equal(beside[name][cu[1] :], whole[name][cu[1] :])
