// The bytecode form keeps every op, attribute and property.
// RUN: varlen-opt %s > %t.before
// RUN: varlen-opt %s --emit-bytecode -o %t.mlirbc
// RUN: varlen-opt %t.mlirbc > %t.after
// RUN: diff %t.before %t.after
// RUN: varlen-opt %s --verify-roundtrip -o /dev/null
// RUN: FileCheck %s < %t.after

// CHECK-LABEL: func.func @attn
// CHECK: varlen.attn {{.*}} {mask = #varlen.mask<window = (7, 3), top_left>, scale = 1.000000e-01 : f32, varlen.schedule = #varlen.cpu_schedule<
func.func @attn(%q: tensor<?x4x16xf32>, %cu: tensor<?xi32>, %used: tensor<?xi32>,
                %sink: tensor<4xf32>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>) {
  %out, %lse = varlen.attn %q, %q, %q, %cu, %cu seqused_k(%used) sink(%sink)
      {mask = #varlen.mask<window = (7, 3), top_left>, scale = 0.1 : f32,
       varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4,
         panels = 3, kv_block = 64, kv = copy>}
      : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?xi32>,
         tensor<?xi32>, tensor<?xi32>, tensor<4xf32>)
      -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
  return %out, %lse : tensor<?x4x16xf32>, tensor<4x?xf32>
}

// CHECK-LABEL: func.func @attn_grad
// CHECK: varlen.attn_grad {{.*}} dlse(%{{.*}}) sink(%{{.*}}) {mask = #varlen.mask<causal>, scale = 1.000000e-01 : f32}
func.func @attn_grad(%q: tensor<?x4x16xf32>, %lse: tensor<4x?xf32>, %cu: tensor<?xi32>,
                     %sink: tensor<4xf32>) -> tensor<4xf32> {
  %0:4 = varlen.attn_grad %q, %q, %q, %q, %q, %lse, %cu, %cu dlse(%lse) sink(%sink)
      {mask = #varlen.mask<causal>, scale = 0.1 : f32}
      : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>,
         tensor<?x4x16xf32>, tensor<4x?xf32>, tensor<?xi32>, tensor<?xi32>, tensor<4x?xf32>,
         tensor<4xf32>)
      -> (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<4xf32>)
  return %0#3 : tensor<4xf32>
}

// A number of a head, one of a query of each head, a table of heads, one of queries.
// CHECK-LABEL: func.func @captures
// CHECK: varlen.attn {{.*}} captures(%{{[^)]*}}) {mask = #varlen.chunk_mask<64, top_left>}
// CHECK-SAME: score (%score: f32, %query: i32, %key: i32, %capture: f32, %capture_0: f32, %table: !varlen.table<f32>, %table_1: !varlen.table<f32>)
// CHECK: varlen.lookup %table[
// CHECK: varlen.lookup %table_1[
// CHECK: varlen.yield %{{.*}}, %{{.*}} : f32, i1
func.func @captures(%q: tensor<?x4x16xbf16>, %cu: tensor<?xi32>, %slopes: tensor<4xf32>,
                    %gains: tensor<4x?xf32>, %buckets: tensor<4x32xf32>,
                    %bias: tensor<4x?x?xf32>) -> tensor<?x4x16xbf16> {
  %out, %lse = varlen.attn %q, %q, %q, %cu, %cu captures(%slopes, %gains, %buckets, %bias)
      {mask = #varlen.chunk_mask<64, top_left>}
      : (tensor<?x4x16xbf16>, tensor<?x4x16xbf16>, tensor<?x4x16xbf16>, tensor<?xi32>,
         tensor<?xi32>, tensor<4xf32>, tensor<4x?xf32>, tensor<4x32xf32>, tensor<4x?x?xf32>)
      -> (tensor<?x4x16xbf16>, tensor<4x?xf32>)
      score (%s: f32, %i: i32, %j: i32, %slope: f32, %gain: f32, %of_distance: !varlen.table<f32>,
             %of_key: !varlen.table<f32>) {
        %distance = arith.subi %j, %i : i32
        %a = varlen.lookup %of_distance[%distance] : !varlen.table<f32>
        %b = varlen.lookup %of_key[%j] : !varlen.table<f32>
        %x = arith.mulf %gain, %s : f32
        %y = arith.addf %x, %a : f32
        %visible = arith.cmpf une, %b, %slope : f32
        varlen.yield %y, %visible : f32, i1
      }
  return %out : tensor<?x4x16xbf16>
}

// CHECK-LABEL: func.func @grad_captures
// CHECK: varlen.attn_grad {{.*}} captures({{.*}}) {wrt_captures = array<i64: 1>}
// CHECK-SAME: score (%score: f64, %query: i32, %key: i32, %capture: f64, %table: !varlen.table<f64>)
func.func @grad_captures(%q: tensor<?x4x16xf64>, %lse: tensor<4x?xf64>, %cu: tensor<?xi64>,
                         %slopes: tensor<4xf64>, %bias: tensor<4x?x7xf64>)
    -> tensor<4x?x7xf64> {
  %0:4 = varlen.attn_grad %q, %q, %q, %q, %q, %lse, %cu, %cu captures(%slopes, %bias)
      {wrt_captures = array<i64: 1>}
      : (tensor<?x4x16xf64>, tensor<?x4x16xf64>, tensor<?x4x16xf64>, tensor<?x4x16xf64>,
         tensor<?x4x16xf64>, tensor<4x?xf64>, tensor<?xi64>, tensor<?xi64>, tensor<4xf64>,
         tensor<4x?x7xf64>)
      -> (tensor<?x4x16xf64>, tensor<?x4x16xf64>, tensor<?x4x16xf64>, tensor<4x?x7xf64>)
      score (%s: f64, %i: i32, %j: i32, %slope: f64, %table: !varlen.table<f64>) {
        %x = varlen.lookup %table[%j] : !varlen.table<f64>
        %y = arith.mulf %slope, %x : f64
        %new = arith.addf %s, %y : f64
        varlen.yield %new : f64
      }
  return %0#3 : tensor<4x?x7xf64>
}

// CHECK-LABEL: func.func @into
// CHECK: varlen.attn_into {{.*}} captures(%{{.*}}) outs(%{{.*}}, %{{.*}}) :
// CHECK: varlen.attn_grad_into {{.*}} captures(%{{.*}}) outs({{.*}}) {wrt_captures = array<i64: 0>} :
// CHECK: varlen.merge
func.func @into(%q: tensor<?x4x16xf32>, %l: tensor<4x?xf32>, %cu: tensor<?xi32>,
                %c: tensor<4xf32>) -> (tensor<?x4x16xf32>, tensor<4xf32>) {
  %out, %lse = varlen.attn_into %q, %q, %q, %cu, %cu captures(%c) outs(%q, %l)
      : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?xi32>,
         tensor<?xi32>, tensor<?x4x16xf32>, tensor<4x?xf32>, tensor<4xf32>)
      -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
      score (%s: f32, %i: i32, %j: i32, %x: f32) {
        %new = arith.mulf %s, %x : f32
        varlen.yield %new : f32
      }
  %0:4 = varlen.attn_grad_into %q, %q, %q, %q, %out, %lse, %cu, %cu captures(%c)
      outs(%q, %q, %q, %c) {wrt_captures = array<i64: 0>}
      : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>,
         tensor<?x4x16xf32>, tensor<4x?xf32>, tensor<?xi32>, tensor<?xi32>,
         tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<4xf32>,
         tensor<4xf32>)
      -> (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<4xf32>)
      score (%s: f32, %i: i32, %j: i32, %x: f32) {
        %new = arith.mulf %s, %x : f32
        varlen.yield %new : f32
      }
  %merged, %sum = varlen.merge %out, %lse, %q, %l
      : (tensor<?x4x16xf32>, tensor<4x?xf32>, tensor<?x4x16xf32>, tensor<4x?xf32>)
      -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
  return %merged, %0#3 : tensor<?x4x16xf32>, tensor<4xf32>
}

// CHECK-LABEL: func.func @work_tiles
// CHECK: varlen.work_tiles {{.*}} mask <causal> block_m 64
func.func @work_tiles(%cu: memref<?xi32>, %used: memref<?xi32>, %n: index) -> memref<?x10xi64> {
  %tiles = varlen.work_tiles %cu, %cu seqused_k(%used) rows(%n, %n) heads(%n, %n)
      mask <causal> block_m 64
      : (memref<?xi32>, memref<?xi32>, memref<?xi32>, index, index, index, index)
      -> memref<?x10xi64>
  return %tiles : memref<?x10xi64>
}

// CHECK-LABEL: func.func @online_attn
// CHECK: varlen.online_attn kq {{.*}} limits(
func.func @online_attn(%q: tensor<32x64xf32>, %kv: tensor<?x64xf32>, %limit: tensor<1x32xi32>,
                       %k0: i32, %acc: tensor<64x32xf32>, %m: tensor<1x32xf32>)
    -> tensor<64x32xf32> {
  %acc1, %m1, %l1 = varlen.online_attn kq
      ins(%q, %kv, %kv : tensor<32x64xf32>, tensor<?x64xf32>, tensor<?x64xf32>)
      limits(%limit, %limit, %k0 : tensor<1x32xi32>, tensor<1x32xi32>, i32)
      outs(%acc, %m, %m : tensor<64x32xf32>, tensor<1x32xf32>, tensor<1x32xf32>)
      scale 0.125
  return %acc1 : tensor<64x32xf32>
}

// CHECK-LABEL: func.func @online_attn_grad
// CHECK: varlen.online_attn_grad kq {{.*}} limits({{.*}} dq({{.*}} dv(
func.func @online_attn_grad(%t: tensor<32x64xf32>, %stat: tensor<1x32xf32>,
                            %limit: tensor<1x32xi32>, %k0: i32) -> tensor<32x64xf32> {
  %dq, %dv = varlen.online_attn_grad kq
      ins(%t, %t, %t, %t, %stat, %stat : tensor<32x64xf32>, tensor<32x64xf32>,
          tensor<32x64xf32>, tensor<32x64xf32>, tensor<1x32xf32>, tensor<1x32xf32>)
      limits(%limit, %limit, %k0 : tensor<1x32xi32>, tensor<1x32xi32>, i32)
      dq(%t : tensor<32x64xf32>) dv(%t : tensor<32x64xf32>) scale 0.125
  return %dv : tensor<32x64xf32>
}
