// RUN: varlen-opt %s --varlen-online-softmax --varlen-vectorize-tiles --canonicalize --cse --split-input-file | FileCheck %s

// Four vectors of queries. Where all keys are visible a product keeps 4 x 4
// accumulators and its loops run over everything. Where they are not, scores
// are computed in chunks of two vectors, each for the keys that its first query
// sees at the earliest and its last one at the latest.

// CHECK-LABEL: @grad
// CHECK-SAME: %[[LO:[^:]*]]: memref<1x32xi32>, %[[HI:[^:]*]]: memref<1x32xi32>, %[[K0:[^:]*]]: i32, %[[WHOLE:[^:]*]]: i1,
// CHECK: %[[P:.*]] = memref.alloc() {{.*}} : memref<32x32xf32>
// CHECK: %[[KEYS:.*]] = memref.dim %{{.*}}, %c0 : memref<?x8xf32>
// CHECK: scf.if %[[WHOLE]] {
// CHECK: scf.for %{{.*}} = %c0 to %[[KEYS]] step %c4
// CHECK: :16 = scf.for
// CHECK: vector.store %{{.*}}, %[[P]]
// CHECK: scf.for %{{.*}} = %c0 to %[[KEYS]] step %c4
// CHECK: vector.store %{{.*}}, %[[P]]
// CHECK: } else {
// CHECK: %[[LO0:.*]] = memref.load %[[LO]][%c0, %c0]
// CHECK: %[[FROM:.*]] = arith.subi %[[LO0]], %[[K0]]
// CHECK: %[[FROMROW:.*]] = arith.index_cast %[[FROM]]
// CHECK: %[[NOTBEFORE:.*]] = arith.maxsi %[[FROMROW]], %c0
// CHECK: %[[WITHIN:.*]] = arith.minsi %[[NOTBEFORE]], %[[KEYS]]
// CHECK: %[[EIGHTS:.*]] = arith.divui %[[WITHIN]], %c8
// CHECK: %[[BEGIN:.*]] = arith.muli %[[EIGHTS]], %c8
// CHECK: memref.load %[[HI]][%c0, %c15]
// CHECK: %[[END:.*]] = arith.muli %{{.*}}, %c8
// CHECK: scf.for %{{.*}} = %[[BEGIN]] to %[[END]] step %c8
// CHECK: :16 = scf.for
// CHECK: vector.store %{{.*}}, %[[P]]
// CHECK: memref.load %[[LO]][%c0, %c16]
// CHECK: memref.load %[[HI]][%c0, %c31]
// ds lies where p did, computed for the same keys.
// CHECK: memref.load %[[LO]][%c0, %c0]
// CHECK: memref.load %[[HI]][%c0, %c15]
// CHECK: vector.load %[[P]]
// CHECK: arith.subf
// CHECK: memref.load %[[LO]][%c0, %c16]
// CHECK: memref.load %[[HI]][%c0, %c31]

// dk is summed over the queries that see some of eight keys: behind those whose
// keys end before the first, before those whose keys begin after the last. dq
// is summed over the keys that some of eight queries see.
// CHECK: %[[ROWS:.*]] = memref.dim %{{.*}}, %c0 : memref<?x8xf32>
// CHECK: scf.if %[[WHOLE]] {
// CHECK: scf.for %{{.*}} = %c0 to %[[ROWS]] step %c8
// CHECK: scf.for %{{.*}} = %c0 to %c32 step %c2
// CHECK: scf.for %{{.*}} = %c0 to %c32 step %c8
// CHECK: scf.for %{{.*}} = %c0 to %[[KEYS]] step %c2
// CHECK: } else {
// CHECK: scf.for %[[KEY:.*]] = %c0 to %[[ROWS]] step %c8
// CHECK: %[[LASTKEY:.*]] = arith.addi %[[KEY]], %c7
// CHECK: %[[KEY32:.*]] = arith.index_cast %[[KEY]] : index to i32
// CHECK: arith.addi %[[K0]], %[[KEY32]]
// CHECK: %[[ENDS:.*]] = vector.load %[[HI]][%c0, %c0]
// CHECK: arith.cmpi sle, %[[ENDS]]
// CHECK: math.ctpop
// CHECK: vector.load %[[HI]][%c0, %c24]
// CHECK: math.ctpop
// CHECK: %[[FIRST:.*]] = arith.muli %{{.*}}, %c2
// CHECK: arith.index_cast %[[LASTKEY]] : index to i32
// CHECK: vector.load %[[LO]][%c0, %c0]
// CHECK: vector.load %[[LO]][%c0, %c24]
// CHECK: %[[BEHIND:.*]] = arith.muli %{{.*}}, %c2
// CHECK: scf.for %[[QUERY:.*]] = %[[FIRST]] to %[[BEHIND]] step %c2
// CHECK: memref.load %[[P]][%[[KEY]], %[[QUERY]]]
// CHECK: scf.for %[[ROW:.*]] = %c0 to %c32 step %c8
// CHECK: %[[LAST:.*]] = arith.addi %[[ROW]], %c7
// CHECK: memref.load %[[LO]][%c0, %[[ROW]]]
// CHECK: %[[DQBEGIN:.*]] = arith.muli %{{.*}}, %c2
// CHECK: memref.load %[[HI]][%c0, %[[LAST]]]
// CHECK: %[[DQEND:.*]] = arith.muli %{{.*}}, %c2
// CHECK: scf.for %{{.*}} = %[[DQBEGIN]] to %[[DQEND]] step %c2
func.func @grad(%q: memref<32x8xf32>, %q_t: memref<8x32xf32>, %k: memref<?x8xf32>, %stat: memref<1x32xf32>, %lo: memref<1x32xi32>, %hi: memref<1x32xi32>, %k0: i32, %whole: i1, %dq: memref<32x8xf32>, %dk: memref<?x8xf32>, %n: index) {
  scf.forall (%i) in (%n) {
    %qt = varlen.to_tile %q as rows, %q_t as columns : memref<32x8xf32>, memref<8x32xf32> to tensor<32x8xf32>
    %kt = bufferization.to_tensor %k restrict : memref<?x8xf32> to tensor<?x8xf32>
    %st = bufferization.to_tensor %stat restrict : memref<1x32xf32> to tensor<1x32xf32>
    %lot = bufferization.to_tensor %lo restrict : memref<1x32xi32> to tensor<1x32xi32>
    %hit = bufferization.to_tensor %hi restrict : memref<1x32xi32> to tensor<1x32xi32>
    %dqt = bufferization.to_tensor %dq restrict : memref<32x8xf32> to tensor<32x8xf32>
    %dkt = bufferization.to_tensor %dk restrict : memref<?x8xf32> to tensor<?x8xf32>
    %r:2 = varlen.online_attn_grad kq ins(%qt, %kt, %kt, %qt, %st, %st : tensor<32x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<32x8xf32>, tensor<1x32xf32>, tensor<1x32xf32>) limits(%lot, %hit, %k0 : tensor<1x32xi32>, tensor<1x32xi32>, i32) unless(%whole) dq(%dqt : tensor<32x8xf32>) dk(%dkt : tensor<?x8xf32>) scale 0.125
    bufferization.materialize_in_destination %r#0 in restrict writable %dq : (tensor<32x8xf32>, memref<32x8xf32>) -> ()
    bufferization.materialize_in_destination %r#1 in restrict writable %dk : (tensor<?x8xf32>, memref<?x8xf32>) -> ()
  } {varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 4, rows = 4, panels = 1, kv_block = 32, kv = copy>}
  return
}

// -----

// Nobody says that the tile is whole: the edges are looked up always. p is
// stored, too: all of it is computed, for who reads it is unknown here.

// CHECK-LABEL: @stored
// CHECK-SAME: %[[LO:[^:]*]]: memref<1x8xi32>, %[[HI:[^:]*]]: memref<1x8xi32>
// CHECK: %[[KEYS:.*]] = memref.dim
// CHECK: scf.for %{{.*}} = %c0 to %[[KEYS]] step
// CHECK: arith.select
// CHECK: scf.for %[[KEY:.*]] = %c0 to %{{.*}} step
// CHECK: vector.load %[[HI]]
// CHECK: math.ctpop
// CHECK: scf.for %{{.*}} = %{{.*}} to %{{.*}} step %c2
#map = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (0, d1)>
func.func @stored(%s: memref<?x8xf32>, %lo: memref<1x8xi32>, %hi: memref<1x8xi32>, %k0: i32, %dout: memref<8x8xf32>, %p: memref<?x8xf32>, %dv: memref<?x8xf32>, %n: index) {
  scf.forall (%i) in (%n) {
    %zero = arith.constant 0.0 : f32
    %st = bufferization.to_tensor %s restrict : memref<?x8xf32> to tensor<?x8xf32>
    %lot = bufferization.to_tensor %lo restrict : memref<1x8xi32> to tensor<1x8xi32>
    %hit = bufferization.to_tensor %hi restrict : memref<1x8xi32> to tensor<1x8xi32>
    %doutt = bufferization.to_tensor %dout restrict : memref<8x8xf32> to tensor<8x8xf32>
    %pt = bufferization.to_tensor %p restrict : memref<?x8xf32> to tensor<?x8xf32>
    %dvt = bufferization.to_tensor %dv restrict : memref<?x8xf32> to tensor<?x8xf32>
    %h = linalg.generic {indexing_maps = [#map, #row, #row, #map], iterator_types = ["parallel", "parallel"]} ins(%st, %lot, %hit : tensor<?x8xf32>, tensor<1x8xi32>, tensor<1x8xi32>) outs(%pt : tensor<?x8xf32>) attrs = {varlen.band} {
    ^bb0(%x: f32, %begin: i32, %end: i32, %old: f32):
      %row = linalg.index 0 : index
      %j = arith.index_cast %row : index to i32
      %key = arith.addi %j, %k0 : i32
      %after = arith.cmpi sge, %key, %begin : i32
      %before = arith.cmpi slt, %key, %end : i32
      %y = arith.select %before, %x, %zero : f32
      %z = arith.select %after, %y, %zero : f32
      linalg.yield %z : f32
    } -> tensor<?x8xf32>
    %r = linalg.contract indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>] ins(%h, %doutt : tensor<?x8xf32>, tensor<8x8xf32>) outs(%dvt : tensor<?x8xf32>) -> tensor<?x8xf32>
    bufferization.materialize_in_destination %h in restrict writable %p : (tensor<?x8xf32>, memref<?x8xf32>) -> ()
    bufferization.materialize_in_destination %r in restrict writable %dv : (tensor<?x8xf32>, memref<?x8xf32>) -> ()
  } {varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 1, rows = 4, panels = 1, kv_block = 32, kv = copy>}
  return
}
