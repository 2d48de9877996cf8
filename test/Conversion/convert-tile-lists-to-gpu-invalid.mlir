// RUN: varlen-opt %s -split-input-file -verify-diagnostics --convert-tile-lists-to-gpu

func.func @no_batch(%batch: !varlen.batch, %s: index) -> index {
  // expected-error @below {{expected a batch that a varlen.batch makes}}
  %rows:6 = varlen.read_sequence %batch[%s] : index, index, index, index, index, index
  return %rows#0 : index
}

// -----

func.func @in_kernel(%cu: memref<?xi32>, %n: index) {
  %c1 = arith.constant 1 : index
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%c1, %c1) mask <full> : memref<?xi32>, memref<?xi32>
  gpu.launch blocks(%a, %b, %c) in (%d = %c1, %e = %c1, %f = %c1)
             threads(%g, %h, %i) in (%j = %c1, %k = %c1, %l = %c1) {
    // expected-error @below {{is in a kernel, which cannot launch others: expected host code}}
    %list, %count = varlen.list_tiles !varlen.tile<queries(128)> of %batch loops(1)
        : memref<?x2xi32>, memref<2xi64>
    gpu.terminator
  }
  return
}
