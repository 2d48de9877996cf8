// RUN: varlen-opt %s --varlen-use-device-memory | FileCheck %s

// CHECK: llvm.func @varlen_gpu_allocate(i64) -> !llvm.ptr
// CHECK: llvm.func @varlen_gpu_free(!llvm.ptr)
llvm.func @malloc(i64) -> !llvm.ptr
llvm.func @free(!llvm.ptr)

// CHECK-LABEL: @buffer
llvm.func @buffer(%bytes: i64) {
  // CHECK: %[[P:.*]] = llvm.call @varlen_gpu_allocate(
  // CHECK: llvm.call @varlen_gpu_free(%[[P]])
  %p = llvm.call @malloc(%bytes) : (i64) -> !llvm.ptr
  llvm.call @free(%p) : (!llvm.ptr) -> ()
  llvm.return
}
