"""varlen.attn for attention of tensors: the sequences of a batch are packed.

A batch of B x S rows is B sequences of S rows, so packing it is a reshape. Which
dimensions are rows depends on how keys lie:

tokens first (B, S, H, D): B sequences, rows of H heads.
heads first (B, H, S, D): B * kv_heads sequences, rows of as many query heads as share a
kv head. Keys are then never copied, queries only where heads are grouped.
"""

from __future__ import annotations

import dataclasses

from .. import scores, text
from ._builder import Value, scalar_literal
from ._extents import Extent
from ._mask import Mask
from ._registry import Node
from ._views import concatenate, reshape, transpose, untransposed

# (B, S, H, D) from (B, H, S, D), and back.
SWAP = [0, 2, 1, 3]


@dataclasses.dataclass
class Attention:
    """q, k and v as (B, H, S, D), and what changes and masks their scores.

    window: Keys to the left and to the right of a query's own, -1: all.
    is_last_at_end: Whether the last query is at the last key, as in mask's bottom_right;
        else query i is at key i + offset.
    offset: i64 for each sequence, or None: 0.
    used: How many keys of each sequence there are, i64, or None: all.
    mask: What is added to scores, and hides keys.
    sink: The score, for each head, of one more key that has no value, or None.
    """

    q: Value
    k: Value
    v: Value
    window: tuple[int, int] = (-1, -1)
    is_last_at_end: bool = True
    offset: Value | None = None
    used: Value | None = None
    mask: Mask | None = None
    softcap: float = 0.0
    scale: float | None = None
    sink: Value | None = None


def split_heads(b, value, heads):
    """(B, S, H * D) as (B, H, S, D)."""
    split = reshape(b, value, [*value.shape[:2], heads, value.shape[2] // heads])
    return transpose(b, split, SWAP)


def join_heads(b, value):
    """(B, H, S, D) as (B, S, H * D)."""
    out = transpose(b, value, SWAP)
    return reshape(b, out, [*out.shape[:2], out.shape[2] * out.shape[3]])


def check_width(node: Node, name, value, heads):
    """That the last dimension is made of as many heads."""
    if isinstance(value.shape[-1], Extent) or value.shape[-1] % heads:
        raise node.error(
            f"expected a static width of {name} that {heads} heads divide, got {value.shape[-1]}"
        )


def check_inputs(node: Node, q, k, v):
    """That (B, H, S, D) are of one batch, of as many keys as values, and of heads that
    share."""
    for name, value in (("Q", q), ("K", k), ("V", v)):
        if isinstance(value.shape[1], Extent):
            raise node.error(f"expected a static number of heads of {name}, got {value.shape[1]}")
    if k.shape[1] != v.shape[1] or q.shape[1] % k.shape[1]:
        raise node.error(f"expected as many heads of K as of V, which divide those of Q, got {k.shape[1]}, "
                         f"{v.shape[1]} and {q.shape[1]}")  # fmt: skip
    for d, what, values in (
        (0, "batch", (q, k, v)),
        (2, "rows of keys", (k, v)),
        (3, "head_dim", (q, k)),
    ):
        for value in values[1:]:
            node.b.require_equal(
                values[0].shape[d], value.shape[d], f"{node.stem}: expected inputs of one {what}"
            )


def append(node: Node, past, new):
    """Rows (B, H, S, D) behind those of a cache."""
    node.b.require_equal(past.rank, 4, f"{node.stem}: expected a cache of 4 dimensions")
    for d in (0, 1, 3):
        node.b.require_equal(past.shape[d], new.shape[d],
                             f"{node.stem}: expected the extents of the cache to be those of the new rows")  # fmt: skip
    shape = [*past.shape[:2], past.shape[2] + new.shape[2], past.shape[3]]
    return concatenate(node.b, [past, new], 2, shape)


def splat(b, extent, count, stem):
    """i64 of an extent, `count` times."""
    number = b.pure(f"arith.index_cast {b.index(extent)} : index to i64", "n")
    return b.generic([], (count,), ["i64"], lambda body: [number], stem=stem)[0]


def _cu_seqlens(b, sequences, length):
    """0, length, 2 * length, ..."""
    rows = b.index(length)

    def begin(body):
        row = body.binary("arith.muli", body.index(0), rows, "index")
        return [body.op(f"arith.index_cast {row} : index to i64")]

    return b.generic([], (sequences + 1,), ["i64"], begin, stem="cu_seqlens")[0]


def attend(node: Node, attention: Attention):
    """The result (B, H, S, Dv)."""
    b, (q, k, v) = node.b, (attention.q, attention.k, attention.v)
    batch, heads, rows, head_dim = q.shape
    kv_heads, keys, v_head_dim = k.shape[1], k.shape[2], v.shape[3]
    group = heads // kv_heads
    tokens_first = all(untransposed(value, SWAP) is not None for value in (k, v))
    if tokens_first:
        sequences = batch
        packed = [
            reshape(
                b,
                transpose(b, value, SWAP),
                [batch * value.shape[2], *(value.shape[d] for d in (1, 3))],
            )
            for value in (q, k, v)
        ]
    else:
        sequences = batch * kv_heads
        grouped = reshape(b, q, [batch, kv_heads, group, rows, head_dim])
        grouped = transpose(b, grouped, [0, 1, 3, 2, 4])
        packed = [
            reshape(b, grouped, [sequences * rows, group, head_dim]),
            reshape(b, k, [sequences * keys, 1, head_dim]),
            reshape(b, v, [sequences * keys, 1, v_head_dim]),
        ]

    def of_sequences(value, stem):
        """A number of each of the batch, as one of each sequence."""
        if value is None or tokens_first:
            return value
        (value,) = b.generic(
            [(value, [0])], (batch, kv_heads), [value.element], lambda body, n: [n], stem=stem
        )
        return reshape(b, value, [sequences])

    operands = {
        "seqused_k": of_sequences(attention.used, "used"),
        "q_offset": of_sequences(attention.offset, "offset"),
        "sink": attention.sink if tokens_first else None,
    }
    captures = []
    if attention.mask is not None:
        captures.append(attention.mask.capture(tokens_first, group, compute_type(q)))
    has_late_sink = attention.sink is not None and not tokens_first
    out, lse = _packed(node, attention, packed, sequences, operands, captures)
    if has_late_sink:
        out = _add_sink(node, out, lse, attention.sink, (batch, kv_heads, rows, group))
    if tokens_first:
        return transpose(b, reshape(b, out, [batch, rows, heads, v_head_dim]), SWAP)
    out = reshape(b, out, [batch, kv_heads, rows, group, v_head_dim])
    return reshape(b, transpose(b, out, [0, 1, 3, 2, 4]), [batch, heads, rows, v_head_dim])


def _add_sink(node, out, lse, sink, extents):
    """Results with a sink of each head where a sequence has some of the heads: out times
    exp(lse) / (exp(lse) + exp(sink))."""
    b, (batch, kv_heads, rows, group) = node.b, extents
    element, wide = out.element, lse.element
    v_head_dim = out.shape[2]
    out = reshape(b, out, [batch, kv_heads, rows, group, v_head_dim])
    lse = reshape(b, lse, [group, batch, kv_heads, rows])
    sink = reshape(b, sink, [kv_heads, group])

    def weigh(body, x, own, other):
        difference = body.binary("arith.subf", other, own, wide)
        one = body.constant(1, wide)
        sum = body.binary("arith.addf", one, body.unary("math.exp", difference, wide), wide)
        quotient = body.binary("arith.divf", body.convert(x, element, wide), sum, wide)
        return [body.convert(quotient, wide, element)]

    operands = [(out, range(5)), (lse, [3, 0, 1, 2]), (sink, [1, 3])]
    (out,) = b.generic(operands, out.shape, [element], weigh, stem=node.stem)
    return reshape(b, out, [batch * kv_heads * rows, group, v_head_dim])


def compute_type(q):
    """What scores and lse are of."""
    return "f64" if q.element == "f64" else "f32"


def _score(attention):
    """The score, of softcap and mask, if there is one: in this order, and before what
    hides keys, as in varlen.attn."""
    score = scores.softcap(attention.softcap) if attention.softcap else None
    if attention.mask is None:
        return score
    return scores.compose(score, attention.mask.score) if score else attention.mask.score


def _packed(node, attention, packed, sequences, named, captures):
    """varlen.attn on packed rows, of sequences of equal lengths: out and lse."""
    b = node.b
    rows, keys = attention.q.shape[2], attention.k.shape[2]
    cu_q = _cu_seqlens(b, sequences, rows)
    cu_k = cu_q if keys == rows else _cu_seqlens(b, sequences, keys)
    mask = None
    if attention.window != (-1, -1):
        alignment = "bottom_right" if attention.is_last_at_end else "top_left"
        mask = text.mask_attribute(attention.window, alignment)
    return emit_packed(
        node, Packed([*packed, cu_q, cu_k], named, captures, mask, attention.scale, _score(attention))
    )


@dataclasses.dataclass
class Packed:
    """What varlen.attn has: q, k, v and both cu_seqlens; other operands by name, None where
    there are none; captures of the score; the text of the mask, if there is one."""

    rows: list[Value]
    named: dict[str, Value | None]
    captures: list[Value]
    mask: str | None = None
    scale: float | None = None
    score: scores.Score | None = None


def emit_packed(node: Node, packed: Packed):
    """varlen.attn: out and lse."""
    b, (q, _, v, _, _) = node.b, packed.rows
    operands = list(packed.rows)
    written = ", ".join(map(b.use, operands))
    for name, value in packed.named.items():
        if value is not None:
            written += f" {name}({b.use(value)})"
            operands.append(value)
    if packed.captures:
        written += f" captures({', '.join(map(b.use, packed.captures))})"
        operands += packed.captures
    compute = compute_type(q)
    attributes = [f"mask = {packed.mask}"] if packed.mask else []
    if packed.scale is not None:
        attributes.append(f"scale = {scalar_literal(packed.scale, compute)} : {compute}")
    region = f" {packed.score.region(compute)}" if packed.score else ""
    out = Value((q.shape[0], q.shape[1], v.shape[2]), q.element)
    lse = Value((q.shape[1], q.shape[0]), compute)
    name = b.new(
        f"varlen.attn {written} {{{', '.join(attributes)}}}\n"
        f"    : ({', '.join(value.type for value in operands)}) -> ({out.type}, {lse.type}){region}",
        node.stem, num_results=2,
    )  # fmt: skip
    out.name, lse.name = f"{name}#0", f"{name}#1"
    return out, lse
