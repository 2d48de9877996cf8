// RUN: varlen-opt %s --convert-varlen-to-kernel --convert-tile-lists-to-gpu -canonicalize -cse --split-input-file | FileCheck %s

// One CTA checks few rows: owners of pages are cleared, entries of the table make themselves owners,
// and are compared with them. Many rows have a launch for each of the three.
// CHECK-LABEL: @pages
// CHECK-SAME: %[[K:[^:]*]]: memref<?x2x16xf32>, %[[V:[^:]*]]: memref<?x2x24xf32>, %[[CU:[^:]*]]: memref<?xi32>, %[[USED:[^:]*]]: memref<?xi32>, %[[TABLE:[^:]*]]: memref<?x?xi32>, %[[KC:[^:]*]]: memref<?x8x2x16xf32>, %[[VC:[^:]*]]: memref<?x8x2x24xf32>
// CHECK: %[[STATUS:.*]] = call @varlen_gpu_status_buffer()
// CHECK: %[[FAULT:.*]] = memref.alloc() : memref<1xi64>
// CHECK: %[[OWNERS:.*]] = memref.alloc(%{{.*}}) : memref<?xi64>
// CHECK: gpu.launch {{.*}} threads({{.*}} = %c1024,{{.*}} function(@pages_append_checks)
// CHECK:   memref.store %c9223372036854775807_i64, %[[FAULT]]
// CHECK:   memref.atomic_rmw assign %c9223372036854775807_i64, %[[OWNERS]]
// CHECK:   gpu.barrier
// CHECK:   memref.atomic_rmw mins %{{.*}}, %[[FAULT]]
// CHECK:   memref.load %[[TABLE]]
// CHECK:   memref.atomic_rmw mins %{{.*}}, %[[OWNERS]]
// CHECK:   memref.atomic_rmw mins %{{.*}}, %[[FAULT]]
// CHECK:   gpu.barrier
// CHECK:   %[[OWNER:.*]] = memref.load %[[OWNERS]]
// CHECK:   memref.atomic_rmw mins %{{.*}}, %[[FAULT]]
// CHECK: function(@pages_append_clear)
// CHECK: function(@pages_append_check)
// CHECK: function(@pages_append_compare)
// A warp for each row and head writes, if nothing is wrong, else the first reports.
// CHECK: function(@pages_append)
// CHECK:   memref.load %[[FAULT]]
// CHECK:   memref.load %[[TABLE]]
// CHECK:   %[[X:.*]] = memref.load %[[K]][%[[ROW:.*]], %[[HEAD:.*]], %[[COLUMN:.*]]] : memref<?x2x16xf32>
// CHECK:   memref.store %[[X]], %[[KC]][%[[PAGE:.*]], %[[PAGE_ROW:.*]], %[[HEAD]], %[[COLUMN]]]
// CHECK:   %[[Y:.*]] = memref.load %[[V]][%[[ROW]], %[[HEAD]], %[[OF_V:.*]]] : memref<?x2x24xf32>
// CHECK:   memref.store %[[Y]], %[[VC]][%[[PAGE]], %[[PAGE_ROW]], %[[HEAD]], %[[OF_V]]]
// CHECK:   llvm.cmpxchg %[[STATUS]]
// CHECK: memref.dealloc %[[FAULT]]
// CHECK: memref.dealloc %[[OWNERS]]
// CHECK-NOT: varlen.append
func.func @pages(%k: memref<?x2x16xf32>, %v: memref<?x2x24xf32>, %cu: memref<?xi32>, %used: memref<?xi32>,
                 %table: memref<?x?xi32>, %kc: memref<?x8x2x16xf32>, %vc: memref<?x8x2x24xf32>) {
  varlen.append %k, %v, %cu seqused_k(%used) block_table(%table) outs(%kc, %vc)
      : (memref<?x2x16xf32>, memref<?x2x24xf32>, memref<?xi32>, memref<?xi32>, memref<?x?xi32>,
         memref<?x8x2x16xf32>, memref<?x8x2x24xf32>) -> ()
  return
}

// -----

// Slots have no owners. The first 10 numbers of a head are turned, a pair to a lane, and 6 are
// converted; both twice, for the largest magnitude of all lanes and for the numbers.
// CHECK-LABEL: @slots
// CHECK-SAME: %[[K:[^:]*]]: memref<?x2x16xbf16>, {{.*}}, %[[COS:[^:]*]]: memref<?x5xf32>, %[[KC:[^:]*]]: memref<4x?x2x16xi8>, %{{[^:]*}}: memref<4x?x2x16xi8>, %[[KS:[^:]*]]: memref<4x?x2xf32>
// CHECK: function(@slots_append_checks)
// CHECK-NOT: assign
// CHECK: gpu.barrier
// CHECK-NOT: gpu.barrier
// CHECK: function(@slots_append_clear)
// CHECK: function(@slots_append_check)
// CHECK-NOT: function(@slots_append_compare)
// CHECK: function(@slots_append)
// CHECK: scf.for %[[PAIR:.*]] = %{{.*}} to %c5 step %c32 iter_args
// CHECK:   %[[OTHER:.*]] = arith.addi %[[PAIR]], %c5
// CHECK:   memref.load %[[K]][%{{.*}}, %{{.*}}, %[[PAIR]]]
// CHECK:   memref.load %[[K]][%{{.*}}, %{{.*}}, %[[OTHER]]]
// CHECK:   memref.load %[[COS]][%{{.*}}, %[[PAIR]]]
// CHECK:   arith.subf
// CHECK:   arith.addf
// CHECK-COUNT-2: arith.maximumf
// CHECK: scf.for %{{.*}} = %{{.*}} to %c16 step %c32 iter_args
// CHECK: arith.maximumf
// CHECK-COUNT-5: gpu.shuffle xor
// CHECK: arith.divf
// CHECK: %[[SCALE:.*]] = arith.select
// CHECK: scf.if
// CHECK:   memref.store %[[SCALE]], %[[KS]]
// CHECK: scf.for %{{.*}} = %{{.*}} to %c5 step %c32 {
// CHECK:   arith.fptosi
// CHECK:   memref.store %{{.*}}, %[[KC]]
// CHECK:   memref.store %{{.*}}, %[[KC]]
// CHECK: scf.for %{{.*}} = %{{.*}} to %c16 step %c32 {
// CHECK:   memref.store %{{.*}}, %[[KC]]
func.func @slots(%k: memref<?x2x16xbf16>, %cu: memref<?xi64>, %used: memref<?xi64>, %cos: memref<?x5xf32>,
                 %kc: memref<4x?x2x16xi8>, %vc: memref<4x?x2x16xi8>, %ks: memref<4x?x2xf32>,
                 %vs: memref<4x?x2xf32>) {
  varlen.append %k, %k, %cu seqused_k(%used) rotary(%cos, %cos) outs(%kc, %vc) scales(%ks, %vs)
      : (memref<?x2x16xbf16>, memref<?x2x16xbf16>, memref<?xi64>, memref<?xi64>, memref<?x5xf32>,
         memref<?x5xf32>, memref<4x?x2x16xi8>, memref<4x?x2x16xi8>, memref<4x?x2xf32>,
         memref<4x?x2xf32>) -> ()
  return
}
