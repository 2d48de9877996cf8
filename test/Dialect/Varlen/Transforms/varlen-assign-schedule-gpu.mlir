// RUN: varlen-opt %s --varlen-assign-schedule=chip=sm_80 -verify-diagnostics | FileCheck %s
// RUN: not varlen-opt %s --varlen-assign-schedule=chip=gfx90a 2>&1 | FileCheck %s --check-prefix=CHIP

// CHIP: error: expected chip to be one of sm_80, {{.*}}, got gfx90a

!cu = tensor<?xi32>
!lse = tensor<4x?xf32>

// CHECK-LABEL: @bf16
// CHECK: varlen.attn
// CHECK-NOT: exp2_degree
// CHECK-SAME: varlen.schedule = #varlen.gpu_schedule<warps = {{[0-9]+}}, block_m = {{[0-9]+}}, kv_block = {{[0-9]+}}, stages = {{[0-9]+}}, ctas = {{[0-9]+}}>
func.func @bf16(%q: tensor<?x4x64xbf16>, %cu: !cu) -> tensor<?x4x64xbf16> {
  %out, %lse = varlen.attn %q, %q, %q, %cu, %cu : (tensor<?x4x64xbf16>, tensor<?x4x64xbf16>, tensor<?x4x64xbf16>, !cu, !cu) -> (tensor<?x4x64xbf16>, !lse)
  return %out : tensor<?x4x64xbf16>
}

// f32 takes three times the shared memory, and more registers.
// CHECK-LABEL: @f32
// CHECK: varlen.schedule = #varlen.gpu_schedule<warps = 4, block_m = 64, kv_block = 32, stages = 2, ctas = 2>
func.func @f32(%q: tensor<?x4x64xf32>, %cu: !cu) -> tensor<?x4x64xf32> {
  %out, %lse = varlen.attn %q, %q, %q, %cu, %cu : (tensor<?x4x64xf32>, tensor<?x4x64xf32>, tensor<?x4x64xf32>, !cu, !cu) -> (tensor<?x4x64xf32>, !lse)
  return %out : tensor<?x4x64xf32>
}

func.func @too_wide(%q: tensor<?x4x1024xbf16>, %cu: !cu) -> tensor<?x4x1024xbf16> {
  // expected-remark @below {{no tiles for head_dim 1024 in 166912 bytes of shared memory of sm_80; a CPU target has}}
  %out, %lse = varlen.attn %q, %q, %q, %cu, %cu : (tensor<?x4x1024xbf16>, tensor<?x4x1024xbf16>, tensor<?x4x1024xbf16>, !cu, !cu) -> (tensor<?x4x1024xbf16>, !lse)
  return %out : tensor<?x4x1024xbf16>
}

func.func @f64(%q: tensor<?x4x64xf64>, %cu: !cu) -> tensor<?x4x64xf64> {
  // expected-remark @below {{no tiles for f64, which sm_80 has no kernel for; a CPU target has}}
  %out, %lse = varlen.attn %q, %q, %q, %cu, %cu : (tensor<?x4x64xf64>, tensor<?x4x64xf64>, tensor<?x4x64xf64>, !cu, !cu) -> (tensor<?x4x64xf64>, tensor<4x?xf64>)
  return %out : tensor<?x4x64xf64>
}

// Quantised keys and values are in shared memory what q is.
// CHECK-LABEL: @quantised
// CHECK: varlen.schedule = #varlen.gpu_schedule<warps = 4, block_m = 64, kv_block = 32, stages = 2, ctas = 2>
func.func @quantised(%q: tensor<?x4x64xf32>, %k: tensor<?x4x64xi8>, %cu: !cu) -> tensor<?x4x64xf32> {
  %out, %lse = varlen.attn %q, %k, %k, %cu, %cu : (tensor<?x4x64xf32>, tensor<?x4x64xi8>, tensor<?x4x64xi8>, !cu, !cu) -> (tensor<?x4x64xf32>, !lse)
  return %out : tensor<?x4x64xf32>
}

func.func @dynamic(%q: tensor<?x4x?xbf16>, %cu: !cu) -> tensor<?x4x?xbf16> {
  // expected-remark @below {{no tiles for a dynamic head_dim; a GPU has no kernel for it, a CPU target has}}
  %out, %lse = varlen.attn %q, %q, %q, %cu, %cu : (tensor<?x4x?xbf16>, tensor<?x4x?xbf16>, tensor<?x4x?xbf16>, !cu, !cu) -> (tensor<?x4x?xbf16>, !lse)
  return %out : tensor<?x4x?xbf16>
}

// Gradients have kernels of their own; wide heads one for dk and one for dv.
// CHECK-LABEL: @grad
// CHECK: varlen.attn_grad
// CHECK-SAME: varlen.schedule = #varlen.gpu_grad_schedule<dq = <warps = {{[^>]*}}>, dk = <warps = {{[^>]*}}>>}
func.func @grad(%q: tensor<?x4x64xbf16>, %lse: !lse, %cu: !cu) -> tensor<?x4x64xbf16> {
  %dq, %dk, %dv = varlen.attn_grad %q, %q, %q, %q, %q, %lse, %cu, %cu : (tensor<?x4x64xbf16>, tensor<?x4x64xbf16>, tensor<?x4x64xbf16>, tensor<?x4x64xbf16>, tensor<?x4x64xbf16>, !lse, !cu, !cu) -> (tensor<?x4x64xbf16>, tensor<?x4x64xbf16>, tensor<?x4x64xbf16>)
  return %dk : tensor<?x4x64xbf16>
}

// CHECK-LABEL: @grad_wide
// CHECK: varlen.schedule = #varlen.gpu_grad_schedule<dq = <{{[^>]*}}>, dk = <{{[^>]*}}>, dv = <{{[^>]*}}>>}
func.func @grad_wide(%q: tensor<?x4x256xbf16>, %lse: !lse, %cu: !cu) -> tensor<?x4x256xbf16> {
  %dq, %dk, %dv = varlen.attn_grad %q, %q, %q, %q, %q, %lse, %cu, %cu : (tensor<?x4x256xbf16>, tensor<?x4x256xbf16>, tensor<?x4x256xbf16>, tensor<?x4x256xbf16>, tensor<?x4x256xbf16>, !lse, !cu, !cu) -> (tensor<?x4x256xbf16>, tensor<?x4x256xbf16>, tensor<?x4x256xbf16>)
  return %dk : tensor<?x4x256xbf16>
}

// A score needs registers, as a bound of the mask does: smaller blocks.
// CHECK-LABEL: @grad_score
// CHECK: dk = <warps = 4, block_m = 32, {{.*}} : {{.*}}){{$}}
// CHECK: dk = <warps = 4, block_m = 16, {{.*}} score (
func.func @grad_score(%q: tensor<?x4x128xbf16>, %lse: !lse, %cu: !cu) -> (tensor<?x4x128xbf16>, tensor<?x4x128xbf16>) {
  %dq, %dk, %dv = varlen.attn_grad %q, %q, %q, %q, %q, %lse, %cu, %cu : (tensor<?x4x128xbf16>, tensor<?x4x128xbf16>, tensor<?x4x128xbf16>, tensor<?x4x128xbf16>, tensor<?x4x128xbf16>, !lse, !cu, !cu) -> (tensor<?x4x128xbf16>, tensor<?x4x128xbf16>, tensor<?x4x128xbf16>)
  %0:3 = varlen.attn_grad %q, %q, %q, %q, %q, %lse, %cu, %cu : (tensor<?x4x128xbf16>, tensor<?x4x128xbf16>, tensor<?x4x128xbf16>, tensor<?x4x128xbf16>, tensor<?x4x128xbf16>, !lse, !cu, !cu) -> (tensor<?x4x128xbf16>, tensor<?x4x128xbf16>, tensor<?x4x128xbf16>)
      score (%s: f32, %i: i32, %j: i32) {
        %t = math.tanh %s : f32
        varlen.yield %t : f32
      }
  return %dk, %0#1 : tensor<?x4x128xbf16>, tensor<?x4x128xbf16>
}

func.func @grad_too_wide(%q: tensor<?x4x1024xbf16>, %lse: !lse, %cu: !cu) -> tensor<?x4x1024xbf16> {
  // expected-remark @below {{no tiles for head_dim 1024 in 166912 bytes of shared memory of sm_80; a CPU target has}}
  %dq, %dk, %dv = varlen.attn_grad %q, %q, %q, %q, %q, %lse, %cu, %cu : (tensor<?x4x1024xbf16>, tensor<?x4x1024xbf16>, tensor<?x4x1024xbf16>, tensor<?x4x1024xbf16>, tensor<?x4x1024xbf16>, !lse, !cu, !cu) -> (tensor<?x4x1024xbf16>, tensor<?x4x1024xbf16>, tensor<?x4x1024xbf16>)
  return %dk : tensor<?x4x1024xbf16>
}

func.func @pages(%q: tensor<?x4x64xbf16>, %k: tensor<?x16x2x64xbf16>, %cu: !cu, %table: tensor<?x?xi32>) -> tensor<?x4x64xbf16> {
  %out, %lse = varlen.attn %q, %k, %k, %cu seqused_k(%cu) block_table(%table) : (tensor<?x4x64xbf16>, tensor<?x16x2x64xbf16>, tensor<?x16x2x64xbf16>, !cu, !cu, tensor<?x?xi32>) -> (tensor<?x4x64xbf16>, tensor<4x?xf32>)
  return %out : tensor<?x4x64xbf16>
}

// Tangents take as much memory and as many registers as what they are of: fewer queries.
// CHECK-LABEL: @tangents
// CHECK: varlen.attn_jvp
// CHECK-SAME: varlen.schedule = #varlen.gpu_schedule<warps = 4, block_m = 64, kv_block = {{[0-9]+}}, stages = 2, ctas = {{[0-9]+}}>
func.func @tangents(%q: tensor<?x4x64xbf16>, %cu: !cu) -> tensor<?x4x64xbf16> {
  %0:4 = varlen.attn_jvp %q, %q, %q, %q, %q, %q, %cu, %cu : (tensor<?x4x64xbf16>, tensor<?x4x64xbf16>, tensor<?x4x64xbf16>, tensor<?x4x64xbf16>, tensor<?x4x64xbf16>, tensor<?x4x64xbf16>, !cu, !cu) -> (tensor<?x4x64xbf16>, !lse, tensor<?x4x64xbf16>, !lse)
  return %0#2 : tensor<?x4x64xbf16>
}

func.func @tangents_too_wide(%q: tensor<?x4x256xbf16>, %cu: !cu) -> tensor<?x4x256xbf16> {
  // expected-remark @below {{no tiles for tangents of 'bf16' with head_dim 256 in the registers and 166912 bytes of shared memory of sm_80; a CPU target has}}
  %0:4 = varlen.attn_jvp %q, %q, %q, %q, %q, %q, %cu, %cu : (tensor<?x4x256xbf16>, tensor<?x4x256xbf16>, tensor<?x4x256xbf16>, tensor<?x4x256xbf16>, tensor<?x4x256xbf16>, tensor<?x4x256xbf16>, !cu, !cu) -> (tensor<?x4x256xbf16>, !lse, tensor<?x4x256xbf16>, !lse)
  return %0#2 : tensor<?x4x256xbf16>
}

// Gradients of tangents have the kernels of gradients, of smaller blocks.
// CHECK-LABEL: @tangents_grad
// CHECK: varlen.attn_jvp_grad
// CHECK-SAME: varlen.schedule = #varlen.gpu_grad_schedule<dq = <warps = {{[^>]*}}>, dk = <warps = {{[^>]*}}>>}
func.func @tangents_grad(%q: tensor<?x4x64xbf16>, %lse: !lse, %cu: !cu) -> tensor<?x4x64xbf16> {
  %dq, %dk, %dv = varlen.attn_jvp_grad %q, %q, %q, %q, %q, %q, %q, %q, %lse, %q, %lse, %cu, %cu : (tensor<?x4x64xbf16>, tensor<?x4x64xbf16>, tensor<?x4x64xbf16>, tensor<?x4x64xbf16>, tensor<?x4x64xbf16>, tensor<?x4x64xbf16>, tensor<?x4x64xbf16>, tensor<?x4x64xbf16>, !lse, tensor<?x4x64xbf16>, !lse, !cu, !cu) -> (tensor<?x4x64xbf16>, tensor<?x4x64xbf16>, tensor<?x4x64xbf16>)
  return %dq : tensor<?x4x64xbf16>
}

func.func @tangents_grad_too_wide(%q: tensor<?x4x256xbf16>, %lse: !lse, %cu: !cu) -> tensor<?x4x256xbf16> {
  // expected-remark @below {{no tiles for gradients of tangents of 'bf16' with head_dim 256 in the registers and 166912 bytes of shared memory of sm_80; a CPU target has}}
  %dq, %dk, %dv = varlen.attn_jvp_grad %q, %q, %q, %q, %q, %q, %q, %q, %lse, %q, %lse, %cu, %cu : (tensor<?x4x256xbf16>, tensor<?x4x256xbf16>, tensor<?x4x256xbf16>, tensor<?x4x256xbf16>, tensor<?x4x256xbf16>, tensor<?x4x256xbf16>, tensor<?x4x256xbf16>, tensor<?x4x256xbf16>, !lse, tensor<?x4x256xbf16>, !lse, !cu, !cu) -> (tensor<?x4x256xbf16>, tensor<?x4x256xbf16>, tensor<?x4x256xbf16>)
  return %dq : tensor<?x4x256xbf16>
}
