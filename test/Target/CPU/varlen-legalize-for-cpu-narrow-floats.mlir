// RUN: varlen-opt %s --varlen-legalize-for-cpu=target=avx2 | FileCheck %s
// RUN: varlen-opt %s --varlen-legalize-for-cpu=target=generic | FileCheck %s --check-prefix=GENERIC
// RUN: varlen-opt %s --varlen-legalize-for-cpu=target=avx512_bf16 | FileCheck %s --check-prefix=BF16

// Rounding to nearest even; a NaN becomes a quiet one.
// CHECK-LABEL: func @round(
// CHECK-SAME: %[[X:.*]]: vector<8xf32>
// CHECK: %[[BITS:.*]] = arith.bitcast %[[X]]
// CHECK: %[[HIGH:.*]] = arith.shrui %[[BITS]]
// CHECK: %[[ODD:.*]] = arith.andi %[[HIGH]]
// CHECK: %[[HALF:.*]] = arith.addi %[[ODD]]
// CHECK: %[[ROUNDED:.*]] = arith.addi %[[BITS]], %[[HALF]]
// CHECK: %[[QUIET:.*]] = arith.ori %[[BITS]]
// CHECK: %[[NAN:.*]] = arith.cmpf uno, %[[X]], %[[X]]
// CHECK: %[[WIDE:.*]] = arith.select %[[NAN]], %[[QUIET]], %[[ROUNDED]]
// CHECK: %[[SHIFTED:.*]] = arith.shrui %[[WIDE]]
// CHECK: %[[SHORT:.*]] = arith.trunci %[[SHIFTED]]
// CHECK: arith.bitcast %[[SHORT]] : vector<8xi16> to vector<8xbf16>
// BF16-LABEL: func @round(
// BF16: arith.truncf
func.func @round(%x: vector<8xf32>) -> vector<8xbf16> {
  %y = arith.truncf %x : vector<8xf32> to vector<8xbf16>
  return %y : vector<8xbf16>
}

// CHECK-LABEL: func @extend
// CHECK: arith.extui {{.*}} : i16 to i32
// CHECK: arith.shli
// CHECK: arith.bitcast {{.*}} : i32 to f32
// CHECK-NOT: arith.extf
// CHECK: return
func.func @extend(%x: bf16) -> f32 {
  %y = arith.extf %x : bf16 to f32
  return %y : f32
}

// One rounding for an operation, however many operands.
// CHECK-LABEL: func @arithmetic
// CHECK: arith.addf {{.*}} : f32
// CHECK: math.exp {{.*}} : f32
// CHECK: return
// BF16-LABEL: func @arithmetic
// BF16: arith.extf {{.*}} : bf16 to f32
// BF16: arith.addf {{.*}} : f32
// BF16: math.exp {{.*}} : f32
func.func @arithmetic(%x: bf16, %y: bf16) -> bf16 {
  %0 = arith.addf %x, %y : bf16
  %1 = math.exp %0 : bf16
  return %1 : bf16
}

// f64 goes through f32 on all targets: LLVM would call __truncdfhf2.
// CHECK-LABEL: func @double
// CHECK: %[[F:.*]] = arith.truncf %{{.*}} : f64 to f32
// CHECK: arith.truncf %[[F]] : f32 to f16
// GENERIC-LABEL: func @double
// GENERIC: arith.truncf %{{.*}} : f64 to f32
// GENERIC-NOT: arith.truncf
// GENERIC: return
func.func @double(%x: f64) -> f16 {
  %y = arith.truncf %x : f64 to f16
  return %y : f16
}

// Moving values about is no arithmetic.
// CHECK-LABEL: func @moves
// CHECK-NEXT: %[[C:.*]] = arith.constant 1.0{{.*}} : bf16
// CHECK-NEXT: %[[S:.*]] = arith.select %{{.*}}, %{{.*}}, %[[C]] : bf16
// CHECK-NEXT: return %[[S]]
func.func @moves(%c: i1, %x: bf16) -> bf16 {
  %one = arith.constant 1.0 : bf16
  %y = arith.select %c, %x, %one : bf16
  return %y : bf16
}
