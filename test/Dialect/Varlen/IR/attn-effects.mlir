// RUN: varlen-opt %s --cse | FileCheck %s --check-prefix=CSE
// RUN: varlen-opt %s --loop-invariant-code-motion | FileCheck %s --check-prefix=LICM
// RUN: varlen-opt %s --canonicalize | FileCheck %s --check-prefix=DCE

// Equal ops on tensors are one op; one with another mask is not equal.
// CSE-LABEL: func.func @equal
// CSE: %[[A:.*]], %[[LSE:.*]] = varlen.attn
// CSE: %[[B:.*]], %{{.*}} = varlen.attn {{.*}} {mask = #varlen.mask<causal>}
// CSE-NOT: varlen.attn
// CSE: return %[[A]], %[[A]], %[[B]] :
func.func @equal(%q: tensor<?x4x16xf32>, %cu: tensor<?xi32>)
    -> (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>) {
  %0, %1 = varlen.attn %q, %q, %q, %cu, %cu
      : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?xi32>,
         tensor<?xi32>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
  %2, %3 = varlen.attn %q, %q, %q, %cu, %cu
      : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?xi32>,
         tensor<?xi32>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
  %4, %5 = varlen.attn %q, %q, %q, %cu, %cu {mask = #varlen.mask<causal>}
      : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?xi32>,
         tensor<?xi32>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
  return %0, %2, %4 : tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>
}

// Equal ops on memrefs both write.
// CSE-LABEL: func.func @equal_memrefs
// CSE-COUNT-2: varlen.attn
// DCE-LABEL: func.func @equal_memrefs
// DCE-COUNT-2: varlen.attn
func.func @equal_memrefs(%q: memref<?x4x16xf32>, %cu: memref<?xi32>,
                         %out: memref<?x4x16xf32>, %lse: memref<4x?xf32>) {
  varlen.attn %q, %q, %q, %cu, %cu outs(%out, %lse)
      : (memref<?x4x16xf32>, memref<?x4x16xf32>, memref<?x4x16xf32>, memref<?xi32>,
         memref<?xi32>, memref<?x4x16xf32>, memref<4x?xf32>) -> ()
  varlen.attn %q, %q, %q, %cu, %cu outs(%out, %lse)
      : (memref<?x4x16xf32>, memref<?x4x16xf32>, memref<?x4x16xf32>, memref<?xi32>,
         memref<?xi32>, memref<?x4x16xf32>, memref<4x?xf32>) -> ()
  return
}

// The op reads its operands: a load after it is not the load before it when it
// wrote the buffer, and is when it did not.
// CSE-LABEL: func.func @reads_and_writes
// CSE-SAME: %[[Q:[a-z0-9]+]]: memref<?x4x16xf32>
// CSE: %[[A:.*]] = memref.load %[[OUT:.*]][
// CSE: varlen.attn
// CSE: %[[B:.*]] = memref.load %[[OUT]][
// CSE: return %[[A]], %[[B]]
func.func @reads_and_writes(%q: memref<?x4x16xf32>, %cu: memref<?xi32>,
                            %out: memref<?x4x16xf32>, %lse: memref<4x?xf32>) -> (f32, f32) {
  %c0 = arith.constant 0 : index
  %0 = memref.load %out[%c0, %c0, %c0] : memref<?x4x16xf32>
  varlen.attn %q, %q, %q, %cu, %cu outs(%out, %lse)
      : (memref<?x4x16xf32>, memref<?x4x16xf32>, memref<?x4x16xf32>, memref<?xi32>,
         memref<?xi32>, memref<?x4x16xf32>, memref<4x?xf32>) -> ()
  %1 = memref.load %out[%c0, %c0, %c0] : memref<?x4x16xf32>
  return %0, %1 : f32, f32
}

// An op on tensors leaves a loop that does not change its operands.
// LICM-LABEL: func.func @invariant
// LICM: varlen.attn
// LICM: scf.for
// LICM-NOT: varlen.attn
// LICM: return
func.func @invariant(%q: tensor<?x4x16xf32>, %cu: tensor<?xi32>, %n: index)
    -> tensor<?x4x16xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%x = %q) -> tensor<?x4x16xf32> {
    %0, %1 = varlen.attn %q, %q, %q, %cu, %cu
        : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?xi32>,
           tensor<?xi32>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
    %2 = arith.addf %x, %0 : tensor<?x4x16xf32>
    scf.yield %2 : tensor<?x4x16xf32>
  }
  return %r : tensor<?x4x16xf32>
}

// One on memrefs stays.
// LICM-LABEL: func.func @invariant_memrefs
// LICM: scf.for
// LICM: varlen.attn
func.func @invariant_memrefs(%q: memref<?x4x16xf32>, %cu: memref<?xi32>,
                             %out: memref<?x4x16xf32>, %lse: memref<4x?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    varlen.attn %q, %q, %q, %cu, %cu outs(%out, %lse)
        : (memref<?x4x16xf32>, memref<?x4x16xf32>, memref<?x4x16xf32>, memref<?xi32>,
           memref<?xi32>, memref<?x4x16xf32>, memref<4x?xf32>) -> ()
  }
  return
}

// An unused op is removed, one whose lse is used is not.
// DCE-LABEL: func.func @unused
// DCE-NOT: varlen.attn
// DCE-LABEL: func.func @lse_used
// DCE: varlen.attn
func.func @unused(%q: tensor<?x4x16xf32>, %cu: tensor<?xi32>) {
  %0, %1 = varlen.attn %q, %q, %q, %cu, %cu
      : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?xi32>,
         tensor<?xi32>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
  return
}
func.func @lse_used(%q: tensor<?x4x16xf32>, %cu: tensor<?xi32>) -> tensor<4x?xf32> {
  %0, %1 = varlen.attn %q, %q, %q, %cu, %cu
      : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?xi32>,
         tensor<?xi32>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
  return %1 : tensor<4x?xf32>
}

// The same of gradients. On tensors: merged, moved out of loops, removed.
// CSE-LABEL: func.func @grad_equal
// CSE: %[[DQ:.*]], %{{.*}}, %{{.*}} = varlen.attn_grad
// CSE-NOT: varlen.attn_grad
// CSE: return %[[DQ]], %[[DQ]] :
// LICM-LABEL: func.func @grad_equal
// LICM: varlen.attn_grad
// LICM: scf.for
// LICM-NOT: varlen.attn_grad
// LICM: scf.yield
func.func @grad_equal(%q: tensor<?x4x16xf32>, %lse: tensor<4x?xf32>, %cu: tensor<?xi32>, %n: index)
    -> (tensor<?x4x16xf32>, tensor<?x4x16xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %0:3 = varlen.attn_grad %q, %q, %q, %q, %q, %lse, %cu, %cu
      : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>,
         tensor<?x4x16xf32>, tensor<4x?xf32>, tensor<?xi32>, tensor<?xi32>)
      -> (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>)
  %1 = scf.for %i = %c0 to %n step %c1 iter_args(%x = %q) -> tensor<?x4x16xf32> {
    %3:3 = varlen.attn_grad %q, %q, %q, %q, %q, %lse, %cu, %cu {mask = #varlen.mask<causal>}
      : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>,
         tensor<?x4x16xf32>, tensor<4x?xf32>, tensor<?xi32>, tensor<?xi32>)
      -> (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>)
    scf.yield %3#1 : tensor<?x4x16xf32>
  }
  %2:3 = varlen.attn_grad %q, %q, %q, %q, %q, %lse, %cu, %cu
      : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>,
         tensor<?x4x16xf32>, tensor<4x?xf32>, tensor<?xi32>, tensor<?xi32>)
      -> (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>)
  return %0#0, %2#0 : tensor<?x4x16xf32>, tensor<?x4x16xf32>
}

// DCE-LABEL: func.func @grad_unused
// DCE-NOT: varlen.attn_grad
// DCE: return
func.func @grad_unused(%q: tensor<?x4x16xf32>, %lse: tensor<4x?xf32>, %cu: tensor<?xi32>) {
  %0:3 = varlen.attn_grad %q, %q, %q, %q, %q, %lse, %cu, %cu
      : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>,
         tensor<?x4x16xf32>, tensor<4x?xf32>, tensor<?xi32>, tensor<?xi32>)
      -> (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>)
  return
}

// On memrefs it reads and writes.
// CSE-LABEL: func.func @grad_memrefs
// CSE: %[[A:.*]] = memref.load
// CSE-COUNT-2: varlen.attn_grad
// CSE: %[[B:.*]] = memref.load
// CSE: return %[[A]], %[[B]], %[[A]]
// DCE-LABEL: func.func @grad_memrefs
// DCE-COUNT-2: varlen.attn_grad
func.func @grad_memrefs(%q: memref<?x4x16xf32>, %lse: memref<4x?xf32>, %cu: memref<?xi32>,
                        %dq: memref<?x4x16xf32>, %dk: memref<?x4x16xf32>, %dv: memref<?x4x16xf32>)
    -> (f32, f32, f32) {
  %c0 = arith.constant 0 : index
  %0 = memref.load %dk[%c0, %c0, %c0] : memref<?x4x16xf32>
  varlen.attn_grad %q, %q, %q, %q, %q, %lse, %cu, %cu outs(%dq, %dk, %dv)
      : (memref<?x4x16xf32>, memref<?x4x16xf32>, memref<?x4x16xf32>, memref<?x4x16xf32>,
         memref<?x4x16xf32>, memref<4x?xf32>, memref<?xi32>, memref<?xi32>,
         memref<?x4x16xf32>, memref<?x4x16xf32>, memref<?x4x16xf32>) -> ()
  varlen.attn_grad %q, %q, %q, %q, %q, %lse, %cu, %cu outs(%dq, %dk, %dv)
      : (memref<?x4x16xf32>, memref<?x4x16xf32>, memref<?x4x16xf32>, memref<?x4x16xf32>,
         memref<?x4x16xf32>, memref<4x?xf32>, memref<?xi32>, memref<?xi32>,
         memref<?x4x16xf32>, memref<?x4x16xf32>, memref<?x4x16xf32>) -> ()
  %1 = memref.load %dk[%c0, %c0, %c0] : memref<?x4x16xf32>
  return %0, %1, %0 : f32, f32, f32
}
