// RUN: varlen-opt %s --varlen-vectorize-linalg=target=avx512_bf16 --canonicalize --cse | FileCheck %s
// RUN: varlen-opt %s --varlen-vectorize-linalg=target=avx512 --canonicalize --cse | FileCheck %s --check-prefix=EXTEND

// Pairs that are neighbours in memory are what the dot product instruction takes.
// CHECK-LABEL: func.func @pairs
// CHECK: vector.load %{{.*}} : memref<?x64xbf16>, vector<32xbf16>
// CHECK-COUNT-16: x86vector.avx512.dot {{.*}} : vector<32xbf16> -> vector<16xf32>
// EXTEND-LABEL: func.func @pairs
// EXTEND: arith.extf {{.*}} : vector<16xbf16> to vector<16xf32>
// EXTEND-COUNT-16: vector.fma
func.func @pairs(%a: memref<?x64xbf16>, %b: memref<?x64xbf16>, %c: memref<?x?xf32>) {
  linalg.contract indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (j, k)>, affine_map<(i, j, k) -> (i, j)>]
      ins(%a, %b : memref<?x64xbf16>, memref<?x64xbf16>) outs(%c : memref<?x?xf32>)
  return
}
