// RUN: varlen-opt %s --pass-pipeline='builtin.module(gpu.module(convert-nvvm-to-llvm))' | FileCheck %s
// RUN: varlen-opt %s --pass-pipeline='builtin.module(varlen-launches-to-llvm{format=ptx chip=sm_90a})' -o %t
// RUN: sed 's/\\0A/\n/g' %t | FileCheck %s --check-prefix=PTX

// Instructions of Hopper become PTX by upstream's convert-nvvm-to-llvm, the
// registers of sums tied.

!acc = !llvm.struct<(f32, f32, f32, f32)>

gpu.module @kernels [#nvvm.target<chip = "sm_90a", features = "+ptx80">] {
  // CHECK-LABEL: llvm.func @shared
  // CHECK-SAME: %[[A:.*]]: i64, %[[B:.*]]: i64, %[[OUT:.*]]: !llvm.ptr<1>
  // PTX: .entry shared(
  llvm.func @shared(%a: i64, %b: i64, %out: !llvm.ptr<1>) attributes {nvvm.kernel} {
    nvvm.wgmma.fence.aligned
    // CHECK: %[[S:.*]] = llvm.inline_asm has_side_effects asm_dialect = att
    // CHECK-SAME: "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {$0, $1, $2, $3}, $4, $5, 0, 1, 1, 0, 0;",
    // CHECK-SAME: "=f,=f,=f,=f,l,l" %[[A]], %[[B]]
    // PTX: wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {[[R0:%f[0-9]+|%r[0-9]+]], {{.*}}}, %rd{{[0-9]+}}, %rd{{[0-9]+}}, 0, 1, 1, 0, 0;
    %s = kernel.wgmma bf16 a(%a) b(%b) : i64 into !acc
    // CHECK: %[[S0:.*]] = llvm.extractvalue %[[S]][0]
    // CHECK: %[[S3:.*]] = llvm.extractvalue %[[S]][3]
    // CHECK: %[[T:.*]] = llvm.inline_asm has_side_effects asm_dialect = att
    // CHECK-SAME: "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {$0, $1, $2, $3}, $8, $9, 1, 1, 1, 1, 0;",
    // CHECK-SAME: "=f,=f,=f,=f,0,1,2,3,l,l" %[[S0]], {{.*}}, %[[S3]], %[[A]], %[[B]]
    // PTX: wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {[[R0]], {{.*}}}, %rd{{[0-9]+}}, %rd{{[0-9]+}}, 1, 1, 1, 1, 0;
    %t = kernel.wgmma bf16 a(%a) b(%b) acc(%s) {a_t} : i64 into !acc
    nvvm.wgmma.commit.group.sync.aligned
    // CHECK: llvm.extractvalue %[[T]][0]
    // CHECK: %[[R:.*]] = llvm.inline_asm has_side_effects asm_dialect = att
    // CHECK-SAME: "wgmma.wait_group.sync.aligned 1;", "=f,=f,=f,=f,0,1,2,3"
    // PTX: wgmma.wait_group.sync.aligned 1;
    %r = kernel.wgmma_wait %t younger 1 : !acc
    // CHECK: %[[X:.*]] = llvm.extractvalue %[[R]][2]
    // CHECK: llvm.store %[[X]], %[[OUT]]
    %x = llvm.extractvalue %r[2] : !acc
    llvm.store %x, %out : f32, !llvm.ptr<1>
    llvm.return
  }

  // Constants are in registers, too: the instruction has no immediate factors.
  // CHECK-LABEL: llvm.func @registers
  // CHECK-SAME: %[[P:.*]]: i32, %[[B:.*]]: i64
  // CHECK: %[[ZERO:.*]] = llvm.freeze %{{.*}} : i32
  // CHECK: "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {$0, $1, $2, $3}, {$4, $5, $6, $7}, $8, 0, 1, 1, 1;",
  // CHECK-SAME: "=f,=f,=f,=f,r,r,r,r,l" %[[P]], %[[P]], %[[ZERO]], %[[P]], %[[B]]
  // CHECK: "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {$0, $1, $2, $3}, {$8, $9, $10, $11}, $12, 1, 1, 1, 1;",
  // CHECK-SAME: "=f,=f,=f,=f,0,1,2,3,r,r,r,r,l"
  // PTX: .entry registers(
  // PTX: wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {{[{].*[}], [{]}}%r[[P:[0-9]+]], %r[[P]], %r{{[0-9]+}}, %r[[P]]}, %rd{{[0-9]+}}, 0, 1, 1, 1;
  llvm.func @registers(%p: i32, %b: i64, %out: !llvm.ptr<1>) attributes {nvvm.kernel} {
    %zero = llvm.mlir.constant(0 : i32) : i32
    nvvm.wgmma.fence.aligned
    %s = kernel.wgmma f16 a(%p, %p, %zero, %p) b(%b) {b_t} : i32, i32, i32, i32 into !acc
    %t = kernel.wgmma f16 a(%p, %p, %p, %p) b(%b) acc(%s) {b_t} : i32, i32, i32, i32 into !acc
    nvvm.wgmma.commit.group.sync.aligned
    %r = kernel.wgmma_wait %t younger 0 : !acc
    %x = llvm.extractvalue %r[0] : !acc
    llvm.store %x, %out : f32, !llvm.ptr<1>
    llvm.return
  }

  // CHECK-LABEL: llvm.func @maps
  // CHECK-SAME: %[[S:.*]]: !llvm.ptr<3>, %[[G:.*]]: !llvm.ptr<1>
  // CHECK: llvm.inline_asm has_side_effects asm_dialect = att
  // CHECK-SAME: "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [$0], [$1], 128;",
  // CHECK-SAME: "l,r" %[[G]], %[[S]]
  // PTX: .entry maps(
  // PTX: tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%rd{{[0-9]+}}], [%r{{[0-9]+}}], 128;
  llvm.func @maps(%s: !llvm.ptr<3>, %g: !llvm.ptr<1>) attributes {nvvm.kernel} {
    kernel.publish_map %s to %g : !llvm.ptr<3>, !llvm.ptr<1>
    llvm.return
  }
}
