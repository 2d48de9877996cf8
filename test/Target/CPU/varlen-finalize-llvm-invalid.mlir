// RUN: varlen-opt %s --varlen-finalize-llvm=target=generic --split-input-file --verify-diagnostics
// RUN: not varlen-opt %s --split-input-file --varlen-finalize-llvm=target=z80 2>&1 | FileCheck %s

// CHECK: error: expected target to be one of host, generic, avx2, avx512, avx512_bf16, neon, neon_bf16, got z80

llvm.func @leftover(%x: f32) -> f32 {
  // expected-error @+1 {{has no lowering to LLVM: 'math.absf' is left at the end of the pipeline}}
  %y = math.absf %x : f32
  llvm.return %y : f32
}

// -----

// The operation is named, not the cast beside it.
llvm.func @behind_a_cast(%n: i64) -> f32 {
  %i = builtin.unrealized_conversion_cast %n : i64 to index
  // expected-error @+1 {{has no lowering to LLVM: 'arith.index_cast' is left at the end of the pipeline}}
  %0 = arith.index_cast %i : index to i32
  %1 = llvm.sitofp %0 : i32 to f32
  llvm.return %1 : f32
}

// -----

// Made for a larger processor.
// expected-error @+1 {{expected features of the target generic, for which code is made, got "+avx512f"}}
llvm.func @larger() attributes {target_features = #llvm.target_features<["+avx512f"]>} {
  llvm.return
}

// -----

// On buffers there is no other way down.
func.func @attn(%q: memref<8x2x16xf32>, %cu: memref<2xi32>, %out: memref<8x2x16xf32>, %lse: memref<2x8xf32>) {
  // expected-error @+1 {{has no lowering to LLVM: 'varlen.attn' is left at the end of the pipeline; expected a varlen.schedule, which varlen-assign-schedule puts there, or varlen-decompose-attn while it was on tensors}}
  varlen.attn %q, %q, %q, %cu, %cu outs(%out, %lse)
      : (memref<8x2x16xf32>, memref<8x2x16xf32>, memref<8x2x16xf32>, memref<2xi32>, memref<2xi32>, memref<8x2x16xf32>, memref<2x8xf32>) -> ()
  return
}
