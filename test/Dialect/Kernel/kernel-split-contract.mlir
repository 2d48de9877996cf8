// RUN: varlen-opt %s --pass-pipeline='builtin.module(gpu.module(gpu.func(kernel-split-contract)))' | FileCheck %s
// RUN: varlen-opt %s --pass-pipeline='builtin.module(gpu.module(gpu.func(kernel-split-contract,kernel-lower-contract)))' | FileCheck %s --check-prefix=MMA

!k = memref<1x64x64xbf16, #gpu.address_space<workgroup>>
!acc = vector<1x8x2x2xf32>
!p = vector<1x8x2x2xbf16>
!ring = !kernel.ring<!k>

// mma.sync has nothing in flight.
// MMA-NOT: kernel.{{start|wait|contract}}

gpu.module @kernels {
  // Waits come as late as the order of operations lets them.
  // CHECK-LABEL: gpu.func @overlap
  // CHECK: %[[S:.*]] = kernel.start
  // CHECK-NEXT: %[[O:.*]] = kernel.start {{.*}} {b_t}
  // CHECK-NEXT: %[[S1:.*]] = kernel.wait %[[S]] younger 1
  // CHECK-NEXT: %[[P:.*]] = math.exp2 %[[S1]]
  // CHECK-NEXT: %[[O1:.*]] = kernel.wait %[[O]] younger 0
  // CHECK-NEXT: arith.mulf %[[O1]], %[[P]]
  gpu.func @overlap(%q: !k, %k: !k, %acc: !acc, %p: !p, %out: memref<?x1x64xf32>, %i: index) kernel
      attributes {known_block_size = array<i32: 128, 1, 1>} {
    %s = kernel.contract %q, %k, %acc k(64) : !k, !k into !acc
    %o = kernel.contract %p, %k, %acc k(64) {b_t} : !p, !k into !acc
    %x = math.exp2 %s : !acc
    %y = arith.mulf %o, %x : !acc
    kernel.store %y to %out rows(%i, %i, %i, %i) valid(%i) : !acc to memref<?x1x64xf32>
    gpu.return
  }

  // Shared memory is not handed back while it is read.
  // CHECK-LABEL: gpu.func @release
  // CHECK: %[[S:.*]] = kernel.start
  // CHECK-NEXT: arith.constant
  // CHECK-NEXT: kernel.wait %[[S]] younger 0
  // CHECK-NEXT: kernel.ring.release
  // CHECK: %[[T:.*]] = kernel.start
  // CHECK-NEXT: kernel.wait %[[T]] younger 0
  // CHECK-NEXT: gpu.barrier
  gpu.func @release(%q: !k, %ring: !ring, %i: i32, %acc: !acc) kernel
      attributes {known_block_size = array<i32: 128, 1, 1>} {
    %k = kernel.ring.wait %ring[%i] younger 0 : !ring
    %s = kernel.contract %q, %k, %acc k(64) : !k, !k into !acc
    %n = arith.constant 1 : index
    kernel.ring.release %ring[%i] : !ring
    %t = kernel.contract %q, %q, %acc k(64) : !k, !k into !acc
    gpu.barrier
    gpu.return
  }

  // Around a loop; what starts in a branch may not have started.
  // CHECK-LABEL: gpu.func @nested
  // CHECK: scf.for
  // CHECK: %[[S:.*]] = kernel.start
  // CHECK-NEXT: scf.if
  // CHECK: kernel.start
  // CHECK: }
  // CHECK: kernel.wait %[[S]] younger 0
  // CHECK-NEXT: scf.yield
  gpu.func @nested(%q: !k, %acc: !acc, %n: index, %b: i1, %out: memref<?x1x64xf32>) kernel
      attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %acc) -> (!acc) {
      %s = kernel.contract %q, %q, %a k(64) : !k, !k into !acc
      scf.if %b {
        %t = kernel.contract %q, %q, %acc k(64) : !k, !k into !acc
        kernel.store %t to %out rows(%i, %i, %i, %i) valid(%i) : !acc to memref<?x1x64xf32>
      }
      scf.yield %s : !acc
    }
    kernel.store %r to %out rows(%n, %n, %n, %n) valid(%n) : !acc to memref<?x1x64xf32>
    gpu.return
  }

  // An accumulator in flight around a loop.
  // MMA-LABEL: gpu.func @carried
  // MMA: scf.for {{.*}} iter_args(%{{.*}} = %{{.*}}) -> (vector<1x8x2x2xf32>)
  // MMA: gpu.return
  gpu.func @carried(%q: !k, %acc: !acc, %n: index, %out: memref<?x1x64xf32>) kernel
      attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %s = kernel.start %q, %q, %acc k(64) : !k, !k into !acc
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %s) -> (!kernel.pending<!acc>) {
      %x = kernel.wait %a younger 0 : <!acc>
      %t = kernel.start %q, %q, %x k(64) : !k, !k into !acc
      scf.yield %t : !kernel.pending<!acc>
    }
    %y = kernel.wait %r younger 0 : <!acc>
    kernel.store %y to %out rows(%n, %n, %n, %n) valid(%n) : !acc to memref<?x1x64xf32>
    gpu.return
  }

  // A contraction starts as soon as its factors and its sum are there.
  // CHECK-LABEL: gpu.func @early
  // CHECK: kernel.ring.wait
  // CHECK-NEXT: %[[T:.*]] = kernel.start
  // CHECK-NEXT: %[[S:.*]] = kernel.start
  // CHECK-NEXT: %[[S1:.*]] = kernel.wait %[[S]] younger 0
  // CHECK-NEXT: %[[X:.*]] = math.exp2 %[[S1]]
  // CHECK-NEXT: %[[T1:.*]] = kernel.wait %[[T]] younger 1
  // CHECK-NEXT: arith.mulf %[[X]], %[[T1]]
  gpu.func @early(%q: !k, %ring: !ring, %i: i32, %n: index, %out: memref<?x1x64xf32>) kernel
      attributes {known_block_size = array<i32: 128, 1, 1>} {
    %zero = arith.constant dense<0.0> : !acc
    %k = kernel.ring.wait %ring[%i] younger 0 : !ring
    %s = kernel.contract %q, %k, %zero k(64) : !k, !k into !acc
    %x = math.exp2 %s : !acc
    %t = kernel.contract %k, %q, %zero k(64) : !k, !k into !acc
    %y = arith.mulf %x, %t : !acc
    kernel.store %y to %out rows(%n, %n, %n, %n) valid(%n) : !acc to memref<?x1x64xf32>
    gpu.return
  }

  // Of two that are written before either is used, the first one goes first.
  // CHECK-LABEL: gpu.func @ordered
  // CHECK: kernel.ring.wait
  // CHECK-NEXT: %[[S:.*]] = kernel.start {{.*}} k(64) {b_t}
  // CHECK-NEXT: %[[T:.*]] = kernel.start {{.*}} k(64) :
  // CHECK-NEXT: %[[S1:.*]] = kernel.wait %[[S]] younger 1
  // CHECK-NEXT: %[[X:.*]] = math.exp2 %[[S1]]
  // CHECK-NEXT: %[[T1:.*]] = kernel.wait %[[T]] younger 0
  // CHECK-NEXT: arith.mulf %[[X]], %[[T1]]
  gpu.func @ordered(%q: !k, %ring: !ring, %i: i32, %n: index, %out: memref<?x1x64xf32>) kernel
      attributes {known_block_size = array<i32: 128, 1, 1>} {
    %zero = arith.constant dense<0.0> : !acc
    %k = kernel.ring.wait %ring[%i] younger 0 : !ring
    %s = kernel.contract %q, %k, %zero k(64) {b_t} : !k, !k into !acc
    %t = kernel.contract %k, %q, %zero k(64) : !k, !k into !acc
    %x = math.exp2 %s : !acc
    %y = arith.mulf %x, %t : !acc
    kernel.store %y to %out rows(%n, %n, %n, %n) valid(%n) : !acc to memref<?x1x64xf32>
    gpu.return
  }

  // None is in flight while a factor is written.
  // CHECK-LABEL: gpu.func @factor
  // CHECK: %[[T:.*]] = kernel.start
  // CHECK-NEXT: %[[S:.*]] = kernel.start
  // CHECK-NEXT: %[[S1:.*]] = kernel.wait %[[S]] younger 0
  // CHECK-NEXT: %[[X:.*]] = math.exp2 %[[S1]]
  // CHECK-NEXT: %[[T1:.*]] = kernel.wait %[[T]] younger 1
  // CHECK-NEXT: %[[P:.*]] = arith.truncf %[[X]]
  // CHECK-NEXT: %[[O:.*]] = kernel.start %[[P]]
  gpu.func @factor(%q: !k, %ring: !ring, %i: i32, %acc: !acc, %n: index, %out: memref<?x1x64xf32>) kernel
      attributes {known_block_size = array<i32: 128, 1, 1>} {
    %k = kernel.ring.wait %ring[%i] younger 0 : !ring
    %s = kernel.contract %q, %k, %acc k(64) : !k, !k into !acc
    %x = math.exp2 %s : !acc
    %p = arith.truncf %x : !acc to !p
    %o = kernel.contract %p, %k, %acc k(64) {b_t} : !p, !k into !acc
    %t = kernel.contract %k, %q, %acc k(64) : !k, !k into !acc
    %y = arith.mulf %o, %t : !acc
    kernel.store %y to %out rows(%n, %n, %n, %n) valid(%n) : !acc to memref<?x1x64xf32>
    gpu.return
  }

  // Where accumulators take most registers, nothing is in flight beside other
  // work; nor is one term of a sum.
  // CHECK-LABEL: gpu.func @crowded
  // CHECK: scf.for
  // CHECK-NOT: kernel.start
  // CHECK-COUNT-2: kernel.contract
  // CHECK: scf.yield
  // CHECK-COUNT-2: kernel.contract
  gpu.func @crowded(%q: !k, %k: !k, %acc: vector<1x16x2x2xf32>, %n: index, %out: memref<?x1x128xf32>) kernel
      attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %zero = arith.constant dense<0.0> : !acc
    %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %acc, %b = %acc) -> (vector<1x16x2x2xf32>, vector<1x16x2x2xf32>) {
      %s = kernel.contract %q, %k, %zero k(64) : !k, !k into !acc
      %t = kernel.contract %k, %q, %zero k(64) : !k, !k into !acc
      %x = arith.mulf %s, %t : !acc
      %y = vector.insert_strided_slice %x, %a {offsets = [0, 0, 0, 0], strides = [1, 1, 1, 1]} : !acc into vector<1x16x2x2xf32>
      scf.yield %y, %b : vector<1x16x2x2xf32>, vector<1x16x2x2xf32>
    }
    %s = kernel.contract %q, %k, %zero k(64) : !k, !k into !acc
    %t = kernel.contract %q, %q, %s k(64) : !k, !k into !acc
    %y = vector.insert_strided_slice %t, %r#0 {offsets = [0, 0, 0, 0], strides = [1, 1, 1, 1]} : !acc into vector<1x16x2x2xf32>
    kernel.store %y to %out rows(%n, %n, %n, %n) valid(%n) : vector<1x16x2x2xf32> to memref<?x1x128xf32>
    gpu.return
  }

  // A sum that another block uses is there before the branch.
  // CHECK-LABEL: gpu.func @blocks
  // CHECK: %[[S:.*]] = kernel.start
  // CHECK: %[[W:.*]] = kernel.wait %[[S]] younger 0
  // CHECK-NEXT: cf.br ^bb1
  // CHECK: kernel.store %[[W]]
  gpu.func @blocks(%q: !k, %acc: !acc, %n: index, %out: memref<?x1x64xf32>) kernel
      attributes {known_block_size = array<i32: 128, 1, 1>} {
    %s = kernel.contract %q, %q, %acc k(64) : !k, !k into !acc
    cf.br ^bb1
  ^bb1:
    kernel.store %s to %out rows(%n, %n, %n, %n) valid(%n) : !acc to memref<?x1x64xf32>
    gpu.return
  }
}
