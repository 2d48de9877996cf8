// A layout that no target has tiles for is named by whole pipelines, too.
// RUN: not varlen-opt %s --varlen-to-cpu 2>&1 | FileCheck %s
// RUN: not varlen-opt %s --varlen-to-nvvm 2>&1 | FileCheck %s

// CHECK: error: 'varlen.attn' op expected k to be a memref whose last stride is 1, got 'memref<8x4x16xf32, strided<[?, ?, ?], offset: ?>>'
func.func @layout(%q: memref<8x4x16xf32>, %k: memref<8x4x16xf32, strided<[?, ?, ?], offset: ?>>,
                  %cu: memref<3xi32>, %l: memref<4x8xf32>) {
  varlen.attn %q, %k, %q, %cu, %cu outs(%q, %l)
      : (memref<8x4x16xf32>, memref<8x4x16xf32, strided<[?, ?, ?], offset: ?>>, memref<8x4x16xf32>,
         memref<3xi32>, memref<3xi32>, memref<8x4x16xf32>, memref<4x8xf32>) -> ()
  return
}
