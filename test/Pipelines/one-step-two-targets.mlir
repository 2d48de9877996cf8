// The step of online softmax is written once. One module with a step for a CPU,
// where keys are the rows of a score tile and queries its lanes, and the same
// step for a GPU, where queries are the rows and every thread has a fragment.

// RUN: varlen-opt %s --varlen-online-softmax | FileCheck %s --check-prefix=STEP
// RUN: varlen-opt %s --pass-pipeline='builtin.module(varlen-online-softmax,gpu.module(varlen-expand-scores,gpu.func(kernel-distribute)),varlen-choose-copies,varlen-tiles-to-vectors{target=avx512},canonicalize,cse)' | FileCheck %s

// The same operations in the same order, twice.
// STEP: linalg.fill
// STEP: linalg.contract
// STEP: linalg.generic {{.*}}["reduction", "parallel"]
// STEP: arith.maxnumf
// STEP: arith.maxnumf
// STEP: arith.negf
// STEP: math.exp2
// STEP: arith.mulf
// STEP: varlen.weight
// STEP: linalg.generic {{.*}}["reduction", "parallel"]
// STEP: arith.addf
// STEP: arith.truncf
// STEP: arith.mulf
// STEP: linalg.contract
// STEP: gpu.module
// STEP: linalg.fill
// STEP: linalg.contract
// STEP: linalg.generic {{.*}}["parallel", "reduction"]
// STEP: arith.maxnumf
// STEP: arith.maxnumf
// STEP: arith.negf
// STEP: math.exp2
// STEP: arith.mulf
// STEP: varlen.weight
// STEP: linalg.generic {{.*}}["parallel", "reduction"]
// STEP: arith.addf
// STEP: arith.truncf
// STEP: arith.mulf
// STEP: linalg.contract

// Loops over rows, vectors of lanes.
// CHECK-LABEL: func.func @cpu
// CHECK-NOT: linalg
// CHECK: scf.for
// CHECK: vector.fma {{.*}} : vector<16xf32>
// CHECK: math.exp2 {{.*}} : vector<32xf32>
// CHECK: return
func.func @cpu(%q: memref<64x32xbf16>, %k: memref<64x64xbf16>, %v: memref<64x64xbf16>, %acc: memref<64x32xf32>,
               %m: memref<1x32xf32>, %l: memref<1x32xf32>, %n: index) {
  scf.forall (%i) in (%n) {
    %qt = varlen.to_tile %q as columns : memref<64x32xbf16> to tensor<32x64xbf16>
    %kt = bufferization.to_tensor %k restrict : memref<64x64xbf16> to tensor<64x64xbf16>
    %vt = bufferization.to_tensor %v restrict : memref<64x64xbf16> to tensor<64x64xbf16>
    %at = bufferization.to_tensor %acc restrict : memref<64x32xf32> to tensor<64x32xf32>
    %mt = bufferization.to_tensor %m restrict : memref<1x32xf32> to tensor<1x32xf32>
    %lt = bufferization.to_tensor %l restrict : memref<1x32xf32> to tensor<1x32xf32>
    %r:3 = varlen.online_attn kq
        ins(%qt, %kt, %vt : tensor<32x64xbf16>, tensor<64x64xbf16>, tensor<64x64xbf16>)
        outs(%at, %mt, %lt : tensor<64x32xf32>, tensor<1x32xf32>, tensor<1x32xf32>) scale 0.125
    bufferization.materialize_in_destination %r#0 in restrict writable %acc : (tensor<64x32xf32>, memref<64x32xf32>) -> ()
    bufferization.materialize_in_destination %r#1 in restrict writable %m : (tensor<1x32xf32>, memref<1x32xf32>) -> ()
    bufferization.materialize_in_destination %r#2 in restrict writable %l : (tensor<1x32xf32>, memref<1x32xf32>) -> ()
  } {varlen.schedule = #varlen.cpu_schedule<lanes = 16, vectors = 1, rows = 4, panels = 1, kv_block = 64, kv = copy>}
  return
}

// Each of 64 threads has 32 of the 32 x 64 scores, and its lanes share a row
// with three others.
// CHECK-LABEL: gpu.func @gpu
// CHECK-NOT: linalg
// CHECK: %[[S:.*]] = kernel.contract {{.*}} k(64) : {{.*}} into vector<1x8x2x2xf32>
// CHECK: gpu.subgroup_reduce maxnumf {{.*}} cluster(size = 4) : (vector<2xf32>) -> vector<2xf32>
// CHECK: math.fma %[[S]], {{.*}} : vector<1x8x2x2xf32>
// CHECK: math.exp2 {{.*}} : vector<1x8x2x2xf32>
// CHECK: %[[P:.*]] = arith.truncf {{.*}} to vector<1x8x2x2xbf16>
// CHECK: kernel.contract %[[P]], {{.*}} k(64) {b_t} : vector<1x8x2x2xbf16>, {{.*}} into vector<1x8x2x2xf32>
// CHECK: gpu.return
!shared_q = memref<1x32x64xbf16, #gpu.address_space<workgroup>>
!shared_k = memref<1x64x64xbf16, #gpu.address_space<workgroup>>
gpu.module @kernels {
  gpu.func @gpu(%q: !shared_q, %k: !shared_k, %v: !shared_k, %out: memref<32x1x64xf32>, %lse: memref<1x32xf32>) kernel
      attributes {known_block_size = array<i32: 64, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c32 = arith.constant 32 : index
    %acc = arith.constant dense<0.0> : tensor<32x64xf32>
    %m = arith.constant dense<-1.0e+38> : tensor<32x1xf32>
    %l = arith.constant dense<0.0> : tensor<32x1xf32>
    %qt = kernel.tile %q : !shared_q to tensor<32x64xbf16>
    %kt = kernel.tile %k : !shared_k to tensor<64x64xbf16>
    %vt = kernel.tile %v : !shared_k to tensor<64x64xbf16>
    %r:3 = varlen.online_attn qk
        ins(%qt, %kt, %vt : tensor<32x64xbf16>, tensor<64x64xbf16>, tensor<64x64xbf16>)
        outs(%acc, %m, %l : tensor<32x64xf32>, tensor<32x1xf32>, tensor<32x1xf32>) scale 0.125
    kernel.store %r#0 to %out rows(%c0, %c0, %c0, %c1) valid(%c32) : tensor<32x64xf32> to memref<32x1x64xf32>
    kernel.store %r#1 to %lse rows(%c0, %c0, %c0, %c1) valid(%c32) : tensor<32x1xf32> to memref<1x32xf32>
    kernel.store %r#2 to %lse rows(%c0, %c0, %c0, %c1) valid(%c32) : tensor<32x1xf32> to memref<1x32xf32>
    gpu.return
  }
}
