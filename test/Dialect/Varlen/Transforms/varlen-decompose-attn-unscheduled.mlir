// RUN: varlen-opt %s --pass-pipeline='builtin.module(varlen-decompose-attn{unscheduled-only})' | FileCheck %s
// RUN: varlen-opt %s --varlen-decompose-attn | FileCheck %s --check-prefix=ALL

// An attention with a schedule has a faster route.

// CHECK-LABEL: func @both
// CHECK:         scf.for
// CHECK:         varlen.attn
// CHECK-SAME:      varlen.schedule
// CHECK-NOT:     scf.for

// ALL-NOT: varlen.attn
func.func @both(%q: tensor<?x1x8xf32>, %cu: tensor<?xi32>) -> (tensor<?x1x8xf32>, tensor<?x1x8xf32>) {
  %out, %lse = varlen.attn %q, %q, %q, %cu, %cu
    : (tensor<?x1x8xf32>, tensor<?x1x8xf32>, tensor<?x1x8xf32>, tensor<?xi32>, tensor<?xi32>)
    -> (tensor<?x1x8xf32>, tensor<1x?xf32>)
  %out2, %lse2 = varlen.attn %out, %q, %q, %cu, %cu
    {varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 4, kv_block = 96, kv = copy>}
    : (tensor<?x1x8xf32>, tensor<?x1x8xf32>, tensor<?x1x8xf32>, tensor<?xi32>, tensor<?xi32>)
    -> (tensor<?x1x8xf32>, tensor<1x?xf32>)
  return %out, %out2 : tensor<?x1x8xf32>, tensor<?x1x8xf32>
}

// A merge has no other route.

// RUN: varlen-opt %s --pass-pipeline='builtin.module(varlen-decompose-attn{merges-only})' | FileCheck %s --check-prefix=MERGES

// MERGES-LABEL: func @both
// MERGES-COUNT-2: varlen.attn

// CHECK-LABEL: func @merge
// CHECK-NOT:     varlen.merge
// MERGES-LABEL: func @merge
// MERGES:        varlen.attn
// MERGES-NOT:    varlen.merge
func.func @merge(%q: tensor<?x1x8xf32>, %cu: tensor<?xi32>) -> (tensor<?x1x8xf32>, tensor<1x?xf32>) {
  %out, %lse = varlen.attn %q, %q, %q, %cu, %cu
    : (tensor<?x1x8xf32>, tensor<?x1x8xf32>, tensor<?x1x8xf32>, tensor<?xi32>, tensor<?xi32>)
    -> (tensor<?x1x8xf32>, tensor<1x?xf32>)
  %all, %log = varlen.merge %out, %lse, %out, %lse
    : (tensor<?x1x8xf32>, tensor<1x?xf32>, tensor<?x1x8xf32>, tensor<1x?xf32>) -> (tensor<?x1x8xf32>, tensor<1x?xf32>)
  return %all, %log : tensor<?x1x8xf32>, tensor<1x?xf32>
}
