//===- State.h - What the fake driver knows ---------------------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_TEST_RUNTIME_FAKECUDA_STATE_H
#define VARLEN_TEST_RUNTIME_FAKECUDA_STATE_H

#include "FakeCUDA.h"

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <pthread.h>
#include <set>
#include <string>
#include <vector>

namespace fake_cuda {

using Result = int;
using Address = unsigned long long;

/// CUresult.
enum : Result {
  Success = 0,
  InvalidValue = 1,
  OutOfMemory = 2,
  NotInitialized = 3,
  InvalidDevice = 101,
  InvalidImage = 200,
  InvalidContext = 201,
  NoBinaryForGPU = 209,
  InvalidHandle = 400,
  NotFound = 500,
  IllegalAddress = 700,
  ContextIsDestroyed = 709,
  HostMemoryAlreadyRegistered = 712,
  HostMemoryNotRegistered = 713,
  NotSupported = 801,
  CaptureUnsupported = 900,
  CaptureInvalidated = 901,
  CaptureUnmatched = 903,
  CaptureIsolation = 905,
  CaptureImplicit = 906,
  CapturedEvent = 907,
  CaptureWrongThread = 908
};

constexpr int numDevices = 2;

/// CUstreamCaptureMode.
enum CaptureMode { Global, ThreadLocal, Relaxed };

struct Context {
  uint64_t id;
  int device;
  bool isPrimary;
  bool isAlive = true;
  Result error = Success; // stays
  struct Stream *legacy = nullptr;
};

/// A part of the memory of a device, or of managed memory.
struct Block {
  Address begin;
  size_t bytes;
  int device; // managed memory has none: -1
  struct Pool *pool = nullptr;
  struct Capture *graph = nullptr;
  /// By calls: it is freed when the call returns.
  bool isFreed = false;
  struct Stream *freedIn = nullptr;
  /// By work: it is there when its allocation is reached, until its free is.
  bool isThere = false;
  bool isGone = false;
};

/// Work of a stream or a graph, done in a context.
struct Work {
  std::function<void(Context &)> run;
  std::string name;
};

/// A capture, then the graph that it has become.
struct Capture {
  Context *context;
  struct Stream *stream;
  CaptureMode mode;
  pthread_t thread;
  bool isValid = true;
  bool isActive = true;
  std::vector<Work> nodes;
  std::set<std::shared_ptr<Block>> blocks;
  int uses = 1; // graphs and executables of it
};

struct Stream {
  Context *context;
  bool isBlocking;
  bool isAlive = true;
  bool isLegacy = false;
  std::deque<Work> queue;
  uint64_t numQueued = 0, numDone = 0;
  Capture *capture = nullptr;
};

struct Event {
  Context *context;
  bool isAlive = true;
  Stream *stream = nullptr; // that it was recorded in
  uint64_t place = 0;
  bool isCaptured = false;
};

struct Function {
  struct Module *module;
  std::string name;
  std::vector<size_t> parameters; // bytes of each
  bool knowsParameters;
  bool isLoaded = false;
  void *executed = nullptr; // by the executor
  int staticShared = 0;
  int allowedShared;
};

struct Module {
  Context *context;
  bool isAlive = true;
  bool isText;                   // its functions are known
  void *executed = nullptr;      // by the executor
  std::set<std::string> globals; // that PTX declares
  std::map<std::string, std::unique_ptr<Function>> functions;
};

struct Pool {
  int device;
  bool isAlive = true;
  uint64_t threshold = 0;
};

/// An executable graph.
struct Executable {
  Capture *graph;
  bool isAlive = true;
};

/// All there is. Handles of what was destroyed stay known: their use is an
/// error.
struct State {
  std::mutex mutex;
  bool isInitialized = false;
  std::vector<std::unique_ptr<Context>> contexts;
  Context *primaries[numDevices] = {};
  int numRetained[numDevices] = {};
  std::vector<std::unique_ptr<Stream>> streams;
  std::vector<std::unique_ptr<Event>> events;
  std::vector<std::unique_ptr<Module>> modules;
  std::vector<std::unique_ptr<Pool>> pools;
  std::vector<std::unique_ptr<Capture>> captures;
  std::vector<std::unique_ptr<Executable>> executables;
  std::vector<std::shared_ptr<Block>> blocks;
  std::map<void *, size_t> registered;
  std::map<std::string, FakeCudaKernel> kernels;
  std::map<std::string, int> calls;
  struct Failure {
    int at;
    Result error;
  };
  std::map<std::string, Failure> failures;
  FakeCudaCounts counts = {};
  std::string refusal;
};
State &getState();

/// Hides a call from the thread sanitizer: that all calls hold one mutex orders
/// nothing for the caller, whose own races are to be found.
class Hidden {
public:
  Hidden();
  ~Hidden();
  Hidden(const Hidden &) = delete;
  Hidden &operator=(const Hidden &) = delete;
};

/// Holds the state, counts the call, and gives the error that was asked for.
class Call {
public:
  explicit Call(const char *entry);
  /// What to return at once; Success: go on.
  Result error = Success;

  /// An error of the caller's, for this reason.
  Result refuse(Result error, const std::string &reason);

private:
  Hidden hidden; // before the mutex is taken
  std::lock_guard<std::mutex> lock;
  const char *entry;
};

/// The body of an entry: returns an error that was asked for.
#define ENTRY(name)                                                            \
  Call call(#name);                                                            \
  if (call.error != Success)                                                   \
  return call.error

/// The current context of the calling thread; null if there is none.
Context *getCurrent();

/// The object of a handle, if there is one that is alive; null otherwise.
template <typename T>
T *find(const std::vector<std::unique_ptr<T>> &all, const void *handle) {
  for (const std::unique_ptr<T> &object : all)
    if (object.get() == handle && object->isAlive)
      return object.get();
  return nullptr;
}

/// The stream of a handle, for work by the calling thread, whose context has to
/// be the stream's. Null with `error` set.
Stream *getStream(Call &call, void *handle, Result &error);

/// Puts work into the stream, or into the graph that it is captured in.
Result enqueue(Call &call, Stream &stream, Work work);

/// Does the work of the stream up to this place.
void drain(Stream &stream, uint64_t place = UINT64_MAX);

/// An error if the calling thread may make no call that is "potentially unsafe"
/// (cuThreadExchangeStreamCaptureMode).
Result checkUnsafe(Call &call);

/// Whether `bytes` of memory may be touched by work in the context, now.
bool mayAccess(const Context &context, Address begin, size_t bytes);

bool isDeviceAddress(Address address);

/// Gives back the blocks of a graph that is gone.
void freeBlocks(Capture &graph);

/// Code for the executor, in a process that has it, runs in it: at once, as
/// it is not known what the parameters of its kernels are, so that they could
/// be kept.
bool isForExecutor(const char *data);
void *loadForExecutor(const char *data);
void *findForExecutor(void *module, const char *name);
bool runInExecutor(void *function, const unsigned *grid, const unsigned *block,
                   unsigned sharedBytes, void **parameters);
/// Memory of devices that kernels in the executor may touch.
void shareWithExecutor(void *memory, size_t bytes, bool isThere);

/// A line of the file that FAKE_CUDA_LOG names, if it does.
__attribute__((format(printf, 1, 2))) void report(const char *format, ...);

/// The memory that a block may ask for (FAKE_CUDA_SHARED), and what it has
/// without asking.
int getSharedLimit();
constexpr int plainShared = 48 << 10;

} // namespace fake_cuda

#endif // VARLEN_TEST_RUNTIME_FAKECUDA_STATE_H
