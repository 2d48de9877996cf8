#!/usr/bin/env python3
"""What score regions cost on this CPU, beside plain attention and FlexAttention.

The first table has the speed of an attention with a score over that of the same one
without: one thread, two sequences, forward and gradients, those of captures included.
The second has FlexAttention's forward (torch.compile; it has no backward on a CPU) over
ours: two threads, one sequence, full mask. All runs of a row are interleaved; times are
the least of several.

    scores.py --build build [--rounds 3] [--only "document|prefix"]
"""

import argparse
import os
import pathlib
import re
import sys
import time

import numpy

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "python"))

import varlen  # noqa: E402
from varlen import scores  # noqa: E402

SCORES = {
    "alibi": scores.alibi(), "softcap": scores.softcap(50.0), "gains": scores.gains(),
    "chunked(512)": scores.chunked(512), "dilated(4)": scores.dilated(4),
    "prefix_lm": scores.prefix_lm(),
    "document, causal": scores.compose(scores.document(), scores.causal()),
    "t5_bias": scores.t5_bias(), "position_bias": scores.position_bias(), "tree": scores.tree(),
    "key_bias": scores.key_bias(), "key_padding": scores.key_padding(),
}  # fmt: skip
# Entries of tables.
ENTRIES = {"t5_bias": 32, "position_bias": 2048, "tree": 65}
# What a score that hides keys is compared with: the mask that leaves as many blocks.
# Prefixes are shorter than a block, documents have 512 rows.
MASKS = {
    "chunked(512)": 512, "dilated(4)": (-1, 0), "prefix_lm": (-1, 0), "document, causal": 512,
    "tree": (-1, 0),
}  # fmt: skip
ROWS, HEADS = 4096, 4


def inputs_of(rng, dtype, head_dim, score, gradient):
    def draw():
        values = rng.standard_normal((ROWS, HEADS, head_dim), numpy.float32)
        return varlen.dtypes.narrow(values, dtype)

    inputs = {name: draw() for name in ("q", "k", "v")}
    inputs["cu_seqlens_q"] = numpy.array([0, ROWS // 2, ROWS], numpy.int32)
    if gradient:
        inputs |= {"dout": draw(), "out": draw()}
        inputs["lse"] = numpy.full((HEADS, ROWS), 8, numpy.float32)
    begin = numpy.arange(ROWS) % (ROWS // 2) // 512 * 512
    of_query = {"prefix": 0 * begin + 9, "begin": begin, "end": begin + 512}
    for name, of in score.captures.items() if score else ():
        extents = {"heads": HEADS, "rows": ROWS, "kv_rows": ROWS}
        extents["entries"] = ENTRIES.get(score.name)
        shape = [extents[extent] for extent in scores.CAPTURES[of]]
        numbers = rng.uniform(0.01, 0.1, shape)
        if name in of_query:
            numbers = numpy.broadcast_to(of_query[name], shape)
        inputs[name] = numpy.ascontiguousarray(numbers, numpy.float32)
    return inputs


def milliseconds(rng, dtype, head_dim, score, gradient, window):
    make = varlen.text.attn_grad if gradient else varlen.text.attn
    text = make(
        dtype=dtype, heads=HEADS, head_dim=head_dim, window=window, score=score, same_cu=True
    )
    figures = {}
    inputs = inputs_of(rng, dtype, head_dim, score, gradient)
    varlen.run(text, inputs, threads=1, repeat=3, figures=figures)
    return figures["ms_min"]


def compare_scores(rng, rounds, only):
    chosen = {name: score for name, score in SCORES.items() if re.search(only, name)}
    print("| of the speed without | " + " | ".join(chosen) + " |")
    print("|---" * (len(chosen) + 1) + "|")
    for dtype in ("f32", "bf16"):
        for head_dim in (64, 128):
            for gradient in (False, True):
                best = {}
                for _ in range(rounds):
                    for name, score in chosen.items():
                        window = MASKS.get(name, (-1, -1))
                        for key, case in (
                            (name, (score, (-1, -1))),
                            (window, (None, window)),
                        ):
                            taken = milliseconds(
                                rng, dtype, head_dim, case[0], gradient, case[1]
                            )
                            best[key] = min(best.get(key, taken), taken)
                ratios = (best[MASKS.get(name, (-1, -1))] / best[name] for name in chosen)
                kind = "gradients" if gradient else "forward"
                print(
                    f"| {dtype} d{head_dim} {kind} | "
                    + " | ".join(f"{ratio:.2f}" for ratio in ratios) + " |",
                    flush=True,
                )  # fmt: skip


def compare_flex_attention(rng, rounds):
    import torch
    from torch.nn.attention.flex_attention import flex_attention

    torch.set_num_threads(2)
    rows, heads, head_dim = 2048, 8, 64
    slopes = torch.tensor([2.0 ** -(head + 1) for head in range(heads)])
    cases = {
        "plain": (None, None),
        "alibi": (lambda s, b, h, i, j: s - slopes[h] * (i - j).abs(), scores.alibi()),
        "softcap": (lambda s, b, h, i, j: 50 * torch.tanh(s / 50), scores.softcap(50.0)),
    }
    flex = torch.compile(flex_attention)
    print("| FlexAttention takes | " + " | ".join(cases) + " |")
    print("|---" * (len(cases) + 1) + "|")
    for dtype, torch_dtype in (("f32", torch.float32), ("bf16", torch.bfloat16)):
        q, k, v = (torch.randn(1, heads, rows, head_dim).to(torch_dtype) for _ in range(3))
        packed = {
            name: varlen.dtypes.narrow(
                numpy.ascontiguousarray(x[0].transpose(0, 1).float().numpy()), dtype
            )
            for name, x in (("q", q), ("k", k), ("v", v))
        }
        packed["cu_seqlens_q"] = numpy.array([0, rows], numpy.int32)
        ratios = []
        for modify, score in cases.values():
            inputs = dict(packed)
            if score and score.captures:
                inputs["slopes"] = slopes.numpy()
            text = varlen.text.attn(dtype=dtype, heads=heads, score=score, same_cu=True)
            theirs, ours = [], []
            with torch.no_grad():
                flex(q, k, v, score_mod=modify)
                for _ in range(rounds):
                    for _ in range(3):
                        start = time.perf_counter()
                        flex(q, k, v, score_mod=modify)
                        theirs.append(1e3 * (time.perf_counter() - start))
                    figures = {}
                    varlen.run(text, inputs, threads=2, repeat=3, figures=figures)
                    ours.append(figures["ms_min"])
            ratios.append(min(theirs) / min(ours))
        print(f"| {dtype} | " + " | ".join(f"{ratio:.1f}x" for ratio in ratios) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--build", default=ROOT / "build", type=pathlib.Path)
    parser.add_argument("--rounds", default=3, type=int)
    parser.add_argument("--only", help="a regular expression on names, and no second table")
    arguments = parser.parse_args()
    os.environ["VARLEN_BUILD"] = str(arguments.build.resolve())
    rng = numpy.random.default_rng(0)
    compare_scores(rng, arguments.rounds, arguments.only or "")
    if arguments.only is None:
        print()
        compare_flex_attention(rng, arguments.rounds)


if __name__ == "__main__":
    main()
