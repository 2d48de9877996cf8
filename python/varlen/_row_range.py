"""Rows of q: the sequences that they are in, and the entries of sequences for rows that follow each
other, of which attention with all keys is computed. For arrays of numpy and JAX and tensors of
PyTorch; lengths are not read by the host."""

# Farther than that a position moves nothing.
_FARTHEST = {4: 2**31 - 1, 8: 2**62}


def find_sequences(library, cu_seqlens, rows):
    """The number of the sequence of each of `rows`, which count from 0 and have the type of
    cu_seqlens; any for rows behind the last sequence."""
    last = max(cu_seqlens.shape[0] - 2, 0)
    return library.searchsorted(cu_seqlens[1:], rows, side="right").clip(0, last)


def take_row_range(library, entries, first, rows, total, *, is_top_left=False):
    """Entries of sequences for the rows [first, first + rows) of the `total` rows of q.

    Args:
        library: The module with the arrays' functions, jax.numpy or torch.
        entries: cu_seqlens_q (N + 1) and, where the call has them, seqused_q and q_offset (N), by
            name. Others that it has are ignored.
        first: An integer, or an array of rank 0.
        is_top_left: Whether masks are aligned with the first rows of sequences.

    Returns:
        These three of the part, seqused_q only where there is one: each sequence has its rows in the
        range, at the positions that they have in the whole. Where entries are not valid for the
        whole batch, these are not valid for the part either, at the same index, so that its
        attention reports them.
    """
    where, minimum = library.where, library.minimum
    cu, used, offset = (entries.get(x) for x in ("cu_seqlens_q", "seqused_q", "q_offset"))
    lengths = cu[1:] - cu[:-1]
    is_valid = (cu[0] == 0) & (lengths >= 0).all() & (cu[-1] <= total)
    local = (cu - first).clip(0, rows)
    inside = local[1:] - local[:-1]
    # Rows of each sequence before the part.
    before = minimum((first - cu[:-1]).clip(0), lengths)
    found = {"cu_seqlens_q": where(is_valid, local, cu)}
    counted = lengths if used is None else used
    if used is not None:
        inside = minimum((used - before).clip(0), inside)
        found["seqused_q"] = where((used >= 0) & (used <= lengths), inside, used)
    if offset is None:
        offset = 0 * lengths
    farthest = _FARTHEST[offset.dtype.itemsize]
    if is_top_left:
        found["q_offset"] = where(offset > farthest - before, farthest, offset + before)
    else:
        # Masks are aligned with the last row of the part in place of the last one of all.
        behind = counted - minimum(before + inside, counted)
        found["q_offset"] = where(offset < behind - farthest, -farthest, offset - behind)
    return found
