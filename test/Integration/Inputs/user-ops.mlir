// What functions may hold beside attention.

// Vectors of rank 2.
func.func @vec(%x: memref<4x8xf32>, %y: memref<4x8xf32>) {
  %c0 = arith.constant 0 : index
  %p = arith.constant 0.0 : f32
  %v = vector.transfer_read %x[%c0, %c0], %p : memref<4x8xf32>, vector<4x8xf32>
  %t = vector.transpose %v, [1, 0] : vector<4x8xf32> to vector<8x4xf32>
  %t2 = vector.transpose %t, [1, 0] : vector<8x4xf32> to vector<4x8xf32>
  %e = math.exp2 %t2 : vector<4x8xf32>
  vector.transfer_write %e, %y[%c0, %c0] : vector<4x8xf32>, memref<4x8xf32>
  return
}

// Arithmetic on whole tensors of a type that CPUs have no arithmetic for.
func.func @elementwise(%x: tensor<?x4xbf16>, %y: tensor<?x4xbf16>) -> tensor<?x4xbf16> {
  %0 = arith.addf %x, %y : tensor<?x4xbf16>
  %1 = math.tanh %0 : tensor<?x4xbf16>
  return %1 : tensor<?x4xbf16>
}

// A result is always a buffer of its own.
func.func @same(%x: tensor<?xf32>) -> tensor<?xf32> {
  return %x : tensor<?xf32>
}

// Also where it is a constant.
func.func @constant() -> tensor<4xf32> {
  %0 = arith.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// An argument is never written to.
func.func @in_place(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %v = arith.constant 7.0 : f32
  %0 = tensor.insert %v into %x[%c0] : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// But the argument of a private function may be.
func.func private @callee(%x: tensor<?xf32>, %w: tensor<?xf32>) -> tensor<?xf32> {
  %0 = linalg.add ins(%x, %w : tensor<?xf32>, tensor<?xf32>) outs(%x : tensor<?xf32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

func.func @caller(%x: tensor<?xf32>) -> tensor<?xf32> {
  %0 = call @callee(%x, %x) : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

func.func @matmul(%a: tensor<?x?xf32>, %b: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %z = arith.constant 0.0 : f32
  %m = tensor.dim %a, %c0 : tensor<?x?xf32>
  %n = tensor.dim %b, %c1 : tensor<?x?xf32>
  %e = tensor.empty(%m, %n) : tensor<?x?xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<?x?xf32>) -> tensor<?x?xf32>
  %r = linalg.matmul ins(%a, %b : tensor<?x?xf32>, tensor<?x?xf32>) outs(%f : tensor<?x?xf32>) -> tensor<?x?xf32>
  return %r : tensor<?x?xf32>
}

// Views, one of them returned with a layout.
func.func @shapes(%x: tensor<?x4x8xf32>, %n: index) -> (tensor<?x32xf32>, tensor<?x4x4xf32>) {
  %0 = tensor.collapse_shape %x [[0], [1, 2]] : tensor<?x4x8xf32> into tensor<?x32xf32>
  %1 = tensor.extract_slice %x[0, 0, 4] [%n, 4, 4] [1, 1, 1] : tensor<?x4x8xf32> to tensor<?x4x4xf32>
  return %0, %1 : tensor<?x32xf32>, tensor<?x4x4xf32>
}

func.func @pad(%x: tensor<?xf16>, %n: index) -> tensor<?xf16> {
  %z = arith.constant 0.0 : f16
  %0 = tensor.pad %x low[0] high[%n] {
  ^bb0(%i: index):
    tensor.yield %z : f16
  } : tensor<?xf16> to tensor<?xf16>
  return %0 : tensor<?xf16>
}

// A new tensor in every iteration.
func.func @loop(%x: tensor<8xf32>, %n: index) -> tensor<8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%t = %x) -> tensor<8xf32> {
    %0 = math.exp %t : tensor<8xf32>
    scf.yield %0 : tensor<8xf32>
  }
  return %r : tensor<8xf32>
}

// A parallel loop of the user's own.
func.func @forall(%x: tensor<8xf32>) -> tensor<8xf32> {
  %r = scf.forall (%i) in (2) shared_outs(%o = %x) -> tensor<8xf32> {
    %j = affine.apply affine_map<(d0) -> (d0 * 4)>(%i)
    %s = tensor.extract_slice %o[%j] [4] [1] : tensor<8xf32> to tensor<4xf32>
    %e = math.sqrt %s : tensor<4xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %e into %o[%j] [4] [1] : tensor<4xf32> into tensor<8xf32>
    }
  }
  return %r : tensor<8xf32>
}

func.func @f16(%x: tensor<?xf16>) -> tensor<?xf16> {
  %0 = math.exp2 %x : tensor<?xf16>
  %1 = arith.mulf %0, %0 : tensor<?xf16>
  return %1 : tensor<?xf16>
}

func.func @ints(%x: tensor<?xi32>, %y: tensor<?xi32>) -> tensor<?xi32> {
  %0 = arith.ceildivsi %x, %y : tensor<?xi32>
  %1 = arith.maxsi %0, %y : tensor<?xi32>
  return %1 : tensor<?xi32>
}

// Small dialects.
func.func @check(%c: i1, %x: complex<f32>) -> f32 {
  cf.assert %c, "no"
  %0 = complex.abs %x : complex<f32>
  %i = index.constant 3
  return %0 : f32
}
