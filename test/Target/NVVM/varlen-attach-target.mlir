// RUN: varlen-opt %s --varlen-attach-target="chip=sm_90 ptx=83" | FileCheck %s

// CHECK: gpu.module @kernels [#nvvm.target<O = 3, chip = "sm_90", features = "+ptx83">]
gpu.module @kernels {
  // What a loop of scf was marked with reaches LLVM.
  // CHECK: llvm.func @loop
  // CHECK: llvm.br ^bb1 {loop_annotation = #[[ONCE:[a-z_]*]]}
  // CHECK: llvm.cond_br %{{.*}}, ^bb1, ^bb2 {loop_annotation = #[[ONCE]]}
  llvm.func @loop(%again: i1) {
    llvm.br ^bb1 {llvm.loop_annotation = #llvm.loop_annotation<unroll = <disable = true>>}
  ^bb1:
    llvm.cond_br %again, ^bb1, ^bb2 {llvm.loop_annotation = #llvm.loop_annotation<unroll = <disable = true>>}
  ^bb2:
    llvm.return
  }
}
