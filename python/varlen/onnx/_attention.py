"""Attention (opset 23, 24 and 25) as varlen.attn: the sequences of a batch are packed.

A batch of B x S rows is B sequences of S rows, so packing it is a reshape. Which
dimensions are rows depends on how keys lie:

tokens first (B, S, H, D): B sequences, rows of H heads.
heads first (B, H, S, D): B * kv_heads sequences, rows of as many query heads as share a
kv head. Keys are then never copied, queries only where heads are grouped.
"""

from __future__ import annotations

import dataclasses

from .. import scores, text
from ._builder import Value, is_float, scalar_literal
from ._extents import Extent
from ._mask import Mask
from ._registry import Node, element_of, operator
from ._views import concatenate, reshape, transpose, untransposed

# (B, S, H, D) from (B, H, S, D), and back.
_SWAP = [0, 2, 1, 3]


def _heads_second(b, value, heads):
    """A 3-D input (B, S, H * D) as (B, H, S, D)."""
    split = reshape(b, value, [*value.shape[:2], heads, value.shape[2] // heads])
    return transpose(b, split, _SWAP)


@dataclasses.dataclass
class _Inputs:
    """q, k and v as (B, H, S, D), and what masks keys."""

    q: Value
    k: Value
    v: Value
    past: object = None  # rows of the cache in front of k
    used: Value | None = None  # nonpad_kv_seqlen
    mask: Mask | None = None


def _refuse(node: Node, value):
    """What varlen.attn has no form for. All of it is here."""
    if not node.attribute("softcap", 0.0) >= 0:
        raise node.error(f"expected a softcap of 0 or more, got {node.attribute('softcap')}")
    if node.has_output(3):
        raise node.error("the output qk_matmul_output is not supported: scores are never in memory")
    if not is_float(value.element):
        raise node.error(f"expected floats, got {value.element}")
    precision = node.attribute("softmax_precision")
    if (
        precision is not None
        and element_of(precision, "softmax_precision") == "f64" != value.element
    ):
        raise node.error(
            f"softmax_precision DOUBLE is not supported with elements of {value.element}"
        )
    scale = node.attribute("scale")
    if scale is not None and not scale > 0:
        raise node.error(f"expected a positive scale, got {scale}")


def _heads(node):
    """Heads of queries and of keys, of 3-D inputs."""
    heads = node.attribute("q_num_heads"), node.attribute("kv_num_heads")
    if not all(n is not None and n > 0 for n in heads):
        raise node.error(
            f"expected q_num_heads and kv_num_heads with inputs of 3 dimensions, got {heads}"
        )
    return heads


def _read_inputs(node: Node):
    b = node.b
    q, k, v = node.inputs[:3]
    ranks = {value.rank for value in (q, k, v)}
    if ranks - {3, 4} or len(ranks) != 1:
        raise node.error(
            f"expected Q, K and V of 3 or of 4 dimensions, got {q.rank}, {k.rank} and {v.rank}"
        )
    if q.rank == 3:
        heads, kv_heads = _heads(node)
        for name, value, count in (("Q", q, heads), ("K", k, kv_heads), ("V", v, kv_heads)):
            if isinstance(value.shape[2], Extent) or value.shape[2] % count:
                raise node.error(
                    f"expected a static width of {name} that {count} heads divide, got {value.shape[2]}"
                )
        q, k, v = (
            _heads_second(b, value, n) for value, n in ((q, heads), (k, kv_heads), (v, kv_heads))
        )
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
            b.require_equal(
                values[0].shape[d], value.shape[d], f"{node.stem}: expected inputs of one {what}"
            )
    used = node.input(6) if len(node.inputs) > 6 else None
    past_key, past_value = node.input(4), node.input(5)
    if (past_key is None) != (past_value is None):
        raise node.error("expected past_key and past_value, or neither")
    if past_key is not None and used is not None:
        raise node.error("expected past_key and past_value, or nonpad_kv_seqlen, not both")
    inputs = _Inputs(q, k, v, used=used)
    if past_key is not None:
        inputs.past = past_key.shape[2]
        inputs.k, inputs.v = _append(node, past_key, k), _append(node, past_value, v)
    if node.input(3) is not None:
        inputs.mask = Mask(node, inputs.q, inputs.k.shape[2])
    return inputs


def _append(node, past, new):
    """Rows behind those of a cache."""
    for d in (0, 1, 3):
        node.b.require_equal(past.shape[d], new.shape[d],
                             f"{node.stem}: expected the extents of the cache to be those of the new rows")  # fmt: skip
    node.b.require_equal(past.rank, 4, f"{node.stem}: expected a cache of 4 dimensions")
    shape = [*past.shape[:2], past.shape[2] + new.shape[2], past.shape[3]]
    return concatenate(node.b, [past, new], 2, shape)


def _cu_seqlens(b, sequences, length):
    """0, length, 2 * length, ..."""
    rows = b.index(length)

    def begin(body):
        row = body.binary("arith.muli", body.index(0), rows, "index")
        return [body.op(f"arith.index_cast {row} : index to i64")]

    return b.generic([], (sequences + 1,), ["i64"], begin, stem="cu_seqlens")[0]


def _splat(b, extent, count):
    number = b.pure(f"arith.index_cast {b.index(extent)} : index to i64", "n")
    return b.generic([], (count,), ["i64"], lambda body: [number], stem="q_offset")[0]


def _window(node, inputs):
    """The mask's window and alignment, and whether q_offset says where queries are."""
    left, right = node.attribute("left_window_size", -1), node.attribute("right_window_size", -1)
    if left < -1 or right < -1:
        raise node.error(f"expected window sizes of -1 and more, got {left} and {right}")
    if node.attribute("is_causal", 0):
        right = 0
    if (left, right) == (-1, -1):
        return "", False
    # Query i is at key i + offset. With nonpad_kv_seqlen the last query is at the last
    # key, as with new rows of a cache that are as many as the queries.
    new_rows = inputs.k.shape[2] - (0 if inputs.past is None else inputs.past)
    if inputs.used is not None or new_rows == inputs.q.shape[2]:
        return text.mask_attribute((left, right)), False
    return text.mask_attribute((left, right), "top_left"), inputs.past is not None


@operator("Attention")
def _attention(node: Node):
    b = node.b
    _refuse(node, node.input(0))
    inputs = _read_inputs(node)
    out = _attend(node, inputs)
    if node.input(0).rank == 3:
        out = transpose(b, out, _SWAP)
        out = reshape(b, out, [*out.shape[:2], out.shape[2] * out.shape[3]])
    return out, inputs.k, inputs.v


def _attend(node: Node, inputs: _Inputs):
    """Attention of (B, H, S, D); the result is (B, H, S, Dv)."""
    b, (q, k, v) = node.b, (inputs.q, inputs.k, inputs.v)
    batch, heads, rows, head_dim = q.shape
    kv_heads, keys, v_head_dim = k.shape[1], k.shape[2], v.shape[3]
    group = heads // kv_heads
    tokens_first = all(untransposed(value, _SWAP) is not None for value in (k, v))
    if tokens_first:
        sequences, used = batch, inputs.used
        packed = [
            reshape(
                b,
                transpose(b, value, _SWAP),
                [batch * value.shape[2], *(value.shape[d] for d in (1, 3))],
            )
            for value in (q, k, v)
        ]
    else:
        sequences, used = batch * kv_heads, inputs.used
        grouped = reshape(b, q, [batch, kv_heads, group, rows, head_dim])
        grouped = transpose(b, grouped, [0, 1, 3, 2, 4])
        packed = [
            reshape(b, grouped, [sequences * rows, group, head_dim]),
            reshape(b, k, [sequences * keys, 1, head_dim]),
            reshape(b, v, [sequences * keys, 1, v_head_dim]),
        ]
        if used is not None:
            (used,) = b.generic(
                [(used, [0])], (batch, kv_heads), [used.element], lambda body, n: [n], stem="used"
            )
            used = reshape(b, used, [sequences])
    capture = None
    if inputs.mask is not None:
        capture = inputs.mask.capture(tokens_first, group, _compute_element(q))
    out = _packed(node, inputs, packed, sequences, used, capture)
    if tokens_first:
        return transpose(b, reshape(b, out, [batch, rows, heads, v_head_dim]), _SWAP)
    out = reshape(b, out, [batch, kv_heads, rows, group, v_head_dim])
    return reshape(b, transpose(b, out, [0, 1, 3, 2, 4]), [batch, heads, rows, v_head_dim])


def _compute_element(q):
    """What scores and lse are of."""
    return "f64" if q.element == "f64" else "f32"


def _read_score(node, mask):
    """The score, of softcap and attn_mask, if there is one: in this order, and before what
    hides keys, as in varlen.attn."""
    cap = node.attribute("softcap", 0.0)
    score = scores.softcap(cap) if cap else None
    if mask is None:
        return score
    return scores.compose(score, mask.score) if score else mask.score


def _packed(node, inputs, packed, sequences, used, capture):
    """varlen.attn on packed rows, of sequences of equal lengths."""
    b, (q, _, v) = node.b, packed
    mask, has_offset = _window(node, inputs)
    rows, keys = inputs.q.shape[2], inputs.k.shape[2]
    cu_q = _cu_seqlens(b, sequences, rows)
    cu_k = cu_q if keys == rows else _cu_seqlens(b, sequences, keys)
    operands = [*packed, cu_q, cu_k]
    written = ", ".join(map(b.use, operands))
    for name, value in (
        ("seqused_k", used),
        ("q_offset", _splat(b, inputs.past, sequences) if has_offset else None),
    ):
        if value is not None:
            if value.element != "i64":
                raise node.error(f"expected nonpad_kv_seqlen of INT64, got {value.element}")
            written += f" {name}({b.use(value)})"
            operands.append(value)
    if capture is not None:
        written += f" captures({b.use(capture)})"
        operands.append(capture)
    attributes = [f"mask = {mask}"] if mask else []
    scale = node.attribute("scale")
    if scale is not None:
        attributes.append(f"scale = {scalar_literal(scale, 'f32')} : f32")
    compute = _compute_element(q)
    score = _read_score(node, inputs.mask)
    region = " " + score.region(compute) if score else ""
    out = Value((q.shape[0], q.shape[1], v.shape[2]), q.element)
    lse = Value((q.shape[1], q.shape[0]), compute)
    name = b.new(
        f"varlen.attn {written} {{{', '.join(attributes)}}}\n"
        f"    : ({', '.join(value.type for value in operands)}) -> ({out.type}, {lse.type}){region}",
        node.stem, num_results=2,
    )  # fmt: skip
    out.name = f"{name}#0"
    return out
