"""The operators under torch.autocast: casts are those of scaled_dot_product_attention."""

import torch
from torch._C import DispatchKey

from ._operators import attn, library

_CAST = (torch.float32, torch.float16, torch.bfloat16)


def cast(device, *tensors):
    """Tensors as autocast has them on devices of that type, where it is enabled."""
    dtype = torch.get_autocast_dtype(device)
    return [x.to(dtype) if x.dtype in _CAST else x for x in tensors]


def _attn_autocast(device, key):
    without = torch._C.DispatchKeySet(key)

    def attend(q, k, v, *arguments):
        q, k, v = cast(device, q, k, v)
        with torch._C._ExcludeDispatchKeyGuard(without):
            return attn(q, k, v, *arguments)

    return attend


library.impl("attn", _attn_autocast("cpu", DispatchKey.AutocastCPU), "AutocastCPU")
library.impl("attn", _attn_autocast("cuda", DispatchKey.AutocastCUDA), "AutocastCUDA")
