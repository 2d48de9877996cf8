// RUN: varlen-opt %s --varlen-finalize-llvm=target=avx512_bf16 | FileCheck %s
// RUN: varlen-opt %s --varlen-finalize-llvm=target=neon | FileCheck %s --check-prefix=NEON

// CHECK: llvm.target_triple = "x86_64-
// NEON: llvm.target_triple = "aarch64-

// CHECK: llvm.func @external(){{$}}
llvm.func @external()

// CHECK-LABEL: llvm.func @f
// CHECK-SAME: target_cpu = "x86-64-v4"
// CHECK-SAME: target_features = #llvm.target_features<["+avx2", {{.*}}"+avx512f", {{.*}}"+avx512bf16"]>
// CHECK-SAME: tune_cpu =
// NEON-LABEL: llvm.func @f
// NEON-SAME: target_cpu = "generic"
// NEON-SAME: target_features = #llvm.target_features<["+neon"]>
llvm.func @f() {
  llvm.return
}
