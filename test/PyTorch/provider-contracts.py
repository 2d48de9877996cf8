# RUN: %python %s
"""What torch.nn.attention.varlen promises of every provider, while it is Varlen: layouts,
empty keys, large head_dims, an lse without gradients, opcheck and torch.compile."""

import torch
from device import IS_FAKE, ON_CUDA, skip
from packed import assert_close, attention, fails, normal, offsets
from torch.nn.attention import (
    SDPBackend,
    activate_flash_attention_impl,
    restore_flash_attention_impl,
    sdpa_kernel,
)
from torch.nn.attention import varlen as upstream
from torch.nn.attention.varlen import AuxRequest, varlen_attn

import varlen.torch

if not hasattr(upstream, "varlen_attn_out"):
    skip("this version of PyTorch has no varlen_attn_out; see provider-versions.py")
varlen_attn_out = upstream.varlen_attn_out

LSE = AuxRequest(lse=True)
torch.manual_seed(0)
varlen.torch.install()
activate_flash_attention_impl("VARLEN")

# lse needs no gradient: the operator's backward formula takes none.
cu = offsets([5, 0, 8])
q, k, v = (normal(13, 4, 16) for _ in range(3))
out, lse = varlen_attn(q, k, v, cu, cu, 8, 8, window_size=(-1, 0), return_aux=LSE)
assert out.requires_grad and not lse.requires_grad
fails(RuntimeError, "does not require grad", lambda: lse.sum().backward())
wanted = torch.autograd.grad(out.sum(), (q, k, v), retain_graph=True)
mixed = out.sum() + lse.where(lse.isfinite(), 0).sum()
assert all(map(torch.equal, torch.autograd.grad(mixed, (q, k, v)), wanted))

# No keys at all, and no queries.
for rows, rows_k in ((6, 0), (0, 6), (0, 0)):
    for dtype in (torch.float32, torch.bfloat16):
        tensors = [normal(rows, 4, 16, dtype=dtype)]
        tensors += [normal(rows_k, 4, 16, dtype=dtype) for _ in range(2)]
        sequences = offsets([rows]), offsets([rows_k])
        out, lse = varlen_attn(*tensors, *sequences, rows, rows_k, return_aux=LSE)
        assert out.shape == (rows, 4, 16) and lse.shape == (4, rows)
        assert not out.any() and torch.isneginf(lse).all()
        for gradient, x in zip(torch.autograd.grad(out, tensors, torch.ones_like(out)), tensors):
            assert gradient.shape == x.shape and not gradient.any()
        with torch.no_grad():
            buffer = torch.ones_like(out)
            varlen_attn_out(buffer, *tensors, *sequences, rows, rows_k)
            assert not buffer.any()

# Gradients of any layout, with the bits of dense ones.
for dtype in (torch.float32, torch.bfloat16):
    tensors = [normal(13, 4, 16, dtype=dtype) for _ in range(3)]
    out = varlen_attn(*tensors, cu, cu, 8, 8)
    dense = torch.randn(13, 4, 1).to(dtype).expand(13, 4, 16)
    shifted = torch.empty(13 * 4 * 16 + 1, dtype=dtype)[1:].view(13, 4, 16).copy_(dense)
    assert shifted.data_ptr() % 16 and shifted.is_contiguous()
    layouts = (
        dense.contiguous(), dense, shifted, torch.empty(13, 4, 40, dtype=dtype)[..., :16].copy_(dense),
        torch.empty(4, 13, 16, dtype=dtype).transpose(0, 1).copy_(dense),
        torch.empty(13, 4, 32, dtype=dtype)[..., ::2].copy_(dense),
    )  # fmt: skip
    gradients = [torch.autograd.grad(out, tensors, x, retain_graph=True) for x in layouts]
    assert all(all(map(torch.equal, more, gradients[0])) for more in gradients[1:])

# cu_seq and seqused_k with gaps, or at an address that no vector has.
tensors = [torch.randn(13, 4, 16) for _ in range(3)]
used = torch.tensor([4, 0, 7], dtype=torch.int32)
wanted = [varlen_attn(*tensors, cu, cu, 8, 8, seqused_k=x) for x in (None, used)]
for layout in (
    lambda x: torch.stack([x, x + 99], 1)[:, 0],
    lambda x: torch.cat([x[:1] - 1, x])[1:],
    lambda x: x.flip(0).flip(0),
):
    indices = layout(cu)
    assert torch.equal(varlen_attn(*tensors, indices, indices, 8, 8), wanted[0])
    result = varlen_attn(*tensors, indices, indices, 8, 8, seqused_k=layout(used))
    assert torch.equal(result, wanted[1])

# Head dims of MLA and the largest; Dv that is not D.
for dim, value_dim, dtype in ((192, 128, torch.bfloat16), (128, 256, torch.bfloat16), (256, 256, torch.float32)):
    tensors = [normal(40, 4, dim, dtype=dtype), normal(40, 2, dim, dtype=dtype)]
    tensors.append(normal(40, 2, value_dim, dtype=dtype))
    sequences = offsets([30, 10])
    options = {"window_size": (-1, 0), "enable_gqa": True}
    out, lse = varlen_attn(*tensors, sequences, sequences, 30, 30, return_aux=LSE, **options)
    reference = attention(*tensors, sequences.tolist(), sequences.tolist(), (-1, 0))
    what = f"{dim}/{value_dim} {dtype}"
    assert_close(out, reference[0], dtype, what)
    assert_close(lse, reference[1], dtype, what)
    dout = torch.randn_like(out)
    expected = torch.autograd.grad(reference[0], tensors, dout.double())
    for a, b in zip(torch.autograd.grad(out, tensors, dout), expected):
        assert_close(a, b.double(), dtype, what)
    with torch.no_grad():
        buffer = torch.empty_like(out)
        varlen_attn_out(buffer, *tensors, sequences, sequences, 30, 30, **options)
        assert torch.equal(buffer, out)

# The three operators under opcheck. The backward one is not differentiated again.
ops = torch.ops.torch_attn
plain = [x.detach() for x in (q, k, v)]
for tensors, index, mask in (
    ((q, k, v), cu, (False, None, None)),
    ([torch.randn(4, 13, 16).transpose(0, 1) for _ in range(3)], cu.long(), (True, 0.3, [-1, 0])),
):
    torch.library.opcheck(ops._varlen_attn.default, (*tensors, index, index, 8, 8, *mask))
    tensors = [x.detach() for x in tensors]
    out, lse, state = ops._varlen_attn(*tensors, index, index, 8, 8, *mask)
    torch.library.opcheck(
        ops._varlen_attn_out.default,
        (torch.empty_like(out), *tensors, index, index, 8, 8, *mask),
    )
    causal, *others = mask
    torch.library.opcheck(
        ops._varlen_attn_backward.default,
        (torch.randn_like(out), *tensors, out, lse, index, index, 8, 8, causal, state, *others),
    )

# From torch 2.15 on sdpa_kernel chooses a backend, which operators are told.
if any(argument.name == "backend" for argument in ops._varlen_attn.default._schema.arguments):
    torch.library.opcheck(
        ops._varlen_attn.default, (*plain, cu, cu, 8, 8), {"backend": SDPBackend.FLASH_ATTENTION.value}
    )
    with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
        assert torch.equal(varlen_attn(*plain, cu, cu, 8, 8), ops._varlen_attn(*plain, cu, cu, 8, 8)[0])
    with sdpa_kernel(SDPBackend.MATH):
        fails(RuntimeError, "No viable backend", lambda: varlen_attn(*plain, cu, cu, 8, 8))


# Compiled by inductor, whole and with dynamic shapes: results, gradients and strides of
# eager calls. It may fuse what is around them, which moves a last bit.
def block(x, cu, out):
    q, k, v = x.split([4, 2, 2], 1)
    longest = x.size(0)
    result, lse = varlen_attn(
        q, k, v, cu, cu, longest, longest, window_size=(7, 0), enable_gqa=True, return_aux=LSE
    )
    varlen_attn_out(
        out, q.detach(), k.detach(), v.detach(), cu, cu, longest, longest, enable_gqa=True
    )
    return result * 2, lse


backend = "aot_eager" if IS_FAKE else "inductor"
compiled = torch.compile(block, fullgraph=True, dynamic=True, backend=backend)
for lengths in ([5, 0, 8], [30, 3, 3]):
    rows, cu = sum(lengths), offsets(lengths)
    x = normal(rows, 8, 16)
    results = []
    for function in (block, compiled):
        buffer = torch.zeros(rows, 4, 16)
        out, lse = function(x, cu, buffer)
        assert not lse.requires_grad
        (dx,) = torch.autograd.grad(out.square().sum(), x)
        results.append((out.detach(), lse, buffer, dx))
    for a, b in zip(*results):
        assert a.stride() == b.stride()
        assert_close(b, a.double(), torch.float32, f"{lengths}")

# A query with its heads first keeps its strides, in fake kernels too.
first = torch.randn(4, 36, 16).transpose(0, 1)
for backend in ("eager", "aot_eager"):
    function = torch.compile(varlen_attn, backend=backend, fullgraph=True)
    assert function(first, first, first, cu, cu, 36, 36).stride() == first.stride()

# The handle takes back what it changed.
restore_flash_attention_impl()
if not ON_CUDA:
    fails(NotImplementedError, "'CPU' backend", lambda: varlen_attn(*plain, cu, cu, 8, 8))
