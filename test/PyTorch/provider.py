# RUN: %python %s
"""torch.nn.attention.varlen on Varlen by PyTorch's registry of providers."""

import math

import torch
from device import ON_CUDA, of_device, skip
from packed import assert_close, attention, fails, normal, offsets
from torch.nn.attention import (
    activate_flash_attention_impl,
    current_flash_attention_impl,
    list_flash_attention_impls,
    restore_flash_attention_impl,
)
from torch.nn.attention import varlen as upstream
from torch.nn.attention.varlen import AuxRequest, varlen_attn

import varlen.torch

if not hasattr(upstream, "varlen_attn_out"):
    skip("this version of PyTorch has no varlen_attn_out; see provider-versions.py")
varlen_attn_out = upstream.varlen_attn_out

LSE = AuxRequest(lse=True)
torch.manual_seed(0)
lengths = [4, 0, 9]
cu = offsets(lengths)
q, k, v = (normal(13, 4, 16) for _ in range(3))


def call(**options):
    return varlen_attn(q, k, v, cu, cu, 9, 9, **options)


def refused():
    # FlashAttention, PyTorch's own provider for GPUs, has no kernel for float32.
    if ON_CUDA:
        fails(RuntimeError, "", call)
    else:
        fails(NotImplementedError, "'CPU' backend", call)


# Nothing happens before it is activated, or after it was removed.
refused()
assert "VARLEN" not in list_flash_attention_impls()
varlen.torch.install()
varlen.torch.install()
assert list_flash_attention_impls().count("VARLEN") == 1
refused()
activate_flash_attention_impl("VARLEN")
assert current_flash_attention_impl() == "VARLEN"
before = call()
restore_flash_attention_impl()
refused()
# What was computed meanwhile keeps its gradients.
got = torch.autograd.grad(before.sum(), (q, k, v))
for _ in range(2):
    activate_flash_attention_impl("VARLEN")
assert torch.equal(call(), before)
wanted = torch.autograd.grad(call().sum(), (q, k, v))
assert all(map(torch.equal, got, wanted))



def has_kernels(key):
    names = {"_varlen_attn", "_varlen_attn_out", "_varlen_attn_backward"}
    found = {
        name
        for name in names & set(dir(upstream))
        if torch._C._dispatch_has_kernel_for_dispatch_key(f"torch_attn::{name}", key)
    }
    assert found in (set(), names & set(dir(upstream))), (key, found)
    return bool(found)


# Other devices keep the kernels that they had, and those that were not chosen do.
assert has_kernels("CompositeExplicitAutograd") and not has_kernels("XPU")
for chosen in ("cpu", ("cuda",), ("cpu", "cuda"), None):
    varlen.torch.install(devices=chosen)
    activate_flash_attention_impl("VARLEN")
    wanted_devices = chosen or ("cpu", *(["cuda"] if torch.cuda._is_compiled() else []))
    for device in ("cpu", "cuda"):
        assert has_kernels(device.upper()) == (device in wanted_devices), (chosen, device)
fails(ValueError, "devices: expected some of cpu, cuda, got 'xpu'", lambda: varlen.torch.install("xpu"))
fails(ValueError, "devices: expected some of cpu, cuda, got []", lambda: varlen.torch.install([]))
for wrong in (["cpu", 5], [[]]):
    fails(ValueError, "devices: expected some of cpu, cuda, got [", lambda: varlen.torch.install(wrong))
for wrong in (5, torch.device("cpu")):
    fails(TypeError, "devices: expected some of cpu, cuda, got", lambda: varlen.torch.install(wrong))

# Results, gradients and windows.
into = getattr(torch.ops.aten, "_flash_attention_forward_no_dropout_inplace", None)
PACKED = *(x.detach() for x in (q, k, v)), cu, cu, 9, 9
for window in ((-1, 0), (1, 3), (0, -1)):
    out, lse = call(window_size=window, scale=0.2, return_aux=LSE)
    reference = attention(q, k, v, cu.tolist(), cu.tolist(), window, 0.2)
    assert_close(out, reference[0], torch.float32)
    assert_close(lse, reference[1], torch.float32)
    dout = torch.randn_like(out)
    expected = torch.autograd.grad(reference[0], (q, k, v), dout.double())
    for a, b in zip(torch.autograd.grad(out, (q, k, v), dout), expected):
        assert_close(a, b.double(), torch.float32)
    with torch.no_grad():
        buffer = torch.full((13, 8, 16), math.nan)[:, ::2]
        result = varlen_attn_out(buffer, q, k, v, cu, cu, 9, 9, window_size=window, scale=0.2)
        assert result is buffer and torch.equal(result, out)
        # The operator of FlashAttention that a program without autograd may call by its name.
        if into:
            buffer = torch.full_like(out, math.nan)
            sides = dict(zip(("window_size_left", "window_size_right"), window))
            into_lse = into(buffer, *PACKED, 0.0, False, False, scale=0.2, **sides)
            assert torch.equal(buffer, out) and torch.equal(into_lse, lse)

if into:
    buffer = torch.empty(13, 4, 16)
    refusals = [
        ("no dropout_p", (0.1, False, False), {}), ("no return_debug_mask", (0.0, False, True), {}),
        ("no alibi_slopes", (0.0, False, False), {"alibi_slopes": torch.ones(4)}),
    ]  # fmt: skip
    for message, flags, options in refusals:
        fails(NotImplementedError, f"VARLEN has {message}", lambda: into(buffer, *PACKED, *flags, **options))
    fails(
        NotImplementedError, "expected sequences packed by cum_seq_q",
        lambda: into(buffer, *PACKED[:3], None, None, 9, 9, 0.0, False, False),
    )  # fmt: skip

# A third derivative is an error, also where inputs are named.
(dq,) = torch.autograd.grad(call().square().sum(), q, create_graph=True)
(ddq,) = torch.autograd.grad(dq.sum(), q, create_graph=True)
for third in (
    lambda: torch.autograd.grad(ddq.sum(), q, retain_graph=True),
    lambda: ddq.sum().backward(inputs=[q], retain_graph=True),
    lambda: ddq.sum().backward(retain_graph=True),
):
    fails(RuntimeError, "varlen::attn_jvp_backward: third derivatives are not offered", third)

# Grouped heads, Dv that is not D, 16-bit types and float64, sequences with no keys.
for dtype in of_device(torch.float64, torch.float16, torch.bfloat16):
    tensors = [
        normal(13, 6, 24, dtype=dtype),
        normal(7, 2, 24, dtype=dtype),
        normal(7, 2, 16, dtype=dtype),
    ]
    cu_k = offsets([7, 0, 0])
    out, lse = varlen_attn(*tensors, cu, cu_k, 9, 7, enable_gqa=True, return_aux=LSE)
    wanted = attention(*tensors, cu.tolist(), cu_k.tolist())
    assert_close(out, wanted[0], dtype)
    assert_close(lse, wanted[1], dtype)
    assert not out[4:].any() and torch.isneginf(lse[:, 4:]).all()
    dq, dk, dv = torch.autograd.grad(
        out, tensors, torch.ones((), dtype=dtype).expand(13, 6, 16)
    )
    assert not dq[4:].any() and dk.any() and dv.any()
    arguments = (*(x.detach() for x in tensors), cu, cu_k, 9, 7, False, None, [-1, -1], True)
    torch.library.opcheck(torch.ops.torch_attn._varlen_attn, arguments)

# q with its heads first gives out with its heads first.
first = torch.randn(4, 13, 16).transpose(0, 1)
assert varlen_attn(first, k, v, cu, cu, 9, 9).stride() == first.stride()

# Keys in slots that are not full, which may hold NaN. PyTorch differentiates none.
used = torch.tensor([3, 0, 1], dtype=torch.int32)
with torch.no_grad():
    slots = [torch.full((13, 4, 16), math.nan) for _ in range(2)]
    for slot, full in zip(slots, (k, v)):
        slot[:3], slot[4] = full[:3], full[4]
    out = varlen_attn(q, *slots, cu, cu, 9, 9, seqused_k=used)
    packed = [torch.cat([x[:3], x[4:5]]) for x in slots]
    assert torch.equal(out, varlen_attn(q, *packed, cu, offsets([3, 0, 1]), 9, 3))
fails(RuntimeError, "seqused_k is an inference-only parameter", lambda: call(seqused_k=used))

# What is wrong.
for function in (varlen_attn, lambda *a, **o: varlen_attn_out(torch.empty(13, 4, 16), *a, **o)):
    with torch.no_grad():
        fails(
            ValueError,
            "cu_seqlens_q[2] = 3",
            lambda f=function: f(q, k, v, offsets([4, -1, 10]), cu, 9, 9),
        )
        fails(
            ValueError,
            "got one of torch.float16",
            lambda f=function: f(q, k.half(), v, cu, cu, 9, 9),
        )
        fails(ValueError, "expected cu_seq_k", lambda f=function: f(q, k, v, cu, None, 9, 9))
fails(ValueError, "scale must be greater than 0", lambda: call(scale=0.0))
fails(ValueError, "window_size must have length 2, got 1", lambda: call(window_size=(1,)))

# One graph, with other lengths too.
compiled = torch.compile(varlen_attn, backend="aot_eager", fullgraph=True, dynamic=True)
for lengths in ([4, 0, 9], [20, 3]):
    inputs = [normal(sum(lengths), 4, n) for n in (16, 16, 24)]
    cu = offsets(lengths)
    results = []
    for function in (varlen_attn, compiled):
        out, lse = function(*inputs, cu, cu, max(lengths), max(lengths), return_aux=LSE)
        results.append((out, lse, *torch.autograd.grad(out.square().sum(), inputs)))
    assert all(map(torch.equal, *results))
