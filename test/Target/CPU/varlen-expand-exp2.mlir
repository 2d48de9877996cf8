// RUN: varlen-opt %s --varlen-expand-exp2 | FileCheck %s
// RUN: varlen-opt %s --varlen-expand-exp2=degree=4 | FileCheck %s --check-prefix=FOUR
// RUN: varlen-opt %s --varlen-expand-exp2=scale=true | FileCheck %s --check-prefix=SCALE

// The example of the pass documentation: a promised domain, degree 3.
// CHECK-LABEL: func @bounded
// CHECK-SAME: %[[X:.*]]: vector<8xf32>
// CHECK: %[[LOWEST:.*]] = arith.constant dense<-1.270000e+02> : vector<8xf32>
// CHECK: %[[BELOW:.*]] = arith.cmpf ogt, %[[LOWEST]], %[[X]]
// CHECK: %[[CLAMPED:.*]] = arith.select %[[BELOW]], %[[LOWEST]], %[[X]]
// CHECK-NOT: arith.select
// CHECK: %[[MAGIC:.*]] = arith.constant dense<0x4B400000> : vector<8xf32>
// CHECK: %[[T:.*]] = arith.addf %[[CLAMPED]], %[[MAGIC]]
// CHECK: %[[N:.*]] = arith.subf %[[T]], %[[MAGIC]]
// CHECK: %[[F:.*]] = arith.subf %[[CLAMPED]], %[[N]]
// CHECK: %[[C3:.*]] = arith.constant dense<0.055{{.*}}> : vector<8xf32>
// CHECK: %[[C2:.*]] = arith.constant dense<0.242{{.*}}> : vector<8xf32>
// CHECK: %[[P3:.*]] = math.fma %[[C3]], %[[F]], %[[C2]]
// CHECK: %[[C1:.*]] = arith.constant dense<0.693{{.*}}> : vector<8xf32>
// CHECK: %[[P2:.*]] = math.fma %[[P3]], %[[F]], %[[C1]]
// CHECK: %[[ONE:.*]] = arith.constant dense<1.000000e+00> : vector<8xf32>
// CHECK: %[[P:.*]] = math.fma %[[P2]], %[[F]], %[[ONE]]
// CHECK: %[[TB:.*]] = arith.bitcast %[[T]]
// CHECK: %[[PB:.*]] = arith.bitcast %[[P]]
// CHECK: %[[C23:.*]] = arith.constant dense<23> : vector<8xi32>
// CHECK: %[[E:.*]] = arith.shli %[[TB]], %[[C23]]
// CHECK: %[[BITS:.*]] = arith.addi %[[PB]], %[[E]]
// CHECK: %[[Y:.*]] = arith.bitcast %[[BITS]]
// CHECK: return %[[Y]]
func.func @bounded(%x: vector<8xf32>) -> vector<8xf32> {
  %y = math.exp2 %x {varlen.exp2_degree = 3 : i64} : vector<8xf32>
  return %y : vector<8xf32>
}

// Nothing promised: overflow and every NaN are taken care of.
// CHECK-LABEL: func @any
// CHECK-SAME: %[[X:.*]]: f32
// CHECK: arith.cmpf ogt
// CHECK: arith.cmpf olt
// CHECK-COUNT-5: math.fma
// CHECK: %[[NAN:.*]] = arith.cmpf uno, %[[X]], %[[X]]
// CHECK: %[[Y:.*]] = arith.select %[[NAN]], %[[X]]
// CHECK: return %[[Y]]
// FOUR-LABEL: func @any
// FOUR-COUNT-4: math.fma
// FOUR-NOT: math.fma
// FOUR: return
func.func @any(%x: f32) -> f32 {
  %y = math.exp2 %x : f32
  return %y : f32
}

// CHECK-LABEL: func @f64
// CHECK: arith.constant dense<-1.023000e+03> : vector<2x4xf64>
// CHECK-COUNT-11: math.fma {{.*}} : vector<2x4xf64>
// CHECK-NOT: math.fma
// CHECK: arith.constant dense<52> : vector<2x4xi64>
// CHECK: return
func.func @f64(%x: vector<2x4xf64>) -> vector<2x4xf64> {
  %y = math.exp2 %x {varlen.exp2_degree = 11 : i64} : vector<2x4xf64>
  return %y : vector<2x4xf64>
}

// CHECK-LABEL: func @narrow
// CHECK: arith.extf {{.*}} : vector<4xbf16> to vector<4xf32>
// CHECK-COUNT-5: math.fma {{.*}} : vector<4xf32>
// CHECK: arith.truncf {{.*}} : vector<4xf32> to vector<4xbf16>
func.func @narrow(%x: vector<4xbf16>) -> vector<4xbf16> {
  %y = math.exp2 %x : vector<4xbf16>
  return %y : vector<4xbf16>
}

// CHECK-LABEL: func @tensor
// CHECK: math.exp2 {{.*}} : tensor<4xf32>
func.func @tensor(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = math.exp2 %x : tensor<4xf32>
  return %y : tensor<4xf32>
}

// Whole registers of AVX-512 are scaled by an instruction, all others are not.
// CHECK-LABEL: func @register
// CHECK-NOT: x86vector
// SCALE-LABEL: func @bounded
// SCALE-NOT: x86vector
// SCALE-LABEL: func @register
// SCALE-SAME: %[[X:.*]]: vector<16xf32>
// SCALE: %[[N:.*]] = math.roundeven %[[X]]
// SCALE: %[[F:.*]] = arith.subf %[[X]], %[[N]]
// SCALE-COUNT-2: math.fma %{{.*}}, %[[F]]
// SCALE: %[[ONE:.*]] = arith.constant dense<1.000000e+00>
// SCALE: %[[P:.*]] = math.fma %{{.*}}, %[[F]], %[[ONE]]
// SCALE: %[[SMALLEST:.*]] = arith.constant dense<-1.260000e+02> : vector<16xf32>
// SCALE: %[[NORMAL:.*]] = arith.cmpf uge, %[[X]], %[[SMALLEST]]
// SCALE: %[[BITS:.*]] = vector.bitcast %[[NORMAL]] : vector<16xi1> to vector<1xi16>
// SCALE: %[[MASK:.*]] = vector.extract %[[BITS]][0]
// SCALE: %[[ROUNDING:.*]] = arith.constant 4 : i32
// SCALE: %[[ZERO:.*]] = arith.constant dense<0.000000e+00>
// SCALE: %[[Y:.*]] = x86vector.avx512.mask.scalef %[[P]], %[[N]], %[[ZERO]], %[[MASK]], %[[ROUNDING]]
// SCALE: return %[[Y]]
func.func @register(%x: vector<16xf32>) -> vector<16xf32> {
  %y = math.exp2 %x {varlen.exp2_degree = 3 : i64} : vector<16xf32>
  return %y : vector<16xf32>
}

// A vector of several registers is scaled one by one; what is left of one is not.
// CHECK-LABEL: func @registers
// CHECK-NOT: x86vector
// SCALE-LABEL: func @registers
// SCALE-SAME: %[[X:.*]]: vector<32xf32>
// SCALE: %[[LOW:.*]] = vector.extract_strided_slice %[[X]] {offsets = [0], sizes = [16], strides = [1]}
// SCALE: math.roundeven %[[LOW]]
// SCALE: %[[Y0:.*]] = x86vector.avx512.mask.scalef
// SCALE: %[[HALF:.*]] = vector.insert_strided_slice %[[Y0]], %{{.*}} {offsets = [0], strides = [1]}
// SCALE: %[[HIGH:.*]] = vector.extract_strided_slice %[[X]] {offsets = [16], sizes = [16], strides = [1]}
// SCALE: math.roundeven %[[HIGH]]
// SCALE: %[[Y1:.*]] = x86vector.avx512.mask.scalef
// SCALE: %[[Y:.*]] = vector.insert_strided_slice %[[Y1]], %[[HALF]] {offsets = [16], strides = [1]}
// SCALE: return %[[Y]]
func.func @registers(%x: vector<32xf32>) -> vector<32xf32> {
  %y = math.exp2 %x {varlen.exp2_degree = 3 : i64} : vector<32xf32>
  return %y : vector<32xf32>
}

// SCALE-LABEL: func @part
// SCALE-NOT: x86vector
// SCALE: return
func.func @part(%x: vector<24xf32>) -> vector<24xf32> {
  %y = math.exp2 %x {varlen.exp2_degree = 3 : i64} : vector<24xf32>
  return %y : vector<24xf32>
}
