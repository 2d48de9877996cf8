// RUN: varlen-opt %s --varlen-vectorize-tiles --split-input-file --verify-diagnostics

// A statistic of a dynamic number of rows.

func.func @f(%x: memref<8x16xf32>, %m: tensor<?x16xf32>, %o: memref<8x16xf32>, %n: index) {
  scf.forall (%i) in (%n) {
    %xt = bufferization.to_tensor %x restrict : memref<8x16xf32> to tensor<8x16xf32>
    // expected-error @below {{'linalg.generic' op expected operand #1 to be a rank-2 tile of the same block, got 'tensor<?x16xf32>'}}
    %0 = linalg.generic {indexing_maps = [affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (0, c)>, affine_map<(r, c) -> (r, c)>], iterator_types = ["parallel", "parallel"]} ins(%xt, %m : tensor<8x16xf32>, tensor<?x16xf32>) outs(%xt : tensor<8x16xf32>) {
    ^bb0(%a: f32, %b: f32, %old: f32):
      %result = arith.addf %a, %b : f32
      linalg.yield %result : f32
    } -> tensor<8x16xf32>
    bufferization.materialize_in_destination %0 in restrict writable %o : (tensor<8x16xf32>, memref<8x16xf32>) -> ()
  } {varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 1, kv_block = 32, kv = copy>}
  return
}

// -----

func.func @f(%x: memref<8x16xf32>, %m: memref<?x16xf32>, %o: memref<8x16xf32>, %n: index) {
  scf.forall (%i) in (%n) {
    %xt = bufferization.to_tensor %x restrict : memref<8x16xf32> to tensor<8x16xf32>
    %mt = bufferization.to_tensor %m restrict : memref<?x16xf32> to tensor<?x16xf32>
    // expected-error @below {{'linalg.generic' op expected operands of 16 columns and the rows of the loop or one, got 'tensor<?x16xf32>'}}
    %0 = linalg.generic {indexing_maps = [affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (0, c)>, affine_map<(r, c) -> (r, c)>], iterator_types = ["parallel", "parallel"]} ins(%xt, %mt : tensor<8x16xf32>, tensor<?x16xf32>) outs(%xt : tensor<8x16xf32>) {
    ^bb0(%a: f32, %b: f32, %old: f32):
      %result = arith.addf %a, %b : f32
      linalg.yield %result : f32
    } -> tensor<8x16xf32>
    bufferization.materialize_in_destination %0 in restrict writable %o : (tensor<8x16xf32>, memref<8x16xf32>) -> ()
  } {varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 1, kv_block = 32, kv = copy>}
  return
}

// -----

// Columns are whole vectors.

func.func @f(%x: memref<8x12xf32>, %n: index) {
  scf.forall (%i) in (%n) {
    %xt = bufferization.to_tensor %x restrict : memref<8x12xf32> to tensor<8x12xf32>
    // expected-error @below {{'linalg.generic' op expected one rank-2 tile with a multiple of 8 columns as the result}}
    %0 = linalg.generic {indexing_maps = [affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (r, c)>], iterator_types = ["parallel", "parallel"]} ins(%xt : tensor<8x12xf32>) outs(%xt : tensor<8x12xf32>) {
    ^bb0(%a: f32, %old: f32):
      %result = arith.negf %a : f32
      linalg.yield %result : f32
    } -> tensor<8x12xf32>
    bufferization.materialize_in_destination %0 in restrict writable %x : (tensor<8x12xf32>, memref<8x12xf32>) -> ()
  } {varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 1, kv_block = 32, kv = copy>}
  return
}

// -----

// Buffers are for the operations around tiles.

func.func @f(%x: memref<8x16xf32>, %z: f32, %n: index) {
  scf.forall (%i) in (%n) {
    %xt = bufferization.to_tensor %x restrict : memref<8x16xf32> to tensor<8x16xf32>
    // expected-error @below {{'linalg.fill' op expected one rank-2 tile with a multiple of 8 columns as the result}}
    linalg.fill ins(%z : f32) outs(%x : memref<8x16xf32>)
    %0 = linalg.generic {indexing_maps = [affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (r, c)>], iterator_types = ["parallel", "parallel"]} ins(%xt : tensor<8x16xf32>) outs(%xt : tensor<8x16xf32>) {
    ^bb0(%a: f32, %old: f32):
      %result = arith.negf %a : f32
      linalg.yield %result : f32
    } -> tensor<8x16xf32>
    bufferization.materialize_in_destination %0 in restrict writable %x : (tensor<8x16xf32>, memref<8x16xf32>) -> ()
  } {varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 1, kv_block = 32, kv = copy>}
  return
}

// -----

// Elements are numbers that vectors have.

func.func @f(%x: memref<8x16xcomplex<f32>>, %n: index) {
  scf.forall (%i) in (%n) {
    %xt = bufferization.to_tensor %x restrict : memref<8x16xcomplex<f32>> to tensor<8x16xcomplex<f32>>
    // expected-error @below {{'linalg.generic' op expected one rank-2 tile with a multiple of 8 columns as the result}}
    %0 = linalg.generic {indexing_maps = [affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (r, c)>], iterator_types = ["parallel", "parallel"]} ins(%xt : tensor<8x16xcomplex<f32>>) outs(%xt : tensor<8x16xcomplex<f32>>) {
    ^bb0(%a: complex<f32>, %old: complex<f32>):
      linalg.yield %a : complex<f32>
    } -> tensor<8x16xcomplex<f32>>
    bufferization.materialize_in_destination %0 in restrict writable %x : (tensor<8x16xcomplex<f32>>, memref<8x16xcomplex<f32>>) -> ()
  } {varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 1, kv_block = 32, kv = copy>}
  return
}

// -----

func.func @f(%x: memref<8x16xf32>, %n: index) {
  scf.forall (%i) in (%n) {
    %xt = bufferization.to_tensor %x restrict : memref<8x16xf32> to tensor<8x16xf32>
    // expected-error @below {{'linalg.generic' op expected every operand to be a tile or one value per column}}
    %0 = linalg.generic {indexing_maps = [affine_map<(r, c) -> (r, 0)>, affine_map<(r, c) -> (r, c)>], iterator_types = ["parallel", "parallel"]} ins(%xt : tensor<8x16xf32>) outs(%xt : tensor<8x16xf32>) {
    ^bb0(%a: f32, %old: f32):
      %result = arith.negf %a : f32
      linalg.yield %result : f32
    } -> tensor<8x16xf32>
    bufferization.materialize_in_destination %0 in restrict writable %x : (tensor<8x16xf32>, memref<8x16xf32>) -> ()
  } {varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 1, kv_block = 32, kv = copy>}
  return
}

// -----

// A sum over columns is none over rows.

func.func @f(%x: memref<8x16xf32>, %s: memref<8x16xf32>, %n: index) {
  scf.forall (%i) in (%n) {
    %xt = bufferization.to_tensor %x restrict : memref<8x16xf32> to tensor<8x16xf32>
    %st = bufferization.to_tensor %s restrict : memref<8x16xf32> to tensor<8x16xf32>
    // expected-error @below {{'linalg.generic' op expected a reduction over the rows of the first operand}}
    %0 = linalg.generic {indexing_maps = [affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (r, 0)>], iterator_types = ["parallel", "reduction"]} ins(%xt : tensor<8x16xf32>) outs(%st : tensor<8x16xf32>) {
    ^bb0(%a: f32, %b: f32):
      %result = arith.addf %a, %b : f32
      linalg.yield %result : f32
    } -> tensor<8x16xf32>
    bufferization.materialize_in_destination %0 in restrict writable %s : (tensor<8x16xf32>, memref<8x16xf32>) -> ()
  } {varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 1, kv_block = 32, kv = copy>}
  return
}

// -----

// What a reduction begins with.

func.func @f(%x: memref<8x16xf32>, %s: memref<1x16xf32>, %n: index) {
  scf.forall (%i) in (%n) {
    %xt = bufferization.to_tensor %x restrict : memref<8x16xf32> to tensor<8x16xf32>
    %e = tensor.empty() : tensor<1x16xf32>
    // expected-error @below {{'linalg.generic' op expected an initial value of the reduction}}
    %0 = linalg.generic {indexing_maps = [affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (0, c)>], iterator_types = ["reduction", "parallel"]} ins(%xt : tensor<8x16xf32>) outs(%e : tensor<1x16xf32>) {
    ^bb0(%a: f32, %b: f32):
      %result = arith.addf %a, %b : f32
      linalg.yield %result : f32
    } -> tensor<1x16xf32>
    bufferization.materialize_in_destination %0 in restrict writable %s : (tensor<1x16xf32>, memref<1x16xf32>) -> ()
  } {varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 1, kv_block = 32, kv = copy>}
  return
}

// -----

// Nobody has computed what is read.

func.func @f(%x: memref<8x16xf32>, %n: index) {
  scf.forall (%i) in (%n) {
    %e = tensor.empty() : tensor<8x16xf32>
    // expected-error @below {{'linalg.generic' op expected 'tensor<8x16xf32>' to be computed or to lie in memory in rows}}
    %0 = linalg.generic {indexing_maps = [affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (r, c)>], iterator_types = ["parallel", "parallel"]} ins(%e : tensor<8x16xf32>) outs(%e : tensor<8x16xf32>) {
    ^bb0(%a: f32, %old: f32):
      %result = arith.negf %a : f32
      linalg.yield %result : f32
    } -> tensor<8x16xf32>
    bufferization.materialize_in_destination %0 in restrict writable %x : (tensor<8x16xf32>, memref<8x16xf32>) -> ()
  } {varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 1, kv_block = 32, kv = copy>}
  return
}

// -----

// Bodies are elementwise.

func.func @f(%x: memref<8x16xf32>, %table: memref<4xf32>, %n: index) {
  scf.forall (%i) in (%n) {
    %xt = bufferization.to_tensor %x restrict : memref<8x16xf32> to tensor<8x16xf32>
    %0 = linalg.generic {indexing_maps = [affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (r, c)>], iterator_types = ["parallel", "parallel"]} ins(%xt : tensor<8x16xf32>) outs(%xt : tensor<8x16xf32>) {
    ^bb0(%a: f32, %old: f32):
      %r = linalg.index 0 : index
      // expected-error @below {{'memref.load' op expected an elementwise operation on numbers in the body of a tile operation}}
      %result = memref.load %table[%r] : memref<4xf32>
      linalg.yield %result : f32
    } -> tensor<8x16xf32>
    bufferization.materialize_in_destination %0 in restrict writable %x : (tensor<8x16xf32>, memref<8x16xf32>) -> ()
  } {varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 1, kv_block = 32, kv = copy>}
  return
}

// -----

func.func @f(%x: memref<8x16xf32>, %n: index) {
  scf.forall (%i) in (%n) {
    %xt = bufferization.to_tensor %x restrict : memref<8x16xf32> to tensor<8x16xf32>
    // expected-error @below {{'linalg.generic' op expected a body that does not read what it overwrites}}
    %0 = linalg.generic {indexing_maps = [affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (r, c)>], iterator_types = ["parallel", "parallel"]} ins(%xt : tensor<8x16xf32>) outs(%xt : tensor<8x16xf32>) {
    ^bb0(%a: f32, %b: f32):
      %result = arith.addf %a, %b : f32
      linalg.yield %result : f32
    } -> tensor<8x16xf32>
    bufferization.materialize_in_destination %0 in restrict writable %x : (tensor<8x16xf32>, memref<8x16xf32>) -> ()
  } {varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 1, kv_block = 32, kv = copy>}
  return
}

// -----

// The right factor of a product has vectors of columns.

func.func @f(%a: memref<8x6xf32>, %b: memref<?x16xf32>, %o: memref<8x16xf32>, %n: index) {
  scf.forall (%i) in (%n) {
    %at = bufferization.to_tensor %a restrict : memref<8x6xf32> to tensor<8x6xf32>
    %bt = bufferization.to_tensor %b restrict : memref<?x16xf32> to tensor<?x16xf32>
    %ot = bufferization.to_tensor %o restrict : memref<8x16xf32> to tensor<8x16xf32>
    // expected-error @below {{'linalg.contract' op expected a contraction of the form (r, c) += (r, k) or (k, r), (k, c)}}
    %0 = linalg.contract indexing_maps = [affine_map<(r, c, k) -> (k, c)>, affine_map<(r, c, k) -> (r, k)>, affine_map<(r, c, k) -> (r, c)>] ins(%bt, %at : tensor<?x16xf32>, tensor<8x6xf32>) outs(%ot : tensor<8x16xf32>) -> tensor<8x16xf32>
    bufferization.materialize_in_destination %0 in restrict writable %o : (tensor<8x16xf32>, memref<8x16xf32>) -> ()
  } {varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 1, kv_block = 32, kv = copy>}
  return
}

// -----

func.func @f(%a: memref<8x6xi32>, %b: memref<6x16xi32>, %o: memref<8x16xi32>, %n: index) {
  scf.forall (%i) in (%n) {
    %at = bufferization.to_tensor %a restrict : memref<8x6xi32> to tensor<8x6xi32>
    %bt = bufferization.to_tensor %b restrict : memref<6x16xi32> to tensor<6x16xi32>
    %ot = bufferization.to_tensor %o restrict : memref<8x16xi32> to tensor<8x16xi32>
    // expected-error @below {{'linalg.contract' op expected factors of the floating-point type of the sums or a narrower one, got 'i32' and 'i32' for sums of 'i32'}}
    %0 = linalg.contract indexing_maps = [affine_map<(r, c, k) -> (r, k)>, affine_map<(r, c, k) -> (k, c)>, affine_map<(r, c, k) -> (r, c)>] ins(%at, %bt : tensor<8x6xi32>, tensor<6x16xi32>) outs(%ot : tensor<8x16xi32>) -> tensor<8x16xi32>
    bufferization.materialize_in_destination %0 in restrict writable %o : (tensor<8x16xi32>, memref<8x16xi32>) -> ()
  } {varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 1, kv_block = 32, kv = copy>}
  return
}

// -----

// Factors of products lie in memory.

func.func @f(%a: memref<8x6xf32>, %z: f32, %o: memref<8x16xf32>, %n: index) {
  scf.forall (%i) in (%n) {
    %at = bufferization.to_tensor %a restrict : memref<8x6xf32> to tensor<8x6xf32>
    %ot = bufferization.to_tensor %o restrict : memref<8x16xf32> to tensor<8x16xf32>
    %e = tensor.empty() : tensor<6x16xf32>
    %b = linalg.fill ins(%z : f32) outs(%e : tensor<6x16xf32>) -> tensor<6x16xf32>
    // expected-error @below {{'linalg.contract' op expected 'tensor<6x16xf32>' to be in memory or computed row by row for this product}}
    %0 = linalg.contract indexing_maps = [affine_map<(r, c, k) -> (r, k)>, affine_map<(r, c, k) -> (k, c)>, affine_map<(r, c, k) -> (r, c)>] ins(%at, %b : tensor<8x6xf32>, tensor<6x16xf32>) outs(%ot : tensor<8x16xf32>) -> tensor<8x16xf32>
    bufferization.materialize_in_destination %0 in restrict writable %o : (tensor<8x16xf32>, memref<8x16xf32>) -> ()
  } {varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 1, kv_block = 32, kv = copy>}
  return
}

// -----

func.func @f(%a: memref<8x6xf32>, %b: memref<6x16xf32>, %o: memref<8x16xf32>, %n: index) {
  scf.forall (%i) in (%n) {
    %at = bufferization.to_tensor %a restrict : memref<8x6xf32> to tensor<8x6xf32>
    %bt = bufferization.to_tensor %b restrict : memref<6x16xf32> to tensor<6x16xf32>
    %e = tensor.empty() : tensor<8x16xf32>
    // expected-error @below {{'linalg.contract' op expected an initial value of the product, in rows}}
    %0 = linalg.contract indexing_maps = [affine_map<(r, c, k) -> (r, k)>, affine_map<(r, c, k) -> (k, c)>, affine_map<(r, c, k) -> (r, c)>] ins(%at, %bt : tensor<8x6xf32>, tensor<6x16xf32>) outs(%e : tensor<8x16xf32>) -> tensor<8x16xf32>
    bufferization.materialize_in_destination %0 in restrict writable %o : (tensor<8x16xf32>, memref<8x16xf32>) -> ()
  } {varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 1, kv_block = 32, kv = copy>}
  return
}

// -----

func.func @f(%a: memref<8x6xf32>, %b: memref<16x6xf32>, %o: memref<8x16xf32>, %n: index) {
  scf.forall (%i) in (%n) {
    %at = bufferization.to_tensor %a restrict : memref<8x6xf32> to tensor<8x6xf32>
    %bt = bufferization.to_tensor %b restrict : memref<16x6xf32> to tensor<16x6xf32>
    %ot = bufferization.to_tensor %o restrict : memref<8x16xf32> to tensor<8x16xf32>
    // expected-error @below {{'linalg.contract' op expected a contraction of the form (r, c) += (r, k) or (k, r), (k, c)}}
    %0 = linalg.contract indexing_maps = [affine_map<(r, c, k) -> (r, k)>, affine_map<(r, c, k) -> (c, k)>, affine_map<(r, c, k) -> (r, c)>] ins(%at, %bt : tensor<8x6xf32>, tensor<16x6xf32>) outs(%ot : tensor<8x16xf32>) -> tensor<8x16xf32>
    bufferization.materialize_in_destination %0 in restrict writable %o : (tensor<8x16xf32>, memref<8x16xf32>) -> ()
  } {varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 1, kv_block = 32, kv = copy>}
  return
}

// -----

// Nobody has chosen a copy that the product can read.

func.func @f(%a: memref<8x6xf32>, %b: memref<16x6xf32>, %o: memref<8x16xf32>, %n: index) {
  scf.forall (%i) in (%n) {
    %at = bufferization.to_tensor %a restrict : memref<8x6xf32> to tensor<8x6xf32>
    %bt = varlen.to_tile %b as columns : memref<16x6xf32> to tensor<6x16xf32>
    %ot = bufferization.to_tensor %o restrict : memref<8x16xf32> to tensor<8x16xf32>
    // expected-error @below {{'linalg.contract' op expected 'tensor<6x16xf32>' to lie in memory in rows for this product}}
    %0 = linalg.contract indexing_maps = [affine_map<(r, c, k) -> (r, k)>, affine_map<(r, c, k) -> (k, c)>, affine_map<(r, c, k) -> (r, c)>] ins(%at, %bt : tensor<8x6xf32>, tensor<6x16xf32>) outs(%ot : tensor<8x16xf32>) -> tensor<8x16xf32>
    bufferization.materialize_in_destination %0 in restrict writable %o : (tensor<8x16xf32>, memref<8x16xf32>) -> ()
  } {varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 1, kv_block = 32, kv = copy>}
  return
}

// -----

// Two rows of pairs are rounded at once.

func.func @f(%x: memref<7x16xf32>, %b: memref<7x16xbf16>, %n: index) {
  scf.forall (%i) in (%n) {
    %xt = bufferization.to_tensor %x restrict : memref<7x16xf32> to tensor<7x16xf32>
    %bt = bufferization.to_tensor %b restrict : memref<7x16xbf16> to tensor<7x16xbf16>
    // expected-error @below {{'linalg.generic' op expected an even number of rows of pairs, got 7}}
    %0 = linalg.generic {indexing_maps = [affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (r, c)>], iterator_types = ["parallel", "parallel"]} ins(%xt : tensor<7x16xf32>) outs(%bt : tensor<7x16xbf16>) {
    ^bb0(%a: f32, %old: bf16):
      %result = arith.truncf %a : f32 to bf16
      linalg.yield %result : bf16
    } -> tensor<7x16xbf16>
    bufferization.materialize_in_destination %0 in restrict writable %b : (tensor<7x16xbf16>, memref<7x16xbf16>) -> ()
  } {varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 1, kv_block = 32, kv = pairs>}
  return
}

// -----

func.func @f(%x: memref<8x16xf32>, %b: memref<8x16xbf16>, %n: index) {
  scf.forall (%i) in (%n) {
    %xt = bufferization.to_tensor %x restrict : memref<8x16xf32> to tensor<8x16xf32>
    %bt = bufferization.to_tensor %b restrict : memref<8x16xbf16> to tensor<8x16xbf16>
    // expected-error @below {{'linalg.generic' op expected a factor of pairs to be rounded from a wider tile}}
    %0 = linalg.generic {indexing_maps = [affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (r, c)>], iterator_types = ["parallel", "parallel"]} ins(%bt : tensor<8x16xbf16>) outs(%bt : tensor<8x16xbf16>) {
    ^bb0(%a: bf16, %old: bf16):
      %result = arith.negf %a : bf16
      linalg.yield %result : bf16
    } -> tensor<8x16xbf16>
    bufferization.materialize_in_destination %0 in restrict writable %b : (tensor<8x16xbf16>, memref<8x16xbf16>) -> ()
  } {varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 1, kv_block = 32, kv = pairs>}
  return
}

// -----

// A band is one of limits.

func.func @f(%x: memref<8x16xf32>, %n: index) {
  scf.forall (%i) in (%n) {
    %xt = bufferization.to_tensor %x restrict : memref<8x16xf32> to tensor<8x16xf32>
    // expected-error @below {{'linalg.generic' op expected varlen.band on scores and two limits of i32}}
    %0 = linalg.generic {indexing_maps = [affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (r, c)>], iterator_types = ["parallel", "parallel"]} ins(%xt : tensor<8x16xf32>) outs(%xt : tensor<8x16xf32>) attrs = {varlen.band} {
    ^bb0(%a: f32, %old: f32):
      %result = arith.negf %a : f32
      linalg.yield %result : f32
    } -> tensor<8x16xf32>
    bufferization.materialize_in_destination %0 in restrict writable %x : (tensor<8x16xf32>, memref<8x16xf32>) -> ()
  } {varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 1, kv_block = 32, kv = copy>}
  return
}

// -----

// Vectors are loaded from rows.

func.func @f(%m: memref<8x16xf32, strided<[32, 2]>>, %x: memref<8x16xf32>, %n: index) {
  scf.forall (%i) in (%n) {
    // expected-error @below {{'bufferization.to_tensor' op expected a rank-2 memref whose rows are contiguous, got 'memref<8x16xf32, strided<[32, 2]>>'}}
    %mt = bufferization.to_tensor %m restrict : memref<8x16xf32, strided<[32, 2]>> to tensor<8x16xf32>
    %0 = linalg.generic {indexing_maps = [affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (r, c)>], iterator_types = ["parallel", "parallel"]} ins(%mt : tensor<8x16xf32>) outs(%mt : tensor<8x16xf32>) {
    ^bb0(%a: f32, %old: f32):
      %result = arith.negf %a : f32
      linalg.yield %result : f32
    } -> tensor<8x16xf32>
    bufferization.materialize_in_destination %0 in restrict writable %x : (tensor<8x16xf32>, memref<8x16xf32>) -> ()
  } {varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 1, kv_block = 32, kv = copy>}
  return
}

// -----

func.func @f(%m: memref<8x16xf32, affine_map<(r, c) -> (r * 2, c)>>, %x: memref<8x16xf32>, %n: index) {
  scf.forall (%i) in (%n) {
    // expected-error @below {{'bufferization.to_tensor' op expected a rank-2 memref whose rows are contiguous, got 'memref<8x16xf32, affine_map<(d0, d1) -> (d0 * 2, d1)>>'}}
    %mt = bufferization.to_tensor %m restrict : memref<8x16xf32, affine_map<(r, c) -> (r * 2, c)>> to tensor<8x16xf32>
    %0 = linalg.generic {indexing_maps = [affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (r, c)>], iterator_types = ["parallel", "parallel"]} ins(%mt : tensor<8x16xf32>) outs(%mt : tensor<8x16xf32>) {
    ^bb0(%a: f32, %old: f32):
      %result = arith.negf %a : f32
      linalg.yield %result : f32
    } -> tensor<8x16xf32>
    bufferization.materialize_in_destination %0 in restrict writable %x : (tensor<8x16xf32>, memref<8x16xf32>) -> ()
  } {varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 1, kv_block = 32, kv = copy>}
  return
}

// -----

func.func @f(%m: memref<16x8xf32, strided<[16, 2]>>, %x: memref<8x16xf32>, %n: index) {
  scf.forall (%i) in (%n) {
    // expected-error @below {{'varlen.to_tile' op expected a rank-2 memref whose rows are contiguous, got 'memref<16x8xf32, strided<[16, 2]>>'}}
    %mt = varlen.to_tile %x as rows, %m as columns : memref<8x16xf32>, memref<16x8xf32, strided<[16, 2]>> to tensor<8x16xf32>
    %0 = linalg.generic {indexing_maps = [affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (r, c)>], iterator_types = ["parallel", "parallel"]} ins(%mt : tensor<8x16xf32>) outs(%mt : tensor<8x16xf32>) {
    ^bb0(%a: f32, %old: f32):
      %result = arith.negf %a : f32
      linalg.yield %result : f32
    } -> tensor<8x16xf32>
    bufferization.materialize_in_destination %0 in restrict writable %x : (tensor<8x16xf32>, memref<8x16xf32>) -> ()
  } {varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 1, kv_block = 32, kv = copy>}
  return
}

// -----

// Only what is computed is stored.

func.func @f(%x: memref<8x16xf32>, %y: memref<8x16xf32>, %n: index) {
  scf.forall (%i) in (%n) {
    %xt = bufferization.to_tensor %x restrict : memref<8x16xf32> to tensor<8x16xf32>
    // expected-error @below {{'bufferization.materialize_in_destination' op expected a tile that is computed in this block, got another value of type 'tensor<8x16xf32>'}}
    bufferization.materialize_in_destination %xt in restrict writable %y : (tensor<8x16xf32>, memref<8x16xf32>) -> ()
  } {varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 1, kv_block = 32, kv = copy>}
  return
}

// -----

func.func @f(%x: memref<8x16xf32>, %y: memref<8x16xf32>, %z: memref<8x16xf32>, %n: index) {
  scf.forall (%i) in (%n) {
    %xt = bufferization.to_tensor %x restrict : memref<8x16xf32> to tensor<8x16xf32>
    %0 = linalg.generic {indexing_maps = [affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (r, c)>], iterator_types = ["parallel", "parallel"]} ins(%xt : tensor<8x16xf32>) outs(%xt : tensor<8x16xf32>) {
    ^bb0(%a: f32, %old: f32):
      %result = arith.negf %a : f32
      linalg.yield %result : f32
    } -> tensor<8x16xf32>
    // expected-error @below {{'bufferization.materialize_in_destination' op expected one destination of a tile, got several}}
    bufferization.materialize_in_destination %0 in restrict writable %y : (tensor<8x16xf32>, memref<8x16xf32>) -> ()
    bufferization.materialize_in_destination %0 in restrict writable %z : (tensor<8x16xf32>, memref<8x16xf32>) -> ()
  } {varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 1, kv_block = 32, kv = copy>}
  return
}

// -----

func.func @f(%x: memref<8x16xf32>, %y: memref<16x16xf32>, %n: index) {
  scf.forall (%i) in (%n) {
    %xt = bufferization.to_tensor %x restrict : memref<8x16xf32> to tensor<8x16xf32>
    %0 = linalg.generic {indexing_maps = [affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (r, c)>], iterator_types = ["parallel", "parallel"]} ins(%xt : tensor<8x16xf32>) outs(%xt : tensor<8x16xf32>) {
    ^bb0(%a: f32, %old: f32):
      %result = arith.negf %a : f32
      linalg.yield %result : f32
    } -> tensor<8x16xf32>
    %part = memref.subview %y[0, 0] [8, 16] [1, 1] : memref<16x16xf32> to memref<8x16xf32, strided<[16, 1]>>
    // expected-error @below {{'bufferization.materialize_in_destination' op expected the destination to be there before the tile is computed}}
    bufferization.materialize_in_destination %0 in restrict writable %part : (tensor<8x16xf32>, memref<8x16xf32, strided<[16, 1]>>) -> ()
  } {varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 1, kv_block = 32, kv = copy>}
  return
}

// -----

// A tile ends in its block.

func.func @f(%x: memref<8x16xf32>, %y: memref<f32>, %n: index) {
  scf.forall (%i) in (%n) {
    %xt = bufferization.to_tensor %x restrict : memref<8x16xf32> to tensor<8x16xf32>
    // expected-error @below {{'linalg.generic' op expected a tile to be used by tile operations of the same block only}}
    %0 = linalg.generic {indexing_maps = [affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (r, c)>], iterator_types = ["parallel", "parallel"]} ins(%xt : tensor<8x16xf32>) outs(%xt : tensor<8x16xf32>) {
    ^bb0(%a: f32, %old: f32):
      %result = arith.negf %a : f32
      linalg.yield %result : f32
    } -> tensor<8x16xf32>
    bufferization.materialize_in_destination %0 in restrict writable %x : (tensor<8x16xf32>, memref<8x16xf32>) -> ()
    %e = tensor.extract %0[%i, %i] : tensor<8x16xf32>
    memref.store %e, %y[] : memref<f32>
  } {varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 1, kv_block = 32, kv = copy>}
  return
}

// -----

// A transpose is only how memory is named: there is none in registers.

func.func @f(%x: memref<8x8xf32>, %n: index) {
  scf.forall (%i) in (%n) {
    %xt = bufferization.to_tensor %x restrict : memref<8x8xf32> to tensor<8x8xf32>
    %empty = tensor.empty() : tensor<8x8xf32>
    // expected-error @below {{'linalg.transpose' op expected linalg.fill, linalg.contract or linalg.generic on tiles}}
    %0 = linalg.transpose ins(%xt : tensor<8x8xf32>) outs(%empty : tensor<8x8xf32>) permutation = [1, 0]
    bufferization.materialize_in_destination %0 in restrict writable %x : (tensor<8x8xf32>, memref<8x8xf32>) -> ()
  } {varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 1, kv_block = 32, kv = copy>}
  return
}

// -----

func.func @no_loop(%c: i1) {
  // expected-error @below {{'scf.if' op expected an scf.forall around what has a varlen.schedule}}
  scf.if %c {
  } {varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 1, kv_block = 32, kv = copy>}
  return
}
