// RUN: varlen-opt %s --varlen-expand-append --split-input-file | FileCheck %s

// Runs of rows of pages, copied.
// CHECK-LABEL: func @pages(
// CHECK-SAME: %[[K:.*]]: memref<?x2x16xf32>, %[[V:.*]]: memref<?x2x24xf32>, %[[CU:.*]]: memref<?xi32>, %[[USED:.*]]: memref<?xi32>, %[[TABLE:.*]]: memref<?x?xi32>, %[[KC:.*]]: memref<?x8x2x16xf32>, %[[VC:.*]]: memref<?x8x2x24xf32>)
// CHECK: %[[RUNS:.*]] = varlen.append_runs %[[CU]], %[[USED]] block_table(%[[TABLE]]) rows(%{{.*}}, %{{.*}}) pages(%{{.*}}, %{{.*}}) page_rows(%{{.*}}, %{{.*}}) :
// CHECK: %[[N:.*]] = memref.dim %[[RUNS]]
// CHECK: scf.forall (%[[I:.*]]) in (%[[N]]) {
// CHECK: %[[ROW64:.*]] = memref.load %[[RUNS]][%[[I]], %c2{{.*}}]
// CHECK: %[[ROW:.*]] = arith.index_cast %[[ROW64]] : i64 to index
// CHECK: %[[NEW:.*]] = memref.subview %[[K]][%[[ROW]], 0, 0] [%[[ROWS:.*]], 2, 16] [1, 1, 1]
// CHECK: %[[AT:.*]] = memref.subview %[[KC]][%[[PAGE:.*]], %[[PAGE_ROW:.*]], 0, 0] [1, %[[ROWS]], 2, 16] [1, 1, 1, 1] : {{.*}} to memref<?x2x16xf32, strided<[32, 16, 1], offset: ?>>
// CHECK: linalg.generic {{.*}} ins(%[[NEW]] : {{.*}}) outs(%[[AT]] :
// CHECK: %[[NEW_V:.*]] = memref.subview %[[V]][%[[ROW]], 0, 0] [%[[ROWS]], 2, 24]
// CHECK: %[[AT_V:.*]] = memref.subview %[[VC]][%[[PAGE]], %[[PAGE_ROW]], 0, 0] [1, %[[ROWS]], 2, 24]
// CHECK: linalg.generic {{.*}} ins(%[[NEW_V]] : {{.*}}) outs(%[[AT_V]] :
// CHECK: }
// CHECK: memref.dealloc %[[RUNS]]
// CHECK-NOT: varlen.append
func.func @pages(%k: memref<?x2x16xf32>, %v: memref<?x2x24xf32>, %cu: memref<?xi32>, %used: memref<?xi32>,
                 %table: memref<?x?xi32>, %kc: memref<?x8x2x16xf32>, %vc: memref<?x8x2x24xf32>) {
  varlen.append %k, %v, %cu seqused_k(%used) block_table(%table) outs(%kc, %vc)
      : (memref<?x2x16xf32>, memref<?x2x24xf32>, memref<?xi32>, memref<?xi32>, memref<?x?xi32>,
         memref<?x8x2x16xf32>, memref<?x8x2x24xf32>) -> ()
  return
}

// -----

// The first 10 numbers of a head are turned in f32, halves of them in pairs; 6 are copied.
// CHECK: #[[$TABLES:.*]] = affine_map<(d0, d1, d2) -> (d0, d2)>
// CHECK-LABEL: func @rotary(
// CHECK-SAME: %[[K:[^:]*]]: memref<?x2x16xbf16>, %{{.*}}: memref<?x5xf32>, %[[KC:.*]]: memref<4x8x2x16xbf16>)
// CHECK: varlen.append_runs %{{.*}}, %{{.*}} rows({{.*}}) pages({{.*}}) page_rows({{.*}}) positions(
// CHECK: scf.forall
// CHECK: %[[X:.*]] = memref.subview %[[K]][%{{.*}}, 0, 0] [%[[ROWS:.*]], 2, 5] [1, 1, 1]
// CHECK: %[[Y:.*]] = memref.subview %[[K]][%{{.*}}, 0, 5] [%[[ROWS]], 2, 5] [1, 1, 1]
// CHECK: %[[COS:.*]] = memref.subview %{{.*}}[%[[POSITION:.*]], 0] [%[[ROWS]], 5] [1, 1]
// CHECK: %[[SIN:.*]] = memref.subview %{{.*}}[%[[POSITION]], 0] [%[[ROWS]], 5] [1, 1]
// CHECK: %[[X_AT:.*]] = memref.subview %[[KC]][%{{.*}}, %{{.*}}, 0, 0] [1, %[[ROWS]], 2, 5]
// CHECK: %[[Y_AT:.*]] = memref.subview %[[KC]][%{{.*}}, %{{.*}}, 0, 5] [1, %[[ROWS]], 2, 5]
// CHECK: linalg.generic {indexing_maps = [#{{[^,]*}}, #{{[^,]*}}, #[[$TABLES]], #[[$TABLES]], #{{[^,]*}}, #{{[^,]*}}], iterator_types
// CHECK-SAME: ins(%[[X]], %[[Y]], %[[COS]], %[[SIN]] :
// CHECK-SAME: outs(%[[X_AT]], %[[Y_AT]] :
// CHECK: ^bb0(%[[XB:.*]]: bf16, %[[YB:.*]]: bf16, %[[C:.*]]: f32, %[[S:.*]]: f32, %{{.*}}: bf16, %{{.*}}: bf16):
// CHECK: %[[XF:.*]] = arith.extf %[[XB]] : bf16 to f32
// CHECK: %[[YF:.*]] = arith.extf %[[YB]] : bf16 to f32
// CHECK-DAG: %[[XC:.*]] = arith.mulf %[[XF]], %[[C]]
// CHECK-DAG: %[[YS:.*]] = arith.mulf %[[YF]], %[[S]]
// CHECK-DAG: arith.subf %[[XC]], %[[YS]]
// CHECK-DAG: %[[XS:.*]] = arith.mulf %[[XF]], %[[S]]
// CHECK-DAG: %[[YC:.*]] = arith.mulf %[[YF]], %[[C]]
// CHECK-DAG: arith.addf %[[XS]], %[[YC]]
// CHECK: linalg.yield %{{.*}}, %{{.*}} : bf16, bf16
// CHECK: memref.subview %[[K]][%{{.*}}, 0, 10] [%[[ROWS]], 2, 6]
func.func @rotary(%k: memref<?x2x16xbf16>, %v: memref<?x2x24xbf16>, %cu: memref<?xi64>, %used: memref<?xi64>,
                  %cos: memref<?x5xf32>, %kc: memref<4x8x2x16xbf16>) {
  %vc = memref.alloc() : memref<4x8x2x24xbf16>
  varlen.append %k, %v, %cu seqused_k(%used) rotary(%cos, %cos) outs(%kc, %vc)
      : (memref<?x2x16xbf16>, memref<?x2x24xbf16>, memref<?xi64>, memref<?xi64>, memref<?x5xf32>,
         memref<?x5xf32>, memref<4x8x2x16xbf16>, memref<4x8x2x24xbf16>) -> ()
  return
}

// -----

// Neighbours in pairs; all of a head is turned.
// CHECK-LABEL: func @interleaved(
// CHECK: memref.subview %{{.*}}[%{{.*}}, 0, 0] [%{{.*}}, 2, 8] [1, 1, 2]
// CHECK: memref.subview %{{.*}}[%{{.*}}, 0, 1] [%{{.*}}, 2, 8] [1, 1, 2]
// CHECK: memref.subview %{{.*}}[%{{.*}}, %{{.*}}, 0, 0] [1, %{{.*}}, 2, 8] [1, 1, 1, 2]
// CHECK: memref.subview %{{.*}}[%{{.*}}, %{{.*}}, 0, 1] [1, %{{.*}}, 2, 8] [1, 1, 1, 2]
// CHECK: linalg.generic
// CHECK-NOT: memref.subview %{{.*}}[%{{.*}}, 0, 16]
// CHECK: return
func.func @interleaved(%k: memref<?x2x16xf64>, %cu: memref<?xi32>, %used: memref<?xi32>, %cos: memref<?x8xf64>,
                       %kc: memref<4x8x2x16xf64>, %vc: memref<4x8x2x16xf64>) {
  varlen.append %k, %k, %cu seqused_k(%used) rotary(%cos, %cos) outs(%kc, %vc) interleaved
      : (memref<?x2x16xf64>, memref<?x2x16xf64>, memref<?xi32>, memref<?xi32>, memref<?x8xf64>, memref<?x8xf64>,
         memref<4x8x2x16xf64>, memref<4x8x2x16xf64>) -> ()
  return
}

// -----

// The largest number of a row of a head over both parts of it, the scale, and then the numbers.
// CHECK-DAG: #[[$ROWS:.*]] = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
// CHECK-DAG: #[[$SCALES:.*]] = affine_map<(d0, d1, d2) -> (d0, d1)>
// CHECK-LABEL: func @quantised(
// CHECK-SAME: %[[KS:[a-z0-9]*]]: memref<4x8x2xf32>)
// CHECK: varlen.append_runs %{{.*}}, %{{.*}} rows({{.*}}) pages({{.*}}) page_rows({{.*}}) scales(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) positions(
// CHECK: scf.forall
// CHECK: %[[SCALE:.*]] = memref.subview %[[KS]][%{{.*}}, %{{.*}}, 0] [1, %{{.*}}, 2] [1, 1, 1] : {{.*}} to memref<?x2xf32,
// CHECK: linalg.fill ins(%{{.*}}) outs(%[[SCALE]] :
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "parallel", "reduction"]} ins(%[[X:[^,]*]], %[[Y:[^,]*]], %[[COS:[^,]*]], %[[SIN:[^,]*]] : {{.*}} outs(%[[SCALE]] :
// CHECK: arith.mulf
// CHECK-COUNT-2: arith.maximumf
// CHECK: linalg.generic {indexing_maps = [#[[$ROWS]], #[[$SCALES]]], iterator_types = ["parallel", "parallel", "reduction"]} ins(%[[REST:.*]] : {{.*}} outs(%[[SCALE]] :
// CHECK: math.absf
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "parallel"]} outs(%[[SCALE]] :
// CHECK: %[[A:.*]] = arith.divf %{{.*}}, %cst{{.*}} : f32
// CHECK: arith.select %{{.*}}, %{{.*}}, %[[A]] : f32
// CHECK: linalg.generic {{.*}} ins(%[[X]], %[[Y]], %[[COS]], %[[SIN]], %[[SCALE]] :
// CHECK: math.roundeven
// CHECK: arith.fptosi %{{.*}} : f32 to i8
// CHECK: linalg.yield %{{.*}}, %{{.*}} : i8, i8
// CHECK: linalg.generic {{.*}} ins(%[[REST]], %[[SCALE]] :
func.func @quantised(%k: memref<?x2x16xbf16>, %cu: memref<?xi64>, %used: memref<?xi64>, %cos: memref<?x5xf32>,
                     %kc: memref<4x8x2x16xi8>, %vc: memref<4x8x2x16xi8>, %ks: memref<4x8x2xf32>) {
  %vs = memref.alloc() : memref<4x8x2xf32>
  varlen.append %k, %k, %cu seqused_k(%used) rotary(%cos, %cos) outs(%kc, %vc) scales(%ks, %vs)
      : (memref<?x2x16xbf16>, memref<?x2x16xbf16>, memref<?xi64>, memref<?xi64>, memref<?x5xf32>, memref<?x5xf32>,
         memref<4x8x2x16xi8>, memref<4x8x2x16xi8>, memref<4x8x2xf32>, memref<4x8x2xf32>) -> ()
  return
}
