"""Operators that reduce over axes: sums, means, softmax, normalizations."""

from __future__ import annotations

from ._builder import Value, compute_element, is_float
from ._extents import product
from ._registry import Node, element_of, operator
from ._views import extract, insert, reshape


def _sum(b, value, axes, square=False, stem="sum"):
    """Sums of elements, or of their squares, in the compute type."""
    wide = compute_element(value.element)

    def add(body, x, old):
        x = body.convert(x, value.element, wide)
        if square:
            x = body.binary("arith.mulf", x, x, wide)
        return body.binary("arith.addf" if is_float(wide) else "arith.addi", old, x, wide)

    return b.reduction(value, axes, 0, wide, add, stem=stem)


def _extreme(b, value, axes, op, stem="extreme"):
    """Maxima or minima, in the element type."""
    element = value.element
    if is_float(element):
        initial = float("-inf") if op == "max" else float("inf")
        name = f"arith.{op}imumf"
    elif element == "i1":
        initial, name = int(op == "min"), "arith.ori" if op == "max" else "arith.andi"
    else:
        bits = int(element[1:])
        initial = -(1 << bits - 1) if op == "max" else (1 << bits - 1) - 1
        name = f"arith.{op}si"
    return b.reduction(value, axes, initial, element, lambda body, x, old: body.binary(name, old, x, element),
                       stem=stem)  # fmt: skip


def _count(b, body, extents, type):
    """The product of extents as a scalar, in a body."""
    total = product(extents)
    if isinstance(total, int):
        return body.constant(total, type)
    integer = b.pure(f"arith.index_cast {b.index(total)} : index to i64", "count")
    return b.pure(f"arith.sitofp {integer} : i64 to {type}", "count")


def _axes(node: Node, rank):
    if node.input(1) is not None:
        axes = node.integers(1, "axes")
    else:
        axes = list(node.attribute("axes", []))
    if not axes and not node.attribute("noop_with_empty_axes", 0):
        axes = range(rank)
    return sorted({node.axis(axis, rank) for axis in axes})


@operator("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceSumSquare")
def _reduce(node: Node):
    value, b = node.input(0), node.b
    axes = _axes(node, value.rank)
    if not axes and node.op != "ReduceSumSquare":
        return value
    element = value.element
    if node.op in ("ReduceMax", "ReduceMin"):
        reduced = _extreme(b, value, axes, node.op[-3:].lower(), stem=node.stem)
    else:
        if node.op == "ReduceMean" and not is_float(element):
            raise node.error(f"expected floats, got {element}")
        reduced = _sum(b, value, axes, square=node.op == "ReduceSumSquare", stem=node.stem)

        def finish(body, x):
            wide = reduced.element
            if node.op == "ReduceMean":
                count = _count(b, body, [value.shape[d] for d in axes], wide)
                x = body.binary("arith.divf", x, count, wide)
            return [body.convert(x, wide, element)]

        if node.op == "ReduceMean" or reduced.element != element:
            dims = range(reduced.rank)
            reduced = b.generic(
                [(reduced, dims)], reduced.shape, [element], finish, stem=node.stem
            )[0]
    if not node.attribute("keepdims", 1):
        return reduced
    return reshape(b, reduced, [1 if d in axes else n for d, n in enumerate(value.shape)])


@operator("CumSum")
def _cumulative_sum(node: Node):
    """In order, by a loop over the axis that carries the sums so far."""
    value, b = node.input(0), node.b
    axes = node.integers(1, "the axis")
    if len(axes) != 1:
        raise node.error(f"expected one axis, got {axes}")
    axis = node.axis(axes[0], value.rank)
    element, wide = value.element, compute_element(value.element)
    if element == "i1":
        raise node.error("expected numbers, got booleans")
    if product(value.shape) == 0:
        return value
    count = value.shape[axis]
    is_reverse, is_exclusive = node.attribute("reverse", 0), node.attribute("exclusive", 0)
    row = [1 if d == axis else n for d, n in enumerate(value.shape)]
    dims = range(value.rank)

    def add(body, x, before, _):
        x = body.convert(x, element, wide)
        after = body.binary("arith.addf" if is_float(wide) else "arith.addi", before, x, wide)
        return [after, body.convert(before if is_exclusive else after, wide, element)]

    def step(i, sums, result):
        offsets = [(count - 1 - i if is_reverse else i) if d == axis else 0 for d in dims]
        parts = [extract(b, v, offsets, row) for v in (value, result)]
        sums, part = b.update([(parts[0], dims)], [sums, parts[1]], add, stem="sums")
        return sums, insert(b, part, result, offsets)

    sums = Value(row, wide, b.fill(0, row, wide))
    result = Value(value.shape, element, b.empty(value.shape, element))
    return b.loop(count, [sums, result], step, stem=node.stem)[1]


@operator("Softmax")
def _softmax(node: Node):
    value, b = node.input(0), node.b
    axis = node.axis(node.attribute("axis", -1), value.rank)
    element, wide = value.element, compute_element(value.element)
    all_dims = range(value.rank)
    kept = [d for d in all_dims if d != axis]
    largest = _extreme(b, value, [axis], "max", stem="largest")

    def exponential(body, x, most):
        x, most = body.convert(x, element, wide), body.convert(most, element, wide)
        return [body.unary("math.exp", body.binary("arith.subf", x, most, wide), wide)]

    (exps,) = b.generic(
        [(value, all_dims), (largest, kept)], value.shape, [wide], exponential, stem="exps"
    )
    total = _sum(b, exps, [axis])

    def divide(body, x, sum):
        return [body.convert(body.binary("arith.divf", x, sum, wide), wide, element)]

    return b.generic(
        [(exps, all_dims), (total, kept)], value.shape, [element], divide, stem=node.stem
    )[0]


def _affine(node, value, parameter):
    """A scale or bias and which dimensions of the value are its own; those of extent 1
    that are broadcast are left out."""
    rank, first = value.rank, value.rank - parameter.rank
    if parameter.rank > rank:
        raise node.error(
            f"expected a scale and a bias of at most {rank} dimensions, got {parameter.rank}"
        )
    units = []
    for d, n in enumerate(parameter.shape):
        if n == 1:
            units.append(d)
        else:
            node.b.require_equal(n, value.shape[first + d],
                                 f"{node.stem}: expected a scale and a bias of the input's extents")  # fmt: skip
    kept = [n for d, n in enumerate(parameter.shape) if d not in units]
    dims = [first + d for d in range(parameter.rank) if d not in units]
    return reshape(node.b, parameter, kept), dims


def _normalize(node: Node, centred):
    """(x - mean) / sqrt(variance + epsilon) * scale + bias over the last dimensions;
    not centred without the mean. Also the mean and the factor of each row."""
    value, b = node.input(0), node.b
    axis = node.axis(node.attribute("axis", -1), value.rank)
    axes = range(axis, value.rank)
    stash = element_of(node.attribute("stash_type", 1), "stash_type")
    element, wide = value.element, compute_element(value.element)
    if stash not in ("f32", wide):
        raise node.error(f"expected stash_type FLOAT, or DOUBLE of doubles, got {stash}")
    epsilon = node.attribute("epsilon", 1e-5)
    rows, dims = range(axis), range(value.rank)
    kept = [value.shape[d] for d in rows]
    reduced = [value.shape[d] for d in axes]

    means = []
    if centred:
        sums = _sum(b, value, axes)

        def mean(body, x):
            return [body.binary("arith.divf", x, _count(b, body, reduced, wide), wide)]

        means = b.generic([(sums, rows)], kept, [wide], mean, stem="mean")

        def centre(body, x, mean):
            return [body.binary("arith.subf", body.convert(x, element, wide), mean, wide)]

        (value,) = b.generic(
            [(value, dims), (means[0], rows)], value.shape, [wide], centre, stem="centred"
        )
    squares = _sum(b, value, axes, square=True, stem="squares")

    def factor(body, x):
        x = body.binary("arith.divf", x, _count(b, body, reduced, wide), wide)
        x = body.binary("arith.addf", x, body.constant(epsilon, wide), wide)
        return [body.unary("math.rsqrt", x, wide)]

    (factors,) = b.generic([(squares, rows)], kept, [wide], factor, stem="factor")
    parameters = [_affine(node, value, p) for p in node.inputs[1:] if p is not None]

    def finish(body, x, scale, *rest):
        y = body.binary("arith.mulf", body.convert(x, value.element, wide), scale, wide)
        for op, (parameter, _), p in zip(("arith.mulf", "arith.addf"), parameters, rest):
            y = body.binary(op, y, body.convert(p, parameter.element, wide), wide)
        return [body.convert(y, wide, element)]

    operands = [(value, dims), (factors, rows), *parameters]
    (result,) = b.generic(operands, value.shape, [element], finish, stem=node.stem)
    ones = [1] * len(reduced)
    return result, [reshape(b, m, [*kept, *ones]) for m in (*means, factors)]


@operator("LayerNormalization")
def _layer_normalization(node: Node):
    result, (mean, factor) = _normalize(node, centred=True)
    return result, mean, factor


@operator("RMSNormalization")
def _rms_normalization(node: Node):
    result, _ = _normalize(node, centred=False)
    return result
