"""varlen.merge through varlen-to-cpu: attention over a prefix and over a sequence's
own keys, merged, against attention over all keys; rows that one part or both have no
key for; finite differences.
"""

# REQUIRES: venv
# RUN: %python %s

import os
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "Inputs"))
import gradients

import varlen
from varlen import dtypes, reference, tolerance

rng = np.random.default_rng(3)
HEADS, KV_HEADS, DIM = 4, 2, 48
# For each sequence: queries, keys of its prefix, its own keys.
LENGTHS = [(5, 9, 7), (0, 3, 0), (40, 0, 40), (1, 300, 1), (3, 20, 3)]


def split(dtype):
    """A function of the attention in two parts, and of their merge."""
    compute = "f64" if dtype == "f64" else "f32"
    q, kv = f"tensor<?x{HEADS}x{DIM}x{dtype}>", f"tensor<?x{KV_HEADS}x{DIM}x{dtype}>"
    lse, cu = f"tensor<{HEADS}x?x{compute}>", "tensor<?xi32>"

    def named(name, type):
        return f'%{name}: {type} {{varlen.name = "{name}"}}'

    parameters = ", ".join(
        named(name, type)
        for name, type in {"q": q, "cu_q": cu, "k0": kv, "v0": kv, "cu0": cu, "k1": kv, "v1": kv,
                           "cu1": cu}.items()
    )  # fmt: skip
    types = f"({q}, {kv}, {kv}, {cu}, {cu}) -> ({q}, {lse})"
    return f"""
func.func @split({parameters})
    -> ({q} {{varlen.name = "out"}}, {lse} {{varlen.name = "lse"}},
        {q} {{varlen.name = "swapped"}}, {lse} {{varlen.name = "swapped_lse"}}) {{
  %out0, %lse0 = varlen.attn %q, %k0, %v0, %cu_q, %cu0 : {types}
  %out1, %lse1 = varlen.attn %q, %k1, %v1, %cu_q, %cu1 {{mask = #varlen.mask<causal>}} : {types}
  %out, %lse = varlen.merge %out0, %lse0, %out1, %lse1 : ({q}, {lse}, {q}, {lse}) -> ({q}, {lse})
  %s, %t = varlen.merge %out1, %lse1, %out0, %lse0 : ({q}, {lse}, {q}, {lse}) -> ({q}, {lse})
  return %out, %lse, %s, %t : {q}, {lse}, {q}, {lse}
}}
"""


def join(lengths, prefix, own):
    """The rows of each sequence's prefix before its own."""
    parts = []
    for a, b in lengths:
        parts += [prefix[:a], own[:b]]
        prefix, own = prefix[a:], own[b:]
    return np.concatenate(parts)


for dtype in ("f16", "bf16", "f32", "f64"):
    queries, before, own = zip(*LENGTHS)
    cu_q, cu0, cu1 = (np.cumsum([0, *rows]).astype(np.int32) for rows in (queries, before, own))
    # The last rows of q are of no sequence.
    shapes = [(cu_q[-1] + 2, HEADS), *[(cu0[-1], KV_HEADS)] * 2, *[(cu1[-1], KV_HEADS)] * 2]
    q, k0, v0, k1, v1 = (dtypes.narrow(rng.standard_normal((*s, DIM)), dtype) for s in shapes)
    inputs = dict(q=q, k0=k0, v0=v0, k1=k1, v1=v1, cu_q=cu_q, cu0=cu0, cu1=cu1)
    got = varlen.run(split(dtype), inputs)
    lengths = list(zip(before, own))
    # A causal mask that is aligned at the end lets every query see its prefix.
    whole = (q, join(lengths, k0, k1), join(lengths, v0, v1), cu_q, cu0 + cu1)
    golden = reference.attention(*whole, window=(-1, 0))
    plain = reference.plain(*whole, window=(-1, 0))
    for name, wanted, bad in zip(("out", "lse"), golden, plain):
        tolerance.check(got[name], wanted, bad, dtype, f"{dtype} {name}")
    for name, other in {"out": "swapped", "lse": "swapped_lse"}.items():
        if got[name].tobytes() != got[other].tobytes():
            raise SystemExit(f"{dtype}: {name} depends on the order of the parts")

# Rows that a part has no key for are the other's, whatever stands in out there.
TEXT = """
func.func @merge(%o: tensor<?x1x2xf32> {varlen.name = "o"}, %l: tensor<1x?xf32> {varlen.name = "l"},
                 %p: tensor<?x1x2xf32> {varlen.name = "p"}, %m: tensor<1x?xf32> {varlen.name = "m"})
    -> (tensor<?x1x2xf32> {varlen.name = "out"}, tensor<1x?xf32> {varlen.name = "lse"}) {
  %out, %lse = varlen.merge %o, %l, %p, %m
      : (tensor<?x1x2xf32>, tensor<1x?xf32>, tensor<?x1x2xf32>, tensor<1x?xf32>)
      -> (tensor<?x1x2xf32>, tensor<1x?xf32>)
  return %out, %lse : tensor<?x1x2xf32>, tensor<1x?xf32>
}
"""
INF, NAN = np.inf, np.nan
# For each row: out and lse of both parts, and of the merge.
ROWS = [
    ((NAN, INF), -INF, (3, -0.0), 2, (3, -0.0), 2),
    ((5, -7), 1e30, (NAN, 1), -INF, (5, -7), 1e30),
    ((NAN, 1), -INF, (2, INF), -INF, (0, 0), -INF),
    ((1, 2), -1e38, (3, 5), 1e38, (3, 5), 1e38),
    ((1, 2), 80.0, (3, 6), 80.0, (2, 4), 80 + np.log(2)),
    ((1, 2), -1e30, (3, 6), -1e30, (2, 4), -1e30),
    ((1, 2), 0.0, (3, 6), NAN, (NAN, NAN), NAN),
]
o, l, p, m, out, lse = (np.array(column, np.float32) for column in zip(*ROWS))
o, p, out, l, m, lse = o[:, None], p[:, None], out[:, None], l[None], m[None], lse[None]
for first, second in (((o, l), (p, m)), ((p, m), (o, l))):
    got = varlen.run(TEXT, dict(o=first[0], l=first[1], p=second[0], m=second[1]))
    np.testing.assert_array_equal(got["out"], out)
    np.testing.assert_array_equal(np.signbit(got["out"][0]), np.signbit(out[0]))
    np.testing.assert_allclose(got["lse"], lse, rtol=1e-7)

# Gradients; of a row without a key in one part, too, and of one in neither: exp(lse)
# is 0 there and has differences.
packed, perRow = "tensor<3x2x2xf64>", "tensor<2x3xf64>"
MERGE = f"""
func.func @f(%o: {packed}, %a: {perRow}, %p: {packed}, %b: {perRow}, %none: tensor<2x3xi1>, %neither: tensor<2x3xi1>)
    -> ({packed}, {perRow}) {{
  %low = arith.constant dense<0xFFF0000000000000> : {perRow}
  %l = arith.select %neither, %low, %a : tensor<2x3xi1>, {perRow}
  %m = arith.select %none, %low, %b : tensor<2x3xi1>, {perRow}
  %out, %lse = varlen.merge %o, %l, %p, %m : ({packed}, {perRow}, {packed}, {perRow}) -> ({packed}, {perRow})
  %e = math.exp %lse : {perRow}
  return %out, %e : {packed}, {perRow}
}}
"""
none = np.array([[0, 1, 1], [0, 0, 1]], bool)
neither = np.array([[0, 0, 1], [0, 1, 0]], bool)
values = [rng.standard_normal(s) for s in ((3, 2, 2), (2, 3)) * 2]
gradients.check(MERGE, {"f": [*values, none, neither]})
