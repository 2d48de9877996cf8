//===- Module.h - Kernels and where their operations come from --*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_LIB_EXECUTOR_MODULE_H
#define VARLEN_LIB_EXECUTOR_MODULE_H

#include "varlen/Executor/Executor.h"

#include <memory>
#include <string>
#include <vector>

struct varlen_sim_kernel {
  const varlen_sim_module *module = nullptr;
  std::string name;
  varlen_sim_kernel_info info;
};

struct varlen_sim_module {
  std::vector<std::string> sites;
  std::vector<std::unique_ptr<varlen_sim_kernel>> kernels;
};

#endif // VARLEN_LIB_EXECUTOR_MODULE_H
