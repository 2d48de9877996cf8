# RUN: %python %s
"""The provider with what torch 2.11 has of torch.nn.attention.varlen, which is less than later
versions: results, gradients, windows, lse, and gradients of what was recorded before the
provider was removed."""

import torch
from device import NAME, of_device
from packed import assert_close, attention, normal, offsets
from torch.nn.attention import activate_flash_attention_impl, restore_flash_attention_impl
from torch.nn.attention import varlen as upstream

import varlen.torch

torch.manual_seed(0)
cu = offsets([4, 0, 9])
varlen.torch.install(devices=NAME)


def check(dtype):
    q, k, v = (normal(13, 4, 16, dtype=dtype) for _ in range(3))
    activate_flash_attention_impl("VARLEN")
    for window in ((-1, -1), (-1, 0), (2, 0)):
        out, lse = upstream.varlen_attn(
            q, k, v, cu, cu, 9, 9, window_size=window, scale=0.2,
            return_aux=upstream.AuxRequest(lse=True),
        )  # fmt: skip
        assert not lse.requires_grad
        wanted = attention(q, k, v, cu.tolist(), cu.tolist(), window, 0.2)
        assert_close(out, wanted[0], dtype)
        assert_close(lse, wanted[1], dtype)
        dout = torch.randn_like(out)
        golden = torch.autograd.grad(wanted[0], (q, k, v), dout.double())
        got = torch.autograd.grad(out, (q, k, v), dout, retain_graph=True)
        for a, b in zip(got, golden):
            assert_close(a, b.double(), dtype)
        # Without the provider, and with it again.
        restore_flash_attention_impl()
        for _ in range(2):
            after = torch.autograd.grad(out, (q, k, v), dout, retain_graph=True)
            assert all(map(torch.equal, got, after))
            activate_flash_attention_impl("VARLEN")
    restore_flash_attention_impl()


for dtype in of_device(torch.float64, torch.bfloat16):
    check(dtype)
# A version that has no operator but those for attention and its gradients.
if hasattr(upstream, "_varlen_attn_out"):
    del upstream._varlen_attn_out
    check(torch.float32)
