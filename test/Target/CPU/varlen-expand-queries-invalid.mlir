// RUN: varlen-opt %s -split-input-file -verify-diagnostics --varlen-expand-queries

func.func @no_schedule(%i: index, %m: memref<3x16xf32>) {
  // expected-error@+1 {{expected a #varlen.cpu_schedule around it under varlen.schedule where queries are columns}}
  varlen.for_queries kq rows(%i, %i, %i, %i) valid(%i) ins(%m : memref<3x16xf32>) outs(%m as scratch : memref<3x16xf32>) {
  ^bb0(%0: tensor<1x48xf32>):
    varlen.yield %0 : tensor<1x48xf32>
  }
  return
}

// -----

func.func @limits(%i: index, %m: memref<3x16xi32>) {
  // expected-error@+1 {{expected a #varlen.cpu_schedule around it under varlen.schedule where queries are columns}}
  varlen.key_limits mask <full> pairs(%i, %i) valid(%i) of(%i, %i) to %m, %m : memref<3x16xi32>, memref<3x16xi32>
  return
}
