// RUN: varlen-opt %s --varlen-tile-attn --canonicalize --split-input-file | FileCheck %s

// A full mask: the list of work tiles, queries as columns, one step per kv
// block and panel; limits only where a block is not full.

// CHECK-LABEL: @full
// CHECK-SAME: %[[Q:[^:]*]]: memref<?x4x16xf32>, %[[K:[^:]*]]: memref<?x2x16xf32>, %[[V:[^:]*]]: memref<?x2x24xf32>, %[[CU:[^:]*]]: memref<?xi32>, %[[OUT:[^:]*]]: memref<?x4x24xf32>, %[[LSE:[^:]*]]: memref<4x?xf32>
// Extents that do not agree are reported, and leave nothing to be done.
// CHECK: %[[WRONG:.*]] = arith.cmpi sgt, %{{.*}}, %c0
// CHECK: scf.if %[[WRONG]]
// CHECK: call @varlen_extent_error
// CHECK-DAG: %[[TQ:.*]] = memref.dim %[[Q]], %c0
// CHECK-DAG: %[[TK:.*]] = memref.dim %[[K]], %c0
// CHECK-DAG: %[[HEADS:.*]] = arith.select %[[WRONG]], %c0, %c2
// CHECK: %[[TILES:.*]] = varlen.work_tiles %[[CU]], %[[CU]] rows(%[[TQ]], %[[TK]]) heads(%[[HEADS]], %c2) mask <full> block_m 32
// CHECK: %[[N:.*]] = memref.dim %[[TILES]], %c0
// CHECK: scf.forall (%[[I:.*]]) in (%[[N]]) {
// CHECK: %[[KB:.*]] = memref.load %[[TILES]][%[[I]], %c8]
// CHECK: %[[KE:.*]] = memref.load %[[TILES]][%[[I]], %c9]
// CHECK: %[[END:.*]] = arith.index_cast %[[KE]]
// CHECK-DAG: %[[QT:.*]] = memref.alloc() {alignment = 64 : i64} : memref<32x16xf32>
// CHECK-DAG: %[[ACC:.*]] = memref.alloc() {alignment = 64 : i64} : memref<48x16xf32>
// Two panels at most; eight queries at a time are transposed.
// CHECK: scf.for %{{.*}} = %c0 to %{{.*}} step %c1
// CHECK: scf.for %{{.*}} = %c0 to %{{.*}} step %c8
// CHECK: scf.for %{{.*}} = %c0 to %c16 step %c8
// CHECK-COUNT-8: vector.load %[[Q]]
// CHECK-COUNT-24: vector.shuffle
// CHECK-COUNT-8: vector.store {{.*}}, %[[QT]]
// The kv blocks of the tile; a copy unless one panel reads it and it is whole.
// CHECK: scf.for %[[K0:.*]] = %{{.*}} to %{{.*}} step %c32
// CHECK: scf.if %{{.*}} -> (memref<?x16xf32, strided<[?, 1], offset: ?>>, memref<?x24xf32, strided<[?, 1], offset: ?>>)
// CHECK: memref.subview %[[K]]
// CHECK: } else {
// CHECK: vector.load %[[K]]
// CHECK: vector.load %[[V]]
// CHECK: scf.yield
// One panel asks for the next block: of each row every cache line.
// CHECK: %[[NEXT:.*]] = arith.addi %[[K0]],
// CHECK-NEXT: %[[PANEL:.*]] = arith.cmpi eq, %{{.*}}, %c1
// CHECK-NEXT: %[[LEFT:.*]] = arith.subi %[[END]], %[[NEXT]]
// CHECK: %[[KEYS:.*]] = arith.minsi %[[LEFT]], %c32
// CHECK: scf.if %[[PANEL]] {
// CHECK: scf.for %{{.*}} = %c0 to %[[KEYS]] step %c1
// CHECK: memref.prefetch %[[K]][%{{.*}}, %{{.*}}, %c0], read, locality<2>, data
// CHECK-NOT: memref.prefetch %[[K]]
// CHECK: memref.prefetch %[[V]][%{{.*}}, %{{.*}}, %c0], read, locality<2>, data
// CHECK: memref.prefetch %[[V]][%{{.*}}, %{{.*}}, %c16], read, locality<2>, data
// A wide step and a narrow one, whose limits hold unless all rows see all keys.
// CHECK: %[[BEGINS:.*]] = arith.cmpi sge
// CHECK: %[[ENDS:.*]] = arith.cmpi sge
// CHECK: %[[WHOLE:.*]] = arith.andi %[[BEGINS]], %[[ENDS]]
// CHECK: varlen.online_attn kq ins({{.*}} : tensor<16x16xf32>, tensor<?x16xf32>, tensor<?x24xf32>) limits({{.*}}) unless(%[[WHOLE]]) outs({{.*}} : tensor<24x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>) scale 2.500000e-01
// CHECK-COUNT-3: bufferization.materialize_in_destination
// CHECK: varlen.online_attn kq ins({{.*}} : tensor<8x16xf32>, tensor<?x16xf32>, tensor<?x24xf32>) limits({{.*}}) unless(%[[WHOLE]]) outs({{.*}} : tensor<24x8xf32>
// CHECK-NOT: varlen.online_attn
// CHECK: math.log2
// CHECK: arith.divf
// CHECK: memref.store %{{.*}}, %[[LSE]]
// CHECK: vector.store %{{.*}}, %[[OUT]]
// CHECK: memref.dealloc %[[TILES]]
func.func @full(%q: memref<?x4x16xf32>, %k: memref<?x2x16xf32>, %v: memref<?x2x24xf32>, %cu: memref<?xi32>, %out: memref<?x4x24xf32>, %lse: memref<4x?xf32>) {
  varlen.attn %q, %k, %v, %cu, %cu outs(%out, %lse) {varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 2, kv_block = 32, kv = copy>} : (memref<?x4x16xf32>, memref<?x2x16xf32>, memref<?x2x24xf32>, memref<?xi32>, memref<?xi32>, memref<?x4x24xf32>, memref<4x?xf32>) -> ()
  return
}

// -----

// bf16 is converted as it is packed and copied; the output on its way back.

// CHECK-LABEL: @converted
// CHECK-SAME: %[[Q:[^:]*]]: memref<?x1x8xbf16>, %[[K:[^:]*]]: memref<?x1x8xbf16>
// CHECK: vector.load %[[Q]]
// CHECK: arith.extf %{{.*}} : vector<8xbf16> to vector<8xf32>
// CHECK: vector.load %[[K]]
// CHECK: arith.extf
// CHECK: varlen.online_attn kq ins({{.*}} : tensor<8x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>)
// CHECK: arith.truncf %{{.*}} : vector<8xf32> to vector<8xbf16>
func.func @converted(%q: memref<?x1x8xbf16>, %k: memref<?x1x8xbf16>, %v: memref<?x1x8xbf16>, %cu: memref<?xi32>, %out: memref<?x1x8xbf16>, %lse: memref<1x?xf32>) {
  varlen.attn %q, %k, %v, %cu, %cu outs(%out, %lse) {varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 1, rows = 8, panels = 1, kv_block = 16, kv = copy>} : (memref<?x1x8xbf16>, memref<?x1x8xbf16>, memref<?x1x8xbf16>, memref<?xi32>, memref<?xi32>, memref<?x1x8xbf16>, memref<1x?xf32>) -> ()
  return
}

// -----

// In pairs, tiles stay bf16: words of two are transposed, two rows of values
// interleaved.

// CHECK-DAG: #[[$COLUMNS:.*]] = affine_map<(d0, d1) -> (d1 floordiv 2, d0 * 2 + d1 mod 2)>
// CHECK-DAG: #[[$ROWS:.*]] = affine_map<(d0, d1) -> (d0 floordiv 2, d1 * 2 + d0 mod 2)>
// CHECK-LABEL: @pairs
// CHECK: vector.bitcast %{{.*}} : vector<16xbf16> to vector<8xi32>
// CHECK: vector.interleave
// CHECK: builtin.unrealized_conversion_cast %{{.*}} to memref<8x16xbf16, #[[$COLUMNS]]>
// CHECK: builtin.unrealized_conversion_cast %{{.*}} to memref<?x16xbf16, #[[$ROWS]]>
// CHECK: varlen.online_attn kq ins({{.*}} : tensor<8x16xbf16>, tensor<?x16xbf16>, tensor<?x16xbf16>)
func.func @pairs(%q: memref<?x1x16xbf16>, %k: memref<?x1x16xbf16>, %v: memref<?x1x16xbf16>, %cu: memref<?xi32>, %out: memref<?x1x16xbf16>, %lse: memref<1x?xf32>) {
  varlen.attn %q, %k, %v, %cu, %cu outs(%out, %lse) {varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 1, rows = 8, panels = 1, kv_block = 16, kv = pairs>} : (memref<?x1x16xbf16>, memref<?x1x16xbf16>, memref<?x1x16xbf16>, memref<?xi32>, memref<?xi32>, memref<?x1x16xbf16>, memref<1x?xf32>) -> ()
  return
}

// -----

// A sink is a logit beside those of the keys, but not of rows that belong to no
// sequence: it is added to what the steps leave.

// CHECK-LABEL: @sink
// CHECK-SAME: %[[SINK:[^:]*]]: memref<1xf32>
// CHECK: varlen.online_attn
// CHECK: %[[OWNED:.*]] = arith.cmpi sge, %{{.*}}, %c0
// CHECK: %[[S:.*]] = memref.load %[[SINK]]
// CHECK: %[[LOGIT:.*]] = arith.select %[[OWNED]], %[[S]], %{{.*}} : f32
// CHECK: arith.subf %[[LOGIT]]
// CHECK: math.exp2
func.func @sink(%q: memref<?x1x8xf32>, %k: memref<?x1x8xf32>, %v: memref<?x1x8xf32>, %cu: memref<?xi32>, %sink: memref<1xf32>, %out: memref<?x1x8xf32>, %lse: memref<1x?xf32>) {
  varlen.attn %q, %k, %v, %cu, %cu sink(%sink) outs(%out, %lse) {varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 1, rows = 8, panels = 1, kv_block = 16, kv = copy>} : (memref<?x1x8xf32>, memref<?x1x8xf32>, memref<?x1x8xf32>, memref<?xi32>, memref<?xi32>, memref<1xf32>, memref<?x1x8xf32>, memref<1x?xf32>) -> ()
  return
}

// -----

// Without a schedule, or on tensors, an attention is left to other passes.

// CHECK-LABEL: @left
// CHECK: varlen.attn
func.func @left(%q: memref<?x1x8xf32>, %k: memref<?x1x8xf32>, %v: memref<?x1x8xf32>, %cu: memref<?xi32>, %out: memref<?x1x8xf32>, %lse: memref<1x?xf32>) {
  varlen.attn %q, %k, %v, %cu, %cu outs(%out, %lse) : (memref<?x1x8xf32>, memref<?x1x8xf32>, memref<?x1x8xf32>, memref<?xi32>, memref<?xi32>, memref<?x1x8xf32>, memref<1x?xf32>) -> ()
  return
}
