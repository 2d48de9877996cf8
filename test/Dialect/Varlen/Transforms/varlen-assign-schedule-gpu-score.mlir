// RUN: varlen-opt %s --varlen-assign-schedule=chip=sm_80 --split-input-file --verify-diagnostics | FileCheck %s

// What a score keeps in registers for each row counts as bounds of the mask do.

!cu = tensor<?xi32>
!q = tensor<?x4x64xbf16>
!kv = tensor<?x2x64xbf16>
!lse = tensor<4x?xf32>

// A number of each key that is looked up by the query as well: two lookups for each
// score, and with grouped heads a row of the table for each row of a tile.
// CHECK-LABEL: @documents
// CHECK: varlen.schedule = #varlen.gpu_schedule<warps = 4, block_m = 128, kv_block = 48,
// CHECK: varlen.schedule = #varlen.gpu_schedule<warps = 4, block_m = 128, kv_block = 64,
func.func @documents(%q: !q, %k: !kv, %cu: !cu, %ids: tensor<4x?xf32>) -> (!q, !q) {
  %out, %lse = varlen.attn %q, %k, %k, %cu, %cu captures(%ids) : (!q, !kv, !kv, !cu, !cu, tensor<4x?xf32>) -> (!q, !lse)
      score (%s: f32, %i: i32, %j: i32, %table: !varlen.table<f32, keys>) {
        %a = varlen.lookup %table[%i] : !varlen.table<f32, keys>
        %b = varlen.lookup %table[%j] : !varlen.table<f32, keys>
        %visible = arith.cmpf oeq, %a, %b : f32
        varlen.yield %s, %visible : f32, i1
      }
  %same, %lse1 = varlen.attn %q, %q, %q, %cu, %cu captures(%ids) : (!q, !q, !q, !cu, !cu, tensor<4x?xf32>) -> (!q, !lse)
      score (%s: f32, %i: i32, %j: i32, %table: !varlen.table<f32, keys>) {
        %a = varlen.lookup %table[%i] : !varlen.table<f32, keys>
        %b = varlen.lookup %table[%j] : !varlen.table<f32, keys>
        %visible = arith.cmpf oeq, %a, %b : f32
        varlen.yield %s, %visible : f32, i1
      }
  return %out, %same : !q, !q
}

// -----

!cu = tensor<?xi32>
!q = tensor<?x4x64xbf16>
!lse = tensor<4x?xf32>

// A function of scores beside what queries are compared with.
// CHECK-LABEL: @capped
// CHECK: dk = <warps = 4, block_m = 32, kv_block = 64,
func.func @capped(%q: !q, %lse: !lse, %cu: !cu, %first: !lse) -> !q {
  %dq, %dk, %dv = varlen.attn_grad %q, %q, %q, %q, %q, %lse, %cu, %cu captures(%first) {mask = #varlen.mask<causal>} : (!q, !q, !q, !q, !q, !lse, !cu, !cu, !lse) -> (!q, !q, !q)
      score (%s: f32, %i: i32, %j: i32, %begin: f32) {
        %t = math.tanh %s : f32
        %x = arith.sitofp %j : i32 to f32
        %visible = arith.cmpf oge, %x, %begin : f32
        varlen.yield %t, %visible : f32, i1
      }
  return %dk : !q
}

// Without the function, and without what queries are compared with, a larger block fits.
// CHECK-LABEL: @visible
// CHECK: dk = <warps = 4, block_m = 64, kv_block = 64,
func.func @visible(%q: !q, %lse: !lse, %cu: !cu, %first: !lse) -> !q {
  %dq, %dk, %dv = varlen.attn_grad %q, %q, %q, %q, %q, %lse, %cu, %cu captures(%first) {mask = #varlen.mask<causal>} : (!q, !q, !q, !q, !q, !lse, !cu, !cu, !lse) -> (!q, !q, !q)
      score (%s: f32, %i: i32, %j: i32, %begin: f32) {
        %x = arith.sitofp %j : i32 to f32
        %visible = arith.cmpf oge, %x, %begin : f32
        varlen.yield %s, %visible : f32, i1
      }
  return %dk : !q
}

// CHECK-LABEL: @function
// CHECK: dk = <warps = 4, block_m = 64, kv_block = 64,
func.func @function(%q: !q, %lse: !lse, %cu: !cu) -> !q {
  %dq, %dk, %dv = varlen.attn_grad %q, %q, %q, %q, %q, %lse, %cu, %cu {mask = #varlen.mask<causal>} : (!q, !q, !q, !q, !q, !lse, !cu, !cu) -> (!q, !q, !q)
      score (%s: f32, %i: i32, %j: i32) {
        %t = math.tanh %s : f32
        varlen.yield %t : f32
      }
  return %dk : !q
}
