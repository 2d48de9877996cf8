# RUN: %python %s
"""Keys and values in pages: the bits of attention without them, under jit, vmap and shardings;
gradients are refused, and so is what is wrong."""

from Inputs.device import IS_CUDA, same

import jax
import numpy as np
import varlen
from checks import cumulate, normal, raises
from jax import numpy as jnp

from varlen import scores
from varlen.jax import varlen_attn

rng = np.random.default_rng(0)
QUERIES, KEYS = [0, 3, 9, 1], [5, 0, 4, 300]
cu_q, cu_k = cumulate(*QUERIES), cumulate(*KEYS)
used = np.array(KEYS, np.int32)


def to_pages(element, page):
    """(k, v, their pages, table): pages in any order, NaN in rows and no page in entries that
    no sequence uses."""
    counts = [-(-length // page) for length in KEYS]
    order = iter(rng.permutation(sum(counts) + 2))
    table = np.full((len(KEYS), max(counts) + 1), -1, np.int32)
    packed = [normal(rng, element, sum(KEYS), 2, dim) for dim in (16, 24)]
    pools = [np.full((sum(counts) + 2, page, *x.shape[1:]), np.nan, x.dtype) for x in packed]
    for s, length in enumerate(KEYS):
        for first in range(0, length, page):
            at = table[s, first // page] = next(order)
            rows = slice(cu_k[s] + first, cu_k[s] + min(first + page, length))
            for x, pool in zip(packed, pools):
                pool[at, : rows.stop - rows.start] = x[rows]
    return packed, pools, table


q = normal(rng, "f32", sum(QUERIES), 4, 16)
packed, pools, table = to_pages("f32", 16)
given = {"seqused_k": used, "block_table": table}
call = jax.jit(lambda q, k, v, cu, used, table: varlen_attn(q, k, v, cu, seqused_k=used, block_table=table))
for element, page, options in (
    ("f32", 16, {"is_causal": True}),
    ("bf16", 64, {"window": (40, 2), "sink": normal(rng, "f32", 4)}),
    ("f16", 7, {"chunk": 30, "q_offset": np.array([1, -2, 0, 3], np.int32)}),
    ("f32", 256, {"score": scores.alibi(), "captures": [np.ones(4, np.float32)], "dropout_p": 0.2, "seed": 3}),
):  # fmt: skip
    query = normal(rng, element, sum(QUERIES), 4, 16)
    x, in_pages, own_table = to_pages(element, page)
    wanted = varlen_attn(query, *x, cu_q, cu_k, return_lse=True, **options)
    found = varlen_attn(
        query, *in_pages, cu_q, seqused_k=used, block_table=own_table, return_lse=True, **options
    )
    assert all(map(same, found, wanted)), (element, page)

# One program for all tables and numbers of keys.
wanted = varlen_attn(q, *packed, cu_q, cu_k)
assert same(call(q, *pools, cu_q, used, table), wanted)
assert same(call(q, *pools, cu_q, used // 2, table), varlen.attn(q, *pools, cu_q, seqused_k=used // 2, block_table=table))
assert call._cache_size() == 1

# vmap: of tables and numbers of keys a call each, of others more heads in one call.
stacked = [np.stack([x, x]) for x in (q, *pools, table)]
for batched in ((0, None, None, None), (None, 0, 0, None), (0, 0, 0, 0), (None, None, None, 0)):
    arguments = [x if axis == 0 else x[0] for x, axis in zip(stacked, batched)]
    mapped = jax.vmap(lambda q, k, v, t: call(q, k, v, cu_q, used, t), in_axes=batched)
    for found in mapped(*arguments):
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)

# There is no gradient.
raises(
    NotImplementedError, "varlen_attn: keys in pages, by a block_table, have no gradient",
    lambda: jax.grad(lambda q: call(q, *pools, cu_q, used, table).sum())(q),
)  # fmt: skip

# What is wrong: where it is traced, and where the program runs.
for kind, words, changed in (
    (ValueError, "cu_seqlens_k: expected None beside a block_table", {"cu_seqlens_k": cu_k}),
    (ValueError, "expected seqused_k with a block_table, got none", {"seqused_k": None}),
    (TypeError, "cu_seqlens_q: expected an array, or what jax.numpy.asarray makes one of, got None", {"cu_seqlens_q": None}),
    (ValueError, "k: expected an array of rank 4 (pages, rows, heads, head_dim)", {"k": packed[0]}),
    (ValueError, f"v has 3 pages: expected {len(pools[0])}, as many as k", {"v": pools[1][:3]}),
    (ValueError, "expected k and v to have the same rows in a page, got 16 and 15", {"v": pools[1][:, 1:]}),
    (ValueError, "expected positive rows in a page of k, got 0", {"k": pools[0][:, :0], "v": pools[1][:, :0]}),
    (ValueError, "block_table has 3 rows: expected 4, one for each sequence", {"block_table": table[:-1]}),
    (TypeError, "block_table: expected elements of i32", {"block_table": table.astype(np.float32)}),
    (jax.errors.JaxRuntimeError, "block_table[0, 0] = -1: expected 0 to", {"block_table": jnp.full_like(table, -1)}),
    (jax.errors.JaxRuntimeError, "seqused_k[0] = 10000: expected 0 to", {"seqused_k": used + 9995}),
    (jax.errors.JaxRuntimeError, "seqused_k[3] = 300: expected 0 to 32", {"block_table": table[:, :2]}),
):  # fmt: skip
    if IS_CUDA and kind is jax.errors.JaxRuntimeError:
        continue  # Its kernels are not waited for.
    arguments = {"k": pools[0], "v": pools[1], "cu_seqlens_q": cu_q, **given, **changed}
    raises(kind, words, lambda: jax.block_until_ready(varlen_attn(q, **arguments)))
