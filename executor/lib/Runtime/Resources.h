//===- Resources.h - What is kept from launch to launch ---------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_LIB_EXECUTOR_RESOURCES_H
#define VARLEN_LIB_EXECUTOR_RESOURCES_H

#include <cstddef>
#include <memory>

namespace varlen::executor {

struct Resources;

/// Resources with stacks of this size, of an earlier launch if there are any.
std::unique_ptr<Resources> takeResources(size_t stackBytes);
/// Keeps them for later launches.
void giveResources(std::unique_ptr<Resources> resources);

} // namespace varlen::executor

#endif // VARLEN_LIB_EXECUTOR_RESOURCES_H
