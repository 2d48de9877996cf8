// The kernels of lists are in the tests of convert-varlen-to-kernel, too.
// RUN: varlen-opt %s --convert-tile-lists-to-gpu -canonicalize -cse | FileCheck %s

// One CTA sorts few sequences; with many, each step is a launch. Batches that nothing else reads
// are gone.
// CHECK-LABEL: func.func @list
// CHECK-NOT: varlen.
// CHECK: %[[LIST:.*]] = memref.alloc(%{{.*}}) : memref<?x2xi32>
// CHECK: %[[COUNT:.*]] = memref.alloc() : memref<2xi64>
// CHECK: gpu.launch {{.*}} function(@list_tiles_in_one_cta)
// CHECK: gpu.launch {{.*}} function(@list_tiles_segments)
// CHECK: gpu.launch {{.*}} function(@list_tiles_merge)
// CHECK: gpu.launch {{.*}} function(@list_tiles)
// CHECK: memref.store %{{.*}}, %[[LIST]]
// CHECK: return %[[LIST]], %[[COUNT]]
// CHECK-NOT: varlen.
func.func @list(%cu: memref<?xi32>, %n: index) -> (memref<?x2xi32>, memref<2xi64>) {
  %c1 = arith.constant 1 : index
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%c1, %c1) mask <full> : memref<?xi32>, memref<?xi32>
  %list, %count = varlen.list_tiles !varlen.tile<queries(128)> of %batch loops(1)
      : memref<?x2xi32>, memref<2xi64>
  return %list, %count : memref<?x2xi32>, memref<2xi64>
}

// The work of a tile is computed by a warp.
// CHECK-LABEL: func.func @weights
// CHECK: gpu.launch {{.*}} function(@weights_key_tiles_weights)
// CHECK: %[[WORK:.*]] = arith.index_cast %{{.*}} : index to i32
// CHECK: memref.atomic_rmw maxs %[[WORK]]
// CHECK-NOT: in_one_cta
func.func @weights(%cu: memref<?xi32>, %n: index, %checked: memref<2xi64>) -> memref<?x2xi32> {
  %c1 = arith.constant 1 : index
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%c1, %c1) mask <full> : memref<?xi32>, memref<?xi32>
  %list, %count = varlen.list_tiles !varlen.tile<keys(64)> of %batch loops(1)
      checked(%checked : memref<2xi64>) weights {
  ^bb0(%s: index, %t: index, %h: index):
    %work = arith.index_cast %t : index to i32
    varlen.yield %work : i32
  } : memref<?x2xi32>, memref<2xi64>
  return %list : memref<?x2xi32>
}

// CHECK-LABEL: func.func @tile
// CHECK-SAME: (%[[LIST:.*]]: memref<?x2xi32>, %[[ITEM:.*]]: i32)
// CHECK: %[[ROW:.*]] = arith.divui %[[ITEM]], %c4_i32
// CHECK: %[[AT:.*]] = arith.index_cast %[[ROW]] : i32 to index
// CHECK: memref.load %[[LIST]][%[[AT]], %c0]
// CHECK: memref.load %[[LIST]][%[[AT]], %c1]
// CHECK: arith.remui %[[ITEM]], %c4_i32
func.func @tile(%list: memref<?x2xi32>, %item: i32) -> (index, index, index) {
  %c4 = arith.constant 4 : index
  %s, %t, %h = varlen.read_tile %list[%item] heads(%c4) : memref<?x2xi32>
  return %s, %t, %h : index, index, index
}

// The rows past the last sequence have no query in use.
// CHECK-LABEL: func.func @sequence
// CHECK-SAME: (%[[CU:.*]]: memref<?xi32>, %[[N:.*]]: index, %[[S:.*]]: index)
// CHECK: %[[NEXT:.*]] = memref.load %[[CU]][%{{.*}}]
// CHECK: %[[BEGIN:.*]] = memref.load %[[CU]][%[[S]]]
// CHECK: %[[ISLAST:.*]] = arith.cmpi slt, %[[S]]
// CHECK: arith.select %[[ISLAST]], %{{.*}}, %[[N]]
// CHECK: %[[ROWS:.*]] = arith.subi
// CHECK: arith.select %[[ISLAST]], %[[ROWS]], %c0
func.func @sequence(%cu: memref<?xi32>, %n: index, %s: index) -> (index, index, index) {
  %c1 = arith.constant 1 : index
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%c1, %c1) mask <full> : memref<?xi32>, memref<?xi32>
  %rows:6 = varlen.read_sequence %batch[%s] : index, index, index, index, index, index
  return %rows#0, %rows#2, %rows#5 : index, index, index
}
