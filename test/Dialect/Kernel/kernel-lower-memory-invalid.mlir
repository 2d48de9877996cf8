// RUN: varlen-opt %s --kernel-lower-memory=shared-bytes=16384 -split-input-file -verify-diagnostics

#wg = #gpu.address_space<workgroup>
gpu.module @kernels {
  // expected-error @below {{needs 24576 bytes of shared memory, expected at most 16384}}
  gpu.func @too_much() kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %m = kernel.alloc : memref<3x64x64xbf16, #wg>
    gpu.return
  }
}

// -----

#wg = #gpu.address_space<workgroup>
gpu.module @kernels {
  // expected-error @below {{expected known_block_size, which says how many threads share a copy}}
  gpu.func @how_many(%x: memref<?x2x64xbf16>, %i: index) kernel {
    %m = kernel.alloc : memref<1x64x64xbf16, #wg>
    kernel.copy %x rows(%i, %i, %i, %i) valid(%i) to %m : memref<?x2x64xbf16>, memref<1x64x64xbf16, #wg>
    gpu.return
  }
}

// -----

#wg = #gpu.address_space<workgroup>
gpu.module @kernels {
  gpu.func @too_few(%x: memref<?x2x640xbf16>, %i: index) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %m = kernel.alloc : memref<10x8x64xbf16, #wg>
    // expected-error @below {{expected at least 128 threads, as many as share a row, got 32}}
    kernel.copy %x rows(%i, %i, %i, %i) valid(%i) to %m : memref<?x2x640xbf16>, memref<10x8x64xbf16, #wg>
    gpu.return
  }
}

// -----

// More than a number of 64 bits counts.
#wg = #gpu.address_space<workgroup>
gpu.module @kernels {
  // expected-error @below {{needs 2147483648 or more bytes of shared memory, expected at most 16384}}
  gpu.func @stages() kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %ring = kernel.ring stages(9223372036854775807) : !kernel.ring<memref<1x64x64xbf16, #wg>>
    gpu.return
  }
}

// -----

!ring = !kernel.ring<memref<1x64x64xbf16, #gpu.address_space<workgroup>>>
gpu.module @kernels {
  gpu.func @ring_of_caller(%ring: !ring) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    // expected-error @below {{expected a ring to be of kernel.ring, and only to be restarted, acquired, committed, waited for and released}}
    kernel.ring.commit %ring : !ring
    gpu.return
  }
}

// -----

!ring = !kernel.ring<memref<1x64x64xbf16, #gpu.address_space<workgroup>>>
gpu.module @kernels {
  gpu.func @one_of_two_rings(%c: i1) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %a = kernel.ring stages(2) : !ring
    %b = kernel.ring stages(2) : !ring
    // expected-error @below {{expected a ring to be of kernel.ring, and only to be restarted, acquired, committed, waited for and released}}
    %r = arith.select %c, %a, %b : !ring
    kernel.ring.commit %r : !ring
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @map_without_roles(%x: memref<?x4x64xf16>, %maps: memref<?x128xi8>, %i: index) kernel
      attributes {known_block_size = array<i32: 128, 1, 1>} {
    // expected-error @below {{expected a kernel with a kernel.roles}}
    %map = kernel.tensor_map %x rows(64) to %maps[%i] : memref<?x4x64xf16>, memref<?x128xi8>
    gpu.return
  }
}
