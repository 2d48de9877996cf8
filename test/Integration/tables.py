# RUN: %around-code %python %s %if long %{ --whole %}
"""Tables of scores: indices beyond both ends, one entry, several lookups, any strides,
few queries, the oracle, kernels for a GPU, threads, and errors."""

import os
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "Inputs"))
import threads

import varlen
from varlen import reference, scores, tolerance

rng = np.random.default_rng(0)
CU_Q, CU_K = np.array([0, 0, 70, 71, 110, 130], "i4"), np.array([0, 9, 50, 120, 180, 180], "i4")
TQ, TK, HEADS, KV_HEADS = 133, 180, 6, 2
# What the oracle may be off by: it sums in one order, whatever is lost.
ORACLE = {"f64": 1e-12, "bf16": 1e-1}


def index(text, name="i"):
    """A bias at an index that `text` computes as %at, and the same of numpy."""
    return lambda kind, of: scores.Score(
        name,
        lambda type: f"""{text}
            %b = varlen.lookup %bias[%at] : !varlen.table<{type}>
            %new = arith.addf %score, %b : {type}""",
        lambda s, query, key, bias: s + bias(of(query, key)),
        lambda s, query, key, bias: [np.ones_like(s), [(of(query, key), np.ones_like(s))]],
        {"bias": kind},
    )  # fmt: skip


far = index(
    """%ahead = arith.subi %key, %query : i32
    %step = arith.constant 30000000 : i32
    %at = arith.muli %ahead, %step : i32"""
)
key = index("%no = arith.constant 0 : i32\n%at = arith.addi %key, %no : i32")


def twice():
    """a[distance] s + a[key + 5 a[distance]]: two lookups in one table, one by the other."""

    def at(key, entry):
        return key + np.trunc(5 * entry).astype(np.int64)

    def value(s, query, key, bias):
        a = bias(query - key)
        return a * s + bias(at(key, a))

    return scores.Score(
        "twice",
        lambda type: f"""%behind = arith.subi %query, %key : i32
            %a = varlen.lookup %bias[%behind] : !varlen.table<{type}>
            %five = arith.constant 5.0 : {type}
            %x = arith.mulf %five, %a : {type}
            %y = arith.fptosi %x : {type} to i32
            %at = arith.addi %key, %y : i32
            %b = varlen.lookup %bias[%at] : !varlen.table<{type}>
            %z = arith.mulf %a, %score : {type}
            %new = arith.addf %z, %b : {type}""",
        value,
        lambda s, query, key, bias: [
            bias(query - key) + 0 * s,
            [(query - key, s), (at(key, bias(query - key)), np.ones_like(s))],
        ],
        {"bias": "head_table"},
    )  # fmt: skip


def draw(dtype, *shape):
    return varlen.dtypes.narrow(rng.standard_normal(shape).astype("f4"), dtype)


def table(of, entries, dtype="f32"):
    extents = {"heads": HEADS, "rows": TQ, "entries": entries}
    shape = [extents[extent] for extent in scores.CAPTURES[of]]
    return rng.uniform(-1, 1, shape).astype("f8" if dtype == "f64" else "f4")


def judge(label, dtype, results, wanted):
    """Results by name, beside the golden ones and the plain ones."""
    for name, got in results.items():
        golden, plain = wanted[name]
        allowed = tolerance.bound(golden, plain, dtype, gradient=True)
        if name == "dbias":
            # A sum of either sign over all scores of a head, whose terms have the size
            # of 1 where they cancel, too: with one entry all of them do.
            most = max(1, abs(golden).max())
            allowed = allowed + 32 * np.finfo(got.dtype).eps * most
        error = abs(varlen.dtypes.widen(got) - golden)
        assert (error <= allowed).all(), f"{label}, {dtype}: {name}: {error.max()}"
        if name == "dbias" and got.ndim == 3:
            assert not got[:, CU_Q[-1] :].any(), f"{label}: rows of no sequence"


def compare(label, dtype, score, captures, window=(-1, -1), on_gpu=False):
    q, dout = draw(dtype, TQ, HEADS, 24), draw(dtype, TQ, HEADS, 16)
    k, v = draw(dtype, TK, KV_HEADS, 24), draw(dtype, TK, KV_HEADS, 16)
    given = {"score": score, "captures": captures, "window": window}
    out, lse = varlen.attn(q, k, v, CU_Q, CU_K, return_lse=True, **given)
    golden = reference.attention(q, k, v, CU_Q, CU_K, **given)
    plain = reference.plain(q, k, v, CU_Q, CU_K, **given)
    tolerance.check(out, golden[0], plain[0], dtype, f"{label}: out")
    found = varlen.attn_grad(dout, q, k, v, out, lse, CU_Q, CU_K, **given)
    golden = reference.gradients(dout, q, k, v, CU_Q, CU_K, **given)
    plain = reference.plain_gradients(dout, q, k, v, CU_Q, CU_K, **given)
    names = ["dq", "dk", "dv", None, *(f"d{name}" for name in score.captures)]
    results = dict(zip(filter(None, names), found, strict=True))
    judge(label, dtype, results, dict(zip(names, zip(golden, plain), strict=True)))
    # The oracle computes the same, in a wide and in a narrow type, and so do kernels.
    text = varlen.text.attn_grad(
        dtype=dtype, heads=HEADS, kv_heads=KV_HEADS, head_dim=24, v_head_dim=16,
        window=window, score=score,
    )  # fmt: skip
    inputs = {
        "dout": dout, "q": q, "k": k, "v": v, "out": out, "lse": lse,
        "cu_seqlens_q": CU_Q, "cu_seqlens_k": CU_K, **dict(zip(score.captures, captures)),
    }  # fmt: skip
    pipeline = "builtin.module(varlen-decompose-attn,varlen-to-cpu)"
    oracle = varlen.run(text, inputs, threads=1, pipeline=pipeline) if dtype in ORACLE else {}
    for name, wanted in zip(names, golden):
        if name in oracle:
            got = varlen.dtypes.widen(oracle[name])
            most = ORACLE[dtype] * max(1, abs(wanted).max())
            assert abs(got - wanted).max() <= most, f"{label}, {dtype}: oracle {name}"
    if on_gpu:
        results = varlen.run(text, inputs, device="sim:sm_80")
        judge(f"{label} by kernels", dtype, results, dict(zip(names, zip(golden, plain))))
    return text, inputs, results


# Tables of both kinds in f32 and bf16; f64 and f16 differ from these in conversions alone, of
# which scores with two lookups in one table, or with the limits of a tree, have all.
WHOLE = "--whole" in sys.argv
KINDS = {
    "f32": ("head_table", "query_table"), "f64": ("query_table",) if WHOLE else (),
    "bf16": ("query_table", "head_table")[: 2 if WHOLE else 1], "f16": ("head_table",) if WHOLE else (),
}  # fmt: skip
for dtype, kinds in KINDS.items():
    for kind in kinds:
        score = far(kind, lambda query, key: (key - query) * 30000000)
        compare(f"far, {kind}", dtype, score, [table(kind, 5, dtype)], on_gpu=dtype == "f32")
        score = key(kind, lambda query, key: key + 0 * query)
        compare(f"one entry, {kind}", dtype, score, [table(kind, 1, dtype)], on_gpu=dtype == "bf16")
        compare(f"by key, {kind}", dtype, score, [table(kind, 41, dtype)], (17, -1))
    compare("twice", dtype, twice(), [table("head_table", 33, dtype)], on_gpu=dtype == "bf16")
    # The library's are in conformance.py, too.
    if WHOLE or dtype in ("f64", "bf16"):
        compare("t5", dtype, scores.t5_bias(16, 40), [table("head_table", 16, dtype)], (-1, 0))
    if WHOLE or dtype in ("f32", "f16"):
        flags = np.maximum(table("query_table", 12, dtype), 0)
        compare("tree", dtype, scores.tree(), [flags])

# By kernels, too, a query's row of a gradient does not depend on the batch.
score = key("query_table", lambda query, key: key + 0 * query)
text, inputs, results = compare("alone", "bf16", score, [table("query_table", 70)], on_gpu=True)
rows, keys = slice(0, 70), slice(9, 50)
one = {name: inputs[name][rows] for name in ("dout", "q", "out")}
one |= {name: inputs[name][keys] for name in "kv"}
one |= {name: inputs[name][:, rows].copy() for name in ("lse", "bias")}
one |= {"cu_seqlens_q": np.array([0, 70], "i4"), "cu_seqlens_k": np.array([0, 41], "i4")}
single = varlen.run(text, one, device="sim:sm_80")
assert single["dbias"].tobytes() == results["dbias"][:, rows].tobytes()

# Any strides between rows.
q, k = draw("f32", TQ, HEADS, 16), draw("f32", TK, KV_HEADS, 16)
score = scores.position_bias()
bias = table("query_table", 60)
wanted = varlen.attn(q, k, k, CU_Q, CU_K, score=score, captures=[bias])
for strange in (
    np.ascontiguousarray(bias.swapaxes(0, 1)).swapaxes(0, 1), np.repeat(bias, 2, axis=1)[:, ::2],
    np.ascontiguousarray(bias[::-1, ::-1])[::-1, ::-1], np.pad(bias, ((0, 0), (0, 0), (1, 6)))[:, :, 1:-6],
):  # fmt: skip
    got = varlen.attn(q, k, k, CU_Q, CU_K, score=score, captures=[strange])
    assert np.array_equal(got, wanted)

# Few queries of many keys, as in decoding: of drafts that branch.
parents = [-1, 0, 0, 1, 2, 2]
flags = np.broadcast_to(scores.tree_flags(parents), (HEADS, 6, 7))
flags = np.ascontiguousarray(np.concatenate([flags, flags], axis=1))
q, k = draw("f32", 12, HEADS, 16), draw("f32", 900, KV_HEADS, 16)
cu_q, cu_k = np.array([0, 6, 12], "i4"), np.array([0, 800, 900], "i4")
out = varlen.attn(q, k, k, cu_q, cu_k, score=scores.tree(), captures=[flags])
golden, _ = reference.attention(q, k, k, cu_q, cu_k, score=scores.tree(), captures=[flags])
assert abs(out - golden).max() < 1e-5
# Draft 5 of sequence 0 is attention over the keys before the tree and its ancestors.
seen = np.r_[0:794, 794 + np.array([0, 2, 5])]
one = varlen.attn(q[5:6], k[seen], k[seen], np.array([0, 1], "i4"), np.array([0, len(seen)], "i4"))
assert abs(one - out[5:6]).max() < 1e-5

# Bitwise the same with any number of threads, also of a sequence that they share.
q, k = draw("f32", 2300, 2, 16), draw("f32", 2300, 1, 16)
cu = np.array([0, 2200, 2300], "i4")
for score, shape in ((scores.t5_bias(), (2, 32)), (scores.position_bias(), (2, 2300, 90))):
    given = {"score": score, "captures": [rng.uniform(-1, 1, shape).astype("f4")]}
    threads.check(q, k, cu, given)


def refused(message, captures, score=scores.t5_bias()):
    q = draw("f32", 4, HEADS, 16)
    try:
        varlen.attn(q, q, q, np.array([0, 4], "i4"), score=score, captures=captures)
    except ValueError as error:
        assert message in str(error), error
    else:
        raise AssertionError(f"expected: {message}")


refused("a capture has 0 entries: expected a table with a positive number", [np.zeros((HEADS, 0), "f4")])
refused("bias: expected an array of rank 2 (heads, entries), got shape (6,)", [np.zeros(HEADS, "f4")])
refused(
    "expected capture compatible with 'tensor<6x?xf32>', got 'tensor<5x?xf32>'",
    [np.zeros((HEADS - 1, 8), "f4")],
)  # fmt: skip
refused(
    "a capture has 3 rows: expected 4, as many as q", [np.zeros((HEADS, 3, 8), "f4")],
    scores.position_bias(),
)  # fmt: skip
