# RUN: %python %s
"""flash-attn's functions by their names: those of tensors with a batch dimension, of packed
projections and of padding, and what newer versions add, are varlen_attn."""

import inspect
import os

import torch
from packed import assert_close, attention, fails, offsets

from varlen import torch as ours
from varlen.torch import AuxRequest, flash_attn_varlen_func, varlen_attn

device = os.environ.get("VARLEN_TEST_DEVICE", "cpu")
torch.manual_seed(0)


def normal(*shape):
    return torch.randn(shape, device=device, requires_grad=True)


def same(results, wanted, leaves):
    """Bits of results and of their gradients."""
    assert torch.equal(results, wanted)
    dout = torch.randn_like(wanted)
    found, expected = (torch.autograd.grad(x, leaves, dout) for x in (results, wanted))
    assert all(map(torch.equal, found, expected))


# With a batch dimension, sequences of one length; positions count from their ends.
q, k, v = normal(3, 5, 4, 16), normal(3, 7, 2, 16), normal(3, 7, 2, 8)
options = {"softmax_scale": 0.3, "causal": True, "window_size": (3, -1)}
cu_q, cu_k = offsets([5] * 3).to(device), offsets([7] * 3).to(device)
out, lse, _ = ours.flash_attn_func(q, k, v, return_attn_probs=True, **options)
wanted, wanted_lse = varlen_attn(
    *(x.flatten(0, 1) for x in (q, k, v)), cu_q, cu_k, scale=0.3, window_size=(3, 0),
    enable_gqa=True, return_aux=AuxRequest(lse=True),
)  # fmt: skip
assert out.shape == (3, 5, 4, 8) and lse.shape == (3, 4, 5)
assert torch.equal(lse, wanted_lse.view(4, 3, 5).transpose(0, 1))
same(out, wanted.view(3, 5, 4, 8), (q, k, v))
# Its lse is the definition's.
reference = attention(
    *(x.detach().cpu().flatten(0, 1) for x in (q, k, v)), cu_q.tolist(), cu_k.tolist(), (3, 0), 0.3
)
assert_close(lse.cpu().transpose(0, 1).flatten(1), reference[1], torch.float32)

# Parameters are in flash-attn's order.
slopes = torch.rand(4, device=device)
positional = (0.0, 0.3, True, (3, 0), 2.0, slopes, True, False)
named = dict(
    zip(
        ("dropout_p", "softmax_scale", "causal", "window_size", "softcap", "alibi_slopes",
         "deterministic", "return_attn_probs"), positional, strict=True,
    )  # fmt: skip
)
dense = ours.flash_attn_func(q, k, v, *positional)
assert torch.equal(dense, ours.flash_attn_func(q, k, v, **named))
kv = normal(3, 7, 2, 2, 16)
same(
    ours.flash_attn_kvpacked_func(q, kv, *positional),
    ours.flash_attn_func(q, kv[:, :, 0], kv[:, :, 1], *positional), (q, kv),
)  # fmt: skip
qkv = normal(3, 5, 3, 4, 16)
same(
    ours.flash_attn_qkvpacked_func(qkv, *positional),
    ours.flash_attn_func(*qkv.unbind(2), *positional), (qkv,),
)  # fmt: skip
same(
    ours.flash_attn_varlen_kvpacked_func(
        q.flatten(0, 1), kv.flatten(0, 1), cu_q, cu_k, 5, 7, *positional
    ),
    ours.flash_attn_kvpacked_func(q, kv, *positional).flatten(0, 1), (q, kv),
)  # fmt: skip
same(
    ours.flash_attn_varlen_qkvpacked_func(qkv.flatten(0, 1), cu_q, 5, *positional),
    ours.flash_attn_qkvpacked_func(qkv, *positional).flatten(0, 1), (qkv,),
)  # fmt: skip
# transformers looks for parameters by their names.
for function in (flash_attn_varlen_func, ours.flash_attn_func):
    assert {"window_size", "softcap", "deterministic", "s_aux"} <= set(
        inspect.signature(function).parameters
    )

# What newer versions add.
rows = [x.flatten(0, 1).detach() for x in (q, k, v)]
used_q, used_k = (torch.tensor(x, dtype=torch.int32, device=device) for x in ([4, 0, 5], [7, 3, 1]))
sink = torch.randn(4, device=device)
given = {"seqused_q": used_q, "seqused_k": used_k}
wanted = varlen_attn(*rows, cu_q, cu_k, enable_gqa=True, sink=sink, chunk=3, **given)
for name in ("learnable_sink", "s_aux"):
    found = flash_attn_varlen_func(
        *rows, cu_q, cu_k, 5, 7, causal=True, attention_chunk=3, **given, **{name: sink}
    )
    assert torch.equal(found, wanted)
# A sink of 16 bits, and its gradient.
half = sink.bfloat16().requires_grad_()
flash_attn_varlen_func(*rows, cu_q, cu_k, 5, 7, s_aux=half).sum().backward()
assert half.grad.dtype == torch.bfloat16 and half.grad.any()
assert torch.equal(
    ours.flash_attn_func(q, k, v, causal=True, attention_chunk=3, s_aux=sink).flatten(0, 1),
    varlen_attn(*rows, cu_q, cu_k, enable_gqa=True, sink=sink, chunk=3),
)

# Padding, and what undoes it.
mask = torch.tensor([[0, 1, 1, 1, 1], [1, 1, 0, 0, 0], [1, 1, 1, 1, 1]], device=device)
hidden = normal(3, 5, 4, 16)
packed, indices, cu, longest, used = ours.unpad_input(hidden, mask)
assert packed.shape == (11, 4, 16) and longest == 5 and cu.dtype == torch.int32
assert cu.tolist() == [0, 4, 6, 11] and used.tolist() == [4, 2, 5]
assert torch.equal(packed, hidden[mask.bool()])
padded = ours.pad_input(packed, indices, 3, 5)
same(padded, hidden * mask[..., None, None], (hidden,))
assert torch.equal(ours.unpad_input(hidden, mask.bool())[0], packed)
# Rows that are kept and do not count.
unused = torch.tensor([[1, 0, 0, 0, 0], [0, 0, 1, 1, 0], [0] * 5], device=device)
packed, indices, cu, longest, used = ours.unpad_input(hidden, mask, unused)
assert cu.tolist() == [0, 5, 9, 14] and used.tolist() == [4, 2, 5] and longest == 5
assert ours.unpad_input(hidden[:0], mask[:0])[3] == 0
# Masks of other integers than 0 and 1, and rows that are in both masks, which count.
for same_mask, also in ((mask * 5, None), (-mask, None), (mask, mask), (mask * 3, mask * 2)):
    found = ours.unpad_input(hidden, same_mask, also)
    assert all(map(torch.equal, found[:3], ours.unpad_input(hidden, mask)[:3]))
    assert found[3] == 5 and found[4].tolist() == [4, 2, 5]

# What is wrong.
for kind, words, call in (
    (ValueError, "q: expected a tensor of rank 4 (batch, rows, heads, head_dim), got shape (5, 4",
     lambda: ours.flash_attn_func(q[0], k, v)),
    (ValueError, "k: expected a batch of 3, as q is, got 2",
     lambda: ours.flash_attn_func(q, k[:2], v)),
    (ValueError, "expected k and v of as many rows, got 7 and 6",
     lambda: ours.flash_attn_func(q, k, v[:, 1:])),
    (ValueError, "kv: expected 2 parts, of a shape (batch, rows, 2, heads, head_dim), got shape",
     lambda: ours.flash_attn_kvpacked_func(q, qkv)),
    (ValueError, "qkv: expected a tensor of rank 4 (rows, 3, heads, head_dim), got shape",
     lambda: ours.flash_attn_varlen_qkvpacked_func(qkv, cu_q)),
    (TypeError, "qkv: expected a torch.Tensor, got a list",
     lambda: ours.flash_attn_qkvpacked_func([q, q, q])),
    (NotImplementedError, "attention_chunk: Varlen offers chunks with causal=True and without a "
     "window, got causal=False and window_size=(-1, -1)",
     lambda: flash_attn_varlen_func(*rows, cu_q, cu_k, attention_chunk=3)),
    (NotImplementedError, "got causal=True and window_size=(4, 0)",
     lambda: flash_attn_varlen_func(
         *rows, cu_q, cu_k, attention_chunk=3, causal=True, window_size=(4, 0))),
    (ValueError, "expected learnable_sink or s_aux, two names of one thing, got both",
     lambda: flash_attn_varlen_func(*rows, cu_q, cu_k, learnable_sink=sink, s_aux=sink)),
    (ValueError, "sink: expected a tensor of torch.float16, torch.bfloat16, torch.float32 or torch.float64, got one of torch.complex64",
     lambda: flash_attn_varlen_func(*rows, cu_q, cu_k, learnable_sink=sink.to(torch.complex64))),
    (TypeError, "window_size: expected two integers (left, right), got b'ab'",
     lambda: flash_attn_varlen_func(*rows, cu_q, cu_k, window_size=b"ab")),
    (ValueError, "attention_mask: expected the first two extents of hidden_states, (3, 5), got s",
     lambda: ours.unpad_input(hidden, mask[:, :4])),
    (ValueError, "attention_mask: expected a tensor of bool or integers, got one of torch.float32",
     lambda: ours.unpad_input(hidden, mask.float())),
    (ValueError, "unused_mask: expected the first two extents of hidden_states, (3, 5), got shape "
     "(3, 1)", lambda: ours.unpad_input(hidden, mask, mask[:, :1])),
    (TypeError, "unused_mask: expected a torch.Tensor, got a list",
     lambda: ours.unpad_input(hidden, mask, [0])),
    (TypeError, "seqused_k: expected a torch.Tensor, got a list",
     lambda: flash_attn_varlen_func(*rows, cu_q, cu_k, seqused_k=[1, 2, 3])),
    # Slopes of each sequence are gathered before the operator is called.
    (ValueError, "cu_seqlens_q: expected integers, as many as there are sequences and one, got "
     "torch.complex64 of shape (4,)",
     lambda: flash_attn_varlen_func(
         *rows, cu_q.to(torch.complex64), cu_k, alibi_slopes=torch.ones(3, 4, device=device))),
    (ValueError, "cu_seqlens_q: expected a dense tensor, got one of layout torch.sparse_coo",
     lambda: flash_attn_varlen_func(
         *rows, cu_q.to_sparse(), cu_k, alibi_slopes=torch.ones(3, 4, device=device))),
    (ValueError, "as q is, got one on meta",
     lambda: flash_attn_varlen_func(
         *rows, cu_q.to("meta"), cu_k, alibi_slopes=torch.ones(3, 4, device=device))),
):  # fmt: skip
    fails(kind, words, call)
