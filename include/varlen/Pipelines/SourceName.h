//===- SourceName.h - The name that a function had --------------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_PIPELINES_SOURCENAME_H
#define VARLEN_PIPELINES_SOURCENAME_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/SymbolTable.h"

namespace mlir::varlen {

/// Discardable attribute of a function that varlen-rename-functions has
/// renamed, and of its C interface: its name in the source.
inline constexpr llvm::StringLiteral kSourceNameAttrName = "varlen.source_name";

/// The name that a function has in the source, renamed or not.
inline llvm::StringRef getSourceName(SymbolOpInterface function) {
  auto source = function->getAttrOfType<StringAttr>(kSourceNameAttrName);
  return source ? source.getValue() : function.getName();
}

/// What the name of a C interface begins with; a name of the source follows.
inline constexpr llvm::StringLiteral kCInterfacePrefix = "_mlir_ciface_";

} // namespace mlir::varlen

#endif // VARLEN_PIPELINES_SOURCENAME_H
