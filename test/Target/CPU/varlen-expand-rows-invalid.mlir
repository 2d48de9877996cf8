// RUN: varlen-opt %s -verify-diagnostics --varlen-expand-rows

func.func @no_schedule(%q: memref<?x8x64xf32>, %i: index, %to: memref<64x48xf32>) {
  // expected-error@+1 {{expected a #varlen.cpu_schedule around it under varlen.schedule where an order is other than rows}}
  varlen.read_rows %q rows(%i, %i, %i, %i) valid(%i) to %to as columns : memref<?x8x64xf32> to memref<64x48xf32>
  return
}
