"""Extents of an attention's tensors that have to agree, for hosts that do not wait for kernels
to find what is wrong."""

from __future__ import annotations

from typing import NamedTuple

from ._axes import APPEND_AXES, SCALES, explain, find_axes


class ExtentRule(NamedTuple):
    """Extent `dim` of a tensor and `more` is extent `owner_dim` of another. Tensors are places in
    a list of names."""

    tensor: int
    dim: int
    more: int
    owner: int
    owner_dim: int = 0


# Whose first extents others have, where types leave them open.
_OWNERS = {"rows": "q", "kv_rows": "k", "pages": "k", "sequences + 1": "cu_seqlens_q"}


def find_rules(names, captures):
    """The ExtentRules of tensors with these names, for what does not wait for kernels to find
    a broken one. There are none of scales, whose types say what they are of."""
    places = {name: i for i, name in enumerate(names)}
    paged = "block_table" in places
    rules = []
    for name, place in places.items():
        if name in SCALES:
            continue
        for dim, axis in enumerate(find_axes(name, captures, paged)):
            more = axis == "sequences"
            owner = _OWNERS.get("sequences + 1" if more else axis)
            if owner is not None and owner != name:
                rules.append(ExtentRule(place, dim, int(more), places[owner]))
    return rules


def find_append_rules(names):
    """The ExtentRules of the operands of varlen.append: the first that has an axis owns it."""
    rules, owners = [], {}
    for place, name in enumerate(names):
        for dim, axis in enumerate(APPEND_AXES[name]):
            more = axis == "sequences"
            owner = owners.setdefault("sequences + 1" if more else axis, (place, dim))
            if owner[0] != place:
                rules.append(ExtentRule(place, dim, int(more), *owner))
    return rules


def check_extents(shapes, captures):
    """That extents of operands, shapes by name, agree as far as they are numbers. Raises
    ValueError."""
    paged = "block_table" in shapes
    axes = {name: find_axes(name, captures, paged, len(shape)) for name, shape in shapes.items()}
    _check_rules(find_rules(list(shapes), captures), shapes, axes)
    _check_rules(_find_scale_rules(list(shapes), axes), shapes, axes)


def _find_scale_rules(names, axes):
    """The rules of scales: k_scale is of what k has, and v_scale of what v has."""
    places = {name: i for i, name in enumerate(names)}
    return [
        ExtentRule(places[name], dim, 0, places[name[0]], axes[name[0]].index(axis))
        for name in SCALES if name in places
        for dim, axis in enumerate(axes[name])
    ]  # fmt: skip


def check_append_extents(shapes):
    """The same of the operands of varlen.append."""
    _check_rules(find_append_rules(list(shapes)), shapes, APPEND_AXES)


def _check_rules(rules, shapes, axes):
    names = list(shapes)
    for rule in rules:
        name, owner = names[rule.tensor], names[rule.owner]
        got, wanted = shapes[name][rule.dim], shapes[owner][rule.owner_dim]
        if isinstance(got, int) and isinstance(wanted, int) and got + rule.more != wanted:
            axis = "sequences + 1" if rule.more else axes[name][rule.dim]
            raise ValueError(explain(name, rule.dim, axis, got, wanted, owner))
