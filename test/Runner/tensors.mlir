// How values get in and out: by name, in every type, as tensors and as scalars.

// RUN: rm -rf %t && %python %S/Inputs/make-files.py %t
// RUN: varlen-run %s %t/good.safetensors --entry=add -o %t/out.safetensors %upstream \
// RUN:   | FileCheck %s --check-prefix=REPORT
// RUN: %python %S/Inputs/print-tensors.py %t/out.safetensors | FileCheck %s --check-prefix=ADD
// Other tensors in the file are no harm; the file's name may come last.
// RUN: varlen-run %upstream --entry add -o %t/more.out %s %t/more.safetensors
// RUN: cmp %t/out.safetensors %t/more.out
// RUN: varlen-run %s %t/dtypes.safetensors --entry=dtypes -o %t/out.safetensors %upstream
// RUN: %python %S/Inputs/print-tensors.py %t/out.safetensors | FileCheck %s --check-prefix=DTYPES
// RUN: varlen-run %s --entry=one_scalar -o %t/out.safetensors %upstream
// RUN: %python %S/Inputs/print-tensors.py %t/out.safetensors | FileCheck %s --check-prefix=SCALAR
// RUN: varlen-run %s %t/good.safetensors --entry=in_place --repeat=2 -o %t/out.safetensors %upstream
// RUN: %python %S/Inputs/print-tensors.py %t/out.safetensors | FileCheck %s --check-prefix=INPLACE
// A module on standard input.
// RUN: varlen-run - %t/good.safetensors --entry=nothing %upstream < %s

// REPORT: function  add, {{.*}} thread
// REPORT: compile   {{[0-9.]+}} ms, first result after {{[0-9.]+}} ms
// REPORT: run       {{[0-9.]+}} ms
// REPORT: work      not known
// REPORT-NEXT: {{^}}          not counted: 1 arith.addf, 1 linalg.add
// REPORT: memory    inputs 0.1 KiB, outputs 0.0 KiB, workspace {{.*}}, process

// Inputs are values: however often it runs, x and y stay as they were.
// ADD: result1 float32 [] [1.0]
// ADD: sum float32 [2, 3] [10.0, 11.0, 12.0, 13.0, 14.0, 15.0]
func.func @add(%x: tensor<?x3xf32> {varlen.name = "x"},
               %y: tensor<?x3xf32> {varlen.name = "y"},
               %s: f32 {varlen.name = "s"})
    -> (tensor<?x3xf32> {varlen.name = "sum"}, f32) {
  %sum = linalg.add ins(%x, %y : tensor<?x3xf32>, tensor<?x3xf32>)
      outs(%x : tensor<?x3xf32>) -> tensor<?x3xf32>
  %twice = arith.addf %s, %s : f32
  return %sum, %twice : tensor<?x3xf32>, f32
}

// DTYPES: b bf16 [2] [1.5, -2.0]
// DTYPES: d float64 [2] [0.1, -2.0]
// DTYPES: empty float32 [0, 4] []
// DTYPES: h float16 [2] [1.5, -2.0]
// DTYPES: i int32 [2] [-3, 2147483647]
// DTYPES: l int64 [2] [-3, 9223372036854775807]
// DTYPES: n int8 [2] [-3, 127]
// DTYPES: p bool [2] [True, False]
// DTYPES: u int8 [2] [-3, 127]
// DTYPES: x int64 [2] [-3, 9223372036854775807]
func.func @dtypes(%h: tensor<2xf16> {varlen.name = "h"},
                  %b: tensor<2xbf16> {varlen.name = "b"},
                  %d: tensor<2xf64> {varlen.name = "d"},
                  %i: tensor<2xi32> {varlen.name = "i"},
                  %l: tensor<2xi64> {varlen.name = "l"},
                  %n: tensor<2xi8> {varlen.name = "n"},
                  %u: tensor<2xi8> {varlen.name = "u"},
                  %p: tensor<2xi1> {varlen.name = "p"},
                  %empty: tensor<?x4xf32> {varlen.name = "empty"})
    -> (tensor<2xf16> {varlen.name = "h"}, tensor<2xbf16> {varlen.name = "b"},
        tensor<2xf64> {varlen.name = "d"}, tensor<2xi32> {varlen.name = "i"},
        tensor<2xi64> {varlen.name = "l"}, tensor<2xi8> {varlen.name = "n"},
        tensor<2xi8> {varlen.name = "u"}, tensor<2xi1> {varlen.name = "p"},
        tensor<?x4xf32> {varlen.name = "empty"},
        tensor<2xindex> {varlen.name = "x"}) {
  %x = arith.index_cast %l : tensor<2xi64> to tensor<2xindex>
  return %h, %b, %d, %i, %l, %n, %u, %p, %empty, %x
      : tensor<2xf16>, tensor<2xbf16>, tensor<2xf64>, tensor<2xi32>,
        tensor<2xi64>, tensor<2xi8>, tensor<2xi8>, tensor<2xi1>, tensor<?x4xf32>,
        tensor<2xindex>
}

// SCALAR: result0 int32 [] [7]
func.func @one_scalar() -> i32 {
  %c = arith.constant 7 : i32
  return %c : i32
}

// A memref is in and out; it has been through three runs.
// INPLACE: y float32 [2, 3] [30.0, 30.0, 30.0, 30.0, 30.0, 30.0]
func.func @in_place(%y: memref<?x3xf32> {varlen.name = "y"},
                    %x: tensor<2x3xf32> {varlen.name = "x"}) {
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>],
                  iterator_types = ["parallel", "parallel"]}
      outs(%y : memref<?x3xf32>) {
  ^bb0(%in: f32):
    %limit = arith.constant 25.0 : f32
    %ten = arith.constant 10.0 : f32
    %next = arith.addf %in, %ten : f32
    %more = arith.cmpf olt, %in, %limit : f32
    %value = arith.select %more, %next, %in : f32
    linalg.yield %value : f32
  }
  return
}

func.func @nothing() {
  return
}
