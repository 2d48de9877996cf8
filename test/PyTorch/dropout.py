# RUN: %python %s
"""Dropout of varlen_attn: numpy's mask for a seed, derivatives by finite differences and by a definition, seeds from
PyTorch's generator, autocast, torch.compile, flash-attn's function, and errors."""

import sys

import numpy
import torch
import varlen
from varlen import scores
from varlen.torch import flash_attn_varlen_func, varlen_attn

torch.manual_seed(0)
cu = torch.tensor([0, 5, 5, 30], dtype=torch.int32)
q, k, v = (torch.randn(32, heads, 16) for heads in (4, 2, 2))
given = {"enable_gqa": True, "dropout_p": 0.3, "window_size": (-1, 0)}

# The mask is that of the same seed on arrays, given as a number or as a tensor.
out = varlen_attn(q, k, v, cu, cu, seed=5, **given)
arrays = [x.numpy() for x in (q, k, v, cu)]
same = varlen.attn(*arrays, is_causal=True, dropout_p=0.3, seed=5)
assert numpy.array_equal(out.numpy(), same)
assert torch.equal(varlen_attn(q, k, v, cu, cu, seed=torch.tensor(5), **given), out)
large = 0x89ABCDEF01234567
by_number = varlen_attn(q, k, v, cu, cu, seed=large, **given)
by_tensor = varlen_attn(q, k, v, cu, cu, seed=torch.tensor(large - 2**64), **given)
assert torch.equal(by_number, by_tensor)
ids = torch.tensor([7, 1, 0])
named = varlen_attn(q, k, v, cu, cu, seed=5, sequence_ids=ids, **given)
assert numpy.array_equal(
    named.numpy(),
    varlen.attn(*arrays, is_causal=True, dropout_p=0.3, seed=5, sequence_ids=ids.numpy()),
)

# Backward has the mask of its forward, whatever was drawn meanwhile.
small = torch.tensor([0, 3, 7])
doubles = [torch.randn(7, 2, 3, dtype=torch.float64, requires_grad=True) for _ in range(3)]
assert torch.autograd.gradcheck(
    lambda *x: varlen_attn(*x, small, small, dropout_p=0.5, seed=9), doubles, fast_mode=True,
    check_forward_ad=True,
)
leaf = q.clone().requires_grad_()
dropped = varlen_attn(leaf, k, v, cu, cu, **given)
torch.rand(3)
(first,) = torch.autograd.grad(dropped.sum(), leaf, retain_graph=True)
(second,) = torch.autograd.grad(dropped.sum(), leaf)
assert torch.equal(first, second)

# Tangents are those of products and a softmax with that mask.
words = scores.dropout_words(9, small.numpy(), 2, 7, dtype="float64")


def drop(q, k, v):
    outs = []
    for first, last in ((0, 3), (3, 7)):
        rows, places = slice(first, last), numpy.arange(last - first)
        p = (torch.einsum("ihd,jhd->hij", q[rows], k[rows]) / 3**0.5).softmax(2)
        factor = scores.dropout(0.5).factor(places[:, None], places, words[:, rows, None])
        assert 0 < (factor == 0).sum() < factor.size
        outs.append(torch.einsum("hij,jhd->ihd", p * torch.from_numpy(factor), v[rows]))
    return torch.cat(outs)


tangents = tuple(torch.randn_like(x) for x in doubles)
plain = tuple(x.detach() for x in doubles)
pushed = torch.func.jvp(lambda *x: varlen_attn(*x, small, small, dropout_p=0.5, seed=9), plain, tangents)
for x, y in zip(pushed, torch.func.jvp(drop, plain, tangents), strict=True):
    assert torch.allclose(x, y, rtol=1e-12, atol=1e-12)

# Without a seed it is drawn from the generator: other masks in turn, and the same ones again.
torch.manual_seed(3)
one, two = (varlen_attn(q, k, v, cu, cu, **given) for _ in range(2))
torch.manual_seed(3)
assert torch.equal(varlen_attn(q, k, v, cu, cu, **given), one) and not torch.equal(one, two)

# As a part of a graph, and in 16 bits by autocast.
seed = torch.tensor(5)
compiled = torch.compile(
    lambda q, seed: varlen_attn(q, k, v, cu, cu, seed=seed, **given),
    fullgraph=True, backend="aot_eager",
)  # fmt: skip
assert torch.equal(compiled(q, seed), out)
assert torch.equal(
    compiled(q, torch.tensor(6)), varlen_attn(q, k, v, cu, cu, seed=6, **given)
)
with torch.autocast("cpu", torch.bfloat16):
    narrow = varlen_attn(q, k, v, cu, cu, seed=5, **given)
assert narrow.dtype is torch.bfloat16
assert torch.allclose(narrow.float(), out, atol=0.05)

# flash-attn's function: by the generator, with its scores.
torch.manual_seed(3)
flash = flash_attn_varlen_func(q, k, v, cu, cu, 25, 25, 0.3, causal=True)
assert torch.equal(flash, one)
slopes = torch.rand(4)
torch.manual_seed(3)
flash = flash_attn_varlen_func(q, k, v, cu, cu, dropout_p=0.3, softcap=2.0, alibi_slopes=slopes)
score = varlen.scores.compose(varlen.scores.softcap(2.0), varlen.scores.alibi())
torch.manual_seed(3)
same = varlen_attn(
    q, k, v, cu, cu, enable_gqa=True, dropout_p=0.3, score=score, captures=[slopes]
)
assert torch.equal(flash, same)
assert torch.equal(
    flash_attn_varlen_func(q, k, v, cu, cu, dropout_p=0.0),
    varlen_attn(q, k, v, cu, cu, enable_gqa=True),
)

REFUSED = [
    (ValueError, "dropout_p: expected a number from 0 to less than 1, got 1.0", {"dropout_p": 1.0}),
    (TypeError, "dropout_p: expected a Python number", {"dropout_p": torch.tensor(0.1)}),
    (TypeError, "seed: expected an integer, got 0.5", {"seed": 0.5}),
    (ValueError,
     "seed: expected an integer or a tensor of one torch.int64, got torch.int32 of shape ()",
     {"seed": torch.tensor(1, dtype=torch.int32)}),
    (ValueError, "seed: expected a tensor with a number, got one on meta",
     {"seed": torch.tensor(1, device="meta")}),
    (ValueError, "seed: expected a dense tensor, got a nested one",
     {"seed": torch.nested.nested_tensor([torch.tensor([1])])}),
    (ValueError, "sequence_ids: expected a dense tensor, got a nested one",
     {"sequence_ids": torch.nested.nested_tensor([torch.tensor([0, 1]), torch.tensor([2])])}),
    (ValueError, "sequence_ids: expected 3 integers, one for each sequence, got torch.float32",
     {"sequence_ids": torch.ones(3)}),
    (TypeError, "sequence_ids: expected a torch.Tensor, got a list", {"sequence_ids": [0, 1, 2]}),
    (TypeError, "score: expected None or a varlen.scores.Score", {"score": "alibi"}),
    (ValueError, "captures: expected 0 (), got 1", {"captures": [slopes]}),
    (ValueError, "captures: expected 1 (slopes), got 0", {"score": varlen.scores.alibi()}),
    (TypeError, "captures: expected a sequence", {"captures": slopes}),
    (ValueError, "sequence_ids: expected a tensor on cpu, as q is, got one on meta",
     {"sequence_ids": torch.ones(3, dtype=torch.int32, device="meta")}),
]  # fmt: skip
for error, message, options in REFUSED:
    try:
        varlen_attn(q, k, v, cu, cu, **given | {"seed": 0} | options)
    except error as raised:
        assert message in str(raised), raised
    else:
        sys.exit(f"expected {error.__name__}: {message}")
