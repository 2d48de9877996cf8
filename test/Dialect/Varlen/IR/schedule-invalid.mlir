// RUN: varlen-opt %s -split-input-file -verify-diagnostics

// A schedule is verified against its operation. Tiles have static extents.

func.func @f(%q: tensor<?x4x?xf32>, %v: tensor<?x4x64xf32>, %cu: tensor<?xi32>) {
  // expected-error @below {{'varlen.attn' op expected a static head_dim of q with a schedule, got a dynamic one}}
  %out, %lse = varlen.attn %q, %q, %v, %cu, %cu {varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 3, kv_block = 64, kv = copy>}
      : (tensor<?x4x?xf32>, tensor<?x4x?xf32>, tensor<?x4x64xf32>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x4x64xf32>, tensor<4x?xf32>)
  return
}

// -----

func.func @f(%q: tensor<?x4x64xbf16>, %v: tensor<?x4x?xbf16>, %cu: tensor<?xi32>) {
  // expected-error @below {{'varlen.attn' op expected a static head_dim of v with a schedule, got a dynamic one}}
  %out, %lse = varlen.attn %q, %q, %v, %cu, %cu {varlen.schedule = #varlen.gpu_schedule<warps = 4, block_m = 64, kv_block = 64, stages = 2, ctas = 2>}
      : (tensor<?x4x64xbf16>, tensor<?x4x64xbf16>, tensor<?x4x?xbf16>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x4x?xbf16>, tensor<4x?xf32>)
  return
}

// -----

func.func @f(%q: memref<?x2x64xf32>, %k: memref<?x2x?xf32>, %cu: memref<?xi32>, %out: memref<?x2x64xf32>, %lse: memref<2x?xf32>) {
  // expected-error @below {{expected a static head_dim of every operand with a schedule, got a dynamic one}}
  varlen.attn %q, %k, %q, %cu, %cu outs(%out, %lse) {varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 2, kv_block = 32, kv = copy>} : (memref<?x2x64xf32>, memref<?x2x?xf32>, memref<?x2x64xf32>, memref<?xi32>, memref<?xi32>, memref<?x2x64xf32>, memref<2x?xf32>) -> ()
  return
}

// -----

func.func @f(%q: tensor<?x4x4097xf32>, %v: tensor<?x4x64xf32>, %cu: tensor<?xi32>) {
  // expected-error @below {{'varlen.attn' op expected head_dim of q to be at most 4096 with a schedule, got 4097}}
  %out, %lse = varlen.attn %q, %q, %v, %cu, %cu {varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 3, kv_block = 64, kv = copy>}
      : (tensor<?x4x4097xf32>, tensor<?x4x4097xf32>, tensor<?x4x64xf32>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x4x64xf32>, tensor<4x?xf32>)
  return
}

// -----

// Pairs are for dot products of bf16, along head_dim for scores.

func.func @f(%q: tensor<?x4x64xf32>, %v: tensor<?x4x64xf32>, %cu: tensor<?xi32>) {
  // expected-error @below {{'varlen.attn' op expected elements of bf16 for kv = pairs, got 'f32'}}
  %out, %lse = varlen.attn %q, %q, %v, %cu, %cu {varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 3, kv_block = 64, kv = pairs>}
      : (tensor<?x4x64xf32>, tensor<?x4x64xf32>, tensor<?x4x64xf32>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x4x64xf32>, tensor<4x?xf32>)
  return
}

// -----

func.func @f(%q: tensor<?x4x63xbf16>, %v: tensor<?x4x64xbf16>, %cu: tensor<?xi32>) {
  // expected-error @below {{'varlen.attn' op expected head_dim of q with kv = pairs to be a multiple of 2, got 63}}
  %out, %lse = varlen.attn %q, %q, %v, %cu, %cu {varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 3, kv_block = 64, kv = pairs>}
      : (tensor<?x4x63xbf16>, tensor<?x4x63xbf16>, tensor<?x4x64xbf16>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x4x64xbf16>, tensor<4x?xf32>)
  return
}

// -----

// Gradients of scores are products along the head_dim of v.

func.func @f(%q: tensor<?x4x64xbf16>, %v: tensor<?x4x63xbf16>, %lse: tensor<4x?xf32>, %cu: tensor<?xi32>) {
  // expected-error @below {{'varlen.attn_grad' op expected head_dim of v with kv = pairs to be a multiple of 2, got 63}}
  %g:3 = varlen.attn_grad %v, %q, %q, %v, %v, %lse, %cu, %cu {varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 3, kv_block = 64, kv = pairs>}
      : (tensor<?x4x63xbf16>, tensor<?x4x64xbf16>, tensor<?x4x64xbf16>, tensor<?x4x63xbf16>, tensor<?x4x63xbf16>, tensor<4x?xf32>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x4x64xbf16>, tensor<?x4x64xbf16>, tensor<?x4x63xbf16>)
  return
}

// -----

func.func @f(%q: tensor<?x4x64xbf16>, %v: tensor<?x4x64xbf16>, %cu: tensor<?xi32>) {
  // expected-error @below {{'varlen.attn' op expected block_m to be a multiple of 16 * warps = 64, got 96}}
  %out, %lse = varlen.attn %q, %q, %v, %cu, %cu {varlen.schedule = #varlen.gpu_schedule<warps = 4, block_m = 96, kv_block = 64, stages = 2, ctas = 2>}
      : (tensor<?x4x64xbf16>, tensor<?x4x64xbf16>, tensor<?x4x64xbf16>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x4x64xbf16>, tensor<4x?xf32>)
  return
}

// -----

// No kernel is for f64.

func.func @f(%q: tensor<?x4x64xf64>, %v: tensor<?x4x64xf64>, %cu: tensor<?xi32>) {
  // expected-error @below {{'varlen.attn' op expected elements of f16, bf16 or f32 for #varlen.gpu_schedule<warps = 4, block_m = 64, kv_block = 64, stages = 2, ctas = 2>, got 'f64'}}
  %out, %lse = varlen.attn %q, %q, %v, %cu, %cu {varlen.schedule = #varlen.gpu_schedule<warps = 4, block_m = 64, kv_block = 64, stages = 2, ctas = 2>}
      : (tensor<?x4x64xf64>, tensor<?x4x64xf64>, tensor<?x4x64xf64>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x4x64xf64>, tensor<4x?xf64>)
  return
}

// -----

// Accumulators are in registers.

func.func @f(%q: tensor<?x4x64xbf16>, %v: tensor<?x4x128xbf16>, %cu: tensor<?xi32>) {
  // expected-error @below {{'varlen.attn' op expected head_dim of v to be at most 64, as a multiprocessor has 65536 registers for accumulators of 1024 rows, got 128}}
  %out, %lse = varlen.attn %q, %q, %v, %cu, %cu {varlen.schedule = #varlen.gpu_schedule<warps = 4, block_m = 1024, kv_block = 64, stages = 2, ctas = 2>}
      : (tensor<?x4x64xbf16>, tensor<?x4x64xbf16>, tensor<?x4x128xbf16>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x4x128xbf16>, tensor<4x?xf32>)
  return
}

// -----

func.func @f(%q: tensor<?x4x128xbf16>, %v: tensor<?x4x64xbf16>, %lse: tensor<4x?xf32>, %cu: tensor<?xi32>) {
  // expected-error @below {{'varlen.attn_grad' op expected head_dim of k to be at most 64, as a multiprocessor has 65536 registers for accumulators of 1024 rows, got 128}}
  %g:3 = varlen.attn_grad %v, %q, %q, %v, %v, %lse, %cu, %cu {varlen.schedule = #varlen.gpu_grad_schedule<dq = <warps = 4, block_m = 64, kv_block = 64, stages = 2, ctas = 2>, dk = <warps = 4, block_m = 16, kv_block = 1024, stages = 2, ctas = 2>>}
      : (tensor<?x4x64xbf16>, tensor<?x4x128xbf16>, tensor<?x4x128xbf16>, tensor<?x4x64xbf16>, tensor<?x4x64xbf16>, tensor<4x?xf32>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x4x128xbf16>, tensor<?x4x128xbf16>, tensor<?x4x64xbf16>)
  return
}

// -----

// An attention and its gradient have different kernels.

func.func @f(%q: tensor<?x4x64xbf16>, %v: tensor<?x4x64xbf16>, %lse: tensor<4x?xf32>, %cu: tensor<?xi32>) {
  // expected-error @below {{'varlen.attn_grad' op expected a #varlen.gpu_grad_schedule for gradients on a GPU, got #varlen.gpu_schedule<}}
  %g:3 = varlen.attn_grad %v, %q, %q, %v, %v, %lse, %cu, %cu {varlen.schedule = #varlen.gpu_schedule<warps = 4, block_m = 64, kv_block = 64, stages = 2, ctas = 2>}
      : (tensor<?x4x64xbf16>, tensor<?x4x64xbf16>, tensor<?x4x64xbf16>, tensor<?x4x64xbf16>, tensor<?x4x64xbf16>, tensor<4x?xf32>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x4x64xbf16>, tensor<?x4x64xbf16>, tensor<?x4x64xbf16>)
  return
}

// -----

func.func @f(%q: tensor<?x4x64xbf16>, %v: tensor<?x4x64xbf16>, %cu: tensor<?xi32>) {
  // expected-error @below {{'varlen.attn' op expected a #varlen.gpu_schedule for an attention on a GPU, got #varlen.gpu_grad_schedule<}}
  %out, %lse = varlen.attn %q, %q, %v, %cu, %cu {varlen.schedule = #varlen.gpu_grad_schedule<dq = <warps = 4, block_m = 64, kv_block = 64, stages = 2, ctas = 2>, dk = <warps = 4, block_m = 64, kv_block = 64, stages = 2, ctas = 2>>}
      : (tensor<?x4x64xbf16>, tensor<?x4x64xbf16>, tensor<?x4x64xbf16>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x4x64xbf16>, tensor<4x?xf32>)
  return
}

// -----

func.func @f(%q: tensor<?x4x64xbf16>, %cu: tensor<?xi32>) {
  // expected-error @below {{'varlen.attn' op expected scores_first of gradients only, got #varlen.gpu_schedule<warps = 4, block_m = 64, kv_block = 64, stages = 2, ctas = 2, scores_first = 1>}}
  %out, %lse = varlen.attn %q, %q, %q, %cu, %cu {varlen.schedule = #varlen.gpu_schedule<warps = 4, block_m = 64, kv_block = 64, stages = 2, ctas = 2, scores_first = 1>}
      : (tensor<?x4x64xbf16>, tensor<?x4x64xbf16>, tensor<?x4x64xbf16>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x4x64xbf16>, tensor<4x?xf32>)
  return
}

// -----

func.func @f(%q: tensor<?x4x64xbf16>, %cu: tensor<?xi32>) {
  // expected-error @below {{'varlen.attn' op expected five_products of gradients only, got #varlen.gpu_schedule<warps = 4, block_m = 64, kv_block = 64, stages = 2, ctas = 2, five_products = 1>}}
  %out, %lse = varlen.attn %q, %q, %q, %cu, %cu {varlen.schedule = #varlen.gpu_schedule<warps = 4, block_m = 64, kv_block = 64, stages = 2, ctas = 2, five_products = 1>}
      : (tensor<?x4x64xbf16>, tensor<?x4x64xbf16>, tensor<?x4x64xbf16>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x4x64xbf16>, tensor<4x?xf32>)
  return
}

// -----

// Three planes of the gradients of scores would have to be shared.

func.func @f(%q: tensor<?x4x64xf32>, %lse: tensor<4x?xf32>, %cu: tensor<?xi32>) {
  // expected-error @below {{'varlen.attn_grad' op expected elements of f16 or bf16 with five_products, got #varlen.gpu_grad_schedule<}}
  %g:3 = varlen.attn_grad %q, %q, %q, %q, %q, %lse, %cu, %cu {varlen.schedule = #varlen.gpu_grad_schedule<dq = <warps = 4, block_m = 64, kv_block = 64, stages = 2, ctas = 2>, dk = <warps = 4, block_m = 64, kv_block = 64, stages = 2, ctas = 2, five_products = 1>>}
      : (tensor<?x4x64xf32>, tensor<?x4x64xf32>, tensor<?x4x64xf32>, tensor<?x4x64xf32>, tensor<?x4x64xf32>, tensor<4x?xf32>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x4x64xf32>, tensor<?x4x64xf32>, tensor<?x4x64xf32>)
  return
}

// -----

!q = tensor<?x4x64xbf16>
!lse = tensor<4x?xf32>
func.func @f(%q: !q, %lse: !lse, %cu: tensor<?xi32>) {
  // expected-error @below {{'varlen.attn_jvp_grad' op expected gradients of an attention without tangents with five_products, got #varlen.gpu_grad_schedule<}}
  %g:3 = varlen.attn_jvp_grad %q, %q, %q, %q, %q, %q, %q, %q, %lse, %q, %lse, %cu, %cu {varlen.schedule = #varlen.gpu_grad_schedule<dq = <warps = 4, block_m = 64, kv_block = 64, stages = 2, ctas = 2>, dk = <warps = 4, block_m = 64, kv_block = 64, stages = 2, ctas = 2, five_products = 1>>}
      : (!q, !q, !q, !q, !q, !q, !q, !q, !lse, !q, !lse, tensor<?xi32>, tensor<?xi32>) -> (!q, !q, !q)
  return
}

// -----

!q = tensor<?x4x64xbf16>
!lse = tensor<4x?xf32>
func.func @f(%q: !q, %lse: !lse, %cu: tensor<?xi32>, %documents: !lse) {
  // expected-error @below {{'varlen.attn_grad' op expected a score region that hides no keys with five_products, got #varlen.gpu_grad_schedule<}}
  %g:3 = varlen.attn_grad %q, %q, %q, %q, %q, %lse, %cu, %cu captures(%documents) {varlen.schedule = #varlen.gpu_grad_schedule<dq = <warps = 4, block_m = 64, kv_block = 64, stages = 2, ctas = 2>, dk = <warps = 4, block_m = 64, kv_block = 64, stages = 2, ctas = 2, five_products = 1>>}
      : (!q, !q, !q, !q, !q, !lse, tensor<?xi32>, tensor<?xi32>, !lse) -> (!q, !q, !q)
      score (%s: f32, %i: i32, %j: i32, %b: f32) {
        %x = arith.sitofp %j : i32 to f32
        %visible = arith.cmpf olt, %x, %b : f32
        varlen.yield %s, %visible : f32, i1
      }
  return
}

// -----

!q = tensor<?x4x64xbf16>
!lse = tensor<4x?xf32>
func.func @f(%q: !q, %lse: !lse, %cu: tensor<?xi32>, %slopes: tensor<4xf32>) {
  // expected-error @below {{'varlen.attn_grad' op expected no gradients of captures but of tables of keys with five_products, got #varlen.gpu_grad_schedule<}}
  %g:4 = varlen.attn_grad %q, %q, %q, %q, %q, %lse, %cu, %cu captures(%slopes) {wrt_captures = array<i64: 0>, varlen.schedule = #varlen.gpu_grad_schedule<dq = <warps = 4, block_m = 64, kv_block = 64, stages = 2, ctas = 2>, dk = <warps = 4, block_m = 64, kv_block = 64, stages = 2, ctas = 2, five_products = 1>>}
      : (!q, !q, !q, !q, !q, !lse, tensor<?xi32>, tensor<?xi32>, tensor<4xf32>) -> (!q, !q, !q, tensor<4xf32>)
      score (%s: f32, %i: i32, %j: i32, %b: f32) {
        %x = arith.mulf %s, %b : f32
        varlen.yield %x : f32
      }
  return
}

// -----

// Neither 32 rows nor 96 columns are 16 for each of 4 warps.

!q = tensor<?x4x96xbf16>
func.func @f(%q: !q, %lse: tensor<4x?xf32>, %cu: tensor<?xi32>) {
  // expected-error @below {{'varlen.attn_grad' op expected block_m of dk or head_dim to be a multiple of 16 * warps = 64 with five_products, got #varlen.gpu_grad_schedule<}}
  %g:3 = varlen.attn_grad %q, %q, %q, %q, %q, %lse, %cu, %cu {varlen.schedule = #varlen.gpu_grad_schedule<
      dq = <warps = 4, block_m = 64, kv_block = 64, stages = 2, ctas = 2>, dk = <warps = 4, block_m = 32, kv_block = 64, stages = 2, ctas = 2, five_products = 1>>}
      : (!q, !q, !q, !q, !q, tensor<4x?xf32>, tensor<?xi32>, tensor<?xi32>) -> (!q, !q, !q)
  return
}
