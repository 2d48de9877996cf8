// Modules and functions that cannot be run.

// RUN: split-file %s %t && cd %t

// RUN: not varlen-run absent.mlir 2>&1 | FileCheck %s --check-prefix=ABSENT
// ABSENT: error: could not open input file absent.mlir
// RUN: not varlen-run syntax.mlir 2>&1 | FileCheck %s --check-prefix=SYNTAX
// SYNTAX: syntax.mlir:2:3: error: custom op 'foo' is unknown
// RUN: not varlen-run empty.mlir 2>&1 | FileCheck %s --check-prefix=EMPTY
// EMPTY: error: the module has no public function with a body
// RUN: not varlen-run two.mlir 2>&1 | FileCheck %s --check-prefix=TWO
// TWO: error: the module has several public functions: choose one with --entry (f, g)
// RUN: not varlen-run two.mlir --entry=h 2>&1 | FileCheck %s --check-prefix=NOENTRY
// RUN: not varlen-run two.mlir --entry=hidden 2>&1 | FileCheck %s --check-prefix=HIDDEN
// NOENTRY: error: no public function 'h' in the module: expected one of f, g
// HIDDEN: error: no public function 'hidden' in the module: expected one of f, g
// RUN: not varlen-run types.mlir --entry=unranked 2>&1 | FileCheck %s --check-prefix=UNRANKED
// UNRANKED: error: 'arg0' has type tensor<*xf32>: expected a scalar, a ranked tensor or a memref
// RUN: not varlen-run types.mlir --entry=complex 2>&1 | FileCheck %s --check-prefix=COMPLEX
// COMPLEX: error: 'arg1' has type tensor<2xcomplex<f32>>: expected elements of f16, bf16, f32, f64, f8E4M3FN, index or an integer of 1, 8, 16, 32 or 64 bits
// RUN: not varlen-run types.mlir --entry=layout 2>&1 | FileCheck %s --check-prefix=LAYOUT
// LAYOUT: error: 'result0' has type memref<2xf32, strided<[2]>>: expected a memref with the identity layout
// RUN: not varlen-run types.mlir --entry=twins 2>&1 | FileCheck %s --check-prefix=TWINS
// TWINS: error: two arguments have the name 'a'
// RUN: not varlen-run two.mlir --entry=f --pipeline=no-such-pass 2>&1 | FileCheck %s --check-prefix=PASS
// PASS: error: bad pipeline 'no-such-pass':
// A pipeline that leaves no function to call.
// RUN: not varlen-run two.mlir --entry=f --pipeline=symbol-dce,cse 2>&1 | FileCheck %s --check-prefix=UNLOWERED
// UNLOWERED: error:
// Pipelines after which the function is called another way.
// RUN: not varlen-run check.mlir -o out --pipeline=varlen-add-result-arguments,varlen-to-cpu 2>&1 \
// RUN:   | FileCheck %s --check-prefix=SIGNATURE
// SIGNATURE: error: bad pipeline: expected 'check' to keep its 0 arguments and 1 results, got 1 and 0 after varlen-add-result-arguments
// RUN: varlen-run make.mlir -o in.safetensors > %t/report
// RUN: not varlen-run narrowed.mlir in.safetensors -o out --pipeline='func.func(tosa-narrow-i64-to-i32{convert-function-boundaries}),varlen-to-cpu' 2>&1 \
// RUN:   | FileCheck %s --check-prefix=NARROWED
// NARROWED: error: bad pipeline: expected argument 0 of 'narrowed' to stay of type tensor<?xi64>, got tensor<?xi32> after tosa-narrow-i64-to-i32
// RUN: not varlen-run number.mlir -o out --pipeline='arith-emulate-wide-int{widest-int-supported=32},varlen-to-cpu' 2>&1 \
// RUN:   | FileCheck %s --check-prefix=NUMBER
// NUMBER: error: bad pipeline: expected result 0 of 'number' to stay of type i64, got vector<2xi32> after arith-emulate-wide-int
// A check in the compiled code is a message and status 1, no abort.
// RUN: not varlen-run check.mlir -o out --pipeline=convert-cf-to-llvm,convert-func-to-llvm,convert-arith-to-llvm 2>&1 \
// RUN:   | FileCheck %s --check-prefix=CHECK-FAILED
// RUN: not ls out
// CHECK-FAILED: error: the extents must agree

//--- syntax.mlir
func.func @f() {
  foo
}
//--- empty.mlir
func.func private @hidden() {
  return
}
func.func private @external()
//--- two.mlir
func.func @f() {
  return
}
func.func @g() {
  call @hidden() : () -> ()
  return
}
func.func private @hidden() {
  return
}
//--- make.mlir
func.func @make() -> (tensor<3xi64> {varlen.name = "x"}) {
  %x = arith.constant dense<[1, 2, 3]> : tensor<3xi64>
  return %x : tensor<3xi64>
}
//--- narrowed.mlir
func.func @narrowed(%x: tensor<?xi64> {varlen.name = "x"}) -> tensor<?xi64> {
  return %x : tensor<?xi64>
}
//--- number.mlir
func.func @number() -> i64 {
  %c = arith.constant 4294967297 : i64
  return %c : i64
}
//--- types.mlir
func.func @unranked(%a: tensor<*xf32>) {
  return
}
func.func @complex(%a: f32, %b: tensor<2xcomplex<f32>>) {
  return
}
func.func @layout() -> memref<2xf32, strided<[2]>> {
  %0 = memref.alloc() : memref<4xf32>
  %1 = memref.subview %0[0] [2] [2] : memref<4xf32> to memref<2xf32, strided<[2]>>
  return %1 : memref<2xf32, strided<[2]>>
}
func.func @twins(%a: f32 {varlen.name = "a"}, %b: f32 {varlen.name = "a"}) {
  return
}
//--- check.mlir
func.func @check() -> i32 {
  %false = arith.constant false
  %c = arith.constant 7 : i32
  cf.assert %false, "the extents must agree"
  return %c : i32
}
