//===- Device.cpp - Where the function runs -------------------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Device.h"

#include "Tensor.h"
#include "varlen/Runtime/GPU.h"
#include "varlen/Runtime/GPUExecutor.h"
#include "varlen/Runtime/Runtime.h"

using namespace varlen_run;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;

Expected<Device> varlen_run::parseDevice(StringRef text) {
  Device device;
  auto [kind, chip] = text.split(':');
  bool hasChip = chip.starts_with("sm_");
  device.chip = chip.str();
  if (text == "cpu")
    return device;
  if (kind == "cuda" && (hasChip || text == "cuda")) {
    device.kind = Device::Kind::CUDA;
    return device;
  }
  if (kind == "sim" && hasChip) {
    device.kind = Device::Kind::Executor;
    return device;
  }
  return makeError("--device: expected cpu, cuda, cuda:CHIP or sim:CHIP with a "
                   "chip such as sm_80, got '%s'",
                   text.str().c_str());
}

/// The calling thread's error; success if there is none.
static Error takeRuntimeError() {
  const char *message = varlen_last_error();
  if (!message)
    return Error::success();
  Error error = makeError(std::string(message));
  varlen_clear_error();
  return error;
}

Error varlen_run::openDevice(Device &device) {
  if (!device.isGPU())
    return Error::success();
  varlen_gpu_set_backend(device.kind == Device::Kind::CUDA
                             ? varlen_gpu_cuda()
                             : varlen_gpu_executor());
  int32_t capability = varlen_gpu_capability();
  if (Error error = takeRuntimeError())
    return error;
  if (device.chip.empty()) {
    // From Hopper on a chip has instructions that only its own code may use.
    device.chip = "sm_" + std::to_string(capability);
    if (capability >= 90)
      device.chip += "a";
  }
  return Error::success();
}

Expected<void *> varlen_run::copyToDevice(const void *memory, int64_t bytes) {
  void *copy = varlen_gpu_allocate(bytes);
  if (Error error = takeRuntimeError())
    return error;
  if (Error error = copyToDevice(copy, memory, bytes))
    return error;
  return copy;
}

/// Copies in either direction and waits for it.
static Error copy(void *to, const void *from, int64_t bytes) {
  if (varlen_gpu_copy(to, from, bytes) == 0)
    varlen_gpu_synchronize();
  return takeRuntimeError();
}

Error varlen_run::copyToDevice(void *to, const void *memory, int64_t bytes) {
  return copy(to, memory, bytes);
}

Error varlen_run::copyFromDevice(void *memory, const void *from,
                                 int64_t bytes) {
  return copy(memory, from, bytes);
}

void varlen_run::freeOnDevice(void *memory) { varlen_gpu_free(memory); }

Error varlen_run::finishDevice() {
  varlen_gpu_check(nullptr);
  return takeRuntimeError();
}
