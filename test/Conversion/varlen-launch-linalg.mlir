// RUN: varlen-opt %s --varlen-launch-linalg -split-input-file -verify-diagnostics | FileCheck %s

#ij = affine_map<(i, j) -> (i, j)>
#ji = affine_map<(i, j) -> (j, i)>
#i = affine_map<(i, j) -> (i)>
#j = affine_map<(i, j) -> (j)>

// A thread for each element, neighbours in memory: %j runs fastest. Any number of
// them, with what is too much for a grid in a loop.
// CHECK-LABEL: func.func @elementwise
// CHECK: %[[M:.*]] = memref.dim %arg0
// CHECK: %[[N:.*]] = memref.dim %arg0
// CHECK: %[[COUNT:.*]] = arith.muli
// CHECK: %[[BLOCKS:.*]] = arith.minsi %{{.*}}, %c2147483647
// CHECK: gpu.launch blocks({{.*}}) in (%{{.*}} = %[[BLOCKS]],{{.*}}) threads({{.*}}) in (%{{.*}} = %c256{{.*}} module(@kernels) function(@elementwise_generic)
// CHECK:   scf.for %[[AT:.*]] = %{{.*}} to %[[COUNT]] step
// CHECK:     %[[J:.*]] = arith.remui %[[AT]], %[[N]]
// CHECK:     %[[I:.*]] = arith.divui %[[AT]], %[[N]]
// CHECK:     memref.load %arg0[%[[I]], %[[J]]]
// CHECK:     memref.load %arg1[%[[J]], %[[I]]]
// CHECK-NOT: memref.load
// CHECK:     memref.store %{{.*}}, %arg2[%[[I]], %[[J]]]
// CHECK-NOT: linalg.
func.func @elementwise(%x: memref<?x?xf32>, %y: memref<?x?xf32>, %z: memref<?x?xf32>) {
  linalg.generic {indexing_maps = [#ij, #ji, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%x, %y : memref<?x?xf32>, memref<?x?xf32>) outs(%z : memref<?x?xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %0 = arith.addf %a, %b : f32
    linalg.yield %0 : f32
  }
  return
}

// -----

#ij = affine_map<(i, j) -> (i, j)>
#i = affine_map<(i, j) -> (i)>

// A warp for each row, whose lanes combine what they have in a tree; one of them
// stores. The fill is where it starts.
// CHECK-LABEL: func.func @rows
// CHECK: %[[SUMS:.*]] = memref.alloc
// CHECK-NOT: fill
// CHECK: gpu.launch
// CHECK:   %[[LANE:.*]] = arith.remui %{{.*}}, %c32
// CHECK:   scf.for
// CHECK:     %[[SUM:.*]] = scf.for %[[J:.*]] = %[[LANE]] to %{{.*}} step %c32{{.*}} iter_args(%{{.*}} = %cst{{.*}}) -> (f32)
// CHECK:     %[[OTHER:.*]], %{{.*}} = gpu.shuffle xor %[[SUM]], %c16_i32
// CHECK:     %[[BOTH:.*]] = arith.addf %[[OTHER]], %[[SUM]]
// CHECK:     gpu.shuffle xor %[[BOTH]], %c8_i32
// CHECK-COUNT-3: gpu.shuffle
// CHECK-NOT: gpu.shuffle
// CHECK:     scf.if
// CHECK-NEXT:  %[[ALL:.*]] = arith.addf %{{.*}}, %cst
// CHECK-NEXT:  memref.store %[[ALL]], %[[SUMS]]
// CHECK-NOT: fill
func.func @rows(%x: memref<?x?xf32>, %n: index) -> memref<?xf32> {
  %two = arith.constant 2.0 : f32
  %sums = memref.alloc(%n) : memref<?xf32>
  linalg.fill ins(%two : f32) outs(%sums : memref<?xf32>)
  linalg.generic {indexing_maps = [#ij, #i], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<?x?xf32>) outs(%sums : memref<?xf32>) {
  ^bb0(%a: f32, %sum: f32):
    %0 = arith.addf %a, %sum : f32
    linalg.yield %0 : f32
  }
  return %sums : memref<?xf32>
}

// 64 bits are shuffled in two words, 16 in one.
// CHECK-LABEL: func.func @widths
// CHECK-COUNT-10: gpu.shuffle xor %{{.*}} : i32
// CHECK-NOT: gpu.shuffle
// CHECK: gpu.launch
// CHECK-COUNT-5: gpu.shuffle xor %{{.*}} : i32
// CHECK-NOT: gpu.shuffle
// CHECK: return
func.func @widths(%x: memref<?xf64>, %y: memref<f64>, %h: memref<?xf16>, %g: memref<f16>) {
  linalg.reduce { arith.mulf } ins(%x : memref<?xf64>) outs(%y : memref<f64>) dimensions = [0]
  linalg.reduce { arith.maximumf } ins(%h : memref<?xf16>) outs(%g : memref<f16>) dimensions = [0]
  return
}

// -----

#ij = affine_map<(i, j) -> (i, j)>
#i = affine_map<(i, j) -> (i)>
#j = affine_map<(i, j) -> (j)>

// A thread for each column, in the order of rows; the fill has other readers.
// CHECK-LABEL: func.func @columns
// CHECK: gpu.launch {{.*}}function(@columns_fill)
// CHECK: gpu.launch {{.*}}function(@columns_copy)
// CHECK: gpu.launch {{.*}}function(@columns_generic)
// CHECK:   scf.for
// CHECK:     %[[START:.*]] = memref.load
// CHECK:     scf.for %{{.*}} = %c0{{.*}} to %{{.*}} step %c1{{.*}} iter_args(%{{.*}} = %[[START]])
// CHECK-NOT: gpu.shuffle
func.func @columns(%x: memref<?x?xf32>, %n: index, %y: memref<?xf32>) -> memref<?xf32> {
  %zero = arith.constant 0.0 : f32
  %sums = memref.alloc(%n) : memref<?xf32>
  linalg.fill ins(%zero : f32) outs(%sums : memref<?xf32>)
  memref.copy %sums, %y : memref<?xf32> to memref<?xf32>
  linalg.generic {indexing_maps = [#ij, #j], iterator_types = ["reduction", "parallel"]}
      ins(%x : memref<?x?xf32>) outs(%sums : memref<?xf32>) {
  ^bb0(%a: f32, %sum: f32):
    %0 = arith.addf %a, %sum : f32
    linalg.yield %0 : f32
  }
  return %sums : memref<?xf32>
}

// Not a sum of terms in any order: in their order, in one thread.
// CHECK-LABEL: func.func @last
// CHECK: scf.for
// CHECK:   scf.for {{.*}} step %c1{{.*}} iter_args
// CHECK-NOT: gpu.shuffle
func.func @last(%x: memref<?x?xf32>, %y: memref<?xf32>) {
  linalg.generic {indexing_maps = [#ij, #i], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<?x?xf32>) outs(%y : memref<?xf32>) {
  ^bb0(%a: f32, %sum: f32):
    %half = arith.constant 0.5 : f32
    %0 = arith.mulf %sum, %half : f32
    %1 = arith.addf %a, %0 : f32
    linalg.yield %1 : f32
  }
  return
}

// A loop that a result lacks is the owner's: no other thread writes that result.
// CHECK-LABEL: func.func @two_results
// CHECK: scf.for
// CHECK:   scf.for
// CHECK:     memref.store %{{.*}}, %arg1[%{{.*}}, %{{.*}}]
// CHECK:   memref.store %{{.*}}, %arg2[%{{.*}}]
func.func @two_results(%x: memref<?x?xf32>, %y: memref<?x?xf32>, %z: memref<?xf32>) {
  linalg.generic {indexing_maps = [#ij, #ij, #i], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<?x?xf32>) outs(%y, %z : memref<?x?xf32>, memref<?xf32>) {
  ^bb0(%a: f32, %o: f32, %sum: f32):
    %0 = arith.addf %a, %sum : f32
    linalg.yield %0, %0 : f32, f32
  }
  return
}

// -----

memref.global "private" constant @table : memref<4xf32> = dense<[1.0, 2.0, 4.0, 8.0]>

// The kernel has the constant.
// CHECK-LABEL: func.func @constant
// CHECK-NOT: memref.get_global
// CHECK: gpu.launch
// CHECK: memref.get_global @table
func.func @constant(%y: memref<4xf32>) {
  %table = memref.get_global @table : memref<4xf32>
  memref.copy %table, %y : memref<4xf32> to memref<4xf32>
  return
}

// A number of the host is stored by a kernel.
// CHECK-LABEL: func.func @store
// CHECK: gpu.launch {{.*}} threads({{.*}}) in (%{{.*}} = %c1
// CHECK:   memref.store %arg0, %arg1
func.func @store(%x: f32, %y: memref<?xf32>, %i: index) {
  memref.store %x, %y[%i] : memref<?xf32>
  return
}

// -----

// Iterations are threads; what each allocates is its own.
// CHECK-LABEL: func.func @forall
// CHECK: gpu.launch
// CHECK:   %[[OWN:.*]] = memref.alloca() : memref<1x1xf32>
// CHECK:   scf.for
// CHECK:     %[[V:.*]] = memref.load %arg0
// CHECK:     memref.store %[[V]], %[[OWN]]
// CHECK-NOT: memref.dealloc
// CHECK-NOT: memref.copy
// CHECK: return
func.func @forall(%x: memref<?x6xf32>, %y: memref<?x6xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  scf.forall (%i, %j) in (%n, 6) {
    %v = memref.load %x[%i, %j] : memref<?x6xf32>
    %own = memref.alloc() : memref<1x1xf32>
    memref.store %v, %own[%c0, %c0] : memref<1x1xf32>
    %at = memref.subview %y[%i, %j] [1, 1] [1, 1] : memref<?x6xf32> to memref<1x1xf32, strided<[6, 1], offset: ?>>
    memref.copy %own, %at : memref<1x1xf32> to memref<1x1xf32, strided<[6, 1], offset: ?>>
    memref.dealloc %own : memref<1x1xf32>
  }
  return
}

// CHECK-LABEL: func.func @parallel
// CHECK: gpu.launch
// CHECK:   %[[AT:.*]] = arith.muli %{{.*}}, %c3
// CHECK:   %[[I:.*]] = arith.addi %{{.*}}, %[[AT]]
// CHECK:   memref.store %{{.*}}, %arg0[%[[I]]]
func.func @parallel(%x: memref<?xf32>, %n: index, %begin: index, %v: f32) {
  %c3 = arith.constant 3 : index
  scf.parallel (%i) = (%begin) to (%n) step (%c3) {
    memref.store %v, %x[%i] : memref<?xf32>
    scf.reduce
  }
  return
}

// -----

// CHECK-LABEL: func.func @order
// CHECK: gpu.launch {{.*}} threads({{.*}}) in (%{{.*}} = %c1
// CHECK:   scf.for
func.func @order(%x: memref<?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  // expected-remark @below {{one thread runs this loop, whose iterations may depend on each other}}
  scf.for %i = %c1 to %n step %c1 {
    %before = arith.subi %i, %c1 : index
    %a = memref.load %x[%before] : memref<?xf32>
    %b = memref.load %x[%i] : memref<?xf32>
    %c = arith.addf %a, %b : f32
    memref.store %c, %x[%i] : memref<?xf32>
  }
  return
}

// -----

// A loop of kernels is the host's, and so is the memory of who owns what.
// CHECK-LABEL: func.func @host
// CHECK: %[[OWNERS:.*]] = memref.alloca() : memref<2xi1>
// CHECK: memref.store %{{.*}}, %[[OWNERS]]
// CHECK: scf.for
// CHECK:   gpu.launch
// CHECK: call @helper
func.func @host(%x: memref<?xf32>, %n: index) -> i1 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %true = arith.constant true
  %owners = memref.alloc() : memref<2xi1>
  memref.store %true, %owners[%c0] : memref<2xi1>
  scf.for %i = %c0 to %n step %c1 {
    linalg.exp ins(%x : memref<?xf32>) outs(%x : memref<?xf32>)
  }
  %any = memref.cast %owners : memref<2xi1> to memref<?xi1>
  call @helper(%any) : (memref<?xi1>) -> ()
  %is_owner = memref.load %owners[%c1] : memref<2xi1>
  memref.dealloc %owners : memref<2xi1>
  return %is_owner : i1
}

// CHECK-LABEL: func.func private @helper
// CHECK-NOT: gpu.launch
func.func private @helper(%x: memref<?xi1>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %c1 step %c1 {
    %a = memref.load %x[%c0] : memref<?xi1>
    memref.store %a, %x[%c1] : memref<?xi1>
  }
  return
}

// -----

// Tensor cores: a CTA of four warps for 64 rows and as many columns, blocks of 64
// steps through a ring. Rows that are not there are zeros, and not written.
// CHECK-LABEL: func.func @product
// CHECK: %[[M:.*]] = memref.dim %arg0, %c0
// CHECK-NOT: linalg.fill
// CHECK: gpu.launch {{.*}} threads({{.*}}) in (%{{.*}} = %c128{{.*}} function(@product_matmul)
// CHECK:   %[[A:.*]] = memref.expand_shape %arg0 {{\[}}[0], [1, 2]] {{.*}} : memref<?x128xbf16> into memref<?x2x64xbf16>
// CHECK:   %[[B:.*]] = memref.expand_shape %arg1 {{.*}} into memref<128x3x64xbf16>
// CHECK:   %[[RING:.*]] = kernel.ring stages(3) : <memref<1x64x64xbf16, #gpu.address_space<workgroup>>, memref<1x64x64xbf16, #gpu.address_space<workgroup>>>
// CHECK:   kernel.copy %[[A]] rows(%c0{{.*}}, %{{.*}}, %[[FIRST:.*]], %c1{{.*}}) valid(%{{.*}})
// CHECK:   kernel.copy %[[B]]
// CHECK:   linalg.fill
// CHECK:   scf.for
// CHECK:     kernel.ring.wait
// CHECK:     linalg.contract {{.*}} : tensor<64x64xbf16>, tensor<64x64xbf16>) outs({{.*}} : tensor<64x64xf32>)
// CHECK:   kernel.store %{{.*}} to %{{.*}} rows({{.*}}) valid({{.*}}) : tensor<64x64xf32> to memref<?x3x64xf32>
func.func @product(%a: memref<?x128xbf16>, %b: memref<128x192xbf16>, %m: index) -> memref<?x192xf32> {
  %zero = arith.constant 0.0 : f32
  %c = memref.alloc(%m) : memref<?x192xf32>
  linalg.fill ins(%zero : f32) outs(%c : memref<?x192xf32>)
  linalg.matmul ins(%a, %b : memref<?x128xbf16>, memref<128x192xbf16>) outs(%c : memref<?x192xf32>)
  return %c : memref<?x192xf32>
}

// Both factors along their rows, as gradients of weights have them: the number of
// rows may be anything. f32 in three planes each, added to what is there; tiles of
// a batch.
// CHECK-LABEL: func.func @gradient
// CHECK: gpu.launch {{.*}} threads({{.*}}) in (%{{.*}} = %c64
// CHECK:   memref.subview %arg0
// CHECK:   kernel.ring stages(2) : <memref<1x64x64xbf16
// CHECK:   kernel.load {{.*}} to tensor<32x48xf32>
// CHECK:   linalg.contract {{.*}} : tensor<64x32xf32>, tensor<64x48xf32>) outs({{.*}} : tensor<32x48xf32>)
func.func @gradient(%a: memref<4x?x96xf32>, %b: memref<4x?x48xf32>, %c: memref<4x96x48xf32>) {
  linalg.contract indexing_maps = [affine_map<(h, m, n, k) -> (h, k, m)>, affine_map<(h, m, n, k) -> (h, k, n)>,
                                   affine_map<(h, m, n, k) -> (h, m, n)>]
      ins(%a, %b : memref<4x?x96xf32>, memref<4x?x48xf32>) outs(%c : memref<4x96x48xf32>)
  return
}

// No tiles: 20 columns, and f64.
// CHECK-LABEL: func.func @no_tiles
// CHECK-NOT: kernel.
func.func @no_tiles(%a: memref<?x16xf32>, %b: memref<16x20xf32>, %c: memref<?x20xf32>, %d: memref<16x16xf64>) {
  linalg.matmul ins(%a, %b : memref<?x16xf32>, memref<16x20xf32>) outs(%c : memref<?x20xf32>)
  linalg.matmul ins(%d, %d : memref<16x16xf64>, memref<16x16xf64>) outs(%d : memref<16x16xf64>)
  return
}

// -----

// Sums into rows that are not known: columns are threads, and each has all rows in
// their order.
// CHECK-LABEL: func.func @scatter
// CHECK: gpu.launch {{.*}} threads({{.*}}) in (%{{.*}} = %c256
// CHECK:   scf.for %[[J:.*]] = %{{.*}} to %c64
// CHECK:     scf.for %[[I:.*]] = %c0{{.*}} to %arg2
// CHECK:       memref.load %arg1[%[[I]], %[[J]]]
// CHECK:       memref.store %{{.*}}, %{{.*}}[%{{.*}}, %[[J]]]
// CHECK-NOT: scf.for
func.func @scatter(%ids: memref<?xi32>, %x: memref<?x64xf32>, %n: index) -> memref<100x64xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant 0.0 : f32
  %sums = memref.alloc() : memref<100x64xf32>
  linalg.fill ins(%zero : f32) outs(%sums : memref<100x64xf32>)
  scf.for %i = %c0 to %n step %c1 {
    %id = memref.load %ids[%i] : memref<?xi32>
    %row = arith.index_cast %id : i32 to index
    scf.for %j = %c0 to %c64 step %c1 {
      %a = memref.load %x[%i, %j] : memref<?x64xf32>
      %b = memref.load %sums[%row, %j] : memref<100x64xf32>
      %c = arith.addf %a, %b : f32
      memref.store %c, %sums[%row, %j] : memref<100x64xf32>
    }
  }
  return %sums : memref<100x64xf32>
}

// Not where a view may be the same memory, or an index is another one.
// CHECK-LABEL: func.func @dependent
// CHECK-COUNT-2: gpu.launch {{.*}} threads({{.*}}) in (%{{.*}} = %c1
func.func @dependent(%n: index) -> (memref<64xf32>, memref<64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %x = memref.alloc() : memref<64xf32>
  %y = memref.alloc() : memref<64xf32>
  %part = memref.subview %x[1] [63] [1] : memref<64xf32> to memref<63xf32, strided<[1], offset: 1>>
  // expected-remark @below {{one thread runs this loop}}
  scf.for %i = %c0 to %n step %c1 {
    %a = memref.load %part[%i] : memref<63xf32, strided<[1], offset: 1>>
    memref.store %a, %x[%i] : memref<64xf32>
  }
  // expected-remark @below {{one thread runs this loop}}
  scf.for %i = %c0 to %n step %c1 {
    %a = memref.load %y[%c0] : memref<64xf32>
    memref.store %a, %y[%i] : memref<64xf32>
  }
  return %x, %y : memref<64xf32>, memref<64xf32>
}

// -----

#ij = affine_map<(i, j) -> (i, j)>

// A thread runs all of its iteration: with the fill, which no kernel takes over.
// CHECK-LABEL: func.func @sum_of_thread
// CHECK: gpu.launch
// CHECK:   memref.store %cst
// CHECK:   scf.for
// CHECK:     memref.store
// CHECK-NOT: gpu.launch
// CHECK: return
func.func @sum_of_thread(%x: memref<?x4xf32>, %y: memref<?xf32>, %n: index) {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  scf.forall (%i) in (%n) {
    %row = memref.subview %x[%i, 0] [1, 4] [1, 1] : memref<?x4xf32> to memref<4xf32, strided<[1], offset: ?>>
    %sum = memref.alloc() : memref<f32>
    linalg.fill ins(%zero : f32) outs(%sum : memref<f32>)
    linalg.reduce { arith.addf } ins(%row : memref<4xf32, strided<[1], offset: ?>>) outs(%sum : memref<f32>) dimensions = [0]
    %v = memref.load %sum[] : memref<f32>
    memref.store %v, %y[%i] : memref<?xf32>
    memref.dealloc %sum : memref<f32>
  }
  return
}

// What is in a kernel already is left there.
// CHECK-LABEL: func.func @launched
// CHECK: gpu.launch
// CHECK: memref.alloc(%arg0)
// CHECK: memref.dealloc
// CHECK: linalg.fill
// CHECK: linalg.add
func.func @launched(%n: index) {
  %zero = arith.constant 0.0 : f32
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %n, %gy = %n, %gz = %n)
             threads(%tx, %ty, %tz) in (%lx = %n, %ly = %n, %lz = %n) {
    %own = memref.alloc(%n) : memref<?xf32>
    memref.dealloc %own : memref<?xf32>
    %x = memref.alloca() : memref<4xf32>
    linalg.fill ins(%zero : f32) outs(%x : memref<4xf32>)
    linalg.add ins(%x, %x : memref<4xf32>, memref<4xf32>) outs(%x : memref<4xf32>)
    gpu.terminator
  }
  return
}
