"""The attentions of one rank: sequences of rows that it owns, or has been sent, and the calls of
the operators on them."""

import math
from typing import NamedTuple

import torch

from ..context_parallel import Rows, clamp_offsets
from ._local_rows import Picked, cumulate
from ._ops import attn, attn_backward

# Blocks of keys are counted from the first key of a sequence on, and so are their parts. Where
# keys of a local sequence begin at a multiple of both, of any schedule of a CPU, its rows have
# the bits that they have in the whole sequence; likewise panels of queries in gradients.
_KEY_MULTIPLE = 4096
_QUERY_MULTIPLE = 64
# A sequence of fewer pairs of a row and a head may be computed by other code (few queries).
_FEW = 9


class Options(NamedTuple):
    """The options of the attention, as the operators take them."""

    left: int
    right: int
    scale: float | None
    score: str
    chunk: int | None
    kinds: tuple  # what captures are of
    compute: str  # the type of scores, f32 or f64

    def attend(self, q, k, v, sequences, sink, captures):
        return attn(
            q, k, v, sequences.cu_q, sequences.cu_k, None, sink, self.left, self.right, self.scale,
            self.score, captures or None, None, sequences.q_offset, self.chunk,
        )  # fmt: skip

    def differentiate(self, dout, dlse, q, k, v, out, lse, sequences, sink, captures):
        return attn_backward(
            dout, dlse, q, k, v, out, lse, sequences.cu_q, sequences.cu_k, None, sink, self.left,
            self.right, self.scale, self.score, captures or None, None, sequences.q_offset,
            self.chunk,
        )  # fmt: skip

    def side(self, capture):
        """"q" or "k" if a capture has numbers of rows, None if of heads alone."""
        kind = self.kinds[capture]
        return "q" if kind.startswith("query") else "k" if kind == "key_table" else None

    def key_begin(self, begin, is_exact=True):
        """Where the keys of a local sequence begin that are needed from `begin` on: positions
        that a score or chunks depend on stay as they are, and so do blocks."""
        if self.score:
            return 0
        multiple = math.lcm(_KEY_MULTIPLE if is_exact else 1, self.chunk or 1)
        return begin // multiple * multiple


def make_offsets(offsets, device):
    """q_offset of sequences, int32."""
    return torch.tensor(clamp_offsets(offsets), dtype=torch.int32, device=device)


class Sequences(NamedTuple):
    """A batch of local sequences."""

    cu_q: torch.Tensor
    cu_k: torch.Tensor
    q_offset: torch.Tensor

    @classmethod
    def make(cls, plan, queries, keys, device):
        """Of rows of q and of k of the same sequences, for masks that are aligned at the end."""
        offsets = [plan.shift(q.sequence) + q.end - k.end for q, k in zip(queries, keys)]
        return cls(cumulate(queries, device), cumulate(keys, device), make_offsets(offsets, device))


class QueryCall:
    """The rank's rows of q with all keys that they see: what out, lse and dq are computed by."""

    def __init__(self, plan, rank, options, group_size, pieces, device):
        """`pieces` are the rows of k and v that the call has, in their order."""
        chunks = [c for c in plan.chunks[rank] if c.begin < c.end]
        own = [Rows(c.sequence, c.begin, c.end) for c in chunks]
        fewest = -(-_FEW // group_size)
        rows = [
            r._replace(end=max(r.end, r.begin + fewest)) if self._is_part(plan, r) else r
            for r in own
        ]
        keys = [Rows(c.sequence, options.key_begin(c.key_begin), c.key_end) for c in chunks]
        self.queries = Picked(own, rows, device)
        self.keys = Picked(pieces, keys, device)
        self.sequences = Sequences.make(plan, rows, keys, device)
        # Where own rows are among those of the call.
        self.own = None
        if rows != own:
            self.own = Picked.within(rows, own, device)

    @staticmethod
    def _is_part(plan, rows):
        cu = plan.cu_seqlens_q
        return rows.size < cu[rows.sequence + 1] - cu[rows.sequence]

    def take(self, x, dim=0):
        """A tensor of own rows as the call takes it."""
        return pick(self.queries, x, dim)

    def give(self, x, dim=0):
        """A tensor of the rows of the call without those that are not owned."""
        return x if self.own is None else pick(self.own, x, dim)


class KeyCall:
    """The rank's rows of k and v with all rows of q that see them: what dk and dv are computed
    by."""

    def __init__(self, plan, rank, options, pieces, device):
        """`pieces` are the rows of q that the call has, in their order."""
        chunks = [c for c in plan.chunks[rank] if c.own_key_begin < c.own_key_end]
        own = [Rows(c.sequence, c.own_key_begin, c.own_key_end) for c in chunks]
        rows = [
            Rows(c.sequence, c.query_begin // _QUERY_MULTIPLE * _QUERY_MULTIPLE, c.query_end)
            for c in chunks
        ]
        # Dk and dv of a row depend on no other key: these may begin anywhere.
        keys = [
            Rows(c.sequence, options.key_begin(c.own_key_begin, is_exact=False), c.own_key_end)
            for c in chunks
        ]
        self.queries = Picked(pieces, rows, device)
        self.keys = Picked(own, keys, device)
        self.own = Picked.within(keys, own, device)
        self.sequences = Sequences.make(plan, rows, keys, device)


def sum_rows(terms):
    """The sums (Hq) over rows of what rows have (Hq, rows), in the order in which an attention's
    gradients by numbers of heads are sums. Each row is a sequence of one key, whose weight is 1: the
    gradient by a number that is added to its score is that by its lse."""
    heads, rows = terms.shape
    compute = "f64" if terms.dtype is torch.float64 else "f32"
    score = f"""captures(%number: tensor<?x{compute}>)
        score (%score: {compute}, %query: i32, %key: i32, %number: {compute}) {{
          %new = arith.addf %score, %number : {compute}
          varlen.yield %new : {compute}
        }}"""
    q, k = terms.new_zeros(rows, heads, 1), terms.new_zeros(rows, 1, 1)
    cu = torch.arange(rows + 1, dtype=torch.int32, device=terms.device)
    options = Options(-1, -1, None, score, None, ("head",), compute)
    numbers = [terms.new_zeros(heads)]
    return options.differentiate(
        q, terms, q, k, k, q, torch.zeros_like(terms), Sequences(cu, cu, None), None, numbers
    )[4][0]  # fmt: skip


def pick(picked, x, dim=0):
    """Rows of a tensor whose dimension `dim` they are."""
    if dim == 0:
        return picked.of([x])
    return picked.of([x.movedim(dim, 0)]).movedim(0, dim).contiguous()
