// RUN: varlen-opt %s --varlen-expand-device-math | FileCheck %s

// CHECK-LABEL: gpu.module @kernels
gpu.module @kernels {
  // Polynomials of f32, of log2 too, whose instruction is not exact near 1.
  // CHECK-LABEL: gpu.func @polynomials
  // CHECK-NOT: math.{{exp|log|sin|cos|tanh|powf}}
  // CHECK-NOT: lg2
  // CHECK: math.fma
  // CHECK-NOT: math.{{exp|log|sin|cos|tanh|powf}}
  // CHECK-NOT: lg2
  // CHECK: gpu.return
  gpu.func @polynomials(%x: f32, %y: memref<8xf32>) kernel {
    %i = gpu.thread_id x
    %0 = math.exp %x : f32
    %1 = math.log %0 : f32
    %2 = math.sin %1 : f32
    %3 = math.cos %2 : f32
    %4 = math.tanh %3 : f32
    %5 = math.log2 %4 : f32
    %6 = math.powf %5, %x : f32
    memref.store %6, %y[%i] : memref<8xf32>
    gpu.return
  }

  // f8E4M3FN by f16, whose exponent is 8 larger, and rounded by its bits.
  // CHECK-LABEL: gpu.func @f8
  // CHECK: arith.extsi %{{.*}} : i8 to i16
  // CHECK: %[[HALF:.*]] = arith.bitcast %{{.*}} : i16 to f16
  // CHECK: %[[WIDE:.*]] = arith.extf %[[HALF]] : f16 to f32
  // CHECK: arith.mulf %[[WIDE]], %cst
  // CHECK: arith.trunci %{{.*}} : i32 to i8
  // CHECK-NOT: f8E4M3FN to f32
  // CHECK-NOT: f32 to f8E4M3FN
  // CHECK: gpu.return
  gpu.func @f8(%x: memref<8xf8E4M3FN>) kernel {
    %i = gpu.thread_id x
    %0 = memref.load %x[%i] : memref<8xf8E4M3FN>
    %1 = arith.extf %0 : f8E4M3FN to f32
    %2 = math.sqrt %1 : f32
    %3 = arith.truncf %2 : f32 to f8E4M3FN
    memref.store %3, %x[%i] : memref<8xf8E4M3FN>
    gpu.return
  }

  // CHECK-LABEL: gpu.func @approximate
  // CHECK: llvm.call_intrinsic "llvm.tanh.f32"(%{{.*}}) {fastmathFlags = #llvm.fastmath<afn>} : (f32) -> f32
  // CHECK-NEXT: memref.store
  gpu.func @approximate(%x: f32, %y: memref<8xf32>) kernel {
    %i = gpu.thread_id x
    %0 = math.tanh %x fastmath<afn> : f32
    memref.store %0, %y[%i] : memref<8xf32>
    gpu.return
  }

  // One polynomial for small numbers; an exp2 and an approximate division for others.
  // CHECK-LABEL: gpu.func @tanh
  // CHECK-COUNT-5: math.fma
  // CHECK-NOT: math.fma
  // CHECK: llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f32"
  // CHECK: arith.divf %{{.*}}, %{{.*}} fastmath<afn> : f32
  // CHECK: llvm.call_intrinsic "llvm.copysign.f32"
  // CHECK: arith.select
  gpu.func @tanh(%x: f32, %y: memref<8xf32>) kernel {
    %i = gpu.thread_id x
    %0 = math.tanh %x : f32
    memref.store %0, %y[%i] : memref<8xf32>
    gpu.return
  }

  // CHECK-LABEL: gpu.func @instructions
  // CHECK: llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f32"
  // CHECK: %[[ROOT:.*]] = llvm.call_intrinsic "llvm.sqrt.f32"
  // CHECK: arith.divf %{{.*}}, %[[ROOT]]
  // CHECK: llvm.call_intrinsic "llvm.floor.f32"
  // CHECK: llvm.call_intrinsic "llvm.copysign.f32"(%{{.*}}, %{{.*}})
  gpu.func @instructions(%x: f32, %y: memref<8xf32>) kernel {
    %i = gpu.thread_id x
    %0 = math.exp2 %x : f32
    %1 = math.rsqrt %0 : f32
    %2 = math.floor %1 : f32
    %3 = math.copysign %2, %x : f32
    memref.store %3, %y[%i] : memref<8xf32>
    gpu.return
  }

  // In f32, rounded after each operation.
  // CHECK-LABEL: gpu.func @narrow
  // CHECK: arith.extf %{{.*}} : bf16 to f32
  // CHECK: %[[SUM:.*]] = arith.addf %{{.*}}, %{{.*}} : f32
  // CHECK: %[[ROUNDED:.*]] = arith.truncf %[[SUM]] : f32 to bf16
  // CHECK: %[[WIDE:.*]] = arith.extf %[[ROUNDED]] : bf16 to f32
  // CHECK: llvm.call_intrinsic "llvm.sqrt.f32"(%[[WIDE]])
  // CHECK: arith.truncf
  gpu.func @narrow(%x: bf16, %y: memref<8xbf16>) kernel {
    %i = gpu.thread_id x
    %0 = arith.addf %x, %x : bf16
    %1 = math.sqrt %0 : bf16
    memref.store %1, %y[%i] : memref<8xbf16>
    gpu.return
  }

  // CHECK-LABEL: gpu.func @doubles
  // CHECK: llvm.call @__nv_exp
  // CHECK: llvm.call @__nv_fmod
  gpu.func @doubles(%x: f64, %y: memref<8xf64>) kernel {
    %i = gpu.thread_id x
    %0 = math.exp %x : f64
    %1 = arith.remf %0, %x : f64
    memref.store %1, %y[%i] : memref<8xf64>
    gpu.return
  }
}

// Launches that have no module yet; functions of the host are left alone.
// CHECK-LABEL: func.func @launch
func.func @launch(%x: f32, %y: memref<?xf32>) -> f32 {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%lx = %c1, %ly = %c1, %lz = %c1) {
    // CHECK-NOT: math.exp
    // CHECK: gpu.terminator
    %0 = math.exp %x : f32
    memref.store %0, %y[%tx] : memref<?xf32>
    gpu.terminator
  }
  // CHECK: math.exp
  %1 = math.exp %x : f32
  return %1 : f32
}
