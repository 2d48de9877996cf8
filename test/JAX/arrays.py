# RUN: %python %s
"""varlen.attn, its gradients and functions of varlen.compile take arrays of jax and
return such arrays, which they never write to."""

from Inputs.device import IS_CUDA

import jax
import numpy as np
import varlen
from checks import NUMPY_TYPES, check_attn, check_gradients, cumulate, normal, raises
from jax import numpy as jnp

jax.config.update("jax_enable_x64", True)
if IS_CUDA:
    # There they are for varlen.jax; those of the CPU are what they are without a GPU.
    x, offsets = jnp.ones((3, 2, 16)), jnp.array([0, 3])
    raises(ValueError, "stream: expected the handle of a CUDA stream", varlen.attn, x, x, x, offsets)
    jax.config.update("jax_default_device", jax.devices("cpu")[0])
rng = np.random.default_rng(4)
cu = cumulate(5, 0, 17, 3)
for element, index in zip(NUMPY_TYPES, (np.int32, np.int64) * 2):
    q, k, v = (normal(rng, element, 25, n, d) for n, d in ((4, 16), (2, 16), (2, 24)))
    sink = rng.standard_normal(4).astype(np.float64 if element == "f64" else np.float32)
    options = {"is_causal": True, "sink": sink}
    arrays = [jnp.asarray(x) for x in (q, k, v, cu.astype(index))]
    on_jax = {**options, "sink": jnp.asarray(sink)}
    out, lse = varlen.attn(*arrays, return_lse=True, **on_jax)
    assert isinstance(out, jax.Array) and isinstance(lse, jax.Array)
    assert out.dtype == arrays[0].dtype and lse.dtype == sink.dtype
    check_attn(element, np.asarray(out), np.asarray(lse), q, k, v, cu, cu, **options)
    dout, dlse = normal(rng, element, *out.shape), rng.standard_normal(lse.shape).astype(lse.dtype)
    gradients = varlen.attn_grad(
        jnp.asarray(dout), *arrays[:3], out, lse, arrays[3], dlse=jnp.asarray(dlse), **on_jax
    )
    assert all(isinstance(x, jax.Array) for x in gradients)
    check_gradients(
        element, list(map(np.asarray, gradients)), dout, dlse, q, k, v, cu, cu, **options
    )
    # Results are of q's library, whatever the others are of, and of the same bits.
    mixed = varlen.attn(q, arrays[1], v, arrays[3], is_causal=True, sink=sink)
    assert type(mixed) is np.ndarray and np.array_equal(mixed, out)
    mixed = varlen.attn(arrays[0], k, arrays[2], cu.astype(index), **options)
    assert isinstance(mixed, jax.Array) and jnp.array_equal(mixed, out)

# What is computed goes on in jax, also compiled.
assert jnp.isfinite(jax.jit(lambda x: (x * 2).sum())(out))

# They do not change, so none is written to.
q, k, v = (jnp.asarray(normal(rng, "f32", 25, 2, 16)) for _ in range(3))
raises(
    ValueError, "out: expected an array that can be written, got ArrayImpl",
    varlen.attn, q, k, v, cu, out=jnp.zeros_like(q),
)  # fmt: skip
given = np.empty((25, 2, 16), np.float32)
assert varlen.attn(q, k, v, cu, out=given) is given
assert np.array_equal(given, varlen.attn(q, k, v, cu))
raises(ValueError, "expected q and k to have the same head_dim, got 16 and 8", varlen.attn, q, k[..., :8], v, cu)
raises(TypeError, "q: expected elements of f16, bf16", varlen.attn, q.astype(int), k, v, cu)

program = varlen.compile("func.func @f(%x: tensor<?xbf16>) -> tensor<?xbf16> { return %x : tensor<?xbf16> }")
x = jnp.ones(3, jnp.bfloat16)
result = program(x)
assert isinstance(result, jax.Array) and result.dtype == x.dtype and jnp.array_equal(result, x)
