"""Rotary positions, by tables of cosines and sines."""

from __future__ import annotations

from ._builder import Value, compute_element
from ._extents import Extent
from ._gathers import gather
from ._registry import Node
from ._views import extract, insert


def rotate(node: Node, x: Value, cos: Value, sin: Value, positions: Value, is_interleaved):
    """Rows x (B, S, heads, D) at positions (B, S), with pairs of their first 2 * R elements
    rotated; cos and sin are (positions, R). Pairs are neighbours where interleaved, else
    R apart."""
    b, element, wide = node.b, x.element, compute_element(x.element)
    for name, table in (("cos", cos), ("sin", sin)):
        if table.rank != 2 or isinstance(table.shape[1], Extent):
            raise node.error(f"expected a {name}_cache of positions x a static extent, got {list(table.shape)}")
    pairs, width = cos.shape[1], x.shape[3]
    if sin.shape[1] != pairs or isinstance(width, Extent) or 2 * pairs > width:
        raise node.error(
            f"expected cos_cache and sin_cache of at most half of head_dim {width}, got {pairs} and {sin.shape[1]}"
        )
    if positions.rank != 2:
        raise node.error(f"expected position_ids of 2 dimensions, got {positions.rank}")
    for d, name in enumerate(("batch", "rows")):
        b.require_equal(positions.shape[d], x.shape[d], f"{node.stem}: expected position_ids of the query's {name}")
    angles = [gather(b, table, positions, 0, node.stem, from_end=False) for table in (cos, sin)]
    step, second = (2, 1) if is_interleaved else (1, pairs)
    steps, shape = [1, 1, 1, step], [*x.shape[:3], pairs]
    parts = [extract(b, x, [0, 0, 0, first], shape, steps) for first in (0, second)]

    def turn(body, *scalars):
        left, right, c, s = (body.convert(n, element, wide) for n in scalars)

        def products(a, c, op, e, d):
            a, e = body.binary("arith.mulf", a, c, wide), body.binary("arith.mulf", e, d, wide)
            return body.convert(body.binary(f"arith.{op}f", a, e, wide), wide, element)

        return [products(left, c, "sub", right, s), products(left, s, "add", right, c)]

    operands = [*((part, range(4)) for part in parts), *((angle, [0, 1, 3]) for angle in angles)]
    turned = b.generic(operands, shape, [element, element], turn, stem="turned")
    result = Value(x.shape, element, b.empty(x.shape, element))
    for part, first in zip(turned, (0, second)):
        result = insert(b, part, result, [0, 0, 0, first], steps)
    if 2 * pairs < width:
        offsets = [0, 0, 0, 2 * pairs]
        rest = extract(b, x, offsets, [*x.shape[:3], width - 2 * pairs])
        result = insert(b, rest, result, offsets)
    return result
