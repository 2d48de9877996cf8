// REQUIRES: plugin
// RUN: %mlir-opt-plugin %s --generate-runtime-verification --canonicalize --cse --split-input-file | FileCheck %s

// Everything that the types leave open, on tensors.

// CHECK-LABEL: func @dynamic(
// CHECK:         cf.assert %{{.*}}, "{{.*}}k and v must have the same number of rows{{.*}}"
// CHECK:         cf.assert %{{.*}}, "{{.*}}k and v must have the same number of heads{{.*}}"
// CHECK:         cf.assert %{{.*}}, "{{.*}}q and k must have the same head_dim{{.*}}"
// CHECK:         cf.assert %{{.*}}, "{{.*}}q must have at least one head{{.*}}"
// CHECK:         cf.assert %{{.*}}, "{{.*}}q must have a positive head_dim{{.*}}"
// CHECK:         cf.assert %{{.*}}, "{{.*}}k must have at least one head{{.*}}"
// CHECK:         cf.assert %{{.*}}, "{{.*}}v must have a positive head_dim{{.*}}"
// CHECK:         cf.assert %{{.*}}, "{{.*}}query heads must be a multiple of kv heads{{.*}}"
// CHECK:         cf.assert %{{.*}}, "{{.*}}sink must have one entry for each query head{{.*}}"
// CHECK:         cf.assert %{{.*}}, "{{.*}}cu_seqlens_q must have at least one entry{{.*}}"
// CHECK:         cf.assert %{{.*}}, "{{.*}}cu_seqlens_q and cu_seqlens_k must have the same number of entries{{.*}}"
// CHECK:         cf.assert %{{.*}}, "{{.*}}seqused_q must have one entry for each sequence{{.*}}"
// CHECK:         cf.assert %{{.*}}, "{{.*}}seqused_k must have one entry for each sequence{{.*}}"
// CHECK:         cf.assert %{{.*}}, "{{.*}}q_offset must have one entry for each sequence{{.*}}"
// CHECK:         cf.assert %{{.*}}, "{{.*}}cu_seqlens_q must start at 0{{.*}}"
// CHECK:         scf.for
// CHECK:           cf.assert %{{.*}}, "{{.*}}cu_seqlens_q must not decrease{{.*}}"
// CHECK:           cf.assert %{{.*}}, "{{.*}}seqused_q must not be negative{{.*}}"
// CHECK:           cf.assert %{{.*}}, "{{.*}}seqused_q must fit the sequence's slot{{.*}}"
// CHECK:         cf.assert %{{.*}}, "{{.*}}cu_seqlens_q must end at or before the last row of q{{.*}}"
// CHECK:         cf.assert %{{.*}}, "{{.*}}cu_seqlens_k must start at 0{{.*}}"
// CHECK:         scf.for
// CHECK:           cf.assert %{{.*}}, "{{.*}}cu_seqlens_k must not decrease{{.*}}"
// CHECK:           cf.assert %{{.*}}, "{{.*}}seqused_k must not be negative{{.*}}"
// CHECK:           cf.assert %{{.*}}, "{{.*}}seqused_k must fit the sequence's slot{{.*}}"
// CHECK:         cf.assert %{{.*}}, "{{.*}}cu_seqlens_k must end at or before the last row of k{{.*}}"
// CHECK:         varlen.attn
func.func @dynamic(%q: tensor<?x?x?xf32>, %k: tensor<?x?x?xf32>, %v: tensor<?x?x?xf32>, %cu_q: tensor<?xi32>, %cu_k: tensor<?xi32>,
                   %used_q: tensor<?xi32>, %used_k: tensor<?xi32>, %offset: tensor<?xi32>, %sink: tensor<?xf32>)
                   -> (tensor<?x?x?xf32>, tensor<?x?xf32>) {
  %out, %lse = varlen.attn %q, %k, %v, %cu_q, %cu_k seqused_q(%used_q) seqused_k(%used_k) q_offset(%offset) sink(%sink)
    : (tensor<?x?x?xf32>, tensor<?x?x?xf32>, tensor<?x?x?xf32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xf32>)
    -> (tensor<?x?x?xf32>, tensor<?x?xf32>)
  return %out, %lse : tensor<?x?x?xf32>, tensor<?x?xf32>
}

// -----

// With static extents only the values are checked; on memrefs they are loaded.

// CHECK-LABEL: func @static(
// CHECK-SAME:    %[[CU:[a-z0-9]+]]: memref<3xi64>
// CHECK-NOT:     cf.assert
// CHECK:         %[[FIRST:.*]] = memref.load %[[CU]][%c0]
// CHECK:         cf.assert %{{.*}}, "{{.*}}cu_seqlens_q must start at 0{{.*}}"
// CHECK:         scf.for
// CHECK:           cf.assert %{{.*}}, "{{.*}}cu_seqlens_q must not decrease{{.*}}"
// CHECK-NOT:       seqused
// CHECK:         cf.assert %{{.*}}, "{{.*}}cu_seqlens_q must end at or before the last row of q{{.*}}"
func.func @static(%q: memref<9x2x8xf32>, %cu: memref<3xi64>, %lse: memref<2x9xf32>) {
  %out = memref.alloc() : memref<9x2x8xf32>
  varlen.attn %q, %q, %q, %cu, %cu outs(%out, %lse)
    : (memref<9x2x8xf32>, memref<9x2x8xf32>, memref<9x2x8xf32>, memref<3xi64>, memref<3xi64>,
       memref<9x2x8xf32>, memref<2x9xf32>) -> ()
  return
}

// -----

// Extents of the outs.

// CHECK-LABEL: func @outs(
// CHECK:         cf.assert %{{.*}}, "{{.*}}out must have as many rows as q{{.*}}"
// CHECK:         cf.assert %{{.*}}, "{{.*}}out must have as many heads as q{{.*}}"
// CHECK:         cf.assert %{{.*}}, "{{.*}}out must have the head_dim of v{{.*}}"
// CHECK:         cf.assert %{{.*}}, "{{.*}}lse must have as many heads as q{{.*}}"
// CHECK:         cf.assert %{{.*}}, "{{.*}}lse must have as many rows as q{{.*}}"
// CHECK:         cf.assert %{{.*}}, "{{.*}}cu_seqlens_q must start at 0{{.*}}"
func.func @outs(%q: memref<9x2x8xf32>, %cu: memref<3xi64>, %out: memref<?x?x?xf32>, %lse: memref<?x?xf32>) {
  varlen.attn %q, %q, %q, %cu, %cu outs(%out, %lse)
    : (memref<9x2x8xf32>, memref<9x2x8xf32>, memref<9x2x8xf32>, memref<3xi64>, memref<3xi64>,
       memref<?x?x?xf32>, memref<?x?xf32>) -> ()
  return
}

// -----

// Results on tensors, where their types say more than the operands.

// CHECK-LABEL: func @results(
// CHECK:         cf.assert %{{.*}}, "{{.*}}q must have at least one head{{.*}}"
// CHECK-NOT:     out must have as many heads as q
// CHECK:         cf.assert %{{.*}}, "{{.*}}out must have as many rows as q{{.*}}"
// CHECK:         cf.assert %{{.*}}, "{{.*}}lse must have as many heads as q{{.*}}"
// CHECK-NOT:     lse must have as many rows as q
func.func @results(%q: tensor<?x?x8xf32>, %k: tensor<9x1x8xf32>, %cu: tensor<?xi32>) -> (tensor<9x?x8xf32>, tensor<2x?xf32>) {
  %out, %lse = varlen.attn %q, %k, %k, %cu, %cu
    : (tensor<?x?x8xf32>, tensor<9x1x8xf32>, tensor<9x1x8xf32>, tensor<?xi32>, tensor<?xi32>)
    -> (tensor<9x?x8xf32>, tensor<2x?xf32>)
  return %out, %lse : tensor<9x?x8xf32>, tensor<2x?xf32>
}

// -----

// A gradient: what it shares with an attention, and its own operands and outs.

// CHECK-LABEL: func @gradient(
// CHECK:         cf.assert %{{.*}}, "{{.*}}k and v must have the same number of rows{{.*}}"
// CHECK:         cf.assert %{{.*}}, "{{.*}}dout must have as many rows as q{{.*}}"
// CHECK:         cf.assert %{{.*}}, "{{.*}}dout must have as many heads as q{{.*}}"
// CHECK:         cf.assert %{{.*}}, "{{.*}}dout must have the head_dim of v{{.*}}"
// CHECK:         cf.assert %{{.*}}, "{{.*}}out must have as many rows as q{{.*}}"
// CHECK:         cf.assert %{{.*}}, "{{.*}}lse must have as many heads as q{{.*}}"
// CHECK:         cf.assert %{{.*}}, "{{.*}}lse must have as many rows as q{{.*}}"
// CHECK:         cf.assert %{{.*}}, "{{.*}}dlse must have as many heads as q{{.*}}"
// CHECK:         cf.assert %{{.*}}, "{{.*}}dq must have as many rows as q{{.*}}"
// CHECK:         cf.assert %{{.*}}, "{{.*}}dk must have as many rows as k{{.*}}"
// CHECK:         cf.assert %{{.*}}, "{{.*}}dk must have the head_dim of k{{.*}}"
// CHECK:         cf.assert %{{.*}}, "{{.*}}dv must have the head_dim of v{{.*}}"
// CHECK:         cf.assert %{{.*}}, "{{.*}}cu_seqlens_q must start at 0{{.*}}"
// CHECK:           cf.assert %{{.*}}, "{{.*}}cu_seqlens_q must not decrease{{.*}}"
// CHECK:         cf.assert %{{.*}}, "{{.*}}cu_seqlens_k must end at or before the last row of k{{.*}}"
// CHECK:         varlen.attn_grad
func.func @gradient(%x: memref<?x?x?xf32>, %lse: memref<?x?xf32>, %cu: memref<?xi32>, %y: memref<?x?x?xf32>) {
  varlen.attn_grad %x, %x, %x, %x, %x, %lse, %cu, %cu dlse(%lse) outs(%y, %y, %y)
    : (memref<?x?x?xf32>, memref<?x?x?xf32>, memref<?x?x?xf32>, memref<?x?x?xf32>, memref<?x?x?xf32>, memref<?x?xf32>,
       memref<?xi32>, memref<?xi32>, memref<?x?xf32>, memref<?x?x?xf32>, memref<?x?x?xf32>, memref<?x?x?xf32>) -> ()
  return
}

// -----

// Destinations on tensors.

// CHECK-LABEL: func @into(
// CHECK:         cf.assert %{{.*}}, "{{.*}}out must have as many rows as q{{.*}}"
// CHECK-NOT:     out must have as many heads as q
// CHECK:         cf.assert %{{.*}}, "{{.*}}lse must have as many rows as q{{.*}}"
// CHECK:         varlen.attn_into
func.func @into(%q: tensor<9x2x8xf32>, %cu: tensor<3xi64>, %o: tensor<?x2x8xf32>, %l: tensor<2x?xf32>) -> (tensor<?x2x8xf32>, tensor<2x?xf32>) {
  %out, %lse = varlen.attn_into %q, %q, %q, %cu, %cu outs(%o, %l)
    : (tensor<9x2x8xf32>, tensor<9x2x8xf32>, tensor<9x2x8xf32>, tensor<3xi64>, tensor<3xi64>, tensor<?x2x8xf32>, tensor<2x?xf32>)
    -> (tensor<?x2x8xf32>, tensor<2x?xf32>)
  return %out, %lse : tensor<?x2x8xf32>, tensor<2x?xf32>
}

// -----

// Keys in pages: lengths fit these, and the entries that they use are pages.

// CHECK-LABEL: func @pages(
// CHECK-SAME:    %[[K:[a-z0-9]+]]: tensor<?x?x2x8xf32>, %{{.*}}: tensor<?xi32>, %[[USED:[a-z0-9]+]]: tensor<?xi32>, %[[TABLE:[a-z0-9]+]]: tensor<?x?xi32>
// CHECK:         cf.assert %{{.*}}, "{{.*}}k and v must have the same number of pages{{.*}}"
// CHECK:         cf.assert %{{.*}}, "{{.*}}k and v must have the same rows in a page{{.*}}"
// CHECK:         cf.assert %{{.*}}, "{{.*}}k must have at least one row in a page{{.*}}"
// CHECK-NOT:     cu_seqlens_k
// CHECK:         cf.assert %{{.*}}, "{{.*}}block_table must have one row for each sequence{{.*}}"
// CHECK:         cu_seqlens_q must end at or before
// CHECK-NOT:     cu_seqlens_k
// CHECK:         scf.for %[[S:.*]] = %c0
// CHECK:           tensor.extract %[[USED]][%[[S]]]
// CHECK:           cf.assert %{{.*}}, "{{.*}}seqused_k must not be negative{{.*}}"
// CHECK:           cf.assert %{{.*}}, "{{.*}}seqused_k must fit the sequence's pages{{.*}}"
// CHECK:           scf.for %[[SLOT:.*]] = %c0
// CHECK:             tensor.extract %[[TABLE]][%[[S]], %[[SLOT]]]
// CHECK:             cf.assert %{{.*}}, "{{.*}}block_table must have pages of k where sequences use them{{.*}}"
func.func @pages(%q: tensor<?x4x8xf32>, %k: tensor<?x?x2x8xf32>, %cu: tensor<?xi32>,
                 %used: tensor<?xi32>, %table: tensor<?x?xi32>) -> tensor<?x4x8xf32> {
  %out, %lse = varlen.attn %q, %k, %k, %cu seqused_k(%used) block_table(%table)
    : (tensor<?x4x8xf32>, tensor<?x?x2x8xf32>, tensor<?x?x2x8xf32>, tensor<?xi32>,
       tensor<?xi32>, tensor<?x?xi32>) -> (tensor<?x4x8xf32>, tensor<4x?xf32>)
  return %out : tensor<?x4x8xf32>
}

// -----

// Scales of quantised rows in pages: as many pages, rows and heads as these.

// CHECK-LABEL: func @quantised(
// CHECK:         cf.assert %{{.*}}, "{{.*}}k_scale must have as many pages as k{{.*}}"
// CHECK:         cf.assert %{{.*}}, "{{.*}}k_scale must have as many rows in a page as k{{.*}}"
// CHECK:         cf.assert %{{.*}}, "{{.*}}k_scale must have as many heads as k{{.*}}"
// CHECK:         cf.assert %{{.*}}, "{{.*}}v_scale must have as many heads as v{{.*}}"
func.func @quantised(%q: tensor<?x4x8xf32>, %k: tensor<?x?x?x8xi8>, %cu: tensor<?xi32>,
                     %used: tensor<?xi32>, %table: tensor<?x?xi32>, %rows: tensor<?x?x?xf32>,
                     %heads: tensor<?xf32>) -> tensor<?x4x8xf32> {
  %out, %lse = varlen.attn %q, %k, %k, %cu seqused_k(%used) block_table(%table) k_scale(%rows)
    v_scale(%heads)
    : (tensor<?x4x8xf32>, tensor<?x?x?x8xi8>, tensor<?x?x?x8xi8>, tensor<?xi32>,
       tensor<?xi32>, tensor<?x?xi32>, tensor<?x?x?xf32>, tensor<?xf32>)
    -> (tensor<?x4x8xf32>, tensor<4x?xf32>)
  return %out : tensor<?x4x8xf32>
}
