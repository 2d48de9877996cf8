// RUN: varlen-opt %s --varlen-mask-edges -canonicalize | FileCheck %s

#map = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (0, d1)>
#column = affine_map<(d0, d1) -> (d1)>
#pairs = affine_map<(d0, d1) -> (d0 floordiv 2, d1, d0 mod 2)>

// Rows before the granule where the last column begins, those that all columns see,
// without a mask, and those from the granule where the first column ends: none before
// and behind where nothing is hidden. A sum goes from one to the next.

// CHECK-LABEL: @mask
// CHECK-SAME: %[[S:[^:]*]]: tensor<?x16xf32>, %[[LO:[^:]*]]: tensor<1x16xi32>, %[[HI:[^:]*]]: tensor<1x16xi32>, %[[FIRST:[^:]*]]: i32, %[[WHOLE:[^:]*]]: i1
// CHECK: %[[TOTAL:.*]] = arith.index_cast %{{.*}} : index to i32
// CHECK: %[[LAST:.*]] = tensor.extract %[[LO]][%c0, %c15]
// CHECK: %[[ROW:.*]] = arith.subi %[[LAST]], %[[FIRST]] : i32
// CHECK: tensor.extract %[[HI]][%c0, %c0]
// CHECK: arith.select %[[WHOLE]], %c0_i32, %[[ROW]]
// CHECK: arith.select %[[WHOLE]], %[[TOTAL]]
// CHECK: %[[BEFORE:.*]] = tensor.extract_slice %[[S]][0, 0] [%[[BEGIN:.*]], 16] [1, 1]
// CHECK: %[[SUM:.*]]:2 = linalg.generic {{.*}} ins(%[[BEFORE]], %[[LO]], %[[HI]] : {{.*}}) outs(%{{.*}}, %{{.*}} : tensor<?x16xf32>, tensor<1x16xf32>)
// CHECK: tensor.insert_slice %[[SUM]]#0
// CHECK: tensor.extract_slice %[[S]][%[[BEGIN]], 0]
// CHECK: %[[NEXT:.*]]:2 = linalg.generic {{.*}} outs(%{{.*}}, %[[SUM]]#1 : tensor<?x16xf32>, tensor<1x16xf32>)
// CHECK-NOT: varlen.hide
// CHECK: tensor.insert_slice %[[NEXT]]#0
// CHECK: tensor.extract_slice %[[S]][%[[END:.*]], 0]
// CHECK: linalg.generic {{.*}} outs(%{{.*}}, %[[NEXT]]#1
// CHECK: %[[INDEX:.*]] = linalg.index 0
// CHECK: arith.addi %[[INDEX]], %[[END]]
// CHECK: tensor.insert_slice
func.func @mask(%s: tensor<?x16xf32>, %lo: tensor<1x16xi32>, %hi: tensor<1x16xi32>, %first: i32,
                %whole: i1, %e: tensor<?x16xf32>, %l: tensor<1x16xf32>) -> (tensor<?x16xf32>, tensor<1x16xf32>) {
  %HID = arith.constant 0.0 : f32
  %0:2 = linalg.generic {indexing_maps = [#map, #row, #row, #map, #row], iterator_types = ["reduction", "parallel"]}
      ins(%s, %lo, %hi : tensor<?x16xf32>, tensor<1x16xi32>, tensor<1x16xi32>)
      outs(%e, %l : tensor<?x16xf32>, tensor<1x16xf32>) {
  ^bb0(%x: f32, %a: i32, %b: i32, %old: f32, %sum: f32):
    %p = math.exp2 %x : f32
    %i = linalg.index 0 : index
    %y = varlen.hide %p with %HID at %i limits(%a, %b, %first) unless(%whole) : f32
    %next = arith.addf %sum, %y : f32
    linalg.yield %y, %next : f32, f32
  } -> (tensor<?x16xf32>, tensor<1x16xf32>)
  return %0#0, %0#1 : tensor<?x16xf32>, tensor<1x16xf32>
}

// Of pairs half as many rows. What only masks, in place, has nothing to do in the middle.

// CHECK-LABEL: @pairs
// CHECK: %[[HALF:.*]] = arith.divui %{{.*}}, %c2_i32
// CHECK: %[[SIZE:.*]] = arith.index_cast %[[HALF]]
// CHECK: tensor.extract_slice %{{.*}}[0, 0, 0] [%[[SIZE]], 16, 2]
// CHECK-COUNT-3: linalg.generic
// CHECK-LABEL: @in_place
// CHECK-COUNT-2: linalg.generic
// CHECK-NOT: linalg.generic
// CHECK: return
func.func @pairs(%s: tensor<?x16xf32>, %lo: tensor<1x16xi32>, %hi: tensor<1x16xi32>, %first: i32,
                 %e: tensor<?x16x2xbf16>) -> tensor<?x16x2xbf16> {
  %HID = arith.constant 0.0 : f32
  %0 = linalg.generic {indexing_maps = [#map, #row, #row, #pairs], iterator_types = ["parallel", "parallel"]}
      ins(%s, %lo, %hi : tensor<?x16xf32>, tensor<1x16xi32>, tensor<1x16xi32>) outs(%e : tensor<?x16x2xbf16>) {
  ^bb0(%x: f32, %a: i32, %b: i32, %old: bf16):
    %i = linalg.index 0 : index
    %y1 = varlen.hide %x with %HID at %i limits(%a, %b, %first) : f32
    %y = arith.truncf %y1 : f32 to bf16
    linalg.yield %y : bf16
  } -> tensor<?x16x2xbf16>
  return %0 : tensor<?x16x2xbf16>
}
func.func @in_place(%s: tensor<?x16xf32>, %lo: tensor<1x16xi32>, %hi: tensor<1x16xi32>, %first: i32) -> tensor<?x16xf32> {
  %HID = arith.constant 0.0 : f32
  %0 = linalg.generic {indexing_maps = [#row, #row, #map], iterator_types = ["parallel", "parallel"]}
      ins(%lo, %hi : tensor<1x16xi32>, tensor<1x16xi32>) outs(%s : tensor<?x16xf32>) {
  ^bb0(%a: i32, %b: i32, %x: f32):
    %i = linalg.index 0 : index
    %y1 = varlen.hide %x with %HID at %i limits(%a, %b, %first) : f32
    linalg.yield %y1 : f32
  } -> tensor<?x16xf32>
  return %0 : tensor<?x16xf32>
}

// Two tiles that the same limits hide: neither is masked in the middle.

// CHECK-LABEL: @two
// CHECK: linalg.generic
// CHECK-COUNT-2: varlen.hide
// CHECK: linalg.generic
// CHECK-NOT: varlen.hide
// CHECK: linalg.yield
// CHECK: linalg.generic
// CHECK-COUNT-2: varlen.hide
// CHECK: return
func.func @two(%s: tensor<?x16xf32>, %t: tensor<?x16xf32>, %lo: tensor<1x16xi32>, %hi: tensor<1x16xi32>,
               %first: i32, %p: tensor<?x16xf32>, %q: tensor<?x16xf32>) -> (tensor<?x16xf32>, tensor<?x16xf32>) {
  %HID = arith.constant 0.0 : f32
  %0:2 = linalg.generic {indexing_maps = [#map, #map, #row, #row, #map, #map], iterator_types = ["parallel", "parallel"]}
      ins(%s, %t, %lo, %hi : tensor<?x16xf32>, tensor<?x16xf32>, tensor<1x16xi32>, tensor<1x16xi32>)
      outs(%p, %q : tensor<?x16xf32>, tensor<?x16xf32>) {
  ^bb0(%x: f32, %y: f32, %a: i32, %b: i32, %old: f32, %before: f32):
    %i = linalg.index 0 : index
    %x1 = varlen.hide %x with %HID at %i limits(%a, %b, %first) : f32
    %z = arith.mulf %x1, %y : f32
    %y1 = varlen.hide %z with %HID at %i limits(%a, %b, %first) : f32
    linalg.yield %x1, %y1 : f32, f32
  } -> (tensor<?x16xf32>, tensor<?x16xf32>)
  return %0#0, %0#1 : tensor<?x16xf32>, tensor<?x16xf32>
}

// But different limits are left as they are.

// CHECK-LABEL: @other_limits
// CHECK-NOT: tensor.extract_slice
func.func @other_limits(%s: tensor<?x16xf32>, %lo: tensor<1x16xi32>, %hi: tensor<1x16xi32>, %first: i32,
                        %p: tensor<?x16xf32>, %q: tensor<?x16xf32>) -> (tensor<?x16xf32>, tensor<?x16xf32>) {
  %HID = arith.constant 0.0 : f32
  %0:2 = linalg.generic {indexing_maps = [#map, #row, #row, #map, #map], iterator_types = ["parallel", "parallel"]}
      ins(%s, %lo, %hi : tensor<?x16xf32>, tensor<1x16xi32>, tensor<1x16xi32>)
      outs(%p, %q : tensor<?x16xf32>, tensor<?x16xf32>) {
  ^bb0(%x: f32, %a: i32, %b: i32, %old: f32, %before: f32):
    %i = linalg.index 0 : index
    %x1 = varlen.hide %x with %HID at %i limits(%a, %b, %first) : f32
    %y1 = varlen.hide %x with %HID at %i limits(%b, %a, %first) : f32
    linalg.yield %x1, %y1 : f32, f32
  } -> (tensor<?x16xf32>, tensor<?x16xf32>)
  return %0#0, %0#1 : tensor<?x16xf32>, tensor<?x16xf32>
}

// Nor limits that are no row of a tile.

// CHECK-LABEL: @vectors
// CHECK-NOT: tensor.extract_slice
func.func @vectors(%s: tensor<?x16xf32>, %lo: tensor<16xi32>, %hi: tensor<16xi32>, %first: i32,
                   %e: tensor<?x16xf32>) -> tensor<?x16xf32> {
  %HID = arith.constant 0.0 : f32
  %0 = linalg.generic {indexing_maps = [#map, #column, #column, #map], iterator_types = ["parallel", "parallel"]}
      ins(%s, %lo, %hi : tensor<?x16xf32>, tensor<16xi32>, tensor<16xi32>) outs(%e : tensor<?x16xf32>) {
  ^bb0(%x: f32, %a: i32, %b: i32, %old: f32):
    %i = linalg.index 0 : index
    %y = varlen.hide %x with %HID at %i limits(%a, %b, %first) : f32
    linalg.yield %y : f32
  } -> tensor<?x16xf32>
  return %0 : tensor<?x16xf32>
}

// What is hidden depends on something other than the row.

// CHECK-LABEL: @no_key
// CHECK-NOT: tensor.extract_slice
func.func @no_key(%s: tensor<?x16xf32>, %lo: tensor<1x16xi32>, %hi: tensor<1x16xi32>,
                  %first: i32, %e: tensor<?x16xf32>) -> tensor<?x16xf32> {
  %zero = arith.constant 0.0 : f32
  %0 = linalg.generic {indexing_maps = [#map, #row, #row, #map], iterator_types = ["parallel", "parallel"]}
      ins(%s, %lo, %hi : tensor<?x16xf32>, tensor<1x16xi32>, tensor<1x16xi32>)
      outs(%e : tensor<?x16xf32>) {
  ^bb0(%x: f32, %a: i32, %b: i32, %old: f32):
    %i = linalg.index 1 : index
    %y = varlen.hide %x with %zero at %i limits(%a, %b, %first) : f32
    linalg.yield %y : f32
  } -> tensor<?x16xf32>
  return %0 : tensor<?x16xf32>
}
