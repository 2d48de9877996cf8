// RUN: not varlen-opt %s --varlen-attach-target="chip=sm_81" 2>&1 | FileCheck %s --check-prefix=CHIP
// RUN: not varlen-opt %s --varlen-attach-target="chip=sm_90a ptx=78" 2>&1 | FileCheck %s --check-prefix=OLD
// RUN: not varlen-opt %s --varlen-attach-target="chip=sm_80 ptx=91" 2>&1 | FileCheck %s --check-prefix=NEW

// CHIP: error: expected chip to be one of sm_80, {{.*}}, got sm_81
// OLD: error: expected ptx from 80 to 90 for sm_90a (10 times the version), got 78
// NEW: error: expected ptx from 70 to 90 for sm_80 (10 times the version), got 91
gpu.module @kernels {
}
