// RUN: varlen-opt %s --varlen-to-cpu=target=avx2 2>%t.err | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK <%t.err
// RUN: varlen-opt %s --varlen-to-cpu=target=avx2 2>/dev/null | mlir-translate --mlir-to-llvmir | FileCheck %s --check-prefix=LLVM
// RUN: varlen-opt %s --varlen-bufferize=target=avx2 2>/dev/null | FileCheck %s --check-prefix=BUFFERS
// RUN: varlen-opt %s --varlen-bufferize=target=avx2 --varlen-attn-to-loops=target=avx2 2>/dev/null | FileCheck %s --check-prefix=LOOPS

// The three stages are the whole.
// RUN: varlen-opt %s --varlen-to-cpu=target=avx2 2>/dev/null >%t.whole
// RUN: varlen-opt %s --varlen-bufferize=target=avx2 --varlen-attn-to-loops=target=avx2 --varlen-lower-to-llvm=target=avx2 2>/dev/null | diff - %t.whole

// Attention with a schedule: work for threads, in a function of its own.
// CHECK-LABEL: llvm.func @fast(
// CHECK-SAME: target_cpu = "x86-64-v3"
// CHECK: %[[WORK:.*]] = llvm.mlir.addressof @fast_work_0
// CHECK: llvm.call @varlen_work_tiles
// CHECK: llvm.call @varlen_parallel_for(%{{.*}}, %{{.*}}, %[[WORK]], %{{.*}})
// CHECK: llvm.func @_mlir_ciface_fast(
// CHECK: llvm.func @fast_work_0(
// CHECK-SAME: target_features = #llvm.target_features<["+avx2", "+fma"
// CHECK: llvm.intr.fma{{.*}} vector<8xf32>
// No wrapper for what C has no business to call.
// CHECK-NOT: @_mlir_ciface_fast_work_0
// CHECK-NOT: @_mlir_ciface_varlen

// LLVM: target triple = "x86_64-
// LLVM: define {{.*}} @fast_work_0(ptr noalias {{.*}}, i64 {{.*}}, i64 {{.*}}, ptr noalias {{.*}})

// BUFFERS-LABEL: func.func @fast(
// BUFFERS-SAME: memref<?x4x64xf32>
// BUFFERS-SAME: attributes {llvm.emit_c_interface}
// BUFFERS: %[[OUT:.*]] = memref.alloc({{.*}} : memref<?x4x64xf32>
// BUFFERS: %[[LSE:.*]] = memref.alloc({{.*}} : memref<4x?xf32>
// BUFFERS: varlen.attn {{.*}} outs(%[[OUT]], %[[LSE]])
// BUFFERS-NEXT: memref.dealloc %[[LSE]]
// BUFFERS-NEXT: return %[[OUT]]

// LOOPS-LABEL: func.func @fast(
// LOOPS: call @varlen_parallel_for
// LOOPS: memref.dealloc
// LOOPS: return
// LOOPS-LABEL: func.func private @fast_work_0(
// LOOPS-NOT: memref.alloc
// LOOPS: vector<8xf32>
// LOOPS-NOT: math.exp2
// LOOPS: return
func.func @fast(%q: tensor<?x4x64xf32>, %k: tensor<?x2x64xf32>, %v: tensor<?x2x64xf32>, %cu: tensor<?xi32>) -> tensor<?x4x64xf32> {
  %out, %lse = varlen.attn %q, %k, %v, %cu, %cu
      : (tensor<?x4x64xf32>, tensor<?x2x64xf32>, tensor<?x2x64xf32>, tensor<?xi32>, tensor<?xi32>)
      -> (tensor<?x4x64xf32>, tensor<4x?xf32>)
  return %out : tensor<?x4x64xf32>
}

// One that no schedule fits: still code, with the same checks, and a remark.
// REMARK: remark: no tiles for a dynamic head_dim; it is decomposed instead
// CHECK-LABEL: llvm.func @slow(
// CHECK: llvm.call @varlen_extent_error
// CHECK: llvm.call @varlen_work_tiles
// CHECK: llvm.call @free
// CHECK: llvm.cond_br
// CHECK: llvm.func @_mlir_ciface_slow(

// What the check yields is the result, without a copy.
// BUFFERS-LABEL: func.func @slow(
// BUFFERS: %[[BAD:.*]] = arith.ori
// BUFFERS-NEXT: %[[SLOW:.*]] = scf.if %[[BAD]] -> (memref<?x4x?xf32>) {
// BUFFERS-NEXT: %[[UNDEFINED:.*]] = memref.alloc
// BUFFERS-NEXT: scf.yield %[[UNDEFINED]]
// BUFFERS-NEXT: } else {
// BUFFERS: return %[[SLOW]]
func.func @slow(%q: tensor<?x4x?xf32>, %k: tensor<?x2x?xf32>, %v: tensor<?x2x?xf32>, %cu: tensor<?xi32>) -> tensor<?x4x?xf32> {
  %out, %lse = varlen.attn %q, %k, %v, %cu, %cu {scale = 0.125 : f32}
      : (tensor<?x4x?xf32>, tensor<?x2x?xf32>, tensor<?x2x?xf32>, tensor<?xi32>, tensor<?xi32>)
      -> (tensor<?x4x?xf32>, tensor<4x?xf32>)
  return %out : tensor<?x4x?xf32>
}

// A list that is copied for the check: who frees what is known when compiled.
// BUFFERS-LABEL: func.func @strided(
// BUFFERS: %[[LIST:.*]] = memref.alloc(%{{.*}}) {{.*}} : memref<?xi32>
// BUFFERS-NOT: cf.assert
// BUFFERS: varlen.work_tiles
// BUFFERS-NOT: cf.assert
// BUFFERS: memref.dealloc %[[LIST]]
// BUFFERS: return
func.func @strided(%q: tensor<?x4x?xf32>, %lists: tensor<?x2xi32>) -> tensor<?x4x?xf32> {
  %c0 = arith.constant 0 : index
  %entries = tensor.dim %lists, %c0 : tensor<?x2xi32>
  %cu = tensor.extract_slice %lists[0, 1] [%entries, 1] [1, 1] : tensor<?x2xi32> to tensor<?xi32>
  %out, %lse = varlen.attn %q, %q, %q, %cu, %cu
      : (tensor<?x4x?xf32>, tensor<?x4x?xf32>, tensor<?x4x?xf32>, tensor<?xi32>, tensor<?xi32>)
      -> (tensor<?x4x?xf32>, tensor<4x?xf32>)
  return %out : tensor<?x4x?xf32>
}
