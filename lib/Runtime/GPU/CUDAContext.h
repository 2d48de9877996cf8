//===- CUDAContext.h - CUDA contexts that the runtime works in --*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A process may have several devices, several contexts of one, and threads that
// have none. What belongs to a context (streams, a memory pool) is kept here by
// the context's number, which is never given twice; its address may be.
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_LIB_RUNTIME_GPU_CUDACONTEXT_H
#define VARLEN_LIB_RUNTIME_GPU_CUDACONTEXT_H

#include "CUDADriver.h"

namespace varlen_runtime::cuda {

/// A stream of ours, which a thread has for as long as it lives.
struct OwnStream {
  OwnStream *nextOfThread;
  OwnStream *nextOfContext;
  struct ContextRecord *context;
  Stream stream; // null: to be made
  bool isFree;
};

/// A context that work has run in. Records stay when their contexts go.
struct ContextRecord {
  ContextRecord *next;
  Context handle;
  unsigned long long id;
  Device device;
  bool isRetained; // the primary context of its device, and kept alive by us
  int capability;  // 10 * major + minor
  int multiprocessors;
  int sharedLimit; // bytes of shared memory that a block can ask for
  char name[96];
  Pool pool;    // null until the first allocation
  void *report; // a varlen_gpu_status of the host; null until it is asked for
  OwnStream *streams;
};

/// Makes a context current to the calling thread for as long as the object
/// lives, then the one that was. False, with the thread's error set, if there
/// is none to enter.
class Scope {
public:
  /// The context that the calling thread works in without a stream: that of the
  /// device it has chosen, else the current one, else that of device 0.
  Scope();
  /// The context of a stream; the default streams have that of `Scope()`.
  explicit Scope(void *stream);
  explicit Scope(ContextRecord &context);
  ~Scope();
  Scope(const Scope &) = delete;
  Scope &operator=(const Scope &) = delete;

  explicit operator bool() const { return record; }
  const Driver &driver() const { return *opened; }
  ContextRecord &context() const { return *record; }

  /// Whether the call worked; else sets an error that says what failed.
  bool check(Result result, const char *what) const {
    return cuda::check(*opened, result, what);
  }

private:
  void enterDefault();
  void enter(Context handle);

  const Driver *opened;
  ContextRecord *record = nullptr;
  bool isPushed = false;
};

/// Lets the calling thread make calls that do not concern a graph while other
/// threads capture theirs (cuThreadExchangeStreamCaptureMode, "relaxed").
class OutsideOfCapture {
public:
  explicit OutsideOfCapture(const Driver &driver) : driver(driver) {
    isExchanged = driver.cuThreadExchangeStreamCaptureMode(&mode) == Success;
  }
  ~OutsideOfCapture() {
    if (isExchanged)
      driver.cuThreadExchangeStreamCaptureMode(&mode);
  }
  OutsideOfCapture(const OutsideOfCapture &) = delete;
  OutsideOfCapture &operator=(const OutsideOfCapture &) = delete;

private:
  const Driver &driver;
  int mode = CaptureModeRelaxed;
  bool isExchanged;
};

/// The device of the calling thread's work without a stream. False, with the
/// error set, if there is no such device.
bool chooseDevice(int index);

/// Has the calling thread be in the context of a stream until it leaves.
/// Default streams are those of a device: of the current context if that is on
/// it, or the device is negative, else of the primary one. False with the error
/// set.
bool enterContext(void *stream, int device);
void leaveContext();

/// The calling thread's own stream in a context; null with the error set.
Stream getOwnStream(const Scope &scope);

/// The context's pool; null with the error set.
Pool getPool(const Scope &scope);

/// A varlen_gpu_status in memory of the host that kernels in the context can
/// store to; null with the error set.
void *getReport(const Scope &scope);

/// Whether calls on objects of the context are safe: it is kept alive by us, or
/// current to the calling thread.
bool isAlive(const Driver &driver, const ContextRecord &context);

/// Destroys what we have in the context with this number. No other thread
/// may be working in it.
void releaseContext(unsigned long long id);

} // namespace varlen_runtime::cuda

#endif // VARLEN_LIB_RUNTIME_GPU_CUDACONTEXT_H
