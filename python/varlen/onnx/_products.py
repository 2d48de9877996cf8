"""Matrix products."""

from __future__ import annotations

from ._builder import Value, compute_element, is_float
from ._extents import product
from ._registry import Node, operator
from ._shapes import broadcast_shape
from ._views import broadcast_operand, reshape, transpose


def _round(node, value, element):
    """Sums in the element type of the result."""
    if value.element == element:
        return value
    return node.b.generic([(value, range(value.rank))], value.shape, [element],
                          lambda body, x: [body.convert(x, value.element, element)], stem=node.stem)[0]  # fmt: skip


def _check(node, left, right, depth_left, depth_right):
    if left.element != right.element:
        raise node.error(
            f"expected inputs of one element type, got {left.element} and {right.element}"
        )
    node.b.require_equal(depth_left, depth_right,
                         f"{node.stem}: expected the columns of A to be as many as the rows of B")  # fmt: skip


def multiply(node, op, left, right, shape):
    """linalg.matmul or linalg.batch_matmul; the sums."""
    b, wide = node.b, compute_element(left.element)
    zeros, result = b.fill(0, shape, wide), Value(shape, wide)
    result.name = b.new(
        f"linalg.{op} ins({b.use(left)}, {b.use(right)} : {left.type}, {right.type}) "
        f"outs({zeros} : {result.type}) -> {result.type}", node.stem
    )  # fmt: skip
    return result


@operator("MatMul")
def _matmul(node: Node):
    left, right = node.inputs
    b, element = node.b, left.element
    if not left.rank or not right.rank:
        raise node.error("expected inputs of one dimension and more, got a scalar")
    rows = [] if left.rank == 1 else [left.shape[-2]]
    columns = [] if right.rank == 1 else [right.shape[-1]]
    if left.rank == 1:
        left = reshape(b, left, [1, *left.shape])
    if right.rank == 1:
        right = reshape(b, right, [*right.shape, 1])
    depth = left.shape[-1]
    _check(node, left, right, depth, right.shape[-2])
    n = right.shape[-1]
    if right.rank == 2:
        m = product(left.shape[:-1])
        flat = multiply(node, "matmul", reshape(b, left, [m, depth]), right, [m, n])
        batch = left.shape[:-2]
    else:
        batch = broadcast_shape(node, [left.shape[:-2], right.shape[:-2]])
        flat = _batched(node, left, right, batch)
    return reshape(b, _round(node, flat, element), [*batch, *rows, *columns])


def _batched(node, left, right, batch):
    """Sums of products of matrices, for each of a batch that may be broadcast."""
    b, m, n, depth = node.b, left.shape[-2], right.shape[-1], left.shape[-1]
    count = product(batch)
    if left.shape[:-2] == batch and right.shape[:-2] == batch:
        left, right = reshape(b, left, [count, m, depth]), reshape(b, right, [count, depth, n])
        return reshape(b, multiply(node, "batch_matmul", left, right, [count, m, n]), [*batch, m, n])
    rank = len(batch)
    operands = []
    for value, last in ((left, [rank, rank + 2]), (right, [rank + 2, rank + 1])):
        # The dimensions of the matrix stay, of extent 1 or not.
        units = [
            d
            for d in range(value.rank - 2)
            if value.shape[d] == 1 and batch[d - value.rank + 2] != 1
        ]
        dims = [rank - (value.rank - 2) + d for d in range(value.rank - 2) if d not in units]
        kept = [extent for d, extent in enumerate(value.shape) if d not in units]
        operands.append((reshape(b, value, kept), [*dims, *last]))
    kinds = [*["parallel"] * (rank + 2), "reduction"]
    return b.contraction(operands, range(rank + 2), kinds, [*batch, m, n],
                         compute_element(left.element), stem=node.stem)  # fmt: skip


@operator("Gemm")
def _gemm(node: Node):
    left, right, bias = node.input(0), node.input(1), node.input(2)
    b, element = node.b, left.element
    if left.rank != 2 or right.rank != 2:
        raise node.error(f"expected matrices, got {left.rank} and {right.rank} dimensions")
    left = transpose(b, left, [1, 0]) if node.attribute("transA", 0) else left
    right = transpose(b, right, [1, 0]) if node.attribute("transB", 0) else right
    _check(node, left, right, left.shape[1], right.shape[0])
    shape = (left.shape[0], right.shape[1])
    sums = multiply(node, "matmul", left, right, shape)
    alpha, beta = node.attribute("alpha", 1.0), node.attribute("beta", 1.0)
    if bias is None and alpha == 1:
        return _round(node, sums, element)
    if not is_float(element) and (alpha != 1 or beta != 1):
        raise node.error("expected alpha and beta of 1 with integers")
    operands = [(sums, range(2))]
    if bias is not None:
        if broadcast_shape(node, [shape, bias.shape]) != shape:
            raise node.error(f"expected C to be broadcast to {list(shape)}, got {list(bias.shape)}")
        operands.append(broadcast_operand(b, bias, shape))

    def finish(body, x, *biases):
        wide = sums.element
        suffix = "f" if is_float(wide) else "i"
        if alpha != 1:
            x = body.binary("arith.mulf", x, body.constant(alpha, wide), wide)
        for c in biases:
            c = body.convert(c, element, wide)
            if beta != 1:
                c = body.binary("arith.mulf", c, body.constant(beta, wide), wide)
            x = body.binary(f"arith.add{suffix}", x, c, wide)
        return [body.convert(x, wide, element)]

    return b.generic(operands, shape, [element], finish, stem=node.stem)[0]
