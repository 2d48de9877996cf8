"""varlen_attn: attention that JAX can differentiate."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import jax
from jax import numpy as jnp

from .._attention import add_captures
from .._options import read_options, show
from ..scores import Score
from . import _derivatives  # noqa: F401  # registers them
from ._operation import apply


def varlen_attn(
    q: jax.typing.ArrayLike,
    k: jax.typing.ArrayLike,
    v: jax.typing.ArrayLike,
    cu_seqlens_q: jax.typing.ArrayLike,
    cu_seqlens_k: jax.typing.ArrayLike | None = None,
    *,
    is_causal: bool = False,
    window: tuple[int, int] = (-1, -1),
    chunk: int | None = None,
    alignment: str = "bottom_right",
    scale: float | None = None,
    sink: jax.typing.ArrayLike | None = None,
    seqused_q: jax.typing.ArrayLike | None = None,
    seqused_k: jax.typing.ArrayLike | None = None,
    q_offset: jax.typing.ArrayLike | None = None,
    score: Score | None = None,
    captures: Sequence[jax.typing.ArrayLike] = (),
    dropout_p: float = 0.0,
    seed: int | jax.typing.ArrayLike | None = None,
    sequence_ids: jax.typing.ArrayLike | None = None,
    block_table: jax.typing.ArrayLike | None = None,
    k_scale: jax.typing.ArrayLike | None = None,
    v_scale: jax.typing.ArrayLike | None = None,
    return_lse: bool = False,
) -> Any:
    """Attention over sequences of different lengths that are packed without padding.

    Rows of sequence s are cu_seqlens[s] to cu_seqlens[s + 1] - 1. It can be traced,
    differentiated (out and lse by q, k, v, sink and captures), batched, and partitioned
    over heads. It runs on CPUs and on CUDA devices.

    Args:
        q: (Tq, Hq, D), of float16, bfloat16, float32 or float64.
        k: (Tk, Hkv, D), of q's dtype, or with v quantised. Hq is a multiple of Hkv.
        v: (Tk, Hkv, Dv), of k's dtype.
        cu_seqlens_q: (N + 1), int32 or int64: where each sequence begins, and the end of
            the last. Starts at 0, does not decrease, ends within q's rows.
        cu_seqlens_k: The same for k and v; None: that of the queries.
        is_causal: A query sees no key after itself: window (-1, 0).
        window: (left, right): keys before and after its own that a query sees; -1: all.
        chunk: A query sees the keys up to its own that are in its chunk of that many.
        alignment: "bottom_right": the last query and the last key of a sequence have
            one position; "top_left": the first ones.
        scale: A factor of the scores, a Python number; None: 1/sqrt(D).
        sink: (Hq), float32, for float64 queries float64: a score for each head that has
            no value.
        seqused_q, seqused_k: (N), as cu_seqlens: how many rows of a slot count.
        q_offset: (N), as cu_seqlens: is added to the positions of queries.
        score: Changes scores or hides keys: one of `varlen.scores`, or one of your own.
        captures: What the score reads, in its order: (Hq) or (Hq, Tq), tables (Hq, M) or
            (Hq, Tq, M), of keys (Hq, Tk), float32, for float64 queries float64.
        dropout_p: The part of the probabilities that are 0, a Python number; others are divided
            by 1 - dropout_p; from 0 to less than 1.
        seed: Of dropout, a key of jax.random or an integer of 64 bits: which probabilities are
            0 follows from it, the sequence, the head and the places of query and key, and
            from nothing else.
        sequence_ids: (N), integers that name sequences for dropout, by their low 32 bits;
            None: their places in the batch.
        block_table: (N, pages), int32: keys and values are in pages. k is (P, page, Hkv, D) and v
            (P, page, Hkv, Dv); key j of sequence s is row j % page of page
            block_table[s, j // page]. seqused_k says how many keys a sequence has; there is no
            cu_seqlens_k, and no gradient. No other entry or row is read.
        k_scale, v_scale: Of float32: k and v are of int8 or float8_e4m3fn beside q of float16,
            bfloat16 or float32, and are multiplied by these: (Hkv), or a number for each row and
            head, (Tk, Hkv), in pages (P, page, Hkv), or for each page and head, (P, Hkv). None: 1.
            There is no gradient.
        return_lse: Also return lse, the logarithm of each row's sum of exponentials.

    Returns:
        out (Tq, Hq, Dv) of q's dtype, or with return_lse (out, lse), lse (Hq, Tq),
        float32 (float64 for float64). A query that sees no key has out 0 and lse -inf
        (or the sink).

    Raises:
        TypeError, ValueError: ranks, dtypes, extents or options are not what they should
            be; where the call is traced.
        jax.errors.JaxRuntimeError: cu_seqlens or a block_table that are not valid; where results
            are waited for. The message has the index and the value. On CUDA results are NaN,
            and `varlen.jax.check` raises it.
        NotImplementedError: third derivatives, tangents of tangents, derivatives of keys in pages
            and of quantised keys and values, and on CUDA devices tangents and second derivatives
            of a head_dim above 128, in float32 above 48.
    """
    if isinstance(scale, jax.Array):
        raise TypeError(
            f"scale: expected a Python number, which code is made for, got {scale}"
        )
    if type(dropout_p) is not float or dropout_p:
        from ._dropout import add_dropout  # which imports from here

        score, captures = add_dropout(
            score, captures, dropout_p, seed, sequence_ids, q, cu_seqlens_q
        )
    options = read_options(is_causal, window, chunk, alignment, scale, score)
    given = {
        "q": q, "k": k, "v": v, "cu_seqlens_q": cu_seqlens_q,
        "cu_seqlens_k": cu_seqlens_q if cu_seqlens_k is None else cu_seqlens_k,
        "seqused_q": seqused_q, "seqused_k": seqused_k, "q_offset": q_offset, "sink": sink,
    }  # fmt: skip
    given = {name: x for name, x in given.items() if x is not None or name in _REQUIRED}
    add_captures(given, score, captures)
    if block_table is not None:
        if cu_seqlens_k is not None:
            raise ValueError("cu_seqlens_k: expected None beside a block_table")
        given.pop("cu_seqlens_k", None)
        given["block_table"] = block_table
    given |= {name: x for name, x in (("k_scale", k_scale), ("v_scale", v_scale)) if x is not None}
    given = {
        name: x if isinstance(x, jax.Array) else as_array(name, x) for name, x in given.items()
    }
    return _compile(options, return_lse)(given)


_REQUIRED = ("q", "k", "v", "cu_seqlens_q")


def as_array(name, x):
    try:
        if x is not None:  # of which jax makes NaN
            return jnp.asarray(x)
        raise TypeError
    except (TypeError, ValueError, OverflowError):
        raise TypeError(
            f"{name}: expected an array, or what jax.numpy.asarray makes one of, got {show(x)}"
        ) from None


@functools.cache
def _compile(options, return_lse):
    """The function of operands by name. Compiled, so that a call that is not traced costs
    little."""

    @jax.jit
    def varlen_attn(given):
        results = apply("attn", _vary_alike(given), options)
        return (results["out"], results["lse"]) if return_lse else results["out"]

    return varlen_attn


def _vary_alike(given):
    """Within shard_map, operands that are the same on all devices where others differ
    become different ones, so that their gradients are summed over devices."""
    types = {name: jax.typeof(array).mat.varying for name, array in given.items()}
    every = frozenset().union(*types.values())
    return {
        name: jax.lax.pcast(array, tuple(every - types[name]), to="varying")
        for name, array in given.items()
    }
