"""The operators on tensors without data: what torch.compile and the meta device run."""

import torch

from ._checks import check
from ._operators import (
    attn, attn_backward, attn_jvp, attn_jvp_backward, attn_out, library, name_arguments,
)  # fmt: skip
from ._results import new_gradients, new_lse, new_results


@torch.library.register_fake("varlen::attn", lib=library)
def attn_fake(*arguments, **options):
    named = name_arguments(attn, arguments, options)
    check(named)
    return new_results(named["q"], named["v"])


@torch.library.register_fake("varlen::attn_out", lib=library)
def attn_out_fake(*arguments, **options):
    named = name_arguments(attn_out, arguments, options)
    check(named)
    return new_lse(named["q"])


@torch.library.register_fake("varlen::attn_backward", lib=library)
def attn_backward_fake(*arguments, **options):
    named = name_arguments(attn_backward, arguments, options)
    check(named)
    return new_gradients(*(named[name] for name in ("q", "k", "v", "sink", "captures")))


@torch.library.register_fake("varlen::attn_jvp", lib=library)
def attn_jvp_fake(*arguments, **options):
    named = name_arguments(attn_jvp, arguments, options)
    check(named)
    q, v = named["q"], named["v"]
    return *new_results(q, v), *new_results(q, v)


@torch.library.register_fake("varlen::attn_jvp_backward", lib=library)
def attn_jvp_backward_fake(*arguments, **options):
    named = name_arguments(attn_jvp_backward, arguments, options)
    check(named)
    return new_gradients(*(named[name] for name in ("q", "k", "v", "sink", "captures")))
