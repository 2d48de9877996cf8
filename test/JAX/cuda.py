# RUN: %python %s
"""Attention in programs for CUDA devices, as they are lowered: no such device is needed.
What their custom calls do, cuda-handler.py has."""

import re

import jax
import numpy as np
from jax import export
from jax import numpy as jnp

from varlen.jax import _ffi, varlen_attn

cu = jnp.array([0, 5, 5, 12])
q, k, v = jax.random.normal(jax.random.key(0), (3, 12, 8, 64), jnp.bfloat16)


def loss(q, k, v, cu):
    out, lse = varlen_attn(q, k, v, cu, is_causal=True, return_lse=True)
    return (out.astype(jnp.float32) ** 2).sum() + jax.nn.sigmoid(lse).sum()


step = jax.value_and_grad(loss, (0, 1, 2))
wanted, plain = jax.jit(step)(q, k, v, cu), varlen_attn(q, k, v, cu)
batch = jax.vmap(loss, (0, None, None, None))(jnp.stack([q, 2 * q]), k, v, cu)

# From here on as if the first device were an A100.
_ffi._find_chip = lambda: "sm_80"
jax.clear_caches()
lowered = jax.jit(step).trace(q, k, v, cu).lower(lowering_platforms=("cuda",)).as_text()
calls = re.findall(r"custom_call @(varlen\.\w+)\(.*", lowered)
assert sorted(calls) == ["varlen.attn", "varlen.attn_grad"], calls
for line in re.findall(r".*custom_call @varlen.*", lowered):
    assert 'chip = "sm_80"' in line, line
    # The workspace is the last result.
    assert re.search(r"-> \(.*, tensor<\d+xui8>\)$", line), line

# Programs for the CPU stay as they are: they have no workspace, and run.
lowered = jax.jit(step).lower(q, k, v, cu).as_text()
assert "varlen.attn" in lowered and "xui8" not in lowered and "chip" not in lowered
got = jax.jit(step)(q, k, v, cu)
for a, b in zip(jax.tree.leaves(wanted), jax.tree.leaves(got), strict=True):
    assert np.array_equal(a, b)
assert np.array_equal(batch, jax.vmap(loss, (0, None, None, None))(jnp.stack([q, 2 * q]), k, v, cu))

# What has no kernels, or no size of a workspace, is an error where it would run there, and
# works on the CPU.
def workspaces(function, *arguments):
    lowered = function.trace(*arguments).lower(lowering_platforms=("cuda",)).as_text()
    return re.findall(r"tensor<(\d+)xui8>\)\n", lowered)


(rows,) = export.symbolic_shape("rows")
like = jax.ShapeDtypeStruct((rows, 8, 64), jnp.float32)
assert workspaces(jax.jit(varlen_attn), like, like, like, cu) == ["0"]
_ffi._find_chip = lambda: "sm_75"
jax.clear_caches()
assert workspaces(jax.jit(varlen_attn), q, k, v, cu) == ["0"]
assert np.array_equal(varlen_attn(q, k, v, cu), plain)
