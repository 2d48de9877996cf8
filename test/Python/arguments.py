# RUN: %python %s

"""Arguments that varlen.attn cannot take are errors that say what was wanted."""

import numpy as np
import varlen
from checks import cumulate, raises


def zeros(*shape, dtype=np.float32):
    return np.zeros(shape, dtype)


q, k, v, cu = zeros(10, 4, 16), zeros(10, 2, 16), zeros(10, 2, 16), cumulate(4, 6)
attn = varlen.attn
attn(q, k, v, cu)

# No arrays, wrong elements, wrong ranks.
raises(TypeError, "q: expected an array with __dlpack__", attn, [[[0.0]]], k, v, cu)
raises(TypeError, "cu_seqlens_q: expected an array with __dlpack__", attn, q, k, v, [0, 10])
raises(TypeError, "q: expected an array with __dlpack__", attn, np.ndarray, k, v, cu)
raises(TypeError, "q: expected elements of f16, bf16, f32, f64, got i32", attn, q.astype("i4"), k, v, cu)
raises(TypeError, "q: expected elements of", attn, q.astype("c8"), k, v, cu)
raises(TypeError, "cu_seqlens_q: expected elements of i32, i64, got f32", attn, q, k, v, cu.astype("f4"))
raises(TypeError, "cu_seqlens_q: expected elements of i32, i64, got i16", attn, q, k, v, cu.astype("i2"))
raises(ValueError, "q: expected an array of rank 3 (rows, heads, head_dim), got shape (10, 64)",
       attn, q.reshape(10, 64), k, v, cu)  # fmt: skip
raises(ValueError, "cu_seqlens_q: expected an array of rank 1 (sequences + 1), got shape (1, 3)",
       attn, q, k, v, cu[None])  # fmt: skip

# Types that do not go together: the rules of the op.
raises(ValueError, "expected q, k and v of one element type, got 'f32', 'f64' and 'f32'",
       attn, q, k.astype("f8"), v, cu)  # fmt: skip
raises(ValueError, "expected k and v to have the same number of heads, got 2 and 1", attn, q, k, v[:, :1], cu)
raises(ValueError, "expected q and k to have the same head_dim, got 8 and 16", attn, q[..., :8], k, v, cu)
raises(ValueError, "expected query heads to be a multiple of kv heads, got 3 and 2", attn, q[:, :3], k, v, cu)
raises(ValueError, "expected positive head_dim of q, got 0", attn, q[..., :0], k[..., :0], v, cu)
raises(ValueError, "of one integer type, got 'i32' for cu_q and 'i64' for cu_k",
       attn, q, k, v, cu, cu.astype("i8"))  # fmt: skip
raises(ValueError, "expected sink to have one entry for each of the 4 query heads, got 2",
       attn, q, k, v, cu, sink=zeros(2))  # fmt: skip
raises(ValueError, "sink", attn, q, k, v, cu, sink=zeros(4, dtype=np.float64))
raises(TypeError, "seqused_q: expected an array with __dlpack__", attn, q, k, v, cu, seqused_q=3)
raises(TypeError, "sink: expected an array with __dlpack__",
       varlen.attn_grad, q, q, k, v, q, zeros(4, 10), cu, sink=3)  # fmt: skip

# What DLPack has no name for.
raises(TypeError, "q: DLPack only supports", attn, q.astype(object), k, v, cu)
raises(TypeError, "k: DLPack only supports", attn, q, k.astype("g"), v, cu)

# What has a mask beside its numbers.
masked = np.ma.masked_array(q, q > 0)
raises(TypeError, "q: expected an array without a mask, got a numpy.ma.MaskedArray", attn, masked, k, v, cu)
raises(TypeError, "out: expected an array without a mask", attn, q, k, v, cu, out=masked)

# What is known in the call only.
for name in ("seqused_q", "seqused_k", "q_offset"):
    for count in (0, 1, 3):
        raises(ValueError, f"{name} has {count} entries: expected 2, one for each sequence",
               attn, q, k, v, cu, **{name: np.zeros(count, "i4")})  # fmt: skip
raises(ValueError, "cu_seqlens_q[1] = 11", attn, q, k, v, np.array([0, 11], "i4"))
raises(ValueError, "cu_seqlens_q[2] = 3", attn, q, k, v, np.array([0, 5, 3], "i4"))
raises(ValueError, "cu_seqlens_q[0] = 1", attn, q, k, v, np.array([1, 10], "i4"))
raises(ValueError, "seqused_k[1] = 7", attn, q, k, v, cu, seqused_k=np.array([4, 7], "i4"))
raises(ValueError, "v has 9 rows: expected 10, as many as k", attn, q, k, v[:9], cu)
raises(ValueError, "cu_seqlens_q has 3 entries and cu_seqlens_k 2", attn, q, k, v, cu, cu[:2])
raises(ValueError, "q: expected stride 2 to be 1, got 2", attn, zeros(10, 4, 32)[..., ::2], k, v, cu)

# Options.
raises(ValueError, "window: expected two integers (left, right)", attn, q, k, v, cu, window=(1, 2, 3))
raises(ValueError, "window: expected two integers (left, right)", attn, q, k, v, cu, window=(-2, 0))
raises(ValueError, "window: expected two integers (left, right)", attn, q, k, v, cu, window=5)
for chunk in (0, 2**28 + 1, 2**63):
    raises(ValueError, f"chunk: expected an integer from 1 to 268435456, got {chunk}", attn, q, k, v, cu, chunk=chunk)
raises(ValueError, "expected window or chunk, got both", attn, q, k, v, cu, chunk=3, window=(1, 1))
raises(ValueError, "expected one of is_causal, window and chunk", attn, q, k, v, cu, is_causal=True, chunk=3)
raises(ValueError, "expected one of is_causal, window and chunk", attn, q, k, v, cu, is_causal=True, window=(1, 1))
raises(ValueError, 'alignment: expected "bottom_right" or "top_left", got \'left\'',
       attn, q, k, v, cu, alignment="left")  # fmt: skip
for scale in (0.0, -1.0, float("nan"), float("inf"), True, "1", np.array(0.5)):
    raises(ValueError, "scale: expected a positive, finite number", attn, q, k, v, cu, scale=scale)
# What is no integer is none, even if one that is equal was taken before; numpy's are.
assert np.array_equal(
    attn(q, k, v, cu, window=(3, 0)), attn(q, k, v, cu, window=[np.int64(3), np.int8(0)])
)
for window in ((3.0, 0), (True, 0), ("3", 0)):
    raises(ValueError, "window: expected two integers (left, right)", attn, q, k, v, cu, window=window)
attn(q, k, v, cu, chunk=np.int32(3))
for chunk in (3.0, True, "3"):
    raises(ValueError, "chunk: expected an integer from 1 to 268435456", attn, q, k, v, cu, chunk=chunk)
raises(TypeError, "captures: expected a sequence of arrays, got None", attn, q, k, v, cu, captures=None)
raises(ValueError, "expected scale from 2^-126 to 2^126", attn, q, k, v, cu, scale=2e38)
for threads in (0, 2**63):
    raises(ValueError, f"num_threads: expected a positive integer, got {threads}", attn, q, k, v, cu, num_threads=threads)
for threads in (True, 1.0, "1"):
    raises(TypeError, "num_threads: expected a positive integer", attn, q, k, v, cu, num_threads=threads)
raises(ValueError, "each from -1, which is open, to 2^63 - 1, got (9223372036854775808, 0)",
       attn, q, k, v, cu, window=(2**63, 0))  # fmt: skip
raises(ValueError, "scale: expected a positive, finite number, got 1000000", attn, q, k, v, cu, scale=10**400)
raises(ValueError, "alignment: expected", attn, q, k, v, cu, alignment=["top_left"])
for flag in ("no", None, [], np.ones(2, bool), np.array("no"), np.array(0.5), np.array(True, object)):
    raises(TypeError, "is_causal: expected a bool, got", attn, q, k, v, cu, is_causal=flag)
for flag in (np.True_, np.array(1, "u1")):
    assert np.array_equal(attn(q, k, v, cu, is_causal=flag), attn(q, k, v, cu, is_causal=True))
for captures in (np.ones(4, "f4"), "ab", {}):
    raises(TypeError, "captures: expected a sequence of arrays, got", attn, q, k, v, cu, captures=captures)

# Where results go.
out = zeros(10, 4, 16)
raises(ValueError, "out: expected memory that no other tensor of the call has, got some of q",
       attn, q, k, v, cu, out=q)  # fmt: skip
qkv = zeros(10, 8, 16)
raises(ValueError, "got some of k", attn, qkv[:, :4], qkv[:, 4:6], qkv[:, 6:], cu, out=qkv[:, 4:])
raises(ValueError, "out: expected extent 0 to be 10", attn, q, k, v, cu, out=out[:9])
raises(ValueError, "out: expected elements", attn, q, k, v, cu, out=out.astype("f8"))
raises(TypeError, "out: expected an array with __dlpack__", attn, q, k, v, cu, out=[])
out.flags.writeable = False
raises(ValueError, "out: expected an array that can be written, got a read-only one", attn, q, k, v, cu, out=out)


class OnDevice:
    """An array as a library for CUDA shows it."""

    dtype, shape = q.dtype, q.shape

    def __dlpack_device__(self):
        return 2, 1

    def __dlpack__(self, **options):
        raise AssertionError("the array was asked for its memory")


raises(TypeError, "q: expected an array on a CUDA device of torch, cupy or a library that follows "
       "the array API, got OnDevice", attn, OnDevice(), k, v, cu)  # fmt: skip
raises(ValueError, "k: expected an array in memory of the CPU, got one on device 1 (CUDA)",
       attn, q, OnDevice(), v, cu)  # fmt: skip

# Gradients.
out, lse = attn(q, k, v, cu, return_lse=True)
grad = varlen.attn_grad
grad(out, q, k, v, out, lse, cu)
raises(ValueError, "dout", grad, out[:, :2], q, k, v, out, lse, cu)
raises(ValueError, "lse: expected an array of rank 2 (heads, rows), got shape (4,)",
       grad, out, q, k, v, out, lse[:, 0], cu)  # fmt: skip
raises(TypeError, "lse: expected elements of f32, f64, got f16", grad, out, q, k, v, out, lse.astype("f2"), cu)
raises(TypeError, "dout: expected an array with __dlpack__", grad, None, q, k, v, out, lse, cu)
