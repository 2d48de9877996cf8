// A module that holds kernels and their launches runs on a GPU, or on what
// stands in for one. Memref arguments are memory of the GPU.

// RUN: rm -rf %t && mkdir %t
// RUN: varlen-run %s --device=sim:sm_80 --random=1 --sim-runs=9 --json=%t/figures.json | FileCheck %s
// RUN: FileCheck %s --check-prefix=JSON < %t/figures.json
// RUN: varlen-run %s --device=sim:sm_80 --random=1 --trace=%t/trace.json
// RUN: %python -m json.tool %t/trace.json | FileCheck %s --check-prefix=TRACE
// RUN: mkfifo %t/fifo
// RUN: sh -c 'timeout 60 cat "$1" >"$2" & shift 2; varlen-run "$@" && wait $!' - %t/fifo %t/copy %s --device=sim:sm_80 --random=1 --trace=%t/fifo
// RUN: test -p %t/fifo
// RUN: cmp %t/copy %t/trace.json
// A stack that no address space has room for: the second host thread cannot be made.
// RUN: not sh -c 'ulimit -s 1000000000000000 && exec varlen-run "$@"' - %s --device=sim:sm_80 --random=1 --threads=2 2>&1 | FileCheck %s --check-prefix=THREADS

// THREADS: hazard: launch: the system made 1 of 2 host threads: {{.+}}
// THREADS: error: 1 hazard in run 1 of 1
// CHECK: function  twice, sm_80, 1 thread
// CHECK: executor  9 runs, no hazard
// CHECK: banks     0 conflicts in 0 phases of ldmatrix and stmatrix
// JSON: "executor":{"accesses":{{[0-9]+}},
// JSON-SAME: "runs":9
// TRACE: "traceEvents"

module attributes {gpu.container_module} {
  gpu.module @m {
    gpu.func @twice(%x: memref<64xf32>, %y: memref<64xf32>) kernel
        attributes {gpu.known_block_size = array<i32: 32, 1, 1>} {
      %t = gpu.thread_id x
      %b = gpu.block_id x
      %c32 = arith.constant 32 : index
      %o = arith.muli %b, %c32 : index
      %i = arith.addi %o, %t : index
      %v = memref.load %x[%i] : memref<64xf32>
      %w = arith.addf %v, %v : f32
      memref.store %w, %y[%i] : memref<64xf32>
      gpu.return
    }
  }
  func.func @twice(%x: memref<64xf32> {varlen.name = "x"}, %y: memref<64xf32> {varlen.name = "y"}) {
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c32 = arith.constant 32 : index
    gpu.launch_func @m::@twice blocks in (%c2, %c1, %c1) threads in (%c32, %c1, %c1)
        args(%x : memref<64xf32>, %y : memref<64xf32>)
    return
  }
}
