// The last stride of an extent of 0 or 1 may be anything: no index uses it.
// RUN: varlen-opt %s --varlen-to-cpu | FileCheck %s --check-prefix=CPU
// RUN: varlen-opt %s --varlen-tile-attn | FileCheck %s

// CPU: llvm.func @layout(

// CHECK-LABEL: func.func @layout(
// CHECK: %[[STRIDES:strides[_0-9]*]]:3 = memref.extract_strided_metadata %arg1
// CHECK: memref.reinterpret_cast %arg1 to {{.*}}strides: [%[[STRIDES]]#0, %[[STRIDES]]#1, 1] : {{.*}} to memref<8x4x1xf32, strided<[?, ?, 1], offset: ?>>
func.func @layout(%q: memref<8x4x1xf32>, %k: memref<8x4x1xf32, strided<[?, ?, ?], offset: ?>>,
                  %cu: memref<3xi32>, %out: memref<8x4x1xf32, strided<[12, 3, 2]>>, %l: memref<4x8xf32>) {
  varlen.attn %q, %k, %q, %cu, %cu outs(%out, %l)
      {varlen.schedule = #varlen.cpu_schedule<lanes = 16, vectors = 2, rows = 8, panels = 24, kv_block = 256, kv = copy>}
      : (memref<8x4x1xf32>, memref<8x4x1xf32, strided<[?, ?, ?], offset: ?>>, memref<8x4x1xf32>,
         memref<3xi32>, memref<3xi32>, memref<8x4x1xf32, strided<[12, 3, 2]>>, memref<4x8xf32>) -> ()
  return
}

// Also where rows of keys, which steps read in place, have such a stride.
// CPU: llvm.func @keys(
func.func @keys(%q: memref<8x4x1xf32>, %k: memref<8x4x1xf32, strided<[12, 3, 2]>>,
                %cu: memref<3xi32>, %out: memref<8x4x1xf32>, %l: memref<4x8xf32>) {
  varlen.attn %q, %k, %k, %cu, %cu outs(%out, %l)
      {varlen.schedule = #varlen.cpu_schedule<lanes = 16, vectors = 2, rows = 8, panels = 24, kv_block = 256, kv = copy>}
      : (memref<8x4x1xf32>, memref<8x4x1xf32, strided<[12, 3, 2]>>, memref<8x4x1xf32, strided<[12, 3, 2]>>,
         memref<3xi32>, memref<3xi32>, memref<8x4x1xf32>, memref<4x8xf32>) -> ()
  return
}
