"""The operators on tensors that are distributed, torch.distributed.tensor.DTensor: each device
has some heads, as what a kv head and its query heads give depends on no other, and some rows of q.
It then has all rows of k and v, and what all devices have gets a part of its gradient on each."""

import functools

import torch
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard

from .._axes import HEADS, find_axes
from .._row_range import take_row_range
from ._operators import attn, attn_backward, attn_out, library, name_arguments, name_tensors
from ._results import accumulation_dtype


def _attend(op, cls, function, types, arguments=(), options=None):
    named = name_arguments(op, arguments, options)
    tensors, captures = name_tensors(named)
    mesh, paged = _find_mesh(tensors), "block_table" in tensors
    of_heads, of_rows = _find_split(mesh, tensors)

    def place(name):
        """Where a tensor of that name has to be, or is, for each dimension of the mesh."""
        axes = find_axes(name, captures, paged)
        head = next((i for i, axis in enumerate(axes) if axis in HEADS), None)
        row = axes.index("rows") if "rows" in axes else None
        return [
            Shard(head) if dim in of_heads and head is not None
            else Shard(row) if dim in of_rows and row is not None
            else Replicate()
            for dim in range(mesh.ndim)
        ]  # fmt: skip

    def wrap(name, local, shape):
        return _make(local, mesh, place(name), shape)

    def wrap_gradient(name, local):
        """The gradient of an operand: of one without rows of q the sum of parts, split as the
        operand is."""
        operand = tensors.get(name)
        if operand is None:
            return _make(local, mesh, [Replicate()] * mesh.ndim, local.shape)
        placements, given = place(name), operand.placements
        if not of_rows or "rows" in find_axes(name, captures):
            return _make(local, mesh, placements, operand.shape)
        parts = [Partial() if dim in of_rows else x for dim, x in enumerate(placements)]
        wanted = [
            given[dim] if dim in of_rows and given[dim].is_shard() else x
            for dim, x in enumerate(placements)
        ]
        wide = local.to(accumulation_dtype(local.dtype))
        return _make(wide, mesh, parts, operand.shape).redistribute(mesh, wanted).to(local.dtype)

    if op is attn_out and list(named["out"].placements) != place("out"):
        raise ValueError(
            f"out: expected a DTensor with placements {place('out')}, as results have, got "
            f"{list(named['out'].placements)}"
        )
    # Autograd is above.
    with torch.no_grad():
        local = {
            name: x.redistribute(mesh, place(name)).to_local() for name, x in tensors.items()
        }
        if of_rows and local["cu_seqlens_q"].numel():
            total = tensors["q"].shape[0]
            local |= take_row_range(torch, local, *_find_rows(mesh, of_rows, total), total)
        named |= {name: x for name, x in local.items() if name not in captures}
        named["captures"] = [local[name] for name in captures]
        results = op(*named.values())
        rows, heads = tensors["q"].shape[:2]
        if op is attn_out:
            return wrap("lse", results, (heads, rows))
        if op is attn:
            shape = rows, heads, tensors["v"].shape[-1]
            return wrap("out", results[0], shape), wrap("lse", results[1], (heads, rows))
        *first, dsink, dcaptures = results
        return (
            *map(wrap_gradient, ("q", "k", "v"), first), wrap_gradient("sink", dsink),
            [wrap_gradient(name, x) for name, x in zip(captures, dcaptures)],
        )  # fmt: skip


def _make(local, mesh, placements, shape):
    """A DTensor of that shape, of which devices may have parts of different sizes."""
    strides, size = [0] * local.dim(), 1
    # Dimensions are in memory as those of the local part are.
    for dim in sorted(range(local.dim()), key=lambda dim: (local.stride(dim), -dim)):
        strides[dim], size = size, size * shape[dim]
    return DTensor.from_local(
        local, mesh, placements, run_check=False, shape=torch.Size(shape), stride=tuple(strides)
    )


def _find_mesh(tensors):
    meshes = []
    for name, x in tensors.items():
        if not isinstance(x, DTensor):
            raise TypeError(
                f"{name}: expected a DTensor, as other tensors are, got a {type(x).__name__}; "
                "distribute_tensor(..., [Replicate()]) makes one that all devices have"
            )
        meshes.append(x.device_mesh)
    if any(mesh != meshes[0] for mesh in meshes):
        raise ValueError(f"expected tensors on one device mesh, got {meshes}")
    return meshes[0]


def _find_rows(mesh, of_rows, total):
    """The first of the rows of this device, and how many they are: as Shard cuts, each dimension of
    the mesh in parts of one size but for the last ones."""
    first, rows = 0, total
    for dim in of_rows:
        part = -(-rows // mesh.size(dim))
        begin = min(mesh.get_local_rank(dim) * part, rows)
        first, rows = first + begin, min(part, rows - begin)
    return first, rows


def _find_split(mesh, tensors):
    """Dimensions of the mesh over which heads are split: as those of q or k are, where each
    device then has kv heads with all of their query heads. Those over which rows of q are."""
    of_rows = [dim for dim, x in enumerate(tensors["q"].placements) if x.is_shard(0)]
    of_heads, devices = [], 1
    for dim in range(mesh.ndim):
        is_split = any(
            tensors[name].placements[dim].is_shard(tensors[name].dim() - 2) for name in ("q", "k")
        )
        count = devices * mesh.size(dim)
        if is_split and dim not in of_rows and tensors["k"].shape[-2] % count == 0:
            of_heads.append(dim)
            devices = count
    return of_heads, of_rows


for _op in (attn, attn_out, attn_backward):
    _rule = functools.partial(_attend, _op)
    torch.library.register_torch_dispatch(_op._name, DTensor, _rule, lib=library)
