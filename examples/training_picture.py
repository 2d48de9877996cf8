#!/usr/bin/env python3
"""Draws records of train_torch.py: the losses of the first one, and the times of all.

    training_picture.py RECORD.json... --out FOLDER    # losses.png, times.png
"""

import argparse
import json
import pathlib
import sys

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt

COLORS = {"varlen": "#1f5fa8", "each document": "#e08b2c", "padded": "#5fa88f", "flex": "#9b6fb8"}
NAMES = {
    "varlen": "varlen.torch",
    "each document": "SDPA of each document",
    "padded": "SDPA, padded",
    "flex": "FlexAttention",
}
REST, INK = "#cccccc", "#222222"


def describe(settings):
    windows = f"windows {settings['windows']}, context {settings['context']}"
    return f"{settings['dtype']}, {windows if settings['windows'] else 'causal'}"


def draw_losses(record, path):
    """The curves lie on each other, so the first ones are wide; below, what differs."""
    figure, (above, below) = plt.subplots(
        2, 1, sharex=True, figsize=(7, 4.6), height_ratios=[3, 1.3], layout="constrained"
    )
    entries = {name: entry["losses"] for name, entry in record["step"].items() if name != "rest"}
    reference = entries["each document"]
    for width, (name, losses) in zip((6, 3.5, 1.2), entries.items()):
        above.plot(losses, color=COLORS[name], lw=width, label=NAMES[name])
        if name != "each document":
            change = [max(abs(a - b) / b, 1e-9) for a, b in zip(losses, reference)]
            below.semilogy(change, color=COLORS[name], lw=1)
    above.set_ylabel("loss (nats per byte)", fontsize=8)
    above.set_title(describe(record["settings"]), fontsize=9, loc="left")
    above.legend(fontsize=8, frameon=False)
    below.set_ylabel("relative difference", fontsize=8)
    below.set_xlabel(f"step; below: difference to {NAMES['each document']}", fontsize=8)
    finish(figure, (above, below), path)


def draw_times(records, path):
    figure, grid = plt.subplots(
        len(records), 2, figsize=(11.2, 0.5 + 1.9 * len(records)), squeeze=False,
        layout="constrained",
    )  # fmt: skip
    for row, record in zip(grid, records):
        for axes, kind, title in zip(row, ("step", "forward"), ("a step", "a forward pass")):
            draw_bars(axes, record[kind], f"{describe(record['settings'])}: {title}")
    settings = records[0]["settings"]
    figure.legend(
        [plt.Rectangle((0, 0), 1, 1, color=color) for color in (REST, *COLORS.values())],
        ["the model without attention", *NAMES.values()],
        loc="outside upper center", ncols=5, fontsize=8, frameon=False,
        title=f"A GPT of {settings['layers']} layers, {settings['tokens']} tokens a step,"
        f" {settings['threads']} threads",
    )  # fmt: skip
    finish(figure, grid.flat, path)


def draw_bars(axes, entries, title):
    """The time of each way: the model without attention, and what attention adds."""
    names = [name for name in entries if name != "rest"]
    longest = max(1e3 * entry["typical_seconds"] for entry in entries.values())
    for i, name in enumerate(names):
        time = 1e3 * entries[name]["typical_seconds"]
        attention = 1e3 * entries[name]["attention_seconds"]
        axes.barh(i, time - attention, 0.6, color=REST)
        axes.barh(i, attention, 0.6, left=time - attention, color=COLORS[name])
        text = f" {time:.0f} ms, attention {attention:.0f}"
        axes.text(time, i, text, va="center", fontsize=7, color=INK)
    axes.set_yticks(range(len(names)), [NAMES[name] for name in names])
    axes.invert_yaxis()
    axes.set_xlim(0, 1.35 * longest)
    axes.set_title(title, fontsize=9, loc="left")


def finish(figure, all_axes, path):
    for axes in all_axes:
        axes.tick_params(labelsize=8)
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def draw(paths, folder):
    records = [json.loads(path.read_text()) for path in paths]
    folder.mkdir(parents=True, exist_ok=True)
    draw_losses(records[0], folder / "losses.png")
    draw_times(records, folder / "times.png")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("records", type=pathlib.Path, nargs="+")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="a folder for the pictures")
    arguments = parser.parse_args()
    draw(arguments.records, arguments.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
