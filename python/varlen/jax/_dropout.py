"""Dropout of an attention: the words of its generator, as a part of the traced function."""

import numbers

import jax
from jax import numpy as jnp

from .._dropout import (
    add_score, check_rate, check_sequences, number_rows, row_words, words_of,
)  # fmt: skip
from .._options import show
from ._attention import as_array


def add_dropout(score, captures, rate, seed, sequence_ids, q, cu_seqlens):
    """The score and its captures with dropout, if there is some."""
    if isinstance(rate, jax.Array):
        raise TypeError(
            f"dropout_p: expected a Python number, which code is made for, got {show(rate)}"
        )
    rate = check_rate("dropout_p", rate)
    if rate == 0:
        return score, captures
    q, cu_seqlens = as_array("q", q), as_array("cu_seqlens_q", cu_seqlens)
    if q.ndim != 3:
        raise ValueError(f"q: expected an array of rank 3 (rows, heads, head_dim), got {q.shape}")
    if sequence_ids is not None:
        sequence_ids = as_array("sequence_ids", sequence_ids)
    are_integers = [
        x is not None and jnp.issubdtype(x.dtype, jnp.integer) for x in (cu_seqlens, sequence_ids)
    ]
    check_sequences("cu_seqlens_q", cu_seqlens, are_integers[0], sequence_ids, are_integers[1])
    rows = jnp.arange(q.shape[0], dtype=cu_seqlens.dtype)
    numbered = number_rows(jnp, cu_seqlens, rows, sequence_ids)
    numbered = [x.astype(jnp.int32) for x in (*numbered, jnp.arange(q.shape[1])[:, None])]
    words = row_words(*_read_seed(seed), *numbered)
    dtype = jnp.float64 if q.dtype == jnp.float64 else jnp.float32
    words = jax.lax.bitcast_convert_type(words, jnp.float32).astype(dtype)
    return add_score(score, captures, rate, words)


def _read_seed(seed):
    """The low and the high word of a seed."""
    if isinstance(seed, numbers.Integral):
        return [jnp.full(1, word, jnp.int32) for word in words_of(seed)]
    if seed is None:
        raise ValueError("seed: expected a key of jax.random or an integer beside dropout_p")
    try:
        bits = jax.random.bits(seed, (2,), jnp.uint32)
    except (TypeError, ValueError):
        raise TypeError(
            f"seed: expected a key of jax.random or an integer, got {show(seed)}"
        ) from None
    return jax.lax.bitcast_convert_type(bits, jnp.int32).reshape(2, 1)
