// What AVX-512 code looks like where it cannot run: the loops that do the work
// use the widest registers and spill none of them.
// REQUIRES: x86
// RUN: varlen-opt %s --varlen-to-cpu=target=avx512 | mlir-translate --mlir-to-llvmir | opt -O2 | llc -O2 \
// RUN:   | %python %S/Inputs/hot-loops.py --fma=24 | FileCheck %s

// A block of keys against the packed queries, and of probabilities against the
// values: 8 x 2 accumulators, maybe unrolled.
// CHECK-NOT: {{[1-9][0-9]* spills|[xy]mm}}
// CHECK: loop: {{32|64}} products (vfmadd zmm), {{[0-9]+}} instructions, 0 spills
// CHECK-NOT: {{[1-9][0-9]* spills|[xy]mm}}
// CHECK: loop: {{32|64}} products (vfmadd zmm), {{[0-9]+}} instructions, 0 spills
// CHECK-NOT: {{[1-9][0-9]* spills|[xy]mm}}
func.func @f32(%q: tensor<?x4x64xf32>, %k: tensor<?x2x64xf32>, %v: tensor<?x2x64xf32>, %cu: tensor<?xi32>) -> tensor<?x4x64xf32> {
  %out, %lse = varlen.attn %q, %k, %v, %cu, %cu
      : (tensor<?x4x64xf32>, tensor<?x2x64xf32>, tensor<?x2x64xf32>, tensor<?xi32>, tensor<?xi32>)
      -> (tensor<?x4x64xf32>, tensor<4x?xf32>)
  return %out : tensor<?x4x64xf32>
}
