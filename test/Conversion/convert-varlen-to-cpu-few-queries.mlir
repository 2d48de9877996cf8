// RUN: varlen-opt %s --varlen-tile-attn --varlen-split-kv --varlen-specialize-few --convert-varlen-to-cpu --canonicalize --split-input-file | FileCheck %s

// A tile of at most half a vector of queries, or of a quarter where keys are few:
// they are rows, keys and values are read where they are, and the form with panels
// is a branch of its own.

// CHECK-LABEL: @grouped
// CHECK-SAME: %[[Q:[^:]*]]: memref<?x4x16xf32>, %[[K:[^:]*]]: memref<?x2x16xf32>, %[[V:[^:]*]]: memref<?x2x24xf32>, %{{[^:]*}}: memref<?xi32>, %[[OUT:[^:]*]]: memref<?x4x24xf32>, %[[LSE:[^:]*]]: memref<4x?xf32>
// The list says which tiles these are.
// CHECK: %[[ITEMS:.*]], %{{.*}}, %{{.*}}, %[[SLOTS:.*]] = varlen.split_tiles %{{.*}} group %c2 kv_block 32 few 4 parts(16, 8)
// CHECK: %[[LEFT:.*]] = memref.alloc(%[[SLOTS]]) {alignment = 64 : i64} : memref<?x4x24xf32>
// CHECK: scf.forall
// CHECK: %[[ITEM:.*]]:13 = varlen.read_work %[[ITEMS]]
// CHECK: %[[IS_MERGE:.*]] = arith.cmpi eq, %[[ITEM]]#10, %c2
// CHECK: %[[FEW:.*]] = arith.cmpi sgt, %[[ITEM]]#11, %c0
// CHECK: scf.if %[[FEW]] {
// CHECK: %[[QS:.*]] = memref.alloc() {alignment = 64 : i64} : memref<1x4x16xf32>
// CHECK: %[[LO:.*]] = memref.alloc() {alignment = 64 : i64} : memref<4x1xi32>
// CHECK: %[[HI:.*]] = memref.alloc() {alignment = 64 : i64} : memref<4x1xi32>
// The state of all parts and that of one.
// CHECK: %[[ACCS:.*]] = memref.alloc() {alignment = 64 : i64} : memref<2x4x24xf32>
// CHECK: %[[MS:.*]] = memref.alloc() {alignment = 64 : i64} : memref<2x4x1xf32>
// CHECK: %[[LS:.*]] = memref.alloc() {alignment = 64 : i64} : memref<2x4x1xf32>
// The queries and the keys that each sees.
// CHECK: %[[Q0:.*]] = memref.subview %[[QS]][0, 0, 0] [1, 4, 16]
// CHECK: %[[QUSED:.*]] = memref.subview %[[Q0]][0, 0] [%{{.*}}, 16]
// CHECK: varlen.read_rows %[[Q]] rows(%[[ITEM]]#0, %[[ITEM]]#3, %[[ITEM]]#1, %c2) valid(%{{.*}}) to %{{.*}} as rows
// CHECK: varlen.key_limits mask <full> pairs(%[[ITEM]]#1, %c2) valid(%{{.*}}) of(%[[ITEM]]#6, %[[ITEM]]#5) to %[[LO]], %[[HI]] : memref<4x1xi32>, memref<4x1xi32>
// Parts of the keys, each with a state of its own.
// CHECK: scf.for %[[PART:[^ ]*]] = %{{.*}} to %{{.*}} step %c1 {
// CHECK: %[[ACC:.*]] = memref.subview %[[ACCS]][%{{.*}}, 0, 0] [1, 4, 24]
// CHECK: %[[M:.*]] = memref.subview %[[MS]][%{{.*}}, 0, 0] [1, 4, 1]
// CHECK: %[[L:.*]] = memref.subview %[[LS]][%{{.*}}, 0, 0] [1, 4, 1]
// CHECK: scf.if %[[IS_MERGE]] {
// CHECK: %[[LEFT_ACC:.*]] = memref.subview %[[LEFT]]
// CHECK: varlen.for_queries qk {{.*}} ins(%[[LEFT_ACC]],{{.*}} outs(%[[ACC]] as scratch, %[[M]] as scratch, %[[L]] as scratch :
// CHECK: } else {
// CHECK: varlen.for_queries qk {{.*}} outs(%[[ACC]] as scratch, %[[M]] as scratch, %[[L]] as scratch :
// CHECK: varlen.online_init qk scale 2.500000e-01 : tensor<4x24xf32>, tensor<4x1xf32>
// The blocks of keys, whose rows products ask for. The state goes from block to block as tensors.
// CHECK: %[[BEGIN:.*]] = bufferization.to_tensor %[[ACC]] restrict
// CHECK: %[[LAST:.*]]:3 = scf.for %[[K0:.*]] = %{{.*}} to %{{.*}} step %c32 iter_args(%[[SO_FAR:[^ ]*]] = %[[BEGIN]],
// CHECK-NOT: varlen.prefetch_rows
// CHECK: scf.if
// CHECK: %[[COUNT:.*]] = arith.minsi %{{.*}}, %c32
// CHECK: %[[USED:.*]] = tensor.extract_slice %[[SO_FAR]][0, 0] [%{{.*}}, 24] [1, 1]
// CHECK: varlen.load_rows %[[K]] rows(%{{.*}}, %{{.*}}, %[[K0]]) valid(%[[COUNT]]) : memref<?x2x16xf32> -> tensor<?x16xf32>
// CHECK: varlen.load_rows %[[V]] rows(%{{.*}}, %{{.*}}, %[[K0]]) valid(%[[COUNT]]) : memref<?x2x24xf32> -> tensor<?x24xf32>
// CHECK: %[[NEW:.*]], %{{.*}}, %{{.*}} = varlen.online_attn qk ins({{.*}} : tensor<?x16xf32>, tensor<?x16xf32>, tensor<?x24xf32>) limits({{.*}} : tensor<?x1xi32>, tensor<?x1xi32>, i32) seen(%{{.*}}, %{{.*}}) outs(%[[USED]],{{.*}} : tensor<?x24xf32>, tensor<?x1xf32>, tensor<?x1xf32>) scale 2.500000e-01
// CHECK: tensor.insert_slice %[[NEW]] into %[[SO_FAR]][0, 0]
// CHECK: bufferization.materialize_in_destination %[[LAST]]#0 in restrict writable %[[ACC]]
// The parts become one in their order.
// CHECK: arith.cmpi sgt, %[[PART]], %c0
// CHECK: varlen.for_queries qk
// CHECK: varlen.online_merge qk
// CHECK: varlen.for_queries qk rows(%[[ITEM]]#0, %[[ITEM]]#3, %[[ITEM]]#1, %c2) {{.*}} outs(%[[OUT]] as rows, %[[LSE]] as numbers :
// CHECK: varlen.online_finish qk %{{.*}}, %{{.*}}, %{{.*}} scale 2.500000e-01 : tensor<4x24xf32>, tensor<4x1xf32>
// CHECK: }
// CHECK: %[[MANY:.*]] = arith.cmpi sle, %[[ITEM]]#11, %c0
// CHECK: scf.if %[[MANY]] {
// CHECK: varlen.online_attn kq
// CHECK: } {varlen.schedule = #varlen.cpu_schedule<lanes = 8,
func.func @grouped(%q: memref<?x4x16xf32>, %k: memref<?x2x16xf32>, %v: memref<?x2x24xf32>, %cu: memref<?xi32>, %out: memref<?x4x24xf32>, %lse: memref<4x?xf32>) {
  varlen.attn %q, %k, %v, %cu, %cu outs(%out, %lse) {varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 2, kv_block = 32, kv = copy>} : (memref<?x4x16xf32>, memref<?x2x16xf32>, memref<?x2x24xf32>, memref<?xi32>, memref<?xi32>, memref<?x4x24xf32>, memref<4x?xf32>) -> ()
  return
}

// -----

// Narrow values stay narrow, whatever panels make of them, and the end of the
// state takes probabilities for rounded; each query has the sink of its head.

// CHECK-LABEL: @narrow
// CHECK-SAME: %[[SINK:[^:]*]]: memref<2xf32>
// CHECK: %[[S:.*]] = memref.load %[[SINK]]
// CHECK: memref.store %[[S]], %{{.*}} : memref<4x1xf32>
// CHECK: varlen.online_attn qk ins({{.*}} : tensor<?x8xf16>, tensor<?x8xf16>, tensor<?x8xf16>)
// CHECK: varlen.for_queries qk {{.*}} outs(%{{.*}} as rows, %{{.*}} as numbers : memref<?x2x8xf16>,
// CHECK: varlen.online_finish qk %{{.*}}, %{{.*}}, %{{.*}} sink(%{{.*}} : tensor<4x1xf32>) scale 1.000000e+00 rounded
// CHECK: varlen.online_attn kq ins({{.*}} : tensor<8x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>)
func.func @narrow(%q: memref<?x2x8xf16>, %k: memref<?x1x8xf16>, %v: memref<?x1x8xf16>, %cu: memref<?xi32>, %sink: memref<2xf32>, %out: memref<?x2x8xf16>, %lse: memref<2x?xf32>) {
  varlen.attn %q, %k, %v, %cu, %cu sink(%sink) outs(%out, %lse) {scale = 1.0 : f32, varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 1, rows = 8, panels = 1, kv_block = 16, kv = copy>} : (memref<?x2x8xf16>, memref<?x1x8xf16>, memref<?x1x8xf16>, memref<?xi32>, memref<?xi32>, memref<2xf32>, memref<?x2x8xf16>, memref<2x?xf32>) -> ()
  return
}
