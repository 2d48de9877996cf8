//===- Passes.td - Passes for CPUs -------------------------*- tablegen -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_TARGET_CPU_PASSES_TD
#define VARLEN_TARGET_CPU_PASSES_TD

include "mlir/Pass/PassBase.td"

def VarlenPairFactors : Pass<"varlen-pair-factors"> {
  let summary = "Make pairs of bf16 a dimension of what products read";
  let description = [{
    A product of bf16 tiles, of loops (row, column, depth), becomes one of loops (row,
    column, depth, pair) whose factors have rank 3. Tiles in memory are views of it; of one
    that is computed the rows are interleaved, once for all products that read it: part by
    part where it is computed so, in a loop, too. A part that may begin or end within a pair
    is interleaved by itself.

    *Requires*: a `#varlen.cpu_schedule` with `kv = pairs` on an operation around the
    products; tiles in memory in the orders that `varlen-choose-copies` gives them; an even
    depth. Other products are left as they are. *Guarantees*: no `varlen.to_tile` is left in
    factors. *Numerics*: a tile that is rounded to bf16 is, in pairs, rounded away from zero
    on a tie.

    ```mlir
    %k = varlen.to_tile %m as row_pairs : memref<32x64xbf16> to tensor<64x32xbf16>
    %s = linalg.contract ... ins(%q, %k : tensor<8x64xbf16>, tensor<64x32xbf16>) ...
    ```
    becomes
    ```mlir
    %0 = memref.expand_shape %m [[0], [1, 2]] : memref<32x64xbf16> into memref<32x32x2xbf16>
    %k = bufferization.to_tensor %0 restrict : memref<32x32x2xbf16> to tensor<32x32x2xbf16>
    %1 = tensor.expand_shape %q [[0], [1, 2]] : tensor<8x64xbf16> into tensor<8x32x2xbf16>
    %s = linalg.contract ... ins(%1, %k : tensor<8x32x2xbf16>, tensor<32x32x2xbf16>) ...
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
    "::mlir::bufferization::BufferizationDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect"];
  let statistics = [
    Statistic<"numProducts", "products", "Products of pairs">];
}

def VarlenPlaceTiles : Pass<"varlen-place-tiles"> {
  let summary = "Say where tiles lie before one-shot bufferization";
  let description = [{
    A `tensor.empty` with a dynamic number of rows, as a score tile is, becomes a slice
    of one of `kv_block` rows: its memory has a static size, and `varlen-outline-work`
    puts it into the workspace. An elementwise operation writes over a tile of the same
    type that was computed before and is not read after it, or to the memory where its
    result is to end up, if no tile of memory is read after it.

    *Requires*: `#varlen.cpu_schedule` on an operation around them; at most `kv_block`
    rows where they are dynamic, or half of that of pairs. *Guarantees*: values keep their types. Tensors of other ranks, and with
    dynamic columns, are left as they are. The schedule is removed: it has no later reader.
    *Numerics*: none.

    ```mlir
    %s = tensor.empty(%keys) : tensor<?x32xf32>
    ```
    becomes
    ```mlir
    %whole = tensor.empty() : tensor<256x32xf32>
    %s = tensor.extract_slice %whole[0, 0] [%keys, 32] [1, 1]
        : tensor<256x32xf32> to tensor<?x32xf32>
    ```
  }];
  let dependentDialects = ["::mlir::tensor::TensorDialect"];
  let statistics = [
    Statistic<"numBounded", "bounded", "Tiles of kv_block rows">,
    Statistic<"numOverwritten", "overwritten", "Tiles written over">];
}

def VarlenChooseCopies : Pass<"varlen-choose-copies"> {
  let summary = "Let each product read one copy of a tile";
  let description = [{
    A tile that lies in memory in several orders (`varlen.to_tile`) becomes one
    tensor for each order that is read: what is in columns is a transposed tensor,
    and the indexing map of the product that reads it is permuted. The left factor
    of a product is read by scalars and the right one by vectors of
    columns; in pairs of two steps of the reduction where the schedule has `kv =
    pairs` and the right factor is bf16. So no order is left but rows and pairs of
    rows, and no tile but with one copy.

    *Requires*: `#varlen.cpu_schedule` on an operation around the tiles, and
    linalg.contract on rank-2 tiles with the result's columns, or the reduction,
    as the right factor's last dimension.
    *Guarantees*: results are the same; nothing but reads of tiles and indexing
    maps changes. A product whose copy is missing is an error.

    ```mlir
    %q = varlen.to_tile %rows as rows, %columns as columns
        : memref<32x8xf32>, memref<8x32xf32> to tensor<32x8xf32>
    %s = linalg.contract indexing_maps = [..., affine_map<(r, c, k) -> (c, k)>, ...]
        ins(%k, %q : tensor<?x8xf32>, tensor<32x8xf32>) ...
    ```
    becomes
    ```mlir
    %q = bufferization.to_tensor %columns restrict : memref<8x32xf32> to tensor<8x32xf32>
    %s = linalg.contract indexing_maps = [..., affine_map<(r, c, k) -> (k, c)>, ...]
        ins(%k, %q : tensor<?x8xf32>, tensor<8x32xf32>) ...
    ```
  }];
  let dependentDialects = ["::mlir::bufferization::BufferizationDialect"];
  let statistics = [
    Statistic<"numTiles", "tiles", "Tiles that lie in memory in several orders">];
}

def VarlenExpandQueries : Pass<"varlen-expand-queries"> {
  let summary = "Write what is computed of the queries of a tile as loops over vectors";
  let description = [{
    A `varlen.for_queries` becomes a loop over panels, in it one over vectors of queries, and
    in that its body on the tiles of such a vector, views of scratch; where queries are rows,
    its body on all of them. The beginning of a state, and a tile that is yielded as it is,
    become `linalg.fill` and `linalg.copy` of views. Rows that go to memory are written there
    at once if they lie as tiles do, else by way of scratch with a `varlen.write_rows`.
    A `varlen.key_limits` becomes a loop over queries.

    *Requires*: `#varlen.cpu_schedule` on an operation around each of them whose queries are
    columns. *Guarantees*: none of these operations is left.
    *Numerics*: results are rounded to the type of memory as they are stored.

    ```mlir
    varlen.for_queries kq rows(%row, %head, %first, %group) valid(%n)
        ins(%acc, %m, %l : ...) outs(%out as rows, %lse as numbers : ...) {
    ^bb0(%0: tensor<64x768xf32>, %1: tensor<1x768xf32>, %2: tensor<1x768xf32>):
      %3, %4 = varlen.online_finish kq %0, %1, %2 scale 0.125 : tensor<64x768xf32>, tensor<1x768xf32>
      varlen.yield %3, %4 : tensor<768x64xf32>, tensor<1x768xf32>
    }
    ```
    becomes
    ```mlir
    scf.for %panel = %c0 to %panels step %c1 {
      scf.for %from = %c0 to %rows step %c16 {
        %0 = bufferization.to_tensor ... : memref<64x16xf32, ...> to tensor<64x16xf32>
        %out, %lse = varlen.online_finish kq %0, %1, %2 scale 0.125 : tensor<64x16xf32>, tensor<1x16xf32>
        ...
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
    "::mlir::bufferization::BufferizationDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect"];
  let statistics = [
    Statistic<"numExpanded", "expanded", "Operations on queries">];
}

def VarlenExpandRows : Pass<"varlen-expand-rows"> {
  let summary = "Write what moves rows of sequences as loops over views";
  let description = [{
    `varlen.read_rows`, `varlen.prefetch_rows`, `varlen.write_rows` and `varlen.fill_rows`
    become `linalg.copy`, `linalg.fill`, `linalg.transpose` and `memref.prefetch` on views
    of memory: one view for all rows where a token has one pair (group 1), else one for each
    token; one for each page of rows in pages, without `one_page`. A `varlen.load_rows` is a view
    as a tensor; in pages, the operations of linalg that read it become loops over the pages, and
    others read a copy. A tile in several orders
    is read from memory as rows, and reordered from there. A `varlen.read_work` becomes the
    loads of the fields that are used. Each constant of a function with such operations is
    there once, at its beginning.

    *Requires*: `#varlen.cpu_schedule` on an operation around a `varlen.read_rows` in another
    order than rows; its `lanes` are the rows of a vector, and a tile of pairs of rows whose
    number is dynamic has `kv_block` rows at most, as has a copy of rows in pages.
    *Guarantees*: none of these operations is left. Scratch in between is `memref.alloc` of a
    static size, next to what uses it.
    *Numerics*: rows are converted as they are copied.

    ```mlir
    varlen.read_rows %k rows(%row, %head, %k0, %c1) valid(%n) to %m as rows
        : memref<?x2x64xf32> to memref<128x64xf32>
    ```
    becomes
    ```mlir
    %first = arith.addi %row, %k0
    %rows = memref.subview %k[%first, %head, 0] [%n, 1, 64] [1, 1, 1]
    %to = memref.subview %m[0, 0] [%n, 64] [1, 1]
    linalg.copy ins(%rows) outs(%to)
    %rest = memref.subview %m[%n, 0] [%others, 64] [1, 1]
    linalg.fill ins(%zero) outs(%rest)
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
    "::mlir::bufferization::BufferizationDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect"];
  let statistics = [
    Statistic<"numExpanded", "expanded", "Operations on rows">];
}

def VarlenExpandTableSums : Pass<"varlen-expand-table-sums"> {
  let summary = "Write sums to rows of a table as loops of vectors";
  let description = [{
    A `varlen.scatter_add` becomes a loop over keys of gathers and scatters, whose
    lanes are queries, each with a row of its own: a query whose row is negative is off
    their mask. A `varlen.add_keys` becomes a loop over the heads that the lanes of a
    vector belong to, and in it one over keys that adds the sum of a head's lanes.

    *Requires*: `#varlen.cpu_schedule` on an operation around them, in an
    `scf.forall` or on it; score tiles in `kq` orientation with a multiple of
    `lanes` columns, at most `kv_block` of them where rows are dynamic, that are
    computed in the same block or lie in memory; rows of the table in memory, one for
    each column. Others, as those of a GPU, are left as they are.
    *Guarantees*: neither of them is left where there is such a schedule. What they read
    is stored to `memref.alloc` at the start of the loop body, unless it lies in memory.
    *Numerics*: keys in ascending order. The lanes of a head are summed in an order
    that depends on their number only.

    ```mlir
    varlen.scatter_add %values at %index to %table[%rows]
        : tensor<?x8xf32>, tensor<?x8xi32>, memref<?x32xf32, strided<[1, 1]>>, tensor<1x8xi64>
    ```
    becomes
    ```mlir
    bufferization.materialize_in_destination %values in restrict writable %v
    bufferization.materialize_in_destination %index in restrict writable %i
    %mask = arith.cmpi ne, %row, %none : vector<8xi64>
    scf.for %key = %c0 to %keys step %c1 {
      %at = ...
      %sum = vector.gather %flat[%c0] [%at], %mask, %zeros : ... into vector<8xf32>
      %more = vector.load %v[%key, %c0] : memref<128x8xf32>, vector<8xf32>
      %new = arith.addf %sum, %more : vector<8xf32>
      vector.scatter %flat[%c0] [%at], %mask, %new : ...
    }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
    "::mlir::bufferization::BufferizationDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect",
    "::mlir::tensor::TensorDialect", "::mlir::vector::VectorDialect"];
  let statistics = [
    Statistic<"numExpanded", "expanded", "Operations written as loops">];
}

def VarlenBoundAllocs : Pass<"varlen-bound-allocs"> {
  let summary = "Buffers of parallel loops with static sizes";
  let description = [{
    A buffer that is allocated in an `scf.forall` with sizes that are at most a
    constant each becomes a `memref.view` of one that is as large as it can get, so
    that `varlen-outline-work` can put it into the workspace.

    *Requires*: memrefs; a bound is the constant of an `arith.minsi`, also where the
    size is an extent of a view or a buffer that has it. Other buffers are left as
    they are.
    *Guarantees*: values keep their types.
    *Numerics*: none.

    ```mlir
    %n = arith.minsi %rest, %c256 : index
    %buffer = memref.alloc(%n) : memref<?x4xf32>
    ```
    becomes
    ```mlir
    %bytes = memref.alloc() : memref<4096xi8>
    %buffer = memref.view %bytes[%c0][%n] : memref<4096xi8> to memref<?x4xf32>
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
    "::mlir::memref::MemRefDialect"];
  let statistics = [Statistic<"numBounded", "bounded", "Buffers rewritten">];
}

def VarlenExpandExp2 : Pass<"varlen-expand-exp2"> {
  let summary = "Write math.exp2 as a polynomial, lane by lane";
  let description = [{
    LLVM turns exp2 of a vector into one library call per lane. This pass writes
    `2^x = 2^n * p(x - n)` with n the integer nearest to x: a clamp, three
    additions, one fused multiply-add per degree, a shift and an integer
    addition.

    *Requires*: nothing. Works on scalars and vectors of any shape, f32 and f64
    directly, narrower types through f32. Tensors are left alone.

    *Guarantees*: no math.exp2 on scalars and vectors is left.

    *Numerics*: exp2 of an integer is exact; exp2(-inf), and everything from
    -127 (f64: -1023) down, is exactly 0. Largest relative error over all f32
    numbers in [-126, 127.5], with rounding: degree 3 1.01e-4, 4 2.9e-6,
    5 1.72e-7, 6 8.0e-8. f64 has degree 11 and 1.0 ulp. Results that would be
    denormal have an absolute error below 2^-126 (f64: 2^-1022). Overflow gives
    inf and a NaN stays one.

    An operation with the attribute `varlen.exp2_degree` gets that degree, and
    leaves out what makes the last sentence true: its operand must be at most
    127 (f64: 1023), and a NaN stays one only if the low 9 (f64: 12) bits of its
    payload are 0, as in every NaN that arithmetic makes or that comes from a
    narrower type. This is the form that attention uses.

    With `scale`, a vector of one or more times 512 bits is, register by register,
    `x86vector.avx512.mask.scalef` of the polynomial by n: no clamp, and no promise, is
    needed, and results that would be denormal are 0.

    ```mlir
    %y = math.exp2 %x {varlen.exp2_degree = 3 : i64} : vector<8xf32>
    ```
    becomes
    ```mlir
    %below = arith.cmpf ogt, %lowest, %x : vector<8xf32>
    %clamped = arith.select %below, %lowest, %x : vector<8xi1>, vector<8xf32>
    %t = arith.addf %clamped, %magic : vector<8xf32>
    %n = arith.subf %t, %magic : vector<8xf32>
    %f = arith.subf %clamped, %n : vector<8xf32>
    %p3 = math.fma %c3, %f, %c2 : vector<8xf32>
    %p2 = math.fma %p3, %f, %c1 : vector<8xf32>
    %p = math.fma %p2, %f, %one : vector<8xf32>
    %t_bits = arith.bitcast %t : vector<8xf32> to vector<8xi32>
    %p_bits = arith.bitcast %p : vector<8xf32> to vector<8xi32>
    %exponent = arith.shli %t_bits, %c23 : vector<8xi32>
    %bits = arith.addi %p_bits, %exponent : vector<8xi32>
    %y = arith.bitcast %bits : vector<8xi32> to vector<8xf32>
    ```
  }];
  let options = [
    Option<"degree", "degree", "int64_t", /*default=*/"5",
           "Degree, 3 to 6, of f32 operations that do not say theirs">,
    Option<"scale", "scale", "bool", "false",
           "Multiply 512-bit vectors by 2^n with AVX-512's vscalef">];
  let dependentDialects = ["::mlir::arith::ArithDialect",
    "::mlir::math::MathDialect", "::mlir::vector::VectorDialect",
    "::mlir::x86vector::X86VectorDialect"];
}

def VarlenOutlineWork : Pass<"varlen-outline-work", "::mlir::ModuleOp"> {
  let summary = "Run parallel loops on the threads of the runtime";
  let description = [{
    The body of each `scf.forall (%i) in (%n)` becomes a private function
    `@<f>_work_<number>(%context, %lo, %hi, %workspace)` that runs the
    iterations `%lo` to `%hi`, and the loop a call of `varlen_parallel_for`
    (Runtime.h), which hands ranges to its threads. A loop of several indices, or
    with other bounds or steps, becomes one of a single index from 0 to the number
    of iterations first, which are numbered with the last index fastest; so does
    one within the body of another, which is no function of its own.

    *Requires*: loops on memrefs, steps above 0. A loop with results or a mapping
    is left as it is.

    *Guarantees*: what the body used of its surroundings arrives through a
    struct on the caller's stack; constants are copied instead. A buffer that is
    allocated in the body, of a size known before the loop (and not carried out
    of the region it is allocated in, but from a branch of an scf.if), is a slice of the workspace, 64-byte
    aligned and apart from all others; its deallocation is gone. A workspace of
    more than 2^62 bytes, also where 64 bits do not count them, is one of 2^62,
    for which the runtime finds no memory. Other allocations stay, with a remark, and
    are freed where the region that they are in ends; one that outlives it, and that
    nothing frees, is an error, as memory would grow with each iteration.

    *Numerics*: none.

    ```mlir
    func.func @f(%x: memref<?xf32>, %n: index) {
      scf.forall (%i) in (%n) {
        %s = memref.alloc() : memref<16xf32>
        ...
      }
      return
    }
    ```
    becomes
    ```mlir
    func.func @f(%x: memref<?xf32>, %n: index) {
      %context = llvm.alloca %c1 x !llvm.struct<...> : (i64) -> !llvm.ptr
      ...
      call @varlen_parallel_for(%count, %c64, @f_work_0, %context)
      return
    }
    func.func private @f_work_0(%context: !llvm.ptr, %lo: i64, %hi: i64, %workspace: !llvm.ptr) {
      %x = ...
      %s = memref.view %buffer[%c0][] : memref<64xi8> to memref<16xf32>
      %0 = memref.assume_alignment %s, 64 : memref<16xf32>
      scf.for %i = %lo to %hi step %c1 {
        ...
      }
      return
    }
    ```
  }];
  let dependentDialects = ["::mlir::affine::AffineDialect",
    "::mlir::arith::ArithDialect", "::mlir::func::FuncDialect",
    "::mlir::LLVM::LLVMDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect"];
  let statistics = [
    Statistic<"numFlattened", "flattened", "Loops of several indices">,
    Statistic<"numLoops", "loops", "Loops made functions">,
    Statistic<"numSlices", "slices", "Buffers placed in the workspace">,
    Statistic<"numHeapAllocs", "heap-allocs",
              "Buffers left to be allocated in every iteration">];
}

def VarlenSplitWork : Pass<"varlen-split-work", "::mlir::ModuleOp"> {
  let summary = "Make two functions of a large one of work";
  let description = [{
    Moves about half of the operations of a function of `varlen-outline-work`
    into a private function `@<function>_part(%context, %workspace, ...)`, which
    a compiler can make code of at the same time. What is moved is the end of a
    block, from some operation on.

    *Requires*: the forms that `varlen-outline-work` makes. A function of fewer
    than `min-size` operations is left as it is; so is one that allocates
    buffers, and one without a tail of a third to two thirds of it.

    *Guarantees*: the same operations in the same order. Buffers are derived
    from the context and the workspace in either function; numbers and vectors
    become arguments.

    *Numerics*: none.

    ```mlir
    func.func private @f_work_0(%context: !llvm.ptr, %lo: i64, %hi: i64, %workspace: !llvm.ptr) {
      scf.for %i = %lo to %hi step %c1 {
        ...
        scf.if %is_panel {
          ... // half of all
        }
      }
      return
    }
    ```
    becomes
    ```mlir
    func.func private @f_work_0(%context: !llvm.ptr, %lo: i64, %hi: i64, %workspace: !llvm.ptr) {
      scf.for %i = %lo to %hi step %c1 {
        ...
        scf.if %is_panel {
          call @f_work_0_part(%context, %workspace, %i)
        }
      }
      return
    }
    func.func private @f_work_0_part(%context: !llvm.ptr, %workspace: !llvm.ptr, %i: index) {
      ... // half of all
      return
    }
    ```
  }];
  let options = [Option<"minSize", "min-size", "int64_t", "1500",
    "Operations of a function, constants aside, that are worth two">];
  let dependentDialects = ["::mlir::func::FuncDialect"];
  let statistics = [Statistic<"numParts", "parts", "Functions split">];
}

def VarlenLegalizeForCPU : Pass<"varlen-legalize-for-cpu", "::mlir::ModuleOp"> {
  let summary = "Write arithmetic that a CPU does not have as what it has";
  let description = [{
    LLVM takes all of it, too, and calls compiler-rt for each lane, writes three
    instructions for one, or gives up. `target` is a name of the target table. In this order:

    - Pairs of bf16, which a dot product instruction reads: two vectors of f32 that are rounded
      to bf16, with ties away from zero, and interleaved become integer arithmetic on
      32-bit lanes. One addition rounds; a shift and a mask put both halves together, where LLVM
      converts each vector and shuffles. `x86vector.avx512.dot`, the dot product of pairs
      on every target, stays where there is AVX-512's instruction, becomes AArch64's `bfdot`
      (4 pairs at once), or two fused multiply-adds.
    - Narrow floats: arithmetic and mathematics on f16 and bf16 is done in f32. Conversions that
      the target has no instruction for are integer arithmetic.
    - libm: math.erf, erfc, cbrt, asinh, acosh and atanh become calls, lane by lane; fpowi,
      of integers of any width, becomes products if its exponent is constant, else a power of
      floats. All other operations of the math dialect LLVM takes.
    - Maxima and minima, on x86, whose instruction is `x > y ? x : y`, which is y where either
      of them is a NaN: an `arith.maxnumf` or `arith.minnumf` with an operand that is never
      a NaN becomes a comparison and a selection, and so does an `arith.maximumf` or
      `arith.minimumf` with a constant. Never a NaN is a constant that is none, what a loop
      carries that begins with such a value and stays one, as a running maximum from -inf
      does, and what is selected or broadcast from such values.
    - Fused multiply-adds become two operations where the target has none.

    *Requires*: scalars and vectors; loops as `scf.for`. Conversions that round to nearest even
    are not taken for pairs; a maximum or minimum of which nothing is known is left, as is
    `arith.maximumf` with 0.0, which is 0.0 also for -0.0.
    *Guarantees*: no arith or math operation on narrow floats but conversions from and to f32,
    and none of those that the target does not have; none of the seven functions.
    *Numerics*: pairs: a NaN stays one if the lower half of its bits is zero, as that of a
    default NaN is; others may become infinite or a number. Multiply-adds round after each
    product, the even one first; `bfdot` rounds the sum of both products to odd, then the
    result, and takes subnormal numbers for 0 (Arm ARM, FEAT_BF16). Narrow floats: conversions
    to f32 are exact; conversions from f32 round to nearest even, keep denormals, make inf of
    what is too large, and a quiet NaN of a NaN. f64 goes through f32 and is rounded twice. Each
    arithmetic operation rounds its result once. libm: its functions have the system's errors; a
    variable exponent of fpowi is rounded to the type of the base, f32 at least, but for whether
    it is odd. The sign of a zero that `arith.maxnumf` and `arith.minnumf` leave open may
    change. A multiply-add of two operations rounds the product.

    ```mlir
    %0 = arith.truncf %even to_nearest_away : vector<16xf32> to vector<16xbf16>
    %1 = arith.truncf %odd to_nearest_away : vector<16xf32> to vector<16xbf16>
    %pairs = vector.interleave %0, %1 : vector<16xbf16> -> vector<32xbf16>
    ```
    becomes
    ```mlir
    %bits = arith.bitcast %even : vector<16xf32> to vector<16xi32>
    %rounded = arith.addi %bits, %half : vector<16xi32>
    %low = arith.shrui %rounded, %c16 : vector<16xi32>
    %odd_bits = arith.bitcast %odd : vector<16xf32> to vector<16xi32>
    %odd_rounded = arith.addi %odd_bits, %half : vector<16xi32>
    %high = arith.andi %odd_rounded, %upper : vector<16xi32>
    %both = arith.ori %low, %high : vector<16xi32>
    %pairs = vector.bitcast %both : vector<16xi32> to vector<32xbf16>
    ```
  }];
  let options = [
    Option<"target", "target", "std::string", "\"host\"",
           "CPU to generate code for, a name of the target table">];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect", "::mlir::arith::ArithDialect",
    "::mlir::func::FuncDialect", "::mlir::math::MathDialect",
    "::mlir::vector::VectorDialect"];
}

def VarlenConvertPrints : Pass<"varlen-convert-prints", "::mlir::ModuleOp"> {
  let summary = "Call the functions that print";
  let description = [{
    A `vector.print` becomes calls of functions that upstream's `convert-vector-to-llvm`
    declares in the module. Functions that print nothing can then be converted at the
    same time, on several threads, for no conversion changes anything outside of them.
    A module without prints is left as it is; one with prints goes through
    `convert-vector-to-llvm` as a whole.

    *Requires*: vectors of one dimension, as `convert-vector-to-scf` makes them.
    *Guarantees*: no `vector.print` is left. *Numerics*: none.

    ```mlir
    vector.print %x : f32
    ```
    becomes
    ```mlir
    llvm.call @printF32(%x) : (f32) -> ()
    llvm.call @printNewline() : () -> ()
    ```
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

def VarlenFinalizeLLVM : Pass<"varlen-finalize-llvm", "::mlir::ModuleOp"> {
  let summary = "Name the CPU of a module that is ready for LLVM";
  let description = [{
    Puts the triple on the module, and the processor, the one to tune for and
    the features on every function with a body, so that any code generator makes
    the same code of it. `target` is a name of the target table.

    *Requires*: nothing but the llvm dialect is left; the first operation that
    is not is named in an error. No function has features that the target has
    not. *Guarantees*: the above. *Numerics*: none.

    ```mlir
    llvm.func @f() { ... }
    ```
    becomes
    ```mlir
    llvm.func @f() attributes {target_cpu = "x86-64-v3", tune_cpu = "znver3",
        target_features = #llvm.target_features<["+avx2", ...]>} { ... }
    ```
  }];
  let options = [
    Option<"target", "target", "std::string", "\"host\"",
           "CPU to generate code for, a name of the target table">];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

#endif // VARLEN_TARGET_CPU_PASSES_TD
