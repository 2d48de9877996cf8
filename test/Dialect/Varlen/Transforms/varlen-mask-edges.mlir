// RUN: varlen-opt %s --varlen-mask-edges -canonicalize | FileCheck %s

#map = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (0, d1)>
#column = affine_map<(d0, d1) -> (d0, 0)>

// Rows before the one where the last column begins, and from the one where the first
// column ends: none where nothing is hidden.

// CHECK-LABEL: @mask
// CHECK-SAME: %[[S:[^:]*]]: tensor<?x16xf32>, %[[LO:[^:]*]]: tensor<1x16xi32>, %[[HI:[^:]*]]: tensor<1x16xi32>, %[[FIRST:[^:]*]]: i32, %[[WHOLE:[^:]*]]: i1
// CHECK: %[[TOTAL:.*]] = arith.index_cast %{{.*}} : index to i32
// CHECK: %[[LAST:.*]] = tensor.extract %[[LO]][%c0, %c15]
// CHECK: %[[ROW:.*]] = arith.subi %[[LAST]], %[[FIRST]] : i32
// CHECK: arith.select %[[WHOLE]], %c0_i32, %[[ROW]]
// CHECK: tensor.extract %[[HI]][%c0, %c0]
// CHECK: arith.select %[[WHOLE]], %[[TOTAL]]
// CHECK: %[[BEFORE:.*]] = tensor.extract_slice %[[S]][0, 0] [%[[BEGIN:.*]], 16] [1, 1]
// CHECK: linalg.generic {{.*}} ins(%[[BEFORE]], %[[LO]], %[[HI]] : {{.*}}) outs(%[[BEFORE]]
// CHECK-NOT: varlen.band
// CHECK: tensor.insert_slice
// CHECK: %[[BEHIND:.*]] = tensor.extract_slice %{{.*}}[%[[END:.*]], 0]
// CHECK: linalg.generic {{.*}} outs(%[[BEHIND]]
// CHECK: %[[INDEX:.*]] = linalg.index 0
// CHECK: arith.addi %[[INDEX]], %[[END]]
// CHECK: tensor.insert_slice
func.func @mask(%s: tensor<?x16xf32>, %lo: tensor<1x16xi32>, %hi: tensor<1x16xi32>, %first: i32,
                %whole: i1, %e: tensor<?x16xf32>) -> tensor<?x16xf32> {
  %true = arith.constant true
  %HID = arith.constant 0xFF800000 : f32
  %0 = linalg.generic {indexing_maps = [#map, #row, #row, #map], iterator_types = ["parallel", "parallel"]}
      ins(%s, %lo, %hi : tensor<?x16xf32>, tensor<1x16xi32>, tensor<1x16xi32>)
      outs(%e : tensor<?x16xf32>) attrs = {varlen.band} {
  ^bb0(%x: f32, %a: i32, %b: i32, %old: f32):
    %i = linalg.index 0 : index
    %j = arith.index_cast %i : index to i32
    %key = arith.addi %j, %first : i32
    %ge = arith.cmpi sge, %key, %a : i32
    %lt = arith.cmpi slt, %key, %b : i32
    %in = arith.andi %ge, %lt : i1
    %seen = arith.select %whole, %true, %in : i1
    %y = arith.select %seen, %x, %HID : f32
    linalg.yield %y : f32
  } -> tensor<?x16xf32>
  return %0 : tensor<?x16xf32>
}

// Nothing says which rows these are.

// CHECK-LABEL: @no_key
// CHECK-NOT: tensor.extract_slice
func.func @no_key(%s: tensor<?x16xf32>, %lo: tensor<1x16xi32>, %hi: tensor<1x16xi32>,
                  %e: tensor<?x16xf32>) -> tensor<?x16xf32> {
  %zero = arith.constant 0.0 : f32
  %0 = linalg.generic {indexing_maps = [#map, #row, #row, #map], iterator_types = ["parallel", "parallel"]}
      ins(%s, %lo, %hi : tensor<?x16xf32>, tensor<1x16xi32>, tensor<1x16xi32>)
      outs(%e : tensor<?x16xf32>) attrs = {varlen.band} {
  ^bb0(%x: f32, %a: i32, %b: i32, %old: f32):
    %in = arith.cmpi slt, %a, %b : i32
    %y = arith.select %in, %x, %zero : f32
    linalg.yield %y : f32
  } -> tensor<?x16xf32>
  return %0 : tensor<?x16xf32>
}
