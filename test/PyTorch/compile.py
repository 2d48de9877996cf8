# RUN: %python %s
# RUN: %if long %{ %python %s --whole %}
"""torch.compile of a model: one graph, no recompilation for other lengths, and the
results of eager execution."""

import sys

import torch
from device import IS_FAKE, NAME
from packed import assert_close, offsets
from torch import nn

from varlen.torch import AuxRequest, flash_attn_varlen_func, varlen_attn, varlen_attn_out


class Block(nn.Module):
    """Attention on slices of one projection, gated by its lse, with sinks."""

    def __init__(self, width=32, heads=4, kv_heads=2):
        super().__init__()
        self.heads, self.kv_heads, self.dim = heads, kv_heads, width // heads
        self.qkv = nn.Linear(width, (heads + 2 * kv_heads) * self.dim)
        self.out = nn.Linear(width, width)
        self.sink = nn.Parameter(torch.randn(heads))

    def forward(self, x, cu_seqlens, max_length):
        rows = self.qkv(x).unflatten(1, (-1, self.dim))
        q, k, v = rows.split([self.heads, self.kv_heads, self.kv_heads], 1)
        out, lse = varlen_attn(
            q, k, v, cu_seqlens, cu_seqlens, max_length, max_length,
            return_aux=AuxRequest(lse=True), window_size=(16, 0), enable_gqa=True,
            sink=self.sink,
        )  # fmt: skip
        out = out * torch.sigmoid(lse).T[..., None]
        return x + self.out(out.flatten(1))


def step(model, x, cu_seqlens, max_length):
    model.zero_grad()
    y = model(x, cu_seqlens, max_length)
    (y * y).sum().backward()
    return [y.detach(), *(p.grad.clone() for p in model.parameters())]


# Dynamo traces no methods of tensors under a default device.
torch.set_default_device(None)
torch.manual_seed(0)
block = Block().to(NAME)
batches = [[5, 9, 0, 20], [1, 2], [40, 3, 3], [7]]
graphs = []


def count(graph, inputs):
    graphs.append(graph)
    return graph.forward


# Traced by Dynamo alone: the graph is whole, and two are enough for all lengths (the
# first is for the extents it sees).
counted = torch.compile(block, backend=count, fullgraph=True)
for backend, compiled in (
    ("eager", counted),
    ("aot_eager", torch.compile(block, backend="aot_eager", fullgraph=True)),
    ("inductor", torch.compile(block, fullgraph=True, dynamic=True)),
):
    if backend == "inductor" and IS_FAKE:
        continue
    for lengths in batches:
        x = torch.randn(sum(lengths), 32, device=NAME)
        wanted = step(block, x, offsets(lengths), max(lengths))
        got = step(compiled, x, offsets(lengths), max(lengths))
        for a, b in zip(got, wanted):
            assert_close(a, b.double(), torch.float32, backend)
assert len(graphs) <= 2, len(graphs)
assert any("varlen.attn" in str(node.target) for node in graphs[0].graph.nodes)


# Into memory of the graph; by inductor, which compiles C++ for it, provider-contracts.py has
# memory of the caller.
def into(q, cu_seqlens):
    out = torch.zeros_like(q)
    varlen_attn_out(out, q, q, q, cu_seqlens, cu_seqlens)
    return 2 * out


q, cu_seqlens = torch.randn(12, 2, 16, device=NAME), offsets([5, 7])
wanted = 2 * varlen_attn(q, q, q, cu_seqlens, cu_seqlens)
backend = "inductor" if "--whole" in sys.argv and not IS_FAKE else "aot_eager"
assert torch.equal(torch.compile(into, fullgraph=True, backend=backend)(q, cu_seqlens), wanted)


# Numbers that change become symbols.
def scaled(q, cu_seqlens, number):
    capped = flash_attn_varlen_func(q, q, q, cu_seqlens, cu_seqlens, softcap=number)
    return capped + varlen_attn(q, q, q, cu_seqlens, cu_seqlens, scale=number)


compiled = torch.compile(scaled, fullgraph=True, backend="aot_eager")
for number in (0.5, 0.75, 1.5):
    assert torch.equal(compiled(q, cu_seqlens, number), scaled(q, cu_seqlens, number)), number
