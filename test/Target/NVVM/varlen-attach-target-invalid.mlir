// RUN: not varlen-opt %s --varlen-attach-target="chip=sm_81" 2>&1 | FileCheck %s --check-prefix=CHIP
// RUN: not varlen-opt %s --varlen-attach-target="chip=sm_90a ptx=78" 2>&1 | FileCheck %s --check-prefix=OLD
// RUN: not varlen-opt %s --varlen-attach-target="chip=sm_80 ptx=91" 2>&1 | FileCheck %s --check-prefix=NEW
// RUN: not varlen-opt %s --varlen-attach-target="chip=sm_90a ptx=85" 2>&1 | FileCheck %s --check-prefix=MAPS
// RUN: varlen-opt %s --varlen-attach-target="chip=sm_90a ptx=86" -o /dev/null

// CHIP: error: expected chip to be one of sm_80, {{.*}}, got sm_81
// OLD: error: expected ptx from 80 to 90 for sm_90a (10 times the version), got 78
// NEW: error: expected ptx from 70 to 90 for sm_80 (10 times the version), got 91
// MAPS: error: expected ptx of at least 86 (10 times the version) for a kernel that makes tensor maps, got 85
gpu.module @kernels {
  llvm.func @map(%map: !llvm.ptr<3>, %rank: i32) attributes {nvvm.kernel} {
    llvm.call_intrinsic "llvm.nvvm.tensormap.replace.rank.p3"(%map, %rank) : (!llvm.ptr<3>, i32) -> ()
    llvm.return
  }
}
