"""The operator torch.ops.varlen.attn_quantised: attention to keys and values of int8 or
float8_e4m3fn, packed or in pages. It has no derivatives."""

import functools

import torch

from .. import text
from .._row_range import find_sequences
from ..scores import parse
from . import _kernels
from ._checks import check
from ._operators import attn_quantised, library, name_arguments
from ._results import new_results

# Beside a scale of this rank, what one of its numbers is of: without pages, and with them.
_SCALES = ({1: "heads", 2: "rows"}, {1: "heads", 2: "pages", 3: "rows"})
QUANTISED = {torch.int8: "i8", torch.float8_e4m3fn: "f8E4M3FN"}
_FLOATS = (torch.float16, torch.bfloat16, torch.float32)
_SCALED = ("k_scale", "v_scale")


def _check(named):
    """What the compiler would say of types that this file has made."""
    q, k, v, block_table = (named[name] for name in ("q", "k", "v", "block_table"))
    rank = 3 if block_table is None else 4
    if q.dim() != 3 or k.dim() != rank or v.dim() != rank:
        shapes = ", ".join(str(tuple(x.shape)) for x in (q, k, v))
        raise ValueError(f"expected q of rank 3, and k and v of rank {rank}, got shapes {shapes}")
    if k.dtype not in QUANTISED or v.dtype != k.dtype:
        raise ValueError(
            f"expected k and v both of torch.int8 or torch.float8_e4m3fn, got {k.dtype} and {v.dtype}"
        )
    _check_query(q, k)
    kinds = _SCALES[block_table is not None]
    for name, rows in zip(_SCALED, (k, v)):
        x = named[name]
        if x is None:
            continue
        if x.dtype is not torch.float32 or x.dim() not in kinds:
            raise ValueError(
                f"{name}: expected a tensor of torch.float32 and rank "
                f"{' or '.join(map(str, kinds))}, got one of {x.dtype} and rank {x.dim()}"
            )
        leading = {1: (), 2: (0,), 3: (0, 1)}[x.dim()]
        wanted = (*(rows.size(dim) for dim in leading), rows.size(-2))
        if tuple(x.shape) != wanted:
            raise ValueError(f"{name}: expected shape {wanted}, got {tuple(x.shape)}")
        if x.device != q.device:
            raise ValueError(f"{name}: expected a tensor on {q.device}, as q is, got one on {x.device}")


def _check_query(q, k):
    if q.dtype not in _FLOATS:
        raise ValueError(
            "expected q of torch.float16, torch.bfloat16 or torch.float32 beside k and v of "
            f"{k.dtype}, got {q.dtype}"
        )


def _check_finite(name, x):
    """For scales of heads and sequences on the CPU; those of rows and pages are not all read, and
    nothing waits for a GPU."""
    if x.device.type == "cpu" and not x.isfinite().all():
        raise ValueError(f"{name}: expected finite numbers, got {x[~x.isfinite()][0].item()}")


@functools.cache
def _find_kernel(dtype, kv_dtype, index, k_of, v_of, **options):
    return _kernels.Kernel(
        text.attn, dtype, index, kv_dtype=QUANTISED[kv_dtype], k_scale=k_of, v_scale=v_of,
        **options,
    )  # fmt: skip


def _on_device(*arguments, **options):
    named = name_arguments(attn_quantised, arguments, options)
    _check(named)
    q, k, v, block_table = (named[name] for name in ("q", "k", "v", "block_table"))
    for name in _SCALED:
        if named[name] is not None and named[name].dim() == 1:
            _check_finite(name, named[name])
    kinds = _SCALES[block_table is not None]
    scales = (x if x is None else kinds[x.dim()] for x in map(named.get, _SCALED))
    chunk, score = named["chunk"], named["score"]
    kernel = _find_kernel(
        q.dtype, k.dtype, named["cu_seqlens_q"].dtype, *scales, heads=q.size(1),
        kv_heads=k.size(-2), head_dim=q.size(2), v_head_dim=v.size(-1),
        window=(named["left"], named["right"]) if chunk is None else chunk, scale=named["scale"],
        score=parse(score) if score else None, page=None if block_table is None else k.size(1),
        **{name: named[name] is not None for name in ("seqused_q", "seqused_k", "q_offset", "sink")},
    )  # fmt: skip
    names = (
        "q", "k", "v", "cu_seqlens_q", "cu_seqlens_k", "seqused_q", "seqused_k", "q_offset", "sink",
    )  # fmt: skip
    # The dispatcher does this for all but lists of tensors.
    captures = [x.resolve_neg() for x in named["captures"] or ()]
    operands = (*map(named.get, names), *captures, block_table, *map(named.get, _SCALED))
    results = new_results(q, v)
    kernel([*(x for x in operands if x is not None), *results])
    return results


def _below_autograd(*arguments, **options):
    given = *arguments, *options.values()
    if torch.is_grad_enabled() and torch._C._any_requires_grad(*given):
        raise NotImplementedError(
            "varlen::attn_quantised: expected tensors that need no gradient, as quantised keys and "
            "values have none; use torch.no_grad() or detach()"
        )
    with torch._C._AutoDispatchBelowAutograd():
        return attn_quantised(*arguments, **options)


for _device in ("CPU", "CUDA"):
    library.impl("attn_quantised", _on_device, _device)
library.impl("attn_quantised", _below_autograd, "Autograd")


@torch.library.register_fake("varlen::attn_quantised", lib=library)
def _attn_fake(*arguments, **options):
    named = name_arguments(attn_quantised, arguments, options)
    _check(named)
    q = named["q"]
    alike = {name: named[name].new_empty(named[name].shape, dtype=q.dtype) for name in ("k", "v")}
    check({name: x for name, x in (named | alike).items() if name not in _SCALED})
    return new_results(q, named["v"])


def attend_quantised(operands, k_scale, v_scale):
    """The operator on what torch.ops.varlen.attn takes."""
    return attn_quantised(*operands, k_scale=k_scale, v_scale=v_scale)


def attend_with_descales(operands, q_descale=None, k_descale=None, v_descale=None):
    """The same with FlashAttention 3's scales, (N, Hkv), float32, of q, k and v: of each sequence
    and kv head. A q of float8_e4m3fn has an out of bfloat16."""
    q, k, v, cu_seqlens_q, *others = operands
    descales = {"q_descale": q_descale, "k_descale": k_descale, "v_descale": v_descale}
    count, kv_heads = wanted = cu_seqlens_q.size(0) - 1, k.size(-2)
    for name, x in descales.items():
        if x is None:
            continue
        if tuple(x.shape) != wanted or x.dtype is not torch.float32:
            raise ValueError(
                f"{name}: expected a tensor of torch.float32 and shape {wanted}, got one of "
                f"{x.dtype} and shape {tuple(x.shape)}"
            )
        _check_finite(name, x)
    if q.dtype is torch.float8_e4m3fn:
        q = q.to(torch.bfloat16)
    elif q_descale is not None:
        raise ValueError(f"q_descale: expected q of torch.float8_e4m3fn beside it, got {q.dtype}")
    _check_query(q, k)
    # Without a sequence there is nothing to multiply.
    of_scores = [x for x in (q_descale, k_descale) if x is not None and count]
    of_out = v_descale if count else None
    if all(map(_is_of_heads, (*of_scores, of_out))):
        k_scale = functools.reduce(torch.mul, (x[0] for x in of_scores)) if of_scores else None
        v_scale = None if of_out is None else of_out[0]
        return attend_quantised((q, k, v, cu_seqlens_q, *others), k_scale, v_scale)
    # What differs between sequences multiplies queries and results, in float32.
    rows = torch.arange(q.size(0), dtype=cu_seqlens_q.dtype, device=q.device)
    sequences = find_sequences(torch, cu_seqlens_q.contiguous(), rows)

    def of_rows(x):
        group = q.size(1) // max(kv_heads, 1)
        return x[sequences].repeat_interleave(group, dim=1)[..., None]

    # Which heads go together, the operator says.
    scaled = q.float()
    if kv_heads and q.size(1) % kv_heads == 0:
        for x in of_scores:
            scaled = scaled * of_rows(x)
    out, lse = attend_quantised((scaled, k, v, cu_seqlens_q, *others), None, None)
    out = out if of_out is None else out * of_rows(of_out)
    return out.to(q.dtype), lse


def _is_of_heads(descale):
    """Whether all sequences have the same numbers, as far as that costs nothing to see."""
    return descale is None or descale.size(0) <= 1 or descale.stride(0) == 0


def refuse_scales(k_scale, v_scale, key):
    if k_scale is not None or v_scale is not None:
        raise ValueError(
            "expected k_scale and v_scale beside keys and values of torch.int8 or "
            f"torch.float8_e4m3fn, got {key.dtype}"
        )
