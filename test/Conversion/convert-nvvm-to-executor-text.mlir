// RUN: varlen-opt %s --convert-nvvm-to-executor | FileCheck %s

// What is named by text: special registers, PTX, intrinsics, libdevice.

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
  // CHECK-SAME: %[[X:.*]]: f32, %[[Y:.*]]: f32, %[[N:.*]]: i32) {
  llvm.func @arithmetic(%x: f32, %y: f32, %n: i32) {
    // CHECK: llvm.call @varlen_sim_ex2(%[[X]])
    %0 = nvvm.inline_ptx "ex2.approx.ftz.f32 $0, $1;" ro(%x : f32) -> f32
    // CHECK: llvm.call @varlen_sim_lg2(%[[X]])
    %1 = llvm.inline_asm "lg2.approx.f32 $0, $1;", "=f,f" %x : (f32) -> f32
    // CHECK: llvm.call @varlen_sim_rcp(%[[X]])
    %2 = nvvm.rcp.approx.ftz.f %x : f32
    // CHECK: llvm.call @varlen_sim_ex2(%[[X]])
    %3 = llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f32"(%x) : (f32) -> f32
    // CHECK: llvm.intr.maximum(%[[X]], %[[Y]])
    %4 = llvm.inline_asm "max.NaN.f32 $0, $1, $2;", "=f,f,f" %x, %y : (f32, f32) -> f32
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

  // CHECK-LABEL: @varlen_sim.m.memory(
  // CHECK-SAME: %[[G:.*]]: !llvm.ptr<1>, %[[S:.*]]: !llvm.ptr<3>, %[[X:.*]]: f32, %[[N:.*]]: i32) {
  llvm.func @memory(%g: !llvm.ptr<1>, %s: !llvm.ptr<3>, %x: f32, %n: i32) {
    // CHECK: llvm.call @varlen_sim_atomic(
    nvvm.inline_ptx "red.global.add.f32 [$0], $1;" ro(%g, %x : !llvm.ptr<1>, f32)
    // CHECK: %[[OFFSET:.*]] = llvm.getelementptr %[[G]][16]
    // CHECK: llvm.call @varlen_sim_load_global
    // CHECK: llvm.call @varlen_sim_poll
    // CHECK: llvm.load volatile
    %0 = llvm.inline_asm has_side_effects "ld.acquire.gpu.global.b32 $0, [$1+16];", "=r,l" %g : (!llvm.ptr<1>) -> i32
    // CHECK: llvm.call @varlen_sim_store_global
    // CHECK: llvm.store volatile %[[N]]
    llvm.inline_asm has_side_effects "st.release.gpu.global.b32 [$0], $1;", "l,r" %g, %n : (!llvm.ptr<1>, i32) -> ()
    // CHECK: %[[SIZE:.*]] = llvm.mlir.constant(16 : i32)
    // CHECK: llvm.call @varlen_sim_cp_async(%{{.*}}, %{{.*}}, %[[SIZE]], %[[N]], %{{.*}})
    llvm.inline_asm has_side_effects "cp.async.cg.shared.global.L2::128B [$0], [$1], 16, $2;", "r,l,r" %s, %g, %n : (!llvm.ptr<3>, !llvm.ptr<1>, i32) -> ()
    // CHECK: llvm.call @varlen_sim_cp_async_commit
    llvm.inline_asm has_side_effects "cp.async.commit_group;", "" : () -> ()
    // CHECK: %[[ONE:.*]] = llvm.mlir.constant(1 : i32)
    // CHECK: llvm.call @varlen_sim_cp_async_wait_group(%[[ONE]],
    llvm.inline_asm has_side_effects "cp.async.wait_group 1;", "" : () -> ()
    // CHECK: %[[ASYNC:.*]] = llvm.mlir.constant(3 : i32)
    // CHECK: llvm.call @varlen_sim_fence_proxy(%[[ASYNC]],
    llvm.inline_asm has_side_effects "fence.proxy.async.shared::cta;", "" : () -> ()
    // CHECK-NEXT: llvm.return
    llvm.inline_asm has_side_effects "prefetch.global.L2 [$0];", "l" %g : (!llvm.ptr<1>) -> ()
    llvm.return
  }

  // Offsets that an attribute of getelementptr has no room for.

  // CHECK-LABEL: @varlen_sim.m.offsets(
  // CHECK-SAME: %[[G:.*]]: !llvm.ptr<1>, %[[X:.*]]: i32) {
  llvm.func @offsets(%g: !llvm.ptr<1>, %x: i32) {
    // CHECK: %[[FAR:.*]] = llvm.mlir.constant(268435456 : i32)
    // CHECK: llvm.getelementptr %[[G]][%[[FAR]]]
    nvvm.inline_ptx "st.global.b32 [$0+268435456], $1;" ro(%g, %x : !llvm.ptr<1>, i32)
    // CHECK: llvm.getelementptr %[[G]][-268435456]
    nvvm.inline_ptx "st.global.b32 [$0+-268435456], $1;" ro(%g, %x : !llvm.ptr<1>, i32)
    llvm.return
  }
}
