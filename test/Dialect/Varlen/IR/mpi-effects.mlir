// RUN: varlen-opt %s --split-input-file --verify-diagnostics --ownership-based-buffer-deallocation | FileCheck %s

// Buffers that messages read and write are freed behind them.

// CHECK-LABEL: @sum
// CHECK: mpi.allreduce
// CHECK: bufferization.dealloc
func.func @sum(%init: f32) -> f32 {
  %zero = arith.constant 0 : index
  %comm = mpi.comm_world : !mpi.comm
  %sums = memref.alloc() : memref<4xf32>
  linalg.fill ins(%init : f32) outs(%sums : memref<4xf32>)
  mpi.allreduce(%sums, %sums, MPI_SUM, %comm) : memref<4xf32>, memref<4xf32>
  %sum = memref.load %sums[%zero] : memref<4xf32>
  return %sum : f32
}

// -----

// CHECK-LABEL: @exchange
// CHECK: mpi.send
// CHECK: mpi.recv
// CHECK: bufferization.dealloc
func.func @exchange(%other: i32, %tag: i32) {
  %comm = mpi.comm_world : !mpi.comm
  %buffer = memref.alloc() : memref<4xf32>
  mpi.send(%buffer, %tag, %other, %comm) : memref<4xf32>, i32, i32
  mpi.recv(%buffer, %tag, %other, %comm) : memref<4xf32>, i32, i32
  return
}

// -----

// The buffer of mpi.isend is in use until mpi.wait, which effects cannot say.

func.func @late(%other: i32, %tag: i32) {
  %comm = mpi.comm_world : !mpi.comm
  %buffer = memref.alloc() : memref<4xf32>
  // expected-error @below {{ops with unknown memory side effects are not supported}}
  %request = mpi.isend(%buffer, %tag, %other, %comm) : memref<4xf32>, i32, i32 -> !mpi.request
  mpi.wait(%request) : !mpi.request
  return
}
