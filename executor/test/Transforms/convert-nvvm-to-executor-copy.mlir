// RUN: varlen-opt %s --convert-nvvm-to-executor | FileCheck %s

gpu.module @m {
  // CHECK-LABEL: @varlen_sim.m.copies(
  // CHECK-SAME: %[[S:.*]]: !llvm.ptr<3>, %[[G:.*]]: !llvm.ptr<1>, %[[N:.*]]: i32)
  llvm.func @copies(%s: !llvm.ptr<3>, %g: !llvm.ptr<1>, %n: i32) {
    // CHECK: %[[SIZE:.*]] = llvm.mlir.constant(16 : i32)
    // CHECK: llvm.call @varlen_sim_cp_async(%{{.*}}, %{{.*}}, %[[SIZE]], %[[SIZE]], %{{.*}})
    nvvm.cp.async.shared.global %s, %g, 16, cache = cg : !llvm.ptr<3>, !llvm.ptr<1>
    // CHECK: llvm.call @varlen_sim_cp_async(%{{.*}}, %{{.*}}, %{{.*}}, %[[N]], %{{.*}})
    nvvm.cp.async.shared.global %s, %g, 16, cache = cg, %n : !llvm.ptr<3>, !llvm.ptr<1>, i32
    // CHECK: llvm.call @varlen_sim_cp_async_commit(
    nvvm.cp.async.commit.group
    // CHECK: %[[PENDING:.*]] = llvm.mlir.constant(2 : i32)
    // CHECK: llvm.call @varlen_sim_cp_async_wait_group(%[[PENDING]], %{{.*}})
    nvvm.cp.async.wait.group 2
    // CHECK: %[[NOINC:.*]] = llvm.mlir.constant({{-?}}1 : i32)
    // CHECK: llvm.call @varlen_sim_cp_async_mbarrier_arrive(%{{.*}}, %[[NOINC]], %{{.*}})
    nvvm.cp.async.mbarrier.arrive %s {noinc = true} : !llvm.ptr<3>
    llvm.return
  }

  // CHECK-LABEL: @varlen_sim.m.bulk(
  // CHECK-SAME: %[[S:.*]]: !llvm.ptr<3>, %[[C:.*]]: !llvm.ptr<7>, %[[G:.*]]: !llvm.ptr<1>, %[[MAP:.*]]: !llvm.ptr, %[[N:.*]]: i32, %[[M:.*]]: i16)
  llvm.func @bulk(%s: !llvm.ptr<3>, %c: !llvm.ptr<7>, %g: !llvm.ptr<1>, %map: !llvm.ptr, %n: i32, %m: i16) {
    // CHECK: %[[NONE:.*]] = llvm.mlir.constant(0 : i32)
    // CHECK: llvm.call @varlen_sim_bulk_load(%{{.*}}, %{{.*}}, %{{.*}}, %[[N]], %[[NONE]], %{{.*}})
    nvvm.cp.async.bulk.shared.cluster.global %c, %g, %s, %n : !llvm.ptr<7>, !llvm.ptr<1>
    // CHECK: llvm.call @varlen_sim_bulk_copy_cluster(%{{.*}}, %{{.*}}, %{{.*}}, %[[N]], %{{.*}})
    nvvm.cp.async.bulk.shared.cluster.shared.cta %c, %s, %s, %n : !llvm.ptr<7>, !llvm.ptr<3>
    // CHECK: llvm.call @varlen_sim_bulk_store(%{{.*}}, %{{.*}}, %[[N]], %{{.*}})
    nvvm.cp.async.bulk.global.shared.cta %g, %s, %n : !llvm.ptr<1>, !llvm.ptr<3>
    // CHECK: %[[MASK:.*]] = llvm.zext %[[M]] : i16 to i32
    // CHECK: llvm.call @varlen_sim_tma_load(%{{.*}}, %[[MAP]], %{{.*}}, %{{.*}}, %{{.*}}, %[[MASK]], %{{.*}})
    nvvm.cp.async.bulk.tensor.shared.cluster.global %c, %map, %s, box [%n, %n] multicast_mask = %m : !llvm.ptr<7>, !llvm.ptr
    // CHECK: %[[RANK:.*]] = llvm.mlir.constant(3 : i32)
    // CHECK: llvm.call @varlen_sim_tma_store(%[[MAP]], %{{.*}}, %[[RANK]], %{{.*}}, %{{.*}})
    nvvm.cp.async.bulk.tensor.global.shared.cta %map, %s, box [%n, %n, %n] : !llvm.ptr, !llvm.ptr<3>
    // CHECK: %[[ADD:.*]] = llvm.mlir.constant(0 : i32)
    // CHECK: llvm.call @varlen_sim_tma_reduce(%[[MAP]], %{{.*}}, %{{.*}}, %{{.*}}, %[[ADD]], %{{.*}})
    nvvm.cp.async.bulk.tensor.reduce %map, %s, box [%n, %n] {redKind = #nvvm.tma_redux_kind<add>} : !llvm.ptr, !llvm.ptr<3>
    // CHECK: llvm.call @varlen_sim_bulk_commit(
    nvvm.cp.async.bulk.commit.group
    // CHECK: %[[READ:.*]] = llvm.mlir.constant(1 : i32)
    // CHECK: llvm.call @varlen_sim_bulk_wait_group(%{{.*}}, %[[READ]], %{{.*}})
    nvvm.cp.async.bulk.wait_group 0 {read}
    // CHECK: llvm.call @varlen_sim_mapa(%{{.*}}, %[[N]], %{{.*}})
    // CHECK: llvm.addrspacecast %{{.*}} : !llvm.ptr to !llvm.ptr<7>
    %0 = nvvm.mapa %s, %n : !llvm.ptr<3> -> !llvm.ptr<7>
    llvm.return
  }

  // CHECK-LABEL: @varlen_sim.m.maps(
  // CHECK-SAME: %[[S:.*]]: !llvm.ptr<3>, %[[G:.*]]: !llvm.ptr<1>, %[[MAP:.*]]: !llvm.ptr, %[[A:.*]]: i64, %[[N:.*]]: i32)
  llvm.func @maps(%s: !llvm.ptr<3>, %g: !llvm.ptr<1>, %map: !llvm.ptr, %a: i64, %n: i32) {
    %c1 = llvm.mlir.constant(1 : i32) : i32
    %c128 = llvm.mlir.constant(128 : i32) : i32
    // Fields as Device.h counts them, in one dimension or of all.
    // CHECK-DAG: %[[ADDRESS:.*]] = llvm.mlir.constant(0 : i32)
    // CHECK-DAG: %[[NONE:.*]] = llvm.mlir.constant(0 : i32)
    // CHECK: llvm.call @varlen_sim_tensormap_replace(%{{.*}}, %{{.*}}, %{{.*}}, %[[A]], %{{.*}})
    llvm.call_intrinsic "llvm.nvvm.tensormap.replace.global.address.p3"(%s, %a) : (!llvm.ptr<3>, i64) -> ()
    // CHECK: %[[STRIDE:.*]] = llvm.mlir.constant(4 : i32)
    // CHECK: llvm.call @varlen_sim_tensormap_replace(%{{.*}}, %[[STRIDE]], %[[ONE:.*]], %[[A]], %{{.*}})
    llvm.call_intrinsic "llvm.nvvm.tensormap.replace.global.stride.p3"(%s, %c1, %a) : (!llvm.ptr<3>, i32, i64) -> ()
    // CHECK: %[[BOX:.*]] = llvm.mlir.constant(2 : i32)
    // CHECK: %[[WIDE:.*]] = llvm.zext %[[N]] : i32 to i64
    // CHECK: llvm.call @varlen_sim_tensormap_replace(%{{.*}}, %[[BOX]], %[[ONE]], %[[WIDE]], %{{.*}})
    llvm.call_intrinsic "llvm.nvvm.tensormap.replace.box.dim.p3"(%s, %c1, %n) : (!llvm.ptr<3>, i32, i32) -> ()
    // CHECK: %[[TO:.*]] = llvm.addrspacecast %[[G]]
    // CHECK: %[[FROM:.*]] = llvm.addrspacecast %[[S]]
    // CHECK: llvm.call @varlen_sim_tensormap_cp_fenceproxy(%[[TO]], %[[FROM]], %{{.*}})
    kernel.publish_map %s to %g : !llvm.ptr<3>, !llvm.ptr<1>
    // CHECK: llvm.call @varlen_sim_tensormap_acquire(%[[MAP]], %{{.*}})
    nvvm.fence.proxy.acquire #nvvm.mem_scope<gpu> %map, %c128
    llvm.return
  }
}
