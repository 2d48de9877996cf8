// RUN: varlen-opt %s --varlen-guard-attn --cse --split-input-file | FileCheck %s

// Everything is open: extents, then cu_seqlens and seqused, then the attention.

// CHECK-LABEL: func @dynamic(
// CHECK-SAME:    %[[Q:[a-z0-9]+]]: tensor<?x?x?xf32>, %[[K:[a-z0-9]+]]: tensor<?x?x?xf32>, %[[V:[a-z0-9]+]]: tensor<?x?x?xf32>, %[[CU:[a-z0-9]+]]: tensor<?xi32>, %[[USED:[a-z0-9]+]]: tensor<?xi32>
// CHECK-DAG:     %[[C0:.*]] = arith.constant 0 : index
// CHECK-DAG:     %[[C1:.*]] = arith.constant 1 : index
// CHECK-DAG:     %[[C2:.*]] = arith.constant 2 : index
// CHECK-DAG:     %[[KEYS:.*]] = tensor.dim %[[K]], %[[C0]]
// CHECK-DAG:     %[[HEADS:.*]] = tensor.dim %[[Q]], %[[C1]]
// CHECK-DAG:     %[[DIM:.*]] = tensor.dim %[[V]], %[[C2]]
// CHECK:         scf.if %[[WRONG:.*]] {
// CHECK:           call @varlen_extent_error(%{{.*}}, %{{.*}}, %{{.*}}) : (i64, i64, i64) -> ()
// CHECK-NEXT:    }
// CHECK-DAG:     %[[ROWS:.*]] = tensor.dim %[[Q]], %[[C0]]
// CHECK-DAG:     %[[CU_BUFFER:.*]] = bufferization.to_buffer %[[CU]] read_only : tensor<?xi32> to memref<?xi32>
// CHECK-DAG:     %[[USED_BUFFER:.*]] = bufferization.to_buffer %[[USED]] read_only : tensor<?xi32> to memref<?xi32>
// CHECK:         %[[TILES:.*]] = varlen.work_tiles %[[CU_BUFFER]], %[[CU_BUFFER]] seqused_k(%[[USED_BUFFER]]) rows(%[[ROWS]], %[[KEYS]]) heads(%[[C0]], %[[C0]]) mask <full> block_m 1 {bufferization.manual_deallocation}
// CHECK-NEXT:    %[[ADDRESS:.*]] = memref.extract_aligned_pointer_as_index %[[TILES]]
// CHECK-NEXT:    memref.dealloc %[[TILES]] {bufferization.manual_deallocation}
// CHECK-NEXT:    %[[REFUSED:.*]] = arith.cmpi eq, %[[ADDRESS]], %[[C0]]
// CHECK-NEXT:    %[[BAD:.*]] = arith.ori %[[WRONG]], %[[REFUSED]]
// CHECK-NEXT:    %[[RESULTS:.*]]:2 = scf.if %[[BAD]] -> (tensor<?x?x?xf32>, tensor<?x?xf32>) {
// CHECK:           %[[OUT:.*]] = tensor.empty(%[[ROWS]], %[[HEADS]], %[[DIM]]) : tensor<?x?x?xf32>
// CHECK:           %[[LSE:.*]] = tensor.empty(%[[HEADS]], %[[ROWS]]) : tensor<?x?xf32>
// CHECK:           scf.yield %[[OUT]], %[[LSE]]
// CHECK-NEXT:    } else {
// CHECK-NEXT:      %[[OUT:.*]], %[[LSE:.*]] = varlen.attn %[[Q]], %[[K]], %[[V]], %[[CU]], %[[CU]] seqused_k(%[[USED]])
// CHECK:           scf.yield %[[OUT]], %[[LSE]]
// CHECK:         return %[[RESULTS]]#0, %[[RESULTS]]#1
func.func @dynamic(%q: tensor<?x?x?xf32>, %k: tensor<?x?x?xf32>, %v: tensor<?x?x?xf32>, %cu: tensor<?xi32>, %used: tensor<?xi32>)
    -> (tensor<?x?x?xf32>, tensor<?x?xf32>) {
  %out, %lse = varlen.attn %q, %k, %v, %cu, %cu seqused_k(%used)
    : (tensor<?x?x?xf32>, tensor<?x?x?xf32>, tensor<?x?x?xf32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>)
    -> (tensor<?x?x?xf32>, tensor<?x?xf32>)
  return %out, %lse : tensor<?x?x?xf32>, tensor<?x?xf32>
}

// -----

// Extents are known: cu_seqlens are what is left.

// CHECK-LABEL: func @static(
// CHECK-NOT:     call
// CHECK:         varlen.work_tiles
// CHECK:         %[[REFUSED:.*]] = arith.cmpi eq
// CHECK-NEXT:    scf.if %[[REFUSED]]
func.func @static(%q: tensor<9x2x8xf32>, %cu: tensor<3xi64>) -> (tensor<9x2x8xf32>, tensor<2x9xf32>) {
  %out, %lse = varlen.attn %q, %q, %q, %cu, %cu
    : (tensor<9x2x8xf32>, tensor<9x2x8xf32>, tensor<9x2x8xf32>, tensor<3xi64>, tensor<3xi64>)
    -> (tensor<9x2x8xf32>, tensor<2x9xf32>)
  return %out, %lse : tensor<9x2x8xf32>, tensor<2x9xf32>
}

// -----

// A result whose type says more than the operands is one more rule.

// CHECK-LABEL: func @results(
// CHECK-DAG:     %[[C0:.*]] = arith.constant 0 : index
// CHECK-DAG:     %[[C9:.*]] = arith.constant 9 : index
// CHECK:         %[[ROWS:.*]] = tensor.dim %{{.*}}, %[[C0]]
// CHECK:         arith.cmpi eq, %[[ROWS]], %[[C9]]
// CHECK:         call @varlen_extent_error
// CHECK:         scf.if %{{.*}} -> (tensor<9x2x8xf32>, tensor<2x?xf32>) {
// CHECK:           tensor.empty() : tensor<9x2x8xf32>
// CHECK:           tensor.empty(%[[ROWS]]) : tensor<2x?xf32>
func.func @results(%q: tensor<?x2x8xf32>, %cu: tensor<?xi32>) -> (tensor<9x2x8xf32>, tensor<2x?xf32>) {
  %out, %lse = varlen.attn %q, %q, %q, %cu, %cu
    : (tensor<?x2x8xf32>, tensor<?x2x8xf32>, tensor<?x2x8xf32>, tensor<?xi32>, tensor<?xi32>)
    -> (tensor<9x2x8xf32>, tensor<2x?xf32>)
  return %out, %lse : tensor<9x2x8xf32>, tensor<2x?xf32>
}

// -----

// CHECK-LABEL: func @gradient(
// CHECK:         call @varlen_extent_error
// CHECK:         varlen.work_tiles
// CHECK:         scf.if %{{.*}} -> (tensor<?x?x?xf32>, tensor<?x?x?xf32>, tensor<?x?x?xf32>) {
// CHECK-COUNT-3:   tensor.empty
// CHECK:         } else {
// CHECK:           varlen.attn_grad
func.func @gradient(%x: tensor<?x?x?xf32>, %y: tensor<?x?x?xf32>, %z: tensor<?x?x?xf32>, %lse: tensor<?x?xf32>, %cu: tensor<?xi32>)
    -> (tensor<?x?x?xf32>, tensor<?x?x?xf32>, tensor<?x?x?xf32>) {
  %dq, %dk, %dv = varlen.attn_grad %y, %x, %y, %z, %y, %lse, %cu, %cu
    : (tensor<?x?x?xf32>, tensor<?x?x?xf32>, tensor<?x?x?xf32>, tensor<?x?x?xf32>, tensor<?x?x?xf32>, tensor<?x?xf32>,
       tensor<?xi32>, tensor<?xi32>) -> (tensor<?x?x?xf32>, tensor<?x?x?xf32>, tensor<?x?x?xf32>)
  return %dq, %dk, %dv : tensor<?x?x?xf32>, tensor<?x?x?xf32>, tensor<?x?x?xf32>
}

// -----

// Tiles have their own checks.

// CHECK-LABEL: func @scheduled(
// CHECK-NEXT:    varlen.attn
func.func @scheduled(%q: tensor<?x1x8xf32>, %cu: tensor<?xi32>) -> tensor<?x1x8xf32> {
  %out, %lse = varlen.attn %q, %q, %q, %cu, %cu
    {varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 4, kv_block = 96, kv = copy>}
    : (tensor<?x1x8xf32>, tensor<?x1x8xf32>, tensor<?x1x8xf32>, tensor<?xi32>, tensor<?xi32>)
    -> (tensor<?x1x8xf32>, tensor<1x?xf32>)
  return %out : tensor<?x1x8xf32>
}

// -----

// What has destinations has them in either case, and their extents are checked.

// CHECK-LABEL: func.func @into(
// CHECK-SAME:    %{{.*}}: tensor<?x2x4xf32>, %{{.*}}: tensor<?xi32>, %[[O:[a-z0-9]+]]: tensor<?x2x4xf32>, %[[L:[a-z0-9]+]]: tensor<2x?xf32>
// CHECK-DAG:     tensor.dim %[[O]], %{{.*}}
// CHECK-DAG:     tensor.dim %[[L]], %{{.*}}
// CHECK:         call @varlen_extent_error
// CHECK:         scf.if
// CHECK-NEXT:      scf.yield %[[O]], %[[L]]
// CHECK-NEXT:    } else {
// CHECK-NEXT:      varlen.attn_into
func.func @into(%q: tensor<?x2x4xf32>, %cu: tensor<?xi32>, %o: tensor<?x2x4xf32>, %l: tensor<2x?xf32>) -> tensor<?x2x4xf32> {
  %out, %lse = varlen.attn_into %q, %q, %q, %cu, %cu outs(%o, %l)
      : (tensor<?x2x4xf32>, tensor<?x2x4xf32>, tensor<?x2x4xf32>, tensor<?xi32>, tensor<?xi32>, tensor<?x2x4xf32>, tensor<2x?xf32>)
      -> (tensor<?x2x4xf32>, tensor<2x?xf32>)
  return %out : tensor<?x2x4xf32>
}

// -----

// Keys in pages: the list is that of the tiles, whose making checks the table.

// CHECK-LABEL: func @pages(
// CHECK-SAME:    %[[K:[a-z0-9]+]]: tensor<?x8x2x8xf32>
// CHECK-SAME:    %[[TABLE:[a-z0-9]+]]: tensor<?x?xi32>)
// CHECK-DAG:     %[[PAGES:.*]] = tensor.dim %[[K]], %{{.*}}
// CHECK-DAG:     %[[WIDTH:.*]] = tensor.dim %[[TABLE]], %{{.*}}
// CHECK:         %[[ROWS:.*]] = arith.muli %[[WIDTH]], %c8
// CHECK:         %[[BUFFER:.*]] = bufferization.to_buffer %[[TABLE]] read_only
// CHECK:         varlen.work_tiles %{{.*}} block_table(%[[BUFFER]], %[[PAGES]], %c8{{[^)]*}}) rows(%{{.*}}, %[[ROWS]]) heads(%c0{{.*}}, %c0{{.*}})
func.func @pages(%q: tensor<?x4x8xf32>, %k: tensor<?x8x2x8xf32>, %cu: tensor<?xi32>,
                 %used: tensor<?xi32>, %table: tensor<?x?xi32>) -> tensor<?x4x8xf32> {
  %out, %lse = varlen.attn %q, %k, %k, %cu seqused_k(%used) block_table(%table)
    : (tensor<?x4x8xf32>, tensor<?x8x2x8xf32>, tensor<?x8x2x8xf32>, tensor<?xi32>,
       tensor<?xi32>, tensor<?x?xi32>) -> (tensor<?x4x8xf32>, tensor<4x?xf32>)
  return %out : tensor<?x4x8xf32>
}
