// RUN: varlen-opt %s --varlen-rename-functions | FileCheck %s

// A function of libm that LLVM calls for math.exp.
// CHECK-LABEL: func @source.exp(
// CHECK-SAME: attributes {llvm.emit_c_interface, varlen.source_name = "exp"}
func.func @exp(%x: f64) -> f64 attributes {llvm.emit_c_interface} {
  return %x : f64
}

// One that LLVM's optimiser would take calls of for what it knows.
// CHECK-LABEL: func private @source.strlen(
func.func private @strlen(%x: i64) -> i64 {
  return %x : i64
}

// What varlen-call-libm declares, and what memref.alloc becomes.
// CHECK-LABEL: func @source.erff(
// CHECK: call @source.exp(
// CHECK: call @source.strlen(
func.func @erff(%x: f64, %n: i64) -> i64 {
  %y = call @exp(%x) : (f64) -> f64
  %m = call @strlen(%n) : (i64) -> i64
  return %m : i64
}
// CHECK: func @source.aligned_alloc(
func.func @aligned_alloc() {
  return
}

// The names of runtimes, and of C interfaces.
// CHECK: func @source.varlen_free(
func.func @varlen_free() {
  return
}
// CHECK: func @source._mlir_ciface_exp(
func.func @_mlir_ciface_exp() {
  return
}
// CHECK: func @source.memrefCopy(
func.func @memrefCopy() {
  return
}

// Another name that is taken.
// CHECK: func @source.sin_(
func.func @sin() {
  return
}
// CHECK: func @source.sin()
func.func @source.sin() {
  return
}

// What stays: other names, and declarations of what the source calls itself.
// CHECK: func @attention()
func.func @attention() {
  return
}
// CHECK: func private @cos(f64) -> f64
// CHECK-NOT: source_name
func.func private @cos(f64) -> f64
// Made by a pass for its own runtime.
func.func private @varlen_mask() {
  return
}
