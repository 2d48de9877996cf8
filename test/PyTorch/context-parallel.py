# RUN: %python %s
"""context_parallel on groups of 1 to 4 processes, or 2 that share a GPU: results and gradients are those of one process,
by all-gather and by whole kv heads to the bit; bytes that are sent are those of the formula; what
is wrong on one rank is an error on all."""

import argparse
import datetime
import itertools
import os
import warnings
from functools import partial

import torch
import torch.distributed as dist
from device import NAME, ON_CUDA
from packed import fails
from ranks import run_ranks

from varlen import context_parallel as plans
from varlen import scores
from varlen.torch import AuxRequest, context_parallel, shard_rows, unshard_rows, varlen_attn

# Of torch's own functions.
warnings.simplefilter("ignore", FutureWarning)
LSE = AuxRequest(lse=True)
# Processes have a GPU each, where there are two or more, or share the one by gloo, which sends
# tensors from one process to another on CPUs only.
GPUS = torch.cuda.device_count() if ON_CUDA else 0
BACKEND = "nccl" if GPUS > 1 else "gloo"
PROCESSES = min(4, max(2, GPUS)) if ON_CUDA else 4
METHODS = ("all_gather", "all_to_all") if ON_CUDA and BACKEND == "gloo" else ("all_gather", "ring", "all_to_all")
# Sequences of q and of k: short, empty, of one row, more queries than keys, over several blocks.
QUERIES, KEYS = [37, 0, 150, 5, 1, 300], [60, 3, 150, 0, 9, 400]
CAUSAL, WINDOW, FULL = (-1, 0), (20, 3), (-1, -1)
# How far results may be from those of one process, of the largest number, where sums are in
# another order: parts are rounded to the type, and summed.
TOLERANCES = {torch.float32: 1e-3 if ON_CUDA else 4e-6, torch.bfloat16: 2e-2, torch.float64: 1e-14}


class Case:
    """An attention, and its results in one process; `capture` is "H", "HQ", "HK" or "HQM"."""

    def __init__(
        self, dtype=torch.float32, queries=QUERIES, keys=KEYS, heads=(4, 2), dims=(32, 16),
        window=CAUSAL, chunk=None, sink=True, score=None, capture="",
    ):  # fmt: skip
        generator = torch.Generator().manual_seed(0)
        self.cu = [[0, *itertools.accumulate(lengths)] for lengths in (queries, keys)]
        (tq, tk), (h, hk), (d, dv) = (cu[-1] for cu in self.cu), heads, dims
        sums = torch.float64 if dtype is torch.float64 else torch.float32

        def make(*shape, dtype=dtype):
            return torch.randn(shape, dtype=dtype, generator=generator, device="cpu").to(NAME)

        extents = {"H": h, "Q": tq, "K": tk, "M": max(keys, default=0)}
        captures = [make(*(extents[x] for x in capture), dtype=sums)] if capture else []
        self.inputs = [make(tq, h, d), make(tk, hk, d), make(tk, hk, dv)]
        self.inputs += [make(h, dtype=sums)] if sink else []
        self.inputs += captures
        # What rows of these are: of q or of k, and their dimension; None: all ranks have all.
        kinds = {"Q": ("q", 1), "K": ("k", 1)}
        self.rows = [("q", 0), ("k", 0), ("k", 0)] + [None] * sink
        self.rows += [kinds.get(capture[1:2])] if capture else []
        self.grads = [make(tq, h, dv), make(h, tq, dtype=sums)]
        self.window, self.chunk, self.has_sink = window, chunk, sink
        self.dtype, self.heads, self.dims = dtype, heads, dims
        self.options = {"score": score, "return_aux": LSE}
        leaves = [x.clone().requires_grad_() for x in self.inputs]
        cu = [torch.tensor(x, dtype=torch.int32) for x in self.cu]
        # With q_offset, as ranks have it: one kind of kernel fewer to compile.
        offset = torch.zeros(len(queries), dtype=torch.int32)
        results = varlen_attn(
            *leaves[:3], *cu, window_size=window, chunk=chunk, enable_gqa=True, q_offset=offset,
            **self.of_heads(leaves),
        )  # fmt: skip
        torch.autograd.backward(results, self.grads)
        self.results = [x.detach() for x in results] + [x.grad for x in leaves]

    def of_heads(self, leaves):
        more = leaves[3:]
        sink = more.pop(0) if self.has_sink else None
        return {"sink": sink, "captures": more, **self.options}

    def plan(self, ranks, layout):
        return plans.plan(*self.cu, ranks=ranks, window=self.window, chunk=self.chunk, layout=layout)

    def check(self, group, method, layout="zigzag", is_exact=None, counter=None):
        rank, size = dist.get_rank(group), dist.get_world_size(group)
        if rank < 0:
            return
        plan = self.plan(size, layout)
        if is_exact is None:
            is_exact = method == "all_gather" or (
                method == "all_to_all" and size <= self.heads[1]
            )
        # On a GPU blocks of keys are counted from a tile's first.
        is_exact = is_exact and not ON_CUDA

        def own(x, rows):
            if rows is None:
                return x.clone()
            side, dim = rows
            x = shard_rows(x.movedim(dim, 0), plan, rank, of_keys=side == "k")
            return x.movedim(0, dim).contiguous()

        if counter:
            counter.take()
        leaves = [own(x, rows).requires_grad_() for x, rows in zip(self.inputs, self.rows)]
        results = context_parallel(
            *leaves[:3], plan, group, method=method, **self.of_heads(leaves)
        )
        forward = counter and counter.take()
        kinds = [("q", 0), ("q", 1)]
        torch.autograd.backward(results, [own(x, rows) for x, rows in zip(self.grads, kinds)])
        if counter:
            (h, hk), (d, dv) = self.heads, self.dims
            assert (forward, counter.take()) == plans.bytes_sent(
                plan, rank, method, heads=h, kv_heads=hk, head_dim=d, v_head_dim=dv,
                itemsize=self.dtype.itemsize, has_sink=self.has_sink,
            ), (method, layout, size)  # fmt: skip
        names = ["out", "lse", "dq", "dk", "dv", *[f"d{i}" for i in range(3, len(leaves))]]
        found = [*results, *(x.grad for x in leaves)]
        for name, wanted, x, rows in zip(names, self.results, found, kinds + self.rows):
            exact = is_exact
            if rows is None:
                # What all ranks have gets a part on each. A number of each head has one owner.
                dist.all_reduce(x, group=group)
                exact = is_exact and (x.dim() == 1 or method == "all_to_all")
            compare(x, own(wanted, rows), exact, (name, method, layout, size, self.dtype))


def compare(found, wanted, is_exact, what):
    assert found.dtype == wanted.dtype and found.shape == wanted.shape, what
    if is_exact:
        assert torch.equal(found, wanted), what
        return
    finite = torch.isfinite(wanted)
    assert torch.equal(torch.isfinite(found), finite), what
    found, wanted = found[finite].double(), wanted[finite].double()
    if found.numel():
        error = (found - wanted).abs().max() / wanted.abs().max().clamp(min=1e-30)
        assert error < TOLERANCES[what[-1]], (what, error)


class Counter:
    """Counts the bytes that this process sends to others."""

    def __init__(self):
        self.bytes = 0
        all_to_all, batch = dist.all_to_all_single, dist.batch_isend_irecv

        def count_all_to_all(output, input, received, sent, group=None, **options):
            own = sent[dist.get_rank(group)]
            self.bytes += (input.shape[0] - own) * input[:1].numel() * input.itemsize
            return all_to_all(output, input, received, sent, group=group, **options)

        def count_batch(operations):
            self.bytes += sum(x.tensor.nbytes for x in operations if x.op is dist.isend)
            return batch(operations)

        dist.all_to_all_single, dist.batch_isend_irecv = count_all_to_all, count_batch

    def take(self):
        count, self.bytes = self.bytes, 0
        return count


def make_cases(is_whole):
    """Masks, scores on three ranks, or two of which each has some heads, and small batches."""
    masks = [
        Case(), Case(window=WINDOW, sink=False),
        Case(dtype=torch.bfloat16, heads=(4, 4), window=(50, 0)),
    ]  # fmt: skip
    if is_whole:
        masks += [
            Case(window=FULL), Case(chunk=64, window=FULL), Case(queries=KEYS, window=WINDOW),
            *([] if ON_CUDA else [Case(dtype=torch.float64)]),
        ]  # fmt: skip
    same = {"queries": QUERIES, "keys": QUERIES, "sink": False}
    of_scores = [
        (Case(score=scores.position_bias(), capture="HQM", **same), {"all_gather", "ring"}),
        (Case(score=scores.key_bias(), capture="HK", window=WINDOW, **same), {"all_gather"}),
        (Case(score=scores.alibi(), capture="H", **same), {"all_gather", "all_to_all"}),
        (Case(chunk=50, window=FULL, **same), {"all_gather", "ring"}),
    ]
    if is_whole:
        of_scores = [
            (case, {*METHODS} - ({"ring"} if case.options["score"] is scores.key_bias() else set()))
            for case, _ in of_scores
        ]
    # No batch, one row, fewer rows than ranks.
    few = [Case(queries=lengths, keys=lengths) for lengths in ([], [1], [1, 0, 1])]
    return masks, of_scores, few


def check_values(groups, cases, is_whole, sizes):
    counter = Counter()
    masks, of_scores, few = cases
    for size, group in groups.items():
        if size not in sizes:
            continue
        layouts = plans.LAYOUTS if is_whole else [plans.LAYOUTS[size % 3]]
        # Each group has the first mask, and one of the others.
        some = masks if is_whole else [masks[0], masks[1 + size % 2]]
        for case, layout in itertools.product(some, layouts):
            for method in METHODS:
                if method != "all_to_all" or size != 3 and case.heads[0] % size == 0:
                    case.check(group, method, layout, counter=counter)
    for case, methods in of_scores:
        for method in sorted(methods & {*METHODS}):
            case.check(groups[2 if method == "all_to_all" else min(3, len(groups))], method)
    for case, method in itertools.product(few, METHODS):
        case.check(groups[min(4, len(groups))], method)


def check_shards(group):
    plan = plans.plan([0, 5, 12], ranks=dist.get_world_size(group), layout="zigzag")
    x = torch.arange(24.0).view(12, 2)
    own = shard_rows(x, plan, dist.get_rank(group))
    assert torch.equal(unshard_rows(own, plan, group), x)
    fails(ValueError, "x: expected the 12 rows of the batch, or more, got shape (11, 2)", lambda: shard_rows(x[1:], plan, 0))
    fails(ValueError, f"rank: expected one of the {plan.ranks} of the plan, got 9", lambda: shard_rows(x, plan, 9))
    fails(ValueError, "rows that the plan gives rank", lambda: unshard_rows(x, plan, group))
    fails(ValueError, "plan: expected one for the", lambda: unshard_rows(x, plans.plan([0, 12], ranks=9), group))


def check_errors(group, outside):
    """What is wrong somewhere is named everywhere, and no rank waits."""
    rank, size = dist.get_rank(group), dist.get_world_size(group)
    x = torch.randn(12, 2, 16)

    def attend(
        cu=(0, 5, 12), dtype=torch.float32, layout="zigzag", rows=slice(None), dtypes=None, group=group,
        requires_grad=False, **options,
    ):  # fmt: skip
        plan = plans.plan(cu, ranks=size, is_causal=True, layout=layout)
        q, k = (
            shard_rows(x[: cu[-1]].to(of), plan, rank)[rows].requires_grad_(requires_grad)
            for of in dtypes or (dtype, dtype)
        )
        return context_parallel(q, k, k, plan, group, **options)

    odd = rank == 1
    fails(
        ValueError, "cu_seqlens_q: expected the same on all ranks, got [0, 5, 12] on rank 0 and "
        "[0, 6, 12] on rank 1", lambda: attend((0, 6, 12) if odd else (0, 5, 12)),
    )  # fmt: skip
    fails(
        ValueError, "layout: expected the same on all ranks",
        lambda: attend(layout="contiguous" if odd else "zigzag"),
    )  # fmt: skip
    fails(
        ValueError, "q: expected the same on all ranks, got float32 (2, 16) on rank 0 and bfloat16 "
        "(2, 16) on rank 1", lambda: attend(dtype=torch.bfloat16 if odd else torch.float32),
    )  # fmt: skip
    fails(
        ValueError, "method: expected the same on all ranks",
        lambda: attend(method=METHODS[1] if odd else "all_gather"),
    )  # fmt: skip
    plan = plans.plan([0, 12], ranks=size + 1)
    fails(
        ValueError, f"plan: expected one for the {size} ranks of the group, got one for {size + 1}",
        lambda: context_parallel(x, x, x, plan, group),
    )  # fmt: skip
    fails(ValueError, "rows that the plan gives rank", lambda: attend(rows=slice(0)))
    if size > 2:
        fails(ValueError, "all_to_all: expected no more ranks than kv heads", lambda: attend(method="all_to_all"))
    fails(ValueError, "method: expected one of all_gather", lambda: attend(method="all"))
    fails(TypeError, "plan: expected a varlen.context_parallel.Plan", lambda: context_parallel(x, x, x, [0, 12], group))
    # What is wrong on one rank alone.
    one = partial(attend, rows=slice(0) if odd else slice(None))
    message = "query: expected the" if odd else "rank 1 has stopped: ValueError: query: expected the"
    fails(ValueError, message, one)
    fails(
        ValueError, "requires_grad: expected the same on all ranks, got False on rank 0 and True on rank 1",
        lambda: attend(requires_grad=odd),
    )  # fmt: skip
    # A ring sends nothing before it has found what is wrong.
    fails(
        ValueError, "k: expected a tensor of torch.bfloat16", lambda: attend(dtypes=(torch.bfloat16, torch.float32), method=METHODS[1]),
    )  # fmt: skip
    if rank:
        fails(ValueError, "group: expected one that this process is in", lambda: attend(group=outside))
    # The group still works, also where autocast has other types than q, k and v.
    attend(requires_grad=True).sum().backward()
    with torch.autocast(x.device.type, dtype=torch.bfloat16):
        out = attend(requires_grad=True)
    assert out.dtype is torch.bfloat16
    out.float().sum().backward()


def work(rank, path, processes, is_whole, sizes):
    torch.set_num_threads(1)
    # Processes wait for groups that they are not in. That one has ended is noticed before.
    timeout = datetime.timedelta(seconds=3600 if is_whole else 600)
    if BACKEND == "nccl":
        torch.cuda.set_device(rank)
    dist.init_process_group(
        BACKEND, init_method=f"file://{path}", rank=rank, world_size=processes, timeout=timeout
    )
    groups = {n: dist.new_group(range(n)) for n in range(1, processes + 1) if n <= 4 or n == 8}
    check_values(groups, make_cases(is_whole), is_whole, sizes)
    if rank < 4:
        check_shards(groups[min(4, processes)])
    if rank < 3:
        check_errors(groups[min(3, processes)], groups[1])
    if BACKEND == "nccl":
        # NCCL ends the processes of a group of which one has ended.
        dist.destroy_process_group()
        return
    # A rank that ends: the others get an error, at the latest after the group's timeout.
    dist.barrier()
    if rank == processes - 1:
        os._exit(0)
    case = Case(sink=False)
    fails(RuntimeError, "context_parallel: the process group has failed", lambda: case.check(dist.group.WORLD, "all_gather"))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, default=PROCESSES)
    parser.add_argument("--whole", action="store_true", help="every mask in every layout")
    parser.add_argument(
        "--sizes", type=lambda text: [int(x) for x in text.split(",")], default=[1, 2, 3, 4, 8],
        help="of groups whose masks are tried",
    )  # fmt: skip
    arguments = parser.parse_args()
    run_ranks(arguments.processes, work, arguments.processes, arguments.whole, arguments.sizes)
