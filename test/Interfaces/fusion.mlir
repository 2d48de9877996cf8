// An attention between elementwise operations, tiled and fused by upstream's
// transforms and bufferized: it is computed once, in its destinations; nothing is
// allocated or copied, and results are the same.

// REQUIRES: plugin
// DEFINE: %{schedule} =
// DEFINE: %{fuse} = %mlir-opt-plugin %s --transform-preload-library=transform-library-paths=%S/Inputs/%{schedule}.mlir \
// DEFINE:   --transform-interpreter --canonicalize --cse
// DEFINE: %{buffers} = --one-shot-bufferize="bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map" \
// DEFINE:   --canonicalize --cse --canonicalize
// DEFINE: %{run} = varlen-run --random=7 --lengths=5,9 --extent=arg0:0=14 --extent=arg1:0=14 --extent=arg2:0=14 \
// DEFINE:   --extent=arg5:0=14 --extent=arg6:0=14 --extent=arg7:1=14

// RUN: rm -rf %t && mkdir %t
// RUN: %{run} %s -o %t/whole.safetensors

// REDEFINE: %{schedule} = fuse-loop
// RUN: %{fuse} %{buffers} | FileCheck %s --check-prefixes=CHECK,LOOP
// RUN: %{fuse} | %{run} - -o %t/loop.safetensors
// RUN: cmp %t/whole.safetensors %t/loop.safetensors

// REDEFINE: %{schedule} = fuse-forall
// RUN: %{fuse} %{buffers} | FileCheck %s --check-prefixes=CHECK,FORALL
// RUN: %{fuse} | %{run} - -o %t/forall.safetensors
// RUN: cmp %t/whole.safetensors %t/forall.safetensors

#id = affine_map<(i, h, d) -> (i, h, d)>
#column = affine_map<(i, h, d) -> (d)>

// CHECK-LABEL:  func @fused(
// CHECK-SAME:     %[[X:[a-z0-9]+]]: memref<?x6x8xf32>, %[[K:[a-z0-9]+]]: memref<?x2x8xf32>, %[[V:[a-z0-9]+]]: memref<?x2x4xf32>, %[[CU:[a-z0-9]+]]: memref<3xi32>, %[[GATE:[a-z0-9]+]]: memref<4xf32>, %[[Q:[a-z0-9]+]]: memref<?x6x8xf32>, %[[O:[a-z0-9]+]]: memref<?x6x4xf32>, %[[L:[a-z0-9]+]]: memref<6x?xf32>
// CHECK-NOT:      memref.alloc
// CHECK-NOT:      memref.copy
// CHECK-NOT:      varlen.attn
// LOOP:           scf.for %[[H:[a-z0-9]+]] =
// FORALL:         linalg.tanh
// FORALL:         scf.forall
// CHECK-NOT:      memref.alloc
// LOOP:             %[[Q_TILE:[a-z0-9_]+]] = memref.subview %[[Q]][0, %[[H]], 0]
// LOOP:             linalg.tanh {{.*}} outs(%[[Q_TILE]] :
// CHECK-NOT:        memref.alloc
// CHECK:            %[[O_TILE:[a-z0-9_]+]] = memref.subview %[[O]][0, %[[H:[a-z0-9]+]], 0]
// CHECK:            %[[L_TILE:[a-z0-9_]+]] = memref.subview %[[L]][%[[H]], 0]
// CHECK:            varlen.attn %{{.*}}, %[[CU]], %[[CU]] outs(%[[O_TILE]], %[[L_TILE]])
// CHECK-NOT:        varlen.attn
// CHECK:            linalg.generic {{.*}} outs(%[[O_TILE]] :
// CHECK-NOT:      {{memref.alloc|memref.copy|varlen.attn}}
// CHECK:          return %[[O]]
func.func @fused(%x: tensor<?x6x8xf32>, %k: tensor<?x2x8xf32>, %v: tensor<?x2x4xf32>, %cu: tensor<3xi32>, %gate: tensor<4xf32>,
                 %s: tensor<?x6x8xf32>, %o: tensor<?x6x4xf32>, %l: tensor<6x?xf32>) -> tensor<?x6x4xf32> {
  %q = linalg.tanh ins(%x : tensor<?x6x8xf32>) outs(%s : tensor<?x6x8xf32>) -> tensor<?x6x8xf32>
  %out, %lse = varlen.attn_into %q, %k, %v, %cu, %cu outs(%o, %l) {mask = #varlen.mask<causal>}
    : (tensor<?x6x8xf32>, tensor<?x2x8xf32>, tensor<?x2x4xf32>, tensor<3xi32>, tensor<3xi32>, tensor<?x6x4xf32>, tensor<6x?xf32>)
    -> (tensor<?x6x4xf32>, tensor<6x?xf32>)
  %gated = linalg.generic {indexing_maps = [#column, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%gate : tensor<4xf32>) outs(%out : tensor<?x6x4xf32>) {
  ^bb0(%g: f32, %a: f32):
    %p = arith.mulf %g, %a : f32
    linalg.yield %p : f32
  } -> tensor<?x6x4xf32>
  return %gated : tensor<?x6x4xf32>
}
