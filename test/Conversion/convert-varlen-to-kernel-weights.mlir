// Lists of tiles whose blocks a score region hides: a warp a tile counts blocks.
// RUN: varlen-opt %s --varlen-tile-attn --convert-varlen-to-kernel --convert-tile-lists-to-gpu -canonicalize -cse | FileCheck %s

#gpu = #varlen.gpu_schedule<warps = 4, block_m = 64, kv_block = 32, stages = 3, ctas = 2>
#grad = #varlen.gpu_grad_schedule<
    dq = <warps = 4, block_m = 64, kv_block = 64, stages = 2, ctas = 2>,
    dk = <warps = 4, block_m = 64, kv_block = 64, stages = 2, ctas = 2>>

// Sequences are checked first; with an error they have no tiles, and what they say is
// not read. A thread a tile clears its weight.
// CHECK-LABEL: func.func @forward(
// CHECK-SAME: %[[PREFIX:[a-z0-9]*]]: memref<4x?xf32>, %{{[a-z0-9]*}}: memref<?x4x64xbf16>
// CHECK: %[[TABLE:.*]] = memref.alloc(%{{.*}}) : memref<2x3x?xi64>
// CHECK: %[[WEIGHTS:.*]] = memref.alloc(%[[BOUND:.*]]) : memref<?xi32>
// CHECK: gpu.launch {{.*}} function(@forward_tiles_segments)
// CHECK: arith.cmpi slt, %{{.*}}, %[[BOUND]]
// CHECK: memref.store %c0_i32, %[[WEIGHTS]]
// CHECK: arith.select %{{.*}}, %c0, %{{.*}} : index
// CHECK-COUNT-3: memref.store %{{.*}}, %[[TABLE]]
// A warp for each tile and kv head searches its sequence.
// CHECK: %[[ITEMS:.*]] = arith.muli %[[BOUND]], %c128
// CHECK: gpu.launch {{.*}} function(@forward_tiles_weights)
// CHECK: arith.cmpi slt, %{{.*}}, %[[ITEMS]]
// CHECK: scf.while
// CHECK: memref.load %[[TABLE]][%c0, %c2, %{{.*}}]
// It reads the numbers of the tile, then a lane asks for every 32nd block.
// CHECK: memref.load %[[PREFIX]]
// CHECK-COUNT-10: gpu.shuffle xor
// CHECK: %[[SEEN:.*]] = scf.for %{{.*}} = %{{.*}} to %{{.*}} step %c32_i32
// CHECK: %[[MAY:.*]] = arith.cmpf ult
// CHECK: arith.extui %[[MAY]] : i1 to i32
// CHECK: gpu.shuffle xor %[[SEEN]]
// CHECK-COUNT-4: gpu.shuffle xor
// CHECK: %[[LANE:.*]] = arith.cmpi eq
// CHECK: scf.if %[[LANE]]
// CHECK: memref.atomic_rmw maxs %{{.*}}, %[[WEIGHTS]]
// CHECK: memref.atomic_rmw maxs %{{.*}}, %[[TABLE]][%c0, %c0, %{{.*}}]
// CHECK: gpu.launch {{.*}} function(@forward_tiles_merge)
// In the end a warp counts those of its sequence that weigh more, or as much and come
// later; it stores its tile behind them.
// CHECK: gpu.launch {{.*}} function(@forward_tiles)
// CHECK: %[[OWN:.*]] = memref.load %[[WEIGHTS]]
// CHECK: scf.for %[[AT:.*]] = %{{.*}} to %{{.*}} step %c32
// CHECK: %[[OTHER:.*]] = memref.load %[[WEIGHTS]]
// CHECK: arith.cmpi slt, %{{.*}}, %[[AT]]
// CHECK: arith.cmpi slt, %[[OWN]], %[[OTHER]]
// CHECK: arith.cmpi eq, %[[OWN]], %[[OTHER]]
// CHECK-COUNT-5: gpu.shuffle xor
// CHECK: scf.if
// CHECK: memref.store %{{.*}} : memref<?x2xi32>
// CHECK: memref.dealloc %[[WEIGHTS]]
func.func @forward(%q: memref<?x4x64xbf16>, %cu: memref<?xi32>, %prefix: memref<4x?xf32>,
                   %out: memref<?x4x64xbf16>, %lse: memref<4x?xf32>) {
  varlen.attn %q, %q, %q, %cu, %cu outs(%out, %lse) captures(%prefix)
      {mask = #varlen.mask<full>, varlen.schedule = #gpu}
      : (memref<?x4x64xbf16>, memref<?x4x64xbf16>, memref<?x4x64xbf16>, memref<?xi32>,
         memref<?xi32>, memref<?x4x64xbf16>, memref<4x?xf32>, memref<4x?xf32>) -> ()
      score (%s: f32, %i: i32, %j: i32, %limit: f32) {
        %x = arith.sitofp %j : i32 to f32
        %visible = arith.cmpf olt, %x, %limit : f32
        varlen.yield %s, %visible : f32, i1
      }
  return
}

// Statistics of rows, which have a copy of the numbers, are not there yet: numbers are
// read where they were. A lane reads those of a block of queries one by one.
// CHECK-LABEL: func.func @grad(
// CHECK-SAME: %[[PREFIX:[a-z0-9]*]]: memref<4x?xf32>, %{{[a-z0-9]*}}: memref<?x4x64xbf16>
// CHECK: gpu.launch {{.*}} function(@grad_tiles_weights)
// CHECK: memref.load %[[PREFIX]]
// CHECK: gpu.shuffle
// CHECK: gpu.launch {{.*}} function(@grad_key_tiles_weights)
// CHECK: scf.for
// CHECK-NOT: gpu.shuffle
// CHECK: memref.load %[[PREFIX]]
// CHECK: scf.for
// CHECK: memref.load %[[PREFIX]]
// CHECK: arith.minimumf
// CHECK: arith.maximumf
// CHECK-NOT: gpu.shuffle
// CHECK: arith.cmpf ult
// CHECK-COUNT-5: gpu.shuffle
// CHECK: memref.atomic_rmw maxs
// CHECK: gpu.launch {{.*}} function(@grad_key_tiles)
// CHECK: gpu.launch {{.*}} function(@grad_delta)
func.func @grad(%q: memref<?x4x64xbf16>, %cu: memref<?xi32>, %lse: memref<4x?xf32>,
                %prefix: memref<4x?xf32>, %dq: memref<?x4x64xbf16>, %dk: memref<?x4x64xbf16>,
                %dv: memref<?x4x64xbf16>) {
  varlen.attn_grad %q, %q, %q, %q, %q, %lse, %cu, %cu outs(%dq, %dk, %dv) captures(%prefix)
      {mask = #varlen.mask<full>, varlen.schedule = #grad}
      : (memref<?x4x64xbf16>, memref<?x4x64xbf16>, memref<?x4x64xbf16>, memref<?x4x64xbf16>,
         memref<?x4x64xbf16>, memref<4x?xf32>, memref<?xi32>, memref<?xi32>,
         memref<?x4x64xbf16>, memref<?x4x64xbf16>, memref<?x4x64xbf16>, memref<4x?xf32>) -> ()
      score (%s: f32, %i: i32, %j: i32, %limit: f32) {
        %x = arith.sitofp %j : i32 to f32
        %visible = arith.cmpf olt, %x, %limit : f32
        varlen.yield %s, %visible : f32, i1
      }
  return
}

// By positions alone all kv heads are alike: a warp a tile.
// CHECK-LABEL: func.func @positions(
// CHECK: %{{.*}} = memref.alloc(%[[BOUND:.*]]) : memref<?xi32>
// CHECK: arith.muli %[[BOUND]], %c32
// CHECK: gpu.launch {{.*}} function(@positions_tiles_weights)
// CHECK-NOT: arith.divui {{.*}} %c4
// CHECK: memref.atomic_rmw maxs
func.func @positions(%q: memref<?x4x64xbf16>, %cu: memref<?xi32>, %out: memref<?x4x64xbf16>,
                     %lse: memref<4x?xf32>) {
  varlen.attn %q, %q, %q, %cu, %cu outs(%out, %lse)
      {mask = #varlen.mask<causal>, varlen.schedule = #gpu}
      : (memref<?x4x64xbf16>, memref<?x4x64xbf16>, memref<?x4x64xbf16>, memref<?xi32>,
         memref<?xi32>, memref<?x4x64xbf16>, memref<4x?xf32>) -> ()
      score (%s: f32, %i: i32, %j: i32) {
        %size = arith.constant 100 : i32
        %a = arith.floordivsi %i, %size : i32
        %b = arith.floordivsi %j, %size : i32
        %visible = arith.cmpi eq, %a, %b : i32
        varlen.yield %s, %visible : f32, i1
      }
  return
}

// Numbers of keys are looked at for tiles of queries only, so those of keys are as long as
// the sequence.
// CHECK-LABEL: func.func @keys(
// CHECK: function(@keys_tiles_weights)
// CHECK-NOT: function(@keys_key_tiles_weights)
// CHECK: function(@keys_dkv)
func.func @keys(%q: memref<?x4x64xbf16>, %cu: memref<?xi32>, %lse: memref<4x?xf32>,
                %used: memref<4x?xf32>, %dq: memref<?x4x64xbf16>, %dk: memref<?x4x64xbf16>,
                %dv: memref<?x4x64xbf16>) {
  varlen.attn_grad %q, %q, %q, %q, %q, %lse, %cu, %cu outs(%dq, %dk, %dv) captures(%used)
      {mask = #varlen.mask<full>, varlen.schedule = #grad}
      : (memref<?x4x64xbf16>, memref<?x4x64xbf16>, memref<?x4x64xbf16>, memref<?x4x64xbf16>,
         memref<?x4x64xbf16>, memref<4x?xf32>, memref<?xi32>, memref<?xi32>,
         memref<?x4x64xbf16>, memref<?x4x64xbf16>, memref<?x4x64xbf16>, memref<4x?xf32>) -> ()
      score (%s: f32, %i: i32, %j: i32, %used_of: !varlen.table<f32, keys>) {
        %flag = varlen.lookup %used_of[%j] : !varlen.table<f32, keys>
        %no = arith.constant 0.0 : f32
        %visible = arith.cmpf une, %flag, %no : f32
        varlen.yield %s, %visible : f32, i1
      }
  return
}

// What intervals cannot tell, and what hides nothing, leaves lists as they are.
// CHECK-LABEL: func.func @unknown(
// CHECK: function(@unknown_tiles_segments)
// CHECK-NOT: _weights
// CHECK: function(@unknown_attn)
func.func @unknown(%q: memref<?x4x64xbf16>, %cu: memref<?xi32>, %out: memref<?x4x64xbf16>,
                   %lse: memref<4x?xf32>) {
  varlen.attn %q, %q, %q, %cu, %cu outs(%out, %lse)
      {mask = #varlen.mask<causal>, varlen.schedule = #gpu}
      : (memref<?x4x64xbf16>, memref<?x4x64xbf16>, memref<?x4x64xbf16>, memref<?xi32>,
         memref<?xi32>, memref<?x4x64xbf16>, memref<4x?xf32>) -> ()
      score (%s: f32, %i: i32, %j: i32) {
        %both = arith.xori %i, %j : i32
        %most = arith.constant 77 : i32
        %visible = arith.cmpi slt, %both, %most : i32
        varlen.yield %s, %visible : f32, i1
      }
  return
}

// Numbers that another loop computes are not there when lists are made.
// CHECK-LABEL: func.func @computed(
// CHECK-NOT: _weights
// CHECK: function(@computed_attn)
func.func @computed(%q: memref<?x4x64xbf16>, %cu: memref<?xi32>, %prefix: memref<4x?xf32>,
                    %out: memref<?x4x64xbf16>, %rows: index) {
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %batch = varlen.batch %cu, %cu rows(%rows, %rows) heads(%c4, %c1) mask <full>
      : memref<?xi32>, memref<?xi32>
  %twice = varlen.rows in %batch : <1 x f32>
  varlen.for_tiles "prepare" %t of queries(64) in %batch attributes {varlen.schedule = #gpu} {
    %number = varlen.read %prefix at %t : memref<4x?xf32>, <queries(64)> -> tensor<64x1xf32>
    varlen.write %number to %twice at %t otherwise (0.0) times 2.0
        : tensor<64x1xf32> -> !varlen.rows<1 x f32>, <queries(64)>
  }
  varlen.for_tiles "attn" %t of queries(64) in %batch attributes {varlen.schedule = #gpu} {
    %a = varlen.read %q at %t : memref<?x4x64xbf16>, <queries(64)> -> tensor<64x64xbf16>
    %number = varlen.read %twice at %t : !varlen.rows<1 x f32>, <queries(64)> -> tensor<64x1xf32>
    %acc, %m, %l = varlen.online_init qk scale 1.0
        : tensor<64x64xf32>, tensor<64x1xf32>
    %r:3 = varlen.for_blocks %b of keys(32) meeting %t : !varlen.tile<queries(64)>
        iter_args(%x = %acc, %y = %m, %z = %l)
        -> (tensor<64x64xf32>, tensor<64x1xf32>, tensor<64x1xf32>) {
      %k = varlen.read %q at %b : memref<?x4x64xbf16>, <keys(32)> -> tensor<32x64xbf16>
      %acc_2, %m_2, %l_2 = varlen.online_attn qk
          at(%t, %b : !varlen.tile<queries(64)>, !varlen.tile<keys(32)>)
          ins(%a, %k, %k : tensor<64x64xbf16>, tensor<32x64xbf16>, tensor<32x64xbf16>)
          captures(%number : tensor<64x1xf32>)
          outs(%x, %y, %z : tensor<64x64xf32>, tensor<64x1xf32>, tensor<64x1xf32>) scale 1.0
          score (%s: f32, %i: i32, %j: i32, %limit: f32) {
            %at = arith.sitofp %j : i32 to f32
            %visible = arith.cmpf olt, %at, %limit : f32
            varlen.yield %s, %visible : f32, i1
          }
      varlen.yield %acc_2, %m_2, %l_2 : tensor<64x64xf32>, tensor<64x1xf32>, tensor<64x1xf32>
    }
    %o, %e = varlen.online_finish qk %r#0, %r#1, %r#2 scale 1.0 rounded
        : tensor<64x64xf32>, tensor<64x1xf32>
    varlen.write %o to %out at %t otherwise (0.0)
        : tensor<64x64xf32> -> memref<?x4x64xbf16>, <queries(64)>
  }
  varlen.free_rows %twice : <1 x f32>
  return
}

// Nor is memory that is made after the batch.
// CHECK-LABEL: func.func @later(
// CHECK-NOT: _weights
// CHECK: function(@later_attn)
func.func @later(%q: memref<?x4x64xbf16>, %cu: memref<?xi32>, %out: memref<?x4x64xbf16>,
                 %rows: index) {
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %batch = varlen.batch %cu, %cu rows(%rows, %rows) heads(%c4, %c1) mask <full>
      : memref<?xi32>, memref<?xi32>
  %copy = memref.alloc(%rows) : memref<4x?xf32>
  varlen.for_tiles "attn" %t of queries(64) in %batch attributes {varlen.schedule = #gpu} {
    %a = varlen.read %q at %t : memref<?x4x64xbf16>, <queries(64)> -> tensor<64x64xbf16>
    %number = varlen.read %copy at %t : memref<4x?xf32>, <queries(64)> -> tensor<64x1xf32>
    %acc, %m, %l = varlen.online_init qk scale 1.0
        : tensor<64x64xf32>, tensor<64x1xf32>
    %r:3 = varlen.for_blocks %b of keys(32) meeting %t : !varlen.tile<queries(64)>
        iter_args(%x = %acc, %y = %m, %z = %l)
        -> (tensor<64x64xf32>, tensor<64x1xf32>, tensor<64x1xf32>) {
      %k = varlen.read %q at %b : memref<?x4x64xbf16>, <keys(32)> -> tensor<32x64xbf16>
      %acc_2, %m_2, %l_2 = varlen.online_attn qk
          at(%t, %b : !varlen.tile<queries(64)>, !varlen.tile<keys(32)>)
          ins(%a, %k, %k : tensor<64x64xbf16>, tensor<32x64xbf16>, tensor<32x64xbf16>)
          captures(%number : tensor<64x1xf32>)
          outs(%x, %y, %z : tensor<64x64xf32>, tensor<64x1xf32>, tensor<64x1xf32>) scale 1.0
          score (%s: f32, %i: i32, %j: i32, %limit: f32) {
            %at = arith.sitofp %j : i32 to f32
            %visible = arith.cmpf olt, %at, %limit : f32
            varlen.yield %s, %visible : f32, i1
          }
      varlen.yield %acc_2, %m_2, %l_2 : tensor<64x64xf32>, tensor<64x1xf32>, tensor<64x1xf32>
    }
    %o, %e = varlen.online_finish qk %r#0, %r#1, %r#2 scale 1.0 rounded
        : tensor<64x64xf32>, tensor<64x1xf32>
    varlen.write %o to %out at %t otherwise (0.0)
        : tensor<64x64xf32> -> memref<?x4x64xbf16>, <queries(64)>
  }
  memref.dealloc %copy : memref<4x?xf32>
  return
}
