# RUN: %python %s
"""Tensors without data: what fake kernels return, and what they refuse, is what the kernels of
a device do, in the same words. No tensor on another device than the others is overlooked."""

import os

import torch
from packed import fails, offsets
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn.attention import activate_flash_attention_impl, restore_flash_attention_impl
from torch.nn.attention import varlen as upstream

import varlen.torch
from varlen import scores

device = os.environ.get("VARLEN_TEST_DEVICE", "cpu")
ops = torch.ops.varlen
ALIBI = scores.alibi().written("f32")


def tensors(**changes):
    """Operands of a call by name, with some changed by a function or left out."""
    given = {
        "q": torch.randn(13, 4, 16), "k": torch.randn(14, 2, 16), "v": torch.randn(14, 2, 8),
        "cu_seqlens_q": offsets([4, 9]), "cu_seqlens_k": offsets([6, 8]),
        "seqused_q": offsets([3])[-1:].expand(2), "seqused_k": offsets([5])[-1:].expand(2),
        "q_offset": offsets([0])[-1:].expand(2), "sink": torch.zeros(4),
        "captures": [torch.ones(4)], "score": ALIBI,
    }  # fmt: skip
    for name, change in changes.items():
        given[name] = change(given[name]) if callable(change) else change
    return given


def move(given, to):
    return torch.utils._pytree.tree_map_only(torch.Tensor, lambda x: x.to(to), given)


def same(given, words):
    """The same message from the kernel, from the fake one on the meta device, and from that
    in a mode of fake tensors, and nothing else."""
    on_device = move(given, device)
    message = fails(ValueError, words, lambda: ops.attn(**on_device))
    on_meta = fails(ValueError, words, lambda: ops.attn(**move(given, "meta")))
    assert on_meta == message, (on_meta, message)
    with FakeTensorMode() as mode:
        fakes = torch.utils._pytree.tree_map_only(torch.Tensor, mode.from_tensor, on_device)
        fake = fails(ValueError, words, lambda: ops.attn(**fakes))
    assert fake == message, (fake, message)
    out = torch.empty(13, 4, 8)
    for to in (device, "meta"):
        fails(ValueError, words, lambda: ops.attn_out(out.to(to), **move(given, to)))
    lse = torch.zeros(4, 13)
    for to in (device, "meta"):
        more = move([out, None, *(given[x] for x in "qkv"), out, lse], to)
        others = {name: x for name, x in given.items() if name not in ("q", "k", "v")}
        fails(ValueError, words, lambda: ops.attn_backward(*more, **move(others, to)))


for changes, words in (
    ({"q": lambda x: x[None]}, "expected q, k and v of rank 3 (rows, heads, head_dim), got"),
    ({"q": torch.Tensor.int}, "expected q, k and v of torch.float16, torch.bfloat16, torch.f"),
    ({"cu_seqlens_q": torch.Tensor.float}, "expected cu_seqlens of torch.int32 or torch.int64"),
    ({"k": torch.Tensor.double}, "k: expected a tensor of torch.float32 and rank 3, got one of"),
    ({"seqused_q": torch.Tensor.long}, "seqused_q: expected a tensor of torch.int32 and rank 1"),
    ({"cu_seqlens_k": torch.Tensor.long}, "cu_seqlens_k: expected a tensor of torch.int32"),
    ({"q_offset": lambda x: x[None]}, "q_offset: expected a tensor of torch.int32 and rank 1"),
    ({"sink": torch.Tensor.half}, "sink: expected a tensor of torch.float32 and rank 1, got"),
    ({"captures": lambda x: [x[0].double()]}, "slopes: expected a tensor of torch.float32"),
    ({"captures": []}, "captures: expected 1 tensors (slopes), got 0"),
    ({"score": ""}, "captures: expected 0 tensors (), got 1"),
    ({"k": lambda x: x[..., :8]}, "k: expected extent 2 to be 16, got 8"),
    ({"v": lambda x: x[:, :1]}, "v: expected extent 1 to be 2, got 1"),
    ({"v": lambda x: x[:9]}, "v has 9 rows: expected 14, as many as k"),
    ({"cu_seqlens_k": lambda x: x[:2]}, "cu_seqlens_q has 3 entries and cu_seqlens_k 2: expec"),
    ({"seqused_k": lambda x: x[:1]}, "seqused_k has 1 entries: expected 2, one for each seque"),
    ({"sink": lambda x: x[:3]}, "sink: expected extent 0 to be 4, got 3"),
    ({"captures": lambda x: [x[0][:3]]}, "slopes: expected extent 0 to be 4, got 3"),
    (
        {"k": lambda x: x[:, [0, 1, 1]], "v": lambda x: x[:, [0, 1, 1]]},
        "expected query heads to be a multiple of kv heads, got 4 and 3",
    ),
    ({"q": lambda x: x[:, :, :0], "k": lambda x: x[:, :, :0]}, "expected positive head_dim of q"),
    ({"k": lambda x: x[:, :0], "v": lambda x: x[:, :0]}, "expected positive heads of k, got 0"),
    ({"cu_seqlens_q": lambda x: x[:0], "cu_seqlens_k": lambda x: x[:0], "seqused_q": None,
      "seqused_k": None, "q_offset": None}, "expected positive entries of cu_seqlens, got 0"),
    ({"left": -2}, "window: expected two integers (left, right), each from -1, which is open, to 2^63 - 1, got (-2"),
    ({"chunk": 0}, "chunk: expected an integer from 1 to 268435456, got 0"),
    ({"chunk": 2**28 + 1}, "chunk: expected an integer from 1 to 268435456, got 268435457"),
    ({"seqused_q": lambda x: x[:0]}, "seqused_q has 0 entries: expected 2, one for each sequence"),
    ({"chunk": 3, "left": 2}, "expected window or chunk, got both: (2, -1), 3"),
    ({"scale": -1.0}, "scale: expected a positive, finite number, got -1.0"),
):  # fmt: skip
    same(tensors(**changes), words)

# Any operand on the meta device, and any on the CPU beside those on it.
for name in tensors():
    if name in ("score", "q"):
        continue
    for one, others in ((device, "meta"), ("meta", device)):
        given = move(tensors(), others)
        given[name] = move(tensors()[name], one)
        which = "slopes" if name == "captures" else name
        place = torch.zeros(0, device=others).device
        fails(ValueError, f"{which}: expected a tensor on {place}", lambda: ops.attn(**given))

# Results have the shapes, dtypes and strides of those with data.
given = tensors(q=lambda x: x.transpose(0, 1).contiguous().transpose(0, 1))
real, meta = ops.attn(**move(given, device)), ops.attn(**move(given, "meta"))
first = [given.pop(name) for name in "qkv"]
arguments = torch.ones_like(real[0]), real[1], *move(first, device), *real
real += tuple(torch.utils._pytree.tree_leaves(ops.attn_backward(*arguments, **move(given, device))))
arguments = move(arguments, "meta")
meta += tuple(torch.utils._pytree.tree_leaves(ops.attn_backward(*arguments, **move(given, "meta"))))
for a, b in zip(real, meta, strict=True):
    assert (a.shape, a.dtype, a.stride()) == (b.shape, b.dtype, b.stride()) and b.is_meta

# So by PyTorch's own operators on the provider.
varlen.torch.install()
activate_flash_attention_impl("VARLEN")
q, cu = torch.randn(13, 4, 16, device=device), offsets([4, 9]).to(device)
for i in range(1, 5):
    given = [q, q, q, cu, cu]
    given[i] = given[i].to("meta")
    for call in (
        lambda: upstream.varlen_attn(*given, 9, 9),
        lambda: upstream.varlen_attn_out(torch.empty_like(q), *given, 9, 9),
    ):
        fails(ValueError, f"expected a tensor on {device}", call)
fails(
    ValueError, f"out: expected a tensor on {device}",
    lambda: upstream.varlen_attn_out(q.to("meta"), q, q, q, cu, cu, 9, 9),
)  # fmt: skip
restore_flash_attention_impl()
