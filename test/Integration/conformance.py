#!/usr/bin/env python3
"""FlashAttention's parameters of variable-length attention, end to end.

Every group of Inputs/parameters.py goes as text through varlen-run; the result,
or with --gradients each gradient, with --tangents each tangent, must be as close to the
golden one as the rule of python/varlen/tolerance.py has it (see Inputs/harness.py,
Inputs/attn_gradients.py, Inputs/attn_tangents.py).
`make conformance` runs all groups on the CPU,
`make conformance DEVICE=sim:sm_80` those that a GPU has kernels for in the
executor; as a test this runs a sample in which every value of every parameter
occurs.
"""
# RUN: %python %s --build %varlen-build --sample | FileCheck %s
# RUN: %python %s --build %varlen-build --sample --gradients | FileCheck %s
# RUN: %python %s --build %varlen-build --sample --tangents | FileCheck %s
# RUN: %if long %{ %python %s --build %varlen-build --part=1/20 | FileCheck %s %}
# RUN: %if long %{ %python %s --build %varlen-build --part=2/20 --gradients | FileCheck %s %}
# RUN: %if long %{ %python %s --build %varlen-build --part=3/20 --tangents | FileCheck %s %}
# CHECK: {{[1-9][0-9]*}} groups, 0 failed

import argparse
import ctypes
import multiprocessing
import os
import pathlib
import re
import sys
import time
import zlib

# One process a core, each with its own share of the golden results.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "test/Integration/Inputs"), str(ROOT / "python")]

import attn_gradients
import attn_tangents
import harness
import parameters
import varlen

# What is run and judged: harness, attn_gradients or attn_tangents.
kind = harness


def run_group(group):
    try:
        golden = {"golden": True} if kind is attn_gradients else {}
        inputs = kind.make_inputs(group, **golden)
        return group, kind.judge(group, inputs, kind.run(group, inputs))
    except varlen.Error as error:
        return group, [str(error)]


def keep_memory():
    """A golden result takes arrays of megabytes by the thousand: glibc must not
    give each back to the system, which clears it for the next one."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt:
        for option in (-3, -1):  # M_MMAP_THRESHOLD, M_TRIM_THRESHOLD
            mallopt(option, 1 << 30)


def part_of(text):
    part, parts = map(int, text.split("/"))
    if not 1 <= part <= parts:
        raise ValueError
    return part, parts


def in_part(group, part, parts):
    """Groups keep their part whatever else the lists have."""
    return zlib.crc32(group.label.encode()) % parts == part - 1


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default=ROOT / "build", type=pathlib.Path)
    parser.add_argument("--sample", action="store_true", help="a sample of the groups")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--gradients", action="store_true", help="not the result")
    what.add_argument("--tangents", action="store_true", help="not the result")
    parser.add_argument("--only", default="", help="a regular expression on labels")
    parser.add_argument(
        "--part", default="1/1", type=part_of, metavar="I/N",
        help="the I-th of N parts, for lists that take longer than a machine is there",
    )  # fmt: skip
    parser.add_argument(
        "--longest", default=4224, type=int, metavar="ROWS",
        help="leaves longer sequences of FlashAttention's lists out, which take most of the time",
    )  # fmt: skip
    parser.add_argument("--jobs", default=len(os.sched_getaffinity(0)), type=int)
    parser.add_argument("--device", default="cpu", help="as varlen-run has it")
    parser.add_argument("--pipeline", help="passes instead of those of the device")
    arguments = parser.parse_args()
    # Before the pool's processes are made, which inherit it.
    harness.device = arguments.device
    harness.pipeline = arguments.pipeline
    global kind
    if arguments.gradients:
        kind = attn_gradients
    if arguments.tangents:
        kind = attn_tangents

    os.environ["VARLEN_BUILD"] = str(arguments.build.resolve())
    if not arguments.sample:
        groups = parameters.all_groups(arguments.device, arguments.longest)
        if arguments.gradients:
            groups = filter(parameters.has_gradients, groups)
    elif arguments.gradients:
        groups = parameters.sample_gradient_groups()
    elif arguments.tangents:
        groups = parameters.sample_tangent_groups(arguments.device)
    else:
        groups = parameters.sample_groups(arguments.device)
    if arguments.tangents and arguments.pipeline:
        parser.error("--tangents: expected no --pipeline")
    groups = [
        group for group in groups
        if re.search(arguments.only, group.label)
        and parameters.has_kernel(group, arguments.device, arguments.tangents)
        and in_part(group, *arguments.part)
    ]  # fmt: skip
    if not groups:
        sys.exit(f"no group of the part matches '{arguments.only}'")
    begin = time.monotonic()
    failed = 0
    with multiprocessing.Pool(arguments.jobs, keep_memory) as pool:
        for i, (group, problems) in enumerate(pool.imap_unordered(run_group, groups)):
            if problems:
                failed += 1
                print(f"FAIL {group.label}", *problems[:10], sep="\n  ", flush=True)
            if sys.stderr.isatty():
                elapsed = time.monotonic() - begin
                print(
                    f"\r[{i + 1}/{len(groups)}, {elapsed:.0f} s, {failed} failed] "
                    f"{group.label}\x1b[K", end="", file=sys.stderr, flush=True,
                )  # fmt: skip
    if sys.stderr.isatty():
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)
    print(f"{len(groups)} groups, {failed} failed")
    return int(failed != 0)


if __name__ == "__main__":
    sys.exit(main())
