#!/usr/bin/env python3
"""Draws what the scores and masks of `varlen.scores` do to the scores of one head: the
picture of docs/scores.md.

    draw_scores.py --out docs/images/scores.png
"""

import argparse
import pathlib
import sys

import matplotlib
import numpy

matplotlib.use("Agg")
from matplotlib import pyplot  # noqa: E402

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))

from varlen import scores  # noqa: E402

LENGTH = 48


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", required=True, type=pathlib.Path)
    arguments = parser.parse_args()
    query, key = numpy.arange(LENGTH)[:, None], numpy.arange(LENGTH)[None, :]
    # Two waves: a score that has a sign everywhere.
    s = 4 * numpy.sin(query / 5) * numpy.cos(key / 4)
    ones = numpy.ones((LENGTH, 1))
    starts = numpy.array([0, 7, 30, LENGTH])
    number = numpy.searchsorted(starts, query, side="right")
    begin, end = starts[number - 1], starts[number]
    # What T5 learns looks like that: less for what is farther, on either side.
    buckets = numpy.concatenate([3 - numpy.arange(8), 2 - numpy.arange(8)])
    bias = 3 * numpy.cos((query + 2 * key) / 6)
    parents = [-1, 0, 0, 1, 1, 2, 2, 3, 3, 4, 5, 6]
    flags = numpy.ones((LENGTH, len(parents) + 1))
    flags[-len(parents) :] = scores.tree_flags(parents)
    shown = [
        ("s", None, []),
        ("softcap(2)", scores.softcap(2.0), []),
        ("alibi(), slope 0.2", scores.alibi(), [0.2]),
        ("gains(), gain 2", scores.gains(), [2.0]),
        ("query_gains()", scores.query_gains(), [0.3 + query / 20]),
        ("query_alibi()", scores.query_alibi(), [numpy.where(query < 20, 0.4, 0.05)]),
        ("capped_alibi(4)", scores.capped_alibi(4.0), [0.3 + query / 20, 0.2]),
        ("causal()", scores.causal(), []),
        ("sliding_window(9, 0)", scores.sliding_window(9, 0), []),
        ("dilated(4)", scores.dilated(4), []),
        ("chunked(16)", scores.chunked(16), []),
        ("document(), 7, 23 and 18", scores.document(), [begin, end]),
        ("prefix_lm(), prefix 14", scores.prefix_lm(), [14 * ones]),
        ("t5_bias(16, 32)", scores.t5_bias(16, 32), [scores.Table(buckets)]),
        ("position_bias()", scores.position_bias(), [scores.Table(bias)]),
        ("tree(), 12 drafts", scores.tree(), [scores.Table(flags)]),
    ]
    figure, axes = pyplot.subplots(4, 4, figsize=(8.8, 9.2), layout="constrained")
    palette = matplotlib.colormaps["coolwarm"].with_extremes(bad="white")
    for axis in axes.flat[len(shown) :]:
        axis.set_axis_off()
    for axis, (title, score, captures) in zip(axes.flat, shown):
        values = score.value(s, query, key, *captures) if score and score.value else s
        if score and score.visible:
            values = numpy.where(score.visible(query, key, *captures), values, numpy.nan)
        axis.imshow(values, cmap=palette, vmin=-8, vmax=8)
        axis.set_title(title, fontsize=9)
        axis.set_xticks([])
        axis.set_yticks([])
    figure.supxlabel("key", fontsize=9)
    figure.supylabel("query", fontsize=9)
    figure.savefig(arguments.out, dpi=110)


if __name__ == "__main__":
    main()
