// A host's module, of upstream's operations and an attention.
func.func @layer(%q: tensor<?x4x16xf32>, %v: tensor<?x4x16xf32>, %cu: tensor<?xi32>) -> tensor<?x4x16xf32> {
  %one = arith.constant 1.0 : f32
  %out, %lse = varlen.attn %q, %q, %v, %cu, %cu {mask = #varlen.mask<causal>}
      : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?xi32>, tensor<?xi32>)
      -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
  %c0 = arith.constant 0 : index
  %n = tensor.dim %q, %c0 : tensor<?x4x16xf32>
  %init = tensor.empty(%n) : tensor<?x4x16xf32>
  %ones = linalg.fill ins(%one : f32) outs(%init : tensor<?x4x16xf32>) -> tensor<?x4x16xf32>
  %r = linalg.add ins(%out, %ones : tensor<?x4x16xf32>, tensor<?x4x16xf32>)
                  outs(%init : tensor<?x4x16xf32>) -> tensor<?x4x16xf32>
  return %r : tensor<?x4x16xf32>
}

func.func private @printMemrefF32(tensor<*xf32>)

// Two sequences, of 3 rows and of 1. All keys are alike, row i has values i.
func.func @main() {
  %c4 = arith.constant 4 : index
  %one = arith.constant 1.0 : f32
  %q0 = tensor.splat %one[%c4] : tensor<?x4x16xf32>
  %v0 = tensor.generate %c4 {
  ^bb0(%i: index, %h: index, %d: index):
    %x = arith.index_cast %i : index to i32
    %f = arith.sitofp %x : i32 to f32
    tensor.yield %f : f32
  } : tensor<?x4x16xf32>
  %cu = arith.constant dense<[0, 3, 4]> : tensor<3xi32>
  %cu0 = tensor.cast %cu : tensor<3xi32> to tensor<?xi32>
  %r = call @layer(%q0, %v0, %cu0) : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?xi32>) -> tensor<?x4x16xf32>
  %s = tensor.collapse_shape %r [[0], [1, 2]] : tensor<?x4x16xf32> into tensor<?x64xf32>
  %u = tensor.cast %s : tensor<?x64xf32> to tensor<*xf32>
  call @printMemrefF32(%u) : (tensor<*xf32>) -> ()
  return
}
