// RUN: varlen-opt %s --varlen-launch-linalg -verify-diagnostics

func.func @narrow(%x: memref<?xf8E4M3FN>, %y: memref<?xf32>) {
  // expected-error @below {{'linalg.generic' op has no kernel: expected elements of f16, bf16, f32, f64 or integers, got 'f8E4M3FN'}}
  linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%x : memref<?xf8E4M3FN>) outs(%y : memref<?xf32>) {
  ^bb0(%a: f8E4M3FN, %o: f32):
    %0 = arith.extf %a : f8E4M3FN to f32
    linalg.yield %0 : f32
  }
  return
}
