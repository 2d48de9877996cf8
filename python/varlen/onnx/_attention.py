"""Attention (opset 23, 24 and 25) as varlen.attn."""

from __future__ import annotations

from ._attend import Attention, append, attend, check_inputs, check_width, join_heads, splat, split_heads
from ._builder import is_float
from ._mask import Mask
from ._registry import Node, element_of, operator


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


def _read_rows(node: Node):
    """q, k and v as (B, H, S, D)."""
    q, k, v = node.inputs[:3]
    ranks = {value.rank for value in (q, k, v)}
    if ranks - {3, 4} or len(ranks) != 1:
        raise node.error(
            f"expected Q, K and V of 3 or of 4 dimensions, got {q.rank}, {k.rank} and {v.rank}"
        )
    if q.rank == 3:
        heads, kv_heads = _heads(node)
        named = (("Q", q, heads), ("K", k, kv_heads), ("V", v, kv_heads))
        for name, value, count in named:
            check_width(node, name, value, count)
        q, k, v = (split_heads(node.b, value, count) for _, value, count in named)
    check_inputs(node, q, k, v)
    return q, k, v


def _window(node):
    left, right = node.attribute("left_window_size", -1), node.attribute("right_window_size", -1)
    if left < -1 or right < -1:
        raise node.error(f"expected window sizes of -1 and more, got {left} and {right}")
    return left, 0 if node.attribute("is_causal", 0) else right


def _read(node: Node) -> Attention:
    b, (q, k, v) = node.b, _read_rows(node)
    new_rows = k.shape[2]
    used, past_key, past_value = node.input(6), node.input(4), node.input(5)
    if (past_key is None) != (past_value is None):
        raise node.error("expected past_key and past_value, or neither")
    if past_key is not None and used is not None:
        raise node.error("expected past_key and past_value, or nonpad_kv_seqlen, not both")
    if used is not None and used.element != "i64":
        raise node.error(f"expected nonpad_kv_seqlen of INT64, got {used.element}")
    if past_key is not None:
        k, v = append(node, past_key, k), append(node, past_value, v)
    attention = Attention(
        q, k, v, _window(node), used=used, softcap=node.attribute("softcap", 0.0),
        scale=node.attribute("scale"),
    )  # fmt: skip
    # Query i is at key i + offset. With nonpad_kv_seqlen the last query is at the last
    # key, as with new rows of a cache that are as many as the queries.
    attention.is_last_at_end = used is not None or new_rows == q.shape[2]
    has_offset = attention.window != (-1, -1) and not attention.is_last_at_end
    if past_key is not None and has_offset:
        attention.offset = splat(b, past_key.shape[2], q.shape[0], "offset")
    if node.input(3) is not None:
        attention.mask = Mask(node, node.input(3), "attn_mask", q, k.shape[2])
    return attention


@operator("Attention")
def _attention(node: Node):
    _refuse(node, node.input(0))
    attention = _read(node)
    out = attend(node, attention)
    if node.input(0).rank == 3:
        out = join_heads(node.b, out)
    return out, attention.k, attention.v
