// RUN: varlen-opt %s --pass-pipeline='builtin.module(gpu.module(gpu.func(kernel-lower-access)))' --split-input-file --verify-diagnostics

gpu.module @kernels {
  gpu.func @tiles(%v: tensor<64x1xf32>, %out: memref<8x?xf32>, %i: index) kernel
      attributes {known_block_size = array<i32: 128, 1, 1>} {
    // expected-error @below {{expected a fragment, which kernel-distribute makes, got 'tensor<64x1xf32>'}}
    kernel.store %v to %out rows(%i, %i, %i, %i) valid(%i) : tensor<64x1xf32> to memref<8x?xf32>
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @load_tile(%mem: memref<8x?xf32>, %i: index, %x: f32) kernel
      attributes {known_block_size = array<i32: 128, 1, 1>} {
    // expected-error @below {{expected a fragment, which kernel-distribute makes, got 'tensor<64x1xf32>'}}
    %v = kernel.load %mem rows(%i, %i, %i, %i) valid(%i) otherwise %x : memref<8x?xf32> to tensor<64x1xf32>
    gpu.return
  }
}

// -----

gpu.module @kernels {
  // expected-error @below {{expected known_block_size, which says how many warps share a tile}}
  gpu.func @warps(%v: vector<1x1x2x1xf32>, %out: memref<8x?xf32>, %i: index) kernel {
    kernel.store %v to %out rows(%i, %i, %i, %i) valid(%i) : vector<1x1x2x1xf32> to memref<8x?xf32>
    gpu.return
  }
}
