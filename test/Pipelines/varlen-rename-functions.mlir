// RUN: varlen-opt %s --varlen-rename-functions | FileCheck %s

// A function of libm that LLVM calls for math.exp.
// CHECK-LABEL: func @source_exp(
// CHECK-SAME: attributes {llvm.emit_c_interface, varlen.source_name = "exp"}
func.func @exp(%x: f64) -> f64 attributes {llvm.emit_c_interface} {
  return %x : f64
}

// One that LLVM's optimiser would take calls of for what it knows.
// CHECK-LABEL: func private @source_strlen(
func.func private @strlen(%x: i64) -> i64 {
  return %x : i64
}

// What varlen-legalize-for-cpu declares, and what memref.alloc becomes.
// CHECK-LABEL: func @source_erff(
// CHECK: call @source_exp(
// CHECK: call @source_strlen(
func.func @erff(%x: f64, %n: i64) -> i64 {
  %y = call @exp(%x) : (f64) -> f64
  %m = call @strlen(%n) : (i64) -> i64
  return %m : i64
}
// CHECK: func @source_aligned_alloc(
func.func @aligned_alloc() {
  return
}

// The names of runtimes, and of C interfaces.
// CHECK: func @source_varlen_free(
func.func @varlen_free() {
  return
}
// CHECK: func @source__mlir_ciface_exp(
func.func @_mlir_ciface_exp() {
  return
}
// CHECK: func @source_memrefCopy(
func.func @memrefCopy() {
  return
}

// Another name that is taken.
// CHECK: func @source_sin_(
func.func @sin() {
  return
}
// CHECK: func @source_sin()
func.func @source_sin() {
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

// Private functions and globals, which passes would take for the runtime's.
// CHECK: func private @source_varlen_work_tiles()
func.func private @varlen_work_tiles() {
  return
}
// CHECK: memref.global "private" constant @source_varlen_parallel_for :
memref.global "private" constant @varlen_parallel_for : memref<1xf32> = dense<1.0>
// CHECK: func private @get()
// CHECK: memref.get_global @source_varlen_parallel_for
func.func private @get() -> memref<1xf32> {
  %x = memref.get_global @varlen_parallel_for : memref<1xf32>
  return %x : memref<1xf32>
}
