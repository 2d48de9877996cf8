// The same for bf16 with its dot product, and no library call to round.
// REQUIRES: x86
// RUN: varlen-opt %s --varlen-to-cpu=target=avx512_bf16 | mlir-translate --mlir-to-llvmir | opt -O2 | llc -O2 -o %t.s
// RUN: %python %S/Inputs/hot-loops.py --fma=20 <%t.s | FileCheck %s
// RUN: FileCheck %s --check-prefix=CALLS <%t.s

// CHECK: loop: {{[0-9]+}} products (vdpbf16ps zmm), {{[0-9]+}} instructions, 0 spills
// CHECK: loop: {{[0-9]+}} products (vdpbf16ps zmm), {{[0-9]+}} instructions, 0 spills
// CALLS-NOT: __truncsfbf2
func.func @bf16(%q: tensor<?x4x64xbf16>, %k: tensor<?x2x64xbf16>, %v: tensor<?x2x64xbf16>, %cu: tensor<?xi32>) -> tensor<?x4x64xbf16> {
  %out, %lse = varlen.attn %q, %k, %v, %cu, %cu
      : (tensor<?x4x64xbf16>, tensor<?x2x64xbf16>, tensor<?x2x64xbf16>, tensor<?xi32>, tensor<?xi32>)
      -> (tensor<?x4x64xbf16>, tensor<4x?xf32>)
  return %out : tensor<?x4x64xbf16>
}
