# RUN: %python %s
"""What JAX has compiled and kept on disk works in the next process."""

import subprocess
import sys
import tempfile

import Inputs.device
import jax
import numpy as np
import varlen
from checks import cumulate, normal

from varlen.jax import varlen_attn


def run(folder, is_second):
    jax.config.update("jax_compilation_cache_dir", folder)
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
    np.testing.assert_allclose(got, sum(parts), rtol=1e-5, atol=1e-5)


if len(sys.argv) > 1:
    run(sys.argv[1], is_second=True)
else:
    with tempfile.TemporaryDirectory() as folder:
        run(folder, is_second=False)
        subprocess.run([sys.executable, __file__, folder], check=True)
