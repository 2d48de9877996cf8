// Arguments that are the same for every input come from a file of their own.

// RUN: rm -rf %t && mkdir %t
// RUN: %python -c "import sys, numpy as np; from varlen import safetensors as s; \
// RUN:   [s.write(sys.argv[1] + '/' + n + '.safetensors', d) for n, d in { \
// RUN:     'one': {'x': np.float32([1, 2])}, 'two': {'x': np.float32([3]), 'w': np.float32([7])}, \
// RUN:     'weights': {'w': np.float32([10]), 'x': np.float32([0])}}.items()]" %t
// RUN: varlen-run %s %t/one.safetensors %t/two.safetensors --weights=%t/weights.safetensors \
// RUN:   -o %t/one.out -o %t/two.out
// RUN: %python %S/Inputs/print-tensors.py %t/one.out | FileCheck %s --check-prefix=ONE
// RUN: %python %S/Inputs/print-tensors.py %t/two.out | FileCheck %s --check-prefix=TWO
// What an input has counts.
// ONE: result0 float32 [2] [11.0, 12.0]
// TWO: result0 float32 [1] [10.0]

// RUN: varlen-run %s --weights=%t/weights.safetensors
// RUN: not varlen-run %s %t/one.safetensors --weights=%t/one.safetensors 2>&1 | FileCheck %s --check-prefix=MISSING
// RUN: not varlen-run %s %t/one.safetensors --weights=%t/none.safetensors 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not varlen-run %s %t/one.safetensors --weights=%t/weights.safetensors -o %t/weights.safetensors 2>&1 \
// RUN:   | FileCheck %s --check-prefix=SAME
// MISSING: error: {{.*}}one.safetensors: no tensor 'w' (F32 [1]), which the function expects; the file has 'x', {{.*}}one.safetensors has 'x'
// NONE: error: {{.*}}none.safetensors: {{.+}}
// SAME: error: -o: '{{.*}}' is --weights: expected another file
func.func @add(%x: tensor<?xf32> {varlen.name = "x"}, %w: tensor<1xf32> {varlen.name = "w"}) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %scalar = tensor.extract %w[%c0] : tensor<1xf32>
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  %empty = tensor.empty(%n) : tensor<?xf32>
  %y = linalg.map ins(%x : tensor<?xf32>) outs(%empty : tensor<?xf32>) (%a: f32, %old: f32) {
    %b = arith.addf %a, %scalar : f32
    linalg.yield %b : f32
  }
  return %y : tensor<?xf32>
}
