# RUN: %python %s
"""On a GPU: CUDA graphs, whose replays take other cu_seqlens, by torch.cuda.graph and by
torch.compile(mode="reduce-overhead"); a kind that is called for the first time in a capture;
what replays find wrong."""

import torch
from device import IS_FAKE, ON_CUDA, skip
from packed import assert_close, attention, fails, offsets

import varlen.torch
from varlen.torch import varlen_attn

if not ON_CUDA:
    skip("no CUDA")
if IS_FAKE:
    skip("torch.cuda.graph is not in PyTorch's build for the CPU; fake-cuda.py captures by hand")

torch.set_default_device(None)
torch.manual_seed(0)
ROWS, BATCHES = 96, ([40, 0, 56], [96, 0, 0], [1, 2, 60], [32, 32, 32])


def make(heads, dtype=torch.bfloat16, grad=False):
    shape = ROWS, heads, 64
    return [torch.randn(shape, device="cuda").to(dtype).requires_grad_(grad) for _ in range(3)]


def check(out, q, k, v, cu):
    rows = int(cu[-1])
    wanted, _ = attention(q, k, v, cu.tolist(), cu.tolist(), (-1, 0))
    assert_close(out[:rows], wanted, out.dtype)
    assert not out[rows:].any()


# A kind that has been called, and one that is compiled and loaded while the stream is captured.
for heads, is_known in ((4, True), (6, False)):
    q, k, v = make(heads)
    cu = offsets(BATCHES[0])
    if is_known:
        varlen_attn(q, k, v, cu, cu, window_size=(-1, 0))
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = varlen_attn(q, k, v, cu, cu, window_size=(-1, 0))
    for lengths in BATCHES:
        cu.copy_(offsets(lengths))
        q.copy_(torch.randn_like(q))
        graph.replay()
        torch.cuda.synchronize()
        check(out, q, k, v, cu)
    # Wrong values in a replay.
    cu.copy_(torch.tensor([0, 50, 40, 96], dtype=torch.int32))
    fails(ValueError, "cu_seqlens_q[2] = 40 is smaller than cu_seqlens_q[1] = 50", graph.replay)
    assert out.isnan().all()
    cu.copy_(offsets(BATCHES[0]))
    graph.replay()
    varlen.torch.check()
    check(out, q, k, v, cu)

# Forward and backward in one graph.
tensors = make(4, grad=True)
cu = offsets(BATCHES[0])


def step():
    out = varlen_attn(*tensors, cu, cu, window_size=(-1, 0))
    return out, torch.autograd.grad(out, tensors, torch.ones_like(out))


side = torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    step()
torch.cuda.current_stream().wait_stream(side)
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    out, gradients = step()
for lengths in BATCHES:
    cu.copy_(offsets(lengths))
    graph.replay()
    torch.cuda.synchronize()
    got = [out.clone(), *(x.clone() for x in gradients)]
    wanted_out, wanted = step()
    assert all(map(torch.equal, got, (wanted_out, *wanted)))

# torch.compile's graphs.
compiled = torch.compile(
    lambda q, k, v, cu: varlen_attn(q, k, v, cu, cu, window_size=(-1, 0)) * 2,
    mode="reduce-overhead", fullgraph=True,
)  # fmt: skip
q, k, v = make(4)
for lengths in BATCHES * 2:
    cu = offsets(lengths)
    torch.compiler.cudagraph_mark_step_begin()
    check(compiled(q, k, v, cu).clone() / 2, q, k, v, cu)
