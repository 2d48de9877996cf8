// RUN: varlen-opt %s --varlen-place-tiles --split-input-file | FileCheck %s
// RUN: varlen-opt %s --varlen-place-tiles --one-shot-bufferize --canonicalize --split-input-file | FileCheck %s --check-prefix=BUFFERS

// A score tile is a slice of one of kv_block rows. No memory has a dynamic size then, and
// nothing is copied.

// CHECK-LABEL: @step
// CHECK: %[[WHOLE:.*]] = tensor.empty() : tensor<32x16xf32>
// CHECK: %[[TILE:.*]] = tensor.extract_slice %[[WHOLE]][0, 0] [%[[KEYS:.*]], 16] [1, 1] : tensor<32x16xf32> to tensor<?x16xf32>
// CHECK: linalg.generic {{.*}} outs(%[[TILE]] : tensor<?x16xf32>)
// CHECK: tensor.empty() : tensor<1x16xf32>
// CHECK-NOT: tensor.extract_slice
// BUFFERS-LABEL: @step
// BUFFERS: memref.alloc() {{.*}} : memref<32x16xf32>
// BUFFERS-NOT: memref.alloc
// BUFFERS-NOT: memref.copy
#map = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (0, d1)>
func.func @step(%s: memref<?x16xf32>, %l: memref<1x16xf32>, %keys: index, %n: index) {
  scf.forall (%i) in (%n) {
    %st = bufferization.to_tensor %s restrict : memref<?x16xf32> to tensor<?x16xf32>
    %lt = bufferization.to_tensor %l restrict writable : memref<1x16xf32> to tensor<1x16xf32>
    %e = tensor.empty(%keys) : tensor<?x16xf32>
    %p = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%st : tensor<?x16xf32>) outs(%e : tensor<?x16xf32>) {
    ^bb0(%x: f32, %old: f32):
      %y = math.exp2 %x : f32
      linalg.yield %y : f32
    } -> tensor<?x16xf32>
    %static = tensor.empty() : tensor<1x16xf32>
    %sum = linalg.generic {indexing_maps = [#map, #row], iterator_types = ["reduction", "parallel"]} ins(%p : tensor<?x16xf32>) outs(%lt : tensor<1x16xf32>) {
    ^bb0(%x: f32, %old: f32):
      %y = arith.addf %old, %x : f32
      linalg.yield %y : f32
    } -> tensor<1x16xf32>
    bufferization.materialize_in_destination %sum in restrict writable %l : (tensor<1x16xf32>, memref<1x16xf32>) -> ()
  } {varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 1, kv_block = 32, kv = copy>}
  return
}

// -----

// The second tile lies where the first one does; the operation that reduces, too, reads
// it as what it writes over. The third one does not: the second is read after it.

// CHECK-LABEL: @over
// CHECK: %[[A:.*]] = linalg.generic
// CHECK: %[[B:.*]]:2 = linalg.generic {{.*}} outs(%[[A]], %{{.*}} : tensor<?x16xf32>, tensor<1x16xf32>)
// CHECK-NOT: outs(%[[B]]#0
// CHECK: return
// BUFFERS-LABEL: @over
// BUFFERS-COUNT-2: memref.alloc() {{.*}} : memref<32x16xf32>
// BUFFERS-NOT: memref.alloc
// BUFFERS-NOT: memref.copy
// BUFFERS: return
#map = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (0, d1)>
func.func @over(%s: memref<?x16xf32>, %l: memref<1x16xf32>, %out: memref<?x16xf32>, %keys: index, %n: index) {
  scf.forall (%i) in (%n) {
    %st = bufferization.to_tensor %s restrict : memref<?x16xf32> to tensor<?x16xf32>
    %lt = bufferization.to_tensor %l restrict writable : memref<1x16xf32> to tensor<1x16xf32>
    %e0 = tensor.empty(%keys) : tensor<?x16xf32>
    %a = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%st : tensor<?x16xf32>) outs(%e0 : tensor<?x16xf32>) {
    ^bb0(%x: f32, %old: f32):
      %y = arith.negf %x : f32
      linalg.yield %y : f32
    } -> tensor<?x16xf32>
    %e1 = tensor.empty(%keys) : tensor<?x16xf32>
    %b:2 = linalg.generic {indexing_maps = [#map, #map, #row], iterator_types = ["reduction", "parallel"]} ins(%a : tensor<?x16xf32>) outs(%e1, %lt : tensor<?x16xf32>, tensor<1x16xf32>) {
    ^bb0(%x: f32, %old: f32, %sum: f32):
      %y = math.exp2 %x : f32
      %z = arith.addf %sum, %y : f32
      linalg.yield %y, %z : f32, f32
    } -> (tensor<?x16xf32>, tensor<1x16xf32>)
    %e2 = tensor.empty(%keys) : tensor<?x16xf32>
    %c = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%b#0 : tensor<?x16xf32>) outs(%e2 : tensor<?x16xf32>) {
    ^bb0(%x: f32, %old: f32):
      %y = arith.negf %x : f32
      linalg.yield %y : f32
    } -> tensor<?x16xf32>
    %o = bufferization.to_tensor %out restrict writable : memref<?x16xf32> to tensor<?x16xf32>
    %d = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel"]} ins(%b#0, %c : tensor<?x16xf32>, tensor<?x16xf32>) outs(%o : tensor<?x16xf32>) {
    ^bb0(%x: f32, %z: f32, %old: f32):
      %y = arith.mulf %x, %z : f32
      linalg.yield %y : f32
    } -> tensor<?x16xf32>
    bufferization.materialize_in_destination %d in restrict writable %out : (tensor<?x16xf32>, memref<?x16xf32>) -> ()
    bufferization.materialize_in_destination %b#1 in restrict writable %l : (tensor<1x16xf32>, memref<1x16xf32>) -> ()
  } {varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 1, kv_block = 32, kv = copy>}
  return
}

// -----

// Pairs of rows are half as many; what has no schedule or is no tile stays.

// CHECK-LABEL: @others
// CHECK: tensor.extract_slice %{{.*}}[0, 0, 0] [%{{.*}}, 16, 2] [1, 1, 1] : tensor<16x16x2xbf16> to tensor<?x16x2xbf16>
// CHECK-NOT: tensor.extract_slice
// CHECK: return
func.func @others(%keys: index, %n: index) -> tensor<?x16xf32> {
  scf.forall (%i) in (%n) {
    %0 = tensor.empty(%keys) : tensor<?x16x2xbf16>
  } {varlen.schedule = #varlen.cpu_schedule<lanes = 16, vectors = 1, rows = 8, panels = 1, kv_block = 32, kv = pairs>}
  scf.forall (%i) in (%n) {
    %0 = tensor.empty(%keys, %keys) : tensor<?x?xf32>
    %1 = tensor.empty(%keys) : tensor<?xf32>
  } {varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 1, kv_block = 32, kv = copy>}
  %2 = tensor.empty(%keys) : tensor<?x16xf32>
  return %2 : tensor<?x16xf32>
}

// -----

// Nothing is read after what is written, which may be what it is made of; but a result is
// not written over what is read later.

// BUFFERS-LABEL: @destination
// BUFFERS-NOT: memref.alloc
// BUFFERS: linalg.generic {{.*}} outs(%{{.*}} : memref<8x16xf32>)
// BUFFERS-NOT: memref.copy
// BUFFERS-LABEL: @transposed
// BUFFERS-NOT: memref.alloc
// BUFFERS: linalg.transpose ins({{.*}}) outs(%{{.*}} : memref<8x16xf32>)
// BUFFERS-NOT: memref.copy
// BUFFERS-LABEL: @read_later
// BUFFERS: memref.alloc
// BUFFERS: memref.copy
#map = affine_map<(d0, d1) -> (d0, d1)>
func.func @destination(%x: memref<8x16xf32>, %y: memref<8x16xf32>, %n: index) {
  scf.forall (%i) in (%n) {
    %t = bufferization.to_tensor %x restrict : memref<8x16xf32> to tensor<8x16xf32>
    %e = tensor.empty() : tensor<8x16xf32>
    %r = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%t : tensor<8x16xf32>) outs(%e : tensor<8x16xf32>) {
    ^bb0(%a: f32, %old: f32):
      %b = math.exp2 %a : f32
      linalg.yield %b : f32
    } -> tensor<8x16xf32>
    bufferization.materialize_in_destination %r in restrict writable %y : (tensor<8x16xf32>, memref<8x16xf32>) -> ()
  } {varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 1, kv_block = 32, kv = copy>}
  return
}
func.func @transposed(%t: tensor<16x8xf32>, %y: memref<8x16xf32>, %n: index) {
  scf.forall (%i) in (%n) {
    %e = tensor.empty() : tensor<8x16xf32>
    %r = linalg.transpose ins(%t : tensor<16x8xf32>) outs(%e : tensor<8x16xf32>) permutation = [1, 0]
    bufferization.materialize_in_destination %r in restrict writable %y : (tensor<8x16xf32>, memref<8x16xf32>) -> ()
  } {varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 1, kv_block = 32, kv = copy>}
  return
}
func.func @read_later(%x: memref<8x16xf32>, %y: memref<8x16xf32>, %z: memref<8x16xf32>, %n: index) {
  scf.forall (%i) in (%n) {
    %t = bufferization.to_tensor %x restrict : memref<8x16xf32> to tensor<8x16xf32>
    %e = tensor.empty() : tensor<8x16xf32>
    %r = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%t : tensor<8x16xf32>) outs(%e : tensor<8x16xf32>) {
    ^bb0(%a: f32, %old: f32):
      %b = math.exp2 %a : f32
      linalg.yield %b : f32
    } -> tensor<8x16xf32>
    bufferization.materialize_in_destination %t in restrict writable %z : (tensor<8x16xf32>, memref<8x16xf32>) -> ()
    bufferization.materialize_in_destination %r in restrict writable %y : (tensor<8x16xf32>, memref<8x16xf32>) -> ()
  } {varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 1, kv_block = 32, kv = copy>}
  return
}

// -----

// What rounds a transposed tile, or the rows of it that there are, reads the tile itself.

// CHECK-LABEL: @rounded
// CHECK: %[[TILE:.*]] = bufferization.to_tensor
// CHECK: %[[PART:.*]] = tensor.extract_slice %[[TILE]][0, 0] [24, %[[COUNT:.*]]] [1, 1]
// CHECK-NOT: linalg.transpose
// CHECK: linalg.generic {{.*}} ins(%[[PART]] : tensor<24x?xf32>) outs(%{{.*}} : tensor<?x24xbf16>)
// CHECK-NEXT: ^bb0
// CHECK-NEXT: arith.truncf
// BUFFERS-LABEL: @rounded
// BUFFERS-NOT: memref.alloc
// BUFFERS-NOT: memref.copy
// BUFFERS: linalg.generic {{.*}} ins(%{{.*}} : memref<24x?xf32, {{.*}}>) outs(%{{.*}} : memref<?x24xbf16>)
#map = affine_map<(d0, d1) -> (d0, d1)>
func.func @rounded(%acc: memref<24x8xf32>, %out: memref<?x24xbf16>, %count: index, %n: index) {
  scf.forall (%i) in (%n) {
    %t = bufferization.to_tensor %acc restrict : memref<24x8xf32> to tensor<24x8xf32>
    %e = tensor.empty() : tensor<8x24xf32>
    %o = linalg.transpose ins(%t : tensor<24x8xf32>) outs(%e : tensor<8x24xf32>) permutation = [1, 0]
    %rows = tensor.extract_slice %o[0, 0] [%count, 24] [1, 1] : tensor<8x24xf32> to tensor<?x24xf32>
    %narrow = tensor.empty(%count) : tensor<?x24xbf16>
    %r = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%rows : tensor<?x24xf32>) outs(%narrow : tensor<?x24xbf16>) {
    ^bb0(%x: f32, %old: bf16):
      %y = arith.truncf %x : f32 to bf16
      linalg.yield %y : bf16
    } -> tensor<?x24xbf16>
    bufferization.materialize_in_destination %r in restrict writable %out : (tensor<?x24xbf16>, memref<?x24xbf16>) -> ()
  } {varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 1, rows = 8, panels = 1, kv_block = 32, kv = copy>}
  return
}
