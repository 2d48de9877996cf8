//===- Passes.td - Passes of the varlen dialect ------------*- tablegen -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_TRANSFORMS_PASSES_TD
#define VARLEN_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def VarlenDifferentiate : Pass<"varlen-differentiate", "::mlir::ModuleOp"> {
  let summary = "Make a function that differentiates a function";
  let description = [{
    With `mode=reverse` for a function `@f` a function `@f_vjp` that takes what `@f`
    takes and the cotangents of its results, and returns the cotangents of its
    arguments (vector-Jacobian product). `wrt` chooses the arguments, `results` the
    results that have cotangents. Only what lies between them is differentiated, and
    each operation there needs a rule (`VJPOpInterface`, docs/gradients.md).

    With `mode=forward` a function `@f_jvp` that takes what `@f` takes and the
    tangents of the arguments of `wrt`, and returns what `@f` returns and the
    tangents of `results` (Jacobian-vector product); the rules are those of
    `JVPOpInterface`.

    In the reverse mode with `residuals=recompute` `@f_vjp` computes `@f` again as far as it needs
    its values; with `with-results` it returns the results of `@f` too, before
    the cotangents. With `residuals=save` there is also a function `@f_fwd`, which
    returns the results of `@f` and then the residuals: all values that `@f_vjp`
    needs and that are not as cheap as a shape or a constant. `@f_vjp` takes them
    between the arguments of `@f` and the cotangents.

    If `@f_vjp` (or `@f_fwd`, `@f_jvp`) is declared, the declaration gets the body;
    its type has to be the right one. That is how a function of the same module can
    call it. A name `varlen.name` of an argument or result makes that of its
    cotangent, with a `d` before it, or of its tangent, with a `t`.

    *Requires*: `@f` is one block on tensors and scalars, without calls (run
    `inline` first).
    *Guarantees*: the new functions hold nothing that their results do not need;
    `@f` stays as it is. Cotangents and tangents that are zero are written out only
    on demand.
    *Numerics*: a value, its cotangent and its tangent have the same type; sums of
    cotangents over the iteration space of a linalg operation are made in f32 at
    least, and those over several uses of a value in its type, from the last use to
    the first. Sums of tangents are made in the types in which `@f` makes its own,
    in their order.

    ```mlir
    func.func @f(%x: tensor<?xf32>, %w: tensor<?xf32>) -> tensor<?xf32> {
      %y = arith.mulf %x, %w : tensor<?xf32>
      %z = math.sin %y : tensor<?xf32>
      return %z : tensor<?xf32>
    }
    ```
    gives, with `wrt=1`,
    ```mlir
    func.func @f_vjp(%x: tensor<?xf32>, %w: tensor<?xf32>, %dz: tensor<?xf32>) -> tensor<?xf32> {
      %y = arith.mulf %x, %w : tensor<?xf32>
      %slope = math.cos %y : tensor<?xf32>
      %dy = arith.mulf %dz, %slope : tensor<?xf32>
      %dw = arith.mulf %dy, %x : tensor<?xf32>
      return %dw : tensor<?xf32>
    }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
    "::mlir::func::FuncDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::math::MathDialect", "::mlir::scf::SCFDialect",
    "::mlir::tensor::TensorDialect", "::mlir::varlen::VarlenDialect"];
  let options = [
    Option<"function", "function", "std::string", "",
           "Function to differentiate">,
    Option<"mode", "mode", "::mlir::varlen::DifferentiationMode",
           "::mlir::varlen::DifferentiationMode::Reverse",
           "Which derivative to make",
           [{::llvm::cl::values(
               clEnumValN(::mlir::varlen::DifferentiationMode::Reverse, "reverse",
                          "the vector-Jacobian product, @f_vjp"),
               clEnumValN(::mlir::varlen::DifferentiationMode::Forward, "forward",
                          "the Jacobian-vector product, @f_jvp"))}]>,
    ListOption<"wrt", "wrt", "std::string",
               "Arguments to differentiate by, by number or varlen.name; "
               "default: all that have float elements">,
    ListOption<"results", "results", "std::string",
               "Results to differentiate, by number or varlen.name; "
               "default: all that have float elements">,
    Option<"residuals", "residuals", "::mlir::varlen::Residuals",
           "::mlir::varlen::Residuals::Recompute",
           "Reverse mode: what becomes of values that the backward function needs",
           [{::llvm::cl::values(
               clEnumValN(::mlir::varlen::Residuals::Recompute, "recompute",
                          "it computes them again"),
               clEnumValN(::mlir::varlen::Residuals::Save, "save",
                          "a forward function returns them"))}]>,
    Option<"withResults", "with-results", "bool", "false",
           "Reverse mode: return the results of the function too">];
  let statistics = [
    Statistic<"numResiduals", "residuals", "Values saved for the backward">];
}

def VarlenAddDestinations : Pass<"varlen-add-destinations"> {
  let summary = "Give attentions on tensors destinations";
  let description = [{
    `varlen.attn` and `varlen.attn_grad` on tensors become `varlen.attn_into` and
    `varlen.attn_grad_into` with a `tensor.empty` for each result. Upstream's passes
    then find the destinations: `eliminate-empty-tensors` has a result that is
    inserted into a slice, or materialized in a destination, written there, and a
    tile of a tiled attention is a part of the whole result.

    *Requires*: nothing; attentions on memrefs, and those with destinations, are
    left as they are.
    *Guarantees*: every attention on tensors has destinations.
    *Numerics*: none.

    ```mlir
    %out, %lse = varlen.attn %q, %k, %v, %cu_q, %cu_k : ...
    ```
    becomes
    ```mlir
    %0 = tensor.empty(%tq) : tensor<?x8x64xf32>
    %1 = tensor.empty(%tq) : tensor<8x?xf32>
    %out, %lse = varlen.attn_into %q, %k, %v, %cu_q, %cu_k outs(%0, %1) : ...
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
    "::mlir::tensor::TensorDialect", "::mlir::varlen::VarlenDialect"];
  let statistics = [
    Statistic<"numRewritten", "rewritten", "Attentions that have destinations now">];
}

def VarlenAssignSchedule : Pass<"varlen-assign-schedule"> {
  let summary = "Choose tile sizes for each varlen.attn from a table";
  let description = [{
    Puts a schedule on each `varlen.attn` under the name `varlen.schedule`. For
    a CPU it is a `#varlen.cpu_schedule`, chosen by the vector registers of the
    target and by the element type; with it goes, under `varlen.exp2_degree`, the
    degree of the polynomial of its exponentials. For a GPU it is a
    `#varlen.gpu_schedule` (a `#varlen.gpu_grad_schedule` on `varlen.attn_grad`),
    chosen by head sizes and element type, that fits into the chip's shared memory.
    An attribute that is there already stays: to try another schedule, write it
    into the input. One that is for another kind of target, or that needs more
    shared memory than the chip has, is an error.

    *Requires*: nothing.
    *Guarantees*: every attention with static head sizes has a schedule; a
    remark names each that has none.
    *Numerics*: the degree bounds the relative error of an exponential, see
    `varlen-expand-exp2`; block sizes fix the order of sums.

    ```mlir
    %out, %lse = varlen.attn %q, %k, %v, %cu_q, %cu_k : ...
    ```
    becomes, for AVX2 and f32,
    ```mlir
    %out, %lse = varlen.attn %q, %k, %v, %cu_q, %cu_k {
      varlen.exp2_degree = 5 : i64,
      varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 3, rows = 4,
                                             panels = 16, kv_block = 128, kv = copy>} : ...
    ```
  }];
  let dependentDialects = ["::mlir::varlen::VarlenDialect"];
  let options = [
    Option<"target", "target", "std::string", "\"host\"",
           "CPU to choose for, a name of the target table">,
    Option<"chip", "chip", "std::string", "",
           "GPU to choose for instead, a name of its table (sm_80, ...)">];
  let statistics = [
    Statistic<"numAssigned", "assigned", "Attentions with a schedule">,
    Statistic<"numMissed", "missed", "Attentions that no schedule fits">];
}

def VarlenTileAttn : Pass<"varlen-tile-attn"> {
  let summary = "Write attention as loops over tiles and blocks";
  let description = [{
    An attention on buffers becomes loops: over tiles that own rows, and for each
    over the blocks of the other side that it visits, on which it takes steps:
    `varlen.online_attn` or one of its derivatives. A block that no row
    sees is skipped; one that all rows see whole takes the step without limits, or
    with an `unless` that holds.

    These are tile loops, with nothing of a target but sizes; the schedule says
    which roles they have, and goes with them:

    | | out | gradients |
    |---|---|---|
    | `#varlen.gpu_schedule` | tiles of `block_m` pairs of a query row and a head visit blocks of `kv_block` keys | |
    | `#varlen.gpu_grad_schedule` | | a loop that owns dq, and one that owns dk and dv or one for each: seven products, of gradients of tangents 15 or 18 |
    | `#varlen.cpu_schedule` | tiles of all panels of a work tile, with keys as the rows of scores | a loop over sequences that own all three: five products, of gradients of tangents ten or twelve |

    Gradients have a loop before that leaves lse and delta of every row in scratch,
    and, with a sink, one over heads after. No element is added to by two tiles.
    Each constant of a function with attention is there once, and each extent once in a block.
    `convert-varlen-to-cpu` makes parallel loops of these,
    `convert-varlen-to-kernel` kernels.

    *Requires*: `varlen.attn` and its derivatives on memrefs with a
    `varlen.schedule` and static head sizes. The last stride of each memref is 1; an
    error names one of which it is not.
    *Guarantees*: no such operation is left. Each output row is written by one
    tile, so results do not depend on threads or on the rest of the batch.
    *Numerics*: gradients are summed over kv blocks (dq) or rows (dk, dv) in the
    compute type, multiplied by the scale and converted last.

    ```mlir
    varlen.attn %q, %k, %v, %cu_q, %cu_k outs(%out, %lse) {varlen.schedule = ...}
    ```
    becomes, with a CPU schedule,
    ```mlir
    %batch = varlen.batch %cu_q, %cu_k rows(%tq, %tk) heads(%hkv, %group) mask <full> : ...
    varlen.for_tiles "attn" %t of queries(384) in %batch attributes {varlen.schedule = ...} {
      %q_tile = varlen.read %q at %t : ...
      %acc0, %m0, %l0 = varlen.online_init kq scale 0.125 : ...
      %s:3 = varlen.for_blocks %b of keys(128) meeting %t : ... iter_args(...) -> (...) {
        %k_tile = varlen.read %k at %b : ...
        %v_tile = varlen.read %v at %b : ...
        %r:3 = varlen.online_attn kq at(%t, %b : ...) ins(%q_tile, %k_tile, %v_tile : ...) ...
        varlen.yield %r#0, %r#1, %r#2 : ...
      }
      %o, %e = varlen.online_finish kq %s#0, %s#1, %s#2 scale 0.125 : ...
      varlen.write %o to %out at %t otherwise (0.0) : ...
      varlen.write %e to %lse at %t otherwise (-inf) : ...
    }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::math::MathDialect",
    "::mlir::memref::MemRefDialect", "::mlir::tensor::TensorDialect"];
  let statistics = [
    Statistic<"numTiled", "tiled", "Attentions and gradients tiled">];
}

def VarlenSplitKV : Pass<"varlen-split-kv"> {
  let summary = "Split the key blocks of a tile into parts, with a state each (split-KV)";
  let description = [{
    A loop over the blocks that a tile of queries visits becomes a `varlen.for_parts`:
    each part begins with a state of its own, and `varlen.online_merge` makes one of
    all. Parts of a tile can then be computed at once, which a few queries before many
    keys need. How many blocks a part has the schedule says (`getPartSizes` of
    `Varlen_ScheduleAttrInterface`), neither threads nor the batch: so results depend
    on neither.

    A loop is left as it is if its schedule has no parts, as one for a GPU without a
    `few_part`, if its state begins with something else than `varlen.online_init`, or if
    anything but one step with a merge modifies the state.

    *Requires*: nothing. *Guarantees*: all other loops over the blocks that a tile of
    queries visits are split.
    *Numerics*: a sum over keys becomes the sum of those over parts, which is rounded
    otherwise.

    ```mlir
    %acc0, %m0, %l0 = varlen.online_init kq scale 0.125 : ...
    %s:3 = varlen.for_blocks %b of keys(128) meeting %t : ...
        iter_args(%acc = %acc0, %m = %m0, %l = %l0) -> (...) { ... }
    ```
    becomes
    ```mlir
    %s:3 = varlen.for_parts %p of %t blocks(16) few(8) : ... -> (...) {
      %acc0, %m0, %l0 = varlen.online_init kq scale 0.125 : ...
      %r:3 = varlen.for_blocks %b of keys(128) meeting %p : ...
          iter_args(%acc = %acc0, %m = %m0, %l = %l0) -> (...) { ... }
      varlen.yield %r#0, %r#1, %r#2 : ...
    } merge(%acc, %m, %l with %acc1, %m1, %l1) {
      %u:3 = varlen.online_merge kq %acc, %m, %l with %acc1, %m1, %l1 scale 0.125 : ...
      varlen.yield %u#0, %u#1, %u#2 : ...
    }
    ```
  }];
  let statistics = [Statistic<"numSplit", "split", "Loops whose blocks are split into parts">];
}

def VarlenSpecializeFew : Pass<"varlen-specialize-few"> {
  let summary = "Write a loop over tiles of queries in a form for few queries, too";
  let description = [{
    On a CPU, queries are columns of score tiles (`kq`), and lanes are queries: few queries,
    as of a sequence that is decoded token by token, would leave most lanes empty. The body
    of a loop over tiles of queries with blocks becomes a `varlen.if_few`, whose first region
    is a copy for few queries, in which they are rows (`qk`), so that lanes are keys and
    columns of values. Few are half the `lanes` of the `#varlen.cpu_schedule` of the loop.

    *Requires*: nothing. Loops without blocks or without such a schedule, of one lane, in two
    forms already, and with an operation that is not known to compute each query by itself,
    are left as they are. *Guarantees*: the second region is the body as it was.
    *Numerics*: few queries sum over keys and columns in another order than others.

    ```mlir
    varlen.for_tiles "attn" %t of queries(768) in %batch {
      %q = varlen.read %Q at %t : memref<?x4x64xf32>, !varlen.tile<queries(768)> -> tensor<768x64xf32>
      ...
    }
    ```
    becomes
    ```mlir
    varlen.for_tiles "attn" %t of queries(768) in %batch {
      varlen.if_few %f of %t : !varlen.tile<queries(8)> of !varlen.tile<queries(768)> {
        %q = varlen.read %Q at %f : memref<?x4x64xf32>, !varlen.tile<queries(8)> -> tensor<8x64xf32>
        ...
      } else {
        %q = varlen.read %Q at %t : memref<?x4x64xf32>, !varlen.tile<queries(768)> -> tensor<768x64xf32>
        ...
      }
    }
    ```
  }];
  let statistics = [Statistic<"numSpecialized", "specialized", "Loops in two forms">];
}

def VarlenGuardAttn : Pass<"varlen-guard-attn", "::mlir::ModuleOp"> {
  let summary = "Put attentions without a schedule behind a check at run time";
  let description = [{
    What is to become plain linalg trusts its operands. This pass has the runtime
    check them first, as `varlen-tile-attn` does for an attention with a schedule:
    extents that types leave open, cu_seqlens and seqused. If it refuses them, it
    has the message, and the results are buffers of the right shape that are
    not written.

    *Requires*: an attention with a schedule, or on memrefs, is left as it is.
    *Guarantees*: every other one runs with operands that keep the rules only.
    *Numerics*: none.

    ```mlir
    %out, %lse = varlen.attn %q, %k, %v, %cu_q, %cu_k : ...
    ```
    becomes
    ```mlir
    scf.if %wrong_extent {
      func.call @varlen_extent_error(%rule, %value, %bound) : (i64, i64, i64) -> ()
    }
    %tiles = varlen.work_tiles %cu_q_buffer, %cu_k_buffer rows(%tq, %tk) heads(%c0, %c0) mask <full> block_m 1 {bufferization.manual_deallocation}
    %address = memref.extract_aligned_pointer_as_index %tiles
    memref.dealloc %tiles {bufferization.manual_deallocation}
    %refused = arith.cmpi eq, %address, %c0
    %bad = arith.ori %wrong_extent, %refused
    %out, %lse = scf.if %bad {
      %0 = tensor.empty(%tq, %heads, %dim) ...
      %1 = tensor.empty(%heads, %tq) ...
      scf.yield %0, %1
    } else {
      %0:2 = varlen.attn %q, %k, %v, %cu_q, %cu_k : ...
      scf.yield %0#0, %0#1
    }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
    "::mlir::bufferization::BufferizationDialect", "::mlir::func::FuncDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect",
    "::mlir::tensor::TensorDialect"];
  let statistics = [
    Statistic<"numGuarded", "guarded", "Attentions behind a check">];
}

def VarlenDecomposeAttn : Pass<"varlen-decompose-attn"> {
  let summary = "Write varlen.attn and varlen.attn_grad as plain linalg: slow, and easy to check";
  let description = [{
    Two loops, over sequences and over query heads, around softmax(q k^T) v on
    the matrices of one head of one sequence; for a gradient three loops, over
    sequences, kv heads and the query heads of a group, around the formulas of
    docs/attn-grad.md. This is what every other lowering is compared with, and
    the way out for an attention that none of them takes. A `varlen.merge` is two
    elementwise operations: one on lse that makes the weights, one on out.

    *Requires*: tensors. Extents, cu_seqlens and seqused are trusted; run
    `varlen-guard-attn` or `generate-runtime-verification` first to have them
    checked.
    *Guarantees*: no attention and no merge is left (with `unscheduled-only`: no
    attention without a `varlen.schedule`; with `merges-only`: no merge).
    *Numerics*: products, sums and exponentials in f32 (f64 for f64); each sum
    runs in the order of its index. The maximum of a row is subtracted before
    exp. A key that a query does not see takes no part in its sums, even if it
    holds NaN. Memory per sequence and head is O(Lq * Lk).

    ```mlir
    %out, %lse = varlen.attn %q, %k, %v, %cu_q, %cu_k : ...
    ```

    ==>

    ```mlir
    %r:2 = scf.for %s = %c0 to %sequences step %c1 iter_args(%o = %zeros, %l = %neg_infs) {
      %h:2 = scf.for %h = %c0 to %heads step %c1 iter_args(...) {
        %q_s = tensor.extract_slice %q[%q_row, %h, 0] [%q_rows, 1, %d] [1, 1, 1]
        %score = linalg.generic ...
        ...
        tensor.insert_slice %out_s into %o[%q_row, %h, 0] [%q_rows, 1, %dv] [1, 1, 1]
    ```
  }];
  let options = [
    Option<"unscheduled", "unscheduled-only", "bool", "false",
           "Leave attentions that have a varlen.schedule alone">,
    Option<"mergesOnly", "merges-only", "bool", "false",
           "Leave all attentions alone">];
  let statistics = [
    Statistic<"numDecomposed", "decomposed", "Attentions decomposed">,
    Statistic<"numLeft", "left", "Attentions left to another route">];
}

def VarlenOnlineSoftmax : Pass<"varlen-online-softmax"> {
  let summary = "Write steps of online softmax and their gradients as linalg";
  let description = [{
    The step is written here once, for every target: two contractions, two
    reductions over keys, and elementwise operations on the score tile, on the
    statistics (one value per query) and on the accumulator. With `skip-rescaling` the
    product of an accumulator of a step with a `rescale_threshold` is `varlen.rescale`,
    which `kernel-distribute` has a branch for. Limits are `varlen.hide` and
    p is `varlen.weight`, which `varlen-expand-scores` expands once no pass needs to know what
    is hidden. The gradients of a
    step take up to five contractions, those of a step with tangents ten or twelve; scores and
    what hides them are the same text. `varlen.online_init` becomes fills, `varlen.online_merge`,
    `varlen.online_finish`, `varlen.online_statistics` and `varlen.online_tangent_statistics`
    elementwise operations, and `varlen.row_dot` a sum over columns. The orientation of the score tile is in the
    indexing maps and the order of the loops, nowhere else.

    On a CPU, within a `#varlen.cpu_schedule`, the limits of a step with `seen` are the
    bounds of loops. Scores, p and ds are computed for 8 keys at a time and for the queries of
    two vectors, or of one if the other sees none of these keys. They are compared with
    limits only where some query does not see all 8 keys. The sums of acc, dq, dk and dv are computed for a
    few rows at a time, which registers have room for, over the keys or the queries that
    these rows see; what dq, dk and dv add to memory gets `varlen.add_last`.

    *Requires*: within a `#varlen.cpu_schedule` a multiple of 8 keys for steps with `seen`.
    *Guarantees*: none of these operations is left; every tile has rank 2, and the
    extent 1 along the key axis makes a statistic; no tile is read for its extents, which
    are those of operands; acc and l are written over those of before.
    *Numerics*: as in the descriptions of the two; `c * s - m` (or `- lse2`) is
    one fused multiply-add. p is rounded to the type of v for the second
    contraction, not for the sum l; where that is a narrower type, m is not
    rounded up. Where it is not, and keys are rows, the sums of a step begin at 0;
    acc and l take them by one fused multiply-add. ds comes from the p that was not
    rounded. On a CPU terms of zero are left out, also where they are zero times infinity
    or a NaN.

    ```mlir
    %r:3 = varlen.online_attn qk ins(%q, %k, %v) outs(%acc, %m, %l) scale 0.125
    ```
    becomes
    ```mlir
    %s = linalg.contract ins(%q, %k) outs(%zeros) -> tensor<64x64xf32>
    %top = linalg.generic {"reduction over keys"} ins(%s) outs(%neg_infs) -> tensor<64x1xf32>
    %m1 = linalg.generic ins(%m, %top) { max(m, ceil(c * top)) }
    %p = linalg.generic ins(%s, %minus_m1) { weight(s, c, -m1) } -> tensor<64x64xf32>
    ...
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::math::MathDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect",
    "::mlir::tensor::TensorDialect"];
  let options = [
    Option<"skipsRescaling", "skip-rescaling", "bool", "false",
      "Leave products of accumulators with factors that are mostly 1 to varlen.rescale">];
  let statistics = [
    Statistic<"numSteps", "steps", "Steps of online softmax written out">,
    Statistic<"numGradSteps", "grad-steps", "Gradients of a step written out">];
}

def VarlenExpandAppend : Pass<"varlen-expand-append"> {
  let summary = "Expand varlen.append on memrefs to a loop over runs of rows";
  let description = [{
    `varlen.append_runs` checks where rows go and makes a list; each run of it is an iteration
    of an `scf.forall`, in which linalg writes the rows to their page: copies them, and with a
    rotary embedding turns pairs of the keys, one operation on the first and the second of all
    pairs. For quantised caches one operation reduces the rows of heads to their largest magnitudes,
    one makes scales of these, and one writes numbers, from rows that are turned once more.

    *Requires*: memrefs.
    *Guarantees*: no `varlen.append` is left. Where the list says that something is wrong
    there is no iteration.
    *Numerics*: products and their sums in the compute type, without fused multiply-adds; the
    result is rounded once.

    ```mlir
    varlen.append %k, %v, %cu seqused_k(%used) rotary(%cos, %sin) outs(%k_cache, %v_cache) : ...
    ```

    ==>

    ```mlir
    %runs = varlen.append_runs %cu, %used rows(...) pages(...) page_rows(...) positions(...)
    %n = memref.dim %runs, %c0 : memref<?x6xi64>
    scf.forall (%i) in (%n) {
      %position = memref.load %runs[%i, %c1]
      ...
      linalg.generic ins(%x, %y, %cos_rows, %sin_rows) outs(%x_page, %y_page) {
        x * cos - y * sin, x * sin + y * cos
      }
      linalg.generic ins(%v_rows) outs(%v_page) { copy }
    }
    memref.dealloc %runs
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect"];
  let statistics = [Statistic<"numExpanded", "expanded", "Appends expanded">];
}

def VarlenExpandGather : Pass<"varlen-expand-gather"> {
  let summary = "Expand varlen.gather to loads, or to gathers of vectors";
  let description = [{
    The index is clamped, and the element loaded: by `vector.gather` for vectors of
    rank 1, else one by one, as a thread of a GPU has few.
  }];
  let dependentDialects = [
    "arith::ArithDialect", "memref::MemRefDialect", "vector::VectorDialect"];
  let statistics = [Statistic<"numGathers", "gathers", "Number of gathers">];
}

def VarlenExpandScores : Pass<"varlen-expand-scores"> {
  let summary = "Expand varlen.hide and varlen.weight to arithmetic";
  let description = [{
    A comparison with either limit chooses between the score and what replaces it; a weight
    is a `math.fma` and a `math.exp2`, with the `varlen.exp2_degree` that it has. With
    `keep-columns` a `varlen.hide` whose keys are the columns of its tile is left, which
    `kernel-distribute` expands: limits of a row are bits of a word there.
  }];
  let options = [
    Option<"keepsColumns", "keep-columns", "bool", "false",
      "Leave varlen.hide of keys along columns">];
  let dependentDialects = ["arith::ArithDialect", "math::MathDialect"];
  let statistics = [Statistic<"numExpanded", "expanded", "Number of operations expanded">];
}

#endif // VARLEN_TRANSFORMS_PASSES_TD
