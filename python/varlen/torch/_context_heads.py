"""Context parallelism by an exchange of heads: for attention each rank has all rows of some heads,
before and after it some rows of all."""

import torch
import torch.distributed as dist
from torch.autograd.function import once_differentiable

from ..context_parallel import divide_heads
from ._context_calls import Sequences, make_offsets
from ._exchange import send_to_all
from ._local_rows import make_index
from ._results import accumulation_dtype


class Heads:
    """What is sent for a plan and a rank."""

    def __init__(self, plan, group, options, heads, kv_heads, device):
        self.rank, self.group, self.options = dist.get_rank(group), group, options
        self.heads, self.kv_heads = zip(*divide_heads(plan.ranks, heads, kv_heads))
        self._counts = {
            "q": [plan.num_rows(r) for r in range(plan.ranks)],
            "k": [plan.num_key_rows(r) for r in range(plan.ranks)],
        }
        # Rows as ranks have them, one rank after the other, are in the batch at:
        self._order = {
            "q": make_index(plan.all_rows(), device),
            "k": make_index(plan.all_rows(of_keys=True), device),
        }
        offsets = plan.q_offset or [0] * (len(plan.cu_seqlens_q) - 1)
        cu_q, cu_k = (
            torch.tensor(x, dtype=torch.int32, device=device)
            for x in (plan.cu_seqlens_q, plan.cu_seqlens_k)
        )
        self.sequences = Sequences(cu_q, cu_k, make_offsets(offsets, device))

    def _send(self, parts, shapes):
        """Sends a tensor to each rank and gets one of each, of those shapes."""
        flat = torch.cat([x.reshape(-1) for x in parts])
        received = [shape.numel() for shape in shapes]
        result = flat.new_empty(sum(received))
        sent = [x.numel() for x in parts]
        return send_to_all(self.group, flat, sent, result, received), shapes

    def gather_rows(self, x, rows, heads):
        """Starts to make of own rows (rows, all heads, ...) all rows (rows, own heads, ...), of the
        side `rows` ("q" or "k") and divided as `heads`."""
        parts = [x[:, h.start : h.stop] for h in heads]
        own = len(heads[self.rank])
        shapes = [torch.Size((n, own, *x.shape[2:])) for n in self._counts[rows]]
        waiting, shapes = self._send(parts, shapes)
        return lambda: self._in_order(waiting.wait(), shapes, self._order[rows])

    def _in_order(self, flat, shapes, order):
        rows = flat.view(-1, *shapes[0][1:])
        return torch.empty_like(rows).index_copy_(0, order, rows)

    def gather_heads(self, x, rows, heads, num_heads):
        """The opposite. Where several ranks have a head, theirs are summed."""
        order, counts = self._order[rows], self._counts[rows]
        parts = x.index_select(0, order).split(counts)
        shapes = [torch.Size((counts[self.rank], len(h), *x.shape[2:])) for h in heads]
        waiting, shapes = self._send(parts, shapes)

        def wait():
            found = waiting.wait().split([shape.numel() for shape in shapes])
            found = [part.view(shape) for part, shape in zip(found, shapes)]
            if sum(map(len, heads)) == num_heads:
                return torch.cat(found, 1)
            dtype = accumulation_dtype(x.dtype)
            sums = x.new_zeros(counts[self.rank], num_heads, *x.shape[2:], dtype=dtype)
            for part, h in zip(found, heads):
                sums[:, h.start : h.stop] += part
            return sums.to(x.dtype)

        return wait

    def take_captures(self, sink, captures):
        """The sink and captures of own heads."""
        own = self.heads[self.rank]
        waiting = []
        for i, x in enumerate(captures):
            side = self.options.side(i)
            if side is None:
                waiting.append(lambda x=x: x[own.start : own.stop].contiguous())
            else:
                gather = self.gather_rows(x.transpose(0, 1), side, self.heads)
                waiting.append(lambda gather=gather: gather().transpose(0, 1).contiguous())
        sink = None if sink is None else sink[own.start : own.stop].contiguous()
        return sink, [wait() for wait in waiting]

    def give_gradient(self, x, like, side):
        """A gradient of own heads of a sink or a capture as one of all heads: of numbers of rows
        all of it, of others this rank's part."""
        own = self.heads[self.rank]
        if side is None:
            whole = torch.zeros_like(like)
            whole[own.start : own.stop] = x
            return whole
        gather = self.gather_heads(x.transpose(0, 1).contiguous(), side, self.heads, like.shape[0])
        return gather().transpose(0, 1).contiguous()


class AttendByHeads(torch.autograd.Function):
    @staticmethod
    def forward(ctx, way, q, k, v, sink, *captures):
        waiting = [
            way.gather_rows(q, "q", way.heads), way.gather_rows(k, "k", way.kv_heads),
            way.gather_rows(v, "k", way.kv_heads),
        ]  # fmt: skip
        own_sink, own_captures = way.take_captures(sink, captures)
        q_all, k_all, v_all = (wait() for wait in waiting)
        num_heads = q.shape[1]
        if len(way.heads[way.rank]):
            out, lse = way.options.attend(
                q_all, k_all, v_all, way.sequences, own_sink, own_captures
            )
        else:
            out = q_all.new_empty(q_all.shape[0], 0, v.shape[2])
            lse = out.new_empty(0, q_all.shape[0], dtype=accumulation_dtype(q.dtype))
        ctx.way, ctx.num_heads = way, (num_heads, k.shape[1])
        ctx.count, ctx.dtype = len(captures), lse.dtype
        ctx.save_for_backward(
            q_all, k_all, v_all, out, lse, own_sink, sink, *captures, *own_captures
        )
        first = way.gather_heads(out, "q", way.heads, num_heads)
        second = way.gather_heads(lse.T.contiguous(), "q", way.heads, num_heads)
        return first(), second().T.contiguous()

    @staticmethod
    @once_differentiable  # what ranks exchange has no derivative
    def backward(ctx, dout, dlse):
        way, count = ctx.way, ctx.count
        q, k, v, out, lse, own_sink, sink, *captures = ctx.saved_tensors
        captures, own_captures = captures[:count], captures[count:]
        first = way.gather_rows(dout, "q", way.heads)
        second = way.gather_rows(dlse.T, "q", way.heads)
        dout, dlse = first(), second().T.contiguous()
        if len(way.heads[way.rank]):
            dq, dk, dv, dsink, dcaptures = way.options.differentiate(
                dout, dlse, q, k, v, out, lse, way.sequences, own_sink, own_captures
            )
        else:
            dq, dk, dv, dsink, dcaptures = q, k, v, own_sink, own_captures
        heads, kv_heads = ctx.num_heads
        waiting = [
            way.gather_heads(dq, "q", way.heads, heads),
            way.gather_heads(dk, "k", way.kv_heads, kv_heads),
            way.gather_heads(dv, "k", way.kv_heads, kv_heads),
        ]
        dsink = None if sink is None else way.give_gradient(dsink, sink, None)
        dcaptures = [
            way.give_gradient(x, like, way.options.side(i))
            for i, (x, like) in enumerate(zip(dcaptures, captures))
        ]
        return None, *(wait() for wait in waiting), dsink, *dcaptures
