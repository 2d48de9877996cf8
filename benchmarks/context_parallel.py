#!/usr/bin/env python3
"""Plans of context parallelism for many ranks, without one of them: how even work is, what is
sent, and how long that takes by measured times of one GPU and published speeds of links. The
tables of docs/context-parallel.md.

    context_parallel.py            # about a minute
"""

import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "benchmarks")]
import sets
from varlen import context_parallel as plans

RANKS = (8, 64, 256, 1024)
ROWS = 8192  # of a batch for each rank
# The type of the estimates: bf16, as a model of 8 billion parameters has it.
HEADS, KV_HEADS, HEAD_DIM, ITEMSIZE = 32, 8, 128, 2
# Bytes a second in one direction, of one GPU: NVLink 4 within eight GPUs of a machine, and an
# InfiniBand NDR port of 400 Gb/s for each GPU between machines.
LINKS = {"NVLink 4, 450 GB/s": 450e9, "NDR, 50 GB/s": 50e9}


def nanochat(tokens):
    """benchmarks/sets.py's documents of one micro-batch, for as many tokens."""
    return sets.nanochat_documents(tokens)


def longtail(tokens, longest=131072):
    return sets._distribution_lengths("longtail", tokens, longest)


BATCHES = {
    "nanochat, causal": (nanochat, (-1, 0)), "nanochat, window 512": (nanochat, (512, 0)),
    "longtail, causal": (longtail, (-1, 0)), "longtail, window 4096": (longtail, (4096, 0)),
}  # fmt: skip


def cumulate(lengths):
    ends = [0]
    for length in lengths:
        ends.append(ends[-1] + length)
    return ends


def padded_imbalance(lengths, ranks, is_zigzag):
    """The work of the slowest rank over the mean of useful work, where each sequence is padded to
    the longest and divided into equal parts, as frameworks do it that want multiples of twice the
    ranks: of a causal mask."""
    unit = -(-max(lengths) // (2 * ranks))
    longest = 2 * ranks * unit
    useful = sum(n * (n + 1) / 2 for n in lengths) / ranks

    def pairs(begin, end):
        return (end - begin) * (begin + end + 1) / 2

    if is_zigzag:
        slowest = pairs(0, unit) + pairs(longest - unit, longest)
    else:
        slowest = pairs(longest - 2 * unit, longest)
    return slowest * len(lengths) / useful


def received_rows(plan, rank):
    needed = plan.needed_keys(rank)
    own = sum(x.end - x.begin for x in plans.intersect(plan.own_keys(rank), needed))
    return sum(x.end - x.begin for x in needed) - own


def measured_tflops():
    """Forward and backward on an H100: causal, bf16, head_dim 128, the batch pr164502."""
    rows = json.loads((ROOT / "benchmarks/results/h100/speed.json").read_text())
    return [
        next(
            r["tflops"] for r in rows
            if r["kind"] == "speed" and r["label"].startswith("pr164502 bf16 d128 causal")
            and r["direction"] == direction
        )
        for direction in ("forward", "backward")
    ]  # fmt: skip


def main():
    forward, backward = measured_tflops()
    print("| batch | ranks | documents | contiguous | zigzag | padded, contiguous | padded, zigzag |")
    print("|---|---|---|---|---|---|---|")
    estimates = []
    for name, (make, window) in BATCHES.items():
        for ranks in RANKS:
            lengths = make(max(ranks * ROWS, 16 * ROWS))
            made = {
                layout: plans.plan(cumulate(lengths), ranks=ranks, window=window, layout=layout)
                for layout in plans.LAYOUTS
            }
            row = [f"{made[layout].imbalance():.3f}" for layout in plans.LAYOUTS]
            row += [
                f"{padded_imbalance(lengths, ranks, zigzag):.1f}" if window == (-1, 0) else ""
                for zigzag in (False, True)
            ]
            print(f"| {name} | {ranks} | {' | '.join(row)} |")
            estimates.append((name, ranks, made["documents"]))
    print()
    print("| batch | ranks | rows a rank gets | MB | attention, ms | " + " | ".join(LINKS) + " |")
    print("|---|---|---|---|---|" + "---|" * len(LINKS))
    for name, ranks, plan in estimates:
        rows = sorted(received_rows(plan, rank) for rank in range(ranks))
        size = rows[-1] * KV_HEADS * 2 * HEAD_DIM * ITEMSIZE
        pairs = max(sum(c.pairs for c in chunks) for chunks in plan.chunks)
        ms = 2 * 2 * pairs * HEADS * HEAD_DIM / forward / 1e9
        links = [f"{size / speed * 1e3:.2f}" for speed in LINKS.values()]
        print(f"| {name} | {ranks} | {sum(rows) / ranks:.0f}, at most {rows[-1]} | {size / 1e6:.0f} | {ms:.2f} | {' | '.join(links)} |")
    print(f"\nforward {forward:.0f}, backward {backward:.0f} TFLOP/s")


if __name__ == "__main__":
    main()
