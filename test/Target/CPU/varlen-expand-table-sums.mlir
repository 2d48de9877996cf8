// RUN: varlen-opt %s --varlen-expand-table-sums --split-input-file | FileCheck %s

// A tile that is computed is stored where the loop reads it, values and indices
// apart; rows of the table lie in memory. Lanes without a query have a mask.

// CHECK-LABEL: @scatter
// CHECK-SAME: %[[X:[^:]*]]: memref<?x16xf32>, %[[TABLE:[^:]*]]: memref<?x32xf32, strided<[1, 1]>>, %[[ROWS:[^:]*]]: memref<1x16xi64>
// CHECK: scf.forall
// CHECK-DAG: %[[V:.*]] = memref.alloc() {alignment = 64 : i64} : memref<32x16xf32>
// CHECK-DAG: %[[I:.*]] = memref.alloc() {alignment = 64 : i64} : memref<32x16xi32>
// CHECK: %[[KEYS:.*]] = tensor.dim
// CHECK: %[[VALUES:.*]] = linalg.generic
// CHECK: %[[INDEX:.*]] = linalg.generic
// CHECK: bufferization.materialize_in_destination %[[VALUES]] in restrict writable %[[V]]
// CHECK: bufferization.materialize_in_destination %[[INDEX]] in restrict writable %[[I]]
// CHECK: %[[R0:.*]] = vector.load %[[ROWS]][%c0{{.*}}, %c0{{.*}}] : memref<1x16xi64>, vector<8xi64>
// CHECK: %[[R1:.*]] = vector.load %[[ROWS]][%c0{{.*}}, %c8{{.*}}]
// CHECK: %[[M0:.*]] = arith.cmpi ne, %[[R0]],
// CHECK: %[[M1:.*]] = arith.cmpi ne, %[[R1]],
// CHECK: scf.for %[[KEY:.*]] = %c0{{.*}} to %[[KEYS]] step
// CHECK: vector.load %[[I]][%[[KEY]], %c0{{.*}}] : memref<32x16xi32>, vector<8xi32>
// CHECK: %[[OLD:.*]] = vector.gather %[[FLAT:.*]][%{{.*}}] [%[[AT:.*]]], %[[M0]]
// CHECK: %[[MORE:.*]] = vector.load %[[V]][%[[KEY]], %c0{{.*}}]
// CHECK: %[[NEW:.*]] = arith.addf %[[OLD]], %[[MORE]]
// CHECK: vector.scatter %[[FLAT]][%{{.*}}] [%[[AT]]], %[[M0]], %[[NEW]]
// CHECK: vector.gather %{{.*}}, %[[M1]]
// CHECK-NOT: varlen.scatter_add
#map = affine_map<(d0, d1) -> (d0, d1)>
func.func @scatter(%x: memref<?x16xf32>, %table: memref<?x32xf32, strided<[1, 1]>>, %rows: memref<1x16xi64>, %n: index) {
  scf.forall (%i) in (%n) {
    %xt = bufferization.to_tensor %x restrict : memref<?x16xf32> to tensor<?x16xf32>
    %rt = bufferization.to_tensor %rows restrict : memref<1x16xi64> to tensor<1x16xi64>
    %c0 = arith.constant 0 : index
    %keys = tensor.dim %xt, %c0 : tensor<?x16xf32>
    %e = tensor.empty(%keys) : tensor<?x16xf32>
    %ei = tensor.empty(%keys) : tensor<?x16xi32>
    %values = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%xt : tensor<?x16xf32>) outs(%e : tensor<?x16xf32>) {
    ^bb0(%a: f32, %old: f32):
      %b = arith.negf %a : f32
      linalg.yield %b : f32
    } -> tensor<?x16xf32>
    %index = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%xt : tensor<?x16xf32>) outs(%ei : tensor<?x16xi32>) {
    ^bb0(%a: f32, %old: i32):
      %row = linalg.index 0 : index
      %b = arith.index_cast %row : index to i32
      linalg.yield %b : i32
    } -> tensor<?x16xi32>
    varlen.scatter_add %values at %index to %table[%rt] : tensor<?x16xf32>, tensor<?x16xi32>, memref<?x32xf32, strided<[1, 1]>>, tensor<1x16xi64>
  } {varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 1, kv_block = 32, kv = copy>}
  return
}

// -----

// The rows of some queries of a panel are part of the rows of the panel.

// CHECK-LABEL: @part
// CHECK-SAME: %[[ROWS:[^:]*]]: memref<1x16xi64>, %[[FIRST:[^:]*]]: index
// CHECK: vector.load %[[ROWS]][%c0{{.*}}, %[[FIRST]]] : memref<1x16xi64>, vector<8xi64>
// CHECK-NOT: varlen.add_keys
func.func @part(%x: memref<8x8xf32>, %table: memref<?x?xf32, strided<[1, 1], offset: ?>>, %rows: memref<1x16xi64>, %first: index, %key: i32, %n: index) {
  scf.forall (%i) in (%n) {
    %xt = bufferization.to_tensor %x restrict : memref<8x8xf32> to tensor<8x8xf32>
    %rt = bufferization.to_tensor %rows restrict : memref<1x16xi64> to tensor<1x16xi64>
    %part = tensor.extract_slice %rt[0, %first] [1, 8] [1, 1] : tensor<1x16xi64> to tensor<1x8xi64>
    varlen.add_keys %xt to %table[%part, %key] : tensor<8x8xf32>, memref<?x?xf32, strided<[1, 1], offset: ?>>, tensor<1x8xi64>
  } {varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 1, kv_block = 32, kv = copy>}
  return
}

// -----

// In a table of keys, each head among the lanes adds one sum for a key. Values that
// lie in memory, or are stored there already, are read where they are; two operations
// share scratch.

// CHECK-LABEL: @keys
// CHECK-SAME: %[[X:[^:]*]]: memref<8x8xf32>, %[[Y:[^:]*]]: memref<8x8xf32>
// CHECK: %[[SCRATCH:.*]] = memref.alloc() {alignment = 64 : i64} : memref<8x8xf32>
// CHECK-NOT: memref.alloc
// CHECK: vector.step
// CHECK: scf.for %[[LANE:.*]] = %c0{{.*}} to %c8{{.*}} step
// CHECK: %[[ROW:.*]] = vector.extract %{{.*}}[%[[LANE]]] : i64 from vector<8xi64>
// CHECK: %[[SAME:.*]] = arith.cmpi eq
// CHECK: vector.reduction <minsi>
// CHECK: scf.if
// CHECK: scf.for %[[KEY:.*]] =
// CHECK: %[[V:.*]] = vector.load %[[X]][%[[KEY]],
// CHECK: %[[OWN:.*]] = arith.select %[[SAME]], %[[V]]
// CHECK: vector.reduction <add>, %[[OWN]]
// CHECK: arith.addf
// CHECK: memref.store
// CHECK: bufferization.materialize_in_destination %[[A:.*]] in restrict writable %[[Y]]
// CHECK: vector.load %[[Y]]
// CHECK: bufferization.materialize_in_destination %{{.*}} in restrict writable %[[SCRATCH]]
// CHECK: vector.load %[[SCRATCH]]
// CHECK: bufferization.materialize_in_destination %{{.*}} in restrict writable %[[SCRATCH]]
// CHECK: vector.load %[[SCRATCH]]
// CHECK-NOT: varlen.add_keys
#map = affine_map<(d0, d1) -> (d0, d1)>
!table = memref<?x?xf32, strided<[1, 1], offset: ?>>
func.func @keys(%x: memref<8x8xf32>, %y: memref<8x8xf32>, %table: !table, %rows: memref<1x8xi64>, %first: i32, %n: index) {
  scf.forall (%i) in (%n) {
    %xt = bufferization.to_tensor %x restrict : memref<8x8xf32> to tensor<8x8xf32>
    %rt = bufferization.to_tensor %rows restrict : memref<1x8xi64> to tensor<1x8xi64>
    %e = tensor.empty() : tensor<8x8xf32>
    varlen.add_keys %xt to %table[%rt, %first] : tensor<8x8xf32>, !table, tensor<1x8xi64>
    %a = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%xt : tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) {
    ^bb0(%u: f32, %old: f32):
      %v = arith.negf %u : f32
      linalg.yield %v : f32
    } -> tensor<8x8xf32>
    bufferization.materialize_in_destination %a in restrict writable %y : (tensor<8x8xf32>, memref<8x8xf32>) -> ()
    varlen.add_keys %a to %table[%rt, %first] : tensor<8x8xf32>, !table, tensor<1x8xi64>
    %b = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%a : tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) {
    ^bb0(%u: f32, %old: f32):
      %v = arith.addf %u, %u : f32
      linalg.yield %v : f32
    } -> tensor<8x8xf32>
    varlen.add_keys %b to %table[%rt, %first] : tensor<8x8xf32>, !table, tensor<1x8xi64>
    %c = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%a : tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) {
    ^bb0(%u: f32, %old: f32):
      %v = arith.mulf %u, %u : f32
      linalg.yield %v : f32
    } -> tensor<8x8xf32>
    varlen.add_keys %c to %table[%rt, %first] : tensor<8x8xf32>, !table, tensor<1x8xi64>
  } {varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 1, rows = 4, panels = 1, kv_block = 32, kv = copy>}
  return
}

// -----

// Without a schedule of a CPU it is left to others.

// CHECK-LABEL: @unscheduled
// CHECK: varlen.add_keys
func.func @unscheduled(%x: tensor<8x8xf32>, %table: memref<?x?xf32, strided<[1, 1]>>, %rows: tensor<1x8xi64>, %first: i32) {
  varlen.add_keys %x to %table[%rows, %first] : tensor<8x8xf32>, memref<?x?xf32, strided<[1, 1]>>, tensor<1x8xi64>
  return
}
