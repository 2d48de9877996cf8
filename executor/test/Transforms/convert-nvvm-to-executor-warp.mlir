// RUN: varlen-opt %s --convert-nvvm-to-executor | FileCheck %s

gpu.module @m {
  // CHECK-LABEL: @varlen_sim.m.exchange(
  // CHECK-SAME: %[[MASK:.*]]: i32, %[[X:.*]]: f32, %[[N:.*]]: i32, %[[P:.*]]: i1, %[[L:.*]]: i64)
  llvm.func @exchange(%mask: i32, %x: f32, %n: i32, %p: i1, %l: i64) {
    // CHECK: %[[BITS:.*]] = llvm.bitcast %[[X]] : f32 to i32
    // CHECK: %[[BFLY:.*]] = llvm.mlir.constant(0 : i32)
    // CHECK: %[[WORD:.*]] = llvm.call @varlen_sim_shfl(%[[MASK]], %[[BITS]], %[[N]], %[[N]], %[[BFLY]], %{{.*}})
    // CHECK: llvm.bitcast %[[WORD]] : i32 to f32
    %0 = nvvm.shfl.sync bfly %mask, %x, %n, %n : f32 -> f32
    // CHECK: %[[IDX:.*]] = llvm.mlir.constant(3 : i32)
    // CHECK: llvm.call @varlen_sim_shfl(%[[MASK]], %[[N]], %[[N]], %[[N]], %[[IDX]], %{{.*}})
    // CHECK: %[[VALID:.*]] = llvm.call @varlen_sim_shfl_pred() : () -> i32
    // CHECK: llvm.icmp "ne" %[[VALID]]
    %1 = nvvm.shfl.sync idx %mask, %n, %n, %n {return_value_and_is_valid} : i32 -> !llvm.struct<(i32, i1)>
    // CHECK: %[[WIDE:.*]] = llvm.zext %[[P]] : i1 to i32
    // CHECK: %[[BALLOT:.*]] = llvm.mlir.constant(2 : i32)
    // CHECK: llvm.call @varlen_sim_vote(%[[MASK]], %[[WIDE]], %[[BALLOT]], %{{.*}})
    %2 = nvvm.vote.sync ballot %mask, %p -> i32
    // CHECK: %[[ANY:.*]] = llvm.call @varlen_sim_vote
    // CHECK: llvm.icmp "ne" %[[ANY]]
    %3 = nvvm.vote.sync any %mask, %p -> i1
    // CHECK: llvm.call @varlen_sim_match(%[[MASK]], %[[L]], %{{.*}}, %{{.*}})
    %4 = nvvm.match.sync any %mask, %l : i64 -> i32
    // CHECK: %[[MAX:.*]] = llvm.mlir.constant(3 : i32)
    // CHECK: llvm.call @varlen_sim_redux(%[[MASK]], %[[N]], %[[MAX]], %{{.*}})
    %5 = nvvm.redux.sync max %n, %mask : i32 -> i32
    // CHECK: %[[ALL:.*]] = llvm.mlir.constant(-1 : i32)
    // CHECK: llvm.call @varlen_sim_elect(%[[ALL]], %{{.*}})
    %6 = nvvm.elect.sync -> i1
    llvm.return
  }

  // CHECK-LABEL: @varlen_sim.m.matrices(
  // CHECK-SAME: %[[P:.*]]: !llvm.ptr<3>, %[[A:.*]]: i32, %[[H:.*]]: vector<2xf16>, %[[X:.*]]: f32)
  llvm.func @matrices(%p: !llvm.ptr<3>, %a: i32, %h: vector<2xf16>, %x: f32) {
    // Registers go through memory of the thread.
    // CHECK: llvm.alloca %{{.*}} x i32 {alignment = 16 : i64}
    // CHECK: llvm.addrspacecast %[[P]] : !llvm.ptr<3> to !llvm.ptr
    // CHECK: %[[NUM:.*]] = llvm.mlir.constant(4 : i32)
    // CHECK: %[[TRANSPOSED:.*]] = llvm.mlir.constant(1 : i32)
    // CHECK: llvm.call @varlen_sim_ldmatrix(%{{.*}}, %[[NUM]], %[[TRANSPOSED]], %{{.*}}, %{{.*}})
    // CHECK: llvm.load %{{.*}} : !llvm.ptr -> i32
    %0 = nvvm.ldmatrix %p {num = 4 : i32, layout = #nvvm.mma_layout<col>, shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>, eltType = #nvvm.ld_st_matrix_elt_type<b16>} : (!llvm.ptr<3>) -> !llvm.struct<(i32, i32, i32, i32)>
    // CHECK: llvm.store %[[A]], %{{.*}} : i32, !llvm.ptr
    // CHECK: llvm.addrspacecast %[[P]]
    // CHECK: %[[NUM:.*]] = llvm.mlir.constant(2 : i32)
    // CHECK: %[[PLAIN:.*]] = llvm.mlir.constant(0 : i32)
    // CHECK: llvm.call @varlen_sim_stmatrix(%{{.*}}, %[[NUM]], %[[PLAIN]], %{{.*}}, %{{.*}})
    nvvm.stmatrix %p, %a, %a {layout = #nvvm.mma_layout<row>, shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>, eltType = #nvvm.ld_st_matrix_elt_type<b16>} : !llvm.ptr<3>, i32, i32
    // bf16 is type 9, k 16, f32 accumulators type 1.
    // CHECK: %[[BF16:.*]] = llvm.mlir.constant(9 : i32)
    // CHECK: %[[K:.*]] = llvm.mlir.constant(16 : i32)
    // CHECK: %[[F32:.*]] = llvm.mlir.constant(1 : i32)
    // CHECK: llvm.call @varlen_sim_mma(%{{.*}}, %{{.*}}, %[[BF16]], %[[K]], %[[F32]], %{{.*}})
    %1 = nvvm.mma.sync A[%a, %a, %a, %a] B[%a, %a] C[%x, %x, %x, %x]
        {layoutA = #nvvm.mma_layout<row>, layoutB = #nvvm.mma_layout<col>,
         multiplicandAPtxType = #nvvm.mma_type<bf16>, multiplicandBPtxType = #nvvm.mma_type<bf16>,
         shape = #nvvm.shape<m = 16, n = 8, k = 16>} : (i32, i32, f32) -> !llvm.struct<(f32, f32, f32, f32)>
    // CHECK: %[[F16:.*]] = llvm.mlir.constant(0 : i32)
    // CHECK: llvm.call @varlen_sim_mma(%{{.*}}, %{{.*}}, %[[F16]],
    // CHECK: llvm.load %{{.*}} : !llvm.ptr -> vector<2xf16>
    %2 = nvvm.mma.sync A[%h, %h, %h, %h] B[%h, %h] C[%h, %h]
        {layoutA = #nvvm.mma_layout<row>, layoutB = #nvvm.mma_layout<col>,
         shape = #nvvm.shape<m = 16, n = 8, k = 16>}
        : (vector<2xf16>, vector<2xf16>, vector<2xf16>) -> !llvm.struct<(vector<2xf16>, vector<2xf16>)>
    // CHECK: %[[TF32:.*]] = llvm.mlir.constant(2 : i32)
    // CHECK: %[[K:.*]] = llvm.mlir.constant(8 : i32)
    // CHECK: llvm.call @varlen_sim_mma(%{{.*}}, %{{.*}}, %[[TF32]], %[[K]],
    %3 = nvvm.mma.sync A[%a, %a, %a, %a] B[%a, %a] C[%x, %x, %x, %x]
        {layoutA = #nvvm.mma_layout<row>, layoutB = #nvvm.mma_layout<col>,
         multiplicandAPtxType = #nvvm.mma_type<tf32>, multiplicandBPtxType = #nvvm.mma_type<tf32>,
         shape = #nvvm.shape<m = 16, n = 8, k = 8>} : (i32, i32, f32) -> !llvm.struct<(f32, f32, f32, f32)>
    llvm.return
  }
}
