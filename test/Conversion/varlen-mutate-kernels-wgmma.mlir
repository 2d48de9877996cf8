// RUN: varlen-opt %s --varlen-mutate-kernels -o /dev/null 2>&1 | FileCheck %s --check-prefix=LIST
// RUN: varlen-opt %s --varlen-mutate-kernels=mutant=0 | FileCheck %s --check-prefix=DELETE
// RUN: varlen-opt %s --varlen-mutate-kernels=mutant=1 | FileCheck %s --check-prefix=WEAKEN

// The wait for wgmma as kernels have it: registers pass through it.

// DELETE-LABEL: llvm.func @k
// DELETE-SAME: %[[P:.*]]: !llvm.ptr, %{{.*}}: f32, %[[Y:.*]]: f32
// DELETE-NOT: wait_group
// DELETE: llvm.store %[[Y]], %[[P]]
// WEAKEN-LABEL: llvm.func @k
// WEAKEN: "wgmma.wait_group.sync.aligned 2;", "=f,=f,0,1"
gpu.module @m {
  llvm.func @k(%p: !llvm.ptr, %x: f32, %y: f32) attributes {nvvm.kernel} {
    // LIST: remark: mutant 0: delete llvm.inline_asm 1 of k
    // LIST: remark: mutant 1: wait for fewer groups in llvm.inline_asm 1 of k
    %0 = llvm.inline_asm has_side_effects asm_dialect = att "wgmma.wait_group.sync.aligned 1;", "=f,=f,0,1" %x, %y : (f32, f32) -> !llvm.struct<(f32, f32)>
    %1 = llvm.extractvalue %0[1] : !llvm.struct<(f32, f32)>
    llvm.store %1, %p : f32, !llvm.ptr
    llvm.return
  }
}
