// RUN: varlen-opt %s --varlen-mutate-kernels -o /dev/null 2>&1 | FileCheck %s --check-prefix=LIST
// RUN: varlen-opt %s --varlen-mutate-kernels=mutant=0 | FileCheck %s --check-prefixes=CHECK,DELETE
// RUN: varlen-opt %s --varlen-mutate-kernels=mutant=2 | FileCheck %s --check-prefixes=CHECK,WEAKEN
// RUN: varlen-opt %s --varlen-mutate-kernels=mutant=7 | FileCheck %s --check-prefixes=CHECK,POSITION
// RUN: varlen-opt %s --varlen-mutate-kernels=mutant=8 | FileCheck %s --check-prefixes=CHECK,OPERAND
// RUN: varlen-opt %s --varlen-mutate-kernels=mutant=4 | FileCheck %s --check-prefix=ACQUIRE
// RUN: varlen-opt %s --varlen-mutate-kernels=mutant=5 | FileCheck %s --check-prefix=RELEASE

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
    // LIST-DAG: remark: mutant 7: index 0 = 4 {{[+-]}} {{[0-9]+}} in llvm.getelementptr 1 of k
    %q = llvm.getelementptr %p[4] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i32
    %c = llvm.mlir.constant(100 : i32) : i32
    // LIST-DAG: remark: mutant 8: operand 1 = 100 {{[+-]}} {{[0-9]+}} in llvm.mul 1 of k
    %y = llvm.mul %x, %c : i32
    llvm.store %y, %q : i32, !llvm.ptr<3>
    llvm.return
  }
  // Mutants of constants come last.
  // ACQUIRE-LABEL: llvm.func @flags
  // ACQUIRE: llvm.load %{{.*}} atomic syncscope("device") monotonic
  // ACQUIRE: llvm.store %{{.*}} release
  // RELEASE-LABEL: llvm.func @flags
  // RELEASE: llvm.load %{{.*}} acquire
  // RELEASE: llvm.store %{{.*}} atomic syncscope("device") monotonic
  llvm.func @flags(%p: !llvm.ptr<1>) attributes {nvvm.kernel} {
    // LIST-DAG: remark: mutant 4: no order in llvm.load 1 of flags
    %x = llvm.load %p atomic syncscope("device") acquire {alignment = 4 : i64} : !llvm.ptr<1> -> i32
    // LIST-DAG: remark: mutant 5: no order in llvm.store 1 of flags
    llvm.store %x, %p atomic syncscope("device") release {alignment = 4 : i64} : i32, !llvm.ptr<1>
    // LIST-DAG: remark: mutant 6: delete nvvm.griddepcontrol 1 of flags
    nvvm.griddepcontrol wait
    // A kernel behind that starts later is no fault.
    // LIST-NOT: delete nvvm.griddepcontrol 2
    nvvm.griddepcontrol launch_dependents
    // One for the host.
    llvm.store %x, %p atomic release {alignment = 4 : i64} : i32, !llvm.ptr<1>
    llvm.return
  }
}
