//===- ImportedAttention.h - Attention of other dialects --------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What importers have in common: the operands of an attention by their names,
// its mask, its scale and its score, and the operation that is made of them.
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_LIB_IMPORT_IMPORTEDATTENTION_H
#define VARLEN_LIB_IMPORT_IMPORTEDATTENTION_H

#include "varlen/Dialect/Varlen/IR/Varlen.h"

#include <optional>

namespace mlir::varlen {

/// The operations that are imported.
enum class ImportedKind { Attn, Grad, JVP, JVPGrad };

struct ImportedAttention {
  explicit ImportedAttention(ImportedKind kind)
      : kind(kind), operands(getNames().size()) {}

  /// The kind of the operation with a name.
  static std::optional<ImportedKind> findKind(StringRef name);

  /// Names of operands in their order, the required ones first.
  ArrayRef<StringLiteral> getNames() const;
  unsigned getNumRequired() const;
  /// Whether captures may have tangents, behind all other operands.
  bool hasTangents() const;
  /// Where the operand of a name is.
  Value &operator[](StringRef name);

  /// The type of scores and captures, that of accumulation for the type of q.
  FloatType getComputeType() const;

  /// Makes the operation before `source`, whose location errors have. Operands
  /// are ranked tensors. The gradients of all captures are wanted, or of none,
  /// as `results` say. Returns failure, with an error,
  /// and makes nothing if bounds or types break a rule of the operation.
  FailureOr<Operation *> create(OpBuilder &b, Operation *source,
                                TypeRange results);

private:
  FailureOr<Attribute> getMask(Operation *source) const;
  LogicalResult checkCaptures(Operation *source);

public:
  ImportedKind kind;
  /// In the order of getNames(); null where one is absent.
  SmallVector<Value> operands;
  /// Of keys in pages, which have no cu_k; null if there are none.
  Value blockTable;
  int64_t left = -1, right = -1;
  bool isCausal = false;
  int64_t chunk = 0; // 0: none
  Alignment alignment = Alignment::BottomRight;
  std::optional<double> scale;
  /// An attention with the score region, or null, and what the region reads.
  AttentionOpInterface score;
  SmallVector<Value> captures;
  /// Tangents of some captures, and the numbers of these.
  SmallVector<Value> tcaptures;
  SmallVector<int64_t> varied;
};

} // namespace mlir::varlen

#endif // VARLEN_LIB_IMPORT_IMPORTEDATTENTION_H
