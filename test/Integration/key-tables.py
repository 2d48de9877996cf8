# RUN: %around-code %python %s
"""Captures with a number for each key: values and gradients on a CPU, in the oracle and
in the executor, and that no sequence reads the numbers of another."""

import os
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "Inputs"))
import threads

import varlen
from varlen import dtypes, reference, scores, tolerance

rng = np.random.default_rng(0)
# No queries, no keys, one of them, and rows of no sequence.
CU_Q, CU_K = np.array([0, 0, 70, 71, 110, 130], "i4"), np.array([0, 9, 50, 121, 180, 180], "i4")
TQ, TK = 133, 187
OWNED = np.zeros(TK, bool)
OWNED[9:180] = True
NAMES = ("out", "lse", "dq", "dk", "dv")
PACKED = ("q", "k", "v", "cu_seqlens_q", "cu_seqlens_k")


def draw(dtype, *shape):
    return dtypes.narrow(rng.standard_normal(shape).astype("f4"), dtype)


def numbers(name, heads, rows=TK, dtype="f32"):
    """The values of a capture; documents and flags have few values."""
    wide = rng.uniform(-2, 2, (heads, rows)) if name == "bias" else rng.integers(0, 3, (heads, rows))
    return wide.astype("f8" if dtype == "f64" else "f4")


def neighbours():
    """s + bias of the key at the query's own position: an index of any value."""
    return scores.Score(
        "neighbours",
        lambda type: f"""%b = varlen.lookup %bias[%query] : !varlen.table<{type}, keys>
            %new = arith.addf %score, %b : {type}""",
        lambda s, query, key, bias: s + bias(query),
        lambda s, query, key, bias: [np.ones_like(s), [(query, np.ones_like(s))]],
        {"bias": "key_table"},
    )


def modules(dtype, heads, kv_heads, score, window, wrt=True):
    sizes = {"dtype": dtype, "heads": heads, "kv_heads": kv_heads, "head_dim": 24, "v_head_dim": 40}
    sizes |= {"window": window, "score": score}
    return varlen.text.attn(**sizes), varlen.text.attn_grad(**sizes, wrt_captures=wrt)


def compute_here(inputs, score, window):
    """The same in this process, which compiles once."""
    packed = [inputs[name] for name in PACKED]
    given = {"score": score, "window": window, "captures": [inputs[x] for x in score.captures]}
    out, lse = varlen.attn(*packed, return_lse=True, **given)
    gradients = varlen.attn_grad(inputs["dout"], *packed[:3], out, lse, *packed[3:], **given)
    names = (*NAMES, *(f"d{name}" for name in score.captures))
    return dict(zip(names, [out, lse, *gradients], strict=True))


def compute(texts, inputs, **options):
    """out, lse and the gradients, by name."""
    forward = {name: x for name, x in inputs.items() if name != "dout"}
    results = varlen.run(texts[0], forward, **options)
    return results | varlen.run(texts[1], inputs | results, **options)


def check(label, dtype, heads, kv_heads, score, window=(-1, -1), wrt=True, oracle=True, **options):
    texts = modules(dtype, heads, kv_heads, score, window, wrt)
    captures = {name: numbers(name, heads, dtype=dtype) for name in score.captures}
    inputs = {
        "dout": draw(dtype, TQ, heads, 40), "q": draw(dtype, TQ, heads, 24),
        "k": draw(dtype, TK, kv_heads, 24), "v": draw(dtype, TK, kv_heads, 40),
        "cu_seqlens_q": CU_Q, "cu_seqlens_k": CU_K, **captures,
    }  # fmt: skip

    def run(inputs):
        if wrt and not options:
            return compute_here(inputs, score, window)
        return compute(texts, inputs, **options)

    found = run(inputs)
    packed = [inputs[name] for name in PACKED]
    given = {"score": score, "captures": list(captures.values()), "window": window}
    golden = [*reference.attention(*packed, **given)]
    plain = [*reference.plain(*packed, **given)]
    golden += reference.gradients(inputs["dout"], *packed, **given)
    plain += reference.plain_gradients(inputs["dout"], *packed, **given)
    names = [*NAMES, None, *(f"d{name}" for name in captures if wrt)]
    for name, wanted, simple in zip(names, golden, plain):
        if name:
            allowed = tolerance.bound(wanted, simple, dtype, gradient=name.startswith("d"))
            if name == "dbias":
                allowed = allowed + 16 * np.finfo(found[name].dtype).eps * abs(wanted).max()
            with np.errstate(invalid="ignore"):
                error = np.where(wanted == found[name], 0, abs(dtypes.widen(found[name]) - wanted))
            assert (error <= allowed).all(), f"{label}, {dtype}: {name}: {error.max()}"
    for name in captures if wrt else ():
        assert not found[f"d{name}"][:, ~OWNED].any(), f"{label}: keys of no sequence"
    # What another sequence has, and keys of none, reaches no result.
    spoilt = {name: x.copy() for name, x in captures.items()}
    for x in spoilt.values():
        x[:, ~OWNED], x[:, 50:121] = np.nan, np.nan
    again = run(inputs | spoilt)
    kept_q, kept_k = np.r_[0:70, 71:TQ], np.r_[0:50, 121:TK]
    for name, x in again.items():
        axis = int(name == "lse" or name[1:] in captures)
        kept = kept_k if name in ("dk", "dv") or name[1:] in captures else kept_q
        a, b = (np.take(dtypes.widen(y), kept, axis) for y in (x, found[name]))
        assert np.array_equal(a, b), f"{label}, {dtype}: {name} has NaN of neighbours"
    if not oracle:
        return
    pipeline = "builtin.module(varlen-decompose-attn,varlen-to-cpu)"
    by_oracle = compute(texts, inputs, threads=1, pipeline=pipeline)
    most = {"f64": 1e-12, "f32": 1e-4, "f16": 2e-2, "bf16": 1e-1}[dtype]
    for name, wanted in zip(names, golden):
        if name:
            with np.errstate(invalid="ignore"):
                error = abs(dtypes.widen(by_oracle[name]) - wanted)
            error = np.where(wanted == by_oracle[name], 0, error)
            assert error.max() <= most * max(1, abs(wanted[np.isfinite(wanted)]).max()), name


capped = scores.compose(scores.key_bias(), scores.softcap(3.0))
for dtype in ("f32", "f64", "bf16", "f16"):
    check("capped", dtype, 6, 2, capped, oracle=dtype in ("f32", "f64"))
# Groups of one head, and of more heads than a vector has lanes.
check("one head", "f32", 4, 4, scores.key_bias(), (17, -1), oracle=False)
check("many heads", "bf16", 40, 2, scores.key_bias(), (-1, 0), oracle=False)
check("padding", "f32", 6, 2, scores.key_padding())
check("documents", "bf16", 4, 2, scores.packed_documents(), (-1, 0), oracle=False)
check("by query", "f64", 4, 2, neighbours(), wrt=False)
kernels = {"oracle": False, "device": "sim:sm_80"}
both = scores.compose(scores.packed_documents(), scores.key_bias())
check("kernels", "bf16", 4, 2, both, (-1, 40), **kernels)

# Keys that are not in use are as those of no sequence; numbers of any strides between heads.
used = np.array([0, 30, 71, 1, 0], "i4")
q, k = draw("f32", TQ, 4, 16), draw("f32", TK, 2, 16)
score, bias = scores.key_bias(), numbers("bias", 4)
bias[:, 39:50], bias[:, 122:] = np.nan, np.nan
results = []
for strange in (
    bias, np.repeat(bias, 3, axis=0)[::3],
    np.pad(bias, ((0, 0), (3, 5)), constant_values=np.nan)[:, 3:-5],
):  # fmt: skip
    given = {"seqused_k": used, "score": score, "captures": [strange]}
    out, lse = varlen.attn(q, k, k, CU_Q, CU_K, return_lse=True, **given)
    results.append([out, *varlen.attn_grad(q, q, k, k, out, lse, CU_Q, CU_K, **given)])
golden, _ = reference.attention(q, k, k, CU_Q, CU_K, **given)
assert abs(results[0][0] - golden).max() < 1e-5
for other in results[1:]:
    assert all(map(np.array_equal, results[0], other))
assert not results[0][-1][:, np.r_[0:9, 39:50, 122:187]].any() and results[0][-1][:, 9:39].all()

# Few queries of many keys, as in decoding, where threads share the keys.
q, k = draw("f32", 12, 6, 16), draw("f32", 3100, 2, 16)
cu_q, cu_k = np.array([0, 6, 12], "i4"), np.array([0, 3000, 3100], "i4")
for score in (capped, scores.key_padding()):
    given = {"score": score, "captures": [numbers(*score.captures, 6, 3100)]}
    golden, _ = reference.attention(q, k, k, cu_q, cu_k, **given)
    out = varlen.attn(q, k, k, cu_q, cu_k, **given)
    assert abs(out - golden).max() < 1e-5, score.name

# Bitwise the same with any number of threads, also of a sequence that they share.
q, k = draw("f32", 2300, 2, 16), draw("f32", 2300, 1, 16)
cu = np.array([0, 2200, 2300], "i4")
given = {"score": capped, "captures": [numbers("bias", 2, 2300)]}
threads.check(q, k, cu, given)


def refused(message, capture):
    q = draw("f32", 4, 6, 16)
    try:
        varlen.attn(q, q, q, np.array([0, 4], "i4"), score=scores.key_bias(), captures=[capture])
    except ValueError as error:
        assert message in str(error), error
    else:
        raise AssertionError(f"expected: {message}")


refused("a capture has 3 rows: expected 4, as many as k", np.zeros((6, 3), "f4"))
refused("expected capture compatible with 'tensor<6x?xf32>', got 'tensor<5x?xf32>'", np.zeros((5, 4), "f4"))
refused("bias: expected an array of rank 2 (heads, kv_rows), got shape (6,)", np.zeros(6, "f4"))
