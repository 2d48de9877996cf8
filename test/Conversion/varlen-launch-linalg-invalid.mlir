// RUN: varlen-opt %s --varlen-launch-linalg -verify-diagnostics

func.func @narrow(%x: memref<?xf8E5M2>, %y: memref<?xf32>) {
  // expected-error @below {{'linalg.generic' op has no kernel: expected elements of f16, bf16, f32, f64 or integers, got 'f8E5M2'}}
  linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%x : memref<?xf8E5M2>) outs(%y : memref<?xf32>) {
  ^bb0(%a: f8E5M2, %o: f32):
    %0 = arith.extf %a : f8E5M2 to f32
    linalg.yield %0 : f32
  }
  return
}

// Numbers of a cache are moved and converted only.
func.func @of_a_cache(%x: memref<?xf8E4M3FN>) {
  // expected-error @below {{'linalg.generic' op has no kernel: expected elements of f16, bf16, f32, f64 or integers, got 'f8E4M3FN'}}
  linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      outs(%x : memref<?xf8E4M3FN>) {
  ^bb0(%a: f8E4M3FN):
    %0 = arith.addf %a, %a : f8E4M3FN
    linalg.yield %0 : f8E4M3FN
  }
  return
}
