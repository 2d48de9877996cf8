// RUN: varlen-opt %s --varlen-mutate-kernels -o /dev/null 2>&1 | FileCheck %s --check-prefix=LIST
// RUN: varlen-opt %s --varlen-mutate-kernels=mutant=0 | FileCheck %s --check-prefix=DELETE
// RUN: varlen-opt %s --varlen-mutate-kernels=mutant=1 | FileCheck %s --check-prefix=WEAKEN

// The wait for wgmma as kernels have it: registers pass through it.

!acc = !llvm.struct<(f32, f32, f32, f32)>

// DELETE-LABEL: llvm.func @k
// DELETE-SAME: %{{.*}}: !llvm.ptr, %[[ACC:.*]]: !llvm.struct
// DELETE-NOT: kernel.wgmma_wait
// DELETE: llvm.extractvalue %[[ACC]][1]
// WEAKEN-LABEL: llvm.func @k
// WEAKEN: kernel.wgmma_wait %{{.*}} younger 2
gpu.module @m {
  llvm.func @k(%p: !llvm.ptr, %acc: !acc) attributes {nvvm.kernel} {
    // LIST: remark: mutant 0: delete kernel.wgmma_wait 1 of k
    // LIST: remark: mutant 1: wait for fewer groups in kernel.wgmma_wait 1 of k
    %0 = kernel.wgmma_wait %acc younger 1 : !acc
    %1 = llvm.extractvalue %0[1] : !acc
    llvm.store %1, %p : f32, !llvm.ptr
    llvm.return
  }
}
