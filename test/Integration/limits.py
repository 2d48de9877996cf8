#!/usr/bin/env python3
"""Attention at the edges of docs/limits.md, and one step beyond, where that is a
matter of seconds: right at the edge, refused with the message of that page beyond it.

All scores are 0: out is the mean of the values that a query sees, lse the logarithm
of their number.
"""
# RUN: %python %s --build %varlen-build | FileCheck %s
# CHECK: {{[1-9][0-9]*}} edges, 0 failed

import argparse
import math
import os
import pathlib
import re
import sys

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))

import numpy
import varlen

CPU, EXECUTOR = {"device": "cpu"}, {"device": "sim:sm_80", "sim_detector": "off"}
LARGEST_F32 = float(numpy.finfo(numpy.float32).max)


def attend(target, lengths, *, factor=0.0, logit=None, gradients=False, **options):
    """Runs an attention whose q is `factor` and whose k is 1 in the first column
    and both 0 in others; returns what is wrong with the results."""
    options = {"dtype": "bf16", "heads": 1, "index": "i64"} | options
    dtype, heads, dim = options["dtype"], options["heads"], options["head_dim"]
    value_dim = options.get("v_head_dim") or dim
    rows = sum(lengths)
    rng = numpy.random.default_rng(1)
    q = numpy.zeros((rows, heads, dim))
    k = numpy.zeros((rows, options.get("kv_heads") or heads, dim))
    q[:, :, 0], k[:, :, 0] = factor, 1
    v = rng.integers(-4, 5, (rows, k.shape[1], value_dim)).astype(float)
    compute = numpy.float64 if dtype == "f64" else numpy.float32
    cu_seqlens = numpy.cumsum([0, *lengths], dtype=numpy.int64)
    inputs = {
        "q": varlen.dtypes.narrow(q, dtype),
        "k": varlen.dtypes.narrow(k, dtype),
        "v": varlen.dtypes.narrow(v, dtype),
        "cu_seqlens_q": cu_seqlens,
        "cu_seqlens_k": cu_seqlens,
    }
    if options.get("sink"):
        inputs["sink"] = numpy.full(heads, logit, compute)
    results = varlen.run(varlen.text.attn(**options), inputs, **target)
    arguments = [inputs[n] for n in ("q", "k", "v", "cu_seqlens_q", "cu_seqlens_k")]
    reference = {"sink": inputs.get("sink"), "scale": options.get("scale")}
    out, lse = varlen.reference.attention(*arguments, **reference)
    wanted = {"out": out, "lse": lse}
    if gradients:
        inputs |= results | {"dout": inputs["v"]}
        more = varlen.run(varlen.text.attn_grad(**options), inputs, **target)
        golden = varlen.reference.gradients(inputs["dout"], *arguments, **reference)
        results |= more
        wanted |= {name: x for name, x in zip(("dq", "dk", "dv"), golden)}
    problems = []
    for name, expected in wanted.items():
        got = varlen.dtypes.widen(results[name])
        if not numpy.allclose(got, expected, rtol=0.01, atol=0.02):
            worst = numpy.unravel_index(
                numpy.nan_to_num(abs(got - expected), nan=numpy.inf).argmax(), got.shape
            )
            problems.append(f"{name}: got {got[worst]}, wanted {expected[worst]}")
    return problems


# What is tried: a name, the message that it is refused with or None, and how.
EDGES = [
    # Head sizes.
    ("head_dim 4096", None, CPU, [3, 2], {"head_dim": 4096}),
    ("head_dim of v 4096", None, CPU, [3, 2], {"head_dim": 8, "v_head_dim": 4096}),
    ("head_dim 4097", None, CPU, [3, 2], {"head_dim": 4097}),
    ("head_dim 1", None, CPU, [3, 2], {"head_dim": 1, "gradients": True}),
    ("head_dim 256", None, EXECUTOR, [17, 2], {"head_dim": 256}),
    ("head_dim 256", None, EXECUTOR, [17, 2],
     {"head_dim": 256, "dtype": "f32", "gradients": True}),
    ("head_dim 1", None, EXECUTOR, [17, 2], {"head_dim": 1, "gradients": True}),
    ("head_dim 257", "no tiles for head_dim 257 in", EXECUTOR, [3], {"head_dim": 257}),
    ("head_dim of v 257", "no tiles for head_dim 257 in", EXECUTOR, [3],
     {"head_dim": 64, "v_head_dim": 257}),
    ("f64", "no tiles for f64", EXECUTOR, [3], {"head_dim": 64, "dtype": "f64"}),
    # Heads and sequences, far more than a batch has.
    ("heads", None, CPU, [2, 1], {"head_dim": 8, "heads": 40000}),
    ("heads", None, EXECUTOR, [2], {"head_dim": 8, "heads": 4096, "kv_heads": 16}),
    # Most of them empty: the reference takes a tenth of a millisecond for each that is not.
    ("sequences", None, CPU, [1, 0, 0, 3, *[0] * 16] * 5000,
     {"head_dim": 8, "dtype": "f32", "gradients": True}),
    ("empty sequences", None, EXECUTOR, [3, *[0] * 100000, 5], {"head_dim": 8}),
    # One kernel makes lists of up to 1023 sequences, several those of more; either with tiles of
    # the last ones, and more than a block has threads.
    *((f"{n} sequences", None, EXECUTOR, [i % 7 == 0 for i in range(n - 1)] + [300],
       {"head_dim": 8, "gradients": True}) for n in (1023, 1024)),
    # Scales and sinks.
    ("scale 2^-126", None, CPU, [5], {"head_dim": 8, "scale": 2.0**-126, "factor": 1.0}),
    ("scale 2^-126", None, EXECUTOR, [5],
     {"head_dim": 8, "scale": 2.0**-126, "factor": 1.0}),
    ("scale 2^126", None, CPU, [5], {"head_dim": 8, "scale": 2.0**126, "factor": 2.0**-10}),
    ("scale 2^126", None, EXECUTOR, [5],
     {"head_dim": 8, "scale": 2.0**126, "factor": 2.0**-10}),
    ("scale 2^127", "expected scale from 2^-126 to 2^126", CPU, [5],
     {"head_dim": 8, "scale": 2.0**127}),
    ("sink 2^125", None, CPU, [5], {"head_dim": 8, "sink": True, "logit": 2.0**125}),
    ("sink 2^125", None, EXECUTOR, [5], {"head_dim": 8, "sink": True, "logit": 2.0**125}),
    ("sink -2^125", None, CPU, [5], {"head_dim": 8, "sink": True, "logit": -(2.0**125)}),
    ("sink -2^125", None, EXECUTOR, [5],
     {"head_dim": 8, "sink": True, "logit": -(2.0**125)}),
    ("sink of -inf", None, CPU, [5], {"head_dim": 8, "sink": True, "logit": -math.inf}),
    # Scores.
    ("logit 2^125", None, CPU, [5], {"head_dim": 8, "scale": 1.0, "factor": 2.0**125}),
    ("logit 2^125", None, EXECUTOR, [5], {"head_dim": 8, "scale": 1.0, "factor": 2.0**125}),
    ("logit -2^125", None, CPU, [5],
     {"head_dim": 8, "scale": 1.0, "factor": -(2.0**125), "dtype": "f32"}),
    ("logit -2^125", None, EXECUTOR, [5],
     {"head_dim": 8, "scale": 1.0, "factor": -(2.0**125)}),
    ("logit 2^1021", None, CPU, [5],
     {"head_dim": 8, "scale": 1.0, "factor": 2.0**1021, "dtype": "f64"}),
    # Windows.
    ("window of 2^63 - 1", None, CPU, [5], {"head_dim": 8, "window": (2**63 - 1,) * 2}),
    ("window of 2^63", "integer value too large", CPU, [5],
     {"head_dim": 8, "window": (2**63, -1)}),
    ("window of -2", "expected window bounds >= -1", CPU, [5],
     {"head_dim": 8, "window": (-2, -1)}),
]  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default=ROOT / "build", type=pathlib.Path)
    parser.add_argument("--only", default="", help="a regular expression on names")
    arguments = parser.parse_args()
    os.environ["VARLEN_BUILD"] = str(arguments.build.resolve())
    done = failed = 0
    for name, message, target, lengths, options in EDGES:
        if not re.search(arguments.only, name):
            continue
        try:
            problems = attend(target, lengths, **options)
            if message:
                problems.append(f"expected '{message}', it was run")
        except varlen.Error as error:
            refused = message and message in str(error)
            problems = [] if refused else [f"expected {message}, got: {error}"]
        done += 1
        if problems:
            failed += 1
            print(f"{name}, {target['device']}:", *problems, sep="\n  ", flush=True)
    print(f"{done} edges, {failed} failed")
    return int(failed != 0)


if __name__ == "__main__":
    sys.exit(main())
