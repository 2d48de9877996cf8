// RUN: varlen-opt %s --convert-nvvm-to-executor | FileCheck %s

// Several mma.sync go in one call: as late as something else than another
// product's accumulator wants a result.

!half = vector<2xf16>
!acc = !llvm.struct<(f32, f32, f32, f32)>

// The third product continues the first, the fourth stands alone.
// CHECK: llvm.mlir.global internal constant @[[$CHAIN:.*]](dense<[-1, -1, 0]> : tensor<3xi32>)

// CHECK-LABEL: llvm.func internal @varlen_sim.m.k(
// CHECK-SAME: %{{[^:]*}}: vector<2xf16>, %[[C:[^:]*]]: f32
// Operands are stored where they are at hand: six of A and B and four of C, but
// no accumulator for what continues another.
// CHECK-COUNT-26: llvm.store
// CHECK-NOT: llvm.store
// CHECK: %[[ADDRESS:.*]] = llvm.mlir.addressof @[[$CHAIN]]
// CHECK: llvm.call @varlen_sim_mma_batch(%{{.*}}, %[[RESULTS:.*]], %[[ADDRESS]], %{{.*}}) : (!llvm.ptr, !llvm.ptr, !llvm.ptr, i32, i32, i32, i32, i32) -> ()
// CHECK: %[[SECOND:.*]] = llvm.getelementptr %[[RESULTS]][5]
// CHECK: %[[VALUE:.*]] = llvm.load %[[SECOND]] : !llvm.ptr -> f32
// CHECK: llvm.fadd %[[VALUE]], %[[C]]
// CHECK: llvm.call @varlen_sim_mma(
// CHECK-NOT: call @varlen_sim_mma
// CHECK: llvm.return
gpu.module @m {
  llvm.func @k(%a: !half, %c: f32, %out: !llvm.ptr) attributes {nvvm.kernel} {
    %0 = nvvm.mma.sync A[%a, %a, %a, %a] B[%a, %a] C[%c, %c, %c, %c]
        {layoutA = #nvvm.mma_layout<row>, layoutB = #nvvm.mma_layout<col>, shape = #nvvm.shape<m = 16, n = 8, k = 16>}
        : (!half, !half, f32) -> !acc
    %1 = nvvm.mma.sync A[%a, %a, %a, %a] B[%a, %a] C[%c, %c, %c, %c]
        {layoutA = #nvvm.mma_layout<row>, layoutB = #nvvm.mma_layout<col>, shape = #nvvm.shape<m = 16, n = 8, k = 16>}
        : (!half, !half, f32) -> !acc
    %c0 = llvm.extractvalue %0[0] : !acc
    %c1 = llvm.extractvalue %0[1] : !acc
    %c2 = llvm.extractvalue %0[2] : !acc
    %c3 = llvm.extractvalue %0[3] : !acc
    %2 = nvvm.mma.sync A[%a, %a, %a, %a] B[%a, %a] C[%c0, %c1, %c2, %c3]
        {layoutA = #nvvm.mma_layout<row>, layoutB = #nvvm.mma_layout<col>, shape = #nvvm.shape<m = 16, n = 8, k = 16>}
        : (!half, !half, f32) -> !acc
    %v = llvm.extractvalue %1[1] : !acc
    %sum = llvm.fadd %v, %c : f32
    %3 = nvvm.mma.sync A[%a, %a, %a, %a] B[%a, %a] C[%sum, %sum, %sum, %sum]
        {layoutA = #nvvm.mma_layout<row>, layoutB = #nvvm.mma_layout<col>, shape = #nvvm.shape<m = 16, n = 8, k = 16>}
        : (!half, !half, f32) -> !acc
    %w = llvm.extractvalue %3[0] : !acc
    %x = llvm.extractvalue %2[0] : !acc
    %y = llvm.fadd %w, %x : f32
    llvm.store %y, %out : f32, !llvm.ptr
    llvm.return
  }
}
