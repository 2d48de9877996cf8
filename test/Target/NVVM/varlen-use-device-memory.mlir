// RUN: varlen-opt %s --varlen-use-device-memory --split-input-file | FileCheck %s

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

// -----

// What calls the runtime already goes on calling it.

// CHECK: llvm.func @varlen_gpu_allocate(i64) -> !llvm.ptr
// CHECK-NOT: llvm.func @varlen_gpu_allocate
// CHECK-NOT: malloc
llvm.func @varlen_gpu_allocate(i64) -> !llvm.ptr
llvm.func @malloc(i64) -> !llvm.ptr

// CHECK-LABEL: @both
llvm.func @both(%bytes: i64) {
  // CHECK-COUNT-2: llvm.call @varlen_gpu_allocate(
  %p = llvm.call @varlen_gpu_allocate(%bytes) : (i64) -> !llvm.ptr
  %r = llvm.call @malloc(%bytes) : (i64) -> !llvm.ptr
  llvm.return
}
