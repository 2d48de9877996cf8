// RUN: varlen-opt %s --varlen-expand-table-sums --split-input-file --verify-diagnostics

!table = memref<?x?xf32, strided<[1, 1]>>
func.func @rows(%x: memref<8x8xf32>, %table: !table, %rows: tensor<1x8xi64>, %first: i32, %n: index) {
  scf.forall (%i) in (%n) {
    %xt = bufferization.to_tensor %x restrict : memref<8x8xf32> to tensor<8x8xf32>
    // expected-error @below {{'varlen.add_keys' op expected rows of a table in memory, one for each column, a multiple of 8, got 'tensor<1x8xi64>'}}
    varlen.add_keys %xt to %table[%rows, %first] : tensor<8x8xf32>, !table, tensor<1x8xi64>
  } {varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 1, rows = 4, panels = 1, kv_block = 32, kv = copy>}
  return
}

// -----

!table = memref<?x?xf32, strided<[1, 1]>>
func.func @columns(%x: memref<8x12xf32>, %table: !table, %rows: memref<1x12xi64>, %first: i32, %n: index) {
  scf.forall (%i) in (%n) {
    %xt = bufferization.to_tensor %x restrict : memref<8x12xf32> to tensor<8x12xf32>
    %rt = bufferization.to_tensor %rows restrict : memref<1x12xi64> to tensor<1x12xi64>
    // expected-error @below {{'varlen.add_keys' op expected rows of a table in memory, one for each column, a multiple of 8, got 'tensor<1x12xi64>'}}
    varlen.add_keys %xt to %table[%rt, %first] : tensor<8x12xf32>, !table, tensor<1x12xi64>
  } {varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 1, rows = 4, panels = 1, kv_block = 32, kv = copy>}
  return
}

// -----

!table = memref<?x32xf32, strided<[1, 1]>>
func.func @values(%x: tensor<8x8xf32>, %index: memref<8x8xi32>, %table: !table, %rows: memref<1x8xi64>, %n: index) {
  scf.forall (%i) in (%n) {
    %it = bufferization.to_tensor %index restrict : memref<8x8xi32> to tensor<8x8xi32>
    %rt = bufferization.to_tensor %rows restrict : memref<1x8xi64> to tensor<1x8xi64>
    // expected-error @below {{'varlen.scatter_add' op expected values and indices that are computed in this block or lie in memory, got 'tensor<8x8xf32>'}}
    varlen.scatter_add %x at %it to %table[%rt] : tensor<8x8xf32>, tensor<8x8xi32>, !table, tensor<1x8xi64>
  } {varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 1, rows = 4, panels = 1, kv_block = 32, kv = copy>}
  return
}

// -----

!table = memref<?x32xf32, strided<[1, 1]>>
func.func @index(%x: memref<8x8xf32>, %table: !table, %rows: memref<1x8xi64>, %n: index) {
  scf.forall (%i) in (%n) {
    %zero = arith.constant 0 : i32
    %empty = tensor.empty() : tensor<8x8xi32>
    %it = linalg.fill ins(%zero : i32) outs(%empty : tensor<8x8xi32>) -> tensor<8x8xi32>
    %xt = bufferization.to_tensor %x restrict : memref<8x8xf32> to tensor<8x8xf32>
    %rt = bufferization.to_tensor %rows restrict : memref<1x8xi64> to tensor<1x8xi64>
    // expected-error @below {{'varlen.scatter_add' op expected values and indices that are computed in this block or lie in memory, got 'tensor<8x8xi32>'}}
    varlen.scatter_add %xt at %it to %table[%rt] : tensor<8x8xf32>, tensor<8x8xi32>, !table, tensor<1x8xi64>
  } {varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 1, rows = 4, panels = 1, kv_block = 32, kv = copy>}
  return
}
