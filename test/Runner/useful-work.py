# RUN: %python %s
"""The work that a run counts, and the names of what it does not."""

import numpy as np
import varlen

SIGNATURE = """
  (%x: tensor<?x64xf32> {varlen.name = "x"}, %w: tensor<64x64xf32> {varlen.name = "w"},
   %cu: tensor<?xi32> {varlen.name = "cu"}, %n: index {varlen.name = "n"}) -> tensor<?x64xf32>
"""
# A product, attention with two heads of 32, and a residual.
LAYER = """
func.func private @layer(%x: tensor<?x64xf32>, %w: tensor<64x64xf32>, %cu: tensor<?xi32>)
    -> tensor<?x64xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %rows = tensor.dim %x, %c0 : tensor<?x64xf32>
  %e = tensor.empty(%rows) : tensor<?x64xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x64xf32>) -> tensor<?x64xf32>
  %y = linalg.matmul ins(%x, %w : tensor<?x64xf32>, tensor<64x64xf32>)
      outs(%f : tensor<?x64xf32>) -> tensor<?x64xf32>
  %h = tensor.expand_shape %y [[0], [1, 2]] output_shape [%rows, 2, 32]
      : tensor<?x64xf32> into tensor<?x2x32xf32>
  %o, %lse = varlen.attn %h, %h, %h, %cu, %cu
      : (tensor<?x2x32xf32>, tensor<?x2x32xf32>, tensor<?x2x32xf32>, tensor<?xi32>, tensor<?xi32>)
      -> (tensor<?x2x32xf32>, tensor<2x?xf32>) SCORE
  %c = tensor.collapse_shape %o [[0], [1, 2]] : tensor<?x2x32xf32> into tensor<?x64xf32>
  %z = arith.addf %c, %x : tensor<?x64xf32>
  return %z : tensor<?x64xf32>
}
"""
# The region stands behind the types.
SCORE = """score (%s: f32, %i: i32, %j: i32) {
    %t = math.tanh %s : f32
    VISIBLE
  }"""
CALL = "func.call @layer(%{}, %w, %{}) : (tensor<?x64xf32>, tensor<64x64xf32>, tensor<?xi32>)"
CALL += " -> tensor<?x64xf32>"

cu = np.array([0, 5, 5, 17], np.int32)
rows, pairs = 17, 5 * 5 + 12 * 12
product, attention = 2 * rows * 64 * 64, 2 * 2 * (32 + 32) * pairs


def count(body, n=3, score="", layer=LAYER):
    text = layer.replace("SCORE", score) + f"func.func @f{SIGNATURE} {{\n{body}\n}}\n"
    inputs = {
        "x": np.ones((rows, 64), np.float32), "w": np.ones((64, 64), np.float32),
        "cu": cu, "n": np.array(n, np.int64),
    }  # fmt: skip
    figures = {}
    varlen.run(text, inputs, entry="f", figures=figures)
    return figures["useful_flops"], figures["not_counted"]


once = f"%r = {CALL.format('x', 'cu')}\nreturn %r : tensor<?x64xf32>"
assert count(once) == (product + attention, {"arith.addf": 1}), count(once)

# A loop runs as often as its bounds say, with what it carries; a second call counts, too.
loop = f"""
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %r = scf.for %i = %c0 to %n step %c2 iter_args(%a = %x) -> tensor<?x64xf32> {{
    %b = {CALL.format("a", "cu")}
    scf.yield %b : tensor<?x64xf32>
  }}
  %s = {CALL.format("r", "cu")}
  return %s : tensor<?x64xf32>"""
for n, trips in (0, 0), (1, 1), (2, 1), (5, 3):
    expected = (trips + 1) * (product + attention), {"arith.addf": 2}
    assert count(loop, n) == expected, (n, count(loop, n))

# Which branch runs is not known.
branch = f"""
  %c0 = arith.constant 0 : index
  %is = arith.cmpi eq, %n, %c0 : index
  %r = scf.if %is -> tensor<?x64xf32> {{
    %b = {CALL.format("x", "cu")}
    scf.yield %b : tensor<?x64xf32>
  }} else {{
    scf.yield %x : tensor<?x64xf32>
  }}
  return %r : tensor<?x64xf32>"""
assert count(branch) == (None, {"arith.addf": 1, "linalg.matmul": 1, "varlen.attn": 1})

# Nor what cu_seqlens are that the function makes.
computed = f"""
  %one = tensor.extract_slice %cu[0] [2] [1] : tensor<?xi32> to tensor<2xi32>
  %d = tensor.cast %one : tensor<2xi32> to tensor<?xi32>
  %r = {CALL.format("x", "d")}
  return %r : tensor<?x64xf32>"""
assert count(computed) == (product, {"arith.addf": 1, "varlen.attn": 1})

# A score is work of its own; how many keys it hides is not known.
changed = SCORE.replace("VISIBLE", "varlen.yield %t : f32")
expected = {"arith.addf": 1, "varlen.attn score": 1}
assert count(once, score=changed) == (product + attention, expected)
hidden = SCORE.replace("VISIBLE", """%two = arith.constant 2 : i32
    %rest = arith.remsi %j, %two : i32
    %odd = arith.cmpi eq, %rest, %i : i32
    varlen.yield %t, %odd : f32, i1""")
assert count(once, score=hidden) == (product, {**expected, "varlen.attn": 1})
