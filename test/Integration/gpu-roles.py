#!/usr/bin/env python3
"""Producers and consumers on a GPU: warps that copy beside warps that compute.

In the executor, with each order of warps and timing of copies: golden
results and gradients of several items for each CTA, with fewer blocks than a ring has slots, as
many, more, and none; of warpgroups without a row; with copies of cp.async, and of rows that pass
through registers; and the same bits alone, in a batch and beside NaN.
"""
# RUN: %python %s --build %varlen-build | FileCheck %s
# RUN: %if long %{ %python %s --build %varlen-build --all | FileCheck %s %}
# CHECK: {{[1-9][0-9]*}} comparisons, 0 failed

import argparse
import importlib
import os
import pathlib
import sys

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "test/Integration/Inputs"), str(ROOT / "python")]

import attn_gradients
import harness
from parameters import CAUSAL, FULL, Group, Sequence

determinism = importlib.import_module("determinism")

# With blocks of 32 keys: one, two and more of them, as many as a ring has and one more.
LENGTHS = [(37, 37), (65, 129), (1, 140), (0, 0), (70, 20), (3, 64), (129, 65), (50, 0)]


def tiles(warps, block_m, kv_block, stages, **more):
    fields = dict(warps=warps, block_m=block_m, kv_block=kv_block, stages=stages, ctas=1, **more)
    return "<" + ", ".join(f"{name} = {value}" for name, value in fields.items()) + ">"


def group(dtype, heads, d, window, **options):
    slack = 5 if options.get("seqused") else 0
    sequences = tuple(Sequence(q + slack, k + slack, q, k, (q, k)) for q, k in LENGTHS)
    dv = options.pop("dv", d)
    return Group("roles", dtype, *heads, d, dv, window, sequences, **options)


class Kind:
    """What determinism.compare runs: attention, or its gradients, by a schedule with roles."""

    __name__ = "roles"

    def __init__(self, of, schedule):
        self.of, self.schedule = of, schedule
        self.make_inputs, self.judge = of.make_inputs, of.judge

    def module_text(self, group):
        text = self.of.module_text(group)
        assert text.count("{mask =") == 1
        return text.replace("{mask =", f"{{varlen.schedule = {self.schedule}, mask =")


def forward(*sizes, **more):
    return Kind(harness, f"#varlen.gpu_schedule{tiles(*sizes, **more)}")


def gradients(dq, dk, **more):
    kernels = f"dq = {tiles(*dq, **more)}, dk = {tiles(*dk, **more)}"
    return Kind(attn_gradients, f"#varlen.gpu_grad_schedule<{kernels}>")


# The first two in check, all with --all.
WORK = [
    # A warpgroup without a row in most tiles, accumulators one block behind.
    (group("bf16", (2, 2), 64, CAUSAL, past_q=3, past_k=40),
     forward(8, 128, 32, 3, slack=1, lag=1, producers=4)),
    # Rows that are no whole chunks go through registers; producers are no warpgroup.
    (group("f16", (4, 2), 20, FULL, dv=24, sink=True, seqused=True), forward(2, 32, 32, 2, producers=1)),
    (group("bf16", (4, 2), 128, (70, 9), seqused=True),
     forward(4, 64, 32, 2, rings=2, rescale_threshold=8, producers=4)),
    (group("f32", (2, 1), 32, FULL, sink=True), forward(2, 32, 16, 3, producers=2)),
    (group("bf16", (2, 1), 64, CAUSAL, score="t5_bias"), forward(4, 64, 16, 4, producers=4)),
    (group("bf16", (4, 2), 64, FULL), forward(8, 128, 32, 3, few_part=2, producers=4)),
    (group("bf16", (2, 2), 64, CAUSAL), gradients((4, 64, 32, 2), (4, 32, 64, 2), producers=4)),
    # Zeros of the gradient of a table come before what is added to them.
    (group("bf16", (2, 1), 64, CAUSAL, score="position_bias"),
     gradients((4, 64, 32, 2), (4, 32, 64, 2), rings=2, producers=4)),
    (group("bf16", (2, 1), 64, FULL, seqused=True, score="key_bias"),
     gradients((4, 64, 32, 3), (4, 32, 64, 3), producers=4)),
]  # fmt: skip


def main(description, work, judge):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--build", default=ROOT / "build", type=pathlib.Path)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--only", type=int, help="the number of one of the list")
    arguments = parser.parse_args()
    os.environ["VARLEN_BUILD"] = str(arguments.build.resolve())
    harness.device = "sim:sm_90a"
    chosen = work if arguments.all else work[:2]
    if arguments.only is not None:
        chosen = [work[arguments.only]]
    return determinism.report(chosen, judge)


if __name__ == "__main__":
    sys.exit(main(__doc__, WORK, determinism.judge))
