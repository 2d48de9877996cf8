# REQUIRES: torch
# RUN: %python %s

"""varlen.attn and varlen.compile take tensors of torch and return such tensors."""

import torch
import varlen
from checks import raises

generator = torch.Generator().manual_seed(0)
cu = torch.tensor([0, 12, 12, 30], dtype=torch.int32)
for dtype, allowed in (
    (torch.float64, 1e-12), (torch.float32, 1e-5), (torch.float16, 2e-3), (torch.bfloat16, 2e-2),
):  # fmt: skip
    qkv = torch.randn(30, 8, 16, generator=generator, dtype=torch.float64).to(dtype)
    q, k, v = qkv[:, :4], qkv[:, 4:6], qkv[:, 6:]
    out, lse = varlen.attn(q, k, v, cu, is_causal=True, return_lse=True)
    assert out.dtype == dtype and out.shape == (30, 4, 16) and lse.shape == (4, 30)
    assert lse.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)
    dout = torch.randn(30, 4, 16, generator=generator, dtype=torch.float64).to(dtype)
    got = varlen.attn_grad(dout, q, k, v, out, lse, cu, is_causal=True)
    # Each sequence on its own, in double.
    leaves = [x.double().requires_grad_() for x in (q, k, v)]
    parts = [
        torch.nn.functional.scaled_dot_product_attention(
            *(x[a:b].transpose(0, 1) for x in leaves), is_causal=True, enable_gqa=True
        ).transpose(0, 1)
        for a, b in ((0, 12), (12, 30))
    ]
    wanted = torch.cat(parts)
    gradients = torch.autograd.grad(wanted, leaves, dout.double())
    for mine, right in zip((out, *got), (wanted, *gradients)):
        assert mine.dtype == dtype
        assert (mine - right).abs().max() <= allowed * right.abs().max(), dtype

q, k, v = (x.float().contiguous() for x in (q, k, v))
given = torch.full((30, 6, 16), 7.0)
assert varlen.attn(q, k, v, cu, out=given[:, 1:5]).data_ptr() == given[:, 1:5].data_ptr()
assert (given[:, 0] == 7).all() and (given[:, 5] == 7).all()


# What derives from a tensor is one.
class Own(torch.Tensor):
    pass


assert torch.equal(varlen.attn(q.as_subclass(Own), k, v, cu), varlen.attn(q, k, v, cu))
raises(ValueError, "tensors that need no gradient", varlen.attn, q.as_subclass(Own).requires_grad_(), k, v, cu)
# Arrays of several libraries: results are of q's.
assert torch.equal(given[:, 1:5], varlen.attn(q, k.numpy(), v.numpy(), cu.numpy()))

leaf = q.clone().requires_grad_()
raises(ValueError, "q: expected torch tensors that need no gradient", varlen.attn, leaf, k[..., :8], v, cu)
with torch.no_grad():
    assert torch.equal(varlen.attn(leaf, k, v, cu), varlen.attn(q, k, v, cu))
raises(ValueError, "expected torch tensors that need no gradient", varlen.attn, leaf, k, v, cu)
raises(ValueError, "expected a tensor in memory of the CPU, got one on meta", varlen.attn, q.to("meta"), k, v, cu)
raises(TypeError, "q: expected elements of f16, bf16, f32, f64", varlen.attn, q.int(), k, v, cu)
# Tensors that are no memory with strides, as any operand.
lse = varlen.attn(q, k, v, cu, return_lse=True)[1]
nested = "got a nested one, of which values() and offsets() are the packed rows and cu_seqlens"
for layout, kind in (
    (torch.nested.nested_tensor([q[:12], q[12:]], layout=torch.jagged), nested),
    (torch.nested.nested_tensor([q[:12], q[12:]]), nested),
    (q.to_sparse(), "got one of layout torch.sparse_coo"), (q.to_mkldnn(), "got one of layout torch._mkldnn"),
    (torch.quantize_per_tensor(q, 0.1, 0, torch.qint8), "got a quantized one"),
):  # fmt: skip
    words = f"expected a dense tensor, {kind}"
    raises(ValueError, f"q: {words}", varlen.attn, layout, k, v, cu)
    raises(ValueError, f"v: {words}", varlen.attn, q, k, layout, cu)
    raises(ValueError, f"out: {words}", varlen.attn, q, k, v, cu, out=layout)
    raises(ValueError, f"sink: {words}", varlen.attn_grad, q, q, k, v, q, lse, cu, sink=layout)
    raises(ValueError, f"slopes: {words}", varlen.attn_grad, q, q, k, v, q, lse, cu,
           score=varlen.scores.alibi(), captures=[layout])  # fmt: skip
for name in ("cu_seqlens_q", "cu_seqlens_k", "seqused_k"):
    lists = {"cu_seqlens_q": cu, name: cu.to_sparse()}
    raises(ValueError, f"{name}: expected a dense tensor", varlen.attn, q, k, v, **lists)
# Tensors whose numbers are those of their memory with the other sign.
wanted = varlen.attn(q, k, v, cu)
for i in range(4):
    given = [q, k, v, cu]
    given[i] = torch._neg_view(-given[i])
    assert torch.equal(varlen.attn(*given), wanted), i
raises(ValueError, "out: expected an array that can be written, got a view with the negative bit",
       varlen.attn, q, k, v, cu, out=torch._neg_view(torch.zeros(30, 4, 16)))  # fmt: skip
# Derivatives that results would not have.
with torch.autograd.forward_ad.dual_level():
    assert torch.equal(varlen.attn(q, k, v, cu), wanted)
    dual = torch.autograd.forward_ad.make_dual(v, v)
    raises(ValueError, "v: expected torch tensors without a tangent, got a dual tensor",
           varlen.attn, q, k, dual, cu)  # fmt: skip
raises(ValueError, "q: expected a dense tensor, got one without memory, such as those of torch.vmap",
       torch.vmap(lambda q: varlen.attn(q, k, v, cu)), q[None])  # fmt: skip

program = varlen.compile("func.func @f(%x: tensor<?xbf16>) -> tensor<?xbf16> { return %x : tensor<?xbf16> }")
x = torch.ones(3, dtype=torch.bfloat16)
assert torch.equal(program(x), x) and torch.equal(program(torch._neg_view(-x)), x)
