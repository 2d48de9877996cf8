// RUN: varlen-opt %s --pass-pipeline='builtin.module(gpu.module(gpu.func(kernel-expand-math)))' | FileCheck %s
// RUN: varlen-opt %s --pass-pipeline='builtin.module(gpu.module(gpu.func(kernel-expand-math),convert-vector-to-llvm,convert-gpu-to-nvvm,reconcile-unrealized-casts),nvvm-attach-target{chip=sm_80},gpu-module-to-binary{format=isa})' | FileCheck %s --check-prefix=PTX

gpu.module @kernels {
  // CHECK-LABEL: gpu.func @scalars
  // CHECK: %[[A:.*]] = llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f32"(%{{.*}}) : (f32) -> f32
  // CHECK: %[[B:.*]] = llvm.call_intrinsic "llvm.nvvm.lg2.approx.ftz.f"(%[[A]]) : (f32) -> f32
  // CHECK: %[[C:.*]] = llvm.call_intrinsic "llvm.ceil.f32"(%[[B]]) : (f32) -> f32
  // CHECK: llvm.call_intrinsic "llvm.fabs.f32"(%[[C]]) : (f32) -> f32
  // PTX: ex2.approx.ftz.f32
  // PTX: lg2.approx.ftz.f32
  // PTX: cvt.rpi.f32.f32
  // PTX: abs.f32
  gpu.func @scalars(%x: f32, %p: !llvm.ptr<1>) kernel {
    %a = math.exp2 %x : f32
    %b = math.log2 %a : f32
    %c = math.ceil %b : f32
    %d = math.absf %c : f32
    llvm.store %d, %p : f32, !llvm.ptr<1>
    gpu.return
  }

  // The instruction is off by 2^-11: the source has to say that this is enough.
  // CHECK-LABEL: gpu.func @tanh
  // CHECK: math.tanh %{{.*}} : f32
  // CHECK: llvm.call_intrinsic "llvm.tanh.f32"
  gpu.func @tanh(%x: f32, %p: !llvm.ptr<1>) kernel {
    %a = math.tanh %x : f32
    %b = math.tanh %a fastmath<afn> : f32
    llvm.store %b, %p : f32, !llvm.ptr<1>
    gpu.return
  }

  // CHECK-LABEL: gpu.func @vector
  // CHECK: %[[E:.*]]:4 = vector.to_elements
  // CHECK-COUNT-4: llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f32"
  // CHECK: vector.from_elements {{.*}} : vector<1x2x2x1xf32>
  gpu.func @vector(%x: vector<1x2x2x1xf32>, %p: !llvm.ptr<1>) kernel {
    %a = math.exp2 %x : vector<1x2x2x1xf32>
    %b = vector.extract %a[0, 1, 1, 0] : f32 from vector<1x2x2x1xf32>
    llvm.store %b, %p : f32, !llvm.ptr<1>
    gpu.return
  }

  // Other types have no such instruction.
  // CHECK-LABEL: gpu.func @f64
  // CHECK: math.exp2 %{{.*}} : f64
  gpu.func @f64(%x: f64, %p: memref<f64>) kernel {
    %a = math.exp2 %x : f64
    memref.store %a, %p[] : memref<f64>
    gpu.return
  }
}
