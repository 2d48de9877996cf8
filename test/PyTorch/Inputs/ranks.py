"""Processes of one test, which are the ranks of a group."""

import fcntl
import os
import tempfile

import torch.multiprocessing
from device import ON_CUDA

from varlen import _cache


def _take_turns(path):
    """Has one of the processes that call this with one path compile a kernel, and the others wait
    and find it on the disk."""
    find = _cache._find

    def find_alone(*arguments):
        with open(path, "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            return find(*arguments)

    _cache._find = find_alone


def _work(rank, folder, work, arguments):
    _take_turns(os.path.join(folder, "turns"))
    work(rank, os.path.join(folder, "store"), *arguments)


def run_ranks(processes, work, *arguments):
    """Calls `work(rank, path, *arguments)` in each process; `path` is for their store."""
    # A copy of this process has imported everything, and no context of CUDA survives that.
    method = "spawn" if ON_CUDA else "fork"
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.start_processes(
            _work, (folder, work, arguments), nprocs=processes, start_method=method
        )
