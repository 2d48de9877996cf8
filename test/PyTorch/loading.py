# RUN: %python %s
"""Importing varlen.torch, attention and its gradients import none of PyTorch's compiler,
which takes seconds."""

import sys

import torch
from packed import normal, offsets

assert "torch._dynamo" not in sys.modules, "PyTorch imports it by itself"

from varlen import scores  # noqa: E402
from varlen.torch import flash_attn_varlen_func, varlen_attn  # noqa: E402

q, cu = normal(9, 2, 16), offsets([4, 5])
out = varlen_attn(q, q, q, cu, cu, score=scores.softcap(3.0))
out = out + flash_attn_varlen_func(q, q, q, cu, cu, softcap=3.0, alibi_slopes=torch.ones(2))
out.sum().backward()
assert q.grad.any()
loaded = {"torch._dynamo", "torch._inductor", "sympy"} & sys.modules.keys()
assert not loaded, f"expected no compiler, got {loaded}"
# Nor what varlen.torch registers something with once it is imported.
loaded = {"torch.distributed.tensor", "torch.utils.flop_counter"} & sys.modules.keys()
assert not loaded, f"expected what is not used to be left out, got {loaded}"
