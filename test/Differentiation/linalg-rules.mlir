// RUN: varlen-opt %s \
// RUN:   --varlen-differentiate=function=matmul \
// RUN:   --varlen-differentiate=function=narrow \
// RUN:   --varlen-differentiate=function=sum \
// RUN:   --varlen-differentiate=function=broadcast \
// RUN:   --varlen-differentiate=function=maximum \
// RUN:   --varlen-differentiate=function=scalars \
// RUN:   --varlen-differentiate=function=gather \
// RUN:   --varlen-differentiate=function=gather_columns \
// RUN:   --varlen-differentiate=function=windows \
// RUN:   --varlen-differentiate=function=softmax \
// RUN:   --varlen-differentiate=function=loop_in_body \
// RUN:   --varlen-differentiate=function=many_uses \
// RUN:   | FileCheck %s

// CHECK-DAG: #[[$MAP0:.*]] = affine_map<(d0, d1, d2) -> (d2, d1)>
// CHECK-DAG: #[[$MAP1:.*]] = affine_map<(d0, d1, d2) -> (d0, d1)>
// CHECK-DAG: #[[$MAP2:.*]] = affine_map<(d0, d1, d2) -> (d0, d2)>
// CHECK-DAG: #[[$MAP3:.*]] = affine_map<(d0, d1) -> (d1)>
// CHECK-DAG: #[[$MAP4:.*]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-DAG: #[[$MAP5:.*]] = affine_map<(d0, d1) -> (d0)>
// CHECK-DAG: #[[$MAP6:.*]] = affine_map<(d0) -> ()>
// CHECK-DAG: #[[$MAP7:.*]] = affine_map<(d0) -> (d0)>

// Two contractions; neither needs the initial value, which has the cotangent
// of the result.
// CHECK-LABEL: func.func @matmul_vjp(
// CHECK-SAME: %[[A:.*]]: tensor<?x?xf32>, %[[B:.*]]: tensor<?x?xf32>, %[[C:.*]]: tensor<?x?xf32>, %[[D:.*]]: tensor<?x?xf32>) -> (tensor<?x?xf32>, tensor<?x?xf32>, tensor<?x?xf32>) {
// CHECK: %[[E:.*]] = linalg.fill ins(%{{.*}} : f32) outs(%{{.*}} : tensor<?x?xf32>) -> tensor<?x?xf32>
// CHECK-NEXT: %[[F:.*]] = linalg.generic {indexing_maps = [#[[$MAP0]], #[[$MAP1]], #[[$MAP2]]], iterator_types = ["parallel", "reduction", "parallel"]} ins(%[[B]], %[[D]] : tensor<?x?xf32>, tensor<?x?xf32>) outs(%[[E]] : tensor<?x?xf32>) {
// CHECK-NEXT: ^bb0(%[[G:.*]]: f32, %[[H:.*]]: f32, %[[I:.*]]: f32):
// CHECK-NEXT: %[[J:.*]] = arith.mulf %[[H]], %[[G]] : f32
// CHECK-NEXT: %[[K:.*]] = arith.addf %[[I]], %[[J]] : f32
// CHECK-NEXT: linalg.yield %[[K]] : f32
// CHECK-NEXT: } -> tensor<?x?xf32>
// CHECK: %[[L:.*]] = linalg.fill ins(%{{.*}} : f32) outs(%{{.*}} : tensor<?x?xf32>) -> tensor<?x?xf32>
// CHECK-NEXT: %[[M:.*]] = linalg.generic {indexing_maps = [#[[$MAP2]], #[[$MAP1]], #[[$MAP0]]], iterator_types = ["reduction", "parallel", "parallel"]} ins(%[[A]], %[[D]] : tensor<?x?xf32>, tensor<?x?xf32>) outs(%[[L]] : tensor<?x?xf32>) {
// CHECK-NEXT: ^bb0(%[[G]]: f32, %[[H]]: f32, %[[I]]: f32):
// CHECK-NEXT: %[[J]] = arith.mulf %[[H]], %[[G]] : f32
// CHECK-NEXT: %[[K]] = arith.addf %[[I]], %[[J]] : f32
// CHECK-NEXT: linalg.yield %[[K]] : f32
// CHECK-NEXT: } -> tensor<?x?xf32>
// CHECK-NEXT: return %[[F]], %[[M]], %[[D]] : tensor<?x?xf32>, tensor<?x?xf32>, tensor<?x?xf32>
func.func @matmul(%a: tensor<?x?xf32>, %b: tensor<?x?xf32>, %c: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %y = linalg.matmul ins(%a, %b : tensor<?x?xf32>, tensor<?x?xf32>) outs(%c : tensor<?x?xf32>) -> tensor<?x?xf32>
  return %y : tensor<?x?xf32>
}

// Sums of narrow types are made in f32 and rounded once.
// CHECK-LABEL: func.func @narrow_vjp(
// CHECK-SAME: %[[A:.*]]: tensor<4x8xbf16>, %[[B:.*]]: tensor<8xbf16>, %[[D:.*]]: tensor<4x8xbf16>) -> (tensor<4x8xbf16>, tensor<8xbf16>) {
// CHECK: %[[C:.*]] = linalg.generic {indexing_maps = [#[[$MAP3]], #[[$MAP4]], #[[$MAP4]]], iterator_types = ["parallel", "parallel"]} ins(%[[B]], %[[D]] : tensor<8xbf16>, tensor<4x8xbf16>) outs(%{{.*}} : tensor<4x8xbf16>) {
// CHECK-NEXT: ^bb0(%[[E:.*]]: bf16, %[[F:.*]]: bf16, %[[G:.*]]: bf16):
// CHECK-NEXT: %[[H:.*]] = arith.extf %[[E]] : bf16 to f32
// CHECK-NEXT: %[[I:.*]] = arith.extf %[[F]] : bf16 to f32
// CHECK-NEXT: %[[J:.*]] = arith.mulf %[[I]], %[[H]] : f32
// CHECK-NEXT: %[[K:.*]] = arith.truncf %[[J]] : f32 to bf16
// CHECK-NEXT: linalg.yield %[[K]] : bf16
// CHECK-NEXT: } -> tensor<4x8xbf16>
// CHECK: %[[L:.*]] = linalg.fill ins(%{{.*}} : f32) outs(%{{.*}} : tensor<8xf32>) -> tensor<8xf32>
// CHECK-NEXT: %[[M:.*]] = linalg.generic {indexing_maps = [#[[$MAP4]], #[[$MAP4]], #[[$MAP3]]], iterator_types = ["reduction", "parallel"]} ins(%[[A]], %[[D]] : tensor<4x8xbf16>, tensor<4x8xbf16>) outs(%[[L]] : tensor<8xf32>) {
// CHECK-NEXT: ^bb0(%[[E]]: bf16, %[[F]]: bf16, %[[G]]: f32):
// CHECK-NEXT: %[[H]] = arith.extf %[[E]] : bf16 to f32
// CHECK-NEXT: %[[I]] = arith.extf %[[F]] : bf16 to f32
// CHECK-NEXT: %[[J]] = arith.mulf %[[I]], %[[H]] : f32
// CHECK-NEXT: %[[K]] = arith.addf %[[G]], %[[J]] : f32
// CHECK-NEXT: linalg.yield %[[K]] : f32
// CHECK-NEXT: } -> tensor<8xf32>
// CHECK-NEXT: %[[N:.*]] = arith.truncf %[[M]] : tensor<8xf32> to tensor<8xbf16>
// CHECK-NEXT: return %[[C]], %[[N]] : tensor<4x8xbf16>, tensor<8xbf16>
func.func @narrow(%a: tensor<4x8xbf16>, %b: tensor<8xbf16>) -> tensor<4x8xbf16> {
  %empty = tensor.empty() : tensor<4x8xbf16>
  %y = linalg.generic {
    indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>],
    iterator_types = ["parallel", "parallel"]}
    ins(%a, %b : tensor<4x8xbf16>, tensor<8xbf16>) outs(%empty : tensor<4x8xbf16>) {
  ^bb0(%x: bf16, %w: bf16, %o: bf16):
    %0 = arith.extf %w : bf16 to f32
    %1 = arith.extf %x : bf16 to f32
    %2 = arith.mulf %0, %1 : f32
    %3 = arith.truncf %2 : f32 to bf16
    linalg.yield %3 : bf16
  } -> tensor<4x8xbf16>
  return %y : tensor<4x8xbf16>
}

// A sum needs nothing but shapes.
// CHECK-LABEL: func.func @sum_vjp(
// CHECK-SAME: %[[X:.*]]: tensor<?x?xf32>, %[[I:.*]]: tensor<?xf32>, %[[D:.*]]: tensor<?xf32>) -> (tensor<?x?xf32>, tensor<?xf32>) {
// CHECK: %[[A:.*]] = linalg.generic {indexing_maps = [#[[$MAP5]], #[[$MAP4]]], iterator_types = ["parallel", "parallel"]} ins(%[[D]] : tensor<?xf32>) outs(%{{.*}} : tensor<?x?xf32>) {
// CHECK-NEXT: ^bb0(%[[B:.*]]: f32, %{{.*}}: f32):
// CHECK-NEXT: linalg.yield %[[B]] : f32
// CHECK-NEXT: } -> tensor<?x?xf32>
// CHECK-NEXT: return %[[A]], %[[D]] : tensor<?x?xf32>, tensor<?xf32>
func.func @sum(%x: tensor<?x?xf32>, %i: tensor<?xf32>) -> tensor<?xf32> {
  %y = linalg.reduce { arith.addf } ins(%x : tensor<?x?xf32>) outs(%i : tensor<?xf32>) dimensions = [1]
  return %y : tensor<?xf32>
}

// And a broadcast is its reverse.
// CHECK-LABEL: func.func @broadcast_vjp(
// CHECK-SAME: %[[X:.*]]: tensor<?xf32>, %[[O:.*]]: tensor<4x?xf32>, %[[D:.*]]: tensor<4x?xf32>) -> (tensor<?xf32>, tensor<4x?xf32>) {
// CHECK: %[[A:.*]] = linalg.fill ins(%{{.*}} : f32) outs(%{{.*}} : tensor<?xf32>) -> tensor<?xf32>
// CHECK-NEXT: %[[B:.*]] = linalg.generic {indexing_maps = [#[[$MAP4]], #[[$MAP3]]], iterator_types = ["reduction", "parallel"]} ins(%[[D]] : tensor<4x?xf32>) outs(%[[A]] : tensor<?xf32>) {
// CHECK-NEXT: ^bb0(%[[C:.*]]: f32, %[[E:.*]]: f32):
// CHECK-NEXT: %[[F:.*]] = arith.addf %[[E]], %[[C]] : f32
// CHECK-NEXT: linalg.yield %[[F]] : f32
// CHECK-NEXT: } -> tensor<?xf32>
// CHECK: %[[G:.*]] = linalg.fill ins(%{{.*}} : f32) outs(%{{.*}} : tensor<4x?xf32>) -> tensor<4x?xf32>
// CHECK-NEXT: return %[[B]], %[[G]] : tensor<?xf32>, tensor<4x?xf32>
func.func @broadcast(%x: tensor<?xf32>, %o: tensor<4x?xf32>) -> tensor<4x?xf32> {
  %y = linalg.broadcast ins(%x : tensor<?xf32>) outs(%o : tensor<4x?xf32>) dimensions = [0]
  return %y : tensor<4x?xf32>
}

// Those that attain a maximum share; the initial value gets it if none does.
// CHECK-LABEL: func.func @maximum_vjp(
// CHECK-SAME: %[[X:.*]]: tensor<?x4xf32>, %[[I:.*]]: tensor<?xf32>, %[[D:.*]]: tensor<?xf32>) -> (tensor<?x4xf32>, tensor<?xf32>) {
// CHECK: %[[A:.*]] = linalg.reduce { arith.maximumf } ins(%[[X]] : tensor<?x4xf32>) outs(%[[I]] : tensor<?xf32>) dimensions = [1]
// CHECK: %[[B:.*]] = linalg.fill ins(%{{.*}} : f32) outs(%{{.*}} : tensor<?xf32>) -> tensor<?xf32>
// CHECK-NEXT: %[[C:.*]] = linalg.generic {indexing_maps = [#[[$MAP4]], #[[$MAP5]], #[[$MAP5]]], iterator_types = ["parallel", "reduction"]} ins(%[[X]], %[[A]] : tensor<?x4xf32>, tensor<?xf32>) outs(%[[B]] : tensor<?xf32>) {
// CHECK-NEXT: ^bb0(%[[E:.*]]: f32, %[[F:.*]]: f32, %[[G:.*]]: f32):
// CHECK-NEXT: %[[H:.*]] = arith.cmpf oeq, %[[E]], %[[F]] : f32
// CHECK-NEXT: %[[J:.*]] = arith.select %[[H]], %{{.*}}, %{{.*}} : f32
// CHECK-NEXT: %[[K:.*]] = arith.addf %[[G]], %[[J]] : f32
// CHECK-NEXT: linalg.yield %[[K]] : f32
// CHECK-NEXT: } -> tensor<?xf32>
// CHECK: %[[L:.*]] = linalg.fill ins(%{{.*}} : f32) outs(%{{.*}} : tensor<?xf32>) -> tensor<?xf32>
// CHECK-NEXT: %[[M:.*]] = arith.cmpf oeq, %[[C]], %[[L]] : tensor<?xf32>
// CHECK-NEXT: %[[N:.*]] = arith.select %[[M]], %[[D]], %[[L]] : tensor<?xi1>, tensor<?xf32>
// CHECK: %[[O:.*]] = linalg.generic {indexing_maps = [#[[$MAP4]], #[[$MAP5]], #[[$MAP5]], #[[$MAP5]], #[[$MAP4]]], iterator_types = ["parallel", "parallel"]} ins(%[[X]], %[[D]], %[[A]], %[[C]] : tensor<?x4xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>) outs(%{{.*}} : tensor<?x4xf32>) {
// CHECK-NEXT: ^bb0(%[[E]]: f32, %[[F]]: f32, %[[P:.*]]: f32, %[[Q:.*]]: f32, %[[G]]: f32):
// CHECK-NEXT: %[[H]] = arith.cmpf oeq, %[[E]], %[[P]] : f32
// CHECK-NEXT: %[[J]] = arith.divf %[[F]], %[[Q]] : f32
// CHECK-NEXT: %[[K]] = arith.select %[[H]], %[[J]], %{{.*}} : f32
// CHECK-NEXT: linalg.yield %[[K]] : f32
// CHECK-NEXT: } -> tensor<?x4xf32>
// CHECK-NEXT: return %[[O]], %[[N]] : tensor<?x4xf32>, tensor<?xf32>
func.func @maximum(%x: tensor<?x4xf32>, %i: tensor<?xf32>) -> tensor<?xf32> {
  %y = linalg.reduce { arith.maximumf } ins(%x : tensor<?x4xf32>) outs(%i : tensor<?xf32>) dimensions = [1]
  return %y : tensor<?xf32>
}

// A number that is read everywhere, as an operand or from outside.
// CHECK-LABEL: func.func @scalars_vjp(
// CHECK-SAME: %[[X:.*]]: tensor<?xf32>, %[[S:.*]]: f32, %[[R:.*]]: f32, %[[D:.*]]: tensor<?xf32>) -> (tensor<?xf32>, f32, f32) {
// CHECK: %[[A:.*]] = linalg.generic {indexing_maps = [#[[$MAP6]], #[[$MAP7]], #[[$MAP7]]], iterator_types = ["parallel"]} ins(%[[S]], %[[D]] : f32, tensor<?xf32>) outs(%{{.*}} : tensor<?xf32>) {
// CHECK-NEXT: ^bb0(%[[B:.*]]: f32, %[[C:.*]]: f32, %[[E:.*]]: f32):
// CHECK-NEXT: %[[F:.*]] = arith.mulf %[[C]], %[[B]] : f32
// CHECK-NEXT: linalg.yield %[[F]] : f32
// CHECK-NEXT: } -> tensor<?xf32>
// CHECK: %[[G:.*]] = linalg.fill ins(%{{.*}} : f32) outs(%{{.*}} : tensor<f32>) -> tensor<f32>
// CHECK-NEXT: %[[H:.*]] = linalg.generic {indexing_maps = [#[[$MAP7]], #[[$MAP7]], #[[$MAP6]]], iterator_types = ["reduction"]} ins(%[[X]], %[[D]] : tensor<?xf32>, tensor<?xf32>) outs(%[[G]] : tensor<f32>) {
// CHECK-NEXT: ^bb0(%[[B]]: f32, %[[C]]: f32, %[[E]]: f32):
// CHECK-NEXT: %[[F]] = arith.mulf %[[C]], %[[B]] : f32
// CHECK-NEXT: %[[I:.*]] = arith.addf %[[E]], %[[F]] : f32
// CHECK-NEXT: linalg.yield %[[I]] : f32
// CHECK-NEXT: } -> tensor<f32>
// CHECK-NEXT: %[[J:.*]] = tensor.extract %[[H]][] : tensor<f32>
// CHECK-NEXT: %[[K:.*]] = linalg.generic {indexing_maps = [#[[$MAP7]], #[[$MAP6]]], iterator_types = ["reduction"]} ins(%[[D]] : tensor<?xf32>) outs(%[[G]] : tensor<f32>) {
// CHECK-NEXT: ^bb0(%[[B]]: f32, %[[E]]: f32):
// CHECK-NEXT: %[[F]] = arith.addf %[[E]], %[[B]] : f32
// CHECK-NEXT: linalg.yield %[[F]] : f32
// CHECK-NEXT: } -> tensor<f32>
// CHECK-NEXT: %[[L:.*]] = tensor.extract %[[K]][] : tensor<f32>
// CHECK-NEXT: return %[[A]], %[[J]], %[[L]] : tensor<?xf32>, f32, f32
func.func @scalars(%x: tensor<?xf32>, %s: f32, %r: f32) -> tensor<?xf32> {
  %y = linalg.generic {
    indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>, affine_map<(i) -> (i)>],
    iterator_types = ["parallel"]} ins(%x, %s : tensor<?xf32>, f32) outs(%x : tensor<?xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %0 = arith.mulf %a, %b : f32
    %1 = arith.addf %0, %r : f32
    linalg.yield %1 : f32
  } -> tensor<?xf32>
  return %y : tensor<?xf32>
}

// Rows of a table: a loop adds to the rows that were read.
// CHECK-LABEL: func.func @gather_vjp(
// CHECK-SAME: %[[TABLE:.*]]: tensor<?x4xf32>, %[[ROWS:.*]]: tensor<?xi32>, %[[O:.*]]: tensor<?x4xf32>, %[[D:.*]]: tensor<?x4xf32>) -> (tensor<?x4xf32>, tensor<?x4xf32>) {
// CHECK: %[[A:.*]] = linalg.fill ins(%{{.*}} : f32) outs(%{{.*}} : tensor<?x4xf32>) -> tensor<?x4xf32>
// CHECK: %[[B:.*]] = scf.for %[[C:.*]] = %{{.*}} to %{{.*}} step %{{.*}} iter_args(%[[E:.*]] = %[[A]]) -> (tensor<?x4xf32>) {
// CHECK-NEXT: %[[F:.*]] = tensor.extract %[[ROWS]][%[[C]]] : tensor<?xi32>
// CHECK-NEXT: %[[G:.*]] = arith.index_cast %[[F]] : i32 to index
// CHECK-NEXT: %[[H:.*]] = tensor.extract_slice %[[E]][%[[G]], 0] [1, 4] [1, 1] : tensor<?x4xf32> to tensor<4xf32>
// CHECK-NEXT: %[[I:.*]] = tensor.extract_slice %[[D]][%[[C]], %{{.*}}] [1, 4] [1, 1] : tensor<?x4xf32> to tensor<4xf32>
// CHECK-NEXT: %[[J:.*]] = linalg.generic {{.*}} ins(%[[I]] : tensor<4xf32>) outs(%[[H]] : tensor<4xf32>) {
// CHECK-NEXT: ^bb0(%[[K:.*]]: f32, %[[L:.*]]: f32):
// CHECK-NEXT: %[[M:.*]] = arith.addf %[[L]], %[[K]] : f32
// CHECK-NEXT: linalg.yield %[[M]] : f32
// CHECK-NEXT: }
// CHECK-NEXT: %[[N:.*]] = tensor.insert_slice %[[J]] into %[[E]][%[[G]], 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<?x4xf32>
// CHECK-NEXT: scf.yield %[[N]] : tensor<?x4xf32>
// CHECK-NEXT: }
// CHECK: %[[P:.*]] = linalg.fill ins(%{{.*}} : f32) outs(%{{.*}} : tensor<?x4xf32>) -> tensor<?x4xf32>
// CHECK-NEXT: return %[[B]], %[[P]] : tensor<?x4xf32>, tensor<?x4xf32>
func.func @gather(%table: tensor<?x4xf32>, %rows: tensor<?xi32>, %o: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %y = linalg.generic {
    indexing_maps = [affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>],
    iterator_types = ["parallel", "parallel"]} ins(%rows : tensor<?xi32>) outs(%o : tensor<?x4xf32>) {
  ^bb0(%row: i32, %out: f32):
    %i = arith.index_cast %row : i32 to index
    %j = linalg.index 1 : index
    %0 = tensor.extract %table[%i, %j] : tensor<?x4xf32>
    linalg.yield %0 : f32
  } -> tensor<?x4xf32>
  return %y : tensor<?x4xf32>
}

// Columns of a table: a loop adds to one element after the other.
// CHECK-LABEL: func.func @gather_columns_vjp(
// CHECK-SAME: %[[TABLE:.*]]: tensor<4x?xf32>, %[[COLUMNS:.*]]: tensor<?xi32>, %[[O:.*]]: tensor<?x4xf32>, %[[D:.*]]: tensor<?x4xf32>) -> (tensor<4x?xf32>, tensor<?x4xf32>) {
// CHECK: %[[A:.*]] = linalg.fill ins(%{{.*}} : f32) outs(%{{.*}} : tensor<4x?xf32>) -> tensor<4x?xf32>
// CHECK: %[[B:.*]] = scf.for %[[C:.*]] = %{{.*}} to %{{.*}} step %{{.*}} iter_args(%[[E:.*]] = %[[A]]) -> (tensor<4x?xf32>) {
// CHECK-NEXT: %[[F:.*]] = scf.for %[[G:.*]] = %{{.*}} to %{{.*}} step %{{.*}} iter_args(%[[H:.*]] = %[[E]]) -> (tensor<4x?xf32>) {
// CHECK-NEXT: %[[I:.*]] = tensor.extract %[[COLUMNS]][%[[C]]] : tensor<?xi32>
// CHECK-NEXT: %[[J:.*]] = tensor.extract %[[D]][%[[C]], %[[G]]] : tensor<?x4xf32>
// CHECK-NEXT: %[[K:.*]] = arith.index_cast %[[I]] : i32 to index
// CHECK-NEXT: %[[L:.*]] = tensor.extract %[[H]][%[[G]], %[[K]]] : tensor<4x?xf32>
// CHECK-NEXT: %[[M:.*]] = arith.addf %[[L]], %[[J]] : f32
// CHECK-NEXT: %[[N:.*]] = tensor.insert %[[M]] into %[[H]][%[[G]], %[[K]]] : tensor<4x?xf32>
// CHECK-NEXT: scf.yield %[[N]] : tensor<4x?xf32>
// CHECK-NEXT: }
// CHECK-NEXT: scf.yield %[[F]] : tensor<4x?xf32>
// CHECK-NEXT: }
func.func @gather_columns(%table: tensor<4x?xf32>, %columns: tensor<?xi32>, %o: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %y = linalg.generic {
    indexing_maps = [affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>],
    iterator_types = ["parallel", "parallel"]} ins(%columns : tensor<?xi32>) outs(%o : tensor<?x4xf32>) {
  ^bb0(%column: i32, %out: f32):
    %i = arith.index_cast %column : i32 to index
    %j = linalg.index 1 : index
    %0 = tensor.extract %table[%j, %i] : tensor<4x?xf32>
    linalg.yield %0 : f32
  } -> tensor<?x4xf32>
  return %y : tensor<?x4xf32>
}

// An operation without a rule that decomposes.
// CHECK-LABEL: func.func @softmax_vjp(
// CHECK-SAME: %[[X:.*]]: tensor<2x4xf32>, %[[D:.*]]: tensor<2x4xf32>) -> tensor<2x4xf32> {
// CHECK: %[[A:.*]] = linalg.fill ins(%{{.*}} : f32) outs(%{{.*}} : tensor<2xf32>) -> tensor<2xf32>
// CHECK-NEXT: %[[B:.*]] = linalg.generic {indexing_maps = [#[[$MAP4]], #[[$MAP5]]], iterator_types = ["parallel", "reduction"]} ins(%[[X]] : tensor<2x4xf32>) outs(%[[A]] : tensor<2xf32>) {
// CHECK-NEXT: ^bb0(%[[C:.*]]: f32, %[[E:.*]]: f32):
// CHECK-NEXT: %[[F:.*]] = arith.maxnumf %[[C]], %[[E]] : f32
// CHECK-NEXT: linalg.yield %[[F]] : f32
// CHECK-NEXT: } -> tensor<2xf32>
// CHECK-NEXT: %[[G:.*]] = linalg.generic {indexing_maps = [#[[$MAP4]], #[[$MAP5]], #[[$MAP4]]], iterator_types = ["parallel", "parallel"]} ins(%[[X]], %[[B]] : tensor<2x4xf32>, tensor<2xf32>) outs(%[[X]] : tensor<2x4xf32>) {
// CHECK-NEXT: ^bb0(%[[C]]: f32, %[[H:.*]]: f32, %[[E]]: f32):
// CHECK-NEXT: %[[F]] = arith.subf %[[C]], %[[H]] : f32
// CHECK-NEXT: %[[I:.*]] = math.exp %[[F]] : f32
// CHECK-NEXT: linalg.yield %[[I]] : f32
// CHECK-NEXT: } -> tensor<2x4xf32>
// CHECK-NEXT: %[[J:.*]] = linalg.fill ins(%{{.*}} : f32) outs(%{{.*}} : tensor<2xf32>) -> tensor<2xf32>
// CHECK-NEXT: %[[K:.*]] = linalg.generic {indexing_maps = [#[[$MAP4]], #[[$MAP5]]], iterator_types = ["parallel", "reduction"]} ins(%[[G]] : tensor<2x4xf32>) outs(%[[J]] : tensor<2xf32>) {
// CHECK-NEXT: ^bb0(%[[C]]: f32, %[[E]]: f32):
// CHECK-NEXT: %[[F]] = arith.addf %[[C]], %[[E]] : f32
// CHECK-NEXT: linalg.yield %[[F]] : f32
// CHECK-NEXT: } -> tensor<2xf32>
// CHECK: %[[L:.*]] = linalg.generic {indexing_maps = [#[[$MAP5]], #[[$MAP4]], #[[$MAP4]]], iterator_types = ["parallel", "parallel"]} ins(%[[K]], %[[D]] : tensor<2xf32>, tensor<2x4xf32>) outs(%{{.*}} : tensor<2x4xf32>) {
// CHECK-NEXT: ^bb0(%[[C]]: f32, %[[H]]: f32, %[[E]]: f32):
// CHECK-NEXT: %[[F]] = arith.divf %[[H]], %[[C]] : f32
// CHECK-NEXT: linalg.yield %[[F]] : f32
// CHECK-NEXT: } -> tensor<2x4xf32>
// CHECK-NEXT: %[[M:.*]] = linalg.generic {indexing_maps = [#[[$MAP4]], #[[$MAP5]], #[[$MAP4]], #[[$MAP5]]], iterator_types = ["parallel", "reduction"]} ins(%[[G]], %[[K]], %[[D]] : tensor<2x4xf32>, tensor<2xf32>, tensor<2x4xf32>) outs(%[[J]] : tensor<2xf32>) {
// CHECK-NEXT: ^bb0(%[[C]]: f32, %[[H]]: f32, %[[N:.*]]: f32, %[[E]]: f32):
// CHECK-NEXT: %[[F]] = arith.divf %[[C]], %[[H]] : f32
// CHECK-NEXT: %[[I]] = arith.divf %[[N]], %[[H]] : f32
// CHECK-NEXT: %[[O:.*]] = arith.mulf %[[I]], %[[F]] : f32
// CHECK-NEXT: %[[P:.*]] = arith.negf %[[O]] : f32
// CHECK-NEXT: %[[Q:.*]] = arith.addf %[[E]], %[[P]] : f32
// CHECK-NEXT: linalg.yield %[[Q]] : f32
// CHECK-NEXT: } -> tensor<2xf32>
// CHECK-NEXT: %[[R:.*]] = linalg.generic {indexing_maps = [#[[$MAP5]], #[[$MAP4]]], iterator_types = ["parallel", "parallel"]} ins(%[[M]] : tensor<2xf32>) outs(%{{.*}} : tensor<2x4xf32>) {
// CHECK-NEXT: ^bb0(%[[C]]: f32, %[[E]]: f32):
// CHECK-NEXT: linalg.yield %[[C]] : f32
// CHECK-NEXT: } -> tensor<2x4xf32>
// CHECK-NEXT: %[[S:.*]] = arith.addf %[[L]], %[[R]] : tensor<2x4xf32>
// CHECK-NEXT: %[[T:.*]] = linalg.generic {indexing_maps = [#[[$MAP4]], #[[$MAP5]], #[[$MAP4]], #[[$MAP4]]], iterator_types = ["parallel", "parallel"]} ins(%[[X]], %[[B]], %[[S]] : tensor<2x4xf32>, tensor<2xf32>, tensor<2x4xf32>) outs(%{{.*}} : tensor<2x4xf32>) {
// CHECK-NEXT: ^bb0(%[[C]]: f32, %[[H]]: f32, %[[N]]: f32, %[[E]]: f32):
// CHECK-NEXT: %[[F]] = arith.subf %[[C]], %[[H]] : f32
// CHECK-NEXT: %[[I]] = math.exp %[[F]] : f32
// CHECK-NEXT: %[[O]] = arith.mulf %[[N]], %[[I]] : f32
// CHECK-NEXT: linalg.yield %[[O]] : f32
// CHECK-NEXT: } -> tensor<2x4xf32>
// CHECK-NEXT: %[[U:.*]] = linalg.generic {indexing_maps = [#[[$MAP4]], #[[$MAP5]], #[[$MAP4]], #[[$MAP5]]], iterator_types = ["parallel", "reduction"]} ins(%[[X]], %[[B]], %[[S]] : tensor<2x4xf32>, tensor<2xf32>, tensor<2x4xf32>) outs(%[[J]] : tensor<2xf32>) {
// CHECK-NEXT: ^bb0(%[[C]]: f32, %[[H]]: f32, %[[N]]: f32, %[[E]]: f32):
// CHECK-NEXT: %[[F]] = arith.subf %[[C]], %[[H]] : f32
// CHECK-NEXT: %[[I]] = math.exp %[[F]] : f32
// CHECK-NEXT: %[[O]] = arith.mulf %[[N]], %[[I]] : f32
// CHECK-NEXT: %[[P]] = arith.negf %[[O]] : f32
// CHECK-NEXT: %[[Q]] = arith.addf %[[E]], %[[P]] : f32
// CHECK-NEXT: linalg.yield %[[Q]] : f32
// CHECK-NEXT: } -> tensor<2xf32>
// CHECK-NEXT: %[[V:.*]] = linalg.generic {indexing_maps = [#[[$MAP4]], #[[$MAP5]], #[[$MAP5]]], iterator_types = ["parallel", "reduction"]} ins(%[[X]], %[[B]] : tensor<2x4xf32>, tensor<2xf32>) outs(%[[J]] : tensor<2xf32>) {
// CHECK-NEXT: ^bb0(%[[C]]: f32, %[[H]]: f32, %[[E]]: f32):
// CHECK-NEXT: %[[F]] = arith.cmpf oeq, %[[C]], %[[H]] : f32
// CHECK-NEXT: %[[I]] = arith.select %[[F]], %{{.*}}, %{{.*}} : f32
// CHECK-NEXT: %[[O]] = arith.addf %[[E]], %[[I]] : f32
// CHECK-NEXT: linalg.yield %[[O]] : f32
// CHECK-NEXT: } -> tensor<2xf32>
// CHECK-NEXT: %[[W:.*]] = linalg.generic {indexing_maps = [#[[$MAP4]], #[[$MAP5]], #[[$MAP5]], #[[$MAP5]], #[[$MAP4]]], iterator_types = ["parallel", "parallel"]} ins(%[[X]], %[[U]], %[[B]], %[[V]] : tensor<2x4xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) outs(%{{.*}} : tensor<2x4xf32>) {
// CHECK-NEXT: ^bb0(%[[C]]: f32, %[[H]]: f32, %[[N]]: f32, %[[Y:.*]]: f32, %[[E]]: f32):
// CHECK-NEXT: %[[F]] = arith.cmpf oeq, %[[C]], %[[N]] : f32
// CHECK-NEXT: %[[I]] = arith.divf %[[H]], %[[Y]] : f32
// CHECK-NEXT: %[[O]] = arith.select %[[F]], %[[I]], %{{.*}} : f32
// CHECK-NEXT: linalg.yield %[[O]] : f32
// CHECK-NEXT: } -> tensor<2x4xf32>
// CHECK-NEXT: %[[Z:.*]] = arith.addf %[[T]], %[[W]] : tensor<2x4xf32>
// CHECK-NEXT: return %[[Z]] : tensor<2x4xf32>
func.func @softmax(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %y = linalg.softmax dimension(1) ins(%x : tensor<2x4xf32>) outs(%x : tensor<2x4xf32>) -> tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}

// A body may have operations with regions.
// CHECK-LABEL: func.func @loop_in_body_vjp(
// CHECK: linalg.generic
// CHECK: %[[L:.*]] = scf.for {{.*}} -> (f32) {
// CHECK-NEXT: %[[S:.*]] = arith.addf %{{.*}}, %{{.*}} : f32
// CHECK-NEXT: scf.yield %[[S]] : f32
// CHECK: linalg.yield %[[L]] : f32
func.func @loop_in_body(%x: tensor<8xf32>, %n: index) -> tensor<8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]} outs(%x : tensor<8xf32>) {
  ^bb0(%a: f32):
    %s = scf.for %i = %c0 to %n step %c1 iter_args(%b = %zero) -> f32 {
      %c = arith.addf %b, %a : f32
      scf.yield %c : f32
    }
    linalg.yield %s : f32
  } -> tensor<8xf32>
  return %y : tensor<8xf32>
}

// Each value is looked at once, however many ways lead to it.
// CHECK-LABEL: func.func @many_uses_vjp(
// CHECK-COUNT-23: math.fma
// CHECK: linalg.yield
func.func @many_uses(%x: tensor<8xf32>, %init: tensor<f32>) -> tensor<f32> {
  %y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>], iterator_types = ["reduction"]}
      ins(%x : tensor<8xf32>) outs(%init : tensor<f32>) {
  ^bb0(%x0: f32, %acc: f32):
    %x1 = math.fma %x0, %x0, %x0 : f32
    %x2 = math.fma %x1, %x1, %x1 : f32
    %x3 = math.fma %x2, %x2, %x2 : f32
    %x4 = math.fma %x3, %x3, %x3 : f32
    %x5 = math.fma %x4, %x4, %x4 : f32
    %x6 = math.fma %x5, %x5, %x5 : f32
    %x7 = math.fma %x6, %x6, %x6 : f32
    %x8 = math.fma %x7, %x7, %x7 : f32
    %x9 = math.fma %x8, %x8, %x8 : f32
    %x10 = math.fma %x9, %x9, %x9 : f32
    %x11 = math.fma %x10, %x10, %x10 : f32
    %x12 = math.fma %x11, %x11, %x11 : f32
    %x13 = math.fma %x12, %x12, %x12 : f32
    %x14 = math.fma %x13, %x13, %x13 : f32
    %x15 = math.fma %x14, %x14, %x14 : f32
    %x16 = math.fma %x15, %x15, %x15 : f32
    %x17 = math.fma %x16, %x16, %x16 : f32
    %x18 = math.fma %x17, %x17, %x17 : f32
    %x19 = math.fma %x18, %x18, %x18 : f32
    %x20 = math.fma %x19, %x19, %x19 : f32
    %x21 = math.fma %x20, %x20, %x20 : f32
    %x22 = math.fma %x21, %x21, %x21 : f32
    %x23 = math.fma %x22, %x22, %x22 : f32
    %x24 = math.fma %x23, %x23, %x23 : f32
    %sum = arith.addf %acc, %x24 : f32
    linalg.yield %sum : f32
  } -> tensor<f32>
  return %y : tensor<f32>
}

// An input that is read through a sum of loops gets its cotangent point by point, what
// it is weighed by as a sum over points.
// CHECK-LABEL: func.func @windows_vjp(
// CHECK-SAME: %[[X:.*]]: tensor<8xf32>, %[[W:.*]]: tensor<3xf32>, %{{.*}}: tensor<6xf32>, %[[DY:.*]]: tensor<6xf32>)
// CHECK: %[[DX:.*]] = scf.for %[[I:[a-z0-9]+]] = {{.*}} {
// CHECK: scf.for %[[K:[a-z0-9]+]] = {{.*}} iter_args(%[[SUM:[a-z0-9]+]] = %{{.*}}) -> (tensor<8xf32>) {
// CHECK: %[[AT:.*]] = arith.addi %[[I]], %[[K]]
// CHECK: %[[OLD:.*]] = tensor.extract %[[SUM]][%[[AT]]]
// CHECK: %[[NEW:.*]] = arith.addf %[[OLD]]
// CHECK: tensor.insert %[[NEW]] into %[[SUM]][%[[AT]]]
// CHECK: %[[DW:.*]] = linalg.generic {{.*}} iterator_types = ["reduction", "parallel"]} ins(%[[X]], %[[DY]] :
// CHECK: return %[[DX]], %[[DW]], %[[DY]]
func.func @windows(%x: tensor<8xf32>, %w: tensor<3xf32>, %o: tensor<6xf32>) -> tensor<6xf32> {
  %y = linalg.conv_1d ins(%x, %w : tensor<8xf32>, tensor<3xf32>) outs(%o : tensor<6xf32>) -> tensor<6xf32>
  return %y : tensor<6xf32>
}
