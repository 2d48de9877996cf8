// RUN: varlen-opt %s --varlen-cut-products -canonicalize | FileCheck %s

#map = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (0, d1)>
#mk = affine_map<(d0, d1, d2) -> (d0, d2)>
#km = affine_map<(d0, d1, d2) -> (d2, d0)>
#kn = affine_map<(d0, d1, d2) -> (d2, d1)>
#mn = affine_map<(d0, d1, d2) -> (d0, d1)>

// Rows are keys: the columns that see one of 8 of them, the first and last of which
// are looked for from those of the rows before.

// CHECK-LABEL: @key_rows
// CHECK: %[[P:.*]] = linalg.generic
// CHECK: scf.for %[[ROW:.*]] = %c0 to %{{.*}} step %c8 iter_args(%[[R:.*]] = %{{.*}}, %[[B:.*]] = %{{.*}}, %[[E:.*]] = %{{.*}})
// CHECK: %[[BEGIN:.*]] = scf.while (%{{.*}} = %[[B]])
// CHECK: scf.while (%{{.*}} = %[[E]])
// CHECK: %[[LEFT:.*]] = tensor.extract_slice %[[P]][%[[ROW]], %[[AT:.*]]] [8, %[[DEPTH:.*]]] [1, 1]
// CHECK: %[[RIGHT:.*]] = tensor.extract_slice %{{.*}}[%[[AT]], 0] [%[[DEPTH]], 16] [1, 1]
// CHECK: linalg.contract {{.*}} ins(%[[LEFT]], %[[RIGHT]] : tensor<8x?xf32>, tensor<?x16xf32>)
func.func @key_rows(%scores: memref<?x16xf32>, %q: memref<16x16xf32>, %lo: memref<1x16xi32>, %hi: memref<1x16xi32>, %first: i32,
                %whole: i1, %keys: index, %n: index, %out: memref<?x16xf32>) {
  %HID = arith.constant 0.0 : f32
  scf.forall (%t) in (%n) {
    %l = bufferization.to_tensor %lo restrict : memref<1x16xi32> to tensor<1x16xi32>
    %h = bufferization.to_tensor %hi restrict : memref<1x16xi32> to tensor<1x16xi32>
    %s = bufferization.to_tensor %scores restrict : memref<?x16xf32> to tensor<?x16xf32>
    %w = bufferization.to_tensor %q restrict : memref<16x16xf32> to tensor<16x16xf32>
    %o = bufferization.to_tensor %out restrict writable : memref<?x16xf32> to tensor<?x16xf32>
    %ep = tensor.empty(%keys) : tensor<?x16xf32>
    %p = linalg.generic {indexing_maps = [#map, #row, #row, #map], iterator_types = ["parallel", "parallel"]}
        ins(%s, %l, %h : tensor<?x16xf32>, tensor<1x16xi32>, tensor<1x16xi32>)
        outs(%ep : tensor<?x16xf32>) {
    ^bb0(%x: f32, %a: i32, %b: i32, %old: f32):
    %i = linalg.index 0 : index
    %y = varlen.hide %x with %HID at %i limits(%a, %b, %first) unless(%whole) : f32
    linalg.yield %y : f32
    } -> tensor<?x16xf32>
    %r = linalg.contract indexing_maps = [#mk, #kn, #mn]
        ins(%p, %w : tensor<?x16xf32>, tensor<16x16xf32>) outs(%o : tensor<?x16xf32>) -> tensor<?x16xf32>
    bufferization.materialize_in_destination %r in restrict writable %out : (tensor<?x16xf32>, memref<?x16xf32>) -> ()
  } {varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 8, panels = 1, kv_block = 32, kv = copy>}
  return
}

// Rows are queries: the keys that 4 of them see, which are as many as registers have.

// CHECK-LABEL: @query_rows
// CHECK: scf.for %[[ROW:.*]] = %c0 to %c16 step %c4 iter_args(%{{.*}} = %{{.*}}) -> (tensor<16x16xf32>)
// CHECK-NOT: scf.while
// CHECK: tensor.extract %{{.*}}[%c0, %[[ROW]]]
// CHECK: %[[LAST:.*]] = arith.addi %[[ROW]], %c3
// CHECK: tensor.extract %{{.*}}[%c0, %[[LAST]]]
// CHECK: linalg.contract {{.*}} : tensor<?x4xf32>, tensor<?x16xf32>) outs(%{{.*}} : tensor<4x16xf32>)
func.func @query_rows(%scores: memref<?x16xf32>, %k: memref<?x16xf32>, %lo: memref<1x16xi32>, %hi: memref<1x16xi32>, %first: i32,
                %whole: i1, %keys: index, %n: index, %out: memref<16x16xf32>) {
  %HID = arith.constant 0.0 : f32
  scf.forall (%t) in (%n) {
    %l = bufferization.to_tensor %lo restrict : memref<1x16xi32> to tensor<1x16xi32>
    %h = bufferization.to_tensor %hi restrict : memref<1x16xi32> to tensor<1x16xi32>
    %s = bufferization.to_tensor %scores restrict : memref<?x16xf32> to tensor<?x16xf32>
    %w = bufferization.to_tensor %k restrict : memref<?x16xf32> to tensor<?x16xf32>
    %o = bufferization.to_tensor %out restrict writable : memref<16x16xf32> to tensor<16x16xf32>
    %ep = tensor.empty(%keys) : tensor<?x16xf32>
    %p = linalg.generic {indexing_maps = [#map, #row, #row, #map], iterator_types = ["parallel", "parallel"]}
        ins(%s, %l, %h : tensor<?x16xf32>, tensor<1x16xi32>, tensor<1x16xi32>)
        outs(%ep : tensor<?x16xf32>) {
    ^bb0(%x: f32, %a: i32, %b: i32, %old: f32):
    %i = linalg.index 0 : index
    %y = varlen.hide %x with %HID at %i limits(%a, %b, %first) unless(%whole) : f32
    linalg.yield %y : f32
    } -> tensor<?x16xf32>
    %r = linalg.contract indexing_maps = [#km, #kn, #mn]
        ins(%p, %w : tensor<?x16xf32>, tensor<?x16xf32>) outs(%o : tensor<16x16xf32>) -> tensor<16x16xf32>
    bufferization.materialize_in_destination %r in restrict writable %out : (tensor<16x16xf32>, memref<16x16xf32>) -> ()
  } {varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 1, kv_block = 32, kv = copy>}
  return
}

// On the right: the keys of the first vector alone, of both, and of the second alone, in
// the tile that what sums begin with is computed for.

// CHECK-LABEL: @right
// CHECK: scf.for %{{.*}} = %c0 to %c16 step %c8 iter_args(%[[R:.*]] = %{{.*}})
// CHECK: %[[TILE:.*]] = tensor.extract_slice %[[R]]
// CHECK: linalg.generic {{.*}} ins(%[[TILE]] : tensor<8x16xf32>) outs(%[[TILE]] : tensor<8x16xf32>)
// CHECK: linalg.contract {{.*}} : tensor<?x8xf32>, tensor<?x8xf32>) outs(%{{.*}} : tensor<8x8xf32>)
// CHECK: linalg.contract {{.*}} : tensor<?x8xf32>, tensor<?x16xf32>) outs(%{{.*}} : tensor<8x16xf32>)
// CHECK: linalg.contract {{.*}} : tensor<?x8xf32>, tensor<?x8xf32>) outs(%{{.*}} : tensor<8x8xf32>)
// CHECK-NOT: linalg.generic
// CHECK: return
func.func @right(%scores: memref<?x16xf32>, %k: memref<?x16xf32>, %lo: memref<1x16xi32>, %hi: memref<1x16xi32>, %first: i32,
                %whole: i1, %keys: index, %n: index, %out: memref<16x16xf32>) {
  %HID = arith.constant 0.0 : f32
  scf.forall (%t) in (%n) {
    %l = bufferization.to_tensor %lo restrict : memref<1x16xi32> to tensor<1x16xi32>
    %h = bufferization.to_tensor %hi restrict : memref<1x16xi32> to tensor<1x16xi32>
    %s = bufferization.to_tensor %scores restrict : memref<?x16xf32> to tensor<?x16xf32>
    %w = bufferization.to_tensor %k restrict : memref<?x16xf32> to tensor<?x16xf32>
    %o = bufferization.to_tensor %out restrict writable : memref<16x16xf32> to tensor<16x16xf32>
    %ep = tensor.empty(%keys) : tensor<?x16xf32>
    %p = linalg.generic {indexing_maps = [#map, #row, #row, #map], iterator_types = ["parallel", "parallel"]}
        ins(%s, %l, %h : tensor<?x16xf32>, tensor<1x16xi32>, tensor<1x16xi32>)
        outs(%ep : tensor<?x16xf32>) {
    ^bb0(%x: f32, %a: i32, %b: i32, %old: f32):
    %i = linalg.index 0 : index
    %y = varlen.hide %x with %HID at %i limits(%a, %b, %first) unless(%whole) : f32
    linalg.yield %y : f32
    } -> tensor<?x16xf32>
    %eo = tensor.empty() : tensor<16x16xf32>
    %o2 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]}
        ins(%o : tensor<16x16xf32>) outs(%eo : tensor<16x16xf32>) {
    ^bb0(%x: f32, %old: f32):
      %y = arith.mulf %x, %x : f32
      linalg.yield %y : f32
    } -> tensor<16x16xf32>
    %r = linalg.contract indexing_maps = [#km, #kn, #mn]
        ins(%w, %p : tensor<?x16xf32>, tensor<?x16xf32>) outs(%o2 : tensor<16x16xf32>) -> tensor<16x16xf32>
    bufferization.materialize_in_destination %r in restrict writable %out : (tensor<16x16xf32>, memref<16x16xf32>) -> ()
  } {varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 8, panels = 1, kv_block = 32, kv = copy>}
  return
}

// And that of those who read the sums.

// CHECK-LABEL: @read_sums
// CHECK: scf.for %{{.*}} = %c0 to %c16 step %c8 iter_args(%[[R:.*]] = %{{.*}})
// CHECK: %[[TILE:.*]] = tensor.extract_slice %[[R]]
// CHECK: linalg.fill {{.*}} outs(%{{.*}} : tensor<8x16xf32>)
// CHECK: linalg.contract {{.*}} outs(%{{.*}} : tensor<8x8xf32>)
// CHECK: linalg.contract {{.*}} outs(%{{.*}} : tensor<8x16xf32>)
// CHECK: linalg.contract {{.*}} outs(%{{.*}} : tensor<8x8xf32>)
// CHECK: %[[END:.*]] = linalg.generic {{.*}} outs(%[[TILE]] : tensor<8x16xf32>)
// CHECK: tensor.insert_slice %[[END]] into %[[R]]
func.func @read_sums(%scores: memref<?x16xf32>, %k: memref<?x16xf32>, %lo: memref<1x16xi32>, %hi: memref<1x16xi32>, %first: i32,
                %whole: i1, %keys: index, %n: index, %out: memref<16x16xf32>) {
  %HID = arith.constant 0.0 : f32
  scf.forall (%t) in (%n) {
    %l = bufferization.to_tensor %lo restrict : memref<1x16xi32> to tensor<1x16xi32>
    %h = bufferization.to_tensor %hi restrict : memref<1x16xi32> to tensor<1x16xi32>
    %s = bufferization.to_tensor %scores restrict : memref<?x16xf32> to tensor<?x16xf32>
    %w = bufferization.to_tensor %k restrict : memref<?x16xf32> to tensor<?x16xf32>
    %o = bufferization.to_tensor %out restrict writable : memref<16x16xf32> to tensor<16x16xf32>
    %ep = tensor.empty(%keys) : tensor<?x16xf32>
    %p = linalg.generic {indexing_maps = [#map, #row, #row, #map], iterator_types = ["parallel", "parallel"]}
        ins(%s, %l, %h : tensor<?x16xf32>, tensor<1x16xi32>, tensor<1x16xi32>)
        outs(%ep : tensor<?x16xf32>) {
    ^bb0(%x: f32, %a: i32, %b: i32, %old: f32):
    %i = linalg.index 0 : index
    %y = varlen.hide %x with %HID at %i limits(%a, %b, %first) unless(%whole) : f32
    linalg.yield %y : f32
    } -> tensor<?x16xf32>
    %zero = arith.constant 0.0 : f32
    %eo = tensor.empty() : tensor<16x16xf32>
    %o2 = linalg.fill ins(%zero : f32) outs(%eo : tensor<16x16xf32>) -> tensor<16x16xf32>
    %sum = linalg.contract indexing_maps = [#km, #kn, #mn]
        ins(%w, %p : tensor<?x16xf32>, tensor<?x16xf32>) outs(%o2 : tensor<16x16xf32>) -> tensor<16x16xf32>
    %r = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel"]}
        ins(%o, %sum : tensor<16x16xf32>, tensor<16x16xf32>) outs(%eo : tensor<16x16xf32>) {
    ^bb0(%x: f32, %z: f32, %old: f32):
      %y = arith.addf %x, %z : f32
      linalg.yield %y : f32
    } -> tensor<16x16xf32>
    bufferization.materialize_in_destination %r in restrict writable %out : (tensor<16x16xf32>, memref<16x16xf32>) -> ()
  } {varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 8, panels = 1, kv_block = 32, kv = copy>}
  return
}

// What is masked: 8 keys for both vectors, or for the one that sees them. It begins
// with zeros where it is computed only.

// CHECK-LABEL: @result
// CHECK-NOT: linalg.fill
// CHECK: scf.for %{{.*}} = %[[BEGIN:.*]] to %[[END:.*]] step %c8
// CHECK: scf.if
// CHECK: %[[TILE:.*]] = linalg.fill {{.*}} -> tensor<8x16xf32>
// CHECK: linalg.contract {{.*}} outs(%[[TILE]] : tensor<8x16xf32>)
// CHECK: else
// CHECK: linalg.contract {{.*}} outs(%{{.*}} : tensor<8x8xf32>)
func.func @result(%k: memref<?x16xf32>, %q: memref<16x16xf32>, %lo: memref<1x16xi32>, %hi: memref<1x16xi32>, %first: i32,
                %whole: i1, %keys: index, %n: index, %out: memref<?x16xf32>) {
  %HID = arith.constant 0.0 : f32
  scf.forall (%t) in (%n) {
    %l = bufferization.to_tensor %lo restrict : memref<1x16xi32> to tensor<1x16xi32>
    %h = bufferization.to_tensor %hi restrict : memref<1x16xi32> to tensor<1x16xi32>
    %w = bufferization.to_tensor %q restrict : memref<16x16xf32> to tensor<16x16xf32>
    %v = bufferization.to_tensor %k restrict : memref<?x16xf32> to tensor<?x16xf32>
    %e = tensor.empty(%keys) : tensor<?x16xf32>
    %z = linalg.fill ins(%HID : f32) outs(%e : tensor<?x16xf32>) -> tensor<?x16xf32>
    %r = linalg.contract indexing_maps = [#mk, #kn, #mn]
        ins(%v, %w : tensor<?x16xf32>, tensor<16x16xf32>) outs(%z : tensor<?x16xf32>) -> tensor<?x16xf32>
    %ep = tensor.empty(%keys) : tensor<?x16xf32>
    %p = linalg.generic {indexing_maps = [#map, #row, #row, #map], iterator_types = ["parallel", "parallel"]}
        ins(%r, %l, %h : tensor<?x16xf32>, tensor<1x16xi32>, tensor<1x16xi32>)
        outs(%ep : tensor<?x16xf32>) {
    ^bb0(%x: f32, %a: i32, %b: i32, %old: f32):
    %i = linalg.index 0 : index
    %y = varlen.hide %x with %HID at %i limits(%a, %b, %first) unless(%whole) : f32
    linalg.yield %y : f32
    } -> tensor<?x16xf32>
    bufferization.materialize_in_destination %p in restrict writable %out : (tensor<?x16xf32>, memref<?x16xf32>) -> ()
  } {varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 8, panels = 1, kv_block = 32, kv = copy>}
  return
}

// Somebody else reads it, too.

// CHECK-LABEL: @read
// CHECK-NOT: scf.for %
// CHECK: return
func.func @read(%k: memref<?x16xf32>, %q: memref<16x16xf32>, %also: memref<?x16xf32>, %lo: memref<1x16xi32>, %hi: memref<1x16xi32>, %first: i32,
                %whole: i1, %keys: index, %n: index, %out: memref<?x16xf32>) {
  %HID = arith.constant 0.0 : f32
  scf.forall (%t) in (%n) {
    %l = bufferization.to_tensor %lo restrict : memref<1x16xi32> to tensor<1x16xi32>
    %h = bufferization.to_tensor %hi restrict : memref<1x16xi32> to tensor<1x16xi32>
    %w = bufferization.to_tensor %q restrict : memref<16x16xf32> to tensor<16x16xf32>
    %v = bufferization.to_tensor %k restrict : memref<?x16xf32> to tensor<?x16xf32>
    %e = tensor.empty(%keys) : tensor<?x16xf32>
    %z = linalg.fill ins(%HID : f32) outs(%e : tensor<?x16xf32>) -> tensor<?x16xf32>
    %r = linalg.contract indexing_maps = [#mk, #kn, #mn]
        ins(%v, %w : tensor<?x16xf32>, tensor<16x16xf32>) outs(%z : tensor<?x16xf32>) -> tensor<?x16xf32>
    %ep = tensor.empty(%keys) : tensor<?x16xf32>
    %p = linalg.generic {indexing_maps = [#map, #row, #row, #map], iterator_types = ["parallel", "parallel"]}
        ins(%r, %l, %h : tensor<?x16xf32>, tensor<1x16xi32>, tensor<1x16xi32>)
        outs(%ep : tensor<?x16xf32>) {
    ^bb0(%x: f32, %a: i32, %b: i32, %old: f32):
    %i = linalg.index 0 : index
    %y = varlen.hide %x with %HID at %i limits(%a, %b, %first) unless(%whole) : f32
    linalg.yield %y : f32
    } -> tensor<?x16xf32>
    bufferization.materialize_in_destination %p in restrict writable %out : (tensor<?x16xf32>, memref<?x16xf32>) -> ()
    bufferization.materialize_in_destination %r in restrict writable %also : (tensor<?x16xf32>, memref<?x16xf32>) -> ()
  } {varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 8, panels = 1, kv_block = 32, kv = copy>}
  return
}

// A depth of pairs is a multiple of 4.

// CHECK-LABEL: @pairs
// CHECK: scf.for
// CHECK: arith.divui %{{.*}}, %c4_i32
// CHECK: linalg.contract {{.*}} {varlen.add_last}
func.func @pairs(%scores: memref<?x16xf32>, %k: memref<?x16xf32>, %lo: memref<1x16xi32>, %hi: memref<1x16xi32>, %first: i32,
                %whole: i1, %keys: index, %n: index, %out: memref<16x16xf32>) {
  %HID = arith.constant 0.0 : f32
  scf.forall (%t) in (%n) {
    %l = bufferization.to_tensor %lo restrict : memref<1x16xi32> to tensor<1x16xi32>
    %h = bufferization.to_tensor %hi restrict : memref<1x16xi32> to tensor<1x16xi32>
    %s = bufferization.to_tensor %scores restrict : memref<?x16xf32> to tensor<?x16xf32>
    %w = bufferization.to_tensor %k restrict : memref<?x16xf32> to tensor<?x16xf32>
    %o = bufferization.to_tensor %out restrict writable : memref<16x16xf32> to tensor<16x16xf32>
    %ep = tensor.empty(%keys) : tensor<?x16xf32>
    %p = linalg.generic {indexing_maps = [#map, #row, #row, #map], iterator_types = ["parallel", "parallel"]}
        ins(%s, %l, %h : tensor<?x16xf32>, tensor<1x16xi32>, tensor<1x16xi32>)
        outs(%ep : tensor<?x16xf32>) {
    ^bb0(%x: f32, %a: i32, %b: i32, %old: f32):
    %i = linalg.index 0 : index
    %y = varlen.hide %x with %HID at %i limits(%a, %b, %first) unless(%whole) : f32
    linalg.yield %y : f32
    } -> tensor<?x16xf32>
    %r = linalg.contract indexing_maps = [#km, #kn, #mn]
        ins(%p, %w : tensor<?x16xf32>, tensor<?x16xf32>) outs(%o : tensor<16x16xf32>) -> tensor<16x16xf32>
    bufferization.materialize_in_destination %r in restrict writable %out : (tensor<16x16xf32>, memref<16x16xf32>) -> ()
  } {varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 8, panels = 1, kv_block = 32, kv = pairs>}
  return
}

// Granules are masked where one of the columns does not see all keys of them, and
// reduced where they are computed.

// CHECK-LABEL: @maximum
// CHECK: %[[LOW:.*]] = linalg.fill ins(%{{.*}}) outs(%{{.*}} : tensor<1x16xf32>)
// CHECK: %[[R:.*]]:2 = scf.for %[[ROW:.*]] = %c0 to %{{.*}} step %c8 iter_args(%{{.*}} = %{{.*}}, %[[MAX:.*]] = %[[LOW]])
// CHECK: linalg.contract
// CHECK: %[[TILE:.*]] = scf.if
// CHECK: linalg.generic
// CHECK: varlen.hide
// CHECK: %[[GRANULE:.*]] = tensor.extract_slice %[[TILE]]
// CHECK: %[[NEXT:.*]] = linalg.generic {{.*}} ins(%[[GRANULE]] : tensor<8x16xf32>)
// CHECK: linalg.generic {{.*}} ins(%[[NEXT]] : tensor<1x16xf32>) outs(%[[MAX]] : tensor<1x16xf32>)
// CHECK-NOT: linalg.generic
// CHECK: materialize_in_destination %[[R]]#0
func.func @maximum(%k: memref<?x16xf32>, %q: memref<16x16xf32>, %lo: memref<1x16xi32>, %hi: memref<1x16xi32>, %first: i32,
                %whole: i1, %keys: index, %n: index, %out: memref<?x16xf32>, %max: memref<1x16xf32>) {
  %zero = arith.constant 0.0 : f32
  scf.forall (%t) in (%n) {
    %l = bufferization.to_tensor %lo restrict : memref<1x16xi32> to tensor<1x16xi32>
    %h = bufferization.to_tensor %hi restrict : memref<1x16xi32> to tensor<1x16xi32>
    %w = bufferization.to_tensor %q restrict : memref<16x16xf32> to tensor<16x16xf32>
    %v = bufferization.to_tensor %k restrict : memref<?x16xf32> to tensor<?x16xf32>
    %e = tensor.empty(%keys) : tensor<?x16xf32>
    %z = linalg.fill ins(%zero : f32) outs(%e : tensor<?x16xf32>) -> tensor<?x16xf32>
    %r = linalg.contract indexing_maps = [#mk, #kn, #mn]
        ins(%v, %w : tensor<?x16xf32>, tensor<16x16xf32>) outs(%z : tensor<?x16xf32>) -> tensor<?x16xf32>
    %HID = arith.constant 0xFF800000 : f32
    %ep = tensor.empty(%keys) : tensor<?x16xf32>
    %p = linalg.generic {indexing_maps = [#map, #row, #row, #map], iterator_types = ["parallel", "parallel"]}
        ins(%r, %l, %h : tensor<?x16xf32>, tensor<1x16xi32>, tensor<1x16xi32>)
        outs(%ep : tensor<?x16xf32>) {
    ^bb0(%x: f32, %a: i32, %b: i32, %old: f32):
    %i = linalg.index 0 : index
    %y = varlen.hide %x with %HID at %i limits(%a, %b, %first) unless(%whole) : f32
    linalg.yield %y : f32
    } -> tensor<?x16xf32>
    %em = tensor.empty() : tensor<1x16xf32>
    %m0 = linalg.fill ins(%HID : f32) outs(%em : tensor<1x16xf32>) -> tensor<1x16xf32>
    %m = linalg.generic {indexing_maps = [#map, #row], iterator_types = ["reduction", "parallel"]}
        ins(%p : tensor<?x16xf32>) outs(%m0 : tensor<1x16xf32>) {
    ^bb0(%x: f32, %old: f32):
      %y = arith.maxnumf %x, %old : f32
      linalg.yield %y : f32
    } -> tensor<1x16xf32>
    bufferization.materialize_in_destination %p in restrict writable %out : (tensor<?x16xf32>, memref<?x16xf32>) -> ()
    bufferization.materialize_in_destination %m in restrict writable %max : (tensor<1x16xf32>, memref<1x16xf32>) -> ()
  } {varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 8, panels = 1, kv_block = 32, kv = copy>}
  return
}

// New scores are computed of a granule, too, from its place in the tile: before it is
// masked, and by columns that see all of it.

// CHECK-LABEL: @score
// CHECK: %[[R:.*]]:2 = scf.for %[[ROW:.*]] = %c0 to %{{.*}} step %c8
// CHECK: %[[S:.*]] = linalg.contract
// CHECK: linalg.generic {{.*}} ins(%[[S]], %{{.*}} : tensor<8x16xf32>, tensor<1x16xi32>) outs(%[[S]] : tensor<8x16xf32>)
// CHECK: %[[I:.*]] = linalg.index 0
// CHECK: %[[KEY:.*]] = arith.addi %[[I]], %[[ROW]]
// CHECK: %[[C:.*]] = linalg.index 1
// CHECK: arith.subi %[[KEY]], %[[C]]
// CHECK: linalg.contract {{.*}} outs(%{{.*}} : tensor<8x8xf32>)
// CHECK: linalg.generic {{.*}} outs(%{{.*}} : tensor<8x8xf32>)
// CHECK: linalg.index 0
// CHECK: arith.addi %{{.*}}, %[[ROW]]
// CHECK: %[[C:.*]] = linalg.index 1
// CHECK: %[[COLUMN:.*]] = arith.addi %[[C]], %{{.*}}
// CHECK: arith.subi %{{.*}}, %[[COLUMN]]
// CHECK: scf.if
// CHECK: varlen.hide
// CHECK: arith.maxnumf
// CHECK-NOT: arith.sitofp
// CHECK: return
func.func @score(%k: memref<?x16xf32>, %q: memref<16x16xf32>, %lo: memref<1x16xi32>, %hi: memref<1x16xi32>, %first: i32,
                %whole: i1, %keys: index, %n: index, %out: memref<?x16xf32>, %max: memref<1x16xf32>) {
  %zero = arith.constant 0.0 : f32
  scf.forall (%t) in (%n) {
    %l = bufferization.to_tensor %lo restrict : memref<1x16xi32> to tensor<1x16xi32>
    %h = bufferization.to_tensor %hi restrict : memref<1x16xi32> to tensor<1x16xi32>
    %w = bufferization.to_tensor %q restrict : memref<16x16xf32> to tensor<16x16xf32>
    %v = bufferization.to_tensor %k restrict : memref<?x16xf32> to tensor<?x16xf32>
    %e = tensor.empty(%keys) : tensor<?x16xf32>
    %z = linalg.fill ins(%zero : f32) outs(%e : tensor<?x16xf32>) -> tensor<?x16xf32>
    %r = linalg.contract indexing_maps = [#mk, #kn, #mn]
        ins(%v, %w : tensor<?x16xf32>, tensor<16x16xf32>) outs(%z : tensor<?x16xf32>) -> tensor<?x16xf32>
    %HID = arith.constant 0xFF800000 : f32
    %x0 = tensor.empty(%keys) : tensor<?x16xf32>
    %d = linalg.generic {indexing_maps = [#map, #row, #map], iterator_types = ["parallel", "parallel"]}
        ins(%r, %l : tensor<?x16xf32>, tensor<1x16xi32>) outs(%x0 : tensor<?x16xf32>) {
    ^bb0(%x: f32, %a: i32, %old: f32):
      %i = linalg.index 0 : index
      %c = linalg.index 1 : index
      %far = arith.subi %i, %c : index
      %j = arith.index_cast %far : index to i32
      %away = arith.subi %j, %a : i32
      %f = arith.sitofp %away : i32 to f32
      %y = arith.subf %x, %f : f32
      linalg.yield %y : f32
    } -> tensor<?x16xf32>
    %ep = tensor.empty(%keys) : tensor<?x16xf32>
    %p = linalg.generic {indexing_maps = [#map, #row, #row, #map], iterator_types = ["parallel", "parallel"]}
        ins(%d, %l, %h : tensor<?x16xf32>, tensor<1x16xi32>, tensor<1x16xi32>)
        outs(%ep : tensor<?x16xf32>) {
    ^bb0(%x: f32, %a: i32, %b: i32, %old: f32):
    %i = linalg.index 0 : index
    %y = varlen.hide %x with %HID at %i limits(%a, %b, %first) unless(%whole) : f32
    linalg.yield %y : f32
    } -> tensor<?x16xf32>
    %em = tensor.empty() : tensor<1x16xf32>
    %m0 = linalg.fill ins(%HID : f32) outs(%em : tensor<1x16xf32>) -> tensor<1x16xf32>
    %m = linalg.generic {indexing_maps = [#map, #row], iterator_types = ["reduction", "parallel"]}
        ins(%p : tensor<?x16xf32>) outs(%m0 : tensor<1x16xf32>) {
    ^bb0(%x: f32, %old: f32):
      %y = arith.maxnumf %x, %old : f32
      linalg.yield %y : f32
    } -> tensor<1x16xf32>
    bufferization.materialize_in_destination %p in restrict writable %out : (tensor<?x16xf32>, memref<?x16xf32>) -> ()
    bufferization.materialize_in_destination %m in restrict writable %max : (tensor<1x16xf32>, memref<1x16xf32>) -> ()
  } {varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 8, panels = 1, kv_block = 32, kv = copy>}
  return
}

// What is made of scores for a product, and summed up, is so for each vector and the keys
// that it sees, so a granule of scores is masked and reduced for one vector, too.

// CHECK-LABEL: @elements
// CHECK: scf.if
// CHECK: linalg.contract {{.*}} outs(%{{.*}} : tensor<8x16xf32>)
// CHECK: else
// CHECK: %[[S:.*]] = linalg.contract {{.*}} outs(%{{.*}} : tensor<8x8xf32>)
// CHECK: %[[M:.*]] = linalg.generic {{.*}} ins(%[[S]], {{.*}} outs(%[[S]] : tensor<8x8xf32>)
// CHECK: linalg.generic {{.*}} ins(%[[M]] : tensor<8x8xf32>)
// CHECK: %[[P:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<?x8xf32>)
// CHECK: varlen.weight
// CHECK: linalg.generic {{.*}} ins(%[[P]] : tensor<?x8xf32>) outs(%{{.*}} : tensor<1x8xf32>)
// CHECK: varlen.weight
// CHECK-NOT: varlen.weight
// CHECK: linalg.contract {{.*}} : tensor<?x8xf32>, tensor<?x8xf32>)
// CHECK: return
func.func @elements(%k: memref<?x16xf32>, %q: memref<16x16xf32>, %lo: memref<1x16xi32>, %hi: memref<1x16xi32>, %first: i32,
                %whole: i1, %keys: index, %n: index, %v: memref<?x16xf32>, %out: memref<16x16xf32>, %sums: memref<1x16xf32>) {
  %one = arith.constant 1.0 : f32
  %zero = arith.constant 0.0 : f32
  scf.forall (%t) in (%n) {
    %l = bufferization.to_tensor %lo restrict : memref<1x16xi32> to tensor<1x16xi32>
    %h = bufferization.to_tensor %hi restrict : memref<1x16xi32> to tensor<1x16xi32>
    %w = bufferization.to_tensor %q restrict : memref<16x16xf32> to tensor<16x16xf32>
    %kt = bufferization.to_tensor %k restrict : memref<?x16xf32> to tensor<?x16xf32>
    %e = tensor.empty(%keys) : tensor<?x16xf32>
    %z = linalg.fill ins(%zero : f32) outs(%e : tensor<?x16xf32>) -> tensor<?x16xf32>
    %r = linalg.contract indexing_maps = [#mk, #kn, #mn]
        ins(%kt, %w : tensor<?x16xf32>, tensor<16x16xf32>) outs(%z : tensor<?x16xf32>) -> tensor<?x16xf32>
    %HID = arith.constant 0xFF800000 : f32
    %ep = tensor.empty(%keys) : tensor<?x16xf32>
    %p = linalg.generic {indexing_maps = [#map, #row, #row, #map], iterator_types = ["parallel", "parallel"]}
        ins(%r, %l, %h : tensor<?x16xf32>, tensor<1x16xi32>, tensor<1x16xi32>)
        outs(%ep : tensor<?x16xf32>) {
    ^bb0(%x: f32, %a: i32, %b: i32, %old: f32):
    %i = linalg.index 0 : index
    %y = varlen.hide %x with %HID at %i limits(%a, %b, %first) unless(%whole) : f32
    linalg.yield %y : f32
    } -> tensor<?x16xf32>
    %em = tensor.empty() : tensor<1x16xf32>
    %m0 = linalg.fill ins(%HID : f32) outs(%em : tensor<1x16xf32>) -> tensor<1x16xf32>
    %m = linalg.generic {indexing_maps = [#map, #row], iterator_types = ["reduction", "parallel"]}
        ins(%p : tensor<?x16xf32>) outs(%m0 : tensor<1x16xf32>) {
    ^bb0(%x: f32, %old: f32):
      %y = arith.maxnumf %x, %old : f32
      linalg.yield %y : f32
    } -> tensor<1x16xf32>
    %l0 = linalg.fill ins(%zero : f32) outs(%em : tensor<1x16xf32>) -> tensor<1x16xf32>
    %p1 = linalg.generic {indexing_maps = [#map, #row, #map], iterator_types = ["parallel", "parallel"]}
        ins(%p, %m : tensor<?x16xf32>, tensor<1x16xf32>) outs(%ep : tensor<?x16xf32>) {
    ^bb0(%x: f32, %a: f32, %old: f32):
      %y = varlen.weight %x by %one plus %a : f32
      linalg.yield %y : f32
    } -> tensor<?x16xf32>
    %sum = linalg.generic {indexing_maps = [#map, #row], iterator_types = ["reduction", "parallel"]}
        ins(%p1 : tensor<?x16xf32>) outs(%l0 : tensor<1x16xf32>) {
    ^bb0(%x: f32, %old: f32):
      %y = arith.addf %old, %x : f32
      linalg.yield %y : f32
    } -> tensor<1x16xf32>
    %vt = bufferization.to_tensor %v restrict : memref<?x16xf32> to tensor<?x16xf32>
    %o = bufferization.to_tensor %out restrict writable : memref<16x16xf32> to tensor<16x16xf32>
    %r2 = linalg.contract indexing_maps = [#km, #kn, #mn]
        ins(%vt, %p1 : tensor<?x16xf32>, tensor<?x16xf32>) outs(%o : tensor<16x16xf32>) -> tensor<16x16xf32>
    bufferization.materialize_in_destination %r2 in restrict writable %out : (tensor<16x16xf32>, memref<16x16xf32>) -> ()
    bufferization.materialize_in_destination %sum in restrict writable %sums : (tensor<1x16xf32>, memref<1x16xf32>) -> ()
  } {varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 8, panels = 1, kv_block = 32, kv = copy>}
  return
}
