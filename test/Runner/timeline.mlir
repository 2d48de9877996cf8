// A timeline has lanes for what goes on while warps do something else: groups of copies, and,
// for chips that have it, wgmma.

// RUN: varlen-run %s --device=sim:sm_80 --random=0 --lengths=70 --trace=%t.sm_80
// RUN: %python -m json.tool %t.sm_80 | FileCheck %s --check-prefixes=CHECK,COPIES --implicit-check-not=warpgroup
// RUN: varlen-run %s --device=sim:sm_90a --random=0 --lengths=70 --trace=%t.sm_90a
// RUN: %python -m json.tool %t.sm_90a | FileCheck %s --check-prefixes=CHECK,WGMMA

// As a picture, which is well-formed XML.
// RUN: varlen-run %s --device=sim:sm_80 --random=0 --lengths=70 --trace=%t.svg
// RUN: %python -c "import sys, xml.dom.minidom as dom; dom.parse(sys.argv[1])" %t.svg
// RUN: FileCheck %s --check-prefix=SVG < %t.svg

// SVG: <svg xmlns="http://www.w3.org/2000/svg" width="{{[1-9][0-9]+}}" height="{{[1-9][0-9]+}}"
// SVG: >CTA 0,0,0 of attention_attn</text>
// SVG: >warp 0</text>
// SVG: >copies 1</text>
// SVG: fill="#1f5fa8"><title>mma
// SVG: </svg>

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
