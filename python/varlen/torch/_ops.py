"""The operators torch.ops.varlen.attn, attn_out and of derivatives, with all their kernels."""

import functools
import importlib

from . import _autocast as _autocast
from . import _autograd as _autograd
from . import _vmap as _vmap
from ._device import attn_backward_on_device, attn_on_device, attn_out_on_device
from ._fake import attn_fake, attn_out_fake
from ._operators import attn, attn_backward, attn_out
from ._when_imported import when_imported

__all__ = [
    "attn",
    "attn_backward",
    "attn_backward_on_device",
    "attn_fake",
    "attn_on_device",
    "attn_out",
    "attn_out_fake",
    "attn_out_on_device",
]

# What these modules register something with takes long to import.
for _name, _ours in (
    ("torch.utils.flop_counter", "_flops"), ("torch.distributed.tensor", "_sharding")
):  # fmt: skip
    when_imported(_name, functools.partial(importlib.import_module, f"{__package__}.{_ours}"))
