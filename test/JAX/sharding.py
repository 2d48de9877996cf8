# RUN: %python %s
"""varlen_attn on several devices: heads are split, and so are batches within shard_map; rows are
in test/JAX/sharding-rows.py."""

from Inputs.device import need

import jax
import numpy as np
from checks import cumulate, normal, raises
from jax import numpy as jnp
from jax.sharding import AxisType, NamedSharding, PartitionSpec

from varlen.jax import varlen_attn

P = PartitionSpec
rng = np.random.default_rng(0)
cu = cumulate(5, 0, 12, 1)
need(4)


def make(heads, kv_heads):
    """q, k, v, a sink, and cotangents of out and lse."""
    shapes = (
        (18, heads, 16), (18, kv_heads, 16), (18, kv_heads, 8), (heads,), (18, heads, 8),
        (heads, 18),
    )  # fmt: skip
    return [normal(rng, "f32", *shape) for shape in shapes]


def everything(q, k, v, sink, dout, dlse, cu):
    results, differentiate = jax.vjp(
        lambda *x: varlen_attn(*x[:3], cu, is_causal=True, sink=x[3], return_lse=True),
        q, k, v, sink,
    )  # fmt: skip
    return *results, *differentiate((dout, dlse))


def make_mesh(shape, axes, kind):
    return jax.make_mesh(shape, axes, axis_types=(kind,) * len(axes))


def specs(split):
    """How arguments of `everything` lie, but for cu."""
    return [P(None, split)] * 3 + [P(split), P(None, split), P(split)]


def put(arrays, mesh, specs):
    return [jax.device_put(x, NamedSharding(mesh, spec)) for x, spec in zip(arrays, specs)]


def close(got, wanted):
    for a, b in zip(got, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


def equal(got, wanted):
    assert all(map(np.array_equal, got, wanted))


for kind in (AxisType.Auto, AxisType.Explicit):
    mesh = make_mesh((4,), ("heads",), kind)
    whole = jax.device_put(cu, NamedSharding(mesh, P()))
    # Heads and kv heads go together: each device computes its own, to the bit, and
    # nothing is sent.
    for heads, kv_heads in ((8, 4), (4, 4)) if kind is AxisType.Auto else ((8, 4),):
        arrays = make(heads, kv_heads)
        compiled = jax.jit(everything).lower(*put(arrays, mesh, specs("heads")), whole).compile()
        got = compiled(*put(arrays, mesh, specs("heads")), whole)
        equal(got, everything(*arrays, cu))
        for x, axis in zip(got, (1, 0, 1, 1, 1, 0)):
            assert x.sharding.shard_shape(x.shape)[axis] * 4 == x.shape[axis]
        text = compiled.as_text()
        assert "varlen.attn_grad" in text and "all-" not in text and "permute" not in text
    # More devices than kv heads: gradients of these are summed over devices.
    for kv_heads in (2, 1) if kind is AxisType.Auto else (2,):
        arrays = make(8, kv_heads)
        where = specs("heads")
        where[1] = where[2] = P()
        wanted = everything(*arrays, cu)
        compiled = jax.jit(everything).lower(*put(arrays, mesh, where), whole).compile()
        got = compiled(*put(arrays, mesh, where), whole)
        close(got, wanted)
        assert [x.sharding.is_fully_replicated for x in got] == [0, 0, 0, 1, 1, 0]
        text = compiled.as_text()
        assert "all-reduce" in text and "all-gather" not in text

mesh = make_mesh((2, 2), ("rows", "heads"), AxisType.Auto)
# Heads by two axes.
arrays = make(8, 4)
wanted = everything(*arrays, cu)
equal(jax.jit(everything)(*put(arrays, mesh, specs(("rows", "heads"))), cu), wanted)
# Only some say how, or only a result does.
where = [P(None, "heads")] + [P()] * 5
equal(jax.jit(everything)(*put(arrays, mesh, where), cu), wanted)
where = [P(), P(None, "heads")] + [P()] * 4
equal(jax.jit(everything)(*put(arrays, mesh, where), cu), wanted)
split = NamedSharding(mesh, P(None, "heads"))
forward = jax.jit(lambda q, k, v: varlen_attn(q, k, v, cu, is_causal=True), out_shardings=split)
assert np.array_equal(forward(*arrays[:3]), varlen_attn(*arrays[:3], cu, is_causal=True))
# Three kv heads are for four devices neither enough nor too few.
arrays = make(12, 3)
where = specs(("rows", "heads"))
where[1] = where[2] = P()
equal(jax.jit(everything)(*put(arrays, mesh, where), cu), everything(*arrays, cu))
# More heads by vmap, split.
arrays = make(4, 2)
batch = [np.stack([x, -x]) for x in arrays]
where = [P(None, *spec) for spec in specs("heads")]
got = jax.jit(jax.vmap(everything, (0,) * 6 + (None,)))(*put(batch, mesh, where), cu)
for i in range(2):
    close([x[i] for x in got], everything(*(x[i] for x in batch), cu))


# Keys in pages: heads of q and of the pools, or of q alone with one kv head for all, and rows of q.
table = np.array([[3, 0, -1], [-1, 1, -1], [2, 5, 1], [4, 0, 0]], np.int32)
used = np.array([7, 0, 12, 2], np.int32)


def decode(q, k, v, cu, used, table):
    return varlen_attn(q, k, v, cu, seqused_k=used, block_table=table, is_causal=True)


def decode_quantised(q, k, v, cu, used, table, k_scale, v_scale):
    return varlen_attn(
        q, k, v, cu, seqused_k=used, block_table=table, k_scale=k_scale, v_scale=v_scale
    )


mesh = make_mesh((2, 2), ("rows", "heads"), AxisType.Auto)
for kv_heads, of_q, of_pool in (
    (4, P(None, "heads"), P(None, None, "heads")), (4, P(), P(None, None, ("rows", "heads"))),
    (1, P(None, ("rows", "heads")), P()), (2, P("rows"), P()), (2, P("rows", "heads"), P()),
):  # fmt: skip
    arrays = [normal(rng, "f32", *shape) for shape in ((18, 4, 16), (6, 5, kv_heads, 16), (6, 5, kv_heads, 8))]
    wanted = decode(*arrays, cu, used, table)
    got = jax.jit(decode)(*put(arrays, mesh, (of_q, of_pool, of_pool)), cu, used, table)
    close([got], [wanted])
    assert not got.sharding.is_fully_replicated
    # Quantised, with scales of rows and of heads.
    arrays[1:] = (rng.integers(-127, 128, x.shape).astype("i1") for x in arrays[1:])
    scales = rng.uniform(0.01, 0.02, (6, 5, kv_heads)).astype("f4"), np.full(kv_heads, 0.02, "f4")
    wanted = decode_quantised(*arrays, cu, used, table, *scales)
    placed = put([*arrays, *scales], mesh, (of_q, of_pool, of_pool, of_pool, P(*of_pool[2:])))
    got = jax.jit(decode_quantised)(*placed[:3], cu, used, table, *placed[3:])
    close([got], [wanted])
    assert not got.sharding.is_fully_replicated


def attend(q, k, v, sink):
    return varlen_attn(q, k, v, cu, sink=sink)


# Within shard_map: heads, with one kv head for all, and gradients as outside.
mesh = make_mesh((4,), ("devices",), AxisType.Auto)
for kv_heads in (4, 1):
    arrays = make(8, kv_heads)
    kv = P(None, "devices") if kv_heads > 1 else P()
    for check in (True, False):
        inner = jax.shard_map(
            attend, mesh=mesh, in_specs=(P(None, "devices"), kv, kv, P("devices")),
            out_specs=P(None, "devices"), check_vma=check,
        )  # fmt: skip
        results = []
        for function in (inner, attend):
            out, differentiate = jax.vjp(jax.jit(function), *arrays[:4])
            results.append([out, *differentiate(arrays[4])])
        close(*results)

# Each device has a batch of its own; parameters are everybody's.
lengths = ([5, 0, 12], [1, 15, 1], [17, 0, 0], [0, 0, 9])
batches = np.stack([cumulate(*x) for x in lengths])
rows = normal(rng, "f32", 4, 17, 6, 16)
weight, sink = normal(rng, "f32", 16, 16), normal(rng, "f32", 4)


def loss(weight, sink, rows, cu):
    q, k, v = jnp.split(rows @ weight, (4, 5), axis=1)
    return (varlen_attn(q, k, v, cu, window=(4, 0), sink=sink) ** 2).sum()


def on_each(weight, sink, rows, cu):
    return jax.lax.psum(loss(weight, sink, rows[0], cu[0]), "devices")


spread = jax.shard_map(
    on_each, mesh=mesh, in_specs=(P(), P(), P("devices"), P("devices")), out_specs=P()
)


def one_by_one(weight, sink, rows, cu):
    return sum(loss(weight, sink, *own) for own in zip(rows, cu))


arguments = weight, sink, rows, batches
got = jax.jit(jax.value_and_grad(spread, (0, 1)))(*arguments)
wanted = jax.value_and_grad(one_by_one, (0, 1))(*arguments)
for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(wanted)):
    np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)

# An error of one device reaches the caller.
apart = jax.jit(
    jax.shard_map(
        lambda rows, cu: varlen_attn(*jnp.split(rows[0], 3, axis=1), cu[0])[None], mesh=mesh,
        in_specs=(P("devices"), P("devices")), out_specs=P("devices"),
    )
)  # fmt: skip
wrong = batches.copy()
wrong[2, 1] = 18
raises(
    jax.errors.JaxRuntimeError, "cu_seqlens_q[1] = 18",
    lambda: jax.block_until_ready(apart(rows, wrong)),
)  # fmt: skip
assert np.isfinite(apart(rows, batches)).all()
