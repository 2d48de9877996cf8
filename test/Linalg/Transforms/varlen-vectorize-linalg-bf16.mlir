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

// Pairs in memory: a pair of the left factor in all lanes.
// CHECK-LABEL: func.func @packed
// CHECK: %[[B:.*]] = memref.collapse_shape %{{.*}} {{\[\[}}0], [1, 2]]
// CHECK: scf.for
// CHECK: vector.load %[[B]]{{.*}} : memref<128x64xbf16>, vector<32xbf16>
// CHECK: %[[PAIR:.*]] = vector.load %{{.*}} : memref<?x128x2xbf16>, vector<2xbf16>
// CHECK: %[[WORD:.*]] = vector.bitcast %[[PAIR]] : vector<2xbf16> to vector<1xi32>
// CHECK: vector.bitcast %{{.*}} : vector<16xi32> to vector<32xbf16>
// CHECK: x86vector.avx512.dot {{.*}} : vector<32xbf16> -> vector<16xf32>
// EXTEND-LABEL: func.func @packed
// EXTEND-NOT: x86vector
// EXTEND: return
func.func @packed(%a: memref<?x128x2xbf16>, %b: memref<128x32x2xbf16>, %c: memref<?x32xf32>) {
  linalg.contract indexing_maps = [affine_map<(m, n, h, p) -> (m, h, p)>, affine_map<(m, n, h, p) -> (h, n, p)>, affine_map<(m, n, h, p) -> (m, n)>]
      ins(%a, %b : memref<?x128x2xbf16>, memref<128x32x2xbf16>) outs(%c : memref<?x32xf32>)
  return
}

// Columns that are not there are not read.
// CHECK-LABEL: func.func @packed_columns
// CHECK: vector.create_mask %{{.*}} : vector<32xi1>
// CHECK: vector.maskedload {{.*}}, vector<32xi1>, vector<32xbf16> into vector<32xbf16>
func.func @packed_columns(%a: memref<?x128x2xbf16>, %b: memref<128x?x2xbf16>, %c: memref<?x?xf32>) {
  linalg.contract indexing_maps = [affine_map<(m, n, h, p) -> (m, h, p)>, affine_map<(m, n, h, p) -> (h, n, p)>, affine_map<(m, n, h, p) -> (m, n)>]
      ins(%a, %b : memref<?x128x2xbf16>, memref<128x?x2xbf16>) outs(%c : memref<?x?xf32>)
  return
}

// Rows where they are: two are interleaved, and an odd one with zeros.
// CHECK-LABEL: func.func @in_place
// CHECK-DAG: %[[ZERO:.*]] = arith.constant dense<0.000000e+00> : vector<16xbf16>
// CHECK: scf.for
// CHECK: %[[FIRST:.*]] = vector.load %{{.*}} : memref<37x16xbf16>, vector<16xbf16>
// CHECK: %[[SECOND:.*]] = vector.load %{{.*}} : memref<37x16xbf16>, vector<16xbf16>
// CHECK: vector.interleave %[[FIRST]], %[[SECOND]]
// CHECK: x86vector.avx512.dot
// CHECK: %[[LAST:.*]] = vector.load %{{.*}} : memref<37x16xbf16>, vector<16xbf16>
// CHECK: vector.interleave %[[LAST]], %[[ZERO]]
// CHECK: x86vector.avx512.dot
// EXTEND-LABEL: func.func @in_place
// EXTEND-NOT: vector.interleave
// EXTEND: return
func.func @in_place(%a: memref<2x37xbf16>, %b: memref<37x16xbf16>, %c: memref<2x16xf32>) {
  linalg.contract indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
      ins(%a, %b : memref<2x37xbf16>, memref<37x16xbf16>) outs(%c : memref<2x16xf32>)
  return
}

// Rows without a gap between them are no panels of pairs: a step takes two.
// CHECK-LABEL: func.func @in_place_without_gaps
// CHECK: scf.for %{{.*}} = %c0 to %c36 step %c2
// CHECK-NOT: scf.for
// CHECK: %[[LAST:.*]] = vector.load %{{.*}}[%c36, %c0] : memref<37x32xbf16>, vector<16xbf16>
// CHECK: vector.interleave %[[LAST]], %{{.*}}
// CHECK-NOT: scf.for
// CHECK: return
// EXTEND-LABEL: func.func @in_place_without_gaps
func.func @in_place_without_gaps(%a: memref<2x37xbf16>, %b: memref<37x32xbf16>, %c: memref<2x32xf32>) {
  linalg.contract indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
      ins(%a, %b : memref<2x37xbf16>, memref<37x32xbf16>) outs(%c : memref<2x32xf32>)
  return
}

// A copy of two rows to pairs, and the columns that are left over.
// CHECK-LABEL: func.func @rows_to_pairs
// CHECK: %[[PAIRS:.*]] = memref.collapse_shape %{{.*}} {{\[\[}}0], [1, 2]]
// CHECK: scf.for
// CHECK:   scf.for
// CHECK:     %[[PAIR:.*]] = vector.interleave %{{.*}}, %{{.*}} : vector<32xbf16> -> vector<64xbf16>
// CHECK:     vector.store %[[PAIR]], %[[PAIRS]]
// CHECK:   scf.for
// CHECK-COUNT-2: memref.store
func.func @rows_to_pairs(%x: memref<?x2x?xbf16>, %y: memref<?x?x2xbf16>) {
  linalg.generic {indexing_maps = [affine_map<(h, n, p) -> (h, p, n)>, affine_map<(h, n, p) -> (h, n, p)>],
                  iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x : memref<?x2x?xbf16>) outs(%y : memref<?x?x2xbf16>) {
  ^bb0(%a: bf16, %o: bf16):
    linalg.yield %a : bf16
  }
  return
}

// Pairs that stay together are transposed as elements of 32 bits, whatever the
// target makes of their products.
// CHECK-LABEL: func.func @pairs_transposed
// CHECK-SAME: %[[X:.*]]: memref<32x16x2xbf16>, %[[Y:.*]]: memref<16x32x2xbf16>
// CHECK: %[[FROM:.*]] = memref.collapse_shape %[[X]] {{\[\[}}0], [1, 2]]
// CHECK: %[[TO:.*]] = memref.collapse_shape %[[Y]] {{\[\[}}0], [1, 2]]
// CHECK: scf.for %[[J:.*]] = %c0 to %c32 step %c16
// CHECK: %[[ROW:.*]] = vector.load %[[FROM]][%[[J]], %{{.*}}] : memref<32x32xbf16>, vector<32xbf16>
// CHECK: vector.bitcast %[[ROW]] : vector<32xbf16> to vector<16xi32>
// CHECK-COUNT-64: vector.shuffle
// CHECK-NOT: vector.shuffle
// CHECK: %[[COLUMN:.*]] = vector.bitcast {{.*}} : vector<16xi32> to vector<32xbf16>
// CHECK: vector.store %[[COLUMN]], %[[TO]]
// EXTEND-LABEL: func.func @pairs_transposed
// EXTEND-COUNT-64: vector.shuffle
func.func @pairs_transposed(%x: memref<32x16x2xbf16>, %y: memref<16x32x2xbf16>) {
  linalg.generic {indexing_maps = [affine_map<(k, n, p) -> (n, k, p)>, affine_map<(k, n, p) -> (k, n, p)>],
                  iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x : memref<32x16x2xbf16>) outs(%y : memref<16x32x2xbf16>) {
  ^bb0(%a: bf16, %o: bf16):
    linalg.yield %a : bf16
  }
  return
}

// Pairs in the order of the contracted loop are words that are transposed, and an odd
// one ends with a zero.
// CHECK-LABEL: func.func @in_order
// CHECK-SAME: %[[A:.*]]: memref<1x65xbf16>, %[[B:.*]]: memref<32x65xbf16>
// CHECK-COUNT-16: vector.load %[[B]]{{.*}} vector<2xbf16>
// CHECK: vector.from_elements {{.*}} : vector<16xi32>
// CHECK-COUNT-16: vector.load %[[B]]{{.*}} vector<32xbf16>
// CHECK-COUNT-64: vector.shuffle {{.*}} vector<16xi32>
// CHECK-COUNT-16: x86vector.avx512.dot
// CHECK: vector.from_elements %{{.*}}, %cst{{.*}} : vector<2xbf16>
// CHECK: x86vector.avx512.dot
// EXTEND-LABEL: func.func @in_order
// EXTEND-COUNT-16: arith.extf {{.*}} : vector<16xbf16> to vector<16xf32>
func.func @in_order(%a: memref<1x65xbf16>, %b: memref<32x65xbf16>, %c: memref<1x32xf32>) {
  linalg.contract indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]
      ins(%a, %b : memref<1x65xbf16>, memref<32x65xbf16>) outs(%c : memref<1x32xf32>) {varlen.in_order}
  return
}

// Two rows at once become pairs; they are summed one after the other.
// CHECK-LABEL: @pairs_of_rows
// CHECK: scf.for %[[I:.*]] = %c0 to %{{.*}} step %c2
// CHECK: %[[EVEN:.*]] = arith.truncf %[[A:.*]] to_nearest_away
// CHECK: %[[SUM:.*]] = arith.addf %{{.*}}, %[[A]]
// CHECK: %[[ODD:.*]] = arith.truncf %[[B:.*]] to_nearest_away
// CHECK: arith.addf %[[SUM]], %[[B]]
// CHECK: %[[ROW:.*]] = arith.divui %[[I]], %c2
// CHECK: %[[PAIRS:.*]] = vector.interleave %[[EVEN]], %[[ODD]] : vector<32xbf16> -> vector<64xbf16>
// CHECK: vector.store %[[PAIRS]], %{{.*}}[%[[ROW]], %c0]
func.func @pairs_of_rows(%x: memref<?x32xf32>, %p: memref<?x32x2xbf16>, %s: memref<1x32xf32>) {
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i floordiv 2, j, i mod 2)>, affine_map<(i, j) -> (0, j)>],
      iterator_types = ["reduction", "parallel"]}
      ins(%x : memref<?x32xf32>) outs(%p, %s : memref<?x32x2xbf16>, memref<1x32xf32>) {
  ^bb0(%a: f32, %o: bf16, %sum: f32):
    %0 = arith.truncf %a to_nearest_away : f32 to bf16
    %1 = arith.addf %sum, %a : f32
    linalg.yield %0, %1 : bf16, f32
  }
  return
}
