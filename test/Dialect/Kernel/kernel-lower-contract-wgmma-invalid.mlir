// RUN: varlen-opt %s --pass-pipeline='builtin.module(gpu.module(gpu.func(kernel-lower-contract{wgmma=true})))' -split-input-file -verify-diagnostics

!k = memref<1x64x64xbf16, #gpu.address_space<workgroup>>
gpu.module @kernels {
  gpu.func @too_few(%k: !k, %acc: vector<1x8x2x2xf32>) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
    // expected-error @below {{expected A to have the 128 rows of 8 warps, got 64}}
    %s = kernel.contract %k, %k, %acc k(64) : !k, !k into vector<1x8x2x2xf32>
    gpu.return
  }
}
