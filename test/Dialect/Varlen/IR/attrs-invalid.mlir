// RUN: varlen-opt %s -split-input-file -verify-diagnostics

// expected-error @below {{expected full, causal or window = (left, right), got diagonal}}
module attributes {m = #varlen.mask<diagonal>} {}

// -----

// expected-error @below {{expected bottom_right or top_left, got bottom_left}}
module attributes {m = #varlen.mask<causal, bottom_left>} {}

// -----

// expected-error @below {{expected window bounds >= -1 (-1 is open), got (0, -5)}}
module attributes {m = #varlen.mask<window = (0, -5)>} {}

// -----

// expected-error @below {{expected a chunk of 1 to 268435456 keys, got 0}}
module attributes {m = #varlen.chunk_mask<0>} {}

// -----

// expected-error @below {{expected a chunk of 1 to 268435456 keys, got 268435457}}
module attributes {m = #varlen.chunk_mask<268435457>} {}

// -----

// A window has two bounds.
// expected-error @below {{expected ','}}
module attributes {m = #varlen.mask<window = (512)>} {}

// -----

// expected-error @below {{expected lanes to be a power of two from 1 to 64, got 0}}
module attributes {s = #varlen.cpu_schedule<lanes = 0, vectors = 2, rows = 4, panels = 3, kv_block = 64, kv = copy>} {}

// -----

// expected-error @below {{expected kv_block from 8 to 65536, got -64}}
module attributes {s = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 3, kv_block = -64, kv = copy>} {}

// -----

// expected-error @below {{expected rows to be 1, 2, 4 or 8, got 6}}
module attributes {s = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 6, panels = 3, kv_block = 64, kv = copy>} {}

// -----

// expected-error @below {{expected kv_block to be a multiple of 8, got 60}}
module attributes {s = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 3, kv_block = 60, kv = copy>} {}

// -----

// expected-error @below {{expected part from 0 to 65536, got 65537}}
module attributes {s = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 3, kv_block = 64, kv = copy, part = 65537>} {}

// -----

// expected-error @below {{expected few_part from 0 to 65536, got -1}}
module attributes {s = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 3, kv_block = 64, kv = copy, few_part = -1>} {}

// -----

// expected-error @below {{expected part and few_part to be 0 both or neither, got 0 and 8}}
module attributes {s = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 3, kv_block = 64, kv = copy, part = 0>} {}

// -----

// expected-error @below {{expected one of [copy, pairs] for the way a micro-kernel reads the keys and values of a kv block, got: paged}}
// expected-error @below {{failed to parse Varlen_CPUScheduleAttr parameter 'kv'}}
module attributes {s = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 3, kv_block = 64, kv = paged>} {}

// -----

// expected-error @below {{expected "varlen.schedule" to be a #varlen.cpu_schedule, #varlen.gpu_schedule or #varlen.gpu_grad_schedule, got "fast"}}
module attributes {varlen.schedule = "fast"} {}

// -----

// expected-error @below {{expected varlen.name to be a non-empty string, got 3 : i32}}
func.func private @argument(i32 {varlen.name = 3 : i32})

// -----

// expected-error @below {{expected varlen.name to be a non-empty string, got ""}}
func.func private @result() -> (i32 {varlen.name = ""})

// -----

// expected-error @below {{expected warps from 1 to 32, got 33}}
module attributes {s = #varlen.gpu_schedule<warps = 33, block_m = 528, kv_block = 64, stages = 2, ctas = 2>} {}

// -----

// expected-error @below {{expected block_m to be a multiple of 16, got 72}}
module attributes {s = #varlen.gpu_schedule<warps = 4, block_m = 72, kv_block = 64, stages = 2, ctas = 2>} {}

// -----

// expected-error @below {{expected kv_block to be a multiple of 16, got 24}}
module attributes {s = #varlen.gpu_schedule<warps = 4, block_m = 64, kv_block = 24, stages = 2, ctas = 2>} {}

// -----

// expected-error @below {{expected stages from 2 to 256, got 1}}
module attributes {s = #varlen.gpu_schedule<warps = 4, block_m = 64, kv_block = 32, stages = 1, ctas = 2>} {}

// -----

// expected-error @below {{expected rescale_threshold from 0 to 8, got 9}}
module attributes {s = #varlen.gpu_schedule<warps = 4, block_m = 64, kv_block = 32, stages = 3, ctas = 2, rescale_threshold = 9>} {}

// -----

// expected-error @below {{expected scores_first from 0 to 1, got 2}}
module attributes {s = #varlen.gpu_schedule<warps = 4, block_m = 64, kv_block = 32, stages = 3, ctas = 2, scores_first = 2>} {}

// -----

// expected-error @below {{expected few_part from 0 to 65536, got -1}}
module attributes {s = #varlen.gpu_schedule<warps = 4, block_m = 64, kv_block = 32, stages = 3, ctas = 2, few_part = -1>} {}

// -----

// expected-error @below {{expected producers from 0 to 20, got 24}}
module attributes {s = #varlen.gpu_schedule<warps = 12, block_m = 192, kv_block = 32, stages = 3, ctas = 1, producers = 24>} {}

// -----

// expected-error @below {{expected maps from 0 to 1, got 2}}
module attributes {s = #varlen.gpu_schedule<warps = 4, block_m = 64, kv_block = 32, stages = 3, ctas = 1, producers = 4, maps = 2>} {}

// -----

// expected-error @below {{expected maps with producers only, which copy by them}}
module attributes {s = #varlen.gpu_schedule<warps = 4, block_m = 64, kv_block = 32, stages = 3, ctas = 1, maps = 1>} {}

// -----

// expected-error @below {{expected a few_part of the forward only, got #varlen.gpu_schedule<warps = 4, block_m = 64, kv_block = 64, stages = 2, ctas = 2, few_part = 8>}}
module attributes {s = #varlen.gpu_grad_schedule<
  dq = <warps = 4, block_m = 64, kv_block = 64, stages = 2, ctas = 2>,
  dk = <warps = 4, block_m = 64, kv_block = 64, stages = 2, ctas = 2, few_part = 8>>} {}

// -----

// expected-error @below {{expected a rescale_threshold of the forward only, got #varlen.gpu_schedule<warps = 4, block_m = 64, kv_block = 64, stages = 2, ctas = 2, rescale_threshold = 8>}}
module attributes {s = #varlen.gpu_grad_schedule<
  dq = <warps = 4, block_m = 64, kv_block = 64, stages = 2, ctas = 2, rescale_threshold = 8>,
  dk = <warps = 4, block_m = 64, kv_block = 64, stages = 2, ctas = 2>>} {}

// -----

// expected-error @below {{expected slack from 0 to 1, got 2}}
module attributes {s = #varlen.gpu_schedule<warps = 4, block_m = 64, kv_block = 32, stages = 3, ctas = 2, slack = 2>} {}

// -----

// expected-error @below {{expected lag from 0 to 1, got 2}}
module attributes {s = #varlen.gpu_schedule<warps = 4, block_m = 64, kv_block = 32, stages = 4, ctas = 2, slack = 2, lag = 2>} {}

// -----

// expected-error @below {{expected lag from 0 to 0, got 1}}
module attributes {s = #varlen.gpu_schedule<warps = 4, block_m = 64, kv_block = 32, stages = 3, ctas = 2, slack = 0, lag = 1>} {}

// -----

// expected-error @below {{expected rings from 1 to 2, got 3}}
module attributes {s = #varlen.gpu_schedule<warps = 4, block_m = 64, kv_block = 32, stages = 2, ctas = 2, rings = 3>} {}

// -----

// expected-error @below {{expected rings from 1 to 1, got 2}}
module attributes {s = #varlen.gpu_schedule<warps = 4, block_m = 64, kv_block = 32, stages = 3, ctas = 2, slack = 1, lag = 1, rings = 2>} {}

// -----

// expected-error @below {{expected ctas from 1 to 32, got 0}}
module attributes {s = #varlen.gpu_schedule<warps = 4, block_m = 64, kv_block = 32, stages = 2, ctas = 0>} {}

// -----

// expected-error @below {{expected block_m of dq to be a multiple of 16 * warps = 64, got 32}}
module attributes {s = #varlen.gpu_grad_schedule<
  dq = <warps = 4, block_m = 32, kv_block = 64, stages = 2, ctas = 1>,
  dk = <warps = 4, block_m = 32, kv_block = 64, stages = 2, ctas = 1>>} {}

// -----

// expected-error @below {{expected kv_block of dk to be a multiple of 16 * warps = 64, got 32}}
module attributes {s = #varlen.gpu_grad_schedule<
  dq = <warps = 4, block_m = 64, kv_block = 64, stages = 2, ctas = 1>,
  dk = <warps = 4, block_m = 64, kv_block = 32, stages = 2, ctas = 1>>} {}

// -----

// expected-error @below {{expected kv_block of dv to be a multiple of 16 * warps = 128, got 64}}
module attributes {s = #varlen.gpu_grad_schedule<
  dq = <warps = 4, block_m = 64, kv_block = 64, stages = 2, ctas = 1>,
  dk = <warps = 4, block_m = 64, kv_block = 64, stages = 2, ctas = 1>,
  dv = <warps = 8, block_m = 64, kv_block = 64, stages = 2, ctas = 1>>} {}

// -----

// expected-error @below {{expected dk and dv to have tiles of the same kv_block, got 64 and 128}}
module attributes {s = #varlen.gpu_grad_schedule<
  dq = <warps = 4, block_m = 64, kv_block = 64, stages = 2, ctas = 1>,
  dk = <warps = 4, block_m = 64, kv_block = 64, stages = 2, ctas = 1>,
  dv = <warps = 4, block_m = 64, kv_block = 128, stages = 2, ctas = 1>>} {}

// -----

// Halves of a vector are exchanged.
// expected-error @below {{expected lanes to be a power of two from 1 to 64, got 3}}
module attributes {s = #varlen.cpu_schedule<lanes = 3, vectors = 2, rows = 4, panels = 3, kv_block = 64, kv = copy>} {}

// -----

// expected-error @below {{expected lanes to be a power of two from 1 to 64, got 2147483648}}
module attributes {s = #varlen.cpu_schedule<lanes = 2147483648, vectors = 2, rows = 4, panels = 3, kv_block = 64, kv = copy>} {}

// -----

// expected-error @below {{expected vectors from 1 to 32, got 33}}
module attributes {s = #varlen.cpu_schedule<lanes = 8, vectors = 33, rows = 4, panels = 3, kv_block = 64, kv = copy>} {}

// -----

// The product of the three does not overflow.
// expected-error @below {{expected panels from 1 to 4096, got 2305843009213693952}}
module attributes {s = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 2305843009213693952, kv_block = 64, kv = copy>} {}

// -----

// expected-error @below {{expected kv_block from 8 to 65536, got 2305843009213693952}}
module attributes {s = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 3, kv_block = 2305843009213693952, kv = copy>} {}

// -----

// expected-error @below {{expected kv_block from 8 to 65536, got 4611686018427387904}}
module attributes {s = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 3, kv_block = 4611686018427387904, kv = copy>} {}

// -----

// expected-error @below {{expected rows to be 1, 2, 4 or 8, got -4}}
module attributes {s = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = -4, panels = 3, kv_block = 64, kv = copy>} {}

// -----

// expected-error @below {{expected block_m from 16 to 65536, got 4611686018427387904}}
module attributes {s = #varlen.gpu_schedule<warps = 4, block_m = 4611686018427387904, kv_block = 64, stages = 2, ctas = 2>} {}

// -----

// expected-error @below {{expected kv_block from 16 to 65536, got 65552}}
module attributes {s = #varlen.gpu_schedule<warps = 4, block_m = 64, kv_block = 65552, stages = 2, ctas = 2>} {}

// -----

// expected-error @below {{expected block_m * kv_block to be at most 65536, as a multiprocessor has registers for scores, got 131072}}
module attributes {s = #varlen.gpu_schedule<warps = 4, block_m = 256, kv_block = 512, stages = 2, ctas = 2>} {}

// -----

// expected-error @below {{expected stages from 2 to 256, got 257}}
module attributes {s = #varlen.gpu_schedule<warps = 4, block_m = 64, kv_block = 64, stages = 257, ctas = 2>} {}

// -----

// expected-error @below {{expected ctas from 1 to 32, got 33}}
module attributes {s = #varlen.gpu_schedule<warps = 4, block_m = 64, kv_block = 64, stages = 2, ctas = 33>} {}

// -----

func.func @degree(%x: f32) -> f32 {
  // expected-error @below {{expected varlen.exp2_degree to be an integer from 3 to 6, or 11 for f64, got 2 : i64}}
  %y = math.exp2 %x {varlen.exp2_degree = 2 : i64} : f32
  return %y : f32
}

// -----

func.func @no_integer(%x: f32) -> f32 {
  // expected-error @below {{expected varlen.exp2_degree to be an integer from 3 to 6, or 11 for f64, got "high"}}
  %y = math.exp2 %x {varlen.exp2_degree = "high"} : f32
  return %y : f32
}

// -----

func.func @no_exponential(%x: f32) -> f32 {
  // expected-error @below {{has no exponentials that varlen.exp2_degree could be for}}
  %y = math.exp %x {varlen.exp2_degree = 3 : i64} : f32
  return %y : f32
}

// -----

func.func @add_last_value(%x: f32) -> f32 {
  // expected-error @below {{expected varlen.add_last without a value, got 3 : i64}}
  %y = math.exp %x {varlen.add_last = 3 : i64} : f32
  return %y : f32
}

// -----

func.func @no_contract(%x: f32) -> f32 {
  // expected-error @below {{is no linalg.contract that varlen.in_order could be for}}
  %y = math.exp %x {varlen.in_order} : f32
  return %y : f32
}

// -----

func.func @schedule_carrier(%x: f32) -> f32 {
  // expected-error @below {{has no tiles that varlen.schedule could be for: expected an attention, varlen.for_tiles, scf.forall or scf.if}}
  %y = math.exp %x {varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 1, kv_block = 32, kv = copy>} : f32
  return %y : f32
}

// -----

func.func @schedule_of_loop(%n: index) {
  // expected-error @below {{expected varlen.schedule of a loop on a CPU to be a #varlen.cpu_schedule, got #varlen.gpu_schedule<}}
  scf.forall (%i) in (%n) {
  } {varlen.schedule = #varlen.gpu_schedule<warps = 4, block_m = 64, kv_block = 32, stages = 2, ctas = 1>}
  return
}

// -----

func.func @schedule_of_branch(%c: i1) {
  // expected-error @below {{expected varlen.schedule of a loop on a CPU to be a #varlen.cpu_schedule, got #varlen.gpu_schedule<}}
  scf.if %c {
  } {varlen.schedule = #varlen.gpu_schedule<warps = 4, block_m = 64, kv_block = 32, stages = 2, ctas = 1>}
  return
}

// -----

// expected-error @below {{expected varlen.memory_depends_on to be the name of an operation, a non-empty string, got 1 : i64}}
func.func @memory_value() attributes {varlen.memory_depends_on = 1 : i64} {
  return
}

// -----

// expected-error @below {{expected varlen.memory_depends_on to be the name of an operation, a non-empty string, got ""}}
func.func @memory_name() attributes {varlen.memory_depends_on = ""} {
  return
}

// -----

func.func @memory_carrier(%x: f32) -> f32 {
  // expected-error @below {{is no function that varlen.memory_depends_on could be for}}
  %y = math.exp %x {varlen.memory_depends_on = "memref.alloc"} : f32
  return %y : f32
}

// -----

// expected-error @below {{expected five_products from 0 to 1, got 2}}
module attributes {s = #varlen.gpu_schedule<warps = 4, block_m = 64, kv_block = 64, stages = 2, ctas = 2, five_products = 2>} {}

// -----

// expected-error @below {{expected five_products of dk only, got #varlen.gpu_schedule<warps = 4, block_m = 64, kv_block = 64, stages = 2, ctas = 2, five_products = 1>}}
module attributes {s = #varlen.gpu_grad_schedule<
  dq = <warps = 4, block_m = 64, kv_block = 64, stages = 2, ctas = 2, five_products = 1>,
  dk = <warps = 4, block_m = 64, kv_block = 64, stages = 2, ctas = 2>>} {}

// -----

// expected-error @below {{expected five_products of dk only, got #varlen.gpu_schedule<warps = 4, block_m = 64, kv_block = 64, stages = 2, ctas = 2, five_products = 1>}}
module attributes {s = #varlen.gpu_grad_schedule<
  dq = <warps = 4, block_m = 64, kv_block = 64, stages = 2, ctas = 2>,
  dk = <warps = 4, block_m = 64, kv_block = 64, stages = 2, ctas = 2>,
  dv = <warps = 4, block_m = 64, kv_block = 64, stages = 2, ctas = 2, five_products = 1>>} {}

// -----

// expected-error @below {{expected dk and dv in one kernel with five_products}}
module attributes {s = #varlen.gpu_grad_schedule<
  dq = <warps = 4, block_m = 64, kv_block = 64, stages = 2, ctas = 2>,
  dk = <warps = 4, block_m = 64, kv_block = 64, stages = 2, ctas = 2, five_products = 1>,
  dv = <warps = 4, block_m = 64, kv_block = 64, stages = 2, ctas = 2>>} {}

// -----

// expected-error @below {{expected no slack, one ring and no producers with five_products, got #varlen.gpu_schedule<warps = 4, block_m = 64, kv_block = 64, stages = 2, ctas = 2, rings = 2, five_products = 1>}}
module attributes {s = #varlen.gpu_grad_schedule<
  dq = <warps = 4, block_m = 64, kv_block = 64, stages = 2, ctas = 2>,
  dk = <warps = 4, block_m = 64, kv_block = 64, stages = 2, ctas = 2, rings = 2, five_products = 1>>} {}
