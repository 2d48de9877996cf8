"""The operators on tensors that are distributed, torch.distributed.tensor.DTensor: each device
has some heads, as what a kv head and its query heads give depends on no other. Rows are whole."""

import functools

import torch
from torch.distributed.tensor import DTensor, Replicate, Shard

from .._axes import HEADS, find_axes
from ._operators import attn, attn_backward, attn_out, library, name_arguments, name_tensors


def _attend(op, cls, function, types, arguments=(), options=None):
    named = name_arguments(op, arguments, options)
    tensors, captures = name_tensors(named)
    mesh = _find_mesh(tensors)
    split = _find_split(mesh, tensors)

    def place(name):
        """Where a tensor of that name has to be, for each dimension of the mesh."""
        axes = find_axes(name, captures)
        head = next((i for i, axis in enumerate(axes) if axis in HEADS), None)
        return [
            Shard(head) if dim in split and head is not None else Replicate()
            for dim in range(mesh.ndim)
        ]

    def wrap(name, local):
        return DTensor.from_local(local, mesh, place(name), run_check=False)

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
        named |= {name: x for name, x in local.items() if name not in captures}
        named["captures"] = [local[name] for name in captures]
        results = op(*named.values())
        if op is attn:
            return tuple(map(wrap, ("out", "lse"), results))
        if op is attn_out:
            return wrap("lse", results)
        *first, dsink, dcaptures = results
        return (
            *map(wrap, ("dq", "dk", "dv"), first), wrap("dsink", dsink),
            [wrap(f"d{name}", x) for name, x in zip(captures, dcaptures)],
        )  # fmt: skip


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


def _find_split(mesh, tensors):
    """Dimensions of the mesh over which heads are split: as those of q or k are, where each
    device then has kv heads with all of their query heads."""
    split, devices = [], 1
    for dim in range(mesh.ndim):
        is_split = any(tensors[name].placements[dim].is_shard(1) for name in ("q", "k"))
        count = devices * mesh.size(dim)
        if is_split and tensors["k"].shape[1] % count == 0:
            split.append(dim)
            devices = count
    return split


for _op in (attn, attn_out, attn_backward):
    _rule = functools.partial(_attend, _op)
    torch.library.register_torch_dispatch(_op._name, DTensor, _rule, lib=library)
