# RUN: %python %s
"""The profiler shows the operators by their names, forward and backward, with the node of
autograd, and so does a tensor's grad_fn."""

import os

import torch
from packed import offsets
from torch.profiler import ProfilerActivity, profile

from varlen.torch import varlen_attn, varlen_attn_out

device = os.environ.get("VARLEN_TEST_DEVICE", "cpu")
q = torch.randn(12, 2, 16, device=device, requires_grad=True)
cu = offsets([5, 7]).to(device)
with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as profiler:
    out = varlen_attn(q, q, q, cu, cu)
    out.sum().backward()
    with torch.no_grad():
        varlen_attn_out(torch.empty_like(out), q, q, q, cu, cu)
assert out.grad_fn.name() == "VarlenAttnBackward", out.grad_fn.name()
events = {event.name: event for event in profiler.events()}
for name in ("varlen::attn", "varlen::attn_out", "varlen::attn_backward", "VarlenAttnBackward"):
    assert name in events, (name, sorted(events))
assert events["varlen::attn"].input_shapes[:4] == [[12, 2, 16]] * 3 + [[3]]
# The time of the gradients is within that of the node.
node, gradients = events["VarlenAttnBackward"], events["varlen::attn_backward"]
assert gradients.cpu_parent is node or gradients.time_range.start >= node.time_range.start
