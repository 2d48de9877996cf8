// RUN: varlen-opt %s --varlen-expand-queries --canonicalize --split-input-file | FileCheck %s

// Queries that are columns: panel by panel, and in these vector by vector. Rows of
// one head (group 1) go straight to memory, those that there are.

// CHECK-LABEL: @columns
// CHECK-SAME: %[[ROW:[^:]*]]: index, %[[HEAD:[^:]*]]: index, %[[FIRST:[^:]*]]: index, %[[N:[^:]*]]: index, %[[ACC:[^:]*]]: memref<24x16xf32>, %[[M:[^:]*]]: memref<3x16xf32>, %[[L:[^:]*]]: memref<3x16xf32>, %[[OUT:[^:]*]]: memref<?x4x8xf32>, %[[LSE:[^:]*]]: memref<4x?xf32>
// CHECK: %[[UP:.*]] = arith.addi %[[N]], %c15
// CHECK: %[[PANELS:.*]] = arith.divui %[[UP]], %c16
// CHECK: scf.for %[[P:.*]] = %c0 to %[[PANELS]] step %c1 {
// CHECK:   %[[OFFSET:.*]] = arith.muli %[[P]], %c16
// CHECK:   %[[FROM:.*]] = arith.addi %[[FIRST]], %[[OFFSET]]
// CHECK:   %[[ROWS:.*]] = arith.minsi %{{.*}}, %c16
// CHECK:   scf.for %[[LANE:.*]] = %c0 to %[[ROWS]] step %c8 {
// CHECK:     %[[PAIR:.*]] = arith.addi %[[FROM]], %[[LANE]]
// CHECK:     %[[COUNT:.*]] = arith.minsi %{{.*}}, %c8
// CHECK:     %[[TO:.*]] = memref.subview %[[OUT]][%{{.*}}, %[[HEAD]], 0] [%[[COUNT]], 1, 8]
// CHECK:     %[[AT:.*]] = arith.muli %[[P]], %c8
// CHECK:     %[[PART:.*]] = memref.subview %[[ACC]][%[[AT]], %[[LANE]]] [8, 8] [1, 1]
// CHECK:     %[[A:.*]] = bufferization.to_tensor %[[PART]] restrict
// CHECK:     memref.subview %[[M]][%[[P]], %[[LANE]]] [1, 8] [1, 1]
// CHECK:     %[[O:.*]], %[[X:.*]] = varlen.online_finish kq %[[A]], %{{.*}}, %{{.*}} scale 1.250000e-01 : tensor<8x8xf32>, tensor<1x8xf32>
// CHECK:     %[[WRITTEN:.*]] = tensor.extract_slice %[[O]][0, 0] [%[[COUNT]], 8]
// CHECK:     bufferization.materialize_in_destination %[[WRITTEN]] in restrict writable %[[TO]]
// CHECK:     scf.for %[[I:.*]] = %c0 to %[[COUNT]] step %c1 {
// CHECK:       %[[NUMBER:.*]] = tensor.extract %[[X]][%c0, %[[I]]]
// CHECK:       memref.store %[[NUMBER]], %[[LSE]][%[[HEAD]], %{{.*}}]
func.func @columns(%row: index, %head: index, %first: index, %n: index,
                   %acc: memref<24x16xf32>, %m: memref<3x16xf32>, %l: memref<3x16xf32>,
                   %out: memref<?x4x8xf32>, %lse: memref<4x?xf32>) {
  %one = arith.constant 1 : index
  %true = arith.constant true
  scf.if %true {
    varlen.for_queries kq rows(%row, %head, %first, %one) valid(%n)
        ins(%acc, %m, %l : memref<24x16xf32>, memref<3x16xf32>, memref<3x16xf32>)
        outs(%out as rows, %lse as numbers : memref<?x4x8xf32>, memref<4x?xf32>) {
    ^bb0(%0: tensor<8x48xf32>, %1: tensor<1x48xf32>, %2: tensor<1x48xf32>):
      %3, %4 = varlen.online_finish kq %0, %1, %2 scale 0.125 : tensor<8x48xf32>, tensor<1x48xf32>
      varlen.yield %3, %4 : tensor<48x8xf32>, tensor<1x48xf32>
    }
  } {varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 3, kv_block = 32, kv = copy>}
  return
}

// -----

// Rows of one head are rounded on their way to memory.

// CHECK-LABEL: @rounded
// CHECK: %[[TO:.*]] = memref.subview %{{.*}}[%{{.*}}, %{{.*}}, 0] [%[[COUNT:.*]], 1, 8] [1, 1, 1] : memref<?x4x8xbf16>
// CHECK: %[[O:.*]], %{{.*}} = varlen.online_finish kq
// CHECK: %[[WRITTEN:.*]] = tensor.extract_slice %[[O]][0, 0] [%[[COUNT]], 8]
// CHECK: %[[ROUNDED:.*]] = linalg.generic {{.*}} ins(%[[WRITTEN]]
// CHECK: arith.truncf
// CHECK: bufferization.materialize_in_destination %[[ROUNDED]] in restrict writable %[[TO]]
// CHECK-NOT: varlen.write_rows
func.func @rounded(%row: index, %head: index, %first: index, %n: index,
                   %acc: memref<8x8xf32>, %m: memref<1x8xf32>, %out: memref<?x4x8xbf16>) {
  %one = arith.constant 1 : index
  %true = arith.constant true
  scf.if %true {
    varlen.for_queries kq rows(%row, %head, %first, %one) valid(%n)
        ins(%acc, %m : memref<8x8xf32>, memref<1x8xf32>) outs(%out as rows : memref<?x4x8xbf16>) {
    ^bb0(%0: tensor<8x48xf32>, %1: tensor<1x48xf32>):
      %3, %4 = varlen.online_finish kq %0, %1, %1 scale 0.125 : tensor<8x48xf32>, tensor<1x48xf32>
      varlen.yield %3 : tensor<48x8xf32>
    }
  } {varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 1, rows = 4, panels = 1, kv_block = 32, kv = copy>}
  return
}

// -----

// Rows of several heads go by way of scratch.

// CHECK-LABEL: @heads
// CHECK: memref.alloc() {alignment = 64 : i64} : memref<8x8xbf16>
// CHECK: %[[O:.*]], %{{.*}} = varlen.online_finish kq
// CHECK: linalg.generic {{.*}} ins(%[[O]]
// CHECK: arith.truncf
// CHECK: varlen.write_rows %{{.*}} to %{{.*}} : memref<8x8xbf16> to memref<?x4x8xbf16>
func.func @heads(%row: index, %head: index, %first: index, %group: index, %n: index,
                 %acc: memref<8x8xf32>, %m: memref<1x8xf32>, %out: memref<?x4x8xbf16>) {
  %true = arith.constant true
  scf.if %true {
    varlen.for_queries kq rows(%row, %head, %first, %group) valid(%n)
        ins(%acc, %m : memref<8x8xf32>, memref<1x8xf32>) outs(%out as rows : memref<?x4x8xbf16>) {
    ^bb0(%0: tensor<8x48xf32>, %1: tensor<1x48xf32>):
      %3, %4 = varlen.online_finish kq %0, %1, %1 scale 0.125 : tensor<8x48xf32>, tensor<1x48xf32>
      varlen.yield %3 : tensor<48x8xf32>
    }
  } {varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 1, rows = 4, panels = 1, kv_block = 32, kv = copy>}
  return
}

// -----

// Queries that are rows: all at once. The place of a number is computed once.

// CHECK-LABEL: @rows
// CHECK-SAME: %[[N:[^:]*]]: index, %[[ACC:[^:]*]]: memref<4x8xf32>, %[[M:[^:]*]]: memref<4x1xf32>, %[[OUT:[^:]*]]: memref<?x4x8xf32>, %[[A:[^:]*]]: memref<4x?xf32>, %[[B:[^:]*]]: memref<4x?xf32>
// CHECK: %[[SCRATCH:.*]] = memref.alloc() {alignment = 64 : i64} : memref<4x8xf32>
// CHECK: memref.subview %[[ACC]][0, 0] [%[[N]], 8] [1, 1]
// CHECK: varlen.online_finish qk {{.*}} : tensor<?x8xf32>, tensor<?x1xf32>
// CHECK: varlen.write_rows %[[SCRATCH]] to %[[OUT]] rows({{.*}}) valid(%[[N]])
// CHECK: scf.for {{.*}} to %[[N]] step %c1 {
// CHECK: memref.store %{{.*}}, %[[A]][%[[X:.*]], %[[Y:.*]]]
// CHECK: memref.store %{{.*}}, %[[B]][%[[X]], %[[Y]]]
func.func @rows(%row: index, %head: index, %first: index, %group: index, %n: index,
                %acc: memref<4x8xf32>, %m: memref<4x1xf32>, %out: memref<?x4x8xf32>,
                %a: memref<4x?xf32>, %b: memref<4x?xf32>) {
  varlen.for_queries qk rows(%row, %head, %first, %group) valid(%n)
      ins(%acc, %m : memref<4x8xf32>, memref<4x1xf32>)
      outs(%out as rows, %a as numbers, %b as numbers : memref<?x4x8xf32>, memref<4x?xf32>, memref<4x?xf32>) {
  ^bb0(%0: tensor<4x8xf32>, %1: tensor<4x1xf32>):
    %3, %4 = varlen.online_finish qk %0, %1, %1 scale 0.125 : tensor<4x8xf32>, tensor<4x1xf32>
    varlen.yield %3, %4, %1 : tensor<4x8xf32>, tensor<4x1xf32>, tensor<4x1xf32>
  }
  return
}

// -----

// The beginning of a state is filled, a tile that is yielded as it is copied:
// vectors that have a query, and no more.

// CHECK-LABEL: @begin
// CHECK-SAME: %[[ACC:[^:]*]]: memref<24x16xf32>, %[[M:[^:]*]]: memref<3x16xf32>, %[[L:[^:]*]]: memref<3x16xf32>, %[[TO:[^:]*]]: memref<3x16xf32>
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0.000000e+00 : f32
// CHECK-DAG: %[[LEAST:.*]] = arith.constant -1.70141183E+38 : f32
// CHECK: scf.for
// CHECK: scf.for
// CHECK: %[[A:.*]] = memref.subview %[[ACC]][%{{.*}}, %{{.*}}] [8, 8] [1, 1]
// CHECK: linalg.fill ins(%[[ZERO]] : f32) outs(%[[A]]
// CHECK: memref.subview %[[M]]
// CHECK: linalg.fill ins(%[[LEAST]] : f32)
// CHECK: memref.subview %[[L]]
// CHECK: linalg.fill ins(%[[ZERO]] : f32)
// CHECK: scf.for
// CHECK: scf.for
// CHECK: %[[FROM:.*]] = memref.subview %[[M]][%[[P:.*]], %[[I:.*]]] [1, 8] [1, 1]
// CHECK: %[[INTO:.*]] = memref.subview %[[TO]][%[[P]], %[[I]]] [1, 8] [1, 1]
// CHECK: linalg.copy ins(%[[FROM]] : {{.*}}) outs(%[[INTO]]
func.func @begin(%i: index, %n: index, %acc: memref<24x16xf32>, %m: memref<3x16xf32>,
                 %l: memref<3x16xf32>, %to: memref<3x16xf32>) {
  %true = arith.constant true
  scf.if %true {
    varlen.for_queries kq rows(%i, %i, %i, %i) valid(%n)
        outs(%acc as scratch, %m as scratch, %l as scratch : memref<24x16xf32>, memref<3x16xf32>, memref<3x16xf32>) {
      %0, %1, %2 = varlen.online_init kq scale 0.125 : tensor<8x48xf32>, tensor<1x48xf32>
      varlen.yield %0, %1, %2 : tensor<8x48xf32>, tensor<1x48xf32>, tensor<1x48xf32>
    }
    varlen.for_queries kq rows(%i, %i, %i, %i) valid(%n)
        ins(%m : memref<3x16xf32>) outs(%to as scratch : memref<3x16xf32>) {
    ^bb0(%0: tensor<1x48xf32>):
      varlen.yield %0 : tensor<1x48xf32>
    }
  } {varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 3, kv_block = 32, kv = copy>}
  return
}

// -----

// The last vector with a pair has its limits in all places; vectors behind it see
// nothing.

// CHECK-LABEL: @limits
// CHECK-SAME: %[[FIRST:[^:]*]]: index, %[[GROUP:[^:]*]]: index, %[[N:[^:]*]]: index, %[[QUERIES:[^:]*]]: index, %[[KEYS:[^:]*]]: index, %[[LO:[^:]*]]: memref<3x16xi32>, %[[HI:[^:]*]]: memref<3x16xi32>
// CHECK: scf.for %[[P:.*]] = %c0 to %{{.*}} step %c1 {
// CHECK:   %[[REST:.*]] = arith.minsi %{{.*}}, %c16
// CHECK:   %[[END:.*]] = arith.minsi %{{.*}}, %c16
// CHECK:   scf.for %[[LANE:.*]] = %c0 to %[[END]] step %c1 {
// CHECK:     %[[PAIR:.*]] = arith.minsi
// CHECK:     arith.div{{[su]}}i %[[PAIR]], %[[GROUP]]
// CHECK:     memref.store %c0_i32, %[[LO]][%[[P]], %[[LANE]]]
// CHECK:     memref.store %{{.*}}, %[[HI]][%[[P]], %[[LANE]]]
// CHECK:   scf.for %[[LANE:.*]] = %[[END]] to %c16 step %c1 {
// CHECK:     memref.store %[[NONE:.*]], %[[LO]][%[[P]], %[[LANE]]]
// CHECK:     memref.store %[[NONE]], %[[HI]][%[[P]], %[[LANE]]]
func.func @limits(%first: index, %group: index, %n: index, %queries: index, %keys: index,
                  %lo: memref<3x16xi32>, %hi: memref<3x16xi32>) {
  %true = arith.constant true
  scf.if %true {
    varlen.key_limits mask <causal> pairs(%first, %group) valid(%n) of(%queries, %keys)
        to %lo, %hi : memref<3x16xi32>, memref<3x16xi32>
  } {varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 3, kv_block = 32, kv = copy>}
  return
}

// -----

// CHECK-LABEL: @few_limits
// CHECK-SAME: %[[N:[^:]*]]: index, %[[KEYS:[^:]*]]: index, %[[LO:[^:]*]]: memref<4x1xi32>, %[[HI:[^:]*]]: memref<4x1xi32>
// CHECK: scf.for %[[I:.*]] = %c0 to %[[N]] step %c1 {
// CHECK:   %[[END:.*]] = arith.index_cast %[[KEYS]]
// CHECK:   memref.store %c0_i32, %[[LO]][%[[I]], %c0]
// CHECK:   memref.store %[[END]], %[[HI]][%[[I]], %c0]
// CHECK-NOT: scf.for
func.func @few_limits(%n: index, %keys: index, %lo: memref<4x1xi32>, %hi: memref<4x1xi32>) {
  varlen.key_limits mask <full> pairs(%n, %n) valid(%n) of(%n, %keys) to %lo, %hi : memref<4x1xi32>, memref<4x1xi32>
  return
}
