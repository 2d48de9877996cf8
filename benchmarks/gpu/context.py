"""Attention by a plan of context parallelism for two ranks on one GPU: the calls of both, one
after the other, on rows that have been sent. The pairs are the whole batch's, so what they take
more than one call is the cost of the plan: more launches, rows that are put in order, tiles that
are cut where ranks begin."""

import ours
import timing
import torch

from varlen import context_parallel as plans
from varlen.torch._context_calls import Options, QueryCall, Sequences
from varlen.torch._context_gather import pick_all
from varlen.torch._local_rows import make_index

RANKS = 2


class _Rank:
    """What a rank computes. `inputs` are q, k and v of the whole batch."""

    def __init__(self, plan, rank, options, config, inputs):
        other = 1 - rank
        q, k, v = inputs
        received = plan.sent_keys(other, rank)
        group = config.batch.heads // config.batch.kv_heads
        pieces = [*plan.own_keys(rank), *received]
        self.options, self.call = options, QueryCall(plan, rank, options, group, pieces, q.device)
        cu = plan.cu_seqlens_k
        sent = [range(cu[x.sequence] + x.begin, cu[x.sequence] + x.end) for x in received]
        rows, own, sent = (
            make_index(x, q.device) for x in (plan.rows(rank), plan.key_rows(rank), sent)
        )
        self.rows, self.q = rows, q[rows]
        self.keys = [(x[own], x[sent]) for x in (k, v)]

    def __call__(self):
        call = self.call
        k, v = (pick_all(call.keys, own, received, 0) for own, received in self.keys)
        out, _ = self.options.attend(call.take(self.q), k, v, call.sequences, None, [])
        return call.give(out)


def _all(ranks):
    return lambda: [rank() for rank in ranks]


def prepare(config, shared, layout):
    """Calls of the whole batch, calls of all ranks, and how far the results of both differ."""
    plan = plans.plan(
        shared.cu_q, shared.cu_k, ranks=RANKS, window=config.window, layout=layout
    )
    options = Options(*config.window, None, "", None, (), "f32")
    whole = Sequences(shared.cu_q, shared.cu_k, None)
    batch, d = config.batch, config.head_dim
    size = 4 * d * (batch.tokens_q * batch.heads + batch.tokens_k * batch.kv_heads)
    today, tried = [], []
    inputs = ours.make_inputs(config, timing.sets_for(size))
    for q, k, v in inputs:
        ranks = [_Rank(plan, rank, options, config, (q, k, v)) for rank in range(RANKS)]
        today.append(lambda q=q, k=k, v=v: options.attend(q, k, v, whole, None, [])[0])
        tried.append(_all(ranks))
    wanted, parts = today[-1](), tried[-1]()
    found = torch.zeros_like(wanted)
    for rank, part in zip(ranks, parts):
        found[rank.rows] = part
    return today, tried, ours.difference(found, wanted)
