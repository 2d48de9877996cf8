// RUN: varlen-opt %s -split-input-file -verify-diagnostics

func.func @columns(%i: index, %lo: memref<24x?xi32>, %hi: memref<24x?xi32>) {
  // expected-error@+1 {{expected memory of a static number of columns, got 'memref<24x?xi32>'}}
  varlen.key_limits mask <full> pairs(%i, %i) valid(%i) of(%i, %i) to %lo, %hi : memref<24x?xi32>, memref<24x?xi32>
  return
}

// -----

func.func @other_columns(%i: index, %lo: memref<24x32xi32>, %hi: memref<24x16xi32>) {
  // expected-error@+1 {{expected lo and hi of as many columns, got 'memref<24x32xi32>' and 'memref<24x16xi32>'}}
  varlen.key_limits mask <full> pairs(%i, %i) valid(%i) of(%i, %i) to %lo, %hi : memref<24x32xi32>, memref<24x16xi32>
  return
}

// -----

func.func @arguments(%i: index, %m: memref<24x32xf32>) {
  // expected-error@+1 {{expected an argument of the body for each of the 1 inputs, got 0}}
  varlen.for_queries kq rows(%i, %i, %i, %i) valid(%i) ins(%m : memref<24x32xf32>) outs(%m as scratch : memref<24x32xf32>) {
    %0, %1, %2 = varlen.online_init kq scale 1.0 : tensor<1x32xf32>, tensor<1x32xf32>
    varlen.yield %0 : tensor<1x32xf32>
  }
  return
}

// -----

func.func @yields(%i: index, %m: memref<24x32xf32>) {
  // expected-error@+1 {{expected to yield a tile for each of the 1 outputs, got 0}}
  varlen.for_queries kq rows(%i, %i, %i, %i) valid(%i) ins(%m : memref<24x32xf32>) outs(%m as scratch : memref<24x32xf32>) {
  ^bb0(%0: tensor<1x32xf32>):
    varlen.yield
  }
  return
}

// -----

func.func @end(%i: index, %m: memref<24x32xf32>) {
  // expected-error@+1 {{expected a body that ends with varlen.yield}}
  varlen.for_queries kq rows(%i, %i, %i, %i) valid(%i) ins(%m : memref<24x32xf32>) outs(%m as scratch : memref<24x32xf32>) {
  ^bb0(%0: tensor<1x32xf32>):
    scf.yield %0 : tensor<1x32xf32>
  }
  return
}

// -----

func.func @places(%i: index, %m: memref<24x32xf32>) {
  // expected-error@+1 {{expected outputs, and a place for each, got 1 outputs and 0 places}}
  "varlen.for_queries"(%i, %i, %i, %i, %i, %m, %m) <{operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 1>, orientation = #varlen<orientation kq>, places = []}> ({
  ^bb0(%0: tensor<1x32xf32>):
    varlen.yield %0 : tensor<1x32xf32>
  }) : (index, index, index, index, index, memref<24x32xf32>, memref<24x32xf32>) -> ()
  return
}

// -----

func.func @other(%i: index, %m: memref<24x32xf32>) {
  varlen.for_queries kq rows(%i, %i, %i, %i) valid(%i) ins(%m : memref<24x32xf32>) outs(%m as scratch : memref<24x32xf32>) {
  ^bb0(%0: tensor<1x32xf32>):
    // expected-error@+1 {{expected an operation on each query by itself, as varlen.online_finish, or the beginning of a state, as varlen.online_init}}
    %1 = arith.addf %0, %0 : tensor<1x32xf32>
    varlen.yield %1 : tensor<1x32xf32>
  }
  return
}

// -----

func.func @used(%i: index, %acc: memref<24x32xf32>, %out: memref<?x4x1xf32>) {
  varlen.for_queries kq rows(%i, %i, %i, %i) valid(%i) outs(%out as rows : memref<?x4x1xf32>) {
    // expected-error@+1 {{expected the beginning of a state to be yielded to scratch, and nothing else}}
    %0, %1, %2 = varlen.online_init kq scale 1.0 : tensor<1x32xf32>, tensor<1x32xf32>
    %3, %4 = varlen.online_finish kq %0, %1, %2 scale 1.0 : tensor<1x32xf32>, tensor<1x32xf32>
    varlen.yield %3 : tensor<32x1xf32>
  }
  return
}

// -----

func.func @outside(%i: index, %m: memref<24x32xf32>, %x: tensor<1x32xf32>) {
  // expected-error@+1 {{expected to yield tiles of the body, got 'tensor<1x32xf32>' from outside of it}}
  varlen.for_queries kq rows(%i, %i, %i, %i) valid(%i) outs(%m as scratch : memref<24x32xf32>) {
    varlen.yield %x : tensor<1x32xf32>
  }
  return
}

// -----

func.func @rank(%i: index, %m: memref<24x32xf32>, %x: memref<24x32xf64>) {
  // expected-error@+1 {{expected memory of rank 2 and of the type of the tile for 1 values of each query, of 'tensor<1x32xf32>', got 'memref<24x32xf64>' as scratch}}
  varlen.for_queries kq rows(%i, %i, %i, %i) valid(%i) ins(%m : memref<24x32xf32>) outs(%x as scratch : memref<24x32xf64>) {
  ^bb0(%0: tensor<1x32xf32>):
    varlen.yield %0 : tensor<1x32xf32>
  }
  return
}

// -----

func.func @panels(%i: index, %m: memref<25x32xf32>) {
  // expected-error@+1 {{expected panels of a row for each value and a static number of columns for 2 values of each query, of 'tensor<2x32xf32>', got 'memref<25x32xf32>' as scratch}}
  varlen.for_queries kq rows(%i, %i, %i, %i) valid(%i) ins(%m : memref<25x32xf32>) outs(%m as scratch : memref<25x32xf32>) {
  ^bb0(%0: tensor<2x32xf32>):
    varlen.yield %0 : tensor<2x32xf32>
  }
  return
}

// -----

func.func @few(%i: index, %m: memref<8x2xf32>) {
  // expected-error@+1 {{expected a column for each value for 1 values of each query, of 'tensor<8x1xf32>', got 'memref<8x2xf32>' as scratch}}
  varlen.for_queries qk rows(%i, %i, %i, %i) valid(%i) ins(%m : memref<8x2xf32>) outs(%m as scratch : memref<8x2xf32>) {
  ^bb0(%0: tensor<8x1xf32>):
    varlen.yield %0 : tensor<8x1xf32>
  }
  return
}

// -----

func.func @rows(%i: index, %m: memref<8x2xf32>, %out: memref<?x4x3xf32>) {
  // expected-error@+1 {{expected memory of T x H x D, and queries as rows of the tile, for 2 values of each query, of 'tensor<8x2xf32>', got 'memref<?x4x3xf32>' as rows}}
  varlen.for_queries qk rows(%i, %i, %i, %i) valid(%i) ins(%m : memref<8x2xf32>) outs(%out as rows : memref<?x4x3xf32>) {
  ^bb0(%0: tensor<8x2xf32>):
    varlen.yield %0 : tensor<8x2xf32>
  }
  return
}

// -----

func.func @numbers(%i: index, %m: memref<8x2xf32>, %lse: memref<4x?xf32>) {
  // expected-error@+1 {{expected memory of H x T or H, and one number, for 2 values of each query, of 'tensor<8x2xf32>', got 'memref<4x?xf32>' as numbers}}
  varlen.for_queries qk rows(%i, %i, %i, %i) valid(%i) ins(%m : memref<8x2xf32>) outs(%lse as numbers : memref<4x?xf32>) {
  ^bb0(%0: tensor<8x2xf32>):
    varlen.yield %0 : tensor<8x2xf32>
  }
  return
}

// -----

func.func @wider(%i: index, %m: memref<8x1xf32>, %lse: memref<4x?xf64>) {
  // expected-error@+1 {{expected a type that is no wider than that of the tile for 1 values of each query, of 'tensor<8x1xf32>', got 'memref<4x?xf64>' as numbers}}
  varlen.for_queries qk rows(%i, %i, %i, %i) valid(%i) ins(%m : memref<8x1xf32>) outs(%lse as numbers : memref<4x?xf64>) {
  ^bb0(%0: tensor<8x1xf32>):
    varlen.yield %0 : tensor<8x1xf32>
  }
  return
}

// -----

func.func @dynamic(%i: index, %m: memref<8x?xf32>) {
  // expected-error@+1 {{expected a static number of values of each query, got 'tensor<8x?xf32>'}}
  varlen.for_queries qk rows(%i, %i, %i, %i) valid(%i) ins(%m : memref<8x?xf32>) outs(%m as scratch : memref<8x?xf32>) {
  ^bb0(%0: tensor<8x?xf32>):
    varlen.yield %0 : tensor<8x?xf32>
  }
  return
}
