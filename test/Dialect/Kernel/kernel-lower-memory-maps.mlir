// RUN: varlen-opt %s --allow-unregistered-dialect --kernel-lower-memory=mbarriers --canonicalize | FileCheck %s

#wg = #gpu.address_space<workgroup>
!tile = memref<2x32x64xf16, #wg>
!kv = !kernel.ring<!tile>
!strided = memref<?x4x96xf16, strided<[1024, 128, 1], offset: 64>>

gpu.module @kernels {
  // The map is made by a warp of producers in 128 bytes behind the slots.
  // CHECK-LABEL: gpu.func @maps
  // CHECK-SAME: %[[X:.*]]: memref<?x4x96xf16, strided<[1024, 128, 1], offset: 64>>, %[[MAPS:.*]]: memref<16x128xi8>, %[[I:.*]]: index, %[[ROW:.*]]: index, %[[N:.*]]: i32)
  gpu.func @maps(%x: !strided, %maps: memref<16x128xi8>, %i: index, %row: index, %n: i32)
      kernel attributes {known_block_size = array<i32: 192, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c32 = arith.constant 32 : index
    // CHECK: memref.view %{{.*}}[%c16512][] : {{.*}} to memref<4xi64,
    // The async proxy knows the mbarriers: 64 threads arrive at the full ones, with maps or without.
    // CHECK: scf.if
    // CHECK: nvvm.mbarrier.init %{{.*}}, %c64_i32
    // CHECK: nvvm.fence.mbarrier.init
    // CHECK-NEXT: }
    %kv = kernel.ring stages(2) : !kv
    gpu.barrier
    // CHECK: producers(2) {
    kernel.roles consumers(4) {
      %k = kernel.ring.wait %kv[%n] younger 0 : !kv
      "test.use"(%k) : (!tile) -> ()
      kernel.ring.release %kv[%n] : !kv
    } producers(2) {
      // CHECK: memref.view %{{.*}}[%c16384][] : {{.*}} to memref<16xi64,
      // CHECK: %[[BYTES:.*]] = arith.muli %[[I]], %c128 : index
      // CHECK: %[[WIDE:.*]] = arith.index_cast %[[BYTES]]
      // CHECK: %[[MAP:.*]] = llvm.getelementptr %{{.*}}[%[[WIDE]]] : (!llvm.ptr, i64) -> !llvm.ptr, i8
      // CHECK: %[[LANE:.*]] = arith.addi %{{.*}}, %c-128_i32
      // CHECK: %[[IS:.*]] = arith.cmpi ult, %[[LANE]], %c32_i32
      // CHECK: scf.if %[[IS]] {
      // CHECK-NEXT: %[[WORD:.*]] = llvm.getelementptr %{{.*}}[%[[LANE]]] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
      // CHECK-NEXT: llvm.store %c0_i32, %[[WORD]]
      // CHECK-NEXT: nvvm.bar.warp.sync
      // CHECK-NEXT: %[[FIRST:.*]] = arith.cmpi ult, %[[LANE]], %c1_i32
      // CHECK-NEXT: scf.if %[[FIRST]] {
      // The first element is 64 behind the start of the memory.
      // CHECK: %[[BASE:.*]] = llvm.ptrtoint
      // CHECK-NEXT: %[[ADDRESS:.*]] = arith.addi %[[BASE]], %c128_i64
      // CHECK-NEXT: llvm.call_intrinsic "llvm.nvvm.tensormap.replace.global.address.p3"(%{{.*}}, %[[ADDRESS]])
      // CHECK-NEXT: replace.rank.p3"(%{{.*}}, %c2_i32)
      // CHECK: %[[ROWS:.*]] = arith.minsi %{{.*}}, %c2147483647_i64
      // CHECK: %[[ROWS32:.*]] = arith.trunci %[[ROWS]] : i64 to i32
      // A box is the columns of a slab, one head, and the rows of the tile.
      // CHECK-NEXT: replace.box.dim.p3"(%{{.*}}, %c0_i32, %c64_i32)
      // CHECK-NEXT: replace.global.dim.p3"(%{{.*}}, %c0_i32, %c96_i32)
      // CHECK-NEXT: replace.element.stride.p3"(%{{.*}}, %c0_i32, %c1_i32)
      // CHECK-NEXT: replace.box.dim.p3"(%{{.*}}, %c1_i32, %c1_i32)
      // CHECK-NEXT: replace.global.dim.p3"(%{{.*}}, %c1_i32, %c4_i32)
      // CHECK-NEXT: replace.element.stride.p3"(%{{.*}}, %c1_i32, %c1_i32)
      // CHECK-NEXT: replace.box.dim.p3"(%{{.*}}, %c2_i32, %c32_i32)
      // CHECK-NEXT: replace.global.dim.p3"(%{{.*}}, %c2_i32, %[[ROWS32]])
      // CHECK-NEXT: replace.element.stride.p3"(%{{.*}}, %c2_i32, %c1_i32)
      // CHECK-NEXT: replace.global.stride.p3"(%{{.*}}, %c0_i32, %c256_i64)
      // CHECK-NEXT: replace.global.stride.p3"(%{{.*}}, %c1_i32, %c2048_i64)
      // f16, zeros past the columns, 128 bytes.
      // CHECK-NEXT: replace.elemtype.p3"(%{{.*}}, %c6_i32)
      // CHECK-NEXT: replace.interleave.layout.p3"(%{{.*}}, %c0_i32)
      // CHECK-NEXT: replace.swizzle.mode.p3"(%{{.*}}, %c3_i32)
      // CHECK-NEXT: replace.fill.mode.p3"(%{{.*}}, %c0_i32)
      // CHECK-NEXT: }
      // CHECK-NEXT: nvvm.bar.warp.sync
      // CHECK-NEXT: %[[GLOBAL:.*]] = llvm.addrspacecast %[[MAP]] : !llvm.ptr to !llvm.ptr<1>
      // CHECK-NEXT: kernel.publish_map %{{.*}} to %[[GLOBAL]]
      // CHECK-NEXT: }
      // CHECK-NEXT: gpu.barrier
      // CHECK: scf.if
      // CHECK-NEXT: nvvm.fence.proxy.acquire <gpu> %[[MAP]], %c128_i32
      // CHECK-NEXT: }
      %map = kernel.tensor_map %x rows(32) to %maps[%i] : !strided, memref<16x128xi8>
      // What was stored to the slot before is published to the copy, as no product reads by proxy.
      // CHECK: nvvm.mbarrier.try_wait
      // CHECK: scf.if
      // CHECK-NEXT: nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>,
      // CHECK: scf.if
      %whole = arith.cmpi sge, %row, %c32 : index
      %k = kernel.ring.acquire %kv[%n] : !kv
      scf.if %whole {
        // The first producer expects the bytes of both slabs before it arrives.
        // CHECK: %[[ROW32:.*]] = arith.index_cast %[[ROW]] : index to i32
        // CHECK: scf.if
        // CHECK-NEXT: nvvm.mbarrier.expect_tx %[[BAR:.*]], %c8192_i32 : !llvm.ptr<3>, i32
        // CHECK-NEXT: nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}}, %[[MAP]], %[[BAR]], box[%c0_i32, %c1_i32, %[[ROW32]]] {isCTAOnly = true}
        // CHECK-NEXT: %[[SLAB:.*]] = llvm.getelementptr %{{.*}}[4096] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
        // CHECK-NEXT: nvvm.cp.async.bulk.tensor.shared.cluster.global %[[SLAB]], %[[MAP]], %[[BAR]], box[%c64_i32, %c1_i32, %[[ROW32]]] {isCTAOnly = true}
        kernel.copy_by_map %map row(%row) head(%c1) to %k : !tile
      } else {
        kernel.copy %x rows(%row, %c1, %c0, %c1) valid(%row) to %k : !strided, !tile
      }
      // CHECK: } else {
      // CHECK: nvvm.cp.async.shared.global
      // CHECK: nvvm.cp.async.mbarrier.arrive %{{.*}} {noinc = true}
      // CHECK-NOT: nvvm.mbarrier.arrive
      kernel.ring.commit %kv : !kv
    }
    gpu.return
  }

  // Where wgmma reads slots, those who wait for them publish what they have found there, but of
  // slots that a map has filled for sure.
  // CHECK-LABEL: gpu.func @wgmma
  gpu.func @wgmma(%x: memref<?x4x64xf16>, %maps: memref<16x128xi8>, %n: i32, %i: index, %c: i1)
      kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
    %ring = kernel.ring stages(2) : !kernel.ring<memref<1x32x64xf16, #wg>>
    %other = kernel.ring stages(2) : !kernel.ring<memref<1x32x64xf16, #wg>>
    // CHECK: kernel.roles
    kernel.roles consumers(4) {
      // CHECK: nvvm.mbarrier.try_wait
      // CHECK: nvvm.fence.proxy
      // CHECK: "test.first"
      %k = kernel.ring.wait %ring[%n] younger 0 : !kernel.ring<memref<1x32x64xf16, #wg>>
      "test.first"(%k) : (memref<1x32x64xf16, #wg>) -> ()
      // CHECK: nvvm.mbarrier.try_wait
      // CHECK-NOT: nvvm.fence.proxy
      // CHECK: "test.whole"
      %l = kernel.ring.wait %ring[%n] younger 0 whole : !kernel.ring<memref<1x32x64xf16, #wg>>
      "test.whole"(%l) : (memref<1x32x64xf16, #wg>) -> ()
      // CHECK: nvvm.mbarrier.try_wait
      // CHECK: nvvm.fence.proxy
      // CHECK: "test.other"
      %m = kernel.ring.wait %other[%n] younger 0 whole : !kernel.ring<memref<1x32x64xf16, #wg>>
      "test.other"(%m) : (memref<1x32x64xf16, #wg>) -> ()
      nvvm.wgmma.fence.aligned
      kernel.ring.release %ring[%n] : !kernel.ring<memref<1x32x64xf16, #wg>>
    } producers(4) {
      %map = kernel.tensor_map %x rows(32) to %maps[%i] : memref<?x4x64xf16>, memref<16x128xi8>
      // CHECK: nvvm.fence.proxy.acquire
      // CHECK-NOT: nvvm.fence.proxy
      // CHECK: nvvm.mbarrier.expect_tx
      %k = kernel.ring.acquire %ring[%n] : !kernel.ring<memref<1x32x64xf16, #wg>>
      scf.if %c {
        kernel.copy_by_map %map row(%i) head(%i) to %k : memref<1x32x64xf16, #wg>
      } else {
        kernel.copy %x rows(%i, %i, %i, %i) valid(%i) to %k : memref<?x4x64xf16>, memref<1x32x64xf16, #wg>
      }
      kernel.ring.commit %ring : !kernel.ring<memref<1x32x64xf16, #wg>>
      %m = kernel.ring.acquire %other[%n] : !kernel.ring<memref<1x32x64xf16, #wg>>
      kernel.copy %x rows(%i, %i, %i, %i) valid(%i) to %m : memref<?x4x64xf16>, memref<1x32x64xf16, #wg>
      kernel.ring.commit %other : !kernel.ring<memref<1x32x64xf16, #wg>>
    }
    gpu.return
  }

  // Two warps make three maps, the third in the place of the first; one barrier for all.
  // CHECK-LABEL: gpu.func @several
  gpu.func @several(%x: memref<?x4x64xf16>, %maps: memref<16x128xi8>, %i: index)
      kernel attributes {known_block_size = array<i32: 192, 1, 1>} {
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    // CHECK: kernel.roles
    kernel.roles consumers(4) {
    } producers(2) {
      // CHECK: %[[A:.*]] = llvm.getelementptr %{{.*}} : (!llvm.ptr, i64) -> !llvm.ptr, i8
      // CHECK: %[[SHARED:.*]] = llvm.extractvalue %{{.*}}[1] : !llvm.struct<(ptr<3>,
      // CHECK: arith.addi %{{.*}}, %c-128_i32
      // CHECK: kernel.publish_map %[[SHARED]] to
      // CHECK-NEXT: nvvm.bar.warp.sync
      %a = kernel.tensor_map %x rows(32) to %maps[%i] : memref<?x4x64xf16>, memref<16x128xi8>
      // CHECK: %[[B:.*]] = llvm.getelementptr %{{.*}}[128] : (!llvm.ptr) -> !llvm.ptr, i8
      // CHECK: %[[NEXT:.*]] = llvm.getelementptr %{{.*}}[128] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
      // CHECK: arith.addi %{{.*}}, %c-160_i32
      // CHECK: kernel.publish_map %[[NEXT]] to
      // CHECK-NEXT: }
      // CHECK-NOT: gpu.barrier
      %b = kernel.tensor_map %x rows(64) to %maps[%c1] : memref<?x4x64xf16>, memref<16x128xi8>
      // CHECK: %[[C:.*]] = llvm.getelementptr %{{.*}}[256] : (!llvm.ptr) -> !llvm.ptr, i8
      // CHECK: arith.addi %{{.*}}, %c-128_i32
      // CHECK: kernel.publish_map
      // CHECK: gpu.barrier
      // CHECK: scf.if
      // CHECK-NEXT: nvvm.fence.proxy.acquire <gpu> %[[A]],
      // CHECK-NEXT: nvvm.fence.proxy.acquire <gpu> %[[B]],
      // CHECK-NEXT: nvvm.fence.proxy.acquire <gpu> %[[C]],
      // CHECK-NEXT: }
      // CHECK-NOT: gpu.barrier
      %c = kernel.tensor_map %x rows(128) to %maps[%c2] : memref<?x4x64xf16>, memref<16x128xi8>
      "test.use"(%a, %b, %c) : (!llvm.ptr, !llvm.ptr, !llvm.ptr) -> ()
    }
    gpu.return
  }
}
