//===- Module.cpp - Kernels and where their operations come from ----------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Module.h"

varlen_sim_module *varlen_sim_module_create(const char *const *sites,
                                            uint32_t numSites) {
  auto *module = new varlen_sim_module;
  module->sites.assign(sites, sites + numSites);
  return module;
}

void varlen_sim_module_destroy(varlen_sim_module *module) { delete module; }

varlen_sim_kernel *
varlen_sim_module_add_kernel(varlen_sim_module *module,
                             const varlen_sim_kernel_info *info) {
  auto kernel = std::make_unique<varlen_sim_kernel>();
  kernel->module = module;
  kernel->name = info->name;
  kernel->info = *info;
  kernel->info.name = kernel->name.c_str();
  module->kernels.push_back(std::move(kernel));
  return module->kernels.back().get();
}

varlen_sim_kernel *varlen_sim_module_get_kernel(varlen_sim_module *module,
                                                const char *name) {
  for (const auto &kernel : module->kernels)
    if (kernel->name == name)
      return kernel.get();
  return nullptr;
}
