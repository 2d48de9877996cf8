"""What all peers of a configuration share."""

import itertools

import rehearsal
import torch


class Refused(Exception):
    """What a peer cannot do."""


def offsets(lengths, device):
    values = [0, *itertools.accumulate(lengths)]
    return torch.tensor(values, dtype=torch.int32, device=device)


class Batch:
    """A configuration on a device."""

    def __init__(self, config, device=rehearsal.DEVICE):
        batch = config.batch
        self.config, self.device = config, device
        self.cu_q = offsets(batch.q_lengths, device)
        self.cu_k = offsets(batch.k_lengths, device)
        self.longest_q = max(batch.q_lengths)
        self.longest_k = max(batch.k_lengths)
        self.left, self.right = config.window
        self.grouped = batch.heads != batch.kv_heads
        self.scale = config.head_dim**-0.5
        self.plans = {}  # what a peer prepares once for all inputs, by name


def prepared(prepare):
    """A peer's call that runs what `prepare` makes of its inputs: (a function, its result)."""

    def call(execute, out):
        execute()
        return out

    call.prepare = prepare
    return call
