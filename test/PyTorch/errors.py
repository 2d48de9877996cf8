# RUN: %python %s
"""What varlen.torch refuses, and how it says so: in the words of torch.nn.attention.varlen
where there are some."""

import numpy as np
import torch
from device import IS_FAKE, ON_CUDA
from packed import fails, offsets

from varlen import scores
from varlen.torch import flash_attn_varlen_func, install, varlen_attn, varlen_attn_out

cu = offsets([4, 9])
q, k, v = (torch.zeros(13, 4, 16) for _ in range(3))


def refused(kind, words, *arguments, **options):
    arguments = (*arguments, *(q, k, v, cu, cu)[len(arguments) :])
    fails(kind, words, lambda: varlen_attn(*arguments, **options))
    fails(kind, words, lambda: varlen_attn_out(torch.empty(13, 4, 16), *arguments, **options))


fails(TypeError, "devices: expected some of cpu, cuda, got 5", lambda: install(devices=5))
# Heads, windows and scales.
refused(
    ValueError, "Expect query and key/value to have the same number of heads but got Hq=4 and "
    "Hkv=2. Try setting enable_gqa=True for GQA.", q, k[:, :2], v[:, :2],
)  # fmt: skip
refused(
    ValueError, "Expect number of query heads to be a multiple of kv heads for GQA but got Hq=4 "
    "and Hkv=3.", q, k[:, :3], v[:, :3], enable_gqa=True,
)  # fmt: skip
refused(ValueError, "window_size must have length 2, got 3", window_size=(1, 2, 3))
for scale in (0.0, -1.0, float("nan")):
    refused(ValueError, f"scale must be greater than 0, got {scale}", scale=scale)
refused(ValueError, "expected cu_seq_k", q, k, v, cu, None)

# What is no tensor, number or score, before the dispatcher prints all of it.
array = np.zeros((13, 4, 16), np.float32)
for name, arguments in (
    ("query", (array,)), ("key", (q, array)), ("value", (q, k, array)),
    ("cu_seq_q", (q, k, v, array)),
):  # fmt: skip
    refused(TypeError, f"{name}: expected a torch.Tensor, got a numpy.ndarray; t", *arguments)
refused(TypeError, "cu_seq_k: expected a torch.Tensor, got a list", q, k, v, cu, [0, 13])
for name in ("seqused_q", "seqused_k", "q_offset", "sink"):
    refused(TypeError, f"{name}: expected a torch.Tensor, got a tuple", **{name: (1, 2)})
fails(
    TypeError, "out: expected a torch.Tensor, got a numpy.ndarray",
    lambda: varlen_attn_out(array, q, k, v, cu, cu),
)  # fmt: skip
refused(TypeError, "window_size: expected two integers (left, right), got 5", window_size=5)
refused(TypeError, "window_size: expected integers, got 1.5", window_size=(1.5, 0))
refused(TypeError, "chunk: expected integers, got 2.5", chunk=2.5)
for chunk in (0, 2**28 + 1, 2**63):
    refused(ValueError, f"chunk: expected an integer from 1 to 268435456, got {chunk}", chunk=chunk)
refused(TypeError, "chunk: expected integers, got True", chunk=True)
refused(TypeError, "window_size: expected integers, got True", window_size=(True, 0))
refused(TypeError, "is_causal: expected a bool, got 'no'", is_causal="no")
refused(TypeError, "is_causal: expected a bool, got tensor(", is_causal=torch.ones((), dtype=torch.bool, device="meta"))
refused(TypeError, "enable_gqa: expected a bool, got 'no'", enable_gqa="no")
refused(TypeError, "return_aux: expected None or an AuxRequest, got True", return_aux=True)
refused(
    ValueError,
    "expected is_causal or a window_size that looks ahead, got both: window_size=(3, 3)",
    is_causal=True, window_size=(3, 3),
)  # fmt: skip
refused(ValueError, "expected one of is_causal, window_size and chunk, got several", is_causal=True, chunk=3)
refused(ValueError, "expected one of is_causal, window_size and chunk, got several", window_size=(2, 0), chunk=3)
refused(TypeError, "scale: expected a Python number, which code is made", scale=torch.ones(()))
refused(TypeError, "scale: expected a Python number, which code is made for, got str", scale="1")
for scale in (float("inf"), 10**400):
    refused(ValueError, "scale: expected a positive, finite number, got", scale=scale)
refused(TypeError, "scale: expected a Python number, which code is made for, got bool", scale=True)
refused(TypeError, "score: expected None or a varlen.scores.Score, such as", score="alibi")
refused(
    TypeError, "captures: expected a sequence of torch.Tensor, got a Tensor",
    score=scores.alibi(), captures=torch.ones(4),
)  # fmt: skip
refused(
    TypeError, "captures[0]: expected a torch.Tensor, got a numpy.ndarray",
    score=scores.alibi(), captures=[np.ones(4, np.float32)],
)  # fmt: skip
# numpy's numbers are numbers.
same = varlen_attn(q, k, v, cu, cu, window_size=(3, 0), scale=0.5)
left, right = np.array([3, 0])
assert torch.equal(
    varlen_attn(q, k, v, cu, cu, window_size=(left, right), scale=np.float32(0.5)), same
)
assert torch.equal(
    varlen_attn(q, k, v, cu, cu, chunk=np.int64(3)), varlen_attn(q, k, v, cu, cu, chunk=3)
)
# A window that no sequence is long enough for is open.
open_window = varlen_attn(q, k, v, cu, cu)
assert torch.equal(varlen_attn(q, k, v, cu, cu, window_size=(2**63, 10**30)), open_window)
# The layout.
nested = torch.nested.nested_tensor([q[:4], q[4:]], layout=torch.jagged)
words = "expected a dense tensor, got a nested one, of which values() and offsets() are the packed rows"
refused(ValueError, f"query: {words} and cu_seq", nested, nested, nested)
refused(ValueError, f"value: {words} and cu_seq", q, k, nested)
nested = torch.nested.nested_tensor([cu[:1], cu[1:]], layout=torch.jagged)
refused(ValueError, f"cu_seq_q: {words}", q, k, v, nested)
for p in (0.0, 0.5):
    fails(
        ValueError, f"cu_seqlens: {words}",
        lambda: flash_attn_varlen_func(q, k, v, nested, cu, dropout_p=p),
    )  # fmt: skip
# The stand-in for CUDA has none of this layout.
if not IS_FAKE:
    strided = torch.nested.nested_tensor([cu[:1], cu[1:]])
    fails(
        ValueError, f"cu_seqlens: {words}",
        lambda: flash_attn_varlen_func(q, k, v, strided, cu, dropout_p=0.5),
    )  # fmt: skip
# The stand-in for CUDA has no sparse tensors, and CUDA none of mkldnn.
layouts = [] if IS_FAKE else [q.to_sparse()] if ON_CUDA else [q.to_sparse(), q.to_mkldnn()]
for layout in layouts:
    words = f"expected a dense tensor, got one of layout {layout.layout}"
    refused(ValueError, f"value: {words}", q, k, layout)
    refused(ValueError, f"sink: {words}", sink=layout)
refused(
    ValueError,
    "expected query, key, value of rank 3 (rows, heads, head_dim), got shapes query (13,), key",
    q[:, 0, 0],
)

# Tensors.
refused(
    ValueError,
    "k: expected a tensor of torch.float32 and rank 3, got one of torch.float64",
    q,
    k.double(),
)
refused(ValueError, "expected query, key, value of rank 3", torch.zeros(13, 4, 4, 4))
refused(ValueError, "got shapes query (13, 4, 16), key (13, 4, 16), value (4, 16)", q, k, v[0])
refused(ValueError, "expected q, k and v of torch.float16, ", q.int(), k.int(), v.int())
refused(ValueError, "v: expected extent 1 to be 4, got 2", q, k, v[:, :2])
refused(ValueError, "k: expected extent 2 to be 16, got 8", q, k[:, :, :8])
refused(ValueError, "v has 12 rows: expected 13, as many as k", q, k, v[:12])
refused(
    ValueError,
    "cu_seqlens_k: expected a tensor of torch.int32 and rank 1, got one of torch.int64",
    q,
    k,
    v,
    cu,
    cu.long(),
)
refused(
    ValueError,
    "expected cu_seqlens of torch.int32 or torch.int64, got torch.float32",
    q,
    k,
    v,
    cu.float(),
    cu,
)
refused(
    ValueError,
    "seqused_k: expected a tensor of torch.int32 and rank 1",
    seqused_k=torch.tensor([1, 2]),
)
refused(
    ValueError,
    "sink: expected a tensor of torch.float32 and rank 1",
    sink=torch.zeros(4, dtype=torch.float16),
)
refused(ValueError, "sink: expected extent 0 to be 4, got 3", sink=torch.zeros(3))

# Their values.
refused(ValueError, "cu_seqlens_q[0] = 1: cu_seqlens must start at 0", q, k, v, cu + 1)
refused(ValueError, "cu_seqlens_k[2] = 14", q, k, v, cu, offsets([4, 10]))
refused(ValueError, "must not decrease", q, k, v, offsets([4, -1, 10]), offsets([4, 0, 9]))
refused(
    ValueError,
    "cu_seqlens_q has 3 entries and cu_seqlens_k 4: expected the same number",
    q,
    k,
    v,
    cu,
    offsets([4, 0, 9]),
)
# PyTorch's tensors without elements have no address, which must not read as no list.
for used in (None, torch.tensor([1, 2], dtype=torch.int32)):
    refused(ValueError, "cu_seqlens_k", q, k, v, cu, cu[:0].clone(), seqused_k=used)
refused(ValueError, "seqused_k[1] = 10", seqused_k=torch.tensor([1, 10], dtype=torch.int32))

# Memory of the results.
fails(
    ValueError,
    "out has 12 rows: expected 13, as many as q",
    lambda: varlen_attn_out(torch.empty(12, 4, 16), q, k, v, cu, cu),
)
fails(
    ValueError,
    "out: expected memory that no other tensor",
    lambda: varlen_attn_out(v, q, k, v, cu, cu),
)
fails(
    ValueError,
    "out: expected strides that are not 0",
    lambda: varlen_attn_out(torch.empty(1, 4, 16).expand(13, 4, 16), q, k, v, cu, cu),
)
fails(
    ValueError,
    "out: expected an array that can be written, got a view with the negative bit",
    lambda: varlen_attn_out(torch._neg_view(torch.empty(13, 4, 16)), q, k, v, cu, cu),
)

# After an error all goes on.
assert not varlen_attn(q, k, v, cu, cu).any()

# flash-attn's function.
arguments = (q, k, v, cu, cu, 9, 9)
torch.manual_seed(0)
many, few = torch.randn(13, 4, 16), torch.randn(13, 2, 16)
result = flash_attn_varlen_func(
    many, few, few, cu, cu, 9, 9, softmax_scale=0.3, causal=True, return_attn_probs=True
)
assert len(result) == 3 and result[1].shape == (4, 13) and result[2] is None
same = varlen_attn(many, few, few, cu, cu, scale=0.3, window_size=(-1, 0), enable_gqa=True)
assert torch.equal(result[0], same)
near = flash_attn_varlen_func(many, few, few, cu, cu, 9, 9, 0.0, 0.3, True, (3, 3))
same = varlen_attn(many, few, few, cu, cu, scale=0.3, window_size=(3, 0), enable_gqa=True)
assert torch.equal(near, same)
for options, words in (
    ({"softcap": -1.0}, "softcap: expected 0 or more, got -1.0"),
    ({"alibi_slopes": torch.ones(())}, f"alibi_slopes: expected a tensor of torch.float32 on {q.device} and of shape (4,) or (2, 4)"),
    ({"alibi_slopes": torch.ones(9, 4)}, f"got one of torch.float32 on {q.device} and of shape (9, 4)"),
    ({"alibi_slopes": torch.ones(4).double()}, f"got one of torch.float64 on {q.device} and of shape (4,)"),
    ({"alibi_slopes": torch.ones(4, device="meta")}, "got one of torch.float32 on meta"),
    ({"attention_chunk": 2**63, "causal": True}, "attention_chunk: expected an integer from 1 to 268435456"),
):
    fails(ValueError, words, lambda o=options: flash_attn_varlen_func(*arguments, **o))
for options, words in (
    ({"softcap": "1"}, "softcap: expected a Python number, which code is made for, got str"),
    ({"softcap": None}, "softcap: expected a Python number, which code is made for, got NoneType"),
    (
        {"softcap": torch.ones(())},
        "softcap: expected a Python number, which code is made for, got Tensor",
    ),
    ({"alibi_slopes": [1.0] * 4}, "alibi_slopes: expected a torch.Tensor, got a list"),
    ({"attention_chunk": 2.5, "causal": True}, "attention_chunk: expected integers, got 2.5"),
    ({"attention_chunk": True, "causal": True}, "attention_chunk: expected integers, got True"),
    ({"causal": "no"}, "causal: expected a bool, got 'no'"),
    ({"dropout_p": "0"}, "dropout_p: expected a Python number"),
):
    fails(TypeError, words, lambda o=options: flash_attn_varlen_func(*arguments, **o))
fails(
    TypeError, "cu_seqlens_k: expected a torch.Tensor, got a list",
    lambda: flash_attn_varlen_func(q, k, v, cu, [0, 13]),
)  # fmt: skip
fails(
    ValueError, "captures: expected 1 tensors (slopes), got 0",
    lambda: varlen_attn(q, k, v, cu, cu, score=scores.alibi()),
)  # fmt: skip
fails(
    ValueError, "score: expected the MLIR text of a score, ",
    lambda: torch.ops.varlen.attn(q, k, v, cu, cu, score="softcap"),
)  # fmt: skip
