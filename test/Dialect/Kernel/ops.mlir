// RUN: varlen-opt %s | FileCheck %s
// RUN: varlen-opt %s --mlir-print-op-generic | varlen-opt | FileCheck %s
// RUN: varlen-opt %s --canonicalize --cse | FileCheck %s
// RUN: varlen-opt %s --emit-bytecode | varlen-opt | FileCheck %s

!shared = memref<1x64x64xbf16, #gpu.address_space<workgroup>>
!values = memref<2x64x64xf16, #gpu.address_space<workgroup>>
!acc = !llvm.struct<(f32, f32, f32, f32)>

// CHECK-LABEL: func.func @tiles
// CHECK: %[[T:.*]] = kernel.tile %{{.*}} : memref<1x64x64xbf16, #gpu.address_space<workgroup>> to tensor<64x48xbf16>
// CHECK: kernel.tile %{{.*}}, %{{.*}}, %{{.*}} : memref<1x64x64xbf16, {{.*}}>, {{.*}} to tensor<64x64xf32>
// CHECK: kernel.load %{{.*}} rows(%[[ROW:.*]], %[[HEAD:.*]], %[[FIRST:.*]], %[[GROUP:.*]]) valid(%[[N:.*]]) otherwise %{{.*}} : memref<16xf32> to tensor<64x1xf32>
// CHECK: kernel.store %[[T]] to %{{.*}} rows(%[[ROW]], %[[HEAD]], %[[FIRST]], %[[GROUP]]) valid(%[[N]]) : tensor<64x48xbf16> to memref<?x16x40xbf16>
// CHECK: %[[U:.*]] = kernel.load %{{.*}} : memref<?x16x40xbf16> to tensor<64x48xbf16>
// CHECK: kernel.store %[[U]]
// CHECK: kernel.store %{{.*}}, %{{.*}} to %{{.*}} rows({{.*}}) valid({{.*}}) : tensor<64x1xf32>, tensor<64x1xf32> to memref<16x?x2xf32>
// CHECK: kernel.store %{{.*}} to %{{.*}} rows({{.*}}) valid({{.*}}) : tensor<64x1xf32> to memref<16x?xf32>
func.func @tiles(%mem: !shared, %plane: !shared, %sink: memref<16xf32>,
                 %out: memref<?x16x40xbf16>, %lse: memref<16x?xf32>, %row: index,
                 %head: index, %first: index, %group: index, %n: index, %x: f32,
                 %z: bf16, %stats: memref<16x?x2xf32>) -> tensor<64x64xf32> {
  %t = kernel.tile %mem : !shared to tensor<64x48xbf16>
  %f = kernel.tile %mem, %plane, %plane : !shared, !shared, !shared to tensor<64x64xf32>
  %s = kernel.load %sink rows(%row, %head, %first, %group) valid(%n) otherwise %x
      : memref<16xf32> to tensor<64x1xf32>
  kernel.store %t to %out rows(%row, %head, %first, %group) valid(%n)
      : tensor<64x48xbf16> to memref<?x16x40xbf16>
  %u = kernel.load %out rows(%row, %head, %first, %group) valid(%n) otherwise %z
      : memref<?x16x40xbf16> to tensor<64x48xbf16>
  kernel.store %u to %out rows(%head, %row, %first, %group) valid(%n)
      : tensor<64x48xbf16> to memref<?x16x40xbf16>
  kernel.store %s, %s to %stats rows(%row, %head, %first, %group) valid(%n)
      : tensor<64x1xf32>, tensor<64x1xf32> to memref<16x?x2xf32>
  kernel.store %s to %lse rows(%row, %head, %first, %group) valid(%n)
      : tensor<64x1xf32> to memref<16x?xf32>
  return %f : tensor<64x64xf32>
}

// CHECK-LABEL: func.func @fragments
// CHECK: %[[S:.*]] = kernel.contract %{{.*}}, %{{.*}}, %{{.*}} k(48) : memref<1x64x64xbf16, {{.*}}>, memref<1x64x64xbf16, {{.*}}> into vector<1x8x2x2xf32>
// CHECK: %[[P:.*]] = kernel.start %{{.*}}, %{{.*}}, %[[S]] k(64) {b_t} : vector<1x8x2x2xf16>, memref<2x64x64xf16, {{.*}}> into vector<1x8x2x2xf32>
// CHECK: kernel.wait %[[P]] younger 1 : <vector<1x8x2x2xf32>>
// CHECK: kernel.load {{.*}} : memref<16x?xf32> to vector<1x1x2x1xf32>
// CHECK: kernel.load {{.*}} : memref<16x?x2xf32> to vector<1x8x1x2xf32>, vector<1x8x1x2xf32>
// CHECK: kernel.store {{.*}} : vector<1x8x2x2xf32> to memref<?x16x64xf32, strided<[1024, 64, 1], offset: ?>>
func.func @fragments(%q: !shared, %k: !shared, %v: !values, %zero: vector<1x8x2x2xf32>,
                     %p: vector<1x8x2x2xf16>, %lse: memref<16x?xf32>,
                     %both: memref<16x?x2xf32>,
                     %out: memref<?x16x64xf32, strided<[1024, 64, 1], offset: ?>>,
                     %i: index, %x: f32) -> (vector<1x1x2x1xf32>, vector<1x8x1x2xf32>) {
  %s = kernel.contract %q, %k, %zero k(48) : !shared, !shared into vector<1x8x2x2xf32>
  %pending = kernel.start %p, %v, %s k(64) {b_t} : vector<1x8x2x2xf16>, !values into vector<1x8x2x2xf32>
  %o = kernel.wait %pending younger 1 : <vector<1x8x2x2xf32>>
  %l = kernel.load %lse rows(%i, %i, %i, %i) valid(%i) otherwise %x
      : memref<16x?xf32> to vector<1x1x2x1xf32>
  %c:2 = kernel.load %both rows(%i, %i, %i, %i) valid(%i) otherwise %x
      : memref<16x?x2xf32> to vector<1x8x1x2xf32>, vector<1x8x1x2xf32>
  kernel.store %o to %out rows(%i, %i, %i, %i) valid(%i)
      : vector<1x8x2x2xf32> to memref<?x16x64xf32, strided<[1024, 64, 1], offset: ?>>
  return %l, %c#1 : vector<1x1x2x1xf32>, vector<1x8x1x2xf32>
}

// Two allocations stay two, and so do two rings.
// CHECK-LABEL: func.func @memory
// CHECK: %[[A:.*]] = kernel.alloc : memref<1x64x64xbf16, #gpu.address_space<workgroup>>
// CHECK: %[[B:.*]] = kernel.alloc : memref<1x64x64xbf16, #gpu.address_space<workgroup>>
// CHECK: %[[R:.*]] = kernel.ring stages(3) : <memref<1x64x64xbf16, {{.*}}>, memref<2x64x64xf16, {{.*}}>>
// CHECK: kernel.ring stages(3) slack(1) lag(1) : <memref
// CHECK: %[[N:.*]] = kernel.alloc : memref<1xi64, #gpu.address_space<workgroup>>
// CHECK: kernel.take %{{.*}}[%{{.*}}] to %[[N]] : memref<?xi64>, memref<1xi64, #gpu.address_space<workgroup>>
// CHECK: kernel.copy %{{.*}} rows(%{{.*}}, {{.*}}) valid(%{{.*}}) to %[[A]] : memref<?x8x40xbf16>, memref<1x64x64xbf16, {{.*}}>
// CHECK: kernel.copy %{{.*}} rows({{.*}}) valid({{.*}}) to %[[A]], %[[B]], %[[A]] : memref<?x8x40xf32>, memref
// CHECK: kernel.copy %{{.*}} rows({{.*}}) valid({{.*}}) pages(%{{.*}} : memref<?x?xi32>) to %[[A]] : memref<?x16x8x40xbf16>, memref
// CHECK: kernel.copy %{{.*}} rows({{.*}}) valid({{.*}}) pages(%{{.*}} : memref<?x?xi32>) to %[[A]] {one_page} : memref<?x16x8x40xbf16>, memref
// CHECK: kernel.copy %{{.*}} rows({{.*}}) valid({{.*}}) pages(%{{.*}} : memref<?x?xi32>) to %[[A]] : memref<?x16x8x40xi8>, memref
// CHECK: kernel.load %{{.*}} rows({{.*}}) valid({{.*}}) otherwise %{{.*}} pages(%{{.*}} : memref<?x?xi32>) {one_page} : memref<?x16x8x1xf32> to tensor<1x64xf32>
// CHECK: %[[S:.*]]:2 = kernel.ring.acquire %[[R]][%[[I:.*]]] : <memref
// CHECK: kernel.copy %{{.*}} rows({{.*}}) valid({{.*}}) to %[[S]]#0
// CHECK: kernel.ring.commit %[[R]] : <memref
// CHECK: kernel.ring.wait %[[R]][%[[I]]] younger 2 : <memref
// CHECK: kernel.ring.wait %[[R]][%[[I]]] younger 1 whole : <memref
// CHECK: kernel.ring.slot %[[R]][%[[I]]] : <memref
// CHECK: kernel.ring.release %[[R]][%[[I]]] : <memref
// CHECK: kernel.ring.restart %[[R]] : !kernel.ring<memref
func.func @memory(%k: memref<?x8x40xbf16>, %f: memref<?x8x40xf32>,
                  %p: memref<?x16x8x40xbf16>, %table: memref<?x?xi32>, %counters: memref<?xi64>,
                  %bytes: memref<?x16x8x40xi8>, %scales: memref<?x16x8x1xf32>, %x: f32, %n: index, %i: i32)
    -> tensor<1x64xf32> {
  %a = kernel.alloc : !shared
  %b = kernel.alloc : !shared
  %ring = kernel.ring stages(3) : !kernel.ring<!shared, !values>
  %other = kernel.ring stages(3) slack(1) lag(1) : !kernel.ring<!shared, !values>
  %number = kernel.alloc : memref<1xi64, #gpu.address_space<workgroup>>
  kernel.take %counters[%n] to %number : memref<?xi64>, memref<1xi64, #gpu.address_space<workgroup>>
  kernel.copy %k rows(%n, %n, %n, %n) valid(%n) to %a : memref<?x8x40xbf16>, !shared
  kernel.copy %f rows(%n, %n, %n, %n) valid(%n) to %a, %b, %a
      : memref<?x8x40xf32>, !shared, !shared, !shared
  kernel.copy %p rows(%n, %n, %n, %n) valid(%n) pages(%table : memref<?x?xi32>) to %a
      : memref<?x16x8x40xbf16>, !shared
  kernel.copy %p rows(%n, %n, %n, %n) valid(%n) pages(%table : memref<?x?xi32>) to %a {one_page}
      : memref<?x16x8x40xbf16>, !shared
  kernel.copy %bytes rows(%n, %n, %n, %n) valid(%n) pages(%table : memref<?x?xi32>) to %a
      : memref<?x16x8x40xi8>, !shared
  %scale = kernel.load %scales rows(%n, %n, %n, %n) valid(%n) otherwise %x pages(%table : memref<?x?xi32>)
      {one_page} : memref<?x16x8x1xf32> to tensor<1x64xf32>
  %s0, %s1 = kernel.ring.acquire %ring[%i] : !kernel.ring<!shared, !values>
  kernel.copy %k rows(%n, %n, %n, %n) valid(%n) to %s0 : memref<?x8x40xbf16>, !shared
  kernel.ring.commit %ring : !kernel.ring<!shared, !values>
  %t0, %t1 = kernel.ring.wait %ring[%i] younger 2 : !kernel.ring<!shared, !values>
  %w0, %w1 = kernel.ring.wait %ring[%i] younger 1 whole : !kernel.ring<!shared, !values>
  %u0, %u1 = kernel.ring.slot %ring[%i] : !kernel.ring<!shared, !values>
  kernel.ring.release %ring[%i] : !kernel.ring<!shared, !values>
  kernel.ring.restart %ring : !kernel.ring<!shared, !values>
  kernel.ring.commit %other : !kernel.ring<!shared, !values>
  return %scale : tensor<1x64xf32>
}

// What is issued stays, though nothing reads it.
// CHECK-LABEL: func.func @wgmma
// CHECK-SAME: %[[P:.*]]: i32, %[[Q:.*]]: i64, %[[K:.*]]: i64
// CHECK: %[[S:.*]] = kernel.wgmma bf16 a(%[[Q]]) b(%[[K]]) : i64 into !llvm.struct<(f32, f32, f32, f32)>
// CHECK: %[[T:.*]] = kernel.wgmma bf16 a(%[[Q]]) b(%[[K]]) acc(%[[S]]) {a_t, b_t} : i64 into !llvm.struct<(f32, f32, f32, f32)>
// CHECK: kernel.wgmma f16 a(%[[P]], %[[P]], %[[P]], %[[P]]) b(%[[K]]) : i32, i32, i32, i32 into !llvm.struct<(f32, f32, f32, f32)>
// CHECK: kernel.wgmma_wait %[[T]] younger 1 : !llvm.struct<(f32, f32, f32, f32)>
func.func @wgmma(%p: i32, %q: i64, %k: i64) -> !acc {
  %s = kernel.wgmma bf16 a(%q) b(%k) : i64 into !acc
  %t = kernel.wgmma bf16 a(%q) b(%k) acc(%s) {a_t, b_t} : i64 into !acc
  %u = kernel.wgmma f16 a(%p, %p, %p, %p) b(%k) : i32, i32, i32, i32 into !acc
  %r = kernel.wgmma_wait %t younger 1 : !acc
  return %r : !acc
}

// CHECK-LABEL: func.func @maps
// CHECK: %[[MAP:.*]] = kernel.tensor_map %{{.*}} rows(64) to %{{.*}}[%{{.*}}] : memref<?x4x96xf16>, memref<?x128xi8>
// CHECK: kernel.copy_by_map %[[MAP]] row(%{{.*}}) head(%{{.*}}) to %{{.*}} : memref<2x64x64xf16, #gpu.address_space<workgroup>>
func.func @maps(%x: memref<?x4x96xf16>, %maps: memref<?x128xi8>, %slot: !values, %i: index, %row: index) {
  %map = kernel.tensor_map %x rows(64) to %maps[%i] : memref<?x4x96xf16>, memref<?x128xi8>
  kernel.copy_by_map %map row(%row) head(%i) to %slot : !values
  return
}

// CHECK-LABEL: func.func @publish_map
// CHECK: kernel.publish_map %{{.*}} to %{{.*}} : !llvm.ptr<3>, !llvm.ptr<1>
func.func @publish_map(%shared: !llvm.ptr<3>, %global: !llvm.ptr<1>) {
  kernel.publish_map %shared to %global : !llvm.ptr<3>, !llvm.ptr<1>
  return
}

// CHECK-LABEL: gpu.func @roles
// CHECK: kernel.roles consumers(8) registers(232) {
// CHECK-NEXT: %[[S:.*]] = kernel.ring.wait
// CHECK-NEXT: kernel.ring.release
// CHECK-NEXT: } producers(4) registers(32) {
// CHECK-NEXT: %[[S:.*]] = kernel.ring.acquire
// CHECK-NEXT: kernel.put %{{.*}} to %[[S]] : memref<1xi32, #gpu.address_space<workgroup>>
// CHECK-NEXT: kernel.ring.commit
// CHECK-NEXT: }
// CHECK: kernel.roles consumers(3) {
// CHECK-NEXT: gpu.barrier
// CHECK-NEXT: } producers(1) {
// CHECK-NEXT: }
!number = memref<1xi32, #gpu.address_space<workgroup>>
gpu.module @kernels {
  gpu.func @roles(%i: i32) kernel {
    %ring = kernel.ring stages(1) : !kernel.ring<!number>
    kernel.roles consumers(8) registers(232) {
      %s = kernel.ring.wait %ring[%i] younger 0 : !kernel.ring<!number>
      kernel.ring.release %ring[%i] : !kernel.ring<!number>
    } producers(4) registers(32) {
      %s = kernel.ring.acquire %ring[%i] : !kernel.ring<!number>
      kernel.put %i to %s : !number
      kernel.ring.commit %ring : !kernel.ring<!number>
    }
    kernel.roles consumers(3) {
      gpu.barrier
    } producers(1) {
    }
    gpu.return
  }
}

// CHECK-LABEL: func.func @sums
// CHECK: kernel.add_in_order %{{.*}} to %{{.*}}[%{{.*}}] of %{{.*}} turn(%{{.*}}, %{{.*}}, %{{.*}}) : tensor<64x64xf32>, memref<?xf32>, memref<?xi32>
// CHECK: kernel.add_in_order %{{.*}} : vector<1x8x2x2xf32>, memref<?xf32>, memref<?xi32>
// CHECK: kernel.stage %{{.*}} : vector<1x8x2x2xbf16> to memref<1x64x64xbf16, #gpu.address_space<workgroup>>
func.func @sums(%tile: tensor<64x64xf32>, %fragment: vector<1x8x2x2xf32>, %factor: vector<1x8x2x2xbf16>,
                %sums: memref<?xf32>, %counters: memref<?xi32>, %slot: index, %turn: i32, %is: i1)
    -> (tensor<64x64xf32>, vector<1x8x2x2xf32>, !shared) {
  %0 = kernel.add_in_order %tile to %sums[%slot] of %counters turn(%turn, %is, %is)
      : tensor<64x64xf32>, memref<?xf32>, memref<?xi32>
  %1 = kernel.add_in_order %fragment to %sums[%slot] of %counters turn(%turn, %is, %is)
      : vector<1x8x2x2xf32>, memref<?xf32>, memref<?xi32>
  %2 = kernel.stage %factor : vector<1x8x2x2xbf16> to !shared
  return %0, %1, %2 : tensor<64x64xf32>, vector<1x8x2x2xf32>, !shared
}
