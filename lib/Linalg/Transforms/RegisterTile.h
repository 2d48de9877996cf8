//===- RegisterTile.h - Operations on a tile in registers -------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Part of varlen-vectorize-linalg. A contraction whose result is as large as
// what registers hold of sums is often followed by others that go on with them,
// and by operations on each element. The tile is then loaded and stored once
// for all of them, or never.
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_LIB_LINALG_TRANSFORMS_REGISTERTILE_H
#define VARLEN_LIB_LINALG_TRANSFORMS_REGISTERTILE_H

#include "ContractionVectorizer.h"

#include "llvm/ADT/FunctionExtras.h"

namespace mlir::varlen {

class RegisterTile {
public:
  RegisterTile(OpBuilder &builder, const CPUTarget &target)
      : builder(&builder), target(&target) {}

  /// Whether there are several such operations from this one on.
  bool find(linalg::LinalgOp first);
  ArrayRef<linalg::LinalgOp> getOps() { return ops; }

  /// Writes each before it; the caller erases them.
  void emit();

private:
  /// Some vectors of each row of the tile.
  struct Columns {
    int64_t first, count;
  };

  /// Writes one of the operations, for vectors of the tile that it replaces.
  using Emitter = llvm::unique_function<void(MutableArrayRef<Value> registers)>;

  bool add(linalg::LinalgOp op);
  /// Null if the operation is none of those.
  Emitter planContraction(linalg::LinalgOp op);
  Emitter planElementwise(linalg::LinalgOp op);
  bool isApart(Value value);
  bool canRunBetween(Operation *op);
  std::optional<Columns> getColumns(Value part);
  bool isDead();

  OpBuilder *builder;
  const CPUTarget *target;
  SmallVector<linalg::LinalgOp> ops;
  /// One for each but a fill, which is the first.
  SmallVector<Emitter> emitters;
  bool hasContraction = false;
  /// The tile in memory, and how many rows, lanes and vectors of a row it has.
  Value memory;
  MemRefType type;
  int64_t lanes = 0, numVectors = 0;
};

} // namespace mlir::varlen

#endif // VARLEN_LIB_LINALG_TRANSFORMS_REGISTERTILE_H
