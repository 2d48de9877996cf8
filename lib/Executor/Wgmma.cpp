//===- Wgmma.cpp - wgmma --------------------------------------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A warp issues its quarter of the product alone: the hardware needs the four
// warps of a warpgroup for the whole, but orders nothing between them, so
// neither does the executor. It only checks that they issue the same.
//
//===----------------------------------------------------------------------===//

#include "Wgmma.h"

#include "Numbers.h"
#include "State.h"
#include "Swizzle.h"
#include "Warp.h"

#include <cstring>

using namespace varlen::executor;

//===----------------------------------------------------------------------===//
// Accumulators
//===----------------------------------------------------------------------===//

varlen_sim_acc *AccumulatorArena::allocate(uint32_t count) {
  size_t bytes =
      sizeof(varlen_sim_acc) + (count * sizeof(float) + 15) / 16 * 16;
  if (chunk < chunks.size() && used + bytes > chunkBytes) {
    ++chunk;
    used = 0;
  }
  if (chunk == chunks.size())
    chunks.push_back(std::make_unique<char[]>(chunkBytes));
  auto *acc = reinterpret_cast<varlen_sim_acc *>(chunks[chunk].get() + used);
  used += bytes;
  acc->count = count;
  acc->pending = 0;
  acc->written = 0;
  return acc;
}

varlen_sim_acc *varlen_sim_acc_new(uint32_t registers, uint32_t site) {
  Thread &self = *worker->current;
  varlen_sim_acc *acc = self.accumulators.allocate(registers);
  memset(acc->values(), 0, registers * sizeof(float));
  acc->written = self.registerTime;
  return acc;
}

varlen_sim_acc *varlen_sim_acc_set(varlen_sim_acc *acc, uint32_t index,
                                   float value, uint32_t inPlace,
                                   uint32_t site) {
  Thread &self = *worker->current;
  self.site = site;
  if (acc->pending)
    report("wgmma", site,
           "accumulator register %u is written while wgmma is in flight",
           index);
  if (!inPlace) {
    varlen_sim_acc *copy = self.accumulators.allocate(acc->count);
    memcpy(copy->values(), acc->values(), acc->count * sizeof(float));
    acc = copy;
  }
  acc->values()[index] = value;
  acc->written = self.registerTime;
  return acc;
}

float varlen_sim_acc_get(varlen_sim_acc *acc, uint32_t index, uint32_t site) {
  if (!acc->pending)
    return acc->values()[index];
  worker->current->site = site;
  report("wgmma", site,
         "accumulator register %u is read before wgmma.wait_group", index);
  return __builtin_nanf("");
}

//===----------------------------------------------------------------------===//
// Operands in shared memory
//===----------------------------------------------------------------------===//

namespace {
/// A matrix that a descriptor describes: element (row, k) with `row` the index
/// along M or N.
class Operand {
public:
  Operand(uint64_t descriptor, bool majorMN, uint32_t elementBytes,
          const Block &block)
      : start((descriptor & 0x3fff) << 4),
        leading((descriptor >> 16 & 0x3fff) << 4),
        stride((descriptor >> 32 & 0x3fff) << 4),
        swizzle(static_cast<uint32_t>(descriptor >> 62)), majorMN(majorMN),
        element(elementBytes), window(block.window),
        base(static_cast<uint32_t>(block.shared - block.window)),
        bytes(block.sharedBytes) {
    // Elements in a row of the swizzle atom: 16 bytes without swizzle.
    static const uint32_t rowBytes[] = {16, 128, 64, 32};
    row = rowBytes[swizzle] / element;
  }

  /// The address in the CTA's window.
  uint32_t address(uint32_t mn, uint32_t k) const {
    uint32_t linear;
    uint32_t core = 16 / element;
    if (!majorMN)
      linear = swizzle ? start + mn / 8 * stride + mn % 8 * row * element +
                             k * element
                       : start + mn / 8 * stride + mn % 8 * 16 +
                             k / core * leading + k % core * element;
    else
      linear = swizzle ? start + mn % row * element + mn / row * leading +
                             k % 8 * row * element + k / 8 * stride
                       : start + mn % core * element + mn / core * stride +
                             k % 8 * 16 + k / 8 * leading;
    return swizzled(linear & (windowBytes - 1), swizzle);
  }
  /// The offset in shared memory of what 16 bytes at an address are, or false.
  bool offset(uint32_t address, uint32_t &result) const {
    result = address - base;
    return address >= base && result < bytes && bytes - result >= 16;
  }
  template <typename Convert>
  float load(uint32_t mn, uint32_t k, Convert convert) const {
    uint32_t at = address(mn, k), ignored;
    if (!offset(at & ~15U, ignored))
      return __builtin_nanf("");
    return convert(window + at);
  }
  /// Calls function(address) for each 16 bytes of `rows` rows from `first` and
  /// all of `depth`, until it returns false.
  template <typename Function>
  void forChunks(uint32_t first, uint32_t rows, uint32_t depth,
                 Function function) const {
    uint32_t core = 16 / element;
    uint32_t stepMN = majorMN ? core : 1, stepK = majorMN ? 1 : core;
    for (uint32_t mn = first; mn < first + rows; mn += stepMN)
      for (uint32_t k = 0; k < depth; k += stepK)
        if (!function(address(mn, k)))
          return;
  }

private:
  uint32_t start, leading, stride, swizzle;
  bool majorMN;
  uint32_t element, row;
  const char *window;
  uint32_t base, bytes;
};
} // namespace

static uint32_t depthOf(const Wgmma &operation) {
  return operation.flags & VARLEN_SIM_WGMMA_TF32 ? 8 : 16;
}
static uint32_t elementBytes(const Wgmma &operation) {
  return operation.flags & VARLEN_SIM_WGMMA_TF32 ? 4 : 2;
}
static Operand operandA(const Wgmma &operation, const Block &block) {
  return {operation.descA, (operation.flags & VARLEN_SIM_WGMMA_A_MN) != 0,
          elementBytes(operation), block};
}
static Operand operandB(const Wgmma &operation, const Block &block) {
  return {operation.descB, (operation.flags & VARLEN_SIM_WGMMA_B_MN) != 0,
          elementBytes(operation), block};
}
static uint32_t firstRow(const Warp &warp) { return warp.id % 4 * 16; }

template <typename Function>
static void forOperands(const Warp &warp, const Wgmma &operation,
                        Function function) {
  const Block &block = *warp.block;
  uint32_t depth = depthOf(operation);
  if (!operation.registersA)
    operandA(operation, block).forChunks(firstRow(warp), 16, depth, function);
  operandB(operation, block).forChunks(0, operation.n, depth, function);
}

/// Checks the reads of a wgmma that is issued, and marks them as in flight.
static void issueReads(Warp &warp, Wgmma &operation, Slot slot) {
  Block &block = *warp.block;
  Thread &first = *warp.threads[0];
  Actor who = asyncActor(first, slot);
  uint32_t base = static_cast<uint32_t>(block.shared - block.window);
  bool outside = false, conflicts = false;
  forOperands(warp, operation, [&](uint32_t address) {
    uint32_t offset = address - base;
    if (address < base || offset >= block.sharedBytes ||
        block.sharedBytes - offset < 16) {
      if (!outside)
        report("out-of-bounds", operation.site,
               "wgmma operand at address 0x%x; shared memory is from 0x%x to "
               "0x%x",
               address, base, base + block.sharedBytes);
      outside = true;
      return true;
    }
    if (!worker->detector)
      return true;
    if (!conflicts)
      if (Conflict conflict = block.shadow.read(offset, 16, who)) {
        reportConflict(block, conflict, "wgmma read", who, operation.site);
        conflicts = true;
      }
    block.shadow.addInFlightRead(offset, 16, 1);
    return true;
  });
}

static void retireReads(Warp &warp, const Wgmma &operation) {
  if (!worker->detector)
    return;
  Block &block = *warp.block;
  uint32_t base = static_cast<uint32_t>(block.shared - block.window);
  forOperands(warp, operation, [&](uint32_t address) {
    uint32_t offset = address - base;
    if (address >= base && offset < block.sharedBytes &&
        block.sharedBytes - offset >= 16)
      block.shadow.addInFlightRead(offset, 16, -1);
    return true;
  });
}

//===----------------------------------------------------------------------===//
// The product
//===----------------------------------------------------------------------===//

static float convertF16(const char *p) {
  uint16_t bits;
  memcpy(&bits, p, sizeof(bits));
  return fromF16(bits);
}
static float convertBF16(const char *p) {
  uint16_t bits;
  memcpy(&bits, p, sizeof(bits));
  return fromBF16(bits);
}
static float convertTF32(const char *p) {
  uint32_t bits;
  memcpy(&bits, p, sizeof(bits));
  return fromTF32(bits);
}

namespace {
struct Product {
  float a[16][16], b[16][256], d[16][256];
};
} // namespace

/// The element of register i of a lane, for accumulators.
static uint32_t accRow(uint32_t lane, uint32_t i) {
  return lane / 4 + 8 * (i / 2 % 2);
}
static uint32_t accColumn(uint32_t lane, uint32_t i) {
  return 2 * (lane % 4) + i % 2 + 8 * (i / 4);
}

/// A in registers has the layout of mma.m16n8k16 (or k8 for tf32).
static void loadRegistersA(const Wgmma &operation, Product &product) {
  bool tf32 = operation.flags & VARLEN_SIM_WGMMA_TF32;
  bool bf16 = operation.flags & VARLEN_SIM_WGMMA_BF16;
  for (uint32_t lane = 0; lane < 32; ++lane)
    for (uint32_t i = 0; i < 4; ++i) {
      uint32_t word = operation.a[lane][i];
      float *row = product.a[lane / 4 + 8 * (i % 2)];
      uint32_t column = lane % 4 + 4 * (i / 2);
      if (tf32) {
        row[column] = fromTF32(word);
        continue;
      }
      for (uint32_t half = 0; half < 2; ++half) {
        auto bits = static_cast<uint16_t>(word >> (16 * half));
        row[2 * column + half] = bf16 ? fromBF16(bits) : fromF16(bits);
      }
    }
}

template <typename Convert>
static void loadOperands(const Warp &warp, const Wgmma &operation,
                         Product &product, Convert convert) {
  const Block &block = *warp.block;
  uint32_t depth = depthOf(operation);
  if (!operation.registersA) {
    Operand a = operandA(operation, block);
    for (uint32_t m = 0; m < 16; ++m)
      for (uint32_t k = 0; k < depth; ++k)
        product.a[m][k] = a.load(firstRow(warp) + m, k, convert);
  }
  Operand b = operandB(operation, block);
  for (uint32_t n = 0; n < operation.n; ++n)
    for (uint32_t k = 0; k < depth; ++k)
      product.b[k][n] = b.load(n, k, convert);
}

[[gnu::always_inline]] static inline void
multiplyAll(Product &product, uint32_t n, uint32_t depth) {
  for (uint32_t m = 0; m < 16; ++m)
    for (uint32_t first = 0; first < n; first += 8) {
      // Eight sums stay in registers over all of k.
      float sums[8];
      memcpy(sums, &product.d[m][first], sizeof(sums));
      for (uint32_t k = 0; k < depth; ++k)
        for (uint32_t i = 0; i < 8; ++i)
          sums[i] += product.a[m][k] * product.b[k][first + i];
      memcpy(&product.d[m][first], sums, sizeof(sums));
    }
}
#if defined(__x86_64__)
[[gnu::target("avx2")]] static void multiplyAVX2(Product &product, uint32_t n,
                                                 uint32_t depth) {
  multiplyAll(product, n, depth);
}
#endif
static void multiplyBaseline(Product &product, uint32_t n, uint32_t depth) {
  multiplyAll(product, n, depth);
}

static void compute(const Warp &warp, Wgmma &operation) {
  if (operation.done)
    return;
  operation.done = true;
  ++worker->stats.wgmma;
  static thread_local Product product;
  if (operation.registersA)
    loadRegistersA(operation, product);
  if (operation.flags & VARLEN_SIM_WGMMA_TF32)
    loadOperands(warp, operation, product, convertTF32);
  else if (operation.flags & VARLEN_SIM_WGMMA_BF16)
    loadOperands(warp, operation, product, convertBF16);
  else
    loadOperands(warp, operation, product, convertF16);
  // One sign for the product of both.
  if (!(operation.flags & VARLEN_SIM_WGMMA_NEG_A) !=
      !(operation.flags & VARLEN_SIM_WGMMA_NEG_B))
    for (auto &row : product.a)
      for (float &value : row)
        value = -value;
  uint32_t n = operation.n;
  for (uint32_t lane = 0; lane < 32; ++lane)
    for (uint32_t i = 0; i < n / 2; ++i)
      product.d[accRow(lane, i)][accColumn(lane, i)] =
          operation.scaleD ? operation.source[lane]->values()[i] : 0.0F;
#if defined(__x86_64__)
  static const auto multiply =
      __builtin_cpu_supports("avx2") ? multiplyAVX2 : multiplyBaseline;
  multiply(product, n, depthOf(operation));
#else
  multiplyBaseline(product, n, depthOf(operation));
#endif
  for (uint32_t lane = 0; lane < 32; ++lane)
    for (uint32_t i = 0; i < n / 2; ++i)
      operation.target[lane]->values()[i] =
          product.d[accRow(lane, i)][accColumn(lane, i)];
}

//===----------------------------------------------------------------------===//
// What the last lane of a warp does
//===----------------------------------------------------------------------===//

namespace {
/// What a lane puts on the stage.
struct WgmmaOperands {
  varlen_sim_acc *source, *target;
  uint64_t descA, descB;
  uint32_t a[4];
  uint32_t n, flags;
  uint16_t scaleD, registersA;
  uint32_t pending; ///< of wait_group
};
} // namespace
static_assert(sizeof(WgmmaOperands) <= sizeof(Warp::stage[0]), "fits a stage");

static WgmmaOperands &operandsOf(Warp &warp, uint32_t lane) {
  return *reinterpret_cast<WgmmaOperands *>(warp.stage[lane]);
}

/// The warps of a warpgroup must all issue the same products.
static void checkSequence(Warp &warp, const Wgmma &operation) {
  WgmmaSequence &sequence = warp.block->warpgroups[warp.id / 4];
  uint64_t &position = sequence.position[warp.id % 4];
  uint64_t index = position++ - sequence.first;
  if (index == sequence.issues.size()) {
    sequence.issues.push_back(
        {operation.descA, operation.descB, operation.site});
    return;
  }
  const WgmmaSequence::Issue &issue = sequence.issues[index];
  if (issue.descA != operation.descA || issue.descB != operation.descB ||
      issue.site != operation.site)
    report("collective", operation.site,
           "the warps of a warpgroup disagree: another has issued the wgmma at "
           "%s here, or with other descriptors",
           worker->launch->reports->siteName(issue.site));
  uint64_t slowest = position;
  for (uint64_t other : sequence.position)
    slowest = std::min(slowest, other);
  while (sequence.first < slowest) {
    sequence.issues.pop_front();
    ++sequence.first;
  }
}

void varlen::executor::issueWgmma(Warp &warp) {
  auto operation = std::make_unique<Wgmma>();
  const WgmmaOperands &first = operandsOf(warp, 0);
  uint32_t site = warp.threads[0]->site;
  operation->descA = first.descA;
  operation->descB = first.descB;
  operation->n = first.n;
  operation->flags = first.flags;
  operation->scaleD = first.scaleD;
  operation->registersA = first.registersA;
  operation->site = site;
  WgmmaQueue &queue = warp.wgmma;
  if (queue.uncommitted.operations.empty())
    queue.uncommitted.slot = newSlot(*warp.block->cluster);
  for (uint32_t lane = 0; lane < 32; ++lane) {
    const WgmmaOperands &operands = operandsOf(warp, lane);
    const Thread &thread = *warp.threads[lane];
    if (operands.descA != first.descA || operands.descB != first.descB)
      report("collective", site, "wgmma descriptors differ between lanes");
    if (operands.source->written > thread.fenceTime)
      report("wgmma", site,
             "accumulator registers were written since the last wgmma.fence");
    if (operands.source != operands.target && operands.source->pending &&
        operands.scaleD)
      report("wgmma", site,
             "an accumulator in flight would have to be copied: its value is "
             "used twice");
    operation->source[lane] = operands.source;
    operation->target[lane] = operands.target;
    memcpy(operation->a[lane], operands.a, sizeof(operands.a));
    ++operands.target->pending;
    operands.target->written = 0;
  }
  checkSequence(warp, *operation);
  issueReads(warp, *operation, queue.uncommitted.slot);
  if (Track *track = warp.track) {
    uint64_t begin = std::max(track->now, queue.busyUntil);
    queue.busyUntil = begin + operation->n * cost::wgmmaPerColumn;
    track->add(Activity::Matrix, "wgmma", site, cost::issue);
  }
  queue.uncommitted.operations.push_back(std::move(operation));
  if (!doneAtIssue())
    return;
  for (WgmmaQueue::Batch &batch : queue.groups)
    for (auto &pending : batch.operations)
      compute(warp, *pending);
  for (auto &pending : queue.uncommitted.operations)
    compute(warp, *pending);
}

void varlen::executor::fenceWgmma(Warp &warp) {
  for (Thread *thread : warp.threads)
    thread->fenceTime = thread->registerTime++;
}

void varlen::executor::commitWgmma(Warp &warp) {
  WgmmaQueue &queue = warp.wgmma;
  queue.uncommitted.time = queue.busyUntil;
  queue.groups.push_back(std::move(queue.uncommitted));
  queue.uncommitted = WgmmaQueue::Batch();
}

void varlen::executor::waitWgmma(Warp &warp) {
  uint32_t pending = operandsOf(warp, 0).pending;
  WgmmaQueue &queue = warp.wgmma;
  while (queue.groups.size() > pending) {
    WgmmaQueue::Batch &batch = queue.groups.front();
    for (auto &operation : batch.operations) {
      compute(warp, *operation);
      retireReads(warp, *operation);
      for (varlen_sim_acc *acc : operation->target)
        --acc->pending;
    }
    if (!batch.operations.empty())
      for (Thread *thread : warp.threads)
        acquire(*thread, batch.slot);
    if (warp.track)
      warp.track->waitUntil(batch.time, "wgmma.wait_group",
                            worker->current->site);
    queue.groups.pop_front();
  }
}

//===----------------------------------------------------------------------===//
// What compiled code calls
//===----------------------------------------------------------------------===//

static varlen_sim_acc *issue(varlen_sim_acc *acc, const uint32_t *registersA,
                             uint64_t descA, uint64_t descB, uint32_t n,
                             uint32_t scaleD, uint32_t flags, uint32_t site) {
  Thread &self = *worker->current;
  self.site = site;
  if (n < 8 || n > 256 || n % 8 || acc->count != n / 2) {
    report("unsupported", site,
           "wgmma with n = %u and %u registers: wanted a multiple of 8 up to "
           "256, and n / 2 registers",
           n, acc->count);
    return acc;
  }
  if ((descA | descB) >> 49 & 7) {
    report("unsupported", site,
           "wgmma descriptor with a base offset: its operand must begin with a "
           "swizzle atom");
    return acc;
  }
  if (self.block->warps.size() < (self.warp->id / 4 + 1) * 4) {
    report("collective", site, "wgmma in a warpgroup of less than 4 warps");
    return acc;
  }
  WgmmaOperands &operands = operandsOf(*self.warp, self.lane);
  operands.source = acc;
  operands.target = flags & VARLEN_SIM_WGMMA_IN_PLACE
                        ? acc
                        : self.accumulators.allocate(acc->count);
  operands.descA = descA;
  operands.descB = descB;
  operands.n = n;
  operands.flags = flags;
  operands.scaleD = scaleD != 0;
  operands.registersA = registersA != nullptr;
  if (registersA)
    memcpy(operands.a, registersA, sizeof(operands.a));
  collective(Collective::Wgmma, ~0U, site);
  return operands.target;
}

varlen_sim_acc *varlen_sim_wgmma(varlen_sim_acc *acc, uint64_t descA,
                                 uint64_t descB, uint32_t n, uint32_t scaleD,
                                 uint32_t flags, uint32_t site) {
  return issue(acc, nullptr, descA, descB, n, scaleD, flags, site);
}

varlen_sim_acc *varlen_sim_wgmma_rs(varlen_sim_acc *acc, uint32_t a0,
                                    uint32_t a1, uint32_t a2, uint32_t a3,
                                    uint64_t descB, uint32_t n, uint32_t scaleD,
                                    uint32_t flags, uint32_t site) {
  uint32_t registersA[] = {a0, a1, a2, a3};
  return issue(acc, registersA, 0, descB, n, scaleD, flags, site);
}

void varlen_sim_wgmma_fence(uint32_t site) {
  collective(Collective::WgmmaFence, ~0U, site);
}
void varlen_sim_wgmma_commit(uint32_t site) {
  collective(Collective::WgmmaCommit, ~0U, site);
}
void varlen_sim_wgmma_wait_group(uint32_t pending, uint32_t site) {
  Thread &self = *worker->current;
  operandsOf(*self.warp, self.lane).pending = pending;
  collective(Collective::WgmmaWait, ~0U, site);
}
