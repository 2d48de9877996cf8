// RUN: varlen-opt %s --allow-unregistered-dialect --kernel-lower-memory=mbarriers | FileCheck %s
// RUN: varlen-opt %s --allow-unregistered-dialect --pass-pipeline='builtin.module(kernel-lower-memory{mbarriers=true},gpu.module(gpu.func(kernel-lower-roles,cse)))' | FileCheck %s --check-prefix=ROLES
// RUN: varlen-opt %s --allow-unregistered-dialect --pass-pipeline='builtin.module(kernel-lower-memory{mbarriers=true},gpu.module(gpu.func(kernel-lower-roles{moves-registers=true},cse)))' | FileCheck %s --check-prefix=REGISTERS

#wg = #gpu.address_space<workgroup>
!tile = memref<1x64x64xbf16, #wg>
!number = memref<1xi32, #wg>
!kv = !kernel.ring<!tile>
!items = !kernel.ring<!tile, !number>

module attributes {gpu.container_module} {
  gpu.module @kernels {
    // A ring without slack has mbarriers, too. 128 producers arrive with what cp.async has
    // copied, and in the other ring with what they have stored as well; eight warps release.
    // CHECK-LABEL: gpu.func @roles
    // REGISTERS-LABEL: gpu.func @roles
    // The mean of 8 x 232 and 4 x 32, in whole steps of 8.
    // REGISTERS-SAME: nvvm.maxnreg = 168 : i32
    gpu.func @roles(%x: memref<?x2x64xbf16>, %row: index, %i: i32, %counters: memref<2xi64>)
        kernel attributes {known_block_size = array<i32: 384, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c64 = arith.constant 64 : index
      // CHECK: memref.view %{{.*}} to memref<4xi64,
      // CHECK: scf.if
      // CHECK: %[[THREADS:.*]] = arith.constant 128 : i32
      // CHECK-NEXT: nvvm.mbarrier.init %{{.*}}, %[[THREADS]]
      // CHECK: %[[WARPS:.*]] = arith.constant 8 : i32
      // CHECK-NEXT: nvvm.mbarrier.init %{{.*}}, %[[WARPS]]
      %kv = kernel.ring stages(2) : !kv
      // CHECK: memref.view %{{.*}} to memref<2xi64,
      // CHECK: scf.if
      // CHECK: %[[ARRIVALS:.*]] = arith.constant 256 : i32
      // CHECK-NEXT: nvvm.mbarrier.init %{{.*}}, %[[ARRIVALS]]
      %items = kernel.ring stages(1) : !items
      %taken = kernel.alloc : memref<1xi64, #wg>
      // ROLES: gpu.barrier
      // ROLES-NOT: gpu.barrier
      gpu.barrier
      // ROLES: %[[WARP:.*]], %{{.*}} = gpu.shuffle idx
      // ROLES: %[[CONSUMES:.*]] = arith.cmpi slt, %[[WARP]], %c8_i32
      // ROLES: scf.if %[[CONSUMES]] {
      // ROLES-NOT: setmaxregister
      // REGISTERS: gpu.shuffle idx
      // REGISTERS: scf.if
      // REGISTERS-NEXT: nvvm.setmaxregister increase 232
      // REGISTERS: } else {
      // REGISTERS-NEXT: nvvm.setmaxregister decrease 32
      // CHECK: kernel.roles consumers(8) registers(232) {
      kernel.roles consumers(8) registers(232) {
        // CHECK: nvvm.mbarrier.try_wait
        %q, %n = kernel.ring.wait %items[%i] younger 0 : !items
        // CHECK: nvvm.mbarrier.try_wait
        %k = kernel.ring.wait %kv[%i] younger 0 : !kv
        // CHECK: "test.use"
        "test.use"(%q, %n, %k) : (!tile, !number, !tile) -> ()
        // ROLES: nvvm.barrier id = %c1_i32 number_of_threads = %c256_i32
        gpu.barrier
        // CHECK: nvvm.mbarrier.arrive %
        kernel.ring.release %kv[%i] : !kv
        // CHECK: nvvm.mbarrier.arrive %
        kernel.ring.release %items[%i] : !items
      // CHECK: } producers(4) registers(32) {
      // ROLES: } else {
      } producers(4) registers(32) {
        // The first row of a copy is that of the first producer.
        // CHECK: nvvm.mbarrier.try_wait
        // CHECK: %[[FIRST:.*]] = arith.constant -256 : i32
        // CHECK-NEXT: arith.addi %{{.*}}, %[[FIRST]]
        // CHECK: nvvm.cp.async.shared.global
        // CHECK: nvvm.cp.async.mbarrier.arrive %{{.*}} {noinc = true}
        // CHECK-NOT: nvvm.mbarrier.arrive
        %k = kernel.ring.acquire %kv[%i] : !kv
        kernel.copy %x rows(%row, %c0, %c0, %c1) valid(%c64) to %k : memref<?x2x64xbf16>, !tile
        kernel.ring.commit %kv : !kv
        // CHECK: nvvm.mbarrier.try_wait
        %q, %n = kernel.ring.acquire %items[%i] : !items
        // The first producer stores.
        // CHECK: %[[PRODUCER:.*]] = arith.constant 256 : index
        // CHECK: %[[IS:.*]] = arith.cmpi eq, %{{.*}}, %[[PRODUCER]]
        // CHECK: scf.if %[[IS]] {
        // CHECK-NEXT: %[[ZERO:.*]] = arith.constant 0 : index
        // CHECK-NEXT: memref.store %{{.*}}, %{{.*}}[%[[ZERO]]] : memref<1xi32,
        kernel.put %i to %n : !number
        kernel.copy %x rows(%row, %c0, %c0, %c1) valid(%c64) to %q : memref<?x2x64xbf16>, !tile
        // CHECK: nvvm.cp.async.mbarrier.arrive %[[FULL:.*]] {noinc = true}
        // CHECK-NEXT: nvvm.mbarrier.arrive %[[FULL]]
        kernel.ring.commit %items : !items
        // CHECK: llvm.atomicrmw add
        kernel.take %counters[%c1] to %taken : memref<2xi64>, memref<1xi64, #wg>
        // ROLES: nvvm.barrier id = %c2_i32 number_of_threads = %c128_i32
        gpu.barrier
      }
      gpu.return
    }

    // Rows of f32 are stored by threads: their slots are full when these say so.
    // CHECK-LABEL: gpu.func @stores
    gpu.func @stores(%x: memref<?x2x64xf32>, %row: index, %i: i32)
        kernel attributes {known_block_size = array<i32: 192, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      // CHECK: %[[THREADS:.*]] = arith.constant 64 : i32
      // CHECK-NEXT: nvvm.mbarrier.init %{{.*}}, %[[THREADS]]
      %kv = kernel.ring stages(2) : !kernel.ring<!tile, !tile, !tile>
      kernel.roles consumers(4) {
      } producers(2) {
        %k:3 = kernel.ring.acquire %kv[%i] : !kernel.ring<!tile, !tile, !tile>
        kernel.copy %x rows(%row, %c0, %c0, %c1) valid(%row) to %k#0, %k#1, %k#2
            : memref<?x2x64xf32>, !tile, !tile, !tile
        // CHECK-NOT: cp.async
        // CHECK: nvvm.mbarrier.arrive
        kernel.ring.commit %kv : !kernel.ring<!tile, !tile, !tile>
      }
      gpu.return
    }
  }
}
