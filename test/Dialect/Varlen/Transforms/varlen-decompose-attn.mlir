// RUN: varlen-opt %s --split-input-file --pass-pipeline='builtin.module(varlen-decompose-attn,canonicalize,cse)' | FileCheck %s

// Static heads and head_dim: the group and the scale are constants.

// CHECK-LABEL: func @causal(
// CHECK-SAME:    %[[Q:[a-z0-9_]+]]: tensor<?x4x64xbf16>, %[[K:[a-z0-9_]+]]: tensor<?x2x64xbf16>, %[[V:[a-z0-9_]+]]: tensor<?x2x32xbf16>, %[[CQ:[a-z0-9_]+]]: tensor<4xi32>, %[[CK:[a-z0-9_]+]]: tensor<4xi32>
// CHECK-DAG:     %[[SCALE:.*]] = arith.constant 1.250000e-01 : f32
// CHECK-DAG:     %[[LOWEST:.*]] = arith.constant 0xFF800000 : f32
// CHECK-DAG:     %[[HEADS:.*]] = arith.constant 4 : index
// CHECK-DAG:     %[[GROUP:.*]] = arith.constant 2 : index
// CHECK-DAG:     %[[N:.*]] = arith.constant 3 : index
// CHECK:         scf.for %[[S:[a-z0-9_]+]] = %{{.*}} to %[[N]] step %{{.*}} -> (tensor<?x4x32xbf16>, tensor<4x?xf32>)
// CHECK:           tensor.extract %[[CQ]][%[[S]]]
// CHECK:           %[[Q_ROWS:[a-z0-9_]+]] = arith.subi
// CHECK:           %[[K_ROWS:[a-z0-9_]+]] = arith.subi
// CHECK:           %[[DIAGONAL:[a-z0-9_]+]] = arith.subi %[[K_ROWS]], %[[Q_ROWS]]
// CHECK:           scf.for %[[H:[a-z0-9_]+]] = %{{.*}} to %[[HEADS]]
// CHECK:             %[[KV:[a-z0-9_]+]] = arith.divsi %[[H]], %[[GROUP]]
// CHECK:             tensor.extract_slice %[[Q]][%{{.*}}, %[[H]], 0] [%[[Q_ROWS]], 1, 64]
// CHECK:             tensor.extract_slice %[[K]][%{{.*}}, %[[KV]], 0] [%[[K_ROWS]], 1, 64]
// CHECK:             tensor.extract_slice %[[V]][%{{.*}}, %[[KV]], 0] [%[[K_ROWS]], 1, 32]
// Products of extended elements.
// CHECK:             arith.extf %{{.*}} : bf16 to f32
// CHECK:             arith.extf %{{.*}} : bf16 to f32
// CHECK:             arith.mulf
// CHECK-NEXT:        arith.addf
// The mask and the scale.
// CHECK:             %[[POSITION:[a-z0-9_]+]] = arith.addi %{{.*}}, %[[DIAGONAL]]
// CHECK:             %[[AHEAD:[a-z0-9_]+]] = arith.subi %{{.*}}, %[[POSITION]]
// CHECK:             arith.cmpi sle, %[[AHEAD]], %{{.*}}
// CHECK:             %[[SCALED:[a-z0-9_]+]] = arith.mulf %{{.*}}, %[[SCALE]]
// CHECK:             arith.select %{{.*}}, %[[SCALED]], %[[LOWEST]]
// The softmax and the sum over values.
// CHECK:             arith.maximumf
// CHECK:             math.exp
// CHECK:             arith.truncf %{{.*}} : f32 to bf16
// CHECK:             math.log
// CHECK:             tensor.insert_slice
// CHECK:             tensor.insert_slice
// CHECK-NOT:     varlen.attn
func.func @causal(%q: tensor<?x4x64xbf16>, %k: tensor<?x2x64xbf16>, %v: tensor<?x2x32xbf16>,
                  %cu_q: tensor<4xi32>, %cu_k: tensor<4xi32>) -> (tensor<?x4x32xbf16>, tensor<4x?xf32>) {
  %out, %lse = varlen.attn %q, %k, %v, %cu_q, %cu_k {mask = #varlen.mask<causal>}
    : (tensor<?x4x64xbf16>, tensor<?x2x64xbf16>, tensor<?x2x32xbf16>, tensor<4xi32>, tensor<4xi32>)
    -> (tensor<?x4x32xbf16>, tensor<4x?xf32>)
  return %out, %lse : tensor<?x4x32xbf16>, tensor<4x?xf32>
}

// -----

// A chunk of keys: those up to the query, of the chunk that it is in.

// CHECK-LABEL: func @chunks(
// CHECK-DAG:     %[[SIZE:.*]] = arith.constant 6 : index
// CHECK:         %[[QUERY:[a-z0-9_]+]] = linalg.index 0
// CHECK:         %[[KEY:[a-z0-9_]+]] = linalg.index 1
// CHECK:         %[[NUMBER:[a-z0-9_]+]] = arith.divui %[[KEY]], %[[SIZE]]
// CHECK:         %[[CHUNK:[a-z0-9_]+]] = arith.muli %[[NUMBER]], %[[SIZE]]
// CHECK:         %[[END:[a-z0-9_]+]] = arith.addi %[[CHUNK]], %[[SIZE]]
// CHECK:         %[[REACHED:[a-z0-9_]+]] = arith.cmpi sge, %[[QUERY]], %[[KEY]]
// CHECK:         %[[WITHIN:[a-z0-9_]+]] = arith.cmpi slt, %[[QUERY]], %[[END]]
// CHECK:         arith.andi %[[REACHED]], %[[WITHIN]]
func.func @chunks(%q: tensor<?x1x8xf32>, %cu: tensor<?xi32>) -> tensor<?x1x8xf32> {
  %out, %lse = varlen.attn %q, %q, %q, %cu, %cu {mask = #varlen.chunk_mask<6, top_left>}
      : (tensor<?x1x8xf32>, tensor<?x1x8xf32>, tensor<?x1x8xf32>, tensor<?xi32>, tensor<?xi32>)
      -> (tensor<?x1x8xf32>, tensor<1x?xf32>)
  return %out : tensor<?x1x8xf32>
}

// A top-left window: no diagonal to compute, a bound on each side.

// CHECK-LABEL: func @window_top_left(
// CHECK-DAG:     %[[LEFT:.*]] = arith.constant -5 : index
// CHECK-DAG:     %[[RIGHT:.*]] = arith.constant 7 : index
// CHECK:         %[[QUERY:[a-z0-9_]+]] = linalg.index 0
// CHECK:         %[[KEY:[a-z0-9_]+]] = linalg.index 1
// CHECK:         %[[AHEAD:[a-z0-9_]+]] = arith.subi %[[KEY]], %[[QUERY]]
// CHECK:         arith.cmpi sge, %[[AHEAD]], %[[LEFT]]
// CHECK:         arith.cmpi sle, %[[AHEAD]], %[[RIGHT]]
func.func @window_top_left(%q: tensor<?x1x8xf32>, %cu: tensor<?xi32>) -> tensor<?x1x8xf32> {
  %out, %lse = varlen.attn %q, %q, %q, %cu, %cu {mask = #varlen.mask<window = (5, 7), top_left>}
    : (tensor<?x1x8xf32>, tensor<?x1x8xf32>, tensor<?x1x8xf32>, tensor<?xi32>, tensor<?xi32>)
    -> (tensor<?x1x8xf32>, tensor<1x?xf32>)
  return %out : tensor<?x1x8xf32>
}

// -----

// f64 computes in f64, and a scale that is given is used.

// CHECK-LABEL: func @double(
// CHECK-DAG:     arith.constant 5.000000e-01 : f64
func.func @double(%q: tensor<9x1x8xf64>, %cu: tensor<?xi64>) -> (tensor<9x1x8xf64>, tensor<1x9xf64>) {
  %out, %lse = varlen.attn %q, %q, %q, %cu, %cu {scale = 0.5 : f32}
    : (tensor<9x1x8xf64>, tensor<9x1x8xf64>, tensor<9x1x8xf64>, tensor<?xi64>, tensor<?xi64>)
    -> (tensor<9x1x8xf64>, tensor<1x9xf64>)
  return %out, %lse : tensor<9x1x8xf64>, tensor<1x9xf64>
}

// -----

// Used lengths, offsets and sinks are read once per sequence or head.

// CHECK-LABEL: func @everything(
// CHECK-SAME:    %[[USED_Q:[a-z0-9]+]]: tensor<2xi64>, %[[USED_K:[a-z0-9]+]]: tensor<2xi64>, %[[OFFSET:[a-z0-9]+]]: tensor<2xi64>, %[[SINK:[a-z0-9]+]]: tensor<2xf32>)
// CHECK:         scf.for %[[S:[a-z0-9_]+]] =
// CHECK:           tensor.extract %[[USED_Q]][%[[S]]]
// CHECK:           tensor.extract %[[USED_K]][%[[S]]]
// CHECK:           tensor.extract %[[OFFSET]][%[[S]]]
// CHECK:           scf.for %[[H:[a-z0-9_]+]] =
// CHECK:             %[[LOGIT:[A-Za-z0-9_]+]] = tensor.extract %[[SINK]][%[[H]]]
// CHECK:             linalg.fill ins(%[[LOGIT]] : f32)
func.func @everything(%q: tensor<?x2x8xf32>, %cu: tensor<3xi64>, %used_q: tensor<2xi64>, %used_k: tensor<2xi64>,
                      %offset: tensor<2xi64>, %sink: tensor<2xf32>) -> (tensor<?x2x8xf32>, tensor<2x?xf32>) {
  %out, %lse = varlen.attn %q, %q, %q, %cu, %cu
    seqused_q(%used_q) seqused_k(%used_k) q_offset(%offset) sink(%sink) {mask = #varlen.mask<causal>}
    : (tensor<?x2x8xf32>, tensor<?x2x8xf32>, tensor<?x2x8xf32>, tensor<3xi64>, tensor<3xi64>,
       tensor<2xi64>, tensor<2xi64>, tensor<2xi64>, tensor<2xf32>) -> (tensor<?x2x8xf32>, tensor<2x?xf32>)
  return %out, %lse : tensor<?x2x8xf32>, tensor<2x?xf32>
}

// -----

// An offset may move a query to any position: that of a score is within 2^30 - 1 of 0.

// CHECK-LABEL: func @positions(
// CHECK-DAG:     %[[LEAST:.*]] = arith.constant -1073741823 : i128
// CHECK-DAG:     %[[MOST:.*]] = arith.constant 1073741823 : i128
// CHECK:         %[[LIMITED:.*]] = arith.maxsi %{{.*}}, %[[LEAST]]
// CHECK:         arith.minsi %[[LIMITED]], %[[MOST]]
func.func @positions(%q: tensor<?x2x8xf32>, %cu: tensor<3xi64>, %offset: tensor<2xi64>) -> tensor<?x2x8xf32> {
  %out, %lse = varlen.attn %q, %q, %q, %cu, %cu q_offset(%offset)
    : (tensor<?x2x8xf32>, tensor<?x2x8xf32>, tensor<?x2x8xf32>, tensor<3xi64>, tensor<3xi64>, tensor<2xi64>)
    -> (tensor<?x2x8xf32>, tensor<2x?xf32>) score (%s: f32, %i: i32, %j: i32) {
    %x = arith.sitofp %i : i32 to f32
    %new = arith.addf %s, %x : f32
    varlen.yield %new : f32
  }
  return %out : tensor<?x2x8xf32>
}

// -----

// A gradient: sequences, kv heads, and the query heads of a group, whose sums are
// of the compute type.

// CHECK-LABEL: func @gradient(
// CHECK-SAME:    %[[DOUT:[a-z0-9_]+]]: tensor<?x4x32xbf16>, %[[Q:[a-z0-9_]+]]: tensor<?x4x64xbf16>, %[[K:[a-z0-9_]+]]: tensor<?x2x64xbf16>, %[[V:[a-z0-9_]+]]: tensor<?x2x32xbf16>
// CHECK-DAG:     %[[SCALE:.*]] = arith.constant 1.250000e-01 : f32
// CHECK-DAG:     %[[KV_HEADS:.*]] = arith.constant 2 : index
// CHECK:         scf.for %[[S:[a-z0-9_]+]] = {{.*}} -> (tensor<?x4x64xbf16>, tensor<?x2x64xbf16>, tensor<?x2x32xbf16>, tensor<4xf32>)
// The mask of a sequence is made once.
// CHECK:           linalg.index 0
// CHECK:           scf.for %[[KV:[a-z0-9_]+]] = {{.*}} to %[[KV_HEADS]]
// CHECK:             scf.for %[[MEMBER:[a-z0-9_]+]] = {{.*}} -> (tensor<?x4x64xbf16>, tensor<?x64xf32>, tensor<?x32xf32>, tensor<4xf32>)
// CHECK:               %[[H:[a-z0-9_]+]] = arith.addi
// CHECK:               tensor.extract_slice %[[Q]][%{{.*}}, %[[H]], 0]
// CHECK:               tensor.extract_slice %[[K]][%{{.*}}, %[[KV]], 0]
// CHECK:               tensor.extract_slice %[[V]][%{{.*}}, %[[KV]], 0]
// p, from lse
// CHECK:               arith.mulf %{{.*}}, %[[SCALE]]
// CHECK-NEXT:          arith.subf
// Not of a row without weight.
// CHECK-NEXT:          arith.cmpf une
// CHECK-NEXT:          arith.andi
// CHECK-NEXT:          arith.select
// CHECK-NEXT:          math.exp
// delta
// CHECK:               tensor.extract_slice %[[DOUT]][%{{.*}}, %[[H]], 0]
// CHECK:               arith.addf
// CHECK:               arith.subf
// ds
// CHECK:               arith.subf
// CHECK-NEXT:          arith.mulf
// CHECK-NEXT:          arith.select
// dq is stored at once.
// CHECK:               arith.select
// CHECK:               arith.mulf %{{.*}}, %[[SCALE]]
// CHECK-NEXT:          arith.truncf
// CHECK:               tensor.insert_slice
// dsink
// CHECK:               math.exp
// CHECK:               tensor.insert %{{.*}} into %{{.*}}[%[[H]]]
// CHECK:             arith.mulf %{{.*}}, %[[SCALE]]
// CHECK-NEXT:        arith.truncf
// CHECK:             tensor.insert_slice
// CHECK:             arith.truncf
// CHECK:             tensor.insert_slice
// CHECK-NOT:     varlen.attn_grad
func.func @gradient(%dout: tensor<?x4x32xbf16>, %q: tensor<?x4x64xbf16>, %k: tensor<?x2x64xbf16>, %v: tensor<?x2x32xbf16>,
                    %out: tensor<?x4x32xbf16>, %lse: tensor<4x?xf32>, %cu: tensor<4xi32>, %sink: tensor<4xf32>)
                    -> (tensor<?x4x64xbf16>, tensor<?x2x64xbf16>, tensor<?x2x32xbf16>, tensor<4xf32>) {
  %0:4 = varlen.attn_grad %dout, %q, %k, %v, %out, %lse, %cu, %cu dlse(%lse) sink(%sink) {mask = #varlen.mask<causal>}
    : (tensor<?x4x32xbf16>, tensor<?x4x64xbf16>, tensor<?x2x64xbf16>, tensor<?x2x32xbf16>, tensor<?x4x32xbf16>, tensor<4x?xf32>,
       tensor<4xi32>, tensor<4xi32>, tensor<4x?xf32>, tensor<4xf32>)
    -> (tensor<?x4x64xbf16>, tensor<?x2x64xbf16>, tensor<?x2x32xbf16>, tensor<4xf32>)
  return %0#0, %0#1, %0#2, %0#3 : tensor<?x4x64xbf16>, tensor<?x2x64xbf16>, tensor<?x2x32xbf16>, tensor<4xf32>
}

// -----

// Destinations are filled and written in place; what was in them is not read.

// CHECK-LABEL: func @into(
// CHECK-SAME:    %{{.*}}: tensor<?x2x4xf16>, %{{.*}}: tensor<?xi32>, %[[O:[a-z0-9]+]]: tensor<?x2x4xf16>, %[[L:[a-z0-9]+]]: tensor<2x?xf32>
// CHECK:         %[[OUT:.*]] = linalg.fill ins(%{{.*}} : f16) outs(%[[O]] : tensor<?x2x4xf16>)
// CHECK:         %[[LSE:.*]] = linalg.fill ins(%{{.*}} : f32) outs(%[[L]] : tensor<2x?xf32>)
// CHECK-NOT:     %[[O]]
// CHECK-NOT:     %[[L]]
// CHECK:         scf.for {{.*}} iter_args(%{{.*}} = %[[OUT]], %{{.*}} = %[[LSE]])
// CHECK-NOT:     varlen.attn_into
func.func @into(%q: tensor<?x2x4xf16>, %cu: tensor<?xi32>, %o: tensor<?x2x4xf16>, %l: tensor<2x?xf32>) -> (tensor<?x2x4xf16>, tensor<2x?xf32>) {
  %out, %lse = varlen.attn_into %q, %q, %q, %cu, %cu outs(%o, %l)
      : (tensor<?x2x4xf16>, tensor<?x2x4xf16>, tensor<?x2x4xf16>, tensor<?xi32>, tensor<?xi32>, tensor<?x2x4xf16>, tensor<2x?xf32>)
      -> (tensor<?x2x4xf16>, tensor<2x?xf32>)
  return %out, %lse : tensor<?x2x4xf16>, tensor<2x?xf32>
}

// -----

// CHECK-LABEL: func @grad_into(
// CHECK-SAME:    %{{.*}}: tensor<?x2x4xf64>, %{{.*}}: tensor<2x?xf64>, %{{.*}}: tensor<?xi32>, %[[A:[a-z0-9]+]]: tensor<?x2x4xf64>, %[[B:[a-z0-9]+]]: tensor<?x2x4xf64>, %[[C:[a-z0-9]+]]: tensor<?x2x4xf64>
// CHECK:         %[[DQ:.*]] = linalg.fill {{.*}} outs(%[[A]] :
// CHECK:         %[[DK:.*]] = linalg.fill {{.*}} outs(%[[B]] :
// CHECK:         %[[DV:.*]] = linalg.fill {{.*}} outs(%[[C]] :
// CHECK:         scf.for {{.*}} iter_args(%{{.*}} = %[[DQ]], %{{.*}} = %[[DK]], %{{.*}} = %[[DV]])
// CHECK-NOT:     varlen.attn_grad_into
func.func @grad_into(%q: tensor<?x2x4xf64>, %lse: tensor<2x?xf64>, %cu: tensor<?xi32>, %a: tensor<?x2x4xf64>, %b: tensor<?x2x4xf64>, %c: tensor<?x2x4xf64>)
    -> (tensor<?x2x4xf64>, tensor<?x2x4xf64>, tensor<?x2x4xf64>) {
  %0:3 = varlen.attn_grad_into %q, %q, %q, %q, %q, %lse, %cu, %cu outs(%a, %b, %c)
      : (tensor<?x2x4xf64>, tensor<?x2x4xf64>, tensor<?x2x4xf64>, tensor<?x2x4xf64>, tensor<?x2x4xf64>, tensor<2x?xf64>,
         tensor<?xi32>, tensor<?xi32>, tensor<?x2x4xf64>, tensor<?x2x4xf64>, tensor<?x2x4xf64>)
      -> (tensor<?x2x4xf64>, tensor<?x2x4xf64>, tensor<?x2x4xf64>)
  return %0#0, %0#1, %0#2 : tensor<?x2x4xf64>, tensor<?x2x4xf64>, tensor<?x2x4xf64>
}

// -----

// The oracle multiplies weights behind their sum.
// CHECK-LABEL: func.func @factor
// CHECK: math.exp
// CHECK: arith.addf
// CHECK: arith.bitcast
// CHECK: arith.mulf
// CHECK: math.log
func.func @factor(%q: tensor<?x4x64xf32> {varlen.name = "q"}, %cu: tensor<?xi32>,
                 %words: tensor<4x?xf32>) -> tensor<?x4x64xf32> {
  %out, %lse = varlen.attn %q, %q, %q, %cu, %cu captures(%words)
      : (tensor<?x4x64xf32>, tensor<?x4x64xf32>, tensor<?x4x64xf32>, tensor<?xi32>,
         tensor<?xi32>, tensor<4x?xf32>) -> (tensor<?x4x64xf32>, tensor<4x?xf32>)
      score (%s: f32, %i: i32, %j: i32, %start: f32) {
        %word = arith.bitcast %start : f32 to i32
        %product = arith.muli %j, %word : i32
        %none = arith.constant 0 : i32
        %kept = arith.cmpi sge, %product, %none : i32
        %two = arith.constant 2.0 : f32
        %zero = arith.constant 0.0 : f32
        %factor = arith.select %kept, %two, %zero : f32
        varlen.yield %s, %factor : f32, f32
      }
  return %out : tensor<?x4x64xf32>
}
