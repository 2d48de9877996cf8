// RUN: varlen-opt %s --allow-unregistered-dialect --kernel-lower-memory | FileCheck %s

// Quantised rows to slots of a ring: bytes in the first half of their place, which the thread that
// has copied them widens when they have landed.

#wg = #gpu.address_space<workgroup>
!tile = memref<1x32x64xbf16, #wg>
!ring = !kernel.ring<!tile, !tile>

gpu.module @kernels {
  // 128 threads copy 16 rows of 8 chunks at once: 2 chunks a thread.
  // CHECK-LABEL: gpu.func @ring
  gpu.func @ring(%k: memref<?x2x64xi8>, %v: memref<?x2x64xf8E4M3FN>, %row: index, %n: index, %i: i32)
      kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %ring = kernel.ring stages(2) : !ring
    %k0, %v0 = kernel.ring.acquire %ring[%i] : !ring
    // Rows past the last read 0 of 8 bytes.
    // CHECK-COUNT-4: nvvm.cp.async.shared.global %{{.*}}, %{{.*}}, 8, cache = ca, %{{.*}}
    // CHECK-NOT: nvvm.cp.async.shared
    kernel.copy %k rows(%row, %c0, %c0, %c1) valid(%n) to %k0 : memref<?x2x64xi8>, !tile
    kernel.copy %v rows(%row, %c0, %c0, %c1) valid(%n) to %v0 : memref<?x2x64xf8E4M3FN>, !tile
    // CHECK: nvvm.cp.async.commit.group
    kernel.ring.commit %ring : !ring
    // CHECK: nvvm.cp.async.wait.group 0
    // CHECK: %[[K:.*]] = memref.view
    // CHECK: %[[V:.*]] = memref.view
    // CHECK: builtin.unrealized_conversion_cast %[[K]]
    // CHECK: %[[AT:.*]] = llvm.getelementptr %{{.*}}[0] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    // CHECK-NEXT: %[[BYTES:.*]] = llvm.load %[[AT]] {alignment = 8 : i64} : !llvm.ptr<3> -> vector<8xi8>
    // CHECK: llvm.load
    // CHECK-NEXT: %[[WIDE:.*]] = arith.sitofp %[[BYTES]] : vector<8xi8> to vector<8xf32>
    // CHECK-NEXT: %[[NARROW:.*]] = arith.truncf %[[WIDE]] : vector<8xf32> to vector<8xbf16>
    // CHECK-NEXT: llvm.store %[[NARROW]], %[[AT]] {alignment = 16 : i64}
    // CHECK: builtin.unrealized_conversion_cast %[[V]]
    // CHECK: %[[BITS:.*]] = llvm.load %{{.*}} : !llvm.ptr<3> -> vector<8xi8>
    // CHECK: arith.bitcast %[[BITS]] : vector<8xi8> to vector<8xf8E4M3FN>
    // CHECK: nvvm.fence.proxy
    // CHECK-NEXT: gpu.barrier
    %k1, %v1 = kernel.ring.wait %ring[%i] younger 0 : !ring
    nvvm.wgmma.fence.aligned
    "test.use"(%k1, %v1) : (!tile, !tile) -> ()
    kernel.ring.release %ring[%i] : !ring
    gpu.return
  }

  // Others wait for what is in no ring, and for what producers copy: such rows pass through registers.
  // CHECK-LABEL: gpu.func @tile
  // CHECK-NOT: nvvm.cp.async.shared
  // CHECK: arith.sitofp
  // CHECK: llvm.store
  gpu.func @tile(%k: memref<?x2x64xi8>, %row: index, %n: index)
      kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %m = kernel.alloc : !tile
    kernel.copy %k rows(%row, %c0, %c0, %c1) valid(%n) to %m : memref<?x2x64xi8>, !tile
    "test.use"(%m) : (!tile) -> ()
    gpu.return
  }

  // So do rows that are not whole chunks.
  // CHECK-LABEL: gpu.func @parts_of_chunks
  // CHECK-NOT: nvvm.cp.async.shared
  // CHECK: arith.sitofp
  // CHECK-NOT: nvvm.cp.async.shared
  gpu.func @parts_of_chunks(%k: memref<?x2x60xi8>, %row: index, %n: index, %i: i32)
      kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %ring = kernel.ring stages(2) : !kernel.ring<!tile>
    %k0 = kernel.ring.acquire %ring[%i] : !kernel.ring<!tile>
    kernel.copy %k rows(%row, %c0, %c0, %c1) valid(%n) to %k0 : memref<?x2x60xi8>, !tile
    kernel.ring.commit %ring : !kernel.ring<!tile>
    %k1 = kernel.ring.wait %ring[%i] younger 0 : !kernel.ring<!tile>
    "test.use"(%k1) : (!tile) -> ()
    gpu.return
  }
}
