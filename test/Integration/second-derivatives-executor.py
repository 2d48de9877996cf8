# RUN: %around-code %python %s sim:sm_80 %if long %{ %} %else %{ --some %}
# RUN: %around-code %python %s sim:sm_90a %if long %{ %} %else %{ --few %}
"""Gradients of tangents by GPU kernels in the executor: right, without a hazard with each order of
warps and timing of copies and without bank conflicts, and bitwise the same beside NaN."""

import os
import pathlib
import sys

import numpy as np
from varlen import scores

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "Inputs"))

from second_batch import ALL, Second, check
from tangent_batch import Batch

device = sys.argv[1]
# In check what differs from gradients, whose loops these are; on the second chip its instructions.
SOME, FEW = "--some" in sys.argv, "--few" in sys.argv
RUNS = int(os.environ.get("VARLEN_EXECUTOR_RUNS", "27"))
# Errors of the type, as parts of the largest of a gradient: weights are rounded once for their
# products, and results once.
MOST = {"bf16": 8e-3, "f16": 1e-3, "f32": 2e-6}
# Whole tiles and parts of them, more blocks than a ring holds, longer queries, longer keys, no
# rows, no key, one query.
LENGTHS = [70, 0, 20, 9, 64, 33, 1], [70, 3, 150, 0, 64, 9, 65]
SHORT = LENGTHS[0][:3], LENGTHS[1][:3]


def judge(lengths, given=ALL, *, runs=1, schedule=None, **options):
    options = {"dtype": "bf16", "heads": 2, "kv_heads": 1, "d": 64, "ghosts": 2} | options
    batch = Batch(*lengths, **options)
    second, figures = Second(batch, given), {}
    label = f"{device} {options}"
    more = {"device": device, "schedule": schedule}
    got = check(
        label, second, MOST[batch.dtype], **more, threads=None, sim_runs=runs, figures=figures
    )
    conflicts = figures["executor"]["matrix_conflicts"]
    assert conflicts == 0, f"{label}: {conflicts} conflicts of banks"
    beside = second.run(second.arguments(batch.poison_first), **more, threads=None)
    for name, cu in (("dq", batch.cu_q), ("dk", batch.cu_k), ("dv", batch.cu_k)):
        assert np.array_equal(beside[name][cu[1] :], got[name][cu[1] :]), f"{label}: bits of {name}"


USED = {"seqused_q": [68, 0, 20, 9, 64, 30, 1], "seqused_k": [65, 1, 149, 0, 64, 9, 65]}
judge(LENGTHS, runs=RUNS, window=(37, 5), sink=True, **USED)
judge(LENGTHS, ("dtlse",), runs=3, dtype="f16", d=128, window=(-1, 0))
if FEW:
    sys.exit()
judge(SHORT, ("dout", "dlse"), dtype="f16", heads=3, d=20, dv=33, window=(-1, 7), alignment="top_left")
gains = scores.compose(scores.gains(), scores.softcap(3.0))
judge(SHORT, runs=3, window=(-1, 0), score=gains)
# A kernel each for dk and dv.
APART = "#varlen.gpu_grad_schedule<" + ", ".join(
    f"{name} = <warps = 2, block_m = {m}, kv_block = {n}, stages = 3, ctas = 1>"
    for name, m, n in (("dq", 32, 16), ("dk", 16, 32), ("dv", 16, 32))
) + ">"  # fmt: skip
judge(SHORT, runs=3, schedule=APART, window=(37, 5), sink=True, score=scores.key_bias())
if SOME:
    sys.exit()
judge(SHORT, window=(37, 5), score=scores.key_bias())
judge(SHORT, (), schedule=APART, dv=40, score=scores.dropout(0.3))
judge(SHORT, heads=2, kv_heads=2, d=96, dv=72, sink=True)
judge(SHORT, window=(-1, 0), score=scores.position_bias())
judge(SHORT, window=(-1, 0), score=scores.query_gains())
judge(SHORT, window=(-1, 0), score=scores.document())
judge(SHORT, window=(-1, 0), score=scores.dropout(0.2))
