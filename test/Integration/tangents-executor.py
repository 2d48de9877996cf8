# RUN: %python %s sim:sm_80 %if long %{ %} %else %{ --some %}
# RUN: %python %s sim:sm_90a %if long %{ %} %else %{ --few %}
"""Tangents by GPU kernels in the executor: right, without a hazard with each order of warps and
timing of copies and without bank conflicts, and bitwise the same beside NaN, and for a sequence
alone as in a batch."""

import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "Inputs"))

import attn_tangents
import harness
from parameters import CAUSAL, FULL, Group, Sequence

harness.device = sys.argv[1]
# In check what differs from the forward, whose masks and scores these are; on the second chip
# its instructions.
SOME, FEW = "--some" in sys.argv, "--few" in sys.argv
RUNS = int(os.environ.get("VARLEN_EXECUTOR_RUNS", "27"))
# (queries, keys) of sequences: whole tiles and parts of them, more blocks than a ring
# holds, longer queries, longer keys, no rows, no key, one query.
LENGTHS = [(90, 90), (0, 3), (20, 200), (33, 0), (40, 9), (64, 64), (1, 150)]


def sequences(lengths, spare):
    return tuple(Sequence(q + spare, k + 2 * spare, q, k, (q, k)) for q, k in lengths)


def check(name, dtype, heads, d, dv, window, *, lengths=LENGTHS, spare=0, runs=1, **more):
    group = Group(
        name, dtype, *heads, d, dv, window, sequences(lengths, spare), seqused=spare > 0, **more
    )
    figures = {}
    inputs = attn_tangents.make_inputs(group)
    outputs = attn_tangents.run(group, inputs, sim_runs=runs, figures=figures)
    problems = harness.judge(group, inputs, outputs) + attn_tangents.judge(group, inputs, outputs)
    assert not problems, "\n  ".join([group.label, *problems])
    executor = figures["executor"]
    assert executor["matrix_conflicts"] == 0, executor


LONG = LENGTHS[:3]
WINDOW = {"window": (37, 5), "sink": True, "spare": 2, "past_q": 3, "past_k": 2}
check("window", "bf16", (2, 1), 64, 64, runs=RUNS, **WINDOW)
check("causal", "f16", (2, 1), 128, 128, CAUSAL, runs=3)
if FEW:
    sys.exit()
check("f32", "f32", (2, 1), 48, 40, (16, -1), lengths=LONG, past_q=1)
captured = {"score": "query_gains", "spare": 2}
check("captures of queries", "bf16", (2, 1), 64, 64, CAUSAL, lengths=LONG, runs=3, **captured)
check("table of keys", "bf16", (2, 1), 64, 64, (37, 5), lengths=LONG, score="key_bias")
# Parts of the keys, whose states have tangents.
PARTS = [(1, 200), (16, 150), (0, 70), (33, 140), (3, 0), (2, 65)]
attn_tangents.schedule = (
    "warps = 2, block_m = 32, kv_block = 32, stages = 3, ctas = 2, few_part = 2"
)
check("parts", "bf16", (2, 1), 64, 64, (-1, 30), lengths=PARTS, runs=3)
attn_tangents.schedule = None
if SOME:
    sys.exit()
check("hidden by captures", "bf16", (2, 1), 64, 64, CAUSAL, lengths=LONG, score="document")
check("odd", "f16", (3, 1), 20, 33, (-1, 7), lengths=LONG, top_left=True, past_q=1)
check("no mask", "bf16", (2, 2), 96, 72, FULL, lengths=LONG, sink=True)
check("score", "bf16", (2, 1), 64, 64, CAUSAL, lengths=LONG, score="capped_alibi", sink=True)
check("some blocks whole", "bf16", (2, 2), 64, 64, FULL, lengths=LONG, score="prefix_lm", spare=2)
check("tables", "bf16", (2, 1), 64, 64, CAUSAL, lengths=LONG, score="position_bias")
check("dropout", "bf16", (2, 1), 64, 64, CAUSAL, lengths=LONG, score="dropout")
