//===- VarlenScore.h - Score regions ----------------------------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The region of an attention, or of a step, that modifies scores: its arguments
// are a score, the positions of its query and its key, and for each capture a
// number or a row of a table; it yields the new score; if it hides keys,
// whether the key is visible to the query; and, if it has one, a factor that
// the probability of the key is multiplied by after the softmax.
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_DIALECT_VARLEN_IR_VARLENSCORE_H
#define VARLEN_DIALECT_VARLEN_IR_VARLENSCORE_H

#include "varlen/Dialect/Varlen/IR/Varlen.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/Operation.h"

#include "llvm/ADT/SetVector.h"

namespace mlir::varlen {

/// Arguments of a score region; those of captures follow.
enum ScoreArgument : unsigned { Score, QueryPosition, KeyPosition, Captures };

/// Positions of queries are clamped to this distance from 0, so that the
/// distance of a query and a key has 32 bits, too.
constexpr int64_t kFarthestPosition = (int64_t(1) << 30) - 1;

/// Gives the arguments of a score region the names that it is printed with.
void setScoreArgumentNames(Region &region, OpAsmSetValueNameFn setName);

/// Whether a score depends on the positions of its query and its key; false
/// without a region.
bool readsPositions(Block *score);

/// Whether new scores differ from the scores; false without a region.
bool changesScores(Block *score);

/// The value that says whether a key is visible; null if all keys are, or if
/// there is no region.
Value getVisible(Block *score);

/// What probabilities are multiplied by; null if nothing is, or if there is no
/// region.
Value getFactor(Block *score);

/// What a value of a score region is computed from, itself included; nothing
/// for null.
SetVector<Value> getSources(Value value);

/// Whether a value of a score region, if it is not null, is computed from
/// another one.
bool dependsOn(Value value, Value source);

/// Of how many kinds the numbers of a query are that say which keys it sees:
/// its position, and captures.
int64_t countVisibleKinds(Block *score);

/// Whether a table of keys is looked up by anything but the key.
bool looksUpOtherKeys(Block *score);

/// Whether a tanh may be one instruction of a GPU, which is less exact: with
/// `fastmath<afn>`.
bool isApproximate(Operation *op);

/// Whether a body computes functions of many operations, as tanh; false without
/// one.
bool computesFunctions(Block *body);

/// Whether a capture is a table; not if there is no such argument.
bool isTable(Block *score, unsigned capture);

/// Whether a capture is a table with a number for each key.
bool isKeyTable(Block *score, unsigned capture);

/// The arguments of captures that are numbers.
SmallVector<BlockArgument> getNumberArguments(Block *score);
/// Whether the numbers of a table, an argument, are those of keys.
bool isOfKeys(BlockArgument table);

/// The lookups in a table that new scores depend on.
SmallVector<LookupOp> getScoreLookups(Block *score, unsigned capture);

/// Verifies the score region of `op`, if there is one, for scores of `compute`
/// and so many captures, which are there with a region only.
LogicalResult verifyScore(Operation *op, Block *score, FloatType compute,
                          unsigned captures);

/// Verifies that `numbers`, of the attribute `name`, are ascending and of
/// `captures` captures.
LogicalResult verifyCaptureNumbers(Operation *op, ArrayRef<int64_t> numbers,
                                   int64_t captures,
                                   StringRef name = "wrt_captures");

/// Verifies that new scores look up in tables of keys of `captures` by the key
/// itself: who owns keys owns what is summed, then.
LogicalResult verifyKeyLookups(Block *score, ArrayRef<int64_t> captures);

/// Verifies that the factor has no derivative by `captures` but 0.
LogicalResult verifyFactorCaptures(Operation *op, Block *score,
                                   ArrayRef<int64_t> captures);

/// Verifies that each operation that a derivative of the score may pass has a
/// rule.
LogicalResult verifyScoreRules(Block *score);

/// Copies the body, made total, for those arguments; returns what it yields.
SmallVector<Value> cloneScoreBody(OpBuilder &builder, Block *score,
                                  ValueRange arguments);

/// Where a body is written out: the arguments, of tables nothing, and what
/// emits the entry of a table, a capture by number, at an index of any value.
struct ScorePoint {
  using Lookup = llvm::function_ref<Value(OpBuilder &, Location,
                                          unsigned capture, Value index)>;
  ValueRange arguments;
  Lookup lookup;
};

/// Emits the new score of a point, hidden or not, whether the key is visible,
/// if the region says so, and the factor of a region that has one.
Value emitScore(OpBuilder &builder, Block *score, const ScorePoint &point);
Value emitVisible(OpBuilder &builder, Block *score, const ScorePoint &point);
Value emitFactor(OpBuilder &builder, Block *score, const ScorePoint &point);
/// Emits the index of a lookup in the region.
Value emitIndex(OpBuilder &builder, const ScorePoint &point, LookupOp lookup);

/// Emits the cotangents of `sources`, arguments of the region or what lookups
/// in it return, for that of the new score. No two arguments are the same
/// value, and each operation has a rule.
SmallVector<Value> emitScoreVJP(OpBuilder &builder, Location loc, Block *score,
                                const ScorePoint &point, Value cotangent,
                                ValueRange sources);

/// Emits the tangent of the new score for `tangents`: those of the arguments,
/// null where one is zero or of a table, and of what lookups in tables return,
/// null for a table without a tangent. No two arguments are the same value, and
/// each operation has a rule.
Value emitScoreJVP(OpBuilder &builder, Location loc, Block *score,
                   const ScorePoint &point, const ScorePoint &tangents);

/// A cotangent, and its tangent.
struct CotangentPair {
  Value own, tangent;
};
/// Emits the tangents of what emitScoreVJP emits, for `tangents` as
/// emitScoreJVP takes them.
SmallVector<Value> emitScoreVJPTangents(OpBuilder &builder, Location loc,
                                        Block *score, const ScorePoint &point,
                                        const ScorePoint &tangents,
                                        const CotangentPair &cotangent,
                                        ValueRange sources);

} // namespace mlir::varlen

#endif // VARLEN_DIALECT_VARLEN_IR_VARLENSCORE_H
