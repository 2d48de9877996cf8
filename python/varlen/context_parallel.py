"""Context parallelism: which rank owns which rows of a packed batch, and what it needs of others.

    plan = context_parallel.plan(cu_seqlens, ranks=8, window=(-1, 0))
    plan.chunks[rank]        # the rows of a rank, and the keys that they see
    plan.rows(rank)          # where its rows are in the batch

A plan is a function of cu_seqlens alone, so all ranks make the same one without a word. It is made
by libvarlen-c, as in C++ (`planContextParallel`) and C (`varlenPlanCreate`).
`varlen.torch.context_parallel` and `varlen.jax.context_parallel` compute by it;
docs/context-parallel.md has pictures. Needs the standard library only.
"""

from __future__ import annotations

import bisect
import ctypes
import hashlib
import itertools
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from . import _library
from ._options import as_integer, read_options
from .text import mask_attribute

LAYOUTS = ("documents", "contiguous", "zigzag")


class Chunk(NamedTuple):
    """Rows of one sequence that a rank owns, counted from the sequence's first."""

    sequence: int
    begin: int  # rows of q
    end: int
    own_key_begin: int  # rows of k and v
    own_key_end: int
    key_begin: int  # keys that some of the rows of q see
    key_end: int
    query_begin: int  # rows of q that see some of the own keys
    query_end: int
    q_offset: int  # of the chunk as a sequence with the keys [key_begin, key_end)
    pairs: int  # of a row of q and a key that it sees


class _Chunk(ctypes.Structure):
    """VarlenPlanChunk."""

    _fields_ = [(name, ctypes.c_int64) for name in Chunk._fields]


class _Options(ctypes.Structure):
    """VarlenPlanOptions."""

    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("mask", ctypes.c_char_p),
        ("layout", ctypes.c_int32),
        ("multiple", ctypes.c_int64),
        ("row_cost", ctypes.c_double),
        ("slack", ctypes.c_double),
    ]


class Rows(NamedTuple):
    """Rows [begin, end) of a sequence."""

    sequence: int
    begin: int
    end: int

    @property
    def size(self):
        return self.end - self.begin


def clamp_offsets(offsets):
    """q_offset as integers of 32 bits: a position that is farther moves nothing."""
    limit = 2**31 - 1
    return [max(-limit, min(limit, x)) for x in offsets]


class Plan:
    """What `plan` returns; nothing changes it.

    chunks: of each rank, in the order of sequences and rows.
    cu_seqlens_q, cu_seqlens_k, q_offset (or None), window, chunk, alignment: what it is for.
    """

    def __init__(
        self, chunks, cu_seqlens_q, cu_seqlens_k, q_offset, window, chunk, alignment, options
    ):  # fmt: skip
        self.chunks: tuple[tuple[Chunk, ...], ...] = chunks
        self.cu_seqlens_q: tuple[int, ...] = cu_seqlens_q
        self.cu_seqlens_k: tuple[int, ...] = cu_seqlens_k
        self.q_offset: tuple[int, ...] | None = q_offset
        self.window, self.chunk, self.alignment = window, chunk, alignment
        self._options = options
        self._needed, self._signature = {}, None
        # What front ends have made of it, by what it is for.
        self.ways: dict = {}

    def __getstate__(self):
        return self.__dict__ | {"ways": {}, "_needed": {}}

    def with_mask(self, *, is_causal=False, window=(-1, -1), chunk=None):
        """The plan in which ranks own the same rows, for another mask: that of a layer with
        another window."""
        window, chunk, alignment, _, _ = read_options(
            is_causal, window, chunk, self.alignment, None, None
        )
        mask = mask_attribute(window if chunk is None else chunk, alignment)
        given = self.cu_seqlens_q, self.cu_seqlens_k, self.q_offset, self.ranks
        chunks = _make(*given, self._options, mask)
        return Plan(chunks, *given[:3], window, chunk, alignment, self._options)

    @property
    def ranks(self):
        return len(self.chunks)

    def rows(self, rank):
        """The rows of q that the rank owns, as ranges of rows of the batch."""
        return [
            range(self.cu_seqlens_q[c.sequence] + c.begin, self.cu_seqlens_q[c.sequence] + c.end)
            for c in self.chunks[rank]
        ]

    def key_rows(self, rank):
        """The rows of k and v that the rank owns, as ranges of rows of the batch."""
        begin = self.cu_seqlens_k
        return [
            range(begin[c.sequence] + c.own_key_begin, begin[c.sequence] + c.own_key_end)
            for c in self.chunks[rank]
        ]

    def all_rows(self, *, of_keys=False):
        """The rows that ranks own, one rank's after the other's, as ranges of rows of the batch."""
        of_rank = self.key_rows if of_keys else self.rows
        return [rows for rank in range(self.ranks) for rows in of_rank(rank)]

    def num_rows(self, rank):
        return sum(c.end - c.begin for c in self.chunks[rank])

    def num_key_rows(self, rank):
        return sum(c.own_key_end - c.own_key_begin for c in self.chunks[rank])

    def local(self, rank):
        """(cu_seqlens_q, cu_seqlens_k, q_offset) of the rank's own attention: each chunk is a
        sequence, with the keys that some of its rows see, one chunk's after the other's."""
        chunks = self.chunks[rank]
        return (
            _cumulate(c.end - c.begin for c in chunks),
            _cumulate(c.key_end - c.key_begin for c in chunks),
            [c.q_offset for c in chunks],
        )

    def shift(self, sequence):
        """What is added to the number of a query to get its position among the keys."""
        offset = self.q_offset[sequence] if self.q_offset else 0
        if self.alignment == "top_left":
            return offset
        q, k = self.cu_seqlens_q, self.cu_seqlens_k
        keys, queries = (cu[sequence + 1] - cu[sequence] for cu in (k, q))
        return offset + keys - queries

    def check_alignment(self):
        """That attentions by the plan can be aligned at the last rows, as local ones are."""
        if self.alignment != "bottom_right" and self.cu_seqlens_q != self.cu_seqlens_k:
            raise ValueError('plan: expected the alignment "bottom_right", got "top_left"')

    def check_ring_score(self):
        """That a score with a ring can count positions from where parts of the keys begin, which is
        a number of f32."""
        cu, limit = self.cu_seqlens_k, 2**24
        longest = max((end - begin for begin, end in zip(cu, cu[1:])), default=0)
        if longest > limit:
            raise NotImplementedError(
                f"context_parallel: a score with a ring takes sequences of at most {limit} keys, "
                f'got {longest}; the method "all_gather" takes longer ones'
            )

    def imbalance(self, row_cost=0.0):
        """The work of the slowest rank over the mean, where a row costs `row_cost` beside its
        pairs."""
        work = [
            sum(c.pairs + row_cost * (c.end - c.begin) for c in chunks) for chunks in self.chunks
        ]
        return max(work) * len(work) / sum(work) if sum(work) else 1.0

    # What ranks send each other.

    def own_keys(self, rank):
        """The rows of k and v that the rank owns, in its order."""
        return [Rows(c.sequence, c.own_key_begin, c.own_key_end) for c in self.chunks[rank]]

    def own_queries(self, rank):
        """The rows of q that the rank owns, in its order."""
        return [Rows(c.sequence, c.begin, c.end) for c in self.chunks[rank]]

    def needed_keys(self, rank):
        """The rows of k and v that some row of q of the rank sees; none twice."""
        return self._need("key", rank)

    def needed_queries(self, rank):
        """The rows of q that see some key of the rank; none twice."""
        return self._need("query", rank)

    def _need(self, side, rank):
        if (side, rank) not in self._needed:
            ranges = "sequence", f"{side}_begin", f"{side}_end"
            self._needed[side, rank] = merge(
                Rows(*(getattr(c, name) for name in ranges)) for c in self.chunks[rank]
            )
        return self._needed[side, rank]

    def sent_keys(self, sender, receiver):
        """The rows of k and v of one rank that another one needs."""
        return intersect(self.own_keys(sender), self.needed_keys(receiver))

    def sent_queries(self, sender, receiver):
        """The rows of q of one rank that another one needs."""
        return intersect(self.own_queries(sender), self.needed_queries(receiver))

    def ring_calls(self, rank, source):
        """Attentions of the rank's chunks that have query rows over the keys of one rank: lists of
        Rows, one for each of these chunks, without a gap. Most sequences need one; the keys of a
        rank may be from the front and from the back of a sequence."""
        pieces = self.sent_keys(source, rank)
        runs = [_find_runs(pieces, c) for c in self.chunks[rank] if c.begin < c.end]
        return [
            [x[number] if number < len(x) else Rows(0, 0, 0) for x in runs]
            for number in range(max(map(len, runs), default=0))
        ]

    def num_sent_keys(self, rank):
        """How many rows of k and v the rank sends to all others together."""
        return self._count(self.sent_keys, rank)

    def num_sent_queries(self, rank):
        """How many rows of q the rank sends to all others together."""
        return self._count(self.sent_queries, rank)

    def _count(self, sent, rank):
        others = (other for other in range(self.ranks) if other != rank)
        return sum(x.size for other in others for x in sent(rank, other))

    def signature(self):
        """A text that two plans share if and only if they are equal, but for one case in 2^256."""
        if self._signature is None:
            parts = (
                self.cu_seqlens_q, self.cu_seqlens_k, self.q_offset, self.window, self.chunk,
                self.alignment, self.chunks,
            )  # fmt: skip
            self._signature = hashlib.sha256(repr(parts).encode()).hexdigest()
        return self._signature


def plan(
    cu_seqlens_q: Iterable[int],
    cu_seqlens_k: Iterable[int] | None = None,
    *,
    ranks: int,
    is_causal: bool = False,
    window: tuple[int, int] = (-1, -1),
    chunk: int | None = None,
    alignment: str = "bottom_right",
    q_offset: Iterable[int] | None = None,
    layout: str = "documents",
    multiple: int = 1,
    row_cost: float = 0.0,
    slack: float = 0.03,
) -> Plan:
    """Divides the rows of a batch among ranks.

    Args:
        cu_seqlens_q: N + 1 integers, in a list, an array or a tensor (of a device it is copied):
            where each sequence begins, and the end of the last.
        cu_seqlens_k: The same for k and v; None: that of the queries.
        ranks: How many there are.
        is_causal, window, chunk, alignment, q_offset: As of `varlen.attn`.
        layout: "documents": whole sequences where they fit, longest first, and others as in
            "zigzag"; "contiguous": each rank has rows that follow each other; "zigzag": each has
            rows from the front and from the back of a sequence.
        multiple: Chunks begin at multiples of that many rows of their sequence.
        row_cost: What a row costs beside its pairs, in pairs: the rest of a model, whose work is
            shared out with that of attention.
        slack: How much more than an equal share of all work, as a part of it, a rank may have so
            that a sequence stays whole.

    Returns:
        The plan. Its work differs from an equal share by at most that of `multiple` rows and
        `slack`. Rows of k and v belong to the owner of the query at their place, for Tq != Tk in
        proportion.

    Raises:
        ValueError: cu_seqlens, q_offset or an option that is not what it has to be.
    """
    window, chunk, alignment, _, _ = read_options(is_causal, window, chunk, alignment, None, None)
    if layout not in LAYOUTS:
        raise ValueError(f"layout: expected one of {', '.join(LAYOUTS)}, got {layout!r}")
    cu_q = _read_list("cu_seqlens_q", cu_seqlens_q)
    cu_k = cu_q if cu_seqlens_k is None else _read_list("cu_seqlens_k", cu_seqlens_k)
    offset = None if q_offset is None else _read_list("q_offset", q_offset)
    if not cu_q or len(cu_q) != len(cu_k):
        raise ValueError(
            "expected cu_seqlens_q and cu_seqlens_k to have the same number of entries, at least "
            f"one, got {len(cu_q)} and {len(cu_k)}"
        )
    if offset is not None and len(offset) != len(cu_q) - 1:
        raise ValueError(
            f"q_offset: expected one entry for each of the {len(cu_q) - 1} sequences, got "
            f"{len(offset)}"
        )
    mask = mask_attribute(window if chunk is None else chunk, alignment)
    if multiple < 1:
        raise ValueError(f"multiple: expected 1 or more rows, got {multiple}")
    options = mask, LAYOUTS.index(layout), _as_int64("multiple", multiple), row_cost, slack
    chunks = _make(cu_q, cu_k, offset, _as_int64("ranks", ranks), options)
    return Plan(chunks, cu_q, cu_k, offset, window, chunk, alignment, options)


def divide_heads(ranks, heads, kv_heads):
    """For each rank its query heads and its kv heads, as ranges: whole groups while there are
    enough kv heads, else a part of one group. Raises ValueError where that cannot be."""
    if kv_heads >= ranks:
        group = heads // kv_heads
        ends = [rank * kv_heads // ranks for rank in range(ranks + 1)]
        return [(range(a * group, b * group), range(a, b)) for a, b in zip(ends, ends[1:])]
    if ranks % kv_heads or heads % ranks:
        raise ValueError(
            "all_to_all: expected no more ranks than kv heads, or a number of ranks that kv heads "
            "divide and that divides query heads, got "
            f"{ranks} ranks, {heads} heads and {kv_heads} kv heads"
        )
    own, share = heads // ranks, ranks // kv_heads
    return [
        (range(r * own, (r + 1) * own), range(r // share, r // share + 1)) for r in range(ranks)
    ]


def bytes_sent(
    plan: Plan,
    rank: int,
    method: str,
    *,
    heads: int,
    kv_heads: int,
    head_dim: int,
    v_head_dim: int,
    itemsize: int,
    has_sink: bool = False,
) -> tuple[int, int]:
    """Bytes that a rank sends to others in a forward and in a backward pass, by a method of
    `varlen.torch.context_parallel`; `itemsize` is 2 for bfloat16. Captures, and the 16 bytes by
    which ranks check that they agree, are not counted. docs/context-parallel.md has the
    formulas."""
    of_sums = max(itemsize, 4)
    of_keys = kv_heads * (head_dim + v_head_dim)
    others = [r for r in range(plan.ranks) if r != rank]
    if method == "all_gather":
        of_queries = heads * ((head_dim + 2 * v_head_dim) * itemsize + 2 * of_sums)
        backward = plan.num_sent_queries(rank) * of_queries
        if has_sink and rank:
            backward += plan.num_rows(rank) * heads * (2 * v_head_dim * itemsize + 2 * of_sums)
        return plan.num_sent_keys(rank) * of_keys * itemsize, backward
    if method == "ring":
        forward = plan.num_sent_keys(rank) * of_keys * itemsize
        received = sum(x.size for r in others for x in plan.sent_keys(r, rank))
        return forward, forward + received * of_keys * of_sums
    if method != "all_to_all":
        raise ValueError(f"method: expected all_gather, ring or all_to_all, got {method!r}")
    divided = divide_heads(plan.ranks, heads, kv_heads)
    own, own_kv = map(len, divided[rank])
    forward = backward = 0
    for other in others:
        its, its_kv = map(len, divided[other])
        rows, key_rows = plan.num_rows(rank), plan.num_key_rows(rank)
        keys = (head_dim + v_head_dim) * itemsize
        out = v_head_dim * itemsize + of_sums  # and lse
        forward += rows * its * head_dim * itemsize + key_rows * its_kv * keys
        forward += plan.num_rows(other) * own * out
        backward += rows * its * out + plan.num_rows(other) * own * head_dim * itemsize
        backward += plan.num_key_rows(other) * own_kv * keys
    return forward, backward


def _make(cu_q, cu_k, offset, ranks, options, other_mask=None):
    c, plan = _library.library(), ctypes.c_void_p()

    def array(values):
        return (ctypes.c_int64 * len(values))(*values)

    mask, *others = options
    options = _Options(ctypes.sizeof(_Options), mask.encode(), *others)
    status = c.varlenPlanCreate(
        array(cu_q), array(cu_k), None if offset is None else array(offset), len(cu_q) - 1, ranks,
        ctypes.byref(options), ctypes.byref(plan),
    )  # fmt: skip
    if status:
        _library.raise_error(status)
    try:
        if other_mask is None:
            return _read_chunks(plan, ranks)
        other = ctypes.c_void_p()
        status = c.varlenPlanWithMask(plan, other_mask.encode(), ctypes.byref(other))
        if status:
            _library.raise_error(status)
        try:
            return _read_chunks(other, ranks)
        finally:
            c.varlenPlanDestroy(other)
    finally:
        c.varlenPlanDestroy(plan)


def _read_chunks(plan, ranks):
    c, count, found = _library.library(), ctypes.c_size_t(), []
    for rank in range(ranks):
        address = c.varlenPlanGetChunks(plan, rank, ctypes.byref(count))
        chunks = ctypes.cast(address, ctypes.POINTER(_Chunk))
        found.append(
            tuple(
                Chunk(*(getattr(chunks[i], name) for name in Chunk._fields))
                for i in range(count.value)
            )
        )
    return tuple(found)


def _read_list(name, values):
    values = values.tolist() if hasattr(values, "tolist") else values
    if not isinstance(values, Sequence):
        raise TypeError(f"{name}: expected integers in a list or an array, got {values!r}")
    return tuple(_as_int64(name, value) for value in values)


def _as_int64(name, value):
    value = as_integer(name, value)
    if not -(2**63) <= value < 2**63:
        raise ValueError(f"{name}: expected integers of 64 bits, got {value}")
    return value


def _cumulate(lengths):
    return [0, *itertools.accumulate(lengths)]


def _find_runs(pieces, chunk):
    """The keys of the pieces that the chunk sees, as runs without a gap."""
    runs: list[Rows] = []
    for rows in pieces:
        begin, end = max(rows.begin, chunk.key_begin), min(rows.end, chunk.key_end)
        if rows.sequence != chunk.sequence or begin >= end:
            continue
        if runs and runs[-1].end == begin:
            runs[-1] = runs[-1]._replace(end=end)
        else:
            runs.append(Rows(rows.sequence, begin, end))
    return runs


def merge(parts):
    """The union of rows, in order, no two of which touch."""
    merged: list[Rows] = []
    for rows in sorted(rows for rows in parts if rows.begin < rows.end):
        last = merged[-1] if merged else None
        if last and last.sequence == rows.sequence and rows.begin <= last.end:
            merged[-1] = last._replace(end=max(last.end, rows.end))
        else:
            merged.append(rows)
    return merged


def intersect(some, others):
    """What two lists of rows have in common, in the order of the first; `others` as merge has
    them."""
    common = []
    for rows in some:
        # The last that begins before `rows`, and those after it.
        i = max(bisect.bisect_right(others, (rows.sequence, rows.begin, 2**63)) - 1, 0)
        while i < len(others) and others[i][:2] < (rows.sequence, rows.end):
            begin, end = max(rows.begin, others[i].begin), min(rows.end, others[i].end)
            if others[i].sequence == rows.sequence and begin < end:
                common.append(Rows(rows.sequence, begin, end))
            i += 1
    return common
