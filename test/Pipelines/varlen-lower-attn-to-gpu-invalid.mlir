// RUN: varlen-opt %s --varlen-lower-attn-to-gpu --split-input-file --verify-diagnostics

func.func @layout(%q: memref<8x4x16xbf16>, %v: memref<8x4x16xbf16, strided<[?, ?, ?], offset: ?>>,
                  %cu: memref<3xi32>, %l: memref<4x8xf32>) {
  // expected-error@+1 {{expected v to be a memref whose last stride is 1, got 'memref<8x4x16xbf16, strided<[?, ?, ?], offset: ?>>'}}
  varlen.attn %q, %q, %v, %cu, %cu outs(%q, %l)
      : (memref<8x4x16xbf16>, memref<8x4x16xbf16>, memref<8x4x16xbf16, strided<[?, ?, ?], offset: ?>>,
         memref<3xi32>, memref<3xi32>, memref<8x4x16xbf16>, memref<4x8xf32>) -> ()
  return
}

// -----

func.func @gradient_layout(%d: memref<8x4x16xbf16>, %l: memref<4x8xf32>, %cu: memref<3xi32>,
                           %dk: memref<8x4x16xbf16, strided<[64, 1, 4]>>) {
  // expected-error@+1 {{expected dk to be a memref whose last stride is 1, got 'memref<8x4x16xbf16, strided<[64, 1, 4]>>'}}
  varlen.attn_grad %d, %d, %d, %d, %d, %l, %cu, %cu outs(%d, %dk, %d)
      : (memref<8x4x16xbf16>, memref<8x4x16xbf16>, memref<8x4x16xbf16>, memref<8x4x16xbf16>,
         memref<8x4x16xbf16>, memref<4x8xf32>, memref<3xi32>, memref<3xi32>, memref<8x4x16xbf16>,
         memref<8x4x16xbf16, strided<[64, 1, 4]>>, memref<8x4x16xbf16>) -> ()
  return
}

// -----

func.func @capture_layout(%q: memref<8x2x32xbf16>, %cu: memref<2xi32>, %l: memref<2x8xf32>,
                          %gains: memref<2x8xf32, strided<[1, 2]>>) {
  // expected-error@+1 {{expected capture to be a memref whose last stride is 1, got 'memref<2x8xf32, strided<[1, 2]>>'}}
  varlen.attn %q, %q, %q, %cu, %cu outs(%q, %l) captures(%gains)
      : (memref<8x2x32xbf16>, memref<8x2x32xbf16>, memref<8x2x32xbf16>, memref<2xi32>, memref<2xi32>,
         memref<8x2x32xbf16>, memref<2x8xf32>, memref<2x8xf32, strided<[1, 2]>>) -> ()
      score (%s: f32, %i: i32, %j: i32, %gain: f32) {
    %new = arith.mulf %s, %gain : f32
    varlen.yield %new : f32
  }
  return
}

// -----

func.func @space(%q: memref<8x4x16xbf16, 1>, %cu: memref<3xi32>, %l: memref<4x8xf32>) {
  // expected-error@+1 {{expected q to be in the default memory space, got 'memref<8x4x16xbf16, 1>'}}
  varlen.attn %q, %q, %q, %cu, %cu outs(%q, %l)
      : (memref<8x4x16xbf16, 1>, memref<8x4x16xbf16, 1>, memref<8x4x16xbf16, 1>, memref<3xi32>,
         memref<3xi32>, memref<8x4x16xbf16, 1>, memref<4x8xf32>) -> ()
  return
}

// -----

func.func @type(%q: tensor<8x4x16xf64>, %cu: tensor<3xi32>) -> tensor<8x4x16xf64> {
  // expected-remark@+2 {{no tiles for f64, which sm_80 has no kernel for; a CPU target has}}
  // expected-error@+1 {{has no kernel: expected a #varlen.gpu_schedule under varlen.schedule}}
  %out, %lse = varlen.attn %q, %q, %q, %cu, %cu
      : (tensor<8x4x16xf64>, tensor<8x4x16xf64>, tensor<8x4x16xf64>, tensor<3xi32>, tensor<3xi32>)
      -> (tensor<8x4x16xf64>, tensor<4x8xf64>)
  return %out : tensor<8x4x16xf64>
}

// -----

func.func @head_dim(%d: memref<8x4x?xbf16>, %l: memref<4x8xf32>, %cu: memref<3xi32>, %o: memref<8x4x?xbf16>) {
  // expected-remark@+2 {{no tiles for a dynamic head_dim; a GPU has no kernel for it, a CPU target has}}
  // expected-error@+1 {{has no kernel: expected a #varlen.gpu_grad_schedule under varlen.schedule}}
  varlen.attn_grad %d, %d, %d, %d, %d, %l, %cu, %cu outs(%o, %o, %o)
      : (memref<8x4x?xbf16>, memref<8x4x?xbf16>, memref<8x4x?xbf16>, memref<8x4x?xbf16>,
         memref<8x4x?xbf16>, memref<4x8xf32>, memref<3xi32>, memref<3xi32>, memref<8x4x?xbf16>,
         memref<8x4x?xbf16>, memref<8x4x?xbf16>) -> ()
  return
}

// -----

func.func @in_a_kernel(%q: memref<8x2x32xbf16>, %cu: memref<2xi32>, %l: memref<2x8xf32>) {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%lx = %c1, %ly = %c1, %lz = %c1) {
    // expected-error@+1 {{is in a kernel, which cannot call what it becomes: expected attention in host code}}
    varlen.attn %q, %q, %q, %cu, %cu outs(%q, %l)
        : (memref<8x2x32xbf16>, memref<8x2x32xbf16>, memref<8x2x32xbf16>, memref<2xi32>, memref<2xi32>,
           memref<8x2x32xbf16>, memref<2x8xf32>) -> ()
    gpu.terminator
  }
  return
}

// -----

// expected-error@+1 {{expected 'varlen_gpu_allocate' to be the runtime's function of type (i64) -> !llvm.ptr}}
func.func private @varlen_gpu_allocate(f32)
func.func @name(%q: memref<8x4x16xbf16>, %cu: memref<3xi32>, %l: memref<4x8xf32>) {
  varlen.attn %q, %q, %q, %cu, %cu outs(%q, %l)
      : (memref<8x4x16xbf16>, memref<8x4x16xbf16>, memref<8x4x16xbf16>, memref<3xi32>, memref<3xi32>,
         memref<8x4x16xbf16>, memref<4x8xf32>) -> ()
  return
}
