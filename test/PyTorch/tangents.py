# RUN: %python %s

"""Forward mode: torch.func.jvp, jacfwd, linearize and torch.autograd.forward_ad, against
PyTorch's of an attention of products and a softmax, in f64, on a GPU in f32; and in narrower
types the operator's results against those of f64."""

import torch
from device import HAS_F64, NAME
from packed import fails, offsets
from torch.autograd import forward_ad
from torch.func import grad, jacfwd, jacrev, jvp, vmap

from varlen import scores
from varlen.torch import AuxRequest, varlen_attn

WIDE, MOST = (torch.float64, 1e-12) if HAS_F64 else (torch.float32, 2e-5)
torch.manual_seed(0)
LSE = AuxRequest(lse=True)
LENGTHS_Q, LENGTHS_K = (5, 0, 9, 1), (7, 2, 9, 4)
HEADS, KV_HEADS, D, DV = 4, 2, 8, 6
cu_q, cu_k = (offsets(lengths).to(NAME) for lengths in (LENGTHS_Q, LENGTHS_K))


def draw(*shape):
    return torch.randn(*shape, dtype=WIDE, device=NAME)


def rows():
    return draw(sum(LENGTHS_Q), HEADS, D), draw(sum(LENGTHS_K), KV_HEADS, D), draw(sum(LENGTHS_K), KV_HEADS, DV)


def ours(q, k, v, sink=None, captures=(), score=None, **options):
    return varlen_attn(
        q, k, v, cu_q, cu_k, return_aux=LSE, enable_gqa=True, sink=sink, score=score,
        captures=captures, **options,
    )  # fmt: skip


def plain(q, k, v, sink=None, gains=None, is_causal=False):
    """Of tensors of the CPU."""
    outs, lses = [], []
    starts = (offsets(lengths).tolist() for lengths in (LENGTHS_Q, LENGTHS_K))
    for (q0, q1), (k0, k1) in zip(*(zip(cu, cu[1:]) for cu in starts)):
        ks, vs = (x[k0:k1].repeat_interleave(HEADS // KV_HEADS, 1) for x in (k, v))
        s = torch.einsum("ihd,jhd->hij", q[q0:q1], ks) * D**-0.5
        if gains is not None:
            s = s * gains[:, None, None]
        if is_causal:
            lq, lk = s.shape[1:]
            hidden = torch.ones(lq, lk, dtype=torch.bool, device="cpu").triu(lk - lq + 1)
            s = s.masked_fill(hidden, -torch.inf)
        logits = s if sink is None else torch.cat([s, sink[:, None, None].expand(-1, s.shape[1], 1)], 2)
        p = logits.softmax(2)[..., : s.shape[2]]
        outs.append(torch.einsum("hij,jhd->ihd", p, vs))
        lses.append(logits.logsumexp(2))
    return torch.cat(outs), torch.cat(lses, 1)


def check(got, wanted, most=MOST):
    for x, y in zip(got, wanted, strict=True):
        x, y = x.cpu(), y.cpu()
        assert x.shape == y.shape and x.dtype == y.dtype
        assert (x - y).abs().max() <= most * max(1, y.abs().max()), (x - y).abs().max()


def check_jvp(function, reference, values, tangents):
    of_cpu = (tuple(x.cpu() for x in rows) for rows in (values, tangents))
    for got, wanted in zip(jvp(function, values, tangents), jvp(reference, *of_cpu)):
        check(got, wanted)
    return got


# All operands, one by one, and all at once.
values, tangents = rows(), rows()
for causal in (False, True):
    check_jvp(
        lambda *x: ours(*x, is_causal=causal), lambda *x: plain(*x, is_causal=causal), values, tangents
    )
for i in range(3):

    def of_one(function, x, i=i):
        others = [y.to(x.device) for y in values]
        return function(*others[:i], x, *others[i + 1 :])

    check_jvp(lambda x: of_one(ours, x), lambda x: of_one(plain, x), values[i : i + 1], tangents[i : i + 1])
sinks = draw(2, HEADS)
check_jvp(ours, plain, (*values, sinks[0]), (*tangents, sinks[1]))
gains = draw(2, HEADS)
check_jvp(
    lambda *x: ours(*x[:3], score=scores.gains(), captures=x[3:]),
    lambda *x: plain(*x[:3], gains=x[3]), (*values, gains[0]), (*tangents, gains[1]),
)  # fmt: skip

# Narrower types: as the same numbers in f64.
for dtype, most in ((torch.float32, 1e-5), (torch.bfloat16, 3e-2), (torch.float16, 1e-2)):
    narrow = [[x.to(dtype) for x in pair] for pair in (values, tangents)]
    wide = [tuple(x.double().cpu() for x in pair) for pair in narrow]
    (_, got), (_, wanted) = jvp(ours, *map(tuple, narrow)), jvp(plain, *wide)
    check([x.double() for x in got], wanted, most)

# Dual tensors, of which one needs a gradient, too.
alone = jvp(lambda q: ours(q, *values[1:])[0], values[:1], tangents[:1])[1]
with forward_ad.dual_level():
    q = values[0].clone().requires_grad_()
    out, lse = ours(forward_ad.make_dual(q, tangents[0]), *values[1:])
    tangent = forward_ad.unpack_dual(out).tangent
    check([tangent], [alone])
    primal = forward_ad.unpack_dual(out).primal
    (dq,) = torch.autograd.grad(primal.sum(), q, retain_graph=True)
    check([dq], [grad(lambda q: ours(q, *values[1:])[0].sum())(values[0])])
    # No operand has a tangent.
    assert forward_ad.unpack_dual(ours(*values)[0]).tangent is None

# Jacobians, forward and backward; each example of a batch its own.
small = lambda q: ours(q, *values[1:])[0][:2].flatten()  # noqa: E731
check([jacfwd(small)(values[0])], [jacrev(small)(values[0])])
many, along = torch.stack([values[0], tangents[0]]), torch.stack([tangents[0], values[0]])
each = vmap(lambda q, t: jvp(lambda q: ours(q, *values[1:])[0], (q,), (t,))[1])(many, along)
check(each, [jvp(lambda q: ours(q, *values[1:])[0], (q,), (t,))[1] for q, t in zip(many, along)])
_, push = torch.func.linearize(lambda q: ours(q, *values[1:])[0], values[0])
check([push(tangents[0])], [alone])

# On tensors without data, as torch.compile traces.
on_meta = [x.to("meta") for x in (*values, *tangents)]
results = torch.ops.varlen.attn_jvp(*on_meta, cu_q.to("meta"), cu_k.to("meta"))
assert [tuple(x.shape) for x in results] == [(15, HEADS, DV), (HEADS, 15)] * 2

# What is wrong is said in words, and what is not offered by name.
fails(
    ValueError, "tk has 3 rows: expected 22, as many as k",
    lambda: torch.ops.varlen.attn_jvp(*values, tangents[0], tangents[1][:3], tangents[2], cu_q, cu_k),
)  # fmt: skip
fails(
    ValueError, "expected a sink beside tsink",
    lambda: torch.ops.varlen.attn_jvp(*values, *tangents, cu_q, cu_k, tsink=sinks[0]),
)  # fmt: skip
fails(
    ValueError, "tcaptures: expected 1 tensors, one of each capture, got 2",
    lambda: torch.ops.varlen.attn_jvp(
        *values, *tangents, cu_q, cu_k, score=scores.gains().written("f64" if HAS_F64 else "f32"), captures=[gains[0]],
        tcaptures=[gains[0], gains[1]],
    ),
)  # fmt: skip
fails(
    NotImplementedError, "varlen::attn_jvp: tangents of tangents are not offered",
    lambda: jacfwd(jacfwd(lambda q: ours(q, *values[1:])[0].sum()))(values[0]),
)  # fmt: skip
