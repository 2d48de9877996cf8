// RUN: varlen-opt %s --varlen-pair-factors -canonicalize | FileCheck %s

#map = affine_map<(d0, d1) -> (d0, d1)>
#mk = affine_map<(d0, d1, d2) -> (d0, d2)>
#km = affine_map<(d0, d1, d2) -> (d2, d0)>
#kn = affine_map<(d0, d1, d2) -> (d2, d1)>
#mn = affine_map<(d0, d1, d2) -> (d0, d1)>

// Neighbours of a row of the left factor, and two rows of the right one, are pairs of
// the depth: views of memory.

// CHECK-DAG: #[[$LEFT:.*]] = affine_map<(d0, d1, d2, d3) -> (d0, d2, d3)>
// CHECK-DAG: #[[$RIGHT:.*]] = affine_map<(d0, d1, d2, d3) -> (d2, d1, d3)>
// CHECK-DAG: #[[$PAIRS:.*]] = affine_map<(d0, d1) -> (d0 floordiv 2, d1, d0 mod 2)>
// CHECK-LABEL: @rows
// CHECK: %[[A:.*]] = tensor.expand_shape %{{.*}} {{\[}}[0], [1, 2]] output_shape [8, 32, 2] : tensor<8x64xbf16> into tensor<8x32x2xbf16>
// CHECK: %[[K:.*]] = memref.expand_shape %arg1 {{\[}}[0], [1, 2]] output_shape [32, 16, 2] : memref<32x32xbf16> into memref<32x16x2xbf16>
// CHECK: %[[B:.*]] = bufferization.to_tensor %[[K]] restrict
// CHECK: linalg.contract indexing_maps = [#[[$LEFT]], #[[$RIGHT]], #{{.*}}] ins(%[[A]], %[[B]] : tensor<8x32x2xbf16>, tensor<32x16x2xbf16>)
func.func @rows(%q: memref<8x64xbf16>, %k: memref<32x32xbf16>, %o: tensor<8x16xf32>, %n: index) {
  scf.forall (%i) in (%n) {
    %a = bufferization.to_tensor %q restrict : memref<8x64xbf16> to tensor<8x64xbf16>
    %b = varlen.to_tile %k as row_pairs : memref<32x32xbf16> to tensor<64x16xbf16>
    %r = linalg.contract indexing_maps = [#mk, #kn, #mn]
        ins(%a, %b : tensor<8x64xbf16>, tensor<64x16xbf16>) outs(%o : tensor<8x16xf32>) -> tensor<8x16xf32>
    %m = memref.alloc() : memref<8x16xf32>
    bufferization.materialize_in_destination %r in restrict writable %m : (tensor<8x16xf32>, memref<8x16xf32>) -> ()
  } {varlen.schedule = #varlen.cpu_schedule<lanes = 16, vectors = 1, rows = 8, panels = 1, kv_block = 32, kv = pairs>}
  return
}

// A slice is one of half as many rows of pairs. What is rounded is so where pairs are
// made of it.

// CHECK-LABEL: @computed
// CHECK: %[[P:.*]] = linalg.generic {indexing_maps = [#{{.*}}, #[[$PAIRS]]], iterator_types = ["parallel", "parallel"]} ins(%{{.*}} : tensor<?x16xf32>)
// CHECK: arith.truncf %{{.*}} to_nearest_away : f32 to bf16
// CHECK: %[[SLICE:.*]] = tensor.extract_slice %{{.*}}[%{{.*}}, 0, 0] [%{{.*}}, 8, 2] [1, 1, 1] : tensor<?x8x2xbf16> to tensor<?x8x2xbf16>
// CHECK: %[[RIGHT:.*]] = tensor.extract_slice %[[P]][%{{.*}}, 0, 0] [%{{.*}}, 16, 2] [1, 1, 1]
// CHECK: linalg.contract {{.*}} {varlen.add_last} ins(%[[SLICE]], %[[RIGHT]] : tensor<?x8x2xbf16>, tensor<?x16x2xbf16>)
func.func @computed(%scores: memref<?x16xf32>, %v: memref<?x16xbf16>, %o: tensor<8x16xf32>, %first: index, %half: index, %n: index) {
  scf.forall (%i) in (%n) {
    %c0 = arith.constant 0 : index
    %c2 = arith.constant 2 : index
    %begin = arith.muli %first, %c2 : index
    %count = arith.muli %half, %c2 : index
    %s = bufferization.to_tensor %scores restrict : memref<?x16xf32> to tensor<?x16xf32>
    %a = varlen.to_tile %v as row_pairs : memref<?x16xbf16> to tensor<?x8xbf16>
    %pairs = memref.dim %v, %c0 : memref<?x16xbf16>
    %rows = arith.muli %pairs, %c2 : index
    %e = tensor.empty(%rows) : tensor<?x16xbf16>
    %p = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]}
        ins(%s : tensor<?x16xf32>) outs(%e : tensor<?x16xbf16>) {
    ^bb0(%x: f32, %old: bf16):
      %y = arith.truncf %x : f32 to bf16
      linalg.yield %y : bf16
    } -> tensor<?x16xbf16>
    %left = tensor.extract_slice %a[%begin, 0] [%count, 8] [1, 1] : tensor<?x8xbf16> to tensor<?x8xbf16>
    %right = tensor.extract_slice %p[%begin, 0] [%count, 16] [1, 1] : tensor<?x16xbf16> to tensor<?x16xbf16>
    %r = linalg.contract indexing_maps = [#km, #kn, #mn]
        ins(%left, %right : tensor<?x8xbf16>, tensor<?x16xbf16>) outs(%o : tensor<8x16xf32>) {varlen.add_last} -> tensor<8x16xf32>
    %m = memref.alloc() : memref<8x16xf32>
    bufferization.materialize_in_destination %r in restrict writable %m : (tensor<8x16xf32>, memref<8x16xf32>) -> ()
  } {varlen.schedule = #varlen.cpu_schedule<lanes = 16, vectors = 1, rows = 8, panels = 1, kv_block = 32, kv = pairs>}
  return
}

// Of which some rows are computed: pairs of these, in the pairs of all.

// CHECK-LABEL: @parts
// CHECK: %[[ALL:.*]] = tensor.empty(%{{.*}}) : tensor<?x16x2xbf16>
// CHECK: %[[SOME:.*]] = tensor.extract_slice %[[ALL]][%{{.*}}, 0, 0] [%{{.*}}, 16, 2] [1, 1, 1]
// CHECK: %[[P:.*]] = linalg.generic {indexing_maps = [#{{.*}}, #[[$PAIRS]]], iterator_types = ["parallel", "parallel"]} ins(%{{.*}} : tensor<?x16xf32>) outs(%[[SOME]]
// CHECK: %[[NEXT:.*]] = tensor.insert_slice %[[P]] into %[[ALL]]
// CHECK: %[[RIGHT:.*]] = tensor.extract_slice %[[NEXT]][%{{.*}}, 0, 0] [%{{.*}}, 16, 2] [1, 1, 1]
// CHECK: linalg.contract {{.*}} ins(%{{.*}}, %[[RIGHT]] : tensor<?x8x2xbf16>, tensor<?x16x2xbf16>)
func.func @parts(%scores: memref<?x16xf32>, %v: memref<?x16xbf16>, %o: tensor<8x16xf32>, %first: index, %half: index, %n: index) {
  scf.forall (%i) in (%n) {
    %c0 = arith.constant 0 : index
    %c2 = arith.constant 2 : index
    %begin = arith.muli %first, %c2 : index
    %count = arith.muli %half, %c2 : index
    %s = bufferization.to_tensor %scores restrict : memref<?x16xf32> to tensor<?x16xf32>
    %a = varlen.to_tile %v as row_pairs : memref<?x16xbf16> to tensor<?x8xbf16>
    %pairs = memref.dim %v, %c0 : memref<?x16xbf16>
    %rows = arith.muli %pairs, %c2 : index
    %e = tensor.empty(%rows) : tensor<?x16xbf16>
    %part = tensor.extract_slice %s[%begin, 0] [%count, 16] [1, 1] : tensor<?x16xf32> to tensor<?x16xf32>
    %ep = tensor.extract_slice %e[%begin, 0] [%count, 16] [1, 1] : tensor<?x16xbf16> to tensor<?x16xbf16>
    %rounded = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]}
        ins(%part : tensor<?x16xf32>) outs(%ep : tensor<?x16xbf16>) {
    ^bb0(%x: f32, %old: bf16):
      %y = arith.truncf %x : f32 to bf16
      linalg.yield %y : bf16
    } -> tensor<?x16xbf16>
    %p = tensor.insert_slice %rounded into %e[%begin, 0] [%count, 16] [1, 1] : tensor<?x16xbf16> into tensor<?x16xbf16>
    %left = tensor.extract_slice %a[%begin, 0] [%count, 8] [1, 1] : tensor<?x8xbf16> to tensor<?x8xbf16>
    %right = tensor.extract_slice %p[%begin, 0] [%count, 16] [1, 1] : tensor<?x16xbf16> to tensor<?x16xbf16>
    %r = linalg.contract indexing_maps = [#km, #kn, #mn]
        ins(%left, %right : tensor<?x8xbf16>, tensor<?x16xbf16>) outs(%o : tensor<8x16xf32>) {varlen.add_last} -> tensor<8x16xf32>
    %m = memref.alloc() : memref<8x16xf32>
    bufferization.materialize_in_destination %r in restrict writable %m : (tensor<8x16xf32>, memref<8x16xf32>) -> ()
  } {varlen.schedule = #varlen.cpu_schedule<lanes = 16, vectors = 1, rows = 8, panels = 1, kv_block = 32, kv = pairs>}
  return
}

// Rows that may begin within a pair: pairs of the part, and of all that has it, by
// themselves.

// CHECK-LABEL: @odd
// CHECK: %[[P:.*]] = tensor.insert_slice %{{.*}} into %{{.*}}[1, 0] [3, 16] [1, 1] : tensor<3x16xbf16> into tensor<8x16xbf16>
// CHECK: %[[RIGHT:.*]] = linalg.generic {indexing_maps = [#{{.*}}, #[[$PAIRS]]], {{.*}}} ins(%[[P]] : tensor<8x16xbf16>) outs(%{{.*}} : tensor<4x16x2xbf16>)
// CHECK: %[[PART:.*]] = tensor.extract_slice %{{.*}}[%{{.*}}, 0] [8, 8] [1, 1] : tensor<16x8xbf16> to tensor<8x8xbf16>
// CHECK: %[[LEFT:.*]] = linalg.generic {indexing_maps = [#{{.*}}, #[[$PAIRS]]], {{.*}}} ins(%[[PART]] : tensor<8x8xbf16>) outs(%{{.*}} : tensor<4x8x2xbf16>)
// CHECK: linalg.contract {{.*}} ins(%[[LEFT]], %[[RIGHT]] : tensor<4x8x2xbf16>, tensor<4x16x2xbf16>)
func.func @odd(%rows: memref<3x16xbf16>, %v: memref<16x8xbf16>, %begin: index, %o: tensor<8x16xf32>, %n: index) {
  scf.forall (%i) in (%n) {
    %part = bufferization.to_tensor %rows restrict : memref<3x16xbf16> to tensor<3x16xbf16>
    %values = bufferization.to_tensor %v restrict : memref<16x8xbf16> to tensor<16x8xbf16>
    %zero = arith.constant 0.0 : bf16
    %e = tensor.empty() : tensor<8x16xbf16>
    %zeros = linalg.fill ins(%zero : bf16) outs(%e : tensor<8x16xbf16>) -> tensor<8x16xbf16>
    %p = tensor.insert_slice %part into %zeros[1, 0] [3, 16] [1, 1] : tensor<3x16xbf16> into tensor<8x16xbf16>
    %left = tensor.extract_slice %values[%begin, 0] [8, 8] [1, 1] : tensor<16x8xbf16> to tensor<8x8xbf16>
    %r = linalg.contract indexing_maps = [#km, #kn, #mn]
        ins(%left, %p : tensor<8x8xbf16>, tensor<8x16xbf16>) outs(%o : tensor<8x16xf32>) -> tensor<8x16xf32>
    %m = memref.alloc() : memref<8x16xf32>
    bufferization.materialize_in_destination %r in restrict writable %m : (tensor<8x16xf32>, memref<8x16xf32>) -> ()
  } {varlen.schedule = #varlen.cpu_schedule<lanes = 16, vectors = 1, rows = 8, panels = 1, kv_block = 32, kv = pairs>}
  return
}

// A tile that loops compute part by part: they carry its pairs, too.

// CHECK-LABEL: @loops
// CHECK: %[[ALL:.*]] = tensor.empty() : tensor<16x16x2xbf16>
// CHECK: %[[OUTER:.*]]:2 = scf.for {{.*}} iter_args(%{{.*}} = %{{.*}}, %[[A:.*]] = %[[ALL]])
// CHECK: %[[INNER:.*]]:2 = scf.for %[[ROW:.*]] = %c0 to %{{.*}} step %c8 iter_args(%{{.*}} = %{{.*}}, %[[B:.*]] = %[[A]])
// CHECK: %[[HALF:.*]] = arith.divui %{{.*}}, %c2_i32
// CHECK: %[[AT:.*]] = arith.index_cast %[[HALF]]
// CHECK: %[[INTO:.*]] = tensor.extract_slice %[[B]][%[[AT]], %{{.*}}, 0] [4, 8, 2] [1, 1, 1]
// CHECK: %[[PAIRS:.*]] = linalg.generic {{.*}} outs(%[[INTO]] : tensor<4x8x2xbf16>)
// CHECK: tensor.insert_slice %[[PAIRS]] into %[[B]][%[[AT]],
// CHECK: scf.yield %[[INNER]]#0, %[[INNER]]#1
// CHECK: linalg.contract {{.*}} ins(%{{.*}}, %[[OUTER]]#1 : tensor<8x16x2xbf16>, tensor<16x16x2xbf16>)
func.func @loops(%scores: memref<32x16xf32>, %v: memref<8x32xbf16>, %end: index, %o: tensor<8x16xf32>, %n: index) {
  scf.forall (%i) in (%n) {
    %c0 = arith.constant 0 : index
    %c8 = arith.constant 8 : index
    %c16 = arith.constant 16 : index
    %s = bufferization.to_tensor %scores restrict : memref<32x16xf32> to tensor<32x16xf32>
    %a = bufferization.to_tensor %v restrict : memref<8x32xbf16> to tensor<8x32xbf16>
    %e = tensor.empty() : tensor<32x16xbf16>
    %p = scf.for %column = %c0 to %c16 step %c8 iter_args(%before = %e) -> tensor<32x16xbf16> {
      %next = scf.for %row = %c0 to %end step %c8 iter_args(%tile = %before) -> tensor<32x16xbf16> {
        %from = tensor.extract_slice %s[%row, %column] [8, 8] [1, 1] : tensor<32x16xf32> to tensor<8x8xf32>
        %er = tensor.empty() : tensor<8x8xbf16>
        %rounded = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]}
            ins(%from : tensor<8x8xf32>) outs(%er : tensor<8x8xbf16>) {
        ^bb0(%x: f32, %old: bf16):
          %y = arith.truncf %x : f32 to bf16
          linalg.yield %y : bf16
        } -> tensor<8x8xbf16>
        %all = tensor.insert_slice %rounded into %tile[%row, %column] [8, 8] [1, 1] : tensor<8x8xbf16> into tensor<32x16xbf16>
        scf.yield %all : tensor<32x16xbf16>
      }
      scf.yield %next : tensor<32x16xbf16>
    }
    %r = linalg.contract indexing_maps = [#mk, #kn, #mn]
        ins(%a, %p : tensor<8x32xbf16>, tensor<32x16xbf16>) outs(%o : tensor<8x16xf32>) -> tensor<8x16xf32>
    %m = memref.alloc() : memref<8x16xf32>
    bufferization.materialize_in_destination %r in restrict writable %m : (tensor<8x16xf32>, memref<8x16xf32>) -> ()
  } {varlen.schedule = #varlen.cpu_schedule<lanes = 16, vectors = 1, rows = 8, panels = 1, kv_block = 32, kv = pairs>}
  return
}
