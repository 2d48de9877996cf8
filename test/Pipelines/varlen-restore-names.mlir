// RUN: varlen-opt %s --varlen-restore-names | FileCheck %s
// RUN: varlen-opt %S/varlen-rename-functions.mlir --varlen-to-cpu | FileCheck %s --check-prefix=ALL

// CHECK: llvm.func @source_exp(%{{.*}}: f64) {
llvm.func @source_exp(%x: f64) attributes {varlen.source_name = "exp"} {
  llvm.return
}
// CHECK: llvm.func @_mlir_ciface_exp(%{{.*}}: f64) {
llvm.func @_mlir_ciface_source_exp(%x: f64) attributes {varlen.source_name = "exp"} {
  llvm.call @source_exp(%x) : (f64) -> ()
  llvm.return
}

// ALL-DAG: llvm.func @_mlir_ciface_exp(
// ALL-DAG: llvm.func @_mlir_ciface_erff(
// ALL-DAG: llvm.func @_mlir_ciface_sin(
// ALL-NOT: source_name
