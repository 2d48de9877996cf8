// RUN: varlen-opt %s | varlen-opt | FileCheck %s
// RUN: varlen-opt %s -mlir-print-op-generic | varlen-opt | FileCheck %s
// RUN: varlen-opt %s -emit-bytecode | varlen-opt | FileCheck %s
// RUN: varlen-opt %s -cse -loop-invariant-code-motion | FileCheck %s --check-prefix=EFFECTS
// RUN: varlen-opt %s -resolve-ranked-shaped-type-result-dims | FileCheck %s --check-prefix=DIMS

// CHECK-LABEL: @orders
func.func @orders(%rows: memref<16x24xbf16>, %columns: memref<24x16xbf16>, %row_pairs: memref<8x48xbf16>,
                  %column_pairs: memref<12x32xbf16, strided<[64, 1], offset: ?>>) -> tensor<16x24xbf16> {
  // CHECK: varlen.to_tile %{{.*}} as rows, %{{.*}} as columns, %{{.*}} as row_pairs, %{{.*}} as column_pairs {a}
  // CHECK-SAME: : memref<16x24xbf16>, memref<24x16xbf16>, memref<8x48xbf16>, memref<12x32xbf16, strided<[64, 1], offset: ?>> to tensor<16x24xbf16>
  %0 = varlen.to_tile %rows as rows, %columns as columns, %row_pairs as row_pairs, %column_pairs as column_pairs {a}
      : memref<16x24xbf16>, memref<24x16xbf16>, memref<8x48xbf16>, memref<12x32xbf16, strided<[64, 1], offset: ?>>
      to tensor<16x24xbf16>
  return %0 : tensor<16x24xbf16>
}

// An extent is that of the first copy.
// DIMS-LABEL: @dims
// DIMS-SAME: %[[ROWS:.*]]: memref<?x?xf32>, %[[COLUMNS:.*]]: memref<24x?xf32>, %[[ROWPAIRS:.*]]: memref<?x?xbf16>, %[[COLUMNPAIRS:.*]]: memref<?x?xbf16>
func.func @dims(%rows: memref<?x?xf32>, %columns: memref<24x?xf32>, %row_pairs: memref<?x?xbf16>,
                %column_pairs: memref<?x?xbf16>) -> (index, index, index, index, index, index, index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %0 = varlen.to_tile %rows as rows : memref<?x?xf32> to tensor<?x?xf32>
  %1 = varlen.to_tile %columns as columns, %rows as rows : memref<24x?xf32>, memref<?x?xf32> to tensor<?x24xf32>
  %2 = varlen.to_tile %row_pairs as row_pairs : memref<?x?xbf16> to tensor<?x?xbf16>
  %3 = varlen.to_tile %column_pairs as column_pairs : memref<?x?xbf16> to tensor<?x?xbf16>
  // DIMS-DAG: %[[R0:.*]] = memref.dim %[[ROWS]], %c0
  // DIMS-DAG: %[[R1:.*]] = memref.dim %[[COLUMNS]], %c1
  // DIMS-DAG: %[[HALF:.*]] = memref.dim %[[ROWPAIRS]], %c0
  // DIMS-DAG: %[[R2:.*]] = arith.muli %[[HALF]], %c2
  // DIMS-DAG: %[[TWICE:.*]] = memref.dim %[[ROWPAIRS]], %c1
  // DIMS-DAG: %[[C2:.*]] = arith.divui %[[TWICE]], %c2
  // DIMS-DAG: %[[TWICE3:.*]] = memref.dim %[[COLUMNPAIRS]], %c1
  // DIMS-DAG: %[[R3:.*]] = arith.divui %[[TWICE3]], %c2
  // DIMS-DAG: %[[HALF3:.*]] = memref.dim %[[COLUMNPAIRS]], %c0
  // DIMS-DAG: %[[C3:.*]] = arith.muli %[[HALF3]], %c2
  // DIMS: return %[[R0]], %[[R1]], %c24, %[[R2]], %[[C2]], %[[R3]], %[[C3]]
  %r0 = tensor.dim %0, %c0 : tensor<?x?xf32>
  %r1 = tensor.dim %1, %c0 : tensor<?x24xf32>
  %c1_1 = tensor.dim %1, %c1 : tensor<?x24xf32>
  %r2 = tensor.dim %2, %c0 : tensor<?x?xbf16>
  %c2_2 = tensor.dim %2, %c1 : tensor<?x?xbf16>
  %r3 = tensor.dim %3, %c0 : tensor<?x?xbf16>
  %c3_3 = tensor.dim %3, %c1 : tensor<?x?xbf16>
  return %r0, %r1, %c1_1, %r2, %c2_2, %r3, %c3_3 : index, index, index, index, index, index, index
}

// It reads memory: equal ones are one, but not across a write, and none leaves
// a loop that writes.
// EFFECTS-LABEL: @effects
// EFFECTS: %[[A:.*]] = varlen.to_tile
// EFFECTS-NEXT: memref.store
// EFFECTS-NEXT: %[[B:.*]] = varlen.to_tile
// EFFECTS-NEXT: call @use_three(%[[A]], %[[A]], %[[B]])
// EFFECTS-NEXT: scf.for
// EFFECTS-NEXT: varlen.to_tile
func.func private @use(tensor<16x8xf32>)
func.func private @use_three(tensor<16x8xf32>, tensor<16x8xf32>, tensor<16x8xf32>)
func.func @effects(%m: memref<8x16xf32>, %x: f32, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %0 = varlen.to_tile %m as columns : memref<8x16xf32> to tensor<16x8xf32>
  %1 = varlen.to_tile %m as columns : memref<8x16xf32> to tensor<16x8xf32>
  memref.store %x, %m[%c0, %c0] : memref<8x16xf32>
  %2 = varlen.to_tile %m as columns : memref<8x16xf32> to tensor<16x8xf32>
  func.call @use_three(%0, %1, %2) : (tensor<16x8xf32>, tensor<16x8xf32>, tensor<16x8xf32>) -> ()
  scf.for %i = %c0 to %n step %c1 {
    %3 = varlen.to_tile %m as columns : memref<8x16xf32> to tensor<16x8xf32>
    func.call @use(%3) : (tensor<16x8xf32>) -> ()
    memref.store %x, %m[%c0, %c0] : memref<8x16xf32>
  }
  return
}
