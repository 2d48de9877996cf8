// RUN: varlen-opt %s -split-input-file -verify-diagnostics

func.func @rows_of_8() {
  // expected-error @below {{must be shared tile (memref<SLABS x R x 64 x T, #gpu.address_space<workgroup>>, T f16 or bf16, R a positive multiple of 8, less than 2^31 bytes) or numbers in shared memory (memref<N x T, #gpu.address_space<workgroup>>, T i32 or i64, N positive, at most 1024 bytes), but got 'memref<1x60x64xbf16, #gpu.address_space<workgroup>>'}}
  %a = kernel.alloc : memref<1x60x64xbf16, #gpu.address_space<workgroup>>
  return
}

// -----

// As many bytes as a number of 64 bits does not count.
func.func @shared_bytes() {
  // expected-error @below {{less than 2^31 bytes) or numbers in shared memory (memref<N x T, #gpu.address_space<workgroup>>, T i32 or i64, N positive, at most 1024 bytes), but got 'memref<9007199254740992x8x64xbf16, #gpu.address_space<workgroup>>'}}
  %a = kernel.alloc : memref<9007199254740992x8x64xbf16, #gpu.address_space<workgroup>>
  return
}

// -----

// Slabs of no more than 2^31 - 1 bytes: 131072 would be too many.
func.func @shared_bytes_most(%m: memref<131071x128x64xbf16, #gpu.address_space<workgroup>>) {
  // expected-error @below {{expected the 128 rows of the memory, got a tile of 64}}
  %a = kernel.tile %m : memref<131071x128x64xbf16, #gpu.address_space<workgroup>> to tensor<64x64xbf16>
  return
}

// -----

func.func @shared_bytes_more(%m: memref<131072x128x64xbf16, #gpu.address_space<workgroup>>) {
  // expected-error @below {{less than 2^31 bytes)}}
  %a = kernel.tile %m : memref<131072x128x64xbf16, #gpu.address_space<workgroup>> to tensor<64x64xbf16>
  return
}

// -----

func.func @element() {
  // expected-error @below {{must be shared tile}}
  %a = kernel.alloc : memref<1x64x64xf32, #gpu.address_space<workgroup>>
  return
}

// -----

func.func @numbers() {
  // expected-error @below {{numbers in shared memory (memref<N x T, #gpu.address_space<workgroup>>, T i32 or i64, N positive, at most 1024 bytes), but got 'memref<129xi64, #gpu.address_space<workgroup>>'}}
  %a = kernel.alloc : memref<129xi64, #gpu.address_space<workgroup>>
  return
}

// -----

func.func @take(%counters: memref<?xi32>, %i: index, %slot: memref<1xi64, #gpu.address_space<workgroup>>) {
  // expected-error @below {{failed to verify that all of {counters, slot} have same element type}}
  kernel.take %counters[%i] to %slot : memref<?xi32>, memref<1xi64, #gpu.address_space<workgroup>>
  return
}

// -----

func.func @space() {
  // expected-error @below {{must be shared tile}}
  %a = kernel.alloc : memref<1x64x64xf16>
  return
}

// -----

!shared = memref<1x64x64xbf16, #gpu.address_space<workgroup>>
func.func @tile_element(%m: !shared) {
  // expected-error @below {{expected a shared tile of the element type of a tile, 'f16', got 'bf16'}}
  %t = kernel.tile %m : !shared to tensor<64x64xf16>
  return
}

// -----

!shared = memref<1x64x64xbf16, #gpu.address_space<workgroup>>
func.func @tile_rows(%m: !shared) {
  // expected-error @below {{expected the 64 rows of the memory, got a tile of 32}}
  %t = kernel.tile %m : !shared to tensor<32x64xbf16>
  return
}

// -----

!shared = memref<1x64x64xbf16, #gpu.address_space<workgroup>>
func.func @tile_columns(%m: !shared) {
  // expected-error @below {{expected a multiple of 8 columns, at most the 64 of the memory, got 60}}
  %t = kernel.tile %m : !shared to tensor<64x60xbf16>
  return
}

// -----

!shared = memref<1x64x64xbf16, #gpu.address_space<workgroup>>
func.func @tile_many(%m: !shared) {
  // expected-error @below {{expected one shared tile for a tile of 'bf16', got 2}}
  %t = kernel.tile %m, %m : !shared, !shared to tensor<64x64xbf16>
  return
}

// -----

!shared = memref<1x64x64xbf16, #gpu.address_space<workgroup>>
func.func @tile_planes(%m: !shared) {
  // expected-error @below {{expected three shared tiles of bf16, of one type, for a tile of f32, got 'memref<1x64x64xbf16, #gpu.address_space<workgroup>>'}}
  %t = kernel.tile %m : !shared to tensor<64x64xf32>
  return
}

// -----

func.func @load_values(%m: memref<4x?x?xf32>, %i: index, %x: f32) {
  // expected-error @below {{expected memory of rank 3 to have a static number of values for each row, got 'memref<4x?x?xf32>'}}
  %t = kernel.load %m rows(%i, %i, %i, %i) valid(%i) otherwise %x : memref<4x?x?xf32> to tensor<64x1xf32>
  return
}

// -----

func.func @load_results(%m: memref<4x?x2xf32>, %i: index, %x: f32) {
  // expected-error @below {{expected as many values as memory has for each row, 2, got 1}}
  %t = kernel.load %m rows(%i, %i, %i, %i) valid(%i) otherwise %x : memref<4x?x2xf32> to tensor<64x1xf32>
  return
}

// -----

func.func @load_types(%m: memref<4x?x2xf32>, %i: index, %x: f32) {
  // expected-error @below {{expected values of one type, got 'tensor<64x1xf32>', 'tensor<1x64xf32>'}}
  %t:2 = kernel.load %m rows(%i, %i, %i, %i) valid(%i) otherwise %x : memref<4x?x2xf32> to tensor<64x1xf32>, tensor<1x64xf32>
  return
}

// -----

func.func @load_tile(%m: memref<4x?xf32>, %i: index, %x: f32) {
  // expected-error @below {{expected one value for each row or column (R x 1 or 1 x C, or the fragment of it), or one tile of memory of rank 3 (T x H x D), got 'tensor<64x8xf32>' and 'memref<4x?xf32>'}}
  %t = kernel.load %m rows(%i, %i, %i, %i) valid(%i) otherwise %x : memref<4x?xf32> to tensor<64x8xf32>
  return
}

// -----

func.func @load_element(%m: memref<4x?xf32>, %i: index, %x: f32) {
  // expected-error @below {{expected memory and values of one element type, got 'f32' and 'f16'}}
  %t = kernel.load %m rows(%i, %i, %i, %i) valid(%i) otherwise %x : memref<4x?xf32> to tensor<64x1xf16>
  return
}

// -----

func.func @store_columns(%t: tensor<1x64xf32>, %m: memref<4x?xf32>, %i: index) {
  // expected-error @below {{expected one value for each row, got 'tensor<1x64xf32>'}}
  kernel.store %t to %m rows(%i, %i, %i, %i) valid(%i) : tensor<1x64xf32> to memref<4x?xf32>
  return
}

// -----

func.func @store_element(%t: tensor<64x64xf32>, %m: memref<?x4x64xbf16>, %i: index) {
  // expected-error @below {{expected memory and values of one element type, got 'bf16' and 'f32'}}
  kernel.store %t to %m rows(%i, %i, %i, %i) valid(%i) : tensor<64x64xf32> to memref<?x4x64xbf16>
  return
}

// -----

func.func @store_rank(%t: tensor<64x64xf32>, %m: memref<4x?xf32>, %i: index) {
  // expected-error @below {{expected one value for each row or column (R x 1 or 1 x C, or the fragment of it), or one tile of memory of rank 3 (T x H x D), got 'tensor<64x64xf32>' and 'memref<4x?xf32>'}}
  kernel.store %t to %m rows(%i, %i, %i, %i) valid(%i) : tensor<64x64xf32> to memref<4x?xf32>
  return
}

// -----

func.func @store_heads(%t: tensor<64x1xf32>, %m: memref<4xf32>, %i: index) {
  // expected-error @below {{expected memory of rank 3 (T x H x D or H x T x S) or 2 (H x T), got 'memref<4xf32>'}}
  kernel.store %t to %m rows(%i, %i, %i, %i) valid(%i) : tensor<64x1xf32> to memref<4xf32>
  return
}

// -----

func.func @store_stride(%t: tensor<64x64xf32>, %m: memref<?x4x64xf32, strided<[512, 128, 2]>>, %i: index) {
  // expected-error @below {{must be memref of rank 1 to 4 in global memory with a last stride of 1}}
  kernel.store %t to %m rows(%i, %i, %i, %i) valid(%i) : tensor<64x64xf32> to memref<?x4x64xf32, strided<[512, 128, 2]>>
  return
}

// -----

!shared = memref<1x64x64xbf16, #gpu.address_space<workgroup>>
func.func @contract_k(%a: !shared, %b: !shared, %c: vector<1x8x2x2xf32>) {
  // expected-error @below {{expected k to be a multiple of 16, got 40}}
  %r = kernel.contract %a, %b, %c k(40) : !shared, !shared into vector<1x8x2x2xf32>
  return
}

// -----

!shared = memref<1x64x64xbf16, #gpu.address_space<workgroup>>
func.func @contract_b(%a: !shared, %b: !shared, %c: vector<1x16x2x2xf32>) {
  // expected-error @below {{expected B to have at least 128 rows and 64 columns, got 'memref<1x64x64xbf16, #gpu.address_space<workgroup>>'}}
  %r = kernel.contract %a, %b, %c k(64) : !shared, !shared into vector<1x16x2x2xf32>
  return
}

// -----

!shared = memref<1x64x64xbf16, #gpu.address_space<workgroup>>
func.func @contract_a(%a: vector<1x8x2x2xbf16>, %b: !shared, %c: vector<1x8x2x2xf32>) {
  // expected-error @below {{expected A to be a fragment of 1 x 6 x 2 x 2, got 'vector<1x8x2x2xbf16>'}}
  %r = kernel.start %a, %b, %c k(48) {b_t} : vector<1x8x2x2xbf16>, !shared into vector<1x8x2x2xf32>
  return
}

// -----

!shared = memref<1x64x64xbf16, #gpu.address_space<workgroup>>
func.func @start_acc(%a: vector<1x8x2x2xbf16>, %b: !shared, %c: vector<1x8x1x2xf32>) {
  // expected-error @below {{expected the fragment of a tile, vector<M x N x 2 x 2>, of at most 65536 elements, got 'vector<1x8x1x2xf32>'}}
  %r = kernel.start %a, %b, %c k(64) {b_t} : vector<1x8x2x2xbf16>, !shared into vector<1x8x1x2xf32>
  return
}

// -----

!shared = memref<1x64x64xbf16, #gpu.address_space<workgroup>>
func.func @contract_elements(%a: vector<1x8x2x2xf16>, %b: !shared, %c: vector<1x8x2x2xf32>) {
  // expected-error @below {{expected A and B of one element type, got 'f16' and 'bf16'}}
  %r = kernel.contract %a, %b, %c k(64) {b_t} : vector<1x8x2x2xf16>, !shared into vector<1x8x2x2xf32>
  return
}

// -----

!shared = memref<1x64x64xbf16, #gpu.address_space<workgroup>>
func.func @contract_a_t(%a: vector<1x8x2x2xbf16>, %b: !shared, %c: vector<1x8x2x2xf32>) {
  // expected-error @below {{expected a_t with A in shared memory only}}
  %r = kernel.contract %a, %b, %c k(64) {a_t} : vector<1x8x2x2xbf16>, !shared into vector<1x8x2x2xf32>
  return
}

// -----

!shared = memref<1x64x64xbf16, #gpu.address_space<workgroup>>
func.func @contract_acc(%a: !shared, %b: !shared, %c: vector<1x1x2x1xf32>) {
  // expected-error @below {{expected an accumulator vector<M x N x 2 x 2 x f32>, got 'vector<1x1x2x1xf32>'}}
  %r = kernel.contract %a, %b, %c k(64) : !shared, !shared into vector<1x1x2x1xf32>
  return
}

// -----

// 8 columns for each n-tile are none, as 64 bits count them.
!shared = memref<1x64x64xbf16, #gpu.address_space<workgroup>>
func.func @contract_columns(%a: vector<1x8x2x2xbf16>, %b: !shared, %c: vector<1x4611686018427387904x2x2xf32>) {
  // expected-error @below {{operand #2 must be fragment (vector<M x N x 2 x 2>, its row projection M x 1 x 2 x 1 or its column projection 1 x N x 1 x 2, of at most 65536 elements), but got 'vector<1x4611686018427387904x2x2xf32>'}}
  %r = kernel.contract %a, %b, %c k(64) {b_t} : vector<1x8x2x2xbf16>, !shared into vector<1x4611686018427387904x2x2xf32>
  return
}

// -----

!shared = memref<1x64x64xbf16, #gpu.address_space<workgroup>>
func.func @contract_rows(%a: !shared, %b: !shared, %c: vector<1152921504606846976x8x2x2xf32>) {
  // expected-error @below {{operand #2 must be fragment}}
  %r = kernel.contract %a, %b, %c k(64) {b_t} : !shared, !shared into vector<1152921504606846976x8x2x2xf32>
  return
}

// -----

!shared = memref<1x64x64xbf16, #gpu.address_space<workgroup>>
func.func @start_columns(%a: vector<1x8x2x2xbf16>, %b: !shared, %c: vector<1x16385x2x2xf32>) {
  // expected-error @below {{of at most 65536 elements, got 'vector<1x16385x2x2xf32>'}}
  %r = kernel.start %a, %b, %c k(64) {b_t} : vector<1x8x2x2xbf16>, !shared into vector<1x16385x2x2xf32>
  return
}

// -----

func.func @load_rows(%m: memref<4xf32>, %i: index, %x: f32) {
  // expected-error @below {{result #0 must be variadic of static rank-2 tensor or fragment}}
  %s = kernel.load %m rows(%i, %i, %i, %i) valid(%i) otherwise %x : memref<4xf32> to vector<4611686018427387904x1x2x1xf32>
  return
}

// -----

// expected-error @below {{expected the fragment of a tile, vector<M x N x 2 x 2>, of at most 65536 elements, got 'vector<4xf32>'}}
func.func private @pending(!kernel.pending<vector<4xf32>>)

// -----

// expected-error @below {{expected slots of shared tiles (memref<SLABS x R x 64 x T, #gpu.address_space<workgroup>>, T f16 or bf16, R a positive multiple of 8, less than 2^31 bytes) and numbers (memref<N x T, #gpu.address_space<workgroup>>, T i32 or i64, at most 1024 bytes), got 'memref<4xf32>'}}
func.func private @slot(!kernel.ring<memref<4xf32>>)

// -----

!shared = memref<1x64x64xbf16, #gpu.address_space<workgroup>>
func.func @copy_element(%s: memref<?x4x64xf16>, %m: !shared, %i: index) {
  // expected-error @below {{expected a shared tile of the element type of a source, 'f16', got 'bf16'}}
  kernel.copy %s rows(%i, %i, %i, %i) valid(%i) to %m : memref<?x4x64xf16>, !shared
  return
}

// -----

!shared = memref<1x64x64xbf16, #gpu.address_space<workgroup>>
func.func @copy_columns(%s: memref<?x4x80xbf16>, %m: !shared, %i: index) {
  // expected-error @below {{expected a source of 1 to 64 columns, as the slot has, got 'memref<?x4x80xbf16>'}}
  kernel.copy %s rows(%i, %i, %i, %i) valid(%i) to %m : memref<?x4x80xbf16>, !shared
  return
}

// -----

!shared = memref<1x64x64xbf16, #gpu.address_space<workgroup>>
func.func @copy_columns_none(%s: memref<?x4x0xbf16>, %m: !shared, %i: index) {
  // expected-error @below {{expected a source of 1 to 64 columns, as the slot has, got 'memref<?x4x0xbf16>'}}
  kernel.copy %s rows(%i, %i, %i, %i) valid(%i) to %m : memref<?x4x0xbf16>, !shared
  return
}

// -----

!shared = memref<1x64x64xbf16, #gpu.address_space<workgroup>>
func.func @copy_rank(%s: memref<?x64xbf16>, %m: !shared, %i: index) {
  // expected-error @below {{expected a source of rank 3 (T x H x D) without a block_table, got 'memref<?x64xbf16>'}}
  kernel.copy %s rows(%i, %i, %i, %i) valid(%i) to %m : memref<?x64xbf16>, !shared
  return
}

// -----

!shared = memref<1x64x64xbf16, #gpu.address_space<workgroup>>
func.func @copy_rank_of_pages(%s: memref<?x4x64xbf16>, %table: memref<?x?xi32>, %m: !shared, %i: index) {
  // expected-error @below {{expected a source of rank 4 (P x page x H x D) with a block_table, got 'memref<?x4x64xbf16>'}}
  kernel.copy %s rows(%i, %i, %i, %i) valid(%i) pages(%table : memref<?x?xi32>) to %m : memref<?x4x64xbf16>, !shared
  return
}

// -----

!shared = memref<1x64x64xbf16, #gpu.address_space<workgroup>>
func.func @copy_one_page(%s: memref<?x4x64xbf16>, %m: !shared, %i: index) {
  // expected-error @below {{expected a block_table with one_page, got none}}
  kernel.copy %s rows(%i, %i, %i, %i) valid(%i) to %m {one_page} : memref<?x4x64xbf16>, !shared
  return
}

// -----

func.func @load_rank(%s: memref<?x16x4x64xbf16>, %i: index, %x: bf16) {
  // expected-error @below {{expected memory of rank 1 to 3, got 'memref<?x16x4x64xbf16>'}}
  %t = kernel.load %s rows(%i, %i, %i, %i) valid(%i) otherwise %x : memref<?x16x4x64xbf16> to tensor<64x64xbf16>
  return
}

// -----

func.func @load_rank_of_pages(%s: memref<?x4x1xf32>, %table: memref<?x?xi32>, %i: index, %x: f32) {
  // expected-error @below {{expected memory of rank 4 (P x page x H x S) with a block_table, got 'memref<?x4x1xf32>'}}
  %t = kernel.load %s rows(%i, %i, %i, %i) valid(%i) otherwise %x pages(%table : memref<?x?xi32>)
      : memref<?x4x1xf32> to tensor<1x64xf32>
  return
}

// -----

func.func @load_one_page(%s: memref<4x?xf32>, %i: index, %x: f32) {
  // expected-error @below {{expected a block_table with one_page, got none}}
  %t = kernel.load %s rows(%i, %i, %i, %i) valid(%i) otherwise %x {one_page} : memref<4x?xf32> to tensor<64x1xf32>
  return
}

// -----

func.func @load_bytes(%s: memref<?x4x64xi8>, %i: index, %x: i8) {
  // expected-error @below {{expected memory of f16, bf16, f32 or i32, got 'memref<?x4x64xi8>'}}
  %t = kernel.load %s rows(%i, %i, %i, %i) valid(%i) otherwise %x : memref<?x4x64xi8> to tensor<64x64xi8>
  return
}

// -----

!shared = memref<1x64x64xbf16, #gpu.address_space<workgroup>>
func.func @copy_bytes_to_planes(%s: memref<?x4x64xi8>, %m: !shared, %i: index) {
  // expected-error @below {{expected three shared tiles of bf16, of one type, for a source of f32, got}}
  kernel.copy %s rows(%i, %i, %i, %i) valid(%i) to %m, %m : memref<?x4x64xi8>, !shared, !shared
  return
}

// -----

!shared = memref<1x64x64xbf16, #gpu.address_space<workgroup>>
func.func @younger(%i: i32) {
  %r = kernel.ring stages(2) : !kernel.ring<!shared>
  // expected-error @below {{expected fewer younger commits than the 2 stages of the ring, got 2}}
  %s = kernel.ring.wait %r[%i] younger 2 : !kernel.ring<!shared>
  return
}

// -----

!shared = memref<1x64x64xbf16, #gpu.address_space<workgroup>>
func.func @stages() {
  // expected-error @below {{attribute 'stages' failed to satisfy constraint: 64-bit signless integer attribute whose value is positive}}
  %r = kernel.ring stages(0) : !kernel.ring<!shared>
  return
}

// -----

!shared = memref<1x64x64xbf16, #gpu.address_space<workgroup>>
func.func @slack() {
  // expected-error @below {{expected a slack of fewer than 2 stages, got 2}}
  %r = kernel.ring stages(2) slack(2) : !kernel.ring<!shared>
  return
}

// -----

!shared = memref<1x64x64xbf16, #gpu.address_space<workgroup>>
func.func @lag() {
  // expected-error @below {{expected a lag of at most 1 and the slack, 0, got 1}}
  %r = kernel.ring stages(3) lag(1) : !kernel.ring<!shared>
  return
}

// -----

!shared = memref<1x64x64xbf16, #gpu.address_space<workgroup>>
func.func @long_lag() {
  // expected-error @below {{expected a lag of at most 1 and the slack, 2, got 2}}
  %r = kernel.ring stages(4) slack(2) lag(2) : !kernel.ring<!shared>
  return
}

// -----

func.func @restart_of_nothing() {
  // expected-error @below {{expected a ring, got none}}
  "kernel.ring.restart"() : () -> ()
  return
}

// -----

!shared = memref<1x64x64xbf16, #gpu.address_space<workgroup>>
func.func @restart_twice() {
  %r = kernel.ring stages(2) : !kernel.ring<!shared>
  // expected-error @below {{expected each ring once}}
  kernel.ring.restart %r, %r : !kernel.ring<!shared>, !kernel.ring<!shared>
  return
}

// -----

!acc = !llvm.struct<(f32, f32, f32, f32)>
func.func @two_registers(%p: i32, %k: i64) {
  // expected-error @below {{expected A to be a descriptor (i64) or four registers (i32), got 'i32', 'i32'}}
  %s = kernel.wgmma bf16 a(%p, %p) b(%k) : i32, i32 into !acc
  return
}

// -----

!acc = !llvm.struct<(f32, f32, f32, f32)>
func.func @narrow_descriptor(%p: i32, %k: i64) {
  // expected-error @below {{expected A to be a descriptor (i64) or four registers (i32), got 'i32'}}
  %s = kernel.wgmma bf16 a(%p) b(%k) : i32 into !acc
  return
}

// -----

!acc = !llvm.struct<(f32, f32, f32, f32)>
func.func @registers_transposed(%p: i32, %k: i64) {
  // expected-error @below {{expected a_t with A in shared memory only}}
  %s = kernel.wgmma bf16 a(%p, %p, %p, %p) b(%k) {a_t} : i32, i32, i32, i32 into !acc
  return
}

// -----

!acc = !llvm.struct<(f32, f32, f32, f32)>
func.func @f32_factors(%k: i64) {
  // expected-error @below {{attribute 'element' failed to satisfy constraint: type attribute of 16-bit float or bfloat16 type}}
  %s = kernel.wgmma f32 a(%k) b(%k) : i64 into !acc
  return
}

// -----

!acc = !llvm.struct<(f32, f32, f32, f32, f32, f32)>
func.func @six_registers(%k: i64) {
  // expected-error @below {{'result' must be accumulator of wgmma}}
  %s = kernel.wgmma bf16 a(%k) b(%k) : i64 into !acc
  return
}

// -----

!acc = !llvm.struct<(f32, f32, f32, f32)>
func.func @other_accumulator(%k: i64, %s: !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32)>) {
  // expected-error @below {{acc has the type of the result}}
  %t = "kernel.wgmma"(%k, %k, %s) {element = bf16, operandSegmentSizes = array<i32: 1, 1, 1>}
      : (i64, i64, !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32)>) -> !acc
  return
}

// -----

!acc = !llvm.struct<(f16, f16, f16, f16)>
func.func @f16_accumulator(%s: !acc) {
  // expected-error @below {{operand #0 must be accumulator of wgmma}}
  %t = kernel.wgmma_wait %s younger 0 : !acc
  return
}

// -----

!acc = !llvm.struct<(f32, f32, f32, f32)>
func.func @negative(%s: !acc) {
  // expected-error @below {{attribute 'younger' failed to satisfy constraint}}
  %t = kernel.wgmma_wait %s younger -1 : !acc
  return
}

// -----

gpu.module @kernels {
  gpu.func @registers_of_one() kernel {
    // expected-error @below {{expected registers of both roles or of none}}
    kernel.roles consumers(4) registers(160) {
    } producers(4) {
    }
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @registers() kernel {
    // expected-error @below {{expected registers to be a multiple of 8 from 24 to 256, got 20}}
    kernel.roles consumers(4) registers(160) {
    } producers(4) registers(20) {
    }
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @fewer_registers() kernel {
    // expected-error @below {{expected consumers to have no fewer registers than producers, got 32 and 40}}
    kernel.roles consumers(4) registers(32) {
    } producers(4) registers(40) {
    }
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @warpgroups() kernel {
    // expected-error @below {{expected whole warpgroups of 4 warps with registers, got 1 warps}}
    kernel.roles consumers(4) registers(160) {
    } producers(1) registers(32) {
    }
    gpu.return
  }
}

// -----

!ring = !kernel.ring<memref<1xi32, #gpu.address_space<workgroup>>>
gpu.module @kernels {
  gpu.func @consumer(%i: i32) kernel {
    %ring = kernel.ring stages(1) : !ring
    kernel.roles consumers(4) {
      // expected-error @below {{is not what consumers do in a kernel.roles}}
      %slot = kernel.ring.acquire %ring[%i] : !ring
    } producers(4) {
    }
    gpu.return
  }
}

// -----

!ring = !kernel.ring<memref<1xi32, #gpu.address_space<workgroup>>>
gpu.module @kernels {
  gpu.func @producer(%i: i32) kernel {
    %ring = kernel.ring stages(1) : !ring
    kernel.roles consumers(4) {
    } producers(4) {
      // expected-error @below {{is not what producers do in a kernel.roles}}
      kernel.ring.release %ring[%i] : !ring
    }
    gpu.return
  }
}

// -----

func.func @place() {
  // expected-error @below {{expects parent op to be one of 'gpu.func, gpu.launch'}}
  kernel.roles consumers(4) {
  } producers(4) {
  }
  return
}

// -----

func.func @number(%i: i64, %slot: memref<1xi32, #gpu.address_space<workgroup>>) {
  // expected-note @above {{prior use here}}
  // expected-error @below {{expects different type than prior uses: 'i32' vs 'i64'}}
  kernel.put %i to %slot : memref<1xi32, #gpu.address_space<workgroup>>
  return
}

// -----

func.func @map_element(%x: memref<?x4x64xf32>, %maps: memref<?x128xi8>, %i: index) {
  // expected-error @below {{expected a source of rank 3 (T x H x D) of f16 or bf16, got 'memref<?x4x64xf32>'}}
  %map = kernel.tensor_map %x rows(64) to %maps[%i] : memref<?x4x64xf32>, memref<?x128xi8>
  return
}

// -----

func.func @map_rank(%x: memref<?x16x4x64xf16>, %maps: memref<?x128xi8>, %i: index) {
  // expected-error @below {{expected a source of rank 3 (T x H x D) of f16 or bf16, got 'memref<?x16x4x64xf16>'}}
  %map = kernel.tensor_map %x rows(64) to %maps[%i] : memref<?x16x4x64xf16>, memref<?x128xi8>
  return
}

// -----

func.func @map_rows(%x: memref<?x4x64xf16>, %maps: memref<?x128xi8>, %i: index) {
  // expected-error @below {{attribute 'rows' failed to satisfy constraint}}
  %map = kernel.tensor_map %x rows(257) to %maps[%i] : memref<?x4x64xf16>, memref<?x128xi8>
  return
}

// -----

func.func @map_memory(%x: memref<?x4x64xf16>, %maps: memref<?x64xi8>, %i: index) {
  // expected-error @below {{must be tensor maps in global memory (memref<N x 128 x i8>), but got 'memref<?x64xi8>'}}
  %map = kernel.tensor_map %x rows(64) to %maps[%i] : memref<?x4x64xf16>, memref<?x64xi8>
  return
}

// -----

gpu.module @kernels {
  gpu.func @map_of_consumers(%x: memref<?x4x64xf16>, %maps: memref<?x128xi8>, %i: index) kernel
      attributes {known_block_size = array<i32: 160, 1, 1>} {
    kernel.roles consumers(4) {
      // expected-error @below {{is not what consumers do in a kernel.roles}}
      %map = kernel.tensor_map %x rows(64) to %maps[%i] : memref<?x4x64xf16>, memref<?x128xi8>
    } producers(1) {
    }
    gpu.return
  }
}

// -----

func.func @sum_of_rows(%part: tensor<64x1xf32>, %sums: memref<?xf32>, %counters: memref<?xi32>, %slot: index, %turn: i32, %is: i1) {
  // expected-error @below {{expected a part of f32, rows by columns, got 'tensor<64x1xf32>'}}
  %0 = kernel.add_in_order %part to %sums[%slot] of %counters turn(%turn, %is, %is)
      : tensor<64x1xf32>, memref<?xf32>, memref<?xi32>
  return
}

// -----

func.func @stage_too_wide(%factor: vector<1x9x2x2xbf16>) {
  // expected-error @below {{expected a fragment, rows by columns, that the memory has room for, of its element type, got 'vector<1x9x2x2xbf16>' for 'memref<1x64x64xbf16, #gpu.address_space<workgroup>>'}}
  %0 = kernel.stage %factor : vector<1x9x2x2xbf16> to memref<1x64x64xbf16, #gpu.address_space<workgroup>>
  return
}

// -----

func.func @stage_of_another_type(%factor: vector<1x8x2x2xf16>) {
  // expected-error @below {{of its element type, got 'vector<1x8x2x2xf16>'}}
  %0 = kernel.stage %factor : vector<1x8x2x2xf16> to memref<1x64x64xbf16, #gpu.address_space<workgroup>>
  return
}

// -----

func.func @stage_rows(%factor: vector<3x8x2x2xbf16>) {
  // expected-error @below {{that the memory has room for}}
  %0 = kernel.stage %factor : vector<3x8x2x2xbf16> to memref<1x64x64xbf16, #gpu.address_space<workgroup>>
  return
}

// -----

func.func @store_transposed(%tile: tensor<64x64xf32>, %out: memref<?x4x64xf32>, %i: index) {
  // expected-error @below {{expected a fragment, rows by columns, with transposed, got 'tensor<64x64xf32>'}}
  kernel.store %tile to %out rows(%i, %i, %i, %i) valid(%i) {transposed} : tensor<64x64xf32> to memref<?x4x64xf32>
  return
}
