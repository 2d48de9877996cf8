# RUN: %python %s
"""Results and gradients of varlen_attn are what their definitions say, in every type,
and depend on nothing else."""

from Inputs.device import IS_CUDA, TYPES

import jax
import numpy as np
import varlen
from checks import check_attn, check_gradients, cumulate, normal
from jax import numpy as jnp

from varlen.jax import varlen_attn

jax.config.update("jax_enable_x64", True)
rng = np.random.default_rng(2)


def run(element, q, k, v, cu_q, cu_k, **options):
    """Both results, and all gradients for a cotangent of each."""
    inputs = [q, k, v] + ([options["sink"]] if "sink" in options else [])

    def attend(q, k, v, *sink):
        more = {**options, "sink": sink[0]} if sink else options
        return varlen_attn(q, k, v, cu_q, cu_k, return_lse=True, **more)

    (out, lse), differentiate = jax.vjp(attend, *inputs)
    assert out.dtype == q.dtype and lse.dtype == (np.float64 if element == "f64" else np.float32)
    out, lse = np.asarray(out), np.asarray(lse)
    assert out.shape == (*q.shape[:2], v.shape[2]) and lse.shape == q.shape[1::-1]
    check_attn(element, out, lse, q, k, v, cu_q, cu_k, **options)
    dout, dlse = normal(rng, element, *out.shape), rng.standard_normal(lse.shape).astype(lse.dtype)
    got = list(map(np.asarray, differentiate((dout, dlse))))
    check_gradients(element, got, dout, dlse, q, k, v, cu_q, cu_k, **options)
    if element != "f32":
        return
    # Without lse there is nothing to differentiate by it.
    again, differentiate = jax.vjp(lambda *x: attend(*x)[0], *inputs)
    check_gradients(
        element, list(map(np.asarray, differentiate(dout))), dout, None, q, k, v, cu_q, cu_k,
        **options,
    )  # fmt: skip
    assert np.array_equal(again, out)


MASKS = (
    {},
    {"is_causal": True},
    {"window": (3, 2), "scale": 0.3125},
    {"window": [5, 0], "alignment": "top_left"},
    {"chunk": 4},
)
# All masks in f32, and one, of which two with a sink, in each other type.
OF_TYPES = {"f16": 3, "bf16": 1, "f64": 2}
for i, element in enumerate(TYPES):
    for j, mask in enumerate(MASKS):
        if element != "f32" and j != OF_TYPES[element]:
            continue
        index = (np.int32, np.int64)[j % 2]
        # Empty sequences first, within and last, one of one token, more queries than
        # keys and the reverse; rows behind the last.
        cu_q = cumulate(0, 5, 1, 0, 17, 3, 0, dtype=index)
        cu_k = cumulate(2, 9, 1, 0, 11, 0, 0, dtype=index)
        heads, kv_heads = ((4, 2), (3, 1), (2, 2))[(i + j) % 3]
        head_dim, v_head_dim = ((16, 16), (32, 8), (5, 24))[(i + j) % 3]
        q = normal(rng, element, 26 + j, heads, head_dim)
        k = normal(rng, element, 23 + i, kv_heads, head_dim)
        v = normal(rng, element, 23 + i, kv_heads, v_head_dim)
        options = {}
        if j in (1, 2):
            compute = np.float64 if element == "f64" else np.float32
            options["sink"] = rng.standard_normal(heads).astype(compute)
        if j == 3:
            options["seqused_q"] = np.array([0, 4, 1, 0, 9, 3, 0], index)
            options["seqused_k"] = np.array([2, 9, 0, 0, 6, 0, 0], index)
            options["q_offset"] = np.array([0, 1, 0, 0, -3, 2, 0], index)
        run(element, q, k, v, cu_q, cu_k, **mask, **options)

# No row, no sequence; queries without keys see none, and move nothing.
empty = np.zeros((0, 2, 16), np.float32)
for cu in (cumulate(), cumulate(0, 0, 0)):
    out, lse = varlen_attn(empty, empty, empty, cu, return_lse=True)
    assert out.shape == (0, 2, 16) and lse.shape == (2, 0)
q = normal(rng, "f32", 4, 2, 16)
(out, lse), differentiate = jax.vjp(
    lambda *x: varlen_attn(*x, cumulate(4), cumulate(0), return_lse=True), q, empty, empty
)
assert not out.any() and (lse == -np.inf).all()
dq, dk, dv = differentiate((q, jnp.ones_like(lse)))
assert not dq.any() and dk.shape == dv.shape == (0, 2, 16)

# A gate made from lse and a sink, with one key, moves q and k (pytorch/torchtitan#4796).
one = [np.full((1, 1, 1), x, np.float32) for x in (1, 1, 2)]


def gated(q, k, v):
    out, lse = varlen_attn(q, k, v, cumulate(1), scale=1.0, return_lse=True)
    return (out * jax.nn.sigmoid(lse).T[..., None]).sum()


for gradient in jax.grad(gated, (0, 1))(*one):
    assert abs(gradient.item() - 0.39322387) < (1e-5 if IS_CUDA else 1e-6), gradient

# Keys that do not count, and rows that belong to no sequence, may be NaN.
used = np.array([8, 0, 3], np.int32)
cu_q, cu_k = cumulate(4, 4, 8), cumulate(8, 8, 8)
q = normal(rng, "f32", 20, 4, 16)
k, v = (normal(rng, "f32", 30, 4, 16) for _ in range(2))
dout = normal(rng, "f32", 20, 4, 16)
clean = [x.copy() for x in (q, k, v, dout)]
q[16:] = dout[16:] = np.nan
for x in (k, v):
    x[8:16] = x[19:] = np.nan
results = []
for *inputs, cotangent in ((q, k, v, dout), clean):
    (out, lse), differentiate = jax.vjp(
        lambda *x: varlen_attn(*x, cu_q, cu_k, is_causal=True, seqused_k=used, return_lse=True),
        *inputs,
    )
    assert not out[16:].any() and (lse[:, 16:] == -np.inf).all()
    results.append([out, lse, *differentiate((cotangent, jnp.zeros_like(lse)))])
assert all(map(np.array_equal, *results)) and not any(np.isnan(x).any() for x in results[0])

# Alone or in a batch, on any number of threads, compiled or not: the same bits.
lengths = [300, 1, 0, 170]
cu = cumulate(*lengths)
for element, window in (("f32", (-1, -1)), ("bf16", (100, 0))):
    inputs = [jnp.asarray(normal(rng, element, sum(lengths), 4, 64)) for _ in range(3)]
    dout = jnp.asarray(normal(rng, element, sum(lengths), 4, 64))

    def everything(q, k, v, dout, cu):
        (out, lse), differentiate = jax.vjp(
            lambda *x: varlen_attn(*x, cu, window=window, return_lse=True), q, k, v
        )
        return [out, lse.T, *differentiate((dout, jnp.zeros_like(lse)))]

    batch = everything(*inputs, dout, cu)
    for threads in (1, 2, 5):
        varlen.set_num_threads(threads)
        assert all(map(np.array_equal, batch, jax.jit(everything)(*inputs, dout, cu)))
    varlen.set_num_threads(0)
    for begin, end in zip(cu, cu[1:]):
        alone = everything(*(x[begin:end] for x in (*inputs, dout)), cumulate(end - begin))
        assert all(np.array_equal(a, b[begin:end]) for a, b in zip(alone, batch))
