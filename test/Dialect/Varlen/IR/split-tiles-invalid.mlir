// RUN: varlen-opt %s -split-input-file -verify-diagnostics

func.func @tiles(%tiles: memref<?x8xi64>, %group: index) {
  // expected-error @below {{expected tiles of 10 columns, got 'memref<?x8xi64>'}}
  %0:4 = varlen.split_tiles %tiles group %group kv_block 32 few 4 : memref<?x8xi64> -> memref<?x13xi64>
  return
}

// -----

func.func @items(%tiles: memref<?x10xi64>, %group: index) {
  // expected-error @below {{expected items of 13 columns, got 'memref<?x10xi64>'}}
  %0:4 = varlen.split_tiles %tiles group %group kv_block 32 few 4 : memref<?x10xi64> -> memref<?x10xi64>
  return
}

// -----

func.func @kv_block(%tiles: memref<?x10xi64>, %group: index) {
  // expected-error @below {{expected a positive kv_block, got 0}}
  %0:4 = varlen.split_tiles %tiles group %group kv_block 0 few 4 : memref<?x10xi64> -> memref<?x13xi64>
  return
}

// -----

func.func @blocks(%tiles: memref<?x10xi64>, %group: index) {
  // expected-error @below {{expected a positive few_blocks, got -1}}
  %0:4 = varlen.split_tiles %tiles group %group kv_block 32 few 4 parts(16, -1) : memref<?x10xi64> -> memref<?x13xi64>
  return
}

// -----

func.func @one_kind(%tiles: memref<?x10xi64>, %group: index) {
  // expected-error @below {{expected both blocks and few_blocks, or none}}
  %0:4 = "varlen.split_tiles"(%tiles, %group) <{kv_block = 32, few = 4, blocks = 16}>
      : (memref<?x10xi64>, index) -> (memref<?x13xi64>, index, index, index)
  return
}

// -----

func.func @few(%tiles: memref<?x10xi64>, %group: index) {
  // expected-error @below {{expected few to be 0 or more, got -1}}
  %0:4 = varlen.split_tiles %tiles group %group kv_block 32 few -1 : memref<?x10xi64> -> memref<?x13xi64>
  return
}
