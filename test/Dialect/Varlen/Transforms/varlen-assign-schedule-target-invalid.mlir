// RUN: varlen-opt %s --varlen-assign-schedule=chip=sm_86 --split-input-file --verify-diagnostics

// A schedule that is there already has to be one for this kind of target, with
// tiles that its shared memory has room for.

func.func @cpu_schedule(%q: tensor<?x4x64xbf16>, %cu: tensor<?xi32>) {
  // expected-error @below {{'varlen.attn' op expected a schedule for a GPU, got #varlen.cpu_schedule<}}
  %out, %lse = varlen.attn %q, %q, %q, %cu, %cu {varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 3, rows = 4, panels = 16, kv_block = 128, kv = copy>}
      : (tensor<?x4x64xbf16>, tensor<?x4x64xbf16>, tensor<?x4x64xbf16>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x4x64xbf16>, tensor<4x?xf32>)
  return
}

// -----

// 64 rows of q, 2 blocks of 512 keys and values, and the number of an item.
func.func @shared_memory(%q: tensor<?x4x64xbf16>, %cu: tensor<?xi32>) {
  // expected-error @below {{'varlen.attn' op expected tiles that take at most 101376 bytes of shared memory of sm_86, got 270344 bytes of #varlen.gpu_schedule<warps = 4, block_m = 64, kv_block = 512, stages = 2, ctas = 1>}}
  %out, %lse = varlen.attn %q, %q, %q, %cu, %cu {varlen.schedule = #varlen.gpu_schedule<warps = 4, block_m = 64, kv_block = 512, stages = 2, ctas = 1>}
      : (tensor<?x4x64xbf16>, tensor<?x4x64xbf16>, tensor<?x4x64xbf16>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x4x64xbf16>, tensor<4x?xf32>)
  return
}

// -----

// A tile of dq has q and dout in shared memory: 128 * (64 + 64) elements beside
// two blocks of 256 keys and values.
func.func @shared_memory_dq(%q: tensor<?x4x64xbf16>, %cu: tensor<?xi32>, %lse: tensor<4x?xf32>) {
  // expected-error @below {{op expected tiles that take at most 101376 bytes of shared memory of sm_86, got 163848 bytes of #varlen.gpu_schedule<warps = 4, block_m = 128, kv_block = 256,}}
  %dq, %dk, %dv = varlen.attn_grad %q, %q, %q, %q, %q, %lse, %cu, %cu {varlen.schedule = #varlen.gpu_grad_schedule<
        dq = <warps = 4, block_m = 128, kv_block = 256, stages = 2, ctas = 1>,
        dk = <warps = 4, block_m = 64, kv_block = 64, stages = 2, ctas = 1>>}
      : (tensor<?x4x64xbf16>, tensor<?x4x64xbf16>, tensor<?x4x64xbf16>, tensor<?x4x64xbf16>, tensor<?x4x64xbf16>, tensor<4x?xf32>, tensor<?xi32>, tensor<?xi32>)
      -> (tensor<?x4x64xbf16>, tensor<?x4x64xbf16>, tensor<?x4x64xbf16>)
  return
}

// -----

// A tile of dk has k and v.
func.func @shared_memory_dk(%q: tensor<?x4x64xbf16>, %cu: tensor<?xi32>, %lse: tensor<4x?xf32>) {
  // expected-error @below {{op expected tiles that take at most 101376 bytes of shared memory of sm_86, got 114696 bytes of #varlen.gpu_schedule<warps = 4, block_m = 128, kv_block = 192,}}
  %dq, %dk, %dv = varlen.attn_grad %q, %q, %q, %q, %q, %lse, %cu, %cu {varlen.schedule = #varlen.gpu_grad_schedule<
        dq = <warps = 4, block_m = 64, kv_block = 64, stages = 2, ctas = 1>,
        dk = <warps = 4, block_m = 128, kv_block = 192, stages = 2, ctas = 1>>}
      : (tensor<?x4x64xbf16>, tensor<?x4x64xbf16>, tensor<?x4x64xbf16>, tensor<?x4x64xbf16>, tensor<?x4x64xbf16>, tensor<4x?xf32>, tensor<?xi32>, tensor<?xi32>)
      -> (tensor<?x4x64xbf16>, tensor<?x4x64xbf16>, tensor<?x4x64xbf16>)
  return
}

// -----

// One of dv alone has k only.
func.func @shared_memory_dv(%q: tensor<?x4x64xbf16>, %cu: tensor<?xi32>, %lse: tensor<4x?xf32>) {
  // expected-error @below {{op expected tiles that take at most 101376 bytes of shared memory of sm_86, got 106504 bytes of #varlen.gpu_schedule<warps = 4, block_m = 192, kv_block = 64,}}
  %dq, %dk, %dv = varlen.attn_grad %q, %q, %q, %q, %q, %lse, %cu, %cu {varlen.schedule = #varlen.gpu_grad_schedule<
        dq = <warps = 4, block_m = 64, kv_block = 64, stages = 2, ctas = 1>,
        dk = <warps = 4, block_m = 64, kv_block = 64, stages = 2, ctas = 1>,
        dv = <warps = 4, block_m = 192, kv_block = 64, stages = 2, ctas = 1>>}
      : (tensor<?x4x64xbf16>, tensor<?x4x64xbf16>, tensor<?x4x64xbf16>, tensor<?x4x64xbf16>, tensor<?x4x64xbf16>, tensor<4x?xf32>, tensor<?xi32>, tensor<?xi32>)
      -> (tensor<?x4x64xbf16>, tensor<?x4x64xbf16>, tensor<?x4x64xbf16>)
  return
}

// -----

!t = tensor<?x2x64xbf16>
!cu = tensor<?xi32>
func.func @producers(%q: !t, %k: !t, %v: !t, %cu: !cu) {
  // expected-error @below {{op expected no producers on sm_86, whose threads cannot wait for an mbarrier, got #varlen.gpu_schedule<warps = 4, block_m = 64, kv_block = 32, stages = 2, ctas = 1, producers = 4>}}
  %o, %l = varlen.attn %q, %k, %v, %cu, %cu
      {varlen.schedule = #varlen.gpu_schedule<warps = 4, block_m = 64, kv_block = 32, stages = 2, ctas = 1, producers = 4>}
      : (!t, !t, !t, !cu, !cu) -> (!t, tensor<2x?xf32>)
  return
}
