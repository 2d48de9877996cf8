// RUN: varlen-opt %s --varlen-assign-schedule=chip=sm_86 --split-input-file --verify-diagnostics

// A schedule that is there already has to be one for this kind of target.

func.func @cpu_schedule(%q: tensor<?x4x64xbf16>, %cu: tensor<?xi32>) {
  // expected-error @below {{'varlen.attn' op expected a schedule for a GPU, got #varlen.cpu_schedule<}}
  %out, %lse = varlen.attn %q, %q, %q, %cu, %cu {varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 3, rows = 4, panels = 16, kv_block = 128, kv = copy>}
      : (tensor<?x4x64xbf16>, tensor<?x4x64xbf16>, tensor<?x4x64xbf16>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x4x64xbf16>, tensor<4x?xf32>)
  return
}
