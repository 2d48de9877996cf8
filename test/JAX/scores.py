# RUN: %python %s
# RUN: %if long %{ %python %s --whole %}
"""Scores in JAX: results, gradients by captures, batches and several devices. On a GPU, and in
`make check-all`, more scores than one for each kind of capture."""

import itertools
import sys

from Inputs.device import IS_CUDA, TYPES, share

import jax
import numpy as np
from checks import cumulate, normal, raises
from jax import numpy as jnp
from jax.sharding import AxisType, NamedSharding, PartitionSpec

from varlen import reference, scores
from varlen.jax import varlen_attn

jax.config.update("jax_enable_x64", True)
count = share(4)
P = PartitionSpec
rng = np.random.default_rng(1)
# Empty sequences, more keys than queries and the reverse, rows behind the last.
cu_q, cu_k = cumulate(0, 9, 1, 4, 0), cumulate(3, 9, 6, 2, 0)
ROWS_Q, ROWS_K = 16, 20
LIBRARY = {
    scores.softcap(2.0): (), scores.capped_alibi(3.0): ("gains", "slopes"),
    scores.t5_bias(8, 6): ("bias",),
    scores.compose(scores.key_bias(), scores.key_padding()): ("bias", "used"),
    scores.compose(scores.position_bias(), scores.tree()): ("bias", "flags"),
}  # fmt: skip
assert {of for score in LIBRARY for of in score.captures.values()} == {*scores.CAPTURES}
if "--whole" in sys.argv or IS_CUDA:
    LIBRARY |= {
        scores.alibi(): ("slopes",), scores.query_gains(): ("gains",), scores.chunked(4): (),
        scores.prefix_lm(): ("prefix",), scores.document(): ("begin", "end"),
        scores.compose(scores.softcap(5.0), scores.causal()): (),
    }  # fmt: skip


def make(element, heads, kv_heads, score):
    """q, k, v, a sink, captures, and cotangents of out and lse."""
    wide = np.float64 if element == "f64" else np.float32
    extents = {"heads": heads, "rows": ROWS_Q, "kv_rows": ROWS_K, "entries": 8}
    captures = [
        rng.uniform(0.1, 1.5, [extents[x] for x in scores.CAPTURES[of]]).astype(wide)
        for of in score.captures.values()
    ]
    return [
        normal(rng, element, ROWS_Q, heads, 16), normal(rng, element, ROWS_K, kv_heads, 16),
        normal(rng, element, ROWS_K, kv_heads, 8), rng.standard_normal(heads).astype(wide),
        captures, normal(rng, element, ROWS_Q, heads, 8),
        rng.standard_normal((heads, ROWS_Q)).astype(wide),
    ]  # fmt: skip


def everything(score, q, k, v, sink, captures, dout, dlse):
    """out, lse and all gradients."""

    def attend(q, k, v, sink, captures):
        return varlen_attn(
            q, k, v, cu_q, cu_k, window=(7, -1), sink=sink, score=score, captures=captures,
            return_lse=True,
        )  # fmt: skip

    results, differentiate = jax.vjp(attend, q, k, v, sink, captures)
    *gradients, dcaptures = differentiate((dout, dlse))
    return [*results, *gradients, *dcaptures]


def close(got, wanted, tolerance):
    for a, b in zip(got, wanted, strict=True):
        a, b = (np.asarray(x, np.float64) for x in (a, b))
        same = np.isneginf(a) & np.isneginf(b)
        assert a.shape == b.shape
        error = np.max(np.abs(np.where(same, 0, a) - np.where(same, 0, b)), initial=0)
        assert error <= tolerance * max(1, np.max(np.abs(np.where(same, 0, b)), initial=0))


# Scores and types of elements are independent of each other in JAX's part: one type each.
TOLERANCES = {"f64": 1e-12, "f32": 2e-5, "bf16": 4e-2}
elements = itertools.cycle([element for element in TOLERANCES if element in TYPES])
for (score, names), element in zip(LIBRARY.items(), elements):
    assert tuple(score.captures) == names
    q, k, v, sink, captures, dout, dlse = arrays = make(element, 4, 2, score)
    options = {"window": (7, -1), "sink": sink, "score": score, "captures": captures}
    wanted = reference.attention(q, k, v, cu_q, cu_k, **options)
    wanted += reference.gradients(dout, q, k, v, cu_q, cu_k, dlse=dlse, **options)
    got = everything(score, *arrays)
    assert [x.dtype for x in got[2:6]] == [x.dtype for x in arrays[:4]]
    close(got, wanted, TOLERANCES[element])
    compiled = jax.jit(lambda *x, score=score: everything(score, *x))(*arrays)
    assert all(map(np.array_equal, compiled, got))

# Batches of all, of captures alone, and of everything else: one call of more heads.
score = scores.capped_alibi(3.0)
batch = [make("f32", 4, 2, score) for _ in range(3)]
stacked = jax.tree.map(lambda *x: np.stack(x), *batch)
got = jax.vmap(lambda *x: everything(score, *x))(*stacked)
for i, arrays in enumerate(batch):
    close([x[i] for x in got], everything(score, *arrays), 1e-5)
first = batch[0]
captures = stacked[4]
varied = jax.vmap(lambda c: everything(score, *first[:4], c, *first[5:]))(captures)
for i in range(3):
    own = [*first[:4], [x[i] for x in captures], *first[5:]]
    close([x[i] for x in varied], everything(score, *own), 1e-5)

# Several devices: captures are split as heads are, to the bit.
mesh = jax.make_mesh((count,), ("heads",), axis_types=(AxisType.Auto,))
arrays = make("f32", 8, 4, score)
specs = [P(None, "heads")] * 3 + [P("heads"), [P("heads"), P("heads")], P(None, "heads"), P("heads")]
put = jax.tree.map(lambda x, spec: jax.device_put(x, NamedSharding(mesh, spec)), arrays, specs)
compiled = jax.jit(lambda *x: everything(score, *x)).lower(*put).compile()
got = compiled(*put)
assert all(map(np.array_equal, got, everything(score, *arrays)))
assert "all-" not in compiled.as_text()
for x in got[-2:]:
    assert x.sharding.shard_shape(x.shape)[0] * count == x.shape[0]
# More devices than kv heads.
arrays = make("f32", 8, 2, score)
put = jax.tree.map(lambda x, spec: jax.device_put(x, NamedSharding(mesh, spec)), arrays,
                   [specs[0], P(), P(), *specs[3:]])  # fmt: skip
close(jax.jit(lambda *x: everything(score, *x))(*put), everything(score, *arrays), 1e-5)

# What does not go together.
q, k, v, _, captures, *_ = arrays
raises(
    ValueError, "captures: expected 2 arrays (gains, slopes), got 1",
    lambda: varlen_attn(q, k, v, cu_q, cu_k, score=score, captures=captures[:1]),
)  # fmt: skip
raises(
    ValueError, "gains: expected an array of rank 2 (heads, rows), got shape (8,)",
    lambda: varlen_attn(q, k, v, cu_q, cu_k, score=score, captures=captures[::-1]),
)  # fmt: skip
raises(
    TypeError, "slopes: expected an array, or what jax.numpy.asarray makes one of, got None",
    lambda: varlen_attn(q, k, v, cu_q, cu_k, score=score, captures=[captures[0], None]),
)  # fmt: skip
clash = scores.Score(
    "clash", lambda type: f"%new = arith.mulf %score, %sink : {type}",
    lambda s, query, key, sink: s * sink, None, {"sink": "head"},
)  # fmt: skip
raises(
    ValueError, "captures: expected names that no operand has, got 'sink'",
    lambda: varlen_attn(q, k, v, cu_q, cu_k, score=clash, captures=[jnp.ones(8)]),
)  # fmt: skip
raises(
    TypeError, "score: expected None or a varlen.scores.Score, such as varlen.scores.alibi(), got 'alibi'",
    lambda: varlen_attn(q, k, v, cu_q, cu_k, score="alibi"),
)  # fmt: skip
