"""Context parallelism by an all-gather: each rank gets all keys and values that its rows of q see,
and for gradients all rows of q that see its keys. Each result has one owner, which computes it as
one process would."""

import torch
import torch.distributed as dist
from torch.autograd.function import once_differentiable

from .._score import for_each_query
from ._context_calls import KeyCall, QueryCall, pick, sum_rows
from ._exchange import Exchange, pack, unpack
from ._local_rows import find_rows, make_index


class AllGather:
    """What is sent and computed, for a plan and a rank."""

    def __init__(self, plan, group, options, group_size, device):
        self.rank, self._plan, self._group = dist.get_rank(group), plan, group
        self.options, self._device = options, device
        pieces, self.keys = self._make_exchange(plan.own_keys(self.rank), plan.sent_keys)
        self.query_call = QueryCall(plan, self.rank, options, group_size, pieces, device)
        self._of_gradients = self._of_sinks = None

    def _make_exchange(self, own, sent):
        rank, others = self.rank, [r for r in range(self._plan.ranks) if r != self.rank]
        parts = {other: sent(other, rank) for other in others}
        indices = [
            find_rows(own, sent(rank, other) if other != rank else [], self._device)
            for other in range(self._plan.ranks)
        ]
        counts = [
            sum(x.size for x in parts.get(other, ())) for other in range(self._plan.ranks)
        ]
        pieces = [*own, *(rows for other in others for rows in parts[other])]
        return pieces, Exchange(self._group, indices, counts)

    @property
    def of_gradients(self):
        """(The exchange of rows of q, the call for dk and dv.)"""
        if self._of_gradients is None:
            plan = self._plan
            pieces, exchange = self._make_exchange(plan.own_queries(self.rank), plan.sent_queries)
            call = KeyCall(plan, self.rank, self.options, pieces, self._device)
            self._of_gradients = exchange, call
        return self._of_gradients

    @property
    def of_sinks(self):
        """(The exchange of all rows of q to rank 0, where these are in the batch.)"""
        if self._of_sinks is None:
            plan, rank = self._plan, self.rank
            rows = [plan.num_rows(r) for r in range(plan.ranks)]
            indices = [
                make_index([range(rows[rank])] if r == 0 != rank else [], self._device)
                for r in range(plan.ranks)
            ]
            counts = [n if r and rank == 0 else 0 for r, n in enumerate(rows)]
            order = make_index(plan.all_rows(), self._device)
            self._of_sinks = Exchange(self._group, indices, counts), order
        return self._of_sinks

    def _collect(self, rows):
        """On rank 0 the rows of all ranks of tensors, with their dimensions of rows, in the order of
        the batch; None on others."""
        exchange, order = self.of_sinks
        received = exchange.start(pack(rows)).wait()
        if self.rank:
            return None
        return [
            torch.cat([own, other], dim).index_copy(dim, order, torch.cat([own, other], dim))
            for (own, dim), other in zip(rows, unpack(received, rows))
        ]

    def sum_terms(self, terms):
        """The gradients by captures of heads of which own rows have these terms (Hq, rows): rank 0
        sums those of all, in the order of one process; others have zeros."""
        every = self._collect([(x, 1) for x in terms])
        if every is None:
            return [x.new_zeros(x.shape[0]) for x in terms]
        return [sum_rows(x) for x in every]

    def differentiate_sink(self, sink, q, v, rows):
        """The gradient by the sink, which rank 0 computes for all; others have zeros. `rows` are
        dout, out, lse and dlse of own rows, with their dimensions of rows."""
        every = self._collect(rows)
        if every is None:
            return torch.zeros_like(sink)
        dout, out, lse, dlse = every
        plan = self._plan
        cu_q = torch.tensor(plan.cu_seqlens_q, dtype=torch.int32, device=q.device)
        # A sink's gradient depends on no key.
        q = q.new_zeros(out.shape[0], *q.shape[1:])
        k, v = (x.new_zeros(0, v.shape[1], x.shape[2]) for x in (q, v))
        return torch.ops.varlen.attn_backward(
            dout, dlse, q, k, v, out, lse, cu_q, torch.zeros_like(cu_q), None, sink, -1, -1,
            self.options.scale,
        )[3]  # fmt: skip


class AttendByAllGather(torch.autograd.Function):
    @staticmethod
    def forward(ctx, way, q, k, v, sink, *captures):
        options, call = way.options, way.query_call
        of_keys = [(k, 0), (v, 0)]
        of_keys += [(x, 1) for i, x in enumerate(captures) if options.side(i) == "k"]
        received = unpack(way.keys.start(pack(of_keys)).wait(), of_keys)
        k_all, v_all, *more = (
            pick_all(call.keys, own, other, dim) for (own, dim), other in zip(of_keys, received)
        )
        more = iter(more)
        every = [
            {"q": lambda: call.take(x, 1), "k": lambda: next(more), None: lambda: x}[
                options.side(i)
            ]()
            for i, x in enumerate(captures)
        ]
        q_all = call.take(q)
        out, lse = options.attend(q_all, k_all, v_all, call.sequences, sink, every)
        ctx.way, ctx.num_captures = way, len(captures)
        ctx.save_for_backward(q, k, v, sink, out, lse, q_all, k_all, v_all, *captures, *every)
        return call.give(out), call.give(lse, 1)

    @staticmethod
    @once_differentiable  # what ranks exchange has no derivative
    def backward(ctx, dout, dlse):
        way, count = ctx.way, ctx.num_captures
        options, call = way.options, way.query_call
        q, k, v, sink, out, lse, q_all, k_all, v_all, *captures = ctx.saved_tensors
        captures, every = captures[:count], captures[count:]
        rows = [(dout, 0), (call.give(out), 0), (call.give(lse, 1), 1), (dlse, 1)]
        of_queries = [(q, 0), *rows]
        of_queries += [(x, 1) for i, x in enumerate(captures) if options.side(i) == "q"]
        exchange, key_call = way.of_gradients
        waiting = exchange.start(pack(of_queries))
        # Of numbers of heads: by them in each row, if by them at all.
        of_heads = [
            i for i, of in enumerate(options.kinds) if of == "head" and ctx.needs_input_grad[5 + i]
        ]
        local = options
        if of_heads:
            local = options._replace(score=for_each_query(options.score))
            rows_all = q_all.shape[0]
            every = [
                x[:, None].expand(-1, rows_all).contiguous() if of == "head" else x
                for x, of in zip(every, options.kinds)
            ]
        # While others send their rows.
        dq, _, _, _, dcaptures = local.differentiate(
            call.take(dout), call.take(dlse, 1), q_all, k_all, v_all, out, lse, call.sequences,
            sink, every,
        )  # fmt: skip
        dq = call.give(dq)
        dcaptures = [
            call.give(x, 1) if options.side(i) == "q" or i in of_heads else x
            for i, x in enumerate(dcaptures)
        ]
        q_all, dout_all, out_all, lse_all, dlse_all, *more = (
            pick_all(key_call.queries, own, other, dim)
            for (own, dim), other in zip(of_queries, unpack(waiting.wait(), of_queries))
        )
        more = iter(more)
        every = [
            {"q": lambda: next(more), "k": lambda: pick(key_call.keys, x, 1), None: lambda: x}[
                options.side(i)
            ]()
            for i, x in enumerate(captures)
        ]
        _, dk, dv, _, dkeys = options.differentiate(
            dout_all, dlse_all, q_all, key_call.keys.of([k]), key_call.keys.of([v]), out_all,
            lse_all, key_call.sequences, sink, every,
        )  # fmt: skip
        dk, dv = key_call.own.of([dk]), key_call.own.of([dv])
        for i, x in enumerate(dkeys):
            if options.side(i) == "k":
                dcaptures[i] = pick(key_call.own, x, 1)
        if of_heads:
            for i, x in zip(of_heads, way.sum_terms([dcaptures[i] for i in of_heads])):
                dcaptures[i] = x
        dsink = None
        if sink is not None and ctx.needs_input_grad[4]:
            dsink = way.differentiate_sink(sink, q, v, rows)
        return None, dq, dk, dv, dsink, *dcaptures


def pick_all(picked, own, others, dim):
    """Rows of those that are owned and of those that others have sent."""
    parts = [own, others] if others.shape[dim] else [own]
    if dim == 0:
        return picked.of(parts)
    return picked.of([x.movedim(dim, 0) for x in parts]).movedim(0, dim).contiguous()
