// RUN: varlen-opt %s --varlen-bound-allocs | FileCheck %s

// The bounds are constants of minima, also of minima of minima.
// CHECK-LABEL: @bounded
func.func @bounded(%rows: index, %keys: index, %more: index, %n: index) {
  %c4 = arith.constant 4 : index
  %c32 = arith.constant 32 : index
  scf.forall (%i) in (%n) {
    // CHECK: %[[M:.*]] = arith.minsi %{{.*}}, %c4
    %m = arith.minsi %rows, %c4 : index
    %most = arith.minsi %keys, %c32 : index
    // CHECK: %[[K:.*]] = arith.minsi %{{.*}}, %arg2
    %k = arith.minsi %most, %more : index
    // CHECK: %[[BYTES:.*]] = memref.alloc() {alignment = 64 : i64} : memref<1024xi8>
    // CHECK: %[[VIEW:.*]] = memref.view %[[BYTES]][%{{.*}}][%[[M]], %[[K]]] : memref<1024xi8> to memref<?x?x4xbf16>
    %scores = memref.alloc(%m, %k) {alignment = 64 : i64} : memref<?x?x4xbf16>
    // CHECK: memref.alloc() : memref<16xi8>
    %c0 = arith.constant 0 : index
    %again = memref.dim %scores, %c0 : memref<?x?x4xbf16>
    %column = memref.alloc(%again) : memref<?xf32>
    // CHECK: call @use(%[[VIEW]])
    func.call @use(%scores) : (memref<?x?x4xbf16>) -> ()
    // CHECK: memref.dealloc %[[BYTES]]
    memref.dealloc %scores : memref<?x?x4xbf16>
  }
  return
}

// What has no bound, another layout, elements of no bits, or no loop, stays.
// CHECK-LABEL: @left
func.func @left(%rows: index, %n: index) {
  %c4 = arith.constant 4 : index
  %m = arith.minsi %rows, %c4 : index
  // CHECK: memref.alloc(%{{.*}}) : memref<?xf32>
  %outside = memref.alloc(%m) : memref<?xf32>
  memref.dealloc %outside : memref<?xf32>
  scf.forall (%i) in (%n) {
    // CHECK: memref.alloc(%{{.*}}) : memref<?xf32>
    %unbounded = memref.alloc(%rows) : memref<?xf32>
    memref.dealloc %unbounded : memref<?xf32>
    // CHECK: memref.alloc(%{{.*}}) : memref<?x4xf32, strided<[8, 1]>>
    %padded = memref.alloc(%m) : memref<?x4xf32, strided<[8, 1]>>
    memref.dealloc %padded : memref<?x4xf32, strided<[8, 1]>>
    // CHECK: memref.alloc(%{{.*}}) : memref<?xindex>
    %indices = memref.alloc(%m) : memref<?xindex>
    memref.dealloc %indices : memref<?xindex>
  }
  return
}

func.func private @use(memref<?x?x4xbf16>)
