// RUN: varlen-opt %s --varlen-legalize-for-cpu=target=avx2 --split-input-file | FileCheck %s

// The example of the pass documentation: a running maximum.
// CHECK-LABEL: func @maximum(
// CHECK: scf.for {{.*}} iter_args(%[[T:.*]] = %{{.*}}) -> (vector<8xf32>) {
// CHECK-NEXT: %[[X:.*]] = vector.load
// CHECK-NEXT: %[[GREATER:.*]] = arith.cmpf ogt, %[[X]], %[[T]] : vector<8xf32>
// CHECK-NEXT: %[[MAX:.*]] = arith.select %[[GREATER]], %[[X]], %[[T]]
// CHECK-NEXT: scf.yield %[[MAX]]
func.func @maximum(%m: memref<?x8xf32>, %n: index) -> vector<8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %none = arith.constant dense<0xFF800000> : vector<8xf32>
  %top = scf.for %i = %c0 to %n step %c1 iter_args(%t = %none) -> vector<8xf32> {
    %x = vector.load %m[%i, %c0] : memref<?x8xf32>, vector<8xf32>
    %max = arith.maxnumf %x, %t : vector<8xf32>
    scf.yield %max : vector<8xf32>
  }
  return %top : vector<8xf32>
}

// -----

// What a loop ends with is no NaN either, whether another loop goes on with it
// or a branch chooses; the operand that may be one comes first.
// CHECK-LABEL: func @chain(
// CHECK-SAME: %[[X:[^:]*]]: f32
// CHECK: %[[FIRST:.*]] = scf.for
// CHECK: arith.cmpf olt
// CHECK: %[[SECOND:.*]] = scf.for {{.*}} = %[[FIRST]]
// CHECK: arith.cmpf olt
// CHECK: %[[EITHER:.*]] = scf.if
// CHECK: %[[LESS:.*]] = arith.cmpf olt, %[[X]], %[[EITHER]] : f32
// CHECK-NEXT: arith.select %[[LESS]], %[[X]], %[[EITHER]] : f32
func.func @chain(%x: f32, %m: memref<?xf32>, %n: index, %is: i1) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %most = arith.constant 0x7F800000 : f32
  %0 = scf.for %i = %c0 to %n step %c1 iter_args(%t = %most) -> f32 {
    %y = memref.load %m[%i] : memref<?xf32>
    %min = arith.minnumf %y, %t : f32
    scf.yield %min : f32
  }
  %1 = scf.for %i = %c0 to %n step %c1 iter_args(%t = %0) -> f32 {
    %y = memref.load %m[%i] : memref<?xf32>
    %min = arith.minnumf %t, %y : f32
    scf.yield %min : f32
  }
  %2 = scf.if %is -> f32 {
    scf.yield %1 : f32
  } else {
    scf.yield %most : f32
  }
  %3 = arith.minnumf %2, %x : f32
  return %3 : f32
}

// -----

// One that is read by another one that is rewritten.
// CHECK-LABEL: func @of_another(
// CHECK-SAME: %[[X:[^:]*]]: f32, %[[Y:[^:]*]]: f32
// CHECK: %[[A:.*]] = arith.select %{{.*}}, %[[X]], %{{.*}} : f32
// CHECK: arith.cmpf ogt, %[[Y]], %[[A]] : f32
// CHECK-NOT: arith.maxnumf
func.func @of_another(%x: f32, %y: f32) -> f32 {
  %none = arith.constant 0xFF800000 : f32
  %0 = arith.maxnumf %x, %none : f32
  %1 = arith.maxnumf %y, %0 : f32
  return %1 : f32
}

// -----

// Nothing is known of arguments, of memory, of a loop that begins with a NaN, and
// of one that goes on with what it reads.
// CHECK-LABEL: func @unknown(
// CHECK-NOT: arith.cmpf
// CHECK-COUNT-3: arith.maxnumf
// CHECK-NOT: arith.maxnumf
func.func @unknown(%x: f32, %m: memref<?xf32>, %n: index) -> (f32, f32, f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %nan = arith.constant 0x7FC00000 : f32
  %none = arith.constant 0xFF800000 : f32
  %0 = arith.maxnumf %x, %x : f32
  %1:2 = scf.for %i = %c0 to %n step %c1 iter_args(%t = %nan, %u = %none) -> (f32, f32) {
    %y = memref.load %m[%i] : memref<?xf32>
    %max = arith.maxnumf %y, %t : f32
    scf.yield %max, %y : f32, f32
  }
  %2 = arith.maxnumf %1#1, %x : f32
  return %0, %1#0, %2 : f32, f32, f32
}

// -----

// %t is a NaN where %x is, and then %u is one in the next step: what looks right as
// long as a loop is taken to carry numbers is forgotten once it carries others.
// CHECK-LABEL: func @wrong_assumption(
// CHECK-NOT: arith.cmpf
// CHECK-COUNT-2: arith.maxnumf
func.func @wrong_assumption(%x: f32, %n: index, %is: i1) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %none = arith.constant 0xFF800000 : f32
  %0:2 = scf.for %i = %c0 to %n step %c1 iter_args(%t = %none, %u = %none) -> (f32, f32) {
    %either = arith.select %is, %u, %x : f32
    scf.yield %either, %t : f32, f32
  }
  %1 = arith.maxnumf %0#1, %0#0 : f32
  %2 = arith.maxnumf %x, %1 : f32
  return %2 : f32
}

// -----

// A bound that is a constant leaves a NaN of the other operand in place.
// CHECK-LABEL: func @bounds(
// CHECK-SAME: %[[X:[^:]*]]: vector<4xf32>
// CHECK-DAG: %[[MOST:.*]] = arith.constant dense<3.0{{.*}}> : vector<4xf32>
// CHECK-DAG: %[[LEAST:.*]] = arith.constant dense<-3.0{{.*}}> : vector<4xf32>
// CHECK: %[[LESS:.*]] = arith.cmpf olt, %[[MOST]], %[[X]] : vector<4xf32>
// CHECK-NEXT: %[[MIN:.*]] = arith.select %[[LESS]], %[[MOST]], %[[X]]
// CHECK-NEXT: %[[GREATER:.*]] = arith.cmpf ogt, %[[LEAST]], %[[MIN]]
// CHECK-NEXT: arith.select %[[GREATER]], %[[LEAST]], %[[MIN]]
func.func @bounds(%x: vector<4xf32>) -> vector<4xf32> {
  %most = arith.constant dense<3.0> : vector<4xf32>
  %least = arith.constant dense<-3.0> : vector<4xf32>
  %0 = arith.minimumf %x, %most : vector<4xf32>
  %1 = arith.maximumf %least, %0 : vector<4xf32>
  return %1 : vector<4xf32>
}

// -----

// A zero as a bound: the smaller one, -0.0, is what a maximum may lose, and the
// larger one what a minimum may.
// CHECK-LABEL: func @zeros(
// CHECK: arith.cmpf olt
// CHECK: arith.cmpf ogt
// CHECK-NOT: arith.cmpf
// CHECK: arith.minimumf
// CHECK: arith.maximumf
func.func @zeros(%x: f32) -> (f32, f32, f32, f32) {
  %plus = arith.constant 0.0 : f32
  %minus = arith.constant -0.0 : f32
  %0 = arith.minimumf %x, %plus : f32
  %1 = arith.maximumf %x, %minus : f32
  %2 = arith.minimumf %x, %minus : f32
  %3 = arith.maximumf %x, %plus : f32
  return %0, %1, %2, %3 : f32, f32, f32, f32
}

// -----

// Halves of a vector whose lanes are no NaN.
// CHECK-LABEL: func @lanes(
// CHECK: %[[LOW:.*]] = vector.shuffle
// CHECK: %[[HIGH:.*]] = vector.shuffle
// CHECK: arith.cmpf ogt, %[[LOW]], %[[HIGH]] : vector<4xf32>
// CHECK: arith.cmpf ogt, %{{.*}}, %{{.*}} : f32
func.func @lanes(%x: vector<8xf32>, %y: f32) -> f32 {
  %none = arith.constant dense<0xFF800000> : vector<8xf32>
  %top = arith.maxnumf %x, %none : vector<8xf32>
  %low = vector.shuffle %top, %top [0, 1, 2, 3] : vector<8xf32>, vector<8xf32>
  %high = vector.shuffle %top, %top [4, 5, 6, 7] : vector<8xf32>, vector<8xf32>
  %max = arith.maxnumf %low, %high : vector<4xf32>
  %first = vector.extract %max[0] : f32 from vector<4xf32>
  %more = arith.maxnumf %y, %first : f32
  return %more : f32
}
