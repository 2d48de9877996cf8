// RUN: varlen-opt %s --allow-unregistered-dialect --varlen-flatten-kernel-arguments --canonicalize | FileCheck %s
// RUN: varlen-opt %s --allow-unregistered-dialect --varlen-flatten-kernel-arguments=split-numbers --canonicalize | FileCheck %s --check-prefix=SPLIT

module attributes {gpu.container_module} {
// Pointers first, then what types leave open, then numbers, each in the order of the
// function's arguments; constants go into the kernel.

// CHECK-LABEL: func @order(
// CHECK-SAME: %[[N:.*]]: index, %[[Y:.*]]: memref<?x64xf32, strided<[?, 1], offset: ?>>, %[[S:.*]]: !llvm.ptr, %[[X:.*]]: memref<4x?xbf16>, %[[C:.*]]: i32
func.func @order(%n: index, %y: memref<?x64xf32, strided<[?, 1], offset: ?>>, %s: !llvm.ptr, %x: memref<4x?xbf16>, %c: i32) {
  // CHECK-DAG: %[[YB:.*]], %[[YO:.*]], %[[YS:.*]]:2, %[[YT:.*]]:2 = memref.extract_strided_metadata %[[Y]]
  // CHECK-DAG: %[[XB:.*]], %{{.*}}, %[[XS:.*]]:2, %{{.*}}:2 = memref.extract_strided_metadata %[[X]]
  // CHECK-DAG: %[[DIM:.*]] = memref.dim %[[X]], %c1
  // CHECK: gpu.launch_func @kernels::@order
  // CHECK-SAME: args(%[[YB]] : memref<f32>, %[[XB]] : memref<bf16>, %[[S]] : !llvm.ptr,
  // CHECK-SAME: %[[YO]] : index, %[[YS]]#0 : index, %[[YT]]#0 : index, %[[XS]]#1 : index,
  // CHECK-SAME: %[[N]] : index, %[[DIM]] : index, %[[C]] : i32)
  %c1 = arith.constant 1 : index
  %c7 = arith.constant 7 : index
  %d = memref.dim %x, %c1 : memref<4x?xbf16>
  gpu.launch_func @kernels::@order blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
      args(%c : i32, %d : index, %x : memref<4x?xbf16>, %c7 : index, %s : !llvm.ptr,
           %y : memref<?x64xf32, strided<[?, 1], offset: ?>>, %n : index)
  return
}

// Scratch comes after arguments, in the order in which it is allocated.

// CHECK-LABEL: func @scratch(
// CHECK-SAME: %[[X:.*]]: memref<8xf32>, %[[N:.*]]: index
func.func @scratch(%x: memref<8xf32>, %n: index) {
  // CHECK: %[[A:.*]] = memref.alloc(%[[N]]) : memref<?xf32>
  // CHECK: %[[B:.*]] = memref.alloc() : memref<2xi64>
  // CHECK-DAG: %[[AB:.*]], %{{.*}}, %[[AS:.*]], %{{.*}} = memref.extract_strided_metadata %[[A]]
  // CHECK-DAG: %[[BB:.*]], %{{.*}}, %{{.*}}, %{{.*}} = memref.extract_strided_metadata %[[B]]
  // CHECK-DAG: %[[XB:.*]], %{{.*}}, %{{.*}}, %{{.*}} = memref.extract_strided_metadata %[[X]]
  // CHECK: gpu.launch_func @kernels::@scratch
  // CHECK-SAME: args(%[[XB]] : memref<f32>, %[[AB]] : memref<f32>, %[[BB]] : memref<i64>, %{{.*}} : index)
  %c1 = arith.constant 1 : index
  %a = memref.alloc(%n) : memref<?xf32>
  %b = memref.alloc() : memref<2xi64>
  gpu.launch_func @kernels::@scratch blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
      args(%b : memref<2xi64>, %a : memref<?xf32>, %x : memref<8xf32>)
  memref.dealloc %a : memref<?xf32>
  memref.dealloc %b : memref<2xi64>
  return
}

gpu.module @kernels {
  // CHECK: gpu.func @order(
  // CHECK-SAME: %[[Y:.*]]: memref<f32>, %[[X:.*]]: memref<bf16>, %[[S:.*]]: !llvm.ptr, %[[YO:.*]]: index, %[[YS:.*]]: index, %[[YT:.*]]: index, %[[XS:.*]]: index, %[[N:.*]]: index, %[[DIM:.*]]: index, %[[C:.*]]: i32)
  // CHECK-SAME: workgroup(%[[W:.*]] : memref<4xf32, #gpu.address_space<workgroup>>) kernel
  gpu.func @order(%c: i32, %d: index, %x: memref<4x?xbf16>, %c7: index, %s: !llvm.ptr,
                  %y: memref<?x64xf32, strided<[?, 1], offset: ?>>, %n: index)
      workgroup(%w: memref<4xf32, #gpu.address_space<workgroup>>) kernel {
    // CHECK-DAG: %[[C7:.*]] = arith.constant 7 : index
    // CHECK-DAG: %[[YM:.*]] = memref.reinterpret_cast %[[Y]] to offset: [%[[YO]]], sizes: [%[[YS]], 64], strides: [%[[YT]], 1]
    // Strides of dense memory follow from extents.
    // CHECK-DAG: %[[XM:.*]] = memref.reinterpret_cast %[[X]] to offset: [0], sizes: [4, %[[XS]]], strides: [%[[XS]], 1]
    // CHECK: "test.use"(%[[C]], %[[DIM]], %{{.*}}, %[[C7]], %[[S]], %[[YM]], %[[N]], %[[W]])
    "test.use"(%c, %d, %x, %c7, %s, %y, %n, %w)
        : (i32, index, memref<4x?xbf16>, index, !llvm.ptr, memref<?x64xf32, strided<[?, 1], offset: ?>>, index,
           memref<4xf32, #gpu.address_space<workgroup>>) -> ()
    gpu.return
  }

  // Numbers of 64 bits in halves, the low one first.
  // SPLIT-LABEL: func @scratch(
  // SPLIT: %[[I:.*]] = arith.index_cast %[[SIZE:.*]] : index to i64
  // SPLIT: %[[TOP:.*]] = arith.shrui %[[I]], %c32_i64
  // SPLIT: %[[LOW:.*]] = arith.trunci %[[I]] : i64 to i32
  // SPLIT: %[[HIGH:.*]] = arith.trunci %[[TOP]] : i64 to i32
  // SPLIT: gpu.launch_func @kernels::@scratch
  // SPLIT-SAME: %{{.*}} : memref<i64>, %[[LOW]] : i32, %[[HIGH]] : i32)
  // SPLIT: gpu.func @scratch(%{{.*}}: memref<f32>, %{{.*}}: memref<f32>, %{{.*}}: memref<i64>, %[[LOW:.*]]: i32, %[[HIGH:.*]]: i32) kernel
  // SPLIT: %[[L:.*]] = arith.extui %[[LOW]] : i32 to i64
  // SPLIT: %[[H:.*]] = arith.extui %[[HIGH]] : i32 to i64
  // SPLIT: %[[S:.*]] = arith.shli %[[H]], %c32_i64
  // SPLIT: %[[N:.*]] = arith.ori %[[S]], %[[L]]
  // SPLIT: arith.index_cast %[[N]] : i64 to index

  // CHECK: gpu.func @scratch(%{{.*}}: memref<f32>, %{{.*}}: memref<f32>, %{{.*}}: memref<i64>, %{{.*}}: index) kernel
  gpu.func @scratch(%b: memref<2xi64>, %a: memref<?xf32>, %x: memref<8xf32>) kernel {
    "test.use"(%b, %a, %x) : (memref<2xi64>, memref<?xf32>, memref<8xf32>) -> ()
    gpu.return
  }
}
}
