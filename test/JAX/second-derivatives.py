# RUN: %python %s
"""Second derivatives of varlen_attn: every composition of both modes, against JAX's own of an
attention of products and a softmax and against differences, in f64, and
under transformations."""

from Inputs.device import IS_CUDA, need, skip

if IS_CUDA:
    skip("a GPU has no kernel for gradients of tangents")

import jax
import numpy as np
from checks import cumulate, raises
from jax import numpy as jnp
from jax.sharding import AxisType, NamedSharding, PartitionSpec

from varlen import scores
from varlen.jax import varlen_attn

need(4)
jax.config.update("jax_enable_x64", True)
P = PartitionSpec
rng = np.random.default_rng(3)
# Empty sequences, more keys than queries and the reverse, rows of no sequence.
cu_q, cu_k = cumulate(0, 3, 1, 4), cumulate(2, 4, 3, 2)
ROWS_Q, ROWS_K, HEADS, KV_HEADS, D, DV = 10, 12, 4, 2, 3, 2
USED = cu_q[-1]


def draw(*shape):
    return jnp.asarray(rng.standard_normal(shape))


def operands():
    """q, k, v, a sink and gains."""
    heads = draw(HEADS), draw(HEADS)
    return draw(ROWS_Q, HEADS, D), draw(ROWS_K, KV_HEADS, D), draw(ROWS_K, KV_HEADS, DV), *heads


values, tangents = operands(), operands()
EVERY = tuple(range(len(values)))
score = scores.compose(scores.gains(), scores.softcap(2.0))
RATE, KEY = 0.3, jax.random.key(1)


def ours(q, k, v, sink, gains):
    return varlen_attn(
        q, k, v, cu_q, cu_k, window=(3, 0), sink=sink, score=score, captures=[gains],
        dropout_p=RATE, seed=KEY, return_lse=True,
    )  # fmt: skip


# The same as matrices of all rows: which keys a query sees, and what dropout leaves of them.
sequence_q, sequence_k = (
    np.searchsorted(cu[1:], np.arange(rows), side="right") for cu, rows in ((cu_q, ROWS_Q), (cu_k, ROWS_K))
)
place_q = np.arange(ROWS_Q) - np.append(cu_q, 0)[sequence_q]
place_k = np.arange(ROWS_K) - np.append(cu_k, 0)[sequence_k]
lengths = np.diff(cu_k) - np.diff(cu_q)
distance = place_k - (place_q + np.append(lengths, 0)[sequence_q])[:, None]
visible = (sequence_q[:, None] == sequence_k) & (distance <= 0) & (distance >= -3)
low, high = (int(x) for x in jax.random.bits(KEY, (2,), jnp.uint32))
words = scores.dropout_words(low + (high << 32), cu_q, HEADS, ROWS_Q, dtype="float64")
factor = scores.dropout(RATE).factor(place_q[:, None], place_k, words[..., None])
assert 0 < (factor[:, visible] == 0).mean() < 1


def plain(q, k, v, sink, gains):
    ks, vs = (jnp.repeat(x, HEADS // KV_HEADS, 1) for x in (k, v))
    s = jnp.einsum("ihd,jhd->hij", q, ks) * D**-0.5
    s = jnp.where(visible, 2 * jnp.tanh(gains[:, None, None] * s / 2), -jnp.inf)
    lse = jnp.logaddexp(jax.nn.logsumexp(jnp.where(visible, s, -1e300), 2), sink[:, None])
    return jnp.einsum("hij,jhd->ihd", jnp.exp(s - lse[..., None]) * factor, vs), lse


def energy(function):
    """A number of the rows of sequences that is linear in none."""

    def of(*x):
        out, lse = function(*x)
        weights = jnp.linspace(0.5, 1.5, out[:USED].size).reshape(out[:USED].shape)
        return (jnp.sin(out[:USED]) * weights.astype(out.dtype)).sum() + jnp.sin(lse[:, :USED]).sum()

    return of


def close(got, wanted, most=1e-11):
    for x, y in zip(jax.tree.leaves(got), jax.tree.leaves(wanted), strict=True):
        assert x.shape == y.shape and x.dtype == y.dtype
        assert np.max(np.abs(x - y)) <= most * max(1, np.max(np.abs(y))), np.max(np.abs(x - y))


def dot(xs, ys):
    return sum(jnp.vdot(x, y) for x, y in zip(xs, ys, strict=True))


number = energy(ours)
gradient = jax.grad(number, EVERY)


@jax.jit
def multiply(values, tangents):
    """The gradient, and the product of the Hessian with tangents: the forward mode of the reverse
    mode."""
    return jax.jvp(gradient, values, tangents)


def multiply_reversed(values, tangents):
    """The reverse mode of the reverse mode, with values that are computed again."""
    again = jax.grad(energy(jax.checkpoint(ours)), EVERY)
    return jax.grad(lambda *x: dot(again(*x), tangents), EVERY)(*values)


def multiply_forward_first(values, tangents):
    """The reverse mode of the forward mode."""
    return jax.grad(lambda *x: jax.jvp(number, x, tangents)[1], EVERY)(*values)


def calls(function, *arguments):
    text = jax.jit(function).lower(*arguments).as_text()
    return [text.count(f"@varlen.{x}(") for x in ("attn", "attn_grad", "attn_jvp", "attn_jvp_grad")]


# Every composition, of all operands, and the calls that it takes.
first, product = multiply(values, tangents)
close((first, product), jax.jit(lambda x, t: jax.jvp(jax.grad(energy(plain), EVERY), x, t))(values, tangents))
for function in (multiply_reversed, multiply_forward_first):
    close(jax.jit(function)(values, tangents), product)
assert calls(multiply, values, tangents) == [0, 1, 1, 1]  # with the gradient
twice = jax.grad(lambda *x: dot(gradient(*x), tangents), EVERY)
assert calls(twice, *values) == [1, 1, 1, 1]
assert calls(multiply_forward_first, values, tangents) == [0, 1, 1, 1]

# Differences of gradients.
step = 2.0**-17
before, after = (
    multiply(tuple(x + sign * step * t for x, t in zip(values, tangents)), tangents)[0] for sign in (-1, 1)
)
close(product, tuple((y - x) / (2 * step) for x, y in zip(before, after)), 1e-7)



# Linearised: gradients first, then the product, which is its own transpose and derivative.
@jax.jit
def linearize(values, tangents):
    _, push = jax.linearize(gradient, *values)
    (transposed,) = jax.linear_transpose(lambda t: push(*t), values)(tangents)
    return push(*tangents), transposed, jax.jvp(push, values, tangents)[1]


for got in linearize(values, tangents):
    close(got, product)

# Cotangents are differentiated, too, and alone.
def pull(values, cotangents):
    return jax.vjp(ours, *values)[1](cotangents)


cotangents, moved = ((draw(ROWS_Q, HEADS, DV), draw(HEADS, ROWS_Q)) for _ in range(2))
both = jax.jit(lambda *x: jax.jvp(pull, (values, cotangents), x)[1])(tangents, moved)
of_values = jax.jvp(lambda x: pull(x, cotangents), (values,), (tangents,))[1]
close(both, tuple(x + y for x, y in zip(of_values, pull(values, moved))))

# Hessians whole: of more heads in one call.
gain = lambda x: number(*values[:4], x)  # noqa: E731
hessian = jax.jit(jax.hessian(gain))(values[4])
others = tuple(jnp.zeros_like(x) for x in values[:4])
close(hessian @ tangents[4], multiply(values, (*others, tangents[4]))[1][4])
close(hessian, hessian.T)

# Several devices: heads and rows.
mesh = jax.make_mesh((2, 2), ("rows", "heads"), axis_types=(AxisType.Auto,) * 2)
specs = P("rows", "heads"), P("rows", "heads"), P(None, "heads"), P("heads"), P("heads")
put = [
    tuple(jax.device_put(x, NamedSharding(mesh, s)) for x, s in zip(xs, specs))
    for xs in (values, tangents)
]
close(multiply(*put), (first, product))

# What nothing uses is not computed, so not refused; what is not offered says so.
hold = lambda *x: jax.lax.stop_gradient(multiply(x, tangents)[1])  # noqa: E731
close(jax.grad(lambda *x: dot(hold(*x), x), EVERY)(*values), product)
raises(
    NotImplementedError, "varlen_attn: third derivatives are not offered",
    jax.jit(jax.grad(lambda *x: multiply(x, tangents)[1][0].sum())), *values,
)  # fmt: skip
raises(
    NotImplementedError, "varlen_attn: tangents of tangents are not offered",
    jax.jit(jax.jacfwd(jax.jacfwd(gain))), values[4],
)  # fmt: skip
