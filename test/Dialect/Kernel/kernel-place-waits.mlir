// RUN: varlen-opt %s --allow-unregistered-dialect --pass-pipeline='builtin.module(gpu.module(gpu.func(kernel-place-waits)))' | FileCheck %s

!k = memref<1x64x64xbf16, #gpu.address_space<workgroup>>
!acc = vector<1x8x2x2xf32>
!p = vector<1x8x2x2xbf16>
!ring = !kernel.ring<!k>

gpu.module @kernels {
  // Keys are released before values are waited for, which are fetched there, too.
  // CHECK-LABEL: gpu.func @attention
  // CHECK: %[[KEYS:.*]] = kernel.ring
  // CHECK: %[[VALUES:.*]] = kernel.ring
  // CHECK: %[[K:.*]] = kernel.ring.wait %[[KEYS]]
  // CHECK-NEXT: scf.if
  // CHECK-NEXT: kernel.ring.acquire %[[KEYS]]
  // CHECK: kernel.ring.commit %[[KEYS]]
  // CHECK-NEXT: kernel.contract %{{.*}}, %[[K]]
  // CHECK-NEXT: kernel.ring.release %[[KEYS]]
  // CHECK: arith.truncf
  // CHECK-NEXT: %[[V:.*]] = kernel.ring.wait %[[VALUES]]
  // CHECK-NEXT: scf.if
  // CHECK-NEXT: kernel.ring.acquire %[[VALUES]]
  // CHECK: kernel.ring.commit %[[VALUES]]
  // CHECK-NEXT: kernel.contract %{{.*}}, %[[V]]
  // CHECK-NEXT: kernel.ring.release %[[VALUES]]
  gpu.func @attention(%q: !k, %i: i32, %more: i1, %acc: !acc) kernel
      attributes {known_block_size = array<i32: 128, 1, 1>} {
    %zero = arith.constant dense<0.0> : !acc
    %keys = kernel.ring stages(2) : !ring
    %values = kernel.ring stages(2) : !ring
    %k = kernel.ring.wait %keys[%i] younger 1 : !ring
    scf.if %more {
      %k1 = kernel.ring.acquire %keys[%i] : !ring
      "test.copy"(%k1) : (!k) -> ()
    }
    kernel.ring.commit %keys : !ring
    %v = kernel.ring.wait %values[%i] younger 1 : !ring
    scf.if %more {
      %v1 = kernel.ring.acquire %values[%i] : !ring
      "test.copy"(%v1) : (!k) -> ()
    }
    kernel.ring.commit %values : !ring
    %s = kernel.contract %q, %k, %zero k(64) : !k, !k into !acc
    %p = arith.truncf %s : !acc to !p
    %o = kernel.contract %p, %v, %acc k(64) {b_t} : !p, !k into !acc
    kernel.ring.release %keys[%i] : !ring
    kernel.ring.release %values[%i] : !ring
    "test.use"(%o) : (!acc) -> ()
    gpu.return
  }

  // Two uses, one of them in a branch; the release of another slot stays.
  // CHECK-LABEL: gpu.func @uses
  // CHECK: kernel.ring.release
  // CHECK-NEXT: "test.between"
  // CHECK-NEXT: kernel.ring.wait
  // CHECK-NEXT: "test.use"
  // CHECK-NEXT: scf.if
  // CHECK-NEXT: "test.use"
  // CHECK: }
  // CHECK-NEXT: kernel.ring.release
  // CHECK-NEXT: kernel.ring.wait
  // CHECK-NEXT: "test.use"
  gpu.func @uses(%i: i32, %j: i32, %b: i1) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %keys = kernel.ring stages(2) : !ring
    %values = kernel.ring stages(2) : !ring
    %k = kernel.ring.wait %keys[%i] younger 1 : !ring
    %v = kernel.ring.wait %values[%i] younger 1 : !ring
    kernel.ring.release %keys[%j] : !ring
    "test.between"() : () -> ()
    "test.use"(%k) : (!k) -> ()
    scf.if %b {
      "test.use"(%k) : (!k) -> ()
    }
    "test.use"(%v) : (!k) -> ()
    kernel.ring.release %keys[%i] : !ring
    gpu.return
  }

  // One ring alone is left as it is.
  // CHECK-LABEL: gpu.func @one_ring
  // CHECK: kernel.ring.wait
  // CHECK-NEXT: "test.between"
  gpu.func @one_ring(%i: i32) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %ring = kernel.ring stages(2) : !ring
    %k = kernel.ring.wait %ring[%i] younger 0 : !ring
    "test.between"() : () -> ()
    "test.use"(%k) : (!k) -> ()
    kernel.ring.release %ring[%i] : !ring
    gpu.return
  }
}
