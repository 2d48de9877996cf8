// RUN: varlen-opt %s -split-input-file -verify-diagnostics

func.func @no_copy() {
  // expected-error@+1 {{expected an order for each copy, and one copy at least, got 0 orders for 0 copies}}
  %0 = "varlen.to_tile"() {orders = []} : () -> tensor<8x16xf32>
}

// -----

func.func @orders(%m: memref<8x16xf32>) {
  // expected-error@+1 {{expected an order for each copy, and one copy at least, got 2 orders for 1 copies}}
  %0 = "varlen.to_tile"(%m) {orders = [#varlen.tile_order<rows>, #varlen.tile_order<columns>]} : (memref<8x16xf32>) -> tensor<8x16xf32>
}

// -----

func.func @no_order(%m: memref<8x16xf32>) {
  // expected-error@+1 {{attribute 'orders' failed to satisfy constraint: an order for each copy}}
  %0 = "varlen.to_tile"(%m) {orders = [1 : i32]} : (memref<8x16xf32>) -> tensor<8x16xf32>
}

// -----

func.func @unknown(%m: memref<8x16xf32>) {
  // expected-error@+1 {{expected one of [rows, columns, row_pairs, column_pairs] for where the elements of a tile lie in memory, got: diagonals}}
  %0 = varlen.to_tile %m as diagonals : memref<8x16xf32> to tensor<8x16xf32>
}

// -----

func.func @twice(%m: memref<8x16xf32>) {
  // expected-error@+1 {{expected one copy of each order, got several of rows}}
  %0 = varlen.to_tile %m as rows, %m as rows : memref<8x16xf32>, memref<8x16xf32> to tensor<8x16xf32>
}

// -----

func.func @shape(%m: memref<8x16xf32>) {
  // expected-error@+1 {{expected 'memref<16x8xf32>' for the columns of 'tensor<8x16xf32>', got 'memref<8x16xf32>'}}
  %0 = varlen.to_tile %m as columns : memref<8x16xf32> to tensor<8x16xf32>
}

// -----

func.func @pairs(%m: memref<?x16xbf16>) {
  // expected-error@+1 {{expected 'memref<4x32xbf16>' for the row_pairs of 'tensor<8x16xbf16>', got 'memref<?x16xbf16>'}}
  %0 = varlen.to_tile %m as row_pairs : memref<?x16xbf16> to tensor<8x16xbf16>
}

// -----

func.func @second(%m: memref<8x16xf32>, %t: memref<16x4xf32>) {
  // expected-error@+1 {{expected 'memref<16x8xf32>' for the columns of 'tensor<8x16xf32>', got 'memref<16x4xf32>'}}
  %0 = varlen.to_tile %m as rows, %t as columns : memref<8x16xf32>, memref<16x4xf32> to tensor<8x16xf32>
}

// -----

func.func @element(%m: memref<8x16xbf16>) {
  // expected-error@+1 {{expected 'memref<8x16xf32>' for the rows of 'tensor<8x16xf32>', got 'memref<8x16xbf16>'}}
  %0 = varlen.to_tile %m as rows : memref<8x16xbf16> to tensor<8x16xf32>
}

// -----

func.func @odd_rows(%m: memref<3x32xbf16>) {
  // expected-error@+1 {{expected an even number of rows for row_pairs, got 'tensor<7x16xbf16>'}}
  %0 = varlen.to_tile %m as row_pairs : memref<3x32xbf16> to tensor<7x16xbf16>
}

// -----

func.func @odd_columns(%m: memref<7x16xbf16>) {
  // expected-error@+1 {{expected an even number of columns for column_pairs, got 'tensor<8x15xbf16>'}}
  %0 = varlen.to_tile %m as column_pairs : memref<7x16xbf16> to tensor<8x15xbf16>
}

// -----

func.func @rank(%m: memref<8x16x1xf32>) {
  // expected-error@+1 {{operand #0 must be variadic of rank-2 memref of f16, bf16, f32 or f64}}
  %0 = varlen.to_tile %m as rows : memref<8x16x1xf32> to tensor<8x16xf32>
}
