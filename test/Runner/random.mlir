// What --random makes: shapes and integers from the lengths, the rest from
// --extent.

// RUN: mkdir -p %t && cd %t

// Prefix sums; the rows that they need; one argument for both sides.
// RUN: varlen-run %s --entry=self --random=1 --lengths=3,0,5 -o self
// RUN: %python %S/Inputs/print-tensors.py self | FileCheck %s --check-prefix=SELF
// SELF-DAG: cu int32 [4] [0, 3, 3, 8]
// SELF-DAG: lse float32 [2, 8]

// Other lengths of keys, used lengths, ghosts, an offset that does nothing, and a
// call in between.
// RUN: varlen-run %s --entry=cross --random=1 --lengths=3,5 --lengths-k=4,1 --cu-pad=5 -o cross
// RUN: %python %S/Inputs/print-tensors.py cross | FileCheck %s --check-prefix=CROSS
// CROSS-DAG: cu_k int64 [5] [0, 4, 5, 5, 5]
// CROSS-DAG: cu_q int64 [5] [0, 3, 8, 8, 8]
// CROSS-DAG: offset int64 [4] [0, 0, 0, 0]
// CROSS-DAG: out float32 [8, 2, 16]
// CROSS-DAG: used_k int64 [4] [4, 1, 0, 0]
// CROSS-DAG: used_q int64 [4] [3, 5, 0, 0]

// Static sizes are kept: more rows, more entries than the lengths need.
// RUN: varlen-run %s --entry=static --random=1 --lengths=3,4 -o static
// RUN: %python %S/Inputs/print-tensors.py static | FileCheck %s --check-prefix=STATIC
// STATIC-DAG: cu int32 [6] [0, 3, 7, 7, 7, 7]
// STATIC-DAG: lse float32 [2, 10]

// No sequence at all, and rows that belong to none.
// RUN: varlen-run %s --entry=self --random=1 --lengths= --extent=q:0=2 -o none
// RUN: %python %S/Inputs/print-tensors.py none | FileCheck %s --check-prefix=EMPTY
// EMPTY-DAG: cu int32 [1] [0]
// EMPTY-DAG: lse float32 [2, 2] [-inf, -inf, -inf, -inf]

// A file comes first; what it lacks is made.
// RUN: %python -c "import numpy, varlen; varlen.safetensors.write('cu', {'cu': numpy.array([0, 2], 'i4')})"
// RUN: varlen-run %s cu --entry=self --random=1 --lengths=4 -o mixed
// RUN: %python %S/Inputs/print-tensors.py mixed | FileCheck %s --check-prefix=MIXED
// MIXED-DAG: cu int32 [2] [0, 2]
// MIXED-DAG: lse float32 [2, 4] [{{[^i]*}}, -inf, -inf, {{[^i]*}}, -inf, -inf]

// RUN: not varlen-run %s --entry=self --random=1 2>&1 | FileCheck %s --check-prefix=NOLENGTHS
// NOLENGTHS: error: the size of dimension 0 of 'q' is not known: give --extent=q:0=SIZE or --lengths
// RUN: not varlen-run %s --entry=static --random=1 2>&1 | FileCheck %s --check-prefix=NOSTATIC
// NOSTATIC: error: argument 'cu' is made from the lengths: expected --lengths=L,L,...
// RUN: not varlen-run %s --entry=self --random=1 --lengths=3 --lengths-k=4 2>&1 | FileCheck %s --check-prefix=BOTH
// BOTH: error: argument 'q' is used for queries and for keys: --lengths-k must not differ from --lengths
// RUN: not varlen-run %s --entry=static --random=1 --lengths=11 2>&1 | FileCheck %s --check-prefix=ROWS
// ROWS: error: argument 'q' has 10 rows: the lengths need at least 11
// RUN: not varlen-run %s --entry=static --random=1 --lengths=1,1,1,1,1,1 2>&1 | FileCheck %s --check-prefix=ENTRIES
// ENTRIES: error: argument 'cu' has 6 entries: the lengths need at least 7
// RUN: not varlen-run %s --entry=self --random=1 --lengths=1,1 --cu-pad=2 2>&1 | FileCheck %s --check-prefix=PAD
// PAD: error: argument 'cu' has 2 entries: the lengths need at least 3
// RUN: not varlen-run %s --entry=self --random=1 --lengths=3 --extent=q:1=4 2>&1 | FileCheck %s --check-prefix=FIXED
// FIXED: error: --extent: dimension 1 of 'q' is 2 in the function, got 4
// RUN: not varlen-run %s --entry=self --random=1 --lengths=3 --extent=x:0=4 2>&1 | FileCheck %s --check-prefix=NAME
// NAME: error: --extent: the function has no argument 'x' with a dimension 0
// RUN: not varlen-run %s --entry=self --random=1 --lengths=2147483648 --extent=q:0=2 2>&1 | FileCheck %s --check-prefix=FEW
// FEW: error: argument 'q' has 2 rows: the lengths need at least 2147483648
// RUN: not varlen-run %s --entry=integers --random=1 2>&1 | FileCheck %s --check-prefix=INTEGERS
// INTEGERS: error: argument 'n' (I32 []) is no cu_seqlens and no seqused: --random cannot make it, give it in a file

func.func @self(%q: tensor<?x2x16xf32> {varlen.name = "q"},
                %cu: tensor<?xi32> {varlen.name = "cu"})
    -> (tensor<2x?xf32> {varlen.name = "lse"}, tensor<?xi32> {varlen.name = "cu"}) {
  %out, %lse = varlen.attn %q, %q, %q, %cu, %cu
    : (tensor<?x2x16xf32>, tensor<?x2x16xf32>, tensor<?x2x16xf32>, tensor<?xi32>, tensor<?xi32>)
    -> (tensor<?x2x16xf32>, tensor<2x?xf32>)
  return %lse, %cu : tensor<2x?xf32>, tensor<?xi32>
}

func.func @cross(%q: tensor<?x2x16xf32> {varlen.name = "q"},
                 %k: tensor<?x1x16xf32> {varlen.name = "k"},
                 %v: tensor<?x1x16xf32> {varlen.name = "v"},
                 %cu_q: tensor<?xi64> {varlen.name = "cu_q"},
                 %cu_k: tensor<?xi64> {varlen.name = "cu_k"},
                 %used_q: tensor<?xi64> {varlen.name = "used_q"},
                 %used_k: tensor<?xi64> {varlen.name = "used_k"},
                 %offset: tensor<?xi64> {varlen.name = "offset"})
    -> (tensor<?x2x16xf32> {varlen.name = "out"}, tensor<?xi64> {varlen.name = "cu_q"},
        tensor<?xi64> {varlen.name = "cu_k"}, tensor<?xi64> {varlen.name = "used_q"},
        tensor<?xi64> {varlen.name = "used_k"}, tensor<?xi64> {varlen.name = "offset"}) {
  %0 = call @callee(%offset, %used_k, %used_q, %cu_k, %cu_q, %v, %k, %q)
    : (tensor<?xi64>, tensor<?xi64>, tensor<?xi64>, tensor<?xi64>, tensor<?xi64>,
       tensor<?x1x16xf32>, tensor<?x1x16xf32>, tensor<?x2x16xf32>) -> tensor<?x2x16xf32>
  return %0, %cu_q, %cu_k, %used_q, %used_k, %offset
    : tensor<?x2x16xf32>, tensor<?xi64>, tensor<?xi64>, tensor<?xi64>, tensor<?xi64>, tensor<?xi64>
}

func.func private @callee(%offset: tensor<?xi64>, %used_k: tensor<?xi64>,
                          %used_q: tensor<?xi64>, %cu_k: tensor<?xi64>,
                          %cu_q: tensor<?xi64>, %v: tensor<?x1x16xf32>,
                          %k: tensor<?x1x16xf32>, %q: tensor<?x2x16xf32>)
    -> tensor<?x2x16xf32> {
  %out, %lse = varlen.attn %q, %k, %v, %cu_q, %cu_k
      seqused_q(%used_q) seqused_k(%used_k) q_offset(%offset)
    : (tensor<?x2x16xf32>, tensor<?x1x16xf32>, tensor<?x1x16xf32>, tensor<?xi64>, tensor<?xi64>,
       tensor<?xi64>, tensor<?xi64>, tensor<?xi64>)
    -> (tensor<?x2x16xf32>, tensor<2x?xf32>)
  return %out : tensor<?x2x16xf32>
}

func.func @static(%q: tensor<10x2x16xf32> {varlen.name = "q"},
                  %cu: tensor<6xi32> {varlen.name = "cu"})
    -> (tensor<2x10xf32> {varlen.name = "lse"}, tensor<6xi32> {varlen.name = "cu"}) {
  %out, %lse = varlen.attn %q, %q, %q, %cu, %cu
    : (tensor<10x2x16xf32>, tensor<10x2x16xf32>, tensor<10x2x16xf32>, tensor<6xi32>, tensor<6xi32>)
    -> (tensor<10x2x16xf32>, tensor<2x10xf32>)
  return %lse, %cu : tensor<2x10xf32>, tensor<6xi32>
}

func.func @integers(%n: i32 {varlen.name = "n"}) {
  return
}
