// RUN: varlen-opt %s | FileCheck %s

// CHECK: m0 = #varlen.mask<full>
// CHECK-SAME: m1 = #varlen.mask<causal>
// CHECK-SAME: m2 = #varlen.mask<causal, top_left>
// CHECK-SAME: m3 = #varlen.mask<window = (512, 0)>
// CHECK-SAME: m4 = #varlen.mask<window = (0, 7), top_left>
// CHECK-SAME: m5 = #varlen.mask<window = (3, -1)>
// CHECK-SAME: m6 = #varlen.mask<full, top_left>
// What has a shorter name is printed by it; bottom_right is the default.
// CHECK-SAME: m7 = #varlen.mask<causal>
// CHECK-SAME: m8 = #varlen.mask<full>
// CHECK-SAME: m9 = #varlen.chunk_mask<8192>
// CHECK-SAME: n0 = #varlen.chunk_mask<1, top_left>
func.func private @masks() attributes {
  m0 = #varlen.mask<full>,
  m1 = #varlen.mask<causal>,
  m2 = #varlen.mask<causal, top_left>,
  m3 = #varlen.mask<window = (512, 0)>,
  m4 = #varlen.mask<window = (0, 7), top_left>,
  m5 = #varlen.mask<window = (3, -1)>,
  m6 = #varlen.mask<full, top_left>,
  m7 = #varlen.mask<window = (-1, 0), bottom_right>,
  m8 = #varlen.mask<window = (-1, -1)>,
  m9 = #varlen.chunk_mask<8192, bottom_right>,
  n0 = #varlen.chunk_mask<1, top_left>
}

// CHECK: #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 3, kv_block = 64, kv = copy>
// CHECK: #varlen.cpu_schedule<lanes = 16, vectors = 1, rows = 1, panels = 1, kv_block = 8, kv = copy>
// CHECK: #varlen.cpu_schedule<lanes = 16, vectors = 1, rows = 8, panels = 1, kv_block = 128, kv = pairs>
func.func private @a() attributes {s = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 3, kv_block = 64, kv = copy>}
func.func private @b() attributes {s = #varlen.cpu_schedule<lanes = 16, vectors = 1, rows = 1, panels = 1, kv_block = 8, kv = copy>}
func.func private @c() attributes {s = #varlen.cpu_schedule<lanes = 16, vectors = 1, rows = 8, panels = 1, kv_block = 128, kv = pairs>}

// Parts of 16 blocks, and of 8 for few queries, are not printed.
// CHECK: #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 3, kv_block = 64, kv = copy, part = 0, few_part = 0>
// CHECK: #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 3, kv_block = 64, kv = copy, few_part = 2>
// CHECK: #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 3, kv_block = 64, kv = copy>
func.func private @d() attributes {s = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 3, kv_block = 64, kv = copy, part = 0, few_part = 0>}
func.func private @e() attributes {s = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 3, kv_block = 64, kv = copy, few_part = 2>}
func.func private @f() attributes {s = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 3, kv_block = 64, kv = copy, part = 16, few_part = 8>}

// CHECK: func.func private @names(i32 {varlen.name = "q"}) -> (i32 {varlen.name = "out"})
func.func private @names(i32 {varlen.name = "q"}) -> (i32 {varlen.name = "out"})

// CHECK: #varlen.gpu_schedule<warps = 4, block_m = 128, kv_block = 64, stages = 2, ctas = 2>
func.func private @gpu() attributes {s = #varlen.gpu_schedule<warps = 4, block_m = 128, kv_block = 64, stages = 2, ctas = 2>}
// CHECK: #varlen.gpu_schedule<warps = 4, block_m = 128, kv_block = 64, stages = 3, ctas = 2, slack = 1>
func.func private @slack() attributes {s = #varlen.gpu_schedule<warps = 4, block_m = 128, kv_block = 64, stages = 3, ctas = 2, slack = 1>}
// CHECK: #varlen.gpu_schedule<warps = 4, block_m = 128, kv_block = 64, stages = 4, ctas = 2, slack = 2, lag = 1>
func.func private @lag() attributes {s = #varlen.gpu_schedule<warps = 4, block_m = 128, kv_block = 64, stages = 4, ctas = 2, slack = 2, lag = 1>}
// CHECK: #varlen.gpu_schedule<warps = 4, block_m = 128, kv_block = 64, stages = 2, ctas = 2, few_part = 8>
func.func private @few_part() attributes {s = #varlen.gpu_schedule<warps = 4, block_m = 128, kv_block = 64, stages = 2, ctas = 2, few_part = 8, slack = 0>}
// CHECK: #varlen.gpu_schedule<warps = 4, block_m = 128, kv_block = 64, stages = 2, ctas = 1, producers = 4>
func.func private @producers() attributes {s = #varlen.gpu_schedule<warps = 4, block_m = 128, kv_block = 64, stages = 2, ctas = 1, producers = 4, few_part = 0>}
// CHECK: #varlen.gpu_schedule<warps = 4, block_m = 128, kv_block = 64, stages = 2, ctas = 1, producers = 4, maps = 1>
func.func private @maps() attributes {s = #varlen.gpu_schedule<warps = 4, block_m = 128, kv_block = 64, stages = 2, ctas = 1, maps = 1, producers = 4>}
// CHECK: #varlen.gpu_schedule<warps = 4, block_m = 128, kv_block = 64, stages = 2, ctas = 2, rings = 2, rescale_threshold = 8>
func.func private @threshold() attributes {s = #varlen.gpu_schedule<warps = 4, block_m = 128, kv_block = 64, stages = 2, ctas = 2, rescale_threshold = 8, rings = 2>}
// CHECK: dk = <warps = 4, block_m = 64, kv_block = 64, stages = 2, ctas = 2, scores_first = 1>
func.func private @order() attributes {s = #varlen.gpu_grad_schedule<
  dq = <warps = 4, block_m = 64, kv_block = 64, stages = 2, ctas = 2>,
  dk = <warps = 4, block_m = 64, kv_block = 64, stages = 2, ctas = 2, scores_first = 1>>}
// CHECK: dk = <warps = 4, block_m = 64, kv_block = 64, stages = 2, ctas = 2, five_products = 1>
func.func private @five_products() attributes {s = #varlen.gpu_grad_schedule<
  dq = <warps = 4, block_m = 64, kv_block = 64, stages = 2, ctas = 2>,
  dk = <warps = 4, block_m = 64, kv_block = 64, stages = 2, ctas = 2, five_products = 1, producers = 0>>}
// CHECK: #varlen.gpu_schedule<warps = 8, block_m = 128, kv_block = 64, stages = 2, ctas = 1, rings = 2>
func.func private @rings() attributes {s = #varlen.gpu_schedule<warps = 8, block_m = 128, kv_block = 64, stages = 2, ctas = 1, rings = 2>}

// CHECK: #varlen.gpu_grad_schedule<dq = <warps = 4, block_m = 64, kv_block = 32, stages = 2, ctas = 2>, dk = <warps = 2, block_m = 16, kv_block = 32, stages = 2, ctas = 1>>
func.func private @gpu_grad() attributes {s = #varlen.gpu_grad_schedule<
    dq = <warps = 4, block_m = 64, kv_block = 32, stages = 2, ctas = 2>,
    dk = <warps = 2, block_m = 16, kv_block = 32, stages = 2, ctas = 1>>}
// CHECK: #varlen.gpu_grad_schedule<dq = <{{.*}}>, dk = <{{.*}}>, dv = <warps = 1, block_m = 64, kv_block = 32, stages = 3, ctas = 1>>
func.func private @gpu_grad_apart() attributes {s = #varlen.gpu_grad_schedule<
    dq = <warps = 4, block_m = 64, kv_block = 32, stages = 2, ctas = 2>,
    dk = <warps = 2, block_m = 16, kv_block = 32, stages = 2, ctas = 1>,
    dv = <warps = 1, block_m = 64, kv_block = 32, stages = 3, ctas = 1>>}
