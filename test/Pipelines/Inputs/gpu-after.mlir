// Attention and its gradients on slices of one buffer, strides of which are known or
// not, between a host's own kernels, and a module of another producer.
module attributes {gpu.container_module} {
  gpu.module @own {
    // q of the row of the block is doubled.
    gpu.func @twice(%qkv: memref<?x4x32xbf16>) kernel {
      %row = gpu.block_id x
      %head = gpu.thread_id y
      %column = gpu.thread_id x
      %x = memref.load %qkv[%row, %head, %column] : memref<?x4x32xbf16>
      %y = arith.addf %x, %x : bf16
      memref.store %y, %qkv[%row, %head, %column] : memref<?x4x32xbf16>
      gpu.return
    }
  }
  gpu.module @other {
    gpu.func @negate(%lse: memref<2x?xf32>) kernel {
      %row = gpu.block_id x
      %head = gpu.thread_id x
      %x = memref.load %lse[%head, %row] : memref<2x?xf32>
      %y = arith.negf %x : f32
      memref.store %y, %lse[%head, %row] : memref<2x?xf32>
      gpu.return
    }
  }
  func.func @after(
      %qkv: memref<?x4x32xbf16> {varlen.name = "qkv"}, %dout: memref<?x2x32xbf16> {varlen.name = "dout"},
      %cu: memref<?xi32> {varlen.name = "cu_seqlens"}, %out: memref<?x2x32xbf16> {varlen.name = "out"},
      %lse: memref<2x?xf32> {varlen.name = "lse"}, %dqkv: memref<?x4x32xbf16> {varlen.name = "dqkv"}) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c32 = arith.constant 32 : index
    %n = memref.dim %qkv, %c0 : memref<?x4x32xbf16>
    gpu.launch_func @own::@twice blocks in (%n, %c1, %c1) threads in (%c32, %c2, %c1)
        args(%qkv : memref<?x4x32xbf16>)
    %q = memref.subview %qkv[0, 0, 0] [%n, 2, 32] [1, 1, 1]
        : memref<?x4x32xbf16> to memref<?x2x32xbf16, strided<[128, 32, 1]>>
    %k = memref.subview %qkv[0, 2, 0] [%n, 1, 32] [1, 1, 1]
        : memref<?x4x32xbf16> to memref<?x1x32xbf16, strided<[128, 32, 1], offset: 64>>
    %v0 = memref.subview %qkv[0, 3, 0] [%n, 1, 32] [1, 1, 1]
        : memref<?x4x32xbf16> to memref<?x1x32xbf16, strided<[128, 32, 1], offset: 96>>
    %v = memref.cast %v0 : memref<?x1x32xbf16, strided<[128, 32, 1], offset: 96>>
        to memref<?x1x32xbf16, strided<[?, ?, 1], offset: ?>>
    varlen.attn %q, %k, %v, %cu, %cu outs(%out, %lse) {mask = #varlen.mask<causal>}
        : (memref<?x2x32xbf16, strided<[128, 32, 1]>>, memref<?x1x32xbf16, strided<[128, 32, 1], offset: 64>>,
           memref<?x1x32xbf16, strided<[?, ?, 1], offset: ?>>, memref<?xi32>, memref<?xi32>,
           memref<?x2x32xbf16>, memref<2x?xf32>) -> ()
    %dq = memref.subview %dqkv[0, 0, 0] [%n, 2, 32] [1, 1, 1]
        : memref<?x4x32xbf16> to memref<?x2x32xbf16, strided<[128, 32, 1]>>
    %dk = memref.subview %dqkv[0, 2, 0] [%n, 1, 32] [1, 1, 1]
        : memref<?x4x32xbf16> to memref<?x1x32xbf16, strided<[128, 32, 1], offset: 64>>
    %dv0 = memref.subview %dqkv[0, 3, 0] [%n, 1, 32] [1, 1, 1]
        : memref<?x4x32xbf16> to memref<?x1x32xbf16, strided<[128, 32, 1], offset: 96>>
    %dv = memref.cast %dv0 : memref<?x1x32xbf16, strided<[128, 32, 1], offset: 96>>
        to memref<?x1x32xbf16, strided<[?, ?, 1], offset: ?>>
    varlen.attn_grad %dout, %q, %k, %v, %out, %lse, %cu, %cu outs(%dq, %dk, %dv)
        {mask = #varlen.mask<causal>}
        : (memref<?x2x32xbf16>, memref<?x2x32xbf16, strided<[128, 32, 1]>>,
           memref<?x1x32xbf16, strided<[128, 32, 1], offset: 64>>,
           memref<?x1x32xbf16, strided<[?, ?, 1], offset: ?>>, memref<?x2x32xbf16>, memref<2x?xf32>,
           memref<?xi32>, memref<?xi32>, memref<?x2x32xbf16, strided<[128, 32, 1]>>,
           memref<?x1x32xbf16, strided<[128, 32, 1], offset: 64>>,
           memref<?x1x32xbf16, strided<[?, ?, 1], offset: ?>>) -> ()
    gpu.launch_func @other::@negate blocks in (%n, %c1, %c1) threads in (%c2, %c1, %c1)
        args(%lse : memref<2x?xf32>)
    return
  }
}
