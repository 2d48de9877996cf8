"""What the operators ask of their arguments, for the kernels of all devices: fake kernels
have nothing else to go by, others ask here for the words once something was wrong."""

import torch

from .._axes import explain, find_axes
from .._options import check_options
from ._operators import name_tensors

_FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
_INTEGERS = (torch.int32, torch.int64)
# Whose extents others are compared with, in the order of the comparisons.
_ORDER = ("q", "k", "v", "cu_seqlens_q", "cu_seqlens_k")
_POSITIVE = {
    "heads": "heads of q", "kv_heads": "heads of k", "head_dim": "head_dim of q",
    "v_head_dim": "head_dim of v", "sequences + 1": "entries of cu_seqlens",
}  # fmt: skip


def check(named):
    """Raises ValueError where arguments of an operator, by their names in its schema, do not
    go together. Of values in tensors it knows nothing."""
    tensors, captures = name_tensors(named)
    q, k, v = (tensors[name] for name in "qkv")
    if not q.dim() == k.dim() == v.dim() == 3:
        shapes = [tuple(x.shape) for x in (q, k, v)]
        raise ValueError(
            "expected q, k and v of rank 3 (rows, heads, head_dim), got shapes "
            f"{shapes[0]}, {shapes[1]} and {shapes[2]}"
        )
    if q.dtype not in _FLOATS:
        raise ValueError(f"expected q, k and v of {_either(_FLOATS)}, got {q.dtype}")
    index = tensors["cu_seqlens_q"].dtype
    if index not in _INTEGERS:
        raise ValueError(f"expected cu_seqlens of {_either(_INTEGERS)}, got {index}")
    for name, tensor in tensors.items():
        axes = find_axes(name, captures)
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
    _check_extents(tensors, captures)
    left, right = named["left"], named["right"]
    check_options((left, right), named["chunk"], "bottom_right", named["scale"])


def _either(dtypes):
    *first, last = map(str, dtypes)
    return f"{', '.join(first)} or {last}"


def _dtype_of(name, axes, dtype, index, captures):
    if axes[0].startswith("sequences"):
        return index
    is_sum = name in captures or name.removeprefix("d") in ("lse", "sink")
    return torch.float32 if is_sum and dtype != torch.float64 else dtype


def _check_extents(tensors, captures):
    extents, owners = {}, {}
    names = [*_ORDER, *(name for name in tensors if name not in _ORDER)]
    for name in names:
        for d, (axis, extent) in enumerate(zip(find_axes(name, captures), tensors[name].shape)):
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
        _require(extents[axis] > 0, lambda: f"expected positive {what}, got {extents[axis]}")
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
