"""Tiles of varlen.online_attn, made by upstream transforms, against the whole step:
sums are made in another order, along keys or where extents are no longer static.
"""

# REQUIRES: plugin, venv
# RUN: %around-code %python %s

import os
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "Inputs"))
from attention import transform

import varlen


def step(orientation):
    """A step on 32 queries and 24 keys, of which each query sees some."""
    column = orientation == "qk"
    acc, row = ("32x8", "32x1") if column else ("8x32", "1x32")
    lo, hi = (
        np.array(bounds).reshape((-1, 1) if column else (1, -1)).tolist()
        for bounds in ([i // 3 for i in range(32)], [12 + i // 2 for i in range(32)])
    )
    types = f"tensor<{acc}xf32>, tensor<{row}xf32>, tensor<{row}xf32>"
    names = ("q", "tensor<32x16xf32>"), ("k", "tensor<24x16xf32>"), ("v", "tensor<24x8xf32>")
    arguments = ", ".join(f'%{name}: {type} {{varlen.name = "{name}"}}' for name, type in names)
    return f"""
func.func @step({arguments}) -> ({types}) {{
  %acc = arith.constant dense<0.0> : tensor<{acc}xf32>
  %m = arith.constant dense<-1.0e+30> : tensor<{row}xf32>
  %l = arith.constant dense<0.0> : tensor<{row}xf32>
  %k0 = arith.constant 0 : i32
  %lo = arith.constant dense<{lo}> : tensor<{row}xi32>
  %hi = arith.constant dense<{hi}> : tensor<{row}xi32>
  %0:3 = varlen.online_attn {orientation}
      ins(%q, %k, %v : tensor<32x16xf32>, tensor<24x16xf32>, tensor<24x8xf32>)
      limits(%lo, %hi, %k0 : tensor<{row}xi32>, tensor<{row}xi32>, i32)
      outs(%acc, %m, %l : {types}) scale 0.25
  return %0#0, %0#1, %0#2 : {types}
}}
"""


def run(text, inputs):
    lowered = varlen.call("varlen-opt", "--varlen-online-softmax", text=text)
    return varlen.run(lowered, inputs)


rng = np.random.default_rng(5)
shapes = {"q": (32, 16), "k": (24, 16), "v": (24, 8)}
inputs = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
for orientation in ("qk", "kq"):
    text = step(orientation)
    whole = run(text, inputs)
    for sizes, tolerance in (([12, 0], 1e-6), ([0, 7], 1e-6), ([16, 8], 1e-6)):
        loops = len(sizes) - sizes.count(0)
        results = ", ".join(["!transform.any_op"] * (loops + 1))
        tiled = transform(
            text,
            f"""
    %step = transform.structured.match ops{{["varlen.online_attn"]}} in %root
      : (!transform.any_op) -> !transform.any_op
    %tiled, %loops:{loops} = transform.structured.tile_using_for %step tile_sizes {sizes}
      : (!transform.any_op) -> ({results})""",
        )
        if "scf.for" not in tiled:
            raise SystemExit(f"{sizes}: expected loops, got\n{tiled}")
        for name, value in run(tiled, inputs).items():
            np.testing.assert_allclose(value, whole[name], rtol=tolerance, atol=tolerance, err_msg=f"{sizes}")
    for sizes in ([0, 7], [0, 24]):
        tiled = transform(
            text,
            f"""
    %step = transform.structured.match ops{{["varlen.online_attn"]}} in %root
      : (!transform.any_op) -> !transform.any_op
    %fill:3, %split, %merge, %loop = transform.structured.tile_reduction_using_forall %step
      by tile_sizes = {sizes} : (!transform.any_op) -> ({", ".join(["!transform.any_op"] * 6)})""",
        )
        if "varlen.online_merge" not in tiled:
            raise SystemExit(f"{sizes}: expected parts that are merged, got\n{tiled}")
        for name, value in run(tiled, inputs).items():
            np.testing.assert_allclose(value, whole[name], rtol=1e-6, atol=1e-6, err_msg=f"parts of {sizes}")
