"""First and second derivatives of varlen.attn, in both modes and one after the other, against
finite differences in f64."""

# REQUIRES: venv
# RUN: %around-code %python %s

import os
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "Inputs"))
import gradients

import varlen
from varlen import scores
from varlen import text as varlen_text



def drop(type):
    """A factor of probabilities that positions alone decide, so that no step of the differences
    changes it, with a score that does change."""
    return f"""%new = math.sin %score : {type}
        %sum = arith.addi %query, %key : i32
        %three = arith.constant 3 : i32
        %rest = arith.remsi %sum, %three : i32
        %zero = arith.constant 0 : i32
        %kept = arith.cmpi ne, %rest, %zero : i32
        %none = arith.constant 0.0 : {type}
        %more = arith.constant 1.5 : {type}
        %factor = arith.select %kept, %more, %none : {type}"""


DROPPED = scores.Score("dropped", drop, np.sin, lambda *_: None, factor=lambda *_: None)
rng = np.random.default_rng(7)
# cu_seqlens of queries and keys, with padding rows at the end.
BATCHES = {
    "same": ([0, 3, 4, 9], [0, 3, 4, 9]),
    "more_queries": ([0, 5, 5, 8], [0, 2, 6, 7]),
    "empty": ([0, 0, 3, 3, 6], [0, 2, 2, 4, 8]),
}
# A derivative is wrong where one part of it is, so each case has several: masks, groups, a Dv that
# is not D, sinks, used rows, and scores with captures of heads and of queries, tables of both,
# hidden keys and a factor.
CASES = {
    "window": {
        "batch": "same", "window": (2, 1), "alignment": "top_left", "heads": 4, "kv_heads": 2,
        "seqused_q": True, "seqused_k": True, "scale": 0.5,
    },
    "head_table": {
        "batch": "empty", "score": scores.compose(scores.capped_alibi(2.0), scores.t5_bias(6, 4)),
        "window": (1, 0), "sink": True, "kv_heads": 1,
    },
    "query_table": {
        "batch": "same", "score": scores.position_bias(), "heads": 4, "v_head_dim": 2,
    },
    "dropped": {
        "batch": "more_queries", "score": scores.compose(DROPPED, scores.document()),
        "window": (-1, 0), "sink": True,
    },
}  # fmt: skip


def make(name, batch, heads=2, kv_heads=2, v_head_dim=3, **kind):
    """A function of out and of exp(lse), which is 0 where no key is seen."""
    cu_q, cu_k = (np.array(cu, np.int32) for cu in BATCHES[batch])
    tq, tk = cu_q[-1] + 2, cu_k[-1] + 1
    body = varlen_text.attn(
        dtype="f64", heads=heads, kv_heads=kv_heads, head_dim=3, v_head_dim=v_head_dim,
        name=name, **kind,
    )  # fmt: skip
    lse = f"tensor<{heads}x?xf64>"
    body = body.replace("return %out, %lse", f"%e = math.exp %lse : {lse}\n  return %out, %e")
    inputs = [
        rng.standard_normal((tq, heads, 3)), rng.standard_normal((tk, kv_heads, 3)),
        rng.standard_normal((tk, kv_heads, v_head_dim)), cu_q, cu_k,
    ]  # fmt: skip
    if kind.get("seqused_q"):
        inputs.append(np.maximum(np.diff(cu_q) - 1, 0).astype(np.int32))
    if kind.get("seqused_k"):
        inputs.append(np.maximum(np.diff(cu_k) - 1, 1).astype(np.int32))
    if kind.get("sink"):
        inputs.append(rng.standard_normal(heads))
    score = kind.get("score")
    for name, of in (score.captures if score else {}).items():
        extents = {"heads": heads, "rows": tq, "entries": 6}
        shape = [extents[extent] for extent in scores.CAPTURES[of]]
        # Bounds of a document, from which a step of the differences leads to no key.
        low, high = {"begin": (-1, 1), "end": (2, 4)}.get(name, (0, 0))
        values = rng.integers(low, high, shape) + 0.5 if high else rng.uniform(0.5, 1.5, shape)
        inputs.append(values)
    cotangents = [rng.standard_normal((tq, heads, v_head_dim)), rng.standard_normal((heads, tq))]
    return body, inputs, cotangents


text, first, second, of_tangents = "", {}, {}, {}
for name, kind in CASES.items():
    body, inputs, cotangents = make(name, **kind)
    text += body
    first[name] = inputs
    second[f"{name}_vjp"] = inputs + cotangents
    # Rows without keys, a sink and a factor.
    if name == "dropped":
        tangents = [rng.standard_normal(x.shape) for x in inputs if x.dtype == np.float64]
        of_tangents[f"{name}_jvp"] = inputs + tangents

gradients.check(text, first)
# By everything, the cotangents too: that is the second derivative and, in the part
# by the cotangents, the forward mode.
once = gradients.differentiate(text, first)
gradients.check(once, second)
forward = [name.removesuffix("_jvp") for name in of_tangents]
gradients.check(gradients.differentiate(text, forward, "mode=forward"), of_tangents)

# The forward mode by itself, element by element: the backward of the backward by
# its cotangents.
name = "window"
body, inputs, cotangents = make(name, **CASES[name])
twice = gradients.differentiate(
    gradients.differentiate(body, [name]), [f"{name}_vjp"], "wrt=dout,dlse"
)
keys = ["q", "k", "v", "cu_seqlens_q", "cu_seqlens_k", "seqused_q", "seqused_k"]
arguments = dict(zip(keys, inputs, strict=True))
directions = {key: rng.standard_normal(arguments[key].shape) for key in keys[:3]}
tangents = varlen.run(
    twice,
    {**arguments, "dout": 0 * cotangents[0], "dlse": 0 * cotangents[1]}
    | {f"dd{key}": value for key, value in directions.items()},
    entry=f"{name}_vjp_vjp",
)
above, below = (
    varlen.run(
        body,
        arguments | {k: arguments[k] + sign * gradients.STEP * d for k, d in directions.items()},
    )
    for sign in (1, -1)
)
for key in ("out", "lse"):
    difference = (above[key] - below[key]) / (2 * gradients.STEP)
    if not np.abs(tangents[f"dd{key}"] - difference).max() <= 1e-7:
        raise SystemExit(f"forward mode: {key} changes by {difference}, not {tangents[f'dd{key}']}")

# Saved or computed again, the gradients are the same bit for bit, and so are the
# results.
cotangents = dict(zip(["dout", "dlse"], cotangents))
again = gradients.differentiate(body, [name], "with-results")
wanted = varlen.run(again, {**arguments, **cotangents}, entry=f"{name}_vjp")
saved = gradients.differentiate(body, [name], "residuals=save")
forward = varlen.run(saved, arguments, entry=f"{name}_fwd")
residuals = {key: forward.pop(key) for key in list(forward) if key.startswith("residual")}
got = varlen.run(saved, {**arguments, **residuals, **cotangents}, entry=f"{name}_vjp")
if not residuals or "varlen.attn " in saved.split(f"@{name}_vjp")[1]:
    raise SystemExit("expected residuals in place of the attention")
for key, value in {**forward, **got}.items():
    if not np.array_equal(value, wanted[key]):
        raise SystemExit(f"{key} is another if residuals are saved")
