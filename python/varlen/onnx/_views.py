"""Values in other shapes and orders: views where there is one, else copies."""

from __future__ import annotations

import numpy as np

from ._builder import Builder, Value
from ._extents import Extent, divide, product


def _groups(source, target):
    """How dimensions of one shape become those of another: pairs of ranges with equal
    products, or None."""
    pairs, i, j = [], 0, 0
    while i < len(source) or j < len(target):
        if i == len(source) or j == len(target):
            # Ones at the end belong to the last group.
            rest = source[i:] if j == len(target) else target[j:]
            if not pairs or any(n != 1 for n in rest):
                return None
            (a, _), (c, _) = pairs[-1]
            pairs[-1] = ((a, len(source)), (c, len(target)))
            break
        a, c = i, j
        left, right = source[i], target[j]
        i, j = i + 1, j + 1
        while left != right:
            if divide(right, left) is not None and i < len(source):
                left, i = left * source[i], i + 1
            elif divide(left, right) is not None and j < len(target):
                right, j = right * target[j], j + 1
            else:
                return None
        pairs.append(((a, i), (c, j)))
    return pairs


def _cast(b: Builder, value: Value, shape):
    """The value with a type that knows more or less of the same extents."""
    result = Value(shape, value.element)
    if result.type == value.type:
        return Value(shape, value.element, b.use(value))
    result.name = b.pure(f"tensor.cast {b.use(value)} : {value.type} to {result.type}", "cast")
    return result


def _listed(groups):
    return "[" + ", ".join("[" + ", ".join(map(str, group)) + "]" for group in groups) + "]"


def _collapse(b, value, groups):
    """Dimensions of each group become one."""
    shape = [product(value.shape[d] for d in group) for group in groups]
    result = Value(shape, value.element)
    result.name = b.pure(
        f"tensor.collapse_shape {b.use(value)} {_listed(groups)} : {value.type} into {result.type}",
        "flat",
    )
    return result


def _expand(b, value, groups, shape):
    """A dimension of the value becomes those of a group."""
    if any(sum(isinstance(shape[d], Extent) for d in group) > 1 for group in groups):
        # memref.expand_shape of two unknown extents is more than upstream lowers.
        return _reshape_freely(b, value, shape)
    # The type of one that is dynamic has to say so.
    source = [
        n if isinstance(n, Extent) == any(isinstance(shape[d], Extent) for d in group)
        else (Extent.symbol("?") if any(isinstance(shape[d], Extent) for d in group)
              else product(shape[d] for d in group))
        for n, group in zip(value.shape, groups)
    ]  # fmt: skip
    value = _cast(b, value, source)
    result = Value(shape, value.element)
    result.name = b.pure(
        f"tensor.expand_shape {b.use(value)} {_listed(groups)} output_shape {b.operands(shape)} : "
        f"{value.type} into {result.type}", "shaped"
    )  # fmt: skip
    return result


def _reshape_freely(b, value, shape):
    """By tensor.reshape, which takes the shape as a tensor."""
    target = Value((len(shape),), "index")
    target.name = b.pure(
        f"tensor.from_elements {', '.join(map(b.index, shape))} : {target.type}", "shape"
    )
    result = Value(shape, value.element)
    result.name = b.pure(f"tensor.reshape {b.use(value)}({target.name}) : ({value.type}, {target.type}) -> {result.type}",
                         "shaped")  # fmt: skip
    return result


def reshape(b: Builder, value: Value, shape) -> Value:
    """The value in another shape of as many elements, which the caller has checked."""
    shape = tuple(shape)
    if value.shape == shape:
        return value
    if value.array is not None and not any(isinstance(n, Extent) for n in shape):
        return b.constant(value.array.reshape(shape), value.label)
    if value.numbers is not None and not any(isinstance(n, Extent) for n in shape):
        return Value(shape, value.element, numbers=value.numbers.reshape(shape))
    # What was reshaped before, from where it was not, if that is as simple.
    root = value.root or value
    if root.shape == shape:
        return root
    source = value if _groups(root.shape, shape) is None else root
    result = _reshape_source(b, source, shape)
    result.root = root
    return result


def _reshape_source(b, value, shape):
    pairs = _groups(value.shape, shape) if value.rank and shape else None
    if pairs is None:
        # By way of all elements in a row.
        total = product(value.shape)
        if value.rank != 1:
            value = _collapse_all(b, value, total)
        if len(shape) == 1:
            return _cast(b, value, shape)
        if not shape:
            return _collapse(b, _cast(b, value, (1,)), [])
        return _expand(b, value, [range(len(shape))], shape)
    middle = [product(value.shape[a:z]) for (a, z), _ in pairs]
    if len(middle) != value.rank:
        value = _collapse(b, value, [range(a, z) for (a, z), _ in pairs])
    if len(middle) != len(shape):
        value = _expand(b, value, [range(a, z) for _, (a, z) in pairs], shape)
    return _cast(b, value, shape)


def _collapse_all(b, value, total):
    if value.rank:
        return _collapse(b, value, [range(value.rank)])
    result = Value((total,), value.element)
    result.name = b.pure(
        f"tensor.expand_shape {b.use(value)} [] output_shape [1] : {value.type} into {result.type}"
    )
    return result


def transpose(b: Builder, value: Value, permutation) -> Value:
    """Dimension i of the result is dimension permutation[i] of the value."""
    permutation = list(permutation)
    if permutation == list(range(value.rank)):
        return value
    if value.array is not None:
        return b.constant(np.ascontiguousarray(value.array.transpose(permutation)), value.label)
    if value.view is not None:
        source, first = value.view
        return transpose(b, source, [first[d] for d in permutation])
    shape = [value.shape[d] for d in permutation]
    moved = [d for d in permutation if value.shape[d] != 1]
    if moved == sorted(moved):
        result = reshape(b, value, shape)
    else:
        result = Value(shape, value.element)
        empty = b.empty(shape, value.element)
        result.name = b.new(
            f"linalg.transpose ins({b.use(value)} : {value.type}) outs({empty} : {result.type}) "
            f"permutation = {permutation}", "transposed"
        )  # fmt: skip
    result.view = value, permutation
    return result


def untransposed(value: Value, permutation):
    """The source if the value is it, transposed in that way; else None."""
    if value.view is not None and list(value.view[1]) == list(permutation):
        return value.view[0]
    return None


def drop_units(b: Builder, value: Value, dims):
    """The value without dimensions, of extent 1."""
    return reshape(b, value, [n for d, n in enumerate(value.shape) if d not in dims])


def extract(b: Builder, value: Value, offsets, shape, steps=None) -> Value:
    """A rectangle of the value."""
    steps = steps or [1] * value.rank
    if tuple(shape) == value.shape and not any(offsets) and all(s == 1 for s in steps):
        return value
    result = Value(shape, value.element)
    if 0 in shape:  # It may begin nowhere, which slices may not.
        result.name = b.empty(shape, value.element)
        return result
    result.name = b.pure(
        f"tensor.extract_slice {b.use(value)}{b.operands(offsets)} {b.operands(shape)} "
        f"{b.operands(steps)} : {value.type} to {result.type}", "slice"
    )  # fmt: skip
    return result


def insert(b: Builder, value: Value, into, offsets, steps=None) -> Value:
    """The tensor `into` with a value as the rectangle at offsets."""
    steps = steps or [1] * into.rank
    result = Value(into.shape, into.element)
    result.name = b.new(
        f"tensor.insert_slice {b.use(value)} into {b.use(into)}{b.operands(offsets)} "
        f"{b.operands(value.shape)} {b.operands(steps)} : {value.type} into {result.type}",
        "joined",
    )
    return result


def concatenate(b: Builder, values, axis, shape) -> Value:
    """Values one after the other along an axis."""
    element = values[0].element
    result, offset = Value(shape, element, b.empty(shape, element)), 0
    for value in values:
        if value.shape[axis] == 0:
            continue
        offsets = [offset if d == axis else 0 for d in range(result.rank)]
        result = insert(b, value, result, offsets)
        offset = offset + value.shape[axis]
    return result


def broadcast_operand(b: Builder, value: Value, shape):
    """The value without the dimensions that are broadcast to a shape, and which of the
    shape's the others are."""
    first = len(shape) - value.rank
    units = [d for d, n in enumerate(value.shape) if n == 1 and shape[first + d] != 1]
    dims = [first + d for d in range(value.rank) if d not in units]
    return drop_units(b, value, units), dims
