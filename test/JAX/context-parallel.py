# RUN: %python %s
"""context_parallel in shard_map: results and gradients of a batch whose rows are divided over
devices are those of one device; other batches compile nothing."""

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


def divided(method, **options):
    """Attention of a whole batch by devices, of which each has some rows."""

    def local(q, k, v, shards, sink, captures):
        return context_parallel(
            q[0], k[0], v[0], shards, "ranks", method=method, sink=sink, captures=captures,
            return_lse=True, **options,
        )  # fmt: skip

    def attend(q, k, v, sink, captures, shards):
        own = [shard_rows(x, i) for x, i in zip((q, k, v), (shards.rows, shards.key_rows, shards.key_rows))]
        out, lse = jax.shard_map(
            local, mesh=mesh, in_specs=(P("ranks"), P("ranks"), P("ranks"), P("ranks"), P(), P()),
            out_specs=(P("ranks"), P(None, "ranks")),
        )(*own, shards, sink, captures)  # fmt: skip
        order = shards.order[0]
        return jnp.take(out, order, 0), jnp.take(lse, order, 1)

    return attend


def everything(attend, dout, dlse, *arguments):
    results, differentiate = jax.vjp(attend, *arguments)
    return jax.tree.leaves((results, differentiate((dout, dlse))))


def check(method, lengths, lengths_k, heads, window, layout, score=None, num_captures=0):
    cu_q, cu_k = cumulate(*lengths), cumulate(*lengths_k)
    q = normal(rng, "f32", cu_q[-1], heads[0], 16)
    k, v = (normal(rng, "f32", cu_k[-1], heads[1], d) for d in (16, 8))
    sink, captures = normal(rng, "f32", heads[0]), [normal(rng, "f32", heads[0])] * num_captures
    dout, dlse = normal(rng, "f32", cu_q[-1], heads[0], 8), normal(rng, "f32", heads[0], cu_q[-1])

    def whole(q, k, v, sink, captures):
        return varlen_attn(
            q, k, v, cu_q, cu_k, window=window, sink=sink, score=score, captures=captures,
            return_lse=True,
        )  # fmt: skip

    arguments = q, k, v, sink, captures
    wanted = everything(whole, dout, dlse, *arguments)
    shards = shard_plan(plans.plan(cu_q, cu_k, ranks=DEVICES, window=window, layout=layout), method)
    attend = divided(method, window=window, score=score)
    got = jax.jit(
        lambda shards, *x: everything(lambda *y: attend(*y, shards), dout, dlse, *x)
    )(shards, *arguments)  # fmt: skip
    for a, b in zip(got, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-5)


LENGTHS, LENGTHS_K = (37, 0, 50, 5, 1), (40, 3, 50, 0, 9)
check("all_gather", LENGTHS, LENGTHS_K, (4, 2), (-1, 0), "zigzag")
check("all_gather", LENGTHS, LENGTHS, (4, 4), (9, 3), "documents", scores.alibi(), 1)
check("ring", LENGTHS, LENGTHS_K, (4, 2), (-1, 0), "zigzag")
check("all_to_all", LENGTHS, LENGTHS_K, (4, 2), (-1, 0), "contiguous")

# Another batch of the same sizes compiles nothing.
plan = plans.plan([0, 30, 60], ranks=DEVICES, is_causal=True)
sizes = Sizes(24, 24, 6, 200)
attend = jax.jit(divided("all_gather", window=(-1, 0)))
x = normal(rng, "f32", 60, 2, 16)
for cu in ([0, 30, 60], [0, 7, 60]):
    shards = shard_plan(plans.plan(cu, ranks=DEVICES, is_causal=True), "all_gather", sizes)
    out, _ = attend(x, x, x, jnp.zeros(2), [], shards)
    wanted = varlen_attn(x, x, x, np.array(cu), is_causal=True, sink=jnp.zeros(2))
    np.testing.assert_allclose(out, wanted, rtol=2e-5, atol=2e-5)
assert attend._cache_size() == 1
raises(ValueError, "sizes.rows: expected 15 or more, got 3", lambda: shard_plan(plan, "ring", sizes._replace(rows=3)))
raises(ValueError, "method: expected one of all_gather", lambda: shard_plan(plan, "all"))
