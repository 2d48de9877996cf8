// RUN: varlen-opt %s -split-input-file -verify-diagnostics --varlen-expand-rows

func.func @no_schedule(%q: memref<?x8x64xf32>, %i: index, %to: memref<64x48xf32>) {
  // expected-error@+1 {{expected a #varlen.cpu_schedule around it under varlen.schedule where an order is other than rows}}
  varlen.read_rows %q rows(%i, %i, %i, %i) valid(%i) to %to as columns : memref<?x8x64xf32> to memref<64x48xf32>
  return
}

// -----

func.func @copy(%k: memref<?x16x2x64xf32>, %table: memref<?x?xi32>, %i: index) -> tensor<?x64xf32> {
  // expected-error@+1 {{expected a #varlen.cpu_schedule around it under varlen.schedule where rows in pages are read by an operation that is not of linalg, or needs more than one page}}
  %0 = varlen.load_rows %k rows(%i, %i, %i) valid(%i) pages(%table : memref<?x?xi32>) : memref<?x16x2x64xf32> -> tensor<?x64xf32>
  return %0 : tensor<?x64xf32>
}
