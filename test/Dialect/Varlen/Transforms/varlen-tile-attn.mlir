// RUN: varlen-opt %s --varlen-tile-attn -canonicalize -cse | FileCheck %s

#gpu = #varlen.gpu_schedule<warps = 4, block_m = 64, kv_block = 32, stages = 3, ctas = 2>
#together = #varlen.gpu_grad_schedule<
  dq = <warps = 4, block_m = 64, kv_block = 32, stages = 2, ctas = 2>,
  dk = <warps = 4, block_m = 32, kv_block = 128, stages = 3, ctas = 1>>
#apart = #varlen.gpu_grad_schedule<
  dq = <warps = 2, block_m = 32, kv_block = 16, stages = 2, ctas = 1>,
  dk = <warps = 2, block_m = 16, kv_block = 32, stages = 2, ctas = 1>,
  dv = <warps = 2, block_m = 16, kv_block = 32, stages = 2, ctas = 1>>

// Columns are whole fragments. The sink joins at the end.
// CHECK-LABEL: @out
// CHECK-SAME: (%[[Q:[a-z0-9]*]]: memref<?x8x40xbf16>, %[[K:[a-z0-9]*]]: memref<?x2x40xbf16>, %[[V:[a-z0-9]*]]: memref<?x2x24xbf16>, %[[CU:[a-z0-9]*]]: memref<?xi32>, %[[SINK:[a-z0-9]*]]: memref<8xf32>, %[[OUT:[a-z0-9]*]]: memref<?x8x24xbf16>, %[[LSE:[a-z0-9]*]]: memref<8x?xf32>)
func.func @out(%q: memref<?x8x40xbf16>, %k: memref<?x2x40xbf16>, %v: memref<?x2x24xbf16>, %cu: memref<?xi32>,
               %sink: memref<8xf32>, %out: memref<?x8x24xbf16>, %lse: memref<8x?xf32>) {
  // What types leave open is compared here: k and v have as many rows, for one.
  // CHECK: arith.cmpi eq,
  // CHECK: %[[BATCH:.*]] = varlen.batch %[[CU]], %[[CU]] rows(%{{.*}}, %{{.*}}) heads(%c2, %c4) fault(%{{.*}}, %{{.*}}, %{{.*}}) mask <causal>
  // CHECK: varlen.for_tiles "attn" %[[T:.*]] of queries(64) in %[[BATCH]] attributes {varlen.schedule = #varlen.gpu_schedule<
  // CHECK:   %[[QT:.*]] = varlen.read %[[Q]] at %[[T]] : {{.*}} -> tensor<64x48xbf16>
  // CHECK:   %[[ACC:.*]], %[[M:.*]], %[[L:.*]] = varlen.online_init qk scale 1.250000e-01 : tensor<64x32xf32>, tensor<64x1xf32>
  // CHECK:   %[[S:.*]]:3 = varlen.for_blocks %[[B:.*]] of keys(32) meeting %[[T]] : {{.*}} iter_args(%{{.*}} = %[[ACC]], %{{.*}} = %[[M]], %{{.*}} = %[[L]])
  // CHECK:     %[[KT:.*]] = varlen.read %[[K]] at %[[B]] : {{.*}} -> tensor<32x48xbf16>
  // CHECK:     %[[VT:.*]] = varlen.read %[[V]] at %[[B]] : {{.*}} -> tensor<32x32xbf16>
  // CHECK:     %[[R:.*]], %{{.*}}, %{{.*}} = varlen.online_attn qk at(%[[T]], %[[B]] : {{.*}}) ins(%[[QT]], %[[KT]], %[[VT]] :
  // CHECK:     varlen.yield
  // CHECK:   %[[SINKS:.*]] = varlen.read %[[SINK]] at %[[T]] : {{.*}} -> tensor<64x1xf32>
  // CHECK:   %[[O:.*]], %[[L:.*]] = varlen.online_finish qk %[[S]]#0, %[[S]]#1, %[[S]]#2 sink(%[[SINKS]] : tensor<64x1xf32>) scale 1.250000e-01 rounded
  // CHECK:   varlen.write %[[O]] to %[[OUT]] at %[[T]] otherwise (0.000000e+00)
  // CHECK:   varlen.write %[[L]] to %[[LSE]] at %[[T]] otherwise (-inf)
  varlen.attn %q, %k, %v, %cu, %cu sink(%sink) outs(%out, %lse)
      {mask = #varlen.mask<causal>, scale = 0.125 : f32, varlen.schedule = #gpu}
      : (memref<?x8x40xbf16>, memref<?x2x40xbf16>, memref<?x2x24xbf16>, memref<?xi32>, memref<?xi32>, memref<8xf32>, memref<?x8x24xbf16>, memref<8x?xf32>) -> ()
  return
}

// Probabilities of f32 are not rounded. Nothing is open: no fault.
// CHECK-LABEL: @f32
func.func @f32(%q: memref<64x8x64xf32>, %cu: memref<?xi32>, %out: memref<64x8x64xf32>, %lse: memref<8x64xf32>) {
  // CHECK: varlen.batch {{.*}} rows(%c64, %c64) heads(%c8, %c1) mask <full>
  // CHECK: varlen.online_finish qk
  // CHECK-NOT: rounded
  // CHECK-SAME: : tensor<64x64xf32>
  varlen.attn %q, %q, %q, %cu, %cu outs(%out, %lse) {varlen.schedule = #gpu}
      : (memref<64x8x64xf32>, memref<64x8x64xf32>, memref<64x8x64xf32>, memref<?xi32>, memref<?xi32>, memref<64x8x64xf32>, memref<8x64xf32>) -> ()
  return
}

// CHECK-LABEL: @together
// CHECK-SAME: (%[[DOUT:[a-z0-9]*]]: memref<?x8x24xbf16>, %[[Q:[a-z0-9]*]]: memref<?x8x40xbf16>, %[[K:[a-z0-9]*]]: memref<?x2x40xbf16>, %[[V:[a-z0-9]*]]: memref<?x2x24xbf16>
func.func @together(%dout: memref<?x8x24xbf16>, %q: memref<?x8x40xbf16>, %k: memref<?x2x40xbf16>,
                    %v: memref<?x2x24xbf16>, %out: memref<?x8x24xbf16>, %lse: memref<8x?xf32>,
                    %cu: memref<?xi32>, %sink: memref<8xf32>, %dq: memref<?x8x40xbf16>,
                    %dk: memref<?x2x40xbf16>, %dv: memref<?x2x24xbf16>, %dsink: memref<8xf32>) {
  // CHECK: %[[ROWS:.*]] = varlen.rows in %{{.*}} : <2 x f32>
  // CHECK: %[[TERMS:.*]] = varlen.rows in %{{.*}} : <1 x f32>
  // CHECK: varlen.for_tiles "delta" %[[T:.*]] of queries(64)
  // CHECK:   varlen.read %[[DOUT]] at %[[T]] : {{.*}} -> tensor<64x32xbf16>
  // CHECK:   %[[DOT:.*]] = varlen.row_dot %{{.*}} : tensor<64x32xbf16> -> tensor<64x1xf32>
  // CHECK:   %[[LSE:.*]], %[[DELTA:.*]], %[[TERM:.*]] = varlen.online_statistics %[[DOT]], {{.*}} sink(%{{.*}} : tensor<64x1xf32>)
  // CHECK:   varlen.write %[[LSE]], %[[DELTA]] to %[[ROWS]] at %[[T]] otherwise (inf, 0.000000e+00)
  // CHECK:   varlen.write %[[TERM]] to %[[TERMS]] at %[[T]] otherwise (0.000000e+00)

  // CHECK: varlen.for_tiles "dq" %[[T:.*]] of queries(64)
  // CHECK:   %{{.*}}:2 = varlen.read %[[ROWS]] at %[[T]] : {{.*}} -> tensor<64x1xf32>, tensor<64x1xf32>
  // CHECK:   %[[DQ:.*]] = varlen.for_blocks %{{.*}} of keys(32) meeting %[[T]]
  // CHECK:     varlen.online_attn_grad qk at(%[[T]], {{.*}} dq(
  // CHECK:   varlen.write %[[DQ]] to %{{.*}} at %[[T]] otherwise (0.000000e+00) times 1.250000e-01 : tensor<64x48xf32> -> memref<?x8x40xbf16>

  // CHECK: varlen.for_tiles "dkv" %[[T:.*]] of keys(128)
  // CHECK:   %[[D:.*]]:2 = varlen.for_blocks %[[B:.*]] of queries(32) by_head meeting %[[T]]
  // CHECK:     %{{.*}}:2 = varlen.read %[[ROWS]] at %[[B]] : {{.*}} -> tensor<1x32xf32>, tensor<1x32xf32>
  // CHECK:     varlen.online_attn_grad kq at(%[[B]], %[[T]] {{.*}} dk({{.*}} dv(
  // CHECK:   varlen.write %[[D]]#0 to %{{.*}} at %[[T]] {{.*}} times 1.250000e-01
  // CHECK:   varlen.write %[[D]]#1 to %{{.*}} at %[[T]]
  // CHECK-NOT: times

  // CHECK: varlen.for_tiles "dsink" %[[H:.*]] of heads
  // CHECK:   varlen.sum_rows %[[TERMS]] to %{{.*}} at %[[H]] negated : !varlen.rows<1 x f32> to memref<8xf32>
  // CHECK: varlen.free_rows %[[ROWS]]
  // CHECK: varlen.free_rows %[[TERMS]]
  varlen.attn_grad %dout, %q, %k, %v, %out, %lse, %cu, %cu sink(%sink) outs(%dq, %dk, %dv, %dsink)
      {mask = #varlen.mask<causal>, scale = 0.125 : f32, varlen.schedule = #together}
      : (memref<?x8x24xbf16>, memref<?x8x40xbf16>, memref<?x2x40xbf16>, memref<?x2x24xbf16>,
         memref<?x8x24xbf16>, memref<8x?xf32>, memref<?xi32>, memref<?xi32>, memref<8xf32>,
         memref<?x8x40xbf16>, memref<?x2x40xbf16>, memref<?x2x24xbf16>, memref<8xf32>) -> ()
  return
}

// A loop of its own for dv reads no values: it takes probabilities only.
// CHECK-LABEL: @apart
// CHECK-SAME: %[[V:[a-z0-9]*]]: memref<?x4x256xf32>, %[[LSE:[a-z0-9]*]]: memref<4x?xf32>
func.func @apart(%q: memref<?x4x256xf32>, %v: memref<?x4x256xf32>, %lse: memref<4x?xf32>, %cu: memref<?xi32>,
                 %dq: memref<?x4x256xf32>, %dk: memref<?x4x256xf32>, %dv: memref<?x4x256xf32>) {
  // CHECK: varlen.online_statistics {{.*}} dlse(%{{.*}} : tensor<32x1xf32>) natural
  // CHECK: varlen.for_tiles "dq"
  // CHECK: varlen.for_tiles "dk"
  // CHECK: varlen.read %[[V]]
  // CHECK: varlen.online_attn_grad kq natural
  // CHECK-SAME: dk(
  // CHECK-NOT: dv(
  // CHECK: varlen.for_tiles "dv"
  // CHECK-NOT: varlen.read %[[V]]
  // CHECK: varlen.online_attn_grad kq natural
  // CHECK-NOT: dk(
  // CHECK-SAME: dv(
  // CHECK-NOT: varlen.for_tiles
  varlen.attn_grad %q, %q, %q, %v, %q, %lse, %cu, %cu dlse(%lse) outs(%dq, %dk, %dv) {varlen.schedule = #apart}
      : (memref<?x4x256xf32>, memref<?x4x256xf32>, memref<?x4x256xf32>, memref<?x4x256xf32>,
         memref<?x4x256xf32>, memref<4x?xf32>, memref<?xi32>, memref<?xi32>, memref<4x?xf32>,
         memref<?x4x256xf32>, memref<?x4x256xf32>, memref<?x4x256xf32>) -> ()
  return
}

// For a CPU, keys are the rows of scores and columns are those of memory. 16-bit
// factors are widened as they are read, and probabilities are not rounded.
// CHECK-LABEL: @cpu
func.func @cpu(%q: memref<?x4x10xbf16>, %k: memref<?x2x10xbf16>, %cu: memref<?xi32>, %out: memref<?x4x10xbf16>, %lse: memref<4x?xf32>) {
  // CHECK: varlen.for_tiles "attn" %[[T:.*]] of queries(32) in %{{.*}} attributes {varlen.schedule = #varlen.cpu_schedule<
  // CHECK:   varlen.read %{{.*}} at %[[T]] : {{.*}} -> tensor<32x10xf32>
  // CHECK:   varlen.for_blocks %[[B:.*]] of keys(64) meeting %[[T]] : {{.*}} -> (tensor<10x32xf32>, tensor<1x32xf32>, tensor<1x32xf32>)
  // CHECK:     varlen.read %{{.*}} at %[[B]] : {{.*}} -> tensor<64x10xf32>
  // CHECK:     varlen.online_attn kq at(%[[T]], %[[B]] : {{.*}} {varlen.exp2_degree = 5 : i64}
  // CHECK:   varlen.online_finish kq
  // CHECK-NOT: rounded
  // CHECK:   varlen.write {{.*}} : tensor<32x10xf32> -> memref<?x4x10xbf16>
  varlen.attn %q, %k, %k, %cu, %cu outs(%out, %lse)
      {varlen.exp2_degree = 5 : i64, varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 2, kv_block = 64, kv = copy>}
      : (memref<?x4x10xbf16>, memref<?x2x10xbf16>, memref<?x2x10xbf16>, memref<?xi32>, memref<?xi32>, memref<?x4x10xbf16>, memref<4x?xf32>) -> ()
  return
}

// Pairs stay as they are.
// CHECK-LABEL: @cpu_pairs
func.func @cpu_pairs(%q: memref<?x4x10xbf16>, %k: memref<?x2x10xbf16>, %cu: memref<?xi32>, %out: memref<?x4x10xbf16>, %lse: memref<4x?xf32>) {
  // CHECK: varlen.online_attn kq {{.*}} ins({{.*}} : tensor<16x10xbf16>, tensor<64x10xbf16>, tensor<64x10xbf16>)
  // CHECK: varlen.online_finish kq {{.*}} rounded
  varlen.attn %q, %k, %k, %cu, %cu outs(%out, %lse)
      {varlen.schedule = #varlen.cpu_schedule<lanes = 16, vectors = 1, rows = 4, panels = 1, kv_block = 64, kv = pairs>}
      : (memref<?x4x10xbf16>, memref<?x2x10xbf16>, memref<?x2x10xbf16>, memref<?xi32>, memref<?xi32>, memref<?x4x10xbf16>, memref<4x?xf32>) -> ()
  return
}

// Without a schedule an attention is left to other passes.
// CHECK-LABEL: @left
// CHECK: varlen.attn
func.func @left(%q: memref<?x1x8xf32>, %cu: memref<?xi32>, %out: memref<?x1x8xf32>, %lse: memref<1x?xf32>) {
  varlen.attn %q, %q, %q, %cu, %cu outs(%out, %lse) : (memref<?x1x8xf32>, memref<?x1x8xf32>, memref<?x1x8xf32>, memref<?xi32>, memref<?xi32>, memref<?x1x8xf32>, memref<1x?xf32>) -> ()
  return
}

// Gradients: one loop owns all three. Columns are whole vectors.
// CHECK-LABEL: @cpu_gradients
// CHECK-SAME: %[[DOUT:[^:]*]]: memref<?x4x6xf32>, %[[Q:[^:]*]]: memref<?x4x10xf32>, %[[K:[^:]*]]: memref<?x2x10xf32>, %[[V:[^:]*]]: memref<?x2x6xf32>
func.func @cpu_gradients(%dout: memref<?x4x6xf32>, %q: memref<?x4x10xf32>, %k: memref<?x2x10xf32>, %v: memref<?x2x6xf32>,
                         %out: memref<?x4x6xf32>, %lse: memref<4x?xf32>, %cu: memref<?xi32>, %sink: memref<4xf32>,
                         %dq: memref<?x4x10xf32>, %dk: memref<?x2x10xf32>, %dv: memref<?x2x6xf32>, %dsink: memref<4xf32>) {
  // CHECK: %[[ROWS:.*]] = varlen.rows in
  // CHECK: varlen.for_tiles "delta" %{{.*}} of queries(1024) in %{{.*}} attributes {varlen.schedule = #varlen.cpu_schedule<
  // CHECK:   varlen.online_statistics {{.*}} natural
  // CHECK: varlen.for_tiles "dqkv" %[[T:.*]] of sequences in %{{.*}} attributes {varlen.schedule = #varlen.cpu_schedule<
  // CHECK:   %[[QT:.*]] = varlen.read %[[Q]] at %[[T]] : {{.*}} -> tensor<?x16xf32>
  // CHECK:   %[[DT:.*]] = varlen.read %[[DOUT]] at %[[T]] : {{.*}} -> tensor<?x8xf32>
  // CHECK:   %[[S:.*]]:2 = varlen.read %[[ROWS]] at %[[T]] : {{.*}} -> tensor<1x?xf32>, tensor<1x?xf32>
  // CHECK:   %[[SIZE:.*]] = varlen.size of %[[T]] multiple 16
  // CHECK:   tensor.empty(%[[SIZE]]) : tensor<?x16xf32>
  // CHECK:   %[[DQ:.*]] = varlen.for_blocks %[[B:.*]] of keys(64) of %[[T]]
  // CHECK:     %[[KT:.*]] = varlen.read %[[K]] at %[[B]]
  // CHECK:     %[[VT:.*]] = varlen.read %[[V]] at %[[B]]
  // CHECK:     %[[GQ:.*]], %[[GK:.*]], %[[GV:.*]] = varlen.online_attn_grad kq natural at(%[[T]], %[[B]] : {{.*}}) ins(%[[QT]], %[[KT]], %[[VT]], %[[DT]], %[[S]]#0, %[[S]]#1 :
  // CHECK-SAME: varlen.exp2_degree = 5
  // CHECK:     varlen.write %[[GK]] to %{{.*}} at %[[B]] otherwise (0.000000e+00) times
  // CHECK:     varlen.write %[[GV]] to %{{.*}} at %[[B]] otherwise (0.000000e+00) :
  // CHECK:     varlen.yield %[[GQ]]
  // CHECK:   varlen.write %[[DQ]] to %{{.*}} at %[[T]] otherwise (0.000000e+00) times
  // CHECK: varlen.for_tiles "dsink" %{{.*}} of heads
  varlen.attn_grad %dout, %q, %k, %v, %out, %lse, %cu, %cu sink(%sink) outs(%dq, %dk, %dv, %dsink)
      {varlen.exp2_degree = 5 : i64, varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 1, kv_block = 64, kv = copy>}
      : (memref<?x4x6xf32>, memref<?x4x10xf32>, memref<?x2x10xf32>, memref<?x2x6xf32>, memref<?x4x6xf32>, memref<4x?xf32>, memref<?xi32>,
         memref<?xi32>, memref<4xf32>, memref<?x4x10xf32>, memref<?x2x10xf32>, memref<?x2x6xf32>, memref<4xf32>) -> ()
  return
}

// What a schedule says of steps is theirs.
// CHECK-LABEL: @steps
// CHECK: varlen.online_attn {{.*}}{rescale_threshold = 8 : i64}
// CHECK: varlen.for_tiles "dq"
// CHECK-NOT: scores_first}
// CHECK: varlen.for_tiles "dkv"
// CHECK: varlen.online_attn_grad {{.*}}{scores_first}
func.func @steps(%q: memref<?x2x64xbf16>, %cu: memref<?xi32>, %out: memref<?x2x64xbf16>, %lse: memref<2x?xf32>,
                 %dq: memref<?x2x64xbf16>, %dk: memref<?x2x64xbf16>, %dv: memref<?x2x64xbf16>) {
  varlen.attn %q, %q, %q, %cu, %cu outs(%out, %lse) {
    varlen.schedule = #varlen.gpu_schedule<warps = 4, block_m = 64, kv_block = 64, stages = 2, ctas = 2, rescale_threshold = 8>
  } : (memref<?x2x64xbf16>, memref<?x2x64xbf16>, memref<?x2x64xbf16>, memref<?xi32>, memref<?xi32>, memref<?x2x64xbf16>, memref<2x?xf32>) -> ()
  varlen.attn_grad %q, %q, %q, %q, %out, %lse, %cu, %cu outs(%dq, %dk, %dv) {
    varlen.schedule = #varlen.gpu_grad_schedule<
      dq = <warps = 4, block_m = 64, kv_block = 64, stages = 2, ctas = 2>,
      dk = <warps = 4, block_m = 64, kv_block = 64, stages = 2, ctas = 2, scores_first = 1>>
  } : (memref<?x2x64xbf16>, memref<?x2x64xbf16>, memref<?x2x64xbf16>, memref<?x2x64xbf16>, memref<?x2x64xbf16>, memref<2x?xf32>, memref<?xi32>, memref<?xi32>, memref<?x2x64xbf16>, memref<?x2x64xbf16>, memref<?x2x64xbf16>) -> ()
  return
}

// Weights of f16 would overflow with a factor above their bound of 2^8, those of bf16 not.
// CHECK-LABEL: func.func @gpu_f16
// CHECK: varlen.online_attn qk
// CHECK-NOT: rescale_threshold
// CHECK: return
func.func @gpu_f16(%q: memref<?x4x64xf16>, %cu: memref<?xi32>, %out: memref<?x4x64xf16>,
                   %lse: memref<4x?xf32>) {
  varlen.attn %q, %q, %q, %cu, %cu outs(%out, %lse)
      {varlen.schedule = #varlen.gpu_schedule<warps = 4, block_m = 64, kv_block = 32, stages = 2,
                                              ctas = 2, rescale_threshold = 8>}
      : (memref<?x4x64xf16>, memref<?x4x64xf16>, memref<?x4x64xf16>, memref<?xi32>,
         memref<?xi32>, memref<?x4x64xf16>, memref<4x?xf32>) -> ()
      score (%s: f32, %i: i32, %j: i32) {
        %factor = arith.sitofp %j : i32 to f32
        varlen.yield %s, %factor : f32, f32
      }
  return
}

// CHECK-LABEL: func.func @gpu_bf16
// CHECK: varlen.online_attn qk {{.*}} {rescale_threshold = 8 : i64}
func.func @gpu_bf16(%q: memref<?x4x64xbf16>, %cu: memref<?xi32>, %out: memref<?x4x64xbf16>,
                    %lse: memref<4x?xf32>) {
  varlen.attn %q, %q, %q, %cu, %cu outs(%out, %lse)
      {varlen.schedule = #varlen.gpu_schedule<warps = 4, block_m = 64, kv_block = 32, stages = 2,
                                              ctas = 2, rescale_threshold = 8>}
      : (memref<?x4x64xbf16>, memref<?x4x64xbf16>, memref<?x4x64xbf16>, memref<?xi32>,
         memref<?xi32>, memref<?x4x64xbf16>, memref<4x?xf32>) -> ()
      score (%s: f32, %i: i32, %j: i32) {
        %factor = arith.sitofp %j : i32 to f32
        varlen.yield %s, %factor : f32, f32
      }
  return
}

// Tiles of keys add up dq as well, of which the loop over rows has cleared all.
// CHECK-LABEL: @five_products
// CHECK-SAME: %[[DQ:[a-z0-9]*]]: memref<?x2x60xbf16>, %[[DK:[a-z0-9]*]]: memref<?x2x60xbf16>, %{{.*}}: memref<?x2x60xbf16>)
// CHECK: varlen.for_tiles "delta" %[[T:.*]] of queries(128)
// CHECK: varlen.write %{{.*}} to %[[DQ]] at %[[T]] otherwise (0.000000e+00) : tensor<128x64xf32> -> memref<?x2x60xbf16>, <queries(128)>
// CHECK-NOT: varlen.for_tiles "dq"
// CHECK: varlen.for_tiles "dqkv" %[[T:.*]] of keys(32)
// CHECK: varlen.for_blocks %[[B:.*]] of queries(64) by_head meeting %[[T]]
// CHECK: %[[ZERO:.*]] = linalg.fill {{.*}} -> tensor<64x64xf32>
// CHECK: %[[P:.*]], %[[K:.*]], %[[V:.*]] = varlen.online_attn_grad kq at(%[[B]], %[[T]] {{.*}} dq(%[[ZERO]] : tensor<64x64xf32>) dk({{.*}} dv(
// CHECK: varlen.add_in_order %[[P]] to %[[DQ]] at %[[B]] times 1.250000e-01 : tensor<64x64xf32> -> memref<?x2x60xbf16>, <queries(64) by_head>
// CHECK: varlen.yield %[[K]], %[[V]]
// CHECK: varlen.write %{{.*}} to %[[DK]] at %[[T]] otherwise (0.000000e+00) times 1.250000e-01
func.func @five_products(%q: memref<?x2x60xbf16>, %cu: memref<?xi32>, %out: memref<?x2x60xbf16>, %lse: memref<2x?xf32>,
                         %dq: memref<?x2x60xbf16>, %dk: memref<?x2x60xbf16>, %dv: memref<?x2x60xbf16>) {
  varlen.attn_grad %q, %q, %q, %q, %out, %lse, %cu, %cu outs(%dq, %dk, %dv) {
    scale = 0.125 : f32, varlen.schedule = #varlen.gpu_grad_schedule<
      dq = <warps = 4, block_m = 128, kv_block = 64, stages = 2, ctas = 2>,
      dk = <warps = 2, block_m = 64, kv_block = 32, stages = 2, ctas = 2, five_products = 1>>
  } : (memref<?x2x60xbf16>, memref<?x2x60xbf16>, memref<?x2x60xbf16>, memref<?x2x60xbf16>, memref<?x2x60xbf16>, memref<2x?xf32>, memref<?xi32>, memref<?xi32>, memref<?x2x60xbf16>, memref<?x2x60xbf16>, memref<?x2x60xbf16>) -> ()
  return
}
