"""Gradients of one long sequence, which is cut for all threads, have the same bits as
those of the same sequence among others, where it is in one piece; with one thread and
more. Lengths around those of ranges, panels and kv blocks.
"""

# REQUIRES: venv
# RUN: %python %s | FileCheck %s
# CHECK: {{[1-9][0-9]*}} comparisons, 0 failed

import numpy as np

import varlen
from varlen import dtypes

rng = np.random.default_rng(5)
# Enough others of the same length that none has an eighth of the work.
COPIES = 10
comparisons = failed = 0


def text(dtype, heads, kv_heads, d, mask):
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


def compare(dtype, heads, kv_heads, d, mask, queries, keys):
    global comparisons, failed
    module = text(dtype, heads, kv_heads, d, mask)

    def random(*shape):
        return dtypes.narrow(rng.standard_normal(shape), dtype)

    inputs = {n: random(queries, heads, d) for n in ("q", "dout", "out")}
    inputs |= {n: random(keys, kv_heads, d) for n in ("k", "v")}
    inputs["lse"] = (4 + rng.standard_normal((heads, queries))).astype(np.float32)

    def run(copies, threads):
        repeated = {
            n: np.concatenate([x] * copies, axis=1 if n == "lse" else 0)
            for n, x in inputs.items()
        }
        repeated["cu_q"] = np.arange(copies + 1, dtype=np.int32) * queries
        repeated["cu_k"] = np.arange(copies + 1, dtype=np.int32) * keys
        return varlen.run(module, repeated, threads=threads)

    golden = run(COPIES, 2)
    for threads in (1, 2, 3):
        alone = run(1, threads)
        for name, value in alone.items():
            comparisons += 1
            first = golden[name][: len(value)]
            if not np.array_equal(value.view(np.uint8), first.view(np.uint8)):
                print(f"FAIL {name} {dtype} {mask} {queries} x {keys}, {threads} threads")
                failed += 1


compare("f32", 1, 1, 64, "causal", 1500, 1500)
compare("f32", 4, 1, 20, "full", 513, 129)
compare("f32", 1, 1, 32, "window = (200, 50)", 3000, 2700)
compare("bf16", 2, 1, 64, "causal", 1100, 1300)
compare("bf16", 1, 1, 128, "full", 1025, 400)
print(f"{comparisons} comparisons, {failed} failed")
raise SystemExit(failed != 0)
