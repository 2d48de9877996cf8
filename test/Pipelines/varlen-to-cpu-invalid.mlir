// RUN: not varlen-opt %s --varlen-to-cpu 2>&1 | FileCheck %s
// RUN: not varlen-opt %s --varlen-to-cpu=target=vax 2>&1 | FileCheck %s --check-prefix=TARGET

// CHECK: error: has no lowering to LLVM: 'gpu.thread_id' is left at the end of the pipeline
// TARGET: error: expected target to be one of host, generic, avx2, avx512, avx512_bf16, neon, neon_bf16, got vax
func.func @f() -> index {
  %i = gpu.thread_id x
  return %i : index
}
