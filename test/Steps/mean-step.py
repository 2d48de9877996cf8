# RUN: %python %s
"""A tile loop whose step and its state are operations of another dialect becomes vectors as
any other: output, lse and the mean of the visible scores, in both orientations, in parts of
the keys and without."""

import os
import subprocess

import numpy as np

import varlen

HEADS, KV_HEADS, D = 4, 2, 16
CU_Q = np.array([0, 0, 70, 71, 74, 110, 111], "i4")
CU_K = np.array([0, 5, 75, 375, 401, 401, 442], "i4")
# Rows behind the last sequence are of none.
TQ, TK = 113, 445
OPT = os.path.join(os.environ["VARLEN_BUILD"], "bin", "varlen-mean-step-test")
STATE = "tensor<16x32xf32>, tensor<1x32xf32>, tensor<1x32xf32>, tensor<1x32xf32>, tensor<1x32xf32>"
NAMES = "%acc{0}, %m{0}, %l{0}, %total{0}, %count{0}"


def function(parts):
    rows = {"q": HEADS, "k": KV_HEADS, "v": KV_HEADS, "out": HEADS}
    types = {name: f"memref<?x{heads}x{D}xf32>" for name, heads in rows.items()}
    types |= {name: f"memref<{HEADS}x?xf32>" for name in ("lse", "mean")}
    types |= {name: "memref<?xi32>" for name in ("cu_q", "cu_k")}
    arguments = ", ".join(f'%{x}: {type} {{varlen.name = "{x}"}}' for x, type in types.items())
    numbers = "tensor<1x32xf32> -> memref<4x?xf32>, !varlen.tile<queries(32)>"
    return f"""
func.func @mean({arguments}) {{
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %n = memref.dim %q, %c0 : {types["q"]}
  %m = memref.dim %k, %c0 : {types["k"]}
  %batch = varlen.batch %cu_q, %cu_k rows(%n, %m) heads(%c2, %c2) mask <window = (100, 3)>
      : memref<?xi32>, memref<?xi32>
  varlen.for_tiles "mean" %t of queries(32) in %batch attributes {{
      varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 2,
                                             kv_block = 32, kv = copy{parts}>}} {{
    %qt = varlen.read %q at %t : {types["q"]}, !varlen.tile<queries(32)> -> tensor<32x16xf32>
    {NAMES.format(0)} = mean.init scale 0.25 : tensor<16x32xf32>, tensor<1x32xf32>
    %s:5 = varlen.for_blocks %b of keys(32) meeting %t : !varlen.tile<queries(32)>
        iter_args(%acc = %acc0, %m1 = %m0, %l = %l0, %total = %total0, %count = %count0)
        -> ({STATE}) {{
      %kt = varlen.read %k at %b : {types["k"]}, !varlen.tile<keys(32)> -> tensor<32x16xf32>
      %vt = varlen.read %v at %b : {types["v"]}, !varlen.tile<keys(32)> -> tensor<32x16xf32>
      {NAMES.format("_new")} = mean.step kq at(%t, %b : !varlen.tile<queries(32)>, !varlen.tile<keys(32)>)
          ins(%qt, %kt, %vt : tensor<32x16xf32>, tensor<32x16xf32>, tensor<32x16xf32>)
          outs(%acc, %m1, %l, %total, %count : tensor<16x32xf32>, tensor<1x32xf32>) scale 0.25
      varlen.yield {NAMES.format("_new")} : {STATE}
    }}
    %o, %e, %mean_of = mean.finish kq %s#0, %s#1, %s#2, %s#3, %s#4 scale 0.25
        : tensor<16x32xf32>, tensor<1x32xf32> -> tensor<32x16xf32>
    varlen.write %o to %out at %t otherwise (0.0)
        : tensor<32x16xf32> -> {types["out"]}, !varlen.tile<queries(32)>
    varlen.write %e to %lse at %t otherwise (-inf) : {numbers}
    varlen.write %mean_of to %mean at %t otherwise (0.0) : {numbers}
  }}
  return
}}
"""


def reference(q, k, v):
    out, lse = np.zeros(q.shape), np.full((HEADS, TQ), -np.inf)
    mean = np.zeros((HEADS, TQ))
    for (q0, q1), (k0, k1) in zip(zip(CU_Q, CU_Q[1:]), zip(CU_K, CU_K[1:])):
        for head in range(HEADS):
            keys, values = (x[k0:k1, head // (HEADS // KV_HEADS)].astype("f8") for x in (k, v))
            for i in range(q1 - q0):
                at = i + (k1 - k0) - (q1 - q0)
                seen = np.array([at - 100 <= j <= at + 3 for j in range(k1 - k0)], bool)
                if not seen.any():
                    continue
                scores = keys[seen] @ q[q0 + i, head].astype("f8") * 0.25
                mean[head, q0 + i] = scores.mean()
                lse[head, q0 + i] = np.log(np.exp(scores).sum())
                out[q0 + i, head] = np.exp(scores - lse[head, q0 + i]) @ values[seen]
    return {"out": out, "lse": lse, "mean": mean}


rng = np.random.default_rng(0)
inputs = {
    name: rng.standard_normal((rows, heads, D)).astype("f4")
    for name, rows, heads in (("q", TQ, HEADS), ("k", TK, KV_HEADS), ("v", TK, KV_HEADS))
}
wanted = reference(**inputs)
# Rows of no sequence are read by none.
for name, cu in (("q", CU_Q), ("k", CU_K), ("v", CU_K)):
    inputs[name][cu[-1] :] = np.nan
inputs |= {"cu_q": CU_Q, "cu_k": CU_K}
inputs |= {name: np.full(value.shape, 7, "f4") for name, value in wanted.items()}
for parts in (", part = 0, few_part = 0", ", part = 4, few_part = 1"):
    text = subprocess.run(
        [OPT, "--varlen-split-kv", "--varlen-specialize-few", "--convert-varlen-to-cpu",
         "--varlen-expand-queries", "--write-mean-steps"],
        input=function(parts), capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert "mean." not in text
    vectors = subprocess.run(
        [OPT, "--varlen-attn-to-loops"], input=text, capture_output=True, text=True, check=True
    )
    assert "linalg." not in vectors.stdout and "scalar loops" not in vectors.stderr
    for threads in (1, 3):
        found = varlen.run(
            text, inputs, threads=threads, pipeline="varlen-attn-to-loops,varlen-lower-to-llvm"
        )
        for name, value in wanted.items():
            same = np.isneginf(value) & np.isneginf(found[name])
            error = np.abs(np.where(same, 0, found[name]) - np.where(same, 0, value)).max()
            # Sums of 104 terms at most, none of which is larger than 8.
            assert error < 104 * 8 * 2.0**-24, f"{name}{parts}: {error}"
print("all right")
