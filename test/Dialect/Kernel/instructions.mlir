// What the loop over kv blocks is made of, without its copies: a step of 64
// queries and 64 keys, head_dim 64, for four warps, unmasked.

// RUN: varlen-opt %s --pass-pipeline='builtin.module(varlen-online-softmax,gpu.module(varlen-expand-scores,gpu.func(kernel-distribute,canonicalize,cse,kernel-defer-row-sum,kernel-lower-contract,kernel-lower-access,kernel-expand-reductions,kernel-expand-math,kernel-pack-narrow,canonicalize,cse),convert-scf-to-cf,convert-math-to-llvm,convert-vector-to-llvm,convert-arith-to-llvm,convert-ub-to-llvm,convert-gpu-to-nvvm,reconcile-unrealized-casts,canonicalize,cse),nvvm-attach-target{chip=sm_80 features=+ptx80 O=3},gpu-module-to-binary{format=isa})' > %t
// RUN: %python %S/Inputs/ptx-loops.py --at-most 320 < %t | FileCheck %s
// RUN: %if ptxas %{ %python %S/Inputs/ptx-loops.py --ptxas %t.ptx < %t | FileCheck %s --check-prefix=PTXAS %}

// Every product, load of matrices, exponential and pair of roundings once; one
// maximum, one fused multiply-add and one addition per score, one multiplication
// per element of the accumulator; shuffles for the maximum only. The rest is
// what two rows need (of which a comparison and a choice are for scores that are
// very large), and the loop.
// CHECK: loop of {{[23][0-9][0-9]}} instructions: 64 mma,
// CHECK-DAG: 20 ldmatrix
// CHECK-DAG: 16 ldmatrix.trans
// CHECK-DAG: 36 max
// CHECK-DAG: 38 mul
// CHECK-DAG: 34 ex2
// CHECK-DAG: 32 fma
// CHECK-DAG: 16 cvt
// CHECK-DAG: 4 shfl.bfly
// CHECK-DAG: 2 setp.ge
// CHECK-DAG: 2 selp
// CHECK-NOT: loop

// PTXAS: ptxas: {{[0-9]?[0-9]|1[01][0-9]|12[0-8]}} registers, 0 bytes spilled

!shared = memref<1x64x64xbf16, #gpu.address_space<workgroup>>
!acc = tensor<64x64xf32>
!row = tensor<64x1xf32>
#mn = affine_map<(m, n) -> (m, n)>
gpu.module @kernels {
  gpu.func @step(%out: memref<?x16x64xbf16>, %lse: memref<16x?xf32>, %blocks: index, %n: index)
      workgroup(%sq: !shared, %sk: !shared, %sv: !shared) kernel
      attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %zero = arith.constant 0.0 : f32
    %lowest = arith.constant -1.0e38 : f32
    %ea = tensor.empty() : !acc
    %er = tensor.empty() : !row
    %acc0 = linalg.fill ins(%zero : f32) outs(%ea : !acc) -> !acc
    %m0 = linalg.fill ins(%lowest : f32) outs(%er : !row) -> !row
    %l0 = linalg.fill ins(%zero : f32) outs(%er : !row) -> !row
    %q = kernel.tile %sq : !shared to tensor<64x64xbf16>
    %r:3 = scf.for %i = %c0 to %blocks step %c1 iter_args(%acc = %acc0, %m = %m0, %l = %l0) -> (!acc, !row, !row) {
      %k = kernel.tile %sk : !shared to tensor<64x64xbf16>
      %v = kernel.tile %sv : !shared to tensor<64x64xbf16>
      %s:3 = varlen.online_attn qk
          ins(%q, %k, %v : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xbf16>)
          outs(%acc, %m, %l : !acc, !row, !row) scale 0.125
      scf.yield %s#0, %s#1, %s#2 : !acc, !row, !row
    }
    %eb = tensor.empty() : tensor<64x64xbf16>
    %o = linalg.generic {indexing_maps = [#mn, affine_map<(m, n) -> (m, 0)>, #mn], iterator_types = ["parallel", "parallel"]}
        ins(%r#0, %r#2 : !acc, !row) outs(%eb : tensor<64x64xbf16>) {
    ^bb0(%x: f32, %y: f32, %z: bf16):
      %d = arith.mulf %x, %y : f32
      %b = arith.truncf %d : f32 to bf16
      linalg.yield %b : bf16
    } -> tensor<64x64xbf16>
    kernel.store %o to %out rows(%c0, %c0, %c0, %c1) valid(%n) : tensor<64x64xbf16> to memref<?x16x64xbf16>
    kernel.store %r#1 to %lse rows(%c0, %c0, %c0, %c1) valid(%n) : !row to memref<16x?xf32>
    gpu.return
  }
}
