// REQUIRES: plugin
// RUN: %mlir-opt-plugin --pass-pipeline='builtin.module(varlen-lower-attn-to-cpu{target=avx2})' %s --split-input-file | FileCheck %s

// The rest of the pipeline is upstream's: a stock mlir-runner runs it.

// RUN: %mlir-opt-plugin --pass-pipeline='builtin.module(one-shot-bufferize{bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map},buffer-deallocation-pipeline,convert-bufferization-to-memref,varlen-lower-attn-to-cpu,convert-linalg-to-loops,convert-vector-to-scf,expand-strided-metadata,lower-affine,convert-scf-to-cf,convert-vector-to-llvm{enable-x86vector},convert-to-llvm,reconcile-unrealized-casts)' %S/Inputs/host.mlir -o %t.after
// RUN: mlir-runner %t.after -e main -entry-point-result=void --shared-libs=%varlen-build/lib/libvarlen_runtime.so,%mlir-libs/libmlir_runner_utils.so,%mlir-libs/libmlir_c_runner_utils.so | FileCheck %s --check-prefix=RESULT
// RUN: %mlir-opt-plugin --pass-pipeline='builtin.module(varlen-lower-attn-to-cpu,one-shot-bufferize{bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map},buffer-deallocation-pipeline,convert-bufferization-to-memref,convert-linalg-to-loops,convert-vector-to-scf,expand-strided-metadata,lower-affine,convert-scf-to-cf,convert-vector-to-llvm{enable-x86vector},convert-to-llvm,reconcile-unrealized-casts)' %S/Inputs/host.mlir -o %t.before
// RUN: mlir-runner %t.before -e main -entry-point-result=void --shared-libs=%varlen-build/lib/libvarlen_runtime.so,%mlir-libs/libmlir_runner_utils.so,%mlir-libs/libmlir_c_runner_utils.so | FileCheck %s --check-prefix=RESULT

// Means of the values so far, 0, 1/2, 1 and 3, plus 1.
// RESULT: {{\[}}[1, {{.*}}1],
// RESULT-NEXT: [1.5, {{.*}}1.5],
// RESULT-NEXT: [2, {{.*}}2],
// RESULT-NEXT: [4, {{.*}}4]]

// On memrefs: one call, and nothing else of the function changes. Kernels and
// modules of others stay as they are, with attentions in them.

// CHECK-LABEL: gpu.module @own
// CHECK: math.exp2
// CHECK-LABEL: func @memrefs(
// CHECK-SAME: %[[Q:.*]]: memref<?x4x16xf32, strided<[?, ?, 1], offset: ?>>, %[[CU:.*]]: memref<?xi32>, %[[O:.*]]: memref<?x4x16xf32>, %[[L:.*]]: memref<4x?xf32>
// CHECK-NEXT: math.exp2
// CHECK-NEXT: call @memrefs_attn(%[[Q]], %[[Q]], %[[Q]], %[[CU]], %[[CU]], %[[O]], %[[L]])
// CHECK-NEXT: scf.forall
// CHECK: return
// CHECK: module @other
// CHECK: func private @varlen_free(f32)
// CHECK: varlen.attn
// CHECK: func private @memrefs_attn(
// CHECK-SAME: passthrough = {{.*}}["target-cpu", "x86-64-v3"]
// CHECK-NOT: varlen.attn
// CHECK: call @varlen_work_tiles
// CHECK: call @varlen_parallel_for
// CHECK: func private @memrefs_attn_work_0(
module {
  gpu.module @own {
    gpu.func @touch(%x: memref<8xf32>) kernel {
      %c0 = arith.constant 0 : index
      %v = memref.load %x[%c0] : memref<8xf32>
      %e = math.exp2 %v : f32
      memref.store %e, %x[%c0] : memref<8xf32>
      gpu.return
    }
  }
  func.func @memrefs(%q: memref<?x4x16xf32, strided<[?, ?, 1], offset: ?>>, %cu: memref<?xi32>,
                     %o: memref<?x4x16xf32>, %l: memref<4x?xf32>, %v: vector<8xf32>) -> vector<8xf32> {
    %e = math.exp2 %v : vector<8xf32>
    varlen.attn %q, %q, %q, %cu, %cu outs(%o, %l)
        : (memref<?x4x16xf32, strided<[?, ?, 1], offset: ?>>, memref<?x4x16xf32, strided<[?, ?, 1], offset: ?>>,
           memref<?x4x16xf32, strided<[?, ?, 1], offset: ?>>, memref<?xi32>, memref<?xi32>,
           memref<?x4x16xf32>, memref<4x?xf32>) -> ()
    scf.forall (%i) in (4) {
    }
    return %e : vector<8xf32>
  }
  module @other {
    func.func private @varlen_free(f32)
    func.func @f(%q: tensor<8x4x16xf32>, %cu: tensor<3xi32>) -> tensor<8x4x16xf32> {
      %out, %lse = varlen.attn %q, %q, %q, %cu, %cu
          : (tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<3xi32>, tensor<3xi32>)
          -> (tensor<8x4x16xf32>, tensor<4x8xf32>)
      return %out : tensor<8x4x16xf32>
    }
  }
}

// -----

// On tensors; names that are taken are not used, and the runtime is declared
// once.

// CHECK-LABEL: func @tensors(
// CHECK-SAME: %[[Q:.*]]: tensor<?x4x16xf32>, %[[CU:.*]]: tensor<?xi32>
// CHECK: %[[B:.*]] = bufferization.to_buffer %[[Q]] read_only
// CHECK: memref.cast %[[B]] : {{.*}} to memref<?x4x16xf32, strided<[?, ?, 1], offset: ?>>
// CHECK: %[[ROWS:.*]] = tensor.dim %[[Q]]
// CHECK: %[[O:.*]] = memref.alloc(%[[ROWS]]) : memref<?x4x16xf32>
// CHECK: %[[L:.*]] = memref.alloc({{.*}}) : memref<4x?xf32>
// CHECK: call @tensors_attn_0({{.*}}, %[[O]], %[[L]])
// CHECK: bufferization.to_tensor %[[O]] restrict writable
// CHECK: func private @tensors_attn()
// CHECK: func private @varlen_parallel_for(
// CHECK-NOT: @varlen_parallel_for(i64, i64,
// CHECK: func private @tensors_attn_0_work_0_0(
func.func @tensors(%q: tensor<?x4x16xf32>, %cu: tensor<?xi32>) -> tensor<?x4x16xf32> {
  %out, %lse = varlen.attn %q, %q, %q, %cu, %cu
      : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?xi32>, tensor<?xi32>)
      -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
  return %out : tensor<?x4x16xf32>
}
func.func private @tensors_attn()
func.func private @tensors_attn_0_work_0()
func.func private @varlen_parallel_for(i64, i64, (!llvm.ptr, i64, i64, !llvm.ptr) -> (), !llvm.ptr)

// -----

// Gradients, whose buffers are allocated by calls: passes that own buffers do
// not take them for theirs.

// CHECK-LABEL: func @gradient(
// CHECK: call @gradient_attn_grad(
// CHECK: func private @gradient_attn_grad(
// CHECK-NOT: memref.alloc(
// CHECK: call @varlen_allocate(
// CHECK-NOT: memref.dealloc
// CHECK: call @varlen_free(
func.func @gradient(%d: memref<8x4x16xf32>, %l: memref<4x8xf32>, %cu: memref<3xi32>,
                    %dq: memref<8x4x16xf32>, %dk: memref<8x4x16xf32>, %dv: memref<8x4x16xf32>) {
  varlen.attn_grad %d, %d, %d, %d, %d, %l, %cu, %cu outs(%dq, %dk, %dv)
      : (memref<8x4x16xf32>, memref<8x4x16xf32>, memref<8x4x16xf32>, memref<8x4x16xf32>,
         memref<8x4x16xf32>, memref<4x8xf32>, memref<3xi32>, memref<3xi32>, memref<8x4x16xf32>,
         memref<8x4x16xf32>, memref<8x4x16xf32>) -> ()
  return
}

// -----

// No attention, no change.

// CHECK-LABEL: func @none(
// CHECK-NEXT: return
// CHECK-NEXT: }
// CHECK-NEXT: }
func.func @none() {
  return
}
