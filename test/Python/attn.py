# RUN: %python %s

"""varlen.attn and varlen.attn_grad on numpy arrays give what their definitions say."""

import numpy as np
import varlen
from checks import NUMPY_TYPES, check_attn, check_gradients, cumulate, normal

rng = np.random.default_rng(0)


def run_attn(element, q, k, v, cu_q, cu_k, mask, **options):
    out, lse = varlen.attn(q, k, v, cu_q, cu_k, return_lse=True, **mask, **options)
    assert type(out) is np.ndarray and out.dtype == q.dtype
    assert lse.dtype == (np.float64 if element == "f64" else np.float32)
    assert out.shape == (*q.shape[:2], v.shape[2]) and lse.shape == q.shape[1::-1]
    keys = cu_q if cu_k is None else cu_k
    check_attn(element, out, lse, q, k, v, cu_q, keys, **mask, **options)
    return out, lse


def run_gradients(element, q, k, v, cu_q, cu_k, mask, **options):
    out, lse = run_attn(element, q, k, v, cu_q, cu_k, mask, **options)
    dout = normal(rng, element, *out.shape)
    dlse = rng.standard_normal(lse.shape).astype(lse.dtype)
    for given in (None, dlse):
        got = varlen.attn_grad(
            dout, q, k, v, out, lse, cu_q, cu_k, dlse=given, **mask, **options
        )
        check_gradients(element, got, dout, given, q, k, v, cu_q, cu_k, **mask, **options)


MASKS = (
    {},
    {"is_causal": True},
    {"window": (3, 2)},
    {"window": [5, 0], "alignment": "top_left"},
    {"chunk": 4},
)
# All masks in f32, and one, of which two with a sink, in each other type.
OF_TYPES = {"f16": 3, "bf16": 1, "f64": 2}
for i, element in enumerate(NUMPY_TYPES):
    for j, mask in enumerate(MASKS):
        if element != "f32" and j != OF_TYPES[element]:
            continue
        index = (np.int32, np.int64)[j % 2]
        # Empty sequences first, within and last, one of one token, more queries
        # than keys and the reverse; rows behind the last.
        cu_q = cumulate(0, 5, 1, 0, 17, 3, 0, dtype=index)
        cu_k = cumulate(2, 9, 1, 0, 11, 0, 0, dtype=index)
        heads, kv_heads = ((4, 2), (3, 1), (2, 2))[(i + j) % 3]
        head_dim, v_head_dim = ((16, 16), (32, 8), (5, 24))[(i + j) % 3]
        q = normal(rng, element, 26 + j, heads, head_dim)
        k = normal(rng, element, 23 + i, kv_heads, head_dim)
        v = normal(rng, element, 23 + i, kv_heads, v_head_dim)
        options = {"scale": 0.3125} if j == 2 else {}
        if j in (1, 2):
            compute = np.float64 if element == "f64" else np.float32
            options["sink"] = rng.standard_normal(heads).astype(compute)
        if j == 3:
            options["seqused_q"] = np.array([0, 4, 1, 0, 9, 3, 0], index)
            options["seqused_k"] = np.array([2, 9, 0, 0, 6, 0, 0], index)
            options["q_offset"] = np.array([0, 1, 0, 0, -3, 2, 0], index)
        run_gradients(element, q, k, v, cu_q, cu_k, mask, **options)
        if element == "f32" and j < 2:
            keys = [normal(rng, element, len(q), kv_heads, d) for d in (head_dim, v_head_dim)]
            run_attn(element, q, *keys, cu_q, None, mask, **options)

# No row, no sequence; queries without keys see none.
q, k, v = (normal(rng, "f32", n, 2, 16) for n in (0, 0, 0))
out, lse = varlen.attn(q, k, v, cumulate(), return_lse=True)
assert out.shape == (0, 2, 16) and lse.shape == (2, 0)
out, lse = varlen.attn(q, k, v, cumulate(0, 0, 0), return_lse=True)
assert out.shape == (0, 2, 16) and lse.shape == (2, 0)
q = normal(rng, "f32", 4, 2, 16)
out, lse = varlen.attn(q, k, v, cumulate(4), cumulate(0), return_lse=True)
assert (out == 0).all() and (lse == -np.inf).all()
grads = varlen.attn_grad(q, q, k, v, out, lse, cumulate(4), cumulate(0))
assert (grads[0] == 0).all() and grads[1].shape == grads[2].shape == (0, 2, 16)

# Slices of one array go in as they are; so do heads that lie apart, and a gradient
# whose rows are one row.
qkv = normal(rng, "f32", 30, 8, 16)
cu = cumulate(12, 18)
slices = qkv[:, :4], qkv[:, 4:6], qkv[:, 6:]
copies = [x.copy() for x in slices]
head_major = normal(rng, "f32", 4, 30, 16)
for mask in MASKS[:2]:
    out, lse = varlen.attn(*slices, cu, return_lse=True, **mask)
    same = varlen.attn(*copies, cu, return_lse=True, **mask)
    assert np.array_equal(out, same[0]) and np.array_equal(lse, same[1])
    dout = np.broadcast_to(normal(rng, "f32", 1, 1, 16), out.shape)
    first = varlen.attn_grad(dout, *slices, out, lse, cu, **mask)
    second = varlen.attn_grad(dout.copy(), *copies, out, lse, cu, **mask)
    assert all(map(np.array_equal, first, second))
assert np.array_equal(
    varlen.attn(head_major.transpose(1, 0, 2), *slices[1:], cu),
    varlen.attn(head_major.transpose(1, 0, 2).copy(), *slices[1:], cu),
)

# Into memory of the caller, of any strides; inputs may be read-only.
wide = np.full((30, 8, 16), 7, np.float32)
for x in (*copies, cu):
    x.flags.writeable = False
result = varlen.attn(*copies, cu, out=wide[:, 2:6])
assert result.base is wide and np.array_equal(result, varlen.attn(*slices, cu))
assert (wide[:, :2] == 7).all() and (wide[:, 6:] == 7).all()

# Lengths and numbers of threads change no bit, and compile nothing.
before = len(varlen._cache._kept)
parts = [varlen.attn(*(x[a:b] for x in slices), cumulate(b - a), num_threads=n)
         for a, b, n in ((0, 12, 1), (12, 30, 3))]  # fmt: skip
assert np.array_equal(np.concatenate(parts), varlen.attn(*slices, cu))
assert len(varlen._cache._kept) == before
