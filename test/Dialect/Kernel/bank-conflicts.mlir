// Kernels of several head sizes in the executor: no hazard, and no bank conflict
// where matrices are read. Odd sizes, heads in groups, rows in two slabs.

// RUN: varlen-run %s --entry=wide --random=1 --lengths=70,0,5 --device=sim:sm_80 | FileCheck %s
// RUN: varlen-run %s --entry=grouped --random=1 --lengths=70,0,5 --device=sim:sm_80 | FileCheck %s
// RUN: varlen-run %s --entry=odd --random=1 --lengths=70,0,5 --device=sim:sm_80 | FileCheck %s
// RUN: varlen-run %s --entry=f32 --random=1 --lengths=70,0,5 --device=sim:sm_80 | FileCheck %s

// CHECK: executor {{.*}}no hazard; {{[1-9][0-9]*}} mma,
// CHECK: banks 0 conflicts in {{[1-9][0-9]*}} phases of ldmatrix

func.func @wide(%q: tensor<?x2x64xbf16>, %k: tensor<?x2x64xbf16>, %v: tensor<?x2x128xbf16>, %cu: tensor<?xi32>)
    -> (tensor<?x2x128xbf16>, tensor<2x?xf32>) {
  %out, %lse = varlen.attn %q, %k, %v, %cu, %cu {mask = #varlen.mask<causal>}
      : (tensor<?x2x64xbf16>, tensor<?x2x64xbf16>, tensor<?x2x128xbf16>, tensor<?xi32>, tensor<?xi32>)
      -> (tensor<?x2x128xbf16>, tensor<2x?xf32>)
  return %out, %lse : tensor<?x2x128xbf16>, tensor<2x?xf32>
}

func.func @grouped(%q: tensor<?x4x96xf16>, %k: tensor<?x2x96xf16>, %v: tensor<?x2x40xf16>, %cu: tensor<?xi32>)
    -> (tensor<?x4x40xf16>, tensor<4x?xf32>) {
  %out, %lse = varlen.attn %q, %k, %v, %cu, %cu {mask = #varlen.mask<causal>}
      : (tensor<?x4x96xf16>, tensor<?x2x96xf16>, tensor<?x2x40xf16>, tensor<?xi32>, tensor<?xi32>)
      -> (tensor<?x4x40xf16>, tensor<4x?xf32>)
  return %out, %lse : tensor<?x4x40xf16>, tensor<4x?xf32>
}

func.func @odd(%q: tensor<?x1x33xbf16>, %k: tensor<?x1x33xbf16>, %v: tensor<?x1x11xbf16>, %cu: tensor<?xi32>)
    -> (tensor<?x1x11xbf16>, tensor<1x?xf32>) {
  %out, %lse = varlen.attn %q, %k, %v, %cu, %cu {mask = #varlen.mask<causal>}
      : (tensor<?x1x33xbf16>, tensor<?x1x33xbf16>, tensor<?x1x11xbf16>, tensor<?xi32>, tensor<?xi32>)
      -> (tensor<?x1x11xbf16>, tensor<1x?xf32>)
  return %out, %lse : tensor<?x1x11xbf16>, tensor<1x?xf32>
}

func.func @f32(%q: tensor<?x2x40xf32>, %k: tensor<?x1x40xf32>, %v: tensor<?x1x24xf32>, %cu: tensor<?xi32>)
    -> (tensor<?x2x24xf32>, tensor<2x?xf32>) {
  %out, %lse = varlen.attn %q, %k, %v, %cu, %cu {mask = #varlen.mask<causal>}
      : (tensor<?x2x40xf32>, tensor<?x1x40xf32>, tensor<?x1x24xf32>, tensor<?xi32>, tensor<?xi32>)
      -> (tensor<?x2x24xf32>, tensor<2x?xf32>)
  return %out, %lse : tensor<?x2x24xf32>, tensor<2x?xf32>
}
