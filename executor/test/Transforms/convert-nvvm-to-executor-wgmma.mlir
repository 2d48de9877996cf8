// RUN: varlen-opt %s --convert-nvvm-to-executor --split-input-file | FileCheck %s

!acc = !llvm.struct<(f32, f32, f32, f32)>

gpu.module @m {
  // An accumulator is a handle from where it is made to where its registers are
  // read, through a loop.

  // CHECK-LABEL: @varlen_sim.m.loop(
  // CHECK-SAME: %[[A:.*]]: i64, %[[B:.*]]: i64, %[[COND:.*]]: i1) -> f32
  llvm.func @loop(%a: i64, %b: i64, %cond: i1) -> f32 {
    // CHECK: %[[COUNT:.*]] = llvm.mlir.constant(4 : i32)
    // CHECK: %[[NEW:.*]] = llvm.call @varlen_sim_acc_new(%[[COUNT]], %{{.*}}) : (i32, i32) -> !llvm.ptr
    %zero = llvm.mlir.zero : !acc
    // CHECK: llvm.br ^[[BODY:.*]](%[[NEW]] : !llvm.ptr)
    llvm.br ^body(%zero : !acc)
  // CHECK: ^[[BODY]](%[[ACC:.*]]: !llvm.ptr):
  ^body(%acc: !acc):
    // CHECK: llvm.call @varlen_sim_wgmma_fence(
    nvvm.wgmma.fence.aligned
    // Scale 1; bf16, B transposed, in place: 1 + 8 + 64.
    // CHECK: %[[N:.*]] = llvm.mlir.constant(8 : i32)
    // CHECK: %[[SCALE:.*]] = llvm.mlir.constant(1 : i32)
    // CHECK: %[[FLAGS:.*]] = llvm.mlir.constant(73 : i32)
    // CHECK: %[[NEXT:.*]] = llvm.call @varlen_sim_wgmma(%[[ACC]], %[[A]], %[[B]], %[[N]], %[[SCALE]], %[[FLAGS]], %{{.*}})
    %next = nvvm.wgmma.mma_async %a, %b, %acc, <m = 64, n = 8, k = 16>, D[<f32>, <one>], A[<bf16>, #nvvm.wgmma_scale_in<one>, <row>], B[<bf16>, #nvvm.wgmma_scale_in<one>, <row>] : !acc -> !acc
    // CHECK: llvm.call @varlen_sim_wgmma_commit(
    nvvm.wgmma.commit.group.sync.aligned
    // CHECK: %[[PENDING:.*]] = llvm.mlir.constant(0 : i32)
    // CHECK: llvm.call @varlen_sim_wgmma_wait_group(%[[PENDING]],
    nvvm.wgmma.wait.group.sync.aligned 0
    // CHECK: llvm.cond_br %[[COND]], ^[[BODY]](%[[NEXT]] : !llvm.ptr), ^[[END:.*]](%[[NEXT]] : !llvm.ptr)
    llvm.cond_br %cond, ^body(%next : !acc), ^end(%next : !acc)
  // CHECK: ^[[END]](%[[LAST:.*]]: !llvm.ptr):
  ^end(%last: !acc):
    // CHECK: %[[INDEX:.*]] = llvm.mlir.constant(2 : i32)
    // CHECK: llvm.call @varlen_sim_acc_get(%[[LAST]], %[[INDEX]], %{{.*}}) : (!llvm.ptr, i32, i32) -> f32
    %x = llvm.extractvalue %last[2] : !acc
    llvm.return %x : f32
  }

  // Registers are written where their values are known, not where the struct is
  // put together.

  // CHECK-LABEL: @varlen_sim.m.written(
  // CHECK-SAME: %[[A:.*]]: i64, %[[X:.*]]: f32) -> f32
  // CHECK: %[[NEW:.*]] = llvm.call @varlen_sim_acc_new
  // CHECK: %[[SET0:.*]] = llvm.call @varlen_sim_acc_set(%[[NEW]], %{{.*}}, %[[X]], %[[IN_PLACE:.*]], %{{.*}})
  // CHECK: llvm.call @varlen_sim_wgmma_fence
  // CHECK: %[[LATE:.*]] = llvm.fadd
  // CHECK: %[[SET1:.*]] = llvm.call @varlen_sim_acc_set(%[[SET0]], %{{.*}}, %[[LATE]],
  // CHECK: llvm.call @varlen_sim_wgmma(%[[SET1]],
  llvm.func @written(%a: i64, %x: f32) -> f32 {
    nvvm.wgmma.fence.aligned
    %late = llvm.fadd %x, %x : f32
    %0 = llvm.mlir.undef : !acc
    %1 = llvm.insertvalue %x, %0[0] : !acc
    %2 = llvm.insertvalue %late, %1[1] : !acc
    %3 = nvvm.wgmma.mma_async %a, %a, %2, <m = 64, n = 8, k = 16>, D[<f32>, <one>], A[<f16>, #nvvm.wgmma_scale_in<neg>, <row>], B[<f16>, #nvvm.wgmma_scale_in<one>, <col>] : !acc -> !acc
    %4 = llvm.extractvalue %3[0] : !acc
    llvm.return %4 : f32
  }
}

// -----

!acc = !llvm.struct<(f32, f32, f32, f32)>

gpu.module @m {
  // A in registers, and a wait that accumulators pass through. bf16, B
  // transposed, in place: 1 + 8 + 64.

  // CHECK-LABEL: @varlen_sim.m.registers(
  // CHECK-SAME: %[[A:.*]]: i32, %[[B:.*]]: i64) -> f32
  llvm.func @registers(%a: i32, %b: i64) -> f32 {
    // CHECK: %[[NEW:.*]] = llvm.call @varlen_sim_acc_new
    %0 = llvm.mlir.zero : !acc
    // CHECK: %[[N:.*]] = llvm.mlir.constant(8 : i32)
    // CHECK: %[[SCALE:.*]] = llvm.mlir.constant(1 : i32)
    // CHECK: %[[FLAGS:.*]] = llvm.mlir.constant(73 : i32)
    // CHECK: %[[D:.*]] = llvm.call @varlen_sim_wgmma_rs(%[[NEW]], %[[A]], %[[A]], %[[A]], %[[A]], %[[B]], %[[N]], %[[SCALE]], %[[FLAGS]],
    %1 = kernel.wgmma bf16 a(%a, %a, %a, %a) b(%b) acc(%0) {b_t} : i32, i32, i32, i32 into !acc
    // CHECK: %[[PENDING:.*]] = llvm.mlir.constant(1 : i32)
    // CHECK: llvm.call @varlen_sim_wgmma_wait_group(%[[PENDING]],
    %2 = kernel.wgmma_wait %1 younger 1 : !acc
    // CHECK: llvm.call @varlen_sim_acc_get(%[[D]],
    %3 = llvm.extractvalue %2[3] : !acc
    llvm.return %3 : f32
  }

  // A sum that starts with zero has an accumulator from in front of the fence
  // on, and the scale 0. f16, A and B transposed, in place: 4 + 8 + 64.

  // CHECK-LABEL: @varlen_sim.m.zero(
  // CHECK-SAME: %[[A:.*]]: i64) -> f32
  // CHECK: %[[NEW:.*]] = llvm.call @varlen_sim_acc_new
  // CHECK: llvm.call @varlen_sim_wgmma_fence
  // CHECK: %[[N:.*]] = llvm.mlir.constant(8 : i32)
  // CHECK: %[[SCALE:.*]] = llvm.mlir.constant(0 : i32)
  // CHECK: %[[FLAGS:.*]] = llvm.mlir.constant(76 : i32)
  // CHECK: llvm.call @varlen_sim_wgmma(%[[NEW]], %[[A]], %[[A]], %[[N]], %[[SCALE]], %[[FLAGS]],
  llvm.func @zero(%a: i64) -> f32 {
    nvvm.wgmma.fence.aligned
    %0 = kernel.wgmma f16 a(%a) b(%a) {a_t, b_t} : i64 into !acc
    %1 = llvm.extractvalue %0[0] : !acc
    llvm.return %1 : f32
  }
}
