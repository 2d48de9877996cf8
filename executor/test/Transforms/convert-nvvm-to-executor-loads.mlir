// RUN: varlen-opt %s --convert-nvvm-to-executor | FileCheck %s

// Several ldmatrix go in one call, unless something between them has an effect.

!tiles = !llvm.struct<(i32, i32, i32, i32)>

// What each load is: number of tiles, transposed, site.
// CHECK: llvm.mlir.global internal constant @[[$LOADS:.*]](dense<[4, 0, 0, 2, 1, 1]> : tensor<6xi32>)

// The second address is computed behind the first load; parts of the results are
// read where they are taken.
// CHECK-LABEL: llvm.func internal @varlen_sim.m.together(
// CHECK: %[[REGISTERS:.*]] = llvm.alloca %{{.*}} x i32
// CHECK: %[[ROWS:.*]] = llvm.alloca %{{.*}} x !llvm.ptr
// CHECK-NOT: llvm.call
// CHECK: llvm.getelementptr %{{.*}}[2048]
// CHECK-COUNT-2: llvm.store %{{.*}} : !llvm.ptr, !llvm.ptr
// CHECK: %[[ADDRESS:.*]] = llvm.mlir.addressof @[[$LOADS]]
// CHECK: llvm.call @varlen_sim_ldmatrix_batch(%[[ROWS]], %[[REGISTERS]], %[[ADDRESS]], %{{.*}})
// CHECK: %[[FIRST:.*]] = llvm.getelementptr %[[REGISTERS]][3]
// CHECK: llvm.load %[[FIRST]] : !llvm.ptr -> i32
// CHECK: %[[SECOND:.*]] = llvm.getelementptr %[[REGISTERS]][5]
// CHECK: llvm.load %[[SECOND]] : !llvm.ptr -> i32
// CHECK-NOT: llvm.call @varlen_sim_ldmatrix
// CHECK: llvm.return

// Others may have written meanwhile.
// CHECK-LABEL: llvm.func internal @varlen_sim.m.barrier(
// CHECK: llvm.call @varlen_sim_ldmatrix(
// CHECK: llvm.call @varlen_sim_barrier(
// CHECK: llvm.call @varlen_sim_ldmatrix(
// CHECK: llvm.return

// The third address hangs on what the second load returns.
// CHECK-LABEL: llvm.func internal @varlen_sim.m.dependent(
// CHECK: llvm.call @varlen_sim_ldmatrix_batch(
// CHECK: llvm.call @varlen_sim_ldmatrix(
// CHECK: llvm.return

gpu.module @m {
  llvm.func @together(%row: !llvm.ptr<3>, %out: !llvm.ptr) attributes {nvvm.kernel} {
    %0 = nvvm.ldmatrix %row {num = 4 : i32, layout = #nvvm.mma_layout<row>, shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>, eltType = #nvvm.ld_st_matrix_elt_type<b16>}
        : (!llvm.ptr<3>) -> !tiles
    %a = llvm.extractvalue %0[3] : !tiles
    %next = llvm.getelementptr %row[2048] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    %1 = nvvm.ldmatrix %next {num = 2 : i32, layout = #nvvm.mma_layout<col>, shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>, eltType = #nvvm.ld_st_matrix_elt_type<b16>}
        : (!llvm.ptr<3>) -> !llvm.struct<(i32, i32)>
    %b = llvm.extractvalue %1[1] : !llvm.struct<(i32, i32)>
    %sum = llvm.add %a, %b : i32
    llvm.store %sum, %out : i32, !llvm.ptr
    llvm.return
  }
  llvm.func @barrier(%row: !llvm.ptr<3>, %out: !llvm.ptr) attributes {nvvm.kernel} {
    %0 = nvvm.ldmatrix %row {num = 1 : i32, layout = #nvvm.mma_layout<row>, shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>, eltType = #nvvm.ld_st_matrix_elt_type<b16>}
        : (!llvm.ptr<3>) -> i32
    nvvm.barrier
    %1 = nvvm.ldmatrix %row {num = 1 : i32, layout = #nvvm.mma_layout<row>, shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>, eltType = #nvvm.ld_st_matrix_elt_type<b16>}
        : (!llvm.ptr<3>) -> i32
    %sum = llvm.add %0, %1 : i32
    llvm.store %sum, %out : i32, !llvm.ptr
    llvm.return
  }
  llvm.func @dependent(%row: !llvm.ptr<3>, %out: !llvm.ptr) attributes {nvvm.kernel} {
    %0 = nvvm.ldmatrix %row {num = 1 : i32, layout = #nvvm.mma_layout<row>, shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>, eltType = #nvvm.ld_st_matrix_elt_type<b16>}
        : (!llvm.ptr<3>) -> i32
    %1 = nvvm.ldmatrix %row {num = 1 : i32, layout = #nvvm.mma_layout<row>, shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>, eltType = #nvvm.ld_st_matrix_elt_type<b16>}
        : (!llvm.ptr<3>) -> i32
    %next = llvm.getelementptr %row[%1] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8
    %2 = nvvm.ldmatrix %next {num = 1 : i32, layout = #nvvm.mma_layout<row>, shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>, eltType = #nvvm.ld_st_matrix_elt_type<b16>}
        : (!llvm.ptr<3>) -> i32
    %sum = llvm.add %0, %2 : i32
    llvm.store %sum, %out : i32, !llvm.ptr
    llvm.return
  }
}
