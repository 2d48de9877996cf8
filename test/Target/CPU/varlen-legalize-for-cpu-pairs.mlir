// RUN: varlen-opt %s --varlen-legalize-for-cpu=target=avx512_bf16 --canonicalize | FileCheck %s --check-prefixes=CHECK,PAIR
// RUN: varlen-opt %s --varlen-legalize-for-cpu=target=avx2 | FileCheck %s --check-prefixes=CHECK,DOT
// RUN: varlen-opt %s --varlen-legalize-for-cpu=target=neon_bf16 | FileCheck %s --check-prefixes=CHECK,NEON
// Numbers, on this machine: ties of either sign, infinity, the largest number and
// a NaN; then a product of pairs.
// RUN: varlen-opt %s --varlen-legalize-for-cpu=target=avx2 --convert-vector-to-scf --convert-scf-to-cf --convert-vector-to-llvm \
// RUN:   --convert-arith-to-llvm --convert-math-to-llvm --convert-cf-to-llvm --convert-func-to-llvm --reconcile-unrealized-casts \
// RUN: | mlir-runner -e main -entry-point-result=void -shared-libs=%mlir-libs/libmlir_c_runner_utils.so | FileCheck %s --check-prefix=VALUES

// The example of the pass documentation.
// CHECK-LABEL: func @round(
// PAIR-SAME: %[[EVEN:.*]]: vector<16xf32>, %[[ODD:.*]]: vector<16xf32>
// PAIR-DAG: %[[HALF:.*]] = arith.constant dense<32768> : vector<16xi32>
// PAIR-DAG: %[[C16:.*]] = arith.constant dense<16> : vector<16xi32>
// PAIR-DAG: %[[UPPER:.*]] = arith.constant dense<-65536> : vector<16xi32>
// PAIR: %[[BITS:.*]] = arith.bitcast %[[EVEN]] : vector<16xf32> to vector<16xi32>
// PAIR: %[[SUM:.*]] = arith.addi %[[BITS]], %[[HALF]]
// PAIR: %[[LOW:.*]] = arith.shrui %[[SUM]], %[[C16]]
// PAIR: %[[ODDBITS:.*]] = arith.bitcast %[[ODD]] : vector<16xf32> to vector<16xi32>
// PAIR: %[[ODDSUM:.*]] = arith.addi %[[ODDBITS]], %[[HALF]]
// PAIR: %[[HIGH:.*]] = arith.andi %[[ODDSUM]], %[[UPPER]]
// PAIR: %[[BOTH:.*]] = arith.ori %[[LOW]], %[[HIGH]]
// PAIR: vector.bitcast %[[BOTH]] : vector<16xi32> to vector<32xbf16>
func.func @round(%even: vector<16xf32>, %odd: vector<16xf32>) -> vector<32xbf16> {
  %0 = arith.truncf %even to_nearest_away : vector<16xf32> to vector<16xbf16>
  %1 = arith.truncf %odd to_nearest_away : vector<16xf32> to vector<16xbf16>
  %pairs = vector.interleave %0, %1 : vector<16xbf16> -> vector<32xbf16>
  return %pairs : vector<32xbf16>
}

// Rounding to nearest even, and of one of two vectors only, is another thing.
// CHECK-LABEL: func @even(
// CHECK-COUNT-2: vector.interleave
// CHECK-NOT: vector.bitcast
func.func @even(%x: vector<16xf32>, %y: vector<16xf32>) -> (vector<32xbf16>, vector<32xbf16>) {
  %0 = arith.truncf %x : vector<16xf32> to vector<16xbf16>
  %1 = arith.truncf %y to_nearest_away : vector<16xf32> to vector<16xbf16>
  %2 = vector.interleave %0, %0 : vector<16xbf16> -> vector<32xbf16>
  %3 = vector.interleave %0, %1 : vector<16xbf16> -> vector<32xbf16>
  return %2, %3 : vector<32xbf16>, vector<32xbf16>
}

// The even product is summed first.
// CHECK-LABEL: func @dot(
// PAIR: x86vector.avx512.dot
// DOT-SAME: %[[SUM:.*]]: vector<8xf32>, %[[A:.*]]: vector<16xbf16>, %[[B:.*]]: vector<16xbf16>
// DOT-NOT: x86vector
// DOT: arith.shli
// DOT: %[[AEVEN:.*]] = arith.bitcast
// DOT: arith.shli
// DOT: %[[BEVEN:.*]] = arith.bitcast
// DOT: %[[FIRST:.*]] = math.fma %[[AEVEN]], %[[BEVEN]], %[[SUM]]
// DOT: arith.andi
// DOT: %[[AODD:.*]] = arith.bitcast
// DOT: arith.andi
// DOT: %[[BODD:.*]] = arith.bitcast
// DOT: math.fma %[[AODD]], %[[BODD]], %[[FIRST]]
// The instruction of AArch64 has 4 lanes.
// NEON: x86vector.avx512.dot
func.func @dot(%sum: vector<8xf32>, %a: vector<16xbf16>, %b: vector<16xbf16>) -> vector<8xf32> {
  %0 = x86vector.avx512.dot %sum, %a, %b : vector<16xbf16> -> vector<8xf32>
  return %0 : vector<8xf32>
}

// CHECK-LABEL: func @dot_of_4(
// NEON-SAME: %[[SUM:.*]]: vector<4xf32>, %[[A:.*]]: vector<8xbf16>, %[[B:.*]]: vector<8xbf16>
// NEON: llvm.call_intrinsic "llvm.aarch64.neon.bfdot"(%[[SUM]], %[[A]], %[[B]]) : (vector<4xf32>, vector<8xbf16>, vector<8xbf16>) -> vector<4xf32>
// NEON-NOT: x86vector
func.func @dot_of_4(%sum: vector<4xf32>, %a: vector<8xbf16>, %b: vector<8xbf16>) -> vector<4xf32> {
  %0 = x86vector.avx512.dot %sum, %a, %b : vector<8xbf16> -> vector<4xf32>
  return %0 : vector<4xf32>
}

// Among the numbers 1 + 2^-8 and -(1 + 2^-8), ties, the one with the larger magnitude
// remains. 0x7F7FFFFF rounds to infinity.
// VALUES: ( 16257, -16511, 32640, 32640, 32704, 0, 16256, -32768 )
// 1 + 2 * 5 + 3 * 7.
// VALUES: ( 32, 32, 32, 32 )
func.func @main() {
  %even = arith.constant dense<[0x3F808000, 0x7F7FFFFF, 0x7FC00000, 0x3F807FFF]> : vector<4xf32>
  %odd = arith.constant dense<[0xBF808000, 0x7F800000, 0x00000001, 0x80000000]> : vector<4xf32>
  %0 = arith.truncf %even to_nearest_away : vector<4xf32> to vector<4xbf16>
  %1 = arith.truncf %odd to_nearest_away : vector<4xf32> to vector<4xbf16>
  %pairs = vector.interleave %0, %1 : vector<4xbf16> -> vector<8xbf16>
  %bits = vector.bitcast %pairs : vector<8xbf16> to vector<8xi16>
  %wide = arith.extsi %bits : vector<8xi16> to vector<8xi32>
  vector.print %wide : vector<8xi32>
  %sum = arith.constant dense<1.0> : vector<4xf32>
  %a = arith.constant dense<[2.0, 3.0, 2.0, 3.0, 2.0, 3.0, 2.0, 3.0]> : vector<8xbf16>
  %b = arith.constant dense<[5.0, 7.0, 5.0, 7.0, 5.0, 7.0, 5.0, 7.0]> : vector<8xbf16>
  %dot = x86vector.avx512.dot %sum, %a, %b : vector<8xbf16> -> vector<4xf32>
  vector.print %dot : vector<4xf32>
  return
}
