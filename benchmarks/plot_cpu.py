#!/usr/bin/env python3
"""Makes README's picture and its table of one set of results: files that cpu.py has written,
several runs of the same machine, of which each number is the median.

    plot_cpu.py benchmarks/results/cpu/*.json --out docs/images/cpu.png

prints the table. The files are committed with both, so neither is newer than the other.
"""

import argparse
import dataclasses
import json
import pathlib
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "python"))

from cpu import Row

# What tells rows of one run apart.
KEY = (
    "set", "batch", "direction", "dtype", "head_dim", "heads", "kv_heads", "mask", "threads", "page",
    "kv_dtype",
)  # fmt: skip
# The batches of the table, and what it calls them.
BATCHES = {("pr164502", ""): "pr164502", ("nanochat-d24", "exact"): "nanochat"}
HEAD = (
    "batch", "type", "head_dim", "mask", "forward GFLOP/s", "of the peak", "PyTorch takes",
    "backward GFLOP/s", "of the peak", "PyTorch takes",
)  # fmt: skip


def median(rows):
    """One row of several: the medians of what was measured, with the most frequent peer."""
    numbers = (
        "ms", "gflops", "peak_gflops", "fraction", "peer_ms", "ratio", "plain_ms", "gbytes",
        "read_gbytes",
    )  # fmt: skip
    measured = {}
    for name in numbers:
        values = [getattr(row, name) for row in rows if getattr(row, name) is not None]
        measured[name] = statistics.median(values) if values else None
    peer = statistics.mode(row.peer for row in rows)
    return dataclasses.replace(
        rows[0], **measured, peer=peer, steady=all(row.steady for row in rows)
    )


def read(files):
    found = {}
    for file in files:
        for values in json.loads(file.read_text()):
            row = Row(**values)
            found.setdefault(tuple(getattr(row, name) for name in KEY), []).append(row)
    return [median(rows) for rows in found.values()]


def cells(row):
    if row is None:
        return ["", "", ""]
    ratio = "" if row.ratio is None else f"{row.ratio:.2f}x"
    return [f"{row.gflops:.0f}", f"{row.fraction:.2f}", ratio]


def write_table(rows):
    """Lines of Markdown: a row for each kind of attention, its two directions side by side."""
    most = max(row.threads for row in rows)
    kinds = {}
    for row in rows:
        name = BATCHES.get((row.set, row.batch))
        if name and row.threads == most:
            kind = name, row.dtype, row.head_dim, row.mask
            kinds.setdefault(kind, {})[row.direction] = row
    lines, last = [list(HEAD), ["---"] * len(HEAD)], None
    for (name, dtype, head_dim, mask), both in kinds.items():
        first = name if name != last else ""
        lines.append([
            first, dtype, str(head_dim), mask,
            *cells(both.get("forward")), *cells(both.get("backward")),
        ])  # fmt: skip
        last = name
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("results", nargs="+", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, help="the picture")
    arguments = parser.parse_args()
    rows = read(arguments.results)
    if not rows:
        sys.exit("expected rows of cpu.py, got none")
    print(write_table(rows))
    if arguments.out:
        import plot  # Wants matplotlib, which the table does not.

        plot.draw(rows, arguments.out)


if __name__ == "__main__":
    main()
