# RUN: %around-code %python %s

"""Operations of score regions that have no value for some operands: each, for pairs and for
padding, on a CPU, by the oracle and in kernels, with gradients; tables are not left."""

import functools
import os
import random
import sys

import numpy as np
import varlen
from varlen import reference, scores

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../Fuzz/Inputs"))
import score_bodies

HEADS, TOKENS = 2, 67
CU = np.array([0, 30, 30, 67], "i4")
ORACLE = {"threads": 1, "pipeline": "builtin.module(varlen-decompose-attn,varlen-to-cpu)"}
TARGETS = {"cpu": {"threads": 2}, "oracle": ORACLE, "sm_80": {"device": "sim:sm_80"}}
rng = np.random.default_rng(0)
q, dout = (rng.standard_normal((TOKENS, HEADS, 16)).astype("f4") for _ in range(2))
k, v = (rng.standard_normal((TOKENS, 1, 16)).astype("f4") for _ in range(2))


def compare(label, got, wanted):
    got, finite = got.astype("f8"), np.isfinite(wanted)
    assert np.array_equal(got[~finite], wanted[~finite], equal_nan=True), label
    error = abs(got - wanted)[finite].max(initial=0)
    assert error <= 1e-4 * max(1, abs(wanted[finite]).max(initial=0)), f"{label}: {error}"


def check(label, score, captures, targets=TARGETS, gradients=True):
    given = {"score": score, "captures": captures}
    shape = {"dtype": "f32", "heads": HEADS, "kv_heads": 1, "head_dim": 16, "score": score}
    inputs = {"q": q, "k": k, "v": v, "cu_seqlens_q": CU, "cu_seqlens_k": CU}
    inputs |= dict(zip(score.captures, captures))
    golden = dict(zip(("out", "lse"), reference.attention(q, k, v, CU, CU, **given)))
    text = varlen.text.attn(**shape)
    for target, options in targets.items():
        for name, got in varlen.run(text, inputs, **options).items():
            compare(f"{label}, {target}: {name}", got, golden[name])
    if not gradients:
        return
    inputs |= {"dout": dout} | {name: x.astype("f4") for name, x in golden.items()}
    wanted = reference.gradients(dout, q, k, v, CU, CU, **given)
    text = varlen.text.attn_grad(**shape)
    for target, options in targets.items():
        results = varlen.run(text, inputs, **options)
        for name, golden_gradient in zip(("dq", "dk", "dv"), wanted):
            compare(f"{label}, {target}: {name}", results[name], golden_gradient)


# Each operation of score_bodies on pairs of positions and of edges, all in one region.
draw = random.Random(0)
body = score_bodies.Body(draw)
query, key = body.integers
far = body.binary("arith.subi", key, body.constant(37, 32))
for width in (32, 8):
    least, near = body.constant(-(1 << (width - 1)), width), body.resize(far, width)
    for name in score_bodies.BINARY:
        body.binary(name, least, near)
        if width == 32:
            body.binary(name, query, key)
    for name in score_bodies.UNARY:
        body.unary(name, near)
mixed = body.integers[2]
for value in body.integers[3:]:
    mixed = body.binary("arith.xori", mixed, body.resize(value, 32))
body.integers = [query, key, mixed]
everything = body.finish(hides=True)
captures = score_bodies.draw_captures(draw, HEADS, TOKENS, TOKENS)
check("everything", everything, captures)

# Floats of captures that are no integers.
body = score_bodies.Body(draw)
for width in score_bodies.WIDTHS:
    for capture in ("head", "row"):
        for signed in (False, True):
            body.convert(capture, width, signed)
for name in score_bodies.CLASSES:
    body.classify(name, "row")
body.integers[2:] = [functools.reduce(
    lambda x, y: body.binary("arith.xori", x, body.resize(y, 32)),
    body.integers[3:], body.resize(body.integers[2], 32),
)]  # fmt: skip
check("conversions", body.finish(hides=False), captures, gradients=False)


# An index that LLVM calls poison stays within the table.
def index(lines):
    return scores.Score(
        "index",
        lambda type: f"""{lines}
            %entry = varlen.lookup %table[%at] : !varlen.table<{type}>
            %new = arith.addf %score, %entry : {type}""",
        lambda s, query, key, table: s, lambda s, query, key, table: [np.ones_like(s), []],
        {"table": "head_table"},
    )  # fmt: skip


for lines in (
    "%far = arith.constant 2147483640 : i32\n%at = arith.addi %key, %far overflow<nsw> : i32",
    "%nan = arith.constant 0x7FC00000 : f32\n%at = arith.fptosi %nan : f32 to i32",
    "%large = arith.constant 1.0e30 : f32\n%x = arith.mulf %score, %large : f32\n%at = arith.fptosi %x : f32 to i32",
    "%forty = arith.constant 40 : i32\n%at = arith.shli %key, %forty : i32",
):
    zeros = np.zeros((HEADS, 5), "f4")  # Other numbers than these are not of the table.
    check(lines, index(lines), [zeros], gradients=False)

# Scores of -inf for all keys of a row: no weight, and no gradient.
nothing = scores.Score(
    "nothing",
    lambda type: f"""%least = arith.constant 0xFF800000 : {type}
        %first = arith.constant 12 : i32
        %none = arith.cmpi slt, %query, %first : i32
        %new = arith.select %none, %least, %score : {type}""",
    lambda s, query, key: np.where(query < 12, -np.inf, s),
    lambda s, query, key: [np.where(query < 12, 0.0, 1.0)],
)
inputs = {"q": q, "k": k, "v": v, "cu_seqlens_q": CU, "cu_seqlens_k": CU}
text = {"dtype": "f32", "heads": HEADS, "kv_heads": 1, "head_dim": 16, "score": nothing}
found = {}
for target, options in TARGETS.items():
    forward = varlen.run(varlen.text.attn(**text), inputs, **options)
    rows = np.r_[0:12, 30:42]
    assert not forward["out"][rows].any() and (forward["lse"][:, rows] == -np.inf).all(), target
    given = {**inputs, **forward, "dout": dout}
    found[target] = varlen.run(varlen.text.attn_grad(**text), given, **options)
    assert not found[target]["dq"][rows].any(), target
    for name, gradient in found[target].items():
        compare(f"-inf, {target}: {name}", gradient, found["cpu"][name].astype("f8"))
