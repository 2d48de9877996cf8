//===- Atomics.h - Reductions into memory -----------------------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_LIB_EXECUTOR_ATOMICS_H
#define VARLEN_LIB_EXECUTOR_ATOMICS_H

#include <cstdint>

namespace varlen::executor {

/// Bytes of a VARLEN_SIM_* type.
uint32_t atomicBytes(uint32_t type);
/// Whether the type has the operation.
bool atomicSupported(uint32_t op, uint32_t type);
/// *p = op(*p, value), atomically; returns what was there.
uint64_t atomicApply(void *p, uint32_t op, uint32_t type, uint64_t value);

/// Whether an atomic of that order acquires, or releases.
bool acquires(uint32_t order);
bool releases(uint32_t order);

} // namespace varlen::executor

#endif // VARLEN_LIB_EXECUTOR_ATOMICS_H
