// RUN: varlen-opt %s | FileCheck %s
// RUN: varlen-opt %s --mlir-print-op-generic | varlen-opt | FileCheck %s

// CHECK-LABEL: func.func @whole
// CHECK: %items, %first_merge, %slots, %few_slots = varlen.split_tiles %{{.*}} group %{{.*}} kv_block 128 few 8 : memref<?x10xi64> -> memref<?x13xi64>
func.func @whole(%tiles: memref<?x10xi64>, %group: index) -> memref<?x13xi64> {
  %0:4 = varlen.split_tiles %tiles group %group kv_block 128 few 8 : memref<?x10xi64> -> memref<?x13xi64>
  return %0#0 : memref<?x13xi64>
}

// CHECK-LABEL: func.func @parts
// CHECK: varlen.split_tiles %{{.*}} group %{{.*}} kv_block 128 few 8 parts(16, 4) :
func.func @parts(%tiles: memref<?x10xi64>, %group: index) -> index {
  %0:4 = varlen.split_tiles %tiles group %group kv_block 128 few 8 parts(16, 4) : memref<?x10xi64> -> memref<?x13xi64>
  return %0#2 : index
}
