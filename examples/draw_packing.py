#!/usr/bin/env python3
"""Draws a batch of sequences of different lengths, padded and packed, and what attention
computes of each: the picture of docs/index.md.

    draw_packing.py --out docs/images/packing.svg
"""

import argparse
import pathlib

import matplotlib

matplotlib.use("Agg")
from matplotlib import patches, pyplot  # noqa: E402

LENGTHS = [12, 3, 7, 1, 9]
COLORS = ["#1f5fa8", "#e08b2c", "#3f8f5a", "#a23b5f", "#6a5ca8"]
PADDING = "#dddddd"


def draw_padded(axes):
    longest = max(LENGTHS)
    for row, (length, color) in enumerate(zip(LENGTHS, COLORS)):
        for i in range(longest):
            face = color if i < length else PADDING
            axes.add_patch(patches.Rectangle((i, row), 0.92, 0.8, facecolor=face, lw=0))
    total = longest * len(LENGTHS)
    axes.set_title(
        f"padded: {total} rows, {total - sum(LENGTHS)} of them padding", fontsize=9, loc="left"
    )
    axes.set_xlim(0, longest)
    axes.set_ylim(len(LENGTHS), 0)


def draw_packed(axes):
    begin = 0
    for length, color in zip(LENGTHS, COLORS):
        for i in range(begin, begin + length):
            axes.add_patch(patches.Rectangle((i, 0), 0.92, 0.8, facecolor=color, lw=0))
        axes.text(begin, 1.6, str(begin), fontsize=8, ha="left")
        begin += length
    axes.text(begin, 1.6, str(begin), fontsize=8, ha="right")
    axes.text(0, 2.9, "cu_seqlens", fontsize=8, ha="left")
    axes.set_title(f"packed: {begin} rows, and where each sequence begins", fontsize=9, loc="left")
    axes.set_xlim(0, begin)
    axes.set_ylim(3, 0)


def draw_scores(axes):
    begin, total = 0, sum(LENGTHS)
    axes.add_patch(patches.Rectangle((0, 0), total, total, facecolor="#f4f4f4", lw=0))
    for length, color in zip(LENGTHS, COLORS):
        corners = [(begin, begin), (begin, begin + length), (begin + length, begin + length)]
        axes.add_patch(patches.Polygon(corners, facecolor=color, lw=0))
        begin += length
    axes.set_title("what causal attention computes", fontsize=9, loc="left")
    axes.set_xlim(0, total)
    axes.set_ylim(total, 0)
    axes.set_xlabel("keys", fontsize=8)
    axes.set_ylabel("queries", fontsize=8)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", required=True, type=pathlib.Path)
    arguments = parser.parse_args()
    # The same file each time, and text as text.
    pyplot.rcParams |= {"svg.hashsalt": "varlen", "svg.fonttype": "none"}
    figure = pyplot.figure(figsize=(8.4, 3.0), layout="constrained")
    grid = figure.add_gridspec(2, 2, width_ratios=[2.2, 1], height_ratios=[2, 1])
    for place, draw in ((grid[0, 0], draw_padded), (grid[1, 0], draw_packed), (grid[:, 1], draw_scores)):
        axes = figure.add_subplot(place)
        draw(axes)
        axes.set_xticks([])
        axes.set_yticks([])
        axes.spines[:].set_visible(False)
    figure.savefig(arguments.out, metadata={"Date": None} if arguments.out.suffix == ".svg" else None)


if __name__ == "__main__":
    main()
