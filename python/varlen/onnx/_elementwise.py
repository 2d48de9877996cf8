"""Operators that compute each element of the result from one of each input."""

from __future__ import annotations

import operator as operators

import numpy as np

from ._builder import Value, compute_element, is_float
from ._extents import Extent
from ._registry import Node, element_of, operator
from ._shapes import broadcast_shape
from ._views import broadcast_operand


def elementwise(node: Node, inputs, element, compute):
    """The result of a function of scalars on inputs that are broadcast.

    Args:
        inputs: Values.
        element: The result's element type.
        compute: Called on a Body and the scalars; returns the result's.
    """
    b = node.b
    shape = broadcast_shape(node, [value.shape for value in inputs])
    operands, scalars = [], {}
    for i, value in enumerate(inputs):
        if value.array is not None and value.array.size == 1:
            scalars[i] = b.scalar(value.array.reshape(()).item(), value.element)
        else:
            operands.append(broadcast_operand(b, value, shape))

    def body(region, *loaded):
        rest = iter(loaded)
        values = [scalars[i] if i in scalars else next(rest) for i in range(len(inputs))]
        return [compute(region, *values)]

    return b.generic(operands, shape, [element], body, stem=node.stem)[0]


def _same(node, inputs):
    """The element type that inputs have in common."""
    elements = {value.element for value in inputs}
    if len(elements) != 1:
        raise node.error(f"expected inputs of one element type, got {', '.join(sorted(elements))}")
    return elements.pop()


def _floats(node, inputs):
    element = _same(node, inputs)
    if not is_float(element):
        raise node.error(f"expected floats, got {element}")
    return element


def arithmetic(node: Node, inputs, compute):
    """An elementwise function that is computed in the compute type of its inputs.
    `compute` takes a Body, the type and the scalars."""
    element = _same(node, inputs)
    wide = compute_element(element)

    def body(region, *scalars):
        scalars = [region.convert(s, element, wide) for s in scalars]
        return region.convert(compute(region, wide, *scalars), wide, element)

    return elementwise(node, inputs, element, body)


# On what shapes are computed from; without floats.
_ON_NUMBERS = {
    "Add": operators.add, "Sub": operators.sub, "Mul": operators.mul,
}  # fmt: skip


def _fold_numbers(node):
    """The result where inputs are ints and Extents."""
    if node.op not in _ON_NUMBERS or any(v.numbers is None for v in node.inputs):
        return None
    numbers = np.asarray(_ON_NUMBERS[node.op](*(v.numbers for v in node.inputs)), object)
    return Value(numbers.shape, node.inputs[0].element, numbers=numbers)


_BINARY = {
    "Add": ("arith.addf", "arith.addi"), "Sub": ("arith.subf", "arith.subi"),
    "Mul": ("arith.mulf", "arith.muli"), "Div": ("arith.divf", None),
    "Max": ("arith.maximumf", "arith.maxsi"), "Min": ("arith.minimumf", "arith.minsi"),
    "Sum": ("arith.addf", "arith.addi"),
}  # fmt: skip


@operator(*_BINARY)
def _binary(node: Node):
    folded = _fold_numbers(node)
    if folded is not None:
        return folded
    on_floats, on_integers = _BINARY[node.op]
    element = _same(node, node.inputs)
    op = on_floats if is_float(element) else on_integers
    if op is None:
        return _divide_integers(node, element)

    def fold(body, type, first, *rest):
        for other in rest:
            first = body.binary(op, first, other, type)
        return first

    return arithmetic(node, node.inputs, fold)


def _divide_integers(node, element):
    dividend, divisor = node.inputs
    if divisor.array is not None and dividend.numbers is not None and (divisor.array > 0).all():
        # Extents are not negative: rounded down is rounded to 0.
        quotients = [
            node.b.index_op("floordivsi", a, int(c))
            for a, c in np.broadcast(dividend.numbers, divisor.array)
        ]
        numbers = np.empty(np.broadcast(dividend.numbers, divisor.array).shape, object)
        numbers.reshape(-1)[:] = quotients
        return Value(numbers.shape, element, numbers=numbers)
    if divisor.array is None or (divisor.array == 0).any() or (divisor.array == -1).any():
        raise node.error("expected integers to be divided by constants other than 0 and -1")
    return elementwise(
        node, node.inputs, element, lambda b, x, y: b.binary("arith.divsi", x, y, element)
    )


# Of one float: an operation of the math dialect.
_MATH = {
    "Sqrt": "math.sqrt", "Exp": "math.exp", "Log": "math.log", "Erf": "math.erf",
    "Tanh": "math.tanh", "Sin": "math.sin", "Cos": "math.cos", "Floor": "math.floor",
    "Ceil": "math.ceil", "Round": "math.roundeven",
}  # fmt: skip


@operator(*_MATH)
def _math(node: Node):
    _floats(node, node.inputs)
    return arithmetic(node, node.inputs, lambda b, type, x: b.unary(_MATH[node.op], x, type))


def sigmoid(body, x, type):
    """1 / (1 + exp(-x)): 0 and 1 where exp is infinite and 0."""
    one = body.constant(1, type)
    e = body.unary("math.exp", body.unary("arith.negf", x, type), type)
    return body.binary("arith.divf", one, body.binary("arith.addf", one, e, type), type)


@operator("Sigmoid")
def _sigmoid(node: Node):
    _floats(node, node.inputs)
    return arithmetic(node, node.inputs, lambda b, type, x: sigmoid(b, x, type))


@operator("Reciprocal")
def _reciprocal(node: Node):
    _floats(node, node.inputs)
    return arithmetic(
        node, node.inputs, lambda b, type, x: b.binary("arith.divf", b.constant(1, type), x, type)
    )


@operator("Relu")
def _relu(node: Node):
    _floats(node, node.inputs)
    return arithmetic(
        node,
        node.inputs,
        lambda b, type, x: b.binary("arith.maximumf", x, b.constant(0, type), type),
    )


@operator("Clip")
def _clip(node: Node):
    # Which bounds there are; the upper one counts where they cross.
    bounds = [(i, name) for i, name in ((1, "max"), (2, "min")) if node.input(i) is not None]
    inputs = [node.input(0), *(node.input(i) for i, _ in bounds)]

    def clip(b, type, x, *limits):
        suffix = "imumf" if is_float(type) else "si"
        for (_, name), limit in zip(bounds, limits):
            x = b.binary(f"arith.{name}{suffix}", x, limit, type)
        return x

    return arithmetic(node, inputs, clip)


@operator("Neg", "Abs")
def _sign(node: Node):
    element = node.input(0).element

    def integer(b, type, x):
        negated = b.binary("arith.subi", b.constant(0, type), x, type)
        return negated if node.op == "Neg" else b.binary("arith.maxsi", x, negated, type)

    def real(b, type, x):
        return b.unary("arith.negf" if node.op == "Neg" else "math.absf", x, type)

    return arithmetic(node, node.inputs, real if is_float(element) else integer)


@operator("Pow")
def _pow(node: Node):
    base, exponent = node.inputs
    element = base.element
    constant = None
    if exponent.array is not None and exponent.array.size == 1:
        constant = exponent.array.reshape(()).item()
    if constant in (1, 2, 3):

        def multiply(b, type, x):
            result = x
            for _ in range(int(constant) - 1):
                result = b.binary("arith.mulf" if is_float(type) else "arith.muli", result, x, type)
            return result

        return arithmetic(node, [base], multiply)
    _floats(node, [base])
    if constant == 0.5:
        return arithmetic(node, [base], lambda b, type, x: b.unary("math.sqrt", x, type))
    wide = compute_element(element)

    def power(b, x, y):
        x, y = b.convert(x, element, wide), b.convert(y, exponent.element, wide)
        return b.convert(b.binary("math.powf", x, y, wide), wide, element)

    return elementwise(node, node.inputs, element, power)


@operator("Gelu")
def _gelu(node: Node):
    _floats(node, node.inputs)
    approximate = node.attribute("approximate", "none")
    if approximate not in ("none", "tanh"):
        raise node.error(f"expected approximate to be none or tanh, got {approximate}")

    def gelu(b, type, x):
        if approximate == "none":
            scaled = b.binary("arith.mulf", x, b.constant(0.5**0.5, type), type)
            inner = b.unary("math.erf", scaled, type)
        else:
            cube = b.binary("arith.mulf", b.binary("arith.mulf", x, x, type), x, type)
            cube = b.binary("arith.mulf", cube, b.constant(0.044715, type), type)
            scale = b.constant((2 / np.pi) ** 0.5, type)
            scaled = b.binary("arith.mulf", b.binary("arith.addf", x, cube, type), scale, type)
            inner = b.unary("math.tanh", scaled, type)
        half = b.binary("arith.mulf", x, b.constant(0.5, type), type)
        return b.binary(
            "arith.mulf", half, b.binary("arith.addf", inner, b.constant(1, type), type), type
        )

    return arithmetic(node, node.inputs, gelu)


_COMPARISONS = {
    "Equal": ("oeq", "eq"), "Less": ("olt", "slt"), "LessOrEqual": ("ole", "sle"),
    "Greater": ("ogt", "sgt"), "GreaterOrEqual": ("oge", "sge"),
}  # fmt: skip


def _compare_numbers(node):
    """Whether ints and Extents are equal, where that is known: an extent is no -1."""
    left, right = node.inputs
    if node.op != "Equal" or left.numbers is None or right.numbers is None:
        return None
    left, right = np.broadcast_arrays(left.numbers, right.numbers)
    result = np.empty(left.shape, bool)
    for place in np.ndindex(left.shape):
        a, c = left[place], right[place]
        known = (
            a == c
            or not isinstance(a - c, Extent)
            or any(isinstance(n, int) and n < 0 for n in (a, c))
        )
        if not known:
            return None
        result[place] = a == c
    return node.b.constant(result)


@operator(*_COMPARISONS)
def _compare(node: Node):
    known = _compare_numbers(node)
    if known is not None:
        return known
    element = _same(node, node.inputs)
    on_floats, on_integers = _COMPARISONS[node.op]
    op = f"arith.cmpf {on_floats}," if is_float(element) else f"arith.cmpi {on_integers},"
    return elementwise(node, node.inputs, "i1", lambda b, x, y: b.binary(op, x, y, element))


@operator("And", "Or", "Xor")
def _logic(node: Node):
    op = {"And": "arith.andi", "Or": "arith.ori", "Xor": "arith.xori"}[node.op]
    return elementwise(node, node.inputs, "i1", lambda b, x, y: b.binary(op, x, y, "i1"))


@operator("Not")
def _not(node: Node):
    return elementwise(
        node, node.inputs, "i1", lambda b, x: b.binary("arith.xori", x, b.constant(1, "i1"), "i1")
    )


@operator("IsNaN")
def _is_nan(node: Node):
    element = _floats(node, node.inputs)
    return elementwise(
        node, node.inputs, "i1", lambda b, x: b.binary("arith.cmpf uno,", x, x, element)
    )


@operator("Where")
def _where(node: Node):
    condition, left, right = node.inputs
    if condition.array is not None and left.numbers is not None and right.numbers is not None:
        numbers = np.asarray(np.where(condition.array, left.numbers, right.numbers), object)
        return Value(numbers.shape, left.element, numbers=numbers)
    element = _same(node, [left, right])
    return elementwise(node, node.inputs, element, lambda b, c, x, y: b.select(c, x, y, element))


@operator("Cast")
def _cast(node: Node):
    value = node.input(0)
    return cast(node, value, element_of(node.attribute("to"), "Cast"))


@operator("CastLike")
def _cast_like(node: Node):
    return cast(node, node.input(0), node.input(1).element)


def cast(node: Node, value: Value, element):
    if value.element == element:
        return value
    if value.numbers is not None and element in ("i64", "i32"):
        return Value(value.shape, element, numbers=value.numbers)
    return elementwise(node, [value], element, lambda b, x: b.convert(x, value.element, element))
