// Functions of linalg, with extents that are not known, for gpu-functions.py.

#ij = affine_map<(i, j) -> (i, j)>
#ji = affine_map<(i, j) -> (j, i)>
#i = affine_map<(i, j) -> (i)>
#j = affine_map<(i, j) -> (j)>
#one = affine_map<(i) -> (i)>

// A producer that two read, and reductions that a warp has.
func.func @softmax(%x: tensor<?x?xf32> {varlen.name = "x"}) -> (tensor<?x?xf32> {varlen.name = "y"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %m = tensor.dim %x, %c0 : tensor<?x?xf32>
  %n = tensor.dim %x, %c1 : tensor<?x?xf32>
  %row = tensor.empty(%m) : tensor<?xf32>
  %lows = linalg.fill ins(%low : f32) outs(%row : tensor<?xf32>) -> tensor<?xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%row : tensor<?xf32>) -> tensor<?xf32>
  %empty = tensor.empty(%m, %n) : tensor<?x?xf32>
  %max = linalg.reduce { arith.maximumf } ins(%x : tensor<?x?xf32>) outs(%lows : tensor<?xf32>) dimensions = [1]
  %p = linalg.generic {indexing_maps = [#ij, #i, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%x, %max : tensor<?x?xf32>, tensor<?xf32>) outs(%empty : tensor<?x?xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %0 = arith.subf %a, %b : f32
    %1 = math.exp %0 : f32
    linalg.yield %1 : f32
  } -> tensor<?x?xf32>
  %l = linalg.reduce { arith.addf } ins(%p : tensor<?x?xf32>) outs(%zeros : tensor<?xf32>) dimensions = [1]
  %y = linalg.generic {indexing_maps = [#ij, #i, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%p, %l : tensor<?x?xf32>, tensor<?xf32>) outs(%empty : tensor<?x?xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %0 = arith.divf %a, %b : f32
    linalg.yield %0 : f32
  } -> tensor<?x?xf32>
  return %y : tensor<?x?xf32>
}

// Sums of columns, which a thread has, and of all elements, of three types.
func.func @sums(%x: tensor<?x?xf32> {varlen.name = "x"}, %z: tensor<?xf64> {varlen.name = "z"},
                %h: tensor<?x32xf16> {varlen.name = "h"})
    -> (tensor<?xf32> {varlen.name = "columns"}, tensor<f32> {varlen.name = "all"},
        tensor<f64> {varlen.name = "product"}, tensor<?xf16> {varlen.name = "largest"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = arith.constant 1.0 : f64
  %n = tensor.dim %x, %c1 : tensor<?x?xf32>
  %m = tensor.dim %h, %c0 : tensor<?x32xf16>
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFC00 : f16
  %columns = tensor.empty(%n) : tensor<?xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%columns : tensor<?xf32>) -> tensor<?xf32>
  %0 = linalg.reduce { arith.addf } ins(%x : tensor<?x?xf32>) outs(%zeros : tensor<?xf32>) dimensions = [0]
  %nothing = arith.constant dense<0.0> : tensor<f32>
  %1 = linalg.reduce { arith.addf } ins(%x : tensor<?x?xf32>) outs(%nothing : tensor<f32>) dimensions = [0, 1]
  %empty = tensor.empty() : tensor<f64>
  %ones = linalg.fill ins(%one : f64) outs(%empty : tensor<f64>) -> tensor<f64>
  %2 = linalg.reduce { arith.mulf } ins(%z : tensor<?xf64>) outs(%ones : tensor<f64>) dimensions = [0]
  %rows = tensor.empty(%m) : tensor<?xf16>
  %lows = linalg.fill ins(%low : f16) outs(%rows : tensor<?xf16>) -> tensor<?xf16>
  %3 = linalg.reduce { arith.maximumf } ins(%h : tensor<?x32xf16>) outs(%lows : tensor<?xf16>) dimensions = [1]
  return %0, %1, %2, %3 : tensor<?xf32>, tensor<f32>, tensor<f64>, tensor<?xf16>
}

// Functions of f32, and of bf16.
func.func @functions(%x: tensor<?xf32> {varlen.name = "x"}, %w: tensor<?xbf16> {varlen.name = "w"})
    -> (tensor<?xf32> {varlen.name = "a"}, tensor<?xf32> {varlen.name = "b"},
        tensor<?xf32> {varlen.name = "c"}, tensor<?xbf16> {varlen.name = "d"}) {
  %exp = math.exp %x : tensor<?xf32>
  %log = math.log %exp : tensor<?xf32>
  %sin = math.sin %x : tensor<?xf32>
  %cos = math.cos %log : tensor<?xf32>
  %a0 = arith.addf %sin, %cos : tensor<?xf32>
  %tanh = math.tanh %a0 : tensor<?xf32>
  %erf = math.erf %tanh : tensor<?xf32>
  %a = arith.mulf %erf, %exp : tensor<?xf32>
  %rsqrt = math.rsqrt %exp : tensor<?xf32>
  %log2 = math.log2 %rsqrt : tensor<?xf32>
  %exp2 = math.exp2 %log2 : tensor<?xf32>
  %b = math.powf %exp, %exp2 : tensor<?xf32>
  %abs = math.absf %x : tensor<?xf32>
  %sqrt = math.sqrt %abs : tensor<?xf32>
  %log1p = math.log1p %sqrt : tensor<?xf32>
  %ceil = math.ceil %log1p : tensor<?xf32>
  %floor = math.floor %x : tensor<?xf32>
  %c0 = arith.addf %ceil, %floor : tensor<?xf32>
  %atan = math.atan2 %x, %c0 : tensor<?xf32>
  %round = math.roundeven %x : tensor<?xf32>
  %c1 = math.copysign %atan, %round : tensor<?xf32>
  %c = math.fma %c1, %sqrt, %log1p : tensor<?xf32>
  %sinh = math.sinh %w : tensor<?xbf16>
  %d = arith.addf %sinh, %w : tensor<?xbf16>
  return %a, %b, %c, %d : tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xbf16>
}

func.func @angles(%x: tensor<?xf32> {varlen.name = "x"})
    -> (tensor<?xf32> {varlen.name = "sin"}, tensor<?xf32> {varlen.name = "cos"}) {
  %sin = math.sin %x : tensor<?xf32>
  %cos = math.cos %x : tensor<?xf32>
  return %sin, %cos : tensor<?xf32>, tensor<?xf32>
}

func.func @pairs(%x: tensor<?xbf16> {varlen.name = "x"}, %y: tensor<?xbf16> {varlen.name = "y"})
    -> (tensor<?xbf16> {varlen.name = "atan2"}, tensor<?xbf16> {varlen.name = "powf"}) {
  %atan2 = math.atan2 %x, %y : tensor<?xbf16>
  %powf = math.powf %x, %y : tensor<?xbf16>
  return %atan2, %powf : tensor<?xbf16>, tensor<?xbf16>
}

func.func @powers(%x: tensor<?xf32> {varlen.name = "x"}, %y: tensor<?xf32> {varlen.name = "y"},
                  %n: tensor<?xi32> {varlen.name = "n"})
    -> (tensor<?xf32> {varlen.name = "powf"}, tensor<?xf32> {varlen.name = "fpowi"}) {
  %powf = math.powf %x, %y : tensor<?xf32>
  %fpowi = math.fpowi %x, %n : tensor<?xf32>, tensor<?xi32>
  return %powf, %fpowi : tensor<?xf32>, tensor<?xf32>
}

// Functions of f64, which libdevice has.
func.func @doubles(%x: tensor<?xf64> {varlen.name = "x"}) -> (tensor<?xf64> {varlen.name = "y"}) {
  %exp = math.exp %x : tensor<?xf64>
  %sin = math.sin %x : tensor<?xf64>
  %pow = math.powf %exp, %sin : tensor<?xf64>
  %rsqrt = math.rsqrt %pow : tensor<?xf64>
  %sqrt = math.sqrt %exp : tensor<?xf64>
  %0 = arith.remf %rsqrt, %sqrt : tensor<?xf64>
  %floor = math.floor %x : tensor<?xf64>
  %1 = arith.addf %0, %floor : tensor<?xf64>
  return %1 : tensor<?xf64>
}

func.func @matmul(%a: tensor<?x48xf32> {varlen.name = "a"}, %b: tensor<48x24xf32> {varlen.name = "b"},
                  %c: tensor<?x24xf32> {varlen.name = "c"}) -> (tensor<?x24xf32> {varlen.name = "y"}) {
  %y = linalg.matmul ins(%a, %b : tensor<?x48xf32>, tensor<48x24xf32>) outs(%c : tensor<?x24xf32>) -> tensor<?x24xf32>
  return %y : tensor<?x24xf32>
}

// Any orders, a batch, results of 16 bits.
func.func @contractions(%a: tensor<?x3x?xbf16> {varlen.name = "a"}, %b: tensor<?x3x?xbf16> {varlen.name = "b"},
                        %v: tensor<?xf32> {varlen.name = "v"}, %d: tensor<?x?xf64> {varlen.name = "d"})
    -> (tensor<3x?x?xbf16> {varlen.name = "y"}, tensor<?xf32> {varlen.name = "z"}, tensor<?x?xf64> {varlen.name = "u"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : bf16
  %zero32 = arith.constant 0.0 : f32
  %zero64 = arith.constant 0.0 : f64
  %m = tensor.dim %a, %c0 : tensor<?x3x?xbf16>
  %n = tensor.dim %b, %c0 : tensor<?x3x?xbf16>
  %empty = tensor.empty(%m, %n) : tensor<3x?x?xbf16>
  %zeros = linalg.fill ins(%zero : bf16) outs(%empty : tensor<3x?x?xbf16>) -> tensor<3x?x?xbf16>
  %y = linalg.contract indexing_maps = [affine_map<(h, m, n, k) -> (m, h, k)>, affine_map<(h, m, n, k) -> (n, h, k)>,
                                        affine_map<(h, m, n, k) -> (h, m, n)>]
      ins(%a, %b : tensor<?x3x?xbf16>, tensor<?x3x?xbf16>) outs(%zeros : tensor<3x?x?xbf16>) -> tensor<3x?x?xbf16>
  %t = tensor.dim %v, %c0 : tensor<?xf32>
  %zempty = tensor.empty(%t) : tensor<?xf32>
  %zzeros = linalg.fill ins(%zero32 : f32) outs(%zempty : tensor<?xf32>) -> tensor<?xf32>
  %outer_empty = tensor.empty(%t, %t) : tensor<?x?xf32>
  %outer = linalg.generic {indexing_maps = [#i, #j, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%v, %v : tensor<?xf32>, tensor<?xf32>) outs(%outer_empty : tensor<?x?xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %0 = arith.mulf %p, %q : f32
    linalg.yield %0 : f32
  } -> tensor<?x?xf32>
  %z = linalg.matvec ins(%outer, %v : tensor<?x?xf32>, tensor<?xf32>) outs(%zzeros : tensor<?xf32>) -> tensor<?xf32>
  %r = tensor.dim %d, %c0 : tensor<?x?xf64>
  %uempty = tensor.empty(%r, %r) : tensor<?x?xf64>
  %uzeros = linalg.fill ins(%zero64 : f64) outs(%uempty : tensor<?x?xf64>) -> tensor<?x?xf64>
  %u = linalg.contract indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (n, m)>]
      ins(%d, %d : tensor<?x?xf64>, tensor<?x?xf64>) outs(%uzeros : tensor<?x?xf64>) -> tensor<?x?xf64>
  return %y, %z, %u : tensor<3x?x?xbf16>, tensor<?xf32>, tensor<?x?xf64>
}

// What only moves elements.
func.func @moves(%x: tensor<?x12xf16> {varlen.name = "x"}, %flags: tensor<?xi1> {varlen.name = "flags"})
    -> (tensor<12x?xf16> {varlen.name = "t"}, tensor<?x16xf16> {varlen.name = "p"}, tensor<?x5xf16> {varlen.name = "s"},
        tensor<?xi1> {varlen.name = "n"}, tensor<?x24xf16> {varlen.name = "c"}) {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1.0 : f16
  %m = tensor.dim %x, %c0 : tensor<?x12xf16>
  %empty = tensor.empty(%m) : tensor<12x?xf16>
  %t = linalg.transpose ins(%x : tensor<?x12xf16>) outs(%empty : tensor<12x?xf16>) permutation = [1, 0]
  %p = tensor.pad %x low[0, 1] high[0, 3] {
  ^bb0(%i: index, %j: index):
    tensor.yield %one : f16
  } : tensor<?x12xf16> to tensor<?x16xf16>
  %s = tensor.extract_slice %x[0, 3] [%m, 5] [1, 2] : tensor<?x12xf16> to tensor<?x5xf16>
  %fm = tensor.dim %flags, %c0 : tensor<?xi1>
  %true = arith.constant true
  %fe = tensor.empty(%fm) : tensor<?xi1>
  %trues = linalg.fill ins(%true : i1) outs(%fe : tensor<?xi1>) -> tensor<?xi1>
  %n = arith.xori %flags, %trues : tensor<?xi1>
  %c = tensor.concat dim(1) %x, %x : (tensor<?x12xf16>, tensor<?x12xf16>) -> tensor<?x24xf16>
  return %t, %p, %s, %n, %c : tensor<12x?xf16>, tensor<?x16xf16>, tensor<?x5xf16>, tensor<?xi1>, tensor<?x24xf16>
}

// Constants, and numbers that are known on the device only.
func.func @numbers(%x: tensor<?xf32> {varlen.name = "x"}, %s: f32 {varlen.name = "s"})
    -> (tensor<?xf32> {varlen.name = "y"}, tensor<4xf32> {varlen.name = "z"}, tensor<4xf32> {varlen.name = "w"}, tensor<2xf32> {varlen.name = "e"}) {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %table = arith.constant dense<[1.0, 2.0, 4.0, 8.0]> : tensor<4xf32>
  %zero = arith.constant dense<0.0> : tensor<f32>
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  %sum = linalg.reduce { arith.addf } ins(%x : tensor<?xf32>) outs(%zero : tensor<f32>) dimensions = [0]
  %number = tensor.extract %sum[] : tensor<f32>
  %twice = arith.addf %number, %number : f32
  %empty = tensor.empty(%n) : tensor<?xf32>
  %all = linalg.fill ins(%twice : f32) outs(%empty : tensor<?xf32>) -> tensor<?xf32>
  %y = arith.addf %all, %x : tensor<?xf32>
  %z = tensor.insert %twice into %table[%c2] : tensor<4xf32>
  %w = tensor.insert %s into %table[%c0] : tensor<4xf32>
  %e = tensor.from_elements %number, %s : tensor<2xf32>
  return %y, %z, %w, %e : tensor<?xf32>, tensor<4xf32>, tensor<4xf32>, tensor<2xf32>
}

// The largest element of a row and where it is: a reduction of two results.
func.func @argmax(%x: tensor<?x?xf32> {varlen.name = "x"}) -> (tensor<?xf32> {varlen.name = "y"}, tensor<?xi32> {varlen.name = "at"}) {
  %c0 = arith.constant 0 : index
  %low = arith.constant 0xFF800000 : f32
  %none = arith.constant -1 : i32
  %m = tensor.dim %x, %c0 : tensor<?x?xf32>
  %rows = tensor.empty(%m) : tensor<?xf32>
  %places = tensor.empty(%m) : tensor<?xi32>
  %lows = linalg.fill ins(%low : f32) outs(%rows : tensor<?xf32>) -> tensor<?xf32>
  %nones = linalg.fill ins(%none : i32) outs(%places : tensor<?xi32>) -> tensor<?xi32>
  %r:2 = linalg.generic {indexing_maps = [#ij, #i, #i], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<?x?xf32>) outs(%lows, %nones : tensor<?xf32>, tensor<?xi32>) {
  ^bb0(%a: f32, %top: f32, %at: i32):
    %j = linalg.index 1 : index
    %here = arith.index_cast %j : index to i32
    %more = arith.cmpf ogt, %a, %top : f32
    %0 = arith.select %more, %a, %top : f32
    %1 = arith.select %more, %here, %at : i32
    linalg.yield %0, %1 : f32, i32
  } -> (tensor<?xf32>, tensor<?xi32>)
  return %r#0, %r#1 : tensor<?xf32>, tensor<?xi32>
}

// Rows of a table, and sums into its rows, in the order of positions.
func.func @gather(%table: tensor<7x8xf32> {varlen.name = "table"}, %ids: tensor<?xi32> {varlen.name = "ids"})
    -> (tensor<?x8xf32> {varlen.name = "rows"}, tensor<7x8xf32> {varlen.name = "sums"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %n = tensor.dim %ids, %c0 : tensor<?xi32>
  %empty = tensor.empty(%n) : tensor<?x8xf32>
  %rows = linalg.generic {indexing_maps = [#i, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%ids : tensor<?xi32>) outs(%empty : tensor<?x8xf32>) {
  ^bb0(%id: i32, %o: f32):
    %at = arith.index_cast %id : i32 to index
    %j = linalg.index 1 : index
    %0 = tensor.extract %table[%at, %j] : tensor<7x8xf32>
    linalg.yield %0 : f32
  } -> tensor<?x8xf32>
  %sums = scf.for %i = %c0 to %n step %c1 iter_args(%t = %table) -> tensor<7x8xf32> {
    %u = scf.for %j = %c0 to %c8 step %c1 iter_args(%v = %t) -> tensor<7x8xf32> {
      %id = tensor.extract %ids[%i] : tensor<?xi32>
      %at = arith.index_cast %id : i32 to index
      %a = tensor.extract %rows[%i, %j] : tensor<?x8xf32>
      %b = tensor.extract %v[%at, %j] : tensor<7x8xf32>
      %c = arith.addf %a, %b : f32
      %w = tensor.insert %c into %v[%at, %j] : tensor<7x8xf32>
      scf.yield %w : tensor<7x8xf32>
    }
    scf.yield %u : tensor<7x8xf32>
  }
  return %rows, %sums : tensor<?x8xf32>, tensor<7x8xf32>
}

// A loop of kernels on the host, a branch, and a loop of one thread each.
func.func @control(%x: tensor<?x6xf32> {varlen.name = "x"}, %n: index {varlen.name = "n"})
    -> (tensor<?x6xf32> {varlen.name = "y"}, tensor<?x6xf32> {varlen.name = "z"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c6 = arith.constant 6 : index
  %c3 = arith.constant 3 : index
  %m = tensor.dim %x, %c0 : tensor<?x6xf32>
  %y = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x) -> tensor<?x6xf32> {
    %even = arith.remui %i, %c3 : index
    %first = arith.cmpi eq, %even, %c0 : index
    %b = scf.if %first -> tensor<?x6xf32> {
      %0 = arith.addf %a, %x : tensor<?x6xf32>
      scf.yield %0 : tensor<?x6xf32>
    } else {
      %0 = math.sin %a : tensor<?x6xf32>
      scf.yield %0 : tensor<?x6xf32>
    }
    scf.yield %b : tensor<?x6xf32>
  }
  %empty = tensor.empty(%m) : tensor<?x6xf32>
  %z = scf.forall (%i, %j) in (%m, %c6) shared_outs(%o = %empty) -> tensor<?x6xf32> {
    %v = tensor.extract %x[%i, %j] : tensor<?x6xf32>
    %w = math.exp %v : f32
    %e = tensor.from_elements %w : tensor<1x1xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %e into %o[%i, %j] [1, 1] [1, 1] : tensor<1x1xf32> into tensor<?x6xf32>
    }
  }
  return %y, %z : tensor<?x6xf32>, tensor<?x6xf32>
}

func.func @convolution(%x: tensor<2x?x3xf32> {varlen.name = "x"}, %k: tensor<4x3x5xf32> {varlen.name = "k"},
                       %y: tensor<2x?x5xf32> {varlen.name = "y"}) -> (tensor<2x?x5xf32> {varlen.name = "z"}) {
  %z = linalg.conv_1d_nwc_wcf {dilations = dense<1> : tensor<1xi64>, strides = dense<1> : tensor<1xi64>}
      ins(%x, %k : tensor<2x?x3xf32>, tensor<4x3x5xf32>) outs(%y : tensor<2x?x5xf32>) -> tensor<2x?x5xf32>
  return %z : tensor<2x?x5xf32>
}

func.func @merge(%a: tensor<?x4x16xf32> {varlen.name = "a"}, %la: tensor<4x?xf32> {varlen.name = "la"},
                 %b: tensor<?x4x16xf32> {varlen.name = "b"}, %lb: tensor<4x?xf32> {varlen.name = "lb"})
    -> (tensor<?x4x16xf32> {varlen.name = "y"}, tensor<4x?xf32> {varlen.name = "l"}) {
  %y, %l = varlen.merge %a, %la, %b, %lb
      : (tensor<?x4x16xf32>, tensor<4x?xf32>, tensor<?x4x16xf32>, tensor<4x?xf32>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
  return %y, %l : tensor<?x4x16xf32>, tensor<4x?xf32>
}

// On tensor cores: each order of factors and results, and of f32 and f16.
func.func @products(%a: tensor<?x128xbf16> {varlen.name = "a"}, %b: tensor<128x48xbf16> {varlen.name = "b"},
                    %x: tensor<?x48xf32> {varlen.name = "x"}, %y: tensor<?x80xf32> {varlen.name = "y"},
                    %p: tensor<?x3x32xf16> {varlen.name = "p"}, %q: tensor<64x3x32xf16> {varlen.name = "q"},
                    %d: tensor<48x80xf32> {varlen.name = "d"})
    -> (tensor<?x48xf32> {varlen.name = "ab"}, tensor<48x80xf32> {varlen.name = "xy"},
        tensor<3x?x64xf32> {varlen.name = "pq"}, tensor<?x48xf32> {varlen.name = "yd"}) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %m = tensor.dim %a, %c0 : tensor<?x128xbf16>
  %t = tensor.dim %y, %c0 : tensor<?x80xf32>
  %h = tensor.dim %p, %c0 : tensor<?x3x32xf16>
  %e0 = tensor.empty(%m) : tensor<?x48xf32>
  %z0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<?x48xf32>) -> tensor<?x48xf32>
  %ab = linalg.matmul ins(%a, %b : tensor<?x128xbf16>, tensor<128x48xbf16>) outs(%z0 : tensor<?x48xf32>) -> tensor<?x48xf32>
  %xy = linalg.contract indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
      ins(%x, %y : tensor<?x48xf32>, tensor<?x80xf32>) outs(%d : tensor<48x80xf32>) -> tensor<48x80xf32>
  %e1 = tensor.empty(%h) : tensor<3x?x64xf32>
  %z1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<3x?x64xf32>) -> tensor<3x?x64xf32>
  %pq = linalg.contract indexing_maps = [affine_map<(b, m, n, k) -> (m, b, k)>, affine_map<(b, m, n, k) -> (n, b, k)>, affine_map<(b, m, n, k) -> (b, m, n)>]
      ins(%p, %q : tensor<?x3x32xf16>, tensor<64x3x32xf16>) outs(%z1 : tensor<3x?x64xf32>) -> tensor<3x?x64xf32>
  %e2 = tensor.empty(%t) : tensor<?x48xf32>
  %z2 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<?x48xf32>) -> tensor<?x48xf32>
  %yd = linalg.contract indexing_maps = [affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (m, n)>]
      ins(%d, %y : tensor<48x80xf32>, tensor<?x80xf32>) outs(%z2 : tensor<?x48xf32>) -> tensor<?x48xf32>
  return %ab, %xy, %pq, %yd : tensor<?x48xf32>, tensor<48x80xf32>, tensor<3x?x64xf32>, tensor<?x48xf32>
}
