//===- Memory.cpp - Memory of the fake driver -----------------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "State.h"

#include <algorithm>
#include <cstring>
#include <sys/mman.h>

using namespace fake_cuda;

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

/// Bytes of each device, and of managed memory behind them.
static constexpr size_t arenaBytes = size_t(1) << 30;
static constexpr size_t granularity = 512;

/// What is in memory that was just made, and in memory that is gone.
static constexpr int fresh = 0xCD;
static constexpr int gone = 0xDB;

static Address getArenas() {
  static const Address arenas = [] {
    void *memory =
        mmap(nullptr, (numDevices + 1) * arenaBytes, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory == MAP_FAILED ? Address(0)
                                : reinterpret_cast<uintptr_t>(memory);
  }();
  return arenas;
}

bool fake_cuda::isDeviceAddress(Address address) {
  return address >= getArenas() &&
         address < getArenas() + (numDevices + 1) * arenaBytes;
}

bool fake_cuda::mayAccess(const Context &context, Address begin, size_t bytes) {
  if (!isDeviceAddress(begin))
    return true;
  for (const auto &block : getState().blocks)
    if (block->isThere && begin >= block->begin &&
        begin - block->begin <= block->bytes &&
        bytes <= block->begin + block->bytes - begin &&
        (block->device < 0 || block->device == context.device))
      return true;
  return false;
}

static char *toPointer(Address address) {
  return reinterpret_cast<char *>(static_cast<uintptr_t>(address));
}

static void appear(Block &block) {
  block.isThere = true;
  memset(toPointer(block.begin), fresh, block.bytes);
  shareWithExecutor(toPointer(block.begin), block.bytes, true);
}

static void vanish(Block &block) {
  if (block.isThere)
    shareWithExecutor(toPointer(block.begin), block.bytes, false);
  block.isThere = false;
  memset(toPointer(block.begin), gone, block.bytes);
}

/// Whether a new allocation in the stream may have the block's memory: it is
/// freed before in the order of this stream, or the free has been reached.
static bool isReusable(const Block &block, const Stream *stream) {
  return block.isFreed && !block.graph &&
         (block.isGone || (stream && block.freedIn == stream));
}

static Address getEnd(const Block &block) {
  return block.begin +
         (block.bytes + granularity - 1) / granularity * granularity;
}

/// A block of a device, or of managed memory if that is -1; null if there is no
/// room. `stream` is that of an allocation in order.
static std::shared_ptr<Block> makeBlock(int device, size_t bytes,
                                        const Stream *stream) {
  if (bytes > arenaBytes || getArenas() == 0)
    return nullptr;
  auto &blocks = getState().blocks;
  blocks.erase(std::remove_if(blocks.begin(), blocks.end(),
                              [](const auto &block) { return block->isGone; }),
               blocks.end());
  Address first = getArenas() + (device < 0 ? numDevices : device) * arenaBytes;
  Address begin = first;
  // The lowest place: behind each block that is in the way, until none is.
  for (bool isFree = false; !isFree;) {
    isFree = true;
    for (const auto &block : blocks)
      if (!isReusable(*block, stream) && block->begin < begin + bytes &&
          begin < getEnd(*block)) {
        begin = getEnd(*block);
        isFree = false;
      }
  }
  if (begin + bytes > first + arenaBytes)
    return nullptr;
  auto block = std::make_shared<Block>();
  block->begin = begin;
  block->bytes = bytes;
  block->device = device;
  ++getState().counts.allocations;
  blocks.push_back(block);
  return block;
}

/// The block that begins at an address and is not freed; null if there is none.
static std::shared_ptr<Block> findAllocated(Address begin) {
  for (const auto &block : getState().blocks)
    if (block->begin == begin && !block->isFreed)
      return block;
  return nullptr;
}

void fake_cuda::freeBlocks(Capture &graph) {
  for (const auto &block : graph.blocks) {
    block->graph = nullptr;
    block->isFreed = true;
    vanish(*block);
    block->isGone = true;
  }
  graph.blocks.clear();
}

/// Does `run` in the order of the stream on memory that has to be there.
static Result enqueueAccess(Call &call, void *handle, const char *name,
                            std::vector<std::pair<Address, size_t>> ranges,
                            const std::function<void()> &run) {
  Result error = Success;
  Stream *stream = getStream(call, handle, error);
  if (!stream)
    return error;
  return enqueue(call, *stream,
                 {[=](Context &context) {
                    for (auto [begin, bytes] : ranges)
                      if (!mayAccess(context, begin, bytes)) {
                        context.error = IllegalAddress;
                        return;
                      }
                    run();
                  },
                  name});
}

template <typename T>
static Result fill(Call &call, Address address, T value, size_t count,
                   void *handle) {
  if (address % sizeof(T) != 0 || !isDeviceAddress(address))
    return call.refuse(InvalidValue, "no aligned memory of a device");
  return enqueueAccess(
      call, handle, "fill", {{address, count * sizeof(T)}}, [=] {
        auto *elements = reinterpret_cast<T *>(toPointer(address));
        std::fill(elements, elements + count, value);
      });
}

extern "C" {

//===----------------------------------------------------------------------===//
// "Stream Ordered Memory Allocator"
//===----------------------------------------------------------------------===//

struct PoolProperties {
  int allocationType, handleTypes, locationType, location;
  void *security;
  size_t maxSize;
  unsigned short usage;
  unsigned char reserved[54];
};

Result cuMemPoolCreate(Pool **pool, const PoolProperties *properties) {
  ENTRY(cuMemPoolCreate);
  if (properties->allocationType != 1 || properties->locationType != 1 ||
      properties->location < 0 || properties->location >= numDevices)
    return call.refuse(InvalidValue, "no pinned memory of a device");
  for (unsigned char byte : properties->reserved)
    if (byte != 0)
      return call.refuse(InvalidValue, "what is reserved must be 0");
  if (Result error = checkUnsafe(call))
    return error;
  getState().pools.push_back(std::make_unique<Pool>());
  *pool = getState().pools.back().get();
  (*pool)->device = properties->location;
  return Success;
}

Result cuMemPoolDestroy(Pool *opaque) {
  ENTRY(cuMemPoolDestroy);
  Pool *pool = find(getState().pools, opaque);
  if (!pool)
    return call.refuse(InvalidValue, "no such pool");
  pool->isAlive = false;
  return Success;
}

Result cuMemPoolSetAttribute(Pool *opaque, int attribute, void *value) {
  ENTRY(cuMemPoolSetAttribute);
  if (Result error = checkUnsafe(call))
    return error;
  Pool *pool = find(getState().pools, opaque);
  if (!pool || attribute != 4)
    return call.refuse(InvalidValue, "no release threshold of a pool");
  pool->threshold = *static_cast<uint64_t *>(value);
  return Success;
}

Result cuMemAllocFromPoolAsync(Address *address, size_t bytes, Pool *opaque,
                               void *handle) {
  ENTRY(cuMemAllocFromPoolAsync);
  Result error = Success;
  Stream *stream = getStream(call, handle, error);
  if (!stream)
    return error;
  Pool *pool = find(getState().pools, opaque);
  if (!pool || bytes == 0)
    return call.refuse(InvalidValue, "no such pool, or no bytes");
  if (!stream->capture)
    if (Result error = checkUnsafe(call))
      return error;
  // Memory of a graph is its own: nothing else is given it while it exists.
  std::shared_ptr<Block> block =
      makeBlock(pool->device, bytes, stream->capture ? nullptr : stream);
  if (!block)
    return OutOfMemory;
  if (stream->capture) {
    block->graph = stream->capture;
    stream->capture->blocks.insert(block);
  }
  *address = block->begin;
  return enqueue(call, *stream,
                 {[block](Context &) { appear(*block); }, "allocate"});
}

Result cuMemFreeAsync(Address address, void *handle) {
  ENTRY(cuMemFreeAsync);
  Result error = Success;
  Stream *stream = getStream(call, handle, error);
  if (!stream)
    return error;
  if (!stream->capture)
    if (Result error = checkUnsafe(call))
      return error;
  std::shared_ptr<Block> block = findAllocated(address);
  if (!block || block->device < 0)
    return call.refuse(InvalidValue, "no memory that was allocated");
  // "During stream capture, this function [...] must be passed the address of a
  // graph allocation."
  if (stream->capture && block->graph != stream->capture)
    return call.refuse(InvalidValue, "memory from outside of the graph");
  block->isFreed = true;
  block->freedIn = stream;
  return enqueue(call, *stream,
                 {[block](Context &context) {
                    if (!block->isThere) {
                      context.error = IllegalAddress;
                      return;
                    }
                    vanish(*block);
                    block->isGone = !block->graph;
                  },
                  "free"});
}

//===----------------------------------------------------------------------===//
// "Memory Management"
//===----------------------------------------------------------------------===//

static Result allocateNow(Call &call, Address *address, size_t bytes,
                          bool isManaged) {
  Context *context = getCurrent();
  if (!context)
    return call.refuse(InvalidContext, "no context is current");
  if (bytes == 0)
    return call.refuse(InvalidValue, "no bytes");
  if (Result error = checkUnsafe(call))
    return error;
  std::shared_ptr<Block> block =
      makeBlock(isManaged ? -1 : context->device, bytes, nullptr);
  if (!block)
    return OutOfMemory;
  appear(*block);
  *address = block->begin;
  return Success;
}

Result cuMemAlloc_v2(Address *address, size_t bytes) {
  ENTRY(cuMemAlloc_v2);
  return allocateNow(call, address, bytes, false);
}

Result cuMemAllocManaged(Address *address, size_t bytes, unsigned /*flags*/) {
  ENTRY(cuMemAllocManaged);
  return allocateNow(call, address, bytes, true);
}

/// Where addresses are unified, kernels have it at the host's address.
Result cuMemHostAlloc(void **memory, size_t bytes, unsigned flags) {
  ENTRY(cuMemHostAlloc);
  if (flags > 7)
    return call.refuse(InvalidValue, "no such flags");
  Address address = 0;
  Result result = allocateNow(call, &address, bytes, true);
  if (result == Success)
    *memory = toPointer(address);
  return result;
}

static Result freeNow(Call &call, Address address) {
  Context *context = getCurrent();
  if (!context)
    return call.refuse(InvalidContext, "no context is current");
  std::shared_ptr<Block> block = findAllocated(address);
  if (!block || block->graph)
    return call.refuse(InvalidValue, "no memory that was allocated");
  if (Result error = checkUnsafe(call))
    return error;
  // It waits for all work of the context.
  for (const auto &stream : getState().streams)
    if (stream->context == context && !stream->capture)
      drain(*stream);
  block->isFreed = true;
  vanish(*block);
  block->isGone = true;
  return Success;
}

Result cuMemFree_v2(Address address) {
  ENTRY(cuMemFree_v2);
  return freeNow(call, address);
}

Result cuMemFreeHost(void *memory) {
  ENTRY(cuMemFreeHost);
  return freeNow(call, reinterpret_cast<uintptr_t>(memory));
}

Result cuMemcpyAsync(Address to, Address from, size_t bytes, void *handle) {
  ENTRY(cuMemcpyAsync);
  return enqueueAccess(call, handle, "copy", {{to, bytes}, {from, bytes}},
                       [=] { memmove(toPointer(to), toPointer(from), bytes); });
}

Result cuMemsetD8Async(Address address, unsigned char value, size_t count,
                       void *stream) {
  ENTRY(cuMemsetD8Async);
  return fill(call, address, value, count, stream);
}

Result cuMemsetD16Async(Address address, unsigned short value, size_t count,
                        void *stream) {
  ENTRY(cuMemsetD16Async);
  return fill(call, address, value, count, stream);
}

Result cuMemsetD32Async(Address address, unsigned value, size_t count,
                        void *stream) {
  ENTRY(cuMemsetD32Async);
  return fill(call, address, value, count, stream);
}

Result cuMemHostRegister_v2(void *memory, size_t bytes, unsigned /*flags*/) {
  ENTRY(cuMemHostRegister_v2);
  if (!getCurrent())
    return call.refuse(InvalidContext, "no context is current");
  if (Result error = checkUnsafe(call))
    return error;
  if (!getState().registered.emplace(memory, bytes).second)
    return call.refuse(HostMemoryAlreadyRegistered, "registered already");
  return Success;
}

Result cuMemHostUnregister(void *memory) {
  ENTRY(cuMemHostUnregister);
  if (getState().registered.erase(memory) == 0)
    return call.refuse(HostMemoryNotRegistered, "not registered");
  return Success;
}

} // extern "C"
