// REQUIRES: plugin

// A plugin's passes exist once it is loaded, so they are named by a pipeline.
// RUN: %mlir-opt-plugin --pass-pipeline='builtin.module(varlen-online-softmax)' %s | FileCheck %s
// RUN: mlir-opt --load-pass-plugin=%varlen-build/lib/VarlenPlugin.so \
// RUN:   --load-dialect-plugin=%varlen-build/lib/VarlenPlugin.so \
// RUN:   --pass-pipeline='builtin.module(varlen-online-softmax)' %s | FileCheck %s

// CHECK-LABEL: func.func @mask
// CHECK-SAME: #varlen.mask
func.func @mask() attributes {m = #varlen.mask<causal>} {
  return
}
