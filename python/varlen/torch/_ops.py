"""The operators torch.ops.varlen.attn, attn_out and attn_backward, with all their kernels."""

from . import _autocast as _autocast
from . import _autograd as _autograd
from . import _cuda as _cuda
from . import _flops as _flops
from . import _sharding as _sharding
from . import _vmap as _vmap
from ._cpu import attn_backward_cpu, attn_cpu, attn_out_cpu
from ._fake import attn_fake, attn_out_fake
from ._operators import attn, attn_backward, attn_out

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
