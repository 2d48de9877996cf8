// RUN: varlen-opt %s --pass-pipeline='builtin.module(gpu.module(gpu.func(kernel-pack-narrow)))' | FileCheck %s

gpu.module @kernels {
  // The first of a pair is the low half of the register.
  // CHECK-LABEL: gpu.func @fragments
  // CHECK: %[[E:.*]]:4 = vector.to_elements %{{.*}} : vector<1x1x2x2xf32>
  // CHECK: %[[A:.*]] = nvvm.convert.f32x2.to.bf16x2 %[[E]]#1, %[[E]]#0 {rnd = #nvvm.fp_rnd_mode<rn>} : vector<2xbf16>
  // CHECK: %[[A2:.*]]:2 = vector.to_elements %[[A]]
  // CHECK: %[[B:.*]] = nvvm.convert.f32x2.to.bf16x2 %[[E]]#3, %[[E]]#2
  // CHECK: %[[B2:.*]]:2 = vector.to_elements %[[B]]
  // CHECK: vector.from_elements %[[A2]]#0, %[[A2]]#1, %[[B2]]#0, %[[B2]]#1 : vector<1x1x2x2xbf16>
  // CHECK-COUNT-2: nvvm.convert.f32x2.to.f16x2
  // CHECK-NOT: arith.truncf
  gpu.func @fragments(%x: vector<1x1x2x2xf32>, %a: memref<?x1x8xbf16>, %b: memref<?x1x8xf16>, %i: index) kernel {
    %y = arith.truncf %x : vector<1x1x2x2xf32> to vector<1x1x2x2xbf16>
    %z = arith.truncf %x : vector<1x1x2x2xf32> to vector<1x1x2x2xf16>
    kernel.store %y to %a rows(%i, %i, %i, %i) valid(%i) : vector<1x1x2x2xbf16> to memref<?x1x8xbf16>
    kernel.store %z to %b rows(%i, %i, %i, %i) valid(%i) : vector<1x1x2x2xf16> to memref<?x1x8xf16>
    gpu.return
  }

  // CHECK-LABEL: gpu.func @wide
  // CHECK-DAG: %[[HALF:.*]] = arith.constant 16 : i32
  // CHECK-DAG: %[[UPPER:.*]] = arith.constant -65536 : i32
  // CHECK: %[[E:.*]]:4 = vector.to_elements %{{.*}} : vector<2x2xbf16>
  // CHECK: %[[PAIR:.*]] = vector.from_elements %[[E]]#0, %[[E]]#1 : vector<2xbf16>
  // CHECK: %[[BITS:.*]] = vector.bitcast %[[PAIR]] : vector<2xbf16> to vector<1xi32>
  // CHECK: %[[WORD:.*]] = vector.extract %[[BITS]][0]
  // CHECK: %[[LOW:.*]] = arith.shli %[[WORD]], %[[HALF]] : i32
  // CHECK: %[[HIGH:.*]] = arith.andi %[[WORD]], %[[UPPER]] : i32
  // CHECK: %[[A:.*]] = arith.bitcast %[[LOW]] : i32 to f32
  // CHECK: %[[B:.*]] = arith.bitcast %[[HIGH]] : i32 to f32
  // CHECK: vector.from_elements %[[A]], %[[B]], %{{.*}}, %{{.*}} : vector<2x2xf32>
  // CHECK: arith.extf %{{.*}} : vector<2x2xf16> to vector<2x2xf32>
  gpu.func @wide(%x: vector<2x2xbf16>, %y: vector<2x2xf16>, %a: memref<2x2xf32>) kernel {
    %z = arith.extf %x : vector<2x2xbf16> to vector<2x2xf32>
    %w = arith.extf %y : vector<2x2xf16> to vector<2x2xf32>
    %c0 = arith.constant 0 : index
    vector.transfer_write %z, %a[%c0, %c0] {in_bounds = [true, true]} : vector<2x2xf32>, memref<2x2xf32>
    vector.transfer_write %w, %a[%c0, %c0] {in_bounds = [true, true]} : vector<2x2xf32>, memref<2x2xf32>
    gpu.return
  }

  // CHECK-LABEL: gpu.func @stay
  // CHECK: arith.truncf %{{.*}} : f32 to bf16
  // CHECK: arith.truncf %{{.*}} : vector<3xf32> to vector<3xbf16>
  gpu.func @stay(%x: f32, %y: vector<3xf32>, %a: memref<bf16>, %b: memref<3xbf16>) kernel {
    %z = arith.truncf %x : f32 to bf16
    memref.store %z, %a[] : memref<bf16>
    %w = arith.truncf %y : vector<3xf32> to vector<3xbf16>
    %c0 = arith.constant 0 : index
    vector.store %w, %b[%c0] : memref<3xbf16>, vector<3xbf16>
    gpu.return
  }
}
