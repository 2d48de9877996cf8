// RUN: varlen-opt %s --varlen-expand-scores | FileCheck %s
// RUN: varlen-opt %s --varlen-expand-scores=keep-columns | FileCheck %s --check-prefix=KEEP

// CHECK-LABEL: @hide
// CHECK-SAME: (%[[X:.*]]: f32, %[[ZERO:.*]]: f32, %[[KEY:.*]]: index, %[[LO:.*]]: i32, %[[HI:.*]]: i32, %[[K0:.*]]: i32)
// CHECK: %[[I:.*]] = arith.index_cast %[[KEY]] : index to i32
// CHECK: %[[J:.*]] = arith.addi %[[I]], %[[K0]] : i32
// CHECK: %[[AFTER:.*]] = arith.cmpi sge, %[[J]], %[[LO]] : i32
// CHECK: %[[BEFORE:.*]] = arith.cmpi slt, %[[J]], %[[HI]] : i32
// CHECK: %[[B:.*]] = arith.select %[[BEFORE]], %[[X]], %[[ZERO]] : f32
// CHECK: %[[A:.*]] = arith.select %[[AFTER]], %[[B]], %[[ZERO]] : f32
// CHECK: return %[[A]]
func.func @hide(%x: f32, %zero: f32, %key: index, %lo: i32, %hi: i32, %k0: i32) -> f32 {
  %y = varlen.hide %x with %zero at %key limits(%lo, %hi, %k0) : f32
  return %y : f32
}

// Keys are numbered from 0.
// CHECK-LABEL: @open_on_the_left
// CHECK-SAME: (%[[X:.*]]: f32, %[[ZERO:.*]]: f32, %{{.*}}: index, %[[HI:.*]]: i32, %{{.*}}: i32)
// CHECK-NOT: arith.cmpi sge
// CHECK: %[[BEFORE:.*]] = arith.cmpi slt, %{{.*}}, %[[HI]] : i32
// CHECK: %[[Y:.*]] = arith.select %[[BEFORE]], %[[X]], %[[ZERO]] : f32
// CHECK-NEXT: return %[[Y]]
func.func @open_on_the_left(%x: f32, %zero: f32, %key: index, %hi: i32, %k0: i32) -> f32 {
  %first = arith.constant 0 : i32
  %y = varlen.hide %x with %zero at %key limits(%first, %hi, %k0) : f32
  return %y : f32
}

// CHECK-LABEL: @window
// CHECK: arith.cmpi sge
// CHECK: arith.cmpi slt
func.func @window(%x: f32, %zero: f32, %key: index, %hi: i32, %k0: i32) -> f32 {
  %second = arith.constant 1 : i32
  %y = varlen.hide %x with %zero at %key limits(%second, %hi, %k0) : f32
  return %y : f32
}

// CHECK-LABEL: @unless
// CHECK-SAME: (%[[X:[^:]*]]: f64, {{.*}}, %[[WHOLE:[^:]*]]: i1)
// CHECK: %[[A:.*]] = arith.select
// CHECK: %[[A:.*]] = arith.select
// CHECK: %[[Y:.*]] = arith.select %[[WHOLE]], %[[X]], %[[A]] : f64
// CHECK: return %[[Y]]
func.func @unless(%x: f64, %zero: f64, %key: index, %lo: i32, %hi: i32, %k0: i32, %whole: i1) -> f64 {
  %y = varlen.hide %x with %zero at %key limits(%lo, %hi, %k0) unless(%whole) : f64
  return %y : f64
}

// CHECK-LABEL: @weight
// CHECK-SAME: (%[[S:.*]]: f32, %[[C:.*]]: f32, %[[M:.*]]: f32)
// CHECK: %[[X:.*]] = math.fma %[[S]], %[[C]], %[[M]] : f32
// CHECK: %[[P:.*]] = math.exp2 %[[X]] {varlen.exp2_degree = 4 : i64} : f32
// CHECK: return %[[P]]
func.func @weight(%s: f32, %c: f32, %m: f32) -> f32 {
  %p = varlen.weight %s by %c plus %m {varlen.exp2_degree = 4 : i64} : f32
  return %p : f32
}

// kernel-distribute knows columns, but not rows.
// KEEP-LABEL: @axes
// KEEP: arith.cmpi
// KEEP-NOT: varlen.hide
// KEEP: linalg.yield
// KEEP: linalg.index 1
// KEEP: varlen.hide
// KEEP-NOT: arith.cmpi
// KEEP: return
func.func @axes(%s: tensor<64x64xf32>, %lo: i32, %hi: i32, %k0: i32) -> tensor<64x64xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x64xf32>
  %a = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m, n)>],
      iterator_types = ["parallel", "parallel"]} ins(%s : tensor<64x64xf32>) outs(%e : tensor<64x64xf32>) {
  ^bb0(%x: f32, %o: f32):
    %key = linalg.index 0 : index
    %y = varlen.hide %x with %zero at %key limits(%lo, %hi, %k0) : f32
    linalg.yield %y : f32
  } -> tensor<64x64xf32>
  %b = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m, n)>],
      iterator_types = ["parallel", "parallel"]} ins(%a : tensor<64x64xf32>) outs(%e : tensor<64x64xf32>) {
  ^bb0(%x: f32, %o: f32):
    %key = linalg.index 1 : index
    %y = varlen.hide %x with %zero at %key limits(%lo, %hi, %k0) : f32
    linalg.yield %y : f32
  } -> tensor<64x64xf32>
  return %b : tensor<64x64xf32>
}
