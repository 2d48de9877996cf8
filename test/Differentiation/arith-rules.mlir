// RUN: varlen-opt %s \
// RUN:   --varlen-differentiate=function=addf \
// RUN:   --varlen-differentiate=function=subf \
// RUN:   --varlen-differentiate=function=mulf \
// RUN:   --varlen-differentiate=function=divf \
// RUN:   --varlen-differentiate=function=remf \
// RUN:   --varlen-differentiate=function=negf \
// RUN:   --varlen-differentiate=function=conversions \
// RUN:   --varlen-differentiate=function=select \
// RUN:   --varlen-differentiate=function=maximumf \
// RUN:   --varlen-differentiate=function=minnumf \
// RUN:   | FileCheck %s

// The cotangent itself.
// CHECK-LABEL: func.func @addf_vjp(
// CHECK-SAME: %[[X:.*]]: f32, %[[Y:.*]]: f32, %[[D:.*]]: f32) -> (f32, f32) {
// CHECK-NEXT: return %[[D]], %[[D]] : f32, f32
func.func @addf(%x: f32, %y: f32) -> f32 {
  %z = arith.addf %x, %y : f32
  return %z : f32
}

// Its negative for what is subtracted.
// CHECK-LABEL: func.func @subf_vjp(
// CHECK-SAME: %[[X:.*]]: f32, %[[Y:.*]]: f32, %[[D:.*]]: f32) -> (f32, f32) {
// CHECK-NEXT: %[[A:.*]] = arith.negf %[[D]] : f32
// CHECK-NEXT: return %[[D]], %[[A]] : f32, f32
func.func @subf(%x: f32, %y: f32) -> f32 {
  %z = arith.subf %x, %y : f32
  return %z : f32
}

// On vectors as on scalars.
// CHECK-LABEL: func.func @mulf_vjp(
// CHECK-SAME: %[[X:.*]]: vector<4xf32>, %[[Y:.*]]: vector<4xf32>, %[[D:.*]]: vector<4xf32>) -> (vector<4xf32>, vector<4xf32>) {
// CHECK-NEXT: %[[A:.*]] = arith.mulf %[[D]], %[[Y]] : vector<4xf32>
// CHECK-NEXT: %[[B:.*]] = arith.mulf %[[D]], %[[X]] : vector<4xf32>
// CHECK-NEXT: return %[[A]], %[[B]] : vector<4xf32>, vector<4xf32>
func.func @mulf(%x: vector<4xf32>, %y: vector<4xf32>) -> vector<4xf32> {
  %z = arith.mulf %x, %y : vector<4xf32>
  return %z : vector<4xf32>
}

// By the result: dy = -(dz / y) z.
// CHECK-LABEL: func.func @divf_vjp(
// CHECK-SAME: %[[X:.*]]: f32, %[[Y:.*]]: f32, %[[D:.*]]: f32) -> (f32, f32) {
// CHECK-NEXT: %[[A:.*]] = arith.divf %[[X]], %[[Y]] : f32
// CHECK-NEXT: %[[B:.*]] = arith.divf %[[D]], %[[Y]] : f32
// CHECK-NEXT: %[[C:.*]] = arith.mulf %[[B]], %[[A]] : f32
// CHECK-NEXT: %[[E:.*]] = arith.negf %[[C]] : f32
// CHECK-NEXT: return %[[B]], %[[E]] : f32, f32
func.func @divf(%x: f32, %y: f32) -> f32 {
  %z = arith.divf %x, %y : f32
  return %z : f32
}

// x - y trunc(x / y).
// CHECK-LABEL: func.func @remf_vjp(
// CHECK-SAME: %[[X:.*]]: f32, %[[Y:.*]]: f32, %[[D:.*]]: f32) -> (f32, f32) {
// CHECK-NEXT: %[[A:.*]] = arith.divf %[[X]], %[[Y]] : f32
// CHECK-NEXT: %[[B:.*]] = math.trunc %[[A]] : f32
// CHECK-NEXT: %[[C:.*]] = arith.mulf %[[D]], %[[B]] : f32
// CHECK-NEXT: %[[E:.*]] = arith.negf %[[C]] : f32
// CHECK-NEXT: return %[[D]], %[[E]] : f32, f32
func.func @remf(%x: f32, %y: f32) -> f32 {
  %z = arith.remf %x, %y : f32
  return %z : f32
}

// On tensors of any extent.
// CHECK-LABEL: func.func @negf_vjp(
// CHECK-SAME: %[[X:.*]]: tensor<?xf32>, %[[D:.*]]: tensor<?xf32>) -> tensor<?xf32> {
// CHECK-NEXT: %[[A:.*]] = arith.negf %[[D]] : tensor<?xf32>
// CHECK-NEXT: return %[[A]] : tensor<?xf32>
func.func @negf(%x: tensor<?xf32>) -> tensor<?xf32> {
  %y = arith.negf %x : tensor<?xf32>
  return %y : tensor<?xf32>
}

// Rounded as the value was.
// CHECK-LABEL: func.func @conversions_vjp(
// CHECK-SAME: %[[X:.*]]: f32, %[[D:.*]]: f32) -> f32 {
// CHECK-NEXT: %[[A:.*]] = arith.truncf %[[D]] : f32 to bf16
// CHECK-NEXT: %[[B:.*]] = arith.extf %[[A]] : bf16 to f32
// CHECK-NEXT: return %[[B]] : f32
func.func @conversions(%x: f32) -> f32 {
  %y = arith.truncf %x : f32 to bf16
  %z = arith.extf %y : bf16 to f32
  return %z : f32
}

// By selection, so that an infinite value that is not chosen does no harm.
// CHECK-LABEL: func.func @select_vjp(
// CHECK-SAME: %[[C:.*]]: i1, %[[X:.*]]: f32, %[[Y:.*]]: f32, %[[D:.*]]: f32) -> (f32, f32) {
// CHECK: %[[A:.*]] = arith.select %[[C]], %[[D]], %{{.*}} : f32
// CHECK-NEXT: %[[B:.*]] = arith.select %[[C]], %{{.*}}, %[[D]] : f32
// CHECK-NEXT: return %[[A]], %[[B]] : f32, f32
func.func @select(%c: i1, %x: f32, %y: f32) -> f32 {
  %z = arith.select %c, %x, %y : f32
  return %z : f32
}

// Equal ones get half each.
// CHECK-LABEL: func.func @maximumf_vjp(
// CHECK-SAME: %[[X:.*]]: f32, %[[Y:.*]]: f32, %[[D:.*]]: f32) -> (f32, f32) {
// CHECK: %[[A:.*]] = arith.mulf %[[D]], %{{.*}} : f32
// CHECK-NEXT: %[[B:.*]] = arith.cmpf oeq, %[[X]], %[[Y]] : f32
// CHECK-NEXT: %[[C:.*]] = arith.select %[[B]], %[[A]], %{{.*}} : f32
// CHECK-NEXT: %[[E:.*]] = arith.cmpf ogt, %[[X]], %[[Y]] : f32
// CHECK-NEXT: %[[F:.*]] = arith.select %[[E]], %[[D]], %[[C]] : f32
// CHECK-NEXT: %[[G:.*]] = arith.cmpf ogt, %[[Y]], %[[X]] : f32
// CHECK-NEXT: %[[H:.*]] = arith.select %[[G]], %[[D]], %[[C]] : f32
// CHECK-NEXT: return %[[F]], %[[H]] : f32, f32
func.func @maximumf(%x: f32, %y: f32) -> f32 {
  %z = arith.maximumf %x, %y : f32
  return %z : f32
}

// The same, with the operands swapped.
// CHECK-LABEL: func.func @minnumf_vjp(
// CHECK-SAME: %[[X:.*]]: f32, %[[Y:.*]]: f32, %[[D:.*]]: f32) -> (f32, f32) {
// CHECK: %[[A:.*]] = arith.mulf %[[D]], %{{.*}} : f32
// CHECK-NEXT: %[[B:.*]] = arith.cmpf oeq, %[[X]], %[[Y]] : f32
// CHECK-NEXT: %[[C:.*]] = arith.select %[[B]], %[[A]], %{{.*}} : f32
// CHECK-NEXT: %[[E:.*]] = arith.cmpf olt, %[[X]], %[[Y]] : f32
// CHECK-NEXT: %[[F:.*]] = arith.select %[[E]], %[[D]], %[[C]] : f32
// CHECK-NEXT: %[[G:.*]] = arith.cmpf olt, %[[Y]], %[[X]] : f32
// CHECK-NEXT: %[[H:.*]] = arith.select %[[G]], %[[D]], %[[C]] : f32
// CHECK-NEXT: return %[[F]], %[[H]] : f32, f32
func.func @minnumf(%x: f32, %y: f32) -> f32 {
  %z = arith.minnumf %x, %y : f32
  return %z : f32
}
