"""The rules of upstream operations against finite differences."""

# REQUIRES: venv
# RUN: %around-code %python %s

import os
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "Inputs"))
import gradients

rng = np.random.default_rng(1)
text, cases = "", {}


def case(name, signature, body, *inputs):
    global text
    text += f"func.func @{name}{signature} {{\n{body}\n}}\n"
    cases[name] = list(inputs)


def normal(*shape):
    return rng.standard_normal(shape)


def positive(*shape):
    return rng.uniform(0.5, 2, shape)


# Functions of one number, of tensors of any extent.
UNARY = {
    "exp": normal, "exp2": normal, "expm1": normal, "log": positive, "log2": positive,
    "log10": positive, "log1p": positive, "sqrt": positive, "rsqrt": positive,
    "cbrt": positive, "sin": normal, "cos": normal, "tan": lambda n: normal(n) / 4,
    "sinh": normal, "cosh": normal, "tanh": normal, "asin": lambda n: rng.uniform(-0.9, 0.9, n),
    "acos": lambda n: rng.uniform(-0.9, 0.9, n), "atan": normal, "asinh": normal,
    "acosh": lambda n: 1 + positive(n), "atanh": lambda n: rng.uniform(-0.9, 0.9, n),
    "erf": normal, "erfc": normal, "absf": normal, "floor": normal, "ceil": normal,
    "round": normal, "roundeven": normal, "trunc": normal,
}  # fmt: skip
for name, values in UNARY.items():
    case(
        f"math_{name}", "(%x: tensor<?xf64>) -> tensor<?xf64>",
        f"  %y = math.{name} %x : tensor<?xf64>\n  return %y : tensor<?xf64>", values(7),
    )  # fmt: skip

BINARY = {
    "arith.addf": (normal, normal), "arith.subf": (normal, normal),
    "arith.mulf": (normal, normal), "arith.divf": (normal, positive),
    "arith.remf": (lambda n: 3 * normal(n), positive),
    "arith.maximumf": (normal, normal), "arith.minimumf": (normal, normal),
    "arith.maxnumf": (normal, normal), "arith.minnumf": (normal, normal),
    "math.powf": (positive, normal), "math.atan2": (normal, positive),
    "math.copysign": (normal, normal),
}  # fmt: skip
for op, (left, right) in BINARY.items():
    case(
        op.replace(".", "_"), "(%x: tensor<?xf64>, %y: tensor<?xf64>) -> tensor<?xf64>",
        f"  %z = {op} %x, %y : tensor<?xf64>\n  return %z : tensor<?xf64>", left(9), right(9),
    )  # fmt: skip
case(
    "math_fma", "(%x: tensor<?xf64>, %y: tensor<?xf64>, %z: tensor<?xf64>) -> tensor<?xf64>",
    "  %r = math.fma %x, %y, %z : tensor<?xf64>\n  return %r : tensor<?xf64>",
    normal(5), normal(5), normal(5),
)  # fmt: skip
case(
    "scalars", "(%x: f64, %y: f64) -> (f64, f64)",
    """  %half = arith.constant 0.5 : f64
  %n = arith.negf %x : f64
  %p = arith.mulf %n, %y : f64
  %less = arith.cmpf olt, %p, %half : f64
  %s = arith.select %less, %p, %half : f64
  %q = arith.mulf %p, %x : f64
  return %q, %s : f64, f64""",
    1.5, 0.75,
)  # fmt: skip

# linalg.generic: elementwise with broadcasts, contractions, sums, extrema.
case(
    "elementwise", "(%x: tensor<?x?xf64>, %b: tensor<?xf64>, %s: f64) -> tensor<?x?xf64>",
    """  %y = linalg.generic {
    indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>,
                     affine_map<(i, j) -> ()>, affine_map<(i, j) -> (i, j)>],
    iterator_types = ["parallel", "parallel"]}
    ins(%x, %b, %s : tensor<?x?xf64>, tensor<?xf64>, f64) outs(%x : tensor<?x?xf64>) {
  ^bb0(%a: f64, %c: f64, %d: f64, %o: f64):
    %0 = arith.mulf %a, %c : f64
    %1 = math.tanh %0 : f64
    %2 = arith.mulf %1, %d : f64
    %3 = arith.mulf %2, %o : f64
    linalg.yield %3 : f64
  } -> tensor<?x?xf64>
  return %y : tensor<?x?xf64>""",
    normal(3, 4), normal(4), 0.7,
)  # fmt: skip
case(
    "two_results", "(%x: tensor<?x?xf64>, %i: tensor<?xf64>) -> (tensor<?x?xf64>, tensor<?xf64>)",
    """  %r:2 = linalg.generic {
    indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>,
                     affine_map<(i, j) -> (j)>],
    iterator_types = ["reduction", "parallel"]}
    ins(%x : tensor<?x?xf64>) outs(%x, %i : tensor<?x?xf64>, tensor<?xf64>) {
  ^bb0(%a: f64, %o: f64, %sum: f64):
    %0 = math.sin %a : f64
    %1 = math.fma %0, %a, %sum : f64
    linalg.yield %0, %1 : f64, f64
  } -> (tensor<?x?xf64>, tensor<?xf64>)
  return %r#0, %r#1 : tensor<?x?xf64>, tensor<?xf64>""",
    normal(4, 3), normal(3),
)  # fmt: skip
case(
    "captured", "(%x: tensor<?xf64>, %s: f64, %e: tensor<?x?xf64>) -> tensor<?xf64>",
    """  %n = math.exp %s : f64
  %y = linalg.generic {
    indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
    iterator_types = ["parallel"]} ins(%x : tensor<?xf64>) outs(%x : tensor<?xf64>) {
  ^bb0(%a: f64, %o: f64):
    %i = linalg.index 0 : index
    %two = arith.constant 2 : index
    %j = arith.remui %i, %two : index
    %g = tensor.extract %e[%j, %i] : tensor<?x?xf64>
    %h = tensor.extract %e[%j, %j] : tensor<?x?xf64>
    %0 = arith.mulf %a, %n : f64
    %1 = arith.mulf %0, %g : f64
    %2 = arith.addf %1, %h : f64
    linalg.yield %2 : f64
  } -> tensor<?xf64>
  return %y : tensor<?xf64>""",
    normal(5), 0.3, normal(2, 5),
)  # fmt: skip
case(
    "gathered_rows", "(%e: tensor<?x3xf64>, %x: tensor<?x3xf64>, %rows: tensor<?xi32>) -> tensor<?x3xf64>",
    """  %one = arith.constant 1 : index
  %y = linalg.generic {
    indexing_maps = [affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>],
    iterator_types = ["parallel", "parallel"]} ins(%rows : tensor<?xi32>) outs(%x : tensor<?x3xf64>) {
  ^bb0(%row: i32, %a: f64):
    %i = arith.index_cast %row : i32 to index
    %j = linalg.index 1 : index
    %g = tensor.extract %e[%i, %j] : tensor<?x3xf64>
    %h = tensor.extract %e[%one, %j] : tensor<?x3xf64>
    %0 = arith.mulf %a, %g : f64
    %1 = arith.mulf %h, %h : f64
    %2 = arith.addf %0, %1 : f64
    linalg.yield %2 : f64
  } -> tensor<?x3xf64>
  return %y : tensor<?x3xf64>""",
    normal(3, 3), normal(5, 3), np.array([2, 0, 2, 1, 0], np.int32),
)  # fmt: skip
for name, op in (("max", "maximumf"), ("min", "minnumf")):
    case(
        f"reduce_{name}", "(%x: tensor<?x?xf64>, %i: tensor<?xf64>) -> tensor<?xf64>",
        f"""  %y = linalg.reduce ins(%x : tensor<?x?xf64>) outs(%i : tensor<?xf64>) dimensions = [1]
    (%a: f64, %b: f64) {{
      %0 = arith.{op} %a, %b : f64
      linalg.yield %0 : f64
    }}
  return %y : tensor<?xf64>""",
        normal(6, 3), normal(6) / 2,
    )  # fmt: skip
# Several that are the maximum share its cotangent.
case(
    "shared_maximum", "(%x: tensor<?xf64>, %o: tensor<?x3xf64>, %i: tensor<?xf64>) -> tensor<?xf64>",
    """  %w = linalg.broadcast ins(%x : tensor<?xf64>) outs(%o : tensor<?x3xf64>) dimensions = [1]
  %y = linalg.reduce { arith.maximumf } ins(%w : tensor<?x3xf64>) outs(%i : tensor<?xf64>) dimensions = [1]
  return %y : tensor<?xf64>""",
    normal(6), normal(6, 3), normal(6) - 1,
)  # fmt: skip
case(
    "column", "(%x: tensor<?x1xf64>, %y: tensor<?x?xf64>) -> tensor<?x?xf64>",
    """  %z = linalg.generic {
    indexing_maps = [affine_map<(i, j) -> (i, 0)>, affine_map<(i, j) -> (i, j)>,
                     affine_map<(i, j) -> (i, j)>],
    iterator_types = ["parallel", "parallel"]}
    ins(%x, %y : tensor<?x1xf64>, tensor<?x?xf64>) outs(%y : tensor<?x?xf64>) {
  ^bb0(%a: f64, %b: f64, %o: f64):
    %0 = arith.divf %b, %a : f64
    linalg.yield %0 : f64
  } -> tensor<?x?xf64>
  return %z : tensor<?x?xf64>""",
    positive(4, 1), normal(4, 3),
)  # fmt: skip
case(
    "matmul", "(%x: tensor<?x?xf64>, %y: tensor<?x?xf64>, %i: tensor<?x?xf64>) -> tensor<?x?xf64>",
    """  %z = linalg.matmul ins(%x, %y : tensor<?x?xf64>, tensor<?x?xf64>)
    outs(%i : tensor<?x?xf64>) -> tensor<?x?xf64>
  return %z : tensor<?x?xf64>""",
    normal(3, 4), normal(4, 2), normal(3, 2),
)  # fmt: skip
case(
    "batch_matmul",
    "(%x: tensor<?x3x4xf64>, %y: tensor<?x4x2xf64>, %i: tensor<?x3x2xf64>) -> tensor<?x3x2xf64>",
    """  %z = linalg.batch_matmul ins(%x, %y : tensor<?x3x4xf64>, tensor<?x4x2xf64>)
    outs(%i : tensor<?x3x2xf64>) -> tensor<?x3x2xf64>
  return %z : tensor<?x3x2xf64>""",
    normal(2, 3, 4), normal(2, 4, 2), normal(2, 3, 2),
)  # fmt: skip
case(
    "named", "(%x: tensor<?x4xf64>, %v: tensor<?xf64>, %s: f64) -> tensor<4x?xf64>",
    """  %zero = arith.constant 0 : index
  %n = tensor.dim %x, %zero : tensor<?x4xf64>
  %a = tensor.empty(%n) : tensor<4x?xf64>
  %t = linalg.transpose ins(%x : tensor<?x4xf64>) outs(%a : tensor<4x?xf64>) permutation = [1, 0]
  %w = linalg.broadcast ins(%v : tensor<?xf64>) outs(%a : tensor<4x?xf64>) dimensions = [0]
  %f = linalg.fill ins(%s : f64) outs(%a : tensor<4x?xf64>) -> tensor<4x?xf64>
  %p = linalg.mul ins(%t, %w : tensor<4x?xf64>, tensor<4x?xf64>) outs(%a : tensor<4x?xf64>) -> tensor<4x?xf64>
  %q = linalg.map { math.exp } ins(%p : tensor<4x?xf64>) outs(%a : tensor<4x?xf64>)
  %r = linalg.div ins(%q, %f : tensor<4x?xf64>, tensor<4x?xf64>) outs(%a : tensor<4x?xf64>) -> tensor<4x?xf64>
  return %r : tensor<4x?xf64>""",
    normal(3, 4), normal(3), 1.3,
)  # fmt: skip

# tensor: parts and shapes.
case(
    "slices", "(%x: tensor<?x6xf64>, %n: index) -> (tensor<?x2xf64>, tensor<?x3xf64>)",
    """  %a = tensor.extract_slice %x[0, 1] [%n, 2] [1, 2] : tensor<?x6xf64> to tensor<?x2xf64>
  %b = tensor.extract_slice %x[1, 2] [%n, 3] [1, 1] : tensor<?x6xf64> to tensor<?x3xf64>
  %c = math.sin %a : tensor<?x2xf64>
  return %c, %b : tensor<?x2xf64>, tensor<?x3xf64>""",
    normal(4, 6), 3,
)  # fmt: skip
case(
    "row", "(%x: tensor<?x6xf64>, %i: index) -> tensor<6xf64>",
    """  %a = tensor.extract_slice %x[%i, 0] [1, 6] [1, 1] : tensor<?x6xf64> to tensor<6xf64>
  %b = arith.mulf %a, %a : tensor<6xf64>
  return %b : tensor<6xf64>""",
    normal(3, 6), 2,
)  # fmt: skip
case(
    "insert", "(%x: tensor<?x6xf64>, %y: tensor<?x2xf64>, %n: index) -> tensor<?x6xf64>",
    """  %a = tensor.insert_slice %y into %x[1, 3] [%n, 2] [1, 1] : tensor<?x2xf64> into tensor<?x6xf64>
  %b = math.sin %a : tensor<?x6xf64>
  return %b : tensor<?x6xf64>""",
    normal(4, 6), normal(2, 2), 2,
)  # fmt: skip
case(
    "elements", "(%x: tensor<?xf64>, %s: f64, %i: index) -> (tensor<2x2xf64>, tensor<?xf64>, tensor<3xf64>)",
    """  %a = tensor.extract %x[%i] : tensor<?xf64>
  %b = arith.mulf %a, %s : f64
  %c = tensor.insert %b into %x[%i] : tensor<?xf64>
  %d = tensor.from_elements %a, %b, %s, %a : tensor<2x2xf64>
  %e = tensor.splat %b : tensor<3xf64>
  return %d, %c, %e : tensor<2x2xf64>, tensor<?xf64>, tensor<3xf64>""",
    normal(4), 0.6, 2,
)  # fmt: skip
case(
    "shapes", "(%x: tensor<?x6xf64>) -> (tensor<?x2x3xf64>, tensor<?xf64>)",
    """  %zero = arith.constant 0 : index
  %n = tensor.dim %x, %zero : tensor<?x6xf64>
  %a = tensor.expand_shape %x [[0], [1, 2]] output_shape [%n, 2, 3] : tensor<?x6xf64> into tensor<?x2x3xf64>
  %b = math.sin %a : tensor<?x2x3xf64>
  %c = tensor.collapse_shape %x [[0, 1]] : tensor<?x6xf64> into tensor<?xf64>
  %d = arith.mulf %c, %c : tensor<?xf64>
  return %b, %d : tensor<?x2x3xf64>, tensor<?xf64>""",
    normal(3, 6),
)  # fmt: skip
case(
    "pad", "(%x: tensor<?x3xf64>, %n: index) -> tensor<?x5xf64>",
    """  %one = arith.constant 1.0 : f64
  %a = tensor.pad %x low[%n, 2] high[1, 0] {
  ^bb0(%i: index, %j: index):
    tensor.yield %one : f64
  } : tensor<?x3xf64> to tensor<?x5xf64>
  %b = math.exp %a : tensor<?x5xf64>
  return %b : tensor<?x5xf64>""",
    normal(2, 3), 2,
)  # fmt: skip
case(
    "cast", "(%x: tensor<?xf64>) -> tensor<4xf64>",
    """  %a = tensor.cast %x : tensor<?xf64> to tensor<4xf64>
  %b = math.sin %a : tensor<4xf64>
  return %b : tensor<4xf64>""",
    normal(4),
)  # fmt: skip

# A loop that fills in rows and adds to a sum.
case(
    "loop", "(%x: tensor<?x4xf64>, %w: tensor<4xf64>) -> (tensor<?x4xf64>, tensor<4xf64>)",
    """  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %n = tensor.dim %x, %zero : tensor<?x4xf64>
  %y = tensor.empty(%n) : tensor<?x4xf64>
  %r:2 = scf.for %i = %zero to %n step %one iter_args(%o = %y, %s = %w) -> (tensor<?x4xf64>, tensor<4xf64>) {
    %row = tensor.extract_slice %x[%i, 0] [1, 4] [1, 1] : tensor<?x4xf64> to tensor<4xf64>
    %sin = math.sin %row : tensor<4xf64>
    %p = arith.mulf %sin, %w : tensor<4xf64>
    %q = tensor.insert_slice %p into %o[%i, 0] [1, 4] [1, 1] : tensor<4xf64> into tensor<?x4xf64>
    %t = arith.addf %s, %p : tensor<4xf64>
    scf.yield %q, %t : tensor<?x4xf64>, tensor<4xf64>
  }
  return %r#0, %r#1 : tensor<?x4xf64>, tensor<4xf64>""",
    normal(3, 4), normal(4),
)  # fmt: skip

# Branches, of numbers and of tensors: one captures what the other does not.
BRANCH = """  %zero = arith.constant 0 : index
  %y = scf.if %c -> (tensor<4xf64>) {
    %a = math.sin %x : tensor<4xf64>
    %b = tensor.extract %x[%zero] : tensor<4xf64>
    %d = arith.mulf %b, %s : f64
    %e = tensor.insert %d into %a[%zero] : tensor<4xf64>
    scf.yield %e : tensor<4xf64>
  } else {
    %a = arith.mulf %x, %w : tensor<4xf64>
    scf.yield %a : tensor<4xf64>
  }
  return %y : tensor<4xf64>"""
for taken in (False, True):
    case(
        f"branch_{taken}",
        "(%x: tensor<4xf64>, %w: tensor<4xf64>, %s: f64, %c: i1) -> tensor<4xf64>",
        BRANCH, normal(4), normal(4), 0.7, taken,
    )  # fmt: skip
# A concatenation as stablehlo-legalize-to-linalg writes it, one of empty tensors, too.
CONCATENATION = """  %zero = arith.constant 0 : index
  %n = tensor.dim %x, %zero : tensor<?xf64>
  %m = tensor.dim %y, %zero : tensor<?xf64>
  %size = arith.addi %n, %m : index
  %e = tensor.empty(%size) : tensor<?xf64>
  %z = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      outs(%e : tensor<?xf64>) {
  ^bb0(%o: f64):
    %i = linalg.index 0 : index
    %isFirst = arith.cmpi ult, %i, %n : index
    %v = scf.if %isFirst -> (f64) {
      %a = tensor.extract %x[%i] : tensor<?xf64>
      %b = arith.mulf %a, %s : f64
      scf.yield %b : f64
    } else {
      %j = arith.subi %i, %n : index
      %a = tensor.extract %y[%j] : tensor<?xf64>
      scf.yield %a : f64
    }
    %w = math.sin %v : f64
    linalg.yield %w : f64
  } -> tensor<?xf64>
  return %z : tensor<?xf64>"""
for n, m in [(5, 3), (0, 2), (1, 0), (0, 0)]:
    case(
        f"concatenation_{n}_{m}", "(%x: tensor<?xf64>, %y: tensor<?xf64>, %s: f64) -> tensor<?xf64>",
        CONCATENATION, normal(n), normal(m), 0.4,
    )  # fmt: skip
# A loop in a body: each point sums a row of a tensor that it captures.
case(
    "loop_in_body", "(%x: tensor<?x3xf64>, %o: tensor<?xf64>) -> tensor<?xf64>",
    """  %y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      outs(%o : tensor<?xf64>) {
  ^bb0(%a: f64):
    %i = linalg.index 0 : index
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %sum = scf.for %j = %c0 to %c3 step %c1 iter_args(%t = %a) -> (f64) {
      %b = tensor.extract %x[%i, %j] : tensor<?x3xf64>
      %c = math.exp %b : f64
      %d = arith.addf %t, %c : f64
      scf.yield %d : f64
    }
    linalg.yield %sum : f64
  } -> tensor<?xf64>
  return %y : tensor<?xf64>""",
    normal(4, 3), normal(4),
)  # fmt: skip
# Sums of loops: windows, with what they are weighed by, and an order that is turned.
case(
    "windows", "(%x: tensor<?xf64>, %w: tensor<?xf64>, %o: tensor<?xf64>) -> tensor<?xf64>",
    """  %y = linalg.conv_1d ins(%x, %w : tensor<?xf64>, tensor<?xf64>) outs(%o : tensor<?xf64>) -> tensor<?xf64>
  return %y : tensor<?xf64>""",
    normal(8), normal(3), normal(6),
)  # fmt: skip
case(
    "strided_maximum", "(%x: tensor<8xf64>, %o: tensor<4xf64>) -> tensor<4xf64>",
    """  %w = tensor.empty() : tensor<2xf64>
  %y = linalg.generic {
    indexing_maps = [affine_map<(i, k) -> (2 * i + k)>, affine_map<(i, k) -> (k)>,
                     affine_map<(i, k) -> (i)>], iterator_types = ["parallel", "reduction"]}
    ins(%x, %w : tensor<8xf64>, tensor<2xf64>) outs(%o : tensor<4xf64>) {
  ^bb0(%a: f64, %b: f64, %c: f64):
    %0 = arith.maximumf %a, %c : f64
    linalg.yield %0 : f64
  } -> tensor<4xf64>
  return %y : tensor<4xf64>""",
    normal(8), normal(4) - 1,
)  # fmt: skip
case(
    "turned", "(%x: tensor<5xf64>) -> tensor<5xf64>",
    """  %e = tensor.empty() : tensor<5xf64>
  %y = linalg.generic {
    indexing_maps = [affine_map<(i) -> (4 - i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
    iterator_types = ["parallel"]} ins(%x, %x : tensor<5xf64>, tensor<5xf64>) outs(%e : tensor<5xf64>) {
  ^bb0(%a: f64, %b: f64, %o: f64):
    %0 = arith.mulf %a, %b : f64
    %1 = arith.mulf %0, %a : f64
    linalg.yield %1 : f64
  } -> tensor<5xf64>
  return %y : tensor<5xf64>""",
    normal(5),
)  # fmt: skip
# Without loops.
case(
    "rank_0", "(%x: tensor<f64>, %y: tensor<f64>) -> tensor<f64>",
    """  %r = linalg.generic {
    indexing_maps = [affine_map<() -> ()>, affine_map<() -> ()>], iterator_types = []}
    ins(%x : tensor<f64>) outs(%y : tensor<f64>) {
  ^bb0(%a: f64, %o: f64):
    %0 = math.exp %a : f64
    %1 = arith.mulf %0, %o : f64
    linalg.yield %1 : f64
  } -> tensor<f64>
  return %r : tensor<f64>""",
    np.asarray(normal()), np.asarray(normal()),
)  # fmt: skip
case(
    "integer_powers", "(%x: tensor<?xf64>, %n: tensor<?xi32>, %s: f64, %m: i64) -> (tensor<?xf64>, f64)",
    """  %y = math.fpowi %x, %n : tensor<?xf64>, tensor<?xi32>
  %z = math.fpowi %s, %m : f64, i64
  return %y, %z : tensor<?xf64>, f64""",
    normal(6), np.array([0, 1, 2, 3, -1, -2], np.int32), 1.3, 5,
)  # fmt: skip

gradients.check(text, cases)
