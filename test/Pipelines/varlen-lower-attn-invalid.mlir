// RUN: varlen-opt %s --varlen-lower-attn-to-cpu --split-input-file --verify-diagnostics

func.func @layout(%q: memref<8x4x16xf32>, %k: memref<8x4x16xf32, strided<[?, ?, ?], offset: ?>>,
                  %cu: memref<3xi32>, %l: memref<4x8xf32>) {
  // expected-error@+1 {{expected k to be a memref whose last stride is 1, got 'memref<8x4x16xf32, strided<[?, ?, ?], offset: ?>>'}}
  varlen.attn %q, %k, %q, %cu, %cu outs(%q, %l)
      : (memref<8x4x16xf32>, memref<8x4x16xf32, strided<[?, ?, ?], offset: ?>>, memref<8x4x16xf32>,
         memref<3xi32>, memref<3xi32>, memref<8x4x16xf32>, memref<4x8xf32>) -> ()
  return
}

// -----

func.func @output(%q: memref<8x4x16xf32>, %cu: memref<3xi32>,
                  %o: memref<8x4x16xf32, strided<[64, 1, 4]>>, %l: memref<4x8xf32>) {
  // expected-error@+1 {{expected out to be a memref whose last stride is 1, got 'memref<8x4x16xf32, strided<[64, 1, 4]>>'}}
  varlen.attn %q, %q, %q, %cu, %cu outs(%o, %l)
      : (memref<8x4x16xf32>, memref<8x4x16xf32>, memref<8x4x16xf32>, memref<3xi32>, memref<3xi32>,
         memref<8x4x16xf32, strided<[64, 1, 4]>>, memref<4x8xf32>) -> ()
  return
}

// -----

func.func @space(%q: memref<8x4x16xf32, 3>, %cu: memref<3xi32>, %l: memref<4x8xf32>) {
  // expected-error@+1 {{expected q to be in the default memory space, got 'memref<8x4x16xf32, 3>'}}
  varlen.attn %q, %q, %q, %cu, %cu outs(%q, %l)
      : (memref<8x4x16xf32, 3>, memref<8x4x16xf32, 3>, memref<8x4x16xf32, 3>, memref<3xi32>, memref<3xi32>,
         memref<8x4x16xf32, 3>, memref<4x8xf32>) -> ()
  return
}

// -----

// expected-error@+1 {{expected 'varlen_parallel_for' to be the runtime's function of type (i64, i64, (!llvm.ptr, i64, i64, !llvm.ptr) -> (), !llvm.ptr) -> ()}}
func.func private @varlen_parallel_for(f32)
func.func @name(%q: memref<8x4x16xf32>, %o: memref<8x4x16xf32>, %cu: memref<3xi32>, %l: memref<4x8xf32>) {
  varlen.attn %q, %q, %q, %cu, %cu outs(%o, %l)
      : (memref<8x4x16xf32>, memref<8x4x16xf32>, memref<8x4x16xf32>, memref<3xi32>, memref<3xi32>,
         memref<8x4x16xf32>, memref<4x8xf32>) -> ()
  return
}

// -----

func.func @in_a_kernel(%q: memref<8x2x32xf32>, %o: memref<8x2x32xf32>, %cu: memref<2xi32>, %l: memref<2x8xf32>) {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%lx = %c1, %ly = %c1, %lz = %c1) {
    // expected-error@+1 {{is in a kernel, which cannot call what it becomes: expected attention in host code}}
    varlen.attn %q, %q, %q, %cu, %cu outs(%o, %l)
        : (memref<8x2x32xf32>, memref<8x2x32xf32>, memref<8x2x32xf32>, memref<2xi32>, memref<2xi32>,
           memref<8x2x32xf32>, memref<2x8xf32>) -> ()
    gpu.terminator
  }
  return
}
