// RUN: varlen-opt %s --varlen-tile-attn | FileCheck %s

// Regions of steps have a value for all operands.

// CHECK-LABEL: func.func @divisions(
// CHECK: score (%{{.*}}: f32, %[[I:.*]]: i32, %[[J:.*]]: i32)
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0 : i32
// CHECK: %[[IS_ZERO:.*]] = arith.cmpi eq, %[[J]], %{{.*}} : i32
// CHECK: %[[IS_LEAST:.*]] = arith.cmpi eq, %[[I]], %{{.*}} : i32
// CHECK: %[[IS_MINUS_ONE:.*]] = arith.cmpi eq, %[[J]], %{{.*}} : i32
// CHECK: %[[OVERFLOWS:.*]] = arith.andi %[[IS_LEAST]], %[[IS_MINUS_ONE]] : i1
// CHECK: %[[BAD:.*]] = arith.ori %[[IS_ZERO]], %[[OVERFLOWS]] : i1
// CHECK: %[[DIVISOR:.*]] = arith.select %[[BAD]], %{{.*}}, %[[J]] : i32
// CHECK: arith.remsi %[[I]], %[[DIVISOR]] : i32
// Unsigned ones have no -1.
// CHECK: %[[IS_ZERO:.*]] = arith.cmpi eq, %[[J]], %{{.*}} : i32
// CHECK: %[[DIVISOR:.*]] = arith.select %[[IS_ZERO]], %{{.*}}, %[[J]] : i32
// CHECK: arith.divui %[[I]], %[[DIVISOR]] : i32
// Constants: one that is right, 0, and -1.
// CHECK: %[[SEVEN:.*]] = arith.constant 7 : i32
// CHECK-NEXT: arith.floordivsi %{{.*}}, %[[SEVEN]] : i32
// CHECK: %[[ONE:.*]] = arith.constant 1 : i32
// CHECK-NEXT: arith.ceildivsi %{{.*}}, %[[ONE]] : i32
// CHECK: %[[MINUS:.*]] = arith.constant -1 : i32
// CHECK: %[[LEAST:.*]] = arith.constant -2147483648 : i32
// CHECK-NEXT: %[[OVERFLOWS:.*]] = arith.cmpi eq, %[[J]], %[[LEAST]] : i32
// CHECK: %[[DIVISOR:.*]] = arith.select %[[OVERFLOWS]], %{{.*}}, %[[MINUS]] : i32
// CHECK-NEXT: arith.divsi %[[J]], %[[DIVISOR]] : i32

#schedule = #varlen.cpu_schedule<lanes = 16, vectors = 2, rows = 8, panels = 4, kv_block = 128,
                                 kv = copy>
func.func @divisions(%q: memref<?x8x64xf32>, %cu: memref<?xi32>, %out: memref<?x8x64xf32>,
                     %lse: memref<8x?xf32>) {
  varlen.attn %q, %q, %q, %cu, %cu outs(%out, %lse) {varlen.schedule = #schedule}
      : (memref<?x8x64xf32>, memref<?x8x64xf32>, memref<?x8x64xf32>, memref<?xi32>,
         memref<?xi32>, memref<?x8x64xf32>, memref<8x?xf32>) -> ()
      score (%score: f32, %query: i32, %key: i32) {
        %a = arith.remsi %query, %key : i32
        %b = arith.divui %query, %key exact : i32
        %seven = arith.constant 7 : i32
        %c = arith.floordivsi %b, %seven : i32
        %zero = arith.constant 0 : i32
        %d = arith.ceildivsi %c, %zero : i32
        %minus = arith.constant -1 : i32
        %e = arith.divsi %key, %minus : i32
        %f = arith.addi %d, %e overflow<nsw> : i32
        %g = arith.addi %f, %a overflow<nuw> : i32
        %h = arith.sitofp %g : i32 to f32
        %i = arith.mulf %h, %h fastmath<nnan,ninf,contract> : f32
        %new = arith.addf %score, %i : f32
        varlen.yield %new : f32
      }
  return
}

// No flag makes poison, others stay.
// CHECK: arith.addi %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} : i32
// CHECK: arith.addi %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} : i32
// CHECK: arith.mulf %{{.*}}, %{{.*}} fastmath<contract> : f32

// CHECK-LABEL: func.func @shifts(
// CHECK: score (%{{.*}}: f32, %[[I:.*]]: i32, %[[J:.*]]: i32)
// CHECK: %[[LAST:.*]] = arith.constant 31 : i32
// CHECK-NEXT: %[[PLACES:.*]] = arith.andi %[[J]], %[[LAST]] : i32
// CHECK-NEXT: %[[A:.*]] = arith.shli %[[I]], %[[PLACES]] : i32
// CHECK: %[[EIGHT:.*]] = arith.constant 8 : i32
// CHECK-NEXT: %[[B:.*]] = arith.shrui %[[A]], %[[EIGHT]] : i32
// A width that is no power of 2.
// CHECK: arith.trunci
// CHECK: %[[WIDTH:.*]] = arith.constant 7 : i7
// CHECK-NEXT: %[[PLACES:.*]] = arith.remui %[[D:.*]], %[[WIDTH]] : i7
// CHECK-NEXT: arith.shrsi %[[D]], %[[PLACES]] : i7
func.func @shifts(%q: memref<?x8x64xf32>, %cu: memref<?xi32>, %out: memref<?x8x64xf32>,
                  %lse: memref<8x?xf32>) {
  varlen.attn %q, %q, %q, %cu, %cu outs(%out, %lse) {varlen.schedule = #schedule}
      : (memref<?x8x64xf32>, memref<?x8x64xf32>, memref<?x8x64xf32>, memref<?xi32>,
         memref<?xi32>, memref<?x8x64xf32>, memref<8x?xf32>) -> ()
      score (%score: f32, %query: i32, %key: i32) {
        %a = arith.shli %query, %key overflow<nsw> : i32
        %forty = arith.constant 40 : i32
        %b = arith.shrui %a, %forty exact : i32
        %d = arith.trunci %b overflow<nsw> : i32 to i7
        %e = arith.shrsi %d, %d : i7
        %h = arith.sitofp %e : i7 to f32
        %new = arith.addf %score, %h : f32
        varlen.yield %new : f32
      }
  return
}

// CHECK-LABEL: func.func @floats(
// CHECK: score (%[[S:.*]]: f32, %{{.*}}: i32, %{{.*}}: i32)
// CHECK: %[[SCALED:.*]] = arith.mulf %[[S]]
// CHECK: %[[LOW:.*]] = arith.constant -2.14748365E+9 : f32
// CHECK-NEXT: %[[IS_LOW:.*]] = arith.cmpf olt, %[[SCALED]], %[[LOW]] : f32
// CHECK: %[[HIGH:.*]] = arith.constant 2.14748352E+9 : f32
// CHECK-NEXT: %[[IS_HIGH:.*]] = arith.cmpf ogt, %[[SCALED]], %[[HIGH]] : f32
// CHECK-NEXT: %[[IS_NAN:.*]] = arith.cmpf uno, %[[SCALED]], %[[SCALED]] : f32
// CHECK: %[[SAFE:.*]] = arith.select %{{.*}}, %{{.*}}, %[[SCALED]] : f32
// CHECK-NEXT: %[[INTEGER:.*]] = arith.fptosi %[[SAFE]] : f32 to i32
// CHECK: %[[LEAST:.*]] = arith.constant -2147483648 : i32
// CHECK-NEXT: %[[NOT_LOW:.*]] = arith.select %[[IS_LOW]], %[[LEAST]], %[[INTEGER]] : i32
// CHECK: %[[MOST:.*]] = arith.constant 2147483647 : i32
// CHECK-NEXT: arith.select %[[IS_HIGH]], %[[MOST]], %[[NOT_LOW]] : i32
// An f16 has no number beyond, but infinities.
// CHECK: arith.truncf
// CHECK: arith.constant -6.550400e+04 : f16
// CHECK: arith.constant 6.550400e+04 : f16
// CHECK: arith.fptosi %{{.*}} : f16 to i64
// CHECK-NOT: math.is
// CHECK: math.absf
// CHECK-NOT: sincos
// CHECK: math.sin
// CHECK: math.cos
// CHECK-NOT: math.ctlz
// CHECK: math.ctpop
func.func @floats(%q: memref<?x8x64xf32>, %cu: memref<?xi32>, %out: memref<?x8x64xf32>,
                  %lse: memref<8x?xf32>) {
  varlen.attn %q, %q, %q, %cu, %cu outs(%out, %lse) {varlen.schedule = #schedule}
      : (memref<?x8x64xf32>, memref<?x8x64xf32>, memref<?x8x64xf32>, memref<?xi32>,
         memref<?xi32>, memref<?x8x64xf32>, memref<8x?xf32>) -> ()
      score (%score: f32, %query: i32, %key: i32) {
        %a = arith.fptosi %score : f32 to i32
        %half = arith.truncf %score : f32 to f16
        %b = arith.fptosi %half : f16 to i64
        %c = arith.trunci %b : i64 to i32
        %d = arith.addi %a, %c : i32
        %is = math.isfinite %score : f32
        %sin, %cos = math.sincos %score : f32
        %e = arith.select %is, %sin, %cos : f32
        %f = math.ctlz %d : i32
        %g = arith.sitofp %f : i32 to f32
        %new = arith.addf %e, %g : f32
        varlen.yield %new : f32
      }
  return
}
