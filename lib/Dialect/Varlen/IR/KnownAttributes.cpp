//===- KnownAttributes.cpp - Attributes that nothing reads ----------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// MLIR keeps any attribute that an operation does not have, also one whose name
// is misspelled. Here that would be a mask or a scale which is written down and
// does not count. Attributes of dialects have a prefix and stay.
//
//===----------------------------------------------------------------------===//

#include "AttentionInterface.h"

#include "mlir/IR/Operation.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::varlen;

/// The attributes that an operation may be written with.
static SmallVector<StringRef> getWritable(Operation *op) {
  SmallVector<StringRef> names;
  for (StringAttr name : op->getRegisteredInfo()->getAttributeNames())
    if (name != AttnOp::getOperandSegmentSizeAttr())
      names.push_back(name);
  return names;
}

/// What may have been meant by `name`: the value of a mask without the mask, or
/// the name that is the fewest edits away.
static StringRef getNearest(StringRef name, ArrayRef<StringRef> known) {
  constexpr StringLiteral mask = "mask";
  if (llvm::is_contained(varlen::detail::getMaskKinds(), name) &&
      llvm::is_contained(known, mask))
    return mask;
  return *llvm::min_element(known, [&](StringRef a, StringRef b) {
    return name.edit_distance(a) < name.edit_distance(b);
  });
}

LogicalResult varlen::detail::verifyKnownAttributes(Operation *op) {
  for (NamedAttribute attr : op->getDiscardableAttrs()) {
    StringRef name = attr.getName();
    // Marks of passes begin with two underscores upstream, such as those of
    // the analysis of one-shot bufferization.
    if (name.contains('.') || name.starts_with("__"))
      continue;
    SmallVector<StringRef> known = getWritable(op);
    auto error = op->emitOpError("expected ");
    if (known.empty())
      return error << "no attributes but those of a dialect, got '" << name
                   << "'";
    llvm::interleaveComma(known, error, [&](StringRef each) { error << each; });
    return error << ", and attributes of a dialect, got '" << name
                 << "': did you mean '" << getNearest(name, known) << "'?";
  }
  return success();
}
