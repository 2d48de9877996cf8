# RUN: %python %s
# RUN: %if long %{ %python %s --whole %}
"""Scores in PyTorch: values and gradients beside autograd's of the definition, PyTorch's
own checks, whole graphs, and flash-attn's softcap and ALiBi. On a GPU, and in `make check-all`,
every score of the library, whose values on a CPU test/Integration/conformance.py compares."""

import sys

import torch
from device import HAS_F64, IS_FAKE, ON_CUDA, of_device
from library import LIBRARY, captures_of
from packed import TOLERANCE, attention, normal, offsets

from varlen import scores
from varlen.torch import flash_attn_varlen_func, varlen_attn, varlen_attn_out

WHOLE = "--whole" in sys.argv or ON_CUDA and not IS_FAKE
torch.manual_seed(0)
# Empty sequences, more keys than queries, one query, rows behind the last sequence.
QUERIES, KEYS = [0, 37, 1, 0, 20], [3, 61, 9, 0, 20]
cu_q, cu_k = offsets(QUERIES), offsets(KEYS)
ROWS_Q, ROWS_K = sum(QUERIES) + 3, sum(KEYS)


def inputs(dtype, dim=16, value_dim=24):
    return (
        normal(ROWS_Q, 4, dim, dtype=dtype), normal(ROWS_K, 2, dim, dtype=dtype),
        normal(ROWS_K, 2, value_dim, dtype=dtype),
    )  # fmt: skip


def close(label, dtype, got, wanted):
    got = got[: wanted.shape[0]] if got.dim() == 3 else got[..., : wanted.shape[-1]]
    error = (got.double() - wanted).abs().max()
    allowed = TOLERANCE[dtype] * max(1, wanted.abs().max())
    assert error <= allowed, f"{label}, {dtype}: error {error:.2e}, allowed {allowed:.2e}"


def softcap(cap):
    return lambda s, distance, sequence: cap * torch.tanh(s / cap)


def alibi(slopes):
    """Slopes (Hq) or (N, Hq)."""

    def change(s, distance, sequence):
        mine = slopes[sequence] if slopes.dim() == 2 else slopes
        return s - mine.double()[:, None, None] * distance.abs()

    return change


def both(first, second):
    return lambda s, *rest: second(first(s, *rest), *rest)


def check(label, dtype, ours, change, window, more=()):
    """`ours(q, k, v)` is out; `more`: what it has gradients for, besides."""
    q, k, v = inputs(dtype)
    out = ours(q, k, v)
    wanted, _ = attention(q, k, v, cu_q, cu_k, window=window, score=change)
    close(label, dtype, out, wanted)
    dout = torch.randn_like(out)
    found = torch.autograd.grad(out, (q, k, v, *more), dout)
    golden = torch.autograd.grad(wanted, (q, k, v, *more), dout[: len(wanted)].double())
    for name, x, y in zip("qkvc", found, golden):
        close(f"{label}: d{name}", dtype, x, y.double())


# Windows, scores and types of elements are independent of each other in this code: each score
# with one of the masks in f32, and of other types both scores, with a slope for each sequence.
MASKS = [(True, (-1, 0)), (False, (9, 4)), (False, (-1, -1))]
for dtype in of_device(*TOLERANCE):
    wide = torch.float64 if dtype == torch.float64 else torch.float32
    one, each = torch.rand(4, dtype=wide), torch.rand(len(QUERIES), 4, dtype=wide)
    for slopes in (one, each):
        slopes.mul_(0.3).requires_grad_()
    kinds = [
        ({"softcap": 2.5}, softcap(2.5)), ({"alibi_slopes": one}, alibi(one)),
        ({"alibi_slopes": each}, alibi(each)),
        ({"softcap": 2.5, "alibi_slopes": each}, both(softcap(2.5), alibi(each))),
    ]  # fmt: skip
    for i, (options, change) in enumerate(kinds):
        if dtype != torch.float32 and i != 3:
            continue
        for causal, window in MASKS if WHOLE and dtype == torch.float32 else [MASKS[i % 3]]:

            def flash(q, k, v):
                return flash_attn_varlen_func(
                    q, k, v, cu_q, cu_k, causal=causal, window_size=(-1, -1) if causal else window,
                    **options,
                )  # fmt: skip

            more = [options["alibi_slopes"]] if "alibi_slopes" in options else []
            check(" and ".join(options), dtype, flash, change, window, more)

# A score and captures in PyTorch's function.
WIDEST, WIDEST_NAME = (torch.float64, "f64") if HAS_F64 else (torch.float32, "f32")
q, k, v = inputs(WIDEST, dim=4, value_dim=3)
slopes = normal(4, dtype=WIDEST).detach().abs().requires_grad_()
gains = torch.rand(4, ROWS_Q, dtype=WIDEST).add_(0.5).requires_grad_()
score = scores.compose(scores.query_gains(), scores.compose(scores.alibi(), scores.softcap(4)))
captures = [gains, slopes]


def ours(q, k, v, *captures):
    return varlen_attn(
        q, k, v, cu_q, cu_k, enable_gqa=True, score=score, captures=captures
    )  # fmt: skip


# A capture whose numbers are negated where they are read.
negated = [torch._neg_view(-gains.detach()), torch._neg_view(-slopes.detach())]
assert torch.equal(ours(q, k, v, *negated), ours(q, k, v, *captures))

# Scores with each kind of capture, and every one of the library.
EXTENTS = {"heads": 4, "rows": ROWS_Q, "kv_rows": ROWS_K, "entries": 9}


def compare_with_cpu(attend, tensors):
    """Results and gradients beside those of the CPU in f64."""
    wide = [x.detach().double().cpu().requires_grad_(x.requires_grad) for x in tensors]
    out, wanted = attend(*tensors), attend(*wide)
    close("out", out.dtype, out.cpu(), wanted)
    dout = torch.randn_like(wanted)
    gradients = [
        torch.autograd.grad(y, [x for x in given if x.requires_grad], dout.to(y.device, y.dtype))
        for y, given in ((out, tensors), (wanted, wide))
    ]
    for got, golden in zip(*gradients):
        close("a gradient", got.dtype, got.cpu(), golden)


examples = [
    score, scores.t5_bias(8, 6), scores.compose(scores.position_bias(), scores.tree()),
    scores.compose(scores.key_bias(), scores.key_padding()),
]  # fmt: skip
assert {of for example in examples for of in example.captures.values()} == {*scores.CAPTURES}
for example in dict.fromkeys([*examples, *LIBRARY]) if WHOLE else examples:
    def attend(q, k, v, *captures):
        cu = cu_q.to(q.device), cu_k.to(q.device)
        return varlen_attn(q, k, v, *cu, enable_gqa=True, score=example, captures=captures)

    tensors = q, k, v, *captures_of(example, EXTENTS, WIDEST)
    if HAS_F64:
        torch.autograd.gradcheck(attend, tensors, fast_mode=True)
    else:
        compare_with_cpu(attend, tensors)
arguments = (q, k, v, cu_q, cu_k, None, None, -1, 0, None, score.written(WIDEST_NAME), captures)
torch.library.opcheck(torch.ops.varlen.attn.default, arguments)
with torch.no_grad():
    out, lse = torch.ops.varlen.attn(*arguments)
    written = torch.empty_like(out)
    varlen_attn_out(
        written, q, k, v, cu_q, cu_k, enable_gqa=True, is_causal=True, score=score,
        captures=captures,
    )  # fmt: skip
    assert torch.equal(written, out)
    torch.library.opcheck(torch.ops.varlen.attn_out.default, (written, *arguments))
    torch.library.opcheck(
        torch.ops.varlen.attn_backward.default,
        (out, None, *arguments[:3], out, lse, *arguments[3:]),
    )

# Only a capture needs a gradient.
(found,) = torch.autograd.grad(ours(q.detach(), k.detach(), v.detach(), gains, slopes.detach()).sum(), gains)
assert found.shape == gains.shape and not found[:, sum(QUERIES) :].any() and found.any()


# Whole graphs, of kernels from above.
def model(q, k, v, one, each):
    x = flash_attn_varlen_func(q, k, v, cu_q, cu_k, causal=True, softcap=2.5, alibi_slopes=each)
    y = flash_attn_varlen_func(q, k, v, cu_q, cu_k, causal=True, softcap=2.5)
    z = flash_attn_varlen_func(q, k, v, cu_q, cu_k, window_size=(9, 4), alibi_slopes=one)
    return x + y + z + ours(q, k, v, gains.float().detach(), one)


q, k, v = inputs(torch.float32)
one = torch.rand(4, requires_grad=True)
each = torch.rand(len(QUERIES), 4, requires_grad=True)
compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
results = [f(q, k, v, one, each) for f in (model, compiled)]
assert torch.equal(*results)
gradients = [torch.autograd.grad(x.sum(), (q, k, v, one, each)) for x in results]
for x, y in zip(*gradients):
    assert torch.allclose(x, y, rtol=1e-6, atol=1e-6)


# What is no score, to Python and to the operator, and scores of another type.
def refused(error, message, call):
    try:
        call()
    except error as raised:
        assert message in str(raised), raised
    else:
        raise AssertionError(f"expected {error.__name__}: {message}")


op, given = torch.ops.varlen.attn, (q.detach(), k.detach(), v.detach(), cu_q, cu_k, None, None, -1, -1, None)
refused(TypeError, "score: expected None or a varlen.scores.Score", lambda: varlen_attn(q, k, v, cu_q, cu_k, enable_gqa=True, score="alibi"))
refused(ValueError, "score: expected the MLIR text of a score", lambda: op(*given, "5f2ac81d"))
refused(ValueError, "score: expected a text for scores of f32", lambda: op(*given, scores.softcap(2.0).written("f64")))
refused(ValueError, "captures: expected names that no operand has, got 'sink'", lambda: op(
    *given, "captures(%sink: tensor<?xf32>) score (%s: f32, %i: i32, %j: i32, %sink: f32) { varlen.yield %s : f32 }", [one]
))  # fmt: skip
