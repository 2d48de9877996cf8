"""Formulas of the operators for torch.utils.flop_counter: products of the pairs of a query and
a key that the mask lets through, in PyTorch's units, where a multiply-add is two."""

from torch._subclasses.fake_tensor import FakeTensor
from torch._subclasses.functional_tensor import FunctionalTensor
from torch.utils.flop_counter import register_flop_formula

from ._operators import (
    attn, attn_backward, attn_jvp, attn_jvp_backward, attn_out, name_arguments,
)  # fmt: skip


def count_pairs(queries, keys, offset, window):
    """The pairs of a sequence for a window (left, right) or the size of a chunk, with the
    last query at the last key, `offset` added."""
    begin = keys - queries + offset
    end = begin + queries

    def add(count):
        """The sum over queries of a number of keys."""
        return count(end) - count(begin)

    if isinstance(window, int):
        return add(lambda x: _sum_clamped(x + 1, keys)) - add(
            lambda x: _sum_chunk_starts(x, window, keys)
        )
    left, right = window
    last = queries * keys if right < 0 else add(lambda x: _sum_clamped(x + right + 1, keys))
    first = 0 if left < 0 else add(lambda x: _sum_clamped(x - left, keys))
    return last - first


def _sum_clamped(x, most):
    """The sum of t, no less than 0 and no more than `most`, over all t < x."""
    small = max(min(x, most), 0)
    return small * (small - 1) // 2 + max(x - most, 0) * most


def _sum_chunk_starts(x, size, most):
    """The sum of the place at which t's chunk starts, no more than `most`, over 0 <= t < x."""
    limit = -(-most // size) * size
    chunks, rest = divmod(max(min(x, limit), 0), size)
    return size * (size * (chunks * (chunks - 1) // 2) + rest * chunks) + max(x - limit, 0) * most


def _read(tensor):
    """The numbers in a tensor, None where it is one without data."""
    if isinstance(tensor, (FakeTensor, FunctionalTensor)) or tensor.is_meta:
        return None
    # A DTensor: all processes count all heads, as other formulas do.
    whole = tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor
    return whole.tolist()


def _find_sequences(named):
    """(queries, keys, offset) of each sequence."""
    # Those with entries of sequences.
    names = ("cu_seqlens_q", "cu_seqlens_k", "seqused_q", "seqused_k", "q_offset")
    values = {name: _read(named[name]) for name in names if named[name] is not None}
    if any(numbers is None for numbers in values.values()):
        # The most that it can be, as PyTorch's formula has it: all rows in one sequence.
        return [(named["q"].shape[0], _count_rows(named), 0)]

    def find_lengths(side):
        if (used := values.get(f"seqused_{side}")) is not None:
            return used
        cu = values[f"cu_seqlens_{side}"]
        return [y - x for x, y in zip(cu, cu[1:])]

    queries, keys = find_lengths("q"), find_lengths("k")
    return zip(queries, keys, values.get("q_offset", [0] * len(queries)), strict=True)


def _count_rows(named):
    """The most keys that a sequence can have."""
    k, table = named["k"], named.get("block_table")
    return k.shape[0] if table is None else table.shape[1] * k.shape[1]


def _count(named, qk_products, pv_products):
    chunk = named["chunk"]
    window = (named["left"], named["right"]) if chunk is None else chunk
    pairs = sum(count_pairs(*sequence, window) for sequence in _find_sequences(named))
    _, heads, head_dim = named["q"].shape
    return 2 * pairs * heads * (qk_products * head_dim + pv_products * named["v"].shape[-1])


# Products of the gradients: scores once more, and dq and dk; dv, and the gradient of weights. Of
# the tangents beside scores and out: those of q and of k; of weights and of v. Of their gradients:
# scores with their tangents, and two products for each of dq and dk; dv, and the gradients of
# weights and of their tangents, and with a dout one product more for each of the last two.
for _op, _products in (
    (attn, (1, 1)), (attn_out, (1, 1)), (attn_backward, (3, 2)), (attn_jvp, (3, 3)),
    (attn_jvp_backward, (7, 3)),
):  # fmt: skip

    def _formula(*arguments, op=_op, products=_products, out_val=None, **options):
        named = name_arguments(op, arguments, options)
        of_keys, of_values = products
        if op is attn_jvp_backward and named["dout"] is not None:
            of_values += 2
        return _count(named, of_keys, of_values)

    register_flop_formula(_op._overloadpacket, get_raw=True)(_formula)
