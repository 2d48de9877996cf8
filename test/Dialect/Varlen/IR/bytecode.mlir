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
