// RUN: varlen-opt %s --convert-nvvm-to-executor --split-input-file | FileCheck %s

// A kernel becomes a function of the host, with an entry that unpacks its
// arguments and a table that the runtime is told.

// CHECK-LABEL: module attributes {gpu.container_module}
module attributes {gpu.container_module} {
  gpu.module @m [#nvvm.target<chip = "sm_80">] {
    llvm.mlir.global internal @table(dense<[1.0, 2.0]> : tensor<2xf32>) {addr_space = 1 : i32} : !llvm.array<2 x f32>
    llvm.mlir.global internal @tile() {addr_space = 3 : i32, alignment = 128 : i64} : !llvm.array<24 x i8>
    llvm.mlir.global internal @row() {addr_space = 3 : i32} : !llvm.array<8 x f32>
    llvm.mlir.global external @dynamic() {addr_space = 3 : i32, alignment = 1024 : i64} : !llvm.array<0 x i8>

    // CHECK-LABEL: llvm.func internal @varlen_sim.m.twice(
    // A frame that a fiber's stack has no room for is known when the code is generated.
    // CHECK-SAME: %[[X:.*]]: f32) -> f32
    // CHECK-SAME: passthrough = {{\[}}["warn-stack-size", "720896"], ["probe-stack", "inline-asm"]]
    llvm.func @twice(%x: f32) -> f32 {
      %y = llvm.fadd %x, %x : f32
      llvm.return %y : f32
    }

    // CHECK-LABEL: llvm.func internal @varlen_sim.m.k(
    // CHECK-SAME: %{{.*}}: !llvm.ptr<1>, %{{.*}}: f32, %{{.*}}: !llvm.ptr)
    // CHECK-DAG: %[[TILE:.*]] = llvm.mlir.constant(0 : i32) : i32
    // CHECK-DAG: llvm.call @varlen_sim_smem(%[[TILE]]) {memory_effects = {{.*}}, no_unwind, will_return} : (i32) -> !llvm.ptr
    // CHECK-DAG: %[[ROW:.*]] = llvm.mlir.constant(32 : i32) : i32
    // CHECK-DAG: llvm.call @varlen_sim_smem(%[[ROW]])
    // CHECK-DAG: %[[DYNAMIC:.*]] = llvm.mlir.constant(1024 : i32) : i32
    // CHECK-DAG: llvm.call @varlen_sim_smem(%[[DYNAMIC]])
    // CHECK: llvm.call @varlen_sim.m.twice
    // CHECK: llvm.mlir.addressof @varlen_sim.m.table
    // CHECK: llvm.return
    llvm.func @k(%out: !llvm.ptr<1>, %x: f32, %map: !llvm.ptr {llvm.byval = !llvm.array<128 x i8>, llvm.align = 64 : i64, nvvm.grid_constant}) attributes {gpu.kernel, nvvm.kernel, nvvm.reqntid = array<i32: 128>, nvvm.maxnreg = 168 : i32, nvvm.cluster_dim = array<i32: 2>} {
      %tile = llvm.mlir.addressof @tile : !llvm.ptr<3>
      %row = llvm.mlir.addressof @row : !llvm.ptr<3>
      %dynamic = llvm.mlir.addressof @dynamic : !llvm.ptr<3>
      llvm.store %x, %tile : f32, !llvm.ptr<3>
      llvm.store %x, %row : f32, !llvm.ptr<3>
      llvm.store %x, %dynamic : f32, !llvm.ptr<3>
      %y = llvm.call @twice(%x) : (f32) -> f32
      %table = llvm.mlir.addressof @table : !llvm.ptr<1>
      %z = llvm.load %table : !llvm.ptr<1> -> f32
      llvm.return
    }
  }

  // CHECK-LABEL: llvm.func internal @varlen_sim.m.k.entry(
  // CHECK-SAME: %[[ARGS:.*]]: !llvm.ptr)
  // CHECK: %[[SLOT0:.*]] = llvm.getelementptr %[[ARGS]][0]
  // CHECK: %[[P0:.*]] = llvm.load %[[SLOT0]]
  // CHECK: %[[OUT:.*]] = llvm.load %[[P0]] : !llvm.ptr -> !llvm.ptr<1>
  // CHECK: llvm.load %{{.*}} : !llvm.ptr -> f32
  // CHECK: %[[COPY:.*]] = llvm.alloca %{{.*}} x !llvm.array<128 x i8> {alignment = 64 : i64}
  // CHECK: llvm.store %{{.*}}, %[[COPY]]
  // CHECK: llvm.call @varlen_sim.m.k(%[[OUT]], %{{.*}}, %[[COPY]])

  // CHECK: gpu.binary @m [#gpu.object<#nvvm.target<chip = "sm_80">, bin = "varlen-executor:m.[[HASH:[0-9a-f]+]]">]
  // CHECK: llvm.mlir.global internal constant @varlen_sim.m.[[HASH]].sites("{{.*}}convert-nvvm-to-executor.mlir:{{[0-9]+}}:7 (llvm.store)\00

  // 1024 bytes before the dynamic array, a block of 128 x 1 x 1, no limit of
  // threads, clusters of 2, 168 registers.
  // CHECK-LABEL: @varlen_sim.m.{{[0-9a-f]+}}.kernels
  // CHECK: %[[BYTES:.*]] = llvm.mlir.constant(1024 : i32)
  // CHECK: insertvalue %[[BYTES]], %{{.*}}[0, 2]
  // CHECK: %[[X:.*]] = llvm.mlir.constant(128 : i32)
  // CHECK: insertvalue %[[X]], %{{.*}}[0, 3, 0]
  // CHECK: %[[Y:.*]] = llvm.mlir.constant(1 : i32)
  // CHECK: insertvalue %[[Y]], %{{.*}}[0, 3, 1]
  // CHECK: %[[LIMIT:.*]] = llvm.mlir.constant(0 : i32)
  // CHECK: insertvalue %[[LIMIT]], %{{.*}}[0, 4]
  // CHECK: %[[CLUSTER:.*]] = llvm.mlir.constant(2 : i32)
  // CHECK: insertvalue %[[CLUSTER]], %{{.*}}[0, 5, 0]
  // CHECK: %[[REGISTERS:.*]] = llvm.mlir.constant(168 : i32)
  // CHECK: insertvalue %[[REGISTERS]], %{{.*}}[0, 6]
  // CHECK: %[[WAITS:.*]] = llvm.mlir.constant(0 : i32)
  // CHECK: insertvalue %[[WAITS]], %{{.*}}[0, 7]

  // CHECK-LABEL: @varlen_sim.m.{{[0-9a-f]+}}.blocks
  // CHECK: llvm.mlir.addressof @varlen_sim.m.table
  // CHECK: llvm.mlir.constant(8 : i64)

  // CHECK: llvm.call @varlen_gpu_executor_register
  // CHECK: llvm.mlir.global_ctors ctors = [@varlen_sim.m.{{[0-9a-f]+}}.register]
}

// -----

// Kernels do not pay for the shared memory of others.

module attributes {gpu.container_module} {
  gpu.module @m {
    llvm.mlir.global internal @common() {addr_space = 3 : i32} : !llvm.array<64 x i8>
    llvm.mlir.global internal @big() {addr_space = 3 : i32} : !llvm.array<4096 x i8>
    llvm.mlir.global internal @small() {addr_space = 3 : i32} : !llvm.array<16 x i8>
    // CHECK-LABEL: @varlen_sim.m.a(
    // CHECK: llvm.mlir.constant(0 : i32)
    // CHECK: llvm.mlir.constant(64 : i32)
    llvm.func @a(%x: f32) attributes {nvvm.kernel} {
      %0 = llvm.mlir.addressof @common : !llvm.ptr<3>
      %1 = llvm.mlir.addressof @big : !llvm.ptr<3>
      llvm.return
    }
    // CHECK-LABEL: @varlen_sim.m.b(
    // CHECK: llvm.mlir.constant(0 : i32)
    // CHECK: llvm.mlir.constant(64 : i32)
    llvm.func @b(%x: f32) attributes {nvvm.kernel} {
      %0 = llvm.mlir.addressof @common : !llvm.ptr<3>
      %1 = llvm.mlir.addressof @small : !llvm.ptr<3>
      llvm.return
    }
  }
  // CHECK-LABEL: @varlen_sim.m.{{[0-9a-f]+}}.kernels
  // CHECK: llvm.mlir.constant(4160 : i32)
  // CHECK: llvm.mlir.constant(80 : i32)
}

// -----

// The constant says that each kernel waits for those before it.

module attributes {gpu.container_module} {
  gpu.module @m {
    llvm.mlir.global external constant @varlen_waits_for_grids(1 : i8) {addr_space = 1 : i32} : i8
    llvm.func @a() attributes {nvvm.kernel} {
      nvvm.griddepcontrol wait
      llvm.return
    }
  }
  // CHECK-NOT: varlen_waits_for_grids
  // CHECK-LABEL: @varlen_sim.m.{{[0-9a-f]+}}.kernels
  // CHECK: %[[WAITS:.*]] = llvm.mlir.constant(1 : i32)
  // CHECK: insertvalue %[[WAITS]], %{{.*}}[0, 7]
  // CHECK-NOT: varlen_waits_for_grids
}
