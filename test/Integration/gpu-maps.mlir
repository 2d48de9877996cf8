// Whole blocks are copied by TMA, of however many sequences; with fewer rows than a block has,
// none is.
// RUN: varlen-run %s --device=sim:sm_90a --random=0 --lengths=200,0,64,33 --sim-runs=9 | FileCheck %s --check-prefixes=CHECK,WHOLE
// RUN: varlen-run %s --device=sim:sm_90a --random=0 --lengths=31,7,0,30 --sim-runs=9 | FileCheck %s --check-prefixes=CHECK,TAILS
// RUN: varlen-run %s --device=sim:sm_90a --random=0 --lengths=0,0 | FileCheck %s --check-prefixes=TAILS

// CHECK: executor  9 runs, no hazard
// WHOLE: {{[1-9][0-9]+}} cp.async, {{[1-9][0-9]+}} bulk copies
// TAILS: cp.async, 0 bulk copies

#maps = #varlen.gpu_schedule<warps = 4, block_m = 64, kv_block = 32, stages = 3, ctas = 1, producers = 4, maps = 1>
func.func @attention(%q: tensor<?x2x64xbf16>, %k: tensor<?x2x64xbf16>, %v: tensor<?x2x64xbf16>, %cu: tensor<?xi32>)
    -> (tensor<?x2x64xbf16>, tensor<2x?xf32>) {
  %out, %lse = varlen.attn %q, %k, %v, %cu, %cu {varlen.schedule = #maps, mask = #varlen.mask<causal>}
      : (tensor<?x2x64xbf16>, tensor<?x2x64xbf16>, tensor<?x2x64xbf16>, tensor<?xi32>, tensor<?xi32>)
      -> (tensor<?x2x64xbf16>, tensor<2x?xf32>)
  return %out, %lse : tensor<?x2x64xbf16>, tensor<2x?xf32>
}
