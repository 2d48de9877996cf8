// RUN: varlen-opt %s --pass-pipeline='builtin.module(gpu.module(gpu.func(kernel-expand-reductions,canonicalize)))' | FileCheck %s

gpu.module @kernels {
  // A balanced tree of a row's six columns, odd one last; two shuffles.
  // CHECK-LABEL: gpu.func @sum
  // CHECK-SAME: (%[[P:.*]]: vector<1x3x2x2xf32>
  // CHECK-DAG: %[[ONE:.*]] = arith.constant 1 : i32
  // CHECK-DAG: %[[TWO:.*]] = arith.constant 2 : i32
  // CHECK: %[[E0:.*]] = vector.extract %[[P]][0, 0, 0, 0]
  // CHECK: %[[E1:.*]] = vector.extract %[[P]][0, 0, 0, 1]
  // CHECK: %[[E2:.*]] = vector.extract %[[P]][0, 1, 0, 0]
  // CHECK: %[[E3:.*]] = vector.extract %[[P]][0, 1, 0, 1]
  // CHECK: %[[E4:.*]] = vector.extract %[[P]][0, 2, 0, 0]
  // CHECK: %[[E5:.*]] = vector.extract %[[P]][0, 2, 0, 1]
  // CHECK: %[[A:.*]] = arith.addf %[[E0]], %[[E1]] : f32
  // CHECK: %[[B:.*]] = arith.addf %[[E2]], %[[E3]] : f32
  // CHECK: %[[C:.*]] = arith.addf %[[E4]], %[[E5]] : f32
  // CHECK: %[[D:.*]] = arith.addf %[[A]], %[[B]] : f32
  // CHECK: %[[T:.*]] = arith.addf %[[D]], %[[C]] : f32
  // CHECK: %[[R:.*]] = vector.from_elements %[[T]], %{{.*}} : vector<1x2xf32>
  // CHECK: %[[F:.*]] = vector.shape_cast %[[R]]
  // CHECK: %[[V:.*]]:2 = vector.to_elements %[[F]]
  // CHECK: %[[S1:.*]], %{{.*}} = gpu.shuffle xor %[[V]]#0, %[[ONE]]
  // CHECK: %[[U:.*]] = arith.addf %[[V]]#0, %[[S1]] : f32
  // CHECK: %[[S2:.*]], %{{.*}} = gpu.shuffle xor %[[U]], %[[TWO]]
  // CHECK: arith.addf %[[U]], %[[S2]] : f32
  // CHECK-COUNT-2: gpu.shuffle
  // CHECK-NOT: gpu.shuffle
  gpu.func @sum(%p: vector<1x3x2x2xf32>, %out: memref<1x?xf32>, %i: index) kernel {
    %start = arith.constant dense<-0.0> : vector<1x2xf32>
    %x = vector.multi_reduction <add>, %p, %start [1, 3] : vector<1x3x2x2xf32> to vector<1x2xf32>
    %y = vector.shape_cast %x : vector<1x2xf32> to vector<2xf32>
    %z = gpu.subgroup_reduce add %y cluster(size = 4) : (vector<2xf32>) -> vector<2xf32>
    %s = vector.shape_cast %z : vector<2xf32> to vector<1x1x2x1xf32>
    kernel.store %s to %out rows(%i, %i, %i, %i) valid(%i) : vector<1x1x2x1xf32> to memref<1x?xf32>
    gpu.return
  }

  // A start that is not the identity counts.
  // CHECK-LABEL: gpu.func @start
  // CHECK-SAME: (%[[P:.*]]: vector<1x1x2x2xf32>, %[[S:.*]]: vector<1x2xf32>
  // CHECK: arith.maxnumf
  // CHECK: arith.maxnumf
  // CHECK: arith.maxnumf
  // CHECK: arith.maxnumf
  // CHECK-NOT: arith.maxnumf
  gpu.func @start(%p: vector<1x1x2x2xf32>, %start: vector<1x2xf32>, %out: memref<1x?xf32>, %i: index) kernel {
    %x = vector.multi_reduction <maxnumf>, %p, %start [1, 3] : vector<1x1x2x2xf32> to vector<1x2xf32>
    %s = vector.shape_cast %x : vector<1x2xf32> to vector<1x1x2x1xf32>
    kernel.store %s to %out rows(%i, %i, %i, %i) valid(%i) : vector<1x1x2x1xf32> to memref<1x?xf32>
    gpu.return
  }
}
