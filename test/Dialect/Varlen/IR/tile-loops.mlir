// RUN: varlen-opt %s | varlen-opt | FileCheck %s
// RUN: varlen-opt %s -mlir-print-op-generic | varlen-opt | FileCheck %s
// RUN: varlen-opt %s -emit-bytecode | varlen-opt | FileCheck %s

// CHECK-LABEL: @batch
func.func @batch(%cu: memref<?xi32>, %used: memref<?xi32>, %n: index) -> !varlen.batch {
  // CHECK: varlen.batch %{{.*}}, %{{.*}} rows(%{{.*}}, %{{.*}}) heads(%{{.*}}, %{{.*}}) mask <full> : memref<?xi32>, memref<?xi32>
  %0 = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  // CHECK: varlen.batch {{.*}} seqused_q(%{{.*}} : memref<?xi32>) seqused_k(%{{.*}} : memref<?xi32>) q_offset(%{{.*}} : memref<?xi32>) rows
  // CHECK-SAME: fault(%{{.*}}, %{{.*}}, %{{.*}}) mask <causal>
  %batch = varlen.batch %cu, %cu seqused_q(%used : memref<?xi32>) seqused_k(%used : memref<?xi32>)
      q_offset(%used : memref<?xi32>) rows(%n, %n) heads(%n, %n) fault(%n, %n, %n)
      mask <causal> : memref<?xi32>, memref<?xi32>
  // A mask is any attribute of that interface; only windows have a short form.
  // CHECK: varlen.batch {{.*}} mask (#varlen.chunk_mask<64, top_left>) :
  %chunks = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask (#varlen.chunk_mask<64, top_left>)
      : memref<?xi32>, memref<?xi32>
  return %batch : !varlen.batch
}

// CHECK-LABEL: @out
func.func @out(%batch: !varlen.batch, %Q: memref<?x16x40xbf16>, %K: memref<?x4x40xbf16>,
               %V: memref<?x4x24xbf16>, %Sink: memref<16xf32>, %Out: memref<?x16x24xbf16>,
               %Lse: memref<16x?xf32>, %acc0: tensor<128x32xf32>, %m0: tensor<128x1xf32>) {
  // CHECK: varlen.for_tiles "out" %[[T:.*]] of queries(128) in %{{.*}} {
  varlen.for_tiles "out" %t of queries(128) in %batch {
    // CHECK: %[[Q:.*]] = varlen.read %{{.*}} at %[[T]] : memref<?x16x40xbf16>, <queries(128)> -> tensor<128x48xbf16>
    %q = varlen.read %Q at %t : memref<?x16x40xbf16>, !varlen.tile<queries(128)> -> tensor<128x48xbf16>
    // CHECK: varlen.read %{{.*}} at %[[T]] otherwise (-inf) : memref<16xf32>,
    %sink = varlen.read %Sink at %t otherwise (-inf) : memref<16xf32>, !varlen.tile<queries(128)> -> tensor<128x1xf32>
    // CHECK: %[[S:.*]]:3 = varlen.for_blocks %[[B:.*]] of keys(64) meeting %[[T]] : !varlen.tile<queries(128)>
    // CHECK-SAME: iter_args(%{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}) -> (tensor<128x32xf32>, tensor<128x1xf32>, tensor<128x1xf32>) {
    %s:3 = varlen.for_blocks %b of keys(64) meeting %t : !varlen.tile<queries(128)>
        iter_args(%acc = %acc0, %m = %m0, %l = %m0) -> (tensor<128x32xf32>, tensor<128x1xf32>, tensor<128x1xf32>) {
      %k = varlen.read %K at %b : memref<?x4x40xbf16>, !varlen.tile<keys(64)> -> tensor<64x48xbf16>
      %v = varlen.read %V at %b : memref<?x4x24xbf16>, !varlen.tile<keys(64)> -> tensor<64x32xbf16>
      // CHECK: varlen.online_attn qk at(%[[T]], %[[B]] : !varlen.tile<queries(128)>, !varlen.tile<keys(64)>) ins(%[[Q]],
      %r:3 = varlen.online_attn qk at(%t, %b : !varlen.tile<queries(128)>, !varlen.tile<keys(64)>)
          ins(%q, %k, %v : tensor<128x48xbf16>, tensor<64x48xbf16>, tensor<64x32xbf16>)
          outs(%acc, %m, %l : tensor<128x32xf32>, tensor<128x1xf32>, tensor<128x1xf32>) scale 0.125
      // CHECK: varlen.yield
      varlen.yield %r#0, %r#1, %r#2 : tensor<128x32xf32>, tensor<128x1xf32>, tensor<128x1xf32>
    }
    // CHECK: varlen.online_finish qk %[[S]]#0, %[[S]]#1, %[[S]]#2 sink(%{{.*}} : tensor<128x1xf32>) scale 1.250000e-01 rounded : tensor<128x32xf32>, tensor<128x1xf32>
    %out, %lse = varlen.online_finish qk %s#0, %s#1, %s#2 sink(%sink : tensor<128x1xf32>) scale 0.125 rounded
        : tensor<128x32xf32>, tensor<128x1xf32>
    // CHECK: varlen.write %{{.*}} to %{{.*}} at %[[T]] otherwise (0.000000e+00) : tensor<128x32xf32> -> memref<?x16x24xbf16>, <queries(128)>
    varlen.write %out to %Out at %t otherwise (0.0) : tensor<128x32xf32> -> memref<?x16x24xbf16>, !varlen.tile<queries(128)>
    varlen.write %lse to %Lse at %t otherwise (-inf) : tensor<128x1xf32> -> memref<16x?xf32>, !varlen.tile<queries(128)>
    // CHECK-NOT: varlen.yield
  }
  return
}

// Any state, of any tile.
// CHECK-LABEL: @parts
func.func @parts(%batch: !varlen.batch, %sum0: tensor<4x4xf32>) {
  varlen.for_tiles "a" %t of keys(64) in %batch {
    // CHECK: varlen.for_parts %[[P:.*]] of %{{.*}} blocks(4) few(2) : !varlen.tile<keys(64)> -> tensor<4x4xf32> attributes {a} {
    %s = varlen.for_parts %p of %t blocks(4) few(2) : !varlen.tile<keys(64)> -> tensor<4x4xf32> attributes {a} {
      // CHECK: varlen.for_blocks %{{.*}} of queries(16) by_head meeting %[[P]] : !varlen.tile<keys(64)>
      %r = varlen.for_blocks %b of queries(16) by_head meeting %p : !varlen.tile<keys(64)>
          iter_args(%sum = %sum0) -> (tensor<4x4xf32>) {
        varlen.yield %sum : tensor<4x4xf32>
      }
      // CHECK: varlen.yield %{{.*}} : tensor<4x4xf32>
      // CHECK: } merge(%[[A:.*]] with %[[B:.*]]) {
      varlen.yield %r : tensor<4x4xf32>
    } merge(%a with %b) {
      // CHECK: arith.addf %[[A]], %[[B]]
      %both = arith.addf %a, %b : tensor<4x4xf32>
      varlen.yield %both : tensor<4x4xf32>
    }
  }
  return
}

// Blocks of queries are of one head of the group each.
// CHECK-LABEL: @gradients
func.func @gradients(%batch: !varlen.batch, %Q: memref<?x16x64xf32>, %K: memref<?x4x64xf32>,
                     %dK: memref<?x4x64xf32>, %zero: tensor<32x64xf32>) {
  // CHECK: %[[ROWS:.*]] = varlen.rows in %{{.*}} : <2 x f32>
  %rows = varlen.rows in %batch : !varlen.rows<2 x f32>
  varlen.for_tiles "dk" %t of keys(32) in %batch attributes {a} {
    %k = varlen.read %K at %t : memref<?x4x64xf32>, !varlen.tile<keys(32)> -> tensor<32x64xf32>
    // CHECK: varlen.for_blocks %{{.*}} of queries(64) by_head meeting
    %sums = varlen.for_blocks %b of queries(64) by_head meeting %t : !varlen.tile<keys(32)>
        iter_args(%sum = %zero) -> (tensor<32x64xf32>) {
      %q = varlen.read %Q at %b : memref<?x16x64xf32>, !varlen.tile<queries(64) by_head> -> tensor<64x64xf32>
      // CHECK: varlen.read %[[ROWS]] at %{{.*}} otherwise (inf, 0.000000e+00) : !varlen.rows<2 x f32>, <queries(64) by_head> -> tensor<1x64xf32>, tensor<1x64xf32>
      %lse, %delta = varlen.read %rows at %b otherwise (inf, 0.0)
          : !varlen.rows<2 x f32>, !varlen.tile<queries(64) by_head> -> tensor<1x64xf32>, tensor<1x64xf32>
      // CHECK: varlen.online_attn_grad kq natural at(
      %dk = varlen.online_attn_grad kq natural at(%b, %t : !varlen.tile<queries(64) by_head>, !varlen.tile<keys(32)>)
          ins(%q, %k, %k, %q, %lse, %delta : tensor<64x64xf32>, tensor<32x64xf32>, tensor<32x64xf32>,
              tensor<64x64xf32>, tensor<1x64xf32>, tensor<1x64xf32>) dk(%sum : tensor<32x64xf32>) scale 0.125
      varlen.yield %dk : tensor<32x64xf32>
    }
    // CHECK: varlen.write {{.*}} times 1.250000e-01
    varlen.write %sums to %dK at %t otherwise (0.0) times 0.125
        : tensor<32x64xf32> -> memref<?x4x64xf32>, !varlen.tile<keys(32)>
  }
  // CHECK: varlen.free_rows %[[ROWS]] : <2 x f32>
  varlen.free_rows %rows : !varlen.rows<2 x f32>
  return
}

// All three gradients of a sequence: its keys block by block, dq of all its pairs.
// CHECK-LABEL: @sequences
func.func @sequences(%batch: !varlen.batch, %Q: memref<?x16x64xf32>, %K: memref<?x4x64xf32>,
                     %dQ: memref<?x16x64xf32>, %dK: memref<?x4x64xf32>, %rows: !varlen.rows<2 x f32>,
                     %dk0: tensor<64x64xf32>) {
  // CHECK: varlen.for_tiles "dqkv" %[[T:.*]] of sequences in
  varlen.for_tiles "dqkv" %t of sequences in %batch {
    // CHECK: varlen.read %{{.*}} at %[[T]] : memref<?x16x64xf32>, <sequences> -> tensor<?x64xf32>
    %q = varlen.read %Q at %t : memref<?x16x64xf32>, !varlen.tile<sequences> -> tensor<?x64xf32>
    %l, %d = varlen.read %rows at %t : !varlen.rows<2 x f32>, !varlen.tile<sequences> -> tensor<1x?xf32>, tensor<1x?xf32>
    // CHECK: varlen.size of %[[T]] multiple 32 : !varlen.tile<sequences>
    %n = varlen.size of %t multiple 32 : !varlen.tile<sequences>
    %dq0 = tensor.empty(%n) : tensor<?x64xf32>
    // CHECK: varlen.for_blocks %[[B:.*]] of keys(64) of %[[T]] : !varlen.tile<sequences> iter_args(
    %dq = varlen.for_blocks %b of keys(64) of %t : !varlen.tile<sequences> iter_args(%sum = %dq0) -> tensor<?x64xf32> {
      %k = varlen.read %K at %b : memref<?x4x64xf32>, !varlen.tile<keys(64)> -> tensor<64x64xf32>
      // CHECK: varlen.online_attn_grad kq natural at(%[[T]], %[[B]] : !varlen.tile<sequences>, !varlen.tile<keys(64)>)
      %r:2 = varlen.online_attn_grad kq natural at(%t, %b : !varlen.tile<sequences>, !varlen.tile<keys(64)>)
          ins(%q, %k, %k, %q, %l, %d : tensor<?x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>,
              tensor<?x64xf32>, tensor<1x?xf32>, tensor<1x?xf32>) dq(%sum : tensor<?x64xf32>) dk(%dk0 : tensor<64x64xf32>) scale 0.125
      varlen.write %r#1 to %dK at %b otherwise (0.0) times 0.125 : tensor<64x64xf32> -> memref<?x4x64xf32>, !varlen.tile<keys(64)>
      varlen.yield %r#0 : tensor<?x64xf32>
    }
    // CHECK: varlen.write %{{.*}} : tensor<?x64xf32> -> memref<?x16x64xf32>, <sequences>
    varlen.write %dq to %dQ at %t otherwise (0.0) times 0.125 : tensor<?x64xf32> -> memref<?x16x64xf32>, !varlen.tile<sequences>
  }
  return
}

// CHECK-LABEL: @rows
func.func @rows(%batch: !varlen.batch, %dOut: memref<?x16x24xbf16>, %Lse: memref<16x?xf32>,
                %Sink: memref<16xf32>, %dSink: memref<16xf32>, %rows: !varlen.rows<2 x f32>,
                %terms: !varlen.rows<1 x f32>) {
  varlen.for_tiles "delta" %t of queries(64) in %batch {
    %dout = varlen.read %dOut at %t : memref<?x16x24xbf16>, !varlen.tile<queries(64)> -> tensor<64x24xbf16>
    %lse = varlen.read %Lse at %t : memref<16x?xf32>, !varlen.tile<queries(64)> -> tensor<64x1xf32>
    %sink = varlen.read %Sink at %t : memref<16xf32>, !varlen.tile<queries(64)> -> tensor<64x1xf32>
    // CHECK: %[[DOT:.*]] = varlen.row_dot %{{.*}}, %{{.*}} : tensor<64x24xbf16> -> tensor<64x1xf32>
    %dot = varlen.row_dot %dout, %dout : tensor<64x24xbf16> -> tensor<64x1xf32>
    // CHECK: %[[L:.*]], %[[D:.*]], %[[TERM:.*]] = varlen.online_statistics %[[DOT]], %{{.*}} dlse(%{{.*}} : tensor<64x1xf32>) sink(%{{.*}} : tensor<64x1xf32>) natural : tensor<64x1xf32>
    %l, %d, %term = varlen.online_statistics %dot, %lse dlse(%lse : tensor<64x1xf32>)
        sink(%sink : tensor<64x1xf32>) natural : tensor<64x1xf32>
    // CHECK: varlen.write %[[L]], %[[D]] to %{{.*}} otherwise (inf, 0.000000e+00) : tensor<64x1xf32>, tensor<64x1xf32> -> !varlen.rows<2 x f32>
    varlen.write %l, %d to %rows at %t otherwise (inf, 0.0)
        : tensor<64x1xf32>, tensor<64x1xf32> -> !varlen.rows<2 x f32>, !varlen.tile<queries(64)>
    varlen.write %term to %terms at %t otherwise (0.0) : tensor<64x1xf32> -> !varlen.rows<1 x f32>, !varlen.tile<queries(64)>
  }
  // CHECK: varlen.for_tiles "dsink" %{{.*}} of heads in
  varlen.for_tiles "dsink" %h of heads in %batch {
    // CHECK: varlen.sum_rows %{{.*}} to %{{.*}} at %{{.*}} negated : !varlen.rows<1 x f32> to memref<16xf32>, <heads>
    varlen.sum_rows %terms to %dSink at %h negated : !varlen.rows<1 x f32> to memref<16xf32>, !varlen.tile<heads>
  }
  return
}

// CHECK-LABEL: @init
func.func @init() -> tensor<64x24xf32> {
  // CHECK: %[[ACC:.*]], %{{.*}}, %{{.*}} = varlen.online_init qk scale 1.250000e-01 : tensor<64x24xf32>, tensor<64x1xf32>
  // CHECK: return %[[ACC]]
  %acc, %m, %l = varlen.online_init qk scale 0.125 : tensor<64x24xf32>, tensor<64x1xf32>
  return %acc : tensor<64x24xf32>
}

// Queries are columns of acc, too.
// CHECK-LABEL: @init_kq
func.func @init_kq() -> tensor<1x64xf32> {
  // CHECK: varlen.online_init kq scale 1.250000e-01 : tensor<24x64xf32>, tensor<1x64xf32>
  %acc, %m, %l = varlen.online_init kq scale 0.125 : tensor<24x64xf32>, tensor<1x64xf32>
  return %l : tensor<1x64xf32>
}

// CHECK-LABEL: @merge
func.func @merge(%acc: tensor<24x64xf32>, %m: tensor<1x64xf32>) -> tensor<24x64xf32> {
  // CHECK: %[[ACC:.*]], %[[M:.*]], %[[L:.*]] = varlen.online_merge kq %{{.*}}, %{{.*}}, %{{.*}} with %{{.*}}, %{{.*}}, %{{.*}} scale 1.250000e-01 rounded : tensor<24x64xf32>, tensor<1x64xf32>
  %0:3 = varlen.online_merge kq %acc, %m, %m with %acc, %m, %m scale 0.125 rounded
      : tensor<24x64xf32>, tensor<1x64xf32>
  return %0#0 : tensor<24x64xf32>
}

// Queries are columns.
// CHECK-LABEL: @statistics_kq
func.func @statistics_kq(%dot: tensor<1x64xf32>, %lse: tensor<1x64xf32>) -> tensor<1x64xf32> {
  // CHECK: varlen.online_statistics %{{.*}}, %{{.*}} : tensor<1x64xf32>
  %l, %d = varlen.online_statistics %dot, %lse : tensor<1x64xf32>
  return %d : tensor<1x64xf32>
}

// out is queries x head_dim, whatever acc is.
// CHECK-LABEL: @finish_kq
func.func @finish_kq(%acc: tensor<24x64xf32>, %m: tensor<1x64xf32>) -> tensor<64x24xf32> {
  // CHECK: return %{{.*}} : tensor<64x24xf32>
  %out, %lse = varlen.online_finish kq %acc, %m, %m scale 0.125 : tensor<24x64xf32>, tensor<1x64xf32>
  return %out : tensor<64x24xf32>
}

// Keys in pages: memory of rank 4, at keys alone.
// CHECK-LABEL: @pages
func.func @pages(%cu: memref<?xi32>, %used: memref<?xi32>, %table: memref<?x?xi32>, %n: index,
                 %Q: memref<?x16x40xbf16>, %K: memref<?x8x4x40xbf16>) {
  // CHECK: varlen.batch %{{.*}} seqused_k(%{{.*}} : memref<?xi32>) block_table(%{{.*}} : memref<?x?xi32>, %{{.*}}, %{{.*}}) rows
  // CHECK-SAME: mask <full> : memref<?xi32>{{$}}
  %batch = varlen.batch %cu block_table(%table : memref<?x?xi32>, %n, %n)
      seqused_k(%used : memref<?xi32>) rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>
  varlen.for_tiles "out" %t of queries(128) in %batch {
    %q = varlen.read %Q at %t : memref<?x16x40xbf16>, !varlen.tile<queries(128)> -> tensor<128x48xbf16>
    varlen.for_blocks %b of keys(64) meeting %t : !varlen.tile<queries(128)> {
      // CHECK: varlen.read %{{.*}} at %{{.*}} : memref<?x8x4x40xbf16>, <keys(64)> -> tensor<64x48xbf16>
      %k = varlen.read %K at %b : memref<?x8x4x40xbf16>, !varlen.tile<keys(64)> -> tensor<64x48xbf16>
    }
  }
  return
}

// Quantised rows are read as they are, or in a type that has all of their numbers, and a
// number of each row as a row of them.
// CHECK-LABEL: @quantised
func.func @quantised(%K: memref<?x4x40xi8>, %V: memref<?x4x24xf8E4M3FN>,
                     %Scale: memref<?x4x1xf32, strided<[0, 1, 1]>>, %t: !varlen.tile<keys(64)>) {
  // CHECK: varlen.read %{{.*}} at %{{.*}} : memref<?x4x40xi8>, <keys(64)> -> tensor<64x48xi8>
  %k = varlen.read %K at %t : memref<?x4x40xi8>, !varlen.tile<keys(64)> -> tensor<64x48xi8>
  // CHECK: varlen.read %{{.*}} at %{{.*}} : memref<?x4x24xf8E4M3FN>, <keys(64)> -> tensor<64x24xbf16>
  %v = varlen.read %V at %t : memref<?x4x24xf8E4M3FN>, !varlen.tile<keys(64)> -> tensor<64x24xbf16>
  // CHECK: varlen.read %{{.*}} at %{{.*}} : memref<?x4x1xf32, strided<[0, 1, 1]>>, <keys(64)> -> tensor<1x64xf32>
  %s = varlen.read %Scale at %t : memref<?x4x1xf32, strided<[0, 1, 1]>>, !varlen.tile<keys(64)> -> tensor<1x64xf32>
  return
}

// CHECK-LABEL: @in_order
func.func @in_order(%batch: !varlen.batch, %dQ: memref<?x16x60xbf16>, %part: tensor<64x64xf32>) {
  varlen.for_tiles "dq" %t of keys(32) in %batch {
    varlen.for_blocks %b of queries(64) by_head meeting %t : !varlen.tile<keys(32)> {
      // CHECK: varlen.add_in_order %{{.*}} to %{{.*}} at %{{.*}} times 1.250000e-01 : tensor<64x64xf32> -> memref<?x16x60xbf16>, <queries(64) by_head>
      varlen.add_in_order %part to %dQ at %b times 0.125
          : tensor<64x64xf32> -> memref<?x16x60xbf16>, !varlen.tile<queries(64) by_head>
      // CHECK: varlen.add_in_order %{{.*}} to %{{.*}} at %{{.*}} : tensor<64x64xf32>
      varlen.add_in_order %part to %dQ at %b
          : tensor<64x64xf32> -> memref<?x16x60xbf16>, !varlen.tile<queries(64) by_head>
    }
  }
  return
}
