#!/usr/bin/env python3
"""Which blocks are visited where a score region hides keys.

A pair that is visited has a weight, 0 if it is hidden, and 0 times NaN is NaN: with NaN
for the values of one block of keys, the queries of a panel that visits the block get
NaN, those of others do not; in gradients their dq. With NaN for dout of a panel of
queries, the blocks of keys that it visits get NaN for dv. A batch has one sequence for each
block or panel with NaN, which are alike otherwise. Of masks that intervals can
tell everything about, a panel may visit a block exactly if some of its queries sees some
of the keys. On a GPU the panels are tiles.
"""
# RUN: %around-code %python %s --build %varlen-build | FileCheck %s
# RUN: %around-code %python %s --build %varlen-build --gradients --rows=300 \
# RUN:   --only="prefix|document|both_ways.90" | FileCheck %s
# RUN: %python %s --build %varlen-build --device=sim:sm_80 --rows=200 | FileCheck %s
# RUN: %python %s --build %varlen-build --device=sim:sm_80 --rows=200 --gradients \
# RUN:   --only="prefix|causal" | FileCheck %s
# CHECK: {{[1-9][0-9]*}} blocks, {{[1-9][0-9]*}} visited, 0 failed

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


def both_ways(size):
    """Chunks whose queries see the keys ahead, too: no mask has that."""
    return scores.Score(
        f"both_ways({size})",
        lambda type: f"""%size = arith.constant {size} : i32
            %of_query = arith.floordivsi %query, %size : i32
            %of_key = arith.floordivsi %key, %size : i32
            %visible = arith.cmpi eq, %of_query, %of_key : i32""",
        None, None, {}, lambda query, key: query // size == key // size,
    )  # fmt: skip


# Those that become a mask, conditions that none says, of positions and of captures, and one
# that intervals take for the causal mask.
MASKS = [
    scores.chunked(90), scores.chunked(256), scores.sliding_window(70, 5), both_ways(90),
    both_ways(256), scores.dilated(5), scores.prefix_lm(), scores.document(),
    scores.compose(scores.document(), scores.causal()),
]  # fmt: skip
# Ranges of numbers of keys are looked at in tiles of queries on a GPU alone.
QUERY_TILE_MASKS = [scores.packed_documents(), scores.key_padding()]
EXACT = {"dilated": scores.causal()}
HEAD_DIM = 64


def captures_of(mask, length):
    """Documents and prefixes of several lengths: each query knows those of its own."""
    ends = numpy.cumsum([length // 9, length // 3, 1, length // 5, length])
    ends = numpy.minimum(ends, length).astype(numpy.float32)
    of_query = numpy.searchsorted(ends, numpy.arange(length), side="right")
    begins = numpy.concatenate([[0], ends[:-1]]).astype(numpy.float32)
    known = {"begin": begins[of_query], "end": ends[of_query]}
    # Half a row more: a prefix is no integer.
    known["ids"] = of_query
    # Padding in the middle, of more than a block.
    known["used"] = (numpy.arange(length) < length // 5) | (numpy.arange(length) >= length - 9)
    known["prefix"] = numpy.where(numpy.arange(length) < length // 2, length // 3 + 0.5, 3)
    return {name: known[name][None].astype(numpy.float32) for name in mask.captures}


def tile_sizes(text, chip, of_keys):
    """Queries of a panel, and keys of a block; of gradients on a GPU those of the kernel
    that owns dk and dv, if `of_keys`, or dq."""
    assign = "--varlen-assign-schedule" + (f"=chip={chip}" if chip else "")
    scheduled = varlen.call("varlen-opt", "-", assign, text=text)
    schedule = re.search(r"[cg]pu(?:_grad)?_schedule<(.*?)>+[,}]", scheduled)[1]
    if "dk = " in schedule:
        schedule = re.search(rf"{'dk' if of_keys else 'dq'} = <(.*?)>", schedule + ">")[1]
    sizes = {key: int(n) for key, n in re.findall(r"(\w+) = (\d+)", schedule)}
    return sizes.get("block_m") or sizes["lanes"] * sizes["vectors"], sizes["kv_block"]


class Attention:
    """Attention of one head that a mask hides keys of, forward or its gradients."""

    def __init__(self, mask, arguments):
        self.device = arguments.device
        self.chip = arguments.device.partition(":")[2]
        self.dtype = "bf16" if self.chip else "f32"
        self.length = arguments.rows
        self.captures = captures_of(mask, self.length)
        positions = numpy.arange(self.length)

        def argument(name):
            of_keys = mask.captures[name] == "key_table"
            values = self.captures[name][0]
            return scores.Table(values) if of_keys else values[:, None]

        self.visible = EXACT.get(mask.name, mask).visible(
            positions[:, None], positions[None, :],
            *map(argument, self.captures),
        )  # fmt: skip
        self.visible = numpy.broadcast_to(self.visible, (self.length, self.length))
        make = varlen.text.attn_grad if arguments.gradients else varlen.text.attn
        self.text = make(dtype=self.dtype, heads=1, head_dim=HEAD_DIM, score=mask, same_cu=True)

    def run(self, operand, parts):
        """The rows with NaN of each result, by part: each sequence of a batch has NaN for
        another part of the rows of the operand."""
        rng = numpy.random.default_rng(0)
        shape, count = (self.length, 1, HEAD_DIM), len(parts)
        inputs = {}
        for name in ("q", "k", "v", "dout", "out"):
            values = numpy.tile(rng.standard_normal(shape, numpy.float32), (count, 1, 1))
            for i, part in enumerate(parts if name == operand else []):
                values[i * self.length :][part] = numpy.nan
            inputs[name] = varlen.dtypes.narrow(values, self.dtype)
        inputs["lse"] = numpy.full((1, count * self.length), 8, numpy.float32)
        if "attn_grad" not in self.text:
            inputs = {name: inputs[name] for name in "qkv"}
        inputs["cu_seqlens_q"] = numpy.arange(count + 1, dtype=numpy.int32) * self.length
        inputs |= {name: numpy.tile(x, (1, count)) for name, x in self.captures.items()}
        results = varlen.run(self.text, inputs, device=self.device)
        return {
            name: numpy.isnan(varlen.dtypes.widen(values)).any(axis=(1, 2)).reshape(count, -1)
            for name, values in results.items()
            if values.ndim == 3
        }


def slices(length, size):
    return [slice(start, min(start + size, length)) for start in range(0, length, size)]


class Counts:
    blocks = visited = failed = 0

    def add(self, mask, attention, rows, keys, block, visits):
        # Blocks of a window begin at its first key: those of two numbers may share a
        # panel.
        near = slice(max(keys.start - block, 0), keys.stop + block)
        seen = attention.visible[rows, keys].any()
        allowed = seen
        if mask.name == "sliding_window":
            allowed = attention.visible[rows, near].any()
        self.blocks += 1
        self.visited += bool(visits)
        if (seen and not visits) or (visits and not allowed):
            self.failed += 1
            print(f"{mask.name}: queries {rows}, keys {keys}: seen {seen}, visited {visits}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default=ROOT / "build", type=pathlib.Path)
    parser.add_argument("--device", default="cpu", help="as varlen-run has it")
    parser.add_argument("--rows", default=1000, type=int)
    parser.add_argument("--gradients", action="store_true")
    parser.add_argument("--only", default="", help="a regular expression on names")
    arguments = parser.parse_args()
    os.environ["VARLEN_BUILD"] = str(arguments.build.resolve())
    looks_up = arguments.device != "cpu" and not arguments.gradients
    counts = Counts()
    for mask in MASKS + (QUERY_TILE_MASKS if looks_up else []):
        if not re.search(arguments.only, mask.name):
            continue
        attention = Attention(mask, arguments)
        own = "dq" if arguments.gradients else "out"
        panel, block = tile_sizes(attention.text, attention.chip, of_keys=False)
        panels = slices(attention.length, panel)
        blocks = slices(attention.length, block)
        for keys, visits in zip(blocks, attention.run("v", blocks)[own]):
            for rows in panels:
                counts.add(mask, attention, rows, keys, block, visits[rows].any())
        if not arguments.gradients:
            continue
        panel, block = tile_sizes(attention.text, attention.chip, of_keys=True)
        panels = slices(attention.length, panel)
        for rows, visits in zip(panels, attention.run("dout", panels)["dv"]):
            for keys in slices(attention.length, block):
                counts.add(mask, attention, rows, keys, block, visits[keys].any())
    print(f"{counts.blocks} blocks, {counts.visited} visited, {counts.failed} failed")
    return int(counts.failed != 0)


if __name__ == "__main__":
    sys.exit(main())
