#!/usr/bin/env python3
"""Draws the speeds of a run of the GPU kit, results/CARD/speed.json, as bars: of the packed
batch of 8 sequences, ours and what the peers reach on the same inputs.

    plot_gpu.py benchmarks/results/h100/speed.json --out docs/images/h100.svg
"""

import argparse
import json
import pathlib

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
from plot import INK, OURS, PEER

PEERS = {"cudnn": ("cuDNN", "#8a8a8a"), "fa2": ("FlashAttention 2", PEER)}
SET = "pr164502"


def rows_of(results, direction):
    return [
        r for r in results
        if r["kind"] == "speed" and r["set"] == SET and r["direction"] == direction
        and r["dtype"] == "bf16" and not r["score"]
    ]  # fmt: skip


def _draw(axes, rows, title):
    width = 0.27
    for i, row in enumerate(rows):
        # A speed of a peer is ours times the ratio of times.
        speeds = {"Varlen": (row["tflops"], OURS)}
        for name, (label, color) in PEERS.items():
            if name in row["peers"]:
                speeds[label] = row["tflops"] * row["ms"] / row["peers"][name]["ms"], color
        for j, (speed, color) in enumerate(speeds.values()):
            y = i + (j - (len(speeds) - 1) / 2) * width
            axes.barh(y, speed, width, color=color)
            axes.text(speed, y, f" {speed:.0f}", va="center", fontsize=7, color=INK)
    labels = [f"head_dim {r['head_dim']}, {r['mask']}" for r in rows]
    axes.set_yticks(range(len(rows)), labels, fontsize=8)
    axes.invert_yaxis()
    axes.set_xlabel("TFLOP/s of useful work", fontsize=8)
    axes.set_title(title, fontsize=9, loc="left")
    axes.tick_params(labelsize=8)
    axes.spines[["top", "right"]].set_visible(False)


def draw(results, path):
    info = next(r for r in results if r["kind"] == "info")
    panels = {d: rows_of(results, d) for d in ("forward", "backward")}
    panels = {d: rows for d, rows in panels.items() if rows}
    if not panels:
        raise SystemExit(f"expected rows of {SET}, bf16, got none")
    most = max(map(len, panels.values()))
    figure, grid = plt.subplots(
        1, len(panels), figsize=(4.6 * len(panels), 0.9 + 0.42 * most), squeeze=False,
        layout="constrained",
    )  # fmt: skip
    for axes, (direction, rows) in zip(grid.flat, panels.items()):
        _draw(axes, rows, direction)
    colors = {"Varlen": OURS, **dict(PEERS.values())}
    handles = [plt.Rectangle((0, 0), 1, 1, color=color) for color in colors.values()]
    figure.legend(
        handles, colors, loc="outside upper center", ncols=len(colors), fontsize=8, frameon=False,
        title=f"8 packed sequences of 448 to 1856 rows, bf16, {info['gpu']}",
    )  # fmt: skip
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
    plt.close(figure)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", type=pathlib.Path)
    parser.add_argument("--out", required=True, type=pathlib.Path)
    arguments = parser.parse_args()
    # The same file of the same results, and text as text.
    plt.rcParams |= {"svg.hashsalt": "varlen", "svg.fonttype": "none"}
    draw(json.loads(arguments.results.read_text()), arguments.out)


if __name__ == "__main__":
    main()
