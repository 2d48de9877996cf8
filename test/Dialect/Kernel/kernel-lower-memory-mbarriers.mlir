// RUN: varlen-opt %s --allow-unregistered-dialect --kernel-lower-memory=mbarriers | FileCheck %s
// RUN: varlen-opt %s --allow-unregistered-dialect --kernel-lower-memory | FileCheck %s --check-prefix=BARRIER

#wg = #gpu.address_space<workgroup>
!tile = memref<1x64x64xbf16, #wg>
!ring = !kernel.ring<!tile>

module attributes {gpu.container_module} {
  gpu.module @kernels {
    // Six mbarriers behind three tiles of 8 KiB: three that slots are full, for which
    // each thread arrives, and three that they are empty, for which each warp does.
    // CHECK-LABEL: gpu.func @ring
    // BARRIER-LABEL: gpu.func @ring
    // BARRIER-NOT: mbarrier
    gpu.func @ring(%x: memref<?x2x64xbf16>, %row: index, %i: i32, %j: i32, %b: i1)
        kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c64 = arith.constant 64 : index
      // CHECK: %[[BYTES:.*]] = arith.constant 24576 : index
      // CHECK: memref.view %{{.*}}[%[[BYTES]]][] : {{.*}} to memref<6xi64,
      // CHECK: scf.if
      // CHECK: %[[THREADS:.*]] = arith.constant 256 : i32
      // CHECK-NEXT: nvvm.mbarrier.init %{{.*}}, %[[THREADS]]
      // CHECK: %[[WARPS:.*]] = arith.constant 8 : i32
      // CHECK-NEXT: nvvm.mbarrier.init %{{.*}}, %[[WARPS]]
      // CHECK-COUNT-4: nvvm.mbarrier.init
      // CHECK-NOT: nvvm.mbarrier.init
      %ring = kernel.ring stages(3) slack(1) : !ring
      // CHECK: scf.if
      // CHECK-COUNT-6: nvvm.mbarrier.inval
      // CHECK-COUNT-6: nvvm.mbarrier.init
      // CHECK: gpu.barrier
      // BARRIER-NOT: gpu.barrier
      kernel.ring.restart %ring : !ring
      // CHECK: scf.if
      // CHECK: scf.while
      // CHECK: nvvm.mbarrier.try_wait
      // CHECK: nvvm.cp.async.shared.global
      // CHECK: nvvm.cp.async.mbarrier.arrive %{{.*}} {noinc = true}
      // CHECK-NEXT: }
      // CHECK-NOT: nvvm.cp.async.commit.group
      // BARRIER: nvvm.cp.async.commit.group
      scf.if %b {
        %k0 = kernel.ring.acquire %ring[%i] : !ring
        kernel.copy %x rows(%row, %c0, %c0, %c1) valid(%c64) to %k0 : memref<?x2x64xbf16>, !tile
      }
      kernel.ring.commit %ring : !ring
      // CHECK: scf.while
      // CHECK: nvvm.mbarrier.try_wait
      // CHECK-NOT: gpu.barrier
      // CHECK: "test.use"
      // BARRIER: nvvm.cp.async.wait.group 0
      // BARRIER-NEXT: gpu.barrier
      %k1 = kernel.ring.wait %ring[%j] younger 0 : !ring
      "test.use"(%k1) : (!tile) -> ()
      // CHECK-NOT: try_wait
      // CHECK: memref.view
      // CHECK: "test.use"
      %k2 = kernel.ring.slot %ring[%j] : !ring
      "test.use"(%k2) : (!tile) -> ()
      // CHECK: nvvm.bar.warp.sync
      // CHECK: scf.if
      // CHECK: nvvm.mbarrier.arrive %
      kernel.ring.release %ring[%j] : !ring
      gpu.return
    }

    // What all threads have copied is fenced by the one that reads it.
    // CHECK-LABEL: gpu.func @read_by_proxy
    gpu.func @read_by_proxy(%i: i32) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
      %ring = kernel.ring stages(2) slack(1) : !ring
      // CHECK: nvvm.mbarrier.try_wait
      // CHECK: nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}
      %k = kernel.ring.wait %ring[%i] younger 0 : !ring
      nvvm.wgmma.fence.aligned
      "test.use"(%k) : (!tile) -> ()
      gpu.return
    }

    // Copies through registers arrive at no mbarrier.
    // CHECK-LABEL: gpu.func @through_registers
    // CHECK-NOT: mbarrier
    // CHECK: gpu.barrier
    gpu.func @through_registers(%x: memref<?x2x20xf16>, %row: index, %i: i32)
        kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %ring = kernel.ring stages(3) slack(1) : !kernel.ring<memref<1x32x64xf16, #wg>>
      %k0 = kernel.ring.acquire %ring[%i] : !kernel.ring<memref<1x32x64xf16, #wg>>
      kernel.copy %x rows(%row, %c0, %c0, %c1) valid(%c1) to %k0 : memref<?x2x20xf16>, memref<1x32x64xf16, #wg>
      kernel.ring.commit %ring : !kernel.ring<memref<1x32x64xf16, #wg>>
      %k1 = kernel.ring.wait %ring[%i] younger 0 : !kernel.ring<memref<1x32x64xf16, #wg>>
      "test.use"(%k1) : (memref<1x32x64xf16, #wg>) -> ()
      gpu.return
    }

    // Each of two rings has mbarriers, behind the tiles of both.
    // CHECK-LABEL: gpu.func @rings
    // CHECK: memref.view %{{.*}}[%c32768][] : {{.*}} to memref<4xi64,
    // CHECK: memref.view %{{.*}}[%c32800][] : {{.*}} to memref<4xi64,
    // CHECK: gpu.barrier
    // CHECK-NOT: gpu.barrier
    // CHECK-COUNT-2: nvvm.mbarrier.try_wait
    // CHECK-NOT: gpu.barrier
    // BARRIER-LABEL: gpu.func @rings
    // BARRIER-COUNT-2: gpu.barrier
    gpu.func @rings(%i: i32) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
      %keys = kernel.ring stages(2) : !ring
      %values = kernel.ring stages(2) : !ring
      kernel.ring.restart %values, %keys : !ring, !ring
      %k = kernel.ring.wait %keys[%i] younger 1 : !ring
      %v = kernel.ring.wait %values[%i] younger 1 : !ring
      "test.use"(%k, %v) : (!tile, !tile) -> ()
      gpu.return
    }

    // Nor is there one without slack.
    // CHECK-LABEL: gpu.func @no_slack
    // CHECK-NOT: mbarrier
    gpu.func @no_slack(%i: i32) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
      %ring = kernel.ring stages(2) : !ring
      %k = kernel.ring.wait %ring[%i] younger 0 : !ring
      "test.use"(%k) : (!tile) -> ()
      gpu.return
    }
  }
}
