//===- Attributes.h - Hints on linalg operations ----------------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_LINALG_ATTRIBUTES_H
#define VARLEN_LINALG_ATTRIBUTES_H

#include "llvm/ADT/StringRef.h"

namespace mlir::varlen {

/// Discardable attribute of a linalg.contract: that it adds up in the order of
/// the contracted loop, whatever its operands look like in memory.
inline constexpr llvm::StringLiteral kInOrderAttrName = "varlen.in_order";
/// Discardable attribute of a linalg.contract: that what is in memory is added
/// to the sum of the products in the end. A sum over thousands of rows is a sum
/// of sums then, whose rounding errors are smaller, and it has no load to wait
/// for in the beginning.
inline constexpr llvm::StringLiteral kAddLastAttrName = "varlen.add_last";

} // namespace mlir::varlen

#endif // VARLEN_LINALG_ATTRIBUTES_H
