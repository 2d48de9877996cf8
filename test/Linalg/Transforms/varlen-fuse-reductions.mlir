// RUN: varlen-opt %s --pass-pipeline='builtin.module(func.func(varlen-fuse-reductions))' | FileCheck %s
// RUN: varlen-opt %s --pass-pipeline='builtin.module(func.func(varlen-fuse-reductions),one-shot-bufferize{bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map},func.func(varlen-vectorize-linalg{target=avx512}))' | FileCheck %s --check-prefix=LOOPS

#ij = affine_map<(i, j) -> (i, j)>
#i = affine_map<(i, j) -> (i)>

// The elements are another result of the sum; they are stored as they are summed.

// CHECK-LABEL: @sum
// CHECK: %[[R:.*]]:2 = linalg.generic {{.*}}iterator_types = ["parallel", "reduction"]} ins(%arg0 : tensor<?x64xf32>) outs(%arg1, %arg2 : tensor<?x64xf32>, tensor<?xf32>)
// CHECK: arith.mulf
// CHECK: arith.addf
// CHECK-NOT: linalg.generic
// CHECK: return %[[R]]#0, %[[R]]#1
// LOOPS-LABEL: @sum
// LOOPS: scf.for
// LOOPS: %[[X:.*]] = arith.mulf
// LOOPS: arith.addf %{{.*}}, %[[X]]
// LOOPS: vector.store %[[X]]
// LOOPS-NOT: vector.load
// LOOPS-LABEL: @before
func.func @sum(%x: tensor<?x64xf32>, %e: tensor<?x64xf32>, %s: tensor<?xf32>) -> (tensor<?x64xf32>, tensor<?xf32>) {
  %0 = linalg.generic {indexing_maps = [#ij, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<?x64xf32>) outs(%e : tensor<?x64xf32>) {
  ^bb0(%a: f32, %o: f32):
    %2 = arith.mulf %a, %a : f32
    linalg.yield %2 : f32
  } -> tensor<?x64xf32>
  %1 = linalg.generic {indexing_maps = [#ij, #i], iterator_types = ["parallel", "reduction"]}
      ins(%0 : tensor<?x64xf32>) outs(%s : tensor<?xf32>) {
  ^bb0(%a: f32, %o: f32):
    %2 = arith.addf %o, %a : f32
    linalg.yield %2 : f32
  } -> tensor<?xf32>
  return %0, %1 : tensor<?x64xf32>, tensor<?xf32>
}

// What is made of elements before their sum is computed with both.

// CHECK-LABEL: @before
// CHECK: %[[R:.*]]:2 = linalg.generic
// CHECK: arith.mulf
// CHECK: arith.negf
// CHECK: arith.addf
// CHECK-NOT: linalg.generic
// CHECK: return %[[R]]#0, %[[R]]#1
func.func @before(%x: tensor<?x64xf32>, %e: tensor<?x64xf32>, %s: tensor<?xf32>) -> (tensor<?x64xf32>, tensor<?xf32>) {
  %0 = linalg.generic {indexing_maps = [#ij, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<?x64xf32>) outs(%e : tensor<?x64xf32>) {
  ^bb0(%a: f32, %o: f32):
    %3 = arith.mulf %a, %a : f32
    linalg.yield %3 : f32
  } -> tensor<?x64xf32>
  %1 = linalg.generic {indexing_maps = [#ij, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%0 : tensor<?x64xf32>) outs(%e : tensor<?x64xf32>) {
  ^bb0(%a: f32, %o: f32):
    %3 = arith.negf %a : f32
    linalg.yield %3 : f32
  } -> tensor<?x64xf32>
  %2 = linalg.generic {indexing_maps = [#ij, #i], iterator_types = ["parallel", "reduction"]}
      ins(%0 : tensor<?x64xf32>) outs(%s : tensor<?xf32>) {
  ^bb0(%a: f32, %o: f32):
    %3 = arith.addf %o, %a : f32
    linalg.yield %3 : f32
  } -> tensor<?xf32>
  return %1, %2 : tensor<?x64xf32>, tensor<?xf32>
}

// A function of libm, or a sum in a narrow float, would make scalar loops of both.

// CHECK-LABEL: @scalar
// CHECK-COUNT-4: linalg.generic
func.func @scalar(%x: tensor<?x64xf64>, %e: tensor<?x64xf64>, %s: tensor<?xf64>,
                  %x1: tensor<?x64xf16>, %e1: tensor<?x64xf16>, %s1: tensor<?xf16>) -> (tensor<?xf64>, tensor<?xf16>) {
  %0 = linalg.generic {indexing_maps = [#ij, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<?x64xf64>) outs(%e : tensor<?x64xf64>) {
  ^bb0(%a: f64, %o: f64):
    %4 = math.exp %a : f64
    linalg.yield %4 : f64
  } -> tensor<?x64xf64>
  %1 = linalg.generic {indexing_maps = [#ij, #i], iterator_types = ["parallel", "reduction"]}
      ins(%0 : tensor<?x64xf64>) outs(%s : tensor<?xf64>) {
  ^bb0(%a: f64, %o: f64):
    %4 = arith.addf %o, %a : f64
    linalg.yield %4 : f64
  } -> tensor<?xf64>
  %2 = linalg.generic {indexing_maps = [#ij, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%x1 : tensor<?x64xf16>) outs(%e1 : tensor<?x64xf16>) {
  ^bb0(%a: f16, %o: f16):
    %4 = arith.mulf %a, %a : f16
    linalg.yield %4 : f16
  } -> tensor<?x64xf16>
  %3 = linalg.generic {indexing_maps = [#ij, #i], iterator_types = ["parallel", "reduction"]}
      ins(%2 : tensor<?x64xf16>) outs(%s1 : tensor<?xf16>) {
  ^bb0(%a: f16, %o: f16):
    %4 = arith.addf %o, %a : f16
    linalg.yield %4 : f16
  } -> tensor<?xf16>
  return %1, %3 : tensor<?xf64>, tensor<?xf16>
}

// Pairs of rows and rounded elements are computed with the elements, once, and so is
// their sum: they have no other reader.

// CHECK-LABEL: @forms
// CHECK: linalg.generic {{.*}}iterator_types = ["reduction", "parallel"]} ins(%arg0 : tensor<?x32xf32>) outs(%{{.*}}, %{{.*}}, %{{.*}} : tensor<?x32x2xbf16>, tensor<?x32xbf16>, tensor<1x32xf32>)
// CHECK: arith.mulf
// CHECK: arith.truncf %{{.*}} to_nearest_away
// CHECK: arith.truncf %{{.*}} : f32 to bf16
// CHECK: arith.addf
// CHECK-NOT: linalg.generic
// CHECK: return
func.func @forms(%x: tensor<?x32xf32>, %e: tensor<?x32xf32>, %p: tensor<?x32x2xbf16>, %r: tensor<?x32xbf16>, %s: tensor<1x32xf32>)
    -> (tensor<?x32x2xbf16>, tensor<?x32xbf16>, tensor<1x32xf32>) {
  %0 = linalg.generic {indexing_maps = [#ij, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<?x32xf32>) outs(%e : tensor<?x32xf32>) {
  ^bb0(%a: f32, %o: f32):
    %4 = arith.mulf %a, %a : f32
    linalg.yield %4 : f32
  } -> tensor<?x32xf32>
  %1 = linalg.generic {indexing_maps = [#ij, affine_map<(i, j) -> (i floordiv 2, j, i mod 2)>], iterator_types = ["parallel", "parallel"]}
      ins(%0 : tensor<?x32xf32>) outs(%p : tensor<?x32x2xbf16>) {
  ^bb0(%a: f32, %o: bf16):
    %4 = arith.truncf %a to_nearest_away : f32 to bf16
    linalg.yield %4 : bf16
  } -> tensor<?x32x2xbf16>
  %2 = linalg.generic {indexing_maps = [#ij, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%0 : tensor<?x32xf32>) outs(%r : tensor<?x32xbf16>) {
  ^bb0(%a: f32, %o: bf16):
    %4 = arith.truncf %a : f32 to bf16
    linalg.yield %4 : bf16
  } -> tensor<?x32xbf16>
  %3 = linalg.generic {indexing_maps = [#ij, affine_map<(i, j) -> (0, j)>], iterator_types = ["reduction", "parallel"]}
      ins(%0 : tensor<?x32xf32>) outs(%s : tensor<1x32xf32>) {
  ^bb0(%a: f32, %o: f32):
    %4 = arith.addf %o, %a : f32
    linalg.yield %4 : f32
  } -> tensor<1x32xf32>
  return %1, %2, %3 : tensor<?x32x2xbf16>, tensor<?x32xbf16>, tensor<1x32xf32>
}

// A masked tile, and what is masked and made of it and of another one: one loop. The product
// that reads the first tile alone comes behind.

// CHECK-LABEL: @masked_twice
// CHECK: %[[DP:.*]] = linalg.matmul ins(%arg1, %arg2
// CHECK: %[[P:.*]]:2 = linalg.generic {{.*}} ins({{.*}}%[[DP]]
// CHECK: varlen.hide
// CHECK: arith.mulf
// CHECK: varlen.hide
// CHECK: %[[DV:.*]] = linalg.matmul ins(%[[P]]#0, %arg3
// CHECK-NOT: linalg.generic
// CHECK: return %[[P]]#1, %[[DV]]
func.func @masked_twice(%s: tensor<64x32xf32>, %k: tensor<64x8xf32>, %q: tensor<8x32xf32>,
                        %d: tensor<32x8xf32>, %m: tensor<1x32xi32>, %e: tensor<64x32xf32>, %f: tensor<64x8xf32>)
    -> (tensor<64x32xf32>, tensor<64x8xf32>) {
  %zero = arith.constant 0.0 : f32
  %p = linalg.generic {indexing_maps = [#ij, affine_map<(i, j) -> (0, j)>, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%s, %m : tensor<64x32xf32>, tensor<1x32xi32>) outs(%e : tensor<64x32xf32>) {
  ^bb0(%a: f32, %in: i32, %o: f32):
    %i = linalg.index 0 : index
    %0 = varlen.hide %a with %zero at %i limits(%in, %in, %in) : f32
    linalg.yield %0 : f32
  } -> tensor<64x32xf32>
  %dv = linalg.matmul ins(%p, %d : tensor<64x32xf32>, tensor<32x8xf32>) outs(%f : tensor<64x8xf32>) -> tensor<64x8xf32>
  %dp = linalg.matmul ins(%k, %q : tensor<64x8xf32>, tensor<8x32xf32>) outs(%e : tensor<64x32xf32>) -> tensor<64x32xf32>
  %ds = linalg.generic {indexing_maps = [#ij, #ij, affine_map<(i, j) -> (0, j)>, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%p, %dp, %m : tensor<64x32xf32>, tensor<64x32xf32>, tensor<1x32xi32>) outs(%e : tensor<64x32xf32>) {
  ^bb0(%a: f32, %b: f32, %in: i32, %o: f32):
    %0 = arith.mulf %a, %b : f32
    %i = linalg.index 0 : index
    %1 = varlen.hide %0 with %zero at %i limits(%in, %in, %in) : f32
    linalg.yield %1 : f32
  } -> tensor<64x32xf32>
  return %ds, %dv : tensor<64x32xf32>, tensor<64x8xf32>
}

// What is masked is reduced, too, before others are made of it: one loop computes all.

// CHECK-LABEL: @masked_twice_and_summed
// CHECK: %[[P:.*]]:2 = linalg.generic {{.*}} iterator_types = ["reduction", "parallel"]
// CHECK: math.exp2
// CHECK: varlen.hide
// CHECK: arith.mulf
// CHECK: varlen.hide
// CHECK: %[[SUM:.*]] = arith.addf
// CHECK: linalg.yield %{{.*}}, %[[SUM]]
// CHECK-NOT: linalg.generic
// CHECK: return %[[P]]#0, %[[P]]#1
func.func @masked_twice_and_summed(%s: tensor<64x32xf32>, %dp: tensor<64x32xf32>, %m: tensor<1x32xi32>,
                                   %e: tensor<64x32xf32>, %t: tensor<1x32xf32>)
    -> (tensor<64x32xf32>, tensor<1x32xf32>) {
  %zero = arith.constant 0.0 : f32
  %p = linalg.generic {indexing_maps = [#ij, affine_map<(i, j) -> (0, j)>, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%s, %m : tensor<64x32xf32>, tensor<1x32xi32>) outs(%e : tensor<64x32xf32>) {
  ^bb0(%a: f32, %in: i32, %o: f32):
    %0 = math.exp2 %a : f32
    %i = linalg.index 0 : index
    %1 = varlen.hide %0 with %zero at %i limits(%in, %in, %in) : f32
    linalg.yield %1 : f32
  } -> tensor<64x32xf32>
  %sum = linalg.generic {indexing_maps = [#ij, affine_map<(i, j) -> (0, j)>], iterator_types = ["reduction", "parallel"]}
      ins(%p : tensor<64x32xf32>) outs(%t : tensor<1x32xf32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = arith.addf %o, %a : f32
    linalg.yield %0 : f32
  } -> tensor<1x32xf32>
  %ds = linalg.generic {indexing_maps = [#ij, #ij, affine_map<(i, j) -> (0, j)>, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%p, %dp, %m : tensor<64x32xf32>, tensor<64x32xf32>, tensor<1x32xi32>) outs(%e : tensor<64x32xf32>) {
  ^bb0(%a: f32, %b: f32, %in: i32, %o: f32):
    %0 = arith.mulf %a, %b : f32
    %i = linalg.index 0 : index
    %1 = varlen.hide %0 with %zero at %i limits(%in, %in, %in) : f32
    linalg.yield %1 : f32
  } -> tensor<64x32xf32>
  return %ds, %sum : tensor<64x32xf32>, tensor<1x32xf32>
}

// All that leads to a masked tile: a score, its exponential, the mask.

// CHECK-LABEL: @chain
// CHECK: linalg.generic
// CHECK: arith.mulf
// CHECK: math.exp2
// CHECK: varlen.hide
// CHECK-NOT: linalg.generic
// CHECK: return
func.func @chain(%s: tensor<64x32xf32>, %m: tensor<1x32xi32>, %e: tensor<64x32xf32>) -> tensor<64x32xf32> {
  %zero = arith.constant 0.0 : f32
  %score = linalg.generic {indexing_maps = [#ij, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%s : tensor<64x32xf32>) outs(%e : tensor<64x32xf32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = arith.mulf %a, %a : f32
    linalg.yield %0 : f32
  } -> tensor<64x32xf32>
  %exp = linalg.generic {indexing_maps = [#ij, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%score : tensor<64x32xf32>) outs(%e : tensor<64x32xf32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = math.exp2 %a : f32
    linalg.yield %0 : f32
  } -> tensor<64x32xf32>
  %p = linalg.generic {indexing_maps = [#ij, affine_map<(i, j) -> (0, j)>, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%exp, %m : tensor<64x32xf32>, tensor<1x32xi32>) outs(%e : tensor<64x32xf32>) {
  ^bb0(%a: f32, %in: i32, %o: f32):
    %i = linalg.index 0 : index
    %0 = varlen.hide %a with %zero at %i limits(%in, %in, %in) : f32
    linalg.yield %0 : f32
  } -> tensor<64x32xf32>
  return %p : tensor<64x32xf32>
}

// Without loops there is nothing to reduce or to round by rows.

// CHECK-LABEL: @rank_0
// CHECK: math.exp
// CHECK: arith.truncf
// LOOPS-LABEL: @rank_0
// LOOPS: math.exp
// LOOPS: memref.store
func.func @rank_0(%x: tensor<f32>, %o: tensor<f32>, %p: tensor<bf16>) -> tensor<bf16> {
  %e = linalg.generic {indexing_maps = [affine_map<() -> ()>, affine_map<() -> ()>], iterator_types = []}
      ins(%x : tensor<f32>) outs(%o : tensor<f32>) {
  ^bb0(%a: f32, %b: f32):
    %0 = math.exp %a : f32
    linalg.yield %0 : f32
  } -> tensor<f32>
  %r = linalg.generic {indexing_maps = [affine_map<() -> ()>, affine_map<() -> ()>], iterator_types = []}
      ins(%e : tensor<f32>) outs(%p : tensor<bf16>) {
  ^bb0(%a: f32, %b: bf16):
    %0 = arith.truncf %a : f32 to bf16
    linalg.yield %0 : bf16
  } -> tensor<bf16>
  return %r : tensor<bf16>
}
