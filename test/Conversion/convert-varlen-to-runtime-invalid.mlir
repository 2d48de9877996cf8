// RUN: varlen-opt %s --convert-varlen-to-runtime --split-input-file --verify-diagnostics

// The runtime decides how many tiles there are.
func.func @static(%cu: memref<?xi32>, %n: index) -> memref<4x10xi64> {
  // expected-error @below {{expected a result of type memref<?x10xi64>, got 'memref<4x10xi64>'}}
  %tiles = varlen.work_tiles %cu, %cu rows(%n, %n) heads(%n, %n)
      mask #varlen.mask<full> block_m 64
      : (memref<?xi32>, memref<?xi32>, index, index, index, index) -> memref<4x10xi64>
  return %tiles : memref<4x10xi64>
}

// -----

// Its declaration is one of func.
llvm.func @no_function(%size: i64) {
  %n = builtin.unrealized_conversion_cast %size : i64 to index
  %cu = builtin.unrealized_conversion_cast %size : i64 to memref<?xi32>
  // expected-error @below {{expected to be in a func.func}}
  %tiles = varlen.work_tiles %cu, %cu rows(%n, %n) heads(%n, %n)
      mask #varlen.mask<full> block_m 64
      : (memref<?xi32>, memref<?xi32>, index, index, index, index) -> memref<?x10xi64>
  llvm.return
}

// -----

// expected-note @below {{the name stands for this}}
func.func private @varlen_work_tiles(i32)

func.func @taken(%cu: memref<?xi32>, %n: index) -> memref<?x10xi64> {
  // expected-error @below {{needs the runtime function 'varlen_work_tiles' of type}}
  %tiles = varlen.work_tiles %cu, %cu rows(%n, %n) heads(%n, %n)
      mask #varlen.mask<full> block_m 64
      : (memref<?xi32>, memref<?xi32>, index, index, index, index) -> memref<?x10xi64>
  return %tiles : memref<?x10xi64>
}

// -----

func.func @static_items(%tiles: memref<?x10xi64>, %group: index) {
  // expected-error @below {{expected a result of type memref<?x13xi64>, got 'memref<4x13xi64>'}}
  %0:4 = varlen.split_tiles %tiles group %group kv_block 32 few 4 : memref<?x10xi64> -> memref<4x13xi64>
  return
}

// -----

func.func @strided_tiles(%tiles: memref<?x10xi64, strided<[20, 1]>>, %group: index) {
  // expected-error @below {{expected a list of the identity layout, got 'memref<?x10xi64, strided<[20, 1]>>'}}
  %0:4 = varlen.split_tiles %tiles group %group kv_block 32 few 4
      : memref<?x10xi64, strided<[20, 1]>> -> memref<?x13xi64>
  return
}
