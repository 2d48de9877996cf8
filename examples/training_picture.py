#!/usr/bin/env python3
"""Draws records of train_torch.py, or of train_jax.py: the losses of the first one, and the
times of all.

    training_picture.py RECORD.json... --out FOLDER    # losses.png, times.png
"""

import argparse
import json
import pathlib
import sys

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt

COLORS = {
    "varlen": "#1f5fa8", "each document": "#e08b2c", "mask": "#e08b2c", "padded": "#5fa88f",
    "flex": "#9b6fb8", "torch": "#9b6fb8", "flash": "#c2485a", "cudnn": "#c2485a",
}  # fmt: skip
TORCH_NAMES = {
    "varlen": "varlen.torch",
    "flash": "varlen_attn, FlashAttention 2",
    "each document": "SDPA of each document",
    "padded": "SDPA, padded",
    "flex": "FlexAttention",
}
JAX_NAMES = {
    "varlen": "varlen.jax",
    "mask": "dot_product_attention, mask",
    "padded": "dot_product_attention, padded",
    "cudnn": "dot_product_attention, padded, cuDNN",
    "torch": "varlen.torch, the model in PyTorch",
}
REST, INK = "#cccccc", "#222222"


def names_of(record):
    """What the ways of a record that have come to something are called; the second one is what
    others differ from."""
    names = JAX_NAMES if "jax" in record["settings"] else TORCH_NAMES
    entries = [entry for kind in ("step", "forward") for entry in record.get(kind, {}).items()]
    found = {name for name, entry in entries if entry["losses"]}
    return {name: text for name, text in names.items() if name in found}


def describe(settings):
    windows = f"windows {settings['windows']}, context {settings['context']}"
    return f"{settings['dtype']}, {windows if settings['windows'] else 'causal'}"


def draw_losses(record, path):
    """The curves lie on each other, so the first ones are wide; below, what differs."""
    figure, (above, below) = plt.subplots(
        2, 1, sharex=True, figsize=(7, 4.6), height_ratios=[3, 1.3], layout="constrained"
    )
    names = names_of(record)
    entries = {name: record["step"].get(name, {"losses": []})["losses"] for name in names}
    entries = {name: losses for name, losses in entries.items() if losses}
    base = [*entries][:2][-1]
    reference = entries[base]
    for width, (name, losses) in zip((6, 3.5, 2.2, 1.2, 0.8), entries.items()):
        above.plot(losses, color=COLORS[name], lw=width, label=names[name])
        if name != base:
            change = [max(abs(a - b) / b, 1e-9) for a, b in zip(losses, reference)]
            below.semilogy(change, color=COLORS[name], lw=1)
    above.set_ylabel("loss (nats per byte)", fontsize=8)
    above.set_title(describe(record["settings"]), fontsize=9, loc="left")
    above.legend(fontsize=8, frameon=False)
    below.set_ylabel("relative difference", fontsize=8)
    below.set_xlabel(f"step; below: difference to {names[base]}", fontsize=8)
    finish(figure, (above, below), path)


def draw_times(records, path):
    titles = {"step": "a step", "forward": "a forward pass"}
    kinds, names = [kind for kind in titles if kind in records[0]], names_of(records[0])
    figure, grid = plt.subplots(
        len(records), len(kinds), figsize=(5.6 * len(kinds) + (len(kinds) < 2) * 3, 0.7 + 1.9 * len(records)),
        squeeze=False, layout="constrained",
    )  # fmt: skip
    for row, record in zip(grid, records):
        for axes, kind in zip(row, kinds):
            title = f"{describe(record['settings'])}: {titles[kind]}"
            draw_bars(axes, record[kind], names, title)
    settings = records[0]["settings"]
    figure.legend(
        [plt.Rectangle((0, 0), 1, 1, color=c) for c in (REST, *(COLORS[n] for n in names))],
        ["the model without attention", *names.values()],
        loc="outside upper center", ncols=5 if len(kinds) > 1 else 3, fontsize=8, frameon=False,
        title=f"A GPT of {settings['layers']} layers, {settings['tokens']} tokens a step,"
        f" {where(settings)}",
    )  # fmt: skip
    finish(figure, grid.flat, path)


def where(settings):
    if "gpu" in settings:
        return settings["gpu"]
    return f"{settings['threads']} thread{'' if settings['threads'] == 1 else 's'}"


def draw_bars(axes, entries, labels, title):
    """The time of each way: the model without attention, and what attention adds."""
    names = [name for name in labels if entries.get(name, {"losses": []})["losses"]]
    longest = max(1e3 * entries[name]["typical_seconds"] for name in names)
    for i, name in enumerate(names):
        time = 1e3 * entries[name]["typical_seconds"]
        part = entries[name].get("attention_seconds")
        attention = time if part is None else 1e3 * part
        axes.barh(i, time - attention, 0.6, color=REST)
        axes.barh(i, attention, 0.6, left=time - attention, color=COLORS[name])
        text = f" {time:.0f} ms" + ("" if part is None else f", attention {attention:.0f}")
        axes.text(time, i, text, va="center", fontsize=7, color=INK)
    axes.set_yticks(range(len(names)), [labels[name] for name in names])
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
