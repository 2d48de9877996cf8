// RUN: varlen-opt %s --varlen-outline-work --split-input-file --verify-diagnostics

func.func @tensor(%t: tensor<8xf32>, %x: memref<8xf32>) {
  // expected-error @+1 {{cannot hand a captured value to another thread: its type has no form in memory (got 'tensor<8xf32>')}}
  scf.forall (%i) in (8) {
    %v = tensor.extract %t[%i] : tensor<8xf32>
    memref.store %v, %x[%i] : memref<8xf32>
  }
  return
}

// -----

// The runtime's name is taken by something else.
// expected-note @+1 {{the name stands for this}}
func.func private @varlen_parallel_for(i32)

func.func @f(%v: f32, %x: memref<8xf32>) {
  // expected-error @+1 {{needs the runtime function 'varlen_parallel_for' of type '(i64, i64, (!llvm.ptr, i64, i64, !llvm.ptr) -> (), !llvm.ptr) -> ()'}}
  scf.forall (%i) in (8) {
    memref.store %v, %x[%i] : memref<8xf32>
  }
  return
}

// -----

// What a work tile needs is counted in 64 bits, for each buffer and for all.

func.func @huge_buffer(%n: index, %x: f32) {
  scf.forall (%i) in (%n) {
    // expected-error @below {{'memref.alloc' op expected buffers of a work tile of less than 2^63 bytes in all, got more with 'memref<2305843009213693952x4xf32>'}}
    %a = memref.alloc() : memref<2305843009213693952x4xf32>
    memref.store %x, %a[%i, %i] : memref<2305843009213693952x4xf32>
    memref.dealloc %a : memref<2305843009213693952x4xf32>
  }
  return
}

// -----

func.func @huge_sum(%n: index, %x: i8) {
  scf.forall (%i) in (%n) {
    %a = memref.alloc() : memref<4611686018427387904xi8>
    // expected-error @below {{'memref.alloc' op expected buffers of a work tile of less than 2^63 bytes in all, got more with 'memref<4611686018427387904xi8>'}}
    %b = memref.alloc() : memref<4611686018427387904xi8>
    memref.store %x, %a[%i] : memref<4611686018427387904xi8>
    memref.store %x, %b[%i] : memref<4611686018427387904xi8>
    memref.dealloc %a : memref<4611686018427387904xi8>
    memref.dealloc %b : memref<4611686018427387904xi8>
  }
  return
}

// -----

// What outlives its region, and nothing frees, would be one more with each tile.

func.func @never_freed(%n: index, %x: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.forall (%i) in (%n) {
    %a = memref.alloc() : memref<4xf32>
    %r = scf.for %j = %c0 to %n step %c1 iter_args(%last = %a) -> (memref<4xf32>) {
      // expected-error @below {{'memref.alloc' op expected a deallocation of a buffer of a work tile that outlives its region, as memory would grow with each tile, got none}}
      %b = memref.alloc() : memref<4xf32>
      scf.yield %b : memref<4xf32>
    }
    memref.store %x, %r[%c0] : memref<4xf32>
  }
  return
}
