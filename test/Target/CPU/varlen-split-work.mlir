// RUN: varlen-opt %s --varlen-split-work=min-size=8 --split-input-file | FileCheck %s
// RUN: varlen-opt %s --varlen-split-work --split-input-file | FileCheck %s --check-prefix=SMALL

// What is in a branch leaves it: a thread that does not enter the branch does not
// call. Buffers come from the context and the workspace in both functions.
// CHECK-LABEL: func private @f_work_0(
// CHECK-SAME: %[[CONTEXT:.*]]: !llvm.ptr {llvm.noalias}, %{{.*}}: i64, %{{.*}}: i64, %[[WS:.*]]: !llvm.ptr {llvm.noalias})
// CHECK: scf.for %[[I:.*]] =
// CHECK: %[[N:.*]] = arith.addi %[[I]]
// CHECK: memref.store
// CHECK: scf.if
// CHECK-NEXT: func.call @f_work_0_part(%[[CONTEXT]], %[[WS]], %[[N]], %[[I]])
// CHECK-NEXT: }
// CHECK-LABEL: func private @f_work_0_part(
// CHECK-SAME: %[[CONTEXT:.*]]: !llvm.ptr {llvm.noalias}, %[[WS:.*]]: !llvm.ptr {llvm.noalias}, %[[N:.*]]: index, %[[I:.*]]: index)
// CHECK-SAME: passthrough = ["varlen-work"]
// CHECK-DAG: %[[FIELD:.*]] = llvm.getelementptr %[[CONTEXT]][0, 0]
// CHECK-DAG: %[[LOADED:.*]] = llvm.load %[[FIELD]]
// CHECK-DAG: %[[X:.*]] = builtin.unrealized_conversion_cast %[[LOADED]]
// CHECK-DAG: %[[VIEW:.*]] = builtin.unrealized_conversion_cast %{{.*}} : !llvm.struct<{{.*}}> to memref<64xf32>
// CHECK-DAG: %[[ROW:.*]] = memref.subview %[[X]][%[[N]]] [4] [1]
// CHECK: %[[A:.*]] = memref.load %[[ROW]]
// CHECK: %[[B:.*]] = memref.load %[[VIEW]][%[[I]]]
// CHECK: %[[SUM:.*]] = arith.addf %[[A]], %[[B]]
// CHECK: memref.store %[[SUM]], %[[ROW]]
// CHECK: return

// SMALL-LABEL: func private @f_work_0(
// SMALL-NOT: _part
func.func private @f_work_0(%context: !llvm.ptr {llvm.noalias}, %from: i64, %to: i64,
                            %workspace: !llvm.ptr {llvm.noalias})
    attributes {passthrough = ["varlen-work"]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %field = llvm.getelementptr %context[0, 0] : (!llvm.ptr) -> !llvm.ptr, !llvm.struct<(struct<(ptr, ptr, i64, array<1 x i64>, array<1 x i64>)>)>
  %loaded = llvm.load %field : !llvm.ptr -> !llvm.struct<(ptr, ptr, i64, array<1 x i64>, array<1 x i64>)>
  %x = builtin.unrealized_conversion_cast %loaded : !llvm.struct<(ptr, ptr, i64, array<1 x i64>, array<1 x i64>)> to memref<?xf32>
  %poison = llvm.mlir.poison : !llvm.struct<(ptr, ptr, i64, array<1 x i64>, array<1 x i64>)>
  %descriptor = llvm.insertvalue %workspace, %poison[1] : !llvm.struct<(ptr, ptr, i64, array<1 x i64>, array<1 x i64>)>
  %view = builtin.unrealized_conversion_cast %descriptor : !llvm.struct<(ptr, ptr, i64, array<1 x i64>, array<1 x i64>)> to memref<64xf32>
  %lo = arith.index_cast %from : i64 to index
  %hi = arith.index_cast %to : i64 to index
  scf.for %i = %lo to %hi step %c1 {
    %n = arith.addi %i, %c1 : index
    %row = memref.subview %x[%n] [4] [1] : memref<?xf32> to memref<4xf32, strided<[1], offset: ?>>
    memref.store %zero, %view[%i] : memref<64xf32>
    %isLast = arith.cmpi eq, %n, %hi : index
    scf.if %isLast {
      %a = memref.load %row[%c0] : memref<4xf32, strided<[1], offset: ?>>
      %b = memref.load %view[%i] : memref<64xf32>
      %a1 = arith.mulf %a, %a : f32
      %a2 = arith.mulf %a1, %a : f32
      %a3 = arith.mulf %a2, %a : f32
      %sum = arith.addf %a, %b : f32
      %sum3 = arith.addf %a3, %b : f32
      memref.store %sum, %row[%c0] : memref<4xf32, strided<[1], offset: ?>>
      memref.store %sum3, %row[%c1] : memref<4xf32, strided<[1], offset: ?>>
    }
  }
  return
}

// -----

// A value of a narrow float type is no argument.
// CHECK-LABEL: func private @narrow(
// CHECK-NOT: _part
func.func private @narrow(%context: !llvm.ptr, %from: i64, %to: i64, %workspace: !llvm.ptr)
    attributes {passthrough = ["varlen-work"]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %x = llvm.load %context : !llvm.ptr -> !llvm.struct<(ptr, ptr, i64, array<1 x i64>, array<1 x i64>)>
  %rows = builtin.unrealized_conversion_cast %x : !llvm.struct<(ptr, ptr, i64, array<1 x i64>, array<1 x i64>)> to memref<?xbf16>
  %lo = arith.index_cast %from : i64 to index
  %hi = arith.index_cast %to : i64 to index
  scf.for %i = %lo to %hi step %c1 {
    %a = memref.load %rows[%i] : memref<?xbf16>
    %b = arith.addf %a, %a : bf16
    %isLast = arith.cmpi eq, %i, %c0 : index
    scf.if %isLast {
      %c = arith.mulf %b, %b : bf16
      %d = arith.mulf %c, %b : bf16
      %e = arith.mulf %d, %b : bf16
      memref.store %e, %rows[%i] : memref<?xbf16>
    }
  }
  return
}

// -----

// Nor is a buffer that the work allocates itself.
// CHECK-LABEL: func private @allocates(
// CHECK-NOT: _part
func.func private @allocates(%context: !llvm.ptr, %from: i64, %to: i64, %workspace: !llvm.ptr)
    attributes {passthrough = ["varlen-work"]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %lo = arith.index_cast %from : i64 to index
  %hi = arith.index_cast %to : i64 to index
  scf.for %i = %lo to %hi step %c1 {
    %own = memref.alloc(%i) : memref<?xf32>
    %isLast = arith.cmpi eq, %i, %c0 : index
    scf.if %isLast {
      %a = memref.load %own[%c0] : memref<?xf32>
      %b = arith.mulf %a, %a : f32
      %c = arith.mulf %b, %a : f32
      memref.store %c, %own[%c0] : memref<?xf32>
    }
    memref.dealloc %own : memref<?xf32>
  }
  return
}
