// REQUIRES: plugin
// RUN: %mlir-opt-plugin --allow-unregistered-dialect --pass-pipeline='builtin.module(varlen-import-torch)' %s | FileCheck %s

// What torch-mlir's importer makes of varlen_attn(..., window_size=(-1, 0),
// enable_gqa=True, scale=0.25).

// CHECK-LABEL: func @forward(
// CHECK-SAME: %[[Q:.*]]: !torch.vtensor<[?,8,64],bf16>, %[[K:.*]]: !torch.vtensor<[?,2,64],bf16>, %[[V:.*]]: {{.*}}, %[[CU:.*]]: !torch.vtensor<[?],si32>
// CHECK: %[[Q0:.*]] = "torch_c.to_builtin_tensor"(%[[Q]]) : (!torch.vtensor<[?,8,64],bf16>) -> tensor<?x8x64xbf16>
// CHECK: %[[K0:.*]] = "torch_c.to_builtin_tensor"(%[[K]])
// CHECK: %[[V0:.*]] = "torch_c.to_builtin_tensor"(%[[V]])
// CHECK: %[[CU0:.*]] = "torch_c.to_builtin_tensor"(%[[CU]]) : (!torch.vtensor<[?],si32>) -> tensor<?xi32>
// CHECK: %[[OUT:.*]], %[[LSE:.*]] = varlen.attn %[[Q0]], %[[K0]], %[[V0]], %[[CU0]], %{{.*}} {mask = #varlen.mask<causal>, scale = 2.500000e-01 : f32}
// CHECK: %[[O:.*]] = "torch_c.from_builtin_tensor"(%[[OUT]]) : (tensor<?x8x64xbf16>) -> !torch.vtensor<[?,8,64],bf16>
// CHECK: %[[L:.*]] = "torch_c.from_builtin_tensor"(%[[LSE]]) : (tensor<8x?xf32>) -> !torch.vtensor<[8,?],f32>
// CHECK-NOT: torch.operator
// CHECK: return %[[O]], %[[L]]
"func.func"() <{function_type = (!torch.vtensor<[?,8,64],bf16>, !torch.vtensor<[?,2,64],bf16>, !torch.vtensor<[?,2,64],bf16>, !torch.vtensor<[?],si32>) -> (!torch.vtensor<[?,8,64],bf16>, !torch.vtensor<[8,?],f32>), sym_name = "forward"}> ({
^bb0(%q: !torch.vtensor<[?,8,64],bf16>, %k: !torch.vtensor<[?,2,64],bf16>, %v: !torch.vtensor<[?,2,64],bf16>, %cu: !torch.vtensor<[?],si32>):
  %max = "torch.constant.int"() <{value = 7 : i64}> : () -> !torch.int
  %causal = "torch.constant.bool"() <{value = true}> : () -> !torch.bool
  %scale = "torch.constant.float"() <{value = 2.500000e-01 : f64}> : () -> !torch.float
  %left = "torch.constant.int"() <{value = -1 : i64}> : () -> !torch.int
  %right = "torch.constant.int"() <{value = 0 : i64}> : () -> !torch.int
  %window = "torch.prim.ListConstruct"(%left, %right) : (!torch.int, !torch.int) -> !torch.list<int>
  %gqa = "torch.constant.bool"() <{value = true}> : () -> !torch.bool
  %none = "torch.constant.none"() : () -> !torch.none
  %0:3 = "torch.operator"(%q, %k, %v, %cu, %cu, %max, %max, %causal, %scale, %window, %gqa, %none, %none, %none) <{name = "torch.torch_attn._varlen_attn"}>
      : (!torch.vtensor<[?,8,64],bf16>, !torch.vtensor<[?,2,64],bf16>, !torch.vtensor<[?,2,64],bf16>, !torch.vtensor<[?],si32>, !torch.vtensor<[?],si32>, !torch.int, !torch.int, !torch.bool, !torch.float, !torch.list<int>, !torch.bool, !torch.none, !torch.none, !torch.none)
      -> (!torch.vtensor<[?,8,64],bf16>, !torch.vtensor<[8,?],f32>, !torch.vtensor<[2],ui64>)
  "func.return"(%0#0, %0#1) : (!torch.vtensor<[?,8,64],bf16>, !torch.vtensor<[8,?],f32>) -> ()
}) : () -> ()

// A window, seqused_k, lengths that are known at run time, and a parameter that a newer
// PyTorch has and that is none. rng_state is zeros.

// CHECK-LABEL: func @window(
// CHECK-SAME: %[[Q:.*]]: !torch.vtensor<[9,4,16],f32>, %[[CU:.*]]: !torch.vtensor<[3],si64>, %[[USED:.*]]: !torch.vtensor<[2],si64>, %{{.*}}: !torch.int
// CHECK: %[[USED0:.*]] = "torch_c.to_builtin_tensor"(%[[USED]]) : (!torch.vtensor<[2],si64>) -> tensor<2xi64>
// CHECK-DAG: varlen.attn {{.*}} seqused_k(%[[USED0]]) {mask = #varlen.mask<window = (128, -1)>}
// CHECK-DAG: %[[ZEROS:.*]] = arith.constant dense<0> : tensor<2xi64>
// CHECK: %[[RNG:.*]] = "torch_c.from_builtin_tensor"(%[[ZEROS]]) : (tensor<2xi64>) -> !torch.vtensor<[2],ui64>
// CHECK: return %{{.*}}, %[[RNG]]
func.func @window(%q: !torch.vtensor<[9,4,16],f32>, %cu: !torch.vtensor<[3],si64>, %used: !torch.vtensor<[2],si64>, %max: !torch.int)
    -> (!torch.vtensor<[9,4,16],f32>, !torch.vtensor<[2],ui64>) {
  %false = "torch.constant.bool"() <{value = false}> : () -> !torch.bool
  %left = "torch.constant.int"() <{value = 128 : i64}> : () -> !torch.int
  %right = "torch.constant.int"() <{value = -7 : i64}> : () -> !torch.int
  %window = "torch.prim.ListConstruct"(%left, %right) : (!torch.int, !torch.int) -> !torch.list<int>
  %none = "torch.constant.none"() : () -> !torch.none
  %scale = "torch.derefine"(%none) : (!torch.none) -> !torch.optional<float>
  %0:3 = "torch.operator"(%q, %q, %q, %cu, %cu, %max, %max, %false, %scale, %window, %false, %used, %none, %max, %none) <{name = "torch.torch_attn._varlen_attn"}>
      : (!torch.vtensor<[9,4,16],f32>, !torch.vtensor<[9,4,16],f32>, !torch.vtensor<[9,4,16],f32>, !torch.vtensor<[3],si64>, !torch.vtensor<[3],si64>, !torch.int, !torch.int, !torch.bool, !torch.optional<float>, !torch.list<int>, !torch.bool, !torch.vtensor<[2],si64>, !torch.none, !torch.int, !torch.none)
      -> (!torch.vtensor<[9,4,16],f32>, !torch.vtensor<[4,9],f32>, !torch.vtensor<[2],ui64>)
  return %0#0, %0#2 : !torch.vtensor<[9,4,16],f32>, !torch.vtensor<[2],ui64>
}

// Keys in pages: PyTorch does not read a cu_seq_k beside the table.

// CHECK-LABEL: func @pages(
// CHECK-SAME: %{{.*}}: !torch.vtensor<[9,4,16],f32>, %[[K:.*]]: !torch.vtensor<[?,8,2,16],f32>, %{{.*}}: !torch.vtensor<[3],si32>, %[[USED:.*]]: !torch.vtensor<[2],si32>, %[[TABLE:.*]]: !torch.vtensor<[2,?],si32>
// CHECK-DAG: %[[K0:.*]] = "torch_c.to_builtin_tensor"(%[[K]]) : (!torch.vtensor<[?,8,2,16],f32>) -> tensor<?x8x2x16xf32>
// CHECK-DAG: %[[TABLE0:.*]] = "torch_c.to_builtin_tensor"(%[[TABLE]]) : (!torch.vtensor<[2,?],si32>) -> tensor<2x?xi32>
// CHECK: %{{.*}}, %{{.*}} = varlen.attn %{{.*}}, %[[K0]], %{{.*}}, %{{[^ ,]*}} seqused_k(%{{.*}}) block_table(%[[TABLE0]]) {mask = #varlen.mask<causal>}
// CHECK: varlen.attn %{{.*}}, %{{.*}}, %{{.*}}, %{{[^ ,]*}} seqused_k(%{{.*}}) block_table(%{{.*}}) {mask = #varlen.mask<window = (3, -1)>}
func.func @pages(%q: !torch.vtensor<[9,4,16],f32>, %k: !torch.vtensor<[?,8,2,16],f32>, %cu: !torch.vtensor<[3],si32>, %used: !torch.vtensor<[2],si32>, %table: !torch.vtensor<[2,?],si32>)
    -> (!torch.vtensor<[9,4,16],f32>, !torch.vtensor<[9,4,16],f32>) {
  %true = "torch.constant.bool"() <{value = true}> : () -> !torch.bool
  %n = "torch.constant.int"() <{value = 7 : i64}> : () -> !torch.int
  %none = "torch.constant.none"() : () -> !torch.none
  %0:3 = "torch.operator"(%q, %k, %k, %cu, %cu, %n, %n, %true, %none, %none, %true, %used, %table, %none) <{name = "torch.torch_attn._varlen_attn"}>
      : (!torch.vtensor<[9,4,16],f32>, !torch.vtensor<[?,8,2,16],f32>, !torch.vtensor<[?,8,2,16],f32>, !torch.vtensor<[3],si32>, !torch.vtensor<[3],si32>, !torch.int, !torch.int, !torch.bool, !torch.none, !torch.none, !torch.bool, !torch.vtensor<[2],si32>, !torch.vtensor<[2,?],si32>, !torch.none)
      -> (!torch.vtensor<[9,4,16],f32>, !torch.vtensor<[4,9],f32>, !torch.vtensor<[2],ui64>)
  %left = "torch.constant.int"() <{value = 3 : i64}> : () -> !torch.int
  %right = "torch.constant.int"() <{value = -1 : i64}> : () -> !torch.int
  %score = "torch.constant.str"() <{value = ""}> : () -> !torch.str
  %1:2 = "torch.operator"(%q, %k, %k, %cu, %none, %used, %none, %left, %right, %none, %score, %none, %none, %none, %none, %table) <{name = "torch.varlen.attn"}>
      : (!torch.vtensor<[9,4,16],f32>, !torch.vtensor<[?,8,2,16],f32>, !torch.vtensor<[?,8,2,16],f32>, !torch.vtensor<[3],si32>, !torch.none, !torch.vtensor<[2],si32>, !torch.none, !torch.int, !torch.int, !torch.none, !torch.str, !torch.none, !torch.none, !torch.none, !torch.none, !torch.vtensor<[2,?],si32>)
      -> (!torch.vtensor<[9,4,16],f32>, !torch.vtensor<[4,9],f32>)
  return %0#0, %1#0 : !torch.vtensor<[9,4,16],f32>, !torch.vtensor<[9,4,16],f32>
}

// Forward and backward of one graph: builtin tensors go from one to the other. Operators
// of others stay.

// CHECK-LABEL: func @backward(
// CHECK: %[[OUT:.*]], %[[LSE:.*]] = varlen.attn %[[Q:.*]], %[[Q1:.*]], %[[Q2:.*]], %
// CHECK: %[[DQ:.*]], %[[DK:.*]], %[[DV:.*]] = varlen.attn_grad %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}}, %[[OUT]], %[[LSE]], %{{[^,]*}}, %{{[^ ]*}} {mask = #varlen.mask<causal>}
// CHECK: "torch_c.from_builtin_tensor"(%[[DV]])
// CHECK: "torch.operator"{{.*}}name = "torch.mine.op"
// CHECK-NOT: arith.constant
func.func @backward(%q: !torch.vtensor<[9,4,16],f32>, %cu: !torch.vtensor<[3],si32>) -> !torch.vtensor<[9,4,16],f32> {
  %true = "torch.constant.bool"() <{value = true}> : () -> !torch.bool
  %max = "torch.constant.int"() <{value = 7 : i64}> : () -> !torch.int
  %none = "torch.constant.none"() : () -> !torch.none
  %0:3 = "torch.operator"(%q, %q, %q, %cu, %cu, %max, %max, %true, %none, %none, %true, %none, %none, %none) <{name = "torch.torch_attn._varlen_attn.default"}>
      : (!torch.vtensor<[9,4,16],f32>, !torch.vtensor<[9,4,16],f32>, !torch.vtensor<[9,4,16],f32>, !torch.vtensor<[3],si32>, !torch.vtensor<[3],si32>, !torch.int, !torch.int, !torch.bool, !torch.none, !torch.none, !torch.bool, !torch.none, !torch.none, !torch.none)
      -> (!torch.vtensor<[9,4,16],f32>, !torch.vtensor<[4,9],f32>, !torch.vtensor<[2],ui64>)
  %1:3 = "torch.operator"(%q, %q, %q, %q, %0#0, %0#1, %cu, %cu, %max, %max, %true, %0#2, %none, %none) <{name = "torch.torch_attn._varlen_attn_backward"}>
      : (!torch.vtensor<[9,4,16],f32>, !torch.vtensor<[9,4,16],f32>, !torch.vtensor<[9,4,16],f32>, !torch.vtensor<[9,4,16],f32>, !torch.vtensor<[9,4,16],f32>, !torch.vtensor<[4,9],f32>, !torch.vtensor<[3],si32>, !torch.vtensor<[3],si32>, !torch.int, !torch.int, !torch.bool, !torch.vtensor<[2],ui64>, !torch.none, !torch.none)
      -> (!torch.vtensor<[9,4,16],f32>, !torch.vtensor<[9,4,16],f32>, !torch.vtensor<[9,4,16],f32>)
  %2 = "torch.operator"(%1#2) <{name = "torch.mine.op"}> : (!torch.vtensor<[9,4,16],f32>) -> !torch.vtensor<[9,4,16],f32>
  return %2 : !torch.vtensor<[9,4,16],f32>
}

// The operators of varlen.torch: the text of a score, a list of captures, and operands that
// follow it.

// CHECK-LABEL: func @varlen(
// CHECK-SAME: %[[Q:.*]]: !torch.vtensor<[9,4,16],f32>, %[[CU:.*]]: !torch.vtensor<[3],si32>, %[[USED:.*]]: !torch.vtensor<[2],si32>, %[[GAINS:.*]]: !torch.vtensor<[4,9],f32>, %[[SLOPES:.*]]: !torch.vtensor<[4],f32>
// CHECK: %[[GAINS0:.*]] = "torch_c.to_builtin_tensor"(%[[GAINS]])
// CHECK: %[[SLOPES0:.*]] = "torch_c.to_builtin_tensor"(%[[SLOPES]])
// CHECK: %[[USED0:.*]] = "torch_c.to_builtin_tensor"(%[[USED]])
// CHECK: %[[OFFSET:.*]] = "torch_c.to_builtin_tensor"(%[[USED]])
// CHECK: varlen.attn {{.*}} seqused_q(%[[USED0]]) seqused_k(%{{.*}}) q_offset(%[[OFFSET]]) sink(%{{.*}}) captures(%[[GAINS0]], %[[SLOPES0]]) {mask = #varlen.mask<window = (7, 0)>, scale = 3.000000e-01 : f32}
// CHECK-SAME: score (
// CHECK: arith.subf
// CHECK: varlen.attn {{.*}} {mask = #varlen.chunk_mask<8>} :
// CHECK-NOT: torch.operator
func.func @varlen(%q: !torch.vtensor<[9,4,16],f32>, %cu: !torch.vtensor<[3],si32>, %used: !torch.vtensor<[2],si32>, %gains: !torch.vtensor<[4,9],f32>, %slopes: !torch.vtensor<[4],f32>) -> (!torch.vtensor<[9,4,16],f32>, !torch.vtensor<[4,9],f32>, !torch.vtensor<[9,4,16],f32>) {
  %none = "torch.constant.none"() : () -> !torch.none
  %left = "torch.constant.int"() <{value = 7 : i64}> : () -> !torch.int
  %right = "torch.constant.int"() <{value = 0 : i64}> : () -> !torch.int
  %all = "torch.constant.int"() <{value = -1 : i64}> : () -> !torch.int
  %chunk = "torch.constant.int"() <{value = 8 : i64}> : () -> !torch.int
  %scale = "torch.constant.float"() <{value = 3.000000e-01 : f64}> : () -> !torch.float
  %score = "torch.constant.str"() <{value = "captures(%gains: tensor<?x?xf32>, %slopes: tensor<?xf32>) score (%score: f32, %query: i32, %key: i32, %gains: f32, %slopes: f32) {\0A    %x = arith.mulf %score, %gains : f32\0A    %new = arith.subf %x, %slopes : f32\0A    varlen.yield %new : f32\0A  }"}> : () -> !torch.str
  %nothing = "torch.constant.str"() <{value = ""}> : () -> !torch.str
  %captures = "torch.prim.ListConstruct"(%gains, %slopes) : (!torch.vtensor<[4,9],f32>, !torch.vtensor<[4],f32>) -> !torch.list<vtensor>
  %0:2 = "torch.operator"(%q, %q, %q, %cu, %cu, %used, %slopes, %left, %right, %scale, %score, %captures, %used, %used, %none) <{name = "torch.varlen.attn"}>
      : (!torch.vtensor<[9,4,16],f32>, !torch.vtensor<[9,4,16],f32>, !torch.vtensor<[9,4,16],f32>, !torch.vtensor<[3],si32>, !torch.vtensor<[3],si32>, !torch.vtensor<[2],si32>, !torch.vtensor<[4],f32>, !torch.int, !torch.int, !torch.float, !torch.str, !torch.list<vtensor>, !torch.vtensor<[2],si32>, !torch.vtensor<[2],si32>, !torch.none) -> (!torch.vtensor<[9,4,16],f32>, !torch.vtensor<[4,9],f32>)
  %1:2 = "torch.operator"(%q, %q, %q, %cu, %cu, %none, %none, %all, %all, %none, %nothing, %none, %none, %none, %chunk) <{name = "torch.varlen.attn"}>
      : (!torch.vtensor<[9,4,16],f32>, !torch.vtensor<[9,4,16],f32>, !torch.vtensor<[9,4,16],f32>, !torch.vtensor<[3],si32>, !torch.vtensor<[3],si32>, !torch.none, !torch.none, !torch.int, !torch.int, !torch.none, !torch.str, !torch.none, !torch.none, !torch.none, !torch.int) -> (!torch.vtensor<[9,4,16],f32>, !torch.vtensor<[4,9],f32>)
  return %0#0, %0#1, %1#0 : !torch.vtensor<[9,4,16],f32>, !torch.vtensor<[4,9],f32>, !torch.vtensor<[9,4,16],f32>
}

// Gradients of captures are a list; of a sink that is none there is an empty tensor.

// CHECK-LABEL: func @varlen_backward(
// CHECK: %{{[^:]*}}, %{{.*}}, %{{.*}}, %[[GAINS:.*]], %[[SLOPES:.*]] = varlen.attn_grad {{.*}} captures(%{{.*}}, %{{.*}}) {mask = #varlen.mask<causal>, wrt_captures = array<i64: 0, 1>}
// CHECK: "torch_c.from_builtin_tensor"(%[[SLOPES]])
// CHECK: %{{.*}}, %{{.*}}, %{{.*}}, %[[SINK:.*]] = varlen.attn_grad {{.*}} dlse(%{{.*}}) sink(%{{.*}}) captures(%{{.*}}, %{{.*}}) {mask = #varlen.mask<causal>}
// CHECK: "torch_c.from_builtin_tensor"(%[[SINK]])
// CHECK-NOT: torch.operator
// CHECK-NOT: ListUnpack
func.func @varlen_backward(%q: !torch.vtensor<[9,4,16],f32>, %l: !torch.vtensor<[4,9],f32>, %cu: !torch.vtensor<[3],si32>, %slopes: !torch.vtensor<[4],f32>) -> (!torch.vtensor<[9,4,16],f32>, !torch.vtensor<[4],f32>, !torch.vtensor<[4],f32>) {
  %none = "torch.constant.none"() : () -> !torch.none
  %left = "torch.constant.int"() <{value = -1 : i64}> : () -> !torch.int
  %right = "torch.constant.int"() <{value = 0 : i64}> : () -> !torch.int
  %score = "torch.constant.str"() <{value = "captures(%gains: tensor<?x?xf32>, %slopes: tensor<?xf32>) score (%score: f32, %query: i32, %key: i32, %gains: f32, %slopes: f32) {\0A    %x = arith.mulf %score, %gains : f32\0A    %new = arith.subf %x, %slopes : f32\0A    varlen.yield %new : f32\0A  }"}> : () -> !torch.str
  %captures = "torch.prim.ListConstruct"(%l, %slopes) : (!torch.vtensor<[4,9],f32>, !torch.vtensor<[4],f32>) -> !torch.list<vtensor>
  %0:5 = "torch.operator"(%q, %none, %q, %q, %q, %q, %l, %cu, %cu, %none, %none, %left, %right, %none, %score, %captures) <{name = "torch.varlen.attn_backward"}>
      : (!torch.vtensor<[9,4,16],f32>, !torch.none, !torch.vtensor<[9,4,16],f32>, !torch.vtensor<[9,4,16],f32>, !torch.vtensor<[9,4,16],f32>, !torch.vtensor<[9,4,16],f32>, !torch.vtensor<[4,9],f32>, !torch.vtensor<[3],si32>, !torch.vtensor<[3],si32>, !torch.none, !torch.none, !torch.int, !torch.int, !torch.none, !torch.str, !torch.list<vtensor>) -> (!torch.vtensor<[9,4,16],f32>, !torch.vtensor<[9,4,16],f32>, !torch.vtensor<[9,4,16],f32>, !torch.vtensor<[0],f32>, !torch.list<vtensor>)
  %1:2 = "torch.prim.ListUnpack"(%0#4) : (!torch.list<vtensor>) -> (!torch.vtensor<[4,9],f32>, !torch.vtensor<[4],f32>)
  %2:5 = "torch.operator"(%q, %l, %q, %q, %q, %q, %l, %cu, %cu, %none, %slopes, %left, %right, %none, %score, %captures) <{name = "torch.varlen.attn_backward"}>
      : (!torch.vtensor<[9,4,16],f32>, !torch.vtensor<[4,9],f32>, !torch.vtensor<[9,4,16],f32>, !torch.vtensor<[9,4,16],f32>, !torch.vtensor<[9,4,16],f32>, !torch.vtensor<[9,4,16],f32>, !torch.vtensor<[4,9],f32>, !torch.vtensor<[3],si32>, !torch.vtensor<[3],si32>, !torch.none, !torch.vtensor<[4],f32>, !torch.int, !torch.int, !torch.none, !torch.str, !torch.list<vtensor>) -> (!torch.vtensor<[9,4,16],f32>, !torch.vtensor<[9,4,16],f32>, !torch.vtensor<[9,4,16],f32>, !torch.vtensor<[4],f32>, !torch.list<vtensor>)
  return %0#0, %1#1, %2#3 : !torch.vtensor<[9,4,16],f32>, !torch.vtensor<[4],f32>, !torch.vtensor<[4],f32>
}
