// RUN: varlen-opt --show-dialects | FileCheck %s --check-prefix=DIALECTS
// RUN: varlen-opt --help | FileCheck %s --check-prefix=SHORT
// RUN: varlen-opt --help-hidden | FileCheck %s --check-prefix=LONG
// RUN: varlen-opt --emit=obj --help | FileCheck %s --check-prefix=EMIT
// RUN: varlen-opt --emit obj --help | FileCheck %s --check-prefix=EMIT

// RUN: not varlen-opt %s --header=%t.h 2>&1 | FileCheck %s --check-prefix=HEADER
// RUN: not varlen-opt %s --varlen-to-nvvm --chip sm_90a 2>&1 | FileCheck %s --check-prefix=CHIP

// HEADER: error: --header: expected --emit=FORMAT beside it
// CHIP: error: --chip: expected --emit=FORMAT beside it

// DIALECTS: varlen{{$|,}}

// Varlen's passes and pipelines, and not those of MLIR or options of LLVM.
// SHORT: --emit=obj
// SHORT: c-launcher
// SHORT-NOT: --mlir-print-ir-after
// SHORT-NOT: --aarch64-
// SHORT-NOT: --canonicalize
// SHORT: --varlen-online-softmax
// SHORT-NOT: --canonicalize
// SHORT: --varlen-to-cpu

// LONG-DAG: --mlir-print-ir-after
// LONG-DAG: --canonicalize
// LONG-DAG: --varlen-online-softmax
// LONG-DAG: --varlen-to-cpu

// EMIT: --header=<file>
