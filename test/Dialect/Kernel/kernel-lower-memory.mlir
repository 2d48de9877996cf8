// RUN: varlen-opt %s --allow-unregistered-dialect --kernel-lower-memory | FileCheck %s

// CHECK: #[[$NO_UNROLL:.*]] = #llvm.loop_unroll<disable = true>
// CHECK: #[[$ONE_LOOP:.*]] = #llvm.loop_annotation<unroll = #[[$NO_UNROLL]]>

#wg = #gpu.address_space<workgroup>
!tile = memref<1x64x64xbf16, #wg>
!ring = !kernel.ring<!tile, !tile>

module attributes {gpu.container_module} {
  gpu.module @kernels {
    // A tile of 8 KiB for the whole kernel, then two slots of two tiles.
    // CHECK-LABEL: gpu.func @layout
    gpu.func @layout(%i: i32) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
      // CHECK: %[[MEM:.*]] = gpu.dynamic_shared_memory
      // CHECK-DAG: %[[ZERO:.*]] = arith.constant 0 : index
      // CHECK: %[[Q:.*]] = memref.view %[[MEM]][%[[ZERO]]][]
      %q = kernel.alloc : !tile
      %ring = kernel.ring stages(2) : !ring
      // CHECK: %[[STAGE:.*]] = arith.remui
      // CHECK: arith.muli %[[STAGE]], %{{.*}} : i32
      // CHECK: memref.view
      // CHECK: memref.view
      %k0, %v0 = kernel.ring.acquire %ring[%i] : !ring
      // CHECK: nvvm.cp.async.commit.group
      kernel.ring.commit %ring : !ring
      // CHECK: nvvm.cp.async.wait.group 0
      // CHECK-NEXT: gpu.barrier
      %k1, %v1 = kernel.ring.wait %ring[%i] younger 0 : !ring
      "test.use"(%q, %k0, %v0, %k1, %v1) : (!tile, !tile, !tile, !tile, !tile) -> ()
      // CHECK-NOT: kernel.ring
      kernel.ring.release %ring[%i] : !ring
      gpu.return
    }

    // wgmma reads through the async proxy what threads have copied.
    // CHECK-LABEL: gpu.func @read_by_proxy
    gpu.func @read_by_proxy(%i: i32) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
      %ring = kernel.ring stages(2) : !ring
      // CHECK: nvvm.cp.async.wait.group 0
      // CHECK-NEXT: nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}
      // CHECK-NEXT: gpu.barrier
      %k, %v = kernel.ring.wait %ring[%i] younger 0 : !ring
      nvvm.wgmma.fence.aligned
      "test.use"(%k, %v) : (!tile, !tile) -> ()
      gpu.return
    }

    // 128 threads copy 16 rows of 8 chunks at once: 4 chunks a thread.
    // CHECK-LABEL: gpu.func @copy_rows
    gpu.func @copy_rows(%x: memref<?x2x64xbf16>, %row: index, %head: index, %n: index)
        kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %m = kernel.alloc : !tile
      // Rows past the last read 0 of 16 bytes.
      // CHECK-COUNT-4: nvvm.cp.async.shared.global %{{.*}}, %{{.*}}, 16, cache = cg, %{{.*}}
      // CHECK-NOT: nvvm.cp.async
      kernel.copy %x rows(%row, %head, %c0, %c1) valid(%n) to %m : memref<?x2x64xbf16>, !tile
      "test.use"(%m) : (!tile) -> ()
      gpu.return
    }

    // Four rows of a thread, each with a page of its own, which is one of those of memory
    // whatever the table has; and 16 threads that share a division by a constant.
    // CHECK-LABEL: gpu.func @copy_from_pages
    // CHECK-SAME: (%[[X:.*]]: memref<?x16x2x64xbf16>, %[[TABLE:[^:]*]]: memref<?x?xi32>, %[[S:[^:]*]]: index
    gpu.func @copy_from_pages(%x: memref<?x16x2x64xbf16>, %table: memref<?x?xi32>, %s: index, %head: index,
                              %first: index, %n: index)
        kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
      %c1 = arith.constant 1 : index
      %m = kernel.alloc : !tile
      // CHECK-COUNT-4: memref.load %[[TABLE]][%[[S]], %{{.*}}]
      // CHECK-NOT: memref.load
      // CHECK: arith.maxsi
      // CHECK: arith.minsi
      // CHECK-COUNT-4: nvvm.cp.async.shared.global
      // CHECK-NOT: nvvm.cp.async
      kernel.copy %x rows(%s, %head, %first, %c1) valid(%n) pages(%table : memref<?x?xi32>) to %m
          : memref<?x16x2x64xbf16>, !tile
      "test.use"(%m) : (!tile) -> ()
      gpu.return
    }

    // CHECK-LABEL: gpu.func @copy_from_one_page
    gpu.func @copy_from_one_page(%x: memref<?x64x2x64xbf16>, %table: memref<?x?xi32>, %s: index, %head: index,
                                 %first: index, %n: index)
        kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
      %c1 = arith.constant 1 : index
      %m = kernel.alloc : !tile
      // CHECK-COUNT-1: memref.load
      // CHECK-NOT: memref.load
      // CHECK-COUNT-4: nvvm.cp.async.shared.global
      kernel.copy %x rows(%s, %head, %first, %c1) valid(%n) pages(%table : memref<?x?xi32>) to %m {one_page}
          : memref<?x64x2x64xbf16>, !tile
      "test.use"(%m) : (!tile) -> ()
      gpu.return
    }

    // Quantised rows: eight bytes of each chunk become eight numbers.
    // CHECK-LABEL: gpu.func @copy_bytes
    gpu.func @copy_bytes(%x: memref<?x2x64xi8>, %row: index, %head: index, %n: index)
        kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %m = kernel.alloc : !tile
      // CHECK-NOT: nvvm.cp.async
      // CHECK-COUNT-4: llvm.load %{{.*}} {alignment = 8 : i64} : !llvm.ptr<1> -> vector<2xi32>
      // CHECK: llvm.store %{{.*}} {alignment = 16 : i64} : vector<8xbf16>, !llvm.ptr<3>
      kernel.copy %x rows(%row, %head, %c0, %c1) valid(%n) to %m : memref<?x2x64xi8>, !tile
      "test.use"(%m) : (!tile) -> ()
      gpu.return
    }

    // Rows of 20 elements are not made of aligned chunks.
    // CHECK-LABEL: gpu.func @copy_unaligned
    gpu.func @copy_unaligned(%x: memref<?x2x20xf16>, %row: index, %head: index, %n: index)
        kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %m = kernel.alloc : memref<1x32x64xf16, #wg>
      // CHECK-NOT: nvvm.cp.async
      // CHECK: llvm.load %{{.*}} : !llvm.ptr<1> -> i16
      // CHECK: llvm.store %{{.*}} {alignment = 16 : i64} : vector<8xi16>, !llvm.ptr<3>
      kernel.copy %x rows(%row, %head, %c0, %c1) valid(%n) to %m : memref<?x2x20xf16>, memref<1x32x64xf16, #wg>
      "test.use"(%m) : (memref<1x32x64xf16, #wg>) -> ()
      gpu.return
    }

    // Whole tiles read all of every chunk.
    // CHECK-LABEL: gpu.func @copy_whole
    gpu.func @copy_whole(%x: memref<?x2x64xbf16>, %row: index, %head: index)
        kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c64 = arith.constant 64 : index
      %m = kernel.alloc : !tile
      // CHECK-NOT: arith.cmpi
      // CHECK: %[[ALL:.*]] = arith.constant 16 : i32
      // CHECK: nvvm.cp.async.shared.global %{{.*}}, %{{.*}}, 16, cache = cg, %[[ALL]]
      kernel.copy %x rows(%row, %head, %c0, %c1) valid(%c64) to %m : memref<?x2x64xbf16>, !tile
      "test.use"(%m) : (!tile) -> ()
      gpu.return
    }

    // No copy here is asynchronous: there is no group to wait for.
    // CHECK-LABEL: gpu.func @ring_of_registers
    gpu.func @ring_of_registers(%x: memref<?x2x20xf16>, %row: index, %head: index, %n: index, %i: i32)
        kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %ring = kernel.ring stages(2) : !kernel.ring<memref<1x32x64xf16, #wg>>
      // CHECK-NOT: nvvm.cp.async
      // CHECK: gpu.barrier
      %k0 = kernel.ring.acquire %ring[%i] : !kernel.ring<memref<1x32x64xf16, #wg>>
      kernel.copy %x rows(%row, %head, %c0, %c1) valid(%n) to %k0 : memref<?x2x20xf16>, memref<1x32x64xf16, #wg>
      kernel.ring.commit %ring : !kernel.ring<memref<1x32x64xf16, #wg>>
      %k1 = kernel.ring.wait %ring[%i] younger 0 : !kernel.ring<memref<1x32x64xf16, #wg>>
      "test.use"(%k1) : (memref<1x32x64xf16, #wg>) -> ()
      gpu.return
    }

    // The slot lies behind tiles; its number is stored as late as it may be.
    // CHECK-LABEL: gpu.func @take
    // CHECK-SAME: (%[[COUNTERS:.*]]: memref<4xi64>, %[[I:.*]]: index
    gpu.func @take(%counters: memref<4xi64>, %i: index)
        kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
      // CHECK: memref.view %{{.*}}[%c8192{{.*}}][] : {{.*}} to memref<1xi64
      %slot = kernel.alloc : memref<1xi64, #wg>
      %m = kernel.alloc : !tile
      // CHECK: %[[FIRST:.*]] = arith.cmpi eq
      // CHECK: %[[NUMBER:.*]] = scf.if %[[FIRST]]
      // CHECK: llvm.atomicrmw add %{{.*}}, %{{.*}} syncscope("device") monotonic
      // CHECK: "test.use"
      // CHECK: scf.if %[[FIRST]]
      // CHECK: memref.store %[[NUMBER]]
      // CHECK: gpu.barrier
      kernel.take %counters[%i] to %slot : memref<4xi64>, memref<1xi64, #wg>
      "test.use"(%m) : (!tile) -> ()
      gpu.barrier
      gpu.return
    }

    // x = b0 + b1 + b2.
    // CHECK-LABEL: gpu.func @copy_f32
    gpu.func @copy_f32(%x: memref<?x2x64xf32>, %row: index, %head: index, %n: index)
        kernel attributes {known_block_size = array<i32: 512, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %m0 = kernel.alloc : !tile
      %m1 = kernel.alloc : !tile
      %m2 = kernel.alloc : !tile
      // CHECK: %[[X:.*]] = scf.if
      // CHECK: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<8xf32>
      // CHECK: %[[B0:.*]] = arith.truncf %[[X]]
      // CHECK: %[[W0:.*]] = arith.extf %[[B0]]
      // CHECK: %[[X1:.*]] = arith.subf %[[X]], %[[W0]]
      // CHECK: llvm.store %[[B0]]
      // CHECK: %[[B1:.*]] = arith.truncf %[[X1]]
      // CHECK: llvm.store %[[B1]]
      // CHECK: llvm.store
      kernel.copy %x rows(%row, %head, %c0, %c1) valid(%n) to %m0, %m1, %m2 : memref<?x2x64xf32>, !tile, !tile, !tile
      "test.use"(%m0, %m1, %m2) : (!tile, !tile, !tile) -> ()
      gpu.return
    }

    // Two of the eight rows of a thread are in its registers at once: both are
    // read before the first is stored.
    // CHECK-LABEL: gpu.func @copy_many_rows
    gpu.func @copy_many_rows(%x: memref<?x2x64xf32>, %row: index, %head: index, %n: index)
        kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %m0 = kernel.alloc : !tile
      %m1 = kernel.alloc : !tile
      %m2 = kernel.alloc : !tile
      // CHECK: scf.for %{{.*}} = %c0_i32{{.*}} to %c64_i32{{.*}} step %c16_i32
      // CHECK-NOT: scf.for
      // CHECK: llvm.load {{.*}} -> vector<8xf32>
      // CHECK-NOT: llvm.store
      // CHECK: llvm.load {{.*}} -> vector<8xf32>
      // CHECK-NOT: llvm.load
      // CHECK-COUNT-6: llvm.store
      // CHECK: } {llvm.loop_annotation = #[[$ONE_LOOP]]}
      kernel.copy %x rows(%row, %head, %c0, %c1) valid(%n) to %m0, %m1, %m2 : memref<?x2x64xf32>, !tile, !tile, !tile
      "test.use"(%m0, %m1, %m2) : (!tile, !tile, !tile) -> ()
      gpu.return
    }
  }

  gpu.module @stages {
    // Both have the memory behind the tile: 16 KiB. Neighbours in one store, 8 rows apart for the
    // halves of a fragment, and a barrier behind them.
    // CHECK-LABEL: gpu.func @stage
    // CHECK-DAG: %[[BEHIND:.*]] = arith.constant 8192 : index
    // CHECK: memref.view %{{.*}}[%[[BEHIND]]]{{.*}} to memref<1x64x64xbf16
    // CHECK-COUNT-8: llvm.store %{{.*}} {alignment = 4 : i64} : vector<2xbf16>, !llvm.ptr<3>
    // CHECK-NOT: llvm.store
    // CHECK: gpu.barrier
    // CHECK: %[[AGAIN:.*]] = arith.constant 8192 : index
    // CHECK: memref.view %{{.*}}[%[[AGAIN]]]{{.*}} to memref<2x64x64xbf16
    gpu.func @stage(%narrow: vector<1x4x2x2xbf16>, %wide: vector<1x16x2x2xbf16>)
        kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
      %tile = kernel.alloc : !tile
      %first = kernel.stage %narrow : vector<1x4x2x2xbf16> to !tile
      "test.use"(%tile, %first) : (!tile, !tile) -> ()
      %second = kernel.stage %wide : vector<1x16x2x2xbf16> to memref<2x64x64xbf16, #wg>
      "test.use"(%second) : (memref<2x64x64xbf16, #wg>) -> ()
      gpu.return
    }

    // What threads have written is published to wgmma, which reads it by another proxy.
    // CHECK-LABEL: gpu.func @stage_for_wgmma
    // CHECK: llvm.store {{.*}} : vector<2xbf16>, !llvm.ptr<3>
    // CHECK: nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>
    // CHECK-NEXT: gpu.barrier
    gpu.func @stage_for_wgmma(%narrow: vector<1x4x2x2xbf16>)
        kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
      %first = kernel.stage %narrow : vector<1x4x2x2xbf16> to !tile
      nvvm.wgmma.fence.aligned
      "test.use"(%first) : (!tile) -> ()
      gpu.return
    }
  }

  // CHECK-LABEL: @launches_know_the_size
  // CHECK: %[[SIZE:.*]] = arith.constant 40960 : i32
  // CHECK: gpu.launch_func @kernels::@layout {{.*}} dynamic_shared_memory_size %[[SIZE]]
  func.func @launches_know_the_size(%i: i32) {
    %c1 = arith.constant 1 : index
    %c128 = arith.constant 128 : index
    gpu.launch_func @kernels::@layout blocks in (%c1, %c1, %c1) threads in (%c128, %c1, %c1) args(%i : i32)
    return
  }
}
