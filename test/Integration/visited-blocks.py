#!/usr/bin/env python3
"""Which blocks are visited where a score region hides keys.

A key that is visited has a weight, 0 if it is hidden, and 0 times NaN is NaN: with NaN
for the values of one block of keys, the queries of a panel that visits the block get
NaN, those of others do not. Of masks that intervals can tell everything about, a panel
may visit a block exactly if some of its queries sees some of the keys. On a GPU the
panels are tiles.
"""
# RUN: %python %s --build %varlen-build | FileCheck %s
# RUN: %python %s --build %varlen-build --device=sim:sm_80 --rows=300 | FileCheck %s
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

# Two conditions that no window says, and one that intervals take for the causal mask.
MASKS = [scores.chunked(90), scores.chunked(256), scores.sliding_window(70, 5), scores.dilated(5)]
EXACT = {"dilated": scores.causal()}


def tile_sizes(text, chip):
    """Queries of a panel, and keys of a block."""
    assign = "--varlen-assign-schedule" + (f"=chip={chip}" if chip else "")
    scheduled = varlen.call("varlen-opt", "-", assign, text=text)
    schedule = re.search(r"[cg]pu_schedule<(.*?)>", scheduled)[1]
    sizes = {key: int(n) for key, n in re.findall(r"(\w+) = (\d+)", schedule)}
    return sizes.get("block_m") or sizes["lanes"] * sizes["vectors"], sizes["kv_block"]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default=ROOT / "build", type=pathlib.Path)
    parser.add_argument("--device", default="cpu", help="as varlen-run has it")
    parser.add_argument("--rows", default=1000, type=int)
    arguments = parser.parse_args()
    os.environ["VARLEN_BUILD"] = str(arguments.build.resolve())
    chip = arguments.device.partition(":")[2]
    dtype = "bf16" if chip else "f32"
    length = arguments.rows
    rng = numpy.random.default_rng(0)
    query, key = numpy.arange(length)[:, None], numpy.arange(length)[None, :]
    cu = numpy.array([0, length], numpy.int32)
    count = failed = 0
    for mask in MASKS:
        text = varlen.text.attn(dtype=dtype, heads=1, score=mask, same_cu=True)
        panel, block = tile_sizes(text, chip)
        visible = EXACT.get(mask.name, mask).visible(query, key)
        for first in range(0, length, block):
            keys = slice(first, min(first + block, length))
            q, k, v = (rng.standard_normal((length, 1, 64), numpy.float32) for _ in range(3))
            v[keys] = numpy.nan
            inputs = {name: varlen.dtypes.narrow(x, dtype) for name, x in zip("qkv", (q, k, v))}
            inputs["cu_seqlens_q"] = cu
            out = varlen.run(text, inputs, device=arguments.device)["out"]
            visits = numpy.isnan(varlen.dtypes.widen(out)).any(axis=(1, 2))
            for start in range(0, length, panel):
                rows = slice(start, min(start + panel, length))
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
