# RUN: %python %s
"""What varlen_attn refuses, and how it says so."""

import concurrent.futures
import functools
import sys

from Inputs.device import IS_CUDA

import jax
import numpy as np
import varlen
from checks import cumulate, normal, raises
from jax import numpy as jnp

from varlen.jax import check, varlen_attn

rng = np.random.default_rng(0)
cu = cumulate(4, 9)
q, k, v = (normal(rng, "f32", 13, 4, 16) for _ in range(3))


def refused(kind, words, *arguments, **options):
    """At once, and where it is traced."""
    arguments = (*arguments, *(q, k, v, cu)[len(arguments) :])
    raises(kind, words, varlen_attn, *arguments, **options)
    traced = jax.jit(lambda *x: varlen_attn(*x, **options))
    raises(kind, words, traced, *arguments)


# Arrays.
refused(ValueError, "q: expected an array of rank 3", q[0])
refused(ValueError, "cu_seqlens_q: expected an array of rank 1", q, k, v, cu[None])
refused(TypeError, "k: expected elements of f16, bf16, f32, f64, i8, f8E4M3FN, got i1", q, k > 0)
refused(TypeError, "v: expected elements of float16, ", q, k, v.astype(np.complex64))
refused(TypeError, "q: expected elements of f16, bf16, f32, f64, got i32", *[q.astype(int)] * 3)
refused(TypeError, "cu_seqlens_q: expected elements of i32, i64, got f32", q, k, v, cu.astype("f"))
refused(ValueError, "expected q, k and v of one element type", q, k.astype(jnp.bfloat16))
refused(ValueError, "expected k and v to have the same number of heads, got 4 and 2", q, k, v[:, :2])
refused(ValueError, "a multiple of kv heads, got 4 and 3", q, k[:, :3], v[:, :3])
refused(ValueError, "the same head_dim, got 16 and 8", q, k[..., :8])
refused(ValueError, "each of the 4 query heads, got 3", sink=np.zeros(3, np.float32))
refused(TypeError, "sink: expected elements of f32, f64, got f16", sink=np.zeros(4, np.float16))
refused(ValueError, "seqused_k: expected an array of rank 1", seqused_k=np.zeros((1, 2), np.int32))
refused(ValueError, "v has 12 rows: expected 13, as many as k", q, k, v[:12])
refused(
    ValueError, "cu_seqlens_q has 3 entries and cu_seqlens_k 4",
    cu_seqlens_k=cumulate(4, 0, 9),
)  # fmt: skip
refused(ValueError, "seqused_q has 3 entries: expected 2", seqused_q=np.zeros(3, np.int32))

# Options.
refused(ValueError, "scale: expected a positive, finite number, got -1.0", scale=-1.0)
refused(ValueError, "scale: expected a positive, finite number, got nan", scale=float("nan"))
raises(TypeError, "scale: expected a Python number", varlen_attn, q, k, v, cu, scale=jnp.ones(()))
refused(ValueError, "window: expected two integers", window=(1, 2, 3))
refused(ValueError, "expected window or chunk, got both", window=(3, 0), chunk=4)
refused(ValueError, "expected one of is_causal, window and chunk", is_causal=True, chunk=4)
refused(ValueError, "alignment: expected", alignment="left")
for wrong in ((True, 0), (3.0, 0), ("3", 0), 3, (-2, 0)):
    refused(ValueError, "window: expected two integers", window=wrong)
for wrong in (True, 0, 2.0, "2"):
    refused(ValueError, "chunk: expected an integer from 1 to 268435456", chunk=wrong)
for wrong in (True, "x", np.array([0.5])):
    refused(ValueError, "scale: expected a positive, finite number", scale=wrong)
refused(ValueError, "expected one of is_causal, window and chunk", is_causal=True, window=(3, 3))
refused(TypeError, "score: expected None or a varlen.scores.Score", score="alibi")
for wrong in (None, np.ones(4, np.float32), "ab"):
    refused(TypeError, "captures: expected a sequence of arrays", captures=wrong)
refused(TypeError, "is_causal: expected a bool, got 'no'", is_causal="no")
for wrong in ({}, object(), "x"):
    raises(TypeError, "sink: expected an array, or what jax.numpy", varlen_attn, q, k, v, cu, sink=wrong)
    raises(TypeError, "k: expected an array, or what jax.numpy", varlen_attn, q, wrong, v, cu)
raises(TypeError, "v: expected an array, or what jax.numpy.asarray makes one of, got None", varlen_attn, q, k, None, cu)
# Numbers of numpy are numbers.
numbers = {"window": (np.int64(3), np.int32(0)), "scale": np.float32(0.5)}
assert np.array_equal(varlen_attn(q, k, v, cu, **numbers), varlen_attn(q, k, v, cu, window=(3, 0), scale=0.5))

# Functions of arrays that have values say where the others are.
raises(ValueError, "q: expected an array with values, got one that jax traces: use varlen.jax",
       jax.jit(lambda q: varlen.attn(q, k, v, cu)), q)  # fmt: skip


# What is known when it runs, with and without jit. No call waits for the kernels of a GPU:
# results are NaN, and what is wrong is told on demand, once.
def run_fails(words, function, *arguments):
    if IS_CUDA:
        assert np.isnan(function(*arguments)).all()
        raises(ValueError, words.removeprefix("INVALID_ARGUMENT: "), check)
    else:
        raises(
            jax.errors.JaxRuntimeError, words,
            lambda: jax.block_until_ready(function(*arguments)),
        )  # fmt: skip


def fails(words, *arguments):
    arguments = (*arguments, *(q, k, v, cu)[len(arguments) :])
    for function in (varlen_attn, jax.jit(varlen_attn)):
        run_fails(words, function, *arguments)


fails("INVALID_ARGUMENT: cu_seqlens_q[0] = 1: cu_seqlens must start at 0", q, k, v, cu + 1)
fails("cu_seqlens_q[2] = 14", q, k, v, cumulate(4, 10))
fails("must not decrease", q, k, v, cumulate(4, -1, 10))
gradient = jax.jit(jax.grad(lambda q, cu: varlen_attn(q, k, v, cu).sum()))
run_fails("cu_seqlens_q[2] = 14", gradient, q, cumulate(4, 10))

# After an error all goes on, and in other threads meanwhile.
wanted = varlen_attn(q, k, v, cu)
attend = jax.jit(varlen_attn)


def call(i):
    try:
        return np.asarray(attend(q, k, v, cu if i % 3 else cumulate(4, 10)))
    except jax.errors.JaxRuntimeError as error:
        return str(error)


with concurrent.futures.ThreadPoolExecutor(8) as pool:
    for i, result in enumerate(pool.map(call, range(200))):
        if IS_CUDA:
            # A launch may tell what is wrong with an earlier one.
            told = isinstance(result, str) and "an earlier launch: cu_seqlens_q[2] = 14" in result
            assert told or np.array_equal(result, wanted if i % 3 else wanted * np.nan, equal_nan=True)
        elif i % 3:
            assert np.array_equal(result, wanted)
        else:
            assert "cu_seqlens_q[2] = 14" in result, result


# The handler itself: attributes and operands that do not fit are errors too.
def handle(*arrays, **attributes):
    results = [jax.ShapeDtypeStruct((13, 4, 16), np.float32), jax.ShapeDtypeStruct((4, 13), np.float32)]
    return jax.jit(lambda *x: jax.ffi.ffi_call("varlen.attn", results)(*x, **attributes))(*arrays)


source = """
func.func @twice(%x: tensor<?xi32>) -> tensor<?xi32> {
  %two = arith.constant dense<2> : tensor<1xi32>
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?xi32>
  %empty = tensor.empty(%n) : tensor<?xi32>
  %y = linalg.map { arith.addi } ins(%x, %x : tensor<?xi32>, tensor<?xi32>) outs(%empty : tensor<?xi32>)
  return %y : tensor<?xi32>
}
"""
error = jax.errors.JaxRuntimeError
if IS_CUDA:
    raises(error, "expected an attribute `source` that is a string", handle, q, k, v, cu, cu)
    raises(error, "expected an attribute `chip` that is a string", handle, q, source=source)
    raises(error, "expected non-function type", handle, q, source="func.func @f(", chip="sm_80")
    sys.exit()
raises(error, "expected an attribute `source` that is a string", handle, q, k, v, cu, cu)
raises(error, "expected an attribute `source` that is a string", handle, q, source=1)
raises(error, "expected non-function type", handle, q, source="func.func @f(")
raises(error, "expected 1 arguments, got 2", handle, cu, cu, source=source)
raises(error, "expected 1 results, got 2", handle, cu, source=source)
twice = jax.ffi.ffi_call("varlen.attn", jax.ShapeDtypeStruct((3,), np.int32))
twice = jax.jit(functools.partial(twice, source=source))
assert np.array_equal(twice(cu), 2 * cu)
raises(error, "arg0: expected elements of", twice, cu.astype(np.float32))
raises(error, "arg0: expected elements of", twice, cu.astype(np.complex64))
raises(error, "result0: expected extent 0 to be 2", twice, cu[:2])
