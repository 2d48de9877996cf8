# RUN: rm -rf %t && %python %s %t && %python %s %t
"""What JAX has compiled and kept on disk works in the next process."""

import pathlib
import sys

import jax
import numpy as np
import varlen
from checks import cumulate, normal

from varlen.jax import varlen_attn

folder = pathlib.Path(sys.argv[1])
is_second = folder.exists()
jax.config.update("jax_compilation_cache_dir", str(folder))
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
hits = []
jax.monitoring.register_event_listener(
    lambda event, **_: hits.append(event) if event.endswith("cache_hits") else None
)


@jax.jit
def gradient(q, cu):
    return jax.grad(lambda q: varlen_attn(q, q, q, cu, is_causal=True).sum())(q)


q, cu = normal(np.random.default_rng(0), "f32", 18, 2, 16), cumulate(5, 13)
got = gradient(q, cu)
assert bool(hits) == is_second, hits
out, lse = varlen.attn(q, q, q, cu, is_causal=True, return_lse=True)
parts = varlen.attn_grad(np.ones_like(out), q, q, q, out, lse, cu, is_causal=True)
np.testing.assert_allclose(got, sum(parts), rtol=1e-6, atol=1e-6)
