# RUN: env VARLEN_CACHE_DIR= %python %s
"""Attention in programs for CUDA devices, as they are lowered: no such device is needed.
What their custom calls do, cuda-handler.py has."""

import os
import re
import types

os.environ["VARLEN_TEST_DEVICE"] = "cpu"
import Inputs.device  # noqa: F401
import jax
import numpy as np
from checks import raises
from jax import export
from jax import numpy as jnp

from varlen import _launcher
from varlen.jax import _ffi, check, varlen_attn

cu = jnp.array([0, 5, 5, 12])
q, k, v = jax.random.normal(jax.random.key(0), (3, 12, 8, 64), jnp.bfloat16)


def loss(q, k, v, cu):
    out, lse = varlen_attn(q, k, v, cu, is_causal=True, return_lse=True)
    return (out.astype(jnp.float32) ** 2).sum() + jax.nn.sigmoid(lse).sum()


def lower(function, *arguments, platform="cuda"):
    """The text of the program for a platform."""
    traced = jax.jit(function).trace(*arguments)
    return traced.lower(lowering_platforms=(platform,)).as_text()


step = jax.value_and_grad(loss, (0, 1, 2))
# Without a CUDA device there is no chip to compile for.
assert _ffi.find_target() is None
check()
raises(NotImplementedError, "expected a CUDA device of JAX", lower, step, q, k, v, cu)
raises(
    NotImplementedError, "expected CPUs or CUDA devices, got a program for tpu",
    lower, step, q, k, v, cu, platform="tpu",
)  # fmt: skip
wanted, plain = jax.jit(step)(q, k, v, cu), varlen_attn(q, k, v, cu)
batch = jax.vmap(loss, (0, None, None, None))(jnp.stack([q, 2 * q]), k, v, cu)

# Kernels are for all devices: the instructions of one GPU alone only where there are no others.
devices = jax.devices


def pretend(*capabilities):
    """From here on as if JAX had CUDA devices of these compute capabilities."""
    gpus = [types.SimpleNamespace(platform="gpu", compute_capability=x) for x in capabilities]
    jax.devices = lambda kind=None: gpus if kind == "cuda" else devices(kind)
    jax.clear_caches()


# A driver of CUDA 12.4, so PTX of that time.
_launcher.find_target = lambda device: _launcher.Target("sm_80", 84)
for capabilities, chip in (
    (["8.0"], "sm_80"), (["9.0", "9.0"], "sm_90a"), (["12.0"], "sm_120a"),
    (["9.0", "8.6"], "sm_86"), (["10.0", "9.0", "9.0"], "sm_90"),
):  # fmt: skip
    pretend(*capabilities)
    assert _ffi.find_target() == _launcher.Target(chip, 84), (capabilities, _ffi.find_target())
pretend(None)
raises(RuntimeError, "expected the compute capability of", _ffi.find_target)

pretend("8.0")
compiled = []
launcher = _launcher.Launcher


def compile_one(source, chip, **options):
    compiled.append((chip, options))
    return launcher(source, chip, **options)


_launcher.Launcher = compile_one
lowered = lower(step, q, k, v, cu)
calls = re.findall(r"custom_call @(varlen\.\w+)\(.*", lowered)
assert sorted(calls) == ["varlen.attn", "varlen.attn_grad"], calls
for line in re.findall(r".*custom_call @varlen.*", lowered):
    assert 'chip = "sm_80"' in line, line
    # The workspace is the last result.
    assert re.search(r"-> \(.*, tensor<\d+xui8>\)$", line), line
# Kernels are compiled once, whatever the lengths and the number of rows.
assert compiled == [("sm_80", {"strided": False, "ptx": 84, "image": "ptx"})] * 2, compiled
jax.clear_caches()
lower(step, *(x[:9] for x in (q, k, v)), cu[:2])
assert len(compiled) == 2, compiled

# Tangents have kernels, too, of values and tangents together.
lowered = lower(lambda q: jax.jvp(lambda q: varlen_attn(q, k, v, cu), (q,), (q,)), q)
(call,) = re.findall(r"custom_call @varlen\.(\w+)\(", lowered)
assert call == "attn_jvp", call

# So have second derivatives.
gradient = jax.grad(lambda q: loss(q, k, v, cu))
lowered = lower(lambda q: jax.jvp(gradient, (q,), (q,)), q)
calls = re.findall(r"custom_call @varlen\.(\w+)\(", lowered)
assert sorted(calls) == ["attn_grad", "attn_jvp", "attn_jvp_grad"], calls

# Keys in pages, and quantised ones.
pages, scale = jnp.zeros((4, 16, 2, 64), jnp.int8), jnp.ones((4, 16, 2))
lists = cu[:3], jnp.ones(2, jnp.int32), jnp.zeros((2, 3), jnp.int32)
lowered = lower(
    lambda q, k, v, scale, cu, used, table: varlen_attn(
        q, k, v, cu, seqused_k=used, block_table=table, k_scale=scale, v_scale=scale[0, 0]
    ), q, pages, pages, scale, *lists,
)  # fmt: skip
(call,) = re.findall(r".*custom_call @varlen.attn\(.*", lowered)
assert 'operands = "seqused_k,block_table,k_scale,v_scale"' in call, call
assert 'chip = "sm_80"' in call and re.search(r"-> \(.*, tensor<\d+xui8>\)$", call), call

# Programs for the CPU stay as they are: they have no workspace, and run.
lowered = jax.jit(step).lower(q, k, v, cu).as_text()
assert "varlen.attn" in lowered and "xui8" not in lowered and "chip" not in lowered
got = jax.jit(step)(q, k, v, cu)
for a, b in zip(jax.tree.leaves(wanted), jax.tree.leaves(got), strict=True):
    assert np.array_equal(a, b)
assert np.array_equal(batch, jax.vmap(loss, (0, None, None, None))(jnp.stack([q, 2 * q]), k, v, cu))

# What is wrong is an error where it is traced, and what has no kernels for a GPU where it is
# lowered for one; on the CPU that works.
raises(ValueError, "the same head_dim, got 64 and 32", jax.make_jaxpr(varlen_attn), q, k[..., :32], v, cu)


def refused(kind, words, *arguments, **options):
    def attend(*arguments):
        return varlen_attn(*arguments, **options)

    jax.make_jaxpr(attend)(*arguments)
    raises(kind, words, lower, attend, *arguments)


(rows,) = export.symbolic_shape("rows")
like = jax.ShapeDtypeStruct((rows, 8, 64), jnp.float32)
refused(NotImplementedError, "expected static shapes on CUDA devices", like, like, like, cu)
with jax.enable_x64():
    wide = jnp.ones((12, 8, 64))
    refused(TypeError, "q: expected elements of f16, bf16, f32 on a CUDA device, got f64", *[wide] * 3, cu)
    assert np.array_equal(varlen_attn(wide, wide, wide, cu), wide)
wide = jnp.ones((12, 2, 512), jnp.bfloat16)
refused(NotImplementedError, "no tiles for head_dim 512", *[wide] * 3, cu)
pretend("7.5")
refused(ValueError, "sm_75", q, k, v, cu)
assert np.array_equal(varlen_attn(q, k, v, cu), plain)
