# RUN: %python %s
"""The kernels of the operators for CUDA's dispatch key hand over operands, results and
options: with a launch that computes on the CPU what it is given, results are those of the
CPU's kernels. The launch itself is that of test/Python/cuda-arrays.py."""

import torch
import varlen
import varlen.torch
from varlen import _cuda, scores

ON_CUDA = torch._C.DispatchKeySet(torch._C.DispatchKey.CUDA)
launches = []


def run(given, operation, options, results):
    launches.append(operation)
    window, chunk, alignment, scale, score = options
    names = [*score.captures] if score else []
    named = {
        "window": window, "chunk": chunk, "alignment": alignment, "scale": scale, "score": score,
        "captures": [given.pop(name) for name in names],
    }  # fmt: skip
    # Names are those of varlen.attn and varlen.attn_grad.
    if operation == "attn":
        values = varlen.attn(**given, **named, return_lse=True)
    else:
        values = varlen.attn_grad(**given, **named)
    for result, value in zip(results.values(), values, strict=True):
        result.copy_(value)


_cuda.run = run
torch.manual_seed(0)
cu_q = torch.tensor([0, 5, 5, 12], dtype=torch.int32)
cu_k = torch.tensor([0, 7, 9, 20], dtype=torch.int32)
used = torch.tensor([6, 2, 11], dtype=torch.int32)
sink, slopes = torch.randn(4), torch.rand(4)
score = scores.alibi()


def compare(op, *arguments):
    op = getattr(torch.ops.varlen, op).default
    wanted, got = op(*arguments), op.redispatch(ON_CUDA, *arguments)
    for a, b in zip(*(torch.utils._pytree.tree_leaves(x) for x in (wanted, got)), strict=True):
        assert a.shape == b.shape and a.stride() == b.stride() and torch.equal(a, b), op
    return wanted


# Heads first, and gradients that are expanded.
q = torch.randn(4, 12, 16).transpose(0, 1)
k, v = torch.randn(20, 2, 16), torch.randn(20, 2, 16)
for options in ((used, sink, 3, 2, 0.25), (None, None, -1, 0, None, score.written("f32"), [slopes])):
    given = q, k, v
    out, lse = compare("attn", *given, cu_q, cu_k, *options)
    written = [torch.empty_like(out) for _ in range(2)]
    op = torch.ops.varlen.attn_out.default
    lses = op(written[0], *given, cu_q, cu_k, *options), op.redispatch(
        ON_CUDA, written[1], *given, cu_q, cu_k, *options
    )
    assert torch.equal(*written) and torch.equal(*lses)
    dout = torch.ones(()).expand(12, 4, 16)
    for dlse in (None, torch.randn(4, 12)):
        compare("attn_backward", dout, dlse, *given, out, lse, cu_q, cu_k, *options)
    compare("attn_backward", None, lse, *given, out, lse, cu_q, cu_k, *options)
assert launches == 2 * (["attn"] * 2 + ["attn_grad"] * 3)
