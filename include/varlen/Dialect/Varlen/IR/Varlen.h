//===- Varlen.h - The varlen dialect ----------------------------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_DIALECT_VARLEN_IR_VARLEN_H
#define VARLEN_DIALECT_VARLEN_IR_VARLEN_H

#include "varlen/Dialect/Varlen/IR/Position.h"
#include "varlen/Target/Tiles.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/Dialect/Linalg/IR/LinalgInterfaces.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Interfaces/TilingInterface.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

#include <array>

//===----------------------------------------------------------------------===//
// Dialect
//===----------------------------------------------------------------------===//

#include "varlen/Dialect/Varlen/IR/VarlenDialect.h.inc" // IWYU pragma: export

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

#include "varlen/Dialect/Varlen/IR/VarlenEnums.h.inc" // IWYU pragma: export

namespace mlir::varlen {
/// Discardable attribute with the schedule of an operation: of an attention and
/// of a loop over its tiles, and of what convert-varlen-to-cpu makes of that
/// loop, an scf.forall or an scf.if in it, whose tiles are vectorised by it.
inline constexpr llvm::StringLiteral kScheduleAttrName = "varlen.schedule";
/// Discardable attribute of math.exp2, and of operations that have
/// exponentials: the degree of the polynomial that suffices, an integer from 3
/// to 6, 11 for f64. It also guarantees that the operand is at most 127 (1023
/// for f64).
inline constexpr llvm::StringLiteral kExp2DegreeAttrName = "varlen.exp2_degree";
inline constexpr int64_t kMinExp2Degree = 3, kMaxExp2Degree = 6,
                         kExp2DegreeF64 = 11;
/// Discardable attribute of a function: the name of an operation by which it
/// allocates memory whose size extents and scalar arguments do not determine.
inline constexpr llvm::StringLiteral kMemoryDependsOnAttrName =
    "varlen.memory_depends_on";

/// Discardable attribute of an argument or a result of a function: the name by
/// which programs and tools know it.
inline constexpr llvm::StringLiteral kNameAttrName = "varlen.name";

/// The longest chunk of keys: positions within one add up in 32 bits.
inline constexpr int64_t kMaxChunk = int64_t(1) << 28;

/// The two bounds of the keys that a query sees.
enum class MaskSide { Begin, End };

/// The sizes and the form of the tiles of a role.
struct RoleShape {
  /// Rows that a tile owns, and rows of a block that it visits.
  int64_t tile, block;
  /// What the rows of a score tile are.
  Orientation orientation;
  /// Columns of tiles are whole multiples of this.
  int64_t columnMultiple;
  /// Of q, k, v and dout as factors of products: their element type, or the
  /// compute type.
  FloatType factor;
  /// Of steps: see varlen.online_attn and varlen.online_attn_grad.
  int64_t rescaleThreshold = 0;
  bool scoresFirst = false;
  /// Of statistics: whether they clear dq, which other tiles only add to.
  bool clearsDq = false;
};
/// What the tiles of one loop own: out and lse, with their tangents where the
/// operation has some; the statistics of rows; dq; dk, dv or both; both, and
/// what their keys add to dq; dq, dk and dv of whole sequences.
enum class RoleKind {
  Out,
  Statistics,
  QueryGrad,
  KeyGrad,
  ValueGrad,
  KeyValueGrad,
  InOrderGrad,
  SequenceGrad
};
struct Role {
  RoleKind kind;
  RoleShape shape;
  /// The schedule of the loop.
  Attribute schedule;
};

/// How many blocks a part of a tile has, 0 if a tile has one part, and how many
/// a part of a tile of few queries has; both 0 if there are no parts.
struct PartSizes {
  int64_t blocks = 0, few = 0;
};

/// In which parts the keys of a sequence with few queries are on a GPU, each an
/// item of its own. A sequence is one of these whatever the rest of the batch
/// is.
struct KeyParts {
  /// Keys of a part, and pairs of a query and a head of the group that are few.
  int64_t keys, pairs;

  bool operator==(const KeyParts &other) const {
    return keys == other.keys && pairs == other.pairs;
  }
};
} // namespace mlir::varlen

#include "varlen/Dialect/Varlen/IR/VarlenAttrInterfaces.h.inc" // IWYU pragma: export

#define GET_ATTRDEF_CLASSES
#include "varlen/Dialect/Varlen/IR/VarlenAttrs.h.inc" // IWYU pragma: export

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

#define GET_TYPEDEF_CLASSES
#include "varlen/Dialect/Varlen/IR/VarlenTypes.h.inc" // IWYU pragma: export

//===----------------------------------------------------------------------===//
// Interfaces
//===----------------------------------------------------------------------===//

namespace mlir::varlen {
class AttentionOpInterface;

/// A value and its name in messages.
struct NamedValue {
  StringRef name;
  Value value;

  ShapedType type() const { return cast<ShapedType>(value.getType()); }
  int64_t extent(unsigned dim) const { return type().getDimSize(dim); }
};

/// An extent of another value: dimension `dim` of `source`.
struct ExtentOf {
  NamedValue source;
  unsigned dim;
};

/// A value whose shape follows from inputs.
struct ShapedByInputs : NamedValue {
  /// The element type that it must have.
  Type element;
  SmallVector<ExtentOf, 3> extents;

  /// The shape, as far as the types of its sources know it.
  SmallVector<int64_t> inferShape() const;
};

/// The tangents of the operands of an attention, null where one is zero;
/// captures are those of `wrt_captures`.
struct AttnTangents {
  Value q, k, v, sink;
  ValueRange captures;
};

/// The arguments of a score region, which may be null, that are tables.
SmallVector<BlockArgument> getTableArguments(Block *score);

/// An operand of a step that is rows, which products read.
struct StepFactor {
  StringRef name;
  OpOperand *operand;
  bool ofQueries;
  /// Whether products sum over its columns, and over its rows.
  bool alongColumns, alongRows;
};

/// What a step on dense tiles has in place of the tile and the block that it is
/// at: the keys that queries see, where both are, and rows of tables. Null, or
/// empty, if it does not.
struct StepInputs {
  Value lo, hi, k0, seenBegin, seenEnd;
  Value position, firstKey;
  SmallVector<Value> tables, rows, dtables, drows;
};

namespace detail {
/// An attention, or a derivative as `like` is one, with the attributes of
/// `like` and, with captures or without, its score, on `inputs` as
/// `getInputSlots` has them.
AttentionOpInterface createAttention(OpBuilder &b, AttentionOpInterface like,
                                     TypeRange results, ArrayRef<Value> inputs,
                                     ValueRange captures,
                                     ValueRange destinations,
                                     bool hasScore = true);
/// Adds the score region of `like`, if it has one.
void cloneScore(AttentionOpInterface like, OperationState &state);
} // namespace detail
} // namespace mlir::varlen

#include "varlen/Dialect/Varlen/IR/VarlenInterfaces.h.inc" // IWYU pragma: export

namespace mlir::varlen {
/// Moves what the score region of `op` says of distances and chunks of
/// positions to its mask, where that is a mask; returns whether it has changed.
bool absorbVisible(AttentionOpInterface op, RewriterBase &rewriter);

/// Replaces `op` by one without its score region, if that changes nothing;
/// returns what computes the attention then. An op that returns gradients with
/// respect to captures keeps the region: these gradients are 0, but results.
AttentionOpInterface dropIdentityScore(AttentionOpInterface op,
                                       RewriterBase &rewriter);

/// The name of the operation on tensors that computes what `op` does, with
/// destinations or without.
StringRef getNameOnTensors(AttentionOpInterface op);

/// out and lse of an attention: its results, or what its gradient reads.
struct OutAndLse {
  Value out, lse;
};
OutAndLse getOutAndLse(AttentionOpInterface op);

/// The destinations of `op`, an attention on tensors: its own, or new
/// tensor.empty.
FailureOr<SmallVector<Value>> getOrCreateDestinations(AttentionOpInterface op,
                                                      OpBuilder &b);
} // namespace mlir::varlen

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

namespace mlir::varlen {
/// What the builders of varlen.attn take beside rows and cu_seqlens; what is
/// null is not there. A score region and captures are given to the builder that
/// takes all operands.
struct AttnOptions {
  /// Null: every query sees all keys of its sequence.
  MaskAttrInterface mask;
  /// Null: 1/sqrt(D).
  FloatAttr scale;
  Value sequsedQ, sequsedK, qOffset, sink;
  /// Of keys in pages, which have no cu_k: N x pages.
  Value blockTable;
  /// Of quantised keys and values.
  Value kScale, vScale;
};

/// A tile in memory.
struct TileCopy {
  TileOrder order;
  Value memref;
};

/// Memory with a value of each query.
struct QueryValues {
  QueryMemory place;
  Value memref;
};

/// The extents of memory that holds a rows x columns tile in this order.
SmallVector<int64_t> getTileMemoryShape(TileOrder order, int64_t rows,
                                        int64_t columns);
} // namespace mlir::varlen

#define GET_OP_CLASSES
#include "varlen/Dialect/Varlen/IR/VarlenOps.h.inc" // IWYU pragma: export

#endif // VARLEN_DIALECT_VARLEN_IR_VARLEN_H
