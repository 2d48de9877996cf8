# RUN: %python %s
"""Every configuration that varlen.text can write is one that varlen-opt takes."""

import itertools

import varlen
from varlen import text

functions, gradients = [], []
flags = itertools.product((False, True), repeat=6)
for i, (sink, used_q, used_k, offset, same_cu, static) in enumerate(flags):
    options = dict(
        dtype=("f32", "bf16", "f16", "f64")[i % 4],
        heads=(4, None)[i % 5 == 0],
        kv_heads=(2, 4, 1)[i % 3] if i % 5 else None,
        head_dim=(64, 128, 17, None)[i % 7 % 4],
        v_head_dim=(None, 32)[i % 2],
        window=((-1, -1), (-1, 0), (5, 3), (7, -1))[i // 2 % 4],
        alignment=("bottom_right", "top_left")[i // 8 % 2],
        scale=(None, 0.125, 1, 1e-30)[i % 4],
        sink=sink, seqused_q=used_q, seqused_k=used_k, q_offset=offset,
        same_cu=same_cu, index=("i32", "i64")[i % 2],
        tq=100 if static else None, tk=200 if static else None,
        sequences=5 if static else None,
    )  # fmt: skip
    functions.append(text.attn(name=f"f{i}", lse=i % 3 != 1, **options))
    gradients.append(text.attn_grad(name=f"f{i}", dlse=i % 3 != 1, **options))
printed = varlen.call("varlen-opt", "-", text="".join(functions))
assert printed.count("varlen.attn ") == 64
assert printed.count("func.func @f") == 64
for fragment in (
    "#varlen.mask<causal>",
    "#varlen.mask<window = (5, 3), top_left>",
    "scale = 1.250000e-01 : f32",
    "scale = 1.000000e-30 : f64",
    "seqused_q(",
    "seqused_k(",
    "q_offset(",
    "sink(",
    "tensor<6xi64>",
    'varlen.name = "cu_seqlens_q"',
    'varlen.name = "lse"',
):
    assert fragment in printed, fragment

printed = varlen.call("varlen-opt", "-", text="".join(gradients))
assert printed.count("varlen.attn_grad ") == 64
for fragment in ("%dq, %dk, %dv, %dsink = ", "%dq, %dk, %dv = ", " dlse(", 'varlen.name = "dsink"'):
    assert fragment in printed, fragment
