#!/usr/bin/env python3
"""Draws the beginning of a timeline that varlen-run --trace has written.

    varlen-run attention.mlir --device=sim:sm_80 --random=0 --lengths=700 --trace=out.json
    benchmarks/timeline.py out.json docs/images/timeline.png

Time is the executor's order of events, not that of a GPU.
"""

import argparse
import json
import pathlib

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt

COLORS = {
    "matrix": "#1f5fa8",
    "shared memory": "#5fa88f",
    "copy": "#e08b2c",
    "exchange": "#9b6fb8",
    "wait": "#dddddd",
}
OTHER = "#888888"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("trace", type=pathlib.Path)
    parser.add_argument("picture", type=pathlib.Path)
    parser.add_argument("--until", type=float, help="end of what is drawn")
    arguments = parser.parse_args()

    events = json.loads(arguments.trace.read_text())["traceEvents"]
    names = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    title = next(e["args"]["name"] for e in events if e["name"] == "process_name")
    spans = [e for e in events if e["ph"] == "X"]
    last = max(e["ts"] + e["dur"] for e in spans)
    until = min(last, arguments.until or last)
    spans = [e for e in spans if e["ts"] < until]
    rows = {tid: row for row, tid in enumerate(sorted(names))}

    figure, axes = plt.subplots(
        figsize=(11, 0.6 + 0.42 * len(rows)), layout="constrained"
    )
    letters = 200  # of this size fit beside each other
    for e in spans:
        length = min(e["dur"], until - e["ts"])
        kind = e.get("cat", "")
        axes.barh(
            rows[e["tid"]], length, 0.72, left=e["ts"], linewidth=0.4,
            color=COLORS.get(kind, OTHER), edgecolor="white",
        )  # fmt: skip
        text = e["name"].split(" ")[0].rstrip(":")
        if length / until * letters > len(text):
            axes.text(
                e["ts"] + length / 2, rows[e["tid"]], text, fontsize=6,
                ha="center", va="center", color="#222222" if kind == "wait" else "white",
            )  # fmt: skip
    axes.set_yticks(list(rows.values()), [names[tid] for tid in rows], fontsize=8)
    axes.invert_yaxis()
    axes.set_xlim(0, until)
    axes.set_xlabel("steps of the executor", fontsize=8)
    axes.tick_params(labelsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_title(title, fontsize=9, loc="left")
    used = {e.get("cat", "") for e in spans}
    kinds = [kind for kind in COLORS if kind in used]
    handles = [plt.Rectangle((0, 0), 1, 1, color=COLORS[kind]) for kind in kinds]
    axes.legend(
        handles, kinds, fontsize=7, frameon=False, ncols=len(kinds),
        loc="lower right", bbox_to_anchor=(1, 1),
    )  # fmt: skip
    figure.savefig(arguments.picture, dpi=140)


if __name__ == "__main__":
    main()
