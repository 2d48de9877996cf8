"""What the operators ask of their arguments, for the kernels of all devices: fake kernels
have nothing else to go by, others ask here for the words once something was wrong."""

import torch

from .._axes import explain, find_axes
from .._options import check_options
from ..scores import CAPTURES
from ._operators import name_tensors

FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
_INTEGERS = (torch.int32, torch.int64)
# Whose extents others are compared with, in the order of the comparisons.
_ORDER = ("q", "k", "v", "cu_seqlens_q", "cu_seqlens_k")
_POSITIVE = {
    "heads": "heads of q", "kv_heads": "heads of k", "head_dim": "head_dim of q",
    "v_head_dim": "head_dim of v", "sequences + 1": "entries of cu_seqlens",
    "page_rows": "rows in a page of k",
}  # fmt: skip


def check(named):
    """Raises ValueError where arguments of an operator, by their names in its schema, do not
    go together. Of values in tensors it knows nothing."""
    tensors, captures = name_tensors(named)
    q, k, v = (tensors[name] for name in "qkv")
    paged = "block_table" in tensors
    if not (q.dim() == 3 and k.dim() == v.dim() == 3 + paged):
        shapes = [tuple(x.shape) for x in (q, k, v)]
        wanted = "q, k and v of rank 3 (rows, heads, head_dim)"
        if paged:
            wanted = (
                "q of rank 3 (rows, heads, head_dim), and k and v of rank 4 (pages, rows, heads, "
                "head_dim)"
            )
        raise ValueError(f"expected {wanted}, got shapes {shapes[0]}, {shapes[1]} and {shapes[2]}")
    _check_keys(tensors, captures, paged)
    if q.dtype not in FLOATS:
        raise ValueError(f"expected q, k and v of {either(FLOATS)}, got {q.dtype}")
    index = tensors["cu_seqlens_q"].dtype
    if index not in _INTEGERS:
        raise ValueError(f"expected cu_seqlens of {either(_INTEGERS)}, got {index}")
    if "tsink" in tensors and "sink" not in tensors:
        raise ValueError("expected a sink beside tsink, got none")
    for name, tensor in tensors.items():
        axes = find_axes(name, captures, paged)
        dtype = _dtype_of(name, axes, q.dtype, index, captures)
        if tensor.dtype != dtype or tensor.dim() != len(axes):
            raise ValueError(
                f"{name}: expected a tensor of {dtype} and rank {len(axes)}, got one of "
                f"{tensor.dtype} and rank {tensor.dim()}"
            )
        if tensor.device != q.device:
            raise ValueError(
                f"{name}: expected a tensor on {q.device}, as q is, got one on {tensor.device}"
            )
    _check_extents(tensors, captures, paged)
    left, right = named["left"], named["right"]
    check_options((left, right), named["chunk"], "bottom_right", named["scale"])


def _check_keys(tensors, captures, paged):
    """That what says where keys are is there, and nothing beside it that says it otherwise."""
    if not paged and "cu_seqlens_k" not in tensors:
        raise ValueError("expected cu_seqlens_k, or a block_table, got neither")
    if paged and "cu_seqlens_k" in tensors:
        raise ValueError("cu_seqlens_k: expected None beside a block_table")
    if paged and "seqused_k" not in tensors:
        raise ValueError("expected seqused_k with a block_table, got none")
    for i, of in enumerate(captures.values()):
        if paged and "kv_rows" in CAPTURES[of]:
            raise ValueError(f"expected no table of keys with a block_table, got capture {i}")


def either(dtypes):
    *first, last = map(str, dtypes)
    return f"{', '.join(first)} or {last}"


def _dtype_of(name, axes, dtype, index, captures):
    if name == "block_table":
        return torch.int32
    if axes[0].startswith("sequences"):
        return index
    is_sum = any(x in captures or x in ("lse", "sink") for x in (name, name[1:], name[2:]))
    return torch.float32 if is_sum and dtype != torch.float64 else dtype


def _check_extents(tensors, captures, paged):
    extents, owners = {}, {}
    first = [name for name in _ORDER if name in tensors]
    for name in [*first, *(name for name in tensors if name not in first)]:
        axes = find_axes(name, captures, paged)
        for d, (axis, extent) in enumerate(zip(axes, tensors[name].shape)):
            if axis == "sequences":
                axis, extent = "sequences + 1", extent + 1
            if axis not in extents:
                extents[axis], owners[axis] = extent, name
                continue
            _require(
                extent == extents[axis],
                lambda: explain(name, d, axis, tensors[name].shape[d], extents[axis], owners[axis]),
            )
    for axis, what in _POSITIVE.items():
        extent = extents.get(axis, 1)
        _require(extent > 0, lambda: f"expected positive {what}, got {extent}")
    heads, kv_heads = extents["heads"], extents["kv_heads"]
    _require(
        heads % kv_heads == 0,
        lambda: f"expected query heads to be a multiple of kv heads, got {heads} and {kv_heads}",
    )


def _require(condition, message):
    """Where extents are symbols, the condition becomes one of the program that is traced."""
    if isinstance(condition, torch.SymBool):
        torch._check_value(condition, message)
    elif not condition:
        raise ValueError(message())
