// RUN: varlen-opt %s -split-input-file -verify-diagnostics

func.func @outside(%t: !varlen.tile<queries(64)>) {
  // expected-error@+1 {{expected the tile of the varlen.for_tiles around it}}
  varlen.if_few %f of %t : !varlen.tile<queries(4)> of !varlen.tile<queries(64)> {
  } else {
  }
  return
}

// -----

func.func @axis(%cu: memref<?xi32>, %i: index) {
  %batch = varlen.batch %cu, %cu rows(%i, %i) heads(%i, %i) mask <full> : memref<?xi32>, memref<?xi32>
  varlen.for_tiles "keys" %t of keys(64) in %batch {
    // expected-error@+1 {{expected a tile of queries, got '!varlen.tile<keys(64)>'}}
    varlen.if_few %f of %t : !varlen.tile<queries(4)> of !varlen.tile<keys(64)> {
    } else {
    }
  }
  return
}

// -----

func.func @many(%cu: memref<?xi32>, %i: index) {
  %batch = varlen.batch %cu, %cu rows(%i, %i) heads(%i, %i) mask <full> : memref<?xi32>, memref<?xi32>
  varlen.for_tiles "many" %t of queries(64) in %batch {
    // expected-error@+1 {{expected the first region to have one argument, a tile of at most 64 queries, got ('!varlen.tile<queries(65)>')}}
    varlen.if_few %f of %t : !varlen.tile<queries(65)> of !varlen.tile<queries(64)> {
    } else {
    }
  }
  return
}

// -----

func.func @keys(%cu: memref<?xi32>, %i: index) {
  %batch = varlen.batch %cu, %cu rows(%i, %i) heads(%i, %i) mask <full> : memref<?xi32>, memref<?xi32>
  varlen.for_tiles "many" %t of queries(64) in %batch {
    // expected-error@+1 {{expected the first region to have one argument, a tile of at most 64 queries, got ('!varlen.tile<keys(4)>')}}
    varlen.if_few %f of %t : !varlen.tile<keys(4)> of !varlen.tile<queries(64)> {
    } else {
    }
  }
  return
}

// -----

func.func @argument(%cu: memref<?xi32>, %i: index) {
  %batch = varlen.batch %cu, %cu rows(%i, %i) heads(%i, %i) mask <full> : memref<?xi32>, memref<?xi32>
  varlen.for_tiles "many" %t of queries(64) in %batch {
    // expected-error@+1 {{expected no argument of the second region, got 1}}
    "varlen.if_few"(%t) ({
    ^bb0(%f: !varlen.tile<queries(4)>):
      varlen.yield
    }, {
    ^bb0(%f: !varlen.tile<queries(4)>):
      varlen.yield
    }) : (!varlen.tile<queries(64)>) -> ()
  }
  return
}

// -----

func.func @yields(%cu: memref<?xi32>, %i: index, %x: tensor<4x4xf32>) {
  %batch = varlen.batch %cu, %cu rows(%i, %i) heads(%i, %i) mask <full> : memref<?xi32>, memref<?xi32>
  varlen.for_tiles "many" %t of queries(64) in %batch {
    // expected-error@+1 {{expected to yield nothing, got 1 values}}
    varlen.if_few %f of %t : !varlen.tile<queries(4)> of !varlen.tile<queries(64)> {
      varlen.yield %x : tensor<4x4xf32>
    } else {
    }
  }
  return
}

// -----

func.func @beside(%q: memref<?x8x16xf32>, %cu: memref<?xi32>, %i: index) {
  %batch = varlen.batch %cu, %cu rows(%i, %i) heads(%i, %i) mask <full> : memref<?xi32>, memref<?xi32>
  varlen.for_tiles "many" %t of queries(64) in %batch {
    // expected-error@+1 {{expected to be in a region of the varlen.if_few that the loop over tiles has}}
    %0 = varlen.read %q at %t : memref<?x8x16xf32>, !varlen.tile<queries(64)> -> tensor<64x16xf32>
    varlen.if_few %f of %t : !varlen.tile<queries(4)> of !varlen.tile<queries(64)> {
    } else {
    }
  }
  return
}
