// The values of exp2.mlir, and those that only vscalef knows: no promise about
// the operand. Results that would be denormal are 0.
// REQUIRES: avx512f
// RUN: varlen-opt %s --varlen-expand-exp2=scale=true \
// RUN:   --convert-vector-to-scf --convert-scf-to-cf \
// RUN:   --convert-vector-to-llvm=enable-x86vector --convert-math-to-llvm \
// RUN:   --convert-arith-to-llvm --convert-cf-to-llvm --convert-func-to-llvm \
// RUN:   --reconcile-unrealized-casts \
// RUN: | mlir-runner -e main -entry-point-result=void \
// RUN:   -shared-libs=%mlir-libs/libmlir_c_runner_utils.so | FileCheck %s

// Kept out of line so that nothing is computed at compile time.
func.func @single(%x: vector<16xf32>) -> vector<16xf32> attributes {no_inline} {
  %y = math.exp2 %x {varlen.exp2_degree = 5 : i64} : vector<16xf32>
  return %y : vector<16xf32>
}

func.func @double(%x: vector<8xf64>) -> vector<8xf64> attributes {no_inline} {
  %y = math.exp2 %x : vector<8xf64>
  return %y : vector<8xf64>
}

func.func @main() {
  // -inf, -1000, -149, -127, -126, -3, 0, 127, NaN, +inf, 1000, 128, 127.9, 0.5,
  // -0.5, a NaN with every payload bit set
  %a = arith.constant dense<[0xFF800000, -1000.0, -149.0, -127.0, -126.0, -3.0, 0.0, 127.0, 0x7FC00000, 0x7F800000, 1000.0, 128.0, 127.9, 0.5, -0.5, 0x7FFFFFFF]> : vector<16xf32>
  %b = func.call @single(%a) : (vector<16xf32>) -> vector<16xf32>
  // CHECK: ( 0, 0, 0, 0, 1.17549e-38, 0.125, 1, 1.70141e+38, nan, inf, inf, inf, 3.1749{{.*}}e+38, 1.41421, 0.707107, nan )
  vector.print %b : vector<16xf32>

  // -inf, -1074, -1022, 0.5, 10, 1024, NaN, +inf
  %c = arith.constant dense<[0xFFF0000000000000, -1074.0, -1022.0, 0.5, 10.0, 1024.0, 0x7FF8000000000000, 0x7FF0000000000000]> : vector<8xf64>
  %d = func.call @double(%c) : (vector<8xf64>) -> vector<8xf64>
  // CHECK: ( 0, 0, 2.22507e-308, 1.41421, 1024, inf, nan, inf )
  vector.print %d : vector<8xf64>
  return
}
