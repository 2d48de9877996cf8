# RUN: env VARLEN_CACHE_DIR= %python %s

"""Functions may have the names of functions that their code calls."""

import math

import numpy as np
import varlen

TEXT = """
func.func @{name}(%x: tensor<?xf64>) -> tensor<?xf64> {{
  %c0 = arith.constant 0 : index
  %d = tensor.dim %x, %c0 : tensor<?xf64>
  %e = tensor.empty(%d) : tensor<?xf64>
  %y = linalg.map ins(%x : tensor<?xf64>) outs(%e : tensor<?xf64>) (%a: f64, %o: f64) {{
    %b = {operation} : f64
    linalg.yield %b : f64
  }}
  return %y : tensor<?xf64>
}}
// A private function of such a name, which is called.
func.func private @log1p(%x: tensor<?xf64>) -> tensor<?xf64> {{
  %y = math.log1p %x : tensor<?xf64>
  return %y : tensor<?xf64>
}}
func.func @both(%x: tensor<?xf64>) -> tensor<?xf64> {{
  %y = call @{name}(%x) : (tensor<?xf64>) -> tensor<?xf64>
  %z = call @log1p(%y) : (tensor<?xf64>) -> tensor<?xf64>
  return %z : tensor<?xf64>
}}
"""
OPERATIONS = {
    "math.exp %a": np.exp, "math.sin %a": np.sin, "math.cbrt %a": np.cbrt, "math.atan %a": np.arctan,
    "math.powf %a, %a": lambda x: x**x, "math.erf %a": np.vectorize(math.erf), "math.log %a": np.log,
}  # fmt: skip
CASES = [
    ("exp", "math.exp %a"), ("sin", "math.sin %a"), ("cbrt", "math.cbrt %a"), ("atan", "math.atan %a"),
    ("pow", "math.powf %a, %a"), ("erf", "math.erf %a"), ("log", "math.log %a"),
    # Of libc, of runtimes and of the code itself.
    *((name, "math.exp %a") for name in (
        "memcpy", "memset", "malloc", "free", "aligned_alloc", "abort", "main", "_start", "longjmp",
        "memrefCopy", "varlen_last_error", "varlen_parallel_for", "_mlir_ciface_both", "expm1", "tanh",
    )),
]  # fmt: skip
x = np.linspace(0.1, 0.9, 700)
for name, operation in CASES:
    program = varlen.compile(TEXT.format(name=name, operation=operation))
    wanted = OPERATIONS[operation](x)
    assert np.allclose(program[name](x), wanted, rtol=1e-13, equal_nan=True), name
    with np.errstate(invalid="ignore"):
        both = np.log1p(wanted)
    assert np.allclose(program["both"](x), both, rtol=1e-13, equal_nan=True), name
