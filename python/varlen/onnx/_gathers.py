"""Operators that read elements at places that other tensors hold: Gather, GatherElements
and GatherND. An index may count from the end; one out of range ends the call with an
error, before anything is read."""

from __future__ import annotations

import numpy as np

from ._builder import Body, Builder, Value
from ._extents import Extent
from ._registry import Node, operator
from ._views import drop_units, extract, reshape


def _require_in_range(b: Builder, indices: Value, extent, message, from_end):
    """Ends the call with an error if an index is not one of a dimension of an extent."""
    minus, limit = b.index(0 - extent if from_end else 0), b.index(extent)

    def in_range(body, index, old):
        index = body.op(f"arith.index_cast {index} : {indices.element} to index")
        low = body.op(f"arith.cmpi sge, {index}, {minus} : index")
        high = body.op(f"arith.cmpi slt, {index}, {limit} : index")
        both = body.binary("arith.andi", low, high, "i1")
        return body.binary("arith.andi", old, both, "i1")

    good = b.reduction(indices, range(indices.rank), 1, "i1", in_range, stem="in_range")
    b.require(b.new(f"tensor.extract {good.name}[] : tensor<i1>", "good"), message)


def _from_start(body: Body, index, element, extent):
    """An index that may count from the end as one of type index that counts from 0."""
    index = body.op(f"arith.index_cast {index} : {element} to index")
    negative = body.op(f"arith.cmpi slt, {index}, {body.constant(0, 'index')} : index")
    wrapped = body.binary("arith.addi", index, extent, "index")
    return body.select(negative, wrapped, index, "index")


def read_at(b: Builder, data: Value, indices, dims, shape, stem, from_end=True) -> Value:
    """Elements of data at places of which some coordinates are read from tensors.

    Args:
        indices: By axis of data the tensor of its coordinates, and the dimensions of the
            result that the tensor's are.
        dims: By each other axis of data the dimension of the result that counts it.
        shape: The result's shape.
        stem: What the result is called, in messages too.
        from_end: Whether negative coordinates count from the end, else they are errors.
    """
    for axis, (value, _) in indices.items():
        extent = data.shape[axis]
        _require_in_range(
            b, value, extent,
            f"{stem}: expected indices within the {extent} entries of dimension {axis}",
            from_end,
        )  # fmt: skip
    source = b.use(data)
    extents = {axis: b.index(data.shape[axis]) for axis in indices}

    def load(body, *read):
        places = {
            axis: _from_start(body, index, value.element, extents[axis])
            for index, (axis, (value, _)) in zip(read, indices.items())
        }
        places |= {axis: body.index(d) for axis, d in dims.items()}
        written = ", ".join(places[axis] for axis in range(data.rank))
        return [body.op(f"tensor.extract {source}[{written}] : {data.type}")]

    return b.generic(list(indices.values()), shape, [data.element], load, stem=stem)[0]


def gather(b: Builder, data: Value, indices: Value, axis, stem, from_end=True) -> Value:
    """Slices of data along an axis."""
    shape = [*data.shape[:axis], *indices.shape, *data.shape[axis + 1 :]]
    dims = {d: d if d < axis else d + indices.rank - 1 for d in range(data.rank) if d != axis}
    places = {axis: (indices, range(axis, axis + indices.rank))}
    return read_at(b, data, places, dims, shape, stem, from_end)


@operator("Gather")
def _gather(node: Node):
    data, indices, b = node.input(0), node.input(1), node.b
    axis = node.axis(node.attribute("axis", 0), data.rank)
    if data.numbers is not None and indices.array is not None:
        try:
            numbers = np.asarray(np.take(data.numbers, indices.array, axis), object)
        except IndexError as error:
            raise node.error(error) from None
        return Value(numbers.shape, data.element, numbers=numbers)
    if indices.array is not None and indices.array.size == 1 and isinstance(data.shape[axis], int):
        # One slice, where it is.
        place = node.axis(int(indices.array.reshape(())), data.shape[axis], "an index")
        offsets = [place if d == axis else 0 for d in range(data.rank)]
        part = extract(b, data, offsets, [1 if d == axis else n for d, n in enumerate(data.shape)])
        return reshape(b, part, [*data.shape[:axis], *indices.shape, *data.shape[axis + 1 :]])
    return gather(b, data, indices, axis, node.stem)


@operator("GatherElements")
def _gather_elements(node: Node):
    data, indices, b = node.input(0), node.input(1), node.b
    axis = node.axis(node.attribute("axis", 0), data.rank)
    if indices.rank != data.rank:
        raise node.error(
            f"expected indices of {data.rank} dimensions, as data has, got {indices.rank}"
        )
    dims = {d: d for d in range(data.rank) if d != axis}
    for d in dims:
        b.require_at_most(
            indices.shape[d], data.shape[d],
            f"{node.stem}: expected no more indices than entries of dimension {d}",
        )  # fmt: skip
    places = {axis: (indices, range(data.rank))}
    return read_at(b, data, places, dims, indices.shape, node.stem)


@operator("GatherND")
def _gather_nd(node: Node):
    data, indices, b = node.input(0), node.input(1), node.b
    batch = node.attribute("batch_dims", 0)
    if not 0 <= batch < min(data.rank, indices.rank):
        raise node.error(
            f"expected batch_dims of 0 and more, less than the {data.rank} dimensions of data and "
            f"the {indices.rank} of indices, got {batch}"
        )
    count = indices.shape[-1]
    if isinstance(count, Extent) or not 1 <= count <= data.rank - batch:
        raise node.error(
            f"expected indices of 1 to {data.rank - batch} static coordinates, got {count}"
        )
    for d in range(batch):
        b.require_equal(
            indices.shape[d], data.shape[d],
            f"{node.stem}: expected data and indices of one extent of batch dimension {d}",
        )  # fmt: skip
    rank = indices.rank - 1
    places = {}
    for i in range(count):
        offsets, shape = [*[0] * rank, i], [*indices.shape[:-1], 1]
        coordinate = drop_units(b, extract(b, indices, offsets, shape), [rank])
        places[batch + i] = coordinate, range(rank)
    dims = {d: d for d in range(batch)}
    dims |= {axis: rank + axis - batch - count for axis in range(batch + count, data.rank)}
    shape = [*indices.shape[:-1], *data.shape[batch + count :]]
    return read_at(b, data, places, dims, shape, node.stem)
