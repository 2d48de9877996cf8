// --random on gradients, and on functions that have both.

// RUN: mkdir -p %t && cd %t

// All that has the rows of q is made for them, whichever dimension they are.
// RUN: varlen-run %s --entry=gradients --random=1 --lengths=3,5 --lengths-k=4,1 -o gradients | FileCheck %s --check-prefix=WORK
// RUN: %python %S/Inputs/print-tensors.py gradients | FileCheck %s --check-prefix=GRADIENTS
// WORK: work {{[0-9.]+}} GFLOP/s useful
// GRADIENTS-DAG: dq float32 [8, 2, 16]
// GRADIENTS-DAG: dk float32 [5, 1, 16]
// GRADIENTS-DAG: dv float32 [5, 1, 16]
// GRADIENTS-DAG: dlse float32 [2, 8]

// An extent that is given for one is that of all; a file counts as given.
// RUN: varlen-run %s --entry=gradients --random=1 --lengths=3,5 --extent=q:0=11 --extent=v:0=9 -o more
// RUN: %python %S/Inputs/print-tensors.py more | FileCheck %s --check-prefix=MORE
// RUN: %python -c "import numpy, varlen; varlen.safetensors.write('file', {'lse': numpy.zeros((2, 11), 'f4'), 'k': numpy.ones((9, 1, 16), 'f4')})"
// RUN: varlen-run %s file --entry=gradients --random=1 --lengths=3,5 -o more
// RUN: %python %S/Inputs/print-tensors.py more | FileCheck %s --check-prefix=MORE
// MORE-DAG: dq float32 [11, 2, 16]
// MORE-DAG: dk float32 [9, 1, 16]
// MORE-DAG: dlse float32 [2, 11]

// Heads, too; and buffers that results are written to.
// RUN: varlen-run %s --entry=buffers --random=1 --lengths=3,5 --extent=sink:0=6 --extent=dv:1=3 -o buffers | FileCheck %s --check-prefix=WORK
// RUN: %python %S/Inputs/print-tensors.py buffers | FileCheck %s --check-prefix=BUFFERS
// BUFFERS-DAG: dq float32 [8, 6, 8]
// BUFFERS-DAG: dk float32 [8, 3, 8]
// BUFFERS-DAG: dv float32 [8, 3, 24]
// BUFFERS-DAG: dsink float32 [6]

// The backward of a function: out and lse come from an attention in it, and dout
// from a caller.
// RUN: varlen-opt %s --varlen-differentiate="function=forward wrt=q,kv with-results" -o step.mlir
// RUN: varlen-run step.mlir --entry=forward_vjp --random=1 --lengths=3,0,5 -o step | FileCheck %s --check-prefix=WORK
// RUN: %python %S/Inputs/print-tensors.py step | FileCheck %s --check-prefix=STEP
// STEP-DAG: out float32 [8, 2, 16]
// STEP-DAG: dq float32 [8, 2, 16]
// STEP-DAG: dkv float32 [8, 2, 16]

// A second derivative has plain operations beside the attention: the rows of what
// only they read have to be given.
// RUN: varlen-opt %s --varlen-differentiate="function=forward wrt=q" --varlen-differentiate="function=forward_vjp wrt=dout" -o second.mlir
// RUN: varlen-run second.mlir --entry=forward_vjp_vjp --random=1 --lengths=3,2 --extent=dout:0=5 --extent=ddq:0=5 -o second | FileCheck %s --check-prefix=WORK
// RUN: %python %S/Inputs/print-tensors.py second | FileCheck %s --check-prefix=SECOND
// SECOND-DAG: ddout float32 [5, 2, 16]

// RUN: not varlen-run %s --entry=gradients --random=1 2>&1 | FileCheck %s --check-prefix=NOLENGTHS
// NOLENGTHS: error: the size of dimension 0 of 'dout' is not known: give --extent=dout:0=SIZE or --lengths
// RUN: not varlen-run %s --entry=gradients --random=1 --lengths=3,5 --extent=dlse:1=7 2>&1 | FileCheck %s --check-prefix=FEW
// FEW: error: argument 'dout' has 7 rows: the lengths need at least 8
// RUN: not varlen-run %s --entry=gradients --random=1 --lengths=3,5 --extent=dlse:1=9 --extent=out:0=10 2>&1 | FileCheck %s --check-prefix=DISAGREE
// DISAGREE: error: argument 'dlse' has 9 query rows and 'q' 10: expected the same number
// RUN: not varlen-run %s --entry=both --random=1 --lengths=3,5 --lengths-k=4,1 2>&1 | FileCheck %s --check-prefix=BOTH
// BOTH: error: argument 'q' is used for queries and for keys: --lengths-k must not differ from --lengths
// RUN: not varlen-run %s --entry=lists --random=1 --lengths=3,5 2>&1 | FileCheck %s --check-prefix=LISTS
// LISTS: error: argument 'used' is used as seqused and as q_offset: --random cannot make it, give it in a file

func.func @gradients(%dout: tensor<?x2x16xf32> {varlen.name = "dout"},
                     %q: tensor<?x2x16xf32> {varlen.name = "q"},
                     %k: tensor<?x1x16xf32> {varlen.name = "k"},
                     %v: tensor<?x1x16xf32> {varlen.name = "v"},
                     %out: tensor<?x2x16xf32> {varlen.name = "out"},
                     %lse: tensor<2x?xf32> {varlen.name = "lse"},
                     %cu_q: tensor<?xi32> {varlen.name = "cu_q"},
                     %cu_k: tensor<?xi32> {varlen.name = "cu_k"},
                     %dlse: tensor<2x?xf32> {varlen.name = "dlse"})
    -> (tensor<?x2x16xf32> {varlen.name = "dq"}, tensor<?x1x16xf32> {varlen.name = "dk"},
        tensor<?x1x16xf32> {varlen.name = "dv"}, tensor<2x?xf32> {varlen.name = "dlse"}) {
  %dq, %dk, %dv = varlen.attn_grad %dout, %q, %k, %v, %out, %lse, %cu_q, %cu_k dlse(%dlse)
    : (tensor<?x2x16xf32>, tensor<?x2x16xf32>, tensor<?x1x16xf32>, tensor<?x1x16xf32>,
       tensor<?x2x16xf32>, tensor<2x?xf32>, tensor<?xi32>, tensor<?xi32>, tensor<2x?xf32>)
    -> (tensor<?x2x16xf32>, tensor<?x1x16xf32>, tensor<?x1x16xf32>)
  return %dq, %dk, %dv, %dlse
    : tensor<?x2x16xf32>, tensor<?x1x16xf32>, tensor<?x1x16xf32>, tensor<2x?xf32>
}

func.func @buffers(%dout: memref<?x?x24xf32> {varlen.name = "dout"},
                   %q: memref<?x?x8xf32> {varlen.name = "q"},
                   %k: memref<?x?x8xf32> {varlen.name = "k"},
                   %v: memref<?x?x24xf32> {varlen.name = "v"},
                   %out: memref<?x?x24xf32> {varlen.name = "out"},
                   %lse: memref<?x?xf32> {varlen.name = "lse"},
                   %cu: memref<?xi32> {varlen.name = "cu"},
                   %sink: memref<?xf32> {varlen.name = "sink"},
                   %dq: memref<?x?x8xf32> {varlen.name = "dq"},
                   %dk: memref<?x?x8xf32> {varlen.name = "dk"},
                   %dv: memref<?x?x24xf32> {varlen.name = "dv"},
                   %dsink: memref<?xf32> {varlen.name = "dsink"}) {
  varlen.attn_grad %dout, %q, %k, %v, %out, %lse, %cu, %cu sink(%sink)
      outs(%dq, %dk, %dv, %dsink)
    : (memref<?x?x24xf32>, memref<?x?x8xf32>, memref<?x?x8xf32>, memref<?x?x24xf32>,
       memref<?x?x24xf32>, memref<?x?xf32>, memref<?xi32>, memref<?xi32>, memref<?xf32>,
       memref<?x?x8xf32>, memref<?x?x8xf32>, memref<?x?x24xf32>, memref<?xf32>) -> ()
  return
}

func.func @forward(%q: tensor<?x2x16xf32> {varlen.name = "q"},
                   %kv: tensor<?x2x16xf32> {varlen.name = "kv"},
                   %cu: tensor<?xi32> {varlen.name = "cu"})
    -> (tensor<?x2x16xf32> {varlen.name = "out"}) {
  %out, %lse = varlen.attn %q, %kv, %kv, %cu, %cu
    : (tensor<?x2x16xf32>, tensor<?x2x16xf32>, tensor<?x2x16xf32>, tensor<?xi32>, tensor<?xi32>)
    -> (tensor<?x2x16xf32>, tensor<2x?xf32>)
  return %out : tensor<?x2x16xf32>
}

// What are queries to one attention are keys to the other.
func.func @both(%q: tensor<?x2x16xf32> {varlen.name = "q"},
                %k: tensor<?x2x16xf32> {varlen.name = "k"},
                %dout: tensor<?x2x16xf32> {varlen.name = "dout"},
                %cu_q: tensor<?xi32> {varlen.name = "cu_q"},
                %cu_k: tensor<?xi32> {varlen.name = "cu_k"}) -> tensor<?x2x16xf32> {
  %out, %lse = varlen.attn %k, %q, %q, %cu_k, %cu_q
    : (tensor<?x2x16xf32>, tensor<?x2x16xf32>, tensor<?x2x16xf32>, tensor<?xi32>, tensor<?xi32>)
    -> (tensor<?x2x16xf32>, tensor<2x?xf32>)
  %dq, %dk, %dv = varlen.attn_grad %dout, %q, %k, %k, %out, %lse, %cu_q, %cu_k
    : (tensor<?x2x16xf32>, tensor<?x2x16xf32>, tensor<?x2x16xf32>, tensor<?x2x16xf32>,
       tensor<?x2x16xf32>, tensor<2x?xf32>, tensor<?xi32>, tensor<?xi32>)
    -> (tensor<?x2x16xf32>, tensor<?x2x16xf32>, tensor<?x2x16xf32>)
  return %dq : tensor<?x2x16xf32>
}

func.func @lists(%q: tensor<?x2x16xf32> {varlen.name = "q"},
                 %cu: tensor<?xi32> {varlen.name = "cu"},
                 %used: tensor<?xi32> {varlen.name = "used"}) -> tensor<?x2x16xf32> {
  %out, %lse = varlen.attn %q, %q, %q, %cu, %cu seqused_k(%used) q_offset(%used)
    : (tensor<?x2x16xf32>, tensor<?x2x16xf32>, tensor<?x2x16xf32>, tensor<?xi32>,
       tensor<?xi32>, tensor<?xi32>, tensor<?xi32>)
    -> (tensor<?x2x16xf32>, tensor<2x?xf32>)
  return %out : tensor<?x2x16xf32>
}
