"""A mask or bias of attention as a score of varlen.attn that reads a table.

A mask is broadcast to (B, H, S, T), booleans that say which keys are visible, or numbers
that are added to scores. It becomes numbers of the type that scores are of, in a table of
each key where queries share them, else in one of each query. What is -inf is hidden, so
that a query without a key has the result 0, as in ONNX.
"""

from __future__ import annotations

import numpy as np

from .. import scores
from ._builder import Value, is_float, scalar_literal
from ._extents import Extent, product
from ._registry import Node
from ._views import reshape


class Mask:
    """A mask of a node, `value` in four dimensions, for queries (B, H, S, D) and keys;
    `what` is the input's name."""

    def __init__(self, node: Node, mask: Value, what, q: Value, keys):
        b = node.b
        if not 1 <= mask.rank <= 4:
            raise node.error(f"expected {what} of 1 to 4 dimensions, got {mask.rank}")
        self._b, self._keys = b, keys
        self._batch, self._heads, self._rows = q.shape[:3]
        self.value = reshape(b, mask, [*[1] * (4 - mask.rank), *mask.shape])
        *shared, columns = self.value.shape
        for name, extent, wanted in zip(("batch", "heads", "queries"), shared, q.shape):
            if extent != 1:
                b.require_equal(
                    extent, wanted, f"{node.stem}: expected the {name} of {what} to be Q's or 1"
                )
        # It may end before the keys do: those behind it are hidden.
        self._limit = None
        if columns != keys:
            if isinstance(columns, Extent):
                message = f"{node.stem}: expected {what} to have all keys"
                b.require_equal(columns, keys, message)
            else:
                self._limit = columns
                message = f"{node.stem}: expected {what} to have no more than all keys"
                b.require_at_most(columns, keys, message)
        self._is_of_keys = shared[2] == 1 and self._limit is None

    @property
    def score(self):
        of = "key_table" if self._is_of_keys else "query_table"
        return _make_score(self.value.element == "i1", of, self._limit)

    def capture(self, tokens_first, group, compute):
        """The table for rows of all heads, or of those that share a kv head."""
        extents = {
            "batch": self._batch, "kv_heads": self._heads // group, "group": group,
            "rows": self._rows, "keys": self.value.shape[3],
        }  # fmt: skip
        if self._is_of_keys:
            del extents["rows"]
        last = [name for name in ("rows", "keys") if name in extents]
        if tokens_first:
            order = ["kv_heads", "group", "batch", *last]
            heads = product([extents["kv_heads"], group])
        else:
            order = ["group", "batch", "kv_heads", *last]
            heads = group
        key = "mask", self._b.use(self.value), *order, group, compute
        return self._b.once(key, lambda: self._make(extents, order, heads, compute))

    def _make(self, extents, order, heads, compute):
        batch, mask_heads, rows, keys = self.value.shape
        source = []
        if batch != 1:
            source.append("batch")
        if mask_heads != 1:
            source += ["kv_heads", "group"]
        if rows != 1 and "rows" in extents:
            source.append("rows")
        source.append("keys")
        value = reshape(self._b, self.value, [extents[name] for name in source])
        element = self.value.element
        (table,) = self._b.generic(
            [(value, [order.index(name) for name in source])],
            [extents[name] for name in order],
            [compute],
            lambda body, x: [_bound(body, body.convert(x, element, compute), element, compute)],
            stem="mask",
        )
        rows = product(extents[name] for name in order if name in ("batch", "rows"))
        if order[0] == "group":
            rows = rows * extents["kv_heads"]
        shape = [heads, rows * keys] if self._is_of_keys else [heads, rows, keys]
        return reshape(self._b, table, shape)


# Far from where a score times log2(e), whose power of 2 is taken, would not be finite.
_LOWEST = {"f32": -1e30, "f64": -1e300}


def _bound(body, number, element, compute):
    """The number of a mask, where it is the lowest one of its type a bit higher: a query
    for which it is that of all keys weighs them equally."""
    if not is_float(element):
        return number
    lowest = body.constant(_LOWEST[compute], compute)
    infinity = body.constant(-np.inf, compute)
    bounded = body.binary("arith.maximumf", number, lowest, compute)
    is_hidden = body.op(f"arith.cmpf oeq, {number}, {infinity} : {compute}")
    return body.select(is_hidden, number, bounded, compute)


def _make_score(is_boolean, of, limit):
    """The score for a mask; keys from `limit` on, if there is one, are hidden."""

    def text(type):
        table = f"!varlen.table<{type}{', keys' if of == 'key_table' else ''}>"
        lines = [f"%m = varlen.lookup %mask[%key] : {table}"]
        if is_boolean:
            lines.append(f"%none = arith.constant 0.0 : {type}")
        else:
            lines += [
                f"%new = arith.addf %score, %m : {type}",
                f"%none = arith.constant {scalar_literal(-np.inf, type)} : {type}",
            ]
        seen = "%visible" if limit is None else "%seen"
        lines.append(f"{seen} = arith.cmpf une, %m, %none : {type}")
        if limit is not None:
            lines += [
                f"%limit = arith.constant {limit} : i32",
                "%within = arith.cmpi slt, %key, %limit : i32",
                "%visible = arith.andi %seen, %within : i1",
            ]
        return "\n".join(lines)

    def visible(query, key, mask):
        seen = mask(key) != (0 if is_boolean else -np.inf)
        return seen if limit is None else seen & (key < limit)

    if is_boolean:
        return scores.Score("attn_mask", text, None, None, {"mask": of}, visible)
    return scores.Score(
        "attn_mask", text, lambda s, query, key, mask: s + mask(key),
        lambda s, query, key, mask: [np.ones_like(s), [(key, np.ones_like(s))]],
        {"mask": of}, visible,
    )  # fmt: skip
