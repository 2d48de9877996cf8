# RUN: %python %s

"""Second derivatives: double backward, gradgradcheck, and compositions of torch.func, against
finite differences and PyTorch's own of an attention of products and a softmax, in f64; and in
narrower types the operator's results against those of f64."""

import os

import torch
from packed import attention, fails, offsets
from torch.autograd import gradgradcheck
from torch.func import grad, hessian, jacfwd, jacrev, jvp, vjp, vmap

from varlen import scores
from varlen.torch import AuxRequest, varlen_attn

device = os.environ.get("VARLEN_TEST_DEVICE", "cpu")
torch.manual_seed(0)
LSE = AuxRequest(lse=True)
LENGTHS_Q, LENGTHS_K = (3, 0, 4, 1), (4, 2, 3, 1)
HEADS, KV_HEADS, D, DV = 4, 2, 3, 2
cu_q, cu_k = (offsets(lengths).to(device) for lengths in (LENGTHS_Q, LENGTHS_K))
TQ, TK = sum(LENGTHS_Q) + 1, sum(LENGTHS_K) + 2  # rows of no sequence, too


def draw(*shape, dtype=torch.float64):
    return torch.randn(*shape, dtype=dtype, device=device)


def rows():
    return draw(TQ, HEADS, D), draw(TK, KV_HEADS, D), draw(TK, KV_HEADS, DV)


def ours(q, k, v, sink=None, *captures, window=(-1, -1), score=None, **options):
    return varlen_attn(
        q, k, v, cu_q, cu_k, return_aux=LSE, enable_gqa=True, sink=sink, window_size=window,
        score=score, captures=captures, **options,
    )  # fmt: skip


def plain(q, k, v, sink=None, window=(-1, -1)):
    """Rows of no sequence have 0 and, as lse, nothing that is compared."""
    out, lse = attention(q, k, v, cu_q, cu_k, window=window, sink=sink)
    return torch.cat([out, out.new_zeros(TQ - len(out), *out.shape[1:])]), lse


def energy(out, lse):
    """A number of both that is linear in none."""
    weights = torch.linspace(0.5, 1.5, out.numel(), dtype=out.dtype, device=device)
    return (out.sin().flatten() * weights).sum() + lse[:, : sum(LENGTHS_Q)].sin().sum()


def check(got, wanted, most=1e-11):
    for x, y in zip(got, wanted, strict=True):
        assert x.shape == y.shape and x.dtype == y.dtype
        assert (x - y).abs().max() <= most * max(1, y.abs().max()), (x - y).abs().max()


# -- Against finite differences -----------------------------------------------

gains, bias, table = draw(HEADS), draw(HEADS, TQ), draw(HEADS, 5)
CASES = {
    "full": {}, "causal": {"window": (-1, 0)}, "window": {"window": (1, 1)},
    "gains": {"score": scores.compose(scores.gains(), scores.softcap(2.0)), "captures": [gains]},
    "query gains": {"score": scores.query_gains(), "captures": [bias], "window": (-1, 0)},
    "table": {"score": scores.t5_bias(5, 4), "captures": [table]},
    "dropout": {"dropout_p": 0.3, "seed": 7},
}  # fmt: skip
for name, case in CASES.items():
    case = dict(case)
    given = [*rows(), draw(HEADS), *case.pop("captures", [])]

    def of_all(*tensors, case=case):
        out, lse = ours(*tensors, **case)
        return out, lse[:, : sum(LENGTHS_Q)].exp()

    inputs = [x.requires_grad_() for x in given]
    assert gradgradcheck(of_all, inputs, fast_mode=True), name

# -- Every composition of both modes ------------------------------------------

values, tangents = (*rows(), draw(HEADS)), (*rows(), draw(HEADS))
ORDER = (0, 1, 2, 3)
for window in ((-1, -1), (-1, 0)):

    def number(function, window=window):
        return lambda *x: energy(*function(*x, window=window))

    products = []
    for function in (number(ours), number(plain)):
        gradient = grad(function, ORDER)

        def along(*x, gradient=gradient):
            return sum((g * t).sum() for g, t in zip(gradient(*x), tangents))

        def slope(*x, function=function):
            return jvp(function, x, tangents)[1]

        products.append(
            (
                jvp(gradient, values, tangents)[1],  # forward of reverse
                grad(along, ORDER)(*values),  # reverse of reverse
                grad(slope, ORDER)(*values),  # reverse of forward
            )
        )
    for got, wanted in zip(*products):
        check(got, wanted)
    for got in products[0][1:]:
        check(got, products[0][0])

# Cotangents are differentiated, too, and alone.
_, pull = vjp(lambda *x: ours(*x)[0], *values)
cotangent, change = draw(TQ, HEADS, DV), draw(TQ, HEADS, DV)
check(jvp(pull, (cotangent,), (change,))[1], pull(change))

# Hessians whole: of a few numbers, forward of reverse and reverse of forward.
small = lambda function: lambda x: energy(*function(values[0] * x[:D], *values[1:]))  # noqa: E731
x = draw(D)
check([hessian(small(ours))(x)], [hessian(small(plain))(x)])
check([jacrev(jacfwd(small(ours)))(x)], [hessian(small(plain))(x)])

# Examples each their own.
many, along = torch.stack([values[0], tangents[0]]), torch.stack([tangents[0], values[0]])


def product(q, t):
    return jvp(grad(lambda q: energy(*ours(q, *values[1:]))), (q,), (t,))[1]


check(vmap(product)(many, along), [product(q, t) for q, t in zip(many, along)])

# -- Double backward, as of a penalty on gradients -----------------------------


def penalty(function, dtype=torch.float64):
    inputs = [x.detach().to(dtype).requires_grad_() for x in values[:3]]
    first = torch.autograd.grad(energy(*function(*inputs)), inputs, create_graph=True)
    loss = sum(x.square().sum() for x in first)
    return torch.autograd.grad(loss, inputs)


wanted = penalty(plain)
check(penalty(ours), wanted)
for dtype, most in ((torch.float32, 1e-5), (torch.bfloat16, 5e-2), (torch.float16, 1e-2)):
    check([x.double() for x in penalty(ours, dtype)], wanted, most)

# Only the values need a gradient: that is linear in them, and there is one all the same.
v = values[2].clone().requires_grad_()
(dv,) = torch.autograd.grad(ours(*values[:2], v)[0].square().sum(), v, create_graph=True)
(ddv,) = torch.autograd.grad(dv.square().sum(), v)
assert ddv.abs().max() > 0

# -- What is wrong, and what is not offered -----------------------------------

on_meta = [x.to("meta") for x in (*values[:3], *tangents[:3])]
out, lse = ours(*values[:3])
results = [x.to("meta") for x in (out, lse, out, lse)]
gradients = torch.ops.varlen.attn_jvp_backward(
    results[0], None, None, None, *on_meta, *results, cu_q.to("meta"), cu_k.to("meta")
)
assert [x.shape for x in gradients[:3]] == [x.shape for x in values[:3]]
fails(
    ValueError, f"dtout has 3 rows: expected {TQ}, as many as q",
    lambda: torch.ops.varlen.attn_jvp_backward(
        out[:3], None, None, None, *values[:3], *tangents[:3], out, lse, out, lse, cu_q, cu_k
    ),
)  # fmt: skip
fails(
    NotImplementedError, "varlen::attn_jvp_backward: third derivatives are not offered",
    lambda: grad(lambda q: product(q, tangents[0]).sum())(values[0]),
)  # fmt: skip
