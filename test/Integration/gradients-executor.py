# RUN: %python %s sim:sm_80
# RUN: %python %s sim:sm_90a %if long %{ %} %else %{ --some %}
"""Gradients by GPU kernels in the executor: right, without a hazard with each order
of warps and timing of copies and without bank conflicts, and bitwise the same for a sequence alone
as in a batch, gradients of captures included."""

import os
import sys

import numpy as np
import varlen
from varlen import dtypes, reference, scores, tolerance

DEVICE = sys.argv[1]
# On the second chip in check: masks, captures, and types and sizes with kernels of their own.
SOME = "--some" in sys.argv
RUNS = int(os.environ.get("VARLEN_EXECUTOR_RUNS", "27"))
NAMES = ("dq", "dk", "dv", "dsink")
# One loop over tiles of keys, which add up dq in their order.
FIVE_PRODUCTS = (
    "#varlen.gpu_grad_schedule<dq = <warps = 4, block_m = 64, kv_block = 64, stages = 2, ctas = 2>, "
    "dk = <warps = {}, block_m = 64, kv_block = {}, stages = 2, ctas = 1, five_products = 1>>"
)
# (queries, keys) of sequences: whole tiles and parts of them, more blocks than a ring
# holds, longer queries, longer keys, no rows, no key, one query.
LENGTHS = [(90, 90), (0, 3), (130, 200), (33, 0), (70, 9), (64, 64), (1, 150)]


def make(dtype, heads, kv_heads, d, dv, *, unused=0, sink=False, score=None, **mask):
    """Inputs in which each slot ends with `unused` rows of NaN, and so do tensors."""
    rng = np.random.default_rng(d + dv)
    used_q, used_k = (np.array(used, np.int32) for used in zip(*LENGTHS))

    def starts(used):
        return np.concatenate([[0], np.cumsum(used + unused)]).astype(np.int32)

    def rows(cu, used, *shape):
        array = np.full((cu[-1] + unused, *shape), np.nan, np.float32)
        for begin, count in zip(cu, used):
            array[begin : begin + count] = rng.standard_normal((count, *shape))
        return dtypes.narrow(array, dtype)

    cu_q, cu_k = starts(used_q), starts(used_k)
    inputs = {
        "dout": rows(cu_q, used_q, heads, dv), "q": rows(cu_q, used_q, heads, d),
        "k": rows(cu_k, used_k, kv_heads, d), "v": rows(cu_k, used_k, kv_heads, dv),
        "cu_seqlens_q": cu_q, "cu_seqlens_k": cu_k,
        "seqused_q": used_q, "seqused_k": used_k,
    }  # fmt: skip
    if sink:
        inputs["sink"] = rng.standard_normal(heads).astype(np.float32)
    none, no_key = (np.isnan(dtypes.widen(inputs[name])[:, 0, 0]) for name in "qk")
    for name, of in (score.captures if score else {}).items():
        extents = {"heads": heads, "rows": len(none), "kv_rows": len(no_key), "entries": 37}
        shape = [extents[extent] for extent in scores.CAPTURES[of]]
        low, high = {"begin": (0, 70), "end": (60, 150)}.get(name, (0.01, 1))
        inputs[name] = rng.uniform(low, high, shape).astype(np.float32)
        if of.startswith("query"):
            inputs[name][:, none] = np.nan
        if of.startswith("key"):
            inputs[name][:, no_key] = np.nan
    mask["score"] = score
    out, lse = reference.attention(*packed(inputs), **options(inputs, mask))
    out[none], lse[:, none] = np.nan, np.nan
    dlse = rng.standard_normal(lse.shape).astype(np.float32)
    dlse[:, none] = np.nan
    inputs |= {"out": dtypes.narrow(out, dtype), "lse": lse.astype(np.float32), "dlse": dlse}
    text = varlen.text.attn_grad(
        dtype=dtype, heads=heads, kv_heads=kv_heads, head_dim=d, v_head_dim=dv,
        sink=sink, dlse=True, seqused_q=True, seqused_k=True,
        wrt_captures=bool(captures_of(score)), **mask,
    )  # fmt: skip
    return text, inputs


def captures_of(score):
    return score.captures if score else {}


def packed(inputs):
    return [inputs[name] for name in ("q", "k", "v", "cu_seqlens_q", "cu_seqlens_k")]


def options(inputs, mask):
    more = {name: inputs.get(name) for name in ("seqused_q", "seqused_k", "sink")}
    score = mask.get("score")
    return more | mask | {"captures": [inputs[name] for name in score.captures] if score else ()}


def check(name, dtype, *sizes, runs=1, schedule=None, co_resident=1, **more):
    text, inputs = make(dtype, *sizes, **more)
    if schedule:
        assert text.count("{mask =") == 1, text
        text = text.replace("{mask =", f"{{varlen.schedule = {schedule}, mask =")
    mask = {key: more[key] for key in ("window", "alignment", "score") if key in more}
    figures = {}
    results = varlen.run(
        text, inputs, device=DEVICE, sim_runs=runs, sim_co_resident=co_resident, figures=figures
    )
    executor = figures["executor"]
    assert executor["matrix_conflicts"] == 0, executor
    arguments = [inputs["dout"], *packed(inputs)]
    more = options(inputs, mask) | {"dlse": inputs["dlse"]}
    golden = reference.gradients(*arguments, **more)
    plain = reference.plain_gradients(*arguments, **more)
    names = [*NAMES, *(f"d{capture}" for capture in captures_of(mask.get("score")))]
    for key, wanted, simple in zip(names, golden, plain):
        if wanted is not None:
            tolerance.check(results[key], wanted, simple, dtype, f"{name}: {key}", gradient=True)
    sides = {"dq": ("q", 0), "dk": ("k", 0), "dv": ("k", 0)}
    for capture, of in captures_of(mask.get("score")).items():
        if of.startswith(("query", "key")):
            sides[f"d{capture}"] = (of[0], 1)
    for key, (used, dimension) in sides.items():
        outside = np.isnan(dtypes.widen(inputs[used])[:, 0, 0])
        rows = np.compress(outside, dtypes.widen(results[key]), dimension)
        assert not rows.any(), f"{name}: {key} outside of sequences"
    return text, inputs, results


def alone(name, text, inputs, results, score=None):
    """Each sequence's gradients, of captures that differ between queries or keys too, are
    those of a batch of one, bit by bit."""
    captures = captures_of(score)
    of_queries = [capture for capture, of in captures.items() if of.startswith("query")]
    of_keys = [capture for capture, of in captures.items() if of.startswith("key")]
    cu_q, cu_k = inputs["cu_seqlens_q"], inputs["cu_seqlens_k"]
    batches, expected = [], []
    for s in (0, 2, 4):
        q, k = slice(cu_q[s], cu_q[s + 1]), slice(cu_k[s], cu_k[s + 1])
        one = {key: inputs[key][q] for key in ("dout", "q", "out")}
        one |= {key: inputs[key][k] for key in ("k", "v")}
        one |= {key: inputs[key][:, q].copy() for key in ("lse", "dlse")}
        one |= {key: inputs[key][s : s + 1] for key in ("seqused_q", "seqused_k")}
        one |= {key: inputs[key] for key in ("sink", *captures) if key in inputs}
        own = dict.fromkeys(of_queries, q) | dict.fromkeys(of_keys, k)
        one |= {key: inputs[key][:, rows].copy() for key, rows in own.items()}
        for side, rows in (("q", q), ("k", k)):
            one[f"cu_seqlens_{side}"] = np.array([0, rows.stop - rows.start], np.int32)
        wanted = {key: results[key][rows] for key, rows in (("dq", q), ("dk", k), ("dv", k))}
        wanted |= {f"d{key}": results[f"d{key}"][:, rows] for key, rows in own.items()}
        batches.append(one)
        expected.append((s, wanted))
    for single, (s, wanted) in zip(varlen.run(text, batches, device=DEVICE), expected):
        for key, rows in wanted.items():
            same = single[key].tobytes() == rows.tobytes()
            assert same, f"{name}: {key} of sequence {s} depends on its batch"


WINDOW = {"window": (37, 5), "sink": True, "unused": 2}
run = check("window", "bf16", 6, 2, 64, 64, runs=RUNS, **WINDOW)
alone("window", *run)
check("causal", "f16", 2, 1, 128, 128, window=(-1, 0), runs=3)
check("wide", "bf16", 2, 2, 192, 128, sink=True)
check("f32", "f32", 2, 1, 64, 40, window=(16, -1), unused=1)
captured = {"score": scores.document(), "window": (-1, 0), "unused": 2}
check("hidden by captures", "bf16", 4, 2, 64, 64, runs=3, **captured)
keys = scores.compose(scores.key_bias(), scores.capped_alibi(20))
run = check("table of keys", "bf16", 4, 2, 64, 64, runs=RUNS, score=keys, **WINDOW)
alone("table of keys", *run, score=keys)
# CTAs that wait for each other run together, or one after the other.
five = {"schedule": FIVE_PRODUCTS.format(4, 64), "co_resident": 0}
run = check("five products, window", "bf16", 6, 2, 64, 64, runs=RUNS, **five, **WINDOW)
alone("five products, window", *run)
one = check("five products, one CTA", "bf16", 6, 2, 64, 64, **five | {"co_resident": 1}, **WINDOW)
for key in ("dq", "dk", "dv"):
    assert one[2][key].tobytes() == run[2][key].tobytes(), f"{key} depends on the order of CTAs"
check("five products, causal", "f16", 2, 1, 64, 40, window=(-1, 0), runs=RUNS, **five)
# Eight warps share 128 columns of dq, not its 64 rows.
wide = five | {"schedule": FIVE_PRODUCTS.format(8, 128)}
check("five products, d128", "bf16", 2, 2, 128, 128, runs=RUNS, unused=1, **wide)
check("five products, d120", "f16", 4, 2, 120, 64, runs=3, window=(-1, 0), **wide)
if SOME:
    sys.exit()
bias = scores.key_bias()
run = check("five products, keys", "bf16", 4, 2, 64, 64, runs=3, score=bias, **five, **WINDOW)
alone("five products, keys", *run, score=bias)
check("odd", "f16", 3, 1, 20, 33, window=(-1, 7), alignment="top_left", unused=1)
check("widest", "bf16", 1, 1, 256, 256, window=(-1, 0))
check("no power of two", "f16", 2, 1, 96, 96, window=(0, 0), sink=True)
SCORE = {"score": scores.capped_alibi(20), "window": (-1, 0), "sink": True, "unused": 2}
run = check("score", "bf16", 4, 2, 64, 64, runs=3, **SCORE)
alone("score", *run, score=SCORE["score"])
hidden = {"score": scores.chunked(48), "window": (70, -1), "unused": 1}
check("hidden by a score", "f16", 2, 1, 128, 128, runs=3, **hidden)
# Blocks of all kinds: hidden, cut, and visible as a whole.
check("some blocks whole", "bf16", 4, 2, 64, 64, runs=3, score=scores.prefix_lm(), unused=2)
check("table of heads", "bf16", 4, 2, 64, 64, runs=3, score=scores.t5_bias(), window=(-1, 0))
dropout = scores.compose(scores.alibi(), scores.dropout(0.3))
run = check("dropout", "bf16", 4, 2, 64, 64, runs=3, score=dropout, **WINDOW)
alone("dropout", *run, score=dropout)
tables = scores.compose(scores.position_bias(), scores.tree())
check("tables of queries", "f16", 4, 2, 64, 64, runs=3, score=tables, unused=2)
check("split gradients", "f32", 2, 1, 192, 128, score=keys, window=(-1, 0))
