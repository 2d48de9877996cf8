# RUN: %python %s
"""varlen_attn under JAX's transformations."""

from Inputs.device import same

import jax
import numpy as np
import varlen
from checks import cumulate, normal
from jax import numpy as jnp

from varlen.jax import _ffi, varlen_attn

rng = np.random.default_rng(0)
lengths = [5, 0, 12, 1]
cu = cumulate(*lengths)
q, k, v = (normal(rng, "f32", 18, heads, 16) for heads in (4, 2, 2))
sink = normal(rng, "f32", 4)
OPTIONS = {"window": (6, 0), "return_lse": True}


def attend(q, k, v, cu, sink):
    return varlen_attn(q, k, v, cu, sink=sink, **OPTIONS)


def pull(q, k, v, cu, sink, dout, dlse):
    """The gradients for these cotangents."""
    return jax.vjp(lambda q, k, v, sink: attend(q, k, v, cu, sink), q, k, v, sink)[1]((dout, dlse))


def close(got, wanted):
    """Near; to the bit would be too much to ask where tiles have other heads."""
    for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


# jit: lengths are no part of what is compiled.
traces = []


@jax.jit
def compiled(q, k, v, cu):
    traces.append(cu)
    return varlen_attn(q, k, v, cu, is_causal=True)


before = None
for offsets in (cu, cumulate(0, 18, 0, 0), cumulate(1, 2, 3, 4)):
    wanted = varlen.attn(q, k, v, offsets, is_causal=True)
    assert same(compiled(q, k, v, offsets), wanted)
    programs = len(varlen._cache._kept) + _ffi._find_kernels.cache_info().currsize
    assert before in (None, programs)
    before = programs
assert len(traces) == 1

# vmap: of everything but the sequences it is more heads in one call.
size = 3
many = [normal(rng, "f32", size, *x.shape) for x in (q, k, v)] + [normal(rng, "f32", size, 4)]
douts = normal(rng, "f32", size, 18, 4, 16), normal(rng, "f32", size, 4, 18)
for batched in ((1, 1, 1, 1), (1, 0, 0, 0), (0, 1, 0, 0), (0, 0, 0, 1), (1, 1, 1, 0)):
    given = [m if b else x for m, b, x in zip(many, batched, (q, k, v, sink))]
    axes = [0 if b else None for b in batched]

    def each(function, *more):
        rows = []
        for i in range(size):
            own = [x[i] if b else x for x, b in zip(given, batched)]
            rows.append(function(*own[:3], cu, own[3], *(x[i] for x in more)))
        return jax.tree.map(lambda *x: np.stack(x), *rows)

    in_axes = (*axes[:3], None, axes[3])
    mapped = jax.vmap(attend, in_axes)
    assert str(jax.make_jaxpr(mapped)(*given[:3], cu, given[3])).count("varlen_call[") == 1
    close(mapped(*given[:3], cu, given[3]), each(attend))
    mapped = jax.vmap(pull, (*in_axes, 0, 0))
    close(mapped(*given[:3], cu, given[3], *douts), each(pull, *douts))
# At another axis, twice, and compiled.
turned = [np.moveaxis(x, 0, 1) for x in many[:3]]
outs = jax.jit(jax.vmap(attend, (1, 1, 1, None, None), 1))(*turned, cu, sink)[0]
wanted = [attend(*x, cu, sink)[0] for x in zip(*many[:3])]
close(outs, np.stack(wanted, 1))
twice = jax.vmap(jax.vmap(attend, (0, None, None, None, None)), (None, 0, 0, None, None))
outs, _ = twice(*many[:3], cu, sink)
close(outs[2, 1], attend(many[0][1], many[1][2], many[2][2], cu, sink)[0])

# Of no examples, results and gradients have the shapes of those of one.
none = [x[:0] for x in (*many, *douts)]
for axes in ((0, None, None, None, 0), (None, None, None, None, 0), (None, None, None, 0, 0)):
    given = [x[:0] if a == 0 else own for x, own, a in zip(
        (*many[:3], np.stack([cu]), many[3]), (q, k, v, cu, sink), axes, strict=True
    )]  # fmt: skip
    outs, lses = jax.vmap(attend, axes)(*given)
    assert outs.shape == (0, 18, 4, 16) and lses.shape == (0, 4, 18)
    found = jax.vmap(pull, (*axes, 0, 0))(*given, *none[4:])
    assert [x.shape for x in found] == [(0, *x.shape) for x in (q, k, v, sink)]

# Of other sequences it is a call for each, to the bit.
all_cu = np.stack([cu, cumulate(9, 9, 0, 0), cumulate(0, 0, 0, 0)])
got = jax.vmap(attend, (0, None, None, 0, None))(many[0], k, v, all_cu, sink)
for i in range(size):
    wanted = attend(many[0][i], k, v, all_cu[i], sink)
    assert all(np.array_equal(a[i], b) for a, b in zip(got, wanted))
got = jax.vmap(pull, (0, None, None, 0, None, 0, 0))(many[0], k, v, all_cu, sink, *douts)
for i in range(size):
    wanted = pull(many[0][i], k, v, all_cu[i], sink, *(x[i] for x in douts))
    assert all(np.array_equal(a[i], b) for a, b in zip(got, wanted))


# Layers in a loop, recomputed in the backward pass.
def layer(x, weight):
    rows = x @ weight
    out = varlen_attn(rows[:, :4], rows[:, 4:6], rows[:, 6:], cu, is_causal=True)
    return x + jnp.tanh(jnp.pad(out, ((0, 0), (0, 4), (0, 0)))), None


def loss(x, weights, body):
    return (jax.lax.scan(body, x, weights)[0] ** 2).sum()


x, weights = normal(rng, "f32", 18, 8, 16), normal(rng, "f32", 3, 16, 16)
plain = jax.jit(jax.value_and_grad(loss, (0, 1)), static_argnums=2)
close(plain(x, weights, jax.checkpoint(layer)), plain(x, weights, layer))

# Gradients are those of differences. With a sink the lse of rows that see no key has some.
# Kernels of a GPU have no float64 to take them in.
with jax.enable_x64(), jax.default_device(jax.devices("cpu")[0]):
    given = [x.astype(np.float64) for x in (q, k, v, sink)]
    given = given[:3], given[3]
    direction = jax.tree.map(lambda x: rng.standard_normal(x.shape), given)

    def total(given):
        (q, k, v), sink = given
        out, lse = attend(q, k, v, cu, sink)
        return (out * jnp.sin(jnp.arange(16))).sum() + (lse**2).sum()

    step = 1e-5
    ends = [total(jax.tree.map(lambda x, d: x + s * d, given, direction)) for s in (step, -step)]
    slope = sum(
        (g * d).sum() for g, d in zip(*map(jax.tree.leaves, (jax.grad(total)(given), direction)))
    )
    assert abs((ends[0] - ends[1]) / (2 * step) - slope) < 1e-6 * abs(slope)
