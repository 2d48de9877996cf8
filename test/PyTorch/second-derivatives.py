# RUN: %python %s

"""Second derivatives: double backward, gradgradcheck, and compositions of torch.func, against
finite differences and PyTorch's own of an attention of products and a softmax, in f64, on a GPU
in f32; and in narrower types the operator's results against those of f64."""

import functools
import sys

import torch
from device import HAS_F64, IS_FAKE, NAME
from packed import attention, fails, offsets
from torch.autograd import gradgradcheck
from torch.func import grad, hessian, jacfwd, jacrev, jvp, vjp, vmap

from varlen import scores
from varlen.torch import AuxRequest, varlen_attn

torch.manual_seed(0)
WIDE, MOST = (torch.float64, 1e-11) if HAS_F64 else (torch.float32, 1e-4)
LSE = AuxRequest(lse=True)
LENGTHS_Q, LENGTHS_K = (3, 0, 4, 1), (4, 2, 3, 1)
HEADS, KV_HEADS, D, DV = 4, 2, 3, 2
cu_q, cu_k = map(offsets, (LENGTHS_Q, LENGTHS_K))
TQ, TK = sum(LENGTHS_Q) + 1, sum(LENGTHS_K) + 2  # rows of no sequence, too


def draw(*shape):
    return torch.randn(*shape, dtype=WIDE, device=NAME)


def rows():
    return draw(TQ, HEADS, D), draw(TK, KV_HEADS, D), draw(TK, KV_HEADS, DV)


def ours(q, k, v, sink=None, *captures, window=(-1, -1), score=None, **options):
    return varlen_attn(
        q, k, v, cu_q, cu_k, return_aux=LSE, enable_gqa=True, sink=sink, window_size=window,
        score=score, captures=captures, **options,
    )  # fmt: skip


def plain(q, k, v, sink=None, window=(-1, -1)):
    """In f64, of tensors of the CPU. Rows of no sequence have 0 and, as lse, nothing that is
    compared."""
    out, lse = attention(q, k, v, cu_q.cpu(), cu_k.cpu(), window=window, sink=sink)
    return torch.cat([out, out.new_zeros(TQ - len(out), *out.shape[1:])]), lse


def energy(out, lse):
    """A number of both that is linear in none."""
    weights = torch.linspace(0.5, 1.5, out.numel(), dtype=out.dtype, device="cpu").to(out.device)
    lse = lse[:, : sum(LENGTHS_Q)]
    return (out * out * weights.view(out.shape)).sum() + (lse * lse).sum()


def exact(tensors):
    """The same numbers in f64, on the CPU."""
    return tuple(x.detach().cpu().double() for x in tensors)


def check(got, wanted, most=MOST):
    for x, y in zip(exact(got), exact(wanted), strict=True):
        assert x.shape == y.shape
        assert (x - y).abs().max() <= most * max(1, y.abs().max()), (x - y).abs().max()


# -- Against finite differences -----------------------------------------------

# All kinds of captures at once, each of which is moved, under a mask and dropout.
parts = (scores.alibi(), scores.softcap(2.0), scores.query_gains(), scores.t5_bias(5, 4))
score = functools.reduce(scores.compose, parts)
captures = draw(HEADS), draw(HEADS, TQ), draw(HEADS, 5)


def of_all(*tensors):
    out, lse = ours(*tensors, window=(1, 1), score=score, dropout_p=0.3, seed=7)
    return out, lse[:, : sum(LENGTHS_Q)].exp()


if HAS_F64:
    inputs = [x.requires_grad_() for x in (*rows(), draw(HEADS), *captures)]
    assert gradgradcheck(of_all, inputs, fast_mode=True)

values, tangents = (*rows(), draw(HEADS)), (*rows(), draw(HEADS))
number = lambda *x: energy(*ours(*x))  # noqa: E731


# -- Double backward, as of a penalty on gradients -----------------------------


def penalty(function, values, dtype):
    inputs = [x.detach().to(dtype).requires_grad_() for x in values[:3]]
    inputs.append(values[3].to(torch.promote_types(dtype, torch.float32)))
    first = torch.autograd.grad(energy(*function(*inputs)), inputs[:3], create_graph=True)
    loss = sum(x.square().sum() for x in first)
    return torch.autograd.grad(loss, inputs[:3])


wanted = penalty(plain, exact(values), torch.float64)
got = penalty(ours, values, WIDE)
assert all(x.dtype == WIDE and x.device == values[0].device for x in got)
check(got, wanted)
check(penalty(ours, values, torch.bfloat16), wanted, 5e-2)

# Only the values need a gradient: that is linear in them, and there is one all the same.
v = values[2].clone().requires_grad_()
(dv,) = torch.autograd.grad(number(*values[:2], v, values[3]), v, create_graph=True)
(ddv,) = torch.autograd.grad(dv.square().sum(), v)
assert ddv.abs().max() > 0

if IS_FAKE:
    # PyTorch's own operations have no forward mode of gradients there.
    sys.exit()

# -- Every composition of both modes ------------------------------------------

ORDER = (0, 1, 2, 3)
gradient = grad(number, ORDER)


def along(*x):
    return sum((g * t).sum() for g, t in zip(gradient(*x), tangents))


def slope(*x):
    return jvp(number, x, tangents)[1]


wanted = jvp(grad(lambda *x: energy(*plain(*x)), ORDER), exact(values), exact(tangents))[1]
check(jvp(gradient, values, tangents)[1], wanted)  # forward of reverse
check(grad(along, ORDER)(*values), wanted)  # reverse of reverse
check(grad(slope, ORDER)(*values), wanted)  # reverse of forward

# Cotangents are differentiated, too, and alone.
_, pull = vjp(lambda *x: ours(*x)[0], *values)
cotangent, change = draw(TQ, HEADS, DV), draw(TQ, HEADS, DV)
check(jvp(pull, (cotangent,), (change,))[1], pull(change))

# Hessians whole: of a few numbers, forward of reverse and reverse of forward.
def small(function, values):
    return lambda x: energy(*function(values[0] * x, *values[1:]))


x = draw(D)
wanted_hessian = hessian(small(plain, exact(values)))(*exact([x]))
check([hessian(small(ours, values))(x)], [wanted_hessian])
check([jacrev(jacfwd(small(ours, values)))(x)], [wanted_hessian])

# Examples each their own, as many as the Hessian has rows.
many, along = torch.stack([values[0], tangents[0], draw(*values[0].shape)]), draw(3, *values[0].shape)


def product(q, t):
    return jvp(grad(lambda q: number(q, *values[1:])), (q,), (t,))[1]


check(vmap(product)(many, along), [product(q, t) for q, t in zip(many, along)])

# -- What is wrong, and what is not offered -----------------------------------

on_meta = [x.to("meta") for x in (*values[:3], *tangents[:3])]
out, lse = ours(*values)
results = [x.to("meta") for x in (out, lse, out, lse)]
gradients = torch.ops.varlen.attn_jvp_backward(
    results[0], None, None, None, *on_meta, *results, cu_q.to("meta"), cu_k.to("meta")
)
assert [x.shape for x in gradients[:3]] == [x.shape for x in values[:3]]
fails(
    ValueError, f"dtout has 3 rows: expected {TQ}, as many as q",
    lambda: torch.ops.varlen.attn_jvp_backward(
        out[:3], lse, None, None, *values[:3], *tangents[:3], out, lse, out, lse, cu_q, cu_k,
        sink=values[3],
    ),
)  # fmt: skip
fails(
    NotImplementedError, "varlen::attn_jvp_backward: third derivatives are not offered",
    lambda: grad(lambda q: product(q, tangents[0]).sum())(values[0]),
)  # fmt: skip
