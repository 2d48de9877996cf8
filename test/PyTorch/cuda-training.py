# RUN: %python %s
"""On a GPU: no call waits for the device, steps leave no memory behind, checkpointing,
DistributedDataParallel of one process, and too little memory."""

import gc

import torch
from device import IS_FAKE, NAME, ON_CUDA, skip
from packed import fails, offsets
from torch import nn
from torch.utils.checkpoint import checkpoint

from varlen.torch import varlen_attn

if not ON_CUDA:
    skip("no CUDA")

torch.manual_seed(0)
LENGTHS = [5, 0, 70, 12]
STEPS = 50 if IS_FAKE else 1000


class Block(nn.Module):
    def __init__(self, width=64, heads=4):
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x, cu):
        q, k, v = self.qkv(x).view(len(x), 3, self.heads, -1).unbind(1)
        return x + self.out(varlen_attn(q, k, v, cu, cu, window_size=(-1, 0)).flatten(1))


def gradients(call, block):
    block.zero_grad()
    call().square().sum().backward()
    return [p.grad.clone() for p in block.parameters()]


block = Block().to(NAME)
cu = offsets(LENGTHS)
x = torch.randn(sum(LENGTHS), 64)
wanted = gradients(lambda: block(x, cu), block)

# Recomputed in the backward pass.
got = gradients(lambda: checkpoint(block, x, cu, use_reentrant=False), block)
assert all(map(torch.equal, got, wanted))
got = gradients(lambda: checkpoint(block, x.clone().requires_grad_(), cu, use_reentrant=True), block)
assert all(map(torch.equal, got, wanted))

# Nothing that PyTorch would count as a wait, and no memory after many steps.
if not IS_FAKE:
    torch.cuda.set_sync_debug_mode("error")
torch.cuda.synchronize()
gc.collect()
before = None
for i in range(STEPS):
    gradients(lambda: block(x, cu), block)
    if i == 10 and not IS_FAKE:
        before = torch.cuda.memory_allocated()
if not IS_FAKE:
    torch.cuda.set_sync_debug_mode("default")
    gc.collect()
    assert torch.cuda.memory_allocated() <= before, (torch.cuda.memory_allocated(), before)
    # PyTorch's error passes through; what a call had is given back.
    before = torch.cuda.memory_allocated()
    free, _ = torch.cuda.mem_get_info()
    hog = torch.empty(int(free * 0.9), dtype=torch.uint8)
    rows = int(free * 0.12) // (64 * 64 * 2)
    q = torch.zeros(1, 64, 64, dtype=torch.bfloat16).expand(rows, 64, 64)
    fails(torch.OutOfMemoryError, "", lambda: varlen_attn(q, q, q, *[offsets([rows])] * 2))
    del hog
    assert torch.cuda.memory_allocated() <= before

# One process, as torchrun starts it; its only rank has no other to sum gradients with.
if not IS_FAKE:
    store = torch.distributed.HashStore()
    torch.distributed.init_process_group("nccl", store=store, rank=0, world_size=1)
    model = nn.parallel.DistributedDataParallel(block, device_ids=[0])
    got = gradients(lambda: model(x, cu), block)
    assert all(map(torch.equal, got, wanted))
    torch.distributed.destroy_process_group()
