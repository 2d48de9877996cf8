//===- Device.h - Where the function runs ------------------------*- C++
//-*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_TOOLS_RUN_DEVICE_H
#define VARLEN_TOOLS_RUN_DEVICE_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <optional>
#include <string>
#include <vector>

namespace varlen_run {

/// What --device names.
struct Device {
  enum class Kind { CPU, CUDA, Executor };
  Kind kind = Kind::CPU;
  /// The GPU that code is made for; empty: the one that is there.
  std::string chip;
  bool isGPU() const { return kind != Kind::CPU; }
};

/// cpu, cuda, cuda:sm_90a, sim:sm_80
llvm::Expected<Device> parseDevice(llvm::StringRef text);

/// Opens the device: GPU calls of compiled code go to it from here on. Finds
/// out the chip if that is open.
llvm::Error openDevice(Device &device);

/// A copy of host memory on the GPU.
llvm::Expected<void *> copyToDevice(const void *memory, int64_t bytes);
llvm::Error copyToDevice(void *to, const void *memory, int64_t bytes);
llvm::Error copyFromDevice(void *memory, const void *from, int64_t bytes);
void freeOnDevice(void *memory);

/// Waits for all work; an error is one that a kernel or a launch has found.
llvm::Error finishDevice();

} // namespace varlen_run

#endif // VARLEN_TOOLS_RUN_DEVICE_H
