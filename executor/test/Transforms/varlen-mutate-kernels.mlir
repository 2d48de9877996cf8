// RUN: varlen-opt %s --varlen-mutate-kernels -o /dev/null 2>&1 | FileCheck %s --check-prefix=LIST
// RUN: varlen-opt %s --varlen-mutate-kernels=mutant=0 | FileCheck %s --check-prefixes=CHECK,DELETE
// RUN: varlen-opt %s --varlen-mutate-kernels=mutant=2 | FileCheck %s --check-prefixes=CHECK,WEAKEN
// RUN: varlen-opt %s --varlen-mutate-kernels=mutant=4 | FileCheck %s --check-prefixes=CHECK,POSITION
// RUN: varlen-opt %s --varlen-mutate-kernels=mutant=5 | FileCheck %s --check-prefixes=CHECK,OPERAND

// CHECK-LABEL: llvm.func @k
// DELETE-NOT: commit
// DELETE: wait.group 0
// DELETE: barrier0
// WEAKEN: commit
// WEAKEN: wait.group 1
// POSITION: getelementptr %{{.*}}[{{3|5|6|12|20|-12}}]
// OPERAND: %[[C:.*]] = llvm.mlir.constant({{99|101|102|84|108|116}} : i32)
// OPERAND: llvm.mul %{{.*}}, %[[C]]
gpu.module @m {
  llvm.func @k(%p: !llvm.ptr<3>, %x: i32) attributes {nvvm.kernel} {
    // LIST: remark: mutant 0: delete nvvm.cp.async.commit.group 1 of k
    nvvm.cp.async.commit.group
    // LIST: remark: mutant 1: delete nvvm.cp.async.wait.group 1 of k
    // LIST: remark: mutant 2: wait for fewer groups in nvvm.cp.async.wait.group 1 of k
    nvvm.cp.async.wait.group 0
    // LIST: remark: mutant 3: delete nvvm.barrier0 1 of k
    nvvm.barrier0
    // LIST: remark: mutant 4: index 0 = 4 {{[+-]}} {{[0-9]+}} in llvm.getelementptr 1 of k
    %q = llvm.getelementptr %p[4] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i32
    %c = llvm.mlir.constant(100 : i32) : i32
    // LIST: remark: mutant 5: operand 1 = 100 {{[+-]}} {{[0-9]+}} in llvm.mul 1 of k
    %y = llvm.mul %x, %c : i32
    llvm.store %y, %q : i32, !llvm.ptr<3>
    llvm.return
  }
}
