#!/usr/bin/env python3
"""Trains the GPT of train_torch.py on packed documents whose tokens are divided among processes.

    train_context_parallel.py --processes=1,2,4 --method=ring --windows=SSSL
    torchrun --nproc-per-node=8 train_context_parallel.py --device=cuda --dtype=bf16

Every process has all parameters, and some tokens of every batch; the losses are those of one
process. Documents go to processes as the plan of a batch says; layers with other windows have
plans of the same rows.
"""

import functools
import os
import pathlib
import sys
import tempfile

import numpy as np
import torch
import torch.distributed as dist
from torch.nn import functional as F

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "python"))
from documents import NO_TARGET, batches_of, gpt_parser, options_of
from train_torch import DTYPES, Learner
from varlen import context_parallel as plans
from varlen.torch import context_parallel, shard_rows


class Rank(Learner):
    """The learner of one process."""

    def __init__(self, options, device, group):
        super().__init__(None, options, device)
        self.method, self.layout, self.group = options.method, options.layout, group
        self.rank, self.ranks = dist.get_rank(group), dist.get_world_size(group)

    def step(self, batch):
        """The loss of the whole batch."""
        plan = plans.plan(
            batch["cu_seqlens"], ranks=self.ranks, is_causal=True, layout=self.layout,
            row_cost=self.row_cost,
        )  # fmt: skip
        # Plans are kept for as long as the batch: what is sent is worked out once for each window.
        of_window = functools.cache(lambda window: plan.with_mask(window=(window, 0)))
        own = {
            name: shard_rows(torch.from_numpy(batch[name]).to(self.device), plan, self.rank)
            for name in ("tokens", "positions", "targets")
        }

        def attend(q, k, v, window):
            return context_parallel(q, k, v, of_window(window), self.group, method=self.method)

        with torch.autocast(self.device.type, self.dtype, enabled=self.dtype != torch.float32):
            logits = self.model(own["tokens"], own["positions"], attend)
        total = F.cross_entropy(
            logits.float(), own["targets"].long(), ignore_index=NO_TARGET, reduction="sum"
        )
        loss = total / int(np.count_nonzero(batch["targets"] != NO_TARGET))
        loss.backward()
        for parameter in self.model.parameters():
            dist.all_reduce(parameter.grad, group=self.group)
        self.optimizer.step()
        self.optimizer.zero_grad()
        loss = loss.detach()
        dist.all_reduce(loss, group=self.group)
        return loss.item(), plan

    @property
    def row_cost(self):
        """What a token costs in a layer beside attention, in pairs: products of 12 width^2
        numbers, where a pair has 2 width in all heads."""
        return 6.0 * self.model.embedding.embedding_dim


def train(options, group=None):
    device = torch.device(options.device)
    if device.type == "cuda":
        device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0)))
        torch.cuda.set_device(device)
    learner = Rank(options, device, group)
    losses, sent = [], 0
    for batch in batches_of(options):
        loss, plan = learner.step(batch)
        losses.append(loss)
        sent += plan.num_sent_keys(learner.rank)
    if learner.rank == 0:
        print(f"{learner.ranks} processes, {learner.method}, {learner.layout}: losses "
              + " ".join(f"{x:.6f}" for x in losses), f"rank 0 sends {sent} rows of keys", sep="\n")


def work(rank, options, counts, path):
    # Of one machine's cores each has its own.
    torch.set_num_threads(max(torch.get_num_threads() // max(counts), 1))
    dist.init_process_group(
        "gloo", init_method=f"file://{path}", rank=rank, world_size=max(counts)
    )
    for count in counts:
        group = dist.new_group(range(count))
        if rank < count:
            train(options, group)
    dist.barrier()
    dist.destroy_process_group()


def main():
    parser = gpt_parser(__doc__, DTYPES, ["varlen"])
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument(
        "--processes", type=lambda text: [int(x) for x in text.split(",")], default=[2],
        help="how many, without torchrun; of several numbers one after the other",
    )  # fmt: skip
    parser.add_argument("--method", choices=("all_gather", "ring", "all_to_all"), default="all_gather")
    parser.add_argument("--layout", choices=plans.LAYOUTS, default="documents")
    options = options_of(parser, ["varlen"])
    if "RANK" in os.environ:
        dist.init_process_group("nccl" if options.device == "cuda" else "gloo")
        train(options)
        dist.destroy_process_group()
        return
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(
            work, (options, options.processes, os.path.join(folder, "store")),
            nprocs=max(options.processes),
        )  # fmt: skip


if __name__ == "__main__":
    main()
