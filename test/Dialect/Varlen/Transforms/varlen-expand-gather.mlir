// RUN: varlen-opt %s --varlen-expand-gather --canonicalize | FileCheck %s

// An index of any value is one of the 32.
// CHECK-LABEL: func.func @scalar
// CHECK-SAME: %[[TABLE:.*]]: memref<?x32xf32, strided<[1, 1]>>, %[[ROW:.*]]: i64, %[[I:.*]]: i32
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0 : i32
// CHECK-DAG: %[[LAST:.*]] = arith.constant 31 : i32
// CHECK: %[[FLAT:.*]] = memref.reinterpret_cast {{.*}} to memref<?xf32, strided<[1]>>
// CHECK: %[[FROZEN:.*]] = llvm.freeze %[[I]] : i32
// CHECK: %[[A:.*]] = arith.maxsi %[[FROZEN]], %[[ZERO]]
// CHECK: %[[B:.*]] = arith.minsi %[[A]], %[[LAST]]
// CHECK: %[[C:.*]] = arith.extui %[[B]] : i32 to i64
// CHECK: %[[D:.*]] = arith.addi %[[ROW]], %[[C]] : i64
// CHECK: %[[E:.*]] = arith.index_cast %[[D]] : i64 to index
// CHECK: memref.load %[[FLAT]][%[[E]]]
func.func @scalar(%table: memref<?x32xf32, strided<[1, 1]>>, %row: i64, %i: i32) -> f32 {
  %x = varlen.gather %table[%row, %i] : memref<?x32xf32, strided<[1, 1]>>, i64, i32 -> f32
  return %x : f32
}

// How many there are is known at run time, and so is how far they are apart.
// CHECK-LABEL: func.func @vector
// CHECK: %{{.*}}, %{{.*}}, %[[SIZES:.*]]:2, %[[STRIDES:.*]]:2 = memref.extract_strided_metadata
// CHECK: llvm.freeze %{{.*}} : vector<16xi32>
// CHECK: arith.muli %{{.*}}, %{{.*}} : vector<16xi64>
// CHECK: vector.gather {{.*}} : memref<?xf32, strided<[1], offset: ?>>, vector<16xi64>, vector<16xi1>, vector<16xf32> into vector<16xf32>
func.func @vector(%table: memref<?x?xf32, strided<[1, ?], offset: ?>>, %row: vector<16xi64>,
                  %i: vector<16xi32>) -> vector<16xf32> {
  %x = varlen.gather %table[%row, %i]
      : memref<?x?xf32, strided<[1, ?], offset: ?>>, vector<16xi64>, vector<16xi32> -> vector<16xf32>
  return %x : vector<16xf32>
}

// Fragments of a thread are loaded one by one.
// CHECK-LABEL: func.func @fragment
// CHECK: llvm.freeze %{{.*}} : vector<4xi32>
// CHECK-COUNT-4: memref.load
// CHECK-NOT: memref.load
// CHECK: return
func.func @fragment(%table: memref<?x32xf32, strided<[1, 1]>>, %row: vector<2x2xi64>,
                    %i: vector<2x2xi32>) -> vector<2x2xf32> {
  %x = varlen.gather %table[%row, %i]
      : memref<?x32xf32, strided<[1, 1]>>, vector<2x2xi64>, vector<2x2xi32> -> vector<2x2xf32>
  return %x : vector<2x2xf32>
}
