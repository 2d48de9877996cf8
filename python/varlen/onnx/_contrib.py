"""GroupQueryAttention and MultiHeadAttention of com.microsoft, the domain of onnxruntime,
as varlen.attn."""

from __future__ import annotations

from ._attend import Attention, append, attend, check_inputs, check_width, compute_type, join_heads, split_heads
from ._attend import SWAP
from ._builder import Value, is_float
from ._elementwise import cast, elementwise
from ._mask import Mask
from ._registry import Node, operator
from ._rotary import rotate
from ._shapes import integer_of
from ._views import extract, insert, reshape, transpose

_DOMAIN = "com.microsoft"


def _refuse(node: Node, attributes, inputs, output):
    """What there is no form for: attributes other than a number, inputs and an output."""
    for name, supported in attributes.items():
        given = node.attribute(name, supported)
        if given != supported:
            raise node.error(f"{name} is not supported other than {supported}, got {given}")
    for i, name in inputs.items():
        if node.input(i) is not None:
            raise node.error(f"the input {name} is not supported")
    if node.has_output(3):
        raise node.error(f"the output {output} is not supported: scores are never in memory")
    if not is_float(node.input(0).element):
        raise node.error(f"expected floats, got {node.input(0).element}")


def _scale(node: Node):
    """The scale, None for the default, which 0 says, too."""
    scale = node.attribute("scale", 0.0)
    if not scale >= 0:
        raise node.error(f"expected a scale of 0 or more, got {scale}")
    return scale or None


def _part(b, value, axis, first, count):
    """Some entries along an axis."""
    offsets = [first if d == axis else 0 for d in range(value.rank)]
    return extract(b, value, offsets, [count if d == axis else n for d, n in enumerate(value.shape)])


def _count(node: Node, name):
    count = node.attribute(name)
    if count is None or count < 1:
        raise node.error(f"expected {name} of 1 and more, got {count}")
    return count


# GroupQueryAttention.


def _group_query_rows(node: Node, heads, kv_heads):
    """q, k and v as (B, S, heads, D)."""
    b, (q, k, v) = node.b, (node.input(i) for i in range(3))
    if (k is None) != (v is None):
        raise node.error("expected key and value, or neither")
    for name, value in (("query", q), ("key", k), ("value", v)):
        if value is not None and value.rank != 3:
            raise node.error(f"expected {name} of 3 dimensions, got {value.rank}")
    if k is None:
        count = heads + 2 * kv_heads
        check_width(node, "query, which has keys and values, too,", q, count)
        rows = reshape(b, q, [*q.shape[:2], count, q.shape[2] // count])
        firsts = (0, heads), (heads, kv_heads), (heads + kv_heads, kv_heads)
        return [_part(b, rows, 2, first, some) for first, some in firsts]
    named = (("query", q, heads), ("key", k, kv_heads), ("value", v, kv_heads))
    for name, value, count in named:
        check_width(node, name, value, count)
        b.require_equal(value.shape[1], q.shape[1], f"{node.stem}: expected as many rows of {name} as of query")
    return [reshape(b, x, [*x.shape[:2], count, x.shape[2] // count]) for _, x, count in named]


def _check_lengths(node: Node, lengths, rows, capacity, present):
    """That each of the lengths - 1 of a batch is one of rows behind at most as many as a
    cache has."""
    b = node.b
    most, own, past = (b.index(n) for n in (present, rows, capacity))

    def fits(body, length, old):
        length = body.op(f"arith.index_cast {length} : {lengths.element} to index")
        total = body.binary("arith.addi", length, body.constant(1, "index"), "index")
        before = body.binary("arith.subi", total, own, "index")
        for left, right in ((body.constant(0, "index"), total), (total, most), (before, past)):
            good = body.op(f"arith.cmpi sle, {left}, {right} : index")
            old = body.binary("arith.andi", old, good, "i1")
        return old

    good = b.reduction(lengths, [0], 1, "i1", fits, stem="fit")
    b.require(
        b.new(f"tensor.extract {good.name}[] : tensor<i1>", "good"),
        f"{node.stem}: expected seqlens_k + 1 from 0 to the {present} rows of keys, of which those before the "
        f"{rows} new ones are in the cache of {capacity}",
    )  # fmt: skip


def _write_rows(node: Node, past, new, offset, present):
    """Rows (B, H, S, D) written into a cache, at a place of each sequence."""
    b, element = node.b, new.element
    for d in (0, 1, 3):
        b.require_equal(past.shape[d], new.shape[d],
                        f"{node.stem}: expected the extents of the cache to be those of the new rows")  # fmt: skip
    cache = past
    if past.shape[2] != present:
        shape = [*past.shape[:2], present, past.shape[3]]
        cache = insert(b, past, Value(shape, element, b.fill(0, shape, element)), [0] * 4)
    places = b.use(offset)

    def write(i, cache):
        place = b.pure(f"tensor.extract {places}[{b.index(i)}] : {offset.type}", "place")
        row = b.symbol("row", b.pure(f"arith.index_cast {place} : i64 to index", "row"))
        rows = extract(b, new, [i, 0, 0, 0], [1, *new.shape[1:]])
        return [insert(b, rows, cache, [i, 0, row, 0])]

    return b.loop(new.shape[0], [cache], write, stem="present")[0]


def _widened(b, bias, columns):
    """A bias with 0 for keys behind its last column, which are not used."""
    if bias.shape[-1] == columns:
        return bias
    shape = [*bias.shape[:-1], columns]
    return insert(b, bias, Value(shape, bias.element, b.fill(0, shape, bias.element)), [0] * len(shape))


def _sink(node: Node, heads, compute):
    """head_sink, or zeros for smooth_softmax."""
    sink = node.input(11)
    if sink is not None:
        if sink.shape != (heads,):
            raise node.error(f"expected head_sink of {heads} numbers, got {list(sink.shape)}")
        return cast(node, sink, compute)
    if node.attribute("smooth_softmax", 0) != 1:
        return None
    return Value((heads,), compute, node.b.fill(0, (heads,), compute))


@operator("GroupQueryAttention", domain=_DOMAIN)
def _group_query_attention(node: Node):
    b = node.b
    _refuse(
        node,
        {"kv_cache_bit_width": 0, "k_quant_type": "NONE", "v_quant_type": "NONE", "sliding_window_cache": 0,
         "qk_output": 0},
        {12: "k_scale", 13: "v_scale", 14: "q_norm_weight", 15: "k_norm_weight", 16: "query_seqlens"}, "output_qk",
    )  # fmt: skip
    heads, kv_heads = _count(node, "num_heads"), _count(node, "kv_num_heads")
    q, k, v = _group_query_rows(node, heads, kv_heads)
    batch, rows = q.shape[:2]
    lengths, total_length = node.input(5), node.input(6)
    total = integer_of(b, total_length)
    if lengths.rank != 1:
        raise node.error(f"expected seqlens_k of 1 dimension, got {lengths.rank}")
    b.require_equal(lengths.shape[0], batch, f"{node.stem}: expected a seqlens_k of each of the batch")
    past_key, past_value = node.input(3), node.input(4)
    if (past_key is None) != (past_value is None):
        raise node.error("expected past_key and past_value, or neither")
    capacity = 0 if past_key is None else past_key.shape[2]
    if past_key is None:
        message = f"{node.stem}: expected total_sequence_length to be the rows of query without a cache"
        b.require_equal(total, rows, message)
    elif past_key.rank != 4 or past_value.rank != 4:
        raise node.error(f"expected caches of 4 dimensions, got {past_key.rank} and {past_value.rank}")
    else:
        b.require_equal(past_value.shape[2], capacity, f"{node.stem}: expected caches of one number of rows")
    if past_key is None:
        present = rows
    elif total_length.numbers is not None:
        present = b.index_op("maxsi", total, capacity) if total != capacity else total
    else:
        # The extents of results follow from those of inputs.
        present = capacity
        b.require_at_most(total, capacity, f"{node.stem}: expected a cache with room for total_sequence_length, "
                          "which is known only when the model runs")  # fmt: skip
    b.require_at_most(rows, present, f"{node.stem}: expected no more rows than total_sequence_length")
    _check_lengths(node, lengths, rows, capacity, present)
    new_rows = b.index(rows)

    def place(body, length):
        length = body.op(f"arith.index_cast {length} : {lengths.element} to index")
        total = body.binary("arith.addi", length, body.constant(1, "index"), "index")
        before = body.binary("arith.subi", total, new_rows, "index")
        # The first row is the first one also of a prompt that ends before its last row.
        before = body.binary("arith.maxsi", before, body.constant(0, "index"), "index")
        return [body.op(f"arith.index_cast {n} : index to i64") for n in (total, before)]

    used, offset = b.generic([(lengths, [0])], (batch,), ["i64", "i64"], place, stem="used")
    if node.attribute("do_rotary", 0):
        q, k = _rotate(node, q, k, offset)
    q, k, v = (transpose(b, value, SWAP) for value in (q, k, v))
    check_inputs(node, q, k, v)
    if past_key is not None:
        k = _write_rows(node, past_key, k, offset, present)
        v = _write_rows(node, past_value, v, offset, present)
    attention = Attention(
        q, k, v, is_last_at_end=False, used=used, softcap=node.attribute("softcap", 0.0), scale=_scale(node),
        sink=_sink(node, heads, compute_type(q)),
    )  # fmt: skip
    if attention.softcap < 0:
        raise node.error(f"expected a softcap of 0 or more, got {attention.softcap}")
    # A window's size counts the query's own key, which is the last one.
    size = node.attribute("local_window_size", -1)
    if size < -1 or size == 0:
        raise node.error(f"expected local_window_size of -1 or of 1 and more, got {size}")
    if node.attribute("causal", 1):
        attention.window, attention.offset = (-1 if size == -1 else size - 1, 0), offset
    elif size != -1:
        raise node.error(f"expected local_window_size of -1 with causal 0, got {size}")
    bias = node.input(10)
    if bias is not None:
        attention.mask = Mask(node, _widened(b, bias, present), "attention_bias", q, present)
    return join_heads(b, attend(node, attention)), attention.k, attention.v


def _rotate(node: Node, q, k, offset):
    """Queries and keys (B, S, heads, D) with rotary positions, which begin at offset or
    are given."""
    b, (batch, rows) = node.b, q.shape[:2]
    cos, sin, positions = (node.input(i) for i in (7, 8, 9))
    if cos is None or sin is None:
        raise node.error("expected cos_cache and sin_cache with do_rotary")
    if positions is None:

        def position(body, first):
            row = body.op(f"arith.index_cast {body.index(1)} : index to i64")
            return [body.binary("arith.addi", first, row, "i64")]

        (positions,) = b.generic([(offset, [0])], (batch, rows), ["i64"], position, stem="positions")
    return (
        rotate(node, value, cos, sin, positions, node.attribute("rotary_interleaved", 0))
        for value in (q, k)
    )


# MultiHeadAttention.


def _multi_head_rows(node: Node, heads):
    """q, k and v as (B, H, S, D)."""
    b, (q, k, v, bias) = node.b, (node.input(i) for i in range(4))
    ranks = tuple(None if value is None else value.rank for value in (q, k, v))
    if ranks == (5, None, None) or ranks == (3, 5, None):
        packed, count = (q, 3) if k is None else (k, 2)
        if packed.shape[2] != heads or packed.shape[3] != count:
            raise node.error(
                f"expected packed rows of {heads} heads and {count} parts, got {list(packed.shape[2:4])}"
            )
        if bias is not None:
            raise node.error("the input bias is not supported with packed rows")
        parts = [_part(b, packed, 3, i, 1) for i in range(count)]
        parts = [reshape(b, p, [*p.shape[:3], p.shape[4]]) for p in parts]
        parts = [transpose(b, p, SWAP) for p in parts]
        if k is None:
            return parts
        check_width(node, "query", q, heads)
        return [split_heads(b, q, heads), *parts]
    if ranks not in ((3, 3, 3), (3, 4, 4)):
        raise node.error(
            f"expected query, key and value of 3, 3 and 3 or 3, 4 and 4 dimensions, query alone of 5, or query and "
            f"key of 3 and 5, got {ranks}"
        )
    flat = [value for value in (q, k, v) if value.rank == 3]
    for name, value in zip(("query", "key", "value"), flat):
        check_width(node, name, value, heads)
    if bias is not None:
        if len(flat) != 3:
            raise node.error("the input bias is not supported with keys of 4 dimensions")
        widths = [value.shape[2] for value in flat]
        if bias.shape != (sum(widths),):
            raise node.error(f"expected a bias of {sum(widths)} numbers, got {list(bias.shape)}")
        firsts = 0, widths[0], widths[0] + widths[1]
        flat = [
            _add(node, value, _part(b, bias, 0, first, width))
            for value, first, width in zip(flat, firsts, widths)
        ]
    return [split_heads(b, value, heads) for value in flat] + [k, v][: 3 - len(flat)]


def _add(node, left, right):
    element = left.element
    return elementwise(
        node, [left, right], element, lambda body, x, y: body.binary("arith.addf", x, y, element)
    )


def _padding_bias(node: Node, mask, batch, keys, element):
    """key_padding_mask as numbers (B, 1, 1 or S, T) that are added to scores."""
    b = node.b
    if mask.element != "i32" or mask.rank not in (1, 2, 3):
        raise node.error(
            f"expected key_padding_mask of INT32, of 1 to 3 dimensions, got {mask.element} of {mask.rank}"
        )
    filler = node.attribute("mask_filter_value", -10000.0)
    if mask.rank == 1:
        b.require_equal(mask.shape[0], batch, f"{node.stem}: expected key_padding_mask to have the length of "
                        "each of the batch, or a number of each key")  # fmt: skip

    def number(body, x):
        if mask.rank == 1:
            key = body.op(f"arith.index_cast {body.index(3)} : index to i32")
            seen = body.op(f"arith.cmpi slt, {key}, {x} : i32")
        else:
            seen = body.op(f"arith.cmpi ne, {x}, {body.constant(0, 'i32')} : i32")
        none, low = body.constant(0, element), body.constant(filler, element)
        return [body.select(seen, none, low, element)]

    columns = keys if mask.rank == 1 else mask.shape[-1]
    dims = {1: [0], 2: [0, 3], 3: [0, 2, 3]}[mask.rank]
    shape = [mask.shape[0], 1, mask.shape[1] if mask.rank == 3 else 1, columns]
    return b.generic([(mask, dims)], shape, [element], number, stem="padding")[0]


@operator("MultiHeadAttention", domain=_DOMAIN)
def _multi_head_attention(node: Node):
    b = node.b
    _refuse(node, {}, {8: "past_sequence_length", 9: "cache_indirection"}, "qk")
    heads = _count(node, "num_heads")
    q, k, v = _multi_head_rows(node, heads)
    for name, value in (("query", q), ("key", k), ("value", v)):
        if value.shape[1] != heads:
            raise node.error(f"expected {heads} heads of {name}, got {value.shape[1]}")
    check_inputs(node, q, k, v)
    new_rows, past_key, past_value = k.shape[2], node.input(6), node.input(7)
    if (past_key is None) != (past_value is None):
        raise node.error("expected past_key and past_value, or neither")
    if past_key is not None:
        k, v = append(node, past_key, k), append(node, past_value, v)
    attention = Attention(q, k, v, scale=_scale(node))
    if node.attribute("unidirectional", 0):
        message = f"{node.stem}: expected as many new keys as queries with unidirectional"
        b.require_equal(new_rows, q.shape[2], message)
        attention.window = (-1, 0)
    bias, padding = node.input(5), node.input(4)
    if padding is not None:
        wide = compute_type(q)
        padding = _padding_bias(node, padding, q.shape[0], k.shape[2], wide)
        bias = padding if bias is None else _add(node, cast(node, bias, wide), padding)
    if bias is not None:
        attention.mask = Mask(node, bias, "attention_bias", q, k.shape[2])
    return join_heads(b, attend(node, attention)), k, v
