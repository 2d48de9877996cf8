// RUN: varlen-opt %s --varlen-check-host-code -split-input-file -verify-diagnostics

func.func @load(%x: memref<?xf32>, %i: index) -> f32 {
  // expected-error @below {{'memref.load' op would access device memory on the host; for a GPU, expected functions of varlen.attn only}}
  %a = memref.load %x[%i] : memref<?xf32>
  return %a : f32
}

// -----

func.func @copy(%x: memref<?xf32>, %y: memref<?xf32>) {
  // expected-error @below {{'memref.copy' op would access device memory on the host}}
  memref.copy %x, %y : memref<?xf32> to memref<?xf32>
  return
}

// -----

func.func @attn(%q: memref<8x2x512xbf16>, %cu: memref<2xi32>, %out: memref<8x2x512xbf16>, %lse: memref<2x8xf32>) {
  // expected-error @below {{'varlen.attn' op has no kernel for this GPU}}
  varlen.attn %q, %q, %q, %cu, %cu outs(%out, %lse)
      : (memref<8x2x512xbf16>, memref<8x2x512xbf16>, memref<8x2x512xbf16>, memref<2xi32>, memref<2xi32>, memref<8x2x512xbf16>, memref<2x8xf32>) -> ()
  return
}
