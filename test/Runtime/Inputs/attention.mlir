func.func @attention(%q: memref<?x8x64xbf16>, %k: memref<?x2x64xbf16>, %v: memref<?x2x64xbf16>,
                     %cu: memref<?xi32>, %out: memref<?x8x64xbf16>, %lse: memref<8x?xf32>)
    attributes {llvm.emit_c_interface} {
  varlen.attn %q, %k, %v, %cu, %cu outs(%out, %lse) {mask = #varlen.mask<causal>}
      : (memref<?x8x64xbf16>, memref<?x2x64xbf16>, memref<?x2x64xbf16>, memref<?xi32>, memref<?xi32>,
         memref<?x8x64xbf16>, memref<8x?xf32>) -> ()
  return
}
