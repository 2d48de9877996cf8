// RUN: varlen-opt %s --varlen-pair-factors -split-input-file -verify-diagnostics

#mk = affine_map<(d0, d1, d2) -> (d0, d2)>
#kn = affine_map<(d0, d1, d2) -> (d2, d1)>
#mn = affine_map<(d0, d1, d2) -> (d0, d1)>
func.func @order(%a: tensor<8x64xbf16>, %k: memref<64x16xbf16>, %o: tensor<8x16xf32>, %n: index) {
  scf.forall (%i) in (%n) {
    // expected-error @+1 {{expected 'tensor<64x16xbf16>' to lie in memory in row_pairs for a product}}
    %b = varlen.to_tile %k as rows : memref<64x16xbf16> to tensor<64x16xbf16>
    %r = linalg.contract indexing_maps = [#mk, #kn, #mn]
        ins(%a, %b : tensor<8x64xbf16>, tensor<64x16xbf16>) outs(%o : tensor<8x16xf32>) -> tensor<8x16xf32>
  } {varlen.schedule = #varlen.cpu_schedule<lanes = 16, vectors = 1, rows = 8, panels = 1, kv_block = 32, kv = pairs>}
  return
}

// -----

#mk = affine_map<(d0, d1, d2) -> (d0, d2)>
#kn = affine_map<(d0, d1, d2) -> (d2, d1)>
#mn = affine_map<(d0, d1, d2) -> (d0, d1)>
func.func @odd(%a: tensor<8x63xbf16>, %b: tensor<63x16xbf16>, %o: tensor<8x16xf32>, %n: index) {
  scf.forall (%i) in (%n) {
    // expected-error @+1 {{expected an even depth of pairs, got 63}}
    %r = linalg.contract indexing_maps = [#mk, #kn, #mn]
        ins(%a, %b : tensor<8x63xbf16>, tensor<63x16xbf16>) outs(%o : tensor<8x16xf32>) -> tensor<8x16xf32>
  } {varlen.schedule = #varlen.cpu_schedule<lanes = 16, vectors = 1, rows = 8, panels = 1, kv_block = 32, kv = pairs>}
  return
}

// -----

#mk = affine_map<(d0, d1, d2) -> (d0, d2)>
#kn = affine_map<(d0, d1, d2) -> (d2, d1)>
#mn = affine_map<(d0, d1, d2) -> (d0, d1)>
func.func @odd_offset(%a: tensor<8x8xbf16>, %k: memref<16x32xbf16>, %o: tensor<8x16xf32>, %n: index) {
  scf.forall (%i) in (%n) {
    %b = varlen.to_tile %k as row_pairs : memref<16x32xbf16> to tensor<32x16xbf16>
    // expected-error @+1 {{expected rows of pairs in memory to begin and end at multiples of two}}
    %part = tensor.extract_slice %b[3, 0] [8, 16] [1, 1] : tensor<32x16xbf16> to tensor<8x16xbf16>
    %r = linalg.contract indexing_maps = [#mk, #kn, #mn]
        ins(%a, %part : tensor<8x8xbf16>, tensor<8x16xbf16>) outs(%o : tensor<8x16xf32>) -> tensor<8x16xf32>
  } {varlen.schedule = #varlen.cpu_schedule<lanes = 16, vectors = 1, rows = 8, panels = 1, kv_block = 32, kv = pairs>}
  return
}
