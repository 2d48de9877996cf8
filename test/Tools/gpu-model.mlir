// What a kernel of a user's own is made of, and how long it is predicted to take.

// REQUIRES: ptxas, nvdisasm, venv
// RUN: %python %varlen-src/benchmarks/gpu/model.py kernel %s --lengths=448,1280 | FileCheck %s
// RUN: not %python %varlen-src/benchmarks/gpu/model.py kernel %s --lengths=448 --queries=1,2 2>&1 | FileCheck %s --check-prefix=COUNTS
// RUN: not %python %varlen-src/benchmarks/gpu/model.py kernel %s --lengths=4x 2>&1 | FileCheck %s --check-prefix=NUMBER
// RUN: sed 's/{mask = .*>}/{mask = #varlen.mask<full>}/' %s > %t.mlir
// RUN: %python %varlen-src/benchmarks/gpu/model.py kernel %t.mlir --lengths=448,1280 | FileCheck %s --check-prefix=FULL
// RUN: not %python %varlen-src/benchmarks/gpu/model.py kernel %S/gpu-code.test --lengths=1 2>&1 | FileCheck %s --check-prefix=TEXT

// CHECK: attn: {{.*}}warps=12, rows=192, columns=96
// CHECK: whole cut
// CHECK-DAG: wgmma 14 14
// CHECK-DAG: exp2 50 50
// CHECK: instructions {{[34][0-9][0-9]}} {{[56][0-9][0-9]}}
// CHECK: cycles: products 781 781
// CHECK: cycles: simulated 1{{[0-9][0-9][0-9]}} 1{{[0-9][0-9][0-9]}}
// CHECK: lists {{.*}} us
// CHECK: predicted {{.*}} us

// FULL: predicted {{.*}} us

// COUNTS: expected as many --queries as --lengths, got 2 and 1
// NUMBER: expected lengths with commas, got '4x'
// TEXT: error:

func.func @attention(%q: tensor<?x16x128xbf16>, %k: tensor<?x4x128xbf16>, %v: tensor<?x4x128xbf16>,
                     %cu: tensor<?xi32>) -> (tensor<?x16x128xbf16>, tensor<16x?xf32>) {
  %out, %lse = varlen.attn %q, %k, %v, %cu, %cu {mask = #varlen.mask<causal>}
      : (tensor<?x16x128xbf16>, tensor<?x4x128xbf16>, tensor<?x4x128xbf16>, tensor<?xi32>, tensor<?xi32>)
      -> (tensor<?x16x128xbf16>, tensor<16x?xf32>)
  return %out, %lse : tensor<?x16x128xbf16>, tensor<16x?xf32>
}
