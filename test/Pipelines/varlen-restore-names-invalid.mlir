// RUN: varlen-opt %s --varlen-restore-names -verify-diagnostics

// expected-error @below {{cannot be named '_mlir_ciface_exp': another function is}}
llvm.func @_mlir_ciface_source.exp(%x: f64) attributes {varlen.source_name = "exp"} {
  llvm.return
}
llvm.func @_mlir_ciface_exp() {
  llvm.return
}
