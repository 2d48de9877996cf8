// RUN: varlen-opt %s --convert-varlen-to-runtime --split-input-file | FileCheck %s

// CHECK-LABEL: func @plain(
// CHECK-SAME: %[[CUQ:.*]]: memref<?xi32>, %[[CUK:.*]]: memref<5xi32>, %[[TQ:.*]]: index, %[[TK:.*]]: index, %[[HEADS:.*]]: index, %[[GROUP:.*]]: index)
// CHECK: %[[SLOT:.*]] = llvm.alloca %{{.*}} x i64
// CHECK: %[[DQ:.*]] = builtin.unrealized_conversion_cast %[[CUQ]]
// CHECK: %[[PQ:.*]] = llvm.extractvalue %[[DQ]][1]
// CHECK: %[[DIM:.*]] = memref.dim %[[CUQ]]
// CHECK: %[[NQ:.*]] = arith.index_cast %[[DIM]]
// CHECK: %[[DK:.*]] = builtin.unrealized_conversion_cast %[[CUK]]
// CHECK: %[[PK:.*]] = llvm.extractvalue %[[DK]][1]
// CHECK: %[[NONE:.*]] = llvm.mlir.zero : !llvm.ptr
// CHECK: %[[C0:.*]] = arith.constant 0 : i64
// CHECK: %[[BYTES:.*]] = arith.constant 4 : i32
// CHECK: %[[TQ64:.*]] = arith.index_cast %[[TQ]]
// CHECK: %[[TK64:.*]] = arith.index_cast %[[TK]]
// CHECK: %[[HEADS64:.*]] = arith.index_cast %[[HEADS]]
// CHECK: %[[GROUP64:.*]] = arith.index_cast %[[GROUP]]
// CHECK: %[[BLOCK:.*]] = arith.constant 64 : i64
// CHECK: %[[MASK:.*]] = constant @mask_bounds : (i64, i64, i64, i64, i64, !llvm.ptr) -> ()
// CHECK: %[[MASK_ADDRESS:.*]] = builtin.unrealized_conversion_cast %[[MASK]] : {{.*}} to !llvm.ptr
// CHECK: %[[NULL:.*]] = llvm.mlir.zero : !llvm.ptr
// CHECK: llvm.store %[[NULL]], %[[SLOT]]
// CHECK: %[[N:.*]] = call @varlen_work_tiles(%[[PQ]], %[[NQ]], %[[PK]], %{{[^,]*}}, %[[NONE]], %[[C0]], {{.*}}, %[[BYTES]], %[[TQ64]], %[[TK64]], %[[HEADS64]], %[[GROUP64]], %[[BLOCK]], %[[MASK_ADDRESS]], %[[SLOT]])
// CHECK-SAME: (!llvm.ptr, i64, !llvm.ptr, i64, !llvm.ptr, i64, !llvm.ptr, i64, !llvm.ptr, i64, i32, i64, i64, i64, i64, i64, !llvm.ptr, !llvm.ptr) -> i64
// CHECK: %[[ZERO:.*]] = arith.constant 0 : i64
// CHECK: %[[COUNT:.*]] = arith.maxsi %[[N]], %[[ZERO]]
// CHECK: %[[LIST:.*]] = llvm.load %[[SLOT]]
// CHECK: llvm.insertvalue %[[LIST]], %{{.*}}[0]
// CHECK: llvm.insertvalue %[[LIST]], %{{.*}}[1]
// CHECK: llvm.insertvalue %[[COUNT]], %{{.*}}[3, 0]
// CHECK: %[[TILES:.*]] = builtin.unrealized_conversion_cast %{{.*}} to memref<?x10xi64>
// CHECK: return %[[TILES]]
func.func @plain(%cu_q: memref<?xi32>, %cu_k: memref<5xi32>, %tq: index, %tk: index, %heads: index, %group: index) -> memref<?x10xi64> {
  %tiles = varlen.work_tiles %cu_q, %cu_k rows(%tq, %tk) heads(%heads, %group)
      mask #varlen.mask<window = (128, 0)> block_m 64
      : (memref<?xi32>, memref<5xi32>, index, index, index, index) -> memref<?x10xi64>
  return %tiles : memref<?x10xi64>
}

// What the mask leaves of a sequence: the runtime asks for the keys of some of its
// queries. 1 is added to the end, of which the diagonal saturates.
// CHECK-LABEL: func private @mask_bounds(
// CHECK-SAME: %[[QUERIES:.*]]: i64, %[[KEYS:.*]]: i64, %[[OFFSET:.*]]: i64, %[[FIRST:.*]]: i64, %[[LAST:.*]]: i64, %[[RANGE:.*]]: !llvm.ptr)
// CHECK: %[[DIAGONAL:.*]] = arith.subi %[[KEYS]], %[[QUERIES]]
// CHECK: %[[NEAR:.*]] = arith.maxsi %[[OFFSET]], %{{.*}}
// CHECK: arith.addi %[[NEAR]], %{{.*}}
// CHECK: %[[LEFT:.*]] = arith.addi %[[DIAGONAL]], %{{.*}}
// CHECK: %[[RIGHT:.*]] = arith.addi %[[DIAGONAL]], %{{.*}}
// CHECK: %[[PAST:.*]] = arith.addi %[[RIGHT]], %{{.*}}
// CHECK: %[[FIRST_KEY:.*]] = arith.addi %[[FIRST]], %[[LEFT]]
// CHECK: %[[BEGIN:.*]] = arith.maxsi %[[FIRST_KEY]], %{{.*}}
// CHECK: %[[LAST_KEY:.*]] = arith.addi %[[LAST]], %[[PAST]]
// CHECK: %[[NOT_NEGATIVE:.*]] = arith.maxsi %[[LAST_KEY]], %{{.*}}
// CHECK: %[[END:.*]] = arith.minsi %[[NOT_NEGATIVE]], %[[KEYS]]
// CHECK: %[[SECOND:.*]] = llvm.getelementptr %[[RANGE]][1]
// CHECK: llvm.store %[[BEGIN]], %[[RANGE]]
// CHECK: llvm.store %[[END]], %[[SECOND]]
// CHECK: return
// CHECK: func private @varlen_work_tiles

// -----

// Every key is seen: no function. Two lists of one mask share theirs.
// CHECK-LABEL: func @masks(
// CHECK: %[[NULL:.*]] = llvm.mlir.zero : !llvm.ptr
// CHECK: constant @mask_bounds :
// CHECK: constant @mask_bounds :
// CHECK: constant @[[OTHER:mask_bounds_.*]] :
// CHECK: func private @mask_bounds(
// CHECK: func private @[[OTHER]](
// CHECK-NOT: func private @mask_bounds
func.func @masks(%cu: memref<?xi32>, %n: index) {
  %0 = varlen.work_tiles %cu, %cu rows(%n, %n) heads(%n, %n) mask <full, top_left> block_m 1
      : (memref<?xi32>, memref<?xi32>, index, index, index, index) -> memref<?x10xi64>
  %1 = varlen.work_tiles %cu, %cu rows(%n, %n) heads(%n, %n) mask <causal> block_m 1
      : (memref<?xi32>, memref<?xi32>, index, index, index, index) -> memref<?x10xi64>
  %2 = varlen.work_tiles %cu, %cu rows(%n, %n) heads(%n, %n) mask <causal> block_m 2
      : (memref<?xi32>, memref<?xi32>, index, index, index, index) -> memref<?x10xi64>
  %3 = varlen.work_tiles %cu, %cu rows(%n, %n) heads(%n, %n) mask <causal, top_left> block_m 1
      : (memref<?xi32>, memref<?xi32>, index, index, index, index) -> memref<?x10xi64>
  return
}

// -----

// A list that starts within a buffer: its offset counts. One with a stride is
// copied, and the copy freed after the call. An optional one that is there has an address,
// also where its buffer has none.
// CHECK-LABEL: func @strided(
// CHECK-SAME: %[[CU:[^:]*]]: memref<?xi64, strided<[1], offset: ?>>, %[[USED:[^:]*]]: memref<?xi64, strided<[2]>>
// CHECK: %[[D:.*]] = builtin.unrealized_conversion_cast %[[CU]]
// CHECK: %[[BASE:.*]] = llvm.extractvalue %[[D]][1]
// CHECK: %[[OFFSET:.*]] = llvm.extractvalue %[[D]][2]
// CHECK: llvm.getelementptr %[[BASE]][%[[OFFSET]]]
// CHECK: %[[COPY:.*]] = memref.alloc(%{{.*}}) : memref<?xi64>
// CHECK: scf.for %[[I:.*]] =
// CHECK: %[[X:.*]] = memref.load %[[USED]][%[[I]]]
// CHECK: memref.store %[[X]], %[[COPY]][%[[I]]]
// CHECK: %[[ADDRESS:.*]] = llvm.extractvalue %{{.*}}[1]
// CHECK: %[[NONE:.*]] = llvm.mlir.zero
// CHECK: %[[IS_NONE:.*]] = llvm.icmp "eq" %[[ADDRESS]], %[[NONE]]
// CHECK: %[[ANY:.*]] = llvm.inttoptr
// CHECK: %[[SOME:.*]] = llvm.select %[[IS_NONE]], %[[ANY]], %[[ADDRESS]]
// CHECK: arith.constant 8 : i32
// CHECK: call @varlen_work_tiles({{.*}}%[[SOME]],
// CHECK: memref.dealloc %[[COPY]]
func.func @strided(%cu: memref<?xi64, strided<[1], offset: ?>>, %used: memref<?xi64, strided<[2]>>, %t: index, %h: index) -> memref<?x10xi64> {
  %tiles = varlen.work_tiles %cu, %cu seqused_k(%used) rows(%t, %t) heads(%h, %h)
      mask #varlen.mask<causal, top_left> block_m 48
      : (memref<?xi64, strided<[1], offset: ?>>, memref<?xi64, strided<[1], offset: ?>>, memref<?xi64, strided<[2]>>, index, index, index, index) -> memref<?x10xi64>
  return %tiles : memref<?x10xi64>
}

// -----

// Items of a list: the runtime writes their address and three numbers.
// CHECK-LABEL: func @split(
// CHECK-SAME: %[[TILES:.*]]: memref<?x10xi64>, %[[GROUP:.*]]: index)
// CHECK: %[[WORDS:.*]] = arith.constant 4 : i64
// CHECK: %[[MEMORY:.*]] = llvm.alloca %[[WORDS]] x i64
// CHECK: %[[D:.*]] = builtin.unrealized_conversion_cast %[[TILES]]
// CHECK: %[[LIST:.*]] = llvm.extractvalue %[[D]][1]
// CHECK: %[[DIM:.*]] = memref.dim %[[TILES]]
// CHECK: %[[N:.*]] = arith.index_cast %[[DIM]]
// CHECK: %[[GROUP64:.*]] = arith.index_cast %[[GROUP]]
// CHECK: %[[KV_BLOCK:.*]] = arith.constant 32 : i64
// CHECK: %[[FEW:.*]] = arith.constant 4 : i64
// CHECK: %[[BLOCKS:.*]] = arith.constant 16 : i64
// CHECK: %[[FEW_BLOCKS:.*]] = arith.constant 8 : i64
// CHECK: %[[RESULT:.*]] = call @varlen_split_tiles(%[[LIST]], %[[N]], %[[GROUP64]], %[[KV_BLOCK]], %[[FEW]], %[[BLOCKS]], %[[FEW_BLOCKS]], %[[MEMORY]])
// CHECK: %[[COUNT:.*]] = arith.maxsi %[[RESULT]], %{{.*}}
// CHECK: %[[ITEMS:.*]] = llvm.load %[[MEMORY]] : !llvm.ptr -> !llvm.ptr
// CHECK: llvm.insertvalue %[[ITEMS]], %{{.*}}[1]
// CHECK: llvm.insertvalue %[[COUNT]], %{{.*}}[3, 0]
// CHECK: %[[AT:.*]] = llvm.getelementptr %[[MEMORY]][1]
// CHECK: %[[FIRST64:.*]] = llvm.load %[[AT]] : !llvm.ptr -> i64
// CHECK: %[[FIRST:.*]] = arith.index_cast %[[FIRST64]]
// CHECK: llvm.getelementptr %[[MEMORY]][2]
// CHECK: llvm.getelementptr %[[MEMORY]][3]
// CHECK: return %{{.*}}, %[[FIRST]]
func.func @split(%tiles: memref<?x10xi64>, %group: index) -> (memref<?x13xi64>, index, index, index) {
  %0:4 = varlen.split_tiles %tiles group %group kv_block 32 few 4 parts(16, 8) : memref<?x10xi64> -> memref<?x13xi64>
  return %0#0, %0#1, %0#2, %0#3 : memref<?x13xi64>, index, index, index
}

// -----

// Of keys in pages there is a list if the table may be used, and no cu_seqlens_k.
// CHECK-LABEL: func @pages(
// CHECK-SAME: %[[CU:.*]]: memref<?xi32>, %[[USED:.*]]: memref<?xi32>, %[[TABLE:.*]]: memref<?x?xi32, strided<[?, 1]>>, %[[P:.*]]: index, %[[ROWS:.*]]: index, %{{.*}}: index)
// CHECK: %[[NULL:.*]] = llvm.mlir.zero : !llvm.ptr
// CHECK: %[[NONE:.*]] = arith.constant -1 : i64
// CHECK: %[[D:.*]] = builtin.unrealized_conversion_cast %[[TABLE]]
// CHECK: %[[ADDRESS:.*]] = llvm.extractvalue %{{.*}}[1]
// CHECK: %[[STRIDE:.*]] = llvm.extractvalue %[[D]][4, 0]
// CHECK: %[[P64:.*]] = arith.index_cast %[[P]]
// CHECK: %[[ROWS64:.*]] = arith.index_cast %[[ROWS]]
// CHECK: %[[GOOD:.*]] = call @varlen_check_block_table(%[[ADDRESS]], %{{[^,]*}}, %{{[^,]*}}, %[[STRIDE]], %[[P64]], %[[ROWS64]], %{{[^,]*}}, %{{[^,]*}}, %{{[^,)]*}}) :
// CHECK-SAME: (!llvm.ptr, i64, i64, i64, i64, i64, !llvm.ptr, i64, i32) -> i32
// CHECK: %[[IS:.*]] = arith.cmpi ne, %[[GOOD]], %{{.*}} : i32
// CHECK: %[[COUNT:.*]] = scf.if %[[IS]] -> (i64) {
// CHECK: %[[N:.*]] = func.call @varlen_work_tiles(%{{[^,]*}}, %{{[^,]*}}, %[[NULL]], %[[NONE]],
// CHECK: %[[TILES:.*]] = arith.maxsi %[[N]], %{{.*}}
// CHECK: scf.yield %[[TILES]]
// CHECK: } else {
// CHECK: scf.yield %{{.*}} : i64
func.func @pages(%cu: memref<?xi32>, %used: memref<?xi32>, %table: memref<?x?xi32, strided<[?, 1]>>,
                 %num_pages: index, %page_rows: index, %n: index) -> memref<?x10xi64> {
  %tiles = varlen.work_tiles %cu seqused_k(%used) block_table(%table, %num_pages, %page_rows)
      rows(%n, %n) heads(%n, %n) mask <full> block_m 64
      : (memref<?xi32>, memref<?xi32>, memref<?x?xi32, strided<[?, 1]>>, index, index, index,
         index, index, index) -> memref<?x10xi64>
  return %tiles : memref<?x10xi64>
}

// -----

// The runs of an append. Without a table its address is null, and a table without entries has one.
// CHECK-LABEL: func @runs(
// CHECK-SAME: %[[CU:.*]]: memref<?xi64>, %[[USED:.*]]: memref<?xi64>, %[[TABLE:.*]]: memref<?x?xi32, strided<[?, 1]>>, %[[N:.*]]: index)
// CHECK: %[[BYTES:.*]] = arith.constant 8 : i32
// CHECK: %[[ADDRESS:.*]] = llvm.select %{{.*}}, %{{.*}}, %{{.*}} : i1, !llvm.ptr
// CHECK: %[[COUNT:.*]] = call @varlen_append_runs(%{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}}, %[[BYTES]], %[[ADDRESS]],
// CHECK-SAME: (!llvm.ptr, i64, !llvm.ptr, i64, i32, !llvm.ptr, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, !llvm.ptr) -> i64
// CHECK: arith.maxsi %[[COUNT]], %{{.*}}
// CHECK: %[[NULL:.*]] = llvm.mlir.zero : !llvm.ptr
// CHECK: %[[NONE:.*]] = arith.constant -1 : i64
// CHECK: call @varlen_append_runs(
// CHECK-NOT: varlen.append_runs
func.func @runs(%cu: memref<?xi64>, %used: memref<?xi64>, %table: memref<?x?xi32, strided<[?, 1]>>, %n: index)
    -> (memref<?x6xi64>, memref<?x6xi64>) {
  %0 = varlen.append_runs %cu, %used block_table(%table) rows(%n, %n) pages(%n, %n) page_rows(%n, %n)
      scales(%n, %n, %n, %n) positions(%n, %n)
      : (memref<?xi64>, memref<?xi64>, memref<?x?xi32, strided<[?, 1]>>, index, index, index, index, index, index,
         index, index, index, index, index, index)
      -> memref<?x6xi64>
  %1 = varlen.append_runs %cu, %used rows(%n, %n) pages(%n, %n) page_rows(%n, %n)
      : (memref<?xi64>, memref<?xi64>, index, index, index, index, index, index) -> memref<?x6xi64>
  return %0, %1 : memref<?x6xi64>, memref<?x6xi64>
}
