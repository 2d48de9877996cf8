"""Rows of a rank and of others, put in the order in which an attention of the rank reads them."""

import itertools

import torch


def make_index(ranges, device=None):
    """An index of the rows of ranges, one after the other."""
    parts = [torch.arange(r.start, r.stop, device=device) for r in ranges]
    return torch.cat(parts) if parts else torch.empty(0, dtype=torch.int64, device=device)


def find_rows(pieces, wanted, device=None):
    """Where `wanted` rows are among pieces, which lie one after the other: an index. Rows that
    are in none are the one behind all pieces, which holds zeros."""
    starts, size = {}, 0
    for piece in pieces:
        starts.setdefault(piece.sequence, []).append((piece.begin, piece.end, size))
        size += piece.size
    parts = []
    for rows in wanted:
        index = torch.full((rows.size,), size)
        for begin, end, start in starts.get(rows.sequence, ()):
            first, last = max(begin, rows.begin), min(end, rows.end)
            if first < last:
                index[first - rows.begin : last - rows.begin] = torch.arange(
                    start + first - begin, start + last - begin
                )
        parts.append(index)
    index = torch.cat(parts) if parts else torch.empty(0, dtype=torch.int64)
    return index.to(device)


class Picked:
    """Rows of a pool of pieces in the order of `wanted`, zeros where no piece has them."""

    def __init__(self, pieces, wanted, device):
        self._set(pieces, find_rows(pieces, wanted, device))

    @classmethod
    def within(cls, pieces, wanted, device):
        """Of rows each of which is in the piece of the same number: pieces may have rows in
        common."""
        ends = itertools.accumulate(x.size for x in pieces)
        ranges = [
            range(end - x.end + rows.begin, end - x.end + rows.end)
            for end, x, rows in zip(ends, pieces, wanted)
        ]
        picked = cls.__new__(cls)
        picked._set(pieces, make_index(ranges, device))
        return picked

    def _set(self, pieces, index):
        size, device = sum(x.size for x in pieces), index.device
        self.index = index
        self._has_zeros = bool((self.index == size).any())
        self._is_all = torch.equal(self.index, torch.arange(size, device=device))

    def of(self, pool):
        """The rows, of dimension 0, of a list of tensors that lie one after the other."""
        if self._is_all and len(pool) == 1:
            return pool[0]
        if self._has_zeros:
            pool = [*pool, pool[0].new_zeros(1, *pool[0].shape[1:])]
        return torch.cat(pool).index_select(0, self.index)

    def add_to(self, sums, parts):
        """Adds rows in the picked order to those of the pool that they are of, whose last row
        takes what is added to zeros."""
        return sums.index_add_(0, self.index, parts)


def cumulate(parts, device):
    """cu_seqlens of rows as sequences, int32."""
    lengths = torch.tensor([0, *(x.size for x in parts)])
    return lengths.cumsum(0).to(torch.int32).to(device)


