# RUN: %python %s
"""Dropout of varlen_attn: numpy's mask for a number, keys of jax.random, tracing and gradients,
and errors."""

import sys

import jax
import numpy
import varlen
from jax import numpy as jnp
from varlen.jax import varlen_attn

rng = numpy.random.default_rng(0)
cu = numpy.array([0, 5, 5, 30], "i4")
q, k, v = (rng.standard_normal((32, heads, 16)).astype("f4") for heads in (4, 2, 2))
given = {"is_causal": True, "dropout_p": 0.3}


def attend(q, seed, **options):
    return varlen_attn(q, k, v, cu, seed=seed, **given, **options)


out = attend(q, 5)
assert (out == varlen.attn(q, k, v, cu, seed=5, **given)).all()
ids = numpy.array([7, 1, 0])
assert (
    attend(q, 5, sequence_ids=ids) == varlen.attn(q, k, v, cu, seed=5, sequence_ids=ids, **given)
).all()

# Keys of either kind, as operands of one traced function; other keys, other masks.
traced = jax.jit(attend)
for key in (jax.random.key(1), jax.random.PRNGKey(1)):
    assert (traced(q, key) == attend(q, key)).all()
    assert (attend(q, key) == attend(q, jax.random.key(1))).all()
assert (traced(q, jax.random.key(2)) != traced(q, jax.random.key(1))).any()

# Gradients have the mask of the forward: those of numpy, word for word.
dout = rng.standard_normal(q.shape).astype("f4")
_, pull_back = jax.vjp(lambda q: attend(q, 5), jnp.asarray(q))
lse = varlen.attn(q, k, v, cu, seed=5, return_lse=True, **given)[1]
(dq, *_) = varlen.attn_grad(dout, q, k, v, numpy.asarray(out), lse, cu, seed=5, **given)
assert (pull_back(dout)[0] == dq).all()

REFUSED = [
    (ValueError, "dropout_p: expected a number from 0 to less than 1, got 1.5", {"dropout_p": 1.5}),
    (TypeError, "dropout_p: expected a Python number", {"dropout_p": jnp.float32(0.1)}),
    (ValueError, "seed: expected a key of jax.random or an integer beside", {"seed": None}),
    (TypeError, "seed: expected a key of jax.random or an integer, got 0.5", {"seed": 0.5}),
    (ValueError, "sequence_ids: expected 3 integers", {"sequence_ids": numpy.arange(2)}),
    (TypeError, "sequence_ids: expected an array", {"sequence_ids": "x"}),
    (TypeError, "cu_seqlens_q: expected an array", {"cu_seqlens_q": None}),
]  # fmt: skip
for error, message, options in REFUSED:
    try:
        varlen_attn(q, k, v, **given | {"seed": 0, "cu_seqlens_q": cu} | options)
    except error as raised:
        assert message in str(raised), raised
    else:
        sys.exit(f"expected {error.__name__}: {message}")
