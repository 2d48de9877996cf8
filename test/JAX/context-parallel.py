# RUN: %python %s %if long %{--whole%}
"""context_parallel in shard_map: results and gradients of a batch whose rows are divided over
devices are those of one device; other batches compile nothing."""

import sys

from Inputs.device import need

import jax
import numpy as np
from checks import cumulate, normal, raises
from jax import numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

from varlen import context_parallel as plans
from varlen import scores
from varlen.jax import Sizes, context_parallel, shard_plan, shard_rows, varlen_attn

rng = np.random.default_rng(0)
DEVICES = 4
need(DEVICES)
mesh = jax.make_mesh((DEVICES,), ("ranks",), axis_types=(AxisType.Auto,))


def divided(**options):
    """Attention of a whole batch by devices, of which each has some rows. `kinds` of captures are
    those of the score."""
    score = options.get("score")
    sides = [{"q": "rows", "k": "key_rows"}.get(of[0]) for of in (score.captures.values() if score else ())]

    def local(q, k, v, shards, sink, captures):
        captures = [x if side is None else jnp.moveaxis(x[0], 0, 1) for x, side in zip(captures, sides)]
        return context_parallel(
            q[0], k[0], v[0], shards, "ranks", sink=sink, captures=captures, return_lse=True, **options
        )

    def attend(q, k, v, sink, captures, shards):
        own = [shard_rows(x, i) for x, i in zip((q, k, v), (shards.rows, shards.key_rows, shards.key_rows))]
        captures = [
            x if side is None else shard_rows(jnp.moveaxis(x, 1, 0), getattr(shards, side))
            for x, side in zip(captures, sides)
        ]
        of_captures = [P() if side is None else P("ranks") for side in sides]
        out, lse = jax.shard_map(
            local, mesh=mesh,
            in_specs=(P("ranks"), P("ranks"), P("ranks"), P("ranks"), P(), of_captures),
            out_specs=(P("ranks"), P(None, "ranks")),
        )(*own, shards, sink, captures)  # fmt: skip
        order = shards.order[0]
        return jnp.take(out, order, 0), jnp.take(lse, order, 1)

    return attend


def everything(attend, dout, dlse, *arguments):
    results, differentiate = jax.vjp(attend, *arguments)
    return jax.tree.leaves((results, differentiate((dout, dlse))))


def check(method, lengths, lengths_k, heads, layout, score=None, capture="", window=(-1, -1), chunk=None):
    """`capture` is "H", "HQ", "HQM" or "HK"."""
    cu_q, cu_k = cumulate(*lengths), cumulate(*lengths_k)
    extents = {"H": heads[0], "Q": cu_q[-1], "K": cu_k[-1], "M": max(lengths_k)}
    q = normal(rng, "f32", cu_q[-1], heads[0], 16)
    k, v = (normal(rng, "f32", cu_k[-1], heads[1], d) for d in (16, 8))
    sink = normal(rng, "f32", heads[0])
    captures = [normal(rng, "f32", *(extents[x] for x in capture))] if capture else []
    dout, dlse = normal(rng, "f32", cu_q[-1], heads[0], 8), normal(rng, "f32", heads[0], cu_q[-1])
    mask = {"chunk": chunk} if chunk else {"window": window}

    def whole(q, k, v, sink, captures):
        return varlen_attn(
            q, k, v, cu_q, cu_k, sink=sink, score=score, captures=captures, return_lse=True, **mask
        )

    arguments = q, k, v, sink, captures
    wanted = everything(whole, dout, dlse, *arguments)
    plan = plans.plan(cu_q, cu_k, ranks=DEVICES, layout=layout, **mask)
    shards = shard_plan(plan, method, has_score=score is not None)
    attend = divided(score=score)
    got = jax.jit(
        lambda shards, *x: everything(lambda *y: attend(*y, shards), dout, dlse, *x)
    )(shards, *arguments)  # fmt: skip
    for a, b in zip(got, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-5)


LENGTHS, LENGTHS_K = (37, 0, 50, 5, 1), (40, 3, 50, 0, 9)
CAUSAL, WINDOW = (-1, 0), (9, 3)
check("all_gather", LENGTHS, LENGTHS_K, (4, 2), "zigzag", window=CAUSAL)
# Positions that scores and chunks read are the same, and captures go with rows.
check("all_gather", LENGTHS, LENGTHS_K, (4, 1), "contiguous", scores.key_bias(), "HK", WINDOW)
check("all_gather", LENGTHS, LENGTHS, (4, 1), "zigzag", chunk=16)
check("ring", LENGTHS, LENGTHS_K, (4, 1), "zigzag", scores.position_bias(), "HQM", WINDOW)
check("all_to_all", LENGTHS, LENGTHS_K, (4, 1), "zigzag", scores.key_bias(), "HK", chunk=16)
if "--whole" in sys.argv:
    check("ring", LENGTHS, LENGTHS_K, (4, 2), "zigzag", window=CAUSAL)
    check("all_gather", LENGTHS, LENGTHS, (4, 4), "documents", scores.alibi(), "H", WINDOW)
    check("all_gather", LENGTHS, LENGTHS, (4, 1), "zigzag", scores.position_bias(), "HQM", WINDOW)
    check("ring", LENGTHS, LENGTHS, (4, 1), "zigzag", chunk=16)
    check("all_to_all", LENGTHS, LENGTHS_K, (4, 2), "contiguous", window=CAUSAL)
    check("all_to_all", LENGTHS, LENGTHS, (4, 2), "zigzag", scores.position_bias(), "HQM")

# Another batch of the same sizes compiles nothing.
plan = plans.plan([0, 30, 60], ranks=DEVICES, is_causal=True)
sizes = Sizes(24, 24, 6, 200)
attend = jax.jit(divided())
x = normal(rng, "f32", 60, 2, 16)
for cu in ([0, 30, 60], [0, 7, 60]):
    shards = shard_plan(plans.plan(cu, ranks=DEVICES, is_causal=True), "all_gather", sizes)
    out, _ = attend(x, x, x, jnp.zeros(2), [], shards)
    wanted = varlen_attn(x, x, x, np.array(cu), is_causal=True, sink=jnp.zeros(2))
    np.testing.assert_allclose(out, wanted, rtol=2e-5, atol=2e-5)
assert attend._cache_size() == 1
raises(ValueError, "sizes.rows: expected 15 or more, got 3", lambda: shard_plan(plan, "ring", sizes._replace(rows=3)))
raises(ValueError, "method: expected one of all_gather", lambda: shard_plan(plan, "all"))


def attend_with(shards, specs=P("ranks"), **options):
    """What is wrong is an error where the program is traced."""
    local = lambda x, shards: context_parallel(x[0], x[0], x[0], shards, "ranks", **options)
    inner = jax.shard_map(local, mesh=mesh, in_specs=(P("ranks"), specs), out_specs=P("ranks"))
    return jax.eval_shape(inner, jnp.zeros((DEVICES, 15, 2, 16)), shards)


shards = shard_plan(plan)
attend_with(shards)
raises(
    ValueError, "shards: expected a plan for the 4 devices of 'ranks', got one for 8",
    lambda: attend_with(shard_plan(plans.plan([0, 60], ranks=8))),
)  # fmt: skip
raises(ValueError, "shards: expected to be split over 'ranks'", lambda: attend_with(shards, P()))
raises(
    ValueError, "q: expected the 20 rows of a device, got shape (15, 2, 16)",
    lambda: attend_with(shard_plan(plan, sizes=sizes._replace(rows=20))),
)  # fmt: skip
raises(
    ValueError, "shards: expected those of shard_plan(..., has_score=True)",
    lambda: attend_with(shards, score=scores.softcap(5.0)),
)  # fmt: skip
raises(ValueError, "captures: expected 0 arrays", lambda: attend_with(shards, captures=[jnp.zeros(2)]))
raises(TypeError, "shards: expected those of shard_plan, got Plan", lambda: context_parallel(x, x, x, plan, "ranks"))
ring = shard_plan(plan, "ring", has_score=True)
raises(
    NotImplementedError, "a score with numbers of keys cannot look up",
    lambda: attend_with(ring, score=scores.key_bias(), captures=[jnp.zeros((2, 15))]),
)  # fmt: skip
long = plans.plan([0, 2**24 + 1], ranks=DEVICES, layout="contiguous")
raises(NotImplementedError, "at most 16777216 keys, got 16777217", lambda: shard_plan(long, "ring", has_score=True))
