#!/usr/bin/env python3
"""Which blocks code for a CPU visits where a score region hides keys.

A key that is visited has a weight, 0 if it is hidden, and 0 times NaN is NaN: with NaN
for the values of one block of keys, the queries of a panel that visits the block get
NaN, those of others do not. Of masks that intervals can tell everything about, a panel
may visit a block exactly if some of its queries sees some of the keys.
"""
# RUN: %python %s --build %varlen-build | FileCheck %s
# CHECK: {{[1-9][0-9]*}} blocks, 0 failed

import argparse
import os
import pathlib
import re
import sys

import numpy

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))

import varlen
from varlen import scores

ROWS = 1000
# Two conditions that no window says, and one that intervals take for the causal mask.
MASKS = [scores.chunked(90), scores.chunked(256), scores.sliding_window(70, 5), scores.dilated(5)]
EXACT = {"dilated": scores.causal()}


def tile_sizes(text):
    """Queries of a panel, and keys of a block."""
    scheduled = varlen.call("varlen-opt", "-", "--varlen-assign-schedule", text=text)
    schedule = re.search(r"cpu_schedule<(.*?)>", scheduled)[1]
    sizes = {key: int(n) for key, n in re.findall(r"(\w+) = (\d+)", schedule)}
    return sizes["lanes"] * sizes["vectors"], sizes["kv_block"]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default=ROOT / "build", type=pathlib.Path)
    os.environ["VARLEN_BUILD"] = str(parser.parse_args().build.resolve())
    rng = numpy.random.default_rng(0)
    query, key = numpy.arange(ROWS)[:, None], numpy.arange(ROWS)[None, :]
    cu = numpy.array([0, ROWS], numpy.int32)
    count = failed = 0
    for mask in MASKS:
        text = varlen.text.attn(heads=1, score=mask, same_cu=True)
        panel, block = tile_sizes(text)
        visible = EXACT.get(mask.name, mask).visible(query, key)
        for first in range(0, ROWS, block):
            keys = slice(first, min(first + block, ROWS))
            q, k, v = (rng.standard_normal((ROWS, 1, 64), numpy.float32) for _ in range(3))
            v[keys] = numpy.nan
            out = varlen.run(text, {"q": q, "k": k, "v": v, "cu_seqlens_q": cu})["out"]
            visits = numpy.isnan(out).any(axis=(1, 2))
            for start in range(0, ROWS, panel):
                rows = slice(start, min(start + panel, ROWS))
                count += 1
                # Blocks of a window begin at its first key: those of two numbers may
                # share a panel.
                near = slice(max(keys.start - block, 0), keys.stop + block)
                seen = visible[rows, keys].any()
                allowed = visible[rows, near].any() if mask.name == "sliding_window" else seen
                if (seen and not visits[rows].any()) or (visits[rows].any() and not allowed):
                    failed += 1
                    print(f"{mask.name}: queries {rows}, keys {keys}: seen {seen}")
    print(f"{count} blocks, {failed} failed")
    return int(failed != 0)


if __name__ == "__main__":
    sys.exit(main())
