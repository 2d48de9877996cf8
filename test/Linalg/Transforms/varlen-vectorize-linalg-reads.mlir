// RUN: varlen-opt %s --pass-pipeline="builtin.module(func.func(varlen-vectorize-linalg{target=avx2}))" 2>&1 | FileCheck %s

// CHECK: remark: scalar loops for 1 operation of this function; the first is 'linalg.generic': 'memref.load' reads a result

#ij = affine_map<(i, j) -> (i, j)>
#ji = affine_map<(i, j) -> (j, i)>
#i = affine_map<(i, j) -> (i)>
#j = affine_map<(i, j) -> (j)>

// Rows of a table are vectors of it, and the rest of one is masked.
// CHECK-LABEL: func.func @rows
// CHECK: scf.for %[[I:.*]] =
// CHECK: scf.for %[[J:.*]] =
// CHECK: %[[ID:.*]] = memref.load %{{.*}}[%[[I]]] : memref<?xindex>
// CHECK: %[[ROW:.*]] = vector.load %{{.*}}[%[[ID]], %[[J]]] : memref<?x?xf32>, vector<8xf32>
// CHECK: vector.store %[[ROW]], %{{.*}}[%[[I]], %[[J]]]
// CHECK: scf.if
// CHECK: vector.maskedload %{{.*}}[%{{.*}}, %{{.*}}], %{{.*}}, %{{.*}} : memref<?x?xf32>
func.func @rows(%table: memref<?x?xf32>, %ids: memref<?xindex>, %y: memref<?x?xf32>) {
  linalg.generic {indexing_maps = [#i, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%ids : memref<?xindex>) outs(%y : memref<?x?xf32>) {
    ^bb0(%id: index, %o: f32):
      %j = linalg.index 1 : index
      %x = memref.load %table[%id, %j] : memref<?x?xf32>
      linalg.yield %x : f32
  }
  return
}

// A check that generate-runtime-verification makes is one of all lanes; those
// that are not there pass.
// CHECK-LABEL: func.func @checked
// CHECK: %[[HOLDS:.*]] = arith.cmpi ult, %{{.*}}, %{{.*}} : vector<8xindex>
// CHECK: %[[ALL:.*]] = vector.reduction <and>, %[[HOLDS]] : vector<8xi1> into i1
// CHECK: cf.assert %[[ALL]], "out of bounds"
// CHECK: vector.load
// CHECK: scf.if
// CHECK: %[[MASK:.*]] = vector.create_mask
// CHECK: %[[HOLDS:.*]] = arith.cmpi ult, %{{.*}}, %{{.*}} : vector<8xindex>
// CHECK: %[[MISSING:.*]] = arith.xori %[[MASK]], %{{.*}}
// CHECK: %[[EITHER:.*]] = arith.ori %[[HOLDS]], %[[MISSING]]
// CHECK: %[[ALL:.*]] = vector.reduction <and>, %[[EITHER]] : vector<8xi1> into i1
// CHECK: cf.assert %[[ALL]], "out of bounds"
// CHECK: vector.maskedload
func.func @checked(%table: memref<?x?xf32>, %ids: memref<?xindex>, %y: memref<?x?xf32>) {
  linalg.generic {indexing_maps = [#i, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%ids : memref<?xindex>) outs(%y : memref<?x?xf32>) {
    ^bb0(%id: index, %o: f32):
      %j = linalg.index 1 : index
      %c1 = arith.constant 1 : index
      %columns = memref.dim %table, %c1 : memref<?x?xf32>
      %holds = arith.cmpi ult, %j, %columns : index
      cf.assert %holds, "out of bounds"
      %x = memref.load %table[%id, %j] : memref<?x?xf32>
      linalg.yield %x : f32
  }
  return
}

// Other elements are read one by one, and what is less than a vector in steps
// of one lane: a lane that is not there has no place.
// CHECK-LABEL: func.func @columns
// CHECK: %[[IDS:.*]] = vector.load %{{.*}} : memref<?xindex>, vector<8xindex>
// CHECK: %[[ID:.*]] = vector.extract %[[IDS]][7] : index from vector<8xindex>
// CHECK: memref.load %{{.*}}[%{{.*}}, %[[ID]]] : memref<?x?xf32>
// CHECK: vector.from_elements {{.*}} : vector<8xf32>
// CHECK-NOT: mask
// CHECK: vector.load %{{.*}} : memref<?xindex>, vector<1xindex>
func.func @columns(%table: memref<?x?xf32>, %ids: memref<?xindex>, %y: memref<?x?xf32>) {
  linalg.generic {indexing_maps = [#j, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%ids : memref<?xindex>) outs(%y : memref<?x?xf32>) {
    ^bb0(%id: index, %o: f32):
      %i = linalg.index 0 : index
      %x = memref.load %table[%i, %id] : memref<?x?xf32>
      linalg.yield %x : f32
  }
  return
}

// The loop along which the table is contiguous, although the index of it is
// the outer one.
// CHECK-LABEL: func.func @outer
// CHECK: vector.load %{{.*}} : memref<?x64xf32>, vector<8xf32>
// CHECK: vector.store
func.func @outer(%table: memref<?x64xf32>, %ids: memref<?xindex>, %y: memref<?x64xf32>) {
  linalg.generic {indexing_maps = [#j, #ji], iterator_types = ["parallel", "parallel"]}
      ins(%ids : memref<?xindex>) outs(%y : memref<?x64xf32>) {
    ^bb0(%id: index, %o: f32):
      %i = linalg.index 0 : index
      %x = memref.load %table[%id, %i] : memref<?x64xf32>
      linalg.yield %x : f32
  }
  return
}

// Rows that are summed: the one that is read is the same for all columns.
// CHECK-LABEL: func.func @sums
// CHECK: vector.load %{{.*}} : memref<?x?xf32>, vector<8xf32>
// CHECK: vector.reduction <add>
func.func @sums(%table: memref<?x?xf32>, %ids: memref<?xindex>, %x: memref<?x?xf32>,
                %y: memref<?xf32>) {
  linalg.generic {indexing_maps = [#i, #ij, #i], iterator_types = ["parallel", "reduction"]}
      ins(%ids, %x : memref<?xindex>, memref<?x?xf32>) outs(%y : memref<?xf32>) {
    ^bb0(%id: index, %a: f32, %o: f32):
      %j = linalg.index 1 : index
      %t = memref.load %table[%id, %j] : memref<?x?xf32>
      %p = arith.mulf %t, %a : f32
      %s = arith.addf %o, %p : f32
      linalg.yield %s : f32
  }
  return
}

// CHECK-LABEL: func.func @result
// CHECK-NOT: vector
func.func @result(%ids: memref<?xindex>, %y: memref<?xf32>) {
  linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
                  iterator_types = ["parallel"]}
      ins(%ids : memref<?xindex>) outs(%y : memref<?xf32>) {
    ^bb0(%id: index, %o: f32):
      %x = memref.load %y[%id] : memref<?xf32>
      linalg.yield %x : f32
  }
  return
}
