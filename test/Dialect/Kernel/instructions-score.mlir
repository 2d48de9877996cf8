// What a score adds to the loop over kv blocks of instructions.mlir: 32 scores of each
// thread, with ALiBi, with a soft cap and with documents.

// RUN: varlen-opt %s --pass-pipeline='builtin.module(varlen-online-softmax,gpu.module(varlen-expand-scores,gpu.func(kernel-distribute,canonicalize,cse,kernel-defer-row-sum,kernel-lower-contract,kernel-lower-access,kernel-expand-reductions,kernel-expand-math,kernel-pack-narrow,canonicalize,cse),convert-scf-to-cf),varlen-expand-device-math,gpu.module(convert-math-to-llvm,convert-vector-to-llvm,convert-arith-to-llvm,convert-ub-to-llvm,convert-gpu-to-nvvm,reconcile-unrealized-casts,canonicalize,cse),nvvm-attach-target{chip=sm_80 features=+ptx80 O=3},gpu-module-to-binary{format=isa})' > %t
// RUN: %python %S/Inputs/ptx-loops.py --at-most 5000 < %t | FileCheck %s
// RUN: %if ptxas %{ %python %S/Inputs/ptx-loops.py --ptxas %t.ptx < %t | FileCheck %s --check-prefix=PTXAS %}

// The loop without a score has 307 instructions. ALiBi adds 6.5 for each score: a difference
// of positions (and half an addition of the key's), its conversion and absolute value, which
// is part of the next operation on the machine, the product with the slope, and its
// difference to the product with the scale, an fma whose negation is part of it on the machine.
// CHECK: loop of {{5(0[6-9]|1[0-9]|2[0-6])}} instructions: 70 mul, 64 mma, 64 fma, 48 cvt, 36 max, 34 sub, 34 abs, 34 neg, 34 ex2, 34 add,
// A soft cap adds 18: five fused multiply-adds and two products are its polynomial for small
// scores; an exp2, three products, an addition, a difference and an approximate division are for
// the others; the rest are a comparison, a choice, a sign and an absolute value.
// CHECK: loop of 8{{[6-9][0-9]}} instructions: 198 mul, 192 fma, 66 ex2, 65 add, 64 mma, 36 max, 34 abs, 34 sub, 34 selp, 32 div, 32 copysign, 32 setp.lt,
// Documents add 5: two comparisons, the conjunction and the choice, and half a conversion of
// the key's position. A block that is visible as a whole has the step without a score.
// CHECK: loop of {{4(5[89]|6[0-9]|7[0-8])}} instructions: 66 selp, 64 mma, 38 mul, 36 max, 34 ex2, 34 add, 32 cvt, 32 setp.le, 32 setp.gt, 32 fma,
// CHECK-NOT: loop

// PTXAS: ptxas: {{[0-9]?[0-9]|1[01][0-9]|12[0-8]}} registers, 0 bytes spilled

!shared = memref<1x64x64xbf16, #gpu.address_space<workgroup>>
!acc = tensor<64x64xf32>
!row = tensor<64x1xf32>
#mn = affine_map<(m, n) -> (m, n)>
gpu.module @kernels {
  gpu.func @alibi(%out: memref<?x16x64xbf16>, %lse: memref<16x?xf32>, %blocks: index, %n: index, %slopes: memref<16x?xf32>)
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
    %slope = kernel.load %slopes rows(%c0, %c0, %c0, %c1) valid(%n) otherwise %zero
        : memref<16x?xf32> to !row
    %ei = tensor.empty() : tensor<64x1xi32>
    %position = linalg.generic {indexing_maps = [#mn], iterator_types = ["parallel", "parallel"]}
        outs(%ei : tensor<64x1xi32>) {
    ^bb0(%x: i32):
      %row = linalg.index 0 : index
      %row32 = arith.index_cast %row : index to i32
      linalg.yield %row32 : i32
    } -> tensor<64x1xi32>
    %r:3 = scf.for %i = %c0 to %blocks step %c1 iter_args(%acc = %acc0, %m = %m0, %l = %l0) -> (!acc, !row, !row) {
      %i32 = arith.index_cast %i : index to i32
      %c64 = arith.constant 64 : i32
      %key = arith.muli %i32, %c64 : i32
      %k = kernel.tile %sk : !shared to tensor<64x64xbf16>
      %v = kernel.tile %sv : !shared to tensor<64x64xbf16>
      %s:3 = varlen.online_attn qk
          ins(%q, %k, %v : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xbf16>)
          positions(%position, %key : tensor<64x1xi32>, i32) captures(%slope : !row)
          outs(%acc, %m, %l : !acc, !row, !row) scale 1.0
          score (%x: f32, %query: i32, %j: i32, %a: f32) {
            %scale = arith.constant 0.125 : f32
            %ahead = arith.subi %j, %query : i32
            %float = arith.sitofp %ahead : i32 to f32
            %distance = math.absf %float : f32
            %y = arith.mulf %a, %distance : f32
            %minus = arith.negf %y : f32
            %new = math.fma %x, %scale, %minus : f32
            varlen.yield %new : f32
          }
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

  gpu.func @softcap(%out: memref<?x16x64xbf16>, %lse: memref<16x?xf32>, %blocks: index, %n: index)
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
          outs(%acc, %m, %l : !acc, !row, !row) scale 1.0
          score (%x: f32, %query: i32, %j: i32) {
            %scale = arith.constant 0.0025 : f32
            %cap = arith.constant 50.0 : f32
            %scaled = arith.mulf %x, %scale : f32
            %t = math.tanh %scaled : f32
            %new = arith.mulf %t, %cap : f32
            varlen.yield %new : f32
          }
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

  gpu.func @document(%out: memref<?x16x64xbf16>, %lse: memref<16x?xf32>, %blocks: index, %n: index, %begins: memref<16x?xf32>, %ends: memref<16x?xf32>)
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
    %begin = kernel.load %begins rows(%c0, %c0, %c0, %c1) valid(%n) otherwise %zero
        : memref<16x?xf32> to !row
    %end = kernel.load %ends rows(%c0, %c0, %c0, %c1) valid(%n) otherwise %zero
        : memref<16x?xf32> to !row
    %ei = tensor.empty() : tensor<64x1xi32>
    %position = linalg.generic {indexing_maps = [#mn], iterator_types = ["parallel", "parallel"]}
        outs(%ei : tensor<64x1xi32>) {
    ^bb0(%x: i32):
      %row = linalg.index 0 : index
      %row32 = arith.index_cast %row : index to i32
      linalg.yield %row32 : i32
    } -> tensor<64x1xi32>
    %r:3 = scf.for %i = %c0 to %blocks step %c1 iter_args(%acc = %acc0, %m = %m0, %l = %l0) -> (!acc, !row, !row) {
      %i32 = arith.index_cast %i : index to i32
      %c64 = arith.constant 64 : i32
      %key = arith.muli %i32, %c64 : i32
      %k = kernel.tile %sk : !shared to tensor<64x64xbf16>
      %v = kernel.tile %sv : !shared to tensor<64x64xbf16>
      %s:3 = varlen.online_attn qk
          ins(%q, %k, %v : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xbf16>)
          positions(%position, %key : tensor<64x1xi32>, i32) captures(%begin, %end : !row, !row)
          outs(%acc, %m, %l : !acc, !row, !row) scale 0.125
          score (%x: f32, %query: i32, %j: i32, %b: f32, %e: f32) {
            %float = arith.sitofp %j : i32 to f32
            %begun = arith.cmpf oge, %float, %b : f32
            %before = arith.cmpf olt, %float, %e : f32
            %visible = arith.andi %begun, %before : i1
            varlen.yield %x, %visible : f32, i1
          }
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
