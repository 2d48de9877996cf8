# RUN: %python %s
"""On a GPU: side streams, autograd's own thread, tensors of a device that is not the current
one, several devices, and results that a stream is left with."""

import concurrent.futures

import torch
from device import ON_CUDA, skip
from packed import normal, offsets

from varlen.torch import varlen_attn

if not ON_CUDA:
    skip("no CUDA")

torch.manual_seed(0)
LENGTHS = [5, 0, 70, 12]


VALUES = [normal(sum(LENGTHS), 4, 64, dtype=torch.bfloat16, grad=False) for _ in range(3)]


def inputs(device="cuda:0"):
    return [x.clone().to(device).requires_grad_() for x in VALUES]


def step(tensors):
    cu = offsets(LENGTHS).to(tensors[0].device)
    out = varlen_attn(*tensors, cu, cu, window_size=(-1, 0))
    return [out.detach(), *torch.autograd.grad(out.float().square().sum(), tensors)]


def equal(got, wanted):
    return all(torch.equal(a.cpu(), b.cpu()) for a, b in zip(got, wanted, strict=True))


wanted = step(inputs())
torch.cuda.synchronize()

# In a side stream, whose memory is given back and taken again while kernels wait to run: what
# another call gets is not what the first one works on.
stream = torch.cuda.Stream()
tensors = inputs()
torch.cuda.synchronize()
with torch.cuda.stream(stream):
    results = [step(tensors) for _ in range(20)]
stream.synchronize()
assert all(equal(got, wanted) for got in results)

# Recorded in a side stream and differentiated from the default one: PyTorch runs the backward
# pass in the stream of the forward pass, in a thread of its own.
with torch.cuda.stream(stream):
    cu = offsets(LENGTHS)
    out = varlen_attn(*tensors, cu, cu, window_size=(-1, 0))
    loss = out.float().square().sum()
torch.cuda.synchronize()
gradients = torch.autograd.grad(loss, tensors)
torch.cuda.synchronize()
assert equal(gradients, wanted[1:])

# Several threads, each in a stream of its own.
def work(_):
    own = torch.cuda.Stream("cuda:0")
    with torch.cuda.stream(own):
        result = step(inputs("cuda:0"))
    own.synchronize()
    return equal(result, wanted)


with concurrent.futures.ThreadPoolExecutor(4) as pool:
    assert all(pool.map(work, range(12)))

# Every device, current or not.
for index in range(torch.cuda.device_count()):
    tensors = inputs(f"cuda:{index}")
    for current in range(torch.cuda.device_count()):
        torch.cuda.set_device(current)
        results = step(tensors)
        assert torch.cuda.current_device() == current
        assert all(x.device.index == index for x in results)
        torch.cuda.synchronize(index)
        assert equal(results, wanted)
torch.cuda.set_device(0)
if torch.cuda.device_count() == 1:
    print("one device: others were not tried")
