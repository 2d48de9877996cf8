#!/usr/bin/env python3
"""Special values mean the same on every target: NaN in rows of a sequence, sinks of
-inf, rows without a key, scores at the end of f32's range.

One batch has a sequence for each of them. The oracle, the code for a CPU and that
for a GPU, in the executor, must each return NaN, infinity and 0 exactly where the
definition of the op has them, and otherwise be as near to it as rounding allows.
"""
# RUN: %around-code %python %s --build %varlen-build | FileCheck %s
# CHECK: {{[1-9][0-9]*}} comparisons, 0 failed

import argparse
import os
import pathlib
import sys

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))

import numpy
import varlen

NAN = numpy.nan
TARGETS = {
    "oracle": {"pipeline": "builtin.module(varlen-decompose-attn,varlen-to-cpu)"},
    "CPU": {"device": "cpu"},
    "executor": {"device": "sim:sm_80"},
}
# dtype, window, sinks of the heads. A head of k has two of q.
BATCHES = [
    ("bf16", (-1, 0), [-numpy.inf, 0.5, -numpy.inf, -1.0]),
    ("f16", (5, 2), [0.25, -numpy.inf, 2.0, -numpy.inf]),
    ("f32", (-1, -1), [-numpy.inf] * 4),
    ("f32", (-1, 0), None),
]
HEADS, KV_HEADS, DIM = 4, 2, 32
# Relative to the largest value of a sequence: what rounding may amount to.
TOLERANCE = {"bf16": 0.04, "f16": 0.005, "f32": 1e-5}


# Factors of q and k whose products are near the largest scores.
LARGEST = {"f16": (3e4, 1e4), "bf16": (1e18, 1e18), "f32": (1e18, 1e18)}


def keep(tensors, seen, dtype):
    del tensors, seen, dtype


def fill_with_nan(name, row, column=slice(None)):
    def change(tensors, seen, dtype):
        del seen, dtype
        tensors[name][row, :, column] = NAN

    return change


def fill_all_with_nan(tensors, seen, dtype):
    del seen, dtype
    for values in tensors.values():
        values[:] = NAN


def fill_dout_without_keys(tensors, seen, dtype):
    """The cotangents of queries that see no key."""
    del dtype
    tensors["dout"][~seen.any(axis=1)] = NAN


def enlarge(sign):
    """Scores as large as there are: a row has one key with all the weight, or some
    that share it, as others differ from these by more than rounding."""

    def change(tensors, seen, dtype):
        del seen
        for name, factor in zip("qk", LARGEST[dtype]):
            tensors[name][:] = 0
            tensors[name][:, :, 0] = factor
        tensors["q"][:] *= sign
        # What gradients of f16 have room for.
        tensors["dout"][:] /= 64
        tensors["k"][:] *= (1 + numpy.arange(len(tensors["k"])) % 4)[:, None, None]

    return change


# A sequence: its name, queries, keys and what is done to it.
SEQUENCES = [
    ("ordinary", 9, 9, keep),
    ("NaN in a query", 20, 20, fill_with_nan("q", 11)),
    ("no keys", 5, 0, keep),
    ("NaN in a key", 70, 70, fill_with_nan("k", 40)),
    ("all NaN", 30, 30, fill_all_with_nan),
    ("ordinary after NaN", 33, 65, keep),
    ("NaN in a value", 70, 70, fill_with_nan("v", 40, 3)),
    ("NaN for queries without a key", 20, 12, fill_dout_without_keys),
    ("NaN in a value beside queries without a key", 20, 12, fill_with_nan("v", 3, 3)),
    ("NaN in one query", 1, 40, fill_with_nan("q", 0)),
    ("large scores", 40, 40, enlarge(1)),
    ("large negative scores", 40, 40, enlarge(-1)),
    ("ordinary at the end", 17, 17, keep),
]


def make_inputs(dtype, window, sinks):
    rng = numpy.random.default_rng(1)
    parts = {"q": [], "k": [], "v": [], "dout": []}
    for _, queries, keys, change in SEQUENCES:
        tensors = {
            "q": rng.standard_normal((queries, HEADS, DIM)),
            "k": rng.standard_normal((keys, KV_HEADS, DIM)),
            "v": rng.standard_normal((keys, KV_HEADS, DIM)),
            "dout": rng.standard_normal((queries, HEADS, DIM)),
        }
        change(tensors, varlen.reference.visible(queries, keys, window), dtype)
        for name, values in tensors.items():
            parts[name].append(values)
    inputs = {
        name: varlen.dtypes.narrow(numpy.concatenate(values), dtype)
        for name, values in parts.items()
    }
    for side, place in (("q", 1), ("k", 2)):
        lengths = [sequence[place] for sequence in SEQUENCES]
        inputs[f"cu_seqlens_{side}"] = numpy.cumsum([0, *lengths]).astype(numpy.int32)
    if sinks is not None:
        inputs["sink"] = numpy.array(sinks, numpy.float32)
    return inputs


def golden(inputs, window):
    """Results by the definition of the op."""
    arguments = [inputs[n] for n in ("q", "k", "v", "cu_seqlens_q", "cu_seqlens_k")]
    options = {"window": window, "sink": inputs.get("sink")}
    with numpy.errstate(all="ignore"):
        out, lse = varlen.reference.attention(*arguments, **options)
        dq, dk, dv, dsink = varlen.reference.gradients(
            inputs["dout"], *arguments, **options
        )
    return {"out": out, "lse": lse, "dq": dq, "dk": dk, "dv": dv, "dsink": dsink}


def run(target, dtype, window, inputs):
    options = {
        "dtype": dtype, "heads": HEADS, "kv_heads": KV_HEADS, "head_dim": DIM,
        "window": window, "sink": "sink" in inputs,
    }  # fmt: skip
    inputs = dict(inputs)
    dout = inputs.pop("dout")
    results = varlen.run(varlen.text.attn(**options), inputs, **target)
    inputs |= {"dout": dout} | results
    results |= varlen.run(varlen.text.attn_grad(**options), inputs, **target)
    return {name: varlen.dtypes.widen(values) for name, values in results.items()}


def classes(values):
    """0 for numbers, 1 and 2 for infinities, 3 for NaN."""
    tests = [numpy.isfinite(values), values == numpy.inf, values == -numpy.inf]
    return numpy.select(tests, [0, 1, 2], 3)


def compare(name, sequence, got, wanted, dtype):
    """What is wrong with a result of one sequence, or None."""
    wrong = classes(got) != classes(wanted)
    is_gradient = name.startswith("d")
    # A NaN in values, or in what gradients are made of, may reach rows that the
    # mask hides from it.
    if sequence.startswith("NaN in") and (
        is_gradient or sequence.startswith("NaN in a value")
    ):
        wrong &= ~numpy.isnan(got)
    if wrong.any():
        at = tuple(int(i) for i in numpy.argwhere(wrong)[0])
        others = int(wrong.sum()) - 1
        return f"got {got[at]} at {list(at)} and {others} others, wanted {wanted[at]}"
    if is_gradient and sequence.startswith("large"):
        return None  # sums of what cancels, times large numbers
    finite = numpy.isfinite(wanted) & numpy.isfinite(got)
    error = abs(got[finite] - wanted[finite]).max(initial=0)
    allowed = TOLERANCE[dtype] * (1 + abs(wanted[finite]).max(initial=0))
    return f"largest error {error:.3g}, allowed {allowed:.3g}" if error > allowed else None


def compare_rows_without_keys(name, got, queries, keys, window):
    """They are 0, exactly."""
    if name not in ("out", "dq"):
        return None
    seen = varlen.reference.visible(queries, keys, window)
    wrong = int((got[~seen.any(axis=1)] != 0).sum())
    return f"not 0 in {wrong} places of rows without a key" if wrong else None


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default=ROOT / "build", type=pathlib.Path)
    arguments = parser.parse_args()
    os.environ["VARLEN_BUILD"] = str(arguments.build.resolve())
    done = failed = 0
    for dtype, window, sinks in BATCHES:
        inputs = make_inputs(dtype, window, sinks)
        wanted = golden(inputs, window)
        for target, flags in TARGETS.items():
            results = run(flags, dtype, window, inputs)
            dsink = results.pop("dsink", None)
            for name, got in results.items():
                rows = inputs[f"cu_seqlens_{'k' if name in ('dk', 'dv') else 'q'}"]
                for (sequence, queries, keys, _), lo, hi in zip(SEQUENCES, rows, rows[1:]):
                    at = (slice(None), slice(lo, hi)) if name == "lse" else slice(lo, hi)
                    done += 1
                    problem = compare(name, sequence, got[at], wanted[name][at], dtype)
                    problem = problem or compare_rows_without_keys(
                        name, got[at], queries, keys, window
                    )
                    if problem:
                        failed += 1
                        print(f"{target}, {dtype} {window}, {sequence}, {name}: {problem}")
            if sinks is not None:
                # NaN in some sequence makes the others NaN.
                none = numpy.isneginf(inputs["sink"])
                done += 1
                if not (dsink[none] == 0).all():
                    failed += 1
                    print(f"{target}, {dtype} {window}: dsink of -inf is {dsink[none]}")
    print(f"{done} comparisons, {failed} failed")
    return int(failed != 0)


if __name__ == "__main__":
    sys.exit(main())
