// RUN: varlen-opt %s --varlen-differentiate="function=f wrt=1" | FileCheck %s
// RUN: varlen-opt %s --varlen-differentiate="function=names wrt=y results=p,2" | FileCheck %s --check-prefix=NAMES
// RUN: varlen-opt %s --varlen-differentiate="function=names wrt=y,0 with-results" | FileCheck %s --check-prefix=RESULTS
// RUN: varlen-opt %s --varlen-differentiate="function=fan_out" | FileCheck %s --check-prefix=FAN
// RUN: varlen-opt %s --varlen-differentiate="function=active results=0" | FileCheck %s --check-prefix=ACTIVE
// RUN: varlen-opt %s --varlen-differentiate="function=saved residuals=save" | FileCheck %s --check-prefix=SAVED
// RUN: varlen-opt %s --varlen-differentiate="function=declared" | FileCheck %s --check-prefix=DECLARED
// RUN: varlen-opt %s --varlen-differentiate="function=fan_out" --varlen-differentiate="function=fan_out_vjp wrt=0" \
// RUN:   | FileCheck %s --check-prefix=SECOND
// RUN: varlen-opt %s --varlen-differentiate="function=reads" | FileCheck %s --check-prefix=MEMORY

// The example of the pass documentation. @f stays.
// CHECK-LABEL: func.func @f(
// CHECK: math.sin
// CHECK-LABEL: func.func @f_vjp(
// CHECK-SAME: %[[X:.*]]: tensor<?xf32>, %[[W:.*]]: tensor<?xf32>, %[[DZ:.*]]: tensor<?xf32>) -> tensor<?xf32> {
// CHECK-NEXT: %[[Y:.*]] = arith.mulf %[[X]], %[[W]]
// CHECK-NEXT: %[[SLOPE:.*]] = math.cos %[[Y]]
// CHECK-NEXT: %[[DY:.*]] = arith.mulf %[[DZ]], %[[SLOPE]]
// CHECK-NEXT: %[[DW:.*]] = arith.mulf %[[DY]], %[[X]]
// CHECK-NEXT: return %[[DW]]
func.func @f(%x: tensor<?xf32>, %w: tensor<?xf32>) -> tensor<?xf32> {
  %y = arith.mulf %x, %w : tensor<?xf32>
  %z = math.sin %y : tensor<?xf32>
  return %z : tensor<?xf32>
}

// Arguments and results by name and by number; names of cotangents.
// NAMES: func.func @names_vjp(
// NAMES-SAME: %[[X:.*]]: f32 {varlen.name = "x"}, %{{.*}}: i32, %{{.*}}: f32 {varlen.name = "y"},
// NAMES-SAME: %[[DP:.*]]: f32 {varlen.name = "dp"}, %[[DQ:.*]]: f32 {varlen.name = "dq"}) -> (f32 {varlen.name = "dy"}) {
// NAMES-NEXT: %[[A:.*]] = arith.mulf %[[DP]], %[[X]]
// NAMES-NEXT: %[[B:.*]] = arith.addf %[[DQ]], %[[A]]
// NAMES-NEXT: return %[[B]]

// The results of the function first, then cotangents in the order of wrt.
// RESULTS: func.func @names_vjp(
// RESULTS-SAME: -> (i32, f32 {varlen.name = "p"}, f32 {varlen.name = "q"}, f32 {varlen.name = "dy"}, f32 {varlen.name = "dx"}) {
func.func @names(%x: f32 {varlen.name = "x"}, %n: i32, %y: f32 {varlen.name = "y"})
    -> (i32, f32 {varlen.name = "p"}, f32 {varlen.name = "q"}) {
  %p = arith.mulf %x, %y : f32
  %q = arith.addf %x, %y : f32
  return %n, %p, %q : i32, f32, f32
}

// Three uses, three terms.
// FAN: func.func @fan_out_vjp(%[[X:.*]]: f32, %[[DZ:.*]]: f32) -> f32 {
// FAN-NEXT: %[[Y:.*]] = arith.addf %[[X]], %[[X]]
// FAN-NEXT: %[[DY:.*]] = arith.mulf %[[DZ]], %[[X]]
// FAN-NEXT: %[[A:.*]] = arith.mulf %[[DZ]], %[[Y]]
// FAN-NEXT: %[[B:.*]] = arith.addf %[[A]], %[[DY]]
// FAN-NEXT: %[[C:.*]] = arith.addf %[[B]], %[[DY]]
// FAN-NEXT: return %[[C]]

// z = 2 x^2: the derivative of dz * 4 x by x.
// SECOND: func.func @fan_out_vjp_vjp(%{{.*}}: f32, %[[DZ:.*]]: f32, %[[D:.*]]: f32) -> f32 {
// SECOND-NOT: math
// SECOND: return
func.func @fan_out(%x: f32) -> f32 {
  %y = arith.addf %x, %x : f32
  %z = arith.mulf %y, %x : f32
  return %z : f32
}

// What is not between the chosen ones needs no rule (math.ctpop has none) and is
// not computed; what does not depend on an argument has the cotangent 0.
// ACTIVE: func.func @active_vjp(%[[X:.*]]: tensor<?x4xf32>, %[[Y:.*]]: f32, %{{.*}}: i32, %[[DS:.*]]: f32)
// ACTIVE-NOT: math.ctpop
// ACTIVE-NOT: math.exp
// ACTIVE: %[[COS:.*]] = math.cos %[[Y]]
// ACTIVE: %[[DY:.*]] = arith.mulf %{{.*}}, %[[COS]]
// ACTIVE: %[[DX:.*]] = linalg.fill
// ACTIVE: return %[[DX]], %[[DY]] : tensor<?x4xf32>, f32
func.func @active(%x: tensor<?x4xf32>, %y: f32, %n: i32) -> (f32, f32, i32) {
  %z = math.sin %y : f32
  %e = math.exp %z : f32
  %c0 = arith.constant 0 : index
  %d = tensor.dim %x, %c0 : tensor<?x4xf32>
  %i = arith.index_cast %d : index to i32
  %r = arith.sitofp %i : i32 to f32
  %s = arith.mulf %r, %z : f32
  %m = math.ctpop %n : i32
  return %s, %e, %m : f32, f32, i32
}

// The exponential is saved; the constant, the sizes and the slice of an argument
// are not.
// SAVED: func.func @saved_fwd(
// SAVED-SAME: -> (tensor<?xf32>, tensor<?xf32> {varlen.name = "residual0"})
// SAVED: %[[E:.*]] = math.exp
// SAVED: return %{{.*}}, %[[E]]
// SAVED: func.func @saved_vjp(
// SAVED-SAME: %{{.*}}: tensor<?xf32>, %[[W:.*]]: tensor<1xf32>, %[[R:.*]]: tensor<?xf32> {varlen.name = "residual0"}, %[[DY:.*]]: tensor<?xf32>)
// SAVED-NOT: math.exp
// SAVED: arith.mulf %{{.*}}, %[[R]]
// SAVED: return
func.func @saved(%x: tensor<?xf32>, %w: tensor<1xf32>) -> tensor<?xf32> {
  %half = arith.constant dense<0.5> : tensor<1xf32>
  %z = math.exp %x : tensor<?xf32>
  %s = tensor.extract_slice %x[0] [1] [1] : tensor<?xf32> to tensor<1xf32>
  %t = arith.mulf %s, %w : tensor<1xf32>
  %u = arith.mulf %t, %half : tensor<1xf32>
  %r = tensor.insert_slice %u into %z[0] [1] [1] : tensor<1xf32> into tensor<?xf32>
  return %r : tensor<?xf32>
}

// A declaration, which a caller needs, gets the body.
// DECLARED: func.func private @declared_vjp(%[[X:.*]]: f32, %[[DY:.*]]: f32) -> f32 {
// DECLARED-NEXT: arith.negf %[[DY]]
// DECLARED: func.func @caller
// DECLARED-NEXT: call @declared_vjp
func.func private @declared_vjp(f32, f32) -> f32
func.func @caller(%x: f32) -> f32 {
  %y = call @declared_vjp(%x, %x) : (f32, f32) -> f32
  return %y : f32
}
func.func @declared(%x: f32) -> f32 {
  %y = arith.negf %x : f32
  return %y : f32
}

// Memory that nothing varied is written to holds constants.
// MEMORY-LABEL: func.func @reads_vjp
// MEMORY: %[[E:.*]] = memref.load
// MEMORY: %[[DX:.*]] = arith.mulf %{{.*}}, %[[E]]
// MEMORY: return %[[DX]]
func.func @reads(%x: f32, %m: memref<f32>) -> f32 {
  %e = memref.load %m[] : memref<f32>
  %y = arith.mulf %x, %e : f32
  return %y : f32
}
