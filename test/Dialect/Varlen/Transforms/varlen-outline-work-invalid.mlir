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
