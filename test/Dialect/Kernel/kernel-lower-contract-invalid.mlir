// RUN: varlen-opt %s --pass-pipeline='builtin.module(gpu.module(gpu.func(kernel-lower-contract)))' -split-input-file -verify-diagnostics

!k = memref<1x64x64xbf16, #gpu.address_space<workgroup>>
gpu.module @kernels {
  gpu.func @rows(%k: !k, %acc: vector<1x8x2x2xf32>) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
    // expected-error @below {{expected A to have the 128 rows of 8 warps, got 64}}
    %s = kernel.contract %k, %k, %acc k(64) : !k, !k into vector<1x8x2x2xf32>
    gpu.return
  }
}

// -----

!k = memref<1x64x64xbf16, #gpu.address_space<workgroup>>
gpu.module @kernels {
  gpu.func @warps(%k: !k, %acc: vector<1x8x2x2xf32>) kernel attributes {known_block_size = array<i32: 96, 1, 1>} {
    // expected-error @below {{expected a number of warps that is a power of 2 for a transposed A, got 3}}
    %s = kernel.start %k, %k, %acc k(64) {a_t} : !k, !k into vector<1x8x2x2xf32>
    gpu.return
  }
}

// -----

!k = memref<1x64x64xbf16, #gpu.address_space<workgroup>>
gpu.module @kernels {
  // expected-error @below {{expected known_block_size, which says how many warps share a tile}}
  gpu.func @block(%k: !k, %acc: vector<1x8x2x2xf32>) kernel {
    %s = kernel.contract %k, %k, %acc k(64) : !k, !k into vector<1x8x2x2xf32>
    gpu.return
  }
}

// -----

// What is unrolled.
!a = memref<4097x16x64xbf16, #gpu.address_space<workgroup>>
!b = memref<4097x32x64xbf16, #gpu.address_space<workgroup>>
gpu.module @kernels {
  gpu.func @products(%a: !a, %b: !b, %acc: vector<1x4x2x2xf32>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    // expected-error @below {{expected at most 65536 products of 16 x 8 x 16 for a warp, got 65540}}
    %s = kernel.contract %a, %b, %acc k(262160) : !a, !b into vector<1x4x2x2xf32>
    gpu.return
  }
}
