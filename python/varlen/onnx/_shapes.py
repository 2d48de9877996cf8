"""Operators that move elements: reshapes, transposes, slices, gathers."""

from __future__ import annotations

import numpy as np
import onnx.numpy_helper

from ._builder import ModelError, Value, is_float
from ._extents import Extent, divide, product
from ._registry import Node, operator
from ._views import broadcast_operand, concatenate, drop_units, extract, reshape, transpose

# From here on a bound of Slice says "to the end".
_FAR = 1 << 31


@operator("Identity")
def _identity(node: Node):
    return node.input(0)


@operator("Shape")
def _shape(node: Node):
    shape = node.input(0).shape
    start, end = node.attribute("start", 0), node.attribute("end", len(shape))
    numbers = np.array([*shape, None], object)[:-1][start:end]
    return Value(numbers.shape, "i64", numbers=numbers)


@operator("Size")
def _size(node: Node):
    total = np.empty((), object)
    total[()] = product(node.input(0).shape)
    return Value((), "i64", numbers=total)


@operator("Reshape")
def _reshape(node: Node):
    value = node.input(0)
    target = node.numbers(1, "the new shape")
    if not node.attribute("allowzero", 0):
        for d, n in enumerate(target):
            if n == 0:
                node.axis(d, value.rank, "a 0 of the new shape")
                target[d] = value.shape[d]
    return reshape(node.b, value, _complete(node, value, target))


def _complete(node, value, target):
    """The shape, with its -1 found and its size checked."""
    total, free = product(value.shape), [d for d, n in enumerate(target) if n == -1]
    if len(free) > 1 or any(isinstance(n, int) and n < -1 for n in target):
        raise node.error(f"expected extents and at most one -1, got {target}")
    message = f"{node.proto.name or node.stem}: expected as many elements in the new shape as in the old one"
    if not free:
        if product(target) != total:
            node.b.require_equal(product(target), total, message)
        return target
    rest = product(n for n in target if n != -1)
    if rest == 0:
        raise node.error(f"expected extents other than 0 beside -1, got {target}")
    quotient = divide(total, rest)
    if quotient is None:
        rest = node.b.index_op("maxsi", rest, 1)  # Nothing is divided by 0.
        node.b.require_equal(node.b.index_op("remsi", total, rest), 0, message)
        quotient = node.b.index_op("floordivsi", total, rest)
    return [quotient if n == -1 else n for n in target]


@operator("Flatten")
def _flatten(node: Node):
    value = node.input(0)
    axis = node.attribute("axis", 1)
    axis = axis if axis == value.rank else node.axis(axis, value.rank)
    return reshape(node.b, value, [product(value.shape[:axis]), product(value.shape[axis:])])


@operator("Unsqueeze")
def _unsqueeze(node: Node):
    value = node.input(0)
    axes = node.integers(1, "axes")
    rank = value.rank + len(axes)
    axes = {node.axis(axis, rank) for axis in axes}
    if value.rank + len(axes) != rank:
        raise node.error("expected axes that differ")
    extents = iter(value.shape)
    return reshape(node.b, value, [1 if d in axes else next(extents) for d in range(rank)])


@operator("Squeeze")
def _squeeze(node: Node):
    value = node.input(0)
    if node.input(1) is None:
        axes = [d for d, n in enumerate(value.shape) if n == 1]
    else:
        axes = [node.axis(axis, value.rank) for axis in node.integers(1, "axes")]
    for d in axes:
        node.b.require_equal(
            value.shape[d], 1, f"{node.stem}: expected extent 1 of squeezed dimension {d}"
        )
    return drop_units(node.b, value, axes)


@operator("Transpose")
def _transpose(node: Node):
    value = node.input(0)
    permutation = node.attribute("perm", range(value.rank)[::-1])
    if sorted(permutation) != list(range(value.rank)):
        raise node.error(f"expected perm of {value.rank} dimensions, got {list(permutation)}")
    return transpose(node.b, value, permutation)


@operator("Concat")
def _concat(node: Node):
    values = node.inputs
    rank = values[0].rank
    axis = node.axis(node.attribute("axis"), rank)
    if any(v.rank != rank for v in values):
        raise node.error("expected inputs of one rank")
    if all(v.numbers is not None for v in values):
        numbers = np.concatenate([v.numbers for v in values], axis)
        return Value(numbers.shape, values[0].element, numbers=numbers)
    shape = list(values[0].shape)
    for d in range(rank):
        for value in values[1:]:
            if d == axis:
                shape[d] = shape[d] + value.shape[d]
            else:
                node.b.require_equal(shape[d], value.shape[d],
                                     f"{node.stem}: expected inputs of one extent of dimension {d}")  # fmt: skip
    return concatenate(node.b, values, axis, shape)


@operator("Split")
def _split(node: Node):
    value = node.input(0)
    axis = node.axis(node.attribute("axis", 0), value.rank)
    extent, count = value.shape[axis], len(node.proto.output)
    if node.input(1) is not None:
        sizes = node.numbers(1, "the sizes of parts")
    else:
        size = (
            node.b.index_op("ceildivsi", extent, count)
            if divide(extent, count) is None
            else divide(extent, count)
        )
        sizes = [size] * (count - 1)
        sizes.append(extent - sum(sizes))
    if len(sizes) != count:
        raise node.error(f"expected {count} sizes of parts, got {len(sizes)}")
    node.b.require_equal(
        sum(sizes), extent, f"{node.stem}: expected parts that make up dimension {axis}"
    )
    parts, offset = [], 0
    for size in sizes:
        offsets = [offset if d == axis else 0 for d in range(value.rank)]
        shape = [size if d == axis else n for d, n in enumerate(value.shape)]
        parts.append(extract(node.b, value, offsets, shape))
        offset = offset + size
    return tuple(parts)


def _bound(b, bound, extent):
    """A bound of Slice, within 0 and the extent."""
    if bound == 0 or bound == extent:
        return bound
    if isinstance(bound, int):
        if bound >= _FAR:
            return extent
        if bound <= -_FAR:
            return 0
        if bound < 0:
            return b.index_op("maxsi", extent + bound, 0)
    # Extents are not negative; what is computed of them is not known to be.
    elif any(factor < 0 for factor in bound.terms.values()):
        raise ModelError(f"expected bounds that are not negative or constant, got {bound}")
    return b.index_op("minsi", bound, extent)


@operator("Slice")
def _slice(node: Node):
    value, b = node.input(0), node.b
    starts, ends = node.numbers(1, "starts"), node.numbers(2, "ends")
    axes = node.integers(3, "axes") if node.input(3) is not None else range(len(starts))
    steps = node.integers(4, "steps") if node.input(4) is not None else [1] * len(starts)
    offsets, shape, strides = [0] * value.rank, list(value.shape), [1] * value.rank
    for start, end, axis, step in zip(starts, ends, axes, steps):
        if step < 1:
            raise node.error(f"expected steps of 1 and more, got {step}")
        d = node.axis(axis, value.rank)
        try:
            first, last = _bound(b, start, value.shape[d]), _bound(b, end, value.shape[d])
        except ModelError as error:
            raise node.error(error) from None
        length = last - first
        if first != 0:
            length = b.index_op("maxsi", length, 0)
        offsets[d], strides[d] = first, step
        shape[d] = b.index_op("ceildivsi", length, step) if step != 1 else length
    if value.numbers is not None and value.rank == 1 and isinstance(offsets[0], int):
        numbers = value.numbers[offsets[0] : offsets[0] + shape[0] * steps[0] : steps[0]]
        return Value(numbers.shape, value.element, numbers=numbers)
    return extract(b, value, offsets, shape, strides)


@operator("Expand")
def _expand_op(node: Node):
    target = node.numbers(1, "the new shape")
    return broadcast(node, node.input(0), target)


@operator("Tile")
def _tile(node: Node):
    value = node.input(0)
    repeats = node.numbers(1, "the repeats")
    if len(repeats) != value.rank or any(isinstance(n, int) and n < 0 for n in repeats):
        raise node.error(
            f"expected {value.rank} repeats of 0 and more, one of each dimension, got {repeats}"
        )
    # Each dimension is two, of which the value has the second one.
    pairs = [n for pair in zip(repeats, value.shape) for n in pair]
    operand = [(value, [2 * d + 1 for d in range(value.rank)])]
    (tiled,) = node.b.generic(operand, pairs, [value.element], lambda body, x: [x], stem=node.stem)
    return reshape(node.b, tiled, [a * n for a, n in zip(repeats, value.shape)])


def broadcast_shape(node: Node, shapes):
    """The shape that shapes are broadcast to."""
    rank = max(map(len, shapes), default=0)
    result = []
    for d in range(rank):
        extents = [s[d - rank] for s in shapes if len(s) >= rank - d]
        wanted = [n for n in extents if n != 1]
        # A number says more than an extent that is not known.
        chosen = next((n for n in wanted if isinstance(n, int)), wanted[0] if wanted else 1)
        for extent in wanted:
            node.b.require_equal(extent, chosen, f"{node.stem}: expected extents that agree or are 1 where the "
                                 f"model is imported, of dimension {d} of {rank}")  # fmt: skip
        result.append(chosen)
    return tuple(result)


def broadcast(node: Node, value: Value, target) -> Value:
    shape = broadcast_shape(node, [value.shape, target])
    if shape == value.shape:
        return value
    if value.array is not None and not any(isinstance(n, Extent) for n in shape):
        return node.b.constant(np.broadcast_to(value.array, shape), value.label)
    operand = broadcast_operand(node.b, value, shape)
    return node.b.generic([operand], shape, [value.element], lambda body, x: [x], stem=node.stem)[0]


@operator("ConstantOfShape")
def _constant_of_shape(node: Node):
    shape = node.numbers(0, "the shape")
    proto = node.attribute("value")
    array = np.zeros(1, np.float32) if proto is None else onnx.numpy_helper.to_array(proto)
    element = node.b.constant(array).element
    number = array.reshape(())
    if all(isinstance(n, int) for n in shape) and element in ("i64", "i32"):
        return node.b.constant(np.full(shape, number, array.dtype))
    return Value(
        shape,
        element,
        node.b.fill(float(number) if is_float(element) else int(number), shape, element),
    )


@operator("Range")
def _range(node: Node):
    b, values = node.b, node.inputs
    element = values[0].element
    if is_float(element):
        raise node.error(f"expected integers, got {element}")
    start, limit, delta = (integer_of(b, v) for v in values)
    if not isinstance(delta, int) or delta == 0:
        raise node.error("expected a constant delta other than 0")
    length = b.index_op("ceildivsi", limit - start, delta) if delta != 1 else limit - start
    if start != 0 or isinstance(length, int):
        length = b.index_op("maxsi", length, 0)
    first, step = b.index(start), b.index(delta)

    def count(body):
        place = body.binary("arith.muli", body.index(0), step, "index")
        place = body.binary("arith.addi", place, first, "index")
        return [body.op(f"arith.index_cast {place} : index to {element}")]

    return b.generic([], (length,), [element], count, stem=node.stem)[0]


def integer_of(b, value):
    """The integer of a tensor of rank 0, or of one element, as an extent."""
    if value.numbers is not None:
        return value.numbers.reshape(-1)[0]
    value = reshape(b, value, ())
    number = b.pure(f"tensor.extract {b.use(value)}[] : {value.type}", "number")
    return b.symbol("n", b.pure(f"arith.index_cast {number} : {value.element} to index", "i"))


@operator("Trilu")
def _trilu(node: Node):
    b, value = node.b, node.input(0)
    upper = node.attribute("upper", 1)
    shift = b.index(integer_of(b, node.input(1)) if node.input(1) is not None else 0)
    rank = value.rank

    def keep(body, x):
        diagonal = body.binary("arith.addi", body.index(rank - 2), shift, "index")
        kept = body.op(
            f"arith.cmpi {'sge' if upper else 'sle'}, {body.index(rank - 1)}, {diagonal} : index"
        )
        return [body.select(kept, x, body.constant(0, value.element), value.element)]

    return b.generic([(value, range(rank))], value.shape, [value.element], keep, stem=node.stem)[0]
