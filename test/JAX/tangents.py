# RUN: %python %s
"""The forward mode of varlen_attn: jvp, linearize, jacfwd, against differences and against its
gradients, of which tangents are the transpose, in f64; in narrower types against f64; and under
transformations."""

from Inputs.device import IS_CUDA, need, skip

if IS_CUDA:
    skip("a GPU has no kernel for f64")

import jax
import numpy as np
from checks import NUMPY_TYPES, cumulate, raises
from jax import numpy as jnp
from jax.sharding import AxisType, NamedSharding, PartitionSpec

from varlen import scores
from varlen.jax import varlen_attn

need(4)
jax.config.update("jax_enable_x64", True)
P = PartitionSpec
rng = np.random.default_rng(3)
# Empty sequences, more keys than queries and the reverse, a query without keys, rows behind.
cu_q, cu_k = cumulate(0, 9, 1, 4, 2), cumulate(3, 5, 6, 4, 0)
ROWS_Q, ROWS_K, HEADS, KV_HEADS, D = 18, 20, 4, 2, 8


def draw(*shape):
    return jnp.asarray(rng.standard_normal(shape))


def rows(v_head_dim=D):
    return draw(ROWS_Q, HEADS, D), draw(ROWS_K, KV_HEADS, D), draw(ROWS_K, KV_HEADS, v_head_dim)


def capture(of):
    extents = {"heads": HEADS, "rows": ROWS_Q, "kv_rows": ROWS_K, "entries": 7}
    return draw(*(extents[x] for x in scores.CAPTURES[of]))


def dot(xs, ys):
    return sum(jnp.vdot(x, y) for x, y in zip(xs, ys, strict=True))


def close(got, wanted, most=1e-12):
    for x, y in zip(jax.tree.leaves(got), jax.tree.leaves(wanted), strict=True):
        assert x.shape == y.shape and x.dtype == y.dtype
        x, y = (np.where(np.isneginf(z), 0, z) for z in (x, y))
        assert np.max(np.abs(x - y), initial=0) <= most * max(1, np.max(np.abs(y), initial=0))


def equal(got, wanted):
    assert all(map(np.array_equal, jax.tree.leaves(got), jax.tree.leaves(wanted)))


def function(score=None, **options):
    """Of q, k, v, the captures of the score, and a sink if there is one more."""

    def attend(q, k, v, *more):
        count = len(score.captures) if score else 0
        sink = dict(zip(["sink"], more[count:]))
        return varlen_attn(
            q, k, v, cu_q, cu_k, score=score, captures=more[:count], return_lse=True, **sink, **options
        )

    return attend


def check(attend, *values):
    """Every operand moves."""
    tangents = tuple(draw(*x.shape) for x in values)
    attend = jax.jit(attend)
    results = out, lse = attend(*values)
    cotangents = draw(*out.shape), draw(*lse.shape)

    @jax.jit
    def derive(values, tangents, cotangents):
        """The forward mode, values first and then tangents, and the reverse mode."""
        _, push = jax.linearize(attend, *values)
        _, pull = jax.vjp(attend, *values)
        return jax.jvp(attend, values, tangents), push(*tangents), pull(cotangents)

    (values_of_jvp, pushed), pushed_later, gradients = derive(values, tangents, cotangents)
    equal(values_of_jvp, results)
    equal(pushed_later, pushed)
    step = 2.0**-17
    before, after = (
        attend(*(x + sign * step * t for x, t in zip(values, tangents))) for sign in (-1, 1)
    )
    # -inf less -inf, of a row that sees nothing.
    slopes = [jnp.nan_to_num((y - x) / (2 * step)) for x, y in zip(before, after)]
    close(pushed, slopes, 1e-7)
    # Of gradients it is the transpose.
    forward, backward = dot(cotangents, pushed), dot(gradients, tangents)
    assert abs(forward - backward) <= 1e-12 * max(1, dot(map(abs, cotangents), map(abs, pushed)))


# All options at once: each is a part of what the call says.
offset = np.array([0, 1, 0, -2, 0], np.int32)
used_q, used_k = np.array([0, 7, 1, 4, 1], np.int32), np.array([2, 5, 4, 0, 0], np.int32)
score = scores.compose(scores.gains(), scores.key_bias())
of_all = function(
    score, window=(5, 1), alignment="top_left", scale=0.3125, seqused_q=used_q, seqused_k=used_k, q_offset=offset
)
check(of_all, *rows(v_head_dim=6), *map(capture, score.captures.values()), draw(HEADS))
# What follows takes the programs of this one.
attend = function(chunk=6)
check(attend, *rows())

values, tangents = rows(), rows()
push = jax.jit(lambda x, t: jax.jvp(attend, x, t))

# Narrower types: as the same numbers in f64.
for element, most in (("f32", 1e-5), ("bf16", 3e-2)):
    dtype = NUMPY_TYPES[element]
    narrow = [tuple(x.astype(dtype) for x in pair) for pair in (values, tangents)]
    wide = [tuple(x.astype(jnp.float64) for x in pair) for pair in narrow]
    _, got = push(*narrow)
    assert got[0].dtype == dtype and got[1].dtype == np.float32
    close([x.astype(jnp.float64) for x in got], push(*wide)[1], most)

# One operand moves: the others' tangents are zeros.
for i in range(3):

    def of_one(x, i=i):
        return attend(*values[:i], x, *values[i + 1 :])

    zeros = [t if j == i else jnp.zeros_like(t) for j, t in enumerate(tangents)]
    equal(jax.jvp(of_one, (values[i],), (tangents[i],)), push(values, tuple(zeros)))


# The forward mode is one call; a gradient needs no call of it.
def calls(function, *arguments):
    text = jax.jit(function).lower(*arguments).as_text()
    return [text.count(f"@varlen.{name}(") for name in ("attn", "attn_grad", "attn_jvp")]


assert calls(lambda *x: jax.jvp(attend, x, tangents), *values) == [0, 0, 1]
assert calls(jax.jacrev(lambda *x: attend(*x)[1].sum(), (0, 1, 2)), *values) == [1, 1, 0]

# vmap, by heads and by sequences; Jacobians.
many = tuple(jnp.stack([x, 2 * x, -x, x + 1]) for x in values)
along = tuple(jnp.stack([x, -x, 3 * x, x]) for x in tangents)
each = [push(*x) for x in zip(zip(*many), zip(*along))]
close(jax.jit(jax.vmap(push))(many, along), jax.tree.map(lambda *x: jnp.stack(x), *each))
all_cu = jnp.stack([cu_q, cumulate(9, 9, 0, 0, 0)])


@jax.jit
def push_q(cu):
    return jax.jvp(lambda q: varlen_attn(q, *values[1:], cu, cu_k, chunk=6), values[:1], tangents[:1])


for i, pair in enumerate(zip(*jax.jit(jax.vmap(push_q))(all_cu))):
    equal(pair, push_q(all_cu[i]))
small = jax.jit(lambda x: attend(values[0] * x[:, None], *values[1:])[0][1, :, 0])
gains = draw(HEADS)
close(jax.jit(jax.jacfwd(small))(gains), jax.jit(jax.jacrev(small))(gains))
none = jax.vmap(lambda t: jax.jvp(small, (gains,), (t,)), out_axes=(None, 0))(gains[None][:0])
equal(none, (small(gains), jnp.zeros((0, HEADS))))


# Layers in a loop, whose values are saved or computed again.
def layer(x, gain):
    return x + varlen_attn(x * gain, x[:, :2], gain * x[:, 2:], cu_q, chunk=6), None


x, tx, gains = values[0], tangents[0], jnp.arange(1.0, 4.0)
everything = jax.checkpoint_policies.everything_saveable
for body in (jax.checkpoint(layer), jax.checkpoint(layer, policy=everything)):

    def loss(x, gains, body=body):
        return (jax.lax.scan(body, x, gains)[0] ** 2).sum()

    slope = jax.jit(lambda *x: jax.jvp(loss, *x)[1])((x, gains), (tx, gains))
    close(slope, dot(jax.jit(jax.grad(loss, (0, 1)))(x, gains), (tx, gains)))


# The gradient of a loss with values beside tangents that count as constants (MeanFlow), and
# derivatives by what derivatives are linear in.
def mean_flow(gain):
    u, du = jax.jvp(lambda x: layer(x, gain)[0], (x,), (tx,))
    return (u * jax.lax.stop_gradient(du)).sum()


du = jax.jvp(lambda x: layer(x, 1.5)[0], (x,), (tx,))[1]
wanted = jax.grad(lambda gain: (layer(x, gain)[0] * du).sum())(1.5)
for transformed in (jax.grad(mean_flow), jax.grad(jax.jit(mean_flow))):
    close(transformed(1.5), wanted)
results, pull = jax.vjp(attend, *values)
cotangents = tuple(draw(*x.shape) for x in results)
for moved in (cotangents, (cotangents[0], jnp.zeros_like(cotangents[1]))):
    equal(jax.jvp(pull, (cotangents,), (moved,))[1], pull(moved))
pushed = jax.jvp(attend, values, tangents)[1]
close(jax.linear_transpose(pull, cotangents)(tangents)[0], pushed)
by_tangents = lambda *t: jax.jvp(attend, values, t)[1]  # noqa: E731
equal(jax.jvp(by_tangents, tangents, values)[1], by_tangents(*values))
close(jax.vjp(by_tangents, *tangents)[1](cotangents), pull(cotangents))

# Several devices: one kv head for all of them, rows; and heads to the bit.
mesh = jax.make_mesh((2, 2), ("rows", "heads"), axis_types=(AxisType.Auto,) * 2)
for kv_heads, split, of_keys in ((1, P(None, "heads"), P()), (2, P("rows", "heads"), P("rows", "heads"))):
    both = [(q, *(x[:, :kv_heads] for x in kv)) for q, *kv in (values, tangents)]
    put = [
        tuple(jax.device_put(x, NamedSharding(mesh, s)) for x, s in zip(xs, (split, of_keys, of_keys)))
        for xs in both
    ]
    got = jax.jit(lambda x, t: jax.jvp(attend, x, t))(*put)
    # As with a kv head for each half of the query heads.
    close(got, push(*[(q, *(jnp.repeat(x, 2 // kv_heads, 1) for x in kv)) for q, *kv in both]))
    for x in jax.tree.leaves(got):
        assert not x.sharding.is_fully_replicated
inner = jax.shard_map(
    attend, mesh=mesh, in_specs=P(None, "heads"), out_specs=(P(None, "heads"), P("heads")),
)  # fmt: skip
equal(jax.jit(lambda x, t: jax.jvp(inner, x, t))(values, tangents), push(values, tangents))

pages = draw(3, 8, KV_HEADS, D)
table, used = np.array([[0, 2]], np.int32), np.array([9], np.int32)
raises(
    NotImplementedError, "keys in pages, by a block_table, have no gradient",
    jax.jvp, lambda q: varlen_attn(q, pages, pages, cumulate(4), seqused_k=used, block_table=table),
    values[:1], tangents[:1],
)  # fmt: skip
