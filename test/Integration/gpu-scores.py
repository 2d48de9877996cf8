# REQUIRES: ptxas, venv
# RUN: %if long %{ %python %s --build %varlen-build --whole | FileCheck %s %} \
# RUN:   %else %{ %python %s --build %varlen-build | FileCheck %s %}
# CHECK: {{[1-9][0-9]*}} kernels, 0 spill

"""Kernels with a score, gradients and tangents of captures among them, spill no registers, under
any mask: ptxas says so."""

import argparse
import itertools
import os
import pathlib
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))

import varlen
from varlen import scores

PASSES = (varlen.text.attn, varlen.text.attn_grad, varlen.text.attn_jvp)
CAUSAL, FULL, WINDOW = (-1, 0), (-1, -1), (256, 16)
HEAD_DIMS, KINDS = (64, 128), (("bf16", CAUSAL), ("bf16", WINDOW), ("f16", FULL))
# What hides keys beside a function.
CAPPED = (
    varlen.text.attn_grad, scores.compose(scores.softcap(50.0), scores.document()), 64,
    ("bf16", CAUSAL),
)  # fmt: skip


def cases(whole):
    """Each score, pass and head_dim with each mask and each type: of bf16 and f16, whose kernels
    differ in the type of products alone, one without a mask. In part, the mask that takes the
    most registers where head_dim leaves the fewest."""
    kinds = KINDS if whole else KINDS[1:2]
    head_dims = HEAD_DIMS if whole else HEAD_DIMS[1:]
    some = scores.alibi(), scores.softcap(50.0)
    yield from itertools.product(PASSES, some, HEAD_DIMS, kinds)
    more = scores.t5_bias(), scores.dropout(0.1)
    yield from itertools.product(PASSES, more, head_dims, KINDS[:1])
    yield CAPPED


# Sums of tangents of a head_dim of 128 fill all registers: an address is spilled, which a tile loads
# once, before its blocks.
MOST_BYTES = {varlen.text.attn_jvp: 4}


def is_spill(case, line):
    return int(re.search(r"spills (\d+) bytes", line).group(1)) > MOST_BYTES.get(case[0], 0)


def report(case):
    make, score, head_dim, (dtype, window) = case
    more = {} if make is varlen.text.attn else {"wrt_captures": bool(score.captures)}
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder) / "a.mlir"
        source.write_text(
            make(
                dtype=dtype, heads=8, kv_heads=4, head_dim=head_dim, window=window, score=score,
                **more,
            )  # fmt: skip
        )
        done = subprocess.run(
            [varlen.find_tool("varlen-opt"), source, "--emit=cubin", "--chip=sm_80", "--report",
             "-o", source.with_suffix(".cubin")],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
    return done.stderr


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default=ROOT / "build", type=pathlib.Path)
    parser.add_argument("--whole", action="store_true")
    arguments = parser.parse_args()
    os.environ["VARLEN_BUILD"] = str(arguments.build.resolve())
    chosen = list(cases(arguments.whole))
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        reports = list(pool.map(report, chosen))
    kernels = sum(text.count(" registers\n") for text in reports)
    spills = [
        line for case, text in zip(chosen, reports)
        for line in re.findall(r".*spills.*", text) if is_spill(case, line)
    ]  # fmt: skip
    print(*spills, f"{kernels} kernels, {len(spills)} spill", sep="\n")


if __name__ == "__main__":
    main()
