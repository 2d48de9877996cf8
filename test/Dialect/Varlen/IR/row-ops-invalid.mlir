// RUN: varlen-opt %s -split-input-file -verify-diagnostics

func.func @no_pages(%k: memref<?x16x2x64xf32>, %i: index, %to: memref<?x64xf32>) {
  // expected-error@+1 {{expected memory of rank 3 without pages, got 'memref<?x16x2x64xf32>'}}
  varlen.read_rows %k rows(%i, %i, %i, %i) valid(%i) to %to as rows : memref<?x16x2x64xf32> to memref<?x64xf32>
  return
}

// -----

func.func @rank(%k: memref<?x2x64xf32>, %table: memref<?x?xi32>, %i: index) {
  // expected-error@+1 {{expected memory of rank 4 with pages, got 'memref<?x2x64xf32>'}}
  varlen.prefetch_rows %k rows(%i, %i, %i, %i) valid(%i) pages(%table : memref<?x?xi32>) : memref<?x2x64xf32>
  return
}

// -----

func.func @one_page(%k: memref<?x2x64xf32>, %i: index) {
  // expected-error@+1 {{expected pages where one_page is, got none}}
  varlen.prefetch_rows %k rows(%i, %i, %i, %i) valid(%i) {one_page} : memref<?x2x64xf32>
  return
}

// -----

func.func @dynamic(%out: memref<?x8x?xf32>, %i: index) {
  // expected-error@+1 {{expected rows of a static size, got 'memref<?x8x?xf32>'}}
  varlen.fill_rows %out rows(%i, %i, %i, %i) valid(%i) with 0.0 : memref<?x8x?xf32>
  return
}

// -----

func.func @copies(%q: memref<?x8x64xf32>, %i: index) {
  // expected-error@+1 {{expected an order for each copy, and one copy at least, got 0 orders for 0 copies}}
  "varlen.read_rows"(%q, %i, %i, %i, %i, %i) {operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 0, 0>, orders = []}
      : (memref<?x8x64xf32>, index, index, index, index, index) -> ()
  return
}

// -----

func.func @twice(%q: memref<?x8x64xf32>, %i: index, %to: memref<48x64xf32>) {
  // expected-error@+1 {{expected one copy of each order, got several of rows}}
  varlen.read_rows %q rows(%i, %i, %i, %i) valid(%i) to %to as rows, %to as rows
      : memref<?x8x64xf32> to memref<48x64xf32>, memref<48x64xf32>
  return
}

// -----

func.func @shapes(%q: memref<?x8x64xf32>, %i: index, %rows: memref<48x64xf32>, %columns: memref<64x32xf32>) {
  // expected-error@+1 {{expected 'memref<64x48xf32>' for the columns of 'tensor<48x64xf32>', got 'memref<64x32xf32>'}}
  varlen.read_rows %q rows(%i, %i, %i, %i) valid(%i) to %rows as rows, %columns as columns
      : memref<?x8x64xf32> to memref<48x64xf32>, memref<64x32xf32>
  return
}

// -----

func.func @odd(%q: memref<?x8x32xbf16>, %i: index, %pairs: memref<?x65xbf16>) {
  // expected-error@+1 {{expected 'memref<?x64xbf16>' for the row_pairs of 'tensor<?x32xbf16>', got 'memref<?x65xbf16>'}}
  varlen.read_rows %q rows(%i, %i, %i, %i) valid(%i) to %pairs as row_pairs : memref<?x8x32xbf16> to memref<?x65xbf16>
  return
}

// -----

func.func @narrow(%q: memref<?x8x64xf32>, %i: index, %rows: memref<48x60xf32>) {
  // expected-error@+1 {{expected a static number of columns, 64 at least, got 'tensor<48x60xf32>'}}
  varlen.read_rows %q rows(%i, %i, %i, %i) valid(%i) to %rows as rows : memref<?x8x64xf32> to memref<48x60xf32>
  return
}

// -----

func.func @element(%q: memref<?x8x64xf32>, %i: index, %rows: memref<48x64xi8>) {
  // expected-error@+1 {{expected copies of floats, or of the elements of memory, 'f32', got 'i8'}}
  varlen.read_rows %q rows(%i, %i, %i, %i) valid(%i) to %rows as rows : memref<?x8x64xf32> to memref<48x64xi8>
  return
}

// -----

func.func @columns(%scratch: memref<?x?xf32>, %out: memref<?x8x64xf32>, %i: index) {
  // expected-error@+1 {{expected a static number of columns, 64 at least, got 'memref<?x?xf32>'}}
  varlen.write_rows %scratch to %out rows(%i, %i, %i, %i) valid(%i) : memref<?x?xf32> to memref<?x8x64xf32>
  return
}

// -----

func.func @fields(%list: memref<?x?xi64>, %i: index) {
  // expected-error@+1 {{expected a list of a static number of fields, got 'memref<?x?xi64>'}}
  %fields = varlen.read_work %list[%i] : memref<?x?xi64>
  return
}

// -----

func.func @loaded(%k: memref<?x2x64xf32>, %i: index) {
  // expected-error@+1 {{expected 'tensor<?x64xf32>', rows of 'memref<?x2x64xf32>', got 'tensor<?x64xbf16>'}}
  %0 = varlen.load_rows %k rows(%i, %i, %i) valid(%i) : memref<?x2x64xf32> -> tensor<?x64xbf16>
  return
}

// -----

func.func @loaded_rank(%k: memref<?x16x2x64xf32>, %i: index) {
  // expected-error@+1 {{expected memory of rank 3 without pages, got 'memref<?x16x2x64xf32>'}}
  %0 = varlen.load_rows %k rows(%i, %i, %i) valid(%i) : memref<?x16x2x64xf32> -> tensor<?x64xf32>
  return
}
