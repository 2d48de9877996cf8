#!/usr/bin/env python3
"""Split-KV on a GPU: keys of sequences with few queries in parts.

In the executor, with each order of warps and timing of copies: golden
results, of sequences with fewer keys than a part, as many, and more, without keys or queries,
with few queries and one more than that, and with keys that no query sees; and the same bits
alone, in a batch and beside NaN.
"""
# RUN: %python %s --build %varlen-build --chip=sm_80 | FileCheck %s
# RUN: %if long %{ %python %s --build %varlen-build --chip=sm_90a | FileCheck %s %}
# CHECK: {{[1-9][0-9]*}} comparisons, 0 failed

import argparse
import importlib
import os
import pathlib
import sys

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "test/Integration/Inputs"), str(ROOT / "python")]

import harness
from parameters import CAUSAL, FULL, Group, Sequence

determinism = importlib.import_module("determinism")

# Parts have 2 blocks of 32 keys; few queries are 32 rows of a tile, of all heads of a group.
SCHEDULE = {
    "sm_80": "warps = 2, block_m = 32, kv_block = 32, stages = 3, ctas = 2, few_part = 2",
    "sm_90a": "warps = 8, block_m = 128, kv_block = 32, stages = 3, ctas = 1, slack = 1, few_part = 2",
}
LENGTHS = [(1, 63), (1, 64), (16, 65), (0, 300), (3, 0), (17, 200), (1, 1), (40, 129), (2, 300)]


def group(dtype, heads, d, window, past=(0, 0), **options):
    slack = 5 if options.get("seqused") else 0
    sequences = tuple(Sequence(q + slack, k + slack, q, k, (q, k)) for q, k in LENGTHS)
    dv = options.pop("dv", d)
    return Group(
        "parts", dtype, *heads, d, dv, window, sequences, past_q=past[0], past_k=past[1], **options
    )


GROUPS = [
    group("bf16", (2, 2), 64, FULL, past=(3, 150)),
    group("f16", (4, 2), 64, CAUSAL, dv=24, sink=True),
    group("bf16", (6, 2), 128, (70, 9), seqused=True),
    group("f16", (2, 1), 20, CAUSAL, q_offset=True, index="i64"),
    group("f32", (2, 1), 32, FULL, sink=True),
    group("bf16", (4, 2), 64, FULL, score="position_bias"),
]


class Kind:
    """What determinism.compare runs: attention by a schedule with parts."""

    __name__ = "parts"
    make_inputs = staticmethod(harness.make_inputs)
    judge = staticmethod(harness.judge)

    def __init__(self, chip):
        self.chip = chip

    def module_text(self, group):
        schedule = SCHEDULE["sm_80" if group.dtype == "f32" else self.chip]
        text = harness.module_text(group)
        assert text.count("{mask =") == 1
        return text.replace(
            "{mask =", f"{{varlen.schedule = #varlen.gpu_schedule<{schedule}>, mask ="
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default=ROOT / "build", type=pathlib.Path)
    parser.add_argument("--chip", default="sm_90a")
    arguments = parser.parse_args()
    os.environ["VARLEN_BUILD"] = str(arguments.build.resolve())
    harness.device = f"sim:{arguments.chip}"
    kind = Kind(arguments.chip)
    return determinism.report([(group, kind) for group in GROUPS], determinism.judge)


if __name__ == "__main__":
    sys.exit(main())
