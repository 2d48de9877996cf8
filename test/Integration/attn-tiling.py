"""Tiles of an attention, made by upstream transforms, against the whole one.

Each function has a twin that is not tiled: the results must be the same bit for
bit, and right.
"""

# REQUIRES: plugin
# RUN: %python %s

import itertools
import os
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "Inputs"))
from attention import Kind, call, check, compile_library, function, random_batch, transform

SCHEDULES = [
    # Whole groups; half of the heads; some rows.
    "tile_using_for %attn tile_sizes [3, 4]",
    # Rows only, each alone.
    "tile_using_for %attn tile_sizes [0, 1]",
    # Heads of a group, by themselves.
    "tile_using_forall %attn tile_sizes [1, 5]",
    # As many tiles as asked for, and the last one may be smaller.
    "tile_using_forall %attn num_threads [2, 3]",
]
WINDOWS = [(-1, -1), (-1, 0), (2, 0), (1, 3), (0, -1), (4, 0)]
HEADS = (3, 2)  # query heads per key head, key heads
SHAPES = (("?", 6, "?"), ("?", 2, "?"), ("?", 2, "?"), "?")

rng = random.Random(2)
# With destinations and without.
FORMS = [("varlen.attn", ""), ("varlen.attn_into", "varlen-add-destinations")]
for schedule, (name, before) in itertools.product(SCHEDULES, FORMS):
    loops = 1 if "forall" in schedule or "[0" in schedule else 2
    results = ", ".join(["!transform.any_op"] * (loops + 1))
    text, kinds = "", []
    for number in range(12):
        left, right = WINDOWS[number % len(WINDOWS)]
        kind = Kind(
            index=rng.choice(["i32", "i64"]),
            left=left,
            right=right,
            top_left=number >= len(WINDOWS),
            seqused_q=rng.random() < 0.5,
            seqused_k=rng.random() < 0.5,
            q_offset=rng.random() < 0.5,
            sink=rng.random() < 0.5,
        )
        kinds.append(kind)
        text += function(f"whole{number}", kind, SHAPES)
        text += function(f"tiled{number}", kind, SHAPES, mark="__tile")
    text = transform(
        text,
        f"""
    %attn = transform.structured.match ops{{["{name}"]}} attributes{{__tile}}
      in %root : (!transform.any_op) -> !transform.any_op
    %tiled, %loops:{loops} = transform.structured.{schedule}
      : (!transform.any_op) -> ({results})""",
        before,
    )
    library = compile_library(text, "varlen-decompose-attn,canonicalize,cse")
    for number, kind in enumerate(kinds):
        for _ in range(8):
            batch = random_batch(rng, kind, max_length=12, heads=HEADS)
            check(library, f"tiled{number}", kind, batch)
            whole = call(library, f"whole{number}", kind, batch)
            tiled = call(library, f"tiled{number}", kind, batch)
            if whole != tiled:
                raise SystemExit(f"{schedule}: not the same\n{kind}\n{whole}\n{tiled}")
