// RUN: varlen-opt %s --convert-nvvm-to-executor | FileCheck %s

// What is named by text: special registers, intrinsics, libdevice.

gpu.module @m {
  llvm.func @__nv_exp2f(f32) -> f32
  llvm.func @__nv_atan2(f64, f64) -> f64

  // CHECK-LABEL: @varlen_sim.m.registers(
  llvm.func @registers() -> i32 {
    // CHECK: %[[TID_Y:.*]] = llvm.mlir.constant(1 : i32)
    // CHECK: llvm.call @varlen_sim_sreg(%[[TID_Y]]) {memory_effects
    %0 = nvvm.read.ptx.sreg.tid.y : i32
    // CHECK: %[[NCTAID_X:.*]] = llvm.mlir.constant(9 : i32)
    // CHECK: llvm.call @varlen_sim_sreg(%[[NCTAID_X]])
    %1 = nvvm.read.ptx.sreg.nctaid.x : i32
    // CHECK: %[[RANK:.*]] = llvm.mlir.constant(24 : i32)
    // CHECK: llvm.call @varlen_sim_sreg(%[[RANK]])
    %2 = nvvm.read.ptx.sreg.cluster.ctarank : i32
    // Time is no constant.
    // CHECK: %[[CLOCK:.*]] = llvm.mlir.constant(39 : i32)
    // CHECK: llvm.call @varlen_sim_sreg(%[[CLOCK]]) : (i32) -> i32
    // CHECK: llvm.zext
    %3 = nvvm.read.ptx.sreg.clock64 : i64
    // CHECK: %[[LANE:.*]] = llvm.mlir.constant(26 : i32)
    // CHECK: llvm.call @varlen_sim_sreg(%[[LANE]])
    %4 = llvm.call_intrinsic "llvm.nvvm.read.ptx.sreg.laneid"() : () -> i32
    llvm.return %4 : i32
  }

  // CHECK-LABEL: @varlen_sim.m.arithmetic(
  // CHECK-SAME: %[[X:.*]]: f32, %[[Y:.*]]: f32, %[[N:.*]]: i32)
  llvm.func @arithmetic(%x: f32, %y: f32, %n: i32) {
    // CHECK: llvm.call @varlen_sim_ex2(%[[X]])
    %0 = llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f32"(%x) : (f32) -> f32
    // CHECK: llvm.call @varlen_sim_lg2(%[[X]])
    %1 = llvm.call_intrinsic "llvm.nvvm.lg2.approx.f"(%x) : (f32) -> f32
    // CHECK: llvm.call @varlen_sim_rcp(%[[X]])
    %2 = nvvm.rcp.approx.ftz.f %x : f32
    // CHECK: llvm.intr.fma(%[[X]], %[[Y]], %[[X]])
    %3 = llvm.call_intrinsic "llvm.nvvm.fma.rn.f"(%x, %y, %x) : (f32, f32, f32) -> f32
    // CHECK: llvm.intr.maximum(%[[X]], %[[Y]])
    %4 = llvm.call_intrinsic "llvm.nvvm.fmax.nan.f"(%x, %y) : (f32, f32) -> f32
    // CHECK: llvm.intr.maxnum(%[[X]], %[[Y]])
    %5 = llvm.call_intrinsic "llvm.nvvm.fmax.f"(%x, %y) : (f32, f32) -> f32
    // CHECK: %[[PAIR:.*]] = llvm.call @varlen_sim_cvt_bf16x2(%[[X]], %[[Y]])
    // CHECK: llvm.bitcast %[[PAIR]] : i32 to vector<2xbf16>
    %6 = nvvm.convert.f32x2.to.bf16x2 %x, %y {rnd = #nvvm.fp_rnd_mode<rn>} : vector<2xbf16>
    // CHECK: llvm.call @varlen_sim_cvt_f16x2(%[[X]], %[[Y]])
    %7 = llvm.call_intrinsic "llvm.nvvm.ff2f16x2.rn"(%x, %y) : (f32, f32) -> vector<2xf16>
    // CHECK: llvm.call @varlen_sim_cvt_tf32(%[[X]])
    %8 = nvvm.convert.float.to.tf32 %x {rnd = #nvvm.fp_rnd_mode<rna>}
    // CHECK: llvm.call @varlen_sim_prmt(%[[N]], %[[N]], %[[N]])
    %9 = nvvm.prmt <default> %n, %n, %n : i32
    // CHECK: llvm.call @exp2f(%[[X]])
    %10 = llvm.call @__nv_exp2f(%x) : (f32) -> f32
    %d = llvm.fpext %x : f32 to f64
    // CHECK: llvm.call @atan2(%{{.*}}, %{{.*}}) {{.*}} : (f64, f64) -> f64
    %11 = llvm.call @__nv_atan2(%d, %d) : (f64, f64) -> f64
    // CHECK: %[[ZERO:.*]] = llvm.mlir.constant(0.0
    // CHECK: %[[WORD:.*]] = llvm.call @varlen_sim_cvt_bf16x2(%[[ZERO]], %[[X]])
    // CHECK: %[[HALF:.*]] = llvm.trunc %[[WORD]] : i32 to i16
    // CHECK: llvm.bitcast %[[HALF]] : i16 to bf16
    %12 = llvm.fptrunc %x : f32 to bf16
    llvm.return
  }
}
