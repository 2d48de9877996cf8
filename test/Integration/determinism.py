#!/usr/bin/env python3
"""The same bits, whatever else is going on.

A batch must give bitwise the same result and gradients with 1, 2 and 3 threads
and on repetition, in the executor with each order of warps and
timing of copies; a sequence the same alone as in a batch, and the same whether
its neighbours hold numbers, NaN or infinities.
"""
# RUN: %python %s --build %varlen-build | FileCheck %s
# RUN: %python %s --build %varlen-build --device=sim:sm_80 | FileCheck %s
# CHECK: {{[1-9][0-9]*}} comparisons, 0 failed

import argparse
import dataclasses
import os
import pathlib
import sys

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "test/Integration/Inputs"), str(ROOT / "python")]

import attn_gradients
import compiled
import harness
import numpy
import varlen
from parameters import CAUSAL, FULL, Group, Sequence

# Lengths around the sizes of vectors, panels, tiles and kv blocks, out of order.
LENGTHS = [
    (37, 37), (300, 411), (1, 513), (0, 0), (129, 64), (48, 49), (96, 96),
    (250, 0), (23, 128), (520, 520), (2, 1),
]  # fmt: skip


def group(dtype, heads, d, window, **options):
    slack = 7 if options.get("seqused") else 0
    sequences = tuple(
        Sequence(q + slack, k + slack, q, k, (q, k)) for q, k in LENGTHS
    )
    return Group("determinism", dtype, *heads, d, d, window, sequences, **options)


GROUPS = [
    group("f32", (2, 2), 64, FULL),
    group("f32", (6, 2), 128, CAUSAL, seqused=True),
    group("f32", (4, 1), 64, (40, 3), sink=True),
    group("f32", (3, 3), 20, CAUSAL, top_left=True),
    group("bf16", (2, 2), 64, CAUSAL),
    group("bf16", (6, 2), 128, (100, 0), seqused=True, sink=True),
    group("f16", (4, 2), 96, FULL, seqused=True, index="i64"),
    group("f64", (2, 1), 32, CAUSAL, sink=True),
    group("f32", (4, 2), 64, FULL, score="position_bias"),
    group("f32", (4, 2), 64, CAUSAL, sink=True, score="capped_alibi"),
    group("bf16", (6, 2), 64, FULL, seqused=True, score="t5_bias"),
    group("bf16", (2, 2), 64, CAUSAL, seqused=True, score="position_bias"),
    group("f32", (4, 2), 64, FULL, seqused=True, score="key_bias"),
]


# Fewer and shorter sequences: the executor takes its time.
EXECUTOR_LENGTHS = [(37, 37), (65, 129), (1, 140), (0, 0), (70, 20), (50, 0)]
EXECUTOR_GROUPS = [
    dataclasses.replace(group, sequences=tuple(
        Sequence(q + 7, k + 7, q, k, (q, k)) if group.seqused
        else Sequence(q, k, q, k, (q, k)) for q, k in EXECUTOR_LENGTHS
    ))
    for group in [
        group("bf16", (2, 2), 64, CAUSAL),
        group("bf16", (6, 2), 128, (100, 0), seqused=True, sink=True),
        group("f16", (4, 2), 96, FULL, seqused=True, index="i64"),
        group("f16", (2, 1), 20, (40, 3), sink=True),
        group("bf16", (4, 2), 64, CAUSAL, score="position_bias"),
        group("bf16", (4, 2), 64, CAUSAL, seqused=True, score="key_bias"),
    ]
]  # fmt: skip


# In the executor, each order of warps with each timing of copies.
RUNS = int(os.environ.get("VARLEN_EXECUTOR_RUNS", "27"))


def rows_of(inputs, group, index):
    sequence = group.sequences[index]
    q, k = int(inputs["cu_seqlens_q"][index]), int(inputs["cu_seqlens_k"][index])
    return slice(q, q + sequence.q_slot), slice(k, k + sequence.k_slot)


# Inputs and results with a row for each query or key, which of the two, and the
# dimension of rows.
ROWS = {
    **dict.fromkeys(["q", "dout", "out", "dq"], ("q", 0)),
    **dict.fromkeys(["lse", "dlse"], ("q", 1)),
    **dict.fromkeys(["k", "v", "dk", "dv"], ("k", 0)),
}


def places_of(group):
    """ROWS, and the captures of the group that differ between queries or keys."""
    captures = harness.score_of(group).captures if group.score else {}
    sides = {n: of[0] for n, of in captures.items() if of.startswith(("query", "key"))}
    return ROWS | {name: (side, 1) for n, side in sides.items() for name in (n, f"d{n}")}


def slices(group, tensors, rows):
    """The rows of a sequence, rows_of(), of those tensors that have any."""
    sides, places = dict(zip("qk", rows)), places_of(group)
    return {
        name: numpy.ascontiguousarray(
            tensor[(slice(None),) * places[name][1] + (sides[places[name][0]],)]
        )
        for name, tensor in tensors.items() if name in places
    }  # fmt: skip


def alone(group, inputs, index):
    """The group and the inputs of one of its sequences."""
    sequence = group.sequences[index]
    cu_type = inputs["cu_seqlens_q"].dtype
    one = slices(group, inputs, rows_of(inputs, group, index)) | {
        "cu_seqlens_q": numpy.array([0, sequence.q_slot], cu_type),
        "cu_seqlens_k": numpy.array([0, sequence.k_slot], cu_type),
    }
    if group.seqused:
        one["seqused_q"] = inputs["seqused_q"][index : index + 1]
        one["seqused_k"] = inputs["seqused_k"][index : index + 1]
    if group.q_offset:
        one["q_offset"] = inputs["q_offset"][index : index + 1]
    captures = harness.score_of(group).captures if group.score else {}
    of_heads = [name for name, of in captures.items() if of.startswith("head")]
    for name in ["sink"] * group.sink + of_heads:
        one[name] = inputs[name]
    return dataclasses.replace(group, sequences=(sequence,)), one


def poison(group, inputs, index, value):
    """The inputs with every row of every other sequence at `value`."""
    sides, places = dict(zip("qk", rows_of(inputs, group, index))), places_of(group)
    poisoned = dict(inputs)
    for name, tensor in inputs.items():
        if name not in places:
            continue
        side, dimension = places[name]
        at = (slice(None),) * dimension + (sides[side],)
        filled = numpy.full(tensor.shape, value)
        poisoned[name] = varlen.dtypes.narrow(filled, varlen.dtypes.name_of(tensor))
        poisoned[name][at] = tensor[at]
    return poisoned


class Comparisons:
    def __init__(self):
        self.made = self.failed = 0

    def check(self, what, got, wanted):
        self.made += 1
        for name in wanted:
            if got[name].tobytes() != wanted[name].tobytes():
                self.failed += 1
                different = got[name] != wanted[name]
                print(
                    f"FAIL {what}: {int(different.sum())} of {different.size} "
                    f"values of {name} differ, first at "
                    f"{numpy.argwhere(different)[:1].tolist()}",
                    flush=True,
                )
                return


def runner_of(group, kind):
    """Runs a function for the group, compiled once, on several inputs: they differ in lengths
    and numbers."""
    text = kind.module_text(group)
    if harness.device != "cpu":
        return lambda batches, **flags: varlen.run(text, batches, device=harness.device, **flags)
    function = compiled.function(text, strided=True)
    return lambda batches, threads=2: [function(inputs, threads) for inputs in batches]


def compare(group, comparisons, kind):
    """Compares results (`kind` is harness) or gradients; returns the inputs and the results of
    the batch."""
    inputs = kind.make_inputs(group)
    run = runner_of(group, kind)
    label = f"{kind.__name__}: {group.label}"
    everything = (slice(None), slice(None))
    # What is run beside the batch: its name, its inputs, its rows of the sequence, and which.
    others = []
    for index in (1, 2, 4, len(group.sequences) - 2):
        rows = rows_of(inputs, group, index)
        name = f"{label}: sequence {index}"
        one_group, one = alone(group, inputs, index)
        assert kind.module_text(one_group) == kind.module_text(group)
        others.append((f"{name} alone", one, everything, rows))
        for value in (numpy.nan, numpy.inf) if index == 4 else (numpy.nan,):
            poisoned = poison(group, inputs, index, value)
            others.append((f"{name} beside {value}", poisoned, rows, rows))
    batch, *found = run([inputs, *(other[1] for other in others)], threads=1)
    for (name, _, place, rows), outputs in zip(others, found, strict=True):
        comparisons.check(name, slices(group, outputs, place), slices(group, batch, rows))
    if harness.device == "cpu":
        for threads in (2, 2, 3):
            (again,) = run([inputs], threads=threads)
            comparisons.check(f"{label}: {threads} threads", again, batch)
    else:
        # The runner compares the runs with each other; the batch has run on one thread, a block
        # of a grid at a time.
        (again,) = run([inputs], threads=3, sim_co_resident=0, sim_runs=RUNS)
        comparisons.check(f"{label}: {RUNS} runs on 3 threads", again, batch)
    return inputs, batch


def judge(group, comparisons, kind):
    """As `compare`, and results beside golden ones."""
    inputs, outputs = compare(group, comparisons, kind)
    comparisons.made += 1
    for problem in kind.judge(group, inputs, outputs):
        comparisons.failed += 1
        print(f"FAIL {group.label}: {problem}", flush=True)


def report(cases, compare_case):
    """Compares each (group, kind), says what failed, and returns the status of a process."""
    comparisons = Comparisons()
    for group, kind in cases:
        try:
            compare_case(group, comparisons, kind)
        except varlen.Error as error:
            comparisons.made += 1
            comparisons.failed += 1
            print(f"FAIL {group.label}: {error}", flush=True)
    print(f"{comparisons.made} comparisons, {comparisons.failed} failed")
    return int(comparisons.failed != 0)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default=ROOT / "build", type=pathlib.Path)
    parser.add_argument("--device", default="cpu", help="as varlen-run has it")
    arguments = parser.parse_args()
    os.environ["VARLEN_BUILD"] = str(arguments.build.resolve())
    harness.device = arguments.device
    if harness.device == "cpu":
        cases = [(group, kind) for group in GROUPS for kind in (harness, attn_gradients)]
    else:
        cases = [(group, harness) for group in EXECUTOR_GROUPS]
    return report(cases, compare)


if __name__ == "__main__":
    sys.exit(main())
