// The values that attention relies on, computed on this machine.
// RUN: varlen-opt %s --varlen-expand-exp2 --convert-vector-to-scf \
// RUN:   --convert-scf-to-cf --convert-vector-to-llvm --convert-math-to-llvm --convert-arith-to-llvm --convert-cf-to-llvm \
// RUN:   --convert-func-to-llvm --reconcile-unrealized-casts \
// RUN: | mlir-runner -e main -entry-point-result=void \
// RUN:   -shared-libs=%mlir-libs/libmlir_c_runner_utils.so | FileCheck %s

// Kept out of line so that nothing is computed at compile time.
func.func @bounded(%x: vector<8xf32>) -> vector<8xf32> attributes {no_inline} {
  %y = math.exp2 %x {varlen.exp2_degree = 3 : i64} : vector<8xf32>
  return %y : vector<8xf32>
}

func.func @any(%x: vector<8xf32>) -> vector<8xf32> attributes {no_inline} {
  %y = math.exp2 %x : vector<8xf32>
  return %y : vector<8xf32>
}

func.func @double(%x: vector<4xf64>) -> vector<4xf64> attributes {no_inline} {
  %y = math.exp2 %x {varlen.exp2_degree = 11 : i64} : vector<4xf64>
  return %y : vector<4xf64>
}

func.func @main() {
  // -inf, -1000, -127, -126, -3, 0, 127, NaN
  %a = arith.constant dense<[0xFF800000, -1000.0, -127.0, -126.0, -3.0, 0.0, 127.0, 0x7FC00000]> : vector<8xf32>
  %b = func.call @bounded(%a) : (vector<8xf32>) -> vector<8xf32>
  // CHECK: ( 0, 0, 0, 1.17549e-38, 0.125, 1, 1.70141e+38, nan )
  vector.print %b : vector<8xf32>

  // +inf, 1000, 128, 127.9, 0.5, -0.5, a NaN with every payload bit set, -inf
  %c = arith.constant dense<[0x7F800000, 1000.0, 128.0, 127.9, 0.5, -0.5, 0x7FFFFFFF, 0xFF800000]> : vector<8xf32>
  %d = func.call @any(%c) : (vector<8xf32>) -> vector<8xf32>
  // CHECK: ( inf, inf, inf, 3.1749{{.*}}e+38, 1.41421, 0.707107, nan, 0 )
  vector.print %d : vector<8xf32>

  %e = arith.constant dense<[0xFFF0000000000000, -1023.0, 0.5, 10.0]> : vector<4xf64>
  %f = func.call @double(%e) : (vector<4xf64>) -> vector<4xf64>
  // CHECK: ( 0, 0, 1.41421, 1024 )
  vector.print %f : vector<4xf64>
  return
}
