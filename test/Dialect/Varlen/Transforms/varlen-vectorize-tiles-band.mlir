// RUN: varlen-opt %s --varlen-online-softmax --varlen-choose-copies --varlen-vectorize-tiles --canonicalize --cse --split-input-file | FileCheck %s

// Four vectors of queries. For keys that all of them see a product keeps 4 x 4
// accumulators. Before and behind, scores are computed in chunks of two vectors,
// each for the keys that its first query sees at the earliest and its last one
// at the latest. Where nothing is hidden limits may be anything: all keys are
// seen by all.

// CHECK-LABEL: @grad
// CHECK-SAME: %[[LO:[^:]*]]: memref<1x32xi32>, %[[HI:[^:]*]]: memref<1x32xi32>, %[[K0:[^:]*]]: i32, %[[WHOLE:[^:]*]]: i1,
// CHECK: %[[P:.*]] = memref.alloc() {{.*}} : memref<32x32xf32>
// CHECK: %[[KEYS:.*]] = memref.dim %{{.*}}, %c0 : memref<?x8xf32>
// CHECK: %[[LASTLO:.*]] = memref.load %[[LO]][%c0, %c31]
// CHECK: %[[FROM:.*]] = arith.subi %[[LASTLO]], %[[K0]]
// CHECK: %[[FROMROW:.*]] = arith.index_cast %[[FROM]]
// CHECK: arith.select %[[WHOLE]], %c0, %[[FROMROW]]
// CHECK: memref.load %[[HI]][%c0, %c0]
// CHECK: arith.select %[[WHOLE]], %[[KEYS]],
// CHECK: %[[SEEN:.*]] = arith.minsi %{{.*}}, %[[KEYS]]
// CHECK: %[[UNSEEN:.*]] = arith.minsi %{{.*}}, %[[KEYS]]
// CHECK: memref.load %[[LO]][%c0, %c0]
// CHECK: arith.select %[[WHOLE]], %c0,
// CHECK: %[[NOTBEFORE:.*]] = arith.maxsi %{{.*}}, %c0
// CHECK: %[[WITHIN:.*]] = arith.minsi %[[NOTBEFORE]], %[[KEYS]]
// CHECK: %[[EIGHTS:.*]] = arith.divui %[[WITHIN]], %c8
// CHECK: %[[BEGIN:.*]] = arith.muli %[[EIGHTS]], %c8
// CHECK: memref.load %[[HI]][%c0, %c15]
// CHECK: %[[END:.*]] = arith.muli %{{.*}}, %c8
// CHECK: %[[ABOVE:.*]] = arith.maxsi %[[SEEN]], %[[BEGIN]]
// CHECK: %[[BEFORE:.*]] = arith.minsi %[[ABOVE]], %[[END]]
// CHECK: %[[ABOVE2:.*]] = arith.maxsi %[[UNSEEN]], %[[BEGIN]]
// CHECK: %[[BEHIND:.*]] = arith.minsi %[[ABOVE2]], %[[END]]
// CHECK: scf.for %[[SIDE:.*]] = %c0 to %c2 step %c1
// CHECK: %[[ISBEHIND:.*]] = arith.cmpi ne, %[[SIDE]], %c0
// CHECK: %[[SIDEBEGIN:.*]] = arith.select %[[ISBEHIND]], %[[BEHIND]], %[[BEGIN]]
// CHECK: %[[SIDEEND:.*]] = arith.select %[[ISBEHIND]], %[[END]], %[[BEFORE]]
// CHECK: scf.for %{{.*}} = %[[SIDEBEGIN]] to %[[SIDEEND]] step %c8
// CHECK: :16 = scf.for
// CHECK: arith.cmpi sge
// CHECK: vector.store %{{.*}}, %[[P]]
// CHECK: memref.load %[[LO]][%c0, %c16]
// CHECK: memref.load %[[HI]][%c0, %c31]
// CHECK: vector.store %{{.*}}, %[[P]]
// CHECK: scf.for %{{.*}} = %[[SEEN]] to %[[UNSEEN]] step %c4
// CHECK: :16 = scf.for
// CHECK-NOT: arith.cmpi sge
// CHECK: vector.store %{{.*}}, %[[P]]
// ds lies where p did, computed for the same keys.
// CHECK: memref.load %[[LO]][%c0, %c0]
// CHECK: memref.load %[[HI]][%c0, %c15]
// CHECK: vector.load %[[P]]
// CHECK: arith.subf
// CHECK: memref.load %[[LO]][%c0, %c16]
// CHECK: memref.load %[[HI]][%c0, %c31]

// dk is summed over the queries that see some of eight keys: behind those whose
// keys end before the first, before those whose keys begin after the last; for
// keys that all see, over all. dq is summed over the keys that some of eight
// queries see.
// CHECK: scf.for %{{.*}} = %c0 to %c2 step %c1
// CHECK: scf.for %[[KEY:.*]] = %{{.*}} to %{{.*}} step %c8
// CHECK: %[[LASTKEY:.*]] = arith.addi %[[KEY]], %c7
// CHECK: %[[KEY32:.*]] = arith.index_cast %[[KEY]] : index to i32
// CHECK: arith.addi %[[KEY32]], %[[K0]]
// CHECK: %[[ENDS:.*]] = vector.load %[[HI]][%c0, %c0]
// CHECK: arith.cmpi sle, %[[ENDS]]
// CHECK: math.ctpop
// CHECK: vector.load %[[HI]][%c0, %c24]
// CHECK: math.ctpop
// CHECK: %[[FIRST:.*]] = arith.muli %{{.*}}, %c2
// CHECK: arith.index_cast %[[LASTKEY]] : index to i32
// CHECK: vector.load %[[LO]][%c0, %c0]
// CHECK: vector.load %[[LO]][%c0, %c24]
// CHECK: %[[LASTQUERY:.*]] = arith.muli %{{.*}}, %c2
// CHECK: scf.for %[[QUERY:.*]] = %[[FIRST]] to %[[LASTQUERY]] step %c2
// CHECK: memref.load %[[P]][%[[KEY]], %[[QUERY]]]
// CHECK: scf.for %{{.*}} = %{{.*}} to %{{.*}} step %c8
// CHECK: scf.for %{{.*}} = %c0 to %c32 step %c2
// CHECK: scf.for %[[ROW:.*]] = %c0 to %c32 step %c8
// CHECK: %[[LAST:.*]] = arith.addi %[[ROW]], %c7
// CHECK: memref.load %[[LO]][%c0, %[[ROW]]]
// CHECK: %[[DQBEGIN:.*]] = arith.muli %{{.*}}, %c2
// CHECK: memref.load %[[HI]][%c0, %[[LAST]]]
// CHECK: %[[DQEND:.*]] = arith.muli %{{.*}}, %c2
// CHECK: scf.for %{{.*}} = %[[DQBEGIN]] to %[[DQEND]] step %c2
// CHECK-NOT: scf.if
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

// -----

// The forward reads p by vectors of queries. The first vector alone sees the
// keys before those of the second one, the second one alone those behind the
// first one's; where no key is in both, the first one has some more.

// CHECK-LABEL: @attn
// CHECK-SAME: %[[LO:[^:]*]]: memref<1x16xi32>, %[[HI:[^:]*]]: memref<1x16xi32>, %[[K0:[^:]*]]: i32
// CHECK: %[[S:.*]] = memref.alloc() {{.*}} : memref<32x16xf32>
// CHECK: memref.load %[[LO]][%c0, %c0]
// CHECK: %[[BEGIN0:.*]] = arith.muli %{{.*}}, %c8
// CHECK: memref.load %[[HI]][%c0, %c7]
// CHECK: %[[END0:.*]] = arith.muli %{{.*}}, %c8
// CHECK: memref.load %[[LO]][%c0, %c8]
// CHECK: %[[BEGIN1:.*]] = arith.muli %{{.*}}, %c8
// CHECK: memref.load %[[HI]][%c0, %c15]
// CHECK: %[[END1:.*]] = arith.muli %{{.*}}, %c8
// CHECK: %[[ENDBOTH:.*]] = arith.maxsi %[[BEGIN1]], %[[END0]]
// CHECK: %[[FROM1:.*]] = arith.maxsi %[[ENDBOTH]], %[[END0]]
// CHECK: %[[TO1:.*]] = arith.maxsi %[[ENDBOTH]], %[[END1]]
// Scores.
// CHECK: %[[TOP0:.*]] = scf.for %{{.*}} = %[[BEGIN0]] to %[[BEGIN1]] step %c8 iter_args(%{{[^ ]*}} = %[[NONE:[^)]*]])
// CHECK: :8 = scf.for
// CHECK: vector.store %{{.*}}, %[[S]][%{{.*}}, %c0]
// CHECK-NOT: vector.store %{{.*}}, %[[S]][%{{.*}}, %c8]
// What all see begins where the last query's keys do, and ends with the first's.
// CHECK: memref.load %[[LO]][%c0, %c15]
// CHECK: memref.load %[[HI]][%c0, %c0]
// CHECK: %[[SEEN:.*]] = arith.minsi %{{.*}}, %[[ENDBOTH]]
// CHECK: %[[UNSEEN:.*]] = arith.minsi %{{.*}}, %[[ENDBOTH]]
// CHECK: %[[EDGES:.*]]:2 = scf.for %[[SIDE:.*]] = %c0 to %c2 step %c1 iter_args(%{{.*}} = %[[TOP0]], %{{.*}} = %[[NONE]])
// CHECK: %[[ISBEHIND:.*]] = arith.cmpi ne, %[[SIDE]], %c0
// CHECK: %[[FROM:.*]] = arith.select %[[ISBEHIND]], %[[UNSEEN]], %[[BEGIN1]]
// CHECK: %[[TO:.*]] = arith.select %[[ISBEHIND]], %[[ENDBOTH]], %[[SEEN]]
// CHECK: scf.for %{{.*}} = %[[FROM]] to %[[TO]] step %c4
// CHECK: arith.cmpi sge
// CHECK: %[[TOPS:.*]]:2 = scf.for %{{.*}} = %[[SEEN]] to %[[UNSEEN]] step %c4 iter_args(%{{.*}} = %[[EDGES]]#0, %{{.*}} = %[[EDGES]]#1)
// CHECK-NOT: arith.cmpi sge
// CHECK: %[[TOP1:.*]] = scf.for %{{.*}} = %[[FROM1]] to %[[TO1]] step %c8 iter_args(%{{.*}} = %[[TOPS]]#1)
// CHECK: vector.store %{{.*}}, %[[S]][%{{.*}}, %c8]
// Exponentials, in the order of rows: they are summed.
// CHECK: %[[SUM0:.*]] = scf.for %{{.*}} = %[[BEGIN0]] to %[[BEGIN1]] step %c2
// CHECK: math.exp2
// CHECK: %[[SUMS:.*]]:2 = scf.for %{{.*}} = %[[BEGIN1]] to %[[ENDBOTH]] step %c2 iter_args(%{{.*}} = %[[SUM0]],
// CHECK: math.exp2
// CHECK: scf.for %{{.*}} = %[[FROM1]] to %[[TO1]] step %c2 iter_args(%{{.*}} = %[[SUMS]]#1)
// CHECK: math.exp2
// p times v, of four rows and two vectors, then of one of them.
// CHECK: %[[ACC0:.*]]:4 = scf.for %{{.*}} = %[[BEGIN0]] to %[[BEGIN1]] step %c1
// CHECK: vector.load %[[S]][%{{.*}}, %c0]
// CHECK: %[[ACC:.*]]:8 = scf.for %{{.*}} = %[[BEGIN1]] to %[[ENDBOTH]] step %c2 iter_args(%{{.*}} = %[[ACC0]]#0, %{{.*}} = %{{.*}}, %{{.*}} = %[[ACC0]]#1,
// CHECK: %[[ACC1:.*]]:4 = scf.for %{{.*}} = %[[FROM1]] to %[[TO1]] step %c1 iter_args(%{{.*}} = %[[ACC]]#1, %{{.*}} = %[[ACC]]#3,
// CHECK: vector.load %[[S]][%{{.*}}, %c8]
// CHECK: %[[NEW0:.*]] = math.fma %{{.*}}, %[[ACC]]#0
// CHECK: %[[NEW1:.*]] = math.fma %{{.*}}, %[[ACC1]]#0
// CHECK: vector.store %[[NEW0]], %{{.*}}, %c0]
// CHECK: vector.store %[[NEW1]], %{{.*}}, %c8]
func.func @attn(%q: memref<8x16xf32>, %k: memref<?x8xf32>, %v: memref<?x8xf32>, %lo: memref<1x16xi32>, %hi: memref<1x16xi32>, %k0: i32, %acc: memref<8x16xf32>, %m: memref<1x16xf32>, %l: memref<1x16xf32>, %n: index) {
  scf.forall (%i) in (%n) {
    %qt = varlen.to_tile %q as columns : memref<8x16xf32> to tensor<16x8xf32>
    %kt = bufferization.to_tensor %k restrict : memref<?x8xf32> to tensor<?x8xf32>
    %vt = bufferization.to_tensor %v restrict : memref<?x8xf32> to tensor<?x8xf32>
    %lot = bufferization.to_tensor %lo restrict : memref<1x16xi32> to tensor<1x16xi32>
    %hit = bufferization.to_tensor %hi restrict : memref<1x16xi32> to tensor<1x16xi32>
    %at = bufferization.to_tensor %acc restrict : memref<8x16xf32> to tensor<8x16xf32>
    %mt = bufferization.to_tensor %m restrict : memref<1x16xf32> to tensor<1x16xf32>
    %lt = bufferization.to_tensor %l restrict : memref<1x16xf32> to tensor<1x16xf32>
    %r:3 = varlen.online_attn kq ins(%qt, %kt, %vt : tensor<16x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>) limits(%lot, %hit, %k0 : tensor<1x16xi32>, tensor<1x16xi32>, i32) outs(%at, %mt, %lt : tensor<8x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>) scale 0.125
    bufferization.materialize_in_destination %r#0 in restrict writable %acc : (tensor<8x16xf32>, memref<8x16xf32>) -> ()
    bufferization.materialize_in_destination %r#1 in restrict writable %m : (tensor<1x16xf32>, memref<1x16xf32>) -> ()
    bufferization.materialize_in_destination %r#2 in restrict writable %l : (tensor<1x16xf32>, memref<1x16xf32>) -> ()
  } {varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 1, kv_block = 32, kv = copy>}
  return
}

// -----

// Scores that somebody else reads are computed everywhere, and so is what is
// made of them.

// CHECK-LABEL: @scores
// CHECK: %[[KEYS:.*]] = memref.dim
// CHECK: scf.for %{{.*}} = %c0 to %[[KEYS]] step %c2
// CHECK: arith.select
// CHECK: scf.for %{{.*}} = %c0 to %[[KEYS]] step %c2
// CHECK: math.exp2
#tile = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (0, d1)>
func.func @scores(%s: memref<?x8xf32>, %lo: memref<1x8xi32>, %hi: memref<1x8xi32>, %k0: i32, %m: memref<1x8xf32>, %p: memref<?x8xf32>, %hidden: memref<?x8xf32>, %n: index) {
  scf.forall (%i) in (%n) {
    %none = arith.constant 0xFF800000 : f32
    %st = bufferization.to_tensor %s restrict : memref<?x8xf32> to tensor<?x8xf32>
    %lot = bufferization.to_tensor %lo restrict : memref<1x8xi32> to tensor<1x8xi32>
    %hit = bufferization.to_tensor %hi restrict : memref<1x8xi32> to tensor<1x8xi32>
    %mt = bufferization.to_tensor %m restrict : memref<1x8xf32> to tensor<1x8xf32>
    %pt = bufferization.to_tensor %p restrict : memref<?x8xf32> to tensor<?x8xf32>
    %h = linalg.generic {indexing_maps = [#tile, #row, #row, #tile], iterator_types = ["parallel", "parallel"]} ins(%st, %lot, %hit : tensor<?x8xf32>, tensor<1x8xi32>, tensor<1x8xi32>) outs(%pt : tensor<?x8xf32>) attrs = {varlen.band} {
    ^bb0(%x: f32, %begin: i32, %end: i32, %old: f32):
      %row = linalg.index 0 : index
      %j = arith.index_cast %row : index to i32
      %key = arith.addi %j, %k0 : i32
      %after = arith.cmpi sge, %key, %begin : i32
      %before = arith.cmpi slt, %key, %end : i32
      %y = arith.select %before, %x, %none : f32
      %z = arith.select %after, %y, %none : f32
      linalg.yield %z : f32
    } -> tensor<?x8xf32>
    bufferization.materialize_in_destination %h in restrict writable %hidden : (tensor<?x8xf32>, memref<?x8xf32>) -> ()
    %e = linalg.generic {indexing_maps = [#tile, #row, #tile], iterator_types = ["parallel", "parallel"]} ins(%h, %mt : tensor<?x8xf32>, tensor<1x8xf32>) outs(%pt : tensor<?x8xf32>) attrs = {varlen.band} {
    ^bb0(%x: f32, %top: f32, %old: f32):
      %y = arith.subf %x, %top : f32
      %z = math.exp2 %y : f32
      linalg.yield %z : f32
    } -> tensor<?x8xf32>
    bufferization.materialize_in_destination %e in restrict writable %p : (tensor<?x8xf32>, memref<?x8xf32>) -> ()
  } {varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 1, rows = 4, panels = 1, kv_block = 32, kv = copy>}
  return
}

// -----

// Sums keep the order of rows: what all queries see comes between the rows before
// and behind it, and only there nothing is compared. Where nothing is hidden limits
// may be anything: all rows are seen by all.

// CHECK-LABEL: @sum
// CHECK-SAME: %[[LO:[^:]*]]: memref<1x8xi32>, %[[HI:[^:]*]]: memref<1x8xi32>, %[[K0:[^:]*]]: i32, %[[WHOLE:[^:]*]]: i1
// CHECK: memref.load %[[LO]][%c0, %c7]
// CHECK: arith.select %[[WHOLE]], %c0,
// CHECK: memref.load %[[HI]][%c0, %c0]
// CHECK: arith.select %[[WHOLE]], %{{.*}},
// CHECK: memref.load %[[LO]][%c0, %c0]
// CHECK: memref.load %[[HI]][%c0, %c7]
// CHECK: %[[END:.*]] = arith.muli
// CHECK: %[[SEEN:.*]] = arith.minsi %{{.*}}, %[[END]] : index
// CHECK: %[[UNSEEN:.*]] = arith.minsi %{{.*}}, %[[END]] : index
// CHECK: %[[ABOVE:.*]] = scf.for %{{.*}} = %{{.*}} to %[[SEEN]] step %c2
// CHECK: %[[X:.*]] = vector.load %{{.*}} : memref<?x8xf32>, vector<8xf32>
// CHECK: %[[BEFORE:.*]] = arith.select %{{.*}}, %[[X]]
// CHECK: %[[Y:.*]] = arith.select %{{.*}}, %[[BEFORE]]
// CHECK: arith.addf %{{.*}}, %[[Y]]
// CHECK: %[[INSIDE:.*]] = scf.for %{{.*}} = %[[SEEN]] to %[[UNSEEN]] step %c2 iter_args(%{{.*}} = %[[ABOVE]])
// CHECK-NOT: arith.select
// CHECK: scf.for %{{.*}} = %[[UNSEEN]] to %[[END]] step %c2 iter_args(%{{.*}} = %[[INSIDE]])
// CHECK: arith.select
// CHECK-NOT: vector.store {{.*}} memref<?x8xf32>
#tile = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (0, d1)>
func.func @sum(%s: memref<?x8xf32>, %lo: memref<1x8xi32>, %hi: memref<1x8xi32>, %k0: i32, %whole: i1, %l: memref<1x8xf32>, %n: index) {
  scf.forall (%i) in (%n) {
    %zero = arith.constant 0.0 : f32
    %st = bufferization.to_tensor %s restrict : memref<?x8xf32> to tensor<?x8xf32>
    %lot = bufferization.to_tensor %lo restrict : memref<1x8xi32> to tensor<1x8xi32>
    %hit = bufferization.to_tensor %hi restrict : memref<1x8xi32> to tensor<1x8xi32>
    %lt = bufferization.to_tensor %l restrict : memref<1x8xf32> to tensor<1x8xf32>
    %c0 = arith.constant 0 : index
    %keys = tensor.dim %st, %c0 : tensor<?x8xf32>
    %e = tensor.empty(%keys) : tensor<?x8xf32>
    %h = linalg.generic {indexing_maps = [#tile, #row, #row, #tile], iterator_types = ["parallel", "parallel"]} ins(%st, %lot, %hit : tensor<?x8xf32>, tensor<1x8xi32>, tensor<1x8xi32>) outs(%e : tensor<?x8xf32>) attrs = {varlen.band} {
    ^bb0(%x: f32, %begin: i32, %end: i32, %old: f32):
      %row = linalg.index 0 : index
      %j = arith.index_cast %row : index to i32
      %key = arith.addi %j, %k0 : i32
      %after = arith.cmpi sge, %key, %begin : i32
      %before = arith.cmpi slt, %key, %end : i32
      %y = arith.select %before, %x, %zero : f32
      %z = arith.select %after, %y, %zero : f32
      %seen = arith.select %whole, %x, %z : f32
      linalg.yield %seen : f32
    } -> tensor<?x8xf32>
    %sum = linalg.generic {indexing_maps = [#tile, #row], iterator_types = ["reduction", "parallel"]} ins(%h : tensor<?x8xf32>) outs(%lt : tensor<1x8xf32>) {
    ^bb0(%x: f32, %acc: f32):
      %y = arith.addf %acc, %x : f32
      linalg.yield %y : f32
    } -> tensor<1x8xf32>
    bufferization.materialize_in_destination %sum in restrict writable %l : (tensor<1x8xf32>, memref<1x8xf32>) -> ()
  } {varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 1, rows = 4, panels = 1, kv_block = 32, kv = copy>}
  return
}
