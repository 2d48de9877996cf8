# RUN: %python %s

"""varlen.attn_jvp on arrays: the results of varlen.attn, and tangents of which varlen.attn_grad is
the transpose; varlen.attn_jvp_grad, which differences of these are like; operands of every kind,
strides, and what is refused."""

import functools

import numpy as np
import varlen
from checks import NUMPY_TYPES, cumulate, normal, raises
from varlen import reference, scores

rng = np.random.default_rng(4)
cu_q, cu_k = cumulate(0, 9, 1, 4, 2), cumulate(3, 5, 6, 4, 0)


def rows(element):
    shapes = (18, 4, 8), (20, 2, 8), (20, 2, 6)
    return [normal(rng, element, *shape) for shape in shapes]


def dot(xs, ys):
    return sum(np.vdot(x, y) for x, y in zip(xs, ys, strict=True))


def check(element, score=None, missing=(), **options):
    """That tangents are those of the definition, and gradients their transpose."""
    wide = "f64" if element == "f64" else "f32"
    (q, k, v), tangents = rows(element), rows(element)
    extents = {"heads": 4, "rows": 18, "kv_rows": 20, "entries": 7}
    shapes = [[extents[x] for x in scores.CAPTURES[of]] for of in (score.captures.values() if score else ())]
    captures, moved = ([normal(rng, wide, *shape) for shape in shapes] for _ in range(2))
    tcaptures = [None if i in missing else t for i, t in enumerate(moved)]
    given = {"score": score, "captures": captures, **options}
    if "window" in options:
        given["sink"] = normal(rng, wide, 4)
    tsink = normal(rng, wide, 4) if "sink" in given else None
    out, lse, tout, tlse = varlen.attn_jvp(
        q, k, v, *tangents, cu_q, cu_k, tsink=tsink, tcaptures=tcaptures, **given
    )
    wanted = varlen.attn(q, k, v, cu_q, cu_k, return_lse=True, **given)
    assert all(map(np.array_equal, (out, lse), wanted))
    assert (tout.shape, tout.dtype, tlse.shape, tlse.dtype) == (out.shape, out.dtype, lse.shape, lse.dtype)
    cotangents = normal(rng, element, *out.shape), normal(rng, wide, *lse.shape)
    got = varlen.attn_grad(
        cotangents[0], q, k, v, out, lse, cu_q, cu_k, dlse=cotangents[1], **given
    )
    every = [*tangents, *([tsink] if "sink" in given else [])]
    every += [np.zeros_like(t) if i in missing else t for i, t in enumerate(moved)]
    if element == "f64":
        # Without that by the words of dropout.
        forward, backward = dot(cotangents, (tout, tlse)), dot(got[: len(every)], every)
        assert abs(forward - backward) <= 1e-11 * dot(map(abs, cotangents), map(abs, (tout, tlse)))
        check_second((q, k, v), tangents, (tsink, tcaptures), given, (out, lse, tout, tlse))
    if not {"dropout_p", "chunk", "is_causal"} & options.keys():
        golden = reference.tangents(
            *tangents, q, k, v, cu_q, cu_k, tsink=tsink, tcaptures=every[4 if "sink" in given else 3 :], **given
        )
        most = {"f64": 1e-12, "f32": 1e-5, "bf16": 3e-2, "f16": 1e-2}[element]
        for x, y in zip((tout, tlse), golden):
            assert np.abs(x.astype("f8") - y).max() <= most * np.abs(y).max()


def check_second(values, tangents, more, given, results):
    """The gradients of a weighted sum of all four results beside its differences, in f64."""
    tsink, tcaptures = more
    weights = [normal(rng, "f64", *x.shape) for x in results]
    moved = [normal(rng, "f64", *x.shape) for x in values]
    # A sink, and captures that have a tangent, are moved too.
    sink = given.get("sink")
    moved_sink = None if sink is None else normal(rng, "f64", *sink.shape)
    moved_captures = [None if t is None else normal(rng, "f64", *t.shape) for t in tcaptures]

    def loss(step):
        at = [x + step * m for x, m in zip(values, moved)]
        others = dict(given)
        if sink is not None:
            others["sink"] = sink + step * moved_sink
        others["captures"] = [
            x if m is None else x + step * m for x, m in zip(given["captures"], moved_captures)
        ]
        got = varlen.attn_jvp(*at, *tangents, cu_q, cu_k, tsink=tsink, tcaptures=tcaptures, **others)
        return sum(np.vdot(np.where(np.isfinite(x), x, 0), w) for x, w in zip(got, weights))

    dout, dlse, dtout, dtlse = weights
    gradients = varlen.attn_jvp_grad(
        dtout, *values, *tangents, *results, cu_q, cu_k, dtlse=dtlse, dout=dout, dlse=dlse,
        tsink=tsink, tcaptures=tcaptures, **given,
    )  # fmt: skip
    every = [*moved, *([] if sink is None else [moved_sink])]
    every += [m for m in moved_captures if m is not None]
    step = 1e-5
    wanted = (loss(step) - loss(-step)) / (2 * step)
    got = dot(gradients, every)
    assert abs(got - wanted) <= 1e-7 * dot(map(abs, gradients), map(abs, every)), (got, wanted)


for element in NUMPY_TYPES:
    check(element, window=(6, 0))
score = functools.reduce(scores.compose, (scores.gains(), scores.softcap(2.0), scores.key_bias()))
check("f64", score, window=(6, 1), alignment="top_left", scale=0.3125)
check("f64", score, missing=(1,), window=(6, 1))
check("f64", scores.alibi(), is_causal=True, dropout_p=0.3, seed=5)
used = {"seqused_q": np.array([0, 7, 1, 4, 1], "i4"), "seqused_k": np.array([2, 5, 4, 0, 0], "i4")}
check("f64", chunk=4, q_offset=np.array([0, 1, 0, -2, 0], "i4"), **used)

# Without tangents of captures these are constant, and so is a sink without one.
(q, k, v), (tq, tk, tv) = rows("f64"), rows("f64")
gains, zeros = normal(rng, "f64", 4), np.zeros(4)
one = {"score": scores.gains(), "captures": [gains], "sink": gains}
bare = varlen.attn_jvp(q, k, v, tq, tk, tv, cu_q, cu_k, **one)
full = varlen.attn_jvp(q, k, v, tq, tk, tv, cu_q, cu_k, tcaptures=[zeros], tsink=zeros, **one)
assert all(np.allclose(x, y, rtol=1e-14, atol=1e-14, equal_nan=True) for x, y in zip(bare, full))

second = [
    varlen.attn_jvp_grad(bare[0], q, k, v, tq, tk, tv, *bare, cu_q, cu_k, tsink=tsink, **one)
    for tsink in (None, zeros)
]
assert len(second[0]) == 4
assert all(np.allclose(x, y, rtol=1e-14, atol=1e-14) for x, y in zip(*second))

# Slices go in as they are; threads change no bit.
wide = [np.repeat(x, 2, axis=1)[:, ::2] for x in (q, k, v, tq, tk, tv)]
results = varlen.attn_jvp(q, k, v, tq, tk, tv, cu_q, cu_k, num_threads=1)
for again in (
    varlen.attn_jvp(*wide, cu_q, cu_k, num_threads=2),
    varlen.attn_jvp(q, k, v, tq, tk, tv, cu_q, cu_k, num_threads=3),
):
    assert all(map(np.array_equal, again, results))

# What is wrong is said in words.
out, lse, tout, tlse = results
raises(
    ValueError, "dtout has 3 rows: expected 18, as many as q",
    lambda: varlen.attn_jvp_grad(out[:3], q, k, v, tq, tk, tv, out, lse, tout, tlse, cu_q, cu_k),
)  # fmt: skip
jvp = varlen.attn_jvp
raises(ValueError, "tk has 3 rows: expected 20, as many as k", jvp, q, k, v, tq, tk[:3], tv, cu_q, cu_k)
raises(ValueError, "tq: expected an array of rank 3", jvp, q, k, v, tq[0], tk, tv, cu_q, cu_k)
raises(ValueError, "expected tv compatible with", jvp, q, k, v, tq, tk, tk, cu_q, cu_k)
raises(TypeError, "tq: expected", jvp, q, k, v, None, tk, tv, cu_q, cu_k)
raises(ValueError, "tsink: expected a sink beside it, got None", jvp, q, k, v, tq, tk, tv, cu_q, cu_k, tsink=gains)
raises(
    ValueError, "tcaptures: expected none or 1 arrays (gains), got 2",
    lambda: jvp(q, k, v, tq, tk, tv, cu_q, cu_k, tcaptures=[gains] * 2, **one),
)  # fmt: skip
raises(
    TypeError, "tcaptures: expected a sequence of arrays, got 3",
    lambda: jvp(q, k, v, tq, tk, tv, cu_q, cu_k, tcaptures=3, **one),
)  # fmt: skip
