//===- EnclosingSchedule.h - The schedule of tiles --------------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_DIALECT_VARLEN_UTILS_ENCLOSINGSCHEDULE_H
#define VARLEN_DIALECT_VARLEN_UTILS_ENCLOSINGSCHEDULE_H

#include "varlen/Dialect/Varlen/IR/Varlen.h"

namespace mlir::varlen {

/// The schedule of the innermost operation around `op` that has one for a CPU;
/// null if there is none.
inline CPUScheduleAttr getEnclosingSchedule(Operation *op) {
  while ((op = op->getParentOp()))
    if (auto schedule = op->getAttrOfType<CPUScheduleAttr>(kScheduleAttrName))
      return schedule;
  return {};
}

} // namespace mlir::varlen

#endif // VARLEN_DIALECT_VARLEN_UTILS_ENCLOSINGSCHEDULE_H
