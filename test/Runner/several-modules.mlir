// Kernels of several modules.

// RUN: varlen-run %s --device=sim:sm_80 --random=1 --sim-runs=3 -o %t.safetensors | FileCheck %s
// RUN: %python -c "from varlen import safetensors as s; r = s.read('%t.safetensors'); assert abs(r['y'] - 20.0).max() == 0, r"

// CHECK: executor  3 runs, no hazard
module attributes {gpu.container_module} {
  gpu.module @a {
    gpu.func @fill(%x: memref<64xf32>) kernel
        attributes {gpu.known_block_size = array<i32: 64, 1, 1>} {
      %i = gpu.thread_id x
      %v = arith.constant 100.0 : f32
      memref.store %v, %x[%i] : memref<64xf32>
      gpu.return
    }
    gpu.func @twice(%x: memref<64xf32>) kernel
        attributes {gpu.known_block_size = array<i32: 64, 1, 1>} {
      %i = gpu.thread_id x
      %v = memref.load %x[%i] : memref<64xf32>
      %w = arith.addf %v, %v : f32
      memref.store %w, %x[%i] : memref<64xf32>
      gpu.return
    }
  }
  gpu.module @b {
    gpu.func @reverse(%x: memref<64xf32>)
        workgroup(%tile: memref<64xf32, #gpu.address_space<workgroup>>) kernel
        attributes {gpu.known_block_size = array<i32: 64, 1, 1>} {
      %i = gpu.thread_id x
      %v = memref.load %x[%i] : memref<64xf32>
      memref.store %v, %tile[%i] : memref<64xf32, #gpu.address_space<workgroup>>
      gpu.barrier
      %c63 = arith.constant 63 : index
      %r = arith.subi %c63, %i : index
      %w = memref.load %tile[%r] : memref<64xf32, #gpu.address_space<workgroup>>
      %s = math.sqrt %w : f32
      memref.store %s, %x[%i] : memref<64xf32>
      gpu.return
    }
  }
  func.func @f(%y: memref<64xf32> {varlen.name = "y"}) {
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    gpu.launch_func @a::@fill blocks in (%c1, %c1, %c1) threads in (%c64, %c1, %c1)
        args(%y : memref<64xf32>)
    gpu.launch_func @b::@reverse blocks in (%c1, %c1, %c1) threads in (%c64, %c1, %c1)
        args(%y : memref<64xf32>)
    gpu.launch_func @a::@twice blocks in (%c1, %c1, %c1) threads in (%c64, %c1, %c1)
        args(%y : memref<64xf32>)
    return
  }
}
