//===- VarlenInterfaces.td - Interfaces of the varlen ops --*- tablegen -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_INTERFACES_TD
#define VARLEN_INTERFACES_TD

include "mlir/IR/Interfaces.td"
include "mlir/Interfaces/DestinationStyleOpInterface.td"

def Varlen_AttentionOpInterface : OpInterface<"AttentionOpInterface"> {
  let description = [{
    An operation on one packed batch of sequences, with a mask and a scale:
    `varlen.attn` and its derivatives, and all with destinations. What does not
    depend on which of them it is (rules, shapes, masks, checks at run time) is written once, on this
    interface.
  }];
  let cppNamespace = "::mlir::varlen";
  let methods = [
    InterfaceMethod<"Queries, Tq x Hq x D.", "::mlir::Value", "getQ">,
    InterfaceMethod<"Keys, Tk x Hkv x D, or in pages P x page x Hkv x D.",
                    "::mlir::Value", "getK">,
    InterfaceMethod<"Values, Tk x Hkv x Dv, or in pages P x page x Hkv x Dv.",
                    "::mlir::Value", "getV">,
    InterfaceMethod<"First query row of each sequence, and the end: N+1.",
                    "::mlir::Value", "getCuQ">,
    InterfaceMethod<"First key row of each sequence, and the end: N+1; null of "
                    "keys in pages.",
                    "::mlir::Value", "getCuK">,
    InterfaceMethod<"The pages of each sequence, N x pages, or null.",
                    "::mlir::Value", "getBlockTable", (ins), [{}],
                    [{ return {}; }]>,
    InterfaceMethod<"What quantised keys are multiplied by, or null.",
                    "::mlir::Value", "getKScale", (ins), [{}],
                    [{ return {}; }]>,
    InterfaceMethod<"What quantised values are multiplied by, or null.",
                    "::mlir::Value", "getVScale", (ins), [{}],
                    [{ return {}; }]>,
    InterfaceMethod<"Query rows in use of each sequence, or null.",
                    "::mlir::Value", "getSequsedQ">,
    InterfaceMethod<"Keys in use of each sequence, or null.",
                    "::mlir::Value", "getSequsedK">,
    InterfaceMethod<"Added to the position of each query of a sequence, or null.",
                    "::mlir::Value", "getQOffset">,
    InterfaceMethod<"Logit in each head's softmax denominator, Hq, or null.",
                    "::mlir::Value", "getSink">,
    InterfaceMethod<"Which keys a query sees.",
                    "::mlir::varlen::MaskAttrInterface", "getMask">,
    InterfaceMethod<"The scale, if it is given.",
                    "::std::optional<::llvm::APFloat>", "getScale">,
    InterfaceMethod<"The scale as an attribute, or null.",
                    "::mlir::FloatAttr", "getScaleAttr">,
    InterfaceMethod<[{
        The operands that are read, in the order of the operation; null where an
        optional one is absent. Without the captures; block_table, k_scale and
        v_scale, which come behind these, are the last.
      }], "::llvm::SmallVector<::mlir::Value>", "getInputSlots">,
    InterfaceMethod<"What the score region reads, Hq or Hq x Tq.",
                    "::mlir::OperandRange", "getCaptures">,
    InterfaceMethod<"The body of the score region, or null.",
                    "::mlir::Block *", "getScoreBody", (ins), [{}], [{
        return $_op.getScore().empty() ? nullptr : &$_op.getScore().front().front();
      }]>,
    InterfaceMethod<[{
        The captures, by number, whose gradients are results too, or whose tangents
        are operands, the last ones of `getInputSlots`.
      }],
                    "::llvm::ArrayRef<int64_t>", "getWrtCaptures">,
    InterfaceMethod<"The tangents that it reads; all null if it reads none.",
                    "::mlir::varlen::AttnTangents", "getTangents", (ins), [{}],
                    [{ return {}; }]>,
    InterfaceMethod<[{
        The inputs whose shapes follow from q, k, v and sink, with what they
        have to be.
      }], "::llvm::SmallVector<::mlir::varlen::ShapedByInputs>", "getShapedInputs">,
    InterfaceMethod<[{
        The results, or the buffers in their place, with what they have to be. A
        value is null where there is none.
      }], "::llvm::SmallVector<::mlir::varlen::ShapedByInputs>", "getShapedResults">,
    InterfaceMethod<[{
        The destinations: buffers that are written, or tensors that the results
        are tied to. None where results are new tensors.
      }], "::llvm::SmallVector<::mlir::Value>", "getDestinations">
  ];
  let extraSharedClassDeclaration = [{
    /// Whether the operation writes buffers instead of having results.
    bool isBufferized() { return $_op->getNumResults() == 0; }
  }];
  let extraClassDeclaration = [{
    /// Whether it computes gradients.
    bool isGradient();
    /// Whether it reads tangents. The gradient of tangents does both.
    bool isTangent();
    /// The operands that are read, those that there are, q first.
    ::llvm::SmallVector<::mlir::varlen::NamedValue> getInputs();
    /// The destinations with what they have to be.
    ::llvm::SmallVector<::mlir::varlen::ShapedByInputs> getShapedDestinations();
    /// Extents; dynamic where no type says more.
    int64_t getQueryHeads();
    int64_t getKvHeads();
    int64_t getHeadDim();
    int64_t getValueHeadDim();
    /// Whether keys and values are in pages.
    bool isPaged() { return static_cast<bool>(getBlockTable()); }
    /// Whether keys and values are of a type that only quantised ones have.
    bool isQuantised();
    /// Whether the type of some operand has a dynamic head_dim. A static one of
    /// another operand does not help: tiles are made from the type of each.
    bool hasDynamicHeadDim();
    /// The element type of q and out, and of k and v unless they are quantised.
    ::mlir::FloatType getElementType();
    /// The type of products, sums, lse and sink: f64 for f64, else f32.
    ::mlir::FloatType getComputeType();
    /// The scale: the attribute, else 1/sqrt(head_dim); none if neither is known.
    std::optional<double> getScaleValue();
    /// What a tile needs on a GPU; head sizes must be static.
    ::mlir::varlen::GPUTileNeeds getGPUTileNeeds(::mlir::varlen::GPUTileOwner owner);
  }];
}

def Varlen_StepOpInterface : OpInterface<"StepOpInterface", [
    DestinationStyleOpInterface]> {
  let description = [{
    A step of attention on a block of queries and a block of keys: `varlen.online_attn`
    and its derivatives, `varlen.online_attn_jvp`, `varlen.online_attn_grad` and
    `varlen.online_attn_jvp_grad`. Conversions of tile loops query it for the rows and
    numbers that it reads and put it on dense tiles; what it computes of them does not
    matter there.
  }];
  let cppNamespace = "::mlir::varlen";
  let methods = [
    InterfaceMethod<"The tile or block of its queries; null on dense tiles.",
                    "::mlir::Value", "getQueries">,
    InterfaceMethod<"The tile or block of its keys; null on dense tiles.",
                    "::mlir::Value", "getKeys">,
    InterfaceMethod<"What the rows of a score tile are.",
                    "::mlir::varlen::Orientation", "getOrientation">,
    InterfaceMethod<"Sets what the rows of a score tile are.", "void",
                    "setOrientation", (ins "::mlir::varlen::Orientation":$orientation)>,
    InterfaceMethod<"The operands that are rows.",
                    "::llvm::SmallVector<::mlir::varlen::StepFactor>", "getFactors">,
    InterfaceMethod<[{
        The operands that are a number of each key, N x 1 where keys are rows of a score
        tile and 1 x N where they are columns.
      }], "::llvm::SmallVector<::mlir::OpOperand *>", "getKeyNumbers", (ins), [{}],
      [{ return {}; }]>,
    InterfaceMethod<"The type of scores and sums.", "::mlir::FloatType",
                    "getComputeType">,
    InterfaceMethod<"The body of the score region, or null.", "::mlir::Block *",
                    "getScoreBody", (ins), [{}], [{
        return $_op.getScore().empty() ? nullptr : &$_op.getScore().front().front();
      }]>,
    InterfaceMethod<[{
        The dimension of a destination that queries are; none if it has a row for each key.
      }], "::std::optional<unsigned>", "getDimOfQueries", (ins "::mlir::OpOperand &":$init)>,
    InterfaceMethod<"The numbers that the score region reads of each query.",
                    "::mlir::OperandRange", "getCaptures">,
    InterfaceMethod<"The tables that the score region reads, and tangents of these.",
                    "::mlir::OperandRange", "getTables">,
    InterfaceMethod<"The arguments of the score region that `getTables` are, or are "
                    "tangents of.",
                    "::llvm::SmallVector<::mlir::BlockArgument>", "getTableArguments",
                    (ins), [{}], [{
        return ::mlir::varlen::getTableArguments($_op.getScoreBody());
      }]>,
    InterfaceMethod<"The memory of the gradients of tables.",
                    "::llvm::SmallVector<::mlir::Value>", "getTableGradients",
                    (ins), [{}], [{ return {}; }]>,
    InterfaceMethod<"The arguments of the score region that these are gradients of.",
                    "::llvm::SmallVector<::mlir::BlockArgument>", "getGradientTables",
                    (ins), [{}], [{ return {}; }]>,
    InterfaceMethod<[{
        The operation that makes one of two results of steps on the same queries and
        different keys: of `state`, and of `more`; null if there is none.
      }], "::mlir::Operation *", "createMerge",
      (ins "::mlir::OpBuilder &":$b, "::mlir::ValueRange":$state,
           "::mlir::ValueRange":$more), [{}], [{ return nullptr; }]>,
    InterfaceMethod<"Replaces what says where the step is, and what it reads there.",
                    "void", "setInputs", (ins "const ::mlir::varlen::StepInputs &":$inputs)>
  ];
  let extraClassDeclaration = [{
    /// Copies the step with these operands in place of its own, then these inputs.
    /// Results take the types of the operands that they are tied to.
    ::mlir::varlen::StepOpInterface
    cloneOnTiles(::mlir::OpBuilder &b, ::mlir::ValueRange operands,
                 const ::mlir::varlen::StepInputs &inputs);
  }];
}

def Varlen_StateInitOpInterface : OpInterface<"StateInitOpInterface"> {
  let description = [{
    The beginning of the state that steps update: `varlen.online_init`. Its results are the
    tiles of the state, in the order of the step's results, and it has no operands, so a
    conversion may begin any part of the queries, or any part of their keys, with it.
  }];
  let cppNamespace = "::mlir::varlen";
  let methods = [
    InterfaceMethod<"The number that each result is all over.",
                    "::llvm::SmallVector<double>", "getNumbers">,
    InterfaceMethod<"Makes it the state of score tiles whose rows are these.", "void",
                    "setOrientation", (ins "::mlir::varlen::Orientation":$orientation),
                    [{}], [{ return; }]>
  ];
}

def Varlen_QueryTileOpInterface : OpInterface<"QueryTileOpInterface"> {
  let description = [{
    An operation on tiles that computes each query by itself: of a part of the queries
    of its operands it makes that part of its results.
  }];
  let cppNamespace = "::mlir::varlen";
  let methods = [
    InterfaceMethod<"The dimension of an operand or a result that its queries are.",
                    "unsigned", "getQueriesDim", (ins "::mlir::Value":$tile)>,
    InterfaceMethod<"Makes it that of score tiles whose rows are these.", "void",
                    "setOrientation", (ins "::mlir::varlen::Orientation":$orientation),
                    [{}], [{ return; }]>,
    InterfaceMethod<"Says whether steps round probabilities to a narrower type.",
                    "void", "setRounded", (ins "bool":$rounded), [{}], [{ return; }]>
  ];
}

def Varlen_ScheduleAttrInterface : AttrInterface<"ScheduleAttrInterface"> {
  let description = [{
    Tile sizes of one attention on one kind of target. What the attribute alone
    can say about them its own verifier says.
  }];
  let cppNamespace = "::mlir::varlen";
  let methods = [
    InterfaceMethod<[{
        Verifies that tiles of these sizes can be made of `op`, a verified
        attention; if not, the error is on `op`.
      }], "::llvm::LogicalResult", "verifyFits", (ins "::mlir::Operation *":$op)>,
    InterfaceMethod<[{
        Verifies that `target` is of that kind and has room for tiles of `op`, which
        they fit; if not, the error is on `op`.
      }], "::llvm::LogicalResult", "verifyFitsTarget",
      (ins "::mlir::Operation *":$op, "::mlir::varlen::Target":$target)>,
    InterfaceMethod<[{
        The loops over tiles that compute `op`, which the schedule fits, in their
        order. What heads own follows from `op` alone, and is not among them.
      }], "::llvm::SmallVector<::mlir::varlen::Role>", "getRoles",
      (ins "::mlir::Operation *":$op)>,
    InterfaceMethod<"The parts in which tiles of queries visit their blocks.",
      "::mlir::varlen::PartSizes", "getPartSizes", (ins), [{}], [{ return {}; }]>
  ];
}

/// What a mask says of a row of a sequence whose state it has been asked for.
class Varlen_MaskMethod<string description, string name>
    : InterfaceMethod<description, "::mlir::varlen::Position", name,
        (ins "::mlir::varlen::PositionBuilder &":$b,
             "::llvm::ArrayRef<::mlir::varlen::Position>":$state,
             "::mlir::varlen::MaskSide":$side,
             "::mlir::varlen::Position":$row)>;

def Varlen_MaskAttrInterface : AttrInterface<"MaskAttrInterface"> {
  let description = [{
    Which keys the queries of a sequence see: each query the keys from one bound to
    before another, of those that there are. Neither bound falls from one query to
    the next, so the first and the last of some queries say what all of them see,
    and the first and the last of some keys which queries see these.

    Rows are numbered from the first of a sequence. A mask is asked about numbers
    outside of the sequence, too, and may answer with them, up to 2^62 either way. It
    does so in the arithmetic of a `PositionBuilder`, so that one formula serves the
    compiler, which counts, and each target.
  }];
  let cppNamespace = "::mlir::varlen";
  // What an operation's default value is built from.
  let constBuilderCall = "::mlir::varlen::MaskAttr::getFull($_builder.getContext())";
  let methods = [
    InterfaceMethod<"Whether a query may not see all keys on that side.", "bool",
                    "hasBound", (ins "::mlir::varlen::MaskSide":$side)>,
    InterfaceMethod<[{
        Where the first query is among the keys: at the first one, or so that the
        last query is at the last key. q_offset is added to it.
      }], "::mlir::varlen::Alignment", "getAlignment">,
    InterfaceMethod<[{
        Whether the query at that position among the keys sees a key, an index: the
        definition, for the oracle. The position is of a type in which nothing
        overflows.
      }], "::mlir::Value", "emitIsVisible",
      (ins "::mlir::ImplicitLocOpBuilder &":$b, "::mlir::Value":$position,
           "::mlir::Value":$key)>,
    InterfaceMethod<[{
        What the methods below have to know of a sequence with so many queries and
        keys in use and that q_offset, which may be any integer.
      }], "::llvm::SmallVector<::mlir::varlen::Position>", "getState",
      (ins "::mlir::varlen::PositionBuilder &":$b,
           "::mlir::varlen::Position":$queries, "::mlir::varlen::Position":$keys,
           "::mlir::varlen::Position":$offset)>,
    InterfaceMethod<[{
        The state for rows that are numbered from that query and that key. What a
        state says of rows within 2^29 is the same if its numbers are clamped to 2^30.
      }], "::llvm::SmallVector<::mlir::varlen::Position>", "getShifted",
      (ins "::mlir::varlen::PositionBuilder &":$b,
           "::llvm::ArrayRef<::mlir::varlen::Position>":$state,
           "::mlir::varlen::Position":$query, "::mlir::varlen::Position":$key)>,
    Varlen_MaskMethod<"The first key that a query sees, or the one behind the last.",
                      "getBound">,
    Varlen_MaskMethod<"The first query whose bound lies behind that key.",
                      "getQueryBehind">,
    InterfaceMethod<[{
        The simplest mask that says the same of sequences with at most so many
        queries and keys; of any where no number is given. Masks for a number have no
        q_offset.
      }], "::mlir::varlen::MaskAttrInterface", "getWithin",
      (ins "::std::optional<int64_t>":$queries, "::std::optional<int64_t>":$keys)>
  ];
  let extraSharedClassDeclaration = [{
    /// Whether every query of a sequence sees all its keys.
    bool isFull() const {
      return !$_attr.hasBound(MaskSide::Begin) && !$_attr.hasBound(MaskSide::End);
    }
  }];
}

#endif // VARLEN_INTERFACES_TD
