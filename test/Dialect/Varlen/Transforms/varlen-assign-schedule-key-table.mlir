// RUN: varlen-opt %s --varlen-assign-schedule=chip=sm_80 --split-input-file --verify-diagnostics -o /dev/null

// Kernels look at the numbers of the keys of a block: there is nothing to remark.
func.func @forward(%q: memref<?x8x64xbf16>, %cu: memref<?xi32>, %flags: memref<8x?xf32>,
                   %out: memref<?x8x64xbf16>, %lse: memref<8x?xf32>) {
  varlen.attn %q, %q, %q, %cu, %cu outs(%out, %lse) captures(%flags)
      : (memref<?x8x64xbf16>, memref<?x8x64xbf16>, memref<?x8x64xbf16>, memref<?xi32>,
         memref<?xi32>, memref<?x8x64xbf16>, memref<8x?xf32>, memref<8x?xf32>) -> ()
      score (%s: f32, %i: i32, %j: i32, %table: !varlen.table<f32, keys>) {
        %flag = varlen.lookup %table[%j] : !varlen.table<f32, keys>
        %no = arith.constant 0.0 : f32
        %visible = arith.cmpf une, %flag, %no : f32
        varlen.yield %s, %visible : f32, i1
      }
  return
}

// -----

// Schedules of gradients do not in tiles of keys.
func.func @gradients(%q: memref<?x8x64xbf16>, %cu: memref<?xi32>, %flags: memref<8x?xf32>,
                     %lse: memref<8x?xf32>, %dq: memref<?x8x64xbf16>, %dk: memref<?x8x64xbf16>,
                     %dv: memref<?x8x64xbf16>) {
  // expected-remark @below {{intervals know nothing of 'varlen.lookup', which says whether a key is visible}}
  varlen.attn_grad %q, %q, %q, %q, %q, %lse, %cu, %cu outs(%dq, %dk, %dv) captures(%flags)
      : (memref<?x8x64xbf16>, memref<?x8x64xbf16>, memref<?x8x64xbf16>, memref<?x8x64xbf16>,
         memref<?x8x64xbf16>, memref<8x?xf32>, memref<?xi32>, memref<?xi32>,
         memref<?x8x64xbf16>, memref<?x8x64xbf16>, memref<?x8x64xbf16>, memref<8x?xf32>) -> ()
      score (%s: f32, %i: i32, %j: i32, %table: !varlen.table<f32, keys>) {
        %flag = varlen.lookup %table[%j] : !varlen.table<f32, keys>
        %no = arith.constant 0.0 : f32
        %visible = arith.cmpf une, %flag, %no : f32
        varlen.yield %s, %visible : f32, i1
      }
  return
}

// -----

// By another index anything may be read.
func.func @index(%q: memref<?x8x64xbf16>, %cu: memref<?xi32>, %flags: memref<8x?xf32>,
                 %out: memref<?x8x64xbf16>, %lse: memref<8x?xf32>) {
  // expected-remark @below {{intervals know nothing of 'varlen.lookup', which says whether a key is visible}}
  varlen.attn %q, %q, %q, %cu, %cu outs(%out, %lse) captures(%flags)
      : (memref<?x8x64xbf16>, memref<?x8x64xbf16>, memref<?x8x64xbf16>, memref<?xi32>,
         memref<?xi32>, memref<?x8x64xbf16>, memref<8x?xf32>, memref<8x?xf32>) -> ()
      score (%s: f32, %i: i32, %j: i32, %table: !varlen.table<f32, keys>) {
        %two = arith.constant 2 : i32
        %half = arith.divsi %j, %two : i32
        %flag = varlen.lookup %table[%half] : !varlen.table<f32, keys>
        %no = arith.constant 0.0 : f32
        %visible = arith.cmpf une, %flag, %no : f32
        varlen.yield %s, %visible : f32, i1
      }
  return
}
