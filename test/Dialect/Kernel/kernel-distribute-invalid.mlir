// RUN: varlen-opt %s --pass-pipeline='builtin.module(gpu.module(gpu.func(kernel-distribute)))' -split-input-file -verify-diagnostics

gpu.module @kernels {
  // expected-error @below {{expected known_block_size, which says how many warps share a tile}}
  gpu.func @warps() kernel {
    %e = tensor.empty() : tensor<64x64xf32>
    gpu.return
  }
}

// -----

gpu.module @kernels {
  // expected-error @below {{expected known_block_size to be one row of whole warps, got 64 x 2 x 1}}
  gpu.func @block() kernel attributes {known_block_size = array<i32: 64, 2, 1>} {
    %e = tensor.empty() : tensor<64x64xf32>
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @rows() kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
    // expected-error @below {{expected tiles of R x C, R 1 or a multiple of 16 rows for each of 8 warps, C 1 or a multiple of 8, of numbers that a thread's registers have room for, got 'tensor<64x64xf32>'}}
    %e = tensor.empty() : tensor<64x64xf32>
    // expected-error @below {{got 'tensor<128x12xf32>'}}
    %f = tensor.empty() : tensor<128x12xf32>
    // expected-error @below {{got 'tensor<0x64xf32>'}}
    %g = tensor.empty() : tensor<0x64xf32>
    // expected-error @below {{got 'tensor<128x64xvector<4xf32>>'}}
    %h = tensor.empty() : tensor<128x64xvector<4xf32>>
    // expected-error @below {{got 'tensor<128x131080xf32>'}}
    %i = tensor.empty() : tensor<128x131080xf32>
    gpu.return
  }
}

// -----

#mn = affine_map<(m, n) -> (m, n)>
#nm = affine_map<(m, n) -> (n, m)>
gpu.module @kernels {
  gpu.func @maps(%out: memref<?x1x64xf32>, %i: index) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %e = tensor.empty() : tensor<64x64xf32>
    // expected-error @below {{expected operands with the maps (m, n) -> (m, n), (m, 0) or (0, n), got affine_map<(d0, d1) -> (d1, d0)> for 'tensor<64x64xf32>'}}
    %s = linalg.generic {indexing_maps = [#nm, #mn], iterator_types = ["parallel", "parallel"]}
        ins(%e : tensor<64x64xf32>) outs(%e : tensor<64x64xf32>) {
    ^bb0(%x: f32, %y: f32):
      linalg.yield %x : f32
    } -> tensor<64x64xf32>
    kernel.store %s to %out rows(%i, %i, %i, %i) valid(%i) : tensor<64x64xf32> to memref<?x1x64xf32>
    gpu.return
  }
}

// -----

#mn = affine_map<(m, n) -> (m, n)>
#m0 = affine_map<(m, n) -> (m, 0)>
gpu.module @kernels {
  gpu.func @combiner(%out: memref<1x?xf32>, %i: index) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %e = tensor.empty() : tensor<64x64xf32>
    %r = tensor.empty() : tensor<64x1xf32>
    // expected-error @below {{expected a reduction of columns with addf or maxnumf}}
    %s = linalg.generic {indexing_maps = [#mn, #m0], iterator_types = ["parallel", "reduction"]}
        ins(%e : tensor<64x64xf32>) outs(%r : tensor<64x1xf32>) {
    ^bb0(%x: f32, %y: f32):
      %z = arith.mulf %x, %y : f32
      linalg.yield %z : f32
    } -> tensor<64x1xf32>
    kernel.store %s to %out rows(%i, %i, %i, %i) valid(%i) : tensor<64x1xf32> to memref<1x?xf32>
    gpu.return
  }
}

// -----

#mn = affine_map<(m, n) -> (m, n)>
gpu.module @kernels {
  gpu.func @body(%i: memref<f32>) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %e = tensor.empty() : tensor<64x64xf32>
    %s = linalg.generic {indexing_maps = [#mn], iterator_types = ["parallel", "parallel"]} outs(%e : tensor<64x64xf32>) {
    ^bb0(%y: f32):
      // expected-error @below {{cannot be distributed: expected elementwise operations on scalars in a tile's loops}}
      %z = memref.load %i[] : memref<f32>
      linalg.yield %z : f32
    } -> tensor<64x64xf32>
    gpu.return
  }
}

// -----

!k = memref<1x64x64xf16, #gpu.address_space<workgroup>>
gpu.module @kernels {
  gpu.func @contracts(%sk: !k) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %k = kernel.tile %sk : !k to tensor<64x64xf16>
    %k40 = kernel.tile %sk : !k to tensor<64x40xf16>
    %e = tensor.empty() : tensor<64x64xf32>
    %h = tensor.empty() : tensor<64x64xf16>
    // expected-error @below {{expected to contract over a multiple of 16, got 40}}
    %0 = linalg.contract indexing_maps = [affine_map<(m, n, d) -> (m, d)>, affine_map<(m, n, d) -> (n, d)>, affine_map<(m, n, d) -> (m, n)>]
        ins(%k40, %k40 : tensor<64x40xf16>, tensor<64x40xf16>) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
    // expected-error @below {{expected the second factor to be a kernel.tile, in shared memory}}
    %1 = linalg.contract indexing_maps = [affine_map<(m, n, d) -> (m, d)>, affine_map<(m, n, d) -> (n, d)>, affine_map<(m, n, d) -> (m, n)>]
        ins(%k, %h : tensor<64x64xf16>, tensor<64x64xf16>) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
    // expected-error @below {{expected a first factor of 16 bits where its rows are not those of the result, got 'f32'}}
    %2 = linalg.contract indexing_maps = [affine_map<(m, n, d) -> (d, m)>, affine_map<(m, n, d) -> (n, d)>, affine_map<(m, n, d) -> (m, n)>]
        ins(%e, %k : tensor<64x64xf32>, tensor<64x64xf16>) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
    // expected-error @below {{expected the rows of the result to come from the first factor and its columns from the second}}
    %3 = linalg.contract indexing_maps = [affine_map<(m, n, d) -> (n, d)>, affine_map<(m, n, d) -> (m, d)>, affine_map<(m, n, d) -> (m, n)>]
        ins(%k, %k : tensor<64x64xf16>, tensor<64x64xf16>) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
    gpu.return
  }
}

// -----

!k = memref<1x64x64xbf16, #gpu.address_space<workgroup>>
gpu.module @kernels {
  gpu.func @f32(%p: !k) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %k = kernel.tile %p, %p, %p : !k, !k, !k to tensor<64x64xf32>
    %e = tensor.empty() : tensor<64x64xf32>
    // expected-error @below {{expected factors of f16 or bf16, got 'f32'; kernel-split-f32 takes these apart}}
    %0 = linalg.contract indexing_maps = [affine_map<(m, n, d) -> (m, d)>, affine_map<(m, n, d) -> (n, d)>, affine_map<(m, n, d) -> (m, n)>]
        ins(%k, %k : tensor<64x64xf32>, tensor<64x64xf32>) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
    gpu.return
  }
}

// -----

!k = memref<1x64x64xbf16, #gpu.address_space<workgroup>>
gpu.module @kernels {
  gpu.func @tile(%sk: !k, %out: memref<?x1x64xbf16>, %i: index) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    // expected-error @below {{expected only contractions to read a shared tile, got kernel.store}}
    %k = kernel.tile %sk : !k to tensor<64x64xbf16>
    kernel.store %k to %out rows(%i, %i, %i, %i) valid(%i) : tensor<64x64xbf16> to memref<?x1x64xbf16>
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @other(%i: index) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %e = tensor.empty() : tensor<64x64xf32>
    // expected-error @below {{cannot be distributed: expected linalg.generic, linalg.fill, linalg.contract, tensor.empty, scf, varlen.rescale, varlen.scatter_add, varlen.add_keys or kernel operations on tiles}}
    %x = tensor.extract %e[%i, %i] : tensor<64x64xf32>
    gpu.return
  }
}

// -----

// Each operand fits, the product of their rows and columns does not.
#m0 = affine_map<(m, n) -> (m, 0)>
#n0 = affine_map<(m, n) -> (0, n)>
gpu.module @kernels {
  gpu.func @registers(%out: memref<1x?xf32>, %i: index) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %rows = tensor.empty() : tensor<1024x1xf32>
    %columns = tensor.empty() : tensor<1x2056xf32>
    // expected-error @below {{expected loops over numbers that a thread's registers have room for, got 1024 x 2056}}
    %s = linalg.generic {indexing_maps = [#n0, #m0], iterator_types = ["parallel", "reduction"]}
        ins(%columns : tensor<1x2056xf32>) outs(%rows : tensor<1024x1xf32>) {
    ^bb0(%x: f32, %y: f32):
      %z = arith.addf %x, %y : f32
      linalg.yield %z : f32
    } -> tensor<1024x1xf32>
    kernel.store %s to %out rows(%i, %i, %i, %i) valid(%i) : tensor<1024x1xf32> to memref<1x?xf32>
    gpu.return
  }
}

// -----

!table = memref<?x32xf32, strided<[1, 1], offset: ?>>
gpu.module @kernels {
  gpu.func @scatter_add(%table: !table) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %values = arith.constant dense<0.0> : tensor<64x16xf32>
    %index = arith.constant dense<0> : tensor<64x16xi32>
    %columns = arith.constant dense<0> : tensor<1x16xi64>
    // expected-error @below {{expected values of a tile, and a row for each of its rows, got 'tensor<64x16xf32>' and 'tensor<1x16xi64>'}}
    varlen.scatter_add %values at %index to %table[%columns]
        : tensor<64x16xf32>, tensor<64x16xi32>, !table, tensor<1x16xi64>
    %statistic = arith.constant dense<0.0> : tensor<64x1xf32>
    %one = arith.constant dense<0> : tensor<64x1xi32>
    %rows = arith.constant dense<0> : tensor<64x1xi64>
    // expected-error @below {{got 'tensor<64x1xf32>' and 'tensor<64x1xi64>'}}
    varlen.scatter_add %statistic at %one to %table[%rows]
        : tensor<64x1xf32>, tensor<64x1xi32>, !table, tensor<64x1xi64>
    gpu.return
  }
}

// -----

!table = memref<?x32xf32, strided<[1, 1], offset: ?>>
gpu.module @kernels {
  gpu.func @add_keys(%table: !table, %first: i32, %row: i64) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %values = arith.constant dense<0.0> : tensor<64x16xf32>
    %several = arith.constant dense<0> : tensor<1x16xi64>
    // expected-error @below {{expected values of a tile, keys x queries, and one row for all of them, a linalg.fill of 1 x C, got 'tensor<64x16xf32>' and 'tensor<1x16xi64>'}}
    varlen.add_keys %values to %table[%several, %first]
        : tensor<64x16xf32>, !table, tensor<1x16xi64>
    %e = tensor.empty() : tensor<64x1xi64>
    %column = linalg.fill ins(%row : i64) outs(%e : tensor<64x1xi64>) -> tensor<64x1xi64>
    // expected-error @below {{got 'tensor<64x16xf32>' and 'tensor<64x1xi64>'}}
    varlen.add_keys %values to %table[%column, %first]
        : tensor<64x16xf32>, !table, tensor<64x1xi64>
    gpu.return
  }
}

// -----

#mn = affine_map<(m, n) -> (m, n)>
#zn = affine_map<(m, n) -> (0, n)>
gpu.module @kernels {
  gpu.func @hide(%k0: i32, %limits: tensor<1x16xi32>) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %values = arith.constant dense<0.0> : tensor<64x16xf32>
    %e = tensor.empty() : tensor<64x16xf32>
    %r = linalg.generic {indexing_maps = [#mn, #zn, #mn], iterator_types = ["parallel", "parallel"]}
        ins(%values, %limits : tensor<64x16xf32>, tensor<1x16xi32>) outs(%e : tensor<64x16xf32>) {
    ^bb0(%s: f32, %limit: i32, %o: f32):
      %key = linalg.index 1 : index
      // expected-error @below {{expected limits of rows for keys that are the columns of its tile}}
      %y = varlen.hide %s with %s at %key limits(%limit, %limit, %k0) : f32
      linalg.yield %y : f32
    } -> tensor<64x16xf32>
    gpu.return
  }
}

// -----

// 32 rows are not 16 for each of four warps.

!k = memref<1x64x64xf16, #gpu.address_space<workgroup>>
gpu.module @kernels {
  gpu.func @shared_by_columns(%mem: memref<?x4x64xf32>, %sk: !k, %n: index, %x: f32) kernel
      attributes {known_block_size = array<i32: 128, 1, 1>} {
    %e = tensor.empty() : tensor<32x64xf32>
    // expected-error @below {{expected rows for all warps where elements depend on their row or column}}
    %0 = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]}
        outs(%e : tensor<32x64xf32>) {
    ^bb0(%o: f32):
      %i = linalg.index 0 : index
      %j = arith.index_cast %i : index to i32
      %f = arith.sitofp %j : i32 to f32
      linalg.yield %f : f32
    } -> tensor<32x64xf32>
    %row = tensor.empty() : tensor<1x64xf32>
    // expected-error @below {{expected rows for all warps where elements depend on their row or column}}
    %1 = linalg.generic {indexing_maps = [affine_map<(m, n) -> (0, n)>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]}
        ins(%row : tensor<1x64xf32>) outs(%e : tensor<32x64xf32>) {
    ^bb0(%a: f32, %o: f32):
      linalg.yield %a : f32
    } -> tensor<32x64xf32>
    // expected-error @below {{expected rows for all warps}}
    %2 = kernel.load %mem rows(%n, %n, %n, %n) valid(%n) otherwise %x : memref<?x4x64xf32> to tensor<32x64xf32>
    %k = kernel.tile %sk : !k to tensor<64x64xf16>
    %h = tensor.empty() : tensor<32x64xf16>
    // expected-error @below {{expected rows for all warps, or a first factor whose rows are those of the sum, got 'tensor<32x64xf32>' for 4 warps}}
    %3 = linalg.contract indexing_maps = [affine_map<(m, n, d) -> (m, d)>, affine_map<(m, n, d) -> (n, d)>, affine_map<(m, n, d) -> (m, n)>]
        ins(%h, %k : tensor<32x64xf16>, tensor<64x64xf16>) outs(%e : tensor<32x64xf32>) -> tensor<32x64xf32>
    gpu.return
  }
}
