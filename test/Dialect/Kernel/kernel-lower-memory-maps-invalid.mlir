// RUN: varlen-opt %s --kernel-lower-memory=mbarriers -split-input-file -verify-diagnostics

!tile = memref<1x64x64xf16, #gpu.address_space<workgroup>>

gpu.module @kernels {
  gpu.func @chunks(%x: memref<?x4x20xf16>, %maps: memref<?x128xi8>, %i: index) kernel
      attributes {known_block_size = array<i32: 160, 1, 1>} {
    kernel.roles consumers(4) {
    } producers(1) {
      // expected-error @below {{expected rows of whole 16-byte chunks, each aligned to its size, got 'memref<?x4x20xf16>'}}
      %map = kernel.tensor_map %x rows(64) to %maps[%i] : memref<?x4x20xf16>, memref<?x128xi8>
    }
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @branch(%x: memref<?x4x64xf16>, %maps: memref<?x128xi8>, %i: index, %c: i1) kernel
      attributes {known_block_size = array<i32: 160, 1, 1>} {
    kernel.roles consumers(4) {
    } producers(1) {
      scf.if %c {
        // expected-error @below {{expected to be in the block of producers of a kernel.roles}}
        %map = kernel.tensor_map %x rows(64) to %maps[%i] : memref<?x4x64xf16>, memref<?x128xi8>
      }
    }
    gpu.return
  }
}

// -----

!tile = memref<1x64x64xf16, #gpu.address_space<workgroup>>

gpu.module @kernels {
  gpu.func @late(%x: memref<?x4x64xf16>, %maps: memref<?x128xi8>, %i: index, %n: i32) kernel
      attributes {known_block_size = array<i32: 160, 1, 1>} {
    %ring = kernel.ring stages(2) : !kernel.ring<!tile>
    kernel.roles consumers(4) {
    } producers(1) {
      // expected-error @below {{expected all maps of the kernel before the first copy by one}}
      %map = kernel.tensor_map %x rows(64) to %maps[%i] : memref<?x4x64xf16>, memref<?x128xi8>
      %slot = kernel.ring.acquire %ring[%n] : !kernel.ring<!tile>
      kernel.copy_by_map %map row(%i) head(%i) to %slot : !tile
      kernel.ring.commit %ring : !kernel.ring<!tile>
      %other = kernel.tensor_map %x rows(32) to %maps[%i] : memref<?x4x64xf16>, memref<?x128xi8>
    }
    gpu.return
  }
}

// -----

!tile = memref<1x64x64xf16, #gpu.address_space<workgroup>>

gpu.module @kernels {
  gpu.func @no_slot(%x: memref<?x4x64xf16>, %maps: memref<?x128xi8>, %i: index) kernel
      attributes {known_block_size = array<i32: 160, 1, 1>} {
    %tile = kernel.alloc : !tile
    kernel.roles consumers(4) {
    } producers(1) {
      %map = kernel.tensor_map %x rows(64) to %maps[%i] : memref<?x4x64xf16>, memref<?x128xi8>
      // expected-error @below {{expected the memory of a kernel.ring.acquire}}
      kernel.copy_by_map %map row(%i) head(%i) to %tile : !tile
    }
    gpu.return
  }
}
