#!/usr/bin/env python3
"""The order of work on a GPU: longest first, of few and of many sequences, and where a score
region hides keys.

The kernels that make lists run in the executor and leave what they have found: the blocks
that each tile visits, and the list. Of regions that intervals can tell everything about,
the number is that of the blocks with a visible pair, of the kv head that has the most; of
random regions it is no less, and no more than the mask leaves. The list has the sequence
with the longest tile first, and of each sequence the longest tile. Without a region a tile is as
long as its sequence.
"""
# RUN: %python %s --build %varlen-build | FileCheck %s
# Lists of keys do not look at numbers that are looked up.
# CHECK: 55 lists, {{[1-9][0-9]*}} tiles, 0 failed

import argparse
import dataclasses
import importlib
import os
import pathlib
import re
import sys

import numpy

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))

import varlen
from varlen import scores

Region = importlib.import_module("hidden-blocks").Region
both_ways = importlib.import_module("visited-blocks").both_ways
CHIP = "sm_80"


@dataclasses.dataclass
class Case:
    score: scores.Score | None
    lengths: tuple
    heads: int = 2
    kv_heads: int = 2
    # Rows past the last sequence.
    past: int = 0
    is_exact: bool = True


# A sequence of many tiles, several with empty ones and one token, in which the longest is
# not the one with most rows, more sequences than one pass sorts.
ONE, SOME = (700,), (300, 0, 1, 500, 129, 64, 0)
MANY = tuple(1 + 37 * i % 90 for i in range(20))
# One kernel makes lists of up to 1023 sequences, in a pass for each factor of 16; several make
# those of more. Lengths that are the same keep their order.
NUMBERS = (0, 16, 300, 1023, 1024)
CASES = [
    *[Case(None, tuple(37 * i % 90 for i in range(n)), past=n % 2) for n in NUMBERS],
    # More tiles than the kernel has threads.
    Case(None, (33000, 0, 129, 33000), heads=4),
    Case(None, MANY, kv_heads=1, past=70),
    Case(scores.prefix_lm(), ONE),
    Case(scores.prefix_lm(), SOME, heads=4, past=70),
    Case(scores.document(), ONE, heads=4, kv_heads=1),
    Case(scores.document(), SOME, past=3),
    Case(scores.compose(scores.document(), scores.causal()), SOME, heads=4),
    Case(scores.document(), MANY),
    Case(both_ways(150), SOME, heads=4),
    Case(scores.packed_documents(), SOME),
    Case(scores.key_padding(), SOME),
    *[Case(Region(seed).score(), SOME, is_exact=False) for seed in (3, 11, 25)],
]


def captures_of(case, rng):
    """Numbers that differ between heads: no two have the same documents or prefixes."""
    heads, rows = case.heads, sum(case.lengths) + case.past
    made = {name: numpy.zeros((heads, rows)) for name in case.score.captures}
    begin = 0
    for length in case.lengths:
        at = slice(begin, begin + length)
        begin += length
        for head in range(heads):
            cuts = numpy.sort(rng.integers(0, length + 1, 3))
            ends = numpy.append(cuts, length)
            number = numpy.searchsorted(ends, numpy.arange(length), side="right")
            known = {
                "begin": numpy.append(0, ends)[number], "end": numpy.append(ends, 0)[number],
                "ids": number, "used": number % 2,
                "prefix": numpy.where(number < 2, cuts[0] + 0.5, cuts[1]),
                "b": rng.integers(-300, 300, length), "c": rng.integers(0, 300, length) / 2,
            }  # fmt: skip
            for name in made.keys() & known.keys():
                made[name][head, at] = known[name]
    if "a" in made:
        made["a"] = rng.integers(-300, 300, heads)
    return {name: numbers.astype(numpy.float32) for name, numbers in made.items()}


def visible(case, captures, s, head):
    """The pairs of a sequence that are visible, without a mask attribute, which none of
    the cases has after the region."""
    begin, length = sum(case.lengths[:s]), case.lengths[s]

    def argument(name):
        values = captures[name]
        if case.score.captures[name] == "head":
            return values[head]
        values = values[head, begin : begin + length]
        if case.score.captures[name] == "key_table":
            return scores.Table(values)
        return values[:, None]

    positions = numpy.arange(length, dtype=numpy.int32)
    with numpy.errstate(all="ignore"):
        seen = case.score.visible(
            positions[:, None], positions[None, :], *map(argument, captures)
        )
    return numpy.broadcast_to(seen, (length, length))


def count_blocks(case, captures, s, own, other, of_keys):
    """How many blocks of `other` rows each tile of `own` rows visits, of the kv head that
    has the most: [tiles]."""
    group = case.heads // case.kv_heads
    length = case.lengths[s]
    counts = []
    for kv_head in range(case.kv_heads):
        seen = [visible(case, captures, s, kv_head * group + i) for i in range(group)]
        starts = range(0, length, other)
        if of_keys:
            counts.append([
                sum(
                    pairs[start : start + other, key : key + own].any()
                    for pairs in seen for start in starts
                )
                for key in range(0, length, own)
            ])  # fmt: skip
        else:
            # Pairs: the heads of a group follow each other.
            pairs = numpy.stack(seen, axis=1).reshape(length * group, length)
            counts.append([
                sum(pairs[first : first + own, start : start + other].any() for start in starts)
                for first in range(0, length * group, own)
            ])  # fmt: skip
    return numpy.max(numpy.array(counts), axis=0) if length else numpy.array([], int)


# What lists are made in, in the order in which it is allocated; behind the count of a list
# there is a counter for each loop over it.
MEMORY = {
    "list": r"memref<\?x2xi32>", "count": r"memref<\dxi64>", "table": r"memref<2x3x\?xi64>",
    "weights": r"memref<\?xi32>",
}  # fmt: skip


def list_kernels(text, weighted):
    """Host code with the kernels alone that make lists, whose memory is arguments; and
    what each list, of those that have weights if `weighted`, is of: rows of a tile, rows of a block, and whether of
    keys."""
    scheduled = varlen.call("varlen-opt", "-", f"--varlen-assign-schedule=chip={CHIP}", text=text)
    text = varlen.call("varlen-opt", "-", f"--varlen-attn-to-tiles=chip={CHIP}", text=scheduled)
    kinds = []
    for role in ("gpu_schedule", "dq = ", "dk = "):
        of_keys = role == "dk = "
        if found := re.search(rf"{role}<([^>]*)>", scheduled):
            sizes = {key: int(n) for key, n in re.findall(r"(\w+) = (\d+)", found[1])}
            queries, keys = sizes["block_m"], sizes["kv_block"]
            if not weighted or re.search(rf"@[a-z]+{'_key' * of_keys}_tiles_weights ", text):
                kinds.append((keys, queries, True) if of_keys else (queries, keys, False))
    # The kernels of the attention would take most of the time.
    for kernel in re.findall(r"gpu.func @(\w+)", text):
        if "_tiles" not in kernel:
            text = re.sub(rf"^    gpu.func @{kernel}\(.*?^    }}\n", "", text, flags=re.M | re.S)
            text = re.sub(rf"^ *gpu.launch_func +@kernels::@{kernel} .*\n", "", text, flags=re.M)
    arguments = ""
    for name, pattern in MEMORY.items():
        made = re.findall(rf"(%\w+) = memref.alloc\(.*\) : ({pattern})\n", text)
        for n, (value, type) in enumerate(made):
            text = re.sub(
                rf"^ *({value} = memref.alloc|memref.dealloc {value} ).*\n", "", text, flags=re.M
            )
            text = re.sub(rf"{value}\b", f"%{name}_{n}", text)
            arguments += f', %{name}_{n}: {type} {{varlen.name = "{name}_{n}"}}'
    # Scratch of kernels that are gone.
    text = re.sub(r"^.* = memref.alloc\(.*\n|^ *memref.dealloc .*\n", "", text, flags=re.M)
    return re.sub(r"\) (?=\{\n)", f"{arguments}) ", text, count=1), kinds


def inputs_of(case, captures, gradients, text):
    """Lists as well, more than they need: without weights a list has no memory for
    them, and inputs that no argument has are none."""
    rows = sum(case.lengths) + case.past
    bound = 999 + len(case.lengths) + rows * case.heads // 64
    q = numpy.zeros((rows, case.heads, 64), numpy.float32)
    k = numpy.zeros((rows, case.kv_heads, 64), numpy.float32)
    vectors = {"q": q, "k": k, "v": k, "out": q}
    if gradients:
        vectors |= {"dout": q, "dq": q, "dk": k, "dv": k}
    made = {name: varlen.dtypes.narrow(array, "bf16") for name, array in vectors.items()}
    made["lse"] = numpy.zeros((case.heads, rows), numpy.float32)
    made["cu_seqlens_q"] = numpy.cumsum([0, *case.lengths], dtype=numpy.int32)
    for n in range(1 + gradients):
        made[f"list_{n}"] = numpy.full((bound, 2), -1, numpy.int32)
        counts = re.search(rf"%count_{n}: memref<(\d)xi64>", text)
        made[f"count_{n}"] = numpy.full(int(counts[1]), -1, numpy.int64)
        made[f"table_{n}"] = numpy.zeros((2, 3, len(case.lengths) + 1), numpy.int64)
        made[f"weights_{n}"] = numpy.full(bound, -1, numpy.int32)
    return made | captures


def check_weights(case, captures, kind, s, found):
    """What is wrong with the weights of the tiles of a sequence, as lines."""
    own, other, of_keys = kind
    length = [*case.lengths, case.past][s]
    exact = numpy.zeros(len(found), int)
    if s < len(case.lengths):
        exact = count_blocks(case, captures, s, own, other, of_keys)
    most = -(-length // other) * (case.heads // case.kv_heads if of_keys else 1)
    if case.is_exact and (found != exact).any():
        return [f"sequence {s}: wanted {exact}, got {found}"]
    if (found < exact).any() or (found > most).any():
        return [f"sequence {s}: wanted {exact} to {most}, got {found}"]
    return []


def check(case, captures, kind, entries, count, weights):
    """What is wrong with a list, as lines."""
    own, _, of_keys = kind
    group = 1 if of_keys else case.heads // case.kv_heads
    starts = numpy.cumsum([0, *case.lengths]) * group
    lengths = [*case.lengths, case.past]
    expected, problems = [], []
    for s, length in enumerate(lengths):
        tiles = -(-length * group // own)
        slot = starts[s] // own + s
        if case.score:
            found = weights[slot : slot + tiles]
            problems += check_weights(case, captures, kind, s, found)
        else:
            found = numpy.full(tiles, length)
        # Items of equal weight as a causal mask has them.
        order = sorted(range(tiles), key=lambda t: (-found[t], t if of_keys else -t))
        expected.append((-found.max(initial=0), s, order))
    wanted = [(s, tile) for _, s, order in sorted(expected) for tile in order]
    if count[1:].any():
        problems.append(f"wanted counters at 0, got {count[1:]}")
    listed = [tuple(entry) for entry in entries[: count[0]]]
    if listed != wanted:
        problems.append(f"wanted the order {wanted}, got {listed}")
    return problems, len(wanted)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default=ROOT / "build", type=pathlib.Path)
    parser.add_argument("--only", default="", help="a regular expression on names")
    arguments = parser.parse_args()
    os.environ["VARLEN_BUILD"] = str(arguments.build.resolve())
    lists = tiles = failed = 0
    for number, case in enumerate(CASES):
        name = case.score.name if case.score else f"{len(case.lengths)} sequences"
        if not re.search(arguments.only, name):
            continue
        captures = {}
        if case.score:
            captures = captures_of(case, numpy.random.default_rng(number))
        for gradients in (False, True):
            make = varlen.text.attn_grad if gradients else varlen.text.attn
            options = {"wrt_captures": False} if gradients and case.score else {}
            text, kinds = list_kernels(make(
                dtype="bf16", heads=case.heads, kv_heads=case.kv_heads, head_dim=64,
                score=case.score, same_cu=True, buffers=True, **options,
            ), bool(case.score))  # fmt: skip
            inputs = inputs_of(case, captures, gradients, text)
            inputs = {key: array for key, array in inputs.items() if f'"{key}"' in text}
            results = varlen.run(text, inputs, device=f"sim:{CHIP}", sim_runs=2)
            for n, kind in enumerate(kinds):
                problems, entries = check(
                    case, captures, kind,
                    *(results.get(f"{key}_{n}") for key in ("list", "count", "weights")),
                )  # fmt: skip
                lists += 1
                tiles += entries
                failed += bool(problems)
                for problem in problems:
                    print(f"{name}, {'gradients' if gradients else 'forward'}, "
                          f"tiles of {'keys' if kind[2] else 'queries'}: {problem}")  # fmt: skip
    print(f"{lists} lists, {tiles} tiles, {failed} failed")
    return int(failed != 0)


if __name__ == "__main__":
    sys.exit(main())
