// RUN: varlen-opt %s --varlen-attach-target="chip=sm_90 ptx=83" | FileCheck %s

// CHECK: gpu.module @kernels [#nvvm.target<O = 3, chip = "sm_90", features = "+ptx83">]
gpu.module @kernels {
}
