// RUN: varlen-opt %s --varlen-tile-attn --varlen-split-kv --varlen-specialize-few --convert-varlen-to-cpu --canonicalize --split-input-file | FileCheck %s

// A full mask: the list of work tiles, queries as columns, one step per kv
// block and panel; limits only where a block is not full.

// CHECK-LABEL: @full
// CHECK-SAME: %[[Q:[^:]*]]: memref<?x4x16xf32>, %[[K:[^:]*]]: memref<?x2x16xf32>, %[[V:[^:]*]]: memref<?x2x24xf32>, %[[CU:[^:]*]]: memref<?xi32>, %[[OUT:[^:]*]]: memref<?x4x24xf32>, %[[LSE:[^:]*]]: memref<4x?xf32>
// Extents that do not agree are reported, and leave nothing to be done.
// CHECK: %[[WRONG:.*]] = arith.cmpi sgt, %{{.*}}, %c0
// CHECK: scf.if %[[WRONG]]
// CHECK: call @varlen_extent_error
// CHECK: %[[HEADS:.*]] = arith.select %[[WRONG]], %c0, %c2
// CHECK: %[[TILES:.*]] = varlen.work_tiles %[[CU]], %[[CU]] rows(%{{.*}}, %{{.*}}) heads(%[[HEADS]], %c2) mask <full> block_m 32
// Whole tiles, and parts of those whose keys threads share, which leave a state
// each; then what merges these.
// CHECK: %[[ITEMS:.*]], %[[MERGES:.*]], %[[SLOTS:.*]], %[[FEWSLOTS:.*]] = varlen.split_tiles %[[TILES]] group %c2 kv_block 32 few 4 parts(16, 8)
// CHECK: %[[PARTACC:.*]] = memref.alloc(%[[SLOTS]]) {alignment = 64 : i64} : memref<?x48x16xf32>
// CHECK: memref.alloc(%[[FEWSLOTS]]) {alignment = 64 : i64} : memref<?x4x24xf32>
// CHECK: %[[N:.*]] = memref.dim %[[ITEMS]], %c0
// CHECK: %[[ANY:.*]] = arith.cmpi slt, %[[MERGES]], %[[N]]
// CHECK: %[[PHASES:.*]] = arith.select %[[ANY]], %c2, %c1
// CHECK: scf.for %[[PHASE:[^ ]*]] = %c0 to %[[PHASES]]
// CHECK: %[[IS_FIRST:.*]] = arith.cmpi eq, %[[PHASE]], %c0
// CHECK: %[[BEGIN:.*]] = arith.select %[[IS_FIRST]], %c0, %[[MERGES]]
// CHECK: %[[ENDING:.*]] = arith.select %[[IS_FIRST]], %[[MERGES]], %[[N]]
// CHECK: %[[COUNT:.*]] = arith.subi %[[ENDING]], %[[BEGIN]]
// CHECK: scf.forall (%{{.*}}) in (%[[COUNT]]) {
// CHECK: %[[ITEM:.*]]:13 = varlen.read_work %[[ITEMS]][%{{.*}}] : memref<?x13xi64>
// CHECK: %[[IS_PART:.*]] = arith.cmpi eq, %[[ITEM]]#10, %c1
// CHECK: %[[IS_MERGE:.*]] = arith.cmpi eq, %[[ITEM]]#10, %c2
// The state of all parts of the keys and that of one.
// CHECK: %[[STATES:.*]] = memref.alloc() {alignment = 64 : i64} : memref<2x48x16xf32>
// CHECK: %[[MS:.*]] = memref.alloc() {alignment = 64 : i64} : memref<2x2x16xf32>
// CHECK: %[[LS:.*]] = memref.alloc() {alignment = 64 : i64} : memref<2x2x16xf32>
// CHECK: %[[QT:.*]] = memref.alloc() {alignment = 64 : i64} : memref<2x16x16xf32>
// CHECK: %[[LO:.*]] = memref.alloc() {alignment = 64 : i64} : memref<2x16xi32>
// CHECK: %[[HI:.*]] = memref.alloc() {alignment = 64 : i64} : memref<2x16xi32>
// Tiles of rows that no sequence has (-1 keys) are not computed.
// CHECK: %[[USED:.*]] = arith.cmpi sge, %{{.*}}, %c0
// CHECK: scf.if %[[USED]] {
// Few queries have a form of their own, which is a test of its own.
// CHECK: varlen.online_finish qk
// CHECK: %[[FIRST_STATE:.*]] = memref.subview %[[STATES]][0, 0, 0] [1, 48, 16]
// CHECK: %[[END:.*]] = memref.cast %[[FIRST_STATE]]
// Two panels at most, of which the queries become columns.
// CHECK: scf.for %[[PANEL0:[^ ]*]] = %c0 to %{{.*}} step %c1
// CHECK: %[[QP:.*]] = memref.subview %[[QT]][%[[PANEL0]], 0, 0] [1, 16, 16]
// CHECK: varlen.read_rows %[[Q]] rows(%[[ITEM]]#0, %[[ITEM]]#3, %{{.*}}, %c2) valid(%{{.*}}) to %[[QP]] as columns : memref<?x4x16xf32> to memref<16x16xf32,
// The keys that each query sees.
// CHECK: varlen.key_limits mask <full> pairs(%[[ITEM]]#1, %c2) valid(%[[ITEM]]#2) of(%[[ITEM]]#6, %[[ITEM]]#5) to %[[LO]], %[[HI]] : memref<2x16xi32>, memref<2x16xi32>
// Parts of 16 kv blocks: of a state that another item has left, or from the
// state before the first one.
// CHECK: scf.for %[[PART:[^ ]*]] = %c0 to %{{.*}} step %c1 {
// CHECK: %[[OWN:.*]] = arith.minsi %[[PART]], %c1
// CHECK: %[[ACC:.*]] = memref.subview %[[STATES]][%[[OWN]], 0, 0] [1, 48, 16]
// CHECK: %[[M:.*]] = memref.subview %[[MS]][%[[OWN]], 0, 0] [1, 2, 16]
// CHECK: %[[L:.*]] = memref.subview %[[LS]][%[[OWN]], 0, 0] [1, 2, 16]
// CHECK: scf.if %[[IS_MERGE]] {
// CHECK: %[[LEFT_SLOT:.*]] = arith.addi %[[ITEM]]#12, %[[PART]]
// CHECK: %[[LEFT_ACC:.*]] = memref.subview %[[PARTACC]][%[[LEFT_SLOT]], 0, 0] [1, 48, 16]
// CHECK: varlen.for_queries kq {{.*}} ins(%[[LEFT_ACC]],{{.*}} outs(%[[ACC]] as scratch, %[[M]] as scratch, %[[L]] as scratch :
// CHECK: ^bb0(%[[MOVED:[^:]*]]: tensor<24x32xf32>,
// CHECK: varlen.yield %[[MOVED]],
// CHECK: } else {
// CHECK: %[[NUMBER:.*]] = arith.addi
// CHECK: arith.muli %[[NUMBER]], %c512
// CHECK: varlen.for_queries kq rows(%[[ITEM]]#0, %[[ITEM]]#3, %[[ITEM]]#1, %c2) valid(%[[ITEM]]#2) outs(%[[ACC]] as scratch, %[[M]] as scratch, %[[L]] as scratch :
// CHECK: varlen.online_init kq scale 2.500000e-01 : tensor<24x32xf32>, tensor<1x32xf32>
// The kv blocks of the tile; a copy unless one panel reads it and it is whole. The
// state goes from block to block, and from panel to panel, as tensors.
// CHECK: %[[BEGIN:.*]] = bufferization.to_tensor %[[ACC]] restrict
// CHECK: %[[LAST:.*]]:3 = scf.for %[[K0:.*]] = %{{.*}} to %{{.*}} step %c32 iter_args(%[[SO_FAR:[^ ]*]] = %[[BEGIN]],
// CHECK: %[[PANEL:.*]] = arith.cmpi eq, %{{.*}}, %c1
// CHECK: scf.if %{{.*}} -> (memref<?x16xf32, strided<[?, 1], offset: ?>>, memref<?x24xf32, strided<[?, 1], offset: ?>>)
// CHECK: memref.subview %[[K]]
// CHECK: } else {
// CHECK: %[[KROWS:.*]] = memref.subview %{{.*}}[0, 0] [%[[PADDED:[^,]*]], 16]
// CHECK: varlen.read_rows %[[K]] rows(%[[ITEM]]#4, %[[ITEM]]#3, %[[K0]], %c1) valid(%{{.*}}) to %[[KROWS]] as rows
// CHECK: %[[VROWS:.*]] = memref.subview %{{.*}}[0, 0] [%[[PADDED]], 24]
// CHECK: varlen.read_rows %[[V]] {{.*}} to %[[VROWS]] as rows
// CHECK: scf.yield
// One panel asks for the next block.
// CHECK: %[[NEXT:.*]] = arith.addi %[[K0]],
// CHECK: scf.if %[[PANEL]] {
// CHECK: %[[REST:.*]] = arith.subi %[[ITEM]]#9, %[[NEXT]]
// CHECK: %[[KEYS:.*]] = arith.minsi %[[REST]], %c32
// CHECK: varlen.prefetch_rows %[[K]] rows(%[[ITEM]]#4, %[[ITEM]]#3, %[[NEXT]], %c1) valid(%[[KEYS]])
// CHECK: varlen.prefetch_rows %[[V]]
// CHECK: %[[OF_PANELS:.*]]:3 = scf.for %{{.*}} = %c0 to %{{.*}} step %c1 iter_args(%[[ALL:[^ ]*]] = %[[SO_FAR]],
// A step, with the keys that all queries see. Vectors without a query see none.
// CHECK: %[[FULL:.*]] = arith.cmpi sgt, %{{.*}}, %c8
// CHECK: %[[SEEN:.*]] = arith.select %[[FULL]], %{{.*}}, %c0
// CHECK: %[[OWN_ACC:.*]] = tensor.extract_slice %[[ALL]][%{{.*}}, 0] [24, 16]
// CHECK: %[[NEW:.*]], %{{.*}}, %{{.*}} = varlen.online_attn kq ins({{.*}} : tensor<16x16xf32>, tensor<?x16xf32>, tensor<?x24xf32>) limits({{.*}}) seen(%{{.*}}, %[[SEEN]]) outs(%[[OWN_ACC]],{{.*}} : tensor<24x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>) scale 2.500000e-01
// CHECK: tensor.insert_slice %[[NEW]] into %[[ALL]][%{{.*}}, 0]
// CHECK: scf.yield %[[OF_PANELS]]#0,
// CHECK: bufferization.materialize_in_destination %[[LAST]]#0 in restrict writable %[[ACC]]
// CHECK-NOT: varlen.online_attn
// The parts become one in their order.
// CHECK: arith.cmpi sgt, %[[PART]], %c0
// CHECK: varlen.for_queries kq {{.*}} ins(%[[END]], %[[END_M:.*]], %[[END_L:.*]], %[[ACC]], %[[M]], %[[L]] : {{.*}} outs(%[[END]] as scratch, %[[END_M]] as scratch, %[[END_L]] as scratch :
// CHECK: varlen.online_merge kq {{.*}} : tensor<24x32xf32>, tensor<1x32xf32>
// The state of a part is left for the item that merges.
// CHECK: scf.if %[[IS_PART]] {
// CHECK: %[[PART_ACC:.*]] = memref.subview %[[PARTACC]][%[[ITEM]]#12, 0, 0] [1, 48, 16]
// CHECK: varlen.for_queries kq {{.*}} ins(%[[END]],{{.*}} outs(%[[PART_ACC]] as scratch,
// CHECK: } else {
// The end of the queries: out and lse go to memory.
// CHECK: varlen.for_queries kq rows(%[[ITEM]]#0, %[[ITEM]]#3, %[[ITEM]]#1, %c2) valid(%[[ITEM]]#2) ins(%[[END]], {{.*}} outs(%[[OUT]] as rows, %[[LSE]] as numbers :
// CHECK: ^bb0(%[[ACCT:[^:]*]]: tensor<24x32xf32>,
// CHECK: %[[O:.*]], %[[E:.*]] = varlen.online_finish kq %[[ACCT]], %{{.*}}, %{{.*}} scale 2.500000e-01 : tensor<24x32xf32>, tensor<1x32xf32>
// CHECK: varlen.yield %[[O]], %[[E]]
// CHECK: } else {
// CHECK: varlen.fill_rows %[[OUT]] rows(%[[ITEM]]#0, %[[ITEM]]#3, %[[ITEM]]#1, %c2) valid(%[[ITEM]]#2) with 0.000000e+00
// CHECK: memref.store %cst{{.*}}, %[[LSE]]
// CHECK: memref.dealloc %[[PARTACC]]
// CHECK: memref.dealloc %[[ITEMS]]
// CHECK: memref.dealloc %[[TILES]]
func.func @full(%q: memref<?x4x16xf32>, %k: memref<?x2x16xf32>, %v: memref<?x2x24xf32>, %cu: memref<?xi32>, %out: memref<?x4x24xf32>, %lse: memref<4x?xf32>) {
  varlen.attn %q, %k, %v, %cu, %cu outs(%out, %lse) {varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 2, kv_block = 32, kv = copy>} : (memref<?x4x16xf32>, memref<?x2x16xf32>, memref<?x2x24xf32>, memref<?xi32>, memref<?xi32>, memref<?x4x24xf32>, memref<4x?xf32>) -> ()
  return
}

// -----

// Without parts one thread processes all blocks of a tile, with a single state.

// CHECK-LABEL: @whole
// CHECK: varlen.split_tiles %{{.*}} group %c2 kv_block 32 few 4 :
// CHECK-NOT: scf.for
// CHECK: scf.forall
// CHECK: varlen.online_attn qk
// CHECK-NOT: varlen.online_merge
// CHECK: varlen.online_finish qk
// CHECK: varlen.online_attn kq
// CHECK-NOT: varlen.online_merge
// CHECK: varlen.online_finish kq
func.func @whole(%q: memref<?x4x16xf32>, %k: memref<?x2x16xf32>, %v: memref<?x2x24xf32>, %cu: memref<?xi32>, %out: memref<?x4x24xf32>, %lse: memref<4x?xf32>) {
  varlen.attn %q, %k, %v, %cu, %cu outs(%out, %lse) {varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 2, kv_block = 32, kv = copy, part = 0, few_part = 0>} : (memref<?x4x16xf32>, memref<?x2x16xf32>, memref<?x2x24xf32>, memref<?xi32>, memref<?xi32>, memref<?x4x24xf32>, memref<4x?xf32>) -> ()
  return
}

// -----

// bf16 is converted as it is packed and copied; the output on its way to memory.

// CHECK-LABEL: @converted
// CHECK-SAME: %[[Q:[^:]*]]: memref<?x1x8xbf16>, %[[K:[^:]*]]: memref<?x1x8xbf16>
// CHECK: varlen.online_finish qk
// CHECK: varlen.read_rows %[[Q]] {{.*}} : memref<?x1x8xbf16> to memref<8x8xf32,
// CHECK: varlen.read_rows %[[K]] {{.*}} : memref<?x1x8xbf16> to memref<?x8xf32,
// CHECK: varlen.online_attn kq ins({{.*}} : tensor<8x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>)
// CHECK: varlen.for_queries kq {{.*}} outs(%{{.*}} as rows, %{{.*}} as numbers : memref<?x1x8xbf16>, memref<1x?xf32>)
// CHECK: varlen.online_finish kq {{.*}} : tensor<8x8xf32>,
func.func @converted(%q: memref<?x1x8xbf16>, %k: memref<?x1x8xbf16>, %v: memref<?x1x8xbf16>, %cu: memref<?xi32>, %out: memref<?x1x8xbf16>, %lse: memref<1x?xf32>) {
  varlen.attn %q, %k, %v, %cu, %cu outs(%out, %lse) {varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 1, rows = 8, panels = 1, kv_block = 16, kv = copy>} : (memref<?x1x8xbf16>, memref<?x1x8xbf16>, memref<?x1x8xbf16>, memref<?xi32>, memref<?xi32>, memref<?x1x8xbf16>, memref<1x?xf32>) -> ()
  return
}

// -----

// In pairs, tiles stay bf16: words of two are transposed, two rows of values
// interleaved.

// CHECK-LABEL: @pairs
// CHECK: varlen.read_rows %{{.*}} as column_pairs : memref<?x1x16xbf16> to memref<8x16xbf16,
// CHECK: varlen.read_rows %{{.*}} as row_pairs : memref<?x1x16xbf16> to memref<?x32xbf16,
// CHECK: %[[QT:.*]] = varlen.to_tile %{{.*}} as column_pairs : memref<8x16xbf16, {{.*}}> to tensor<8x16xbf16>
// CHECK: %[[VT:.*]] = varlen.to_tile %{{.*}} as row_pairs : memref<?x32xbf16, {{.*}}> to tensor<?x16xbf16>
// CHECK: varlen.online_attn kq ins(%[[QT]], %{{.*}}, %[[VT]] : tensor<8x16xbf16>, tensor<?x16xbf16>, tensor<?x16xbf16>)
func.func @pairs(%q: memref<?x1x16xbf16>, %k: memref<?x1x16xbf16>, %v: memref<?x1x16xbf16>, %cu: memref<?xi32>, %out: memref<?x1x16xbf16>, %lse: memref<1x?xf32>) {
  varlen.attn %q, %k, %v, %cu, %cu outs(%out, %lse) {varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 1, rows = 8, panels = 1, kv_block = 16, kv = pairs>} : (memref<?x1x16xbf16>, memref<?x1x16xbf16>, memref<?x1x16xbf16>, memref<?xi32>, memref<?xi32>, memref<?x1x16xbf16>, memref<1x?xf32>) -> ()
  return
}

// -----

// A sink is a logit beside those of the keys, read before them as all numbers of
// a tile are; a lane behind the last query has the sink of that one.

// CHECK-LABEL: @sink
// CHECK-SAME: %[[SINK:[^:]*]]: memref<2xf32>
// CHECK: varlen.online_finish qk
// CHECK: scf.for %[[LANE:.*]] = %c0 to %c8 step %c1
// CHECK: %[[PAIR:.*]] = arith.minsi
// CHECK: %[[MEMBER:.*]] = arith.remui %[[PAIR]],
// CHECK: %[[HEAD:.*]] = arith.addi %{{.*}}, %[[MEMBER]]
// CHECK: %[[S:.*]] = memref.load %[[SINK]][%[[HEAD]]]
// CHECK: memref.store %[[S]], %[[SINKS:.*]][%{{.*}}, %[[LANE]]]
// CHECK: varlen.online_attn kq
// CHECK: varlen.for_queries kq {{.*}} ins(%{{.*}}, %{{.*}}, %{{.*}}, %[[SINKS]] :
// CHECK: ^bb0(%{{.*}}: tensor<8x8xf32>, %{{.*}}: tensor<1x8xf32>, %{{.*}}: tensor<1x8xf32>, %[[ST:[^:]*]]: tensor<1x8xf32>):
// CHECK: varlen.online_finish kq %{{.*}}, %{{.*}}, %{{.*}} sink(%[[ST]] : tensor<1x8xf32>)
func.func @sink(%q: memref<?x2x8xf32>, %k: memref<?x1x8xf32>, %v: memref<?x1x8xf32>, %cu: memref<?xi32>, %sink: memref<2xf32>, %out: memref<?x2x8xf32>, %lse: memref<2x?xf32>) {
  varlen.attn %q, %k, %v, %cu, %cu sink(%sink) outs(%out, %lse) {varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 1, rows = 8, panels = 1, kv_block = 16, kv = copy>} : (memref<?x2x8xf32>, memref<?x1x8xf32>, memref<?x1x8xf32>, memref<?xi32>, memref<?xi32>, memref<2xf32>, memref<?x2x8xf32>, memref<2x?xf32>) -> ()
  return
}

// -----

// The beginning of a state, and writes of one result, twice.

// CHECK-LABEL: @loops
// CHECK-SAME: %[[OUT:[a-z0-9]*]]: memref<?x2x8xf32>, %[[COPY:[a-z0-9]*]]: memref<?x2x8xf16>
// CHECK: varlen.work_tiles {{.*}} mask <causal> block_m 16
// CHECK: varlen.online_init kq scale 5.000000e-01 : tensor<8x16xf32>, tensor<1x16xf32>
// CHECK: varlen.online_attn kq {{.*}} scale 5.000000e-01 {my.note}
// CHECK: varlen.for_queries kq {{.*}} outs(%[[OUT]] as rows, %[[COPY]] as rows : memref<?x2x8xf32>, memref<?x2x8xf16>)
// CHECK: %[[O:.*]], %{{.*}} = varlen.online_finish kq
// CHECK: varlen.yield %[[O]], %[[O]]
// CHECK: } else {
// CHECK: varlen.fill_rows %[[OUT]] {{.*}} with 1.000000e+00
// CHECK: varlen.fill_rows %[[COPY]] {{.*}} with 3.000000e+00
// CHECK-NOT: varlen.batch
func.func @loops(%q: memref<?x2x4xf32>, %k: memref<?x1x4xf32>, %v: memref<?x1x8xf32>, %out: memref<?x2x8xf32>, %copy: memref<?x2x8xf16>, %cu: memref<?xi64>, %tq: index, %tk: index, %one: index, %group: index) {
  %acc0, %m0, %l0 = varlen.online_init kq scale 0.5 : tensor<8x16xf32>, tensor<1x16xf32>
  %batch = varlen.batch %cu, %cu rows(%tq, %tk) heads(%one, %group) mask <causal> : memref<?xi64>, memref<?xi64>
  varlen.for_tiles "mine" %t of queries(16) in %batch attributes {varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 1, rows = 8, panels = 2, kv_block = 16, kv = copy>} {
    %qt = varlen.read %q at %t : memref<?x2x4xf32>, !varlen.tile<queries(16)> -> tensor<16x4xf32>
    %s:3 = varlen.for_blocks %b of keys(16) meeting %t : !varlen.tile<queries(16)> iter_args(%acc = %acc0, %m = %m0, %l = %l0) -> (tensor<8x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>) {
      %kt = varlen.read %k at %b : memref<?x1x4xf32>, !varlen.tile<keys(16)> -> tensor<16x4xf32>
      %vt = varlen.read %v at %b : memref<?x1x8xf32>, !varlen.tile<keys(16)> -> tensor<16x8xf32>
      %r:3 = varlen.online_attn kq at(%t, %b : !varlen.tile<queries(16)>, !varlen.tile<keys(16)>) ins(%qt, %kt, %vt : tensor<16x4xf32>, tensor<16x4xf32>, tensor<16x8xf32>) outs(%acc, %m, %l : tensor<8x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>) scale 0.5 {my.note}
      varlen.yield %r#0, %r#1, %r#2 : tensor<8x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>
    }
    %o, %lse = varlen.online_finish kq %s#0, %s#1, %s#2 scale 0.5 : tensor<8x16xf32>, tensor<1x16xf32>
    varlen.write %o to %out at %t otherwise (1.0) : tensor<16x8xf32> -> memref<?x2x8xf32>, !varlen.tile<queries(16)>
    varlen.write %o to %copy at %t otherwise (3.0) : tensor<16x8xf32> -> memref<?x2x8xf16>, !varlen.tile<queries(16)>
  }
  return
}

// -----

#cpu = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 1, kv_block = 16, kv = copy>

// A loop that visits no blocks: all heads of a token one after the other, in
// vectors of queries.

// CHECK-LABEL: @row_products
// CHECK-SAME: %[[X:[^:]*]]: memref<?x4x12xf32>, %[[Y:[^:]*]]: memref<?x4x12xf32>, %[[DOTS:[^:]*]]: memref<4x?xf32>
// CHECK: varlen.work_tiles {{.*}} heads(%c1, %c4) mask <full> block_m 64
// CHECK: scf.forall
// CHECK: scf.if
// CHECK: scf.for %{{.*}} = %c0 to %c8 step %c1
// CHECK: vector.load %[[X]]
// CHECK: vector.load %[[Y]]
// CHECK: memref.store %{{.*}}, %[[PRODUCTS:.*]][%c0, %{{.*}}]
// CHECK: varlen.for_queries kq {{.*}} ins(%[[PRODUCTS]] : memref<1x8xf32>) outs(%[[DOTS]] as numbers : memref<4x?xf32>)
// CHECK: ^bb0(%[[PRODUCT:[^:]*]]: tensor<1x64xf32>):
// CHECK: varlen.yield %[[PRODUCT]]
// CHECK: } else {
// CHECK: memref.store %cst{{.*}}, %[[DOTS]]
// CHECK: } {varlen.schedule
func.func @row_products(%cu: memref<?xi32>, %n: index, %x: memref<?x4x12xf32>, %y: memref<?x4x12xf32>, %dots: memref<4x?xf32>) {
  %c2 = arith.constant 2 : index
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%c2, %c2) mask <full> : memref<?xi32>, memref<?xi32>
  varlen.for_tiles "dots" %t of queries(64) in %batch attributes {varlen.schedule = #cpu} {
    %0 = varlen.read %x at %t : memref<?x4x12xf32>, !varlen.tile<queries(64)> -> tensor<64x12xf32>
    %1 = varlen.read %y at %t : memref<?x4x12xf32>, !varlen.tile<queries(64)> -> tensor<64x12xf32>
    %dot = varlen.row_dot %0, %1 : tensor<64x12xf32> -> tensor<64x1xf32>
    varlen.write %dot to %dots at %t otherwise (0.0) : tensor<64x1xf32> -> memref<4x?xf32>, !varlen.tile<queries(64)>
  }
  return
}

// -----

#cpu = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 1, kv_block = 16, kv = copy>

// Numbers of queries that are written times a factor; rows of no sequence are not.

// CHECK-LABEL: @times
// CHECK-SAME: %[[X:[^:]*]]: memref<4x?xf32>, %[[Y:[^:]*]]: memref<4x?xf32>
// CHECK-DAG: %[[TWO:.*]] = arith.constant 2.000000e+00 : f32
// CHECK-DAG: %[[ONE:.*]] = arith.constant 1.000000e+00 : f32
// CHECK: memref.load %[[X]]
// CHECK: %[[TIMES:.*]] = arith.mulf %{{.*}}, %[[TWO]] : f32
// CHECK: memref.store %[[TIMES]], %[[Y]]
// CHECK: } else {
// CHECK-NOT: arith.mulf
// CHECK: memref.store %[[ONE]], %[[Y]]
func.func @times(%cu: memref<?xi32>, %n: index, %x: memref<4x?xf32>, %y: memref<4x?xf32>) {
  %c2 = arith.constant 2 : index
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%c2, %c2) mask <full> : memref<?xi32>, memref<?xi32>
  varlen.for_tiles "numbers" %t of queries(64) in %batch attributes {varlen.schedule = #cpu} {
    %0 = varlen.read %x at %t : memref<4x?xf32>, !varlen.tile<queries(64)> -> tensor<64x1xf32>
    varlen.write %0 to %y at %t otherwise (1.0) times 2.0 : tensor<64x1xf32> -> memref<4x?xf32>, !varlen.tile<queries(64)>
  }
  return
}

// -----

#cpu = #varlen.cpu_schedule<lanes = 8, vectors = 1, rows = 8, panels = 2, kv_block = 16, kv = copy>

// A state that has two uses: by its end, and as it is.

// CHECK-LABEL: @largest_scores
// CHECK-SAME: %[[OUT:[^:]*]]: memref<?x2x8xf32>, %[[MOST:[^:]*]]: memref<2x?xf32>
// CHECK: scf.if {{.*}} {
// CHECK: varlen.online_attn qk
// CHECK: varlen.for_queries qk {{.*}} outs(%[[OUT]] as rows, %[[MOST]] as numbers :
// CHECK: varlen.online_finish qk
// CHECK: varlen.online_attn kq
// CHECK: varlen.for_queries kq {{.*}} outs(%[[OUT]] as rows, %[[MOST]] as numbers :
// CHECK: ^bb0(%[[A:[^:]*]]: tensor<8x16xf32>, %[[M:[^:]*]]: tensor<1x16xf32>, %[[L:[^:]*]]: tensor<1x16xf32>):
// CHECK: %[[O:.*]], %{{.*}} = varlen.online_finish kq %[[A]], %[[M]], %[[L]]
// CHECK: varlen.yield %[[O]], %[[M]]
func.func @largest_scores(%cu: memref<?xi32>, %n: index, %q: memref<?x2x4xf32>, %v: memref<?x1x8xf32>, %out: memref<?x2x8xf32>, %most: memref<2x?xf32>) {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%c1, %c2) mask <full> : memref<?xi32>, memref<?xi32>
  %acc0, %m0, %l0 = varlen.online_init kq scale 0.5 : tensor<8x16xf32>, tensor<1x16xf32>
  varlen.for_tiles "a" %t of queries(16) in %batch attributes {varlen.schedule = #cpu} {
    %qt = varlen.read %q at %t : memref<?x2x4xf32>, !varlen.tile<queries(16)> -> tensor<16x4xf32>
    %s:3 = varlen.for_blocks %b of keys(16) meeting %t : !varlen.tile<queries(16)> iter_args(%acc = %acc0, %m = %m0, %l = %l0) -> (tensor<8x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>) {
      %kt = varlen.read %q at %b : memref<?x2x4xf32>, !varlen.tile<keys(16)> -> tensor<16x4xf32>
      %vt = varlen.read %v at %b : memref<?x1x8xf32>, !varlen.tile<keys(16)> -> tensor<16x8xf32>
      %r:3 = varlen.online_attn kq at(%t, %b : !varlen.tile<queries(16)>, !varlen.tile<keys(16)>)
          ins(%qt, %kt, %vt : tensor<16x4xf32>, tensor<16x4xf32>, tensor<16x8xf32>)
          outs(%acc, %m, %l : tensor<8x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>) scale 0.5
      varlen.yield %r#0, %r#1, %r#2 : tensor<8x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>
    }
    %o, %e = varlen.online_finish kq %s#0, %s#1, %s#2 scale 0.5 : tensor<8x16xf32>, tensor<1x16xf32>
    varlen.write %o to %out at %t otherwise (0.0) : tensor<16x8xf32> -> memref<?x2x8xf32>, !varlen.tile<queries(16)>
    varlen.write %s#1 to %most at %t otherwise (0.0) : tensor<1x16xf32> -> memref<2x?xf32>, !varlen.tile<queries(16)>
  }
  return
}
