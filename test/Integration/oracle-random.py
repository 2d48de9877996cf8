"""varlen-decompose-attn against a loop over f64, on random batches.

Every extent is dynamic, so one compiled function serves all its batches; a few
functions repeat some of them with static extents.
"""

# RUN: %around-code %python %s

import os
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "Inputs"))
from attention import Kind, check, compile_library, function, random_batch

WINDOWS = [(-1, -1), (-1, 0), (0, -1), (2, 0), (0, 0), (1, 2), (-1, 3), (2**40, 2**40)]
rng = random.Random(1)

kinds = []
for number in range(48):
    left, right = WINDOWS[number % len(WINDOWS)]
    element = ["f32", "bf16", "f16", "f64"][number // len(WINDOWS) % 4]
    kinds.append(
        Kind(
            element=element,
            index=rng.choice(["i32", "i64"]),
            left=left,
            right=right,
            top_left=number % 3 == 0,
            seqused_q=rng.random() < 0.4,
            seqused_k=rng.random() < 0.4,
            q_offset=rng.random() < 0.4,
            sink=rng.random() < 0.4,
            scale=rng.choice([None, 0.25, 1.5]),
        )
    )

text, calls = "", []
for number, kind in enumerate(kinds):
    text += function(f"dynamic{number}", kind)
    batches = [random_batch(rng, kind) for _ in range(12)]
    calls += [(f"dynamic{number}", kind, batch) for batch in batches]
    if number % 6 == 0:
        batch = batches[0]
        shapes = (batch.q.shape, batch.k.shape, batch.v.shape, batch.cu_q.shape[0] - 1)
        text += function(f"static{number}", kind, shapes)
        calls.append((f"static{number}", kind, batch))

library = compile_library(text, "varlen-decompose-attn,canonicalize,cse")
for name, kind, batch in calls:
    check(library, name, kind, batch)
