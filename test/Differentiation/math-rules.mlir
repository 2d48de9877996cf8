// RUN: varlen-opt %s \
// RUN:   --varlen-differentiate=function=exp \
// RUN:   --varlen-differentiate=function=exp2 \
// RUN:   --varlen-differentiate=function=log1p \
// RUN:   --varlen-differentiate=function=rsqrt \
// RUN:   --varlen-differentiate=function=tanh \
// RUN:   --varlen-differentiate=function=erf \
// RUN:   --varlen-differentiate=function=absf \
// RUN:   --varlen-differentiate=function=floor \
// RUN:   --varlen-differentiate=function=fma \
// RUN:   --varlen-differentiate=function=powf \
// RUN:   --varlen-differentiate=function=copysign \
// RUN:   | FileCheck %s

// The result is the slope.
// CHECK-LABEL: func.func @exp_vjp(
// CHECK-SAME: %[[X:.*]]: f32, %[[D:.*]]: f32) -> f32 {
// CHECK-NEXT: %[[A:.*]] = math.exp %[[X]] : f32
// CHECK-NEXT: %[[B:.*]] = arith.mulf %[[D]], %[[A]] : f32
// CHECK-NEXT: return %[[B]] : f32
func.func @exp(%x: f32) -> f32 {
  %y = math.exp %x : f32
  return %y : f32
}

// Times log(2).
// CHECK-LABEL: func.func @exp2_vjp(
// CHECK-SAME: %[[X:.*]]: f32, %[[D:.*]]: f32) -> f32 {
// CHECK: %[[A:.*]] = math.exp2 %[[X]] : f32
// CHECK-NEXT: %[[B:.*]] = arith.mulf %[[A]], %{{.*}} : f32
// CHECK-NEXT: %[[C:.*]] = arith.mulf %[[D]], %[[B]] : f32
// CHECK-NEXT: return %[[C]] : f32
func.func @exp2(%x: f32) -> f32 {
  %y = math.exp2 %x : f32
  return %y : f32
}

// 1 / (1 + x).
// CHECK-LABEL: func.func @log1p_vjp(
// CHECK-SAME: %[[X:.*]]: f32, %[[D:.*]]: f32) -> f32 {
// CHECK: %[[A:.*]] = arith.addf %[[X]], %{{.*}} : f32
// CHECK-NEXT: %[[B:.*]] = arith.divf %{{.*}}, %[[A]] : f32
// CHECK-NEXT: %[[C:.*]] = arith.mulf %[[D]], %[[B]] : f32
// CHECK-NEXT: return %[[C]] : f32
func.func @log1p(%x: f32) -> f32 {
  %y = math.log1p %x : f32
  return %y : f32
}

// -1/2 y / x.
// CHECK-LABEL: func.func @rsqrt_vjp(
// CHECK-SAME: %[[X:.*]]: f32, %[[D:.*]]: f32) -> f32 {
// CHECK: %[[A:.*]] = math.rsqrt %[[X]] : f32
// CHECK-NEXT: %[[B:.*]] = arith.divf %[[A]], %[[X]] : f32
// CHECK-NEXT: %[[C:.*]] = arith.mulf %[[B]], %{{.*}} : f32
// CHECK-NEXT: %[[E:.*]] = arith.mulf %[[D]], %[[C]] : f32
// CHECK-NEXT: return %[[E]] : f32
func.func @rsqrt(%x: f32) -> f32 {
  %y = math.rsqrt %x : f32
  return %y : f32
}

// 1 - y^2, with constants of any shape.
// CHECK-LABEL: func.func @tanh_vjp(
// CHECK-SAME: %[[X:.*]]: tensor<?x4xf32>, %[[D:.*]]: tensor<?x4xf32>) -> tensor<?x4xf32> {
// CHECK: %[[A:.*]] = math.tanh %[[X]] : tensor<?x4xf32>
// CHECK: %[[B:.*]] = linalg.fill ins(%{{.*}} : f32) outs(%{{.*}} : tensor<?x4xf32>) -> tensor<?x4xf32>
// CHECK-NEXT: %[[C:.*]] = arith.mulf %[[A]], %[[A]] : tensor<?x4xf32>
// CHECK-NEXT: %[[E:.*]] = arith.subf %[[B]], %[[C]] : tensor<?x4xf32>
// CHECK-NEXT: %[[F:.*]] = arith.mulf %[[D]], %[[E]] : tensor<?x4xf32>
// CHECK-NEXT: return %[[F]] : tensor<?x4xf32>
func.func @tanh(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %y = math.tanh %x : tensor<?x4xf32>
  return %y : tensor<?x4xf32>
}

// 2 / sqrt(pi) exp(-x^2).
// CHECK-LABEL: func.func @erf_vjp(
// CHECK-SAME: %[[X:.*]]: f32, %[[D:.*]]: f32) -> f32 {
// CHECK: %[[A:.*]] = arith.mulf %[[X]], %[[X]] : f32
// CHECK-NEXT: %[[B:.*]] = arith.negf %[[A]] : f32
// CHECK-NEXT: %[[C:.*]] = math.exp %[[B]] : f32
// CHECK-NEXT: %[[E:.*]] = arith.mulf %[[C]], %{{.*}} : f32
// CHECK-NEXT: %[[F:.*]] = arith.mulf %[[D]], %[[E]] : f32
// CHECK-NEXT: return %[[F]] : f32
func.func @erf(%x: f32) -> f32 {
  %y = math.erf %x : f32
  return %y : f32
}

// 0 at 0.
// CHECK-LABEL: func.func @absf_vjp(
// CHECK-SAME: %[[X:.*]]: f32, %[[D:.*]]: f32) -> f32 {
// CHECK: %[[A:.*]] = arith.cmpf olt, %[[X]], %{{.*}} : f32
// CHECK-NEXT: %[[B:.*]] = arith.cmpf ogt, %[[X]], %{{.*}} : f32
// CHECK-NEXT: %[[C:.*]] = arith.select %[[A]], %{{.*}}, %{{.*}} : f32
// CHECK-NEXT: %[[E:.*]] = arith.select %[[B]], %{{.*}}, %[[C]] : f32
// CHECK-NEXT: %[[F:.*]] = arith.mulf %[[D]], %[[E]] : f32
// CHECK-NEXT: return %[[F]] : f32
func.func @absf(%x: f32) -> f32 {
  %y = math.absf %x : f32
  return %y : f32
}

// A step has the slope 0.
// CHECK-LABEL: func.func @floor_vjp(
// CHECK-SAME: %[[X:.*]]: f32, %[[D:.*]]: f32) -> f32 {
// CHECK: return %{{.*}} : f32
func.func @floor(%x: f32) -> f32 {
  %y = math.floor %x : f32
  return %y : f32
}

// A product and a sum.
// CHECK-LABEL: func.func @fma_vjp(
// CHECK-SAME: %[[A:.*]]: f32, %[[B:.*]]: f32, %[[C:.*]]: f32, %[[D:.*]]: f32) -> (f32, f32, f32) {
// CHECK-NEXT: %[[E:.*]] = arith.mulf %[[D]], %[[B]] : f32
// CHECK-NEXT: %[[F:.*]] = arith.mulf %[[D]], %[[A]] : f32
// CHECK-NEXT: return %[[E]], %[[F]], %[[D]] : f32, f32, f32
func.func @fma(%a: f32, %b: f32, %c: f32) -> f32 {
  %y = math.fma %a, %b, %c : f32
  return %y : f32
}

// 0 where a factor is 0, whatever the other is.
// CHECK-LABEL: func.func @powf_vjp(
// CHECK-SAME: %[[X:.*]]: f32, %[[Y:.*]]: f32, %[[D:.*]]: f32) -> (f32, f32) {
// CHECK: %[[A:.*]] = math.powf %[[X]], %[[Y]] : f32
// CHECK-NEXT: %[[B:.*]] = arith.subf %[[Y]], %{{.*}} : f32
// CHECK-NEXT: %[[C:.*]] = math.powf %[[X]], %[[B]] : f32
// CHECK-NEXT: %[[F:.*]] = arith.mulf %[[Y]], %[[C]] : f32
// CHECK-NEXT: %[[E:.*]] = arith.cmpf oeq, %[[Y]], %{{.*}} : f32
// CHECK-NEXT: %[[G:.*]] = arith.select %[[E]], %{{.*}}, %[[F]] : f32
// CHECK-NEXT: %[[L:.*]] = arith.mulf %[[D]], %[[G]] : f32
// CHECK-NEXT: %[[H:.*]] = math.log %[[X]] : f32
// CHECK-NEXT: %[[J:.*]] = arith.mulf %[[A]], %[[H]] : f32
// CHECK-NEXT: %[[I:.*]] = arith.cmpf oeq, %[[X]], %{{.*}} : f32
// CHECK-NEXT: %[[K:.*]] = arith.select %[[I]], %{{.*}}, %[[J]] : f32
// CHECK-NEXT: %[[M:.*]] = arith.mulf %[[D]], %[[K]] : f32
// CHECK-NEXT: return %[[L]], %[[M]] : f32, f32
func.func @powf(%x: f32, %y: f32) -> f32 {
  %z = math.powf %x, %y : f32
  return %z : f32
}

// The sign is a step.
// CHECK-LABEL: func.func @copysign_vjp(
// CHECK-SAME: %[[X:.*]]: f32, %[[Y:.*]]: f32, %[[D:.*]]: f32) -> (f32, f32) {
// CHECK: %[[A:.*]] = math.copysign %{{.*}}, %[[X]] : f32
// CHECK-NEXT: %[[B:.*]] = math.copysign %{{.*}}, %[[Y]] : f32
// CHECK-NEXT: %[[C:.*]] = arith.mulf %[[A]], %[[B]] : f32
// CHECK-NEXT: %[[E:.*]] = arith.mulf %[[D]], %[[C]] : f32
// CHECK-NEXT: return %[[E]], %{{.*}} : f32, f32
func.func @copysign(%x: f32, %y: f32) -> f32 {
  %z = math.copysign %x, %y : f32
  return %z : f32
}
