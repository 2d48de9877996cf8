// RUN: varlen-opt %s --pass-pipeline='builtin.module(gpu.module(gpu.func(kernel-defer-row-sum)))' -split-input-file | FileCheck %s

!row = vector<1x1x2x1xf32>
!flat = vector<2xf32>

// The second loop carries the first one's sum on: lanes are summed behind it,
// once, for both uses.
// CHECK-LABEL: gpu.func @two_loops
// CHECK-SAME: (%{{.*}}: vector<2xf32>, %[[ALPHA:.*]]: vector<1x1x2x1xf32>
// CHECK-DAG: %[[ZERO:.*]] = arith.constant dense<0.0{{.*}}> : vector<1x1x2x1xf32>
// CHECK: %[[A:.*]] = scf.for {{.*}} iter_args(%[[L:.*]] = %[[ZERO]])
// CHECK-NEXT: %[[X:.*]] = arith.mulf %[[L]], %[[ALPHA]]
// CHECK-NEXT: %[[Y:.*]] = vector.shape_cast %arg0
// CHECK-NEXT: %[[S:.*]] = arith.addf %[[X]], %[[Y]]
// CHECK-NEXT: scf.yield %[[S]]
// CHECK-NEXT: }
// CHECK-NEXT: %[[B:.*]] = scf.for {{.*}} iter_args(%{{.*}} = %[[A]])
// CHECK-NOT: gpu.subgroup_reduce
// CHECK: scf.yield
// CHECK-NEXT: }
// CHECK-NEXT: %[[F:.*]] = vector.shape_cast %[[B]] : vector<1x1x2x1xf32> to vector<2xf32>
// CHECK-NEXT: %[[R:.*]] = gpu.subgroup_reduce add %[[F]] cluster(size = 4)
// CHECK-NEXT: %[[T:.*]] = vector.shape_cast %[[R]] : vector<2xf32> to vector<1x1x2x1xf32>
// CHECK-NEXT: kernel.store %[[T]]
// CHECK-NEXT: kernel.store %[[T]]
// CHECK-NOT: gpu.subgroup_reduce
gpu.module @kernels {
  gpu.func @two_loops(%part: !flat, %alpha: !row, %n: index, %out: memref<1x?xf32>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %zero = arith.constant dense<0.0> : !row
    %a = scf.for %i = %c0 to %n step %c1 iter_args(%l = %zero) -> (!row) {
      %x = arith.mulf %l, %alpha : !row
      %s = gpu.subgroup_reduce add %part cluster(size = 4) : (!flat) -> !flat
      %y = vector.shape_cast %s : !flat to !row
      %z = arith.addf %x, %y : !row
      scf.yield %z : !row
    }
    %b = scf.for %i = %c0 to %n step %c1 iter_args(%l = %a) -> (!row) {
      %s = gpu.subgroup_reduce add %part cluster(size = 4) : (!flat) -> !flat
      %y = vector.shape_cast %s : !flat to !row
      %z = arith.addf %y, %l : !row
      scf.yield %z : !row
    }
    kernel.store %b to %out rows(%n, %n, %n, %n) valid(%n) : !row to memref<1x?xf32>
    kernel.store %b to %out rows(%n, %n, %n, %n) valid(%n) : !row to memref<1x?xf32>
    gpu.return
  }
}

// -----

!row = vector<1x1x2x1xf32>
!flat = vector<2xf32>

// What the sum starts from is counted once: in the first lane of a row.
// CHECK-LABEL: gpu.func @start
// CHECK-SAME: %[[L0:[a-z0-9]*]]: vector<1x1x2x1xf32>, %{{.*}}: index
// CHECK: %[[LANE:.*]] = arith.andi %{{.*}}, %{{.*}} : i32
// CHECK: %[[IN:.*]] = arith.andi %[[LANE]], %{{.*}} : i32
// CHECK: %[[IS:.*]] = arith.cmpi eq, %[[IN]], %{{.*}} : i32
// CHECK: %[[V:.*]] = vector.broadcast %[[IS]] : i1 to vector<1x1x2x1xi1>
// CHECK: %[[I:.*]] = arith.select %[[V]], %[[L0]], %{{.*}}
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %[[I]])
// CHECK-NOT: gpu.subgroup_reduce
// CHECK: }
// CHECK: gpu.subgroup_reduce
gpu.module @kernels {
  gpu.func @start(%part: !flat, %l0: !row, %n: index, %out: memref<1x?xf32>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %a = scf.for %i = %c0 to %n step %c1 iter_args(%l = %l0) -> (!row) {
      %s = gpu.subgroup_reduce add %part cluster(size = 4) : (!flat) -> !flat
      %y = vector.shape_cast %s : !flat to !row
      %z = arith.addf %l, %y : !row
      scf.yield %z : !row
    }
    kernel.store %a to %out rows(%n, %n, %n, %n) valid(%n) : !row to memref<1x?xf32>
    gpu.return
  }
}

// -----

!row = vector<1x1x2x1xf32>
!flat = vector<2xf32>

// These stay: a sum that the loop uses otherwise, one of other lanes, a maximum,
// and one that is not linear in what is carried.
// CHECK-LABEL: gpu.func @stay
// CHECK: scf.for
// CHECK: gpu.subgroup_reduce add
// CHECK: gpu.subgroup_reduce add {{.*}} cluster(size = 8)
// CHECK: gpu.subgroup_reduce maxnumf
// CHECK: gpu.subgroup_reduce add
// CHECK: scf.yield
// CHECK-NOT: gpu.subgroup_reduce
gpu.module @kernels {
  gpu.func @stay(%part: !flat, %n: index, %out: memref<1x?xf32>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %z = arith.constant dense<0.0> : !row
    %a:4 = scf.for %i = %c0 to %n step %c1 iter_args(%l0 = %z, %l1 = %z, %l2 = %z, %l3 = %z)
        -> (!row, !row, !row, !row) {
      %s0 = gpu.subgroup_reduce add %part cluster(size = 4) : (!flat) -> !flat
      %y0 = vector.shape_cast %s0 : !flat to !row
      %z0 = arith.addf %l0, %y0 : !row
      kernel.store %z0 to %out rows(%n, %n, %n, %n) valid(%n) : !row to memref<1x?xf32>
      %s1 = gpu.subgroup_reduce add %part cluster(size = 8) : (!flat) -> !flat
      %y1 = vector.shape_cast %s1 : !flat to !row
      %z1 = arith.addf %l1, %y1 : !row
      %s2 = gpu.subgroup_reduce maxnumf %part cluster(size = 4) : (!flat) -> !flat
      %y2 = vector.shape_cast %s2 : !flat to !row
      %z2 = arith.addf %l2, %y2 : !row
      %s3 = gpu.subgroup_reduce add %part cluster(size = 4) : (!flat) -> !flat
      %y3 = vector.shape_cast %s3 : !flat to !row
      %e3 = math.exp2 %l3 : !row
      %z3 = arith.addf %e3, %y3 : !row
      scf.yield %z0, %z1, %z2, %z3 : !row, !row, !row, !row
    }
    kernel.store %a#1 to %out rows(%n, %n, %n, %n) valid(%n) : !row to memref<1x?xf32>
    kernel.store %a#2 to %out rows(%n, %n, %n, %n) valid(%n) : !row to memref<1x?xf32>
    kernel.store %a#3 to %out rows(%n, %n, %n, %n) valid(%n) : !row to memref<1x?xf32>
    gpu.return
  }
}
