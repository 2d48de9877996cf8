// RUN: varlen-opt %s \
// RUN:   --varlen-differentiate=function=loop \
// RUN:   --varlen-differentiate=function=branch \
// RUN:   --varlen-differentiate=function=concatenation \
// RUN:   | FileCheck %s

// Rows are filled in and added up. The reverse starts at the last row, computes
// its sine again, and needs neither of the two tensors that the loop carries.
// CHECK-LABEL: func.func @loop_vjp(
// CHECK-SAME: %[[X:.*]]: tensor<?x4xf32>, %[[Y:.*]]: tensor<?x4xf32>, %[[S:.*]]: tensor<4xf32>, %[[N:.*]]: index, %[[D0:.*]]: tensor<?x4xf32>, %[[D1:.*]]: tensor<4xf32>) -> (tensor<?x4xf32>, tensor<?x4xf32>, tensor<4xf32>) {
// CHECK: %[[A:.*]] = linalg.fill ins(%{{.*}} : f32) outs(%{{.*}} : tensor<?x4xf32>) -> tensor<?x4xf32>
// CHECK-NEXT: %[[B:.*]] = arith.ceildivsi %[[N]], %{{.*}} : index
// CHECK-NEXT: %[[C:.*]]:2 = scf.for %[[D:.*]] = %{{.*}} to %[[B]] step %{{.*}} iter_args(%[[E:.*]] = %[[D0]], %[[F:.*]] = %[[A]]) -> (tensor<?x4xf32>, tensor<?x4xf32>) {
// CHECK-NEXT: %[[G:.*]] = arith.subi %[[B]], %{{.*}} : index
// CHECK-NEXT: %[[H:.*]] = arith.subi %[[G]], %[[D]] : index
// CHECK-NEXT: %[[I:.*]] = arith.muli %[[H]], %{{.*}} : index
// CHECK-NEXT: %[[J:.*]] = tensor.extract_slice %[[X]][%[[I]], 0] [1, 4] [1, 1] : tensor<?x4xf32> to tensor<4xf32>
// CHECK-NEXT: %[[K:.*]] = tensor.extract_slice %[[E]][%[[I]], 0] [1, 4] [1, 1] : tensor<?x4xf32> to tensor<4xf32>
// CHECK: %[[L:.*]] = linalg.fill ins(%{{.*}} : f32) outs(%{{.*}} : tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: %[[M:.*]] = tensor.insert_slice %[[L]] into %[[E]][%[[I]], 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<?x4xf32>
// CHECK-NEXT: %[[O:.*]] = math.cos %[[J]] : tensor<4xf32>
// CHECK-NEXT: %[[P:.*]] = arith.mulf %[[K]], %[[O]] : tensor<4xf32>
// CHECK-NEXT: %[[Q:.*]] = arith.addf %[[D1]], %[[P]] : tensor<4xf32>
// CHECK-NEXT: %[[R:.*]] = tensor.extract_slice %[[F]][%[[I]], 0] [1, 4] [1, 1] : tensor<?x4xf32> to tensor<4xf32>
// CHECK-NEXT: %[[T:.*]] = arith.addf %[[R]], %[[Q]] : tensor<4xf32>
// CHECK-NEXT: %[[U:.*]] = tensor.insert_slice %[[T]] into %[[F]][%[[I]], 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<?x4xf32>
// CHECK-NEXT: scf.yield %[[M]], %[[U]] : tensor<?x4xf32>, tensor<?x4xf32>
// CHECK-NEXT: }
// CHECK-NEXT: return %[[C]]#1, %[[C]]#0, %[[D1]] : tensor<?x4xf32>, tensor<?x4xf32>, tensor<4xf32>
func.func @loop(%x: tensor<?x4xf32>, %y: tensor<?x4xf32>, %s: tensor<4xf32>, %n: index) -> (tensor<?x4xf32>, tensor<4xf32>) {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %r:2 = scf.for %i = %c0 to %n step %c2 iter_args(%o = %y, %t = %s) -> (tensor<?x4xf32>, tensor<4xf32>) {
    %row = tensor.extract_slice %x[%i, 0] [1, 4] [1, 1] : tensor<?x4xf32> to tensor<4xf32>
    %sin = math.sin %row : tensor<4xf32>
    %p = tensor.insert_slice %sin into %o[%i, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<?x4xf32>
    %q = arith.addf %t, %row : tensor<4xf32>
    scf.yield %p, %q : tensor<?x4xf32>, tensor<4xf32>
  }
  return %r#0, %r#1 : tensor<?x4xf32>, tensor<4xf32>
}

// The same branch again. Each adds to the cotangents of what it captures, and passes
// on the rest: one has no product with %s, the other none with %w.
// CHECK-LABEL: func.func @branch_vjp(
// CHECK-SAME: %[[X:.*]]: f32, %[[W:.*]]: tensor<4xf32>, %[[S:.*]]: f32, %[[C:.*]]: i1, %[[DY:.*]]: f32)
// CHECK: %[[ZEROS:.*]] = linalg.fill
// CHECK: %[[R:.*]]:3 = scf.if %[[C]] -> (f32, f32, tensor<4xf32>) {
// CHECK-NEXT: %[[A:.*]] = arith.mulf %[[DY]], %[[S]]
// CHECK-NEXT: %[[B:.*]] = arith.mulf %[[DY]], %[[X]]
// CHECK-NEXT: scf.yield %[[A]], %[[B]], %[[ZEROS]]
// CHECK-NEXT: } else {
// CHECK: %[[OLD:.*]] = tensor.extract %[[ZEROS]][%[[AT:.*]]]
// CHECK: %[[SUM:.*]] = arith.addf %[[OLD]], %{{.*}}
// CHECK: %[[D:.*]] = tensor.insert %[[SUM]] into %[[ZEROS]][%[[AT]]]
// CHECK-NEXT: scf.yield %{{.*}}, %{{.*}}, %[[D]]
// CHECK: return %[[R]]#0, %[[R]]#2, %[[R]]#1
func.func @branch(%x: f32, %w: tensor<4xf32>, %s: f32, %c: i1) -> f32 {
  %c2 = arith.constant 2 : index
  %y = scf.if %c -> (f32) {
    %p = arith.mulf %x, %s : f32
    scf.yield %p : f32
  } else {
    %e = tensor.extract %w[%c2] : tensor<4xf32>
    %p = arith.mulf %x, %e : f32
    scf.yield %p : f32
  }
  return %y : f32
}

// Reads in a branch of a body: the reverse adds to the elements, point by point.
// CHECK-LABEL: func.func @concatenation_vjp(
// CHECK-SAME: %[[X:.*]]: tensor<5xf32>, %[[Y:.*]]: tensor<3xf32>, %[[DZ:.*]]: tensor<8xf32>)
// CHECK: %[[DX:.*]] = scf.for %[[I:.*]] = %{{.*}} to %{{.*}} step %{{.*}} iter_args(%[[SUM:.*]] = %{{.*}}) -> (tensor<5xf32>) {
// CHECK-NEXT: %[[D:.*]] = tensor.extract %[[DZ]][%[[I]]]
// CHECK-NEXT: %[[FIRST:.*]] = arith.cmpi ult, %[[I]]
// CHECK-NEXT: %[[NEXT:.*]] = scf.if %[[FIRST]] -> (tensor<5xf32>) {
// CHECK-NEXT: %[[OLD:.*]] = tensor.extract %[[SUM]][%[[I]]]
// CHECK-NEXT: %[[NEW:.*]] = arith.addf %[[OLD]], %[[D]]
// CHECK-NEXT: %[[ALL:.*]] = tensor.insert %[[NEW]] into %[[SUM]][%[[I]]]
// CHECK-NEXT: scf.yield %[[ALL]]
// CHECK-NEXT: } else {
// CHECK-NEXT: scf.yield %[[SUM]]
// CHECK: scf.yield %[[NEXT]]
// CHECK: %[[DY:.*]] = scf.for
// CHECK: return %[[DX]], %[[DY]]
func.func @concatenation(%x: tensor<5xf32>, %y: tensor<3xf32>) -> tensor<8xf32> {
  %e = tensor.empty() : tensor<8xf32>
  %z = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]} outs(%e : tensor<8xf32>) {
  ^bb0(%o: f32):
    %c5 = arith.constant 5 : index
    %i = linalg.index 0 : index
    %first = arith.cmpi ult, %i, %c5 : index
    %v = scf.if %first -> (f32) {
      %a = tensor.extract %x[%i] : tensor<5xf32>
      scf.yield %a : f32
    } else {
      %j = arith.subi %i, %c5 : index
      %b = tensor.extract %y[%j] : tensor<3xf32>
      scf.yield %b : f32
    }
    linalg.yield %v : f32
  } -> tensor<8xf32>
  return %z : tensor<8xf32>
}
