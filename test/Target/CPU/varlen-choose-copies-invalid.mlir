// RUN: varlen-opt %s --varlen-choose-copies --split-input-file --verify-diagnostics

#mk = affine_map<(m, n, k) -> (m, k)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @columns(%q: memref<16x6xf32>, %k: tensor<8x6xf32>, %s: tensor<8x16xf32>, %n: index) {
  scf.forall (%i) in (%n) {
    %qt = varlen.to_tile %q as rows : memref<16x6xf32> to tensor<16x6xf32>
    // expected-error @below {{'linalg.contract' op expected 'tensor<16x6xf32>' to lie in memory in columns for this product}}
    %0 = linalg.contract indexing_maps = [#mk, #nk, #mn] ins(%k, %qt : tensor<8x6xf32>, tensor<16x6xf32>) outs(%s : tensor<8x16xf32>) -> tensor<8x16xf32>
  } {varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 1, kv_block = 32, kv = copy>}
  return
}

// -----

#km = affine_map<(m, n, k) -> (k, m)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @pairs(%v: memref<16x8xbf16>, %p: tensor<16x16xbf16>, %o: tensor<8x16xf32>, %n: index) {
  scf.forall (%i) in (%n) {
    %vt = varlen.to_tile %v as rows : memref<16x8xbf16> to tensor<16x8xbf16>
    // expected-error @below {{'linalg.contract' op expected 'tensor<16x8xbf16>' to lie in memory in row_pairs for this product}}
    %0 = linalg.contract indexing_maps = [#km, #kn, #mn] ins(%vt, %p : tensor<16x8xbf16>, tensor<16x16xbf16>) outs(%o : tensor<8x16xf32>) -> tensor<8x16xf32>
  } {varlen.schedule = #varlen.cpu_schedule<lanes = 16, vectors = 1, rows = 8, panels = 1, kv_block = 32, kv = pairs>}
  return
}

// -----

func.func @vector(%v: memref<16x8xf32>, %p: tensor<16xf32>, %o: tensor<8xf32>, %n: index) {
  scf.forall (%i) in (%n) {
    %vt = varlen.to_tile %v as rows : memref<16x8xf32> to tensor<16x8xf32>
    // expected-error @below {{'linalg.contract' op expected a product of rank-2 tiles}}
    %0 = linalg.contract indexing_maps = [affine_map<(m, k) -> (k, m)>, affine_map<(m, k) -> (k)>, affine_map<(m, k) -> (m)>] ins(%vt, %p : tensor<16x8xf32>, tensor<16xf32>) outs(%o : tensor<8xf32>) -> tensor<8xf32>
  } {varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 1, rows = 4, panels = 1, kv_block = 32, kv = copy>}
  return
}

// -----

// Operations that are no product read rows.

func.func @rows(%q: memref<6x8xf32>, %o: tensor<8x6xf32>, %n: index) {
  scf.forall (%i) in (%n) {
    %qt = varlen.to_tile %q as columns : memref<6x8xf32> to tensor<8x6xf32>
    // expected-error @below {{'linalg.copy' op expected 'tensor<8x6xf32>' to lie in memory in rows}}
    %0 = linalg.copy ins(%qt : tensor<8x6xf32>) outs(%o : tensor<8x6xf32>) -> tensor<8x6xf32>
  } {varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 1, rows = 4, panels = 1, kv_block = 32, kv = copy>}
  return
}
