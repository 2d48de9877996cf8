// RUN: varlen-opt %s -split-input-file -verify-diagnostics

func.func @axis(%cu: memref<?xi32>, %n: index) {
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  // expected-error @below {{expected tiles of queries or keys, got '!varlen.tile<heads>'}}
  %l, %c = varlen.list_tiles !varlen.tile<heads> of %batch loops(1) : memref<?x2xi32>, memref<2xi64>
  return
}

// -----

func.func @list(%cu: memref<?xi32>, %n: index) {
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  // expected-error @below {{expected a list of type 'memref<?x2xi32>', got 'memref<?x3xi32>'}}
  %l, %c = varlen.list_tiles !varlen.tile<queries(64)> of %batch loops(1) : memref<?x3xi32>, memref<2xi64>
  return
}

// -----

func.func @count(%cu: memref<?xi32>, %n: index) {
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  // expected-error @below {{expected a count of 4 numbers, one for each loop and one more, got 'memref<2xi64>'}}
  %l, %c = varlen.list_tiles !varlen.tile<queries(64)> of %batch loops(3) : memref<?x2xi32>, memref<2xi64>
  return
}

// -----

func.func @no_first_parts(%cu: memref<?xi32>, %n: index) {
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  // expected-error @below {{expected first_parts where keys are in parts, and only there}}
  %l, %c = varlen.list_tiles !varlen.tile<queries(64)> of %batch loops(1) parts(64, 32) : memref<?x2xi32>, memref<2xi64>
  return
}

// -----

func.func @parts_of_queries(%cu: memref<?xi32>, %n: index) {
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  // expected-error @below {{expected parts of tiles of queries, got '!varlen.tile<keys(64)>'}}
  %l, %c, %p = varlen.list_tiles !varlen.tile<keys(64)> of %batch loops(1) parts(64, 32) : memref<?x2xi32>, memref<2xi64>, memref<?xi32>
  return
}

// -----

func.func @by_head(%cu: memref<?xi32>, %n: index) {
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  // expected-error @below {{expected weights with by_head}}
  %l, %c = varlen.list_tiles !varlen.tile<queries(64)> of %batch loops(1) by_head : memref<?x2xi32>, memref<2xi64>
  return
}

// -----

func.func @weights_in_parts(%cu: memref<?xi32>, %n: index) {
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  // expected-error @below {{expected no weights of tiles in parts, which are of one length}}
  %l, %c, %p = varlen.list_tiles !varlen.tile<queries(64)> of %batch loops(1) parts(64, 32) weights {
  ^bb0(%s: index, %t: index, %h: index):
    %work = arith.index_cast %t : index to i32
    varlen.yield %work : i32
  } : memref<?x2xi32>, memref<2xi64>, memref<?xi32>
  return
}

// -----

func.func @arguments(%cu: memref<?xi32>, %n: index) {
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  // expected-error @below {{expected weights of a sequence, a tile and a kv head, three index arguments}}
  %l, %c = varlen.list_tiles !varlen.tile<queries(64)> of %batch loops(1) weights {
  ^bb0(%s: index, %t: index):
    %work = arith.index_cast %t : index to i32
    varlen.yield %work : i32
  } : memref<?x2xi32>, memref<2xi64>
  return
}

// -----

func.func @yields(%cu: memref<?xi32>, %n: index) {
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  // expected-error @below {{expected weights to yield an i32}}
  %l, %c = varlen.list_tiles !varlen.tile<queries(64)> of %batch loops(1) weights {
  ^bb0(%s: index, %t: index, %h: index):
    varlen.yield %t : index
  } : memref<?x2xi32>, memref<2xi64>
  return
}

// -----

func.func @offset(%cu: memref<?xi32>, %n: index) {
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  // expected-error @below {{expected an offset with a q_offset of the batch, and only then}}
  %r:7 = varlen.read_sequence %batch[%n] : index, index, index, index, index, index, index
  return
}

// -----

// The form in words has both or none.
func.func @part_pairs(%batch: !varlen.batch) {
  // expected-error @below {{expected part_keys and part_pairs, or none of the two}}
  %l, %c, %p = "varlen.list_tiles"(%batch) ({}) {tile = !varlen.tile<queries(64)>, loops = 1 : i64, part_keys = 64 : i64}
      : (!varlen.batch) -> (memref<?x2xi32>, memref<2xi64>, memref<?xi32>)
  return
}

// -----

// Tiles of queries are in this order.

func.func @last_first(%cu: memref<?xi32>, %n: index) {
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  // expected-error @below {{'varlen.list_tiles' op expected last_first of tiles of keys without weights, got '!varlen.tile<queries(64)>'}}
  %l, %c = varlen.list_tiles !varlen.tile<queries(64)> of %batch loops(1) last_first : memref<?x2xi32>, memref<2xi64>
  return
}
