// RUN: varlen-opt %s --pass-pipeline='builtin.module(gpu.module(gpu.func(kernel-expand-reductions)))' --split-input-file --verify-diagnostics

gpu.module @kernels {
  gpu.func @lanes(%x: vector<2xf32>, %out: memref<2xf32>, %i: index) kernel {
    // expected-error @below {{expected a cluster of at most 32 lanes, got 64}}
    %sum = gpu.subgroup_reduce add %x cluster(size = 64) : (vector<2xf32>) -> vector<2xf32>
    vector.store %sum, %out[%i] : memref<2xf32>, vector<2xf32>
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @bits(%x: vector<2xf64>, %out: memref<2xf64>, %i: index) kernel {
    // expected-error @below {{expected numbers of at most 32 bits, as many as registers hold, got 'vector<2xf64>'}}
    %sum = gpu.subgroup_reduce add %x cluster(size = 4) : (vector<2xf64>) -> vector<2xf64>
    vector.store %sum, %out[%i] : memref<2xf64>, vector<2xf64>
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @registers(%x: vector<65537xf32>, %out: memref<65537xf32>, %i: index) kernel {
    // expected-error @below {{as many as registers hold, got 'vector<65537xf32>'}}
    %sum = gpu.subgroup_reduce add %x cluster(size = 4) : (vector<65537xf32>) -> vector<65537xf32>
    vector.store %sum, %out[%i] : memref<65537xf32>, vector<65537xf32>
    gpu.return
  }
}
