# RUN: %python %s
"""torch.ops.varlen under PyTorch's own checks: opcheck, gradcheck, modes, and what
cannot be differentiated."""

import torch
from device import HAS_F64, NAME, of_device
from packed import fails, normal, offsets
from torch.utils._python_dispatch import TorchDispatchMode

from varlen.torch import AuxRequest, varlen_attn

ops = torch.ops.varlen
torch.manual_seed(0)
cu = offsets([0, 5, 7, 0])
used = torch.tensor([0, 5, 3, 0], dtype=torch.int32)


WIDEST = torch.float64 if HAS_F64 else torch.float32


def inputs(dtype=WIDEST, grad=True, dim=4, value_dim=3):
    """q of 4 heads, k and v of 2, a sink."""
    wide = torch.float64 if dtype == torch.float64 else torch.float32
    return (
        normal(12, 4, dim, dtype=dtype, grad=grad), normal(12, 2, dim, dtype=dtype, grad=grad),
        normal(12, 2, value_dim, dtype=dtype, grad=grad), normal(4, dtype=wide, grad=grad),
    )  # fmt: skip


# Schemas, fake kernels, autograd and torch.compile's tracing, static and dynamic.
for dtype in of_device(torch.float64, torch.float32, torch.bfloat16):
    q, k, v, sink = inputs(dtype)
    torch.library.opcheck(ops.attn.default, (q, k, v, cu, cu, used, sink, 2, 0, 0.5))
    # What follows does not depend on the type.
    if dtype != torch.float32:
        continue
    torch.library.opcheck(ops.attn.default, (q, k, v, cu, cu))
    # With the heads first, and fused.
    first = normal(4, 12, 4, dtype=dtype, grad=False).transpose(0, 1).requires_grad_()
    torch.library.opcheck(ops.attn.default, (first, k, v, cu, cu))
    fused = normal(12, 8, 4, dtype=dtype, grad=False).split([4, 2, 2], 1)
    torch.library.opcheck(ops.attn.default, (*fused, cu, cu))

    q, k, v, sink = inputs(dtype, grad=False)
    out, lse = ops.attn(q, k, v, cu, cu, None, sink)
    torch.library.opcheck(
        ops.attn_out.default, (torch.empty_like(out), q, k, v, cu, cu, None, sink)
    )
    for dout, dlse in ((out, None), (out, lse.clone()), (None, lse.clone())):
        arguments = (dout, dlse, q, k, v, out, lse, cu, cu, None, sink)
        torch.library.opcheck(ops.attn_backward.default, arguments)
    q, k, v, sink = inputs(dtype)
    arguments = (torch.ones_like(out), None, q, k, v, out, lse, cu, cu, None, sink)
    torch.library.opcheck(
        ops.attn_backward.default, arguments,
        # The others trace second derivatives.
        test_utils=("test_schema", "test_faketensor", "test_autograd_registration"),
    )  # fmt: skip

# The gradients are those of finite differences: of out and lse, sinks, masks, seqused_k.
q, k, v, sink = inputs()
if HAS_F64:
    for options in ((-1, -1), (2, 1, 0.7)):
        torch.autograd.gradcheck(
            lambda q, k, v, sink, options=options: ops.attn(q, k, v, cu, cu, None, sink, *options),
            (q, k, v, sink),
        )
    # Without a sink the lse of a row that sees no key is -inf, which has no differences.
    torch.autograd.gradcheck(lambda q, k, v: ops.attn(q, k, v, cu, cu, used)[0], (q, k, v))
    # Only some need one.
    torch.autograd.gradcheck(lambda v: ops.attn(q.detach(), k.detach(), v, cu, cu), (v,))
    torch.autograd.gradcheck(
        lambda s: ops.attn(q.detach(), k.detach(), v.detach(), cu, cu, None, s), (sink,)
    )

# A third derivative is an error wherever it is taken, not a wrong number.
words = "varlen::attn_jvp_backward: third derivatives are not offered"
for third in (
    lambda loss, ddq: (loss + ddq.square().sum()).backward(),
    lambda loss, ddq: (loss + ddq.square().sum()).backward(inputs=[q]),
    lambda loss, ddq: torch.autograd.grad(loss + ddq.square().sum(), q),
    lambda loss, ddq: torch.autograd.grad(ddq.sum(), v),
    lambda loss, ddq: torch.autograd.grad(ddq.sum(), sink),
):
    out, lse = ops.attn(q, k, v, cu, cu, None, sink)
    (dq,) = torch.autograd.grad(out.sum(), q, create_graph=True)
    (ddq,) = torch.autograd.grad(dq.square().sum(), q, create_graph=True)
    fails(NotImplementedError, words, lambda: third(out.sum(), ddq))
# A derivative by a tensor that was changed since is one, too.
out, lse = ops.attn(q, k, v, cu, cu)
with torch.no_grad():
    q.add_(1)
fails(RuntimeError, "modified by an inplace operation", lambda: out.sum().backward())
# So are derivatives forward into a given out.
plain = [x.detach() for x in inputs()[:3]]
words = "forward-mode derivatives are not offered"
with torch.autograd.forward_ad.dual_level():
    dual = torch.autograd.forward_ad.make_dual(plain[2], plain[2])
    made = torch.empty(12, 4, 3, dtype=torch.float64)
    fails(
        NotImplementedError, words,
        lambda: ops.attn_out(made, plain[0], plain[1], dual, cu, cu),
    )  # fmt: skip
    ops.attn(*plain, cu, cu)
# attn_out has none.
fails(
    RuntimeError, "expected tensors that need no gradient",
    lambda: ops.attn_out(torch.empty(12, 4, 3, dtype=WIDEST), q, k, v, cu, cu),
)  # fmt: skip

# Results of no_grad and of inference mode need no gradient.
with torch.no_grad():
    assert not any(x.requires_grad for x in ops.attn(q, k, v, cu, cu))
with torch.inference_mode():
    out, _ = ops.attn(q, k, v, cu, cu)
    ops.attn_out(torch.empty_like(out), q, k, v, cu, cu)
    assert out.is_inference()


# Under autocast all is in its type, but for float64 and sinks.
single = inputs(torch.float32)
mixed = (single[0], single[1].bfloat16(), single[2])
with torch.autocast(NAME, torch.bfloat16):
    out, lse = ops.attn(*mixed, cu, cu, None, single[3])
    if HAS_F64:
        assert ops.attn(q, k, v, cu, cu)[0].dtype == torch.float64
cast = ops.attn(*(x.bfloat16() for x in mixed), cu, cu, None, single[3])
assert torch.equal(out, cast[0]) and torch.equal(lse, cast[1]) and out.dtype == torch.bfloat16
gradients = torch.autograd.grad(out.float().sum(), (single[0], single[2], single[3]))
assert all(x.dtype == torch.float32 and x.any() for x in gradients)


# Modes and subclasses of Tensor see the operators.
class Log(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.seen.append(str(function))
        return function(*args, **(kwargs or {}))


with Log() as log:
    out, lse = varlen_attn(q, k, v, cu, cu, enable_gqa=True, return_aux=AuxRequest(lse=True))
    (out.sum() + lse[0, :3].sum()).backward()
assert "varlen.attn.default" in log.seen and "varlen.attn_backward.default" in log.seen

meta = [x.detach().to("meta") for x in (q, k, v, cu, cu)]
out, lse = ops.attn(*meta)
assert out.shape == (12, 4, 3) and lse.shape == (4, 12) and lse.dtype == WIDEST
assert out.is_meta and lse.is_meta
