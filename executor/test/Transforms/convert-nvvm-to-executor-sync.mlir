// RUN: varlen-opt %s --convert-nvvm-to-executor | FileCheck %s

gpu.module @m {
  // CHECK-LABEL: @varlen_sim.m.barriers(
  // CHECK-SAME: %[[A:.*]]: i32, %[[B:.*]]: i32)
  llvm.func @barriers(%a: i32, %b: i32) {
    // CHECK-DAG: %[[ZERO0:.*]] = llvm.mlir.constant(0 : i32)
    // CHECK-DAG: %[[ZERO1:.*]] = llvm.mlir.constant(0 : i32)
    // CHECK-DAG: %[[SITE:.*]] = llvm.mlir.constant(0 : i32)
    // CHECK: llvm.call @varlen_sim_barrier(%[[ZERO0]], %[[ZERO1]], %[[SITE]]) : (i32, i32, i32) -> ()
    nvvm.barrier0
    // CHECK: llvm.call @varlen_sim_barrier(%[[A]], %[[B]], %{{.*}})
    nvvm.barrier id = %a number_of_threads = %b
    // CHECK: %[[AND:.*]] = llvm.mlir.constant(1 : i32)
    // CHECK: llvm.call @varlen_sim_barrier_reduce(%{{.*}}, %{{.*}}, %[[AND]], %[[A]], %{{.*}}) : (i32, i32, i32, i32, i32) -> i32
    %0 = nvvm.barrier #nvvm.reduction<and> %a -> i32
    // CHECK: llvm.call @varlen_sim_barrier_arrive(%[[A]], %[[B]], %{{.*}})
    nvvm.barrier.arrive id = %a number_of_threads = %b
    // CHECK: llvm.call @varlen_sim_syncwarp(%[[A]], %{{.*}})
    nvvm.bar.warp.sync %a : i32
    // CHECK: %[[STRONG:.*]] = llvm.mlir.constant(0 : i32)
    // CHECK: llvm.call @varlen_sim_cluster_arrive(%[[STRONG]], %{{.*}})
    nvvm.cluster.arrive
    // CHECK: %[[RELAXED:.*]] = llvm.mlir.constant(1 : i32)
    // CHECK: llvm.call @varlen_sim_cluster_arrive(%[[RELAXED]], %{{.*}})
    nvvm.cluster.arrive.relaxed
    // CHECK: llvm.call @varlen_sim_cluster_wait(%{{.*}})
    nvvm.cluster.wait
    llvm.return
  }

  // CHECK-LABEL: @varlen_sim.m.mbarriers(
  // CHECK-SAME: %[[P:.*]]: !llvm.ptr<3>, %[[N:.*]]: i32, %[[STATE:.*]]: i64, %[[COND:.*]]: i1)
  llvm.func @mbarriers(%p: !llvm.ptr<3>, %n: i32, %state: i64, %cond: i1) {
    // CHECK: %[[FLAT:.*]] = llvm.addrspacecast %[[P]] : !llvm.ptr<3> to !llvm.ptr
    // CHECK: llvm.call @varlen_sim_mbarrier_init(%[[FLAT]], %[[N]], %{{.*}}) : (!llvm.ptr, i32, i32) -> ()
    nvvm.mbarrier.init %p, %n : !llvm.ptr<3>, i32
    // A predicate is a branch around the call.
    // CHECK: llvm.cond_br %[[COND]], ^[[THEN:.*]], ^[[AFTER:.*]]
    // CHECK: ^[[THEN]]:
    // CHECK: llvm.call @varlen_sim_mbarrier_init
    // CHECK: llvm.br ^[[AFTER]]
    // CHECK: ^[[AFTER]]:
    nvvm.mbarrier.init %p, %n, predicate = %cond : !llvm.ptr<3>, i32, i1
    // CHECK: %[[ONE:.*]] = llvm.mlir.constant(1 : i32)
    // CHECK: llvm.call @varlen_sim_mbarrier_arrive(%{{.*}}, %[[ONE]], %{{.*}}) : (!llvm.ptr, i32, i32) -> i64
    %0 = nvvm.mbarrier.arrive %p : !llvm.ptr<3> -> i64
    // CHECK: llvm.call @varlen_sim_mbarrier_arrive_nocomplete(%{{.*}}, %[[N]], %{{.*}})
    %1 = nvvm.mbarrier.arrive.nocomplete %p, %n : !llvm.ptr<3>, i32 -> i64
    // CHECK: llvm.call @varlen_sim_mbarrier_arrive_drop(%{{.*}}, %[[N]], %{{.*}})
    %2 = nvvm.mbarrier.arrive_drop %p, %n : !llvm.ptr<3> -> i64
    // CHECK: llvm.call @varlen_sim_mbarrier_arrive_expect_tx(%{{.*}}, %[[N]], %{{.*}})
    nvvm.mbarrier.arrive.expect_tx %p, %n : !llvm.ptr<3>, i32
    // CHECK: llvm.call @varlen_sim_mbarrier_arrive_drop_expect_tx(%{{.*}}, %[[N]], %{{.*}})
    nvvm.mbarrier.arrive_drop.expect_tx %p, %n : !llvm.ptr<3>, i32
    // CHECK: llvm.call @varlen_sim_mbarrier_expect_tx(%{{.*}}, %[[N]], %{{.*}}) : (!llvm.ptr, i32, i32) -> ()
    nvvm.mbarrier.expect_tx %p, %n : !llvm.ptr<3>, i32
    // CHECK: llvm.call @varlen_sim_mbarrier_complete_tx(%{{.*}}, %[[N]], %{{.*}})
    nvvm.mbarrier.complete_tx %p, %n : !llvm.ptr<3>, i32
    // CHECK: llvm.call @varlen_sim_mbarrier_wait_parity(%{{.*}}, %[[N]], %{{.*}})
    nvvm.mbarrier.try_wait.parity %p, %n, %n : !llvm.ptr<3>, i32, i32
    // CHECK: %[[DONE:.*]] = llvm.call @varlen_sim_mbarrier_try_wait(%{{.*}}, %[[STATE]], %{{.*}}) : (!llvm.ptr, i64, i32) -> i32
    // CHECK: llvm.icmp "ne" %[[DONE]], %{{.*}} : i32
    %3 = nvvm.mbarrier.try_wait %p, %state : !llvm.ptr<3>, i64 -> i1
    // CHECK: llvm.call @varlen_sim_mbarrier_test_wait_parity(%{{.*}}, %[[N]], %{{.*}})
    %4 = nvvm.mbarrier.test.wait %p, %n : !llvm.ptr<3>, i32 -> i1
    // CHECK: llvm.call @varlen_sim_mbarrier_inval(%{{.*}}, %{{.*}})
    nvvm.mbarrier.inval %p : !llvm.ptr<3>
    llvm.return
  }

  // CHECK-LABEL: @varlen_sim.m.fences(
  // CHECK-SAME: %[[N:.*]]: i32)
  llvm.func @fences(%n: i32) {
    // CHECK: %[[GPU:.*]] = llvm.mlir.constant({{[0-9]+}} : i32)
    // CHECK: llvm.call @varlen_sim_fence(%[[GPU]], %{{.*}})
    nvvm.memory.barrier #nvvm.mem_scope<gpu>
    // CHECK: llvm.call @varlen_sim_fence(
    nvvm.fence.sc.cluster
    // CHECK: llvm.call @varlen_sim_fence_mbarrier_init(
    nvvm.fence.mbarrier.init
    // CHECK: %[[SHARED:.*]] = llvm.mlir.constant(3 : i32)
    // CHECK: llvm.call @varlen_sim_fence_proxy(%[[SHARED]], %{{.*}})
    nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}
    // CHECK: %[[COUNT:.*]] = llvm.mlir.constant(232 : i32)
    // CHECK: %[[INCREASE:.*]] = llvm.mlir.constant(1 : i32)
    // CHECK: llvm.call @varlen_sim_setmaxnreg(%[[COUNT]], %[[INCREASE]], %{{.*}})
    nvvm.setmaxregister increase 232
    // CHECK: llvm.call @varlen_sim_nanosleep(%[[N]], %{{.*}})
    nvvm.nanosleep %n
    // CHECK: llvm.call @varlen_sim_grid_wait(%{{.*}})
    nvvm.griddepcontrol wait
    // Kernels behind this one run when it has ended.
    // CHECK-NEXT: llvm.mlir.constant
    // CHECK-NEXT: llvm.call @varlen_sim_trap(
    nvvm.griddepcontrol launch_dependents
    llvm.intr.trap
    llvm.unreachable
  }
  // What convert-gpu-to-nvvm makes of cf.assert.
  llvm.mlir.global internal constant @message("no\00")
  llvm.func @__assertfail(!llvm.ptr, !llvm.ptr, i32, !llvm.ptr, i64)
  // CHECK-LABEL: @varlen_sim.m.assertion(
  // CHECK: %[[MESSAGE:.*]] = llvm.getelementptr
  // CHECK-NOT: @__assertfail
  // CHECK: llvm.call @varlen_sim_assertfail(%[[MESSAGE]], %{{.*}}) : (!llvm.ptr, i32) -> ()
  llvm.func @assertion(%line: i32, %size: i64) {
    %message = llvm.mlir.addressof @message : !llvm.ptr
    %first = llvm.getelementptr %message[0, 0] : (!llvm.ptr) -> !llvm.ptr, !llvm.array<3 x i8>
    llvm.call @__assertfail(%first, %message, %line, %message, %size) : (!llvm.ptr, !llvm.ptr, i32, !llvm.ptr, i64) -> ()
    llvm.return
  }
}
