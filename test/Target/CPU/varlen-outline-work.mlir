// RUN: varlen-opt %s --varlen-outline-work --allow-unregistered-dialect --split-input-file --verify-diagnostics | FileCheck %s

// The example of the pass documentation: captures, a constant, a scratch
// buffer with its deallocation.
// CHECK-LABEL: func @f(
// CHECK-SAME: %[[X:.*]]: memref<?xf32>, %[[N:.*]]: index
// CHECK: %[[CONTEXT:.*]] = llvm.alloca %{{.*}} x !llvm.struct<(struct<(ptr, ptr, i64, array<1 x i64>, array<1 x i64>)>, i64)>
// CHECK: %[[FIELD:.*]] = llvm.getelementptr %[[CONTEXT]][0, 0]
// CHECK: %[[DESC:.*]] = builtin.unrealized_conversion_cast %[[X]] : memref<?xf32> to !llvm.struct
// CHECK: llvm.store %[[DESC]], %[[FIELD]]
// CHECK: llvm.getelementptr %[[CONTEXT]][0, 1]
// CHECK: %[[COUNT:.*]] = arith.index_cast %[[N]] : index to i64
// CHECK: %[[BYTES:.*]] = arith.constant 128 : i64
// CHECK: %[[WORK:.*]] = {{.*}}constant @f_work_0 : (!llvm.ptr, i64, i64, !llvm.ptr) -> ()
// CHECK: call @varlen_parallel_for(%[[COUNT]], %[[BYTES]], %[[WORK]], %[[CONTEXT]])
// CHECK-NEXT: return

// CHECK-LABEL: func private @f_work_0(
// CHECK-SAME: %[[CONTEXT:.*]]: !llvm.ptr {llvm.noalias}, %[[LO:.*]]: i64, %[[HI:.*]]: i64, %[[WS:.*]]: !llvm.ptr {llvm.noalias})
// CHECK: %[[TWO:.*]] = arith.constant 2.0
// CHECK: %[[X:.*]] = builtin.unrealized_conversion_cast %{{.*}} : !llvm.struct<{{.*}}> to memref<?xf32>
// CHECK: %[[N:.*]] = builtin.unrealized_conversion_cast %{{.*}} : i64 to index
// CHECK: llvm.insertvalue %[[WS]]
// CHECK: %[[BUFFER:.*]] = builtin.unrealized_conversion_cast %{{.*}} to memref<128xi8>
// CHECK: %[[OFF0:.*]] = arith.constant 0 : index
// CHECK: %[[VIEW0:.*]] = memref.view %[[BUFFER]][%[[OFF0]]][] : memref<128xi8> to memref<5xf32>
// CHECK: %[[S0:.*]] = memref.assume_alignment %[[VIEW0]], 64
// CHECK: %[[OFF1:.*]] = arith.constant 64 : index
// CHECK: %[[VIEW1:.*]] = memref.view %[[BUFFER]][%[[OFF1]]][] : memref<128xi8> to memref<f64>
// CHECK: %[[S1:.*]] = memref.assume_alignment %[[VIEW1]], 64
// CHECK: %[[FROM:.*]] = arith.index_cast %[[LO]]
// CHECK: %[[TO:.*]] = arith.index_cast %[[HI]]
// CHECK: scf.for %[[I:.*]] = %[[FROM]] to %[[TO]]
// CHECK: memref.load %[[X]][%[[I]]]
// CHECK: arith.mulf %{{.*}}, %[[TWO]]
// CHECK: memref.store %{{.*}}, %[[S0]]
// CHECK: "test.use"(%[[S0]], %[[S1]], %[[N]])
// CHECK-NOT: memref.dealloc
// CHECK: return
func.func @f(%x: memref<?xf32>, %n: index) {
  %two = arith.constant 2.0 : f32
  scf.forall (%i) in (%n) {
    %s = memref.alloc() {alignment = 64 : i64} : memref<5xf32>
    %c = memref.alloc() : memref<f64>
    %c0 = arith.constant 0 : index
    %0 = memref.load %x[%i] : memref<?xf32>
    %1 = arith.mulf %0, %two : f32
    memref.store %1, %s[%c0] : memref<5xf32>
    "test.use"(%s, %c, %n) : (memref<5xf32>, memref<f64>, index) -> ()
    memref.dealloc %s : memref<5xf32>
  }
  return
}
// CHECK: func private @varlen_parallel_for(i64, i64, (!llvm.ptr, i64, i64, !llvm.ptr) -> (), !llvm.ptr)

// -----

// The context is allocated once however often the call runs; two loops, two
// functions.
// CHECK-LABEL: func @repeated
// CHECK: llvm.alloca
// CHECK: llvm.alloca
// CHECK: scf.for
// CHECK-NOT: llvm.alloca
// CHECK: constant @repeated_work_0
// CHECK: constant @repeated_work_1
// CHECK: return
// CHECK: func private @repeated_work_{{[01]}}
// CHECK: func private @repeated_work_{{[01]}}
func.func @repeated(%x: memref<8xf32, strided<[?], offset: ?>>, %v: f32, %times: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %t = %c0 to %times step %c1 {
    scf.forall (%i) in (8) {
      memref.store %v, %x[%i] : memref<8xf32, strided<[?], offset: ?>>
    }
    scf.forall (%i) in (%t) {
      memref.store %v, %x[%i] : memref<8xf32, strided<[?], offset: ?>>
    }
  }
  return
}

// -----

// What stays on the heap is freed where its region ends, unless it is already.
// CHECK-LABEL: func private @heap_work_0
// CHECK: scf.for
// CHECK: %[[A:.*]] = memref.alloc(%{{.*}}) : memref<?xf32>
// CHECK: scf.for
// CHECK: %[[FIRST:.*]] = memref.alloc() : memref<4xf32>
// CHECK: %[[LAST:.*]] = scf.for
// CHECK: memref.alloc() : memref<4xf32>
// CHECK: memref.dealloc
// CHECK: memref.dealloc %[[LAST]]
// CHECK: %[[C:.*]] = memref.alloc() {alignment = 128 : i64} : memref<4xf32>
// CHECK: memref.dealloc %[[C]]
// CHECK-NEXT: "test.use"
// CHECK-NEXT: memref.dealloc %[[A]]
// CHECK-NOT: memref.dealloc
func.func @heap(%n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.forall (%i) in (%n) {
    // expected-remark @+1 {{allocated on the heap in every work tile: its size is not known before the loop}}
    %a = memref.alloc(%i) : memref<?xf32>
    "test.use"(%a) : (memref<?xf32>) -> ()
    // A slice: the loop only hands it on.
    %b = memref.alloc() : memref<4xf32>
    %r = scf.for %j = %c0 to %n step %c1 iter_args(%last = %b) -> (memref<4xf32>) {
      "test.use"(%last) : (memref<4xf32>) -> ()
      scf.yield %last : memref<4xf32>
    }
    "test.use"(%r) : (memref<4xf32>) -> ()
    // expected-remark @+1 {{allocated on the heap in every work tile: it outlives the region it is allocated in}}
    %first = memref.alloc() : memref<4xf32>
    %s = scf.for %j = %c0 to %n step %c1 iter_args(%last = %first) -> (memref<4xf32>) {
      // expected-remark @+1 {{allocated on the heap in every work tile: it outlives the region it is allocated in}}
      %next = memref.alloc() : memref<4xf32>
      "test.use"(%last, %next) : (memref<4xf32>, memref<4xf32>) -> ()
      memref.dealloc %last : memref<4xf32>
      scf.yield %next : memref<4xf32>
    }
    memref.dealloc %s : memref<4xf32>
    // expected-remark @+1 {{allocated on the heap in every work tile: it asks for a layout, memory space or alignment of its own}}
    %c = memref.alloc() {alignment = 128 : i64} : memref<4xf32>
    "test.use"(%c) : (memref<4xf32>) -> ()
    memref.dealloc %c : memref<4xf32>
    "test.use"() : () -> ()
  }
  return
}

// -----

// A size known before the loop: a slice behind those of static size. The
// workspace has 64 bytes for the one and 20 n, rounded up, for the other; what
// overflows counts as 2^62 bytes, which the runtime refuses.
// CHECK-LABEL: func @known
// CHECK-SAME: %[[N:[^:]*]]: index
// CHECK: %[[LOW:.*]], %[[HIGH:.*]] = arith.mului_extended %c20{{.*}}, %[[N]]
// CHECK: %[[FITS:.*]] = arith.cmpi eq, %[[HIGH]], %c0
// CHECK: %[[CLAMPED:.*]] = arith.minui %[[LOW]], %c4611686018427387904
// CHECK: %[[BYTES:.*]] = arith.select %[[FITS]], %[[CLAMPED]], %c4611686018427387904
// CHECK: %[[MORE:.*]] = arith.addi %[[BYTES]], %c63
// CHECK: %[[UNITS:.*]] = arith.divui %[[MORE]], %c64
// CHECK: %[[ROUND:.*]] = arith.muli %[[UNITS]], %c64
// CHECK: %[[SUM:.*]] = arith.addi %c64{{.*}}, %[[ROUND]]
// CHECK: %[[ALL:.*]] = arith.minui %[[SUM]], %c4611686018427387904
// CHECK: %[[CAST:.*]] = arith.index_cast %[[ALL]] : index to i64
// CHECK: call @varlen_parallel_for(%{{.*}}, %[[CAST]],
// CHECK-LABEL: func private @known_work_0
// CHECK: %[[SIZE:.*]] = builtin.unrealized_conversion_cast %{{.*}} : i64 to index
// CHECK: memref.view %[[BUFFER:.*]][%{{.*}}][] : memref<?xi8> to memref<3xf32>
// CHECK: memref.view %[[BUFFER]][%{{.*}}][%[[SIZE]]] : memref<?xi8> to memref<?x5xf32>
func.func @known(%n: index) {
  scf.forall (%i) in (%n) {
    %a = memref.alloc(%n) : memref<?x5xf32>
    %b = memref.alloc() : memref<3xf32>
    "test.use"(%a, %b) : (memref<?x5xf32>, memref<3xf32>) -> ()
  }
  return
}

// -----

// A view that an scf.if chooses is still a view of the workspace.
// CHECK-LABEL: func private @chosen_work_0
func.func @chosen(%x: memref<8x4xf32>, %n: index, %c: i1) {
  scf.forall (%i) in (%n) {
    %s = memref.alloc() : memref<8x4xf32>
    %r = scf.if %c -> memref<?x4xf32> {
      %0 = memref.cast %s : memref<8x4xf32> to memref<?x4xf32>
      scf.yield %0 : memref<?x4xf32>
    } else {
      %1 = memref.cast %x : memref<8x4xf32> to memref<?x4xf32>
      scf.yield %1 : memref<?x4xf32>
    }
    "test.use"(%r) : (memref<?x4xf32>) -> ()
  }
  return
}

// -----

// What branches allocate and yield is in the workspace, too, each a slice of its own.
// CHECK-LABEL: func private @branches_work_0
// CHECK: memref.view
// CHECK: memref.view
// CHECK: scf.for
// CHECK-NOT: memref.alloc
func.func @branches(%n: index, %c: i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.forall (%i) in (%n) {
    scf.for %j = %c0 to %n step %c1 {
      %r = scf.if %c -> memref<8x4xf32> {
        %0 = memref.alloc() : memref<8x4xf32>
        "test.use"(%0) : (memref<8x4xf32>) -> ()
        scf.yield %0 : memref<8x4xf32>
      } else {
        %1 = memref.alloc() : memref<8x4xf32>
        scf.yield %1 : memref<8x4xf32>
      }
      "test.use"(%r) : (memref<8x4xf32>) -> ()
    }
  }
  return
}

// -----

// A loop of another producer.
// CHECK-LABEL: func @other
// CHECK: scf.forall
// CHECK-NOT: func private
func.func @other(%x: memref<8x8xf32>, %v: f32) {
  scf.forall (%i) in (8) {
    memref.store %v, %x[%i, %i] : memref<8x8xf32>
  } {mapping = [#gpu.thread<x>]}
  return
}
