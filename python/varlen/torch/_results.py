"""Results of the operators: the kernels of all devices, the fake ones too, make them of the
same shapes and strides."""

import torch


def new_results(q, v):
    """out and lse. Strides of out are q's where the shapes agree: q with its heads
    first gives such an out."""
    value_dim = v.shape[-1]
    if q.shape[2] == value_dim:
        return torch.empty_like(q), new_lse(q)
    return q.new_empty((*q.shape[:2], value_dim)), new_lse(q)


def new_lse(q):
    rows, heads, _ = q.shape
    dtype = q.dtype
    if dtype is torch.float32 or dtype is torch.float64:
        return q.new_empty(heads, rows)  # a tuple of extents takes longer, and so does a dtype
    return q.new_empty(heads, rows, dtype=torch.float32)


def new_gradients(q, k, v, sink, captures):
    dsink = q.new_empty(0) if sink is None else torch.empty_like(sink)
    dcaptures = [torch.empty_like(capture) for capture in captures or ()]
    return torch.empty_like(q), torch.empty_like(k), torch.empty_like(v), dsink, dcaptures


def accumulation_dtype(dtype):
    """What sums of elements of a dtype are in."""
    return torch.float64 if dtype is torch.float64 else torch.float32
