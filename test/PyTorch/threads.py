# RUN: %python %s
"""Calls from many threads at once, of kernels that are compiled meanwhile: the results
of one thread."""

import concurrent.futures
import os

import torch
from device import NAME, ON_CUDA, settle
from packed import normal, offsets

from varlen.torch import varlen_attn


def work(seed):
    # The CPU's numbers, whatever the device is.
    generator = torch.Generator().manual_seed(seed)

    def draw(function, *arguments):
        return function(*arguments, generator=generator, device="cpu")

    results = []
    for heads, window in ((2, (-1, 0)), (3, (5, 0))):
        lengths = draw(torch.randint, 0, 90, (6,)).tolist()
        cu = offsets(lengths)
        inputs = [
            draw(torch.randn, sum(lengths), heads, 32).to(NAME).requires_grad_()
            for _ in range(3)
        ]
        out = varlen_attn(*inputs, cu, cu, window_size=window)
        results += [out.detach(), *torch.autograd.grad(out.square().sum(), inputs)]
    return results


with concurrent.futures.ThreadPoolExecutor(8) as pool:
    at_once = list(pool.map(work, range(40)))
for seed, results in enumerate(at_once):
    assert all(map(torch.equal, results, work(seed)))

# A failure in one does not reach the others.
q = normal(8, 2, 16, grad=False)
good, bad = offsets([8]), offsets([9])
wanted = varlen_attn(q, q, q, good, good)


def call(i):
    try:
        return varlen_attn(q, q, q, *[good if i % 3 else bad] * 2)
    except ValueError as error:
        return str(error)


with concurrent.futures.ThreadPoolExecutor(8) as pool:
    results = list(pool.map(call, range(300)))
errors = [result for result in results if isinstance(result, str)]
try:
    settle()
except ValueError as error:
    errors.append(str(error))
assert errors and all("cu_seqlens_q[1] = 9" in error for error in errors), errors
for i, result in enumerate(results):
    if not isinstance(result, str):
        assert torch.equal(result, wanted) if i % 3 else result.isnan().all()
    else:
        # On a GPU any later call is told of it.
        assert i % 3 == 0 or ON_CUDA
assert ON_CUDA or len(errors) == 100

# A forked child, on the one thread that PyTorch's own operators may have there.
if not ON_CUDA:
    process = os.fork()
    if process == 0:
        torch.set_num_threads(1)
        os._exit(0 if torch.equal(varlen_attn(q, q, q, good, good), wanted) else 1)
    assert os.waitpid(process, 0)[1] == 0
