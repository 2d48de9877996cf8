# RUN: %python %s
"""DTensors: two processes have half of the heads each, with the bits of one that has all."""

import os
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing
from packed import fails, offsets
from torch.distributed.tensor import Replicate, Shard, distribute_tensor
from torch.utils.flop_counter import FlopCounterMode

from varlen import scores
from varlen.torch import AuxRequest, varlen_attn, varlen_attn_out

LSE = AuxRequest(lse=True)
PROCESSES = 2


def attend(q, k, v, cu_q, cu_k, sink, slopes, *others):
    options = {"score": scores.alibi(), "captures": [slopes]} if slopes is not None else {}
    return varlen_attn(
        q, k, v, cu_q, cu_k, enable_gqa=True, return_aux=LSE, sink=sink, window_size=(4, 0),
        **options,
    )  # fmt: skip


def check(mesh, kv_heads, placements, wanted, has_slopes=True):
    """Results and gradients for q, k, v, sink and slopes that are placed so."""
    torch.manual_seed(0)
    shapes = (20, 4, 32), (24, kv_heads, 32), (24, kv_heads, 16), (4,), (4,)
    tensors = [torch.randn(shape) for shape in shapes]
    cu = offsets([7, 13]), offsets([9, 15])
    placed = [offset_placed(mesh, x) for x in cu]

    def run(leaves, cu):
        q, k, v, sink, slopes = leaves
        out, lse = attend(q, k, v, *cu, sink, slopes if has_slopes else None)
        (out.square().sum() + lse.sin().sum()).backward()
        return out, lse

    alone = [x.clone().requires_grad_() for x in tensors]
    results = run(alone, cu)
    leaves = [
        distribute_tensor(x, mesh, [placement]).requires_grad_()
        for x, placement in zip(tensors, placements, strict=True)
    ]
    found = run(leaves, placed)
    assert found[0].placements == (wanted,), found[0].placements
    for x, y in zip(results, found):
        assert torch.equal(x, y.full_tensor())
    for x, y in zip(alone, leaves):
        if x.grad is not None:
            assert torch.equal(x.grad, y.grad.full_tensor())
    if wanted == Shard(1):
        # No process has computed what another one has.
        assert found[0].to_local().shape == (20, 4 // PROCESSES, 16)
    return leaves, placed


def offset_placed(mesh, x):
    return distribute_tensor(x, mesh, [Replicate()])


def work(rank, path):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{path}", rank=rank, world_size=PROCESSES)
    mesh = dist.device_mesh.init_device_mesh("cpu", (PROCESSES,))
    heads = [Shard(1)] * 3 + [Shard(0)] * 2
    (q, k, v, sink, _), cu = check(mesh, 2, heads, Shard(1))
    check(mesh, 4, [Shard(1), *[Replicate()] * 4], Shard(1), has_slopes=False)
    check(mesh, 2, [Replicate(), Shard(1), *[Replicate()] * 3], Shard(1))
    # A kv head is not split, and rows are not: all is computed by both.
    check(mesh, 1, [Shard(1), Replicate(), Replicate(), Shard(0), Shard(0)], Replicate())
    check(mesh, 2, [Shard(0)] * 5, Replicate())

    with torch.no_grad():
        out = distribute_tensor(torch.zeros(20, 4, 16), mesh, [Shard(1)])
        result = varlen_attn_out(out, q, k, v, *cu, enable_gqa=True)
        assert result is out
        assert torch.equal(out, varlen_attn(q, k, v, *cu, enable_gqa=True))
        whole = distribute_tensor(torch.zeros(20, 4, 16), mesh, [Replicate()])
        fails(
            ValueError, "out: expected a DTensor with placements [Shard(dim=1)]",
            lambda: varlen_attn_out(whole, q, k, v, *cu, enable_gqa=True),
        )  # fmt: skip
    fails(
        TypeError, "cu_seqlens_q: expected a DTensor, as other tensors are, got a Tensor",
        lambda: varlen_attn(q, k, v, offsets([7, 13]), cu[1], enable_gqa=True),
    )  # fmt: skip
    with torch.inference_mode(), FlopCounterMode(display=False) as counter:
        varlen_attn(q, k, v, *cu, enable_gqa=True)
    assert counter.get_total_flops() == 2 * (7 * 9 + 13 * 15) * 4 * (32 + 16)
    dist.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(work, (os.path.join(folder, "store"),), nprocs=PROCESSES)
