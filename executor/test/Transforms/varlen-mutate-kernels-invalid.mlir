// RUN: varlen-opt %s --varlen-mutate-kernels=mutant=1 --verify-diagnostics
// RUN: varlen-opt %s --varlen-mutate-kernels=mutant=0

// expected-error @below {{expected mutant to be less than 1, the number of mutants, got 1}}
module {
  gpu.module @m {
    llvm.func @k() attributes {nvvm.kernel} {
      nvvm.barrier0
      llvm.return
    }
  }
}
