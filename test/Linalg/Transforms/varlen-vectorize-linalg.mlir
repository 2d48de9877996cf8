// RUN: varlen-opt %s --pass-pipeline="builtin.module(func.func(varlen-vectorize-linalg{target=avx2}))" 2>&1 | FileCheck %s

// CHECK: remark: scalar loops for 2 operations of this function; the first is 'linalg.generic': elements that are no whole bytes

#ij = affine_map<(i, j) -> (i, j)>
#ji = affine_map<(i, j) -> (j, i)>
#i = affine_map<(i, j) -> (i)>
#j = affine_map<(i, j) -> (j)>

// Two registers at a time, and a masked vector for the rest.
// CHECK-LABEL: func.func @elementwise
// CHECK: scf.for
// CHECK:   scf.for
// CHECK:     vector.load {{.*}} vector<16xf32>
// CHECK:     arith.mulf {{.*}} : vector<16xf32>
// CHECK:     vector.store
// CHECK:   scf.if
// CHECK:     vector.create_mask
// CHECK:     vector.maskedload
// CHECK:     vector.maskedstore
func.func @elementwise(%x: memref<?x?xf32>, %y: memref<?x?xf32>) {
  linalg.generic {indexing_maps = [#ij, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<?x?xf32>) outs(%y : memref<?x?xf32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = arith.mulf %a, %a : f32
    linalg.yield %0 : f32
  }
  return
}

// As many lanes as there are elements, and no loop over vectors left over.
// CHECK-LABEL: func.func @short
// CHECK: vector.load {{.*}} vector<6xf32>
// CHECK-NOT: maskedload
// CHECK: return
func.func @short(%x: memref<?x6xf32>, %y: memref<?x6xf32>) {
  linalg.exp ins(%x : memref<?x6xf32>) outs(%y : memref<?x6xf32>)
  return
}

// Sums of lanes, then of all of them.
// CHECK-LABEL: func.func @row_sums
// CHECK: %[[SUMS:.*]] = scf.for {{.*}} -> (vector<16xf32>)
// CHECK:   arith.addf {{.*}} : vector<16xf32>
// CHECK: vector.maskedload
// CHECK: arith.select
// CHECK: %[[SUM:.*]] = vector.reduction <add>, %{{.*}} fastmath<reassoc>
// CHECK: arith.addf
// CHECK: memref.store
func.func @row_sums(%x: memref<?x?xf32>, %y: memref<?xf32>) {
  linalg.generic {indexing_maps = [#ij, #i], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<?x?xf32>) outs(%y : memref<?xf32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = arith.addf %a, %o : f32
    linalg.yield %0 : f32
  }
  return
}

// A maximum begins with what its result was filled with, which is no NaN and is not stored, and
// lanes are reduced as a tree.
// CHECK-LABEL: func @row_maxima
// CHECK-NOT: vector.store
// CHECK: %[[START:.*]] = vector.broadcast %cst : f32 to vector<[[LANES:[0-9]+]]xf32>
// CHECK: %[[TOP:.*]] = scf.for {{.*}} iter_args(%[[T:.*]] = %[[START]])
// CHECK: arith.maxnumf %{{.*}}, %[[T]]
// CHECK-NOT: vector.reduction
// CHECK: vector.shuffle %{{.*}} [0] : vector<2xf32>, vector<2xf32>
// CHECK: vector.shuffle %{{.*}} [1] : vector<2xf32>, vector<2xf32>
// CHECK: %[[LAST:.*]] = arith.maxnumf %{{.*}} : vector<1xf32>
// CHECK: %[[MOST:.*]] = vector.extract %[[LAST]][0]
// CHECK-NEXT: memref.store %[[MOST]]
func.func @row_maxima(%x: memref<?x?xf32>, %n: index) -> memref<?xf32> {
  %least = arith.constant 0xFF800000 : f32
  %y = memref.alloc(%n) : memref<?xf32>
  linalg.fill ins(%least : f32) outs(%y : memref<?xf32>)
  linalg.generic {indexing_maps = [#ij, #i], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<?x?xf32>) outs(%y : memref<?xf32>) {
  ^bb0(%a: f32, %b: f32):
    %m = arith.maxnumf %a, %b : f32
    linalg.yield %m : f32
  }
  return %y : memref<?xf32>
}

// The maximum of all elements: each row goes on with what the rows before have.
// CHECK-LABEL: func @all_maxima
// CHECK: memref.store %cst, %[[Y:.*]][]
// CHECK: scf.for
// CHECK: %[[START:.*]] = vector.broadcast %cst : f32
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %[[START]])
// CHECK: %[[MOST:.*]] = vector.extract %{{.*}}[0]
// CHECK: %[[BEFORE:.*]] = memref.load %[[Y]][]
// CHECK: %[[BOTH:.*]] = arith.maxnumf %[[MOST]], %[[BEFORE]] : f32
// CHECK: memref.store %[[BOTH]], %[[Y]][]
func.func @all_maxima(%x: memref<?x?xf32>) -> memref<f32> {
  %least = arith.constant 0xFF800000 : f32
  %y = memref.alloc() : memref<f32>
  linalg.fill ins(%least : f32) outs(%y : memref<f32>)
  linalg.generic {indexing_maps = [#ij, affine_map<(i, j) -> ()>], iterator_types = ["reduction", "reduction"]}
      ins(%x : memref<?x?xf32>) outs(%y : memref<f32>) {
  ^bb0(%a: f32, %b: f32):
    %m = arith.maxnumf %a, %b : f32
    linalg.yield %m : f32
  }
  return %y : memref<f32>
}

// Without a fill that is known it begins with the neutral element, and ends with the result.
// CHECK-LABEL: func @more_maxima
// CHECK: %[[START:.*]] = arith.constant dense<0xFFC00000> : vector<{{.*}}xf32>
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %[[START]])
// CHECK: %[[LAST:.*]] = arith.maxnumf %{{.*}} : vector<1xf32>
// CHECK: %[[MOST:.*]] = vector.extract %[[LAST]][0]
// CHECK: %[[BEFORE:.*]] = memref.load
// CHECK: arith.maxnumf %[[MOST]], %[[BEFORE]] : f32
func.func @more_maxima(%x: memref<?x?xf32>, %y: memref<?xf32>) {
  linalg.generic {indexing_maps = [#ij, #i], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<?x?xf32>) outs(%y : memref<?xf32>) {
  ^bb0(%a: f32, %b: f32):
    %m = arith.maxnumf %a, %b : f32
    linalg.yield %m : f32
  }
  return
}

// CHECK-LABEL: func.func @column_sums
// CHECK-NOT: vector.reduction
// CHECK: vector.store
func.func @column_sums(%x: memref<?x?xf32>, %y: memref<?xf32>) {
  linalg.generic {indexing_maps = [#ij, #j], iterator_types = ["reduction", "parallel"]}
      ins(%x : memref<?x?xf32>) outs(%y : memref<?xf32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = arith.addf %a, %o : f32
    linalg.yield %0 : f32
  }
  return
}

// One vector has all columns: it stays in registers while rows are added.
// CHECK-LABEL: func.func @column_sums_of_a_tile
// CHECK-SAME: %[[X:.*]]: memref<?x16xf32>, %[[Y:.*]]: memref<16xf32>
// CHECK: %[[BEFORE:.*]] = vector.load %[[Y]]
// CHECK: %[[SUM:.*]] = scf.for %[[I:.*]] = {{.*}} iter_args(%[[S:.*]] = %[[BEFORE]]) -> (vector<16xf32>)
// CHECK:   %[[ROW:.*]] = vector.load %[[X]][%[[I]], %{{.*}}]
// CHECK:   %[[NEXT:.*]] = arith.addf %[[ROW]], %[[S]]
// CHECK:   scf.yield %[[NEXT]]
// CHECK: vector.store %[[SUM]], %[[Y]]
func.func @column_sums_of_a_tile(%x: memref<?x16xf32>, %y: memref<16xf32>) {
  linalg.generic {indexing_maps = [#ij, #j], iterator_types = ["reduction", "parallel"]}
      ins(%x : memref<?x16xf32>) outs(%y : memref<16xf32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = arith.addf %a, %o : f32
    linalg.yield %0 : f32
  }
  return
}

// A body that yields no vector, and two loops that are reduced.
// CHECK-LABEL: func.func @last_of_all
// CHECK: scf.for {{.*}} -> (vector<16xf32>)
// CHECK: scf.for {{.*}} -> (vector<16xf32>)
// CHECK: %[[LAST:.*]] = vector.broadcast %{{.*}} : f32 to vector<16xf32>
// CHECK: scf.yield %[[LAST]]
// CHECK: vector.store
func.func @last_of_all(%x: memref<?x?xf32>, %y: memref<16xf32>) {
  linalg.generic {indexing_maps = [affine_map<(i, k, j) -> (i, k)>, affine_map<(i, k, j) -> (j)>], iterator_types = ["reduction", "reduction", "parallel"]}
      ins(%x : memref<?x?xf32>) outs(%y : memref<16xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  }
  return
}

// Blocks of eight vectors, in three steps that interleave them.
// CHECK-LABEL: func.func @transpose
// CHECK-SAME: %[[X:.*]]: memref<32x32xf32>, %[[Y:.*]]: memref<32x32xf32>
// CHECK: scf.for %[[I:.*]] = %c0{{.*}} to %c32{{.*}} step %c8
// CHECK: scf.for %[[J:.*]] = %c0{{.*}} to %c32{{.*}} step %c8
// CHECK: vector.load %[[X]][%[[J]], %[[I]]] : memref<32x32xf32>, vector<8xf32>
// CHECK: vector.bitcast {{.*}} : vector<8xf32> to vector<8xi32>
// CHECK-COUNT-7: vector.load
// CHECK: vector.shuffle {{.*}} [0, 8, 2, 10, 4, 12, 6, 14] : vector<8xi32>, vector<8xi32>
// CHECK: vector.shuffle {{.*}} [1, 9, 3, 11, 5, 13, 7, 15] : vector<8xi32>, vector<8xi32>
// CHECK-COUNT-22: vector.shuffle
// CHECK-NOT: vector.shuffle
// CHECK: vector.store {{.*}}, %[[Y]][%[[I]], %[[J]]] : memref<32x32xf32>, vector<8xf32>
// CHECK-COUNT-7: vector.store
// CHECK-NOT: memref.load
func.func @transpose(%x: memref<32x32xf32>, %y: memref<32x32xf32>) {
  linalg.transpose ins(%x : memref<32x32xf32>) outs(%y : memref<32x32xf32>) permutation = [1, 0]
  return
}

// What fills no block is a block with masks: columns that are left over, then rows. Where
// both are, elements are copied one by one. Many rows are read by strips.
// CHECK-LABEL: func.func @transpose_rest
// CHECK: scf.for %[[H:.*]] =
// CHECK: scf.for {{.*}} step %c1024
// CHECK: scf.for {{.*}} step %c8
// CHECK: scf.for {{.*}} step %c8
// CHECK-NOT: mask
// CHECK-COUNT-8: vector.store
// CHECK: scf.for {{.*}} step %c8
// CHECK: scf.for {{.*}} step %c8
// CHECK: vector.create_mask {{.*}} : vector<8xi1>
// CHECK-COUNT-8: vector.maskedload
// CHECK-COUNT-8: vector.store
// CHECK: scf.for {{.*}} step %c8
// CHECK: scf.for {{.*}} step %c8
// CHECK-COUNT-8: vector.load
// CHECK-COUNT-8: vector.maskedstore
// CHECK: scf.for {{.*}} step %c1
// CHECK: scf.for {{.*}} step %c1
// CHECK: memref.load
// CHECK: memref.store
func.func @transpose_rest(%x: memref<?x?x?xf32>, %y: memref<?x?x?xf32>) {
  linalg.transpose ins(%x : memref<?x?x?xf32>) outs(%y : memref<?x?x?xf32>) permutation = [2, 0, 1]
  return
}

// Floats are rounded between the block and its rows; the results of elements narrower than
// masks are copied one by one, but columns have masks of the source.
// CHECK-LABEL: func.func @transpose_rounded
// CHECK-COUNT-8: arith.truncf {{.*}} : vector<8xf32> to vector<8xbf16>
// CHECK-COUNT-8: vector.maskedload {{.*}} : memref<?x?xf32>, vector<8xi1>, vector<8xf32> into vector<8xf32>
// CHECK-COUNT-8: arith.truncf {{.*}} : vector<8xf32> to vector<8xbf16>
// CHECK-NOT: vector.maskedstore
// CHECK: arith.truncf {{.*}} : f32 to bf16
// CHECK: return
func.func @transpose_rounded(%x: memref<?x?xf32>, %y: memref<?x?xbf16>) {
  linalg.generic {indexing_maps = [#ji, #ij], iterator_types = ["parallel", "parallel"]} ins(%x : memref<?x?xf32>) outs(%y : memref<?x?xbf16>) {
  ^bb0(%a: f32, %o: bf16):
    %0 = arith.truncf %a : f32 to bf16
    linalg.yield %0 : bf16
  }
  return
}

// Too few columns for a block: vectors of the result are put together.
// CHECK-LABEL: func.func @transpose_narrow
// CHECK-NOT: vector.shuffle
// CHECK: vector.from_elements {{.*}} : vector<16xf32>
func.func @transpose_narrow(%x: memref<32x3xf32>, %y: memref<3x32xf32>) {
  linalg.transpose ins(%x : memref<32x3xf32>) outs(%y : memref<3x32xf32>) permutation = [1, 0]
  return
}

// Indices along the vectors, and functions as polynomials.
// CHECK-LABEL: func.func @functions
// CHECK: vector.step
// CHECK-NOT: math.tanh
// CHECK: math.exp2 {{.*}} : vector<16xf32>
// CHECK-NOT: math.tanh
// CHECK: return
func.func @functions(%y: memref<?x64xf32>) {
  linalg.generic {indexing_maps = [#ij], iterator_types = ["parallel", "parallel"]} outs(%y : memref<?x64xf32>) {
  ^bb0(%o: f32):
    %j = linalg.index 1 : index
    %k = arith.index_cast %j : index to i32
    %0 = arith.sitofp %k : i32 to f32
    %1 = math.tanh %0 : f32
    linalg.yield %1 : f32
  }
  return
}

// Six rows of two vectors stay in registers, while the next panel is fetched; rows
// that are left over.
// CHECK-LABEL: func.func @panel
// CHECK: scf.for
// CHECK:   scf.for {{.*}} -> (vector<8xf32>, vector<8xf32>,
// CHECK:         memref.prefetch
// CHECK-NOT:     memref.prefetch
// CHECK-COUNT-12: vector.fma
// CHECK-COUNT-12: vector.store
// CHECK:   scf.if
// CHECK:     arith.minsi
func.func @panel(%a: memref<?x256xf32>, %b: memref<256x16xf32>, %c: memref<?x16xf32>) {
  linalg.matmul ins(%a, %b : memref<?x256xf32>, memref<256x16xf32>) outs(%c : memref<?x16xf32>)
  return
}

// A right factor with rows on a page each: more of a row at a time; rows and
// columns that are left over.
// CHECK-LABEL: func.func @product
// CHECK: scf.for
// CHECK:   scf.for
// CHECK:     scf.for {{.*}} -> (vector<8xf32>, vector<8xf32>,
// CHECK-COUNT-2: memref.prefetch
// CHECK-NOT:     memref.prefetch
// CHECK-COUNT-8: vector.fma
// CHECK-COUNT-8: vector.store
// CHECK:   scf.if
// CHECK:     scf.for {{.*}} -> (vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>) {
// CHECK: vector.create_mask
// CHECK: vector.maskedload
func.func @product(%a: memref<?x?xf32>, %b: memref<?x?xf32>, %c: memref<?x?xf32>) {
  linalg.matmul ins(%a, %b : memref<?x?xf32>, memref<?x?xf32>) outs(%c : memref<?x?xf32>)
  return
}

// Factors along memory, of which the right one is not known to be small: a step of the
// contracted loop asks for one line, since a line of f16 has four vectors.
// CHECK-LABEL: func.func @asks_ahead
// CHECK:     scf.for {{.*}} -> (vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>) {
// CHECK:       %[[STEP:.*]] = arith.remui
// CHECK:       arith.addi %{{.*}}, %[[STEP]]
// CHECK:       memref.prefetch %{{.*}}, read, locality<2>, data : memref<?x256xf16, strided<[512, 1]>>
// CHECK-NOT:   memref.prefetch
// CHECK-COUNT-4: vector.fma
func.func @asks_ahead(%a: memref<?x256xf32>, %b: memref<?x256xf16, strided<[512, 1]>>,
                      %c: memref<?x?xf32>) {
  linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (j, k)>,
                                   affine_map<(i, j, k) -> (i, j)>],
                  iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<?x256xf32>, memref<?x256xf16, strided<[512, 1]>>)
      outs(%c : memref<?x?xf32>) {
  ^bb0(%x: f32, %y: f16, %z: f32):
    %0 = arith.extf %y : f16 to f32
    %1 = arith.mulf %x, %0 : f32
    %2 = arith.addf %z, %1 : f32
    linalg.yield %2 : f32
  }
  return
}

// A column of four cache lines or fewer: no loop goes along it.
// CHECK-LABEL: func.func @few_lines
// CHECK:      scf.for
// CHECK:      scf.for
// CHECK-NOT:  scf.for
// CHECK:      memref.prefetch
// CHECK-COUNT-4: vector.fma
// CHECK:      memref.prefetch
// CHECK-COUNT-4: vector.fma
// CHECK-NOT:  scf.for
// CHECK:      vector.maskedstore
func.func @few_lines(%a: memref<?x16xf32>, %b: memref<?x16xi8, strided<[512, 1]>>, %c: memref<?x?xf32>) {
  linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (j, k)>,
                                   affine_map<(i, j, k) -> (i, j)>],
                  iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<?x16xf32>, memref<?x16xi8, strided<[512, 1]>>) outs(%c : memref<?x?xf32>) {
  ^bb0(%x: f32, %y: i8, %z: f32):
    %0 = arith.sitofp %y : i8 to f32
    %1 = arith.mulf %x, %0 : f32
    %2 = arith.addf %z, %1 : f32
    linalg.yield %2 : f32
  }
  return
}

// Rows that are known to be followed by others: behind the last one of these.
// CHECK-LABEL: func.func @asks_for_next
// CHECK-SAME: %{{[^:]*}}: memref<?x64xf32>, %[[B:[^:]*]]: memref<?x64xf32, strided<[128, 1]>>, %[[NEXT:[^:]*]]: memref<?x64xf32, strided<[128, 1]>>
// CHECK:       arith.constant 32 : index
// CHECK-NEXT:  %[[AHEAD:.*]] = arith.minsi %[[ROWS:.*]], %{{.*}} : index
// CHECK:       %[[ROW:.*]] = arith.addi %{{.*}}, %[[AHEAD]]
// CHECK:       %[[BEHIND:.*]] = arith.cmpi sle, %[[ROWS]], %[[ROW]]
// CHECK:       %[[FROM:.*]] = arith.select %[[BEHIND]], %[[NEXT]], %[[B]] : memref<?x64xf32, strided<[128, 1]>>
// CHECK:       %[[OTHER:.*]] = arith.subi %[[ROW]], %[[ROWS]]
// CHECK:       arith.select %[[BEHIND]], %[[OTHER]], %[[ROW]] : index
// CHECK:       memref.prefetch %[[FROM]]
// CHECK:       vector.load %[[B]]
// CHECK-NOT:   varlen.followed_by
func.func @asks_for_next(%a: memref<?x64xf32>, %b: memref<?x64xf32, strided<[128, 1]>>,
                         %next: memref<?x64xf32, strided<[128, 1]>>, %c: memref<?x?xf32>) {
  %rows = varlen.followed_by %b then %next : memref<?x64xf32, strided<[128, 1]>>
  linalg.contract indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (j, k)>, affine_map<(i, j, k) -> (i, j)>]
      ins(%a, %rows : memref<?x64xf32>, memref<?x64xf32, strided<[128, 1]>>) outs(%c : memref<?x?xf32>)
  return
}

// A page of memory is small, but all of it is not: rows are asked for.
// CHECK-LABEL: func.func @part_of_large
// CHECK: memref.prefetch
// CHECK: return
func.func @part_of_large(%a: memref<?x64xf32>, %b: memref<?x16x64xf32>, %p: index, %n: index, %c: memref<?x?xf32>) {
  %page = memref.subview %b[%p, 0, 0] [1, 16, 64] [1, 1, 1] : memref<?x16x64xf32> to memref<16x64xf32, strided<[64, 1], offset: ?>>
  %rows = memref.subview %page[0, 0] [%n, 64] [1, 1] : memref<16x64xf32, strided<[64, 1], offset: ?>> to memref<?x64xf32, strided<[64, 1], offset: ?>>
  linalg.contract indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (j, k)>, affine_map<(i, j, k) -> (i, j)>]
      ins(%a, %rows : memref<?x64xf32>, memref<?x64xf32, strided<[64, 1], offset: ?>>) outs(%c : memref<?x?xf32>)
  return
}

// No more vectors than a row has, and four rows for two: in one tile, then of
// what is left two and one. A line of memory is fetched once.
// CHECK-LABEL: func.func @few_columns
// CHECK:     scf.for {{.*}} -> (vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>) {
// CHECK:       memref.prefetch
// CHECK-NOT:   memref.prefetch
// CHECK-COUNT-2: vector.load {{.*}} : memref<?x16xbf16, {{.*}}>, vector<8xbf16>
// CHECK-COUNT-8: vector.fma
// CHECK:     scf.if
// CHECK:       scf.for {{.*}} -> (vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>) {
// CHECK-COUNT-4: vector.fma
// CHECK:     scf.if
// CHECK:       scf.for {{.*}} -> (vector<8xf32>, vector<8xf32>) {
// CHECK-COUNT-2: vector.fma
// CHECK-NOT: vector.fma
func.func @few_columns(%a: memref<?x?xf32>, %b: memref<?x16xbf16, strided<[64, 1]>>, %c: memref<?x16xf32>) {
  linalg.contract indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>]
      ins(%a, %b : memref<?x?xf32>, memref<?x16xbf16, strided<[64, 1]>>) outs(%c : memref<?x16xf32>)
  return
}

// Contracted along the memory of both factors: vectors of partial sums, of two
// rows and two columns at a time, whose lanes are added at the end; a row that is
// left over, and columns that are not there.
// CHECK-LABEL: func.func @along_memory
// CHECK: scf.for
// CHECK:   scf.for
// CHECK:     arith.minsi
// CHECK:     %[[SUMS:.*]]:4 = scf.for {{.*}} -> (vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>) {
// CHECK-COUNT-4: vector.fma
// CHECK:     %[[MASK:.*]] = vector.create_mask
// CHECK:     vector.shuffle %[[SUMS]]#0, %[[SUMS]]#2 [0, 1, 2, 3, 12, 13, 14, 15]
// CHECK:     vector.shuffle %[[SUMS]]#0, %[[SUMS]]#2 [4, 5, 6, 7, 8, 9, 10, 11]
// CHECK:     %[[FIRST:.*]] = arith.addf
// CHECK:     vector.shuffle %[[SUMS]]#1, %[[SUMS]]#3
// CHECK:     %[[SECOND:.*]] = arith.addf
// CHECK:     vector.shuffle %[[FIRST]], %[[SECOND]] [0, 1, 10, 11, 4, 5, 14, 15]
// CHECK:     vector.shuffle %[[FIRST]], %[[SECOND]] [2, 3, 8, 9, 6, 7, 12, 13]
// CHECK:     %[[QUARTERS:.*]] = arith.addf
// CHECK:     vector.shuffle %[[QUARTERS]], %[[QUARTERS]] [0, 2, 4, 6]
// CHECK:     vector.shuffle %[[QUARTERS]], %[[QUARTERS]] [1, 3, 5, 7]
// CHECK:     %[[ALL:.*]] = arith.addf
// CHECK:     vector.extract_strided_slice %[[ALL]] {offsets = [0], sizes = [2], strides = [1]}
// CHECK:     vector.maskedstore %{{.*}}, %[[MASK]]
// CHECK:     vector.extract_strided_slice %[[ALL]] {offsets = [2], sizes = [2], strides = [1]}
// CHECK:     vector.maskedstore %{{.*}}, %[[MASK]], %{{.*}} : memref<?x?xf32>, vector<2xi1>, vector<2xf32>
// CHECK:   scf.for
// CHECK:     scf.for {{.*}} -> (vector<8xf32>, vector<8xf32>) {
func.func @along_memory(%a: memref<?x128xf32>, %b: memref<?x128xf32, strided<[256, 1]>>, %c: memref<?x?xf32>) {
  linalg.contract indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (j, k)>, affine_map<(i, j, k) -> (i, j)>]
      ins(%a, %b : memref<?x128xf32>, memref<?x128xf32, strided<[256, 1]>>) outs(%c : memref<?x?xf32>)
  return
}

// One value a row, as statistics are: its second index is always 0.
// CHECK-LABEL: func.func @column
// CHECK: memref.load %{{.*}}[%{{.*}}, %{{.*}}] : memref<?x1xf32>
// CHECK: arith.mulf {{.*}} : vector<16xf32>
func.func @column(%x: memref<?x?xf32>, %row: memref<?x1xf32>) {
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, 0)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%row : memref<?x1xf32>) outs(%x : memref<?x?xf32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = arith.mulf %o, %a : f32
    linalg.yield %0 : f32
  }
  return
}

// Scalar loops: bits have no vectors in memory; lanes that are not there
// would divide by zero.
// CHECK-LABEL: func.func @scalar
// CHECK: memref.load {{.*}} : memref<?xi1>
// CHECK: arith.divsi {{.*}} : i32
func.func @scalar(%x: memref<?xi1>, %y: memref<?xi1>, %u: memref<?xi32>) {
  linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%x : memref<?xi1>) outs(%y : memref<?xi1>) {
  ^bb0(%a: i1, %o: i1):
    linalg.yield %a : i1
  }
  linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%u : memref<?xi32>) outs(%u : memref<?xi32>) {
  ^bb0(%a: i32, %o: i32):
    %0 = arith.divsi %o, %a : i32
    linalg.yield %0 : i32
  }
  return
}

// Squares of the right factor are transposed where the product needs them, from where
// vectors are aligned on; what is left on either side is put together one by one.
// CHECK-LABEL: func.func @in_order
// CHECK-SAME: %[[A:.*]]: memref<1x64xf32>, %[[B:.*]]: memref<?x64xf32>, %[[C:.*]]: memref<1x?xf32>
// CHECK: vector.create_mask
// CHECK: memref.extract_aligned_pointer_as_index %[[B]]
// CHECK: scf.for %{{.*}} = %c0{{.*}} to %c2{{.*}} step %c1
// CHECK:   scf.for
// CHECK-COUNT-8: memref.load %[[B]]
// CHECK:     vector.from_elements
// CHECK:     vector.fma
// CHECK:   scf.for {{.*}} step %c8
// CHECK-COUNT-8: vector.load %[[B]]
// CHECK-NOT: vector.load
// CHECK-COUNT-24: vector.shuffle
// CHECK-NOT: vector.shuffle
// CHECK-COUNT-8: vector.fma
// CHECK-NOT: vector.fma
// CHECK: vector.maskedstore %[[C]]
func.func @in_order(%a: memref<1x64xf32>, %b: memref<?x64xf32>, %c: memref<1x?xf32>) {
  linalg.contract indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]
      ins(%a, %b : memref<1x64xf32>, memref<?x64xf32>) outs(%c : memref<1x?xf32>) {varlen.in_order}
  return
}

// Four rows at a time, or one of them alone.
// CHECK-LABEL: func.func @rows_in_order
// CHECK-COUNT-24: vector.shuffle
// CHECK: scf.if
// CHECK-COUNT-8: vector.fma
// CHECK-NOT: vector.fma
// CHECK: } else {
// CHECK-COUNT-32: vector.fma
// CHECK-NOT: vector.fma
// CHECK: return
func.func @rows_in_order(%a: memref<?x64xf32>, %b: memref<32x64xf32>, %c: memref<?x32xf32>) {
  linalg.contract indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]
      ins(%a, %b : memref<?x64xf32>, memref<32x64xf32>) outs(%c : memref<?x32xf32>) {varlen.in_order}
  return
}

// A depth that is contiguous in neither factor.
// CHECK-LABEL: func.func @strided_in_order
// CHECK-NOT: vector.shuffle
// CHECK-COUNT-8: memref.load
// CHECK: vector.from_elements
// CHECK: return
func.func @strided_in_order(%a: memref<1x64xf32>, %b: memref<32x64xf32, strided<[128, 2]>>, %c: memref<1x32xf32>) {
  linalg.contract indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]
      ins(%a, %b : memref<1x64xf32>, memref<32x64xf32, strided<[128, 2]>>) outs(%c : memref<1x32xf32>) {varlen.in_order}
  return
}

// Sums begin with what their memory is filled with, which is not written then; of a few
// columns several rows are added at once. What the second fills is read.
// CHECK-LABEL: func.func @filled
// CHECK-NOT: vector.store
// CHECK: %[[S:.*]] = scf.for {{.*}} step %c2{{.*}} iter_args(%{{.*}} = %{{.*}}) -> (vector<8xf32>)
// CHECK-NOT: scf.yield
// CHECK-COUNT-2: arith.addf {{.*}} : vector<8xf32>
// CHECK: vector.store
// CHECK-LABEL: func.func @read
// CHECK: vector.store %{{.*}}, %[[ALLOC:.*]][
// CHECK: vector.load
#row = affine_map<(i, j) -> (0, j)>
func.func @filled(%x: memref<?x8xf32>, %y: memref<1x8xf32>) {
  %zero = arith.constant 0.0 : f32
  %s = memref.alloc() : memref<1x8xf32>
  linalg.fill ins(%zero : f32) outs(%s : memref<1x8xf32>)
  linalg.generic {indexing_maps = [#ij, #row], iterator_types = ["reduction", "parallel"]}
      ins(%x : memref<?x8xf32>) outs(%s : memref<1x8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = arith.addf %o, %a : f32
    linalg.yield %0 : f32
  }
  linalg.copy ins(%s : memref<1x8xf32>) outs(%y : memref<1x8xf32>)
  return
}
func.func @read(%x: memref<?x8xf32>, %y: memref<1x8xf32>) {
  %zero = arith.constant 0.0 : f32
  %s = memref.alloc() : memref<1x8xf32>
  linalg.fill ins(%zero : f32) outs(%s : memref<1x8xf32>)
  linalg.copy ins(%s : memref<1x8xf32>) outs(%y : memref<1x8xf32>)
  linalg.generic {indexing_maps = [#ij, #row], iterator_types = ["reduction", "parallel"]}
      ins(%x : memref<?x8xf32>) outs(%s : memref<1x8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = arith.addf %o, %a : f32
    linalg.yield %0 : f32
  }
  memref.dealloc %s : memref<1x8xf32>
  return
}

// A loop that gives on the memory that it was given: what is small is not fetched.
// CHECK-LABEL: func.func @given
// CHECK-NOT: iter_args(%{{.*}} = %alloc
// CHECK-NOT: memref.prefetch
// CHECK: return
func.func @given(%a: memref<8x64xf32>, %x: memref<64x16xf32>, %c: memref<8x16xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %b = memref.alloc() : memref<64x16xf32>
  %0 = scf.for %i = %c0 to %n step %c1 iter_args(%m = %b) -> (memref<64x16xf32>) {
    linalg.copy ins(%x : memref<64x16xf32>) outs(%m : memref<64x16xf32>)
    scf.yield %m : memref<64x16xf32>
  }
  linalg.matmul ins(%a, %0 : memref<8x64xf32>, memref<64x16xf32>) outs(%c : memref<8x16xf32>)
  memref.dealloc %b : memref<64x16xf32>
  return
}

// Whole vectors of columns are not masked, however few there are.
// CHECK-LABEL: func.func @narrow
// CHECK-NOT: mask
// CHECK: scf.for {{.*}} -> (vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>)
// CHECK-NOT: mask
// CHECK-LABEL: func.func @odd
// CHECK-NOT: mask
// CHECK: scf.for {{.*}} -> (vector<8xf32>{{(, vector<8xf32>)+}})
// CHECK: scf.for {{.*}} -> (vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>)
// CHECK-NOT: mask
// CHECK: return
func.func @narrow(%a: memref<6x64xf32>, %b: memref<64x8xf32>, %c: memref<6x8xf32>) {
  linalg.matmul ins(%a, %b : memref<6x64xf32>, memref<64x8xf32>) outs(%c : memref<6x8xf32>)
  return
}
func.func @odd(%a: memref<6x64xf32>, %b: memref<64x24xf32>, %c: memref<6x24xf32>) {
  linalg.matmul ins(%a, %b : memref<6x64xf32>, memref<64x24xf32>) outs(%c : memref<6x24xf32>)
  return
}

// Products that follow each other on a tile, and what is done with each element of it,
// happen in registers. The tile has no other reader.
// CHECK-LABEL: func.func @tile
// CHECK: %[[T:.*]] = memref.alloc()
// CHECK-NOT: vector.{{.*}}%[[T]]
// CHECK: %[[A:.*]]:6 = scf.for
// CHECK: %[[B:.*]]:12 = scf.for {{.*}} iter_args(%{{.*}} = %{{.*}}, %{{.*}} = %[[A]]#0, %{{.*}} = %{{.*}}, %{{.*}} = %[[A]]#1,
// CHECK-NOT: vector.{{.*}}%[[T]]
// CHECK: %[[X:.*]] = vector.load %[[Y:.*]][%{{.*}}, %{{.*}}] : memref<6x16xf32>, vector<8xf32>
// CHECK: %[[Z:.*]] = arith.addf %[[X]], %[[B]]#0
// CHECK: vector.store %[[Z]], %[[Y]]
// CHECK-NOT: vector.{{.*}}%[[T]]
// CHECK-LABEL: func.func @tile_is_read
// CHECK: %[[T:.*]] = memref.alloc()
// CHECK-COUNT-12: vector.store %{{.*}}, %[[T]]
// CHECK: return
#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @tile(%a: memref<6x64xf32>, %b: memref<64x8xf32>, %c: memref<6x64xf32>, %d: memref<64x16xf32>, %y: memref<6x16xf32>) {
  %zero = arith.constant 0.0 : f32
  %t = memref.alloc() : memref<6x16xf32>
  linalg.fill ins(%zero : f32) outs(%t : memref<6x16xf32>)
  %right = memref.subview %t[0, 8] [6, 8] [1, 1] : memref<6x16xf32> to memref<6x8xf32, strided<[16, 1], offset: 8>>
  linalg.contract indexing_maps = [#mk, #kn, #mn]
      ins(%a, %b : memref<6x64xf32>, memref<64x8xf32>) outs(%right : memref<6x8xf32, strided<[16, 1], offset: 8>>)
  linalg.contract indexing_maps = [#mk, #kn, #mn]
      ins(%c, %d : memref<6x64xf32>, memref<64x16xf32>) outs(%t : memref<6x16xf32>)
  linalg.generic {indexing_maps = [#ij, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%t : memref<6x16xf32>) outs(%y : memref<6x16xf32>) {
  ^bb0(%x: f32, %o: f32):
    %0 = arith.addf %o, %x : f32
    linalg.yield %0 : f32
  }
  return
}
func.func @tile_is_read(%c: memref<6x64xf32>, %d: memref<64x16xf32>, %y: memref<1x16xf32>) -> memref<6x16xf32> {
  %t = memref.alloc() : memref<6x16xf32>
  linalg.contract indexing_maps = [#mk, #kn, #mn]
      ins(%c, %d : memref<6x64xf32>, memref<64x16xf32>) outs(%t : memref<6x16xf32>)
  linalg.generic {indexing_maps = [#ij, #row], iterator_types = ["reduction", "parallel"]}
      ins(%t : memref<6x16xf32>) outs(%y : memref<1x16xf32>) {
  ^bb0(%x: f32, %o: f32):
    %0 = arith.addf %o, %x : f32
    linalg.yield %0 : f32
  }
  return %t : memref<6x16xf32>
}

// What belongs to columns is read before the rows.
// CHECK-LABEL: func.func @columns
// CHECK: vector.load %{{.*}} : memref<1x16xf32>, vector<16xf32>
// CHECK: scf.for {{.*}} step %c
// CHECK-NOT: memref<1x16xf32>
// CHECK: return
func.func @columns(%x: memref<?x16xf32>, %w: memref<1x16xf32>) {
  linalg.generic {indexing_maps = [#row, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%w : memref<1x16xf32>) outs(%x : memref<?x16xf32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = arith.mulf %o, %a : f32
    linalg.yield %0 : f32
  }
  return
}

// Products begin with zeros, and what is in memory is added in the end.
// CHECK-LABEL: func.func @add_last
// CHECK: %[[ZERO:.*]] = arith.constant dense<0.000000e+00> : vector<8xf32>
// CHECK: %[[SUMS:.*]]:{{[0-9]+}} = scf.for {{.*}} iter_args(%{{.*}} = %[[ZERO]],
// CHECK: %[[OLD:.*]] = vector.load %arg2
// CHECK: arith.addf %[[OLD]], %[[SUMS]]#0
func.func @add_last(%a: memref<6x64xf32>, %b: memref<64x16xf32>, %c: memref<6x16xf32>) {
  linalg.contract indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
      ins(%a, %b : memref<6x64xf32>, memref<64x16xf32>) outs(%c : memref<6x16xf32>) {varlen.add_last}
  return
}

// A sum of no rows: the vector of columns is what it was.
// CHECK-LABEL: func.func @no_rows
// CHECK: %[[V:.*]] = vector.load %arg1
// CHECK-NOT: scf.for
// CHECK: vector.store %[[V]], %arg1
func.func @no_rows(%x: memref<0x8xf32>, %y: memref<8xf32>) {
  linalg.generic {indexing_maps = [#ij, #j], iterator_types = ["reduction", "parallel"]}
      ins(%x : memref<0x8xf32>) outs(%y : memref<8xf32>) {
  ^bb0(%a: f32, %b: f32):
    %0 = arith.addf %a, %b : f32
    linalg.yield %0 : f32
  }
  return
}
