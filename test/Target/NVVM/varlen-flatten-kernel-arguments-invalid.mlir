// RUN: varlen-opt %s --varlen-flatten-kernel-arguments --split-input-file --verify-diagnostics

module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @f(%x: memref<8xf32>) kernel {
      gpu.return
    }
  }
  func.func @twice(%x: memref<8xf32>) {
    %c1 = arith.constant 1 : index
    gpu.launch_func @kernels::@f blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%x : memref<8xf32>)
    // expected-error@+1 {{expected one launch of each kernel, got another of @kernels::@f}}
    gpu.launch_func @kernels::@f blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%x : memref<8xf32>)
    return
  }
}

// -----

module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @f(%x: memref<*xf32>) kernel {
      gpu.return
    }
  }
  func.func @unranked(%x: memref<*xf32>) {
    %c1 = arith.constant 1 : index
    // expected-error@+1 {{expected ranked memrefs as arguments, got 'memref<*xf32>'}}
    gpu.launch_func @kernels::@f blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%x : memref<*xf32>)
    return
  }
}

// -----

module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @f(%x: memref<8x8xf32, affine_map<(i, j) -> (i floordiv 2, j)>>) kernel {
      gpu.return
    }
  }
  func.func @layout(%x: memref<8x8xf32, affine_map<(i, j) -> (i floordiv 2, j)>>) {
    %c1 = arith.constant 1 : index
    // expected-error@+1 {{expected strided memrefs as arguments, got 'memref<8x8xf32}}
    gpu.launch_func @kernels::@f blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
        args(%x : memref<8x8xf32, affine_map<(i, j) -> (i floordiv 2, j)>>)
    return
  }
}
