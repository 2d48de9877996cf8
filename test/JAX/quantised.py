# RUN: %python %s
"""Quantised keys and values: the bits of varlen.attn on arrays of numpy, packed and in pages, with
scales of each kind, under jit and vmap; gradients are refused, and so is what is wrong."""

from Inputs.device import same

import jax
import ml_dtypes
import numpy as np
import varlen
from checks import cumulate, normal, raises
from jax import numpy as jnp

from varlen import scores
from varlen.jax import varlen_attn
from varlen.kv_cache import quantise

rng = np.random.default_rng(0)
QUERIES, KEYS = [0, 3, 9, 1], [5, 0, 4, 300]
cu_q, cu_k = cumulate(*QUERIES), cumulate(*KEYS)
used = np.array(KEYS, np.int32)
table = np.array([[3, -1, -1], [-1, -1, -1], [4, -1, -1], [1, 5, 0]], np.int32)
PAGE, POOL = 128, 6
I8, F8 = np.dtype("i1"), np.dtype(ml_dtypes.float8_e4m3fn)


def draw(element, *leading):
    """Quantised keys and values of these leading extents, and a scale of each row and head."""
    rows = (rng.standard_normal((*leading, 2, dim)).astype("f4") for dim in (16, 24))
    return map(list, zip(*(quantise(x, element) for x in rows)))


def check(element, dtype, scales, **options):
    """`scales` has indices of scales of rows and heads, or None for none."""
    q = normal(rng, dtype, sum(QUERIES), 4, 16)
    for leading, given in (
        ((sum(KEYS),), {"cu_seqlens_k": cu_k}),
        ((POOL, PAGE), {"seqused_k": used, "block_table": table}),
    ):
        (k, v), found = draw(element, *leading)
        for name, scale, index in zip(("k_scale", "v_scale"), found, scales):
            if index is not None:
                given[name] = np.ascontiguousarray(scale[(*index[: len(leading)], ...)])
        given |= options
        wanted = varlen.attn(q, k, v, cu_q, return_lse=True, **given)
        found = varlen_attn(q, k, v, cu_q, return_lse=True, **given)
        assert all(map(same, found, wanted)), (element, dtype, given)
        assert found[0].dtype == q.dtype


ALL = slice(None), slice(None)
HEADS = 0, 0
check(I8, "f32", (ALL, ALL), is_causal=True)
check(I8, "bf16", (HEADS, ALL), window=(40, 2), sink=normal(rng, "f32", 4))
check(F8, "f16", (ALL, HEADS), chunk=30)
check(F8, "f32", (ALL, None), score=scores.alibi(), captures=[np.ones(4, np.float32)])
check(I8, "f32", (None, None))

# Of pages.
q = normal(rng, "f32", sum(QUERIES), 4, 16)
(k, v), (k_scale, v_scale) = draw(I8, POOL, PAGE)
given = {"k_scale": k_scale[:, 0].copy(), "v_scale": v_scale[:, 1].copy(), "block_table": table}
call = jax.jit(lambda q, k, v, used, **given: varlen_attn(q, k, v, cu_q, seqused_k=used, **given))
for count in (used, used // 2):
    found = call(q, k, v, count, **given)
    assert same(found, varlen.attn(q, k, v, cu_q, seqused_k=count, **given))
assert call._cache_size() == 1

# vmap: more heads in one call, of tables a call each.
packed = {"k_scale": k_scale, "v_scale": v_scale[0, 0], "block_table": table}
names = "q", "k", "v", *packed
stacked = [np.stack([x, x]) for x in (q, k, v, *packed.values())]
for batched in ({"q"}, {"k", "v"}, {"v_scale"}, {"k_scale", "q"}, {"block_table", "k_scale"}, set(names)):
    arguments = [x if name in batched else x[0] for name, x in zip(names, stacked)]
    axes = tuple(0 if name in batched else None for name in names)
    mapped = jax.vmap(lambda q, k, v, *more: call(q, k, v, used, **dict(zip(packed, more))), axes)
    wanted = varlen.attn(q, k, v, cu_q, seqused_k=used, **packed)
    for found in mapped(*arguments):
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)

# There is no gradient.
(k, v), (k_scale, v_scale) = draw(I8, sum(KEYS))
arguments = {"q": q, "k": k, "v": v, "cu_seqlens_q": cu_q, "cu_seqlens_k": cu_k}
arguments |= {"k_scale": k_scale, "v_scale": v_scale}
for name in ("q", "v_scale"):
    raises(
        NotImplementedError, "varlen_attn: quantised keys and values have no gradient",
        lambda: jax.grad(lambda x: varlen_attn(**(arguments | {name: x})).sum())(arguments[name]),
    )  # fmt: skip

# What is wrong, where the call is traced.
for kind, words, changed in (
    (ValueError, "k_scale: expected an array of rank 1 (heads) or 2 (rows, heads), got shape", {"k_scale": k_scale[None]}),
    (TypeError, "v_scale: expected elements of f32, got bf16", {"v_scale": jnp.asarray(v_scale, jnp.bfloat16)}),
    (ValueError, "k_scale has 308 rows: expected 309, as many as k", {"k_scale": k_scale[1:]}),
    (ValueError, "v_scale: expected extent 0 to be 2, got 3", {"v_scale": np.ones(3, np.float32)}),
    (ValueError, "expected k and v of i8 or f8E4M3FN beside k_scale, got 'f32'", {"k": k.astype("f4"), "v": v.astype("f4")}),
    (TypeError, "q: expected elements of f16, bf16, f32, f64, got f8E4M3FN", {"q": q.astype(F8)}),
    (ValueError, "expected quantised k and v of one element type, got 'i8' and 'f8E4M3FN'", {"v": v.astype(F8)}),
    (TypeError, "k: expected elements of", {"k": k.astype("u1")}),
    (TypeError, "k_scale: expected an array, or what jax.numpy.asarray makes one of", {"k_scale": "1"}),
):  # fmt: skip
    raises(kind, words, lambda: varlen_attn(**(arguments | changed)))
# A number that is not finite reaches the results of its sequence.
broken = k_scale.copy()
broken[7, 1] = np.nan
out = np.asarray(varlen_attn(**(arguments | {"k_scale": broken})))
assert np.isnan(out[3:12, 2:]).all() and np.isfinite(out[3:12, :2]).all() and np.isfinite(out[12:]).all()
