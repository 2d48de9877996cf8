// RUN: split-file %s %t && cd %t

// A check in the body of a linalg operation holds, and does not: each thread that
// it fails in ends, and says where.
// RUN: varlen-run body.mlir --random=0 --device=sim:sm_80 --sim-runs=3 -o %t.npz 2>&1 | FileCheck %s --check-prefix=GOOD
// GOOD: executor  3 runs, no hazard
// RUN: sed 's/49, 7/49, 50/' body.mlir > bad.mlir
// RUN: not varlen-run bad.mlir --random=0 --device=sim:sm_80 2>&1 | FileCheck %s --check-prefix=BODY
// BODY: hazard: assertion at bad.mlir:9:5 ({{.*}}): index too large [cta 0,0,0 thread
// BODY: error: 1 hazard in run 1 of 1

// One of extents is the host's.
// RUN: varlen-run host.mlir --random=0 --extent=a:0=4 --extent=a:1=8 --extent=b:0=8 --device=sim:sm_80 | FileCheck %s --check-prefix=GOOD-HOST
// GOOD-HOST: executor  1 run, no hazard
// RUN: not varlen-run host.mlir --random=0 --extent=a:0=4 --extent=a:1=7 --extent=b:0=8 --device=sim:sm_80 2>&1 | FileCheck %s --check-prefix=HOST
// HOST: error: {{.*}}mismatching contracting dimension

// PTX has CUDA's assertion.
// RUN: varlen-opt body.mlir --emit=ptx | FileCheck %s --check-prefix=PTX
// PTX: call.uni __assertfail,

//--- body.mlir
func.func @look_up(%table: tensor<50x8xf32> {varlen.name = "table"}) -> (tensor<4x8xf32> {varlen.name = "rows"}) {
  %ids = arith.constant dense<[3, 0, 49, 7]> : tensor<4xi64>
  %e = tensor.empty() : tensor<4x8xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]}
      ins(%ids : tensor<4xi64>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%i: i64, %o: f32):
    %limit = arith.constant 50 : i64
    %good = arith.cmpi slt, %i, %limit : i64
    cf.assert %good, "index too large"
    %row = arith.index_cast %i : i64 to index
    %column = linalg.index 1 : index
    %x = tensor.extract %table[%row, %column] : tensor<50x8xf32>
    linalg.yield %x : f32
  } -> tensor<4x8xf32>
  return %r : tensor<4x8xf32>
}

//--- host.mlir
func.func @product(%a: tensor<?x?xf32> {varlen.name = "a"}, %b: tensor<?x16xf32> {varlen.name = "b"}) -> (tensor<?x16xf32> {varlen.name = "c"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = tensor.dim %a, %c0 : tensor<?x?xf32>
  %k = tensor.dim %a, %c1 : tensor<?x?xf32>
  %l = tensor.dim %b, %c0 : tensor<?x16xf32>
  %same = arith.cmpi eq, %k, %l : index
  cf.assert %same, "mismatching contracting dimension"
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty(%m) : tensor<?x16xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x16xf32>) -> tensor<?x16xf32>
  %c = linalg.matmul ins(%a, %b : tensor<?x?xf32>, tensor<?x16xf32>) outs(%f : tensor<?x16xf32>) -> tensor<?x16xf32>
  return %c : tensor<?x16xf32>
}
