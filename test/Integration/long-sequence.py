"""One long sequence, whose gradients, and whose keys where no more queries than a tile has
see them, are shared by all threads, has the same bits as the same sequence among others,
where it is one thread's; with one thread and more. Lengths around those of ranges, panels,
kv blocks and parts, which a schedule may make of another size.
"""

# REQUIRES: venv
# RUN: %python %s | FileCheck %s
# CHECK: {{[1-9][0-9]*}} comparisons, 0 failed

import functools
import os
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "Inputs"))
import compiled

from varlen import dtypes

rng = np.random.default_rng(5)
# Enough others of the same length that none has an eighth of the work.
COPIES = 10
comparisons = failed = 0


def gradient_text(dtype, heads, kv_heads, d, mask):
    q, k = f"tensor<?x{heads}x{d}x{dtype}>", f"tensor<?x{kv_heads}x{d}x{dtype}>"
    lse, cu = f"tensor<{heads}x?xf32>", "tensor<?xi32>"
    types = {"dout": q, "q": q, "k": k, "v": k, "out": q, "lse": lse, "cu_q": cu, "cu_k": cu}
    arguments = ", ".join(f'%{n}: {t} {{varlen.name = "{n}"}}' for n, t in types.items())
    return f"""
    func.func @f({arguments}) -> ({q} {{varlen.name = "dq"}}, {k} {{varlen.name = "dk"}}, {k} {{varlen.name = "dv"}}) {{
      %dq, %dk, %dv = varlen.attn_grad %dout, %q, %k, %v, %out, %lse, %cu_q, %cu_k {{mask = #varlen.mask<{mask}>}}
        : ({", ".join(types.values())}) -> ({q}, {k}, {k})
      return %dq, %dk, %dv : {q}, {k}, {k}
    }}
    """


def parts_text(part, few_part):
    schedule = f"""varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4,
        panels = 2, kv_block = 32, kv = copy, part = {part}, few_part = {few_part}>"""
    return functools.partial(forward_text, schedule=schedule)


def forward_text(dtype, heads, kv_heads, d, mask, schedule=""):
    q, k = f"tensor<?x{heads}x{d}x{dtype}>", f"tensor<?x{kv_heads}x{d}x{dtype}>"
    lse, cu = f"tensor<{heads}x?xf32>", "tensor<?xi32>"
    types = {"q": q, "k": k, "v": k, "cu_q": cu, "cu_k": cu}
    arguments = ", ".join(f'%{n}: {t} {{varlen.name = "{n}"}}' for n, t in types.items())
    return f"""
    func.func @f({arguments}) -> ({q} {{varlen.name = "out"}}, {lse} {{varlen.name = "lse"}}) {{
      %out, %lse = varlen.attn %q, %k, %v, %cu_q, %cu_k {{mask = #varlen.mask<{mask}>{schedule and ", " + schedule}}}
        : ({", ".join(types.values())}) -> ({q}, {lse})
      return %out, %lse : {q}, {lse}
    }}
    """


def compare(text, dtype, heads, kv_heads, d, mask, queries, keys):
    global comparisons, failed
    function = compiled.function(text(dtype, heads, kv_heads, d, mask))

    def random(*shape):
        return dtypes.narrow(rng.standard_normal(shape), dtype)

    inputs = {"q": random(queries, heads, d)}
    inputs |= {n: random(keys, kv_heads, d) for n in ("k", "v")}
    if text is gradient_text:
        inputs |= {n: random(queries, heads, d) for n in ("dout", "out")}
        inputs["lse"] = (4 + rng.standard_normal((heads, queries))).astype(np.float32)

    def run(copies, threads):
        repeated = {
            n: np.concatenate([x] * copies, axis=1 if n == "lse" else 0)
            for n, x in inputs.items()
        }
        repeated["cu_q"] = np.arange(copies + 1, dtype=np.int32) * queries
        repeated["cu_k"] = np.arange(copies + 1, dtype=np.int32) * keys
        return function(repeated, threads)

    golden = run(COPIES, 2)
    for threads in (1, 2, 3):
        alone = run(1, threads)
        for name, value in alone.items():
            comparisons += 1
            first = golden[name][:, :queries] if name == "lse" else golden[name][: len(value)]
            if not np.array_equal(value.view(np.uint8),
                                  np.ascontiguousarray(first).view(np.uint8)):  # fmt: skip
                print(f"FAIL {name} {dtype} {mask} {queries} x {keys}, {threads} threads")
                failed += 1


compare(gradient_text, "f32", 1, 1, 64, "causal", 1500, 1500)
compare(gradient_text, "f32", 4, 1, 20, "full", 513, 129)
compare(gradient_text, "f32", 1, 1, 32, "window = (200, 50)", 3000, 2700)
compare(gradient_text, "bf16", 2, 1, 64, "causal", 1100, 1300)
compare(gradient_text, "bf16", 1, 1, 128, "full", 1025, 400)
compare(forward_text, "f32", 1, 1, 64, "causal", 1, 9000)
compare(forward_text, "f32", 4, 1, 20, "full", 1, 2049)
compare(forward_text, "f32", 4, 1, 128, "window = (6000, 0)", 2, 12345)
compare(forward_text, "bf16", 4, 2, 64, "causal", 1, 4097)
compare(forward_text, "f16", 2, 1, 72, "causal", 3, 6100)
compare(forward_text, "f32", 1, 1, 64, "causal", 33, 8193)
compare(forward_text, "f32", 4, 1, 20, "full", 9, 4097)
compare(forward_text, "f32", 1, 1, 40, "window = (4500, 10)", 700, 9000)
compare(forward_text, "bf16", 2, 1, 64, "causal", 70, 8192)
compare(forward_text, "f16", 1, 1, 72, "full", 300, 4100)
compare(parts_text(1, 3), "f32", 2, 1, 40, "causal", 60, 700)
compare(parts_text(5, 2), "bf16", 4, 2, 64, "window = (600, 0)", 2, 1500)
compare(parts_text(3, 65536), "f16", 2, 1, 64, "full", 20, 1100)
compare(parts_text(0, 0), "f32", 2, 1, 64, "full", 1, 1500)
compare(parts_text(0, 0), "f32", 1, 1, 64, "causal", 40, 900)
print(f"{comparisons} comparisons, {failed} failed")
raise SystemExit(failed != 0)
