// RUN: varlen-opt %s --pass-pipeline='builtin.module(gpu.module(gpu.func(kernel-distribute,canonicalize,cse)))' | FileCheck %s

#mn = affine_map<(m, n) -> (m, n)>
#m0 = affine_map<(m, n) -> (m, 0)>
#qd = affine_map<(m, n, d) -> (m, d)>
#kd = affine_map<(m, n, d) -> (n, d)>
#vd = affine_map<(m, n, d) -> (d, n)>
!q = memref<1x128x64xbf16, #gpu.address_space<workgroup>>
!k = memref<1x64x64xbf16, #gpu.address_space<workgroup>>

// CHECK-LABEL: gpu.module @kernels
gpu.module @kernels {
  // Four warps share 128 rows: two m-tiles each. Tiles stay in memory.
  // CHECK-LABEL: gpu.func @step
  // CHECK-SAME: workgroup(%[[Q:.*]] : {{.*}}, %[[K:.*]] : {{.*}}, %[[V:.*]] : {{.*}})
  // CHECK-DAG: %[[ZERO:.*]] = arith.constant dense<0.0{{.*}}> : vector<2x8x2x2xf32>
  // CHECK-DAG: %[[NINF:.*]] = arith.constant dense<0xFF800000> : vector<2x2xf32>
  // CHECK-DAG: %[[NZERO:.*]] = arith.constant dense<-0.0{{.*}}> : vector<2x2xf32>
  // CHECK: %[[R:.*]]:3 = scf.for {{.*}} iter_args(%[[ACC:.*]] = %{{.*}}, %[[M:.*]] = %{{.*}}, %[[L:.*]] = %{{.*}}) -> (vector<2x6x2x2xf32>, vector<2x1x2x1xf32>, vector<2x1x2x1xf32>)
  // CHECK: %[[S:.*]] = kernel.contract %[[Q]], %[[K]], %[[ZERO]] k(48) : {{.*}} into vector<2x8x2x2xf32>
  // The columns of a thread, then the lanes of a row; no -inf to start from.
  // CHECK: %[[T0:.*]] = vector.multi_reduction <maxnumf>, %[[S]], %[[NINF]] [1, 3] : vector<2x8x2x2xf32> to vector<2x2xf32>
  // CHECK: %[[T1:.*]] = vector.shape_cast %[[T0]] : vector<2x2xf32> to vector<4xf32>
  // CHECK: %[[T2:.*]] = gpu.subgroup_reduce maxnumf %[[T1]] cluster(size = 4)
  // CHECK: %[[TOP:.*]] = vector.shape_cast %[[T2]] : vector<4xf32> to vector<2x1x2x1xf32>
  // What a row needs stays small: nothing is broadcast before it is computed.
  // CHECK: %[[X:.*]] = arith.mulf %[[TOP]], %{{.*}} : vector<2x1x2x1xf32>
  // CHECK: %[[M1:.*]] = arith.maxnumf %[[M]], %[[X]] : vector<2x1x2x1xf32>
  // CHECK: %[[NEG:.*]] = arith.negf %[[M1]] : vector<2x1x2x1xf32>
  // CHECK: %[[B:.*]] = vector.broadcast %[[NEG]] : vector<2x1x2x1xf32> to vector<2x8x2x2xf32>
  // CHECK: %[[E:.*]] = math.fma %[[S]], %{{.*}}, %[[B]] : vector<2x8x2x2xf32>
  // CHECK: %[[P:.*]] = math.exp2 %[[E]] : vector<2x8x2x2xf32>
  // CHECK: %[[L0:.*]] = vector.multi_reduction <add>, %[[P]], %[[NZERO]] [1, 3]
  // CHECK: gpu.subgroup_reduce add
  // CHECK: %[[LS:.*]] = vector.shape_cast
  // CHECK: %[[L1:.*]] = arith.addf %[[L]], %[[LS]] : vector<2x1x2x1xf32>
  // CHECK: %[[PB:.*]] = arith.truncf %[[P]] : vector<2x8x2x2xf32> to vector<2x8x2x2xbf16>
  // CHECK: %[[A1:.*]] = kernel.contract %[[PB]], %[[V]], %[[ACC]] k(64) {b_t} : vector<2x8x2x2xbf16>, {{.*}} into vector<2x6x2x2xf32>
  // CHECK: scf.yield %[[A1]], %[[M1]], %[[L1]]
  // CHECK: kernel.store %[[R]]#0 to %{{.*}} : vector<2x6x2x2xf32> to memref<?x4x48xf32>
  // CHECK: kernel.store %[[R]]#2 to %{{.*}} : vector<2x1x2x1xf32> to memref<4x?xf32>
  gpu.func @step(%out: memref<?x4x48xf32>, %lse: memref<4x?xf32>, %n: index, %c: f32)
      workgroup(%sq: !q, %sk: !k, %sv: !k) kernel
      attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %zero = arith.constant 0.0 : f32
    %lowest = arith.constant 0xFF800000 : f32
    %q = kernel.tile %sq : !q to tensor<128x48xbf16>
    %e = tensor.empty() : tensor<128x1xf32>
    %ea = tensor.empty() : tensor<128x48xf32>
    %l0 = linalg.fill ins(%zero : f32) outs(%e : tensor<128x1xf32>) -> tensor<128x1xf32>
    %m0 = arith.constant dense<-1.0e+38> : tensor<128x1xf32>
    %a0 = linalg.fill ins(%zero : f32) outs(%ea : tensor<128x48xf32>) -> tensor<128x48xf32>
    %r:3 = scf.for %j = %c0 to %n step %c1 iter_args(%acc = %a0, %m = %m0, %l = %l0)
        -> (tensor<128x48xf32>, tensor<128x1xf32>, tensor<128x1xf32>) {
      %k = kernel.tile %sk : !k to tensor<64x48xbf16>
      %v = kernel.tile %sv : !k to tensor<64x48xbf16>
      %es = tensor.empty() : tensor<128x64xf32>
      %z = linalg.fill ins(%zero : f32) outs(%es : tensor<128x64xf32>) -> tensor<128x64xf32>
      %s = linalg.contract indexing_maps = [#qd, #kd, affine_map<(m, n, d) -> (m, n)>]
          ins(%q, %k : tensor<128x48xbf16>, tensor<64x48xbf16>) outs(%z : tensor<128x64xf32>) -> tensor<128x64xf32>
      %i = linalg.fill ins(%lowest : f32) outs(%e : tensor<128x1xf32>) -> tensor<128x1xf32>
      %top = linalg.generic {indexing_maps = [#mn, #m0], iterator_types = ["parallel", "reduction"]}
          ins(%s : tensor<128x64xf32>) outs(%i : tensor<128x1xf32>) {
      ^bb0(%x: f32, %y: f32):
        %b = arith.maxnumf %x, %y : f32
        linalg.yield %b : f32
      } -> tensor<128x1xf32>
      %neg:2 = linalg.generic {indexing_maps = [#mn, #mn, #mn, #mn], iterator_types = ["parallel", "parallel"]}
          ins(%m, %top : tensor<128x1xf32>, tensor<128x1xf32>)
          outs(%e, %e : tensor<128x1xf32>, tensor<128x1xf32>) {
      ^bb0(%x: f32, %y: f32, %o0: f32, %o1: f32):
        %d = arith.mulf %y, %c : f32
        %b = arith.maxnumf %x, %d : f32
        %f = arith.negf %b : f32
        linalg.yield %f, %b : f32, f32
      } -> (tensor<128x1xf32>, tensor<128x1xf32>)
      %p = linalg.generic {indexing_maps = [#mn, #m0, #mn], iterator_types = ["parallel", "parallel"]}
          ins(%s, %neg#0 : tensor<128x64xf32>, tensor<128x1xf32>) outs(%es : tensor<128x64xf32>) {
      ^bb0(%x: f32, %y: f32, %o: f32):
        %b = math.fma %x, %c, %y : f32
        %d = math.exp2 %b : f32
        linalg.yield %d : f32
      } -> tensor<128x64xf32>
      %l1 = linalg.generic {indexing_maps = [#mn, #m0], iterator_types = ["parallel", "reduction"]}
          ins(%p : tensor<128x64xf32>) outs(%l : tensor<128x1xf32>) {
      ^bb0(%x: f32, %y: f32):
        %b = arith.addf %y, %x : f32
        linalg.yield %b : f32
      } -> tensor<128x1xf32>
      %eb = tensor.empty() : tensor<128x64xbf16>
      %pb = linalg.generic {indexing_maps = [#mn, #mn], iterator_types = ["parallel", "parallel"]}
          ins(%p : tensor<128x64xf32>) outs(%eb : tensor<128x64xbf16>) {
      ^bb0(%x: f32, %o: bf16):
        %b = arith.truncf %x : f32 to bf16
        linalg.yield %b : bf16
      } -> tensor<128x64xbf16>
      %a1 = linalg.contract indexing_maps = [#qd, #vd, affine_map<(m, n, d) -> (m, n)>]
          ins(%pb, %v : tensor<128x64xbf16>, tensor<64x48xbf16>) outs(%acc : tensor<128x48xf32>) -> tensor<128x48xf32>
      scf.yield %a1, %neg#1, %l1 : tensor<128x48xf32>, tensor<128x1xf32>, tensor<128x1xf32>
    }
    kernel.store %r#0 to %out rows(%c0, %c0, %c0, %c1) valid(%n) : tensor<128x48xf32> to memref<?x4x48xf32>
    kernel.store %r#2 to %lse rows(%c0, %c0, %c0, %c1) valid(%n) : tensor<128x1xf32> to memref<4x?xf32>
    gpu.return
  }

  // Positions within the tile, from the thread's number; a value per row is
  // computed per row, a comparison with columns is not.
  // CHECK-LABEL: gpu.func @positions
  // CHECK-DAG: %[[ROWS:.*]] = arith.constant dense<{{\[\[\[}}[0], [8]{{\]\]\]}}> : vector<1x1x2x1xi32>
  // CHECK-DAG: %[[COLS:.*]] = arith.constant dense<{{\[\[\[}}[0, 1]], {{\[\[}}8, 9{{\]\]\]\]}}> : vector<1x2x1x2xi32>
  // CHECK: %[[TID:.*]] = gpu.thread_id x
  // CHECK: %[[T:.*]] = arith.index_cast %[[TID]] : index to i32
  // CHECK: %[[WARP:.*]] = arith.shrui %[[T]], %{{.*}} : i32
  // CHECK: %[[W16:.*]] = arith.muli %[[WARP]], %{{.*}} : i32
  // CHECK: %[[LANE:.*]] = arith.andi %[[T]], %{{.*}} : i32
  // CHECK: %[[G:.*]] = arith.shrui %[[LANE]], %{{.*}} : i32
  // CHECK: %[[ROW:.*]] = arith.addi %[[W16]], %[[G]] : i32
  // CHECK: %[[R0:.*]] = vector.broadcast %[[ROW]] : i32 to vector<1x1x2x1xi32>
  // CHECK: %[[R:.*]] = arith.addi %[[R0]], %[[ROWS]]
  // CHECK: %[[RI:.*]] = arith.index_cast %[[R]] : vector<1x1x2x1xi32> to vector<1x1x2x1xindex>
  // CHECK: %[[D:.*]] = arith.divui %[[RI]], %{{.*}} : vector<1x1x2x1xindex>
  // CHECK: %[[LIMIT:.*]] = arith.index_cast %[[D]] : vector<1x1x2x1xindex> to vector<1x1x2x1xi32>
  // CHECK: %[[C:.*]] = arith.addi %{{.*}}, %[[COLS]] : vector<1x2x1x2xi32>
  // CHECK: %[[CF:.*]] = vector.broadcast %[[C]] : vector<1x2x1x2xi32> to vector<1x2x2x2xi32>
  // CHECK: %[[LF:.*]] = vector.broadcast %[[LIMIT]] : vector<1x1x2x1xi32> to vector<1x2x2x2xi32>
  // CHECK: arith.cmpi slt, %[[CF]], %[[LF]] : vector<1x2x2x2xi32>
  gpu.func @positions(%out: memref<?x4x16xf32>, %n: index) kernel
      attributes {known_block_size = array<i32: 64, 1, 1>} {
    %one = arith.constant 1.0 : f32
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<32x1xi32>
    %limit = linalg.generic {indexing_maps = [#mn], iterator_types = ["parallel", "parallel"]}
        outs(%e : tensor<32x1xi32>) {
    ^bb0(%o: i32):
      %i = linalg.index 0 : index
      %d = arith.divui %i, %n : index
      %x = arith.index_cast %d : index to i32
      linalg.yield %x : i32
    } -> tensor<32x1xi32>
    %es = tensor.empty() : tensor<32x16xf32>
    %s = linalg.generic {indexing_maps = [#m0, #mn], iterator_types = ["parallel", "parallel"]}
        ins(%limit : tensor<32x1xi32>) outs(%es : tensor<32x16xf32>) {
    ^bb0(%l: i32, %o: f32):
      %i = linalg.index 1 : index
      %j = arith.index_cast %i : index to i32
      %b = arith.cmpi slt, %j, %l : i32
      %x = arith.select %b, %one, %zero : f32
      linalg.yield %x : f32
    } -> tensor<32x16xf32>
    kernel.store %s to %out rows(%n, %n, %n, %n) valid(%n) : tensor<32x16xf32> to memref<?x4x16xf32>
    gpu.return
  }

  // A transposed A in shared memory; values of rows; a choice of tiles.
  // CHECK-LABEL: gpu.func @transposed
  // CHECK: %[[S:.*]] = kernel.load {{.*}} : memref<4xf32> to vector<1x1x2x1xf32>
  // CHECK: %[[C:.*]] = kernel.contract %{{.*}}, %{{.*}}, %{{.*}} k(64) {a_t, b_t} :
  // CHECK: %[[B:.*]] = vector.broadcast %{{.*}} : i1 to vector<1x8x2x2xi1>
  // CHECK: %[[D:.*]] = arith.select %[[B]], %[[C]], %{{.*}} : vector<1x8x2x2xi1>, vector<1x8x2x2xf32>
  // CHECK: kernel.store %[[D]]
  // CHECK: kernel.store %[[S]]
  gpu.func @transposed(%out: memref<?x4x64xf32>, %lse: memref<4x?xf32>, %sink: memref<4xf32>, %n: index,
                       %x: f32, %which: i1)
      workgroup(%sk: !k) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %k = kernel.tile %sk : !k to tensor<64x64xbf16>
    %z = arith.constant dense<0.0> : tensor<64x64xf32>
    %l = kernel.load %sink rows(%n, %n, %n, %n) valid(%n) otherwise %x : memref<4xf32> to tensor<64x1xf32>
    %s = linalg.contract indexing_maps = [affine_map<(m, n, d) -> (d, m)>, #vd, affine_map<(m, n, d) -> (m, n)>]
        ins(%k, %k : tensor<64x64xbf16>, tensor<64x64xbf16>) outs(%z : tensor<64x64xf32>) -> tensor<64x64xf32>
    %r = arith.select %which, %s, %z : tensor<64x64xf32>
    kernel.store %r to %out rows(%n, %n, %n, %n) valid(%n) : tensor<64x64xf32> to memref<?x4x64xf32>
    kernel.store %l to %lse rows(%n, %n, %n, %n) valid(%n) : tensor<64x1xf32> to memref<4x?xf32>
    gpu.return
  }

  // A transposed A in registers, whose rows are those of other warps: by way of
  // shared memory. A sum of several CTAs.
  // CHECK-LABEL: gpu.func @staged
  // CHECK: %[[A:.*]] = kernel.stage %{{.*}} : vector<2x4x2x2xbf16> to memref<1x64x64xbf16, #gpu.address_space<workgroup>>
  // CHECK: %[[C:.*]] = kernel.contract %[[A]], %{{.*}}, %{{.*}} k(64) {a_t, b_t} :
  // CHECK: %[[T:.*]] = kernel.add_in_order %[[C]] to %{{.*}}[%{{.*}}] of %{{.*}} turn(%{{.*}}, %{{.*}}, %{{.*}}) : vector<1x8x2x2xf32>, memref<?xf32>, memref<?xi32>
  // CHECK: kernel.store %[[T]]
  gpu.func @staged(%out: memref<?x4x64xf32>, %sums: memref<?xf32>, %counters: memref<?xi32>, %n: index, %turn: i32, %is: i1, %one: f32)
      workgroup(%sk: !k) kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
    %k = kernel.tile %sk : !k to tensor<64x64xbf16>
    %w = tensor.empty() : tensor<64x32xf32>
    %x = linalg.fill ins(%one : f32) outs(%w : tensor<64x32xf32>) -> tensor<64x32xf32>
    %e = tensor.empty() : tensor<64x32xbf16>
    %f = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m, n)>],
                         iterator_types = ["parallel", "parallel"]}
        ins(%x : tensor<64x32xf32>) outs(%e : tensor<64x32xbf16>) {
    ^bb0(%a: f32, %o: bf16):
      %t = arith.truncf %a : f32 to bf16
      linalg.yield %t : bf16
    } -> tensor<64x32xbf16>
    %z = arith.constant dense<0.0> : tensor<32x64xf32>
    %s = linalg.contract indexing_maps = [affine_map<(m, n, d) -> (d, m)>, #vd, affine_map<(m, n, d) -> (m, n)>]
        ins(%f, %k : tensor<64x32xbf16>, tensor<64x64xbf16>) outs(%z : tensor<32x64xf32>) -> tensor<32x64xf32>
    %total = kernel.add_in_order %s to %sums[%n] of %counters turn(%turn, %is, %is)
        : tensor<32x64xf32>, memref<?xf32>, memref<?xi32>
    kernel.store %total to %out rows(%n, %n, %n, %n) valid(%n) : tensor<32x64xf32> to memref<?x4x64xf32>
    gpu.return
  }

  // 32 rows are not 16 for each of four warps, but 64 columns are: the transpose of a
  // product, of elements that are all alike, and of a store.
  // CHECK-LABEL: gpu.func @shared_by_columns
  // CHECK-SAME: workgroup(%[[K:.*]] : memref<1x64x64xbf16, #gpu.address_space<workgroup>>)
  // CHECK: %[[A:.*]] = kernel.stage %{{.*}} : vector<1x4x2x2xbf16> to memref<1x64x64xbf16, #gpu.address_space<workgroup>>
  // CHECK: %[[C:.*]] = kernel.contract %[[K]], %[[A]], %{{.*}} k(64) {a_t, b_t} : {{.*}} into vector<1x4x2x2xf32>
  // CHECK: %[[X:.*]] = arith.mulf %[[C]], %{{.*}} : vector<1x4x2x2xf32>
  // CHECK: kernel.store %[[X]] to {{.*}} {transposed} : vector<1x4x2x2xf32> to memref<?x4x64xf32>
  gpu.func @shared_by_columns(%out: memref<?x4x64xf32>, %n: index, %one: f32)
      workgroup(%sk: !k) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %k = kernel.tile %sk : !k to tensor<64x64xbf16>
    %w = tensor.empty() : tensor<64x32xf32>
    %x = linalg.fill ins(%one : f32) outs(%w : tensor<64x32xf32>) -> tensor<64x32xf32>
    %e = tensor.empty() : tensor<64x32xbf16>
    %f = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m, n)>],
                         iterator_types = ["parallel", "parallel"]}
        ins(%x : tensor<64x32xf32>) outs(%e : tensor<64x32xbf16>) {
    ^bb0(%a: f32, %o: bf16):
      %t = arith.truncf %a : f32 to bf16
      linalg.yield %t : bf16
    } -> tensor<64x32xbf16>
    %z = arith.constant dense<0.0> : tensor<32x64xf32>
    %s = linalg.contract indexing_maps = [affine_map<(m, n, d) -> (d, m)>, #vd, affine_map<(m, n, d) -> (m, n)>]
        ins(%f, %k : tensor<64x32xbf16>, tensor<64x64xbf16>) outs(%z : tensor<32x64xf32>) -> tensor<32x64xf32>
    %r = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m, n)>],
                         iterator_types = ["parallel", "parallel"]}
        ins(%s : tensor<32x64xf32>) outs(%z : tensor<32x64xf32>) {
    ^bb0(%a: f32, %o: f32):
      %t = arith.mulf %a, %one : f32
      linalg.yield %t : f32
    } -> tensor<32x64xf32>
    kernel.store %r to %out rows(%n, %n, %n, %n) valid(%n) : tensor<32x64xf32> to memref<?x4x64xf32>
    gpu.return
  }

  // One value a column: the same for all rows and warps.
  // CHECK-LABEL: gpu.func @columns
  // CHECK: %[[L:.*]]:2 = kernel.load {{.*}} : memref<4x?x2xf32> to vector<1x2x1x2xf32>, vector<1x2x1x2xf32>
  // CHECK: %[[D:.*]] = arith.subf %[[L]]#0, %[[L]]#1 : vector<1x2x1x2xf32>
  // CHECK: vector.broadcast %[[D]] : vector<1x2x1x2xf32> to vector<1x2x2x2xf32>
  gpu.func @columns(%out: memref<?x4x16xf32>, %both: memref<4x?x2xf32>, %n: index, %x: f32)
      kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %l, %d = kernel.load %both rows(%n, %n, %n, %n) valid(%n) otherwise %x
        : memref<4x?x2xf32> to tensor<1x16xf32>, tensor<1x16xf32>
    %e = tensor.empty() : tensor<64x16xf32>
    %r = linalg.generic {indexing_maps = [affine_map<(m, n) -> (0, n)>, affine_map<(m, n) -> (0, n)>, affine_map<(m, n) -> (m, n)>],
                         iterator_types = ["parallel", "parallel"]}
        ins(%l, %d : tensor<1x16xf32>, tensor<1x16xf32>) outs(%e : tensor<64x16xf32>) {
    ^bb0(%a: f32, %b: f32, %o: f32):
      %s = arith.subf %a, %b : f32
      linalg.yield %s : f32
    } -> tensor<64x16xf32>
    kernel.store %r to %out rows(%n, %n, %n, %n) valid(%n) : tensor<64x16xf32> to memref<?x4x16xf32>
    gpu.return
  }

  // A function of many operations: one part after the other, of whose row the number
  // is taken.
  // CHECK-LABEL: gpu.func @parts
  // CHECK: %[[ROW:.*]] = kernel.load {{.*}} to vector<1x1x2x1xf32>
  // CHECK: %[[X:.*]] = kernel.load {{.*}} to vector<1x2x2x2xf32>
  // CHECK: %[[X0:.*]] = vector.extract %[[X]][0, 0] : vector<2x2xf32> from vector<1x2x2x2xf32>
  // CHECK: %[[ROW0:.*]] = vector.extract %[[ROW]][0, 0] : vector<2x1xf32> from vector<1x1x2x1xf32>
  // CHECK: %[[WIDE:.*]] = vector.broadcast %[[ROW0]] : vector<2x1xf32> to vector<2x2xf32>
  // CHECK: %[[S0:.*]] = arith.addf %[[X0]], %[[WIDE]] : vector<2x2xf32>
  // CHECK: %[[T0:.*]] = math.tanh %[[S0]] : vector<2x2xf32>
  // CHECK: %[[X1:.*]] = vector.extract %[[X]][0, 1] : vector<2x2xf32> from vector<1x2x2x2xf32>
  // CHECK: %[[S1:.*]] = arith.addf %[[X1]], %[[WIDE]] : vector<2x2xf32>
  // CHECK: %[[T1:.*]] = math.tanh %[[S1]] : vector<2x2xf32>
  // CHECK: vector.from_elements {{.*}} : vector<1x2x2x2xf32>
  gpu.func @parts(%in: memref<?x4x16xf32>, %lse: memref<4x?xf32>, %n: index, %x: f32)
      kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %row = kernel.load %lse rows(%n, %n, %n, %n) valid(%n) otherwise %x
        : memref<4x?xf32> to tensor<64x1xf32>
    %s = kernel.load %in rows(%n, %n, %n, %n) valid(%n) otherwise %x
        : memref<?x4x16xf32> to tensor<64x16xf32>
    %e = tensor.empty() : tensor<64x16xf32>
    %r = linalg.generic {indexing_maps = [#mn, #m0, #mn], iterator_types = ["parallel", "parallel"]}
        ins(%s, %row : tensor<64x16xf32>, tensor<64x1xf32>) outs(%e : tensor<64x16xf32>) {
    ^bb0(%a: f32, %b: f32, %o: f32):
      %sum = arith.addf %a, %b : f32
      %t = math.tanh %sum : f32
      linalg.yield %t : f32
    } -> tensor<64x16xf32>
    kernel.store %r to %in rows(%n, %n, %n, %n) valid(%n) : tensor<64x16xf32> to memref<?x4x16xf32>
    gpu.return
  }

  // Lane 0 of four adds to the first row that they share, lane 1 to the second: what the
  // others have comes lane by lane, two columns of each, before the two go on alone.
  // CHECK-LABEL: gpu.func @scatter_add
  // CHECK-SAME: (%[[TABLE:[a-z0-9]*]]: memref
  // CHECK-DAG: %[[C0:.*]] = arith.constant 0 : i32
  // CHECK-DAG: %[[C1:.*]] = arith.constant 1 : i32
  // CHECK-DAG: %[[C2:.*]] = arith.constant 2 : i32
  // CHECK-DAG: %[[C3:.*]] = arith.constant 3 : i32
  // CHECK-DAG: %[[C4:.*]] = arith.constant 4 : i32
  // CHECK-DAG: %[[C31:.*]] = arith.constant 31 : i32
  // CHECK-DAG: %[[C32:.*]] = arith.constant 32 : i32
  // CHECK-DAG: %[[NONE:.*]] = arith.constant -576460752303423488 : i64
  // CHECK-DAG: %[[UP:.*]] = arith.constant -4 : i32
  // CHECK: %[[V:.*]] = kernel.load
  // CHECK: %[[LANE:.*]] = arith.andi %{{.*}}, %[[C31]] : i32
  // CHECK: %[[MEMBER:.*]] = arith.andi %[[LANE]], %[[C3]] : i32
  // CHECK: %[[FLAT:.*]] = memref.reinterpret_cast %[[TABLE]]
  // CHECK: %[[QUAD:.*]] = arith.andi %[[LANE]], %[[UP]] : i32
  // CHECK: %[[SECOND:.*]] = arith.cmpi eq, %[[MEMBER]], %[[C1]]
  // CHECK: %[[OWNER:.*]] = arith.cmpi ult, %[[MEMBER]], %[[C2]]
  // CHECK: %[[R0:.*]] = vector.extract %[[ROWS:.*]][0, 0, 0, 0] : i64
  // CHECK: %[[R1:.*]] = vector.extract %[[ROWS]][0, 0, 1, 0] : i64
  // CHECK: %[[ROW:.*]] = arith.select %[[SECOND]], %[[R1]], %[[R0]] : i64
  // CHECK: %[[HAS:.*]] = arith.cmpi ne, %[[ROW]], %[[NONE]]
  // CHECK: %[[ADDS:.*]] = arith.andi %[[OWNER]], %[[HAS]]
  // CHECK: scf.for %[[TURN:.*]] = %[[C0]] to %[[C4]] step %[[C1]]
  // CHECK: %[[SOURCE:.*]] = arith.addi %[[QUAD]], %[[TURN]]
  // CHECK: %[[V0:.*]] = vector.extract %[[V]][0, 0, 0, 0]
  // CHECK: %[[S0:.*]], %{{.*}} = gpu.shuffle idx %[[V0]], %[[SOURCE]], %[[C32]] : f32
  // CHECK: %[[V1:.*]] = vector.extract %[[V]][0, 0, 1, 0]
  // CHECK: %[[S1:.*]], %{{.*}} = gpu.shuffle idx %[[V1]], %[[SOURCE]], %[[C32]] : f32
  // CHECK: %[[VALUE:.*]] = arith.select %[[SECOND]], %[[S1]], %[[S0]] : f32
  // CHECK-COUNT-2: gpu.shuffle idx %{{.*}}, %[[SOURCE]], %[[C32]] : i32
  // CHECK: %[[INDEX:.*]] = arith.select %[[SECOND]], %{{.*}}, %{{.*}} : i32
  // CHECK-COUNT-2: gpu.shuffle idx %{{.*}} : f32
  // CHECK-COUNT-2: gpu.shuffle idx %{{.*}} : i32
  // CHECK-NOT: gpu.shuffle
  // CHECK: scf.if %[[ADDS]] {
  // An index is clamped.
  // CHECK: %[[FROZEN:.*]] = llvm.freeze %[[INDEX]] : i32
  // CHECK: %[[LEAST:.*]] = arith.maxsi %[[FROZEN]], %[[C0]]
  // CHECK: %[[MOST:.*]] = arith.minsi %[[LEAST]], %[[C31]]
  // CHECK: %[[WIDE:.*]] = arith.extui %[[MOST]] : i32 to i64
  // CHECK: %[[AT:.*]] = arith.addi %[[ROW]], %[[WIDE]] : i64
  // CHECK: %[[PLACE:.*]] = arith.index_cast %[[AT]]
  // CHECK: %[[OLD:.*]] = memref.load %[[FLAT]][%[[PLACE]]]
  // CHECK: %[[NEW:.*]] = arith.addf %[[OLD]], %[[VALUE]]
  // CHECK: memref.store %[[NEW]], %[[FLAT]][%[[PLACE]]]
  // The second column reads what the first has stored.
  // CHECK: memref.load %[[FLAT]]
  // CHECK: memref.store %{{.*}}, %[[FLAT]]
  // Columns 8 to 15.
  // CHECK: scf.for
  // CHECK: vector.extract %[[V]][0, 1, 0, 0]
  // CHECK-NOT: scf.for
  gpu.func @scatter_add(%table: memref<?x32xf32, strided<[1, 1], offset: ?>>, %in: memref<?x4x16xf32>,
                        %n: index, %x: f32) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %values = kernel.load %in rows(%n, %n, %n, %n) valid(%n) otherwise %x
        : memref<?x4x16xf32> to tensor<64x16xf32>
    %ei = tensor.empty() : tensor<64x16xi32>
    %index = linalg.generic {indexing_maps = [#mn], iterator_types = ["parallel", "parallel"]}
        outs(%ei : tensor<64x16xi32>) {
    ^bb0(%o: i32):
      %r = linalg.index 0 : index
      %c = linalg.index 1 : index
      %sum = arith.addi %r, %c : index
      %i = arith.index_cast %sum : index to i32
      linalg.yield %i : i32
    } -> tensor<64x16xi32>
    %er = tensor.empty() : tensor<64x1xi64>
    %rows = linalg.generic {indexing_maps = [#mn], iterator_types = ["parallel", "parallel"]}
        outs(%er : tensor<64x1xi64>) {
    ^bb0(%o: i64):
      %r = linalg.index 0 : index
      %i = arith.index_cast %r : index to i64
      linalg.yield %i : i64
    } -> tensor<64x1xi64>
    varlen.scatter_add %values at %index to %table[%rows]
        : tensor<64x16xf32>, tensor<64x16xi32>, memref<?x32xf32, strided<[1, 1], offset: ?>>, tensor<64x1xi64>
    gpu.return
  }

  // A warp multiplies if a row of one of its lanes has another factor than 1.
  // CHECK-LABEL: gpu.func @rescale
  // CHECK-DAG: %[[ONE:.*]] = arith.constant dense<1.0{{.*}}> : vector<1x1x2x1xf32>
  // CHECK-DAG: %[[ALL:.*]] = arith.constant -1 : i32
  // CHECK: %[[A:.*]] = kernel.load {{.*}} to vector<1x2x2x2xf32>
  // CHECK: %[[F:.*]] = kernel.load {{.*}} to vector<1x1x2x1xf32>
  // CHECK: %[[CHANGES:.*]] = arith.cmpf une, %[[F]], %[[ONE]]
  // CHECK: %[[ROW:.*]]:2 = vector.to_elements %[[CHANGES]]
  // CHECK: %[[LANE:.*]] = arith.ori %[[ROW]]#0, %[[ROW]]#1
  // CHECK: %[[WARP:.*]] = nvvm.vote.sync any %[[ALL]], %[[LANE]] -> i1
  // CHECK: %[[R:.*]] = scf.if %[[WARP]] -> (vector<1x2x2x2xf32>) {
  // CHECK: %[[B:.*]] = vector.broadcast %[[F]]
  // CHECK: %[[M:.*]] = arith.mulf %[[A]], %[[B]]
  // CHECK: scf.yield %[[M]]
  // CHECK: } else {
  // CHECK: scf.yield %[[A]]
  // CHECK: kernel.store %[[R]]
  gpu.func @rescale(%in: memref<?x4x16xf32>, %factors: memref<4x?xf32>, %n: index, %x: f32) kernel
      attributes {known_block_size = array<i32: 128, 1, 1>} {
    %a = kernel.load %in rows(%n, %n, %n, %n) valid(%n) otherwise %x
        : memref<?x4x16xf32> to tensor<64x16xf32>
    %f = kernel.load %factors rows(%n, %n, %n, %n) valid(%n) otherwise %x
        : memref<4x?xf32> to tensor<64x1xf32>
    %r = varlen.rescale %a by %f : tensor<64x16xf32>, tensor<64x1xf32>
    kernel.store %r to %in rows(%n, %n, %n, %n) valid(%n) : tensor<64x16xf32> to memref<?x4x16xf32>
    gpu.return
  }

  // The columns of a thread are bits of a word: 8 n + 2 (lane % 4) and the next one are
  // 2 n and 2 n + 1. More than 128 columns take a second word, which begins there.
  // CHECK-LABEL: gpu.func @hide
  // CHECK-SAME: %[[K0:[a-z0-9]*]]: i32
  // CHECK-DAG: %[[BITS:.*]] = arith.constant dense<{{\[\[\[\[}}1, 2], [1, 2]], {{\[\[}}4, 8], [4, 8]], {{.*}}, {{\[\[}}1, 2], [1, 2]]]]> : vector<1x17x2x2xi32>
  // CHECK-DAG: %[[EIGHT:.*]] = arith.constant dense<3> : vector<1x1x2x1xi32>
  // CHECK-DAG: %[[LAST:.*]] = arith.constant dense<128> : vector<1x1x2x1xi32>
  // CHECK-DAG: %[[ALL:.*]] = arith.constant dense<-1> : vector<1x1x2x1xi32>
  // CHECK: %[[COLUMN:.*]] = arith.muli %{{.*}}, %c2_i32
  // CHECK: %[[OWN:.*]] = vector.broadcast %[[COLUMN]]
  // CHECK: %[[AHEAD:.*]] = arith.subi %{{.*}}, %[[OWN]]
  // CHECK: %[[FIRST:.*]] = vector.broadcast %[[K0]]
  // CHECK: arith.subi %[[AHEAD]], %[[FIRST]]
  // CHECK: %[[IN:.*]] = arith.minsi %{{.*}}, %[[LAST]]
  // CHECK: %[[TILES:.*]] = arith.shrui %[[IN]], %[[EIGHT]]
  // CHECK: %[[S0:.*]] = arith.shli %[[ALL]], %[[TILES]]
  // CHECK: %[[S1:.*]] = arith.shli %[[S0]], %[[TILES]]
  // CHECK: %[[PAST:.*]] = arith.shli %[[S1]], %{{.*}}
  // CHECK: arith.xori %[[PAST]], %[[ALL]]
  // CHECK: vector.broadcast %{{.*}} : i32 to vector<1x1x2x1xi32>
  // CHECK: %[[WORDS:.*]] = vector.from_elements
  // CHECK: %[[BIT:.*]] = arith.andi %[[WORDS]], %[[BITS]]
  // CHECK: %[[SEEN:.*]] = arith.cmpi ne, %[[BIT]], %{{.*}}
  // CHECK: arith.select %[[SEEN]], %{{.*}}, %{{.*}} : vector<1x17x2x2xi1>, vector<1x17x2x2xf32>
  gpu.func @hide(%k0: i32, %in: memref<?x4x136xf32>, %limits: memref<4x?xi32>, %n: index, %x: f32, %none: i32) kernel
      attributes {known_block_size = array<i32: 128, 1, 1>} {
    %a = kernel.load %in rows(%n, %n, %n, %n) valid(%n) otherwise %x
        : memref<?x4x136xf32> to tensor<64x136xf32>
    %hi = arith.constant dense<77> : tensor<64x1xi32>
    %e = tensor.empty() : tensor<64x136xf32>
    %r = linalg.generic {indexing_maps = [#mn, #m0, #mn], iterator_types = ["parallel", "parallel"]}
        ins(%a, %hi : tensor<64x136xf32>, tensor<64x1xi32>) outs(%e : tensor<64x136xf32>) {
    ^bb0(%s: f32, %limit: i32, %o: f32):
      %zero = arith.constant 0.0 : f32
      %first = arith.constant 0 : i32
      %key = linalg.index 1 : index
      %y = varlen.hide %s with %zero at %key limits(%first, %limit, %k0) : f32
      linalg.yield %y : f32
    } -> tensor<64x136xf32>
    kernel.store %r to %in rows(%n, %n, %n, %n) valid(%n) : tensor<64x136xf32> to memref<?x4x136xf32>
    gpu.return
  }

  // Of one limit and few columns a comparison in each takes no more.
  // CHECK-LABEL: gpu.func @hide_few
  // CHECK-NOT: arith.shli
  // CHECK: arith.cmpi slt, %{{.*}}, %{{.*}} : vector<1x8x2x2xi32>
  // CHECK: arith.ori
  // CHECK: arith.select
  // Of two it does.
  // CHECK: arith.shli
  // CHECK: arith.andi
  // CHECK: arith.select
  gpu.func @hide_few(%k0: i32, %in: memref<?x4x64xf32>, %n: index, %x: f32, %whole: i1) kernel
      attributes {known_block_size = array<i32: 128, 1, 1>} {
    %a = kernel.load %in rows(%n, %n, %n, %n) valid(%n) otherwise %x
        : memref<?x4x64xf32> to tensor<64x64xf32>
    %lo = arith.constant dense<11> : tensor<64x1xi32>
    %hi = arith.constant dense<77> : tensor<64x1xi32>
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<64x64xf32>
    %r = linalg.generic {indexing_maps = [#mn, #m0, #mn], iterator_types = ["parallel", "parallel"]}
        ins(%a, %hi : tensor<64x64xf32>, tensor<64x1xi32>) outs(%e : tensor<64x64xf32>) {
    ^bb0(%s: f32, %limit: i32, %o: f32):
      %first = arith.constant 0 : i32
      %key = linalg.index 1 : index
      %y = varlen.hide %s with %zero at %key limits(%first, %limit, %k0) unless(%whole) : f32
      linalg.yield %y : f32
    } -> tensor<64x64xf32>
    %t = linalg.generic {indexing_maps = [#mn, #m0, #m0, #mn], iterator_types = ["parallel", "parallel"]}
        ins(%r, %lo, %hi : tensor<64x64xf32>, tensor<64x1xi32>, tensor<64x1xi32>) outs(%e : tensor<64x64xf32>) {
    ^bb0(%s: f32, %after: i32, %limit: i32, %o: f32):
      %key = linalg.index 1 : index
      %y = varlen.hide %s with %zero at %key limits(%after, %limit, %k0) : f32
      linalg.yield %y : f32
    } -> tensor<64x64xf32>
    kernel.store %t to %in rows(%n, %n, %n, %n) valid(%n) : tensor<64x64xf32> to memref<?x4x64xf32>
    gpu.return
  }

  // The four lanes that share two keys have their sums over the queries; lane 0 adds that
  // of the first, lane 1 the other, if the table has the key.
  // CHECK-LABEL: gpu.func @add_keys
  // CHECK-SAME: (%[[TABLE:[a-z0-9]*]]: memref{{.*}}, %[[ROW:[a-z0-9]*]]: i64, %[[FIRST:[a-z0-9]*]]: i32
  // CHECK: %[[V:.*]] = kernel.load
  // CHECK: %[[FLAT:.*]] = memref.reinterpret_cast %[[TABLE]]
  // CHECK: vector.multi_reduction <add>, %[[V]], %{{.*}} [1, 3] : vector<1x2x2x2xf32> to vector<1x2xf32>
  // CHECK: %[[TOTAL:.*]] = gpu.subgroup_reduce add %{{.*}} cluster(size = 4) : (vector<2xf32>) -> vector<2xf32>
  // CHECK: %[[SECOND:.*]] = arith.cmpi eq, %[[MEMBER:.*]], %{{.*}}
  // CHECK: %[[OWNER:.*]] = arith.cmpi ult, %[[MEMBER]], %{{.*}}
  // CHECK: %[[HAS:.*]] = arith.cmpi ne, %[[ROW]], %{{.*}} : i64
  // CHECK: %[[ADDS:.*]] = arith.andi %[[OWNER]], %[[HAS]]
  // CHECK: %[[OWN:.*]] = arith.select %[[SECOND]], %{{.*}}, %{{.*}} : i32
  // CHECK: %[[KEY:.*]] = arith.addi %[[FIRST]], %[[OWN]] : i32
  // CHECK: %[[S0:.*]] = vector.extract %[[TOTAL]][0]
  // CHECK: %[[S1:.*]] = vector.extract %[[TOTAL]][1]
  // CHECK: %[[SUM:.*]] = arith.select %[[SECOND]], %[[S1]], %[[S0]] : f32
  // CHECK: %[[THERE:.*]] = arith.cmpi slt, %[[KEY]], %c32_i32
  // CHECK: %[[IF:.*]] = arith.andi %[[ADDS]], %[[THERE]]
  // CHECK: scf.if %[[IF]] {
  // CHECK: %[[OLD:.*]] = memref.load %[[FLAT]][%[[PLACE:.*]]]
  // CHECK: %[[NEW:.*]] = arith.addf %[[OLD]], %[[SUM]]
  // CHECK: memref.store %[[NEW]], %[[FLAT]][%[[PLACE]]]
  // CHECK-NOT: memref.load
  gpu.func @add_keys(%table: memref<?x32xf32, strided<[1, 1], offset: ?>>, %row: i64, %first: i32,
                     %in: memref<?x4x16xf32>, %n: index, %x: f32)
      kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %values = kernel.load %in rows(%n, %n, %n, %n) valid(%n) otherwise %x
        : memref<?x4x16xf32> to tensor<64x16xf32>
    %e = tensor.empty() : tensor<1x16xi64>
    %rows = linalg.fill ins(%row : i64) outs(%e : tensor<1x16xi64>) -> tensor<1x16xi64>
    varlen.add_keys %values to %table[%rows, %first]
        : tensor<64x16xf32>, memref<?x32xf32, strided<[1, 1], offset: ?>>, tensor<1x16xi64>
    gpu.return
  }

  // Without tiles, nothing is asked of the kernel.
  // CHECK-LABEL: gpu.func @plain
  gpu.func @plain() kernel {
    gpu.return
  }
}
