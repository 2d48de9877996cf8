"""Packed attention for JAX, with its derivatives.

    from varlen.jax import varlen_attn

    out = varlen_attn(q, k, v, cu_seqlens, is_causal=True)

under jit, grad, jvp, vmap and shard_map, and on arrays that are sharded over heads. Kernels
are compiled when a function is traced for the first time with some dtypes, heads,
head_dims and mask; other lengths compile nothing. docs/jax.md says more.
"""

from ._attention import varlen_attn
from ._context_parallel import Shards, Sizes, context_parallel, shard_plan, shard_rows
from ._ffi import check

__all__ = [
    "Shards",
    "Sizes",
    "check",
    "context_parallel",
    "shard_plan",
    "shard_rows",
    "varlen_attn",
]
