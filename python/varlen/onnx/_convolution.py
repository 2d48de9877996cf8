"""Conv, of any number of spatial dimensions.

Of one group it is a product of matrices: the inputs of each result, copied into a row,
and the weights. Of several it is a linalg operation that reads its inputs where they are,
as the rows of all groups would be larger than what is computed of them is worth.
"""

from __future__ import annotations

import dataclasses

from ._builder import Value, compute_element
from ._extents import Extent, product
from ._products import multiply
from ._registry import Node, operator
from ._views import insert, reshape, transpose


@dataclasses.dataclass
class _Axis:
    """How a spatial dimension is read: result o reads o * stride + i * dilation, i < kernel."""

    kernel: int
    stride: int
    dilation: int
    before: object = 0  # rows of zeros
    after: object = 0
    extent: object = 0  # of the result

    @property
    def span(self):
        return (self.kernel - 1) * self.dilation + 1

    def index(self, result, offset):
        """The affine expression of two loops that is the place in the input."""
        return f"d{result} * {self.stride} + d{offset} * {self.dilation}"


def _same_pads(b, axis, extent, mode):
    """Zeros so that there is a result for each `stride` inputs."""
    results = b.index_op("ceildivsi", extent, axis.stride)
    total = b.index_op("maxsi", (results - 1) * axis.stride + axis.span - extent, 0)
    half = b.index_op("floordivsi", total, 2)
    return (half, total - half) if mode == "SAME_UPPER" else (total - half, half)


def _read_axes(node: Node, x: Value, weights: Value):
    b, rank = node.b, x.rank - 2
    kernel = weights.shape[2:]
    if any(isinstance(n, Extent) for n in weights.shape) or 0 in weights.shape:
        raise node.error(f"expected W of static extents of 1 and more, got {list(weights.shape)}")
    given = node.attribute("kernel_shape")
    if given is not None and list(given) != list(kernel):
        raise node.error(f"expected kernel_shape {list(kernel)}, as W has, got {list(given)}")
    lists = {}
    for name, count, least, default in (
        ("strides", rank, 1, 1), ("dilations", rank, 1, 1), ("pads", 2 * rank, 0, 0),
    ):  # fmt: skip
        lists[name] = list(node.attribute(name, [default] * count))
        if len(lists[name]) != count or min(lists[name]) < least:
            raise node.error(
                f"expected {count} {name} of {least} and more, got {lists[name]}"
            )
    mode = node.attribute("auto_pad", "NOTSET")
    if mode not in ("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"):
        raise node.error(f"expected auto_pad NOTSET, VALID, SAME_UPPER or SAME_LOWER, got {mode}")
    axes = []
    for d in range(rank):
        axis = _Axis(kernel[d], lists["strides"][d], lists["dilations"][d])
        extent = x.shape[2 + d]
        if mode == "NOTSET":
            axis.before, axis.after = lists["pads"][d], lists["pads"][rank + d]
        elif mode != "VALID":
            axis.before, axis.after = _same_pads(b, axis, extent, mode)
        padded = axis.before + extent + axis.after
        b.require_at_most(
            axis.span, padded, f"{node.stem}: expected no less than a kernel of dimension {2 + d}"
        )
        axis.extent = b.index_op("floordivsi", padded - axis.span, axis.stride) + 1
        axes.append(axis)
    return axes


def _pad(b, x, axes):
    """x with the zeros around it."""
    if all(axis.before == 0 and axis.after == 0 for axis in axes):
        return x
    shape = [*x.shape[:2], *(a.before + n + a.after for a, n in zip(axes, x.shape[2:]))]
    zeros = Value(shape, x.element, b.fill(0, shape, x.element))
    return insert(b, x, zeros, [0, 0, *(a.before for a in axes)])


def _by_rows(node, x, weights, axes):
    """The sums (N, results..., M), of one group."""
    b, rank = node.b, len(axes)
    batch, channels = x.shape[:2]
    results = [axis.extent for axis in axes]
    # Loops: n, results, c, kernel.
    first = rank + 2
    places = [axis.index(1 + d, first + d) for d, axis in enumerate(axes)]
    kernel = [axis.kernel for axis in axes]
    (rows,) = b.generic(
        [(x, [0, 1 + rank, *places])], [batch, *results, channels, *kernel], [x.element],
        lambda body, value: [value], stem="rows",
    )  # fmt: skip
    depth, count = channels * product(kernel), product([batch, *results])
    columns = transpose(b, reshape(b, weights, [weights.shape[0], depth]), [1, 0])
    sums = multiply(node, "matmul", reshape(b, rows, [count, depth]), columns,
                    [count, weights.shape[0]])  # fmt: skip
    return reshape(b, sums, [batch, *results, weights.shape[0]])


def _by_groups(node, x, weights, axes, groups):
    """The sums (N, results..., M)."""
    b, rank = node.b, len(axes)
    width, features = weights.shape[1], weights.shape[0] // groups
    x = reshape(b, x, [x.shape[0], groups, width, *x.shape[2:]])
    weights = reshape(b, weights, [groups, features, *weights.shape[1:]])
    results = [axis.extent for axis in axes]
    # Loops: n, results, group, feature, c, kernel.
    group, feature, channel = rank + 1, rank + 2, rank + 3
    offsets = range(rank + 4, 2 * rank + 4)
    places = [axis.index(1 + d, offsets[d]) for d, axis in enumerate(axes)]
    sums = b.contraction(
        [(x, [0, group, channel, *places]), (weights, [group, feature, channel, *offsets])],
        range(rank + 3), ["parallel"] * (rank + 3) + ["reduction"] * (rank + 1),
        [x.shape[0], *results, groups, features], compute_element(x.element), stem="sums",
    )  # fmt: skip
    return reshape(b, sums, [x.shape[0], *results, groups * features])


@operator("Conv")
def _conv(node: Node):
    b, (x, weights), bias = node.b, node.inputs[:2], node.input(2)
    if x.rank < 3 or weights.rank != x.rank:
        raise node.error(
            f"expected X and W of one number of dimensions, 3 and more, got {x.rank} and {weights.rank}"
        )
    element, wide = x.element, compute_element(x.element)
    axes = _read_axes(node, x, weights)
    groups = node.attribute("group", 1)
    if groups < 1 or weights.shape[0] % groups:
        raise node.error(f"expected groups that divide {weights.shape[0]} features, got {groups}")
    b.require_equal(x.shape[1], groups * weights.shape[1],
                    f"{node.stem}: expected the channels of X to be those of W in each group")  # fmt: skip
    x = _pad(b, x, axes)
    sums = _by_rows(node, x, weights, axes) if groups == 1 else _by_groups(node, x, weights, axes, groups)
    rank = len(axes)
    features = weights.shape[0]
    operands = [(sums, [0, *range(2, 2 + rank), 1])]
    if bias is not None:
        b.require_equal(bias.shape[0], features, f"{node.stem}: expected a bias of each feature")
        operands.append((bias, [1]))

    def finish(body, total, *biases):
        for number in biases:
            number = body.convert(number, element, wide)
            total = body.binary("arith.addf", total, number, wide)
        return [body.convert(total, wide, element)]

    shape = [x.shape[0], features, *(axis.extent for axis in axes)]
    return b.generic(operands, shape, [element], finish, stem=node.stem)[0]
