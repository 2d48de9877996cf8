// RUN: varlen-opt %s -split-input-file -verify-diagnostics

func.func @integer_types(%cu_q: memref<?xi32>, %cu_k: memref<?xi64>, %n: index) {
  // expected-error @below {{expected cu_q and cu_k of one integer type, got 'i32' and 'i64'}}
  %tiles = varlen.work_tiles %cu_q, %cu_k rows(%n, %n) heads(%n, %n) mask <full> block_m 1
      : (memref<?xi32>, memref<?xi64>, index, index, index, index) -> memref<?x10xi64>
  return
}

// -----

func.func @entries(%cu_q: memref<3xi32>, %cu_k: memref<4xi32>, %n: index) {
  // expected-error @below {{expected cu_q and cu_k to have the same number of entries, got 3 and 4}}
  %tiles = varlen.work_tiles %cu_q, %cu_k rows(%n, %n) heads(%n, %n) mask <full> block_m 1
      : (memref<3xi32>, memref<4xi32>, index, index, index, index) -> memref<?x10xi64>
  return
}

// -----

func.func @no_entries(%cu_q: memref<3xi32>, %cu_k: memref<0xi32>, %n: index) {
  // expected-error @below {{expected at least one entry in cu_q and cu_k, got 3 and 0}}
  %tiles = varlen.work_tiles %cu_q, %cu_k rows(%n, %n) heads(%n, %n) mask <full> block_m 1
      : (memref<3xi32>, memref<0xi32>, index, index, index, index) -> memref<?x10xi64>
  return
}

// -----

func.func @list_entries(%cu_q: memref<?xi32>, %cu_k: memref<4xi32>, %list: memref<4xi32>, %n: index) {
  // expected-error @below {{expected seqused_k to have one entry for each of the 3 sequences, got 4}}
  %tiles = varlen.work_tiles %cu_q, %cu_k seqused_k(%list) rows(%n, %n) heads(%n, %n)
      mask <full> block_m 1
      : (memref<?xi32>, memref<4xi32>, memref<4xi32>, index, index, index, index)
      -> memref<?x10xi64>
  return
}

// -----

func.func @list_type(%cu: memref<?xi32>, %list: memref<?xi64>, %n: index) {
  // expected-error @below {{expected q_offset of the integer type of cu_q, 'i32', got 'i64'}}
  %tiles = varlen.work_tiles %cu, %cu q_offset(%list) rows(%n, %n) heads(%n, %n)
      mask <full> block_m 1
      : (memref<?xi32>, memref<?xi32>, memref<?xi64>, index, index, index, index)
      -> memref<?x10xi64>
  return
}

// -----

func.func @block_m(%cu: memref<?xi32>, %n: index) {
  // expected-error @below {{expected a positive block_m, got 0}}
  %tiles = varlen.work_tiles %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> block_m 0
      : (memref<?xi32>, memref<?xi32>, index, index, index, index) -> memref<?x10xi64>
  return
}

// -----

func.func @columns(%cu: memref<?xi32>, %n: index) {
  // expected-error @below {{expected a list of 10 columns, got 'memref<?x8xi64>'}}
  %tiles = varlen.work_tiles %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> block_m 1
      : (memref<?xi32>, memref<?xi32>, index, index, index, index) -> memref<?x8xi64>
  return
}
