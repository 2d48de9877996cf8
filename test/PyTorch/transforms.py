# RUN: %python %s
"""varlen_attn under torch.func: grad, vjp, jacrev and vmap, composed in any order, have the
bits of calls one by one. A vmap makes one call, by as many sequences or as many heads."""

import os

import torch
from packed import fails, offsets
from torch.func import grad, hessian, jacrev, vjp, vmap
from torch.utils._python_dispatch import TorchDispatchMode

from varlen import scores
from varlen.torch import AuxRequest, varlen_attn, varlen_attn_out

device = os.environ.get("VARLEN_TEST_DEVICE", "cpu")
torch.manual_seed(0)
LSE = AuxRequest(lse=True)
EXAMPLES = 3


class Calls(TorchDispatchMode):
    """Counts calls of the operators."""

    def __init__(self):
        super().__init__()
        self.counts = {"attn": 0, "attn_backward": 0}

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        namespace, _, name = function._schema.name.partition("::")
        if namespace == "varlen":
            self.counts[name] += 1
        return function(*args, **(kwargs or {}))


def normal(*shape):
    return torch.randn(shape, device=device)


def integers(*values):
    return torch.tensor(values, dtype=torch.int32, device=device)


# Of 12 queries and 15 keys, with rows that no sequence has.
q, k, v, sink = normal(12, 4, 16), normal(15, 2, 16), normal(15, 2, 8), normal(4)
cu_q, cu_k = offsets([5, 0, 6]).to(device), offsets([4, 3, 7]).to(device)
operands = {"q": q, "k": k, "v": v, "sink": sink, "cu_seq_q": cu_q, "cu_seq_k": cu_k}


def attend(options, q, k, v, cu_seq_q, cu_seq_k, **more):
    """out and lse, without infinities."""
    more |= options
    if (bias := more.pop("bias", None)) is not None:
        more["captures"] = [bias]
    out, lse = varlen_attn(q, k, v, cu_seq_q, cu_seq_k, enable_gqa=True, return_aux=LSE, **more)
    return out, lse.where(lse.isfinite(), 0)


def loss(options, given):
    out, lse = attend(options, **given)
    return (out * out).sum() + lse.sin().sum()


# torch.func.grad and vjp, of all operands, are autograd's.
leaves = {name: x.clone().requires_grad_() for name, x in list(operands.items())[:4]}
wanted = torch.autograd.grad(
    loss({"window_size": (3, 0)}, operands | leaves), list(leaves.values())
)
found = grad(lambda x: loss({"window_size": (3, 0)}, operands | x))(leaves)
assert all(map(torch.equal, found.values(), wanted))
_, pull = vjp(lambda x: loss({"window_size": (3, 0)}, operands | x), leaves)
assert all(map(torch.equal, pull(torch.ones((), device=device))[0].values(), wanted))


def row_sums(q):
    return varlen_attn(q, k, v, cu_q, cu_k, enable_gqa=True).sum((1, 2))


jacobian = torch.autograd.functional.jacobian(row_sums, q)
for vectorized in (
    lambda: jacrev(row_sums)(q),
    lambda: torch.autograd.functional.jacobian(row_sums, q, vectorize=True),
):
    with Calls() as calls:
        assert torch.equal(vectorized(), jacobian)
    assert calls.counts == {"attn": 1, "attn_backward": 1}
leaf = q.clone().requires_grad_()
out = varlen_attn(leaf, k, v, cu_q, cu_k, enable_gqa=True)
douts = torch.stack([torch.randn_like(out) for _ in range(EXAMPLES)])
with Calls() as calls:
    (batch,) = torch.autograd.grad(out, leaf, douts, retain_graph=True, is_grads_batched=True)
assert calls.counts == {"attn": 0, "attn_backward": 1}
for dout, dq in zip(douts, batch):
    assert torch.equal(torch.autograd.grad(out, leaf, dout, retain_graph=True)[0], dq)


# vmap, alone and with derivatives of each example and of all.
def sequences(most):
    """cu_seqlens of 3 sequences of different lengths in each example."""
    lengths = torch.randint(0, most // 3 + 1, (EXAMPLES, 3))
    return torch.stack([offsets(row.tolist()) for row in lengths]).to(device)


def check(batched, options=None, more=None, dim=0, as_heads=False, one_by_one=False):
    """Those operands batched, beside what is the same for all examples."""
    options, given = options or {}, operands | (more or {})
    for name in batched:
        given[name] = (
            sequences(len(q if name == "cu_seq_q" else k)) if name.startswith("cu_")
            else torch.stack([torch.rand_like(given[name]) for _ in range(EXAMPLES)], dim)
        )  # fmt: skip
    if "sink" not in batched and not as_heads and not one_by_one:
        del given["sink"]
    dims = {name: None for name in given}
    dims |= {name: 0 if name.startswith("cu_") else dim for name in batched}
    whole = [
        {name: x if dims[name] is None else x.select(dims[name], i) for name, x in given.items()}
        for i in range(EXAMPLES)
    ]
    with Calls() as calls:
        outs, lses = vmap(lambda x: attend(options, **x), in_dims=(dims,))(given)
    wanted = {"attn": 1, "attn_backward": 0}
    assert one_by_one or calls.counts == wanted, (batched, calls.counts)
    for example, out, lse in zip(whole, outs, lses):
        assert all(map(torch.equal, attend(options, **example), (out, lse))), batched

    # The gradients of each example, by operands that are batched and by others.
    floats = {name for name, x in given.items() if x.is_floating_point()}

    def gradients(x):
        others = {name: value for name, value in x.items() if name not in floats}
        return grad(lambda y: loss(options, others | y))({name: x[name] for name in floats})

    with Calls() as calls:
        batch = vmap(gradients, in_dims=(dims,))(given)
    wanted = {"attn": 1, "attn_backward": 1}
    if one_by_one:
        wanted = {"attn": EXAMPLES if "sink" in batched else 1, "attn_backward": EXAMPLES}
    assert calls.counts == wanted, (batched, calls.counts)
    for i, example in enumerate(whole):
        for name, gradient in gradients(example).items():
            assert torch.equal(batch[name][i], gradient), (batched, name)

    # Gradients of a loss of all examples: what they share gets their sum.
    def total(x):
        return vmap(lambda y: loss(options, y), in_dims=(dims,))(given | x).sum()

    summed = grad(total)({name: given[name] for name in floats})
    for name, gradient in summed.items():
        parts = [gradients(example)[name] for example in whole]
        parts = torch.stack(parts, dims[name]) if dims[name] is not None else sum(parts)
        assert torch.allclose(gradient, parts, rtol=1e-5, atol=1e-5), (batched, name)


for batched in (
    ("q",), ("k", "v"), ("q", "k", "v"), ("cu_seq_q", "cu_seq_k"),
    ("q", "k", "v", "cu_seq_q", "cu_seq_k"),
):  # fmt: skip
    check(batched, {"window_size": (-1, 0)})
for dim in (1, 2, -1):
    check(("q", "v"), {"chunk": 3}, dim=dim)
check(("q", "k"), {"seqused_k": integers(3, 2, 7), "q_offset": integers(0, 1, 2)})
check(("q", "k"), {"score": scores.key_bias()}, {"bias": normal(4, 15)})
check(("bias",), {"score": scores.position_bias()}, {"bias": normal(4, 12, 7)})
# A sink and captures of heads: as heads, or one by one where sequences differ.
check(("q",), as_heads=True)
check(("q", "k", "v", "sink"), as_heads=True)
check(("v", "bias"), {"score": scores.alibi()}, {"bias": normal(4)}, as_heads=True)
# A capture whose name begins as those of gradients do.
decay = scores.parse(scores.alibi().written("f32").replace("%slopes", "%decay"))
check(("v", "bias"), {"score": decay}, {"bias": normal(4)}, as_heads=True)
check(("q", "cu_seq_q", "cu_seq_k"), one_by_one=True)
check(("sink", "cu_seq_q", "cu_seq_k"), one_by_one=True)

# A vmap of a vmap.
many = normal(2, EXAMPLES, 12, 4, 16)
with Calls() as calls:
    nested = vmap(vmap(lambda q: varlen_attn(q, k, v, cu_q, cu_k, enable_gqa=True)))(many)
assert calls.counts["attn"] == 1
for given, found in zip(many.flatten(0, 1), nested.flatten(0, 1)):
    assert torch.equal(varlen_attn(given, k, v, cu_q, cu_k, enable_gqa=True), found)

# Into memory of the caller, which is of all examples.
outs = torch.full((12, EXAMPLES, 4, 8), torch.nan, device=device)


def write(out, q):
    return varlen_attn_out(out, q, k, v, cu_q, cu_k, enable_gqa=True)


vmap(write, in_dims=(1, 0))(outs, many[0])
assert torch.equal(outs.movedim(1, 0), nested[0])
fails(
    ValueError, "expected out to be batched by vmap",
    lambda: vmap(write, in_dims=(None, 0))(outs[:, 0], many[0]),
)  # fmt: skip
for bad, words in (
    (outs.double(), "out: expected a tensor of torch.float32 and rank 3, got one of torch.float64"),
    (outs[:1], "out has 1 rows: expected 12, as many as q"),
    (outs[:, :, 0], "out: expected a tensor of torch.float32 and rank 3, got one of torch.float32 "
     "and rank 2"),
    (outs[..., :1], "out: expected extent 2 to be 8, got 1"),
):  # fmt: skip
    fails(ValueError, words, lambda: vmap(write, in_dims=(1, 0))(bad, many[0]))

# Of no examples, results and gradients have the shapes of those of one, for each way of a call.
for batched in (("q",), ("sink",), ("q", "sink"), ("sink", "cu_seq_q", "cu_seq_k"), ("cu_seq_q",)):
    given = {name: x.new_empty(0, *x.shape) if name in batched else x for name, x in operands.items()}
    dims = {name: 0 if name in batched else None for name in given}
    outs, lses = vmap(lambda x: attend({}, **x), in_dims=(dims,))(given)
    assert outs.shape == (0, 12, 4, 8) and lses.shape == (0, 4, 12), batched
    names = ("q", "k", "v", "sink")

    def none(x):
        others = {name: value for name, value in x.items() if name not in names}
        return grad(lambda y: loss({}, others | y))({name: x[name] for name in names})

    for name, gradient in vmap(none, in_dims=(dims,))(given).items():
        assert gradient.shape == (0, *operands[name].shape), (batched, name)

# What is wrong is said of the example in which it is, and not of all as one.
wrong = torch.stack([cu_q, cu_q, cu_q])
for index, value in ((0, 1), (3, 13), (1, -1)):
    changed = wrong.clone()
    changed[1, index] = value
    alone, batch = (
        fails(ValueError, "cu_seqlens_q", call) for call in (
            lambda: varlen_attn(q, k, v, changed[1], cu_k, enable_gqa=True),
            lambda: vmap(lambda x: varlen_attn(q, k, v, x, cu_k, enable_gqa=True))(changed),
        )
    )  # fmt: skip
    assert alone == batch, (alone, batch)
fails(
    ValueError, "k: expected extent 2 to be 16, got 8",
    lambda: vmap(lambda x: varlen_attn(x, k[..., :8], v, cu_q, cu_k, enable_gqa=True))(many[0]),
)  # fmt: skip

# Compiled whole.
per_example = vmap(grad(lambda q: varlen_attn(q, k, v, cu_q, cu_k, enable_gqa=True).sum()))
compiled = torch.compile(per_example, backend="aot_eager", fullgraph=True)
assert torch.equal(compiled(many[0]), per_example(many[0]))

# Third derivatives are refused by name.
fails(
    NotImplementedError, "varlen::attn_jvp_backward: third derivatives are not offered",
    lambda: grad(lambda q: hessian(lambda q: row_sums(q).sum())(q).sum())(q),
)  # fmt: skip
