// RUN: varlen-opt %s --convert-nvvm-to-executor | FileCheck %s

gpu.module @m {
  // Accesses go through the address that their check gives.

  // CHECK-LABEL: @varlen_sim.m.accesses(
  // CHECK-SAME: %[[G:.*]]: !llvm.ptr<1>, %[[S:.*]]: !llvm.ptr<3>, %[[P:.*]]: !llvm.ptr, %[[N:.*]]: i32)
  llvm.func @accesses(%g: !llvm.ptr<1>, %s: !llvm.ptr<3>, %p: !llvm.ptr, %n: i32) {
    // CHECK-DAG: %[[FLAT:.*]] = llvm.addrspacecast %[[G]] : !llvm.ptr<1> to !llvm.ptr
    // CHECK-DAG: %[[SIZE:.*]] = llvm.mlir.constant(16 : i32)
    // CHECK: %[[CHECKED:.*]] = llvm.call @varlen_sim_load_global(%[[FLAT]], %[[SIZE]], %{{.*}}) : (!llvm.ptr, i32, i32) -> !llvm.ptr
    // CHECK: %[[AGAIN:.*]] = llvm.addrspacecast %[[CHECKED]] : !llvm.ptr to !llvm.ptr<1>
    // CHECK: %[[V:.*]] = llvm.load %[[AGAIN]] : !llvm.ptr<1> -> vector<4xf32>
    %v = llvm.load %g : !llvm.ptr<1> -> vector<4xf32>
    // CHECK: llvm.call @varlen_sim_store_shared(
    // CHECK: llvm.store %[[V]], %{{.*}} : vector<4xf32>, !llvm.ptr<3>
    llvm.store %v, %s : vector<4xf32>, !llvm.ptr<3>
    // CHECK: llvm.call @varlen_sim_load_generic(%[[P]],
    %0 = llvm.load %p : !llvm.ptr -> i32
    // A vector at the alignment of its elements is several accesses.
    // CHECK: %[[LENGTH:.*]] = llvm.zext %{{.*}} : i32 to i64
    // CHECK: llvm.call @varlen_sim_load_range(%{{.*}}, %[[LENGTH]], %{{.*}})
    %1 = llvm.load %g {alignment = 4 : i64} : !llvm.ptr<1> -> vector<4xf32>
    // Others may run while a thread polls.
    // CHECK: llvm.call @varlen_sim_load_flag
    // CHECK: llvm.call @varlen_sim_poll(
    // CHECK: llvm.load volatile
    // CHECK: %[[FLAT:.*]] = llvm.addrspacecast %{{.*}} : !llvm.ptr<1> to !llvm.ptr
    // CHECK: %[[NONE:.*]] = llvm.mlir.constant(1 : i32)
    // CHECK: llvm.call @varlen_sim_acquire(%[[FLAT]], %[[NONE]], %{{.*}})
    %2 = llvm.load volatile %g : !llvm.ptr<1> -> i32
    // CTAs do not see the shared memory of others.
    // CHECK: llvm.call @varlen_sim_load_flag
    // CHECK: llvm.load %{{.*}} atomic acquire
    // CHECK-NOT: varlen_sim_acquire
    %3 = llvm.load %s atomic acquire {alignment = 4 : i64} : !llvm.ptr<3> -> i32
    // The thread's own memory needs no check.
    // CHECK: %[[OWN:.*]] = llvm.alloca
    // CHECK-NEXT: llvm.store %[[N]], %[[OWN]] : i32, !llvm.ptr
    %own = llvm.alloca %n x i32 : (i32) -> !llvm.ptr
    llvm.store %n, %own : i32, !llvm.ptr
    llvm.return
  }

  // CHECK-LABEL: @varlen_sim.m.atomics(
  // CHECK-SAME: %[[G:.*]]: !llvm.ptr<1>, %[[X:.*]]: f32, %[[N:.*]]: i32) -> f32
  llvm.func @atomics(%g: !llvm.ptr<1>, %x: f32, %n: i32) -> f32 {
    // CHECK: %[[ADD:.*]] = llvm.mlir.constant(0 : i32)
    // CHECK: %[[F32:.*]] = llvm.mlir.constant(4 : i32)
    // CHECK: %[[BITS:.*]] = llvm.bitcast %[[X]] : f32 to i32
    // CHECK: %[[WIDE:.*]] = llvm.zext %[[BITS]] : i32 to i64
    // CHECK: %[[RELAXED:.*]] = llvm.mlir.constant(1 : i32)
    // CHECK: %[[OLD:.*]] = llvm.call @varlen_sim_atomic(%{{.*}}, %[[ADD]], %[[F32]], %[[WIDE]], %[[RELAXED]], %{{.*}})
    // CHECK: %[[LOW:.*]] = llvm.trunc %[[OLD]] : i64 to i32
    // CHECK: llvm.bitcast %[[LOW]] : i32 to f32
    %0 = llvm.atomicrmw fadd %g, %x syncscope("device") monotonic : !llvm.ptr<1>, f32
    // CHECK: %[[UMAX:.*]] = llvm.mlir.constant(9 : i32)
    // CHECK: %[[I32:.*]] = llvm.mlir.constant(0 : i32)
    // CHECK: %[[ACQREL:.*]] = llvm.mlir.constant(4 : i32)
    // CHECK: llvm.call @varlen_sim_atomic(%{{.*}}, %[[UMAX]], %[[I32]], %{{.*}}, %[[ACQREL]], %{{.*}})
    %1 = llvm.atomicrmw umax %g, %n acq_rel : !llvm.ptr<1>, i32
    // CHECK: %[[OLD:.*]] = llvm.call @varlen_sim_atomic_cas(
    // CHECK: llvm.icmp "eq" %[[OLD]], %{{.*}} : i64
    %2 = llvm.cmpxchg %g, %n, %n acq_rel monotonic : !llvm.ptr<1>, i32
    llvm.return %0 : f32
  }

  // CHECK-LABEL: @varlen_sim.m.blocks(
  // CHECK-SAME: %[[G:.*]]: !llvm.ptr<1>, %[[S:.*]]: !llvm.ptr<3>, %[[N:.*]]: i64)
  llvm.func @blocks(%g: !llvm.ptr<1>, %s: !llvm.ptr<3>, %n: i64) {
    // CHECK: llvm.call @varlen_sim_store_range(%{{.*}}, %[[N]], %{{.*}})
    // CHECK: llvm.call @varlen_sim_load_range(%{{.*}}, %[[N]], %{{.*}})
    // CHECK: "llvm.intr.memcpy"
    "llvm.intr.memcpy"(%s, %g, %n) <{isVolatile = false}> : (!llvm.ptr<3>, !llvm.ptr<1>, i64) -> ()
    %zero = llvm.mlir.constant(0 : i8) : i8
    // CHECK: llvm.call @varlen_sim_store_range(
    // CHECK: "llvm.intr.memset"
    "llvm.intr.memset"(%s, %zero, %n) <{isVolatile = false}> : (!llvm.ptr<3>, i8, i64) -> ()
    llvm.return
  }
}

gpu.module @n {
  // A kernel says first that its CTAs order each other.

  // CHECK-LABEL: @varlen_sim.n.flags(
  // CHECK-NEXT: llvm.call @varlen_sim_order_global()
  llvm.func @flags(%g: !llvm.ptr<1>, %n: i32) attributes {gpu.kernel} {
    // CHECK: llvm.call @varlen_sim_load_flag
    // CHECK: llvm.call @varlen_sim_poll(
    // CHECK: %[[V:.*]] = llvm.load %{{.*}} atomic syncscope("device") acquire
    // CHECK: %[[ACQUIRE:.*]] = llvm.mlir.constant(2 : i32)
    // CHECK: llvm.call @varlen_sim_acquire(%{{.*}}, %[[ACQUIRE]], %{{.*}})
    %0 = llvm.load %g atomic syncscope("device") acquire {alignment = 4 : i64} : !llvm.ptr<1> -> i32
    // CHECK: llvm.call @varlen_sim_store_flag
    // CHECK: %[[RELEASE:.*]] = llvm.mlir.constant(3 : i32)
    // CHECK: llvm.call @varlen_sim_release(%{{.*}}, %[[RELEASE]], %{{.*}})
    // CHECK: llvm.store %[[V]], %{{.*}} atomic syncscope("device") release
    llvm.store %0, %g atomic syncscope("device") release {alignment = 4 : i64} : i32, !llvm.ptr<1>
    llvm.return
  }

  // CHECK-LABEL: @varlen_sim.n.relaxed(
  // CHECK-NOT: varlen_sim_order_global
  llvm.func @relaxed(%g: !llvm.ptr<1>, %n: i32) attributes {gpu.kernel} {
    // CHECK: llvm.return
    %0 = llvm.atomicrmw add %g, %n syncscope("device") monotonic : !llvm.ptr<1>, i32
    llvm.store %0, %g atomic release {alignment = 4 : i64} : i32, !llvm.ptr<1>
    llvm.return
  }
}
