// By corpus_torch.py, with torch-mlir 20261001 and PyTorch 2.13.0+cpu.
// ----- abs
#map = affine_map<(d0) -> (d0)>
module {
  func.func @main(%arg0: tensor<5xf32>) -> tensor<5xf32> {
    %0 = tensor.empty() : tensor<5xf32>
    %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%arg0 : tensor<5xf32>) outs(%0 : tensor<5xf32>) {
    ^bb0(%in: f32, %out: f32):
      %2 = math.absf %in : f32
      linalg.yield %2 : f32
    } -> tensor<5xf32>
    return %1 : tensor<5xf32>
  }
}
// ----- ceil
#map = affine_map<(d0) -> (d0)>
module {
  func.func @main(%arg0: tensor<5xf32>) -> tensor<5xf32> {
    %0 = tensor.empty() : tensor<5xf32>
    %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%arg0 : tensor<5xf32>) outs(%0 : tensor<5xf32>) {
    ^bb0(%in: f32, %out: f32):
      %2 = math.ceil %in : f32
      linalg.yield %2 : f32
    } -> tensor<5xf32>
    return %1 : tensor<5xf32>
  }
}
// ----- cos
#map = affine_map<(d0) -> (d0)>
module {
  func.func @main(%arg0: tensor<5xf32>) -> tensor<5xf32> {
    %0 = tensor.empty() : tensor<5xf32>
    %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%arg0 : tensor<5xf32>) outs(%0 : tensor<5xf32>) {
    ^bb0(%in: f32, %out: f32):
      %2 = math.cos %in : f32
      linalg.yield %2 : f32
    } -> tensor<5xf32>
    return %1 : tensor<5xf32>
  }
}
// ----- exp
#map = affine_map<(d0) -> (d0)>
module {
  func.func @main(%arg0: tensor<5xf32>) -> tensor<5xf32> {
    %0 = tensor.empty() : tensor<5xf32>
    %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%arg0 : tensor<5xf32>) outs(%0 : tensor<5xf32>) {
    ^bb0(%in: f32, %out: f32):
      %2 = math.exp %in : f32
      linalg.yield %2 : f32
    } -> tensor<5xf32>
    return %1 : tensor<5xf32>
  }
}
// ----- expm1
#map = affine_map<(d0) -> (d0)>
module {
  func.func @main(%arg0: tensor<5xf32>) -> tensor<5xf32> {
    %0 = tensor.empty() : tensor<5xf32>
    %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%arg0 : tensor<5xf32>) outs(%0 : tensor<5xf32>) {
    ^bb0(%in: f32, %out: f32):
      %2 = math.expm1 %in : f32
      linalg.yield %2 : f32
    } -> tensor<5xf32>
    return %1 : tensor<5xf32>
  }
}
// ----- floor
#map = affine_map<(d0) -> (d0)>
module {
  func.func @main(%arg0: tensor<5xf32>) -> tensor<5xf32> {
    %0 = tensor.empty() : tensor<5xf32>
    %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%arg0 : tensor<5xf32>) outs(%0 : tensor<5xf32>) {
    ^bb0(%in: f32, %out: f32):
      %2 = math.floor %in : f32
      linalg.yield %2 : f32
    } -> tensor<5xf32>
    return %1 : tensor<5xf32>
  }
}
// ----- neg
#map = affine_map<(d0) -> (d0)>
module {
  func.func @main(%arg0: tensor<5xf32>) -> tensor<5xf32> {
    %0 = tensor.empty() : tensor<5xf32>
    %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%arg0 : tensor<5xf32>) outs(%0 : tensor<5xf32>) {
    ^bb0(%in: f32, %out: f32):
      %2 = arith.negf %in : f32
      linalg.yield %2 : f32
    } -> tensor<5xf32>
    return %1 : tensor<5xf32>
  }
}
// ----- round
#map = affine_map<(d0) -> (d0)>
module {
  func.func @main(%arg0: tensor<5xf32>) -> tensor<5xf32> {
    %0 = tensor.empty() : tensor<5xf32>
    %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%arg0 : tensor<5xf32>) outs(%0 : tensor<5xf32>) {
    ^bb0(%in: f32, %out: f32):
      %2 = math.roundeven %in : f32
      linalg.yield %2 : f32
    } -> tensor<5xf32>
    return %1 : tensor<5xf32>
  }
}
// ----- sign
#map = affine_map<(d0) -> (d0)>
#map1 = affine_map<(d0) -> ()>
module {
  func.func @main(%arg0: tensor<5xf32>) -> tensor<5xf32> {
    %cst = arith.constant dense<-1.000000e+00> : tensor<f32>
    %cst_0 = arith.constant dense<0.000000e+00> : tensor<f32>
    %cst_1 = arith.constant dense<1.000000e+00> : tensor<f32>
    %cst_2 = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<5xi1>
    %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%arg0 : tensor<5xf32>) outs(%0 : tensor<5xi1>) {
    ^bb0(%in: f32, %out: i1):
      %6 = arith.cmpf ogt, %in, %cst_2 : f32
      linalg.yield %6 : i1
    } -> tensor<5xi1>
    %2 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%arg0 : tensor<5xf32>) outs(%0 : tensor<5xi1>) {
    ^bb0(%in: f32, %out: i1):
      %6 = arith.cmpf olt, %in, %cst_2 : f32
      linalg.yield %6 : i1
    } -> tensor<5xi1>
    %3 = tensor.empty() : tensor<5xf32>
    %4 = linalg.generic {indexing_maps = [#map, #map1, #map1, #map], iterator_types = ["parallel"]} ins(%1, %cst_1, %cst_0 : tensor<5xi1>, tensor<f32>, tensor<f32>) outs(%3 : tensor<5xf32>) {
    ^bb0(%in: i1, %in_3: f32, %in_4: f32, %out: f32):
      %6 = arith.select %in, %in_3, %in_4 : f32
      linalg.yield %6 : f32
    } -> tensor<5xf32>
    %5 = linalg.generic {indexing_maps = [#map, #map1, #map, #map], iterator_types = ["parallel"]} ins(%2, %cst, %4 : tensor<5xi1>, tensor<f32>, tensor<5xf32>) outs(%3 : tensor<5xf32>) {
    ^bb0(%in: i1, %in_3: f32, %in_4: f32, %out: f32):
      %6 = arith.select %in, %in_3, %in_4 : f32
      linalg.yield %6 : f32
    } -> tensor<5xf32>
    return %5 : tensor<5xf32>
  }
}
// ----- sin
#map = affine_map<(d0) -> (d0)>
module {
  func.func @main(%arg0: tensor<5xf32>) -> tensor<5xf32> {
    %0 = tensor.empty() : tensor<5xf32>
    %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%arg0 : tensor<5xf32>) outs(%0 : tensor<5xf32>) {
    ^bb0(%in: f32, %out: f32):
      %2 = math.sin %in : f32
      linalg.yield %2 : f32
    } -> tensor<5xf32>
    return %1 : tensor<5xf32>
  }
}
// ----- tanh
#map = affine_map<(d0) -> (d0)>
module {
  func.func @main(%arg0: tensor<5xf32>) -> tensor<5xf32> {
    %0 = tensor.empty() : tensor<5xf32>
    %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%arg0 : tensor<5xf32>) outs(%0 : tensor<5xf32>) {
    ^bb0(%in: f32, %out: f32):
      %2 = math.tanh %in : f32
      linalg.yield %2 : f32
    } -> tensor<5xf32>
    return %1 : tensor<5xf32>
  }
}
// ----- atan
#map = affine_map<(d0) -> (d0)>
module {
  func.func @main(%arg0: tensor<5xf32>) -> tensor<5xf32> {
    %0 = tensor.empty() : tensor<5xf32>
    %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%arg0 : tensor<5xf32>) outs(%0 : tensor<5xf32>) {
    ^bb0(%in: f32, %out: f32):
      %2 = math.atan %in : f32
      linalg.yield %2 : f32
    } -> tensor<5xf32>
    return %1 : tensor<5xf32>
  }
}
// ----- erf
#map = affine_map<(d0) -> (d0)>
module {
  func.func @main(%arg0: tensor<5xf32>) -> tensor<5xf32> {
    %0 = tensor.empty() : tensor<5xf32>
    %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%arg0 : tensor<5xf32>) outs(%0 : tensor<5xf32>) {
    ^bb0(%in: f32, %out: f32):
      %2 = math.erf %in : f32
      linalg.yield %2 : f32
    } -> tensor<5xf32>
    return %1 : tensor<5xf32>
  }
}
// ----- relu
#map = affine_map<(d0) -> (d0)>
module {
  func.func @main(%arg0: tensor<5xf32>) -> tensor<5xf32> {
    %cst = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<5xf32>
    %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%arg0 : tensor<5xf32>) outs(%0 : tensor<5xf32>) {
    ^bb0(%in: f32, %out: f32):
      %2 = arith.cmpf ugt, %in, %cst : f32
      %3 = arith.select %2, %in, %cst : f32
      linalg.yield %3 : f32
    } -> tensor<5xf32>
    return %1 : tensor<5xf32>
  }
}
// ----- sigmoid
#map = affine_map<(d0) -> (d0)>
module {
  func.func @main(%arg0: tensor<5xf32>) -> tensor<5xf32> {
    %cst = arith.constant 1.000000e+00 : f32
    %0 = tensor.empty() : tensor<5xf32>
    %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%arg0 : tensor<5xf32>) outs(%0 : tensor<5xf32>) {
    ^bb0(%in: f32, %out: f32):
      %2 = arith.negf %in : f32
      %3 = math.exp %2 : f32
      %4 = arith.addf %3, %cst : f32
      %5 = arith.divf %cst, %4 : f32
      linalg.yield %5 : f32
    } -> tensor<5xf32>
    return %1 : tensor<5xf32>
  }
}
// ----- softplus
#map = affine_map<(d0) -> (d0)>
module {
  func.func @main(%arg0: tensor<5xf32>) -> tensor<5xf32> {
    %cst = arith.constant 2.000000e+01 : f32
    %0 = tensor.empty() : tensor<5xf32>
    %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%arg0 : tensor<5xf32>) outs(%0 : tensor<5xf32>) {
    ^bb0(%in: f32, %out: f32):
      %6 = math.exp %in : f32
      linalg.yield %6 : f32
    } -> tensor<5xf32>
    %2 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%1 : tensor<5xf32>) outs(%0 : tensor<5xf32>) {
    ^bb0(%in: f32, %out: f32):
      %6 = math.log1p %in : f32
      linalg.yield %6 : f32
    } -> tensor<5xf32>
    %3 = tensor.empty() : tensor<5xi1>
    %4 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%arg0 : tensor<5xf32>) outs(%3 : tensor<5xi1>) {
    ^bb0(%in: f32, %out: i1):
      %6 = arith.cmpf ogt, %in, %cst : f32
      linalg.yield %6 : i1
    } -> tensor<5xi1>
    %5 = linalg.generic {indexing_maps = [#map, #map, #map, #map], iterator_types = ["parallel"]} ins(%4, %arg0, %2 : tensor<5xi1>, tensor<5xf32>, tensor<5xf32>) outs(%0 : tensor<5xf32>) {
    ^bb0(%in: i1, %in_0: f32, %in_1: f32, %out: f32):
      %6 = arith.select %in, %in_0, %in_1 : f32
      linalg.yield %6 : f32
    } -> tensor<5xf32>
    return %5 : tensor<5xf32>
  }
}
// ----- silu
#map = affine_map<(d0) -> (d0)>
module {
  func.func @main(%arg0: tensor<5xf32>) -> tensor<5xf32> {
    %cst = arith.constant 1.000000e+00 : f32
    %0 = tensor.empty() : tensor<5xf32>
    %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%arg0 : tensor<5xf32>) outs(%0 : tensor<5xf32>) {
    ^bb0(%in: f32, %out: f32):
      %3 = arith.negf %in : f32
      %4 = math.exp %3 : f32
      %5 = arith.addf %4, %cst : f32
      %6 = arith.divf %cst, %5 : f32
      linalg.yield %6 : f32
    } -> tensor<5xf32>
    %2 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel"]} ins(%arg0, %1 : tensor<5xf32>, tensor<5xf32>) outs(%0 : tensor<5xf32>) {
    ^bb0(%in: f32, %in_0: f32, %out: f32):
      %3 = arith.mulf %in, %in_0 : f32
      linalg.yield %3 : f32
    } -> tensor<5xf32>
    return %2 : tensor<5xf32>
  }
}
// ----- elu
#map = affine_map<(d0) -> ()>
#map1 = affine_map<(d0) -> (d0)>
module {
  func.func @main(%arg0: tensor<5xf32>) -> tensor<5xf32> {
    %cst = arith.constant dense<0.000000e+00> : tensor<f32>
    %cst_0 = arith.constant 1.000000e+00 : f32
    %0 = tensor.empty() : tensor<5xf32>
    %1 = linalg.generic {indexing_maps = [#map, #map1, #map1], iterator_types = ["parallel"]} ins(%cst, %arg0 : tensor<f32>, tensor<5xf32>) outs(%0 : tensor<5xf32>) {
    ^bb0(%in: f32, %in_1: f32, %out: f32):
      %6 = arith.cmpf ogt, %in, %in_1 : f32
      %7 = arith.select %6, %in, %in_1 : f32
      linalg.yield %7 : f32
    } -> tensor<5xf32>
    %2 = linalg.generic {indexing_maps = [#map, #map1, #map1], iterator_types = ["parallel"]} ins(%cst, %arg0 : tensor<f32>, tensor<5xf32>) outs(%0 : tensor<5xf32>) {
    ^bb0(%in: f32, %in_1: f32, %out: f32):
      %6 = arith.cmpf olt, %in, %in_1 : f32
      %7 = arith.select %6, %in, %in_1 : f32
      linalg.yield %7 : f32
    } -> tensor<5xf32>
    %3 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel"]} ins(%2 : tensor<5xf32>) outs(%0 : tensor<5xf32>) {
    ^bb0(%in: f32, %out: f32):
      %6 = math.exp %in : f32
      linalg.yield %6 : f32
    } -> tensor<5xf32>
    %4 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel"]} ins(%3 : tensor<5xf32>) outs(%0 : tensor<5xf32>) {
    ^bb0(%in: f32, %out: f32):
      %6 = arith.subf %in, %cst_0 : f32
      linalg.yield %6 : f32
    } -> tensor<5xf32>
    %5 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel"]} ins(%1, %4 : tensor<5xf32>, tensor<5xf32>) outs(%0 : tensor<5xf32>) {
    ^bb0(%in: f32, %in_1: f32, %out: f32):
      %6 = arith.addf %in, %in_1 : f32
      linalg.yield %6 : f32
    } -> tensor<5xf32>
    return %5 : tensor<5xf32>
  }
}
// ----- gelu
#map = affine_map<(d0) -> (d0)>
module {
  func.func @main(%arg0: tensor<5xf32>) -> tensor<5xf32> {
    %cst = arith.constant 1.000000e+00 : f32
    %cst_0 = arith.constant 5.000000e-01 : f32
    %cst_1 = arith.constant 1.41421354 : f32
    %0 = tensor.empty() : tensor<5xf32>
    %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%arg0 : tensor<5xf32>) outs(%0 : tensor<5xf32>) {
    ^bb0(%in: f32, %out: f32):
      %2 = arith.divf %in, %cst_1 : f32
      %3 = math.erf %2 : f32
      %4 = arith.addf %3, %cst : f32
      %5 = arith.mulf %4, %cst_0 : f32
      %6 = arith.mulf %in, %5 : f32
      linalg.yield %6 : f32
    } -> tensor<5xf32>
    return %1 : tensor<5xf32>
  }
}
// ----- hardswish
#map = affine_map<(d0) -> (d0)>
module {
  func.func @main(%arg0: tensor<5xf32>) -> tensor<5xf32> {
    %cst = arith.constant 3.000000e+00 : f32
    %cst_0 = arith.constant 0.000000e+00 : f32
    %cst_1 = arith.constant 6.000000e+00 : f32
    %0 = tensor.empty() : tensor<5xf32>
    %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%arg0 : tensor<5xf32>) outs(%0 : tensor<5xf32>) {
    ^bb0(%in: f32, %out: f32):
      %6 = arith.addf %in, %cst : f32
      linalg.yield %6 : f32
    } -> tensor<5xf32>
    %2 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%1 : tensor<5xf32>) outs(%0 : tensor<5xf32>) {
    ^bb0(%in: f32, %out: f32):
      %6 = arith.cmpf ult, %in, %cst_0 : f32
      %7 = arith.select %6, %cst_0, %in : f32
      linalg.yield %7 : f32
    } -> tensor<5xf32>
    %3 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%2 : tensor<5xf32>) outs(%0 : tensor<5xf32>) {
    ^bb0(%in: f32, %out: f32):
      %6 = arith.cmpf ugt, %in, %cst_1 : f32
      %7 = arith.select %6, %cst_1, %in : f32
      linalg.yield %7 : f32
    } -> tensor<5xf32>
    %4 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel"]} ins(%arg0, %3 : tensor<5xf32>, tensor<5xf32>) outs(%0 : tensor<5xf32>) {
    ^bb0(%in: f32, %in_2: f32, %out: f32):
      %6 = arith.mulf %in, %in_2 : f32
      linalg.yield %6 : f32
    } -> tensor<5xf32>
    %5 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%4 : tensor<5xf32>) outs(%0 : tensor<5xf32>) {
    ^bb0(%in: f32, %out: f32):
      %6 = arith.divf %in, %cst_1 : f32
      linalg.yield %6 : f32
    } -> tensor<5xf32>
    return %5 : tensor<5xf32>
  }
}
// ----- leaky_relu
#map = affine_map<(d0) -> ()>
#map1 = affine_map<(d0) -> (d0)>
module {
  func.func @main(%arg0: tensor<5xf32>) -> tensor<5xf32> {
    %cst = arith.constant 1.000000e-02 : f64
    %cst_0 = arith.constant dense<0.000000e+00> : tensor<f32>
    %0 = tensor.empty() : tensor<5xf32>
    %1 = linalg.generic {indexing_maps = [#map, #map1, #map1], iterator_types = ["parallel"]} ins(%cst_0, %arg0 : tensor<f32>, tensor<5xf32>) outs(%0 : tensor<5xf32>) {
    ^bb0(%in: f32, %in_1: f32, %out: f32):
      %5 = arith.cmpf ogt, %in, %in_1 : f32
      %6 = arith.select %5, %in, %in_1 : f32
      linalg.yield %6 : f32
    } -> tensor<5xf32>
    %2 = linalg.generic {indexing_maps = [#map, #map1, #map1], iterator_types = ["parallel"]} ins(%cst_0, %arg0 : tensor<f32>, tensor<5xf32>) outs(%0 : tensor<5xf32>) {
    ^bb0(%in: f32, %in_1: f32, %out: f32):
      %5 = arith.cmpf olt, %in, %in_1 : f32
      %6 = arith.select %5, %in, %in_1 : f32
      linalg.yield %6 : f32
    } -> tensor<5xf32>
    %3 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel"]} ins(%2 : tensor<5xf32>) outs(%0 : tensor<5xf32>) {
    ^bb0(%in: f32, %out: f32):
      %5 = arith.truncf %cst : f64 to f32
      %6 = arith.mulf %in, %5 : f32
      linalg.yield %6 : f32
    } -> tensor<5xf32>
    %4 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel"]} ins(%1, %3 : tensor<5xf32>, tensor<5xf32>) outs(%0 : tensor<5xf32>) {
    ^bb0(%in: f32, %in_1: f32, %out: f32):
      %5 = arith.addf %in, %in_1 : f32
      linalg.yield %5 : f32
    } -> tensor<5xf32>
    return %4 : tensor<5xf32>
  }
}
// ----- mish
#map = affine_map<(d0) -> (d0)>
module {
  func.func @main(%arg0: tensor<5xf32>) -> tensor<5xf32> {
    %cst = arith.constant 2.000000e+01 : f32
    %0 = tensor.empty() : tensor<5xf32>
    %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%arg0 : tensor<5xf32>) outs(%0 : tensor<5xf32>) {
    ^bb0(%in: f32, %out: f32):
      %8 = math.exp %in : f32
      linalg.yield %8 : f32
    } -> tensor<5xf32>
    %2 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%1 : tensor<5xf32>) outs(%0 : tensor<5xf32>) {
    ^bb0(%in: f32, %out: f32):
      %8 = math.log1p %in : f32
      linalg.yield %8 : f32
    } -> tensor<5xf32>
    %3 = tensor.empty() : tensor<5xi1>
    %4 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%arg0 : tensor<5xf32>) outs(%3 : tensor<5xi1>) {
    ^bb0(%in: f32, %out: i1):
      %8 = arith.cmpf ogt, %in, %cst : f32
      linalg.yield %8 : i1
    } -> tensor<5xi1>
    %5 = linalg.generic {indexing_maps = [#map, #map, #map, #map], iterator_types = ["parallel"]} ins(%4, %arg0, %2 : tensor<5xi1>, tensor<5xf32>, tensor<5xf32>) outs(%0 : tensor<5xf32>) {
    ^bb0(%in: i1, %in_0: f32, %in_1: f32, %out: f32):
      %8 = arith.select %in, %in_0, %in_1 : f32
      linalg.yield %8 : f32
    } -> tensor<5xf32>
    %6 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%5 : tensor<5xf32>) outs(%0 : tensor<5xf32>) {
    ^bb0(%in: f32, %out: f32):
      %8 = math.tanh %in : f32
      linalg.yield %8 : f32
    } -> tensor<5xf32>
    %7 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel"]} ins(%arg0, %6 : tensor<5xf32>, tensor<5xf32>) outs(%0 : tensor<5xf32>) {
    ^bb0(%in: f32, %in_0: f32, %out: f32):
      %8 = arith.mulf %in, %in_0 : f32
      linalg.yield %8 : f32
    } -> tensor<5xf32>
    return %7 : tensor<5xf32>
  }
}
// ----- logsigmoid
#map = affine_map<(d0) -> ()>
#map1 = affine_map<(d0) -> (d0)>
module {
  func.func @main(%arg0: tensor<5xf32>) -> tensor<5xf32> {
    %cst = arith.constant dense<0.000000e+00> : tensor<f32>
    %0 = tensor.empty() : tensor<5xf32>
    %1 = linalg.generic {indexing_maps = [#map, #map1, #map1], iterator_types = ["parallel"]} ins(%cst, %arg0 : tensor<f32>, tensor<5xf32>) outs(%0 : tensor<5xf32>) {
    ^bb0(%in: f32, %in_0: f32, %out: f32):
      %7 = arith.cmpf olt, %in, %in_0 : f32
      %8 = arith.select %7, %in, %in_0 : f32
      linalg.yield %8 : f32
    } -> tensor<5xf32>
    %2 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel"]} ins(%arg0 : tensor<5xf32>) outs(%0 : tensor<5xf32>) {
    ^bb0(%in: f32, %out: f32):
      %7 = math.absf %in : f32
      linalg.yield %7 : f32
    } -> tensor<5xf32>
    %3 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel"]} ins(%2 : tensor<5xf32>) outs(%0 : tensor<5xf32>) {
    ^bb0(%in: f32, %out: f32):
      %7 = arith.negf %in : f32
      linalg.yield %7 : f32
    } -> tensor<5xf32>
    %4 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel"]} ins(%3 : tensor<5xf32>) outs(%0 : tensor<5xf32>) {
    ^bb0(%in: f32, %out: f32):
      %7 = math.exp %in : f32
      linalg.yield %7 : f32
    } -> tensor<5xf32>
    %5 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel"]} ins(%4 : tensor<5xf32>) outs(%0 : tensor<5xf32>) {
    ^bb0(%in: f32, %out: f32):
      %7 = math.log1p %in : f32
      linalg.yield %7 : f32
    } -> tensor<5xf32>
    %6 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel"]} ins(%1, %5 : tensor<5xf32>, tensor<5xf32>) outs(%0 : tensor<5xf32>) {
    ^bb0(%in: f32, %in_0: f32, %out: f32):
      %7 = arith.subf %in, %in_0 : f32
      linalg.yield %7 : f32
    } -> tensor<5xf32>
    return %6 : tensor<5xf32>
  }
}
// ----- square
#map = affine_map<(d0) -> (d0)>
module {
  func.func @main(%arg0: tensor<5xf32>) -> tensor<5xf32> {
    %c2_i64 = arith.constant 2 : i64
    %0 = tensor.empty() : tensor<5xf32>
    %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%arg0 : tensor<5xf32>) outs(%0 : tensor<5xf32>) {
    ^bb0(%in: f32, %out: f32):
      %2 = math.fpowi %in, %c2_i64 : f32, i64
      linalg.yield %2 : f32
    } -> tensor<5xf32>
    return %1 : tensor<5xf32>
  }
}
// ----- log
#map = affine_map<(d0) -> (d0)>
module {
  func.func @main(%arg0: tensor<5xf32>) -> tensor<5xf32> {
    %0 = tensor.empty() : tensor<5xf32>
    %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%arg0 : tensor<5xf32>) outs(%0 : tensor<5xf32>) {
    ^bb0(%in: f32, %out: f32):
      %2 = math.log %in : f32
      linalg.yield %2 : f32
    } -> tensor<5xf32>
    return %1 : tensor<5xf32>
  }
}
// ----- log2
#map = affine_map<(d0) -> (d0)>
module {
  func.func @main(%arg0: tensor<5xf32>) -> tensor<5xf32> {
    %0 = tensor.empty() : tensor<5xf32>
    %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%arg0 : tensor<5xf32>) outs(%0 : tensor<5xf32>) {
    ^bb0(%in: f32, %out: f32):
      %2 = math.log2 %in : f32
      linalg.yield %2 : f32
    } -> tensor<5xf32>
    return %1 : tensor<5xf32>
  }
}
// ----- log1p
#map = affine_map<(d0) -> (d0)>
module {
  func.func @main(%arg0: tensor<5xf32>) -> tensor<5xf32> {
    %0 = tensor.empty() : tensor<5xf32>
    %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%arg0 : tensor<5xf32>) outs(%0 : tensor<5xf32>) {
    ^bb0(%in: f32, %out: f32):
      %2 = math.log1p %in : f32
      linalg.yield %2 : f32
    } -> tensor<5xf32>
    return %1 : tensor<5xf32>
  }
}
// ----- sqrt
#map = affine_map<(d0) -> (d0)>
module {
  func.func @main(%arg0: tensor<5xf32>) -> tensor<5xf32> {
    %0 = tensor.empty() : tensor<5xf32>
    %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%arg0 : tensor<5xf32>) outs(%0 : tensor<5xf32>) {
    ^bb0(%in: f32, %out: f32):
      %2 = math.sqrt %in : f32
      linalg.yield %2 : f32
    } -> tensor<5xf32>
    return %1 : tensor<5xf32>
  }
}
// ----- rsqrt
#map = affine_map<(d0) -> (d0)>
module {
  func.func @main(%arg0: tensor<5xf32>) -> tensor<5xf32> {
    %0 = tensor.empty() : tensor<5xf32>
    %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%arg0 : tensor<5xf32>) outs(%0 : tensor<5xf32>) {
    ^bb0(%in: f32, %out: f32):
      %2 = math.rsqrt %in : f32
      linalg.yield %2 : f32
    } -> tensor<5xf32>
    return %1 : tensor<5xf32>
  }
}
// ----- reciprocal
#map = affine_map<(d0) -> (d0)>
module {
  func.func @main(%arg0: tensor<5xf32>) -> tensor<5xf32> {
    %cst = arith.constant 0.000000e+00 : f32
    %cst_0 = arith.constant 1.000000e+00 : f32
    %0 = tensor.empty() : tensor<5xf32>
    %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%arg0 : tensor<5xf32>) outs(%0 : tensor<5xf32>) {
    ^bb0(%in: f32, %out: f32):
      %2 = arith.cmpf one, %in, %cst : f32
      cf.assert %2, "unimplemented: tensor with zero element"
      %3 = arith.divf %cst_0, %in : f32
      linalg.yield %3 : f32
    } -> tensor<5xf32>
    return %1 : tensor<5xf32>
  }
}
// ----- pow
#map = affine_map<(d0) -> (d0)>
module {
  func.func @main(%arg0: tensor<5xf32>) -> tensor<5xf32> {
    %cst = arith.constant 2.500000e+00 : f32
    %0 = tensor.empty() : tensor<5xf32>
    %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%arg0 : tensor<5xf32>) outs(%0 : tensor<5xf32>) {
    ^bb0(%in: f32, %out: f32):
      %2 = math.powf %in, %cst : f32
      linalg.yield %2 : f32
    } -> tensor<5xf32>
    return %1 : tensor<5xf32>
  }
}
// ----- add
#map = affine_map<(d0, d1) -> (d0, d1)>
module {
  func.func @main(%arg0: tensor<4x6xf32>, %arg1: tensor<4x6xf32>) -> tensor<4x6xf32> {
    %0 = tensor.empty() : tensor<4x6xf32>
    %1 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel"]} ins(%arg0, %arg1 : tensor<4x6xf32>, tensor<4x6xf32>) outs(%0 : tensor<4x6xf32>) {
    ^bb0(%in: f32, %in_0: f32, %out: f32):
      %2 = arith.addf %in, %in_0 : f32
      linalg.yield %2 : f32
    } -> tensor<4x6xf32>
    return %1 : tensor<4x6xf32>
  }
}
// ----- sub
#map = affine_map<(d0, d1) -> (d0, d1)>
module {
  func.func @main(%arg0: tensor<4x6xf32>, %arg1: tensor<4x6xf32>) -> tensor<4x6xf32> {
    %0 = tensor.empty() : tensor<4x6xf32>
    %1 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel"]} ins(%arg0, %arg1 : tensor<4x6xf32>, tensor<4x6xf32>) outs(%0 : tensor<4x6xf32>) {
    ^bb0(%in: f32, %in_0: f32, %out: f32):
      %2 = arith.subf %in, %in_0 : f32
      linalg.yield %2 : f32
    } -> tensor<4x6xf32>
    return %1 : tensor<4x6xf32>
  }
}
// ----- mul
#map = affine_map<(d0, d1) -> (d0, d1)>
module {
  func.func @main(%arg0: tensor<4x6xf32>, %arg1: tensor<4x6xf32>) -> tensor<4x6xf32> {
    %0 = tensor.empty() : tensor<4x6xf32>
    %1 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel"]} ins(%arg0, %arg1 : tensor<4x6xf32>, tensor<4x6xf32>) outs(%0 : tensor<4x6xf32>) {
    ^bb0(%in: f32, %in_0: f32, %out: f32):
      %2 = arith.mulf %in, %in_0 : f32
      linalg.yield %2 : f32
    } -> tensor<4x6xf32>
    return %1 : tensor<4x6xf32>
  }
}
// ----- maximum
#map = affine_map<(d0, d1) -> (d0, d1)>
module {
  func.func @main(%arg0: tensor<4x6xf32>, %arg1: tensor<4x6xf32>) -> tensor<4x6xf32> {
    %0 = tensor.empty() : tensor<4x6xf32>
    %1 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel"]} ins(%arg0, %arg1 : tensor<4x6xf32>, tensor<4x6xf32>) outs(%0 : tensor<4x6xf32>) {
    ^bb0(%in: f32, %in_0: f32, %out: f32):
      %2 = arith.cmpf ogt, %in, %in_0 : f32
      %3 = arith.select %2, %in, %in_0 : f32
      linalg.yield %3 : f32
    } -> tensor<4x6xf32>
    return %1 : tensor<4x6xf32>
  }
}
// ----- minimum
#map = affine_map<(d0, d1) -> (d0, d1)>
module {
  func.func @main(%arg0: tensor<4x6xf32>, %arg1: tensor<4x6xf32>) -> tensor<4x6xf32> {
    %0 = tensor.empty() : tensor<4x6xf32>
    %1 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel"]} ins(%arg0, %arg1 : tensor<4x6xf32>, tensor<4x6xf32>) outs(%0 : tensor<4x6xf32>) {
    ^bb0(%in: f32, %in_0: f32, %out: f32):
      %2 = arith.cmpf olt, %in, %in_0 : f32
      %3 = arith.select %2, %in, %in_0 : f32
      linalg.yield %3 : f32
    } -> tensor<4x6xf32>
    return %1 : tensor<4x6xf32>
  }
}
// ----- atan2
#map = affine_map<(d0, d1) -> (d0, d1)>
module {
  func.func @main(%arg0: tensor<4x6xf32>, %arg1: tensor<4x6xf32>) -> tensor<4x6xf32> {
    %0 = tensor.empty() : tensor<4x6xf32>
    %1 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel"]} ins(%arg0, %arg1 : tensor<4x6xf32>, tensor<4x6xf32>) outs(%0 : tensor<4x6xf32>) {
    ^bb0(%in: f32, %in_0: f32, %out: f32):
      %2 = math.atan2 %in, %in_0 : f32
      linalg.yield %2 : f32
    } -> tensor<4x6xf32>
    return %1 : tensor<4x6xf32>
  }
}
// ----- lerp
#map = affine_map<() -> ()>
#map1 = affine_map<(d0, d1) -> ()>
#map2 = affine_map<(d0, d1) -> (d0, d1)>
module {
  func.func @main(%arg0: tensor<4x6xf32>, %arg1: tensor<4x6xf32>) -> tensor<4x6xf32> {
    %cst = arith.constant dense<-0.699999988> : tensor<f32>
    %cst_0 = arith.constant dense<3.000000e-01> : tensor<f32>
    %cst_1 = arith.constant 5.000000e-01 : f64
    %0 = tensor.empty() : tensor<f32>
    %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = []} ins(%cst_0 : tensor<f32>) outs(%0 : tensor<f32>) {
    ^bb0(%in: f32, %out: f32):
      %10 = math.absf %in : f32
      linalg.yield %10 : f32
    } -> tensor<f32>
    %2 = tensor.empty() : tensor<i1>
    %3 = linalg.generic {indexing_maps = [#map, #map], iterator_types = []} ins(%1 : tensor<f32>) outs(%2 : tensor<i1>) {
    ^bb0(%in: f32, %out: i1):
      %10 = arith.extf %in : f32 to f64
      %11 = arith.cmpf oge, %10, %cst_1 : f64
      linalg.yield %11 : i1
    } -> tensor<i1>
    %4 = linalg.generic {indexing_maps = [#map, #map, #map, #map], iterator_types = []} ins(%3, %cst, %cst_0 : tensor<i1>, tensor<f32>, tensor<f32>) outs(%0 : tensor<f32>) {
    ^bb0(%in: i1, %in_2: f32, %in_3: f32, %out: f32):
      %10 = arith.select %in, %in_2, %in_3 : f32
      linalg.yield %10 : f32
    } -> tensor<f32>
    %5 = tensor.empty() : tensor<4x6xf32>
    %6 = linalg.generic {indexing_maps = [#map1, #map2, #map2, #map2], iterator_types = ["parallel", "parallel"]} ins(%3, %arg1, %arg0 : tensor<i1>, tensor<4x6xf32>, tensor<4x6xf32>) outs(%5 : tensor<4x6xf32>) {
    ^bb0(%in: i1, %in_2: f32, %in_3: f32, %out: f32):
      %10 = arith.select %in, %in_2, %in_3 : f32
      linalg.yield %10 : f32
    } -> tensor<4x6xf32>
    %7 = linalg.generic {indexing_maps = [#map2, #map2, #map2], iterator_types = ["parallel", "parallel"]} ins(%arg1, %arg0 : tensor<4x6xf32>, tensor<4x6xf32>) outs(%5 : tensor<4x6xf32>) {
    ^bb0(%in: f32, %in_2: f32, %out: f32):
      %10 = arith.subf %in, %in_2 : f32
      linalg.yield %10 : f32
    } -> tensor<4x6xf32>
    %8 = linalg.generic {indexing_maps = [#map1, #map2, #map2], iterator_types = ["parallel", "parallel"]} ins(%4, %7 : tensor<f32>, tensor<4x6xf32>) outs(%5 : tensor<4x6xf32>) {
    ^bb0(%in: f32, %in_2: f32, %out: f32):
      %10 = arith.mulf %in, %in_2 : f32
      linalg.yield %10 : f32
    } -> tensor<4x6xf32>
    %9 = linalg.generic {indexing_maps = [#map2, #map2, #map2], iterator_types = ["parallel", "parallel"]} ins(%8, %6 : tensor<4x6xf32>, tensor<4x6xf32>) outs(%5 : tensor<4x6xf32>) {
    ^bb0(%in: f32, %in_2: f32, %out: f32):
      %10 = arith.addf %in, %in_2 : f32
      linalg.yield %10 : f32
    } -> tensor<4x6xf32>
    return %9 : tensor<4x6xf32>
  }
}
// ----- gelu_tanh
#map = affine_map<(d0) -> (d0)>
module {
  func.func @main(%arg0: tensor<5xf32>) -> tensor<5xf32> {
    %c3_i64 = arith.constant 3 : i64
    %cst = arith.constant 4.471500e-02 : f32
    %cst_0 = arith.constant 7.977240e-01 : f32
    %cst_1 = arith.constant 1.000000e+00 : f32
    %cst_2 = arith.constant 5.000000e-01 : f32
    %0 = tensor.empty() : tensor<5xf32>
    %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%arg0 : tensor<5xf32>) outs(%0 : tensor<5xf32>) {
    ^bb0(%in: f32, %out: f32):
      %2 = math.fpowi %in, %c3_i64 : f32, i64
      %3 = arith.mulf %2, %cst : f32
      %4 = arith.addf %in, %3 : f32
      %5 = arith.mulf %4, %cst_0 : f32
      %6 = math.tanh %5 : f32
      %7 = arith.addf %6, %cst_1 : f32
      %8 = arith.mulf %7, %cst_2 : f32
      %9 = arith.mulf %in, %8 : f32
      linalg.yield %9 : f32
    } -> tensor<5xf32>
    return %1 : tensor<5xf32>
  }
}
// ----- div
#map = affine_map<(d0, d1) -> (d0, d1)>
module {
  func.func @main(%arg0: tensor<4x6xf32>, %arg1: tensor<4x6xf32>) -> tensor<4x6xf32> {
    %0 = tensor.empty() : tensor<4x6xf32>
    %1 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel"]} ins(%arg0, %arg1 : tensor<4x6xf32>, tensor<4x6xf32>) outs(%0 : tensor<4x6xf32>) {
    ^bb0(%in: f32, %in_0: f32, %out: f32):
      %2 = arith.divf %in, %in_0 : f32
      linalg.yield %2 : f32
    } -> tensor<4x6xf32>
    return %1 : tensor<4x6xf32>
  }
}
// ----- add_row
#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0, d1) -> (d1)>
module {
  func.func @main(%arg0: tensor<?x?xf32>, %arg1: tensor<?xf32>) -> tensor<?x?xf32> {
    %c1 = arith.constant 1 : index
    %c0 = arith.constant 0 : index
    %dim = tensor.dim %arg0, %c0 : tensor<?x?xf32>
    %dim_0 = tensor.dim %arg0, %c1 : tensor<?x?xf32>
    %dim_1 = tensor.dim %arg1, %c0 : tensor<?xf32>
    %0 = arith.cmpi eq, %dim_0, %dim_1 : index
    cf.assert %0, "mismatched size for broadcast"
    %1 = tensor.empty(%dim, %dim_0) : tensor<?x?xf32>
    %2 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel"]} ins(%arg0, %arg1 : tensor<?x?xf32>, tensor<?xf32>) outs(%1 : tensor<?x?xf32>) {
    ^bb0(%in: f32, %in_2: f32, %out: f32):
      %3 = arith.addf %in, %in_2 : f32
      linalg.yield %3 : f32
    } -> tensor<?x?xf32>
    return %2 : tensor<?x?xf32>
  }
}
// ----- scalar_power
#map = affine_map<() -> ()>
module {
  func.func @main(%arg0: tensor<f32>) -> tensor<f32> {
    %c3_i64 = arith.constant 3 : i64
    %0 = tensor.empty() : tensor<f32>
    %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = []} ins(%arg0 : tensor<f32>) outs(%0 : tensor<f32>) {
    ^bb0(%in: f32, %out: f32):
      %2 = math.fpowi %in, %c3_i64 : f32, i64
      linalg.yield %2 : f32
    } -> tensor<f32>
    return %1 : tensor<f32>
  }
}
// ----- var_dynamic
#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0, d1) -> (d0, 0)>
#map2 = affine_map<(d0, d1) -> (d0)>
#map3 = affine_map<(d0) -> (d0)>
module {
  func.func @main(%arg0: tensor<?x?xf32>) -> tensor<?xf32> {
    %cst = arith.constant 1.000000e+00 : f64
    %c1 = arith.constant 1 : index
    %c0 = arith.constant 0 : index
    %cst_0 = arith.constant 0.000000e+00 : f64
    %dim = tensor.dim %arg0, %c0 : tensor<?x?xf32>
    %dim_1 = tensor.dim %arg0, %c1 : tensor<?x?xf32>
    %0 = tensor.empty(%dim, %dim_1) : tensor<?x?xf64>
    %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%arg0 : tensor<?x?xf32>) outs(%0 : tensor<?x?xf64>) {
    ^bb0(%in: f32, %out: f64):
      %19 = arith.extf %in : f32 to f64
      linalg.yield %19 : f64
    } -> tensor<?x?xf64>
    %2 = tensor.empty(%dim) : tensor<?x1xf64>
    %3 = linalg.fill ins(%cst_0 : f64) outs(%2 : tensor<?x1xf64>) -> tensor<?x1xf64>
    %4 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "reduction"]} ins(%1 : tensor<?x?xf64>) outs(%3 : tensor<?x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %19 = arith.addf %in, %out : f64
      linalg.yield %19 : f64
    } -> tensor<?x1xf64>
    %5 = arith.index_cast %dim_1 : index to i64
    %6 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%4 : tensor<?x1xf64>) outs(%2 : tensor<?x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %19 = arith.sitofp %5 : i64 to f64
      %20 = arith.divf %in, %19 : f64
      linalg.yield %20 : f64
    } -> tensor<?x1xf64>
    %7 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel"]} ins(%1, %6 : tensor<?x?xf64>, tensor<?x1xf64>) outs(%0 : tensor<?x?xf64>) {
    ^bb0(%in: f64, %in_2: f64, %out: f64):
      %19 = arith.subf %in, %in_2 : f64
      linalg.yield %19 : f64
    } -> tensor<?x?xf64>
    %8 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel"]} ins(%7, %7 : tensor<?x?xf64>, tensor<?x?xf64>) outs(%0 : tensor<?x?xf64>) {
    ^bb0(%in: f64, %in_2: f64, %out: f64):
      %19 = arith.mulf %in, %in_2 : f64
      linalg.yield %19 : f64
    } -> tensor<?x?xf64>
    %9 = tensor.empty(%dim) : tensor<?xf64>
    %10 = linalg.fill ins(%cst_0 : f64) outs(%9 : tensor<?xf64>) -> tensor<?xf64>
    %11 = linalg.generic {indexing_maps = [#map, #map2], iterator_types = ["parallel", "reduction"]} ins(%8 : tensor<?x?xf64>) outs(%10 : tensor<?xf64>) {
    ^bb0(%in: f64, %out: f64):
      %19 = arith.addf %in, %out : f64
      linalg.yield %19 : f64
    } -> tensor<?xf64>
    %12 = arith.sitofp %5 : i64 to f64
    %13 = arith.addf %12, %cst : f64
    %14 = arith.cmpf uge, %13, %cst : f64
    cf.assert %14, "correction value should be less than or equal to productDimSize + 1"
    %15 = arith.subf %12, %cst : f64
    %16 = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel"]} ins(%11 : tensor<?xf64>) outs(%9 : tensor<?xf64>) {
    ^bb0(%in: f64, %out: f64):
      %19 = arith.divf %in, %15 : f64
      linalg.yield %19 : f64
    } -> tensor<?xf64>
    %17 = tensor.empty(%dim) : tensor<?xf32>
    %18 = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel"]} ins(%16 : tensor<?xf64>) outs(%17 : tensor<?xf32>) {
    ^bb0(%in: f64, %out: f32):
      %19 = arith.truncf %in : f64 to f32
      linalg.yield %19 : f32
    } -> tensor<?xf32>
    return %18 : tensor<?xf32>
  }
}
// ----- mean_dynamic
#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0, d1) -> ()>
#map2 = affine_map<() -> ()>
module {
  func.func @main(%arg0: tensor<?x?xf32>) -> tensor<f32> {
    %cst = arith.constant 0.000000e+00 : f32
    %c1 = arith.constant 1 : index
    %c0 = arith.constant 0 : index
    %0 = tensor.empty() : tensor<f32>
    %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<f32>) -> tensor<f32>
    %2 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["reduction", "reduction"]} ins(%arg0 : tensor<?x?xf32>) outs(%1 : tensor<f32>) {
    ^bb0(%in: f32, %out: f32):
      %6 = arith.addf %in, %out : f32
      linalg.yield %6 : f32
    } -> tensor<f32>
    %dim = tensor.dim %arg0, %c0 : tensor<?x?xf32>
    %dim_0 = tensor.dim %arg0, %c1 : tensor<?x?xf32>
    %3 = arith.muli %dim, %dim_0 : index
    %4 = arith.index_cast %3 : index to i64
    %5 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = []} ins(%2 : tensor<f32>) outs(%0 : tensor<f32>) {
    ^bb0(%in: f32, %out: f32):
      %6 = arith.sitofp %4 : i64 to f32
      %7 = arith.divf %in, %6 : f32
      linalg.yield %7 : f32
    } -> tensor<f32>
    return %5 : tensor<f32>
  }
}
// ----- embedding_dynamic
#map = affine_map<(d0, d1) -> (d0)>
#map1 = affine_map<(d0, d1) -> (d0, d1)>
module {
  func.func @main(%arg0: tensor<7x4xf32>, %arg1: tensor<?xi64>) -> tensor<?x4xf32> {
    %c0 = arith.constant 0 : index
    %c7 = arith.constant 7 : index
    %c0_i64 = arith.constant 0 : i64
    %dim = tensor.dim %arg1, %c0 : tensor<?xi64>
    %0 = tensor.empty(%dim) : tensor<?x4xf32>
    %1 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel"]} ins(%arg1 : tensor<?xi64>) outs(%0 : tensor<?x4xf32>) {
    ^bb0(%in: i64, %out: f32):
      %2 = arith.index_cast %in : i64 to index
      %3 = linalg.index 1 : index
      %4 = arith.cmpi slt, %2, %c7 : index
      cf.assert %4, "index must be smaller than dim size"
      %5 = arith.cmpi sge, %in, %c0_i64 : i64
      cf.assert %5, "index must be larger or equal to 0"
      %extracted = tensor.extract %arg0[%2, %3] : tensor<7x4xf32>
      linalg.yield %extracted : f32
    } -> tensor<?x4xf32>
    return %1 : tensor<?x4xf32>
  }
}
// ----- add_broadcast
#map = affine_map<(d0, d1, d2) -> (d0, 0, d2)>
#map1 = affine_map<(d0, d1, d2) -> (d1, 0)>
#map2 = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
module {
  func.func @main(%arg0: tensor<2x1x6xf32>, %arg1: tensor<4x1xf32>) -> tensor<2x4x6xf32> {
    %0 = tensor.empty() : tensor<2x4x6xf32>
    %1 = linalg.generic {indexing_maps = [#map, #map1, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%arg0, %arg1 : tensor<2x1x6xf32>, tensor<4x1xf32>) outs(%0 : tensor<2x4x6xf32>) {
    ^bb0(%in: f32, %in_0: f32, %out: f32):
      %2 = arith.addf %in, %in_0 : f32
      linalg.yield %2 : f32
    } -> tensor<2x4x6xf32>
    return %1 : tensor<2x4x6xf32>
  }
}
// ----- scalar
#map = affine_map<() -> ()>
module {
  func.func @main(%arg0: tensor<f32>, %arg1: tensor<f32>) -> tensor<f32> {
    %cst = arith.constant 1.000000e+00 : f32
    %0 = tensor.empty() : tensor<f32>
    %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = []} ins(%arg0 : tensor<f32>) outs(%0 : tensor<f32>) {
    ^bb0(%in: f32, %out: f32):
      %4 = math.tanh %in : f32
      linalg.yield %4 : f32
    } -> tensor<f32>
    %2 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = []} ins(%1, %arg1 : tensor<f32>, tensor<f32>) outs(%0 : tensor<f32>) {
    ^bb0(%in: f32, %in_0: f32, %out: f32):
      %4 = arith.mulf %in, %in_0 : f32
      linalg.yield %4 : f32
    } -> tensor<f32>
    %3 = linalg.generic {indexing_maps = [#map, #map], iterator_types = []} ins(%2 : tensor<f32>) outs(%0 : tensor<f32>) {
    ^bb0(%in: f32, %out: f32):
      %4 = arith.addf %in, %cst : f32
      linalg.yield %4 : f32
    } -> tensor<f32>
    return %3 : tensor<f32>
  }
}
// ----- one_row
#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0, d1) -> (d0)>
#map2 = affine_map<(d0, d1) -> (d0, 0)>
module {
  func.func @main(%arg0: tensor<1x6xf32>) -> tensor<1x6xf32> {
    %c0_i64 = arith.constant 0 : i64
    %cst = arith.constant 0xFF800000 : f32
    %cst_0 = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<1xi64>
    %1 = linalg.fill ins(%c0_i64 : i64) outs(%0 : tensor<1xi64>) -> tensor<1xi64>
    %2 = tensor.empty() : tensor<1xf32>
    %3 = linalg.fill ins(%cst : f32) outs(%2 : tensor<1xf32>) -> tensor<1xf32>
    %4:2 = linalg.generic {indexing_maps = [#map, #map1, #map1], iterator_types = ["parallel", "reduction"]} ins(%arg0 : tensor<1x6xf32>) outs(%3, %1 : tensor<1xf32>, tensor<1xi64>) {
    ^bb0(%in: f32, %out: f32, %out_1: i64):
      %12 = linalg.index 1 : index
      %13 = arith.index_cast %12 : index to i64
      %14 = arith.maximumf %in, %out : f32
      %15 = arith.cmpf ogt, %in, %out : f32
      %16 = arith.select %15, %13, %out_1 : i64
      linalg.yield %14, %16 : f32, i64
    } -> (tensor<1xf32>, tensor<1xi64>)
    %expanded = tensor.expand_shape %4#0 [[0, 1]] output_shape [1, 1] : tensor<1xf32> into tensor<1x1xf32>
    %5 = tensor.empty() : tensor<1x6xf32>
    %6 = linalg.generic {indexing_maps = [#map, #map2, #map], iterator_types = ["parallel", "parallel"]} ins(%arg0, %expanded : tensor<1x6xf32>, tensor<1x1xf32>) outs(%5 : tensor<1x6xf32>) {
    ^bb0(%in: f32, %in_1: f32, %out: f32):
      %12 = arith.subf %in, %in_1 : f32
      linalg.yield %12 : f32
    } -> tensor<1x6xf32>
    %7 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%6 : tensor<1x6xf32>) outs(%5 : tensor<1x6xf32>) {
    ^bb0(%in: f32, %out: f32):
      %12 = math.exp %in : f32
      linalg.yield %12 : f32
    } -> tensor<1x6xf32>
    %8 = tensor.empty() : tensor<1x1xf32>
    %9 = linalg.fill ins(%cst_0 : f32) outs(%8 : tensor<1x1xf32>) -> tensor<1x1xf32>
    %10 = linalg.generic {indexing_maps = [#map, #map2], iterator_types = ["parallel", "reduction"]} ins(%7 : tensor<1x6xf32>) outs(%9 : tensor<1x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %12 = arith.addf %in, %out : f32
      linalg.yield %12 : f32
    } -> tensor<1x1xf32>
    %11 = linalg.generic {indexing_maps = [#map, #map2, #map], iterator_types = ["parallel", "parallel"]} ins(%7, %10 : tensor<1x6xf32>, tensor<1x1xf32>) outs(%5 : tensor<1x6xf32>) {
    ^bb0(%in: f32, %in_1: f32, %out: f32):
      %12 = arith.divf %in, %in_1 : f32
      linalg.yield %12 : f32
    } -> tensor<1x6xf32>
    return %11 : tensor<1x6xf32>
  }
}
// ----- one_column
#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0, d1) -> (d0)>
#map2 = affine_map<(d0, d1) -> (d0, 0)>
module {
  func.func @main(%arg0: tensor<6x1xf32>) -> tensor<6x1xf32> {
    %c0_i64 = arith.constant 0 : i64
    %cst = arith.constant 0xFF800000 : f32
    %cst_0 = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<6xi64>
    %1 = linalg.fill ins(%c0_i64 : i64) outs(%0 : tensor<6xi64>) -> tensor<6xi64>
    %2 = tensor.empty() : tensor<6xf32>
    %3 = linalg.fill ins(%cst : f32) outs(%2 : tensor<6xf32>) -> tensor<6xf32>
    %4:2 = linalg.generic {indexing_maps = [#map, #map1, #map1], iterator_types = ["parallel", "reduction"]} ins(%arg0 : tensor<6x1xf32>) outs(%3, %1 : tensor<6xf32>, tensor<6xi64>) {
    ^bb0(%in: f32, %out: f32, %out_1: i64):
      %11 = arith.maximumf %in, %out : f32
      %12 = arith.cmpf ogt, %in, %out : f32
      %13 = arith.select %12, %c0_i64, %out_1 : i64
      linalg.yield %11, %13 : f32, i64
    } -> (tensor<6xf32>, tensor<6xi64>)
    %expanded = tensor.expand_shape %4#0 [[0, 1]] output_shape [6, 1] : tensor<6xf32> into tensor<6x1xf32>
    %5 = tensor.empty() : tensor<6x1xf32>
    %6 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel"]} ins(%arg0, %expanded : tensor<6x1xf32>, tensor<6x1xf32>) outs(%5 : tensor<6x1xf32>) {
    ^bb0(%in: f32, %in_1: f32, %out: f32):
      %11 = arith.subf %in, %in_1 : f32
      linalg.yield %11 : f32
    } -> tensor<6x1xf32>
    %7 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%6 : tensor<6x1xf32>) outs(%5 : tensor<6x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %11 = math.exp %in : f32
      linalg.yield %11 : f32
    } -> tensor<6x1xf32>
    %8 = linalg.fill ins(%cst_0 : f32) outs(%5 : tensor<6x1xf32>) -> tensor<6x1xf32>
    %9 = linalg.generic {indexing_maps = [#map, #map2], iterator_types = ["parallel", "reduction"]} ins(%7 : tensor<6x1xf32>) outs(%8 : tensor<6x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %11 = arith.addf %in, %out : f32
      linalg.yield %11 : f32
    } -> tensor<6x1xf32>
    %10 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel"]} ins(%7, %9 : tensor<6x1xf32>, tensor<6x1xf32>) outs(%5 : tensor<6x1xf32>) {
    ^bb0(%in: f32, %in_1: f32, %out: f32):
      %11 = arith.divf %in, %in_1 : f32
      linalg.yield %11 : f32
    } -> tensor<6x1xf32>
    return %10 : tensor<6x1xf32>
  }
}
// ----- one_product
module {
  func.func @main(%arg0: tensor<1x1xf32>, %arg1: tensor<1x1xf32>) -> tensor<1x1xf32> {
    %cst = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<1x1xf32>
    %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<1x1xf32>) -> tensor<1x1xf32>
    %2 = linalg.matmul ins(%arg0, %arg1 : tensor<1x1xf32>, tensor<1x1xf32>) outs(%1 : tensor<1x1xf32>) -> tensor<1x1xf32>
    return %2 : tensor<1x1xf32>
  }
}
// ----- empty
#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0, d1) -> (d1)>
module {
  func.func @main(%arg0: tensor<0x3xf32>) -> tensor<3xf32> {
    %cst = arith.constant 0.000000e+00 : f32
    %cst_0 = arith.constant 2.000000e+00 : f32
    %0 = tensor.empty() : tensor<0x3xf32>
    %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%arg0 : tensor<0x3xf32>) outs(%0 : tensor<0x3xf32>) {
    ^bb0(%in: f32, %out: f32):
      %5 = arith.mulf %in, %cst_0 : f32
      linalg.yield %5 : f32
    } -> tensor<0x3xf32>
    %2 = tensor.empty() : tensor<3xf32>
    %3 = linalg.fill ins(%cst : f32) outs(%2 : tensor<3xf32>) -> tensor<3xf32>
    %4 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["reduction", "parallel"]} ins(%1 : tensor<0x3xf32>) outs(%3 : tensor<3xf32>) {
    ^bb0(%in: f32, %out: f32):
      %5 = arith.addf %in, %out : f32
      linalg.yield %5 : f32
    } -> tensor<3xf32>
    return %4 : tensor<3xf32>
  }
}
// ----- sum
#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0, d1) -> ()>
module {
  func.func @main(%arg0: tensor<4x6xf32>) -> tensor<f32> {
    %cst = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<f32>
    %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<f32>) -> tensor<f32>
    %2 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["reduction", "reduction"]} ins(%arg0 : tensor<4x6xf32>) outs(%1 : tensor<f32>) {
    ^bb0(%in: f32, %out: f32):
      %3 = arith.addf %in, %out : f32
      linalg.yield %3 : f32
    } -> tensor<f32>
    return %2 : tensor<f32>
  }
}
// ----- sum_rows
#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0, d1) -> (d1)>
module {
  func.func @main(%arg0: tensor<4x6xf32>) -> tensor<6xf32> {
    %cst = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<6xf32>
    %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<6xf32>) -> tensor<6xf32>
    %2 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["reduction", "parallel"]} ins(%arg0 : tensor<4x6xf32>) outs(%1 : tensor<6xf32>) {
    ^bb0(%in: f32, %out: f32):
      %3 = arith.addf %in, %out : f32
      linalg.yield %3 : f32
    } -> tensor<6xf32>
    return %2 : tensor<6xf32>
  }
}
// ----- sum_keep
#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0, d1) -> (d0, 0)>
module {
  func.func @main(%arg0: tensor<4x6xf32>) -> tensor<4x1xf32> {
    %cst = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<4x1xf32>
    %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<4x1xf32>) -> tensor<4x1xf32>
    %2 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "reduction"]} ins(%arg0 : tensor<4x6xf32>) outs(%1 : tensor<4x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %3 = arith.addf %in, %out : f32
      linalg.yield %3 : f32
    } -> tensor<4x1xf32>
    return %2 : tensor<4x1xf32>
  }
}
// ----- mean
#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0, d1) -> ()>
#map2 = affine_map<() -> ()>
module {
  func.func @main(%arg0: tensor<4x6xf32>) -> tensor<f32> {
    %cst = arith.constant 0.000000e+00 : f32
    %cst_0 = arith.constant 2.400000e+01 : f32
    %0 = tensor.empty() : tensor<f32>
    %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<f32>) -> tensor<f32>
    %2 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["reduction", "reduction"]} ins(%arg0 : tensor<4x6xf32>) outs(%1 : tensor<f32>) {
    ^bb0(%in: f32, %out: f32):
      %4 = arith.addf %in, %out : f32
      linalg.yield %4 : f32
    } -> tensor<f32>
    %3 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = []} ins(%2 : tensor<f32>) outs(%0 : tensor<f32>) {
    ^bb0(%in: f32, %out: f32):
      %4 = arith.divf %in, %cst_0 : f32
      linalg.yield %4 : f32
    } -> tensor<f32>
    return %3 : tensor<f32>
  }
}
// ----- mean_square
#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0, d1) -> ()>
#map2 = affine_map<() -> ()>
module {
  func.func @main(%arg0: tensor<4x6xf32>) -> tensor<f32> {
    %c2_i64 = arith.constant 2 : i64
    %cst = arith.constant 0.000000e+00 : f32
    %cst_0 = arith.constant 2.400000e+01 : f32
    %0 = tensor.empty() : tensor<4x6xf32>
    %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%arg0 : tensor<4x6xf32>) outs(%0 : tensor<4x6xf32>) {
    ^bb0(%in: f32, %out: f32):
      %6 = math.fpowi %in, %c2_i64 : f32, i64
      linalg.yield %6 : f32
    } -> tensor<4x6xf32>
    %2 = tensor.empty() : tensor<f32>
    %3 = linalg.fill ins(%cst : f32) outs(%2 : tensor<f32>) -> tensor<f32>
    %4 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["reduction", "reduction"]} ins(%1 : tensor<4x6xf32>) outs(%3 : tensor<f32>) {
    ^bb0(%in: f32, %out: f32):
      %6 = arith.addf %in, %out : f32
      linalg.yield %6 : f32
    } -> tensor<f32>
    %5 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = []} ins(%4 : tensor<f32>) outs(%2 : tensor<f32>) {
    ^bb0(%in: f32, %out: f32):
      %6 = arith.divf %in, %cst_0 : f32
      linalg.yield %6 : f32
    } -> tensor<f32>
    return %5 : tensor<f32>
  }
}
// ----- var
#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0, d1) -> (0, 0)>
#map2 = affine_map<(d0, d1) -> ()>
#map3 = affine_map<() -> ()>
module {
  func.func @main(%arg0: tensor<4x6xf32>) -> tensor<f32> {
    %cst = arith.constant 0.000000e+00 : f64
    %cst_0 = arith.constant 2.300000e+01 : f64
    %cst_1 = arith.constant 2.400000e+01 : f64
    %0 = tensor.empty() : tensor<4x6xf64>
    %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%arg0 : tensor<4x6xf32>) outs(%0 : tensor<4x6xf64>) {
    ^bb0(%in: f32, %out: f64):
      %14 = arith.extf %in : f32 to f64
      linalg.yield %14 : f64
    } -> tensor<4x6xf64>
    %2 = tensor.empty() : tensor<1x1xf64>
    %3 = linalg.fill ins(%cst : f64) outs(%2 : tensor<1x1xf64>) -> tensor<1x1xf64>
    %4 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["reduction", "reduction"]} ins(%1 : tensor<4x6xf64>) outs(%3 : tensor<1x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %14 = arith.addf %in, %out : f64
      linalg.yield %14 : f64
    } -> tensor<1x1xf64>
    %5 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%4 : tensor<1x1xf64>) outs(%2 : tensor<1x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %14 = arith.divf %in, %cst_1 : f64
      linalg.yield %14 : f64
    } -> tensor<1x1xf64>
    %6 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel"]} ins(%1, %5 : tensor<4x6xf64>, tensor<1x1xf64>) outs(%0 : tensor<4x6xf64>) {
    ^bb0(%in: f64, %in_2: f64, %out: f64):
      %14 = arith.subf %in, %in_2 : f64
      linalg.yield %14 : f64
    } -> tensor<4x6xf64>
    %7 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel"]} ins(%6, %6 : tensor<4x6xf64>, tensor<4x6xf64>) outs(%0 : tensor<4x6xf64>) {
    ^bb0(%in: f64, %in_2: f64, %out: f64):
      %14 = arith.mulf %in, %in_2 : f64
      linalg.yield %14 : f64
    } -> tensor<4x6xf64>
    %8 = tensor.empty() : tensor<f64>
    %9 = linalg.fill ins(%cst : f64) outs(%8 : tensor<f64>) -> tensor<f64>
    %10 = linalg.generic {indexing_maps = [#map, #map2], iterator_types = ["reduction", "reduction"]} ins(%7 : tensor<4x6xf64>) outs(%9 : tensor<f64>) {
    ^bb0(%in: f64, %out: f64):
      %14 = arith.addf %in, %out : f64
      linalg.yield %14 : f64
    } -> tensor<f64>
    %11 = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = []} ins(%10 : tensor<f64>) outs(%8 : tensor<f64>) {
    ^bb0(%in: f64, %out: f64):
      %14 = arith.divf %in, %cst_0 : f64
      linalg.yield %14 : f64
    } -> tensor<f64>
    %12 = tensor.empty() : tensor<f32>
    %13 = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = []} ins(%11 : tensor<f64>) outs(%12 : tensor<f32>) {
    ^bb0(%in: f64, %out: f32):
      %14 = arith.truncf %in : f64 to f32
      linalg.yield %14 : f32
    } -> tensor<f32>
    return %13 : tensor<f32>
  }
}
// ----- std
#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0, d1) -> (d0, 0)>
#map2 = affine_map<(d0, d1) -> (d0)>
#map3 = affine_map<(d0) -> (d0)>
module {
  func.func @main(%arg0: tensor<4x6xf32>) -> tensor<4xf32> {
    %cst = arith.constant 0.000000e+00 : f64
    %cst_0 = arith.constant 5.000000e+00 : f64
    %cst_1 = arith.constant 6.000000e+00 : f64
    %0 = tensor.empty() : tensor<4x6xf64>
    %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%arg0 : tensor<4x6xf32>) outs(%0 : tensor<4x6xf64>) {
    ^bb0(%in: f32, %out: f64):
      %15 = arith.extf %in : f32 to f64
      linalg.yield %15 : f64
    } -> tensor<4x6xf64>
    %2 = tensor.empty() : tensor<4x1xf64>
    %3 = linalg.fill ins(%cst : f64) outs(%2 : tensor<4x1xf64>) -> tensor<4x1xf64>
    %4 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "reduction"]} ins(%1 : tensor<4x6xf64>) outs(%3 : tensor<4x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %15 = arith.addf %in, %out : f64
      linalg.yield %15 : f64
    } -> tensor<4x1xf64>
    %5 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%4 : tensor<4x1xf64>) outs(%2 : tensor<4x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %15 = arith.divf %in, %cst_1 : f64
      linalg.yield %15 : f64
    } -> tensor<4x1xf64>
    %6 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel"]} ins(%1, %5 : tensor<4x6xf64>, tensor<4x1xf64>) outs(%0 : tensor<4x6xf64>) {
    ^bb0(%in: f64, %in_2: f64, %out: f64):
      %15 = arith.subf %in, %in_2 : f64
      linalg.yield %15 : f64
    } -> tensor<4x6xf64>
    %7 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel"]} ins(%6, %6 : tensor<4x6xf64>, tensor<4x6xf64>) outs(%0 : tensor<4x6xf64>) {
    ^bb0(%in: f64, %in_2: f64, %out: f64):
      %15 = arith.mulf %in, %in_2 : f64
      linalg.yield %15 : f64
    } -> tensor<4x6xf64>
    %8 = tensor.empty() : tensor<4xf64>
    %9 = linalg.fill ins(%cst : f64) outs(%8 : tensor<4xf64>) -> tensor<4xf64>
    %10 = linalg.generic {indexing_maps = [#map, #map2], iterator_types = ["parallel", "reduction"]} ins(%7 : tensor<4x6xf64>) outs(%9 : tensor<4xf64>) {
    ^bb0(%in: f64, %out: f64):
      %15 = arith.addf %in, %out : f64
      linalg.yield %15 : f64
    } -> tensor<4xf64>
    %11 = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel"]} ins(%10 : tensor<4xf64>) outs(%8 : tensor<4xf64>) {
    ^bb0(%in: f64, %out: f64):
      %15 = arith.divf %in, %cst_0 : f64
      linalg.yield %15 : f64
    } -> tensor<4xf64>
    %12 = tensor.empty() : tensor<4xf32>
    %13 = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel"]} ins(%11 : tensor<4xf64>) outs(%12 : tensor<4xf32>) {
    ^bb0(%in: f64, %out: f32):
      %15 = arith.truncf %in : f64 to f32
      linalg.yield %15 : f32
    } -> tensor<4xf32>
    %14 = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel"]} ins(%13 : tensor<4xf32>) outs(%12 : tensor<4xf32>) {
    ^bb0(%in: f32, %out: f32):
      %15 = math.sqrt %in : f32
      linalg.yield %15 : f32
    } -> tensor<4xf32>
    return %14 : tensor<4xf32>
  }
}
// ----- amax
#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0, d1) -> (d0)>
module {
  func.func @main(%arg0: tensor<4x6xf32>) -> tensor<4xf32> {
    %c0_i64 = arith.constant 0 : i64
    %cst = arith.constant 0xFF800000 : f32
    %0 = tensor.empty() : tensor<4xi64>
    %1 = linalg.fill ins(%c0_i64 : i64) outs(%0 : tensor<4xi64>) -> tensor<4xi64>
    %2 = tensor.empty() : tensor<4xf32>
    %3 = linalg.fill ins(%cst : f32) outs(%2 : tensor<4xf32>) -> tensor<4xf32>
    %4:2 = linalg.generic {indexing_maps = [#map, #map1, #map1], iterator_types = ["parallel", "reduction"]} ins(%arg0 : tensor<4x6xf32>) outs(%3, %1 : tensor<4xf32>, tensor<4xi64>) {
    ^bb0(%in: f32, %out: f32, %out_0: i64):
      %5 = linalg.index 1 : index
      %6 = arith.index_cast %5 : index to i64
      %7 = arith.maximumf %in, %out : f32
      %8 = arith.cmpf ogt, %in, %out : f32
      %9 = arith.select %8, %6, %out_0 : i64
      linalg.yield %7, %9 : f32, i64
    } -> (tensor<4xf32>, tensor<4xi64>)
    return %4#0 : tensor<4xf32>
  }
}
// ----- max
#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0, d1) -> ()>
module {
  func.func @main(%arg0: tensor<4x6xf32>) -> tensor<f32> {
    %cst = arith.constant 0xFF800000 : f32
    %0 = tensor.empty() : tensor<f32>
    %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<f32>) -> tensor<f32>
    %2 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["reduction", "reduction"]} ins(%arg0 : tensor<4x6xf32>) outs(%1 : tensor<f32>) {
    ^bb0(%in: f32, %out: f32):
      %3 = arith.maximumf %in, %out : f32
      linalg.yield %3 : f32
    } -> tensor<f32>
    return %2 : tensor<f32>
  }
}
// ----- min_values
#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0, d1) -> (d0)>
module {
  func.func @main(%arg0: tensor<4x6xf32>) -> tensor<4xf32> {
    %c0_i64 = arith.constant 0 : i64
    %cst = arith.constant 0x7F800000 : f32
    %0 = tensor.empty() : tensor<4xi64>
    %1 = linalg.fill ins(%c0_i64 : i64) outs(%0 : tensor<4xi64>) -> tensor<4xi64>
    %2 = tensor.empty() : tensor<4xf32>
    %3 = linalg.fill ins(%cst : f32) outs(%2 : tensor<4xf32>) -> tensor<4xf32>
    %4:2 = linalg.generic {indexing_maps = [#map, #map1, #map1], iterator_types = ["parallel", "reduction"]} ins(%arg0 : tensor<4x6xf32>) outs(%3, %1 : tensor<4xf32>, tensor<4xi64>) {
    ^bb0(%in: f32, %out: f32, %out_0: i64):
      %5 = linalg.index 1 : index
      %6 = arith.index_cast %5 : index to i64
      %7 = arith.minimumf %in, %out : f32
      %8 = arith.cmpf olt, %in, %out : f32
      %9 = arith.select %8, %6, %out_0 : i64
      linalg.yield %7, %9 : f32, i64
    } -> (tensor<4xf32>, tensor<4xi64>)
    return %4#0 : tensor<4xf32>
  }
}
// ----- prod
#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0, d1) -> (d0)>
module {
  func.func @main(%arg0: tensor<4x6xf32>) -> tensor<4xf32> {
    %cst = arith.constant 1.000000e+00 : f32
    %0 = tensor.empty() : tensor<4xf32>
    %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<4xf32>) -> tensor<4xf32>
    %2 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "reduction"]} ins(%arg0 : tensor<4x6xf32>) outs(%1 : tensor<4xf32>) {
    ^bb0(%in: f32, %out: f32):
      %3 = arith.mulf %in, %out : f32
      linalg.yield %3 : f32
    } -> tensor<4xf32>
    return %2 : tensor<4xf32>
  }
}
// ----- argmax
#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0, d1) -> (d0)>
module {
  func.func @main(%arg0: tensor<4x6xf32>) -> tensor<4xi64> {
    %c0_i64 = arith.constant 0 : i64
    %cst = arith.constant 0xFF800000 : f32
    %0 = tensor.empty() : tensor<4xi64>
    %1 = linalg.fill ins(%c0_i64 : i64) outs(%0 : tensor<4xi64>) -> tensor<4xi64>
    %2 = tensor.empty() : tensor<4xf32>
    %3 = linalg.fill ins(%cst : f32) outs(%2 : tensor<4xf32>) -> tensor<4xf32>
    %4:2 = linalg.generic {indexing_maps = [#map, #map1, #map1], iterator_types = ["parallel", "reduction"]} ins(%arg0 : tensor<4x6xf32>) outs(%3, %1 : tensor<4xf32>, tensor<4xi64>) {
    ^bb0(%in: f32, %out: f32, %out_0: i64):
      %5 = linalg.index 1 : index
      %6 = arith.index_cast %5 : index to i64
      %7 = arith.maximumf %in, %out : f32
      %8 = arith.cmpf ogt, %in, %out : f32
      %9 = arith.select %8, %6, %out_0 : i64
      linalg.yield %7, %9 : f32, i64
    } -> (tensor<4xf32>, tensor<4xi64>)
    return %4#1 : tensor<4xi64>
  }
}
// ----- any
#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0, d1) -> (d0)>
module {
  func.func @main(%arg0: tensor<4x6xf32>) -> tensor<4xi1> {
    %false = arith.constant false
    %cst = arith.constant 1.000000e+00 : f32
    %0 = tensor.empty() : tensor<4x6xi1>
    %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%arg0 : tensor<4x6xf32>) outs(%0 : tensor<4x6xi1>) {
    ^bb0(%in: f32, %out: i1):
      %5 = arith.cmpf ogt, %in, %cst : f32
      linalg.yield %5 : i1
    } -> tensor<4x6xi1>
    %2 = tensor.empty() : tensor<4xi1>
    %3 = linalg.fill ins(%false : i1) outs(%2 : tensor<4xi1>) -> tensor<4xi1>
    %4 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "reduction"]} ins(%1 : tensor<4x6xi1>) outs(%3 : tensor<4xi1>) {
    ^bb0(%in: i1, %out: i1):
      %5 = arith.ori %in, %out : i1
      linalg.yield %5 : i1
    } -> tensor<4xi1>
    return %4 : tensor<4xi1>
  }
}
// ----- norm
#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0, d1) -> (d0)>
#map2 = affine_map<(d0) -> (d0)>
module {
  func.func @main(%arg0: tensor<4x6xf32>) -> tensor<4xf32> {
    %cst = arith.constant 0.000000e+00 : f32
    %cst_0 = arith.constant 5.000000e-01 : f32
    %cst_1 = arith.constant 2.000000e+00 : f32
    %0 = tensor.empty() : tensor<4xf32>
    %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<4xf32>) -> tensor<4xf32>
    %2 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "reduction"]} ins(%arg0 : tensor<4x6xf32>) outs(%1 : tensor<4xf32>) {
    ^bb0(%in: f32, %out: f32):
      %4 = math.absf %in : f32
      %5 = math.powf %4, %cst_1 : f32
      %6 = arith.addf %5, %out : f32
      linalg.yield %6 : f32
    } -> tensor<4xf32>
    %3 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel"]} ins(%2 : tensor<4xf32>) outs(%0 : tensor<4xf32>) {
    ^bb0(%in: f32, %out: f32):
      %4 = math.powf %in, %cst_0 : f32
      linalg.yield %4 : f32
    } -> tensor<4xf32>
    return %3 : tensor<4xf32>
  }
}
// ----- logsumexp
#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0, d1) -> (d0)>
#map2 = affine_map<(d0, d1) -> ()>
#map3 = affine_map<(d0, d1) -> (d0, 0)>
#map4 = affine_map<(d0) -> (d0)>
module {
  func.func @main(%arg0: tensor<4x6xf32>) -> tensor<4xf32> {
    %c0_i64 = arith.constant 0 : i64
    %cst = arith.constant 0xFF800000 : f32
    %cst_0 = arith.constant 0.000000e+00 : f32
    %cst_1 = arith.constant dense<0.000000e+00> : tensor<f32>
    %cst_2 = arith.constant 0x7FF0000000000000 : f64
    %0 = tensor.empty() : tensor<4xi64>
    %1 = linalg.fill ins(%c0_i64 : i64) outs(%0 : tensor<4xi64>) -> tensor<4xi64>
    %2 = tensor.empty() : tensor<4xf32>
    %3 = linalg.fill ins(%cst : f32) outs(%2 : tensor<4xf32>) -> tensor<4xf32>
    %4:2 = linalg.generic {indexing_maps = [#map, #map1, #map1], iterator_types = ["parallel", "reduction"]} ins(%arg0 : tensor<4x6xf32>) outs(%3, %1 : tensor<4xf32>, tensor<4xi64>) {
    ^bb0(%in: f32, %out: f32, %out_3: i64):
      %17 = linalg.index 1 : index
      %18 = arith.index_cast %17 : index to i64
      %19 = arith.maximumf %in, %out : f32
      %20 = arith.cmpf ogt, %in, %out : f32
      %21 = arith.select %20, %18, %out_3 : i64
      linalg.yield %19, %21 : f32, i64
    } -> (tensor<4xf32>, tensor<4xi64>)
    %expanded = tensor.expand_shape %4#0 [[0, 1]] output_shape [4, 1] : tensor<4xf32> into tensor<4x1xf32>
    %5 = tensor.empty() : tensor<4x1xf32>
    %6 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%expanded : tensor<4x1xf32>) outs(%5 : tensor<4x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %17 = math.absf %in : f32
      linalg.yield %17 : f32
    } -> tensor<4x1xf32>
    %7 = tensor.empty() : tensor<4x1xi1>
    %8 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%6 : tensor<4x1xf32>) outs(%7 : tensor<4x1xi1>) {
    ^bb0(%in: f32, %out: i1):
      %17 = arith.extf %in : f32 to f64
      %18 = arith.cmpf oeq, %17, %cst_2 : f64
      linalg.yield %18 : i1
    } -> tensor<4x1xi1>
    %9 = linalg.generic {indexing_maps = [#map, #map2, #map, #map], iterator_types = ["parallel", "parallel"]} ins(%8, %cst_1, %expanded : tensor<4x1xi1>, tensor<f32>, tensor<4x1xf32>) outs(%5 : tensor<4x1xf32>) {
    ^bb0(%in: i1, %in_3: f32, %in_4: f32, %out: f32):
      %17 = arith.select %in, %in_3, %in_4 : f32
      linalg.yield %17 : f32
    } -> tensor<4x1xf32>
    %collapsed = tensor.collapse_shape %9 [[0, 1]] : tensor<4x1xf32> into tensor<4xf32>
    %10 = tensor.empty() : tensor<4x6xf32>
    %11 = linalg.generic {indexing_maps = [#map, #map3, #map], iterator_types = ["parallel", "parallel"]} ins(%arg0, %9 : tensor<4x6xf32>, tensor<4x1xf32>) outs(%10 : tensor<4x6xf32>) {
    ^bb0(%in: f32, %in_3: f32, %out: f32):
      %17 = arith.subf %in, %in_3 : f32
      linalg.yield %17 : f32
    } -> tensor<4x6xf32>
    %12 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%11 : tensor<4x6xf32>) outs(%10 : tensor<4x6xf32>) {
    ^bb0(%in: f32, %out: f32):
      %17 = math.exp %in : f32
      linalg.yield %17 : f32
    } -> tensor<4x6xf32>
    %13 = linalg.fill ins(%cst_0 : f32) outs(%2 : tensor<4xf32>) -> tensor<4xf32>
    %14 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "reduction"]} ins(%12 : tensor<4x6xf32>) outs(%13 : tensor<4xf32>) {
    ^bb0(%in: f32, %out: f32):
      %17 = arith.addf %in, %out : f32
      linalg.yield %17 : f32
    } -> tensor<4xf32>
    %15 = linalg.generic {indexing_maps = [#map4, #map4], iterator_types = ["parallel"]} ins(%14 : tensor<4xf32>) outs(%2 : tensor<4xf32>) {
    ^bb0(%in: f32, %out: f32):
      %17 = math.log %in : f32
      linalg.yield %17 : f32
    } -> tensor<4xf32>
    %16 = linalg.generic {indexing_maps = [#map4, #map4, #map4], iterator_types = ["parallel"]} ins(%15, %collapsed : tensor<4xf32>, tensor<4xf32>) outs(%2 : tensor<4xf32>) {
    ^bb0(%in: f32, %in_3: f32, %out: f32):
      %17 = arith.addf %in, %in_3 : f32
      linalg.yield %17 : f32
    } -> tensor<4xf32>
    return %16 : tensor<4xf32>
  }
}
// ----- cumsum
module {
  func.func @main(%arg0: tensor<4x6xf32>) -> tensor<4x6xf32> {
    %cst = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<4x6xf32>
    %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<4x6xf32>) -> tensor<4x6xf32>
    %2 = tensor.empty() : tensor<4xf32>
    %3 = linalg.fill ins(%cst : f32) outs(%2 : tensor<4xf32>) -> tensor<4xf32>
    %4:2 = tm_tensor.scan dimension(1) inclusive(true) ins(%arg0 : tensor<4x6xf32>) outs(%1, %3 : tensor<4x6xf32>, tensor<4xf32>) {
    ^bb0(%arg1: f32, %arg2: f32):
      %5 = arith.addf %arg1, %arg2 : f32
      tm_tensor.yield %5 : f32
    } -> tensor<4x6xf32>, tensor<4xf32>
    return %4#0 : tensor<4x6xf32>
  }
}
// ----- softmax
#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0, d1) -> (d0)>
#map2 = affine_map<(d0, d1) -> (d0, 0)>
module {
  func.func @main(%arg0: tensor<?x?xf32>) -> tensor<?x?xf32> {
    %c0 = arith.constant 0 : index
    %c0_i64 = arith.constant 0 : i64
    %cst = arith.constant 0xFF800000 : f32
    %c1 = arith.constant 1 : index
    %cst_0 = arith.constant 0.000000e+00 : f32
    %dim = tensor.dim %arg0, %c0 : tensor<?x?xf32>
    %0 = tensor.empty(%dim) : tensor<?xi64>
    %1 = linalg.fill ins(%c0_i64 : i64) outs(%0 : tensor<?xi64>) -> tensor<?xi64>
    %2 = tensor.empty(%dim) : tensor<?xf32>
    %3 = linalg.fill ins(%cst : f32) outs(%2 : tensor<?xf32>) -> tensor<?xf32>
    %4:2 = linalg.generic {indexing_maps = [#map, #map1, #map1], iterator_types = ["parallel", "reduction"]} ins(%arg0 : tensor<?x?xf32>) outs(%3, %1 : tensor<?xf32>, tensor<?xi64>) {
    ^bb0(%in: f32, %out: f32, %out_2: i64):
      %12 = linalg.index 1 : index
      %13 = arith.index_cast %12 : index to i64
      %14 = arith.maximumf %in, %out : f32
      %15 = arith.cmpf ogt, %in, %out : f32
      %16 = arith.select %15, %13, %out_2 : i64
      linalg.yield %14, %16 : f32, i64
    } -> (tensor<?xf32>, tensor<?xi64>)
    %expanded = tensor.expand_shape %4#0 [[0, 1]] output_shape [%dim, 1] : tensor<?xf32> into tensor<?x1xf32>
    %dim_1 = tensor.dim %arg0, %c1 : tensor<?x?xf32>
    %5 = tensor.empty(%dim, %dim_1) : tensor<?x?xf32>
    %6 = linalg.generic {indexing_maps = [#map, #map2, #map], iterator_types = ["parallel", "parallel"]} ins(%arg0, %expanded : tensor<?x?xf32>, tensor<?x1xf32>) outs(%5 : tensor<?x?xf32>) {
    ^bb0(%in: f32, %in_2: f32, %out: f32):
      %12 = arith.subf %in, %in_2 : f32
      linalg.yield %12 : f32
    } -> tensor<?x?xf32>
    %7 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%6 : tensor<?x?xf32>) outs(%5 : tensor<?x?xf32>) {
    ^bb0(%in: f32, %out: f32):
      %12 = math.exp %in : f32
      linalg.yield %12 : f32
    } -> tensor<?x?xf32>
    %8 = tensor.empty(%dim) : tensor<?x1xf32>
    %9 = linalg.fill ins(%cst_0 : f32) outs(%8 : tensor<?x1xf32>) -> tensor<?x1xf32>
    %10 = linalg.generic {indexing_maps = [#map, #map2], iterator_types = ["parallel", "reduction"]} ins(%7 : tensor<?x?xf32>) outs(%9 : tensor<?x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %12 = arith.addf %in, %out : f32
      linalg.yield %12 : f32
    } -> tensor<?x1xf32>
    %11 = linalg.generic {indexing_maps = [#map, #map2, #map], iterator_types = ["parallel", "parallel"]} ins(%7, %10 : tensor<?x?xf32>, tensor<?x1xf32>) outs(%5 : tensor<?x?xf32>) {
    ^bb0(%in: f32, %in_2: f32, %out: f32):
      %12 = arith.divf %in, %in_2 : f32
      linalg.yield %12 : f32
    } -> tensor<?x?xf32>
    return %11 : tensor<?x?xf32>
  }
}
// ----- softmax_first
#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0, d1) -> (d1)>
#map2 = affine_map<(d0, d1) -> (0, d1)>
module {
  func.func @main(%arg0: tensor<4x6xf32>) -> tensor<4x6xf32> {
    %c0_i64 = arith.constant 0 : i64
    %cst = arith.constant 0xFF800000 : f32
    %cst_0 = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<6xi64>
    %1 = linalg.fill ins(%c0_i64 : i64) outs(%0 : tensor<6xi64>) -> tensor<6xi64>
    %2 = tensor.empty() : tensor<6xf32>
    %3 = linalg.fill ins(%cst : f32) outs(%2 : tensor<6xf32>) -> tensor<6xf32>
    %4:2 = linalg.generic {indexing_maps = [#map, #map1, #map1], iterator_types = ["reduction", "parallel"]} ins(%arg0 : tensor<4x6xf32>) outs(%3, %1 : tensor<6xf32>, tensor<6xi64>) {
    ^bb0(%in: f32, %out: f32, %out_1: i64):
      %12 = linalg.index 0 : index
      %13 = arith.index_cast %12 : index to i64
      %14 = arith.maximumf %in, %out : f32
      %15 = arith.cmpf ogt, %in, %out : f32
      %16 = arith.select %15, %13, %out_1 : i64
      linalg.yield %14, %16 : f32, i64
    } -> (tensor<6xf32>, tensor<6xi64>)
    %expanded = tensor.expand_shape %4#0 [[0, 1]] output_shape [1, 6] : tensor<6xf32> into tensor<1x6xf32>
    %5 = tensor.empty() : tensor<4x6xf32>
    %6 = linalg.generic {indexing_maps = [#map, #map2, #map], iterator_types = ["parallel", "parallel"]} ins(%arg0, %expanded : tensor<4x6xf32>, tensor<1x6xf32>) outs(%5 : tensor<4x6xf32>) {
    ^bb0(%in: f32, %in_1: f32, %out: f32):
      %12 = arith.subf %in, %in_1 : f32
      linalg.yield %12 : f32
    } -> tensor<4x6xf32>
    %7 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%6 : tensor<4x6xf32>) outs(%5 : tensor<4x6xf32>) {
    ^bb0(%in: f32, %out: f32):
      %12 = math.exp %in : f32
      linalg.yield %12 : f32
    } -> tensor<4x6xf32>
    %8 = tensor.empty() : tensor<1x6xf32>
    %9 = linalg.fill ins(%cst_0 : f32) outs(%8 : tensor<1x6xf32>) -> tensor<1x6xf32>
    %10 = linalg.generic {indexing_maps = [#map, #map2], iterator_types = ["reduction", "parallel"]} ins(%7 : tensor<4x6xf32>) outs(%9 : tensor<1x6xf32>) {
    ^bb0(%in: f32, %out: f32):
      %12 = arith.addf %in, %out : f32
      linalg.yield %12 : f32
    } -> tensor<1x6xf32>
    %11 = linalg.generic {indexing_maps = [#map, #map2, #map], iterator_types = ["parallel", "parallel"]} ins(%7, %10 : tensor<4x6xf32>, tensor<1x6xf32>) outs(%5 : tensor<4x6xf32>) {
    ^bb0(%in: f32, %in_1: f32, %out: f32):
      %12 = arith.divf %in, %in_1 : f32
      linalg.yield %12 : f32
    } -> tensor<4x6xf32>
    return %11 : tensor<4x6xf32>
  }
}
// ----- log_softmax
#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0, d1) -> (d0)>
#map2 = affine_map<(d0, d1) -> (d0, 0)>
module {
  func.func @main(%arg0: tensor<4x6xf32>) -> tensor<4x6xf32> {
    %c0_i64 = arith.constant 0 : i64
    %cst = arith.constant 0xFF800000 : f32
    %cst_0 = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<4xi64>
    %1 = linalg.fill ins(%c0_i64 : i64) outs(%0 : tensor<4xi64>) -> tensor<4xi64>
    %2 = tensor.empty() : tensor<4xf32>
    %3 = linalg.fill ins(%cst : f32) outs(%2 : tensor<4xf32>) -> tensor<4xf32>
    %4:2 = linalg.generic {indexing_maps = [#map, #map1, #map1], iterator_types = ["parallel", "reduction"]} ins(%arg0 : tensor<4x6xf32>) outs(%3, %1 : tensor<4xf32>, tensor<4xi64>) {
    ^bb0(%in: f32, %out: f32, %out_1: i64):
      %13 = linalg.index 1 : index
      %14 = arith.index_cast %13 : index to i64
      %15 = arith.maximumf %in, %out : f32
      %16 = arith.cmpf ogt, %in, %out : f32
      %17 = arith.select %16, %14, %out_1 : i64
      linalg.yield %15, %17 : f32, i64
    } -> (tensor<4xf32>, tensor<4xi64>)
    %expanded = tensor.expand_shape %4#0 [[0, 1]] output_shape [4, 1] : tensor<4xf32> into tensor<4x1xf32>
    %5 = tensor.empty() : tensor<4x6xf32>
    %6 = linalg.generic {indexing_maps = [#map, #map2, #map], iterator_types = ["parallel", "parallel"]} ins(%arg0, %expanded : tensor<4x6xf32>, tensor<4x1xf32>) outs(%5 : tensor<4x6xf32>) {
    ^bb0(%in: f32, %in_1: f32, %out: f32):
      %13 = arith.subf %in, %in_1 : f32
      linalg.yield %13 : f32
    } -> tensor<4x6xf32>
    %7 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%6 : tensor<4x6xf32>) outs(%5 : tensor<4x6xf32>) {
    ^bb0(%in: f32, %out: f32):
      %13 = math.exp %in : f32
      linalg.yield %13 : f32
    } -> tensor<4x6xf32>
    %8 = tensor.empty() : tensor<4x1xf32>
    %9 = linalg.fill ins(%cst_0 : f32) outs(%8 : tensor<4x1xf32>) -> tensor<4x1xf32>
    %10 = linalg.generic {indexing_maps = [#map, #map2], iterator_types = ["parallel", "reduction"]} ins(%7 : tensor<4x6xf32>) outs(%9 : tensor<4x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %13 = arith.addf %in, %out : f32
      linalg.yield %13 : f32
    } -> tensor<4x1xf32>
    %11 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%10 : tensor<4x1xf32>) outs(%8 : tensor<4x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %13 = math.log %in : f32
      linalg.yield %13 : f32
    } -> tensor<4x1xf32>
    %12 = linalg.generic {indexing_maps = [#map, #map2, #map], iterator_types = ["parallel", "parallel"]} ins(%6, %11 : tensor<4x6xf32>, tensor<4x1xf32>) outs(%5 : tensor<4x6xf32>) {
    ^bb0(%in: f32, %in_1: f32, %out: f32):
      %13 = arith.subf %in, %in_1 : f32
      linalg.yield %13 : f32
    } -> tensor<4x6xf32>
    return %12 : tensor<4x6xf32>
  }
}
// ----- layer_norm
#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0, d1) -> (d0, 0)>
#map2 = affine_map<(d0, d1) -> (d1)>
module {
  func.func @main(%arg0: tensor<?x6xf32>, %arg1: tensor<6xf32>, %arg2: tensor<6xf32>) -> tensor<?x6xf32> {
    %c0 = arith.constant 0 : index
    %cst = arith.constant 0.000000e+00 : f64
    %cst_0 = arith.constant 0.000000e+00 : f32
    %cst_1 = arith.constant 1.000000e-05 : f64
    %cst_2 = arith.constant 6.000000e+00 : f64
    %cst_3 = arith.constant 6.000000e+00 : f32
    %dim = tensor.dim %arg0, %c0 : tensor<?x6xf32>
    %0 = tensor.empty(%dim) : tensor<?x6xf64>
    %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%arg0 : tensor<?x6xf32>) outs(%0 : tensor<?x6xf64>) {
    ^bb0(%in: f32, %out: f64):
      %22 = arith.extf %in : f32 to f64
      linalg.yield %22 : f64
    } -> tensor<?x6xf64>
    %2 = tensor.empty(%dim) : tensor<?x1xf64>
    %3 = linalg.fill ins(%cst : f64) outs(%2 : tensor<?x1xf64>) -> tensor<?x1xf64>
    %4 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "reduction"]} ins(%1 : tensor<?x6xf64>) outs(%3 : tensor<?x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %22 = arith.addf %in, %out : f64
      linalg.yield %22 : f64
    } -> tensor<?x1xf64>
    %5 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%4 : tensor<?x1xf64>) outs(%2 : tensor<?x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %22 = arith.divf %in, %cst_2 : f64
      linalg.yield %22 : f64
    } -> tensor<?x1xf64>
    %6 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel"]} ins(%1, %5 : tensor<?x6xf64>, tensor<?x1xf64>) outs(%0 : tensor<?x6xf64>) {
    ^bb0(%in: f64, %in_4: f64, %out: f64):
      %22 = arith.subf %in, %in_4 : f64
      linalg.yield %22 : f64
    } -> tensor<?x6xf64>
    %7 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel"]} ins(%6, %6 : tensor<?x6xf64>, tensor<?x6xf64>) outs(%0 : tensor<?x6xf64>) {
    ^bb0(%in: f64, %in_4: f64, %out: f64):
      %22 = arith.mulf %in, %in_4 : f64
      linalg.yield %22 : f64
    } -> tensor<?x6xf64>
    %8 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "reduction"]} ins(%7 : tensor<?x6xf64>) outs(%3 : tensor<?x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %22 = arith.addf %in, %out : f64
      linalg.yield %22 : f64
    } -> tensor<?x1xf64>
    %9 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%8 : tensor<?x1xf64>) outs(%2 : tensor<?x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %22 = arith.divf %in, %cst_2 : f64
      linalg.yield %22 : f64
    } -> tensor<?x1xf64>
    %10 = tensor.empty(%dim) : tensor<?x1xf32>
    %11 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%9 : tensor<?x1xf64>) outs(%10 : tensor<?x1xf32>) {
    ^bb0(%in: f64, %out: f32):
      %22 = arith.truncf %in : f64 to f32
      linalg.yield %22 : f32
    } -> tensor<?x1xf32>
    %12 = linalg.fill ins(%cst_0 : f32) outs(%10 : tensor<?x1xf32>) -> tensor<?x1xf32>
    %13 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "reduction"]} ins(%arg0 : tensor<?x6xf32>) outs(%12 : tensor<?x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %22 = arith.addf %in, %out : f32
      linalg.yield %22 : f32
    } -> tensor<?x1xf32>
    %14 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%13 : tensor<?x1xf32>) outs(%10 : tensor<?x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %22 = arith.divf %in, %cst_3 : f32
      linalg.yield %22 : f32
    } -> tensor<?x1xf32>
    %15 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%11 : tensor<?x1xf32>) outs(%10 : tensor<?x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %22 = arith.truncf %cst_1 : f64 to f32
      %23 = arith.addf %in, %22 : f32
      linalg.yield %23 : f32
    } -> tensor<?x1xf32>
    %16 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%15 : tensor<?x1xf32>) outs(%10 : tensor<?x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %22 = math.rsqrt %in : f32
      linalg.yield %22 : f32
    } -> tensor<?x1xf32>
    %17 = tensor.empty(%dim) : tensor<?x6xf32>
    %18 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel"]} ins(%arg0, %14 : tensor<?x6xf32>, tensor<?x1xf32>) outs(%17 : tensor<?x6xf32>) {
    ^bb0(%in: f32, %in_4: f32, %out: f32):
      %22 = arith.subf %in, %in_4 : f32
      linalg.yield %22 : f32
    } -> tensor<?x6xf32>
    %19 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel"]} ins(%18, %16 : tensor<?x6xf32>, tensor<?x1xf32>) outs(%17 : tensor<?x6xf32>) {
    ^bb0(%in: f32, %in_4: f32, %out: f32):
      %22 = arith.mulf %in, %in_4 : f32
      linalg.yield %22 : f32
    } -> tensor<?x6xf32>
    %20 = linalg.generic {indexing_maps = [#map, #map2, #map], iterator_types = ["parallel", "parallel"]} ins(%19, %arg1 : tensor<?x6xf32>, tensor<6xf32>) outs(%17 : tensor<?x6xf32>) {
    ^bb0(%in: f32, %in_4: f32, %out: f32):
      %22 = arith.mulf %in, %in_4 : f32
      linalg.yield %22 : f32
    } -> tensor<?x6xf32>
    %21 = linalg.generic {indexing_maps = [#map, #map2, #map], iterator_types = ["parallel", "parallel"]} ins(%20, %arg2 : tensor<?x6xf32>, tensor<6xf32>) outs(%17 : tensor<?x6xf32>) {
    ^bb0(%in: f32, %in_4: f32, %out: f32):
      %22 = arith.addf %in, %in_4 : f32
      linalg.yield %22 : f32
    } -> tensor<?x6xf32>
    return %21 : tensor<?x6xf32>
  }
}
// ----- rms_norm
#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0, d1) -> (d0, 0)>
#map2 = affine_map<(d0, d1) -> (d1)>
module {
  func.func @main(%arg0: tensor<?x6xf32>, %arg1: tensor<6xf32>) -> tensor<?x6xf32> {
    %c2_i64 = arith.constant 2 : i64
    %c0 = arith.constant 0 : index
    %cst = arith.constant 0.000000e+00 : f32
    %cst_0 = arith.constant 9.9999999999999995E-7 : f64
    %cst_1 = arith.constant 6.000000e+00 : f32
    %dim = tensor.dim %arg0, %c0 : tensor<?x6xf32>
    %0 = tensor.empty(%dim) : tensor<?x6xf32>
    %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%arg0 : tensor<?x6xf32>) outs(%0 : tensor<?x6xf32>) {
    ^bb0(%in: f32, %out: f32):
      %10 = math.fpowi %in, %c2_i64 : f32, i64
      linalg.yield %10 : f32
    } -> tensor<?x6xf32>
    %2 = tensor.empty(%dim) : tensor<?x1xf32>
    %3 = linalg.fill ins(%cst : f32) outs(%2 : tensor<?x1xf32>) -> tensor<?x1xf32>
    %4 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "reduction"]} ins(%1 : tensor<?x6xf32>) outs(%3 : tensor<?x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %10 = arith.addf %in, %out : f32
      linalg.yield %10 : f32
    } -> tensor<?x1xf32>
    %5 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%4 : tensor<?x1xf32>) outs(%2 : tensor<?x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %10 = arith.divf %in, %cst_1 : f32
      linalg.yield %10 : f32
    } -> tensor<?x1xf32>
    %6 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%5 : tensor<?x1xf32>) outs(%2 : tensor<?x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %10 = arith.truncf %cst_0 : f64 to f32
      %11 = arith.addf %in, %10 : f32
      linalg.yield %11 : f32
    } -> tensor<?x1xf32>
    %7 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%6 : tensor<?x1xf32>) outs(%2 : tensor<?x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %10 = math.rsqrt %in : f32
      linalg.yield %10 : f32
    } -> tensor<?x1xf32>
    %8 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel"]} ins(%arg0, %7 : tensor<?x6xf32>, tensor<?x1xf32>) outs(%0 : tensor<?x6xf32>) {
    ^bb0(%in: f32, %in_2: f32, %out: f32):
      %10 = arith.mulf %in, %in_2 : f32
      linalg.yield %10 : f32
    } -> tensor<?x6xf32>
    %9 = linalg.generic {indexing_maps = [#map, #map2, #map], iterator_types = ["parallel", "parallel"]} ins(%8, %arg1 : tensor<?x6xf32>, tensor<6xf32>) outs(%0 : tensor<?x6xf32>) {
    ^bb0(%in: f32, %in_2: f32, %out: f32):
      %10 = arith.mulf %in, %in_2 : f32
      linalg.yield %10 : f32
    } -> tensor<?x6xf32>
    return %9 : tensor<?x6xf32>
  }
}
// ----- group_norm
#map = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map1 = affine_map<(d0, d1, d2, d3) -> (d0, d1, 0, 0)>
module {
  func.func @main(%arg0: tensor<2x4x3xf32>) -> tensor<2x4x3xf32> {
    %cst = arith.constant 0.000000e+00 : f64
    %cst_0 = arith.constant 0.000000e+00 : f32
    %cst_1 = arith.constant 1.000000e-05 : f64
    %cst_2 = arith.constant 6.000000e+00 : f64
    %cst_3 = arith.constant 6.000000e+00 : f32
    %expanded = tensor.expand_shape %arg0 [[0], [1, 2], [3]] output_shape [2, 2, 2, 3] : tensor<2x4x3xf32> into tensor<2x2x2x3xf32>
    %0 = tensor.empty() : tensor<2x2x2x3xf64>
    %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded : tensor<2x2x2x3xf32>) outs(%0 : tensor<2x2x2x3xf64>) {
    ^bb0(%in: f32, %out: f64):
      %20 = arith.extf %in : f32 to f64
      linalg.yield %20 : f64
    } -> tensor<2x2x2x3xf64>
    %2 = tensor.empty() : tensor<2x2x1x1xf64>
    %3 = linalg.fill ins(%cst : f64) outs(%2 : tensor<2x2x1x1xf64>) -> tensor<2x2x1x1xf64>
    %4 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "reduction", "reduction"]} ins(%1 : tensor<2x2x2x3xf64>) outs(%3 : tensor<2x2x1x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %20 = arith.addf %in, %out : f64
      linalg.yield %20 : f64
    } -> tensor<2x2x1x1xf64>
    %5 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%4 : tensor<2x2x1x1xf64>) outs(%2 : tensor<2x2x1x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %20 = arith.divf %in, %cst_2 : f64
      linalg.yield %20 : f64
    } -> tensor<2x2x1x1xf64>
    %6 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%1, %5 : tensor<2x2x2x3xf64>, tensor<2x2x1x1xf64>) outs(%0 : tensor<2x2x2x3xf64>) {
    ^bb0(%in: f64, %in_4: f64, %out: f64):
      %20 = arith.subf %in, %in_4 : f64
      linalg.yield %20 : f64
    } -> tensor<2x2x2x3xf64>
    %7 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%6, %6 : tensor<2x2x2x3xf64>, tensor<2x2x2x3xf64>) outs(%0 : tensor<2x2x2x3xf64>) {
    ^bb0(%in: f64, %in_4: f64, %out: f64):
      %20 = arith.mulf %in, %in_4 : f64
      linalg.yield %20 : f64
    } -> tensor<2x2x2x3xf64>
    %8 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "reduction", "reduction"]} ins(%7 : tensor<2x2x2x3xf64>) outs(%3 : tensor<2x2x1x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %20 = arith.addf %in, %out : f64
      linalg.yield %20 : f64
    } -> tensor<2x2x1x1xf64>
    %9 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%8 : tensor<2x2x1x1xf64>) outs(%2 : tensor<2x2x1x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %20 = arith.divf %in, %cst_2 : f64
      linalg.yield %20 : f64
    } -> tensor<2x2x1x1xf64>
    %10 = tensor.empty() : tensor<2x2x1x1xf32>
    %11 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%9 : tensor<2x2x1x1xf64>) outs(%10 : tensor<2x2x1x1xf32>) {
    ^bb0(%in: f64, %out: f32):
      %20 = arith.truncf %in : f64 to f32
      linalg.yield %20 : f32
    } -> tensor<2x2x1x1xf32>
    %12 = linalg.fill ins(%cst_0 : f32) outs(%10 : tensor<2x2x1x1xf32>) -> tensor<2x2x1x1xf32>
    %13 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "reduction", "reduction"]} ins(%expanded : tensor<2x2x2x3xf32>) outs(%12 : tensor<2x2x1x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %20 = arith.addf %in, %out : f32
      linalg.yield %20 : f32
    } -> tensor<2x2x1x1xf32>
    %14 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%13 : tensor<2x2x1x1xf32>) outs(%10 : tensor<2x2x1x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %20 = arith.divf %in, %cst_3 : f32
      linalg.yield %20 : f32
    } -> tensor<2x2x1x1xf32>
    %15 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%11 : tensor<2x2x1x1xf32>) outs(%10 : tensor<2x2x1x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %20 = arith.truncf %cst_1 : f64 to f32
      %21 = arith.addf %in, %20 : f32
      linalg.yield %21 : f32
    } -> tensor<2x2x1x1xf32>
    %16 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%15 : tensor<2x2x1x1xf32>) outs(%10 : tensor<2x2x1x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %20 = math.rsqrt %in : f32
      linalg.yield %20 : f32
    } -> tensor<2x2x1x1xf32>
    %17 = tensor.empty() : tensor<2x2x2x3xf32>
    %18 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded, %14 : tensor<2x2x2x3xf32>, tensor<2x2x1x1xf32>) outs(%17 : tensor<2x2x2x3xf32>) {
    ^bb0(%in: f32, %in_4: f32, %out: f32):
      %20 = arith.subf %in, %in_4 : f32
      linalg.yield %20 : f32
    } -> tensor<2x2x2x3xf32>
    %19 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%18, %16 : tensor<2x2x2x3xf32>, tensor<2x2x1x1xf32>) outs(%17 : tensor<2x2x2x3xf32>) {
    ^bb0(%in: f32, %in_4: f32, %out: f32):
      %20 = arith.mulf %in, %in_4 : f32
      linalg.yield %20 : f32
    } -> tensor<2x2x2x3xf32>
    %collapsed = tensor.collapse_shape %19 [[0], [1, 2], [3]] : tensor<2x2x2x3xf32> into tensor<2x4x3xf32>
    return %collapsed : tensor<2x4x3xf32>
  }
}
// ----- normalize
#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0, d1) -> (d0, 0)>
#map2 = affine_map<(d0, d1) -> (d0)>
module {
  func.func @main(%arg0: tensor<4x6xf32>) -> tensor<4x6xf32> {
    %cst = arith.constant 0.000000e+00 : f32
    %cst_0 = arith.constant 9.9999999999999998E-13 : f64
    %cst_1 = arith.constant 5.000000e-01 : f32
    %cst_2 = arith.constant 2.000000e+00 : f32
    %0 = tensor.empty() : tensor<4x1xf32>
    %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<4x1xf32>) -> tensor<4x1xf32>
    %2 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "reduction"]} ins(%arg0 : tensor<4x6xf32>) outs(%1 : tensor<4x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %8 = math.absf %in : f32
      %9 = math.powf %8, %cst_2 : f32
      %10 = arith.addf %9, %out : f32
      linalg.yield %10 : f32
    } -> tensor<4x1xf32>
    %3 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%2 : tensor<4x1xf32>) outs(%0 : tensor<4x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %8 = math.powf %in, %cst_1 : f32
      linalg.yield %8 : f32
    } -> tensor<4x1xf32>
    %4 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%3 : tensor<4x1xf32>) outs(%0 : tensor<4x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %8 = arith.truncf %cst_0 : f64 to f32
      %9 = arith.cmpf ult, %in, %8 : f32
      %10 = arith.select %9, %8, %in : f32
      linalg.yield %10 : f32
    } -> tensor<4x1xf32>
    %5 = tensor.empty() : tensor<4x6xf32>
    %collapsed = tensor.collapse_shape %4 [[0, 1]] : tensor<4x1xf32> into tensor<4xf32>
    %6 = linalg.generic {indexing_maps = [#map2, #map], iterator_types = ["parallel", "parallel"]} ins(%collapsed : tensor<4xf32>) outs(%5 : tensor<4x6xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<4x6xf32>
    %7 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel"]} ins(%arg0, %6 : tensor<4x6xf32>, tensor<4x6xf32>) outs(%5 : tensor<4x6xf32>) {
    ^bb0(%in: f32, %in_3: f32, %out: f32):
      %8 = arith.divf %in, %in_3 : f32
      linalg.yield %8 : f32
    } -> tensor<4x6xf32>
    return %7 : tensor<4x6xf32>
  }
}
// ----- mse_loss
#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0, d1) -> ()>
#map2 = affine_map<() -> ()>
module {
  func.func @main(%arg0: tensor<4x6xf32>, %arg1: tensor<4x6xf32>) -> tensor<f32> {
    %c2_i64 = arith.constant 2 : i64
    %cst = arith.constant 0.000000e+00 : f32
    %cst_0 = arith.constant 2.400000e+01 : f32
    %0 = tensor.empty() : tensor<4x6xf32>
    %1 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel"]} ins(%arg0, %arg1 : tensor<4x6xf32>, tensor<4x6xf32>) outs(%0 : tensor<4x6xf32>) {
    ^bb0(%in: f32, %in_1: f32, %out: f32):
      %7 = arith.subf %in, %in_1 : f32
      linalg.yield %7 : f32
    } -> tensor<4x6xf32>
    %2 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%1 : tensor<4x6xf32>) outs(%0 : tensor<4x6xf32>) {
    ^bb0(%in: f32, %out: f32):
      %7 = math.fpowi %in, %c2_i64 : f32, i64
      linalg.yield %7 : f32
    } -> tensor<4x6xf32>
    %3 = tensor.empty() : tensor<f32>
    %4 = linalg.fill ins(%cst : f32) outs(%3 : tensor<f32>) -> tensor<f32>
    %5 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["reduction", "reduction"]} ins(%2 : tensor<4x6xf32>) outs(%4 : tensor<f32>) {
    ^bb0(%in: f32, %out: f32):
      %7 = arith.addf %in, %out : f32
      linalg.yield %7 : f32
    } -> tensor<f32>
    %6 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = []} ins(%5 : tensor<f32>) outs(%3 : tensor<f32>) {
    ^bb0(%in: f32, %out: f32):
      %7 = arith.divf %in, %cst_0 : f32
      linalg.yield %7 : f32
    } -> tensor<f32>
    return %6 : tensor<f32>
  }
}
// ----- l1_loss
#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0, d1) -> ()>
#map2 = affine_map<() -> ()>
module {
  func.func @main(%arg0: tensor<4x6xf32>, %arg1: tensor<4x6xf32>) -> tensor<f32> {
    %cst = arith.constant 0.000000e+00 : f32
    %cst_0 = arith.constant 2.400000e+01 : f32
    %0 = tensor.empty() : tensor<4x6xf32>
    %1 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel"]} ins(%arg0, %arg1 : tensor<4x6xf32>, tensor<4x6xf32>) outs(%0 : tensor<4x6xf32>) {
    ^bb0(%in: f32, %in_1: f32, %out: f32):
      %7 = arith.subf %in, %in_1 : f32
      linalg.yield %7 : f32
    } -> tensor<4x6xf32>
    %2 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%1 : tensor<4x6xf32>) outs(%0 : tensor<4x6xf32>) {
    ^bb0(%in: f32, %out: f32):
      %7 = math.absf %in : f32
      linalg.yield %7 : f32
    } -> tensor<4x6xf32>
    %3 = tensor.empty() : tensor<f32>
    %4 = linalg.fill ins(%cst : f32) outs(%3 : tensor<f32>) -> tensor<f32>
    %5 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["reduction", "reduction"]} ins(%2 : tensor<4x6xf32>) outs(%4 : tensor<f32>) {
    ^bb0(%in: f32, %out: f32):
      %7 = arith.addf %in, %out : f32
      linalg.yield %7 : f32
    } -> tensor<f32>
    %6 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = []} ins(%5 : tensor<f32>) outs(%3 : tensor<f32>) {
    ^bb0(%in: f32, %out: f32):
      %7 = arith.divf %in, %cst_0 : f32
      linalg.yield %7 : f32
    } -> tensor<f32>
    return %6 : tensor<f32>
  }
}
// ----- huber_loss
#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0, d1) -> ()>
#map2 = affine_map<() -> ()>
module {
  func.func @main(%arg0: tensor<4x6xf32>, %arg1: tensor<4x6xf32>) -> tensor<f32> {
    %cst = arith.constant 0.000000e+00 : f32
    %cst_0 = arith.constant 1.000000e+00 : f64
    %cst_1 = arith.constant 5.000000e-01 : f32
    %cst_2 = arith.constant 2.400000e+01 : f32
    %0 = tensor.empty() : tensor<4x6xf32>
    %1 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel"]} ins(%arg0, %arg1 : tensor<4x6xf32>, tensor<4x6xf32>) outs(%0 : tensor<4x6xf32>) {
    ^bb0(%in: f32, %in_3: f32, %out: f32):
      %13 = arith.subf %in, %in_3 : f32
      linalg.yield %13 : f32
    } -> tensor<4x6xf32>
    %2 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%1 : tensor<4x6xf32>) outs(%0 : tensor<4x6xf32>) {
    ^bb0(%in: f32, %out: f32):
      %13 = math.absf %in : f32
      linalg.yield %13 : f32
    } -> tensor<4x6xf32>
    %3 = tensor.empty() : tensor<4x6xi1>
    %4 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%2 : tensor<4x6xf32>) outs(%3 : tensor<4x6xi1>) {
    ^bb0(%in: f32, %out: i1):
      %13 = arith.extf %in : f32 to f64
      %14 = arith.cmpf olt, %13, %cst_0 : f64
      linalg.yield %14 : i1
    } -> tensor<4x6xi1>
    %5 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%2 : tensor<4x6xf32>) outs(%0 : tensor<4x6xf32>) {
    ^bb0(%in: f32, %out: f32):
      %13 = arith.mulf %in, %cst_1 : f32
      linalg.yield %13 : f32
    } -> tensor<4x6xf32>
    %6 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel"]} ins(%5, %2 : tensor<4x6xf32>, tensor<4x6xf32>) outs(%0 : tensor<4x6xf32>) {
    ^bb0(%in: f32, %in_3: f32, %out: f32):
      %13 = arith.mulf %in, %in_3 : f32
      linalg.yield %13 : f32
    } -> tensor<4x6xf32>
    %7 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%2 : tensor<4x6xf32>) outs(%0 : tensor<4x6xf32>) {
    ^bb0(%in: f32, %out: f32):
      %13 = arith.subf %in, %cst_1 : f32
      linalg.yield %13 : f32
    } -> tensor<4x6xf32>
    %8 = linalg.generic {indexing_maps = [#map, #map, #map, #map], iterator_types = ["parallel", "parallel"]} ins(%4, %6, %7 : tensor<4x6xi1>, tensor<4x6xf32>, tensor<4x6xf32>) outs(%0 : tensor<4x6xf32>) {
    ^bb0(%in: i1, %in_3: f32, %in_4: f32, %out: f32):
      %13 = arith.select %in, %in_3, %in_4 : f32
      linalg.yield %13 : f32
    } -> tensor<4x6xf32>
    %9 = tensor.empty() : tensor<f32>
    %10 = linalg.fill ins(%cst : f32) outs(%9 : tensor<f32>) -> tensor<f32>
    %11 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["reduction", "reduction"]} ins(%8 : tensor<4x6xf32>) outs(%10 : tensor<f32>) {
    ^bb0(%in: f32, %out: f32):
      %13 = arith.addf %in, %out : f32
      linalg.yield %13 : f32
    } -> tensor<f32>
    %12 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = []} ins(%11 : tensor<f32>) outs(%9 : tensor<f32>) {
    ^bb0(%in: f32, %out: f32):
      %13 = arith.divf %in, %cst_2 : f32
      linalg.yield %13 : f32
    } -> tensor<f32>
    return %12 : tensor<f32>
  }
}
// ----- cross_entropy
#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0, d1) -> (d0)>
#map2 = affine_map<(d0, d1) -> (d0, 0)>
#map3 = affine_map<(d0) -> (d0)>
#map4 = affine_map<(d0) -> ()>
#map5 = affine_map<() -> ()>
module {
  func.func @main(%arg0: tensor<4x6xf32>, %arg1: tensor<4xi64>) -> tensor<f32> {
    %c-100_i64 = arith.constant -100 : i64
    %c0_i64 = arith.constant 0 : i64
    %cst = arith.constant 0xFF800000 : f32
    %c6 = arith.constant 6 : index
    %cst_0 = arith.constant 0.000000e+00 : f32
    %cst_1 = arith.constant dense<0.000000e+00> : tensor<f32>
    %cst_2 = arith.constant dense<0> : tensor<i64>
    %0 = tensor.empty() : tensor<4xi64>
    %1 = linalg.fill ins(%c0_i64 : i64) outs(%0 : tensor<4xi64>) -> tensor<4xi64>
    %2 = tensor.empty() : tensor<4xf32>
    %3 = linalg.fill ins(%cst : f32) outs(%2 : tensor<4xf32>) -> tensor<4xf32>
    %4:2 = linalg.generic {indexing_maps = [#map, #map1, #map1], iterator_types = ["parallel", "reduction"]} ins(%arg0 : tensor<4x6xf32>) outs(%3, %1 : tensor<4xf32>, tensor<4xi64>) {
    ^bb0(%in: f32, %out: f32, %out_4: i64):
      %27 = linalg.index 1 : index
      %28 = arith.index_cast %27 : index to i64
      %29 = arith.maximumf %in, %out : f32
      %30 = arith.cmpf ogt, %in, %out : f32
      %31 = arith.select %30, %28, %out_4 : i64
      linalg.yield %29, %31 : f32, i64
    } -> (tensor<4xf32>, tensor<4xi64>)
    %expanded = tensor.expand_shape %4#0 [[0, 1]] output_shape [4, 1] : tensor<4xf32> into tensor<4x1xf32>
    %5 = tensor.empty() : tensor<4x6xf32>
    %6 = linalg.generic {indexing_maps = [#map, #map2, #map], iterator_types = ["parallel", "parallel"]} ins(%arg0, %expanded : tensor<4x6xf32>, tensor<4x1xf32>) outs(%5 : tensor<4x6xf32>) {
    ^bb0(%in: f32, %in_4: f32, %out: f32):
      %27 = arith.subf %in, %in_4 : f32
      linalg.yield %27 : f32
    } -> tensor<4x6xf32>
    %7 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%6 : tensor<4x6xf32>) outs(%5 : tensor<4x6xf32>) {
    ^bb0(%in: f32, %out: f32):
      %27 = math.exp %in : f32
      linalg.yield %27 : f32
    } -> tensor<4x6xf32>
    %8 = tensor.empty() : tensor<4x1xf32>
    %9 = linalg.fill ins(%cst_0 : f32) outs(%8 : tensor<4x1xf32>) -> tensor<4x1xf32>
    %10 = linalg.generic {indexing_maps = [#map, #map2], iterator_types = ["parallel", "reduction"]} ins(%7 : tensor<4x6xf32>) outs(%9 : tensor<4x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %27 = arith.addf %in, %out : f32
      linalg.yield %27 : f32
    } -> tensor<4x1xf32>
    %11 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%10 : tensor<4x1xf32>) outs(%8 : tensor<4x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %27 = math.log %in : f32
      linalg.yield %27 : f32
    } -> tensor<4x1xf32>
    %12 = linalg.generic {indexing_maps = [#map, #map2, #map], iterator_types = ["parallel", "parallel"]} ins(%6, %11 : tensor<4x6xf32>, tensor<4x1xf32>) outs(%5 : tensor<4x6xf32>) {
    ^bb0(%in: f32, %in_4: f32, %out: f32):
      %27 = arith.subf %in, %in_4 : f32
      linalg.yield %27 : f32
    } -> tensor<4x6xf32>
    %13 = tensor.empty() : tensor<4xi1>
    %14 = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel"]} ins(%arg1 : tensor<4xi64>) outs(%13 : tensor<4xi1>) {
    ^bb0(%in: i64, %out: i1):
      %27 = arith.cmpi ne, %in, %c-100_i64 : i64
      linalg.yield %27 : i1
    } -> tensor<4xi1>
    %15 = linalg.generic {indexing_maps = [#map3, #map3, #map4, #map3], iterator_types = ["parallel"]} ins(%14, %arg1, %cst_2 : tensor<4xi1>, tensor<4xi64>, tensor<i64>) outs(%0 : tensor<4xi64>) {
    ^bb0(%in: i1, %in_4: i64, %in_5: i64, %out: i64):
      %27 = arith.select %in, %in_4, %in_5 : i64
      linalg.yield %27 : i64
    } -> tensor<4xi64>
    %expanded_3 = tensor.expand_shape %15 [[0, 1]] output_shape [4, 1] : tensor<4xi64> into tensor<4x1xi64>
    %16 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%expanded_3 : tensor<4x1xi64>) outs(%9 : tensor<4x1xf32>) {
    ^bb0(%in: i64, %out: f32):
      %27 = linalg.index 0 : index
      %28 = arith.index_cast %in : i64 to index
      %29 = arith.cmpi slt, %28, %c6 : index
      cf.assert %29, "index must be smaller than dim size"
      %30 = arith.cmpi sge, %in, %c0_i64 : i64
      cf.assert %30, "index must be larger or equal to 0"
      %extracted = tensor.extract %12[%27, %28] : tensor<4x6xf32>
      linalg.yield %extracted : f32
    } -> tensor<4x1xf32>
    %collapsed = tensor.collapse_shape %16 [[0, 1]] : tensor<4x1xf32> into tensor<4xf32>
    %17 = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel"]} ins(%collapsed : tensor<4xf32>) outs(%2 : tensor<4xf32>) {
    ^bb0(%in: f32, %out: f32):
      %27 = arith.negf %in : f32
      linalg.yield %27 : f32
    } -> tensor<4xf32>
    %18 = linalg.generic {indexing_maps = [#map3, #map3, #map4, #map3], iterator_types = ["parallel"]} ins(%14, %17, %cst_1 : tensor<4xi1>, tensor<4xf32>, tensor<f32>) outs(%2 : tensor<4xf32>) {
    ^bb0(%in: i1, %in_4: f32, %in_5: f32, %out: f32):
      %27 = arith.select %in, %in_4, %in_5 : f32
      linalg.yield %27 : f32
    } -> tensor<4xf32>
    %19 = tensor.empty() : tensor<i64>
    %20 = linalg.fill ins(%c0_i64 : i64) outs(%19 : tensor<i64>) -> tensor<i64>
    %21 = linalg.generic {indexing_maps = [#map3, #map4], iterator_types = ["reduction"]} ins(%14 : tensor<4xi1>) outs(%20 : tensor<i64>) {
    ^bb0(%in: i1, %out: i64):
      %27 = arith.extui %in : i1 to i64
      %28 = arith.addi %27, %out : i64
      linalg.yield %28 : i64
    } -> tensor<i64>
    %22 = tensor.empty() : tensor<f32>
    %23 = linalg.generic {indexing_maps = [#map5, #map5], iterator_types = []} ins(%21 : tensor<i64>) outs(%22 : tensor<f32>) {
    ^bb0(%in: i64, %out: f32):
      %27 = arith.sitofp %in : i64 to f32
      linalg.yield %27 : f32
    } -> tensor<f32>
    %24 = linalg.fill ins(%cst_0 : f32) outs(%22 : tensor<f32>) -> tensor<f32>
    %25 = linalg.generic {indexing_maps = [#map3, #map4], iterator_types = ["reduction"]} ins(%18 : tensor<4xf32>) outs(%24 : tensor<f32>) {
    ^bb0(%in: f32, %out: f32):
      %27 = arith.addf %in, %out : f32
      linalg.yield %27 : f32
    } -> tensor<f32>
    %26 = linalg.generic {indexing_maps = [#map5, #map5, #map5], iterator_types = []} ins(%25, %23 : tensor<f32>, tensor<f32>) outs(%22 : tensor<f32>) {
    ^bb0(%in: f32, %in_4: f32, %out: f32):
      %27 = arith.divf %in, %in_4 : f32
      linalg.yield %27 : f32
    } -> tensor<f32>
    return %26 : tensor<f32>
  }
}
// ----- nll_loss
#map = affine_map<(d0) -> (d0)>
#map1 = affine_map<(d0) -> ()>
#map2 = affine_map<(d0, d1) -> (d0, d1)>
#map3 = affine_map<() -> ()>
module {
  func.func @main(%arg0: tensor<4x6xf32>, %arg1: tensor<4xi64>) -> tensor<f32> {
    %c-100_i64 = arith.constant -100 : i64
    %cst = arith.constant 0.000000e+00 : f32
    %c6 = arith.constant 6 : index
    %c0_i64 = arith.constant 0 : i64
    %cst_0 = arith.constant dense<0.000000e+00> : tensor<f32>
    %cst_1 = arith.constant dense<0> : tensor<i64>
    %0 = tensor.empty() : tensor<4xi1>
    %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%arg1 : tensor<4xi64>) outs(%0 : tensor<4xi1>) {
    ^bb0(%in: i64, %out: i1):
      %18 = arith.cmpi ne, %in, %c-100_i64 : i64
      linalg.yield %18 : i1
    } -> tensor<4xi1>
    %2 = tensor.empty() : tensor<4xi64>
    %3 = linalg.generic {indexing_maps = [#map, #map, #map1, #map], iterator_types = ["parallel"]} ins(%1, %arg1, %cst_1 : tensor<4xi1>, tensor<4xi64>, tensor<i64>) outs(%2 : tensor<4xi64>) {
    ^bb0(%in: i1, %in_2: i64, %in_3: i64, %out: i64):
      %18 = arith.select %in, %in_2, %in_3 : i64
      linalg.yield %18 : i64
    } -> tensor<4xi64>
    %expanded = tensor.expand_shape %3 [[0, 1]] output_shape [4, 1] : tensor<4xi64> into tensor<4x1xi64>
    %4 = tensor.empty() : tensor<4x1xf32>
    %5 = linalg.fill ins(%cst : f32) outs(%4 : tensor<4x1xf32>) -> tensor<4x1xf32>
    %6 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel"]} ins(%expanded : tensor<4x1xi64>) outs(%5 : tensor<4x1xf32>) {
    ^bb0(%in: i64, %out: f32):
      %18 = linalg.index 0 : index
      %19 = arith.index_cast %in : i64 to index
      %20 = arith.cmpi slt, %19, %c6 : index
      cf.assert %20, "index must be smaller than dim size"
      %21 = arith.cmpi sge, %in, %c0_i64 : i64
      cf.assert %21, "index must be larger or equal to 0"
      %extracted = tensor.extract %arg0[%18, %19] : tensor<4x6xf32>
      linalg.yield %extracted : f32
    } -> tensor<4x1xf32>
    %collapsed = tensor.collapse_shape %6 [[0, 1]] : tensor<4x1xf32> into tensor<4xf32>
    %7 = tensor.empty() : tensor<4xf32>
    %8 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%collapsed : tensor<4xf32>) outs(%7 : tensor<4xf32>) {
    ^bb0(%in: f32, %out: f32):
      %18 = arith.negf %in : f32
      linalg.yield %18 : f32
    } -> tensor<4xf32>
    %9 = linalg.generic {indexing_maps = [#map, #map, #map1, #map], iterator_types = ["parallel"]} ins(%1, %8, %cst_0 : tensor<4xi1>, tensor<4xf32>, tensor<f32>) outs(%7 : tensor<4xf32>) {
    ^bb0(%in: i1, %in_2: f32, %in_3: f32, %out: f32):
      %18 = arith.select %in, %in_2, %in_3 : f32
      linalg.yield %18 : f32
    } -> tensor<4xf32>
    %10 = tensor.empty() : tensor<i64>
    %11 = linalg.fill ins(%c0_i64 : i64) outs(%10 : tensor<i64>) -> tensor<i64>
    %12 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["reduction"]} ins(%1 : tensor<4xi1>) outs(%11 : tensor<i64>) {
    ^bb0(%in: i1, %out: i64):
      %18 = arith.extui %in : i1 to i64
      %19 = arith.addi %18, %out : i64
      linalg.yield %19 : i64
    } -> tensor<i64>
    %13 = tensor.empty() : tensor<f32>
    %14 = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = []} ins(%12 : tensor<i64>) outs(%13 : tensor<f32>) {
    ^bb0(%in: i64, %out: f32):
      %18 = arith.sitofp %in : i64 to f32
      linalg.yield %18 : f32
    } -> tensor<f32>
    %15 = linalg.fill ins(%cst : f32) outs(%13 : tensor<f32>) -> tensor<f32>
    %16 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["reduction"]} ins(%9 : tensor<4xf32>) outs(%15 : tensor<f32>) {
    ^bb0(%in: f32, %out: f32):
      %18 = arith.addf %in, %out : f32
      linalg.yield %18 : f32
    } -> tensor<f32>
    %17 = linalg.generic {indexing_maps = [#map3, #map3, #map3], iterator_types = []} ins(%16, %14 : tensor<f32>, tensor<f32>) outs(%13 : tensor<f32>) {
    ^bb0(%in: f32, %in_2: f32, %out: f32):
      %18 = arith.divf %in, %in_2 : f32
      linalg.yield %18 : f32
    } -> tensor<f32>
    return %17 : tensor<f32>
  }
}
// ----- binary_cross_entropy
#map = affine_map<(d0, d1) -> ()>
#map1 = affine_map<(d0, d1) -> (d0, d1)>
#map2 = affine_map<() -> ()>
module {
  func.func @main(%arg0: tensor<4x6xf32>, %arg1: tensor<4x6xf32>) -> tensor<f32> {
    %cst = arith.constant 0.000000e+00 : f32
    %cst_0 = arith.constant dense<0.000000e+00> : tensor<f32>
    %cst_1 = arith.constant 2.400000e+01 : f32
    %cst_2 = arith.constant dense<1> : tensor<i64>
    %0 = tensor.empty() : tensor<4x6xf32>
    %1 = linalg.generic {indexing_maps = [#map, #map1, #map1], iterator_types = ["parallel", "parallel"]} ins(%cst_2, %arg1 : tensor<i64>, tensor<4x6xf32>) outs(%0 : tensor<4x6xf32>) {
    ^bb0(%in: i64, %in_3: f32, %out: f32):
      %14 = arith.sitofp %in : i64 to f32
      %15 = arith.subf %14, %in_3 : f32
      linalg.yield %15 : f32
    } -> tensor<4x6xf32>
    %2 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel", "parallel"]} ins(%1, %arg0 : tensor<4x6xf32>, tensor<4x6xf32>) outs(%0 : tensor<4x6xf32>) {
    ^bb0(%in: f32, %in_3: f32, %out: f32):
      %14 = arith.mulf %in, %in_3 : f32
      linalg.yield %14 : f32
    } -> tensor<4x6xf32>
    %3 = linalg.generic {indexing_maps = [#map, #map1, #map1], iterator_types = ["parallel", "parallel"]} ins(%cst_0, %arg0 : tensor<f32>, tensor<4x6xf32>) outs(%0 : tensor<4x6xf32>) {
    ^bb0(%in: f32, %in_3: f32, %out: f32):
      %14 = arith.cmpf olt, %in, %in_3 : f32
      %15 = arith.select %14, %in, %in_3 : f32
      linalg.yield %15 : f32
    } -> tensor<4x6xf32>
    %4 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel"]} ins(%arg0 : tensor<4x6xf32>) outs(%0 : tensor<4x6xf32>) {
    ^bb0(%in: f32, %out: f32):
      %14 = math.absf %in : f32
      linalg.yield %14 : f32
    } -> tensor<4x6xf32>
    %5 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel"]} ins(%4 : tensor<4x6xf32>) outs(%0 : tensor<4x6xf32>) {
    ^bb0(%in: f32, %out: f32):
      %14 = arith.negf %in : f32
      linalg.yield %14 : f32
    } -> tensor<4x6xf32>
    %6 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel"]} ins(%5 : tensor<4x6xf32>) outs(%0 : tensor<4x6xf32>) {
    ^bb0(%in: f32, %out: f32):
      %14 = math.exp %in : f32
      linalg.yield %14 : f32
    } -> tensor<4x6xf32>
    %7 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel"]} ins(%6 : tensor<4x6xf32>) outs(%0 : tensor<4x6xf32>) {
    ^bb0(%in: f32, %out: f32):
      %14 = math.log1p %in : f32
      linalg.yield %14 : f32
    } -> tensor<4x6xf32>
    %8 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel", "parallel"]} ins(%3, %7 : tensor<4x6xf32>, tensor<4x6xf32>) outs(%0 : tensor<4x6xf32>) {
    ^bb0(%in: f32, %in_3: f32, %out: f32):
      %14 = arith.subf %in, %in_3 : f32
      linalg.yield %14 : f32
    } -> tensor<4x6xf32>
    %9 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel", "parallel"]} ins(%2, %8 : tensor<4x6xf32>, tensor<4x6xf32>) outs(%0 : tensor<4x6xf32>) {
    ^bb0(%in: f32, %in_3: f32, %out: f32):
      %14 = arith.subf %in, %in_3 : f32
      linalg.yield %14 : f32
    } -> tensor<4x6xf32>
    %10 = tensor.empty() : tensor<f32>
    %11 = linalg.fill ins(%cst : f32) outs(%10 : tensor<f32>) -> tensor<f32>
    %12 = linalg.generic {indexing_maps = [#map1, #map], iterator_types = ["reduction", "reduction"]} ins(%9 : tensor<4x6xf32>) outs(%11 : tensor<f32>) {
    ^bb0(%in: f32, %out: f32):
      %14 = arith.addf %in, %out : f32
      linalg.yield %14 : f32
    } -> tensor<f32>
    %13 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = []} ins(%12 : tensor<f32>) outs(%10 : tensor<f32>) {
    ^bb0(%in: f32, %out: f32):
      %14 = arith.divf %in, %cst_1 : f32
      linalg.yield %14 : f32
    } -> tensor<f32>
    return %13 : tensor<f32>
  }
}
// ----- kl_div
#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0, d1) -> ()>
#map2 = affine_map<() -> ()>
module {
  func.func @main(%arg0: tensor<4x6xf32>, %arg1: tensor<4x6xf32>) -> tensor<f32> {
    %cst = arith.constant 0.000000e+00 : f32
    %cst_0 = arith.constant dense<0x7FC00000> : tensor<f32>
    %cst_1 = arith.constant dense<0.000000e+00> : tensor<f32>
    %cst_2 = arith.constant 4.000000e+00 : f32
    %0 = tensor.empty() : tensor<4x6xf32>
    %1 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel"]} ins(%arg1, %arg0 : tensor<4x6xf32>, tensor<4x6xf32>) outs(%0 : tensor<4x6xf32>) {
    ^bb0(%in: f32, %in_3: f32, %out: f32):
      %14 = arith.mulf %in, %in_3 : f32
      linalg.yield %14 : f32
    } -> tensor<4x6xf32>
    %2 = tensor.empty() : tensor<4x6xi1>
    %3 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%arg1 : tensor<4x6xf32>) outs(%2 : tensor<4x6xi1>) {
    ^bb0(%in: f32, %out: i1):
      %14 = arith.cmpf oeq, %in, %cst : f32
      linalg.yield %14 : i1
    } -> tensor<4x6xi1>
    %4 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%arg1 : tensor<4x6xf32>) outs(%0 : tensor<4x6xf32>) {
    ^bb0(%in: f32, %out: f32):
      %14 = math.log %in : f32
      linalg.yield %14 : f32
    } -> tensor<4x6xf32>
    %5 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel"]} ins(%arg1, %4 : tensor<4x6xf32>, tensor<4x6xf32>) outs(%0 : tensor<4x6xf32>) {
    ^bb0(%in: f32, %in_3: f32, %out: f32):
      %14 = arith.mulf %in, %in_3 : f32
      linalg.yield %14 : f32
    } -> tensor<4x6xf32>
    %6 = linalg.generic {indexing_maps = [#map, #map1, #map, #map], iterator_types = ["parallel", "parallel"]} ins(%3, %cst_1, %5 : tensor<4x6xi1>, tensor<f32>, tensor<4x6xf32>) outs(%0 : tensor<4x6xf32>) {
    ^bb0(%in: i1, %in_3: f32, %in_4: f32, %out: f32):
      %14 = arith.select %in, %in_3, %in_4 : f32
      linalg.yield %14 : f32
    } -> tensor<4x6xf32>
    %7 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel"]} ins(%arg1, %arg1 : tensor<4x6xf32>, tensor<4x6xf32>) outs(%2 : tensor<4x6xi1>) {
    ^bb0(%in: f32, %in_3: f32, %out: i1):
      %14 = arith.cmpf une, %in, %in_3 : f32
      linalg.yield %14 : i1
    } -> tensor<4x6xi1>
    %8 = linalg.generic {indexing_maps = [#map, #map1, #map, #map], iterator_types = ["parallel", "parallel"]} ins(%7, %cst_0, %6 : tensor<4x6xi1>, tensor<f32>, tensor<4x6xf32>) outs(%0 : tensor<4x6xf32>) {
    ^bb0(%in: i1, %in_3: f32, %in_4: f32, %out: f32):
      %14 = arith.select %in, %in_3, %in_4 : f32
      linalg.yield %14 : f32
    } -> tensor<4x6xf32>
    %9 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel"]} ins(%8, %1 : tensor<4x6xf32>, tensor<4x6xf32>) outs(%0 : tensor<4x6xf32>) {
    ^bb0(%in: f32, %in_3: f32, %out: f32):
      %14 = arith.subf %in, %in_3 : f32
      linalg.yield %14 : f32
    } -> tensor<4x6xf32>
    %10 = tensor.empty() : tensor<f32>
    %11 = linalg.fill ins(%cst : f32) outs(%10 : tensor<f32>) -> tensor<f32>
    %12 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["reduction", "reduction"]} ins(%9 : tensor<4x6xf32>) outs(%11 : tensor<f32>) {
    ^bb0(%in: f32, %out: f32):
      %14 = arith.addf %in, %out : f32
      linalg.yield %14 : f32
    } -> tensor<f32>
    %13 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = []} ins(%12 : tensor<f32>) outs(%10 : tensor<f32>) {
    ^bb0(%in: f32, %out: f32):
      %14 = arith.divf %in, %cst_2 : f32
      linalg.yield %14 : f32
    } -> tensor<f32>
    return %13 : tensor<f32>
  }
}
// ----- reshape
module {
  func.func @main(%arg0: tensor<4x6xf32>) -> tensor<2x12xf32> {
    %collapsed = tensor.collapse_shape %arg0 [[0, 1]] : tensor<4x6xf32> into tensor<24xf32>
    %expanded = tensor.expand_shape %collapsed [[0, 1]] output_shape [2, 12] : tensor<24xf32> into tensor<2x12xf32>
    return %expanded : tensor<2x12xf32>
  }
}
// ----- view_dynamic
module {
  func.func @main(%arg0: tensor<?x6xf32>) -> tensor<?x2x3xf32> {
    %c0 = arith.constant 0 : index
    %dim = tensor.dim %arg0, %c0 : tensor<?x6xf32>
    %expanded = tensor.expand_shape %arg0 [[0], [1, 2]] output_shape [%dim, 2, 3] : tensor<?x6xf32> into tensor<?x2x3xf32>
    return %expanded : tensor<?x2x3xf32>
  }
}
// ----- permute
module {
  func.func @main(%arg0: tensor<2x3x4xf32>) -> tensor<4x2x3xf32> {
    %0 = tensor.empty() : tensor<4x2x3xf32>
    %transposed = linalg.transpose ins(%arg0 : tensor<2x3x4xf32>) outs(%0 : tensor<4x2x3xf32>) permutation = [2, 0, 1] 
    return %transposed : tensor<4x2x3xf32>
  }
}
// ----- squeeze
module {
  func.func @main(%arg0: tensor<4x1x3xf32>) -> tensor<4x3xf32> {
    %collapsed = tensor.collapse_shape %arg0 [[0, 1], [2]] : tensor<4x1x3xf32> into tensor<4x3xf32>
    return %collapsed : tensor<4x3xf32>
  }
}
// ----- unsqueeze
module {
  func.func @main(%arg0: tensor<4x6xf32>) -> tensor<4x1x6xf32> {
    %expanded = tensor.expand_shape %arg0 [[0], [1, 2]] output_shape [4, 1, 6] : tensor<4x6xf32> into tensor<4x1x6xf32>
    return %expanded : tensor<4x1x6xf32>
  }
}
// ----- expand
#map = affine_map<(d0, d1) -> (d1)>
#map1 = affine_map<(d0, d1) -> (d0, d1)>
module {
  func.func @main(%arg0: tensor<1x6xf32>) -> tensor<3x6xf32> {
    %0 = tensor.empty() : tensor<3x6xf32>
    %collapsed = tensor.collapse_shape %arg0 [[0, 1]] : tensor<1x6xf32> into tensor<6xf32>
    %1 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel"]} ins(%collapsed : tensor<6xf32>) outs(%0 : tensor<3x6xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<3x6xf32>
    return %1 : tensor<3x6xf32>
  }
}
// ----- flip
#map = affine_map<(d0, d1) -> (d0, d1)>
module {
  func.func @main(%arg0: tensor<4x6xf32>) -> tensor<4x6xf32> {
    %cst = arith.constant 0.000000e+00 : f32
    %c3 = arith.constant 3 : index
    %0 = tensor.empty() : tensor<4x6xf32>
    %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<4x6xf32>) -> tensor<4x6xf32>
    %2 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%arg0 : tensor<4x6xf32>) outs(%1 : tensor<4x6xf32>) {
    ^bb0(%in: f32, %out: f32):
      %3 = linalg.index 0 : index
      %4 = linalg.index 1 : index
      %5 = arith.subi %c3, %3 : index
      %extracted = tensor.extract %arg0[%5, %4] : tensor<4x6xf32>
      linalg.yield %extracted : f32
    } -> tensor<4x6xf32>
    return %2 : tensor<4x6xf32>
  }
}
// ----- roll
module {
  func.func @main(%arg0: tensor<4x6xf32>) -> tensor<4x6xf32> {
    %extracted_slice = tensor.extract_slice %arg0[0, 4] [4, 2] [1, 1] : tensor<4x6xf32> to tensor<4x2xf32>
    %cast = tensor.cast %extracted_slice : tensor<4x2xf32> to tensor<4x?xf32>
    %extracted_slice_0 = tensor.extract_slice %arg0[0, 0] [4, 4] [1, 1] : tensor<4x6xf32> to tensor<4x4xf32>
    %cast_1 = tensor.cast %extracted_slice_0 : tensor<4x4xf32> to tensor<4x?xf32>
    %concat = tensor.concat dim(1) %cast, %cast_1 : (tensor<4x?xf32>, tensor<4x?xf32>) -> tensor<4x6xf32>
    return %concat : tensor<4x6xf32>
  }
}
// ----- repeat
#map = affine_map<(d0, d1, d2, d3) -> (d1, d3)>
#map1 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
module {
  func.func @main(%arg0: tensor<2x3xf32>) -> tensor<4x6xf32> {
    %0 = tensor.empty() : tensor<2x2x2x3xf32>
    %1 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg0 : tensor<2x3xf32>) outs(%0 : tensor<2x2x2x3xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<2x2x2x3xf32>
    %collapsed = tensor.collapse_shape %1 [[0, 1], [2, 3]] : tensor<2x2x2x3xf32> into tensor<4x6xf32>
    return %collapsed : tensor<4x6xf32>
  }
}
// ----- stack
module {
  func.func @main(%arg0: tensor<6xf32>, %arg1: tensor<6xf32>) -> tensor<2x6xf32> {
    %concat = tensor.concat dim(0) %arg0, %arg1 : (tensor<6xf32>, tensor<6xf32>) -> tensor<12xf32>
    %expanded = tensor.expand_shape %concat [[0, 1]] output_shape [2, 6] : tensor<12xf32> into tensor<2x6xf32>
    return %expanded : tensor<2x6xf32>
  }
}
// ----- cat
module {
  func.func @main(%arg0: tensor<?x6xf32>, %arg1: tensor<?x6xf32>) -> tensor<?x6xf32> {
    %concat = tensor.concat dim(0) %arg0, %arg1 : (tensor<?x6xf32>, tensor<?x6xf32>) -> tensor<?x6xf32>
    return %concat : tensor<?x6xf32>
  }
}
// ----- cat_columns
#map = affine_map<(d0, d1) -> (d0, d1)>
module {
  func.func @main(%arg0: tensor<3x2xf32>, %arg1: tensor<3x4xf32>) -> tensor<3x6xf32> {
    %0 = tensor.empty() : tensor<3x2xf32>
    %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%arg0 : tensor<3x2xf32>) outs(%0 : tensor<3x2xf32>) {
    ^bb0(%in: f32, %out: f32):
      %2 = math.sin %in : f32
      linalg.yield %2 : f32
    } -> tensor<3x2xf32>
    %concat = tensor.concat dim(1) %1, %arg1 : (tensor<3x2xf32>, tensor<3x4xf32>) -> tensor<3x6xf32>
    return %concat : tensor<3x6xf32>
  }
}
// ----- split
module {
  func.func @main(%arg0: tensor<4x6xf32>) -> (tensor<4x2xf32>, tensor<4x2xf32>, tensor<4x2xf32>) {
    %extracted_slice = tensor.extract_slice %arg0[0, 0] [4, 2] [1, 1] : tensor<4x6xf32> to tensor<4x2xf32>
    %extracted_slice_0 = tensor.extract_slice %arg0[0, 2] [4, 2] [1, 1] : tensor<4x6xf32> to tensor<4x2xf32>
    %extracted_slice_1 = tensor.extract_slice %arg0[0, 4] [4, 2] [1, 1] : tensor<4x6xf32> to tensor<4x2xf32>
    return %extracted_slice, %extracted_slice_0, %extracted_slice_1 : tensor<4x2xf32>, tensor<4x2xf32>, tensor<4x2xf32>
  }
}
// ----- slice
module {
  func.func @main(%arg0: tensor<4x6xf32>) -> tensor<2x3xf32> {
    %extracted_slice = tensor.extract_slice %arg0[1, 0] [2, 6] [1, 1] : tensor<4x6xf32> to tensor<2x6xf32>
    %extracted_slice_0 = tensor.extract_slice %extracted_slice[0, 0] [2, 3] [1, 2] : tensor<2x6xf32> to tensor<2x3xf32>
    return %extracted_slice_0 : tensor<2x3xf32>
  }
}
// ----- narrow
module {
  func.func @main(%arg0: tensor<4x6xf32>) -> tensor<2x6xf32> {
    %extracted_slice = tensor.extract_slice %arg0[1, 0] [2, 6] [1, 1] : tensor<4x6xf32> to tensor<2x6xf32>
    return %extracted_slice : tensor<2x6xf32>
  }
}
// ----- pad
module {
  func.func @main(%arg0: tensor<4x6xf32>) -> tensor<4x9xf32> {
    %cst = arith.constant 0.000000e+00 : f32
    %padded = tensor.pad %arg0 low[0, 1] high[0, 2] {
    ^bb0(%arg1: index, %arg2: index):
      tensor.yield %cst : f32
    } : tensor<4x6xf32> to tensor<4x9xf32>
    return %padded : tensor<4x9xf32>
  }
}
// ----- pad_value
module {
  func.func @main(%arg0: tensor<4x6xf32>) -> tensor<6x7xf32> {
    %cst = arith.constant 7.000000e+00 : f32
    %padded = tensor.pad %arg0 low[0, 1] high[2, 0] {
    ^bb0(%arg1: index, %arg2: index):
      tensor.yield %cst : f32
    } : tensor<4x6xf32> to tensor<6x7xf32>
    return %padded : tensor<6x7xf32>
  }
}
// ----- tril
#map = affine_map<(d0) -> (d0)>
#map1 = affine_map<(d0, d1) -> (0, d1)>
#map2 = affine_map<(d0, d1) -> (d0, 0)>
#map3 = affine_map<(d0, d1) -> (d0, d1)>
#map4 = affine_map<(d0, d1) -> ()>
module {
  func.func @main(%arg0: tensor<5x5xf32>) -> tensor<5x5xf32> {
    %c0_i64 = arith.constant 0 : i64
    %cst = arith.constant dense<0.000000e+00> : tensor<f32>
    %0 = tensor.empty() : tensor<5xi64>
    %1 = linalg.generic {indexing_maps = [#map], iterator_types = ["parallel"]} outs(%0 : tensor<5xi64>) {
    ^bb0(%out: i64):
      %8 = linalg.index 0 : index
      %9 = arith.index_cast %8 : index to i64
      linalg.yield %9 : i64
    } -> tensor<5xi64>
    %expanded = tensor.expand_shape %1 [[0, 1]] output_shape [1, 5] : tensor<5xi64> into tensor<1x5xi64>
    %expanded_0 = tensor.expand_shape %1 [[0, 1]] output_shape [5, 1] : tensor<5xi64> into tensor<5x1xi64>
    %2 = tensor.empty() : tensor<5x5xi64>
    %3 = linalg.generic {indexing_maps = [#map1, #map2, #map3], iterator_types = ["parallel", "parallel"]} ins(%expanded, %expanded_0 : tensor<1x5xi64>, tensor<5x1xi64>) outs(%2 : tensor<5x5xi64>) {
    ^bb0(%in: i64, %in_1: i64, %out: i64):
      %8 = arith.subi %in, %in_1 : i64
      linalg.yield %8 : i64
    } -> tensor<5x5xi64>
    %4 = tensor.empty() : tensor<5x5xi1>
    %5 = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel", "parallel"]} ins(%3 : tensor<5x5xi64>) outs(%4 : tensor<5x5xi1>) {
    ^bb0(%in: i64, %out: i1):
      %8 = arith.cmpi sle, %in, %c0_i64 : i64
      linalg.yield %8 : i1
    } -> tensor<5x5xi1>
    %6 = tensor.empty() : tensor<5x5xf32>
    %7 = linalg.generic {indexing_maps = [#map3, #map3, #map4, #map3], iterator_types = ["parallel", "parallel"]} ins(%5, %arg0, %cst : tensor<5x5xi1>, tensor<5x5xf32>, tensor<f32>) outs(%6 : tensor<5x5xf32>) {
    ^bb0(%in: i1, %in_1: f32, %in_2: f32, %out: f32):
      %8 = arith.select %in, %in_1, %in_2 : f32
      linalg.yield %8 : f32
    } -> tensor<5x5xf32>
    return %7 : tensor<5x5xf32>
  }
}
// ----- triu
#map = affine_map<(d0) -> (d0)>
#map1 = affine_map<(d0, d1) -> (0, d1)>
#map2 = affine_map<(d0, d1) -> (d0, 0)>
#map3 = affine_map<(d0, d1) -> (d0, d1)>
#map4 = affine_map<(d0, d1) -> ()>
module {
  func.func @main(%arg0: tensor<5x5xf32>) -> tensor<5x5xf32> {
    %c1_i64 = arith.constant 1 : i64
    %cst = arith.constant dense<0.000000e+00> : tensor<f32>
    %0 = tensor.empty() : tensor<5xi64>
    %1 = linalg.generic {indexing_maps = [#map], iterator_types = ["parallel"]} outs(%0 : tensor<5xi64>) {
    ^bb0(%out: i64):
      %8 = linalg.index 0 : index
      %9 = arith.index_cast %8 : index to i64
      linalg.yield %9 : i64
    } -> tensor<5xi64>
    %expanded = tensor.expand_shape %1 [[0, 1]] output_shape [1, 5] : tensor<5xi64> into tensor<1x5xi64>
    %expanded_0 = tensor.expand_shape %1 [[0, 1]] output_shape [5, 1] : tensor<5xi64> into tensor<5x1xi64>
    %2 = tensor.empty() : tensor<5x5xi64>
    %3 = linalg.generic {indexing_maps = [#map1, #map2, #map3], iterator_types = ["parallel", "parallel"]} ins(%expanded, %expanded_0 : tensor<1x5xi64>, tensor<5x1xi64>) outs(%2 : tensor<5x5xi64>) {
    ^bb0(%in: i64, %in_1: i64, %out: i64):
      %8 = arith.subi %in, %in_1 : i64
      linalg.yield %8 : i64
    } -> tensor<5x5xi64>
    %4 = tensor.empty() : tensor<5x5xi1>
    %5 = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel", "parallel"]} ins(%3 : tensor<5x5xi64>) outs(%4 : tensor<5x5xi1>) {
    ^bb0(%in: i64, %out: i1):
      %8 = arith.cmpi sge, %in, %c1_i64 : i64
      linalg.yield %8 : i1
    } -> tensor<5x5xi1>
    %6 = tensor.empty() : tensor<5x5xf32>
    %7 = linalg.generic {indexing_maps = [#map3, #map3, #map4, #map3], iterator_types = ["parallel", "parallel"]} ins(%5, %arg0, %cst : tensor<5x5xi1>, tensor<5x5xf32>, tensor<f32>) outs(%6 : tensor<5x5xf32>) {
    ^bb0(%in: i1, %in_1: f32, %in_2: f32, %out: f32):
      %8 = arith.select %in, %in_1, %in_2 : f32
      linalg.yield %8 : f32
    } -> tensor<5x5xf32>
    return %7 : tensor<5x5xf32>
  }
}
// ----- where
#map = affine_map<(d0, d1) -> (d0, d1)>
module {
  func.func @main(%arg0: tensor<4x6xi1>, %arg1: tensor<4x6xf32>, %arg2: tensor<4x6xf32>) -> tensor<4x6xf32> {
    %0 = tensor.empty() : tensor<4x6xf32>
    %1 = linalg.generic {indexing_maps = [#map, #map, #map, #map], iterator_types = ["parallel", "parallel"]} ins(%arg0, %arg1, %arg2 : tensor<4x6xi1>, tensor<4x6xf32>, tensor<4x6xf32>) outs(%0 : tensor<4x6xf32>) {
    ^bb0(%in: i1, %in_0: f32, %in_1: f32, %out: f32):
      %2 = arith.select %in, %in_0, %in_1 : f32
      linalg.yield %2 : f32
    } -> tensor<4x6xf32>
    return %1 : tensor<4x6xf32>
  }
}
// ----- masked_fill
#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0, d1) -> ()>
module {
  func.func @main(%arg0: tensor<4x6xf32>, %arg1: tensor<4x6xi1>) -> tensor<4x6xf32> {
    %cst = arith.constant dense<-7.000000e+00> : tensor<f32>
    %0 = tensor.empty() : tensor<4x6xf32>
    %1 = linalg.generic {indexing_maps = [#map, #map1, #map, #map], iterator_types = ["parallel", "parallel"]} ins(%arg1, %cst, %arg0 : tensor<4x6xi1>, tensor<f32>, tensor<4x6xf32>) outs(%0 : tensor<4x6xf32>) {
    ^bb0(%in: i1, %in_0: f32, %in_1: f32, %out: f32):
      %2 = arith.select %in, %in_0, %in_1 : f32
      linalg.yield %2 : f32
    } -> tensor<4x6xf32>
    return %1 : tensor<4x6xf32>
  }
}
// ----- clamp
#map = affine_map<(d0, d1) -> (d0, d1)>
module {
  func.func @main(%arg0: tensor<4x6xf32>) -> tensor<4x6xf32> {
    %cst = arith.constant -5.000000e-01 : f32
    %cst_0 = arith.constant 5.000000e-01 : f32
    %0 = tensor.empty() : tensor<4x6xf32>
    %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%arg0 : tensor<4x6xf32>) outs(%0 : tensor<4x6xf32>) {
    ^bb0(%in: f32, %out: f32):
      %2 = arith.cmpf ult, %in, %cst : f32
      %3 = arith.select %2, %cst, %in : f32
      %4 = arith.cmpf ugt, %3, %cst_0 : f32
      %5 = arith.select %4, %cst_0, %3 : f32
      linalg.yield %5 : f32
    } -> tensor<4x6xf32>
    return %1 : tensor<4x6xf32>
  }
}
// ----- to_integers
#map = affine_map<(d0, d1) -> (d0, d1)>
module {
  func.func @main(%arg0: tensor<4x6xf32>) -> tensor<4x6xi32> {
    %cst = arith.constant 3.000000e+00 : f32
    %0 = tensor.empty() : tensor<4x6xf32>
    %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%arg0 : tensor<4x6xf32>) outs(%0 : tensor<4x6xf32>) {
    ^bb0(%in: f32, %out: f32):
      %4 = arith.mulf %in, %cst : f32
      linalg.yield %4 : f32
    } -> tensor<4x6xf32>
    %2 = tensor.empty() : tensor<4x6xi32>
    %3 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%1 : tensor<4x6xf32>) outs(%2 : tensor<4x6xi32>) {
    ^bb0(%in: f32, %out: i32):
      %4 = arith.fptosi %in : f32 to i32
      linalg.yield %4 : i32
    } -> tensor<4x6xi32>
    return %3 : tensor<4x6xi32>
  }
}
// ----- arange
#map = affine_map<(d0) -> (d0)>
#map1 = affine_map<(d0, d1) -> (d0, d1)>
#map2 = affine_map<(d0, d1) -> (d1)>
module {
  func.func @main(%arg0: tensor<4x6xf32>) -> tensor<4x6xf32> {
    %0 = tensor.empty() : tensor<6xi64>
    %1 = linalg.generic {indexing_maps = [#map], iterator_types = ["parallel"]} outs(%0 : tensor<6xi64>) {
    ^bb0(%out: i64):
      %4 = linalg.index 0 : index
      %5 = arith.index_cast %4 : index to i64
      linalg.yield %5 : i64
    } -> tensor<6xi64>
    %2 = tensor.empty() : tensor<4x6xf32>
    %3 = linalg.generic {indexing_maps = [#map1, #map2, #map1], iterator_types = ["parallel", "parallel"]} ins(%arg0, %1 : tensor<4x6xf32>, tensor<6xi64>) outs(%2 : tensor<4x6xf32>) {
    ^bb0(%in: f32, %in_0: i64, %out: f32):
      %4 = arith.sitofp %in_0 : i64 to f32
      %5 = arith.addf %in, %4 : f32
      linalg.yield %5 : f32
    } -> tensor<4x6xf32>
    return %3 : tensor<4x6xf32>
  }
}
// ----- one_hot
#map = affine_map<(d0) -> (d0)>
#map1 = affine_map<(d0, d1) -> (d0, 0)>
#map2 = affine_map<(d0, d1) -> (d1)>
#map3 = affine_map<(d0, d1) -> (d0, d1)>
module {
  func.func @main(%arg0: tensor<4xi64>) -> tensor<4x6xi64> {
    %0 = tensor.empty() : tensor<6xi64>
    %1 = linalg.generic {indexing_maps = [#map], iterator_types = ["parallel"]} outs(%0 : tensor<6xi64>) {
    ^bb0(%out: i64):
      %6 = linalg.index 0 : index
      %7 = arith.index_cast %6 : index to i64
      linalg.yield %7 : i64
    } -> tensor<6xi64>
    %expanded = tensor.expand_shape %arg0 [[0, 1]] output_shape [4, 1] : tensor<4xi64> into tensor<4x1xi64>
    %2 = tensor.empty() : tensor<4x6xi1>
    %3 = linalg.generic {indexing_maps = [#map1, #map2, #map3], iterator_types = ["parallel", "parallel"]} ins(%expanded, %1 : tensor<4x1xi64>, tensor<6xi64>) outs(%2 : tensor<4x6xi1>) {
    ^bb0(%in: i64, %in_0: i64, %out: i1):
      %6 = arith.cmpi eq, %in, %in_0 : i64
      linalg.yield %6 : i1
    } -> tensor<4x6xi1>
    %4 = tensor.empty() : tensor<4x6xi64>
    %5 = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel", "parallel"]} ins(%3 : tensor<4x6xi1>) outs(%4 : tensor<4x6xi64>) {
    ^bb0(%in: i1, %out: i64):
      %6 = arith.extui %in : i1 to i64
      linalg.yield %6 : i64
    } -> tensor<4x6xi64>
    return %5 : tensor<4x6xi64>
  }
}
// ----- embedding
#map = affine_map<(d0, d1, d2) -> (d0, d1)>
#map1 = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
module {
  func.func @main(%arg0: tensor<7x4xf32>, %arg1: tensor<2x3xi64>) -> tensor<2x3x4xf32> {
    %c7 = arith.constant 7 : index
    %c0_i64 = arith.constant 0 : i64
    %0 = tensor.empty() : tensor<2x3x4xf32>
    %1 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%arg1 : tensor<2x3xi64>) outs(%0 : tensor<2x3x4xf32>) {
    ^bb0(%in: i64, %out: f32):
      %2 = arith.index_cast %in : i64 to index
      %3 = linalg.index 2 : index
      %4 = arith.cmpi slt, %2, %c7 : index
      cf.assert %4, "index must be smaller than dim size"
      %5 = arith.cmpi sge, %in, %c0_i64 : i64
      cf.assert %5, "index must be larger or equal to 0"
      %extracted = tensor.extract %arg0[%2, %3] : tensor<7x4xf32>
      linalg.yield %extracted : f32
    } -> tensor<2x3x4xf32>
    return %1 : tensor<2x3x4xf32>
  }
}
// ----- index_select
#map = affine_map<(d0, d1) -> (d0)>
#map1 = affine_map<(d0, d1) -> (d0, d1)>
module {
  func.func @main(%arg0: tensor<4x6xf32>, %arg1: tensor<5xi64>) -> tensor<5x6xf32> {
    %0 = tensor.empty() : tensor<5x6xf32>
    %1 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel"]} ins(%arg1 : tensor<5xi64>) outs(%0 : tensor<5x6xf32>) {
    ^bb0(%in: i64, %out: f32):
      %2 = arith.index_cast %in : i64 to index
      %3 = linalg.index 1 : index
      %extracted = tensor.extract %arg0[%2, %3] : tensor<4x6xf32>
      linalg.yield %extracted : f32
    } -> tensor<5x6xf32>
    return %1 : tensor<5x6xf32>
  }
}
// ----- gather
#map = affine_map<(d0, d1) -> (d0, d1)>
module {
  func.func @main(%arg0: tensor<4x6xf32>, %arg1: tensor<4x2xi64>) -> tensor<4x2xf32> {
    %cst = arith.constant 0.000000e+00 : f32
    %c6 = arith.constant 6 : index
    %c0_i64 = arith.constant 0 : i64
    %0 = tensor.empty() : tensor<4x2xf32>
    %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<4x2xf32>) -> tensor<4x2xf32>
    %2 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%arg1 : tensor<4x2xi64>) outs(%1 : tensor<4x2xf32>) {
    ^bb0(%in: i64, %out: f32):
      %3 = linalg.index 0 : index
      %4 = arith.index_cast %in : i64 to index
      %5 = arith.cmpi slt, %4, %c6 : index
      cf.assert %5, "index must be smaller than dim size"
      %6 = arith.cmpi sge, %in, %c0_i64 : i64
      cf.assert %6, "index must be larger or equal to 0"
      %extracted = tensor.extract %arg0[%3, %4] : tensor<4x6xf32>
      linalg.yield %extracted : f32
    } -> tensor<4x2xf32>
    return %2 : tensor<4x2xf32>
  }
}
// ----- index
#map = affine_map<(d0, d1) -> (d0)>
#map1 = affine_map<(d0, d1) -> (d0, d1)>
module {
  func.func @main(%arg0: tensor<4x6xf32>, %arg1: tensor<5xi64>) -> tensor<5x6xf32> {
    %c0_i64 = arith.constant 0 : i64
    %c4_i64 = arith.constant 4 : i64
    %0 = tensor.empty() : tensor<5x6xf32>
    %1 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel"]} ins(%arg1 : tensor<5xi64>) outs(%0 : tensor<5x6xf32>) {
    ^bb0(%in: i64, %out: f32):
      %2 = arith.cmpi slt, %in, %c0_i64 : i64
      %3 = arith.addi %in, %c4_i64 : i64
      %4 = arith.select %2, %3, %in : i64
      %5 = arith.index_cast %4 : i64 to index
      %6 = linalg.index 1 : index
      %extracted = tensor.extract %arg0[%5, %6] : tensor<4x6xf32>
      linalg.yield %extracted : f32
    } -> tensor<5x6xf32>
    return %1 : tensor<5x6xf32>
  }
}
// ----- index_pairs
#map = affine_map<(d0) -> (d0)>
module {
  func.func @main(%arg0: tensor<4x6xf32>, %arg1: tensor<5xi64>, %arg2: tensor<5xi64>) -> tensor<5xf32> {
    %c0_i64 = arith.constant 0 : i64
    %c4_i64 = arith.constant 4 : i64
    %c6_i64 = arith.constant 6 : i64
    %0 = tensor.empty() : tensor<5xf32>
    %1 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel"]} ins(%arg1, %arg2 : tensor<5xi64>, tensor<5xi64>) outs(%0 : tensor<5xf32>) {
    ^bb0(%in: i64, %in_0: i64, %out: f32):
      %2 = arith.cmpi slt, %in, %c0_i64 : i64
      %3 = arith.addi %in, %c4_i64 : i64
      %4 = arith.select %2, %3, %in : i64
      %5 = arith.index_cast %4 : i64 to index
      %6 = arith.cmpi slt, %in_0, %c0_i64 : i64
      %7 = arith.addi %in_0, %c6_i64 : i64
      %8 = arith.select %6, %7, %in_0 : i64
      %9 = arith.index_cast %8 : i64 to index
      %extracted = tensor.extract %arg0[%5, %9] : tensor<4x6xf32>
      linalg.yield %extracted : f32
    } -> tensor<5xf32>
    return %1 : tensor<5xf32>
  }
}
// ----- index_add
module {
  func.func @main(%arg0: tensor<4x6xf32>, %arg1: tensor<3xi64>, %arg2: tensor<3x6xf32>) -> tensor<4x6xf32> {
    %expanded = tensor.expand_shape %arg1 [[0, 1]] output_shape [3, 1] : tensor<3xi64> into tensor<3x1xi64>
    %expanded_0 = tensor.expand_shape %arg2 [[0], [1, 2]] output_shape [3, 1, 6] : tensor<3x6xf32> into tensor<3x1x6xf32>
    %0 = tm_tensor.scatter {dimension_map = array<i64: 0>} unique_indices(false) ins(%expanded_0, %expanded : tensor<3x1x6xf32>, tensor<3x1xi64>) outs(%arg0 : tensor<4x6xf32>) {
    ^bb0(%arg3: f32, %arg4: f32):
      %1 = arith.addf %arg4, %arg3 : f32
      tm_tensor.yield %1 : f32
    } -> tensor<4x6xf32>
    return %0 : tensor<4x6xf32>
  }
}
// ----- slice_scatter
module {
  func.func @main(%arg0: tensor<4x6xf32>, %arg1: tensor<2x6xf32>) -> tensor<4x6xf32> {
    %inserted_slice = tensor.insert_slice %arg1 into %arg0[1, 0] [2, 6] [1, 1] : tensor<2x6xf32> into tensor<4x6xf32>
    return %inserted_slice : tensor<4x6xf32>
  }
}
// ----- topk
#map = affine_map<(d0, d1) -> (d0, d1)>
module {
  func.func @main(%arg0: tensor<4x6xf32>) -> tensor<4x2xf32> {
    %0 = tensor.empty() : tensor<4x6xi64>
    %1 = linalg.generic {indexing_maps = [#map], iterator_types = ["parallel", "parallel"]} outs(%0 : tensor<4x6xi64>) {
    ^bb0(%out: i64):
      %3 = linalg.index 1 : index
      %4 = arith.index_cast %3 : index to i64
      linalg.yield %4 : i64
    } -> tensor<4x6xi64>
    %2:2 = tm_tensor.sort dimension(1) outs(%arg0, %1 : tensor<4x6xf32>, tensor<4x6xi64>) {
    ^bb0(%arg1: f32, %arg2: f32, %arg3: i64, %arg4: i64):
      %3 = arith.cmpf oge, %arg1, %arg2 : f32
      tm_tensor.yield %3 : i1
    } -> tensor<4x6xf32>, tensor<4x6xi64>
    %extracted_slice = tensor.extract_slice %2#0[0, 0] [4, 2] [1, 1] : tensor<4x6xf32> to tensor<4x2xf32>
    return %extracted_slice : tensor<4x2xf32>
  }
}
// ----- sort
#map = affine_map<(d0, d1) -> (d0, d1)>
module {
  func.func @main(%arg0: tensor<4x6xf32>) -> tensor<4x6xf32> {
    %0 = tensor.empty() : tensor<4x6xi64>
    %1 = linalg.generic {indexing_maps = [#map], iterator_types = ["parallel", "parallel"]} outs(%0 : tensor<4x6xi64>) {
    ^bb0(%out: i64):
      %3 = linalg.index 1 : index
      %4 = arith.index_cast %3 : index to i64
      linalg.yield %4 : i64
    } -> tensor<4x6xi64>
    %2:2 = tm_tensor.sort dimension(1) outs(%arg0, %1 : tensor<4x6xf32>, tensor<4x6xi64>) {
    ^bb0(%arg1: f32, %arg2: f32, %arg3: i64, %arg4: i64):
      %3 = arith.cmpf ole, %arg1, %arg2 : f32
      tm_tensor.yield %3 : i1
    } -> tensor<4x6xf32>, tensor<4x6xi64>
    return %2#0 : tensor<4x6xf32>
  }
}
// ----- mm
module {
  func.func @main(%arg0: tensor<?x?xf32>, %arg1: tensor<?x5xf32>) -> tensor<?x5xf32> {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %cst = arith.constant 0.000000e+00 : f32
    %dim = tensor.dim %arg0, %c0 : tensor<?x?xf32>
    %dim_0 = tensor.dim %arg0, %c1 : tensor<?x?xf32>
    %dim_1 = tensor.dim %arg1, %c0 : tensor<?x5xf32>
    %0 = arith.cmpi eq, %dim_0, %dim_1 : index
    cf.assert %0, "mismatching contracting dimension for torch.aten.mm"
    %1 = tensor.empty(%dim) : tensor<?x5xf32>
    %2 = linalg.fill ins(%cst : f32) outs(%1 : tensor<?x5xf32>) -> tensor<?x5xf32>
    %3 = linalg.matmul ins(%arg0, %arg1 : tensor<?x?xf32>, tensor<?x5xf32>) outs(%2 : tensor<?x5xf32>) -> tensor<?x5xf32>
    return %3 : tensor<?x5xf32>
  }
}
// ----- bmm
module {
  func.func @main(%arg0: tensor<?x?x6xf32>, %arg1: tensor<?x6x?xf32>) -> tensor<?x?x?xf32> {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %cst = arith.constant 0.000000e+00 : f32
    %dim = tensor.dim %arg0, %c0 : tensor<?x?x6xf32>
    %dim_0 = tensor.dim %arg0, %c1 : tensor<?x?x6xf32>
    %dim_1 = tensor.dim %arg1, %c0 : tensor<?x6x?xf32>
    %dim_2 = tensor.dim %arg1, %c2 : tensor<?x6x?xf32>
    %0 = arith.index_cast %dim : index to i64
    %1 = arith.index_cast %dim_1 : index to i64
    %2 = arith.cmpi eq, %0, %1 : i64
    cf.assert %2, "mismatching contracting dimension"
    %3 = tensor.empty(%dim, %dim_0, %dim_2) : tensor<?x?x?xf32>
    %4 = linalg.fill ins(%cst : f32) outs(%3 : tensor<?x?x?xf32>) -> tensor<?x?x?xf32>
    %5 = linalg.batch_matmul ins(%arg0, %arg1 : tensor<?x?x6xf32>, tensor<?x6x?xf32>) outs(%4 : tensor<?x?x?xf32>) -> tensor<?x?x?xf32>
    return %5 : tensor<?x?x?xf32>
  }
}
// ----- matvec
#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0, d1) -> (d1)>
#map2 = affine_map<(d0, d1) -> (d0)>
module {
  func.func @main(%arg0: tensor<4x6xf32>, %arg1: tensor<6xf32>) -> tensor<4xf32> {
    %cst = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<4x6xf32>
    %1 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel"]} ins(%arg0, %arg1 : tensor<4x6xf32>, tensor<6xf32>) outs(%0 : tensor<4x6xf32>) {
    ^bb0(%in: f32, %in_0: f32, %out: f32):
      %5 = arith.mulf %in, %in_0 : f32
      linalg.yield %5 : f32
    } -> tensor<4x6xf32>
    %2 = tensor.empty() : tensor<4xf32>
    %3 = linalg.fill ins(%cst : f32) outs(%2 : tensor<4xf32>) -> tensor<4xf32>
    %4 = linalg.generic {indexing_maps = [#map, #map2], iterator_types = ["parallel", "reduction"]} ins(%1 : tensor<4x6xf32>) outs(%3 : tensor<4xf32>) {
    ^bb0(%in: f32, %out: f32):
      %5 = arith.addf %in, %out : f32
      linalg.yield %5 : f32
    } -> tensor<4xf32>
    return %4 : tensor<4xf32>
  }
}
// ----- dot
#map = affine_map<(d0) -> (d0)>
#map1 = affine_map<(d0) -> ()>
module {
  func.func @main(%arg0: tensor<6xf32>, %arg1: tensor<6xf32>) -> tensor<f32> {
    %cst = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<6xf32>
    %1 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel"]} ins(%arg0, %arg1 : tensor<6xf32>, tensor<6xf32>) outs(%0 : tensor<6xf32>) {
    ^bb0(%in: f32, %in_0: f32, %out: f32):
      %5 = arith.mulf %in, %in_0 : f32
      linalg.yield %5 : f32
    } -> tensor<6xf32>
    %2 = tensor.empty() : tensor<f32>
    %3 = linalg.fill ins(%cst : f32) outs(%2 : tensor<f32>) -> tensor<f32>
    %4 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["reduction"]} ins(%1 : tensor<6xf32>) outs(%3 : tensor<f32>) {
    ^bb0(%in: f32, %out: f32):
      %5 = arith.addf %in, %out : f32
      linalg.yield %5 : f32
    } -> tensor<f32>
    return %4 : tensor<f32>
  }
}
// ----- outer
#map = affine_map<(d0, d1) -> (d0, 0)>
#map1 = affine_map<(d0, d1) -> (d1)>
#map2 = affine_map<(d0, d1) -> (d0, d1)>
module {
  func.func @main(%arg0: tensor<4xf32>, %arg1: tensor<6xf32>) -> tensor<4x6xf32> {
    %expanded = tensor.expand_shape %arg0 [[0, 1]] output_shape [4, 1] : tensor<4xf32> into tensor<4x1xf32>
    %0 = tensor.empty() : tensor<4x6xf32>
    %1 = linalg.generic {indexing_maps = [#map, #map1, #map2], iterator_types = ["parallel", "parallel"]} ins(%expanded, %arg1 : tensor<4x1xf32>, tensor<6xf32>) outs(%0 : tensor<4x6xf32>) {
    ^bb0(%in: f32, %in_0: f32, %out: f32):
      %2 = arith.mulf %in, %in_0 : f32
      linalg.yield %2 : f32
    } -> tensor<4x6xf32>
    return %1 : tensor<4x6xf32>
  }
}
// ----- matmul_broadcast
module {
  func.func @main(%arg0: tensor<2x4x6xf32>, %arg1: tensor<6x5xf32>) -> tensor<2x4x5xf32> {
    %cst = arith.constant 0.000000e+00 : f32
    %collapsed = tensor.collapse_shape %arg0 [[0, 1], [2]] : tensor<2x4x6xf32> into tensor<8x6xf32>
    %0 = tensor.empty() : tensor<8x5xf32>
    %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<8x5xf32>) -> tensor<8x5xf32>
    %2 = linalg.matmul ins(%collapsed, %arg1 : tensor<8x6xf32>, tensor<6x5xf32>) outs(%1 : tensor<8x5xf32>) -> tensor<8x5xf32>
    %expanded = tensor.expand_shape %2 [[0, 1], [2]] output_shape [2, 4, 5] : tensor<8x5xf32> into tensor<2x4x5xf32>
    return %expanded : tensor<2x4x5xf32>
  }
}
// ----- linear
#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0, d1) -> (d1)>
module {
  func.func @main(%arg0: tensor<?x6xf32>, %arg1: tensor<5x6xf32>, %arg2: tensor<5xf32>) -> tensor<?x5xf32> {
    %c0 = arith.constant 0 : index
    %cst = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<6x5xf32>
    %transposed = linalg.transpose ins(%arg1 : tensor<5x6xf32>) outs(%0 : tensor<6x5xf32>) permutation = [1, 0] 
    %dim = tensor.dim %arg0, %c0 : tensor<?x6xf32>
    %1 = tensor.empty(%dim) : tensor<?x5xf32>
    %2 = linalg.fill ins(%cst : f32) outs(%1 : tensor<?x5xf32>) -> tensor<?x5xf32>
    %3 = linalg.matmul ins(%arg0, %transposed : tensor<?x6xf32>, tensor<6x5xf32>) outs(%2 : tensor<?x5xf32>) -> tensor<?x5xf32>
    %4 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel"]} ins(%3, %arg2 : tensor<?x5xf32>, tensor<5xf32>) outs(%1 : tensor<?x5xf32>) {
    ^bb0(%in: f32, %in_0: f32, %out: f32):
      %5 = arith.addf %in, %in_0 : f32
      linalg.yield %5 : f32
    } -> tensor<?x5xf32>
    return %4 : tensor<?x5xf32>
  }
}
// ----- addmm
#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0, d1) -> (d1)>
module {
  func.func @main(%arg0: tensor<5xf32>, %arg1: tensor<4x6xf32>, %arg2: tensor<6x5xf32>) -> tensor<4x5xf32> {
    %cst = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<4x5xf32>
    %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<4x5xf32>) -> tensor<4x5xf32>
    %2 = linalg.matmul ins(%arg1, %arg2 : tensor<4x6xf32>, tensor<6x5xf32>) outs(%1 : tensor<4x5xf32>) -> tensor<4x5xf32>
    %3 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel"]} ins(%2, %arg0 : tensor<4x5xf32>, tensor<5xf32>) outs(%0 : tensor<4x5xf32>) {
    ^bb0(%in: f32, %in_0: f32, %out: f32):
      %4 = arith.addf %in, %in_0 : f32
      linalg.yield %4 : f32
    } -> tensor<4x5xf32>
    return %3 : tensor<4x5xf32>
  }
}
// ----- einsum_heads
module {
  func.func @main(%arg0: tensor<4x2x3xf32>, %arg1: tensor<5x2x3xf32>) -> tensor<2x4x5xf32> {
    %cst = arith.constant 0.000000e+00 : f32
    %expanded = tensor.expand_shape %arg0 [[0], [1], [2, 3]] output_shape [4, 2, 3, 1] : tensor<4x2x3xf32> into tensor<4x2x3x1xf32>
    %expanded_0 = tensor.expand_shape %arg1 [[0], [1], [2, 3]] output_shape [5, 2, 3, 1] : tensor<5x2x3xf32> into tensor<5x2x3x1xf32>
    %0 = tensor.empty() : tensor<2x4x3x1xf32>
    %transposed = linalg.transpose ins(%expanded : tensor<4x2x3x1xf32>) outs(%0 : tensor<2x4x3x1xf32>) permutation = [1, 0, 2, 3] 
    %collapsed = tensor.collapse_shape %transposed [[0], [1], [2, 3]] : tensor<2x4x3x1xf32> into tensor<2x4x3xf32>
    %1 = tensor.empty() : tensor<2x3x5x1xf32>
    %transposed_1 = linalg.transpose ins(%expanded_0 : tensor<5x2x3x1xf32>) outs(%1 : tensor<2x3x5x1xf32>) permutation = [1, 2, 0, 3] 
    %collapsed_2 = tensor.collapse_shape %transposed_1 [[0], [1], [2, 3]] : tensor<2x3x5x1xf32> into tensor<2x3x5xf32>
    %2 = tensor.empty() : tensor<2x4x5xf32>
    %3 = linalg.fill ins(%cst : f32) outs(%2 : tensor<2x4x5xf32>) -> tensor<2x4x5xf32>
    %4 = linalg.batch_matmul ins(%collapsed, %collapsed_2 : tensor<2x4x3xf32>, tensor<2x3x5xf32>) outs(%3 : tensor<2x4x5xf32>) -> tensor<2x4x5xf32>
    %expanded_3 = tensor.expand_shape %4 [[0], [1], [2, 3]] output_shape [2, 4, 1, 5] : tensor<2x4x5xf32> into tensor<2x4x1x5xf32>
    %5 = tensor.empty() : tensor<2x4x5x1xf32>
    %transposed_4 = linalg.transpose ins(%expanded_3 : tensor<2x4x1x5xf32>) outs(%5 : tensor<2x4x5x1xf32>) permutation = [0, 1, 3, 2] 
    %collapsed_5 = tensor.collapse_shape %transposed_4 [[0], [1], [2, 3]] : tensor<2x4x5x1xf32> into tensor<2x4x5xf32>
    return %collapsed_5 : tensor<2x4x5xf32>
  }
}
// ----- conv1d
module {
  func.func @main(%arg0: tensor<1x2x8xf32>, %arg1: tensor<3x2x3xf32>) -> tensor<1x3x6xf32> {
    %cst = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<1x3x6xf32>
    %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<1x3x6xf32>) -> tensor<1x3x6xf32>
    %2 = linalg.conv_1d_ncw_fcw {dilations = dense<1> : vector<1xi64>, strides = dense<1> : vector<1xi64>} ins(%arg0, %arg1 : tensor<1x2x8xf32>, tensor<3x2x3xf32>) outs(%1 : tensor<1x3x6xf32>) -> tensor<1x3x6xf32>
    return %2 : tensor<1x3x6xf32>
  }
}
// ----- max_pool1d
module {
  func.func @main(%arg0: tensor<1x2x8xf32>) -> tensor<1x2x4xf32> {
    %cst = arith.constant 0xFF800000 : f32
    %expanded = tensor.expand_shape %arg0 [[0], [1], [2, 3]] output_shape [1, 2, 1, 8] : tensor<1x2x8xf32> into tensor<1x2x1x8xf32>
    %0 = tensor.empty() : tensor<1x2x1x4xf32>
    %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<1x2x1x4xf32>) -> tensor<1x2x1x4xf32>
    %2 = tensor.empty() : tensor<1x2xf32>
    %3 = linalg.pooling_nchw_max {dilations = dense<1> : vector<2xi64>, strides = dense<[1, 2]> : vector<2xi64>} ins(%expanded, %2 : tensor<1x2x1x8xf32>, tensor<1x2xf32>) outs(%1 : tensor<1x2x1x4xf32>) -> tensor<1x2x1x4xf32>
    %collapsed = tensor.collapse_shape %3 [[0], [1, 2], [3]] : tensor<1x2x1x4xf32> into tensor<1x2x4xf32>
    return %collapsed : tensor<1x2x4xf32>
  }
}
// ----- avg_pool1d
#map = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
module {
  func.func @main(%arg0: tensor<1x2x8xf32>) -> tensor<1x2x4xf32> {
    %cst = arith.constant 0.000000e+00 : f32
    %cst_0 = arith.constant 2.000000e+00 : f32
    %expanded = tensor.expand_shape %arg0 [[0], [1], [2, 3]] output_shape [1, 2, 1, 8] : tensor<1x2x8xf32> into tensor<1x2x1x8xf32>
    %0 = tensor.empty() : tensor<1x2x1x4xf32>
    %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<1x2x1x4xf32>) -> tensor<1x2x1x4xf32>
    %2 = tensor.empty() : tensor<1x2xf32>
    %3 = linalg.pooling_nchw_sum {dilations = dense<1> : vector<2xi64>, strides = dense<[1, 2]> : vector<2xi64>} ins(%expanded, %2 : tensor<1x2x1x8xf32>, tensor<1x2xf32>) outs(%1 : tensor<1x2x1x4xf32>) -> tensor<1x2x1x4xf32>
    %4 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%3 : tensor<1x2x1x4xf32>) outs(%0 : tensor<1x2x1x4xf32>) {
    ^bb0(%in: f32, %out: f32):
      %5 = arith.divf %in, %cst_0 : f32
      linalg.yield %5 : f32
    } -> tensor<1x2x1x4xf32>
    %collapsed = tensor.collapse_shape %4 [[0], [1, 2], [3]] : tensor<1x2x1x4xf32> into tensor<1x2x4xf32>
    return %collapsed : tensor<1x2x4xf32>
  }
}
// ----- rope
#map = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#map1 = affine_map<(d0, d1, d2) -> (d0, 0, d2)>
module {
  func.func @main(%arg0: tensor<5x2x8xf32>, %arg1: tensor<5x1x8xf32>, %arg2: tensor<5x1x8xf32>) -> tensor<5x2x8xf32> {
    %extracted_slice = tensor.extract_slice %arg0[0, 0, 0] [5, 2, 4] [1, 1, 1] : tensor<5x2x8xf32> to tensor<5x2x4xf32>
    %extracted_slice_0 = tensor.extract_slice %arg0[0, 0, 4] [5, 2, 4] [1, 1, 1] : tensor<5x2x8xf32> to tensor<5x2x4xf32>
    %0 = tensor.empty() : tensor<5x2x8xf32>
    %1 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%arg0, %arg1 : tensor<5x2x8xf32>, tensor<5x1x8xf32>) outs(%0 : tensor<5x2x8xf32>) {
    ^bb0(%in: f32, %in_1: f32, %out: f32):
      %6 = arith.mulf %in, %in_1 : f32
      linalg.yield %6 : f32
    } -> tensor<5x2x8xf32>
    %2 = tensor.empty() : tensor<5x2x4xf32>
    %3 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%extracted_slice_0 : tensor<5x2x4xf32>) outs(%2 : tensor<5x2x4xf32>) {
    ^bb0(%in: f32, %out: f32):
      %6 = arith.negf %in : f32
      linalg.yield %6 : f32
    } -> tensor<5x2x4xf32>
    %concat = tensor.concat dim(2) %3, %extracted_slice : (tensor<5x2x4xf32>, tensor<5x2x4xf32>) -> tensor<5x2x8xf32>
    %4 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%concat, %arg2 : tensor<5x2x8xf32>, tensor<5x1x8xf32>) outs(%0 : tensor<5x2x8xf32>) {
    ^bb0(%in: f32, %in_1: f32, %out: f32):
      %6 = arith.mulf %in, %in_1 : f32
      linalg.yield %6 : f32
    } -> tensor<5x2x8xf32>
    %5 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%1, %4 : tensor<5x2x8xf32>, tensor<5x2x8xf32>) outs(%0 : tensor<5x2x8xf32>) {
    ^bb0(%in: f32, %in_1: f32, %out: f32):
      %6 = arith.addf %in, %in_1 : f32
      linalg.yield %6 : f32
    } -> tensor<5x2x8xf32>
    return %5 : tensor<5x2x8xf32>
  }
}
// ----- attention
#map = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#map1 = affine_map<(d0) -> (d0)>
#map2 = affine_map<(d0, d1) -> (0, d1)>
#map3 = affine_map<(d0, d1) -> (d0, 0)>
#map4 = affine_map<(d0, d1) -> (d0, d1)>
#map5 = affine_map<(d0, d1, d2) -> (d1, d2)>
#map6 = affine_map<(d0, d1, d2) -> ()>
#map7 = affine_map<(d0, d1, d2) -> (d0, d1)>
#map8 = affine_map<(d0, d1, d2) -> (d0, d1, 0)>
module {
  func.func @main(%arg0: tensor<5x2x4xf32>, %arg1: tensor<5x2x4xf32>, %arg2: tensor<5x2x4xf32>) -> tensor<5x2x4xf32> {
    %c0_i64 = arith.constant 0 : i64
    %cst = arith.constant 0.000000e+00 : f32
    %true = arith.constant true
    %cst_0 = arith.constant 0xFF800000 : f32
    %cst_1 = arith.constant dense<0xFF800000> : tensor<f32>
    %cst_2 = arith.constant dense<true> : tensor<5x5xi1>
    %cst_3 = arith.constant 2.000000e+00 : f32
    %expanded = tensor.expand_shape %arg0 [[0], [1], [2, 3]] output_shape [5, 2, 4, 1] : tensor<5x2x4xf32> into tensor<5x2x4x1xf32>
    %expanded_4 = tensor.expand_shape %arg1 [[0], [1], [2, 3]] output_shape [5, 2, 4, 1] : tensor<5x2x4xf32> into tensor<5x2x4x1xf32>
    %0 = tensor.empty() : tensor<2x5x4x1xf32>
    %transposed = linalg.transpose ins(%expanded : tensor<5x2x4x1xf32>) outs(%0 : tensor<2x5x4x1xf32>) permutation = [1, 0, 2, 3] 
    %collapsed = tensor.collapse_shape %transposed [[0], [1], [2, 3]] : tensor<2x5x4x1xf32> into tensor<2x5x4xf32>
    %1 = tensor.empty() : tensor<2x4x5x1xf32>
    %transposed_5 = linalg.transpose ins(%expanded_4 : tensor<5x2x4x1xf32>) outs(%1 : tensor<2x4x5x1xf32>) permutation = [1, 2, 0, 3] 
    %collapsed_6 = tensor.collapse_shape %transposed_5 [[0], [1], [2, 3]] : tensor<2x4x5x1xf32> into tensor<2x4x5xf32>
    %2 = tensor.empty() : tensor<2x5x5xf32>
    %3 = linalg.fill ins(%cst : f32) outs(%2 : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
    %4 = linalg.batch_matmul ins(%collapsed, %collapsed_6 : tensor<2x5x4xf32>, tensor<2x4x5xf32>) outs(%3 : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
    %expanded_7 = tensor.expand_shape %4 [[0], [1], [2, 3]] output_shape [2, 5, 1, 5] : tensor<2x5x5xf32> into tensor<2x5x1x5xf32>
    %5 = tensor.empty() : tensor<2x5x5x1xf32>
    %transposed_8 = linalg.transpose ins(%expanded_7 : tensor<2x5x1x5xf32>) outs(%5 : tensor<2x5x5x1xf32>) permutation = [0, 1, 3, 2] 
    %collapsed_9 = tensor.collapse_shape %transposed_8 [[0], [1], [2, 3]] : tensor<2x5x5x1xf32> into tensor<2x5x5xf32>
    %6 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%collapsed_9 : tensor<2x5x5xf32>) outs(%2 : tensor<2x5x5xf32>) {
    ^bb0(%in: f32, %out: f32):
      %31 = arith.divf %in, %cst_3 : f32
      linalg.yield %31 : f32
    } -> tensor<2x5x5xf32>
    %7 = tensor.empty() : tensor<5xi64>
    %8 = linalg.generic {indexing_maps = [#map1], iterator_types = ["parallel"]} outs(%7 : tensor<5xi64>) {
    ^bb0(%out: i64):
      %31 = linalg.index 0 : index
      %32 = arith.index_cast %31 : index to i64
      linalg.yield %32 : i64
    } -> tensor<5xi64>
    %expanded_10 = tensor.expand_shape %8 [[0, 1]] output_shape [1, 5] : tensor<5xi64> into tensor<1x5xi64>
    %expanded_11 = tensor.expand_shape %8 [[0, 1]] output_shape [5, 1] : tensor<5xi64> into tensor<5x1xi64>
    %9 = tensor.empty() : tensor<5x5xi64>
    %10 = linalg.generic {indexing_maps = [#map2, #map3, #map4], iterator_types = ["parallel", "parallel"]} ins(%expanded_10, %expanded_11 : tensor<1x5xi64>, tensor<5x1xi64>) outs(%9 : tensor<5x5xi64>) {
    ^bb0(%in: i64, %in_19: i64, %out: i64):
      %31 = arith.subi %in, %in_19 : i64
      linalg.yield %31 : i64
    } -> tensor<5x5xi64>
    %11 = tensor.empty() : tensor<5x5xi1>
    %12 = linalg.generic {indexing_maps = [#map4, #map4], iterator_types = ["parallel", "parallel"]} ins(%10 : tensor<5x5xi64>) outs(%11 : tensor<5x5xi1>) {
    ^bb0(%in: i64, %out: i1):
      %31 = arith.cmpi sle, %in, %c0_i64 : i64
      linalg.yield %31 : i1
    } -> tensor<5x5xi1>
    %13 = linalg.generic {indexing_maps = [#map4, #map4, #map4], iterator_types = ["parallel", "parallel"]} ins(%12, %cst_2 : tensor<5x5xi1>, tensor<5x5xi1>) outs(%11 : tensor<5x5xi1>) {
    ^bb0(%in: i1, %in_19: i1, %out: i1):
      %31 = arith.andi %in, %in_19 : i1
      linalg.yield %31 : i1
    } -> tensor<5x5xi1>
    %14 = linalg.generic {indexing_maps = [#map4, #map4], iterator_types = ["parallel", "parallel"]} ins(%13 : tensor<5x5xi1>) outs(%11 : tensor<5x5xi1>) {
    ^bb0(%in: i1, %out: i1):
      %31 = arith.xori %in, %true : i1
      linalg.yield %31 : i1
    } -> tensor<5x5xi1>
    %15 = linalg.generic {indexing_maps = [#map5, #map6, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%14, %cst_1, %6 : tensor<5x5xi1>, tensor<f32>, tensor<2x5x5xf32>) outs(%2 : tensor<2x5x5xf32>) {
    ^bb0(%in: i1, %in_19: f32, %in_20: f32, %out: f32):
      %31 = arith.select %in, %in_19, %in_20 : f32
      linalg.yield %31 : f32
    } -> tensor<2x5x5xf32>
    %16 = tensor.empty() : tensor<2x5xi64>
    %17 = linalg.fill ins(%c0_i64 : i64) outs(%16 : tensor<2x5xi64>) -> tensor<2x5xi64>
    %18 = tensor.empty() : tensor<2x5xf32>
    %19 = linalg.fill ins(%cst_0 : f32) outs(%18 : tensor<2x5xf32>) -> tensor<2x5xf32>
    %20:2 = linalg.generic {indexing_maps = [#map, #map7, #map7], iterator_types = ["parallel", "parallel", "reduction"]} ins(%15 : tensor<2x5x5xf32>) outs(%19, %17 : tensor<2x5xf32>, tensor<2x5xi64>) {
    ^bb0(%in: f32, %out: f32, %out_19: i64):
      %31 = linalg.index 2 : index
      %32 = arith.index_cast %31 : index to i64
      %33 = arith.maximumf %in, %out : f32
      %34 = arith.cmpf ogt, %in, %out : f32
      %35 = arith.select %34, %32, %out_19 : i64
      linalg.yield %33, %35 : f32, i64
    } -> (tensor<2x5xf32>, tensor<2x5xi64>)
    %expanded_12 = tensor.expand_shape %20#0 [[0], [1, 2]] output_shape [2, 5, 1] : tensor<2x5xf32> into tensor<2x5x1xf32>
    %21 = linalg.generic {indexing_maps = [#map, #map8, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%15, %expanded_12 : tensor<2x5x5xf32>, tensor<2x5x1xf32>) outs(%2 : tensor<2x5x5xf32>) {
    ^bb0(%in: f32, %in_19: f32, %out: f32):
      %31 = arith.subf %in, %in_19 : f32
      linalg.yield %31 : f32
    } -> tensor<2x5x5xf32>
    %22 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%21 : tensor<2x5x5xf32>) outs(%2 : tensor<2x5x5xf32>) {
    ^bb0(%in: f32, %out: f32):
      %31 = math.exp %in : f32
      linalg.yield %31 : f32
    } -> tensor<2x5x5xf32>
    %23 = tensor.empty() : tensor<2x5x1xf32>
    %24 = linalg.fill ins(%cst : f32) outs(%23 : tensor<2x5x1xf32>) -> tensor<2x5x1xf32>
    %25 = linalg.generic {indexing_maps = [#map, #map8], iterator_types = ["parallel", "parallel", "reduction"]} ins(%22 : tensor<2x5x5xf32>) outs(%24 : tensor<2x5x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %31 = arith.addf %in, %out : f32
      linalg.yield %31 : f32
    } -> tensor<2x5x1xf32>
    %26 = linalg.generic {indexing_maps = [#map, #map8, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%22, %25 : tensor<2x5x5xf32>, tensor<2x5x1xf32>) outs(%2 : tensor<2x5x5xf32>) {
    ^bb0(%in: f32, %in_19: f32, %out: f32):
      %31 = arith.divf %in, %in_19 : f32
      linalg.yield %31 : f32
    } -> tensor<2x5x5xf32>
    %expanded_13 = tensor.expand_shape %arg2 [[0], [1], [2, 3]] output_shape [5, 2, 4, 1] : tensor<5x2x4xf32> into tensor<5x2x4x1xf32>
    %transposed_14 = linalg.transpose ins(%expanded_13 : tensor<5x2x4x1xf32>) outs(%0 : tensor<2x5x4x1xf32>) permutation = [1, 0, 2, 3] 
    %collapsed_15 = tensor.collapse_shape %transposed_14 [[0], [1], [2, 3]] : tensor<2x5x4x1xf32> into tensor<2x5x4xf32>
    %27 = tensor.empty() : tensor<2x5x4xf32>
    %28 = linalg.fill ins(%cst : f32) outs(%27 : tensor<2x5x4xf32>) -> tensor<2x5x4xf32>
    %29 = linalg.batch_matmul ins(%26, %collapsed_15 : tensor<2x5x5xf32>, tensor<2x5x4xf32>) outs(%28 : tensor<2x5x4xf32>) -> tensor<2x5x4xf32>
    %expanded_16 = tensor.expand_shape %29 [[0], [1], [2, 3]] output_shape [2, 5, 1, 4] : tensor<2x5x4xf32> into tensor<2x5x1x4xf32>
    %30 = tensor.empty() : tensor<5x2x4x1xf32>
    %transposed_17 = linalg.transpose ins(%expanded_16 : tensor<2x5x1x4xf32>) outs(%30 : tensor<5x2x4x1xf32>) permutation = [1, 0, 3, 2] 
    %collapsed_18 = tensor.collapse_shape %transposed_17 [[0], [1], [2, 3]] : tensor<5x2x4x1xf32> into tensor<5x2x4xf32>
    return %collapsed_18 : tensor<5x2x4xf32>
  }
}
// ----- scaled_dot_product_attention
#map = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map1 = affine_map<(d0) -> (d0)>
#map2 = affine_map<(d0, d1) -> (0, d1)>
#map3 = affine_map<(d0, d1) -> (d0, 0)>
#map4 = affine_map<(d0, d1) -> (d0, d1)>
#map5 = affine_map<(d0, d1) -> ()>
#map6 = affine_map<(d0, d1, d2, d3) -> (d2, d3)>
#map7 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
#map8 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, 0)>
module {
  func.func @main(%arg0: tensor<1x2x5x4xf32>, %arg1: tensor<1x2x5x4xf32>, %arg2: tensor<1x2x5x4xf32>) -> tensor<1x2x5x4xf32> {
    %c0_i64 = arith.constant 0 : i64
    %cst = arith.constant 0.000000e+00 : f32
    %cst_0 = arith.constant 0xFF800000 : f32
    %true = arith.constant true
    %cst_1 = arith.constant dense<0.000000e+00> : tensor<1x2x5x5xf32>
    %cst_2 = arith.constant dense<0.000000e+00> : tensor<f32>
    %cst_3 = arith.constant dense<0xFF800000> : tensor<f32>
    %cst_4 = arith.constant dense<true> : tensor<5x5xi1>
    %cst_5 = arith.constant 0xFFF0000000000000 : f64
    %cst_6 = arith.constant 0.70710678118654757 : f64
    %0 = tensor.empty() : tensor<1x2x5x4xf32>
    %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg0 : tensor<1x2x5x4xf32>) outs(%0 : tensor<1x2x5x4xf32>) {
    ^bb0(%in: f32, %out: f32):
      %38 = arith.truncf %cst_6 : f64 to f32
      %39 = arith.mulf %in, %38 : f32
      linalg.yield %39 : f32
    } -> tensor<1x2x5x4xf32>
    %2 = tensor.empty() : tensor<5xi64>
    %3 = linalg.generic {indexing_maps = [#map1], iterator_types = ["parallel"]} outs(%2 : tensor<5xi64>) {
    ^bb0(%out: i64):
      %38 = linalg.index 0 : index
      %39 = arith.index_cast %38 : index to i64
      linalg.yield %39 : i64
    } -> tensor<5xi64>
    %expanded = tensor.expand_shape %3 [[0, 1]] output_shape [1, 5] : tensor<5xi64> into tensor<1x5xi64>
    %expanded_7 = tensor.expand_shape %3 [[0, 1]] output_shape [5, 1] : tensor<5xi64> into tensor<5x1xi64>
    %4 = tensor.empty() : tensor<5x5xi64>
    %5 = linalg.generic {indexing_maps = [#map2, #map3, #map4], iterator_types = ["parallel", "parallel"]} ins(%expanded, %expanded_7 : tensor<1x5xi64>, tensor<5x1xi64>) outs(%4 : tensor<5x5xi64>) {
    ^bb0(%in: i64, %in_14: i64, %out: i64):
      %38 = arith.subi %in, %in_14 : i64
      linalg.yield %38 : i64
    } -> tensor<5x5xi64>
    %6 = tensor.empty() : tensor<5x5xi1>
    %7 = linalg.generic {indexing_maps = [#map4, #map4], iterator_types = ["parallel", "parallel"]} ins(%5 : tensor<5x5xi64>) outs(%6 : tensor<5x5xi1>) {
    ^bb0(%in: i64, %out: i1):
      %38 = arith.cmpi sle, %in, %c0_i64 : i64
      linalg.yield %38 : i1
    } -> tensor<5x5xi1>
    %8 = linalg.generic {indexing_maps = [#map4, #map4, #map4], iterator_types = ["parallel", "parallel"]} ins(%7, %cst_4 : tensor<5x5xi1>, tensor<5x5xi1>) outs(%6 : tensor<5x5xi1>) {
    ^bb0(%in: i1, %in_14: i1, %out: i1):
      %38 = arith.andi %in, %in_14 : i1
      linalg.yield %38 : i1
    } -> tensor<5x5xi1>
    %9 = tensor.empty() : tensor<5x5xf32>
    %10 = linalg.generic {indexing_maps = [#map4, #map5, #map5, #map4], iterator_types = ["parallel", "parallel"]} ins(%8, %cst_2, %cst_3 : tensor<5x5xi1>, tensor<f32>, tensor<f32>) outs(%9 : tensor<5x5xf32>) {
    ^bb0(%in: i1, %in_14: f32, %in_15: f32, %out: f32):
      %38 = arith.select %in, %in_14, %in_15 : f32
      linalg.yield %38 : f32
    } -> tensor<5x5xf32>
    %11 = tensor.empty() : tensor<1x2x4x5xf32>
    %transposed = linalg.transpose ins(%arg1 : tensor<1x2x5x4xf32>) outs(%11 : tensor<1x2x4x5xf32>) permutation = [0, 1, 3, 2] 
    %12 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%transposed : tensor<1x2x4x5xf32>) outs(%11 : tensor<1x2x4x5xf32>) {
    ^bb0(%in: f32, %out: f32):
      %38 = arith.truncf %cst_6 : f64 to f32
      %39 = arith.mulf %in, %38 : f32
      linalg.yield %39 : f32
    } -> tensor<1x2x4x5xf32>
    %collapsed = tensor.collapse_shape %1 [[0, 1], [2], [3]] : tensor<1x2x5x4xf32> into tensor<2x5x4xf32>
    %collapsed_8 = tensor.collapse_shape %12 [[0, 1], [2], [3]] : tensor<1x2x4x5xf32> into tensor<2x4x5xf32>
    %13 = tensor.empty() : tensor<2x5x5xf32>
    %14 = linalg.fill ins(%cst : f32) outs(%13 : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
    %15 = linalg.batch_matmul ins(%collapsed, %collapsed_8 : tensor<2x5x4xf32>, tensor<2x4x5xf32>) outs(%14 : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
    %expanded_9 = tensor.expand_shape %15 [[0, 1], [2], [3]] output_shape [1, 2, 5, 5] : tensor<2x5x5xf32> into tensor<1x2x5x5xf32>
    %16 = tensor.empty() : tensor<1x2x5x5xf32>
    %17 = linalg.generic {indexing_maps = [#map, #map6, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded_9, %10 : tensor<1x2x5x5xf32>, tensor<5x5xf32>) outs(%16 : tensor<1x2x5x5xf32>) {
    ^bb0(%in: f32, %in_14: f32, %out: f32):
      %38 = arith.addf %in, %in_14 : f32
      linalg.yield %38 : f32
    } -> tensor<1x2x5x5xf32>
    %18 = tensor.empty() : tensor<1x2x5xi64>
    %19 = linalg.fill ins(%c0_i64 : i64) outs(%18 : tensor<1x2x5xi64>) -> tensor<1x2x5xi64>
    %20 = tensor.empty() : tensor<1x2x5xf32>
    %21 = linalg.fill ins(%cst_0 : f32) outs(%20 : tensor<1x2x5xf32>) -> tensor<1x2x5xf32>
    %22:2 = linalg.generic {indexing_maps = [#map, #map7, #map7], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%17 : tensor<1x2x5x5xf32>) outs(%21, %19 : tensor<1x2x5xf32>, tensor<1x2x5xi64>) {
    ^bb0(%in: f32, %out: f32, %out_14: i64):
      %38 = linalg.index 3 : index
      %39 = arith.index_cast %38 : index to i64
      %40 = arith.maximumf %in, %out : f32
      %41 = arith.cmpf ogt, %in, %out : f32
      %42 = arith.select %41, %39, %out_14 : i64
      linalg.yield %40, %42 : f32, i64
    } -> (tensor<1x2x5xf32>, tensor<1x2x5xi64>)
    %expanded_10 = tensor.expand_shape %22#0 [[0], [1], [2, 3]] output_shape [1, 2, 5, 1] : tensor<1x2x5xf32> into tensor<1x2x5x1xf32>
    %23 = linalg.generic {indexing_maps = [#map, #map8, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%17, %expanded_10 : tensor<1x2x5x5xf32>, tensor<1x2x5x1xf32>) outs(%16 : tensor<1x2x5x5xf32>) {
    ^bb0(%in: f32, %in_14: f32, %out: f32):
      %38 = arith.subf %in, %in_14 : f32
      linalg.yield %38 : f32
    } -> tensor<1x2x5x5xf32>
    %24 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%23 : tensor<1x2x5x5xf32>) outs(%16 : tensor<1x2x5x5xf32>) {
    ^bb0(%in: f32, %out: f32):
      %38 = math.exp %in : f32
      linalg.yield %38 : f32
    } -> tensor<1x2x5x5xf32>
    %25 = tensor.empty() : tensor<1x2x5x1xf32>
    %26 = linalg.fill ins(%cst : f32) outs(%25 : tensor<1x2x5x1xf32>) -> tensor<1x2x5x1xf32>
    %27 = linalg.generic {indexing_maps = [#map, #map8], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%24 : tensor<1x2x5x5xf32>) outs(%26 : tensor<1x2x5x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %38 = arith.addf %in, %out : f32
      linalg.yield %38 : f32
    } -> tensor<1x2x5x1xf32>
    %28 = linalg.generic {indexing_maps = [#map, #map8, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%24, %27 : tensor<1x2x5x5xf32>, tensor<1x2x5x1xf32>) outs(%16 : tensor<1x2x5x5xf32>) {
    ^bb0(%in: f32, %in_14: f32, %out: f32):
      %38 = arith.divf %in, %in_14 : f32
      linalg.yield %38 : f32
    } -> tensor<1x2x5x5xf32>
    %29 = tensor.empty() : tensor<1x2x5x5xi1>
    %30 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%17 : tensor<1x2x5x5xf32>) outs(%29 : tensor<1x2x5x5xi1>) {
    ^bb0(%in: f32, %out: i1):
      %38 = arith.extf %in : f32 to f64
      %39 = arith.cmpf oeq, %38, %cst_5 : f64
      linalg.yield %39 : i1
    } -> tensor<1x2x5x5xi1>
    %31 = tensor.empty() : tensor<1x2x5x1xi1>
    %32 = linalg.fill ins(%true : i1) outs(%31 : tensor<1x2x5x1xi1>) -> tensor<1x2x5x1xi1>
    %33 = linalg.generic {indexing_maps = [#map, #map8], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%30 : tensor<1x2x5x5xi1>) outs(%32 : tensor<1x2x5x1xi1>) {
    ^bb0(%in: i1, %out: i1):
      %38 = arith.andi %in, %out : i1
      linalg.yield %38 : i1
    } -> tensor<1x2x5x1xi1>
    %34 = linalg.generic {indexing_maps = [#map8, #map, #map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%33, %cst_1, %28 : tensor<1x2x5x1xi1>, tensor<1x2x5x5xf32>, tensor<1x2x5x5xf32>) outs(%16 : tensor<1x2x5x5xf32>) {
    ^bb0(%in: i1, %in_14: f32, %in_15: f32, %out: f32):
      %38 = arith.select %in, %in_14, %in_15 : f32
      linalg.yield %38 : f32
    } -> tensor<1x2x5x5xf32>
    %collapsed_11 = tensor.collapse_shape %34 [[0, 1], [2], [3]] : tensor<1x2x5x5xf32> into tensor<2x5x5xf32>
    %collapsed_12 = tensor.collapse_shape %arg2 [[0, 1], [2], [3]] : tensor<1x2x5x4xf32> into tensor<2x5x4xf32>
    %35 = tensor.empty() : tensor<2x5x4xf32>
    %36 = linalg.fill ins(%cst : f32) outs(%35 : tensor<2x5x4xf32>) -> tensor<2x5x4xf32>
    %37 = linalg.batch_matmul ins(%collapsed_11, %collapsed_12 : tensor<2x5x5xf32>, tensor<2x5x4xf32>) outs(%36 : tensor<2x5x4xf32>) -> tensor<2x5x4xf32>
    %expanded_13 = tensor.expand_shape %37 [[0, 1], [2], [3]] output_shape [1, 2, 5, 4] : tensor<2x5x4xf32> into tensor<1x2x5x4xf32>
    return %expanded_13 : tensor<1x2x5x4xf32>
  }
}
// ----- sdpa_dynamic
#map = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map1 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
#map2 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, 0)>
#map3 = affine_map<(d0, d1, d2, d3) -> ()>
module {
  func.func @main(%arg0: tensor<1x2x?x4xf32>, %arg1: tensor<1x2x?x4xf32>, %arg2: tensor<1x2x?x4xf32>) -> tensor<1x2x?x4xf32> {
    %c2_i64 = arith.constant 2 : i64
    %c0_i64 = arith.constant 0 : i64
    %c1 = arith.constant 1 : index
    %c0 = arith.constant 0 : index
    %c2 = arith.constant 2 : index
    %c1_i64 = arith.constant 1 : i64
    %cst = arith.constant 0.000000e+00 : f32
    %cst_0 = arith.constant 0xFF800000 : f32
    %true = arith.constant true
    %cst_1 = arith.constant dense<0.000000e+00> : tensor<f32>
    %cst_2 = arith.constant 0xFFF0000000000000 : f64
    %cst_3 = arith.constant 0.70710678118654757 : f64
    %dim = tensor.dim %arg1, %c2 : tensor<1x2x?x4xf32>
    %0 = arith.index_cast %dim : index to i64
    %dim_4 = tensor.dim %arg0, %c2 : tensor<1x2x?x4xf32>
    %1 = tensor.empty(%dim_4) : tensor<1x2x?x4xf32>
    %2 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg0 : tensor<1x2x?x4xf32>) outs(%1 : tensor<1x2x?x4xf32>) {
    ^bb0(%in: f32, %out: f32):
      %58 = arith.truncf %cst_3 : f64 to f32
      %59 = arith.mulf %in, %58 : f32
      linalg.yield %59 : f32
    } -> tensor<1x2x?x4xf32>
    %3 = tensor.empty(%dim) : tensor<1x2x4x?xf32>
    %transposed = linalg.transpose ins(%arg1 : tensor<1x2x?x4xf32>) outs(%3 : tensor<1x2x4x?xf32>) permutation = [0, 1, 3, 2] 
    %4 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%transposed : tensor<1x2x4x?xf32>) outs(%3 : tensor<1x2x4x?xf32>) {
    ^bb0(%in: f32, %out: f32):
      %58 = arith.truncf %cst_3 : f64 to f32
      %59 = arith.mulf %in, %58 : f32
      linalg.yield %59 : f32
    } -> tensor<1x2x4x?xf32>
    %5 = arith.cmpi sge, %0, %c0_i64 : i64
    cf.assert %5, "unimplemented: dynamic negative broadcast sizes"
    %6 = tensor.empty(%dim) : tensor<1x2x?x4xf32>
    %7 = linalg.generic {indexing_maps = [#map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%6 : tensor<1x2x?x4xf32>) {
    ^bb0(%out: f32):
      %58 = linalg.index 1 : index
      %59 = linalg.index 2 : index
      %60 = linalg.index 3 : index
      %61 = arith.cmpi eq, %dim_4, %c1 : index
      %62 = arith.select %61, %c0, %59 : index
      %extracted = tensor.extract %2[%c0, %58, %62, %60] : tensor<1x2x?x4xf32>
      linalg.yield %extracted : f32
    } -> tensor<1x2x?x4xf32>
    %collapsed = tensor.collapse_shape %7 [[0, 1], [2], [3]] : tensor<1x2x?x4xf32> into tensor<2x?x4xf32>
    cf.assert %5, "unimplemented: dynamic negative broadcast sizes"
    %8 = tensor.empty(%dim) : tensor<1x2x4x?xf32>
    %9 = linalg.generic {indexing_maps = [#map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%8 : tensor<1x2x4x?xf32>) {
    ^bb0(%out: f32):
      %58 = linalg.index 1 : index
      %59 = linalg.index 2 : index
      %60 = linalg.index 3 : index
      %61 = arith.cmpi eq, %dim, %c1 : index
      %62 = arith.select %61, %c0, %60 : index
      %extracted = tensor.extract %4[%c0, %58, %59, %62] : tensor<1x2x4x?xf32>
      linalg.yield %extracted : f32
    } -> tensor<1x2x4x?xf32>
    %collapsed_5 = tensor.collapse_shape %9 [[0, 1], [2], [3]] : tensor<1x2x4x?xf32> into tensor<2x4x?xf32>
    %10 = tensor.empty(%dim, %dim) : tensor<2x?x?xf32>
    %11 = linalg.fill ins(%cst : f32) outs(%10 : tensor<2x?x?xf32>) -> tensor<2x?x?xf32>
    %12 = linalg.batch_matmul ins(%collapsed, %collapsed_5 : tensor<2x?x4xf32>, tensor<2x4x?xf32>) outs(%11 : tensor<2x?x?xf32>) -> tensor<2x?x?xf32>
    %13 = arith.muli %0, %c2_i64 : i64
    %14 = arith.cmpi slt, %0, %c0_i64 : i64
    %15 = arith.select %14, %c2_i64, %13 : i64
    %16 = arith.extui %14 : i1 to i64
    %17 = arith.muli %15, %0 : i64
    %18 = arith.addi %16, %c1_i64 : i64
    %19 = arith.select %14, %c2_i64, %17 : i64
    %20 = arith.select %14, %18, %16 : i64
    %21 = arith.cmpi sle, %20, %c1_i64 : i64
    cf.assert %21, "must have at most one inferred (negative) dimension"
    %22 = arith.muli %13, %0 : i64
    %23 = arith.divsi %22, %19 : i64
    %24 = arith.select %14, %23, %0 : i64
    %from_elements = tensor.from_elements %c1_i64, %c2_i64, %24, %24 : tensor<4xi64>
    %reshape = tensor.reshape %12(%from_elements) : (tensor<2x?x?xf32>, tensor<4xi64>) -> tensor<1x2x?x?xf32>
    %25 = arith.index_cast %24 : i64 to index
    %26 = tensor.empty(%25) : tensor<1x2x?xi64>
    %27 = linalg.fill ins(%c0_i64 : i64) outs(%26 : tensor<1x2x?xi64>) -> tensor<1x2x?xi64>
    %28 = tensor.empty(%25) : tensor<1x2x?xf32>
    %29 = linalg.fill ins(%cst_0 : f32) outs(%28 : tensor<1x2x?xf32>) -> tensor<1x2x?xf32>
    %30:2 = linalg.generic {indexing_maps = [#map, #map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%reshape : tensor<1x2x?x?xf32>) outs(%29, %27 : tensor<1x2x?xf32>, tensor<1x2x?xi64>) {
    ^bb0(%in: f32, %out: f32, %out_10: i64):
      %58 = linalg.index 3 : index
      %59 = arith.index_cast %58 : index to i64
      %60 = arith.maximumf %in, %out : f32
      %61 = arith.cmpf ogt, %in, %out : f32
      %62 = arith.select %61, %59, %out_10 : i64
      linalg.yield %60, %62 : f32, i64
    } -> (tensor<1x2x?xf32>, tensor<1x2x?xi64>)
    %expanded = tensor.expand_shape %30#0 [[0], [1], [2, 3]] output_shape [1, 2, %25, 1] : tensor<1x2x?xf32> into tensor<1x2x?x1xf32>
    %31 = tensor.empty(%25, %25) : tensor<1x2x?x?xf32>
    %32 = linalg.generic {indexing_maps = [#map, #map2, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%reshape, %expanded : tensor<1x2x?x?xf32>, tensor<1x2x?x1xf32>) outs(%31 : tensor<1x2x?x?xf32>) {
    ^bb0(%in: f32, %in_10: f32, %out: f32):
      %58 = arith.subf %in, %in_10 : f32
      linalg.yield %58 : f32
    } -> tensor<1x2x?x?xf32>
    %33 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%32 : tensor<1x2x?x?xf32>) outs(%31 : tensor<1x2x?x?xf32>) {
    ^bb0(%in: f32, %out: f32):
      %58 = math.exp %in : f32
      linalg.yield %58 : f32
    } -> tensor<1x2x?x?xf32>
    %34 = tensor.empty(%25) : tensor<1x2x?x1xf32>
    %35 = linalg.fill ins(%cst : f32) outs(%34 : tensor<1x2x?x1xf32>) -> tensor<1x2x?x1xf32>
    %36 = linalg.generic {indexing_maps = [#map, #map2], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%33 : tensor<1x2x?x?xf32>) outs(%35 : tensor<1x2x?x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %58 = arith.addf %in, %out : f32
      linalg.yield %58 : f32
    } -> tensor<1x2x?x1xf32>
    %37 = linalg.generic {indexing_maps = [#map, #map2, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%33, %36 : tensor<1x2x?x?xf32>, tensor<1x2x?x1xf32>) outs(%31 : tensor<1x2x?x?xf32>) {
    ^bb0(%in: f32, %in_10: f32, %out: f32):
      %58 = arith.divf %in, %in_10 : f32
      linalg.yield %58 : f32
    } -> tensor<1x2x?x?xf32>
    %38 = tensor.empty(%25, %25) : tensor<1x2x?x?xi1>
    %39 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%reshape : tensor<1x2x?x?xf32>) outs(%38 : tensor<1x2x?x?xi1>) {
    ^bb0(%in: f32, %out: i1):
      %58 = arith.extf %in : f32 to f64
      %59 = arith.cmpf oeq, %58, %cst_2 : f64
      linalg.yield %59 : i1
    } -> tensor<1x2x?x?xi1>
    %40 = tensor.empty(%25) : tensor<1x2x?x1xi1>
    %41 = linalg.fill ins(%true : i1) outs(%40 : tensor<1x2x?x1xi1>) -> tensor<1x2x?x1xi1>
    %42 = linalg.generic {indexing_maps = [#map, #map2], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%39 : tensor<1x2x?x?xi1>) outs(%41 : tensor<1x2x?x1xi1>) {
    ^bb0(%in: i1, %out: i1):
      %58 = arith.andi %in, %out : i1
      linalg.yield %58 : i1
    } -> tensor<1x2x?x1xi1>
    %43 = arith.cmpi sge, %24, %c0_i64 : i64
    cf.assert %43, "negative values not allowed in new dimensions"
    %44 = arith.index_cast %24 : i64 to index
    cf.assert %43, "negative values not allowed in new dimensions"
    %45 = tensor.empty(%44, %44) : tensor<1x2x?x?xf32>
    %46 = linalg.generic {indexing_maps = [#map3, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%cst_1 : tensor<f32>) outs(%45 : tensor<1x2x?x?xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<1x2x?x?xf32>
    %47 = arith.cmpi eq, %25, %44 : index
    cf.assert %47, "mismatched size for broadcast"
    %48 = arith.cmpi eq, %44, %25 : index
    cf.assert %48, "mismatched size for broadcast"
    %49 = tensor.empty(%25, %44) : tensor<1x2x?x?xf32>
    %50 = linalg.generic {indexing_maps = [#map2, #map, #map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%42, %46, %37 : tensor<1x2x?x1xi1>, tensor<1x2x?x?xf32>, tensor<1x2x?x?xf32>) outs(%49 : tensor<1x2x?x?xf32>) {
    ^bb0(%in: i1, %in_10: f32, %in_11: f32, %out: f32):
      %58 = arith.select %in, %in_10, %in_11 : f32
      linalg.yield %58 : f32
    } -> tensor<1x2x?x?xf32>
    cf.assert %5, "unimplemented: dynamic negative broadcast sizes"
    cf.assert %5, "unimplemented: dynamic negative broadcast sizes"
    %51 = tensor.empty(%dim, %dim) : tensor<1x2x?x?xf32>
    %52 = linalg.generic {indexing_maps = [#map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%51 : tensor<1x2x?x?xf32>) {
    ^bb0(%out: f32):
      %58 = linalg.index 1 : index
      %59 = linalg.index 2 : index
      %60 = linalg.index 3 : index
      %61 = arith.cmpi eq, %25, %c1 : index
      %62 = arith.select %61, %c0, %59 : index
      %63 = arith.cmpi eq, %44, %c1 : index
      %64 = arith.select %63, %c0, %60 : index
      %extracted = tensor.extract %50[%c0, %58, %62, %64] : tensor<1x2x?x?xf32>
      linalg.yield %extracted : f32
    } -> tensor<1x2x?x?xf32>
    cf.assert %21, "must have at most one inferred (negative) dimension"
    %from_elements_6 = tensor.from_elements %c2_i64, %24, %24 : tensor<3xi64>
    %reshape_7 = tensor.reshape %52(%from_elements_6) : (tensor<1x2x?x?xf32>, tensor<3xi64>) -> tensor<2x?x?xf32>
    cf.assert %5, "unimplemented: dynamic negative broadcast sizes"
    %53 = linalg.generic {indexing_maps = [#map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%6 : tensor<1x2x?x4xf32>) {
    ^bb0(%out: f32):
      %58 = linalg.index 1 : index
      %59 = linalg.index 2 : index
      %60 = linalg.index 3 : index
      %dim_10 = tensor.dim %arg2, %c2 : tensor<1x2x?x4xf32>
      %61 = arith.cmpi eq, %dim_10, %c1 : index
      %62 = arith.select %61, %c0, %59 : index
      %extracted = tensor.extract %arg2[%c0, %58, %62, %60] : tensor<1x2x?x4xf32>
      linalg.yield %extracted : f32
    } -> tensor<1x2x?x4xf32>
    %collapsed_8 = tensor.collapse_shape %53 [[0, 1], [2], [3]] : tensor<1x2x?x4xf32> into tensor<2x?x4xf32>
    %54 = arith.cmpi eq, %24, %0 : i64
    cf.assert %54, "mismatching contracting dimension"
    %55 = tensor.empty(%25) : tensor<2x?x4xf32>
    %56 = linalg.fill ins(%cst : f32) outs(%55 : tensor<2x?x4xf32>) -> tensor<2x?x4xf32>
    %57 = linalg.batch_matmul ins(%reshape_7, %collapsed_8 : tensor<2x?x?xf32>, tensor<2x?x4xf32>) outs(%56 : tensor<2x?x4xf32>) -> tensor<2x?x4xf32>
    %expanded_9 = tensor.expand_shape %57 [[0, 1], [2], [3]] output_shape [1, 2, %25, 4] : tensor<2x?x4xf32> into tensor<1x2x?x4xf32>
    return %expanded_9 : tensor<1x2x?x4xf32>
  }
}
// ----- swiglu
#map = affine_map<(d0, d1) -> (d0, d1)>
module {
  func.func @main(%arg0: tensor<3x4xf32>, %arg1: tensor<4x6xf32>, %arg2: tensor<4x6xf32>, %arg3: tensor<6x4xf32>) -> tensor<3x4xf32> {
    %cst = arith.constant 0.000000e+00 : f32
    %cst_0 = arith.constant 1.000000e+00 : f32
    %0 = tensor.empty() : tensor<3x6xf32>
    %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<3x6xf32>) -> tensor<3x6xf32>
    %2 = linalg.matmul ins(%arg0, %arg1 : tensor<3x4xf32>, tensor<4x6xf32>) outs(%1 : tensor<3x6xf32>) -> tensor<3x6xf32>
    %3 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%2 : tensor<3x6xf32>) outs(%0 : tensor<3x6xf32>) {
    ^bb0(%in: f32, %out: f32):
      %10 = arith.negf %in : f32
      %11 = math.exp %10 : f32
      %12 = arith.addf %11, %cst_0 : f32
      %13 = arith.divf %cst_0, %12 : f32
      linalg.yield %13 : f32
    } -> tensor<3x6xf32>
    %4 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel"]} ins(%2, %3 : tensor<3x6xf32>, tensor<3x6xf32>) outs(%0 : tensor<3x6xf32>) {
    ^bb0(%in: f32, %in_1: f32, %out: f32):
      %10 = arith.mulf %in, %in_1 : f32
      linalg.yield %10 : f32
    } -> tensor<3x6xf32>
    %5 = linalg.matmul ins(%arg0, %arg2 : tensor<3x4xf32>, tensor<4x6xf32>) outs(%1 : tensor<3x6xf32>) -> tensor<3x6xf32>
    %6 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel"]} ins(%4, %5 : tensor<3x6xf32>, tensor<3x6xf32>) outs(%0 : tensor<3x6xf32>) {
    ^bb0(%in: f32, %in_1: f32, %out: f32):
      %10 = arith.mulf %in, %in_1 : f32
      linalg.yield %10 : f32
    } -> tensor<3x6xf32>
    %7 = tensor.empty() : tensor<3x4xf32>
    %8 = linalg.fill ins(%cst : f32) outs(%7 : tensor<3x4xf32>) -> tensor<3x4xf32>
    %9 = linalg.matmul ins(%6, %arg3 : tensor<3x6xf32>, tensor<6x4xf32>) outs(%8 : tensor<3x4xf32>) -> tensor<3x4xf32>
    return %9 : tensor<3x4xf32>
  }
}
// ----- mlp
#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0, d1) -> (d1)>
module {
  func.func @main(%arg0: tensor<3x4xf32>, %arg1: tensor<5x4xf32>, %arg2: tensor<5xf32>) -> tensor<3x5xf32> {
    %cst = arith.constant 0.000000e+00 : f32
    %cst_0 = arith.constant 1.000000e+00 : f32
    %cst_1 = arith.constant 5.000000e-01 : f32
    %cst_2 = arith.constant 1.41421354 : f32
    %0 = tensor.empty() : tensor<4x5xf32>
    %transposed = linalg.transpose ins(%arg1 : tensor<5x4xf32>) outs(%0 : tensor<4x5xf32>) permutation = [1, 0] 
    %1 = tensor.empty() : tensor<3x5xf32>
    %2 = linalg.fill ins(%cst : f32) outs(%1 : tensor<3x5xf32>) -> tensor<3x5xf32>
    %3 = linalg.matmul ins(%arg0, %transposed : tensor<3x4xf32>, tensor<4x5xf32>) outs(%2 : tensor<3x5xf32>) -> tensor<3x5xf32>
    %4 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel"]} ins(%3, %arg2 : tensor<3x5xf32>, tensor<5xf32>) outs(%1 : tensor<3x5xf32>) {
    ^bb0(%in: f32, %in_3: f32, %out: f32):
      %6 = arith.addf %in, %in_3 : f32
      linalg.yield %6 : f32
    } -> tensor<3x5xf32>
    %5 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%4 : tensor<3x5xf32>) outs(%1 : tensor<3x5xf32>) {
    ^bb0(%in: f32, %out: f32):
      %6 = arith.divf %in, %cst_2 : f32
      %7 = math.erf %6 : f32
      %8 = arith.addf %7, %cst_0 : f32
      %9 = arith.mulf %8, %cst_1 : f32
      %10 = arith.mulf %in, %9 : f32
      linalg.yield %10 : f32
    } -> tensor<3x5xf32>
    return %5 : tensor<3x5xf32>
  }
}
