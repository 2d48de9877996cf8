"""The operators torch.ops.varlen.attn, attn_out and attn_backward, with all their kernels."""

import functools
import importlib

from . import _autocast as _autocast
from . import _autograd as _autograd
from . import _cuda as _cuda
from . import _vmap as _vmap
from ._cpu import attn_backward_cpu, attn_cpu, attn_out_cpu
from ._fake import attn_fake, attn_out_fake
from ._operators import attn, attn_backward, attn_out
from ._when_imported import when_imported

__all__ = [
    "attn",
    "attn_backward",
    "attn_backward_cpu",
    "attn_cpu",
    "attn_fake",
    "attn_out",
    "attn_out_cpu",
    "attn_out_fake",
]

# What these modules register something with takes long to import.
for _name, _ours in (
    ("torch.utils.flop_counter", "_flops"), ("torch.distributed.tensor", "_sharding")
):  # fmt: skip
    when_imported(_name, functools.partial(importlib.import_module, f"{__package__}.{_ours}"))
