// RUN: varlen-opt %s --pass-pipeline='builtin.module(gpu.module(gpu.func(kernel-lower-access,canonicalize,cse)))' --split-input-file | FileCheck %s

// One head: no division. Pairs of columns in one store; those past the memory's
// 12 are left out, statically (n-tile 2) or by the thread (half of n-tile 1).
// CHECK-LABEL: gpu.func @tile
// CHECK-SAME: (%[[V:.*]]: vector<1x3x2x2xbf16>, %[[OUT:.*]]: memref<?x4x12xbf16>, %[[ROW:.*]]: index, %[[HEAD:.*]]: index, %[[FIRST:.*]]: index, %[[N:.*]]: index)
// CHECK-DAG: %[[C8:.*]] = arith.constant 8 : i32
// CHECK-DAG: %[[C12:.*]] = arith.constant 12 : i32
// CHECK: %[[BASE:.*]] = arith.addi %[[ROW]], %[[FIRST]] : index
// CHECK: %[[I:.*]] = arith.index_cast %[[R:.*]] : i32 to index
// CHECK: %[[OK:.*]] = arith.cmpi slt, %[[I]], %[[N]] : index
// CHECK: scf.if %[[OK]] {
// CHECK: %[[AT:.*]] = arith.addi %[[BASE]], %[[I]] : index
// CHECK: %[[P:.*]] = vector.extract %[[V]][0, 0, 0] : vector<2xbf16>
// CHECK: vector.store %[[P]], %[[OUT]][%[[AT]], %[[HEAD]], %{{.*}}] {alignment = 4 : i64} : memref<?x4x12xbf16>, vector<2xbf16>
// CHECK: %[[P1:.*]] = vector.extract %[[V]][0, 1, 0]
// CHECK: %[[COL:.*]] = arith.addi %{{.*}}, %[[C8]] : i32
// CHECK: %[[IN:.*]] = arith.cmpi slt, %[[COL]], %[[C12]] : i32
// CHECK: scf.if %[[IN]] {
// CHECK: vector.store %[[P1]]
// CHECK-NOT: vector.extract %[[V]][0, 2
// CHECK: %[[R1:.*]] = arith.addi %[[R]], %[[C8]] : i32
// CHECK: vector.extract %[[V]][0, 0, 1]
gpu.module @kernels {
  gpu.func @tile(%v: vector<1x3x2x2xbf16>, %out: memref<?x4x12xbf16>, %row: index, %head: index, %first: index, %n: index) kernel
      attributes {known_block_size = array<i32: 128, 1, 1>} {
    %one = arith.constant 1 : index
    kernel.store %v to %out rows(%row, %head, %first, %one) valid(%n) : vector<1x3x2x2xbf16> to memref<?x4x12xbf16>
    gpu.return
  }
}

// -----

// Grouped heads: one division for the tile, one of 32 bits for each row.
// CHECK-LABEL: gpu.func @grouped
// CHECK-SAME: (%[[V:.*]]: vector<1x1x2x1xf32>, %[[OUT:.*]]: memref<8x?xf32>, %[[ROW:.*]]: index, %[[HEAD:.*]]: index, %[[FIRST:.*]]: index, %[[GROUP:.*]]: index, %[[N:.*]]: index)
// CHECK: %[[Q:.*]] = arith.divui %[[FIRST]], %[[GROUP]] : index
// CHECK: %[[ROW0:.*]] = arith.addi %[[ROW]], %[[Q]] : index
// CHECK: %[[HEAD0:.*]] = arith.muli %[[HEAD]], %[[GROUP]] : index
// CHECK: %[[REM:.*]] = arith.remui %[[FIRST]], %[[GROUP]] : index
// CHECK: %[[PLACE:.*]] = arith.index_cast %[[REM]] : index to i32
// CHECK: %[[G:.*]] = arith.index_cast %[[GROUP]] : index to i32
// One lane of the four of a row writes.
// CHECK: %[[FIRSTLANE:.*]] = arith.cmpi eq, %{{.*}}, %{{.*}} : i32
// CHECK: %[[OK:.*]] = arith.cmpi slt, %{{.*}}, %[[N]] : index
// CHECK: %[[BOTH:.*]] = arith.andi %[[OK]], %[[FIRSTLANE]] : i1
// CHECK: scf.if %[[BOTH]] {
// CHECK: %[[PAIR:.*]] = arith.addi %[[PLACE]], %{{.*}} : i32
// CHECK: %[[D:.*]] = arith.divui %[[PAIR]], %[[G]] : i32
// CHECK: %[[DI:.*]] = arith.index_cast %[[D]] : i32 to index
// CHECK: %[[R:.*]] = arith.addi %[[ROW0]], %[[DI]] : index
// CHECK: %[[M:.*]] = arith.remui %[[PAIR]], %[[G]] : i32
// CHECK: %[[MI:.*]] = arith.index_cast %[[M]] : i32 to index
// CHECK: %[[H:.*]] = arith.addi %[[HEAD0]], %[[MI]] : index
// CHECK: %[[E:.*]] = vector.extract %[[V]][0, 0, 0, 0] : f32
// CHECK: memref.store %[[E]], %[[OUT]][%[[H]], %[[R]]] : memref<8x?xf32>
gpu.module @kernels {
  gpu.func @grouped(%v: vector<1x1x2x1xf32>, %out: memref<8x?xf32>, %row: index, %head: index, %first: index, %group: index, %n: index) kernel
      attributes {known_block_size = array<i32: 128, 1, 1>} {
    kernel.store %v to %out rows(%row, %head, %first, %group) valid(%n) : vector<1x1x2x1xf32> to memref<8x?xf32>
    gpu.return
  }
}

// -----

// Rows that may start at odd elements: one store for each element.
// CHECK-LABEL: gpu.func @odd
// CHECK-NOT: vector.store
// CHECK: memref.store {{.*}} : memref<?x4x9xbf16>
// CHECK: memref.store {{.*}} : memref<?x4x8xbf16, strided<[?, ?, 1], offset: ?>>
// CHECK: gpu.return
gpu.module @kernels {
  gpu.func @odd(%v: vector<1x2x2x2xbf16>, %a: memref<?x4x9xbf16>, %b: memref<?x4x8xbf16, strided<[?, ?, 1], offset: ?>>, %i: index) kernel
      attributes {known_block_size = array<i32: 128, 1, 1>} {
    kernel.store %v to %a rows(%i, %i, %i, %i) valid(%i) : vector<1x2x2x2xbf16> to memref<?x4x9xbf16>
    kernel.store %v to %b rows(%i, %i, %i, %i) valid(%i) : vector<1x2x2x2xbf16> to memref<?x4x8xbf16, strided<[?, ?, 1], offset: ?>>
    gpu.return
  }
}

// -----

// Rows that do not exist have the other value; a value per head has no row.
// CHECK-LABEL: gpu.func @load
// CHECK-SAME: (%[[MEM:.*]]: memref<8x?xf32>, %[[SINK:.*]]: memref<8xf32>, %{{.*}}: memref<8x?xf32>, %{{.*}}: index, %[[X:.*]]: f32)
// CHECK: %[[A:.*]] = scf.if %{{.*}} -> (f32) {
// CHECK: %[[V:.*]] = memref.load %[[MEM]][%[[H:.*]], %{{.*}}] : memref<8x?xf32>
// CHECK: scf.yield %[[V]]
// CHECK: } else {
// CHECK: scf.yield %[[X]]
// CHECK: %[[B:.*]] = scf.if
// CHECK: vector.from_elements %[[A]], %[[B]] : vector<1x1x2x1xf32>
// CHECK: memref.load %[[SINK]][%{{.*}}] : memref<8xf32>
gpu.module @kernels {
  gpu.func @load(%mem: memref<8x?xf32>, %sink: memref<8xf32>, %out: memref<8x?xf32>, %i: index, %x: f32) kernel
      attributes {known_block_size = array<i32: 128, 1, 1>} {
    %v = kernel.load %mem rows(%i, %i, %i, %i) valid(%i) otherwise %x : memref<8x?xf32> to vector<1x1x2x1xf32>
    %s = kernel.load %sink rows(%i, %i, %i, %i) valid(%i) otherwise %x : memref<8xf32> to vector<1x1x2x1xf32>
    %w = arith.addf %v, %s : vector<1x1x2x1xf32>
    kernel.store %w to %out rows(%i, %i, %i, %i) valid(%i) : vector<1x1x2x1xf32> to memref<8x?xf32>
    gpu.return
  }
}

// -----

// The rows of a tile, in pairs of columns, as bits where they come out of a branch.
// Columns that memory does not have are zeros.
// CHECK-LABEL: gpu.func @load_tile
// CHECK-SAME: (%[[MEM:[^:]*]]: memref<?x4x12xbf16>
// CHECK: %[[ROW:.*]]:2 = scf.if %{{.*}} -> (vector<2xi16>, vector<2xi16>) {
// CHECK: %[[P:.*]] = vector.load %[[MEM]][{{.*}}] {alignment = 4 : i64} : memref<?x4x12xbf16>, vector<2xbf16>
// CHECK: vector.bitcast %[[P]] : vector<2xbf16> to vector<2xi16>
// CHECK: scf.if %{{.*}} -> (vector<2xi16>) {
// CHECK: vector.load %[[MEM]]
// CHECK: } else {
// CHECK: } else {
// CHECK: vector.bitcast %[[ROW]]#0 : vector<2xi16> to vector<2xbf16>
// CHECK-LABEL: gpu.func @load_odd
// CHECK: memref.load {{.*}} : memref<?x4x9xbf16>
// CHECK-NOT: vector.load
// CHECK: gpu.return
gpu.module @kernels {
  gpu.func @load_tile(%mem: memref<?x4x12xbf16>, %out: memref<?x4x12xbf16>, %i: index, %x: bf16) kernel
      attributes {known_block_size = array<i32: 128, 1, 1>} {
    %v = kernel.load %mem rows(%i, %i, %i, %i) valid(%i) otherwise %x : memref<?x4x12xbf16> to vector<1x3x2x2xbf16>
    kernel.store %v to %out rows(%i, %i, %i, %i) valid(%i) : vector<1x3x2x2xbf16> to memref<?x4x12xbf16>
    gpu.return
  }
  gpu.func @load_odd(%mem: memref<?x4x9xbf16>, %out: memref<?x4x9xbf16>, %i: index, %x: bf16) kernel
      attributes {known_block_size = array<i32: 128, 1, 1>} {
    %v = kernel.load %mem rows(%i, %i, %i, %i) valid(%i) otherwise %x : memref<?x4x9xbf16> to vector<1x2x2x2xbf16>
    kernel.store %v to %out rows(%i, %i, %i, %i) valid(%i) : vector<1x2x2x2xbf16> to memref<?x4x9xbf16>
    gpu.return
  }
}

// -----

// Two values a row in one store.
// CHECK-LABEL: gpu.func @store_values
// CHECK-SAME: (%[[V:.*]]: vector<1x1x2x1xf32>, %[[W:.*]]: vector<1x1x2x1xf32>, %[[OUT:.*]]: memref<8x?x2xf32>
// CHECK: %[[A:.*]] = vector.extract %[[V]][0, 0, 0, 0]
// CHECK: %[[B:.*]] = vector.extract %[[W]][0, 0, 0, 0]
// CHECK: %[[AB:.*]] = vector.from_elements %[[A]], %[[B]] : vector<2xf32>
// CHECK: vector.store %[[AB]], %[[OUT]][{{.*}}] {alignment = 8 : i64}
gpu.module @kernels {
  gpu.func @store_values(%v: vector<1x1x2x1xf32>, %w: vector<1x1x2x1xf32>, %out: memref<8x?x2xf32>, %i: index) kernel
      attributes {known_block_size = array<i32: 128, 1, 1>} {
    kernel.store %v, %w to %out rows(%i, %i, %i, %i) valid(%i) : vector<1x1x2x1xf32>, vector<1x1x2x1xf32> to memref<8x?x2xf32>
    gpu.return
  }
}

// -----

// Two values a row in one load, for the columns of a tile, all of which exist.
// CHECK-LABEL: gpu.func @load_columns
// CHECK-SAME: (%[[MEM:.*]]: memref<8x?x2xf32>
// CHECK-NOT: scf.if
// CHECK-COUNT-4: vector.load %[[MEM]][%{{.*}}, %{{.*}}, %{{.*}}] {alignment = 8 : i64} : memref<8x?x2xf32>, vector<2xf32>
// CHECK-NOT: vector.load
// CHECK: vector.from_elements {{.*}} : vector<1x2x1x2xf32>
// CHECK: vector.from_elements {{.*}} : vector<1x2x1x2xf32>
gpu.module @kernels {
  gpu.func @load_columns(%mem: memref<8x?x2xf32>, %out: memref<?x8x16xf32>, %i: index, %x: f32) kernel
      attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    %v:2 = kernel.load %mem rows(%i, %i, %i, %c1) valid(%c16) otherwise %x
        : memref<8x?x2xf32> to vector<1x2x1x2xf32>, vector<1x2x1x2xf32>
    %a = arith.addf %v#0, %v#1 : vector<1x2x1x2xf32>
    %w = vector.broadcast %a : vector<1x2x1x2xf32> to vector<1x2x2x2xf32>
    kernel.store %w to %out rows(%i, %i, %i, %i) valid(%i) : vector<1x2x2x2xf32> to memref<?x8x16xf32>
    gpu.return
  }
}

// -----

// The scales of a block that is in one page: the page is looked up once.
// CHECK-LABEL: gpu.func @load_from_one_page
// CHECK-SAME: (%[[MEM:.*]]: memref<?x64x8x1xf32>, %[[TABLE:.*]]: memref<?x?xi32>
// CHECK-COUNT-1: memref.load %[[TABLE]]
// CHECK-NOT: memref.load %[[TABLE]]
// CHECK-COUNT-4: memref.load %[[MEM]][%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}]
// CHECK-NOT: memref.load
// In pages of any rows each is looked up, and one that does not exist is not.
// CHECK-LABEL: gpu.func @load_from_pages
// CHECK-SAME: (%[[MEM:.*]]: memref<?x?x8x1xf32>, %[[TABLE:.*]]: memref<?x?xi32>
// CHECK: scf.if
// CHECK: memref.load %[[TABLE]]
// CHECK: memref.load %[[MEM]]
// CHECK: scf.if
// CHECK: memref.load %[[TABLE]]
gpu.module @kernels {
  gpu.func @load_from_one_page(%mem: memref<?x64x8x1xf32>, %table: memref<?x?xi32>, %out: memref<?x8x16xf32>,
                               %i: index, %x: f32) kernel
      attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    %v = kernel.load %mem rows(%i, %i, %i, %c1) valid(%c16) otherwise %x pages(%table : memref<?x?xi32>)
        {one_page} : memref<?x64x8x1xf32> to vector<1x2x1x2xf32>
    %w = vector.broadcast %v : vector<1x2x1x2xf32> to vector<1x2x2x2xf32>
    kernel.store %w to %out rows(%i, %i, %i, %i) valid(%i) : vector<1x2x2x2xf32> to memref<?x8x16xf32>
    gpu.return
  }
  gpu.func @load_from_pages(%mem: memref<?x?x8x1xf32>, %table: memref<?x?xi32>, %out: memref<?x8x16xf32>,
                            %i: index, %x: f32) kernel
      attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c1 = arith.constant 1 : index
    %v = kernel.load %mem rows(%i, %i, %i, %c1) valid(%i) otherwise %x pages(%table : memref<?x?xi32>)
        : memref<?x?x8x1xf32> to vector<1x2x1x2xf32>
    %w = vector.broadcast %v : vector<1x2x1x2xf32> to vector<1x2x2x2xf32>
    kernel.store %w to %out rows(%i, %i, %i, %i) valid(%i) : vector<1x2x2x2xf32> to memref<?x8x16xf32>
    gpu.return
  }
}

// -----

// A sum that CTAs share, of four warps and 64 rows of 16 columns: two accesses of 16 bytes for each
// thread. A lane waits for the counter of its warp, and passes it on behind the others' stores.
// CHECK-LABEL: gpu.func @in_order
// CHECK-SAME: (%[[PART:.*]]: vector<1x2x2x2xf32>, %[[SUMS:.*]]: memref<?xf32>, %{{.*}}: memref<?xi32>, %{{.*}}: memref<?x4x16xf32>, %{{.*}}: index, %[[TURN:.*]]: i32, %[[FIRST:.*]]: i1, %[[LAST:.*]]: i1)
// CHECK-DAG: %[[ONE:.*]] = arith.constant 1 : i32
// CHECK: %[[COUNTER:.*]] = llvm.getelementptr
// CHECK: %[[TOTAL:.*]] = scf.if %[[FIRST]] -> (vector<1x2x2x2xf32>) {
// CHECK-NEXT:   scf.yield %[[PART]]
// CHECK: } else {
// CHECK:   scf.if
// CHECK-NEXT:     scf.while : () -> () {
// CHECK-NEXT:       %[[NOW:.*]] = llvm.load %[[COUNTER]] atomic syncscope("device") acquire {alignment = 4 : i64}
// CHECK-NEXT:       %[[WAITS:.*]] = arith.cmpi ne, %[[NOW]], %[[TURN]] : i32
// CHECK-NEXT:       scf.condition(%[[WAITS]])
// CHECK:   nvvm.bar.warp.sync
// CHECK-COUNT-2: vector.load %[[SUMS]][%{{.*}}] {alignment = 16 : i64} : memref<?xf32>, vector<4xf32>
// CHECK:   arith.addf %{{.*}}, %[[PART]] : vector<1x2x2x2xf32>
// CHECK: scf.if %[[LAST]] {
// CHECK-NEXT: } else {
// CHECK-COUNT-2: vector.store %{{.*}}, %[[SUMS]][%{{.*}}] {alignment = 16 : i64} : memref<?xf32>, vector<4xf32>
// CHECK:   nvvm.bar.warp.sync
// CHECK:   scf.if
// CHECK-NEXT:     %[[NEXT:.*]] = arith.addi %[[TURN]], %[[ONE]] : i32
// CHECK-NEXT:     llvm.store %[[NEXT]], %[[COUNTER]] atomic syncscope("device") release {alignment = 4 : i64}
gpu.module @kernels {
  gpu.func @in_order(%part: vector<1x2x2x2xf32>, %sums: memref<?xf32>, %counters: memref<?xi32>, %out: memref<?x4x16xf32>,
                     %slot: index, %turn: i32, %first: i1, %last: i1) kernel
      attributes {known_block_size = array<i32: 128, 1, 1>} {
    %total = kernel.add_in_order %part to %sums[%slot] of %counters turn(%turn, %first, %last)
        : vector<1x2x2x2xf32>, memref<?xf32>, memref<?xi32>
    kernel.store %total to %out rows(%slot, %slot, %slot, %slot) valid(%slot)
        : vector<1x2x2x2xf32> to memref<?x4x16xf32>
    gpu.return
  }
}

// -----

// Rows of memory are columns of the fragment; four warps have 64 rows of it, of which memory has 60.
// CHECK-LABEL: gpu.func @transposed
// CHECK-SAME: (%[[V:.*]]: vector<1x1x2x2xf32>, %[[OUT:.*]]: memref<?x4x60xf32>, %{{.*}}: index, %[[N:.*]]: index)
// CHECK-DAG: %[[C60:.*]] = arith.constant 60 : i32
// CHECK: %[[ROW:.*]] = arith.index_cast %[[COLUMN:.*]] : i32 to index
// CHECK: %[[EXISTS:.*]] = arith.cmpi slt, %[[ROW]], %[[N]] : index
// CHECK: scf.if %[[EXISTS]] {
// CHECK:   %[[INSIDE:.*]] = arith.cmpi slt, %{{.*}}, %[[C60]] : i32
// CHECK:   scf.if %[[INSIDE]] {
// CHECK:     %[[X:.*]] = vector.extract %[[V]][0, 0, 0, 0]
// CHECK:     memref.store %[[X]], %[[OUT]]
// CHECK:   vector.extract %[[V]][0, 0, 1, 0]
// CHECK: scf.if
// CHECK:   vector.extract %[[V]][0, 0, 0, 1]
// CHECK:   vector.extract %[[V]][0, 0, 1, 1]
gpu.module @kernels {
  gpu.func @transposed(%v: vector<1x1x2x2xf32>, %out: memref<?x4x60xf32>, %i: index, %n: index) kernel
      attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c1 = arith.constant 1 : index
    kernel.store %v to %out rows(%i, %i, %i, %c1) valid(%n) {transposed} : vector<1x1x2x2xf32> to memref<?x4x60xf32>
    gpu.return
  }
}
