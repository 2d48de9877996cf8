// RUN: varlen-opt %s --varlen-expand-rows --canonicalize --split-input-file | FileCheck %s

// A group of 1: one view. Rows behind the last, and columns past those of
// memory, become zero.

// CHECK-LABEL: @rows
// CHECK-SAME: %[[K:[^:]*]]: memref<?x2x60xf32>, %[[ROW:[^:]*]]: index, %[[HEAD:[^:]*]]: index, %[[K0:[^:]*]]: index, %[[N:[^:]*]]: index, %[[TO:[^:]*]]: memref<?x64xf32>
// CHECK: %[[FIRST:.*]] = arith.addi %[[ROW]], %[[K0]]
// CHECK: %[[FROM:.*]] = memref.subview %[[K]][%[[FIRST]], %[[HEAD]], 0] [%[[N]], 1, 60]
// CHECK: %[[PART:.*]] = memref.subview %[[TO]][0, 0] [%[[N]], 60]
// CHECK: linalg.copy ins(%[[FROM]] {{.*}} outs(%[[PART]]
// CHECK: %[[PAST:.*]] = memref.subview %[[TO]][0, 60] [%[[N]], 4]
// CHECK: linalg.fill ins(%{{.*}}) outs(%[[PAST]]
// CHECK: %[[ALL:.*]] = memref.dim %[[TO]], %c0
// CHECK: %[[OTHERS:.*]] = arith.subi %[[ALL]], %[[N]]
// CHECK: %[[REST:.*]] = memref.subview %[[TO]][%[[N]], 0] [%[[OTHERS]], 64]
// CHECK: linalg.fill ins(%{{.*}}) outs(%[[REST]]
func.func @rows(%k: memref<?x2x60xf32>, %row: index, %head: index, %k0: index, %n: index,
                %to: memref<?x64xf32>) {
  %one = arith.constant 1 : index
  varlen.read_rows %k rows(%row, %head, %k0, %one) valid(%n) to %to as rows
      : memref<?x2x60xf32> to memref<?x64xf32>
  return
}

// -----

// A tile of the rows that exist: nothing becomes zero.

// CHECK-LABEL: @exact
// CHECK: linalg.copy
// CHECK-NOT: linalg.fill
func.func @exact(%k: memref<?x2x64xf32>, %row: index, %head: index, %k0: index, %n: index,
                 %memory: memref<48x64xf32>) {
  %one = arith.constant 1 : index
  %to = memref.subview %memory[0, 0] [%n, 64] [1, 1] : memref<48x64xf32> to memref<?x64xf32, strided<[64, 1]>>
  varlen.read_rows %k rows(%row, %head, %k0, %one) valid(%n) to %to as rows
      : memref<?x2x64xf32> to memref<?x64xf32, strided<[64, 1]>>
  return
}

// -----

// A group that is not known: one view, or one for each token.

// CHECK-LABEL: @group
// CHECK-SAME: %[[OUT:[^:]*]]: memref<?x8x64xbf16>
// CHECK: %[[IS_ONE:.*]] = arith.cmpi eq, %{{.*}}, %c1
// CHECK: scf.if %[[IS_ONE]] {
// CHECK: memref.subview %[[OUT]][%{{.*}}, %{{.*}}, 0] [%{{.*}}, 1, 64]
// CHECK: linalg.generic
// CHECK: } else {
// CHECK: scf.for
// CHECK: %[[TO:.*]] = memref.subview %[[OUT]][%{{.*}}, %{{.*}}, 0] [1, %[[HEADS:[^,]*]], 64]
// CHECK: linalg.generic {{.*}} outs(%[[TO]]
// CHECK: arith.mulf %{{.*}}, %{{.*}} : f32
// CHECK: arith.truncf %{{.*}} : f32 to bf16
func.func @group(%out: memref<?x8x64xbf16>, %row: index, %head: index, %first: index,
                 %group: index, %n: index, %scratch: memref<48x64xf32>) {
  varlen.write_rows %scratch to %out rows(%row, %head, %first, %group) valid(%n) times 0.125
      : memref<48x64xf32> to memref<?x8x64xbf16>
  return
}

// -----

// CHECK-LABEL: @fill
// CHECK: scf.for
// CHECK: %[[TO:.*]] = memref.subview %{{.*}}[%{{.*}}, %{{.*}}, 0] [1, %{{.*}}, 64]
// CHECK: linalg.fill ins(%{{.*}} : bf16) outs(%[[TO]]
func.func @fill(%out: memref<?x8x64xbf16>, %row: index, %head: index, %first: index, %n: index) {
  %group = arith.constant 4 : index
  varlen.fill_rows %out rows(%row, %head, %first, %group) valid(%n) with 0.0 : memref<?x8x64xbf16>
  return
}

// -----

// Pages: one after the other, with entries kept within memory; or the one that
// has all rows.

// CHECK-LABEL: @pages
// CHECK-SAME: %[[K:[^:]*]]: memref<?x16x2x64xf32>, %[[TABLE:[^:]*]]: memref<?x?xi32>
// CHECK: scf.for %[[PAGE:[^ ]*]] =
// CHECK: %[[ENTRY:.*]] = memref.load %[[TABLE]]
// CHECK: arith.maxsi
// CHECK: arith.minsi
// CHECK: memref.subview %[[K]][%{{.*}}, 0, 0, 0] [1, 16, 2, 64]
// CHECK: linalg.copy
// CHECK-NOT: scf.for
// CHECK: memref.load %[[TABLE]]
// CHECK: scf.for
// CHECK: memref.prefetch %{{.*}}[%{{.*}}, %c0], read, locality<2>, data
// CHECK: memref.prefetch %{{.*}}[%{{.*}}, %c48], read, locality<2>, data
func.func @pages(%k: memref<?x16x2x64xf32>, %table: memref<?x?xi32>, %s: index, %head: index,
                 %k0: index, %n: index, %to: memref<?x64xf32>) {
  %one = arith.constant 1 : index
  varlen.read_rows %k rows(%s, %head, %k0, %one) valid(%n) pages(%table : memref<?x?xi32>) to %to as rows
      : memref<?x16x2x64xf32> to memref<?x64xf32>
  varlen.prefetch_rows %k rows(%s, %head, %k0, %one) valid(%n) pages(%table : memref<?x?xi32>) {one_page}
      : memref<?x16x2x64xf32>
  return
}

// -----

// Columns: rows of one head are transposed where they are; lanes of a vector
// behind the last one are 0.

// CHECK-LABEL: @columns
// CHECK-SAME: %[[Q:[^:]*]]: memref<?x8x64xf32>, %{{.*}}: index, %{{.*}}: index, %{{.*}}: index, %[[N:[^:]*]]: index, %[[TO:[^:]*]]: memref<64x16xf32>
// CHECK: %[[PART:.*]] = memref.subview %[[TO]][0, %{{.*}}] [64, 8]
// CHECK: linalg.fill {{.*}} outs(%[[PART]]
// CHECK: %[[ROWS:.*]] = memref.subview %[[Q]][%{{.*}}, %{{.*}}, 0] [%[[N]], 1, 64]
// CHECK: %[[COLUMNS:.*]] = memref.subview %[[TO]][0, 0] [64, %[[N]]]
// CHECK: linalg.transpose ins(%[[ROWS]] {{.*}} outs(%[[COLUMNS]] {{.*}} permutation = [1, 0]
func.func @columns(%q: memref<?x8x64xf32>, %row: index, %head: index, %first: index,
                   %n: index, %to: memref<64x16xf32>, %c: i1) {
  %one = arith.constant 1 : index
  scf.if %c {
    varlen.read_rows %q rows(%row, %head, %first, %one) valid(%n) to %to as columns
        : memref<?x8x64xf32> to memref<64x16xf32>
  } {varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 2, kv_block = 32, kv = copy>}
  return
}

// -----

// A group that is not known: vector by vector: where they are if they are of
// one head, else of a copy.

// CHECK-LABEL: @vectors
// CHECK: %[[SCRATCH:.*]] = memref.alloc() {alignment = 64 : i64} : memref<8x64xf32>
// CHECK: scf.for %[[COLUMN:[^ ]*]] = %c0 to %{{.*}} step %c8
// CHECK: %[[ROWS:.*]] = scf.if
// CHECK: memref.subview %{{.*}} [8, 1, 64]
// CHECK: } else {
// CHECK: linalg.copy
// CHECK: linalg.fill
// CHECK: %[[TO:.*]] = memref.subview %{{.*}}[0, %[[COLUMN]]] [64, 8]
// CHECK: linalg.transpose ins(%[[ROWS]] {{.*}} outs(%[[TO]] {{.*}} permutation = [1, 0]
func.func @vectors(%q: memref<?x8x64xf32>, %row: index, %head: index, %first: index, %group: index,
                   %n: index, %to: memref<64x16xf32>, %c: i1) {
  scf.if %c {
    varlen.read_rows %q rows(%row, %head, %first, %group) valid(%n) to %to as columns
        : memref<?x8x64xf32> to memref<64x16xf32>
  } {varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 2, kv_block = 32, kv = copy>}
  return
}

// -----

// Several orders: memory is read once, as rows.

// CHECK-LABEL: @orders
// CHECK-SAME: %[[Q:[^:]*]]: memref<?x8x64xbf16>
// CHECK: %[[ROWS:.*]] = memref.alloc() {alignment = 64 : i64} : memref<16x64xbf16>
// CHECK: memref.subview %[[Q]]
// CHECK-NOT: memref.subview %[[Q]]
// CHECK: scf.for
// CHECK: memref.subview %[[ROWS]]
// CHECK: linalg.transpose {{.*}} permutation = [1, 0, 2]
// CHECK: memref.expand_shape %[[ROWS]]
// CHECK: linalg.transpose {{.*}} permutation = [0, 2, 1]
func.func @orders(%q: memref<?x8x64xbf16>, %row: index, %head: index, %first: index, %n: index,
                  %columns: memref<32x32xbf16>, %pairs: memref<8x128xbf16>, %c: i1) {
  %group = arith.constant 4 : index
  scf.if %c {
    varlen.read_rows %q rows(%row, %head, %first, %group) valid(%n) to %columns as column_pairs, %pairs as row_pairs
        : memref<?x8x64xbf16> to memref<32x32xbf16>, memref<8x128xbf16>
  } {varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 2, kv_block = 32, kv = pairs>}
  return
}

// -----

// Pairs of keys: from memory, but for a last row without another.

// CHECK-LABEL: @pairs
// CHECK-SAME: %[[V:[^:]*]]: memref<?x2x64xbf16>
// CHECK: %[[EVEN:.*]] = arith.muli %{{.*}}, %c2
// CHECK: %[[ROWS:.*]] = memref.subview %[[V]][%{{.*}}, %{{.*}}, 0] [%[[EVEN]], 1, 64]
// CHECK: memref.expand_shape %[[ROWS]]
// CHECK: linalg.transpose {{.*}} permutation = [0, 2, 1]
// CHECK: scf.if
// CHECK: memref.alloc() {alignment = 64 : i64} : memref<2x64xbf16>
// CHECK: linalg.copy
// CHECK: linalg.fill
// CHECK: linalg.transpose {{.*}} permutation = [0, 2, 1]
// CHECK: }
// CHECK: linalg.fill
func.func @pairs(%v: memref<?x2x64xbf16>, %row: index, %head: index, %k0: index, %n: index,
                 %to: memref<?x128xbf16>, %c: i1) {
  %one = arith.constant 1 : index
  scf.if %c {
    varlen.read_rows %v rows(%row, %head, %k0, %one) valid(%n) to %to as row_pairs
        : memref<?x2x64xbf16> to memref<?x128xbf16>
  } {varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 2, kv_block = 32, kv = pairs>}
  return
}

// -----

// Pairs of keys that may be in different pages: of a copy of rows.

// CHECK-LABEL: @pairs_in_pages
// CHECK: %[[COPY:.*]] = memref.alloc() {alignment = 64 : i64} : memref<32x64xbf16>
// CHECK: %[[ROWS:.*]] = memref.subview %[[COPY]]
// CHECK: scf.for
// CHECK: linalg.copy
// CHECK: linalg.fill
// CHECK: memref.expand_shape %[[ROWS]]
// CHECK: linalg.transpose {{.*}} permutation = [0, 2, 1]
func.func @pairs_in_pages(%v: memref<?x6x2x64xbf16>, %table: memref<?x?xi32>, %s: index, %head: index,
                          %k0: index, %n: index, %to: memref<?x128xbf16>, %c: i1) {
  %one = arith.constant 1 : index
  scf.if %c {
    varlen.read_rows %v rows(%s, %head, %k0, %one) valid(%n) pages(%table : memref<?x?xi32>) to %to as row_pairs
        : memref<?x6x2x64xbf16> to memref<?x128xbf16>
  } {varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 2, kv_block = 32, kv = pairs>}
  return
}

// -----

// Rows where they are, of a sequence or of one page: a view.

// CHECK-LABEL: @load
// CHECK: %[[VIEW:.*]] = memref.subview %{{.*}}[%{{.*}}, %{{.*}}, 0] [%{{.*}}, 1, 64]
// CHECK: %[[K:.*]] = bufferization.to_tensor %[[VIEW]] restrict
// CHECK: memref.subview %{{.*}}[%{{.*}}, 0, 0, 0] [1, 16, 2, 64]
// CHECK: %[[V:.*]] = bufferization.to_tensor %{{.*}} restrict
// CHECK: return %[[K]], %[[V]]
func.func @load(%k: memref<?x2x64xf32>, %v: memref<?x16x2x64xi8>, %table: memref<?x?xi32>, %row: index,
                %head: index, %k0: index, %n: index) -> (tensor<?x64xf32>, tensor<?x64xi8>) {
  %0 = varlen.load_rows %k rows(%row, %head, %k0) valid(%n) : memref<?x2x64xf32> -> tensor<?x64xf32>
  %1 = varlen.load_rows %v rows(%row, %head, %k0) valid(%n) pages(%table : memref<?x?xi32>) {one_page}
      : memref<?x16x2x64xi8> -> tensor<?x64xi8>
  return %0, %1 : tensor<?x64xf32>, tensor<?x64xi8>
}

// -----

// Rows in pages: a product of which they are columns writes its result page by page, one
// that contracts them adds up in order. While a page of 16 rows is read, what is asked for is
// 32 rows ahead: the page after the next.

// CHECK-LABEL: @load_pages
// CHECK-SAME: %[[Q:[^:]*]]: tensor<?x64xf32>, %[[K:[^:]*]]: memref<?x16x2x64xf32>, %[[TABLE:[^:]*]]: memref<?x?xi32>, %{{[^:]*}}: index, %{{[^:]*}}: index, %[[K0:[^:]*]]: index, %[[N:[^:]*]]: index, %[[S:[^:]*]]: tensor<?x?xf32>, %[[O:[^:]*]]: tensor<?x64xf32>
// CHECK: %[[SCORES:.*]] = scf.for %[[PAGE:[^ ]*]] = %{{.*}} to %{{.*}} step %c1 iter_args(%[[SO_FAR:.*]] = %[[S]])
// CHECK: %[[ROW:.*]] = arith.muli %[[PAGE]], %c16
// CHECK: %[[BEGIN:.*]] = arith.maxsi %[[K0]], %[[ROW]]
// CHECK: %[[COUNT:.*]] = arith.subi %[[BEHIND:.*]], %[[BEGIN]]
// CHECK: %[[FROM:.*]] = arith.subi %[[BEGIN]], %[[K0]]
// CHECK: memref.load %[[TABLE]]
// CHECK: %[[ROWS:.*]] = memref.subview %{{.*}}[%{{.*}}, %{{.*}}, 0] [%[[COUNT]], 1, 64]
// CHECK: %[[LATER:.*]] = arith.addi %[[BEHIND]], %c16
// CHECK: arith.divui %[[LATER]], %c16
// CHECK: memref.load %[[TABLE]]
// CHECK: %[[NEXT:.*]] = memref.subview %{{.*}}[%{{.*}}, %{{.*}}, 0] [%{{.*}}, 1, 64]
// CHECK: %[[THEN:.*]] = varlen.followed_by %[[ROWS]] then %[[NEXT]]
// CHECK: %[[TILE:.*]] = bufferization.to_tensor %[[THEN]] restrict
// CHECK: %[[PART:.*]] = tensor.extract_slice %[[SO_FAR]][0, %[[FROM]]] [%{{.*}}, %[[COUNT]]]
// CHECK: %[[NEW:.*]] = linalg.contract {{.*}} ins(%[[Q]], %[[TILE]] : {{.*}} outs(%[[PART]]
// CHECK: %[[ALL:.*]] = tensor.insert_slice %[[NEW]] into %[[SO_FAR]][0, %[[FROM]]]
// CHECK: scf.yield %[[ALL]]
// CHECK: scf.for {{.*}} iter_args(%[[SUM:.*]] = %[[O]])
// CHECK: %[[TILE:.*]] = bufferization.to_tensor
// CHECK: %[[WEIGHTS:.*]] = tensor.extract_slice %[[SCORES]][0, %{{.*}}]
// CHECK: %[[NEW:.*]] = linalg.contract {{.*}} ins(%[[WEIGHTS]], %[[TILE]] : {{.*}} outs(%[[SUM]]
// CHECK: scf.yield %[[NEW]]
func.func @load_pages(%q: tensor<?x64xf32>, %k: memref<?x16x2x64xf32>, %table: memref<?x?xi32>, %row: index,
                      %head: index, %k0: index, %n: index, %s: tensor<?x?xf32>, %o: tensor<?x64xf32>)
    -> tensor<?x64xf32> {
  %tile = varlen.load_rows %k rows(%row, %head, %k0) valid(%n) pages(%table : memref<?x?xi32>)
      : memref<?x16x2x64xf32> -> tensor<?x64xf32>
  %scores = linalg.contract indexing_maps = [affine_map<(i, j, d) -> (i, d)>, affine_map<(i, j, d) -> (j, d)>, affine_map<(i, j, d) -> (i, j)>]
      ins(%q, %tile : tensor<?x64xf32>, tensor<?x64xf32>) outs(%s : tensor<?x?xf32>) -> tensor<?x?xf32>
  %out = linalg.contract indexing_maps = [affine_map<(i, d, j) -> (i, j)>, affine_map<(i, d, j) -> (j, d)>, affine_map<(i, d, j) -> (i, d)>]
      ins(%scores, %tile : tensor<?x?xf32>, tensor<?x64xf32>) outs(%o : tensor<?x64xf32>) -> tensor<?x64xf32>
  return %out : tensor<?x64xf32>
}

// -----

// What is not of linalg, or has an index, reads a copy; extents are known.

// CHECK-LABEL: @load_copy
// CHECK-SAME: %[[N:[^:]*]]: index, %{{[^:]*}}: i1
// CHECK: %[[SCRATCH:.*]] = memref.alloc() {alignment = 64 : i64} : memref<32x64xf32>
// CHECK: %[[COPY:.*]] = memref.subview %[[SCRATCH]][0, 0] [%[[N]], 64]
// CHECK: scf.for
// CHECK: linalg.copy
// CHECK: %[[TILE:.*]] = bufferization.to_tensor %[[COPY]] restrict
// CHECK: tensor.extract %[[TILE]][%c0, %c0]
// CHECK: linalg.generic {{.*}} ins(%[[TILE]]
// CHECK: vector.print %[[N]]
func.func @load_copy(%k: memref<?x16x2x64xf32>, %table: memref<?x?xi32>, %row: index, %head: index,
                     %k0: index, %o: tensor<?x64xf32>, %n: index, %c: i1) {
  scf.if %c {
    %tile = varlen.load_rows %k rows(%row, %head, %k0) valid(%n) pages(%table : memref<?x?xi32>)
        : memref<?x16x2x64xf32> -> tensor<?x64xf32>
    %zero = arith.constant 0 : index
    %first = tensor.extract %tile[%zero, %zero] : tensor<?x64xf32>
    vector.print %first : f32
    %0 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
                         iterator_types = ["parallel", "parallel"]}
        ins(%tile : tensor<?x64xf32>) outs(%o : tensor<?x64xf32>) {
    ^bb0(%x: f32, %y: f32):
      %i = linalg.index 0 : index
      %number = arith.index_cast %i : index to i32
      %f = arith.sitofp %number : i32 to f32
      %sum = arith.addf %x, %f : f32
      linalg.yield %sum : f32
    } -> tensor<?x64xf32>
    %last = tensor.extract %0[%zero, %zero] : tensor<?x64xf32>
    vector.print %last : f32
    %rows = tensor.dim %tile, %zero : tensor<?x64xf32>
    vector.print %rows : index
  } {varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 2, kv_block = 32, kv = copy>}
  return
}

// -----

// The fields of a row that are used are loaded; a constant is there once.

// CHECK-LABEL: @work
// CHECK: %[[NINE:.*]] = memref.load %[[LIST:.*]][%[[I:.*]], %c9]
// CHECK: %[[END:.*]] = arith.index_cast %[[NINE]] : i64 to index
// CHECK-NOT: memref.load
// CHECK: return %[[END]]
func.func @work(%list: memref<?x10xi64>, %i: index) -> index {
  %fields:10 = varlen.read_work %list[%i] : memref<?x10xi64>
  return %fields#9 : index
}
