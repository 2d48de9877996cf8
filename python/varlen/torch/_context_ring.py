"""Context parallelism by a ring: in each step a rank gets keys and values of another one, those
that its rows see, while it computes with those of the step before; parts are merged by lse."""

from typing import NamedTuple

import torch
import torch.distributed as dist
from torch.autograd.function import once_differentiable

from .._score import count_from
from ..context_parallel import Rows
from ..scores import chunked
from ._context_calls import Sequences
from ._exchange import pack, swap, unpack
from ._local_rows import Picked, find_rows, make_index
from ._results import accumulation_dtype


class Step:
    """What a rank computes with the keys of one rank: calls, each of one run of keys of a
    sequence. `to` and `source` are whom it sends rows of k and v to, and gets them from."""

    def __init__(self, plan, rank, step, device):
        self.to, self.source = (rank + step) % plan.ranks, (rank - step) % plan.ranks
        own = plan.own_keys(rank)
        sent = plan.sent_keys(rank, self.to) if step else []
        self.sent = find_rows(own, sent, device)
        self.pieces = plan.sent_keys(self.source, rank) if step else own
        self.received = sum(x.size for x in self.pieces) if step else 0
        queries = [rows for rows in plan.own_queries(rank) if rows.size]
        calls = plan.ring_calls(rank, self.source)
        self.calls = []
        # The first one has a call even where no key is seen: results begin with it.
        if not calls and step == 0:
            calls = [[Rows(q.sequence, 0, 0) for q in queries]]
        for keys in calls:
            begins = [torch.full((q.size,), k.begin) for q, k in zip(queries, keys)]
            self.calls.append(
                Call(
                    Picked(self.pieces, keys, device),
                    Sequences.make(plan, queries, keys, device),
                    torch.cat(begins).to(device) if begins else make_index([], device),
                )
            )


class Call(NamedTuple):
    """Own rows, and a run of keys for each chunk of them."""

    keys: Picked
    sequences: Sequences
    begins: torch.Tensor  # where the run of each row begins in its sequence


class Ring:
    """The steps of a rank."""

    def __init__(self, plan, group, options, group_size, device):
        rank = dist.get_rank(group)
        if device.type != "cpu" and dist.get_backend(group) == "gloo":
            raise NotImplementedError(
                f"context_parallel: a ring by gloo takes tensors on CPUs, got some on {device.type}; "
                'method="all_gather" and NCCL take these'
            )
        if "key_table" in options.kinds:
            raise NotImplementedError(
                "context_parallel: a ring has parts of the keys, which a score with numbers of "
                'keys cannot look up; method="all_gather" offers it'
            )
        if options.chunk and options.score:
            raise NotImplementedError(
                "context_parallel: expected chunk or score with a ring, got both; "
                'method="all_gather" offers it'
            )
        if options.chunk:
            score = chunked(options.chunk)
            options = options._replace(chunk=None, score=score.written(options.compute))
        self.has_begins = bool(options.score)
        if self.has_begins:
            plan.check_ring_score()
            options = options._replace(
                score=count_from(options.score), kinds=(*options.kinds, "query")
            )
        self.options, self.group = options, group
        self.steps = [Step(plan, rank, step, device) for step in range(plan.ranks)]

    def walk(self, own):
        """Each step, with its rows of what `own` are, tensors whose first dimension rows are."""
        own = [(x, 0) for x in own]
        packed = pack(own)

        def start(step):
            rows = packed.index_select(0, step.sent)
            return swap(self.group, step.to, rows, step.source, step.received)

        waiting = None
        for step, following in zip(self.steps, [*self.steps[1:], None]):
            tensors = unpack(waiting.wait(), own) if waiting else [x for x, _ in own]
            # On its way while this step is computed.
            waiting = following and start(following)
            yield step, tensors

    def captures(self, captures, call, q, lse_dtype):
        """Captures of a call, with where its keys begin, which positions are counted from."""
        if not self.has_begins:
            return captures
        begins = call.begins.to(lse_dtype).expand(q.shape[1], -1).contiguous()
        return [*captures, begins]


def merge(out, lse, more, more_lse):
    """Attention over two sets of keys: out (T, H, Dv) and lse (H, T) of both, in the type of
    lse."""
    both = torch.logaddexp(lse, more_lse)
    # Rows that see no key in either have lse -inf, and weight 0.
    base = both.masked_fill(both == -torch.inf, 0)

    def weigh(x, of):
        return x * (of - base).exp().T[..., None]

    return weigh(out, lse) + weigh(more.to(out.dtype), more_lse), both


class AttendByRing(torch.autograd.Function):
    @staticmethod
    def forward(ctx, way, q, k, v, sink, *captures):
        out = lse = None
        for step, (k_part, v_part) in way.walk([k, v]):
            for call in step.calls:
                own_sink = sink if out is None else None
                every = way.captures(captures, call, q, accumulation_dtype(q.dtype))
                found = way.options.attend(
                    q, call.keys.of([k_part]), call.keys.of([v_part]), call.sequences, own_sink,
                    every,
                )  # fmt: skip
                if out is None:
                    out, lse = found[0].to(found[1].dtype), found[1]
                else:
                    out, lse = merge(out, lse, *found)
        out = out.to(q.dtype)
        ctx.way = way
        ctx.save_for_backward(q, k, v, sink, out, lse, *captures)
        return out, lse

    @staticmethod
    @once_differentiable  # what ranks exchange has no derivative
    def backward(ctx, dout, dlse):
        way, (q, k, v, sink, out, lse, *captures) = ctx.way, ctx.saved_tensors
        dtype = lse.dtype
        dq, dk, dv = (torch.zeros_like(x, dtype=dtype) for x in (q, k, v))
        dcaptures = [torch.zeros_like(x) for x in captures]
        dsink, returning = None, []
        for step, (k_part, v_part) in way.walk([k, v]):
            rows = k_part.shape[0] + 1  # and one for what is added to no row
            sums = [x.new_zeros(rows, *x.shape[1:], dtype=dtype) for x in (k_part, v_part)]
            for call in step.calls:
                own_sink = sink if dsink is None else None
                every = way.captures(captures, call, q, dtype)
                found = way.options.differentiate(
                    dout, dlse, q, call.keys.of([k_part]), call.keys.of([v_part]), out, lse,
                    call.sequences, own_sink, every,
                )  # fmt: skip
                dq += found[0]
                for total, part in zip(sums, found[1:3]):
                    call.keys.add_to(total, part.to(dtype))
                dsink = found[3] if dsink is None else dsink
                for total, part in zip(dcaptures, found[4]):
                    total += part
            sums = [x[:-1] for x in sums]
            if step is way.steps[0]:
                dk, dv = dk + sums[0], dv + sums[1]
                continue
            packed = pack([(x, 0) for x in sums])
            returning.append(
                (step, swap(way.group, step.source, packed, step.to, len(step.sent)))
            )
        for step, waiting in returning:
            for total, part in zip((dk, dv), unpack(waiting.wait(), [(dk, 0), (dv, 0)])):
                total.index_add_(0, step.sent, part)
        dsink = None if sink is None else dsink
        dq, dk, dv = (total.to(x.dtype) for total, x in zip((dq, dk, dv), (q, k, v)))
        return None, dq, dk, dv, dsink, *dcaptures
