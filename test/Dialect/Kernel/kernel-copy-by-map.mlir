// RUN: varlen-opt %s --pass-pipeline='builtin.module(gpu.module(gpu.func(kernel-copy-by-map)))' | FileCheck %s

#wg = #gpu.address_space<workgroup>
!tile = memref<1x64x64xbf16, #wg>
!wide = memref<2x32x64xf16, #wg>
!small = memref<1x32x64xbf16, #wg>
!plane = memref<1x64x64xbf16, #wg>

gpu.module @kernels {
  // CHECK-LABEL: gpu.func @rows
  // CHECK-SAME: %[[K:.*]]: memref<?x2x64xbf16>, %[[V:.*]]: memref<?x2x96xf16>, %{{.*}}: memref<?x128xi8>, %[[ROW:.*]]: index, %[[N:.*]]: index
  gpu.func @rows(%k: memref<?x2x64xbf16>, %v: memref<?x2x96xf16>, %maps: memref<?x128xi8>,
                 %row: index, %n: index, %i: i32) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c63 = arith.constant 63 : index
    %c64 = arith.constant 64 : index
    %ring = kernel.ring stages(2) : !kernel.ring<!tile, !wide>
    %other = kernel.ring stages(2) : !kernel.ring<!small>
    kernel.roles consumers(4) {
    } producers(4) {
      // CHECK: %[[KM:.*]] = kernel.tensor_map %[[K]] rows(64)
      %km = kernel.tensor_map %k rows(64) to %maps[%c0] : memref<?x2x64xbf16>, memref<?x128xi8>
      // CHECK-NEXT: %[[VM:.*]] = kernel.tensor_map %[[V]] rows(32)
      %vm = kernel.tensor_map %v rows(32) to %maps[%c1] : memref<?x2x96xf16>, memref<?x128xi8>
      // No copy has such a box.
      // CHECK-NOT: kernel.tensor_map
      %unused = kernel.tensor_map %k rows(16) to %maps[%c2] : memref<?x2x64xbf16>, memref<?x128xi8>

      // CHECK: %[[S:.*]]:2 = kernel.ring.acquire
      // CHECK-NEXT: %[[ALL:.*]] = arith.constant 64 : index
      // CHECK-NEXT: %[[WHOLE:.*]] = arith.cmpi sge, %[[N]], %[[ALL]] : index
      // CHECK-NEXT: scf.if %[[WHOLE]] {
      // CHECK-NEXT:   %[[FIRST:.*]] = arith.addi %[[ROW]], %c64
      // CHECK-NEXT:   kernel.copy_by_map %[[KM]] row(%[[FIRST]]) head(%c1) to %[[S]]#0
      // CHECK-NEXT: } else {
      // CHECK-NEXT:   kernel.copy %[[K]] rows(%[[ROW]], %c1, %c64, %c1) valid(%[[N]]) to %[[S]]#0
      // CHECK-NEXT: }
      %s:2 = kernel.ring.acquire %ring[%i] : !kernel.ring<!tile, !wide>
      kernel.copy %k rows(%row, %c1, %c64, %c1) valid(%n) to %s#0 : memref<?x2x64xbf16>, !tile
      // Known to be whole.
      // CHECK-NEXT: %[[FIRST:.*]] = arith.addi %[[ROW]], %c64
      // CHECK-NEXT: kernel.copy_by_map %[[VM]] row(%[[FIRST]]) head(%c0) to %[[S]]#1
      // CHECK-NEXT: kernel.ring.commit
      kernel.copy %v rows(%row, %c0, %c64, %c1) valid(%c64) to %s#1 : memref<?x2x96xf16>, !wide
      kernel.ring.commit %ring : !kernel.ring<!tile, !wide>

      // Not whole; of two heads; of another number of rows.
      // CHECK: %[[S:.*]]:2 = kernel.ring.acquire
      // CHECK: scf.if
      // CHECK: kernel.copy_by_map
      // CHECK: else
      // CHECK: kernel.copy %[[K]] rows({{.*}}) valid(%c63)
      // CHECK: }
      // CHECK-NEXT: kernel.copy %[[V]] rows({{.*}}, %c2) valid(%c64) to %[[S]]#1
      // CHECK-NEXT: kernel.ring.commit
      // CHECK-NEXT: %[[S:.*]] = kernel.ring.acquire
      // CHECK-NEXT: kernel.copy %[[K]] rows({{.*}}) valid(%c64) to %[[S]]
      // CHECK-NEXT: kernel.ring.commit
      %t:2 = kernel.ring.acquire %ring[%i] : !kernel.ring<!tile, !wide>
      kernel.copy %k rows(%row, %c1, %c0, %c1) valid(%c63) to %t#0 : memref<?x2x64xbf16>, !tile
      kernel.copy %v rows(%row, %c0, %c64, %c2) valid(%c64) to %t#1 : memref<?x2x96xf16>, !wide
      kernel.ring.commit %ring : !kernel.ring<!tile, !wide>
      %u = kernel.ring.acquire %other[%i] : !kernel.ring<!small>
      kernel.copy %k rows(%row, %c0, %c64, %c1) valid(%c64) to %u : memref<?x2x64xbf16>, !small
      kernel.ring.commit %other : !kernel.ring<!small>
    }
    gpu.return
  }

  // Rows that may begin anywhere, that are no whole chunks, or that are in pages: nothing changes, and no map is made.
  // CHECK-LABEL: gpu.func @none
  // CHECK-NOT: kernel.tensor_map
  // CHECK-NOT: kernel.copy_by_map
  // CHECK-COUNT-3: kernel.copy %
  // CHECK-NOT: scf.if
  // CHECK: gpu.return
  gpu.func @none(%x: memref<?x2x64xbf16, strided<[?, ?, 1], offset: ?>>, %y: memref<?x2x20xbf16>,
                 %p: memref<?x64x2x64xbf16>, %table: memref<?x?xi32>, %maps: memref<?x128xi8>,
                 %n: index, %i: i32) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %ring = kernel.ring stages(2) : !kernel.ring<!tile, !tile, !tile>
    kernel.roles consumers(4) {
    } producers(4) {
      %xm = kernel.tensor_map %x rows(64) to %maps[%c0] : memref<?x2x64xbf16, strided<[?, ?, 1], offset: ?>>, memref<?x128xi8>
      %ym = kernel.tensor_map %y rows(64) to %maps[%c1] : memref<?x2x20xbf16>, memref<?x128xi8>
      %s:3 = kernel.ring.acquire %ring[%i] : !kernel.ring<!tile, !tile, !tile>
      kernel.copy %x rows(%n, %c0, %c0, %c1) valid(%n) to %s#0 : memref<?x2x64xbf16, strided<[?, ?, 1], offset: ?>>, !tile
      kernel.copy %y rows(%n, %c0, %c0, %c1) valid(%n) to %s#1 : memref<?x2x20xbf16>, !tile
      kernel.copy %p rows(%n, %c0, %c0, %c1) valid(%n) pages(%table : memref<?x?xi32>) to %s#2 {one_page} : memref<?x64x2x64xbf16>, !tile
      kernel.ring.commit %ring : !kernel.ring<!tile, !tile, !tile>
    }
    gpu.return
  }
}
