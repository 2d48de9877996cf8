// RUN: varlen-opt %s --varlen-tile-attn --convert-varlen-to-cpu --canonicalize --split-input-file | FileCheck %s

// Four loops: statistics of all rows, keys that no query sees, an item for each
// sequence and kv head, the gradient of the sink. Tiles are as wide as whole
// vectors: 16 columns for a head_dim of 12.

// CHECK-LABEL: @causal
// CHECK-SAME: %[[DOUT:[^:]*]]: memref<?x4x8xf32>, %[[Q:[^:]*]]: memref<?x4x12xf32>, %[[K:[^:]*]]: memref<?x2x12xf32>, %[[V:[^:]*]]: memref<?x2x8xf32>, %[[OUT:[^:]*]]: memref<?x4x8xf32>, %[[LSE:[^:]*]]: memref<4x?xf32>, %[[CUQ:[^:]*]]: memref<?xi32>, %[[CUK:[^:]*]]: memref<?xi32>, %[[DLSE:[^:]*]]: memref<4x?xf32>, %[[SINK:[^:]*]]: memref<4xf32>, %[[DQ:[^:]*]]: memref<?x4x12xf32>, %[[DK:[^:]*]]: memref<?x2x12xf32>, %[[DV:[^:]*]]: memref<?x2x8xf32>, %[[DSINK:[^:]*]]: memref<4xf32>
// CHECK: call @varlen_extent_error
// CHECK: %[[LSES:.*]] = memref.alloc(%{{.*}}) {alignment = 64 : i64} : memref<2x?xf32>
// CHECK: %[[DELTA:.*]] = memref.alloc(%{{.*}}) {alignment = 64 : i64} : memref<2x?xf32>
// CHECK: %[[TERMS:.*]] = memref.alloc(%{{.*}}) {alignment = 64 : i64} : memref<2x?xf32>
// CHECK: %[[ROWS:.*]] = varlen.work_tiles %[[CUQ]], %[[CUK]] {{.*}} mask <causal>
// CHECK: scf.forall
// CHECK: scf.if
// CHECK: scf.for %{{.*}} = %c0 to %{{.*}} step %c1
// CHECK: scf.for %{{.*}} = %c0 to %c8 step %c1
// CHECK: memref.load %[[LSE]]
// CHECK: memref.load %[[DLSE]]
// CHECK: memref.load %[[SINK]]
// CHECK: vector.load %[[DOUT]]
// CHECK: vector.load %[[OUT]]
// CHECK: vector.reduction <add>
// CHECK: varlen.for_queries kq {{.*}} outs(%[[LX:.*]] as scratch, %[[DX:.*]] as scratch, %[[TX:.*]] as scratch :
// CHECK: %[[L:.*]], %[[D:.*]], %[[T:.*]] = varlen.online_statistics {{.*}} natural :
// CHECK: varlen.yield %[[L]], %[[D]], %[[T]]
// CHECK: %[[LN:.*]] = memref.load %[[LX]]
// CHECK: %[[DN:.*]] = memref.load %[[DX]]
// CHECK: memref.store %[[LN]], %[[LSES]][%[[KVHEAD:.*]], %[[PAIR:.*]]]
// CHECK: memref.store %[[DN]], %[[DELTA]][%[[KVHEAD]], %[[PAIR]]]
// CHECK: %[[TN:.*]] = memref.load %[[TX]]
// CHECK: memref.store %[[TN]], %[[TERMS]]
// Rows of no sequence.
// CHECK: } else {
// CHECK-NOT: memref.load %[[LSE]]
// CHECK: memref.store %{{.*}}, %[[LSES]]
// A list whose rows are keys.
// CHECK: varlen.work_tiles %[[CUK]], %[[CUQ]] {{.*}} heads(%{{.*}}, %c1) mask <full>
// CHECK: scf.forall
// CHECK: varlen.fill_rows %[[DK]] {{.*}} with 0.000000e+00
// CHECK: varlen.fill_rows %[[DV]] {{.*}} with 0.000000e+00
// One item for each sequence and kv head; dq has as many rows as the longest,
// queries and cotangents as many panels, in columns and in rows.
// CHECK: %[[ITEMS:.*]] = varlen.work_tiles %[[CUQ]], %[[CUK]] {{.*}} block_m 9223372036854775807
// CHECK: %[[ALL:.*]]:4 = scf.for
// CHECK: arith.maxsi
// CHECK: %[[MOST:.*]] = arith.muli %{{.*}}, %c16
// CHECK: %[[PANELS:.*]] = arith.divui %[[MOST]], %c16
// Memory that threads share, if an item has so many scores that it is cut.
// CHECK: arith.cmpf ogt, %[[ALL]]#3
// CHECK: %[[SHAREDROWS:.*]] = arith.select %[[CUT:.*]], %[[MOST]], %c0
// CHECK: %[[SHAREDPANELS:.*]] = arith.select %[[CUT]], %[[PANELS]], %c0
// CHECK: %[[SHAREDBLOCKS:.*]] = arith.select %[[CUT]], %{{.*}}, %c0
// CHECK: %[[SHAREDQC:.*]] = memref.alloc(%[[SHAREDPANELS]]) {alignment = 64 : i64} : memref<?x16x16xf32>
// CHECK: %[[SHAREDQR:.*]] = memref.alloc(%[[SHAREDPANELS]]) {alignment = 64 : i64} : memref<?x16x16xf32>
// CHECK: memref.alloc(%[[SHAREDROWS]]) {alignment = 64 : i64} : memref<?x16xf32>
// CHECK: memref.alloc(%[[SHAREDBLOCKS]]) {alignment = 64 : i64} : memref<?x32x16xf32>
// CHECK: memref.alloc(%[[SHAREDBLOCKS]]) {alignment = 64 : i64} : memref<?x32x8xf32>
// All that are in one piece, then each that is cut; its diagonals; the cells of one.
// CHECK: scf.for %[[TURN:.*]] = %c0
// CHECK: %[[WHOLE:.*]] = arith.cmpi eq, %[[TURN]], %c0
// CHECK: scf.for
// CHECK: scf.forall
// CHECK: %[[OWNQC:.*]] = memref.alloc(%[[PANELS]]) {alignment = 64 : i64} : memref<?x16x16xf32>
// CHECK: %[[OWNQR:.*]] = memref.alloc(%[[PANELS]]) {alignment = 64 : i64} : memref<?x16x16xf32>
// CHECK: memref.alloc(%[[PANELS]]) {alignment = 64 : i64} : memref<?x8x16xf32>
// CHECK: memref.alloc(%[[PANELS]]) {alignment = 64 : i64} : memref<?x16x8xf32>
// CHECK: memref.alloc(%[[MOST]]) {alignment = 64 : i64} : memref<?x16xf32>
// CHECK: memref.alloc() {alignment = 64 : i64} : memref<1x32x16xf32>
// CHECK: %[[QC:.*]] = arith.select %[[WHOLE]], %[[OWNQC]], %[[SHAREDQC]]
// CHECK: %[[QR:.*]] = arith.select %[[WHOLE]], %[[OWNQR]], %[[SHAREDQR]]
// Every panel is packed once, in both orders.
// CHECK: scf.for %{{.*}} = %{{.*}} to %{{.*}} step %c16
// CHECK: %[[COLUMNS0:.*]] = memref.subview %[[QC]]
// CHECK: %[[ROWS0:.*]] = memref.subview %[[QR]]
// CHECK: varlen.read_rows %[[Q]] {{.*}} to %[[COLUMNS0]] as columns, %[[ROWS0]] as rows
// kv blocks, then panels of the queries that see them. dq goes from block to block, all
// three go from panel to panel.
// CHECK: %[[SUMS:.*]] = bufferization.to_tensor %{{.*}} restrict writable : memref<?x16xf32>
// CHECK: scf.for %{{.*}} = %{{.*}} to %{{.*}} step %c1 iter_args(%{{.*}} = %[[SUMS]]) -> (tensor<?x16xf32>) {
// CHECK: varlen.read_rows %[[K]]
// CHECK: varlen.read_rows %[[V]]
// CHECK: scf.for %{{.*}} = %{{.*}} to %{{.*}} step %c16 iter_args(%{{.*}}) -> (tensor<?x16xf32>, tensor<32x16xf32>, tensor<32x8xf32>)
// CHECK-COUNT-3: tensor.extract_slice
// CHECK: varlen.online_attn_grad kq natural ins({{.*}} : tensor<16x16xf32>, tensor<?x16xf32>, tensor<?x8xf32>, tensor<16x8xf32>, tensor<1x16xf32>, tensor<1x16xf32>) limits({{.*}}) seen({{.*}}) dq({{.*}} : tensor<16x16xf32>) dk({{.*}} : tensor<?x16xf32>) dv({{.*}} : tensor<?x8xf32>) scale
// CHECK-COUNT-3: tensor.insert_slice
// CHECK-COUNT-2: bufferization.materialize_in_destination
// CHECK-NOT: varlen.online_attn_grad
// CHECK: varlen.write_rows %{{.*}} to %[[DK]] {{.*}} times
// CHECK: varlen.write_rows %{{.*}} to %[[DV]] rows(%{{.*}}) valid(%{{.*}}) :
// CHECK: bufferization.materialize_in_destination
// CHECK: varlen.write_rows %{{.*}} to %[[DQ]] {{.*}} times
// CHECK: varlen.schedule = #varlen.cpu_schedule
// No row is summed if bad cu_seqlens gave no tiles.
// CHECK: %[[RIGHT:.*]] = arith.select %{{.*}}, %c0, %c4
// CHECK: %[[HEADS:.*]] = arith.select %{{.*}}, %[[RIGHT]], %c0
// CHECK: scf.forall (%{{.*}}) in (%[[HEADS]])
// CHECK: memref.load %[[TERMS]]
// CHECK: scf.yield
// CHECK: %[[NEGATED:.*]] = arith.subf
// CHECK: memref.store %[[NEGATED]], %[[DSINK]]
// CHECK-COUNT-6: memref.dealloc
func.func @causal(%dout: memref<?x4x8xf32>, %q: memref<?x4x12xf32>, %k: memref<?x2x12xf32>, %v: memref<?x2x8xf32>, %out: memref<?x4x8xf32>, %lse: memref<4x?xf32>, %cu_q: memref<?xi32>, %cu_k: memref<?xi32>, %dlse: memref<4x?xf32>, %sink: memref<4xf32>, %dq: memref<?x4x12xf32>, %dk: memref<?x2x12xf32>, %dv: memref<?x2x8xf32>, %dsink: memref<4xf32>) {
  varlen.attn_grad %dout, %q, %k, %v, %out, %lse, %cu_q, %cu_k dlse(%dlse) sink(%sink) outs(%dq, %dk, %dv, %dsink) {mask = #varlen.mask<causal>, varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 1, kv_block = 32, kv = copy>} : (memref<?x4x8xf32>, memref<?x4x12xf32>, memref<?x2x12xf32>, memref<?x2x8xf32>, memref<?x4x8xf32>, memref<4x?xf32>, memref<?xi32>, memref<?xi32>, memref<4x?xf32>, memref<4xf32>, memref<?x4x12xf32>, memref<?x2x12xf32>, memref<?x2x8xf32>, memref<4xf32>) -> ()
  return
}

// -----

// bf16 in pairs: queries and cotangents lie in columns of pairs for the scores
// and in rows of pairs for dk and dv, keys in rows and in rows of pairs.

// CHECK-LABEL: @pairs
// CHECK-DAG: varlen.to_tile %{{.*}} as column_pairs, %{{.*}} as row_pairs : memref<8x32xbf16, {{.*}}>, memref<8x32xbf16, {{.*}}> to tensor<16x16xbf16>
// CHECK-DAG: varlen.to_tile %{{.*}} as rows, %{{.*}} as row_pairs : memref<?x16xbf16, {{.*}}>, memref<?x32xbf16, {{.*}}> to tensor<?x16xbf16>
// CHECK: varlen.online_attn_grad kq ins({{.*}} : tensor<16x16xbf16>, tensor<?x16xbf16>, tensor<?x16xbf16>, tensor<16x16xbf16>
// CHECK: varlen.write_rows {{.*}} : memref<?x16xf32, {{.*}}> to memref<?x1x16xbf16>
func.func @pairs(%dout: memref<?x1x16xbf16>, %q: memref<?x1x16xbf16>, %k: memref<?x1x16xbf16>, %v: memref<?x1x16xbf16>, %out: memref<?x1x16xbf16>, %lse: memref<1x?xf32>, %cu: memref<?xi32>, %dq: memref<?x1x16xbf16>, %dk: memref<?x1x16xbf16>, %dv: memref<?x1x16xbf16>) {
  varlen.attn_grad %dout, %q, %k, %v, %out, %lse, %cu, %cu outs(%dq, %dk, %dv) {varlen.schedule = #varlen.cpu_schedule<lanes = 16, vectors = 1, rows = 8, panels = 1, kv_block = 32, kv = pairs>} : (memref<?x1x16xbf16>, memref<?x1x16xbf16>, memref<?x1x16xbf16>, memref<?x1x16xbf16>, memref<?x1x16xbf16>, memref<1x?xf32>, memref<?xi32>, memref<?xi32>, memref<?x1x16xbf16>, memref<?x1x16xbf16>, memref<?x1x16xbf16>) -> ()
  return
}

// -----

// Limits never fall, and none begins behind its end: a query that sees nothing
// has its end twice, lanes behind the last query that query's end.

// CHECK-LABEL: @limits
// CHECK-DAG: %[[LO:.*]] = memref.alloc() {alignment = 64 : i64} : memref<1x16xi32>
// CHECK-DAG: %[[HI:.*]] = memref.alloc() {alignment = 64 : i64} : memref<1x16xi32>
// CHECK: memref.subview %{{.*}}[%{{.*}}, 0, 0] [1, 32, 16] [1, 1, 1]
// CHECK: scf.for %{{.*}} = %{{.*}} to %{{.*}} step %c16
// CHECK: scf.for %[[LANE:.*]] = %c0 to %[[COLUMNS:.*]] step %c1 {
// CHECK: %[[FROM:.*]] = arith.maxsi %{{.*}}, %c0
// CHECK: %[[NOTNEG:.*]] = arith.maxsi %{{.*}}, %c0
// CHECK: %[[TO:.*]] = arith.minsi %[[NOTNEG]],
// CHECK: %[[BEGIN:.*]] = arith.minsi %[[FROM]], %[[TO]]
// CHECK: %[[BEGIN32:.*]] = arith.index_cast %[[BEGIN]]
// CHECK: memref.store %[[BEGIN32]], %[[LO]][%c0, %[[LANE]]]
// CHECK: %[[TO32:.*]] = arith.index_cast %[[TO]]
// CHECK: memref.store %[[TO32]], %[[HI]][%c0, %[[LANE]]]
// CHECK: }
// CHECK: %[[LAST:.*]] = arith.subi %[[COLUMNS]], %c1
// CHECK: %[[END:.*]] = memref.load %[[HI]][%c0, %[[LAST]]]
// CHECK: scf.for %[[EMPTY:.*]] = %[[COLUMNS]] to %c16 step %c1 {
// CHECK: memref.store %[[END]], %[[LO]][%c0, %[[EMPTY]]]
// CHECK: memref.store %[[END]], %[[HI]][%c0, %[[EMPTY]]]
func.func @limits(%x: memref<?x1x16xf32>, %lse: memref<1x?xf32>, %cu: memref<?xi32>, %dq: memref<?x1x16xf32>, %dk: memref<?x1x16xf32>, %dv: memref<?x1x16xf32>) {
  varlen.attn_grad %x, %x, %x, %x, %x, %lse, %cu, %cu outs(%dq, %dk, %dv) {mask = #varlen.mask<window = (16, 4)>, varlen.schedule = #varlen.cpu_schedule<lanes = 16, vectors = 1, rows = 8, panels = 1, kv_block = 32, kv = copy>} : (memref<?x1x16xf32>, memref<?x1x16xf32>, memref<?x1x16xf32>, memref<?x1x16xf32>, memref<?x1x16xf32>, memref<1x?xf32>, memref<?xi32>, memref<?xi32>, memref<?x1x16xf32>, memref<?x1x16xf32>, memref<?x1x16xf32>) -> ()
  return
}

// -----

// Either sum is negated or not.

// CHECK-LABEL: @head_sums
// CHECK-SAME: %[[ROWS:[^:]*]]: memref<4x?x8xf32>, %[[TABLE:[^:]*]]: memref<4x8xf32>, %[[DSINK:[^:]*]]: memref<4xf32>
// CHECK: varlen.schedule = #varlen.cpu_schedule
// CHECK: scf.forall
// CHECK: scf.yield
// CHECK-NEXT: }
// CHECK-NEXT: memref.store %{{.*}}, %[[DSINK]]
// CHECK: scf.forall
// CHECK: vector.load %[[ROWS]]
// CHECK: scf.yield
// CHECK: %[[NEGATED:.*]] = arith.subf %{{.*}} : vector<8xf32>
// CHECK: vector.store %[[NEGATED]]
// CHECK: memref.store %{{.*}}, %[[TABLE]]
func.func @head_sums(%rows: memref<4x?x8xf32>, %table: memref<4x8xf32>, %dsink: memref<4xf32>, %cu: memref<?xi32>, %n: index, %h: index,
                     %lse: memref<4x?xf32>, %dout: memref<?x4x64xf32>) {
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%h, %h) mask <full> : memref<?xi32>, memref<?xi32>
  %terms = varlen.rows in %batch : !varlen.rows<1 x f32>
  varlen.for_tiles "statistics" %t of queries(64) in %batch attributes {varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 1, kv_block = 16, kv = copy>} {
    %0 = varlen.read %lse at %t : memref<4x?xf32>, !varlen.tile<queries(64)> -> tensor<64x1xf32>
    %1 = varlen.read %dout at %t : memref<?x4x64xf32>, !varlen.tile<queries(64)> -> tensor<64x64xf32>
    %dot = varlen.row_dot %1, %1 : tensor<64x64xf32> -> tensor<64x1xf32>
    %l, %d = varlen.online_statistics %dot, %0 : tensor<64x1xf32>
    varlen.write %d to %terms at %t otherwise (0.0) : tensor<64x1xf32> -> !varlen.rows<1 x f32>, !varlen.tile<queries(64)>
  }
  varlen.for_tiles "dsink" %t of heads in %batch {
    varlen.sum_rows %terms to %dsink at %t : !varlen.rows<1 x f32> to memref<4xf32>, !varlen.tile<heads>
  }
  varlen.for_tiles "table" %t of heads in %batch {
    varlen.sum_rows %rows to %table at %t negated : memref<4x?x8xf32> to memref<4x8xf32>, !varlen.tile<heads>
  }
  return
}

// -----

#cpu = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 1, kv_block = 16, kv = copy>

// Sums of keys alone: no memory for those of queries. One is written twice.

// CHECK-LABEL: @keys
// CHECK-SAME: %{{[a-z0-9]*}}: memref<?x1x8xf32>, %[[DK:[a-z0-9]*]]: memref<?x1x8xf32>, %[[DV:[a-z0-9]*]]: memref<?x1x8xf32>, %[[TWICE:[a-z0-9]*]]: memref<?x1x8xf32>
// Keys that no query sees.
// CHECK: scf.forall
// CHECK: varlen.fill_rows %[[DV]]
// CHECK: varlen.fill_rows %[[DK]]
// CHECK: varlen.fill_rows %[[TWICE]]
// CHECK: scf.forall
// CHECK: memref.alloc() {alignment = 64 : i64} : memref<1x16x8xf32>
// CHECK: memref.alloc() {alignment = 64 : i64} : memref<1x16x8xf32>
// CHECK-NOT: memref<?x8xf32>
// CHECK: memref.alloc() {alignment = 64 : i64} : memref<1x16xi32>
// CHECK: varlen.online_attn_grad kq {{.*}} seen({{.*}}) dk({{.*}} : tensor<?x8xf32>) dv({{.*}} : tensor<?x8xf32>) scale
// CHECK-COUNT-2: tensor.insert_slice
// CHECK-COUNT-2: bufferization.materialize_in_destination
// CHECK: varlen.write_rows %{{.*}} to %[[DV]] rows(%{{.*}}) valid(%{{.*}}) :
// CHECK: varlen.write_rows %{{.*}} to %[[DK]] rows(%{{.*}}) valid(%{{.*}}) :
// CHECK: varlen.write_rows %{{.*}} to %[[TWICE]] {{.*}} times
func.func @keys(%q: memref<?x2x8xf32>, %k: memref<?x1x8xf32>, %dk: memref<?x1x8xf32>, %dv: memref<?x1x8xf32>, %twice: memref<?x1x8xf32>, %cu: memref<?xi32>, %n: index) {
  %zero = arith.constant 0.0 : f32
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%c1, %c2) mask <full> : memref<?xi32>, memref<?xi32>
  %rows = varlen.rows in %batch : !varlen.rows<2 x f32>
  varlen.for_tiles "keys" %t of sequences in %batch attributes {varlen.schedule = #cpu} {
    %l, %d = varlen.read %rows at %t : !varlen.rows<2 x f32>, !varlen.tile<sequences> -> tensor<1x?xf32>, tensor<1x?xf32>
    %qt = varlen.read %q at %t : memref<?x2x8xf32>, !varlen.tile<sequences> -> tensor<?x8xf32>
    varlen.for_blocks %b of keys(16) of %t : !varlen.tile<sequences> {
      %empty = tensor.empty() : tensor<16x8xf32>
      %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<16x8xf32>) -> tensor<16x8xf32>
      %kt = varlen.read %k at %b : memref<?x1x8xf32>, !varlen.tile<keys(16)> -> tensor<16x8xf32>
      %r:2 = varlen.online_attn_grad kq natural at(%t, %b : !varlen.tile<sequences>, !varlen.tile<keys(16)>)
          ins(%qt, %kt, %kt, %qt, %l, %d : tensor<?x8xf32>, tensor<16x8xf32>, tensor<16x8xf32>, tensor<?x8xf32>, tensor<1x?xf32>, tensor<1x?xf32>)
          dk(%zeros : tensor<16x8xf32>) dv(%zeros : tensor<16x8xf32>) scale 0.125
      varlen.write %r#1 to %dv at %b otherwise (0.0) : tensor<16x8xf32> -> memref<?x1x8xf32>, !varlen.tile<keys(16)>
      varlen.write %r#0 to %dk at %b otherwise (0.0) : tensor<16x8xf32> -> memref<?x1x8xf32>, !varlen.tile<keys(16)>
      varlen.write %r#0 to %twice at %b otherwise (0.0) times 2.0 : tensor<16x8xf32> -> memref<?x1x8xf32>, !varlen.tile<keys(16)>
    }
  }
  varlen.free_rows %rows : !varlen.rows<2 x f32>
  return
}
