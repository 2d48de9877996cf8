# References are compiled for one use each.
# RUN: %around-code JAX_DISABLE_MOST_OPTIMIZATIONS=1 %python %s
# REQUIRES: jax
# UNSUPPORTED: asan
"""What jaxlib lowers to linalg, beside JAX."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "Inputs"))
import corpus
import corpus_jax

# What jaxlib's pass leaves as it is.
REFUSED = {
    **dict.fromkeys(("empty", "empty_mean", "vmap"), "'stablehlo.reduce'"),
    **dict.fromkeys(("newton", "recurrence"), "'stablehlo.while'"),
    # In the generic form, of which upstream's parser says no more.
    **dict.fromkeys(
        ("argsort", "branch", "scatter_add", "segment_sum", "set", "sort", "top_k"),
        "an unregistered dialect",
    ),
}
REFUSED_GRADIENTS = {
    **dict.fromkeys(
        ("all", "any", "argmax", "argmin", "cast", "count", "greater", "isfinite", "logical"),
        "has no result of floats",
    ),
    **dict.fromkeys(("bitwise", "floor_divide", "integer_sum"), "has no argument of floats"),
    **dict.fromkeys(("cumprod", "prod"), "to be elementwise, or a sum, a maximum or a minimum"),
}

corpus.check(
    corpus_jax.CASES, corpus_jax.lower, corpus_jax.evaluate, REFUSED, REFUSED_GRADIENTS
)
