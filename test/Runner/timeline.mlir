// A timeline has lanes for what goes on while warps do something else: groups of copies, and,
// for chips that have it, wgmma.

// RUN: varlen-run %s --device=sim:sm_80 --random=0 --lengths=70 --trace=%t.sm_80
// RUN: %python -m json.tool %t.sm_80 | FileCheck %s --check-prefixes=CHECK,COPIES --implicit-check-not=warpgroup
// RUN: varlen-run %s --device=sim:sm_90a --random=0 --lengths=70 --trace=%t.sm_90a
// RUN: %python -m json.tool %t.sm_90a | FileCheck %s --check-prefixes=CHECK,WGMMA

// CHECK: "name": "warp 0"
// WGMMA: "name": "wgmma of warpgroup 0"
// WGMMA: "dur": {{[1-9][0-9]+}},
// WGMMA-NEXT: "name": "wgmma
// COPIES: "name": "copies 1"

func.func @attention(%q: tensor<?x2x64xbf16>, %k: tensor<?x2x64xbf16>, %v: tensor<?x2x64xbf16>, %cu: tensor<?xi32>)
    -> tensor<?x2x64xbf16> {
  %out, %lse = varlen.attn %q, %k, %v, %cu, %cu
      : (tensor<?x2x64xbf16>, tensor<?x2x64xbf16>, tensor<?x2x64xbf16>, tensor<?xi32>, tensor<?xi32>)
      -> (tensor<?x2x64xbf16>, tensor<2x?xf32>)
  return %out : tensor<?x2x64xbf16>
}
