// RUN: varlen-opt %s --varlen-check-host-code -split-input-file -verify-diagnostics

func.func @load(%x: memref<?xf32>, %i: index) -> f32 {
  // expected-error @below {{'memref.load' op would read device memory on the host, which does not wait for the device: expected what it reads to be used in kernels only, and results to be tensors}}
  %a = memref.load %x[%i] : memref<?xf32>
  return %a : f32
}

// -----

func.func @copy(%x: memref<?xf32>, %y: memref<?xf32>) {
  // expected-error @below {{'memref.copy' op would access device memory on the host, and no kernel is made of it: expected varlen operations, linalg, and loops of loads and stores}}
  memref.copy %x, %y : memref<?xf32> to memref<?xf32>
  return
}

// -----

func.func @vector(%x: memref<?xf32>, %y: memref<?xf32>, %i: index) {
  %c0 = arith.constant 0.0 : f32
  // expected-error @below {{'vector.transfer_read' op would access device memory on the host, and no kernel is made of it}}
  %a = vector.transfer_read %x[%i], %c0 : memref<?xf32>, vector<8xf32>
  vector.transfer_write %a, %y[%i] : vector<8xf32>, memref<?xf32>
  return
}

// -----

memref.global "private" constant @table : memref<2xi32> = dense<[0, 3]>
func.func @global(%q: memref<3x2x64xbf16>, %out: memref<3x2x64xbf16>, %lse: memref<2x3xf32>) {
  // expected-error @below {{'memref.get_global' op is memory of the host, which kernels cannot access: expected constants that only linalg and loops read}}
  %cu = memref.get_global @table : memref<2xi32>
  varlen.attn %q, %q, %q, %cu, %cu outs(%out, %lse)
      : (memref<3x2x64xbf16>, memref<3x2x64xbf16>, memref<3x2x64xbf16>, memref<2xi32>, memref<2xi32>, memref<3x2x64xbf16>, memref<2x3xf32>) -> ()
  return
}

// -----

// One of two callers gives it device memory.
func.func private @sum(%x: memref<2xindex>) -> index {
  %c0 = arith.constant 0 : index
  // expected-error @below {{'memref.load' op would read device memory}}
  %a = memref.load %x[%c0] : memref<2xindex>
  return %a : index
}
func.func @callers(%x: memref<2xindex>) -> (index, index) {
  %y = memref.alloca() : memref<2xindex>
  %a = call @sum(%x) : (memref<2xindex>) -> index
  %b = call @sum(%y) : (memref<2xindex>) -> index
  return %a, %b : index, index
}

// -----

func.func @attn(%q: memref<8x2x512xbf16>, %cu: memref<2xi32>, %out: memref<8x2x512xbf16>, %lse: memref<2x8xf32>) {
  // expected-error @below {{'varlen.attn' op has no kernel: expected a #varlen.gpu_schedule under varlen.schedule, which varlen-assign-schedule puts there if the chip has tiles for it}}
  varlen.attn %q, %q, %q, %cu, %cu outs(%out, %lse)
      : (memref<8x2x512xbf16>, memref<8x2x512xbf16>, memref<8x2x512xbf16>, memref<2xi32>, memref<2xi32>, memref<8x2x512xbf16>, memref<2x8xf32>) -> ()
  return
}

// -----

func.func @gradient(%d: memref<8x4x16xbf16>, %l: memref<4x8xf32>, %cu: memref<3xi32>, %dq: memref<8x4x16xbf16>) {
  // expected-error @below {{'varlen.attn_grad' op has no kernel: expected a #varlen.gpu_grad_schedule under varlen.schedule, which varlen-assign-schedule puts there}}
  varlen.attn_grad %d, %d, %d, %d, %d, %l, %cu, %cu outs(%dq, %dq, %dq)
      : (memref<8x4x16xbf16>, memref<8x4x16xbf16>, memref<8x4x16xbf16>, memref<8x4x16xbf16>,
         memref<8x4x16xbf16>, memref<4x8xf32>, memref<3xi32>, memref<3xi32>, memref<8x4x16xbf16>,
         memref<8x4x16xbf16>, memref<8x4x16xbf16>) -> ()
  return
}

// -----

func.func @in_a_kernel(%q: memref<8x2x32xbf16>, %cu: memref<2xi32>, %out: memref<8x2x32xbf16>, %lse: memref<2x8xf32>) {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%lx = %c1, %ly = %c1, %lz = %c1) {
    // expected-error @below {{'varlen.attn' op has no kernel}}
    varlen.attn %q, %q, %q, %cu, %cu outs(%out, %lse)
        : (memref<8x2x32xbf16>, memref<8x2x32xbf16>, memref<8x2x32xbf16>, memref<2xi32>, memref<2xi32>, memref<8x2x32xbf16>, memref<2x8xf32>) -> ()
    gpu.terminator
  }
  return
}

// -----

func.func @second_derivatives(%q: memref<8x4x16xbf16>, %lse: memref<4x8xf32>, %cu: memref<3xi32>, %dq: memref<8x4x16xbf16>,
                              %dk: memref<8x4x16xbf16>, %dv: memref<8x4x16xbf16>) {
  // expected-error @below {{has no kernel: expected a #varlen.gpu_grad_schedule under varlen.schedule, which varlen-assign-schedule puts there if the chip has tiles for it}}
  varlen.attn_jvp_grad %q, %q, %q, %q, %q, %q, %q, %q, %lse, %q, %lse, %cu, %cu outs(%dq, %dk, %dv)
      : (memref<8x4x16xbf16>, memref<8x4x16xbf16>, memref<8x4x16xbf16>, memref<8x4x16xbf16>, memref<8x4x16xbf16>,
         memref<8x4x16xbf16>, memref<8x4x16xbf16>, memref<8x4x16xbf16>, memref<4x8xf32>, memref<8x4x16xbf16>,
         memref<4x8xf32>, memref<3xi32>, memref<3xi32>, memref<8x4x16xbf16>, memref<8x4x16xbf16>, memref<8x4x16xbf16>) -> ()
  return
}
