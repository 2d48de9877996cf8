//===- LoopVectorizer.h - A linalg operation as vector loops ----*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Part of varlen-vectorize-linalg. The loops of an operation on memrefs, as
// convert-linalg-to-loops writes them, with one of them made of vectors: the
// one along which memory is contiguous. upstream's linalg::vectorize wants
// static tiles, so each operation would first be tiled to the size of a vector,
// which makes a view per operand and loop (docs/notes/cpu-level.md).
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_LIB_LINALG_TRANSFORMS_LOOPVECTORIZER_H
#define VARLEN_LIB_LINALG_TRANSFORMS_LOOPVECTORIZER_H

#include "varlen/Support/PairMap.h"
#include "varlen/Target/CPUTarget.h"

#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

#include <optional>

namespace mlir::varlen {

/// Whether varlen-vectorize-linalg has a polynomial for a function of vectors,
/// the name of an operation.
bool hasPolynomial(StringRef function);

/// Whether a function is a library call for each lane: worth no vector.
bool isLibraryCall(Operation *op);

/// Whether vectors of the type can be read from memory: elements of whole
/// bytes.
bool isVectorElement(Type type);

/// Vectorizes an operation of any rank along one of its loops: elementwise
/// operations, broadcasts, copies, transpositions and reductions, along the
/// loop that is reduced or along another.
class LoopVectorizer {
public:
  LoopVectorizer(OpBuilder &builder, linalg::LinalgOp op,
                 const CPUTarget &target);

  /// Chooses the loop, without a change to the IR. On failure `reason` says
  /// what stands in the way.
  LogicalResult plan(std::string &reason);

  /// Writes the loops before the operation, which the caller erases.
  void emit();

  /// After `plan`: whether the loops are those of rows and columns of a tile,
  /// and vectors along its rows.
  bool isOnTile(ArrayRef<int64_t> shape);
  /// Writes the operation before it without loops. What it has in `memory`, a
  /// tile, is in registers that are replaced: vectors of so many lanes, those
  /// of one row after the other.
  void emitOn(Value memory, int64_t lanes, MutableArrayRef<Value> tile);

private:
  /// How the elements of an operand lie along the loop of vectors.
  enum class Access { Invariant, Contiguous, Strided };

  LogicalResult checkBody(std::string &reason);
  LogicalResult checkAlong(unsigned dim, unsigned &numStrided,
                           std::string &reason);
  bool hasNarrowFloats();
  bool isOneByOne();
  Access getAccess(OpOperand &operand, unsigned dim);

  LogicalResult checkRead(memref::LoadOp load, std::string &reason);
  Access getAccess(memref::LoadOp load, unsigned dim);
  bool hasReadsOfLanes();
  Value emitRead(memref::LoadOp load, const IRMapping &map, Value offset,
                 int64_t lanes, Value mask);
  void emitAssert(cf::AssertOp source, const IRMapping &map, int64_t lanes,
                  Value mask);

  bool isCarried(ArrayRef<unsigned> dims);
  void hoistLoads(ArrayRef<unsigned> dims, Value offset);
  SmallVector<Value> emitCarried(ArrayRef<unsigned> dims, ValueRange state);
  void emitLoops(ArrayRef<unsigned> dims);
  void emitParallel(Value extent);
  void emitReductions(Value extent);
  SmallVector<Value> emitBody(Value offset, int64_t lanes, Value mask,
                              ValueRange accumulators);
  SmallVector<Value> emitStep(Value offset, int64_t lanes, Value mask,
                              ValueRange accumulators);
  void emitStores(ValueRange values, Value offset, int64_t lanes, Value mask);
  void emitPairs(ValueRange even, ValueRange odd, Value offset, int64_t lanes);
  LogicalResult checkPairs(OpOperand &operand, std::string &reason);
  SmallVector<OpOperand *> getReduced();
  Value emitInitial(OpOperand &init);
  SmallVector<Value> emitOnVector(Value memory, Value offset, Value &vector,
                                  SmallVector<Value> &state);
  Value emitLoad(Value memory, ValueRange at, int64_t lanes, Value mask);
  Value emitOperand(OpOperand &operand, Value offset, int64_t lanes,
                    Value mask);
  void emitStore(OpOperand &operand, Value value, Value offset, int64_t lanes,
                 Value mask);
  Value cloneOp(Operation &source, IRMapping &map, Value offset, int64_t lanes,
                Value mask);
  SmallVector<Value> getIndices(AffineMap map, Value offset);
  Value emitMask(Value rest, int64_t lanes);
  Value emitSplat(Value scalar, int64_t lanes);
  Value emitSplat(TypedAttr scalar, int64_t lanes);

  linalg::LinalgOp op;
  const CPUTarget &target;
  ImplicitLocOpBuilder b;
  /// The loop of vectors, and the lanes of one; those of a register, and of as
  /// many registers as hide each other's latency.
  unsigned vectorDim = 0;
  int64_t numLanes = 1, minLanes = 1, maxLanes = 1;
  /// The loop of which two steps are done at once, if results are pairs of
  /// these; and how far a step goes.
  std::optional<unsigned> pairDim;
  int64_t getStep(unsigned dim) { return dim == pairDim ? 2 : 1; }
  /// What the body reads beside its arguments.
  SmallVector<memref::LoadOp> reads;
  /// Of results that are reduced along that loop.
  SmallVector<Operation *> combiners;
  /// The results that the accumulators of a step are of, the number of each.
  SmallVector<unsigned> accumulated;
  /// Vectors of inputs that are the same in all loops that are still to be
  /// written.
  DenseMap<OpOperand *, Value> hoisted;
  /// Extents of the loops, and the index of each that has begun.
  SmallVector<Value> extents, indices;
};

} // namespace mlir::varlen

#endif // VARLEN_LIB_LINALG_TRANSFORMS_LOOPVECTORIZER_H
