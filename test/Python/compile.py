# RUN: %python %s %t.mlir

"""varlen.compile gives functions on arrays and numbers."""

import pathlib
import sys

import ml_dtypes
import numpy as np
import varlen
from checks import raises

SOURCE = """
func.func @scale(%x: tensor<?x3xf32> {varlen.name = "x"}, %factor: f32 {varlen.name = "factor"})
    -> (tensor<?x3xf32> {varlen.name = "y"}) {
  %0 = tensor.empty() : tensor<1xf32>
  %c0 = arith.constant 0 : index
  %rows = tensor.dim %x, %c0 : tensor<?x3xf32>
  %empty = tensor.empty(%rows) : tensor<?x3xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
                       iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<?x3xf32>) outs(%empty : tensor<?x3xf32>) {
    ^bb0(%a: f32, %b: f32):
      %c = arith.mulf %a, %factor : f32
      linalg.yield %c : f32
  } -> tensor<?x3xf32>
  return %y : tensor<?x3xf32>
}
func.func @numbers(%a: f16, %b: bf16, %c: f64, %d: i1, %e: i8, %f: index)
    -> (f16, bf16, f64, i1, i8, index) {
  return %a, %b, %c, %d, %e, %f : f16, bf16, f64, i1, i8, index
}
func.func @fill(%to: memref<?xf32, strided<[?], offset: ?>> {varlen.name = "to"}, %value: f32) {
  linalg.fill ins(%value : f32) outs(%to : memref<?xf32, strided<[?], offset: ?>>)
  return
}
"""

program = varlen.compile(SOURCE)
scale = program["scale"]
assert [p.name for p in scale.arguments] == ["x", "factor"] and scale.results[0].name == "y"
assert scale.arguments[0].shape == (None, 3) and "scale" in repr(scale)
x = np.arange(12, dtype=np.float32).reshape(4, 3)
y = scale(x, 2.5)
assert type(y) is np.ndarray and np.array_equal(y, 2.5 * x)
# A scalar may be an array of rank 0; inputs may be slices; results may be given.
assert np.array_equal(scale(x, np.array(2, np.float32)), 2 * x)
wide = np.zeros((4, 6), np.float32)
wide[:, 3:] = x
assert scale(wide[:, 3:], 3, out=wide[:, :3]).base is wide
assert np.array_equal(wide[:, :3], 3 * x)

results = program["numbers"](1.5, 1.00390625, 1e300, True, -128, 1 << 40)
assert [r.dtype.name for r in results] == ["float16", "bfloat16", "float64", "bool", "int8", "int64"]
# To even, which is down.
assert [r.item() for r in results] == [1.5, 1.0, 1e300, True, -128, 1 << 40]
bf16 = program["numbers"](0, float("nan"), 0, False, 0, 0)[1]
assert bf16.dtype == ml_dtypes.bfloat16 and np.isnan(bf16.astype(np.float32))

to = np.zeros(10, np.float32)
assert program["fill"](to[::3], 7) == ()
assert np.array_equal(to, [7, 0, 0] * 3 + [7])

# A file, and a module with one function.
path = pathlib.Path(sys.argv[1])
path.write_text("func.func @one(%x: f32) -> f32 { return %x : f32 }")
assert varlen.compile(path)(4.0) == 4

raises(varlen.CompileError, "custom op 'retur' is unknown", varlen.compile, "func.func @f() { retur }")
raises(varlen.CompileError, "expected a public function", varlen.compile, "module {}")
try:
    varlen.compile('func.func @f() { "foo.bar"() : () -> () return }')
    raise SystemExit("expected an error")
except varlen.CompileError as error:  # Without upstream's advice, which names options of its tools.
    assert str(error) == "module:1:27: operation being parsed with an unregistered dialect", error
raises(ValueError, "expected target to be one of", varlen.compile, SOURCE, target="abacus")
raises(FileNotFoundError, "no-such-file", varlen.compile, pathlib.Path("no-such-file"))
raises(FileNotFoundError, "no-such-file.mlir", varlen.compile, "no-such-file.mlir")
raises(LookupError, "no public function 'f': expected one of scale, numbers, fill", lambda: program["f"])
raises(LookupError, "expected the name of one of several functions", program, x)
raises(TypeError, "scale: expected 2 arguments, got 1", scale, x)
raises(TypeError, "scale: expected 1 results in out, got 2", scale, x, 1, out=(x, x))
raises(TypeError, "x: expected an array with __dlpack__", scale, [1.0], 2)
raises(TypeError, "factor: expected a number of f32, got 'two'", scale, x, "two")
raises(TypeError, "arg4: expected a number of i8, got 128", program["numbers"], 0, 0, 0, 0, 128, 0)
raises(ValueError, "x: expected extent 1 to be 3, got 2", scale, x[:, :2], 1)
raises(ValueError, "x: expected elements", scale, x.astype("f8"), 1)
raises(ValueError, "y: expected memory that no other tensor of the call has", scale, x, 1, out=x)
x.flags.writeable = False
raises(ValueError, "y: expected an array that can be written", scale, wide[:, 3:], 1, out=x)
raises(ValueError, "to: expected an array that can be written", program["fill"], x[:, 0], 1)
