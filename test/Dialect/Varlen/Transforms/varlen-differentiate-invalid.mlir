// RUN: varlen-opt %s --split-input-file --verify-diagnostics --allow-unregistered-dialect --varlen-differentiate=function=f
// RUN: not varlen-opt %s --split-input-file --allow-unregistered-dialect --varlen-differentiate="function=g" 2>&1 | FileCheck %s --check-prefix=MISSING
// RUN: not varlen-opt %s --split-input-file --allow-unregistered-dialect --varlen-differentiate="function=f wrt=2" 2>&1 | FileCheck %s --check-prefix=NUMBER
// RUN: not varlen-opt %s --split-input-file --allow-unregistered-dialect --varlen-differentiate="function=f wrt=n" 2>&1 | FileCheck %s --check-prefix=NAME
// RUN: not varlen-opt %s --split-input-file --allow-unregistered-dialect --varlen-differentiate="function=f results=0,0" 2>&1 | FileCheck %s --check-prefix=TWICE
// RUN: not varlen-opt %s --split-input-file --allow-unregistered-dialect --varlen-differentiate="function=f residuals=save with-results" 2>&1 | FileCheck %s --check-prefix=SAVE

// MISSING: error: expected the name of a function to differentiate, got 'g': the module has f
// NUMBER: error: expected the number of one of 1 arguments, got 2
// NAME: error: has no argument with the name 'n'
// TWICE: error: result #0 is named twice
// SAVE: error: with-results: expected residuals=recompute

// An operation without a rule, where the cotangent would have to pass.
func.func @f(%x: f32) -> f32 {
  %b = arith.bitcast %x : f32 to i32
  // expected-error @below {{'test.unknown' has no rule of differentiation in the reverse mode, but lies between what is differentiated and what it is differentiated by}}
  %y = "test.unknown"(%x, %b) : (f32, i32) -> f32
  return %y : f32
}

// -----

// The same in the body of another.
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]} outs(%x : tensor<4xf32>) {
  ^bb0(%a: f32):
    // expected-error @below {{'math.clampf' has no rule of differentiation}}
    %b = math.clampf %a to [%a, %a] : f32
    linalg.yield %b : f32
  } -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

// Calls have to be inlined.
func.func private @g(f32) -> f32
func.func @f(%x: f32) -> f32 {
  // expected-error @below {{'func.call' has no rule of differentiation}}
  %y = call @g(%x) : (f32) -> f32
  return %y : f32
}

// -----

// Control flow that has no rule.
func.func @f(%x: f32) -> f32 {
  // expected-error @below {{'scf.execute_region' has no rule of differentiation}}
  %y = scf.execute_region -> f32 {
    %z = math.exp %x : f32
    scf.yield %z : f32
  }
  return %y : f32
}

// -----

// expected-error @below {{expected one block to differentiate, got 2}}
func.func @f(%x: f32) -> f32 {
  cf.br ^next
^next:
  return %x : f32
}

// -----

// expected-error @below {{has no argument of floats}}
func.func @f(%x: i32) -> f32 {
  %y = arith.sitofp %x : i32 to f32
  return %y : f32
}

// -----

// expected-error @below {{'f_vjp' is what varlen-differentiate makes; expected at most a declaration of it}}
func.func @f_vjp(%x: f32) -> f32 {
  return %x : f32
}
func.func @f(%x: f32) -> f32 {
  return %x : f32
}

// -----

// expected-error @below {{expected the type '(f32, f32) -> f32', got '(f32) -> f32'}}
func.func private @f_vjp(f32) -> f32
func.func @f(%x: f32) -> f32 {
  return %x : f32
}

// -----

// A reduction that is no sum and no extremum.
func.func @f(%x: tensor<?xf32>, %i: tensor<f32>) -> tensor<f32> {
  // expected-error @below {{expected result #0 to be elementwise, or a sum, a maximum or a minimum, to differentiate it}}
  %y = linalg.reduce { arith.mulf } ins(%x : tensor<?xf32>) outs(%i : tensor<f32>) dimensions = [0]
  return %y : tensor<f32>
}

// -----

// A padding that is differentiated by.
func.func @f(%x: tensor<4xf32>, %p: f32) -> tensor<6xf32> {
  // expected-error @below {{expected padding that does not depend on what it is differentiated by}}
  %y = tensor.pad %x low[1] high[1] {
  ^bb0(%i: index):
    tensor.yield %p : f32
  } : tensor<4xf32> to tensor<6xf32>
  return %y : tensor<6xf32>
}

// -----

// A loop whose derivative needs what it carries.
func.func @f(%x: f32, %n: index) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-error @below {{expected a loop whose derivative needs none of the values that it carries, got one that needs #0}}
  %y = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x) -> f32 {
    %b = math.sin %a : f32
    scf.yield %b : f32
  }
  return %y : f32
}

// -----

// A loop that grows what it carries.
func.func @f(%x: tensor<?xf32>, %n: index) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-error @below {{expected a loop that keeps the shapes of what it carries, cannot tell for #0}}
  %y = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x) -> tensor<?xf32> {
    %b = tensor.concat dim(0) %a, %x : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
    scf.yield %b : tensor<?xf32>
  }
  return %y : tensor<?xf32>
}

// -----

// Tensors that change places.
func.func @f(%x: tensor<?xf32>, %y: tensor<?xf32>, %n: index) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-error @below {{expected a loop that keeps the shapes of what it carries, cannot tell for #0}}
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x, %b = %y) -> (tensor<?xf32>, tensor<?xf32>) {
    scf.yield %b, %a : tensor<?xf32>, tensor<?xf32>
  }
  return %r#0 : tensor<?xf32>
}

// -----

// An inner loop that carries what the outer one does.
func.func @f(%x: tensor<?xf32>, %n: index) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-error @below {{expected a loop that keeps the shapes of what it carries, cannot tell for #0}}
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x) -> tensor<?xf32> {
    %q = scf.for %j = %c0 to %n step %c1 iter_args(%b = %a) -> tensor<?xf32> {
      scf.yield %a : tensor<?xf32>
    }
    scf.yield %q : tensor<?xf32>
  }
  return %r : tensor<?xf32>
}

// -----

// Operands that are the same value are two of them.
func.func @f(%x: tensor<?xf32>, %p: f32, %n: index) -> tensor<?xf32> {
  // expected-error @below {{expected padding that does not depend on what it is differentiated by}}
  %y = tensor.pad %x low[%n] high[%n] {
  ^bb0(%i: index):
    tensor.yield %p : f32
  } : tensor<?xf32> to tensor<?xf32>
  return %y : tensor<?xf32>
}

// -----

// An accumulator that a region captures.
func.func @f(%x: tensor<8xf32>, %i: tensor<f32>, %c: i1) -> tensor<f32> {
  // expected-error @below {{expected result #0 to be elementwise, or a sum, a maximum or a minimum, to differentiate it}}
  %y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>], iterator_types = ["reduction"]}
      ins(%x : tensor<8xf32>) outs(%i : tensor<f32>) {
  ^bb0(%a: f32, %acc: f32):
    %d = scf.if %c -> f32 {
      scf.yield %acc : f32
    } else {
      scf.yield %a : f32
    }
    %e = arith.addf %acc, %d : f32
    linalg.yield %e : f32
  } -> tensor<f32>
  return %y : tensor<f32>
}

// -----

// Complex numbers have no cotangents, and no rules.
func.func @f(%x: f32) -> f32 {
  %c = complex.create %x, %x : complex<f32>
  // expected-error @below {{'complex.abs' has no rule of differentiation in the reverse mode, but lies between what is differentiated and what it is differentiated by}}
  %y = complex.abs %c : complex<f32>
  return %y : f32
}

// -----

// Nor has a tensor whose rank is not known.
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %u = tensor.cast %x : tensor<4xf32> to tensor<*xf32>
  // expected-error @below {{to be floats, or ranked tensors or vectors of floats, got 'tensor<*xf32>'}}
  %y = tensor.cast %u : tensor<*xf32> to tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

// A body with both.
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c = tensor.empty() : tensor<4xcomplex<f32>>
  // expected-error @below {{expected what lies between what is differentiated and what it is differentiated by to be floats, or ranked tensors or vectors of floats, got 'tensor<4xcomplex<f32>>'}}
  %y:2 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} outs(%x, %c : tensor<4xf32>, tensor<4xcomplex<f32>>) {
  ^bb0(%a: f32, %b: complex<f32>):
    %d = complex.create %a, %a : complex<f32>
    linalg.yield %a, %d : f32, complex<f32>
  } -> (tensor<4xf32>, tensor<4xcomplex<f32>>)
  return %y#0 : tensor<4xf32>
}

// -----

func.func @f(%x: f32) -> f32 {
  %m = memref.alloca() : memref<f32>
  memref.store %x, %m[] : memref<f32>
  // expected-error @below {{'memref.load' reads memory, which what is differentiated by may have been written to; expected tensors and scalars}}
  %y = memref.load %m[] : memref<f32>
  return %y : f32
}

// -----

// Of one iteration in another, and through another name.
func.func @f(%x: f32, %n: index) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %m = memref.alloca() : memref<4xf32>
  %v = memref.subview %m[0] [1] [1] : memref<4xf32> to memref<1xf32, strided<[1]>>
  memref.store %x, %v[%c0] : memref<1xf32, strided<[1]>>
  // expected-error @below {{'scf.for' reads memory}}
  %y = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %zero) -> f32 {
    %e = memref.load %m[%i] : memref<4xf32>
    %next = arith.addf %sum, %e : f32
    scf.yield %next : f32
  }
  return %y : f32
}

// -----

func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %m = memref.alloc() : memref<4xf32>
  bufferization.materialize_in_destination %x in restrict writable %m : (tensor<4xf32>, memref<4xf32>) -> ()
  // expected-error @below {{'bufferization.to_tensor' reads memory}}
  %y = bufferization.to_tensor %m restrict : memref<4xf32> to tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

func.func @f(%q: tensor<?x4x8xf32>, %k: tensor<?x8x2x8xf32>, %cu: tensor<?xi32>,
             %used: tensor<?xi32>, %table: tensor<?x?xi32>) -> tensor<?x4x8xf32> {
  // expected-error @below {{expected keys without a block_table to differentiate: pages have no gradient}}
  %out, %lse = varlen.attn %q, %k, %k, %cu seqused_k(%used) block_table(%table)
    : (tensor<?x4x8xf32>, tensor<?x8x2x8xf32>, tensor<?x8x2x8xf32>, tensor<?xi32>,
       tensor<?xi32>, tensor<?x?xi32>) -> (tensor<?x4x8xf32>, tensor<4x?xf32>)
  return %out : tensor<?x4x8xf32>
}

// -----

func.func @f(%q: tensor<?x4x8xf32>, %k: tensor<?x2x8xi8>, %cu: tensor<?xi32>)
    -> tensor<?x4x8xf32> {
  // expected-error @below {{expected k and v of the type of q to differentiate: quantised ones have no gradient}}
  %out, %lse = varlen.attn %q, %k, %k, %cu, %cu
    : (tensor<?x4x8xf32>, tensor<?x2x8xi8>, tensor<?x2x8xi8>, tensor<?xi32>, tensor<?xi32>)
    -> (tensor<?x4x8xf32>, tensor<4x?xf32>)
  return %out : tensor<?x4x8xf32>
}
