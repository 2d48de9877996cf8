// RUN: varlen-opt %s --varlen-export-functions | FileCheck %s

// CHECK-LABEL: func @public(
// CHECK-SAME: tensor<4xf32> {bufferization.writable = false}
// CHECK-SAME: %{{[^:]*}}: memref<4xf32>,
// CHECK-SAME: %{{[^:]*}}: f32)
// CHECK-SAME: attributes {llvm.emit_c_interface}
func.func @public(%x: tensor<4xf32>, %m: memref<4xf32>, %s: f32) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

// CHECK-LABEL: func private @private(
// CHECK-NOT: writable
// CHECK-NOT: emit_c_interface
// CHECK: return
func.func private @private(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

// CHECK: func private @external(tensor<4xf32>){{$}}
func.func private @external(tensor<4xf32>)
