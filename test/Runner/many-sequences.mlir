// Empty sequences cost a GPU next to nothing: the list of its tiles is made in
// O(N log N) steps. In N^2 steps, this would take the executor several minutes.
// RUN: varlen-run %s --device=sim:sm_80 --random=0 --lengths=5,0,3 --cu-pad=100001 --device-checks --entry=forward | FileCheck %s
// RUN: varlen-run %s --device=sim:sm_80 --random=0 --lengths=5,0,3 --cu-pad=30001 --device-checks --entry=backward | FileCheck %s
// CHECK: executor  1 run, no hazard; {{[1-9][0-9]*}} mma

func.func @forward(%q: tensor<?x1x16xbf16>, %cu: tensor<?xi32>) -> tensor<?x1x16xbf16> {
  %out, %lse = varlen.attn %q, %q, %q, %cu, %cu {mask = #varlen.mask<causal>}
      : (tensor<?x1x16xbf16>, tensor<?x1x16xbf16>, tensor<?x1x16xbf16>, tensor<?xi32>, tensor<?xi32>)
      -> (tensor<?x1x16xbf16>, tensor<1x?xf32>)
  return %out : tensor<?x1x16xbf16>
}

func.func @backward(%dout: tensor<?x1x16xbf16>, %q: tensor<?x1x16xbf16>, %out: tensor<?x1x16xbf16>,
                    %lse: tensor<1x?xf32>, %cu: tensor<?xi32>) -> tensor<?x1x16xbf16> {
  %dq, %dk, %dv = varlen.attn_grad %dout, %q, %q, %q, %out, %lse, %cu, %cu
      : (tensor<?x1x16xbf16>, tensor<?x1x16xbf16>, tensor<?x1x16xbf16>, tensor<?x1x16xbf16>,
         tensor<?x1x16xbf16>, tensor<1x?xf32>, tensor<?xi32>, tensor<?xi32>)
      -> (tensor<?x1x16xbf16>, tensor<?x1x16xbf16>, tensor<?x1x16xbf16>)
  return %dq : tensor<?x1x16xbf16>
}
