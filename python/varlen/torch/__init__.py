"""Packed attention for PyTorch, on the CPU, forward and backward.

    from varlen.torch import varlen_attn

    out = varlen_attn(q, k, v, cu_seq, cu_seq, window_size=(-1, 0))

or, for programs that call torch.nn.attention.varlen already:

    varlen.torch.install()
    torch.nn.attention.activate_flash_attention_impl("VARLEN")

Kernels are compiled by libvarlen-c at the first call of each kind, in about 0.3 s;
other lengths compile nothing. docs/pytorch.md says more.
"""

import importlib

from ._append import append
from ._flash_attn import flash_attn_varlen_func
from ._flash_attn_cache import flash_attn_with_kvcache
from ._flash_attn_dense import (
    flash_attn_func,
    flash_attn_kvpacked_func,
    flash_attn_qkvpacked_func,
    flash_attn_varlen_kvpacked_func,
    flash_attn_varlen_qkvpacked_func,
    pad_input,
    unpad_input,
)
from ._functions import varlen_attn, varlen_attn_out
from ._provider import install
from ._reports import check

__all__ = [
    "AuxRequest",
    "append",
    "check",
    "context_parallel",
    "flash_attn_func",
    "flash_attn_kvpacked_func",
    "flash_attn_qkvpacked_func",
    "flash_attn_varlen_func",
    "flash_attn_varlen_kvpacked_func",
    "flash_attn_varlen_qkvpacked_func",
    "flash_attn_with_kvcache",
    "install",
    "pad_input",
    "shard_rows",
    "unpad_input",
    "unshard_rows",
    "varlen_attn",
    "varlen_attn_out",
]


_OF_GROUPS = ("context_parallel", "shard_rows", "unshard_rows")


def __getattr__(name):
    # torch.distributed takes long to import.
    if name in _OF_GROUPS:
        value = getattr(importlib.import_module("._context_parallel", __name__), name)
        globals()[name] = value
        return value
    # PyTorch's own, which takes a second to import.
    if name == "AuxRequest":
        from torch.nn.attention.varlen import AuxRequest

        return AuxRequest
    raise AttributeError(f"module 'varlen.torch' has no attribute {name!r}")
