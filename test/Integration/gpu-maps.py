#!/usr/bin/env python3
"""Copies by tensor maps: whole blocks by TMA, the others row by row.

In the executor, with each order of warps and timing of copies: golden results and gradients,
the same bits alone, in a batch and beside NaN, and the bits of a kernel without maps; with
columns that fill no slab and several slabs, with wgmma and without it, with queries that are
grouped, and with rows that have no map.
"""
# RUN: %python %s --build %varlen-build | FileCheck %s
# RUN: %if long %{ %python %s --build %varlen-build --all | FileCheck %s %}
# CHECK: {{[1-9][0-9]*}} comparisons, 0 failed

import functools
import importlib
import os
import pathlib
import sys

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "test/Integration/Inputs"), str(ROOT / "python")]

import harness
import varlen
from parameters import CAUSAL, FULL

determinism = importlib.import_module("determinism")
roles = importlib.import_module("gpu-roles")
group = roles.group


def forward(*sizes, **more):
    """A kind, by whether it has maps."""
    return functools.partial(roles.forward, *sizes, **more)


def gradients(dq, dk, **more):
    return functools.partial(roles.gradients, dq, dk, **more)


# The first two in check, all with --all.
WORK = [
    # Queries of one head are copied by a map, too.
    (group("bf16", (2, 2), 64, CAUSAL, past_q=3, past_k=40),
     forward(8, 128, 32, 3, slack=1, lag=1, producers=4)),
    # No wgmma: what threads have stored is published before a copy overwrites it.
    (group("f16", (4, 2), 40, FULL, dv=24, sink=True, seqused=True), forward(2, 32, 32, 2, producers=1)),
    (group("bf16", (4, 2), 128, (70, 9), seqused=True),
     forward(4, 64, 32, 2, rings=2, rescale_threshold=8, producers=4)),
    (group("f16", (2, 2), 96, CAUSAL, seqused=True), forward(4, 64, 32, 2, producers=4)),
    # Rows without a map: counted in 64 bits, of no whole chunks, and of f32.
    (group("f16", (2, 2), 64, CAUSAL, index="i64"), forward(4, 64, 32, 2, producers=4)),
    (group("f16", (4, 2), 20, FULL, dv=24, sink=True), forward(2, 32, 32, 2, producers=1)),
    (group("f32", (2, 1), 32, FULL, sink=True), forward(2, 32, 16, 3, producers=2)),
    (group("bf16", (2, 1), 64, CAUSAL, score="t5_bias"), forward(4, 64, 16, 4, producers=4)),
    (group("bf16", (4, 2), 64, FULL), forward(8, 128, 32, 3, few_part=2, producers=4)),
    (group("bf16", (2, 2), 64, CAUSAL), gradients((4, 64, 32, 2), (4, 32, 64, 2), producers=4)),
    (group("bf16", (4, 2), 72, FULL, seqused=True),
     gradients((4, 64, 32, 3), (2, 32, 32, 3), rings=2, producers=4)),
]  # fmt: skip


def judge(group, comparisons, kind):
    mapped, plain = kind(maps=1), kind(maps=0)
    assert mapped.module_text(group) != plain.module_text(group)
    inputs, outputs = determinism.compare(group, comparisons, mapped)
    comparisons.made += 1
    for problem in mapped.judge(group, inputs, outputs):
        comparisons.failed += 1
        print(f"FAIL {group.label}: {problem}", flush=True)
    (other,) = varlen.run(plain.module_text(group), [inputs], device=harness.device)
    comparisons.check(f"{group.label}: beside copies without maps", outputs, other)


if __name__ == "__main__":
    sys.exit(roles.main(__doc__, WORK, judge))
