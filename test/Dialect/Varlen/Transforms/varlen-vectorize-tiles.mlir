// RUN: varlen-opt %s --varlen-online-softmax --varlen-choose-copies --varlen-vectorize-tiles --canonicalize --cse --split-input-file | FileCheck %s

// One step, no limits: three loops. The running maximum rides on the scores,
// the sum on the exponentials; the second product is summed apart from the
// accumulator, which is rescaled as it is added; m and l stay in registers.

// CHECK-LABEL: @step
// CHECK-SAME: %[[Q:[^:]*]]: memref<6x16xf32>, %[[K:[^:]*]]: memref<?x6xf32>, %[[V:[^:]*]]: memref<?x8xf32>, %[[ACC:[^:]*]]: memref<8x16xf32>, %[[M:[^:]*]]: memref<1x16xf32>, %[[L:[^:]*]]: memref<1x16xf32>
// CHECK-DAG: %[[ZERO:.*]] = arith.constant dense<0.0{{.*}}> : vector<8xf32>
// CHECK: scf.forall
// CHECK-NOT: varlen.schedule
// CHECK: %[[S:.*]] = memref.alloc() {alignment = 64 : i64} : memref<32x16xf32>
// CHECK-NOT: memref.alloc
// CHECK: %[[ROWS:.*]] = memref.dim %[[K]]
// CHECK: %[[TOP:.*]]:2 = scf.for %[[R:.*]] = %c0 to %[[ROWS]] step %c4 iter_args(%[[T0:.*]] = %{{.*}}, %[[T1:.*]] = %{{.*}}) -> (vector<8xf32>, vector<8xf32>)
// CHECK: %[[SUM:.*]]:8 = scf.for %[[D:.*]] = %c0 to %c6 step %c2 iter_args(%[[A0:[^ ]*]] =
// CHECK: %[[Q0:.*]] = vector.load %[[Q]][%[[D]], %c0]
// CHECK: %[[Q1:.*]] = vector.load %[[Q]][%[[D]], %c8]
// CHECK: %[[X:.*]] = memref.load %[[K]][%[[R]], %[[D]]]
// CHECK: %[[F:.*]] = vector.broadcast %[[X]] : f32 to vector<8xf32>
// CHECK: math.fma %[[F]], %[[Q0]], %[[A0]]
// CHECK: math.fma %[[F]], %[[Q1]]
// CHECK: scf.yield
// CHECK: arith.maxnumf %[[SUM]]#0, %[[T0]]
// CHECK: vector.store %[[SUM]]#0, %[[S]][%[[R]], %c0]
// CHECK: vector.store %[[SUM]]#7
// CHECK: scf.yield
// CHECK: math.ceil
// CHECK: %[[LSUM:.*]]:2 = scf.for %[[R2:.*]] = %c0 to %[[ROWS]] step %c2 iter_args(%{{.*}} = %[[ZERO]], %{{.*}} = %[[ZERO]])
// CHECK: %[[SV:.*]] = vector.load %[[S]][%[[R2]], %c0]
// CHECK: %[[E:.*]] = math.fma %[[SV]]
// CHECK: %[[P:.*]] = math.exp2 %[[E]]
// CHECK: arith.addf %{{.*}}, %[[P]]
// p takes the place of the scores.
// CHECK: vector.store %[[P]], %[[S]][%[[R2]], %c0]
// CHECK: %[[L0:.*]] = vector.load %[[L]][%c0, %c0]
// CHECK: %[[LNEW:.*]] = math.fma %[[L0]], %[[ALPHA:.*]], %[[LSUM]]#0
// CHECK: scf.for %[[D2:.*]] = %c0 to %c8 step %c4
// CHECK: %[[O:.*]]:8 = scf.for %[[KEY:.*]] = %c0 to %[[ROWS]] step %c2 iter_args(%{{.*}} = %[[ZERO]]
// CHECK: vector.load %[[S]][%[[KEY]], %c0]
// CHECK: memref.load %[[V]][%[[KEY]], %[[D2]]]
// CHECK: %[[OLD:.*]] = vector.load %[[ACC]][%[[D2]], %c0]
// CHECK: %[[NEW:.*]] = math.fma %[[OLD]], %[[ALPHA]], %[[O]]#0
// CHECK: vector.store %[[NEW]], %[[ACC]][%[[D2]], %c0]
// CHECK: vector.store %{{.*}}, %[[M]][%c0, %c0]
// CHECK: vector.store %[[LNEW]], %[[L]][%c0, %c0]
// CHECK-NOT: linalg
// CHECK-NOT: tensor
func.func @step(%q: memref<6x16xf32>, %k: memref<?x6xf32>, %v: memref<?x8xf32>, %acc: memref<8x16xf32>, %m: memref<1x16xf32>, %l: memref<1x16xf32>, %n: index) {
  scf.forall (%i) in (%n) {
    %qt = varlen.to_tile %q as columns : memref<6x16xf32> to tensor<16x6xf32>
    %kt = bufferization.to_tensor %k restrict : memref<?x6xf32> to tensor<?x6xf32>
    %vt = bufferization.to_tensor %v restrict : memref<?x8xf32> to tensor<?x8xf32>
    %at = bufferization.to_tensor %acc restrict : memref<8x16xf32> to tensor<8x16xf32>
    %mt = bufferization.to_tensor %m restrict : memref<1x16xf32> to tensor<1x16xf32>
    %lt = bufferization.to_tensor %l restrict : memref<1x16xf32> to tensor<1x16xf32>
    %r:3 = varlen.online_attn kq ins(%qt, %kt, %vt : tensor<16x6xf32>, tensor<?x6xf32>, tensor<?x8xf32>) outs(%at, %mt, %lt : tensor<8x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>) scale 0.125
    bufferization.materialize_in_destination %r#0 in restrict writable %acc : (tensor<8x16xf32>, memref<8x16xf32>) -> ()
    bufferization.materialize_in_destination %r#1 in restrict writable %m : (tensor<1x16xf32>, memref<1x16xf32>) -> ()
    bufferization.materialize_in_destination %r#2 in restrict writable %l : (tensor<1x16xf32>, memref<1x16xf32>) -> ()
  } {varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 1, kv_block = 32, kv = copy>}
  return
}

// -----

// Limits are applied to scores in registers; what depends on the row alone
// stays scalar. Rows of the accumulator that fill no micro-kernel come last.

// CHECK-LABEL: @limits
// CHECK: scf.for %[[R:.*]] = %{{.*}} to %{{.*}} step %c8 iter_args
// CHECK: %[[SUM:.*]]:8 = scf.for {{.*}} to %c6 step %c2
// CHECK: %[[ROW:.*]] = arith.index_cast %[[R]] : index to i32
// CHECK: %[[J:.*]] = arith.addi %[[ROW]], %{{.*}} : i32
// CHECK: %[[JV:.*]] = vector.broadcast %[[J]] : i32 to vector<8xi32>
// CHECK: %[[AFTER:.*]] = arith.cmpi sge, %[[JV]], %{{.*}} : vector<8xi32>
// CHECK: %[[BEFORE:.*]] = arith.cmpi slt, %[[JV]], %{{.*}} : vector<8xi32>
// CHECK: %[[B:.*]] = arith.select %[[BEFORE]], %[[SUM]]#0
// CHECK: %[[A:.*]] = arith.select %[[AFTER]], %[[B]]
// CHECK: vector.store %[[A]]
// CHECK: scf.for {{.*}} = %c0 to %c16 step %c8
// CHECK: scf.for {{.*}} step %c2 iter_args({{.*}}) -> (vector<8xf32>, vector<8xf32>) {
func.func @limits(%q: memref<6x8xf32>, %k: memref<?x6xf32>, %v: memref<?x18xf32>, %lo: memref<1x8xi32>, %hi: memref<1x8xi32>, %k0: i32, %acc: memref<18x8xf32>, %m: memref<1x8xf32>, %l: memref<1x8xf32>, %n: index) {
  scf.forall (%i) in (%n) {
    %qt = varlen.to_tile %q as columns : memref<6x8xf32> to tensor<8x6xf32>
    %kt = bufferization.to_tensor %k restrict : memref<?x6xf32> to tensor<?x6xf32>
    %vt = bufferization.to_tensor %v restrict : memref<?x18xf32> to tensor<?x18xf32>
    %lot = bufferization.to_tensor %lo restrict : memref<1x8xi32> to tensor<1x8xi32>
    %hit = bufferization.to_tensor %hi restrict : memref<1x8xi32> to tensor<1x8xi32>
    %at = bufferization.to_tensor %acc restrict : memref<18x8xf32> to tensor<18x8xf32>
    %mt = bufferization.to_tensor %m restrict : memref<1x8xf32> to tensor<1x8xf32>
    %lt = bufferization.to_tensor %l restrict : memref<1x8xf32> to tensor<1x8xf32>
    %r:3 = varlen.online_attn kq ins(%qt, %kt, %vt : tensor<8x6xf32>, tensor<?x6xf32>, tensor<?x18xf32>) limits(%lot, %hit, %k0 : tensor<1x8xi32>, tensor<1x8xi32>, i32) outs(%at, %mt, %lt : tensor<18x8xf32>, tensor<1x8xf32>, tensor<1x8xf32>) scale 0.125
    bufferization.materialize_in_destination %r#0 in restrict writable %acc : (tensor<18x8xf32>, memref<18x8xf32>) -> ()
    bufferization.materialize_in_destination %r#1 in restrict writable %m : (tensor<1x8xf32>, memref<1x8xf32>) -> ()
    bufferization.materialize_in_destination %r#2 in restrict writable %l : (tensor<1x8xf32>, memref<1x8xf32>) -> ()
  } {varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 1, kv_block = 32, kv = copy>}
  return
}

// -----

// What all queries see takes a loop of its own for the scores, before and behind
// which others hide; the rest of the step is there once. The limits say where
// that is, unless nothing is hidden.

// CHECK-LABEL: @unless
// CHECK-SAME: %[[WHOLE:[^:]*]]: i1
// CHECK: arith.select %[[WHOLE]], %c0,
// CHECK: %[[EDGES:.*]] = scf.for {{.*}} = %c0 to %c2 step %c1
// CHECK: scf.for {{.*}} step %c8 iter_args
// CHECK: arith.cmpi sge
// CHECK: scf.yield
// CHECK: scf.for {{.*}} step %c8 iter_args(%{{.*}} = %[[EDGES]])
// CHECK-NOT: arith.cmpi
// CHECK-COUNT-3: math.exp2
// CHECK-NOT: math.exp2
func.func @unless(%q: memref<6x8xf32>, %k: memref<?x6xf32>, %v: memref<?x18xf32>, %lo: memref<1x8xi32>, %hi: memref<1x8xi32>, %k0: i32, %whole: i1, %acc: memref<18x8xf32>, %m: memref<1x8xf32>, %l: memref<1x8xf32>, %n: index) {
  scf.forall (%i) in (%n) {
    %qt = varlen.to_tile %q as columns : memref<6x8xf32> to tensor<8x6xf32>
    %kt = bufferization.to_tensor %k restrict : memref<?x6xf32> to tensor<?x6xf32>
    %vt = bufferization.to_tensor %v restrict : memref<?x18xf32> to tensor<?x18xf32>
    %lot = bufferization.to_tensor %lo restrict : memref<1x8xi32> to tensor<1x8xi32>
    %hit = bufferization.to_tensor %hi restrict : memref<1x8xi32> to tensor<1x8xi32>
    %at = bufferization.to_tensor %acc restrict : memref<18x8xf32> to tensor<18x8xf32>
    %mt = bufferization.to_tensor %m restrict : memref<1x8xf32> to tensor<1x8xf32>
    %lt = bufferization.to_tensor %l restrict : memref<1x8xf32> to tensor<1x8xf32>
    %r:3 = varlen.online_attn kq ins(%qt, %kt, %vt : tensor<8x6xf32>, tensor<?x6xf32>, tensor<?x18xf32>) limits(%lot, %hit, %k0 : tensor<1x8xi32>, tensor<1x8xi32>, i32) unless(%whole) outs(%at, %mt, %lt : tensor<18x8xf32>, tensor<1x8xf32>, tensor<1x8xf32>) scale 0.125
    bufferization.materialize_in_destination %r#0 in restrict writable %acc : (tensor<18x8xf32>, memref<18x8xf32>) -> ()
    bufferization.materialize_in_destination %r#1 in restrict writable %m : (tensor<1x8xf32>, memref<1x8xf32>) -> ()
    bufferization.materialize_in_destination %r#2 in restrict writable %l : (tensor<1x8xf32>, memref<1x8xf32>) -> ()
  } {varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 1, kv_block = 32, kv = copy>}
  return
}

// -----

// bf16 in pairs: keys and values give 32-bit scalars, p is rounded as two rows
// of it are stored.

// CHECK-LABEL: @pairs
// CHECK-SAME: %[[Q:[^:]*]]: memref<4x32xbf16>, %[[K:[^:]*]]: memref<?x8xbf16>, %[[V:[^:]*]]: memref<?x16xbf16>
// CHECK-DAG: %[[S:.*]] = memref.alloc() {{.*}} : memref<32x16xf32>
// CHECK-DAG: %[[P:.*]] = memref.alloc() {{.*}} : memref<16x32xbf16>
// CHECK: scf.for {{.*}} to %c4 step %c2
// CHECK: vector.load %[[Q]][%{{.*}}, %c0] : memref<4x32xbf16>, vector<32xbf16>
// CHECK: %[[PAIR:.*]] = vector.load %[[K]][%{{.*}}] : memref<?x8xbf16>, vector<2xbf16>
// CHECK: %[[WORD:.*]] = vector.bitcast %[[PAIR]] : vector<2xbf16> to vector<1xi32>
// CHECK: x86vector.avx512.dot
// CHECK-SAME: vector<32xbf16> -> vector<16xf32>
// CHECK: math.exp2
// CHECK: %[[EVEN:.*]] = arith.truncf %{{.*}} to_nearest_away : vector<16xf32> to vector<16xbf16>
// CHECK: %[[ODD:.*]] = arith.truncf %{{.*}} to_nearest_away : vector<16xf32> to vector<16xbf16>
// CHECK: %[[BOTH:.*]] = vector.interleave %[[EVEN]], %[[ODD]] : vector<16xbf16> -> vector<32xbf16>
// CHECK: vector.store %[[BOTH]], %[[P]]
// CHECK: vector.load %[[P]][{{.*}}] : memref<16x32xbf16>, vector<32xbf16>
// CHECK: vector.load %[[V]][{{.*}}] : memref<?x16xbf16>, vector<2xbf16>
// CHECK: x86vector.avx512.dot
// CHECK-NOT: varlen.to_tile
func.func @pairs(%q: memref<4x32xbf16>, %k: memref<?x8xbf16>, %v: memref<?x16xbf16>, %acc: memref<8x16xf32>, %m: memref<1x16xf32>, %l: memref<1x16xf32>, %n: index) {
  scf.forall (%i) in (%n) {
    %qt = varlen.to_tile %q as column_pairs : memref<4x32xbf16> to tensor<16x8xbf16>
    %kt = bufferization.to_tensor %k restrict : memref<?x8xbf16> to tensor<?x8xbf16>
    %vt = varlen.to_tile %v as row_pairs : memref<?x16xbf16> to tensor<?x8xbf16>
    %at = bufferization.to_tensor %acc restrict : memref<8x16xf32> to tensor<8x16xf32>
    %mt = bufferization.to_tensor %m restrict : memref<1x16xf32> to tensor<1x16xf32>
    %lt = bufferization.to_tensor %l restrict : memref<1x16xf32> to tensor<1x16xf32>
    %r:3 = varlen.online_attn kq ins(%qt, %kt, %vt : tensor<16x8xbf16>, tensor<?x8xbf16>, tensor<?x8xbf16>) outs(%at, %mt, %lt : tensor<8x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>) scale 0.125
    bufferization.materialize_in_destination %r#0 in restrict writable %acc : (tensor<8x16xf32>, memref<8x16xf32>) -> ()
    bufferization.materialize_in_destination %r#1 in restrict writable %m : (tensor<1x16xf32>, memref<1x16xf32>) -> ()
    bufferization.materialize_in_destination %r#2 in restrict writable %l : (tensor<1x16xf32>, memref<1x16xf32>) -> ()
  } {varlen.schedule = #varlen.cpu_schedule<lanes = 16, vectors = 1, rows = 8, panels = 1, kv_block = 32, kv = pairs>}
  return
}

// -----

// Gradients of a step: probabilities come straight from the scores; q and dout
// are read by columns for them and by rows for dk and dv. The four vectors of a
// gradient are two chunks of two, in a loop; ds takes the place of p. What was
// summed before is added to the sum over a panel.

// CHECK-LABEL: @grad
// CHECK-SAME: %[[Q:[^:]*]]: memref<16x32xf32>, %[[QT:[^:]*]]: memref<32x16xf32>, %[[K:[^:]*]]: memref<?x32xf32>, %[[STAT:[^:]*]]: memref<1x16xf32>, %[[DQ:[^:]*]]: memref<16x32xf32>, %[[DK:[^:]*]]: memref<?x32xf32>, %[[DV:[^:]*]]: memref<?x32xf32>
// CHECK: %[[P:.*]] = memref.alloc() {alignment = 64 : i64} : memref<32x16xf32>
// CHECK-NOT: memref.alloc
// CHECK: scf.for
// CHECK: scf.for {{.*}} = %c0 to %c32 step %c2 iter_args
// CHECK: vector.load %[[QT]]
// CHECK: memref.load %[[K]]
// CHECK: math.exp2
// CHECK: vector.store %{{.*}}, %[[P]]
// dv
// CHECK: scf.for %[[CHUNK:.*]] = %c0 to %c32 step %c16 {
// CHECK: scf.for %[[N:.*]] = %c0 to
// CHECK: %[[PANEL:.*]]:8 = scf.for {{.*}} = %c0 to %c16 step %c2 iter_args(%{{[^ ]*}} = %cst
// CHECK: vector.load %[[Q]][%{{.*}}, %[[CHUNK]]]
// CHECK: memref.load %[[P]][%[[N]],
// CHECK: %[[BEFORE:.*]] = vector.load %[[DV]][%[[N]], %[[CHUNK]]]
// CHECK: %[[SUM:.*]] = arith.addf %[[BEFORE]], %[[PANEL]]#0
// CHECK: vector.store %[[SUM]], %[[DV]][%[[N]], %[[CHUNK]]]
// ds
// CHECK: vector.load %[[QT]]
// CHECK: %[[OLD:.*]] = vector.load %[[P]]
// CHECK: arith.subf
// CHECK: arith.mulf %[[OLD]]
// CHECK: vector.store %{{.*}}, %[[P]]
// dk, dq
// CHECK: vector.load %[[Q]]
// CHECK: vector.load %[[DK]]
// CHECK: vector.store %{{.*}}, %[[DK]]
// CHECK: scf.for %[[CHUNK2:.*]] = %c0 to %c32 step %c16 {
// CHECK: scf.for %[[M:.*]] = %c0 to %c16 step
// CHECK: scf.for %[[KEY:.*]] = %c0 to
// CHECK: vector.load %[[K]][%[[KEY]], %[[CHUNK2]]]
// CHECK: memref.load %[[P]][%[[KEY]], %[[M]]]
// CHECK: vector.load %[[DQ]][%[[M]], %[[CHUNK2]]]
// CHECK-NOT: linalg
// CHECK-NOT: varlen.to_tile
func.func @grad(%q: memref<16x32xf32>, %q_t: memref<32x16xf32>, %k: memref<?x32xf32>, %stat: memref<1x16xf32>, %dq: memref<16x32xf32>, %dk: memref<?x32xf32>, %dv: memref<?x32xf32>, %n: index) {
  scf.forall (%i) in (%n) {
    %qt = varlen.to_tile %q as rows, %q_t as columns : memref<16x32xf32>, memref<32x16xf32> to tensor<16x32xf32>
    %kt = bufferization.to_tensor %k restrict : memref<?x32xf32> to tensor<?x32xf32>
    %st = bufferization.to_tensor %stat restrict : memref<1x16xf32> to tensor<1x16xf32>
    %dqt = bufferization.to_tensor %dq restrict : memref<16x32xf32> to tensor<16x32xf32>
    %dkt = bufferization.to_tensor %dk restrict : memref<?x32xf32> to tensor<?x32xf32>
    %dvt = bufferization.to_tensor %dv restrict : memref<?x32xf32> to tensor<?x32xf32>
    %r:3 = varlen.online_attn_grad kq ins(%qt, %kt, %kt, %qt, %st, %st : tensor<16x32xf32>, tensor<?x32xf32>, tensor<?x32xf32>, tensor<16x32xf32>, tensor<1x16xf32>, tensor<1x16xf32>) dq(%dqt : tensor<16x32xf32>) dk(%dkt : tensor<?x32xf32>) dv(%dvt : tensor<?x32xf32>) scale 0.125
    bufferization.materialize_in_destination %r#0 in restrict writable %dq : (tensor<16x32xf32>, memref<16x32xf32>) -> ()
    bufferization.materialize_in_destination %r#1 in restrict writable %dk : (tensor<?x32xf32>, memref<?x32xf32>) -> ()
    bufferization.materialize_in_destination %r#2 in restrict writable %dv : (tensor<?x32xf32>, memref<?x32xf32>) -> ()
  } {varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 1, kv_block = 32, kv = copy>}
  return
}

// -----

// In pairs: p is rounded in rows, for dv; ds in rows, for dk, and in pairs of
// rows, for dq.

// CHECK-LABEL: @grad_pairs
// CHECK-DAG: %[[WIDE:.*]] = memref.alloc() {{.*}} : memref<32x16xf32>
// CHECK-DAG: %[[ROWS:.*]] = memref.alloc() {{.*}} : memref<32x16xbf16>
// CHECK-DAG: memref.alloc() {{.*}} : memref<16x32xbf16>
// CHECK: math.exp2
// CHECK: arith.truncf %{{.*}} : vector<16xf32> to vector<16xbf16>
// CHECK: vector.store {{.*}} : memref<32x16xbf16>, vector<16xbf16>
// CHECK: vector.load {{.*}} : memref<32x16xbf16>, vector<2xbf16>
// CHECK: x86vector.avx512.dot
// CHECK: arith.subf
// CHECK: vector.store {{.*}} : memref<16x32xbf16>, vector<32xbf16>
// CHECK: vector.store {{.*}} : memref<32x16xbf16>, vector<16xbf16>
// CHECK: vector.load {{.*}} : memref<16x32xbf16>, vector<2xbf16>
// CHECK: x86vector.avx512.dot
func.func @grad_pairs(%q: memref<8x32xbf16>, %q_t: memref<8x32xbf16>, %k: memref<?x16xbf16>, %kp: memref<?x32xbf16>, %stat: memref<1x16xf32>, %dq: memref<16x16xf32>, %dk: memref<?x16xf32>, %n: index) {
  scf.forall (%i) in (%n) {
    %qt = varlen.to_tile %q_t as column_pairs, %q as row_pairs : memref<8x32xbf16>, memref<8x32xbf16> to tensor<16x16xbf16>
    %kt = varlen.to_tile %k as rows, %kp as row_pairs : memref<?x16xbf16>, memref<?x32xbf16> to tensor<?x16xbf16>
    %st = bufferization.to_tensor %stat restrict : memref<1x16xf32> to tensor<1x16xf32>
    %dqt = bufferization.to_tensor %dq restrict : memref<16x16xf32> to tensor<16x16xf32>
    %dkt = bufferization.to_tensor %dk restrict : memref<?x16xf32> to tensor<?x16xf32>
    %r:3 = varlen.online_attn_grad kq ins(%qt, %kt, %kt, %qt, %st, %st : tensor<16x16xbf16>, tensor<?x16xbf16>, tensor<?x16xbf16>, tensor<16x16xbf16>, tensor<1x16xf32>, tensor<1x16xf32>) dq(%dqt : tensor<16x16xf32>) dk(%dkt : tensor<?x16xf32>) dv(%dkt : tensor<?x16xf32>) scale 0.125
    bufferization.materialize_in_destination %r#0 in restrict writable %dq : (tensor<16x16xf32>, memref<16x16xf32>) -> ()
    bufferization.materialize_in_destination %r#1 in restrict writable %dk : (tensor<?x16xf32>, memref<?x16xf32>) -> ()
    bufferization.materialize_in_destination %r#2 in restrict writable %dk : (tensor<?x16xf32>, memref<?x16xf32>) -> ()
  } {varlen.schedule = #varlen.cpu_schedule<lanes = 16, vectors = 1, rows = 8, panels = 1, kv_block = 32, kv = pairs>}
  return
}

// -----

// The end of a state, in place: out lies in columns, so the columns are stored
// as they are.

// CHECK-LABEL: @finish
// CHECK-SAME: %[[ACC:[^:]*]]: memref<6x16xf32>, %[[M:[^:]*]]: memref<1x16xf32>, %[[L:[^:]*]]: memref<1x16xf32>
// CHECK: %[[L0:.*]] = vector.load %[[L]][%c0, %c0]
// CHECK: math.log2 %{{.*}} : vector<8xf32>
// CHECK: scf.for %[[D:.*]] = %c0 to %c6 step %c2
// CHECK: %[[X:.*]] = vector.load %[[ACC]][%[[D]], %c0]
// CHECK: %[[Y:.*]] = arith.mulf %[[X]]
// CHECK: %[[Z:.*]] = arith.select %{{.*}}, %{{.*}}, %[[Y]] : vector<8xi1>, vector<8xf32>
// CHECK: vector.store %[[Z]], %[[ACC]][%[[D]], %c0]
// CHECK: vector.store %{{.*}}, %[[M]][%c0, %c0]
// CHECK-NOT: linalg
// CHECK-NOT: tensor
func.func @finish(%acc: memref<6x16xf32>, %m: memref<1x16xf32>, %l: memref<1x16xf32>, %n: index) {
  scf.forall (%i) in (%n) {
    %at = bufferization.to_tensor %acc restrict : memref<6x16xf32> to tensor<6x16xf32>
    %mt = bufferization.to_tensor %m restrict : memref<1x16xf32> to tensor<1x16xf32>
    %lt = bufferization.to_tensor %l restrict : memref<1x16xf32> to tensor<1x16xf32>
    %out, %lse = varlen.online_finish kq %at, %mt, %lt scale 0.125 : tensor<6x16xf32>, tensor<1x16xf32>
    %rows = memref.transpose %acc (d, q) -> (q, d) : memref<6x16xf32> to memref<16x6xf32, strided<[1, 16]>>
    bufferization.materialize_in_destination %out in restrict writable %rows : (tensor<16x6xf32>, memref<16x6xf32, strided<[1, 16]>>) -> ()
    bufferization.materialize_in_destination %lse in restrict writable %m : (tensor<1x16xf32>, memref<1x16xf32>) -> ()
  } {varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 1, kv_block = 32, kv = copy>}
  return
}

// -----

// Maxima and minima of a score region are what they say, as is that of the scores.

// CHECK-LABEL: @maximum_of_scores
// CHECK: %[[X:.*]] = arith.maxnumf %{{.*}}, %[[A:.*]] : vector<8xf32>
// CHECK: %[[Y:.*]] = arith.minimumf %[[A]], %[[X]] : vector<8xf32>
// CHECK: %[[Z:.*]] = arith.minimumf %[[Y]], %{{.*}} : vector<8xf32>
// CHECK: arith.maxnumf %[[Z]], %{{.*}} : vector<8xf32>
func.func @maximum_of_scores(%q: memref<6x8xf32>, %k: memref<?x6xf32>, %v: memref<?x8xf32>, %a: memref<1x8xf32>, %acc: memref<8x8xf32>, %m: memref<1x8xf32>, %l: memref<1x8xf32>, %n: index) {
  scf.forall (%i) in (%n) {
    %qt = varlen.to_tile %q as columns : memref<6x8xf32> to tensor<8x6xf32>
    %kt = bufferization.to_tensor %k restrict : memref<?x6xf32> to tensor<?x6xf32>
    %vt = bufferization.to_tensor %v restrict : memref<?x8xf32> to tensor<?x8xf32>
    %ct = bufferization.to_tensor %a restrict : memref<1x8xf32> to tensor<1x8xf32>
    %at = bufferization.to_tensor %acc restrict : memref<8x8xf32> to tensor<8x8xf32>
    %mt = bufferization.to_tensor %m restrict : memref<1x8xf32> to tensor<1x8xf32>
    %lt = bufferization.to_tensor %l restrict : memref<1x8xf32> to tensor<1x8xf32>
    %r:3 = varlen.online_attn kq ins(%qt, %kt, %vt : tensor<8x6xf32>, tensor<?x6xf32>, tensor<?x8xf32>) captures(%ct : tensor<1x8xf32>) outs(%at, %mt, %lt : tensor<8x8xf32>, tensor<1x8xf32>, tensor<1x8xf32>) scale 0.125
        score (%score: f32, %query: i32, %key: i32, %number: f32) {
          %most = arith.constant 30.0 : f32
          %x = arith.maxnumf %score, %number : f32
          %y = arith.minimumf %number, %x : f32
          %z = arith.minimumf %y, %most : f32
          varlen.yield %z : f32
        }
    bufferization.materialize_in_destination %r#0 in restrict writable %acc : (tensor<8x8xf32>, memref<8x8xf32>) -> ()
    bufferization.materialize_in_destination %r#1 in restrict writable %m : (tensor<1x8xf32>, memref<1x8xf32>) -> ()
    bufferization.materialize_in_destination %r#2 in restrict writable %l : (tensor<1x8xf32>, memref<1x8xf32>) -> ()
  } {varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 1, rows = 4, panels = 1, kv_block = 32, kv = copy>}
  return
}
