//===- Atomics.cpp - Atomics ----------------------------------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Atomics.h"

#include "Numbers.h"
#include "State.h"

using namespace varlen::executor;

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

uint32_t varlen::executor::atomicBytes(uint32_t type) {
  switch (type) {
  case VARLEN_SIM_F16:
  case VARLEN_SIM_BF16:
  case VARLEN_SIM_I16:
    return 2;
  case VARLEN_SIM_I64:
  case VARLEN_SIM_F64:
    return 8;
  default:
    return 4;
  }
}

bool varlen::executor::atomicSupported(uint32_t op, uint32_t type) {
  switch (type) {
  case VARLEN_SIM_I32:
  case VARLEN_SIM_I64:
    return op <= VARLEN_SIM_SUB;
  case VARLEN_SIM_I16:
    return op == VARLEN_SIM_EXCH;
  case VARLEN_SIM_F16:
  case VARLEN_SIM_BF16:
  case VARLEN_SIM_F16X2:
  case VARLEN_SIM_BF16X2:
    return op == VARLEN_SIM_ADD || op == VARLEN_SIM_MIN ||
           op == VARLEN_SIM_MAX || op == VARLEN_SIM_SUB ||
           op == VARLEN_SIM_EXCH;
  case VARLEN_SIM_F32:
  case VARLEN_SIM_F64:
    return op == VARLEN_SIM_ADD || op == VARLEN_SIM_SUB ||
           op == VARLEN_SIM_EXCH;
  default:
    return false;
  }
}

template <typename Unsigned, typename Signed>
static Unsigned combineInteger(uint32_t op, Unsigned old, Unsigned value) {
  switch (op) {
  case VARLEN_SIM_ADD:
    return old + value;
  case VARLEN_SIM_SUB:
    return old - value;
  case VARLEN_SIM_MIN:
    return static_cast<Signed>(old) < static_cast<Signed>(value) ? old : value;
  case VARLEN_SIM_MAX:
    return static_cast<Signed>(old) > static_cast<Signed>(value) ? old : value;
  case VARLEN_SIM_UMIN:
    return old < value ? old : value;
  case VARLEN_SIM_UMAX:
    return old > value ? old : value;
  case VARLEN_SIM_INC:
    return old >= value ? 0 : old + 1;
  case VARLEN_SIM_DEC:
    return old == 0 || old > value ? value : old - 1;
  case VARLEN_SIM_AND:
    return old & value;
  case VARLEN_SIM_OR:
    return old | value;
  case VARLEN_SIM_XOR:
    return old ^ value;
  default:
    return value;
  }
}

template <typename Float>
static Float combineFloat(uint32_t op, Float old, Float value) {
  switch (op) {
  case VARLEN_SIM_ADD:
    return old + value;
  case VARLEN_SIM_SUB:
    return old - value;
  case VARLEN_SIM_MIN:
    return value < old || __builtin_isnan(old) ? value : old;
  case VARLEN_SIM_MAX:
    return value > old || __builtin_isnan(old) ? value : old;
  default:
    return value;
  }
}

static uint16_t combineHalf(uint32_t op, bool bf16, uint16_t old,
                            uint16_t value) {
  // An exchange keeps the bits of a NaN.
  if (op == VARLEN_SIM_EXCH)
    return value;
  return bf16 ? toBF16(combineFloat(op, fromBF16(old), fromBF16(value)))
              : toF16(combineFloat(op, fromF16(old), fromF16(value)));
}

static uint64_t combine(uint32_t op, uint32_t type, uint64_t old,
                        uint64_t value) {
  auto old32 = static_cast<uint32_t>(old);
  auto value32 = static_cast<uint32_t>(value);
  switch (type) {
  case VARLEN_SIM_I32:
    return combineInteger<uint32_t, int32_t>(op, old32, value32);
  case VARLEN_SIM_I64:
    return combineInteger<uint64_t, int64_t>(op, old, value);
  case VARLEN_SIM_F32:
    return bitsOf(combineFloat(op, floatOf(old32), floatOf(value32)));
  case VARLEN_SIM_F64: {
    double a, b;
    memcpy(&a, &old, 8);
    memcpy(&b, &value, 8);
    a = combineFloat(op, a, b);
    memcpy(&old, &a, 8);
    return old;
  }
  case VARLEN_SIM_F16:
  case VARLEN_SIM_BF16:
    return combineHalf(op, type == VARLEN_SIM_BF16, static_cast<uint16_t>(old),
                       static_cast<uint16_t>(value));
  case VARLEN_SIM_F16X2:
  case VARLEN_SIM_BF16X2: {
    bool bf16 = type == VARLEN_SIM_BF16X2;
    uint32_t low = combineHalf(op, bf16, static_cast<uint16_t>(old),
                               static_cast<uint16_t>(value));
    uint32_t high = combineHalf(op, bf16, static_cast<uint16_t>(old >> 16),
                                static_cast<uint16_t>(value >> 16));
    return high << 16 | low;
  }
  default:
    return value;
  }
}

template <typename Word>
static uint64_t applyTo(void *p, uint32_t op, uint32_t type, uint64_t value) {
  auto *word = static_cast<Word *>(p);
  Word old = __atomic_load_n(word, __ATOMIC_SEQ_CST);
  for (;;) {
    auto result = static_cast<Word>(combine(op, type, old, value));
    if (__atomic_compare_exchange_n(word, &old, result, false, __ATOMIC_SEQ_CST,
                                    __ATOMIC_SEQ_CST))
      return old;
  }
}

uint64_t varlen::executor::atomicApply(void *p, uint32_t op, uint32_t type,
                                       uint64_t value) {
  switch (atomicBytes(type)) {
  case 2:
    return applyTo<uint16_t>(p, op, type, value);
  case 4:
    return applyTo<uint32_t>(p, op, type, value);
  default:
    return applyTo<uint64_t>(p, op, type, value);
  }
}

//===----------------------------------------------------------------------===//
// Ordering and checks
//===----------------------------------------------------------------------===//

bool varlen::executor::acquires(uint32_t order) {
  return order == VARLEN_SIM_ACQUIRE || order == VARLEN_SIM_ACQ_REL ||
         order == VARLEN_SIM_SC;
}
bool varlen::executor::releases(uint32_t order) {
  return order == VARLEN_SIM_RELEASE || order == VARLEN_SIM_ACQ_REL ||
         order == VARLEN_SIM_SC;
}

/// What orders the atomics on one address of shared memory, or null.
static Gather *syncObject(Block &block, uint32_t offset, uint32_t order) {
  if (!worker->detector || !(acquires(order) || releases(order)))
    return nullptr;
  std::unique_ptr<Gather> &gather = block.atomics[offset];
  if (!gather) {
    gather = std::make_unique<Gather>();
    gather->init(worker->clocks);
  }
  return gather.get();
}

/// Whether the access is in bounds, aligned and without a race; reports if not.
/// `block` is the owner if the memory is shared, `offset` then its place.
static bool checkAtomic(void *p, uint32_t bytes, Block *&block,
                        uint32_t &offset, uint32_t site) {
  settle();
  Worker &w = *worker;
  Thread &self = *w.current;
  self.site = site;
  ++w.stats.accesses;
  auto address = reinterpret_cast<uint64_t>(p);
  if (address % bytes) {
    report("misaligned", site,
           "atomic access of %u bytes at an address that ends in 0x%x", bytes,
           static_cast<uint32_t>(address & 15));
    return false;
  }
  block = nullptr;
  if (address - reinterpret_cast<uint64_t>(w.arena) >= w.arenaBytes)
    return checkGlobalNow(p, bytes, "atomic access", /*isStore=*/true,
                          /*isAtomic=*/true, site);
  Block *owner = sharedOwner(p);
  block = owner ? owner : self.block;
  if (!sharedOffset(*block, p, bytes, site, offset))
    return false;
  if (!w.detector)
    return true;
  Actor who = actor(self, /*atomic=*/true);
  if (Conflict conflict = block->shadow.checkWrite(offset, bytes, who))
    reportConflict(*block, conflict, "atomic access", who, site);
  else
    block->shadow.write(offset, bytes, who);
  return true;
}

/// Ordering of the current thread's atomic; `before` it or after it.
static void synchronise(void *p, Block *block, uint32_t offset, uint32_t order,
                        bool before) {
  if (!block) {
    if (before)
      releaseGlobal(p, order, /*isUpdate=*/true);
    else
      acquireGlobal(p, order);
    return;
  }
  Gather *gather = syncObject(*block, offset, order);
  if (!gather)
    return;
  Thread &self = *worker->current;
  if (before && releases(order))
    releaseTo(self, *gather);
  if (!before && acquires(order)) {
    Clock *clock = gather->freeze(worker->clocks);
    acquire(self, clock);
    worker->clocks.release(clock);
  }
}

/// Who sees no change may be waiting for one.
static void changedOrPolls(bool changed) {
  if (changed)
    progress();
  else
    poll();
}

//===----------------------------------------------------------------------===//
// What compiled code calls
//===----------------------------------------------------------------------===//

uint64_t varlen_sim_atomic(void *p, uint32_t op, uint32_t type, uint64_t value,
                           uint32_t order, uint32_t site) {
  if (!atomicSupported(op, type)) {
    report("unsupported", site, "atomic operation %u of type %u", op, type);
    return 0;
  }
  uint32_t bytes = atomicBytes(type), offset = 0;
  Block *block;
  if (!checkAtomic(p, bytes, block, offset, site))
    return 0;
  synchronise(p, block, offset, order, /*before=*/true);
  uint64_t old = atomicApply(p, op, type, value);
  uint64_t mask = bytes == 8 ? ~uint64_t(0) : (uint64_t(1) << (8 * bytes)) - 1;
  bool changed = (combine(op, type, old, value) & mask) != (old & mask);
  synchronise(p, block, offset, order, /*before=*/false);
  changedOrPolls(changed);
  return old & mask;
}

template <typename Word>
static uint64_t compareExchange(void *p, uint64_t compare, uint64_t value) {
  auto expected = static_cast<Word>(compare);
  __atomic_compare_exchange_n(static_cast<Word *>(p), &expected,
                              static_cast<Word>(value), false, __ATOMIC_SEQ_CST,
                              __ATOMIC_SEQ_CST);
  return expected;
}

uint64_t varlen_sim_atomic_cas(void *p, uint32_t type, uint64_t compare,
                               uint64_t value, uint32_t order, uint32_t site) {
  uint32_t bytes = atomicBytes(type), offset = 0;
  Block *block;
  if (!checkAtomic(p, bytes, block, offset, site))
    return 0;
  synchronise(p, block, offset, order, /*before=*/true);
  uint64_t old = bytes == 2   ? compareExchange<uint16_t>(p, compare, value)
                 : bytes == 4 ? compareExchange<uint32_t>(p, compare, value)
                              : compareExchange<uint64_t>(p, compare, value);
  synchronise(p, block, offset, order, /*before=*/false);
  changedOrPolls(old == compare && value != compare);
  return old;
}
