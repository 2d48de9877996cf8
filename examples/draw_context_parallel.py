#!/usr/bin/env python3
"""Draws which rank owns which rows of a batch, in each layout of a plan, and what causal
attention computes of them: the picture of docs/context-parallel.md.

    draw_context_parallel.py --out docs/images/context-parallel.svg
"""

import argparse
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "python"))
from varlen import context_parallel as plans

LENGTHS = [9, 5, 30, 7, 3, 8, 6]
COLORS = ["#1f5fa8", "#e08b2c", "#3f8f5a", "#a23b5f"]
SCALE, GAP, TOP = 3.4, 34, 34


def draw(plan, layout, left):
    cu = plan.cu_seqlens_q
    size = cu[-1] * SCALE
    parts = [f'<text x="{left}" y="14" font-size="12">{layout}</text>']
    parts.append(
        f'<rect x="{left}" y="{TOP}" width="{size:g}" height="{size:g}" fill="#f4f4f4"/>'
    )
    for rank, chunks in enumerate(plan.chunks):
        for c in chunks:
            first = cu[c.sequence]
            corners = [
                (first, first + c.begin), (first + c.begin, first + c.begin),
                (first + c.end, first + c.end), (first, first + c.end),
            ]  # fmt: skip
            points = " ".join(f"{left + x * SCALE:g},{TOP + y * SCALE:g}" for x, y in corners)
            parts.append(f'<polygon points="{points}" fill="{COLORS[rank]}"/>')
            parts.append(
                f'<rect x="{left - 7}" y="{TOP + (first + c.begin) * SCALE:g}" width="5" '
                f'height="{(c.end - c.begin) * SCALE:g}" fill="{COLORS[rank]}"/>'
            )
    for rank in range(plan.ranks):
        pairs = sum(c.pairs for c in plan.chunks[rank])
        parts.append(
            f'<text x="{left}" y="{TOP + size + 16 + 14 * rank:g}" font-size="10" '
            f'fill="{COLORS[rank]}">rank {rank}: {plan.num_rows(rank)} rows, {pairs} pairs, '
            f"sends {plan.num_sent_keys(rank)} rows</text>"
        )
    return parts


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", required=True, type=pathlib.Path)
    arguments = parser.parse_args()
    cu = [0]
    for length in LENGTHS:
        cu.append(cu[-1] + length)
    size = cu[-1] * SCALE + GAP
    width, height = GAP / 2 + len(plans.LAYOUTS) * size, TOP + cu[-1] * SCALE + 80
    parts = []
    for i, layout in enumerate(plans.LAYOUTS):
        plan = plans.plan(cu, ranks=len(COLORS), is_causal=True, layout=layout)
        parts += draw(plan, layout, GAP / 2 + i * size)
    arguments.out.write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" '
        f'width="{width:g}" height="{height:g}" font-family="sans-serif">\n'
        '<rect width="100%" height="100%" fill="white"/>\n' + "\n".join(parts) + "\n</svg>\n"
    )


if __name__ == "__main__":
    main()
