#!/usr/bin/env python3
"""What a change of this project costs: code of two builds in one process, calls in turns.

The machine's speed changes more from one process to the next than most changes do; two calls
after each other see the same machine. Each row is a workload of `make bench` with fewer heads,
or of many short sequences, on one thread that stays on one core. Quotients are the time of the
old build over that of the new one: the median of those of pairs of calls, its standard error
(by bootstrap), and the quotient of the least times.

    builds.py OLD NEW [--seconds 10] [--only REGEX] [--target host] [--core 1] [--heads 2]

OLD and NEW are build directories with bin/varlen-opt.
"""

import argparse
import ctypes
import dataclasses
import os
import pathlib
import re
import statistics
import sys
import tempfile
import time

import numpy

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "benchmarks")]

import sets  # noqa: E402
import varlen  # noqa: E402
from ours import draw_inputs, text_options  # noqa: E402

LEAST_CALLS = 8


def list_rows(heads):
    """The quick rows of `make bench` on one thread, and sequences shorter than a tile."""
    rows = [c for c in sets.configurations(quick=True) if c.page is None and c.kv_dtype is None]
    for length, count in [(8, 256), (16, 256), (33, 64)]:
        batch = sets.Batch("short", str(length), (length,) * count, (length,) * count, heads, heads)
        for dtype in ["f32", "bf16"]:
            for head_dim in [64, 128]:
                rows.append(sets.Config(batch, dtype, head_dim, sets.CAUSAL, 1))
    for row in rows:
        group = row.batch.heads // row.batch.kv_heads
        kv_heads = max(1, heads // group)
        batch = dataclasses.replace(row.batch, heads=kv_heads * group, kv_heads=kv_heads)
        yield dataclasses.replace(row, batch=batch, threads=1)


def get_text(row, direction):
    make = varlen.text.attn if direction == "forward" else varlen.text.attn_grad
    return make(**text_options(row))


def draw(row):
    """Operands and results by name."""
    arrays = draw_inputs(row)
    arrays["out"] = numpy.zeros_like(arrays["q"])
    arrays["lse"] = numpy.zeros((row.batch.heads, row.batch.tokens_q), numpy.float32)
    return arrays | {f"d{name}": numpy.zeros_like(arrays[name]) for name in "qkv"}


def describe(array):
    """The array as a memref's descriptor."""
    strides = [stride // array.itemsize for stride in array.strides]
    fields = [array.ctypes.data, array.ctypes.data, 0, *array.shape, *strides]
    return (ctypes.c_int64 * len(fields))(*fields)


def bind(build, text, target, folder, arrays):
    """A function of no arguments that runs the code of that build on the arrays."""
    library = pathlib.Path(folder) / f"{len(list(pathlib.Path(folder).iterdir()))}.so"
    os.environ["VARLEN_BUILD"] = str(build)
    varlen.call(
        "varlen-opt", "-", "--emit=so", f"--target={target}", "-o", str(library), text=text
    )
    symbol = "_mlir_ciface_" + re.search(r"func.func @(\w+)", text)[1]
    function = getattr(ctypes.CDLL(str(library)), symbol)
    function.restype = None
    descriptors = [describe(arrays[name]) for name in re.findall(r'varlen.name = "(\w+)"', text)]
    return lambda: function(*map(ctypes.byref, descriptors))


def take_turns(old, new, seconds):
    """The times of both, pair by pair; each is first in every other pair."""
    times = []
    for call in (old, new):
        call()
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < LEAST_CALLS:
        pair = [0.0, 0.0]
        for place in (0, 1) if len(times) % 2 else (1, 0):
            begin = time.perf_counter()
            (old, new)[place]()
            pair[place] = time.perf_counter() - begin
        times.append(pair)
    return times


def summarise(times):
    quotients = [old / new for old, new in times]
    rng = numpy.random.default_rng(0)
    medians = [
        statistics.median(rng.choice(quotients, len(quotients))) for _ in range(200)
    ]
    old, new = (min(column) for column in zip(*times))
    return statistics.median(quotients), statistics.pstdev(medians), old / new, 1e3 * new


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("old", type=pathlib.Path)
    parser.add_argument("new", type=pathlib.Path)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--only", default="", help="rows whose label this expression finds")
    parser.add_argument("--target", default="host")
    parser.add_argument("--core", type=int, default=1)
    parser.add_argument("--heads", type=int, default=2)
    options = parser.parse_args()
    os.sched_setaffinity(0, {options.core})
    print(f"{'':48}{'pairs':>6}{'old/new':>9}{'error':>7}{'least':>7}{'new, ms':>9}")
    for row in list_rows(options.heads):
        if not re.search(options.only, row.label):
            continue
        arrays = draw(row)
        with tempfile.TemporaryDirectory() as folder:
            if row.direction == "backward":
                # Gradients need the out and lse of their inputs.
                forward = get_text(row, "forward")
                bind(options.new, forward, options.target, folder, arrays)()
            text = get_text(row, row.direction)
            old, new = (
                bind(build, text, options.target, folder, arrays)
                for build in (options.old, options.new)
            )
            times = take_turns(old, new, options.seconds)
        median, error, least, ms = summarise(times)
        print(
            f"{row.label:48}{len(times):6}{median:9.3f}{error:7.3f}{least:7.3f}{ms:9.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
