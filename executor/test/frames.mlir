// Memory of a thread is in a frame on the stack of its fiber: 200 KB fit, and what does not is an
// error before anything runs.
// RUN: varlen-run %s --random=0 --device=sim:sm_80 -o %t.npz | FileCheck %s --check-prefix=FITS
// FITS: executor  1 run, no hazard
// RUN: sed 's/50000 x/200000 x/' %s > %t.mlir
// RUN: not varlen-run %t.mlir --random=0 --device=sim:sm_80 2>&1 | FileCheck %s --check-prefix=LARGE
// LARGE: error: {{.*}}expected a stack frame of at most 720896 bytes, got 800{{[0-9]*}} in varlen_sim.m.spill

module attributes {gpu.container_module} {
  gpu.module @m {
    gpu.func @spill(%x: memref<64xf32>, %y: memref<64xf32>) kernel
        attributes {known_block_size = array<i32: 64, 1, 1>} {
      %tid = gpu.thread_id x
      %c63 = arith.constant 63 : index
      %other = arith.subi %c63, %tid : index
      %size = llvm.mlir.constant(1 : i32) : i32
      %local = llvm.alloca %size x !llvm.array<50000 x f32> : (i32) -> !llvm.ptr
      %i = arith.index_cast %tid : index to i64
      %v = memref.load %x[%tid] : memref<64xf32>
      %slot = llvm.getelementptr %local[0, %i] : (!llvm.ptr, i64) -> !llvm.ptr, !llvm.array<50000 x f32>
      llvm.store volatile %v, %slot : f32, !llvm.ptr
      %w = llvm.load volatile %slot : !llvm.ptr -> f32
      memref.store %w, %y[%other] : memref<64xf32>
      gpu.return
    }
  }
  func.func @reverse(%x: memref<64xf32> {varlen.name = "x"}, %y: memref<64xf32> {varlen.name = "y", varlen.written}) {
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    gpu.launch_func @m::@spill blocks in (%c1, %c1, %c1) threads in (%c64, %c1, %c1)
        args(%x : memref<64xf32>, %y : memref<64xf32>)
    return
  }
}
