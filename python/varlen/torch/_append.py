"""append: keys and values of new tokens into a cache, as an operator that mutates its caches."""

from __future__ import annotations

import functools

import torch

from .. import text
from .._arrays import refuse_negative_view
from .._extents import find_append_rules
from .._options import as_flag
from ._functions import check_dense
from ._kernels import NAMES, OnCPU
from ._operators import append as append_op
from ._operators import library, name_arguments
from ._quantised import QUANTISED

_FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
_INTEGERS = (torch.int32, torch.int64)
_ELEMENTS = NAMES | QUANTISED
# The ranks of operands, in the order of the kernel's arguments.
_RANKS = {
    "k": 3, "v": 3, "cu_seqlens": 1, "seqused_k": 1, "block_table": 2, "cos": 2, "sin": 2,
    "k_cache": 4, "v_cache": 4, "k_scale": 3, "v_scale": 3,
}  # fmt: skip


def append(
    k_cache: torch.Tensor,
    v_cache: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    cu_seqlens: torch.Tensor,
    seqused_k: torch.Tensor,
    *,
    block_table: torch.Tensor | None = None,
    cos: torch.Tensor | None = None,
    sin: torch.Tensor | None = None,
    interleaved: bool = False,
    k_scale: torch.Tensor | None = None,
    v_scale: torch.Tensor | None = None,
) -> None:
    """Writes keys and values of new tokens into a cache, behind those that it has.

    Row cu_seqlens[s] + i of k and v is that of position p = seqused_k[s] + i of sequence s, and
    becomes row p % page of page block_table[s, p // page]. No other row of the cache changes.
    Tensors are on the CPU, or all on one CUDA device. There no call waits: what is wrong in lists
    and in the table, after which nothing is written, is raised by a later call, or by `check`.

    Args:
        k_cache, v_cache: (P, page, Hkv, D) and (P, page, Hkv, Dv), of float16, bfloat16, float32 or
            float64, or with scales of int8 or float8_e4m3fn. The last stride is 1, others may be
            anything.
        k, v: (T, Hkv, D) and (T, Hkv, Dv), of k_cache's dtype; beside scales of any but float64.
        cu_seqlens: (N + 1,), int32 or int64: the first new row of each sequence, and the end of
            the last one.
        seqused_k: (N,), the dtype of cu_seqlens: how many keys each sequence has in the
            cache, without the new ones.
        block_table: (N, pages), int32; None: page s is that of sequence s.
        cos, sin: (positions, R), of a float type: turn the first 2R numbers of each head of k on
            the way, in pairs by the angle of their position.
        interleaved: numbers 2j and 2j + 1 are a pair, else j and j + R.
        k_scale, v_scale: (P, page, Hkv), float32, of quantised caches: what the numbers of a row of
            a head are multiplied by is written to these.

    Raises:
        TypeError, ValueError: what does not go together, is out of range, or would be written
            twice. Then nothing has been written.
        NotImplementedError: a gradient.
    """
    named = {
        "k_cache": k_cache, "v_cache": v_cache, "k": k, "v": v, "cu_seqlens": cu_seqlens,
        "seqused_k": seqused_k, "block_table": block_table, "cos": cos, "sin": sin,
        "k_scale": k_scale, "v_scale": v_scale,
    }  # fmt: skip
    optional = "block_table", "cos", "sin", "k_scale", "v_scale"
    check_dense(**{name: x for name, x in named.items() if x is not None or name not in optional})
    if torch.is_grad_enabled():
        for name, x in named.items():
            if x is not None and x.requires_grad:
                raise NotImplementedError(
                    f"{name}: expected a tensor that needs no gradient, as there is none of a "
                    "cache; use torch.no_grad() or detach()"
                )
    append_op(**named, interleaved=as_flag("interleaved", interleaved))


def _read(arguments, options):
    """Operands that there are, by name in the order of the kernel's arguments, and interleaved."""
    named = name_arguments(append_op, arguments, options)
    given = {name: named[name] for name in _RANKS if named[name] is not None}
    return given, named["interleaved"]


def _check(given, interleaved):
    """Raises ValueError where dtypes, ranks, devices or extents of heads are wrong."""
    k, index = given["k"], given["cu_seqlens"].dtype
    if k.dtype not in _FLOATS or index not in _INTEGERS:
        raise ValueError(
            f"expected k of a float type and cu_seqlens of integers, got {k.dtype} and {index}"
        )
    wanted_of = {"cu_seqlens": index, "seqused_k": index, "block_table": torch.int32}
    wanted_of |= {"k_scale": torch.float32, "v_scale": torch.float32}
    if ("k_scale" in given) != ("v_scale" in given):
        raise ValueError("expected k_scale and v_scale, or neither, got one of them")
    if "k_scale" in given:
        cache = given["k_cache"].dtype
        if cache not in QUANTISED or k.dtype == torch.float64:
            raise ValueError(
                "expected caches of torch.int8 or torch.float8_e4m3fn beside k_scale and v_scale, and "
                f"k of less bits than torch.float64, got {cache} and {k.dtype}"
            )
        wanted_of |= {"k_cache": cache, "v_cache": cache}
    for name, x in given.items():
        wanted = wanted_of.get(name, k.dtype)
        if name in ("cos", "sin"):
            wanted = x.dtype if x.dtype in _FLOATS else torch.float32
        if x.dim() != _RANKS[name] or x.dtype != wanted:
            raise ValueError(
                f"{name}: expected a tensor of {wanted} and rank {_RANKS[name]}, got one of "
                f"{x.dtype} and rank {x.dim()}"
            )
        if x.device != k.device:
            raise ValueError(f"{name}: expected a tensor on {k.device}, as k is, got one on {x.device}")
    if ("cos" in given) != ("sin" in given) or (interleaved and "cos" not in given):
        raise ValueError("expected cos and sin, which interleaved goes with, or none of them")
    batch = given["cu_seqlens"].shape[0] - 1
    if batch < 0:
        raise ValueError("cu_seqlens is empty: expected an entry for each sequence, and the end")
    for name, wanted in (
        ("v", (*k.shape[:2], given["v"].shape[2])),
        ("seqused_k", (batch,)),
        ("block_table", (batch, *given.get("block_table", k).shape[1:2])),
        ("sin", given.get("cos", k).shape),
        ("k_cache", (*given["k_cache"].shape[:2], *k.shape[1:])),
        ("v_cache", (*given["k_cache"].shape[:2], *given["v"].shape[1:])),
        ("k_scale", given["k_cache"].shape[:3]),
        ("v_scale", given["k_cache"].shape[:3]),
    ):
        if name in given and tuple(given[name].shape) != tuple(wanted):
            raise ValueError(
                f"{name}: expected shape {tuple(wanted)}, got {tuple(given[name].shape)}"
            )


@functools.cache
def _find_kernel(described, interleaved, device):
    """The kernel, on the CUDA device of that number or if it is negative on the CPU, for operands
    of that name, dtype and shape, of which extents that are part of no type are None."""
    operands = {name: (_ELEMENTS[dtype], shape) for name, dtype, shape in described}
    source = text.append_function(operands, interleaved=interleaved)
    if device < 0:
        return OnCPU(source)
    from ._launches import UpdateOnCUDA

    return UpdateOnCUDA(source, find_append_rules, device)


def _describe(name, x):
    """What the code for an operand follows from."""
    return name, x.dtype, text.open_extents(name, x.shape)


def _append_on_device(*arguments, **options):
    given, interleaved = _read(arguments, options)
    described = tuple(_describe(*x) for x in given.items())
    try:
        kernel = _find_kernel(described, interleaved, given["k"].get_device())
        kernel(list(given.values()))
    except (KeyError, ValueError):
        _check(given, interleaved)  # Has more to say where types are wrong.
        raise


@torch.library.register_fake("varlen::append", lib=library)
def _append_fake(*arguments, **options):
    _check(*_read(arguments, options))


def _append_of_negative_views(*arguments, **options):
    """PyTorch's own kernel for these fails where an operator returns nothing."""
    given, interleaved = _read(arguments, options)
    for name in text.WRITTEN:
        if name in given:
            refuse_negative_view(name, given[name])
    given = {name: x.resolve_neg() for name, x in given.items()}
    append_op(**given, interleaved=interleaved)


for _device in ("CPU", "CUDA"):
    library.impl("append", _append_on_device, _device)
library.impl("append", _append_of_negative_views, "Negative")
