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
llvm.func @f() attributes {target_features = #llvm.target_features<["-sse3"]>} {
  llvm.return
}

// What mlir-translate would not read.
// CHECK-LABEL: llvm.func @flags
// CHECK: llvm.fpext %{{.*}} : f16 to f32
// CHECK: llvm.fptrunc %{{.*}} : f32 to f16
llvm.func @flags(%x: f16) -> f16 {
  %0 = llvm.fpext %x {fastmath = #arith.fastmath<contract>} : f16 to f32
  %1 = llvm.fptrunc %0 {fastmath = #arith.fastmath<contract>} : f32 to f16
  llvm.return %1 : f16
}
