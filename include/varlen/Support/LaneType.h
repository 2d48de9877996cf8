//===- LaneType.h - The type of lanes of another element --------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_SUPPORT_LANETYPE_H
#define VARLEN_SUPPORT_LANETYPE_H

#include "mlir/IR/BuiltinTypeInterfaces.h"

namespace mlir::varlen {

/// `element`, or a vector of it of the shape of `like`, if that is a vector.
inline Type getLaneType(Type like, Type element) {
  if (auto shaped = dyn_cast<ShapedType>(like))
    return shaped.clone(element);
  return element;
}

} // namespace mlir::varlen

#endif // VARLEN_SUPPORT_LANETYPE_H
