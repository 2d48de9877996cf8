// RUN: varlen-opt %s --allow-unregistered-dialect --pass-pipeline='builtin.module(gpu.module(gpu.func(kernel-defer-contract)))' | FileCheck %s
// RUN: varlen-opt %s --allow-unregistered-dialect --pass-pipeline='builtin.module(gpu.module(gpu.func(kernel-defer-contract,kernel-split-contract)))' | FileCheck %s --check-prefix=SPLIT

!k = memref<1x64x64xbf16, #gpu.address_space<workgroup>>
!acc = vector<1x8x2x2xf32>
!p = vector<1x8x2x2xbf16>
!ring = !kernel.ring<!k, !k>

gpu.module @kernels {
  // CHECK-LABEL: gpu.func @attention
  // CHECK-SAME: (%[[Q:.*]]: memref{{.*}}, %[[LO:.*]]: i32, %[[HI:.*]]: i32, %[[INIT:.*]]: vector
  // CHECK: %[[ANY:.*]] = arith.cmpi slt, %[[LO]], %[[HI]]
  // CHECK: %[[ALL:.*]] = scf.if %[[ANY]] -> (vector<1x8x2x2xf32>) {
  // The first iteration.
  // CHECK: %[[S0:.*]]:2 = kernel.ring.wait %[[RING:.*]][%[[LO]]]
  // CHECK: %[[C0:.*]] = kernel.contract %[[Q]], %[[S0]]#0
  // CHECK: %[[P0:.*]] = arith.truncf %[[C0]]
  // CHECK: %[[SCALED0:.*]] = arith.mulf %[[INIT]], %[[C0]]
  // CHECK: %[[SECOND:.*]] = arith.addi %[[LO]]
  // CHECK: %[[R:.*]]:2 = scf.for %[[I:.*]] = %[[SECOND]] to %[[HI]] step %{{.*}} iter_args(%[[SUM:.*]] = %[[SCALED0]], %[[F:.*]] = %[[P0]])
  // CHECK: %[[S:.*]]:2 = kernel.ring.wait %[[RING]][%[[I]]]
  // CHECK: %[[C:.*]] = kernel.contract %[[Q]], %[[S]]#0
  // CHECK: %[[BEFORE:.*]] = arith.subi %[[I]]
  // CHECK: %[[T:.*]]:2 = kernel.ring.slot %[[RING]][%[[BEFORE]]]
  // CHECK: %[[O:.*]] = kernel.contract %[[F]], %[[T]]#1, %[[SUM]] k(64) {b_t}
  // CHECK: kernel.ring.release %[[RING]][%[[BEFORE]]]
  // CHECK: %[[P:.*]] = arith.truncf %[[C]]
  // CHECK: %[[SCALED:.*]] = arith.mulf %[[O]], %[[C]]
  // CHECK: scf.yield %[[SCALED]], %[[P]]
  // CHECK: %[[LAST:.*]] = arith.subi %[[HI]]
  // CHECK: %[[T:.*]]:2 = kernel.ring.slot %[[RING]][%[[LAST]]]
  // CHECK: %[[O:.*]] = kernel.contract %[[R]]#1, %[[T]]#1, %[[R]]#0 k(64) {b_t}
  // CHECK: kernel.ring.release %[[RING]][%[[LAST]]]
  // CHECK: scf.yield %[[O]]
  // CHECK: } else {
  // CHECK: scf.yield %[[INIT]]
  // CHECK: "test.use"(%[[ALL]])

  // What is deferred is left where it is: ptxas issues it beside what is before it.
  // SPLIT-LABEL: gpu.func @attention
  // SPLIT: scf.for
  // SPLIT: kernel.start
  // SPLIT: kernel.contract {{.*}} {b_t}
  // SPLIT: kernel.ring.release
  gpu.func @attention(%q: !k, %lo: i32, %hi: i32, %init: !acc) kernel
      attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : !acc
    %ring = kernel.ring stages(3) slack(1) lag(1) : !ring
    %o = scf.for %i = %lo to %hi step %c1 iter_args(%sum = %init) -> !acc : i32 {
      %k, %v = kernel.ring.wait %ring[%i] younger 0 : !ring
      %s = kernel.contract %q, %k, %zero k(64) : !k, !k into !acc
      %p = arith.truncf %s : !acc to !p
      %scaled = arith.mulf %sum, %s : !acc
      %next = kernel.contract %p, %v, %scaled k(64) {b_t} : !p, !k into !acc
      kernel.ring.release %ring[%i] : !ring
      scf.yield %next : !acc
    }
    "test.use"(%o) : (!acc) -> ()
    gpu.return
  }

  // Without a lag the slot before may be copied to already.
  // CHECK-LABEL: gpu.func @no_lag
  // CHECK-NOT: kernel.ring.slot
  gpu.func @no_lag(%q: !k, %lo: i32, %hi: i32, %init: !acc) kernel
      attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c1 = arith.constant 1 : i32
    %ring = kernel.ring stages(3) slack(1) : !ring
    %o = scf.for %i = %lo to %hi step %c1 iter_args(%sum = %init) -> !acc : i32 {
      %k, %v = kernel.ring.wait %ring[%i] younger 0 : !ring
      %s = kernel.contract %q, %k, %init k(64) : !k, !k into !acc
      %p = arith.truncf %s : !acc to !p
      %next = kernel.contract %p, %v, %sum k(64) {b_t} : !p, !k into !acc
      kernel.ring.release %ring[%i] : !ring
      scf.yield %next : !acc
    }
    "test.use"(%o) : (!acc) -> ()
    gpu.return
  }

  // The other contraction needs the sum: there is nothing to compute beside it.
  // CHECK-LABEL: gpu.func @sum_first
  // CHECK-NOT: kernel.ring.slot
  gpu.func @sum_first(%q: !k, %lo: i32, %hi: i32, %init: !acc) kernel
      attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c1 = arith.constant 1 : i32
    %ring = kernel.ring stages(3) slack(1) lag(1) : !ring
    %o = scf.for %i = %lo to %hi step %c1 iter_args(%sum = %init) -> !acc : i32 {
      %k, %v = kernel.ring.wait %ring[%i] younger 0 : !ring
      %s = kernel.contract %q, %k, %sum k(64) : !k, !k into !acc
      %p = arith.truncf %s : !acc to !p
      %next = kernel.contract %p, %v, %sum k(64) {b_t} : !p, !k into !acc
      kernel.ring.release %ring[%i] : !ring
      scf.yield %next : !acc
    }
    "test.use"(%o) : (!acc) -> ()
    gpu.return
  }

  // The result is used in its iteration.
  // CHECK-LABEL: gpu.func @used
  // CHECK-NOT: kernel.ring.slot
  gpu.func @used(%q: !k, %lo: i32, %hi: i32, %init: !acc) kernel
      attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c1 = arith.constant 1 : i32
    %ring = kernel.ring stages(3) slack(1) lag(1) : !ring
    %o = scf.for %i = %lo to %hi step %c1 iter_args(%sum = %init) -> !acc : i32 {
      %k, %v = kernel.ring.wait %ring[%i] younger 0 : !ring
      %s = kernel.contract %q, %k, %init k(64) : !k, !k into !acc
      %p = arith.truncf %s : !acc to !p
      %next = kernel.contract %p, %v, %sum k(64) {b_t} : !p, !k into !acc
      "test.use"(%next) : (!acc) -> ()
      kernel.ring.release %ring[%i] : !ring
      scf.yield %next : !acc
    }
    "test.use"(%o) : (!acc) -> ()
    gpu.return
  }
}
