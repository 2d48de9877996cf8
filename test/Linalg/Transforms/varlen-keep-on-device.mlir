// RUN: varlen-opt %s --pass-pipeline="builtin.module(func.func(varlen-keep-on-device))" | FileCheck %s

#i = affine_map<(i) -> (i)>

// CHECK-LABEL: func.func @constants
// CHECK-DAG: %[[TABLE:.*]] = arith.constant dense<[1, 2, 4]>
// CHECK-DAG: linalg.fill ins(%{{.*}} : f32) outs(%{{.*}} : tensor<5xf32>)
// CHECK: linalg.generic {{.*}} outs(%{{.*}} : tensor<3xi32>)
// CHECK:   %[[I:.*]] = linalg.index 0
// CHECK:   tensor.extract %[[TABLE]][%[[I]]]
func.func @constants() -> (tensor<5xf32>, tensor<3xi32>) {
  %same = arith.constant dense<1.5> : tensor<5xf32>
  %table = arith.constant dense<[1, 2, 4]> : tensor<3xi32>
  return %same, %table : tensor<5xf32>, tensor<3xi32>
}

// A shape is the host's.
// CHECK-LABEL: func.func @shape
// CHECK: %[[SHAPE:.*]] = arith.constant dense<[2, 4]>
// CHECK-NOT: linalg
// CHECK: tensor.reshape %arg0(%[[SHAPE]])
func.func @shape(%x: tensor<8xf32>) -> tensor<2x4xf32> {
  %shape = arith.constant dense<[2, 4]> : tensor<2xindex>
  %y = tensor.reshape %x(%shape) : (tensor<8xf32>, tensor<2xindex>) -> tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}

// CHECK-LABEL: func.func @body
// CHECK: linalg.generic
// CHECK: ^bb0
// CHECK-NEXT: %[[S:.*]] = tensor.extract %arg0[]
// CHECK-NEXT: %[[T:.*]] = math.exp %[[S]]
// CHECK-NEXT: arith.mulf %{{.*}}, %[[T]]
func.func @body(%s: tensor<f32>, %x: tensor<?xf32>) -> tensor<?xf32> {
  %0 = tensor.extract %s[] : tensor<f32>
  %1 = math.exp %0 : f32
  %2 = linalg.generic {indexing_maps = [#i], iterator_types = ["parallel"]} outs(%x : tensor<?xf32>) {
  ^bb0(%a: f32):
    %3 = arith.mulf %a, %1 : f32
    linalg.yield %3 : f32
  } -> tensor<?xf32>
  return %2 : tensor<?xf32>
}

// CHECK-LABEL: func.func @fill
// CHECK-NOT: linalg.fill
// CHECK: linalg.generic
// CHECK: tensor.extract %arg0[]
// CHECK-NOT: tensor.splat
// CHECK: linalg.generic
// CHECK: tensor.extract %arg0[]
func.func @fill(%s: tensor<f32>, %x: tensor<?xf32>) -> (tensor<?xf32>, tensor<4xf32>) {
  %0 = tensor.extract %s[] : tensor<f32>
  %1 = linalg.fill ins(%0 : f32) outs(%x : tensor<?xf32>) -> tensor<?xf32>
  %2 = tensor.splat %0 : tensor<4xf32>
  return %1, %2 : tensor<?xf32>, tensor<4xf32>
}

// CHECK-LABEL: func.func @insert
// CHECK: %[[AT:.*]] = tensor.extract_slice %arg1[%arg2] [1] [1] : tensor<?xf32> to tensor<f32>
// CHECK: %[[NEW:.*]] = linalg.generic {{.*}} outs(%[[AT]] : tensor<f32>)
// CHECK: tensor.insert_slice %[[NEW]] into %arg1[%arg2] [1] [1]
// CHECK-NOT: tensor.from_elements
func.func @insert(%s: tensor<f32>, %x: tensor<?xf32>, %i: index, %t: f32) -> (tensor<?xf32>, tensor<2xf32>) {
  %0 = tensor.extract %s[] : tensor<f32>
  %1 = tensor.insert %0 into %x[%i] : tensor<?xf32>
  %2 = tensor.from_elements %t, %0 : tensor<2xf32>
  return %1, %2 : tensor<?xf32>, tensor<2xf32>
}

// The host's own numbers, and a loop that a thread will run, are left.
// CHECK-LABEL: func.func @left
// CHECK: tensor.insert %arg1 into %arg0
// CHECK: scf.for
// CHECK:   tensor.insert
func.func @left(%x: tensor<?xf32>, %s: f32, %n: index) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %0 = tensor.insert %s into %x[%c0] : tensor<?xf32>
  %1 = scf.for %i = %c1 to %n step %c1 iter_args(%t = %0) -> tensor<?xf32> {
    %before = arith.subi %i, %c1 : index
    %a = tensor.extract %t[%before] : tensor<?xf32>
    %2 = tensor.insert %a into %t[%i] : tensor<?xf32>
    scf.yield %2 : tensor<?xf32>
  }
  return %1 : tensor<?xf32>
}
