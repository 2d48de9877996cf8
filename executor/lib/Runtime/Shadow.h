//===- Shadow.h - Who touched shared memory last ----------------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The race detector's memory: for every 16 bytes of shared memory, or 4 or
// single bytes where accesses are finer, who wrote last, who has read since,
// and which asynchronous work is in flight.
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_LIB_EXECUTOR_SHADOW_H
#define VARLEN_LIB_EXECUTOR_SHADOW_H

#include "Clock.h"

#include <cstdint>
#include <vector>

namespace varlen::executor {

/// A component of the clocks (high bits) and its tick (low bits). Component 0
/// is no thread, so 0 is no epoch.
using Epoch = uint32_t;

/// Who accesses, and what is ordered before the access.
struct Actor {
  Epoch epoch = 0;
  /// The thread itself (its own component of `clock` is out of date).
  const ThreadClock *thread = nullptr;
  /// Whether the access is made by the async proxy on behalf of `thread`.
  bool asyncProxy = false;
  bool atomic = false;
};

/// What is wrong with an access, or `None`.
enum class Hazard : uint8_t {
  None,
  InFlightWrite, ///< a copy into it is in flight
  InFlightRead,  ///< it is being read by asynchronous work
  Uninitialised, ///< it has not been written
  AfterWrite,    ///< not ordered after a write
  AfterRead,     ///< a write not ordered after a read
  Proxy,         ///< a generic write not published to the async proxy
  BarrierObject, ///< a generic access to an mbarrier
};

struct Conflict {
  Hazard hazard = Hazard::None;
  uint32_t offset = 0; ///< of the first byte that it is about
  Epoch other = 0;
  explicit operator bool() const { return hazard != Hazard::None; }
};

class Shadow {
public:
  /// Forgets everything; an Epoch has `bits` bits of tick, clocks have `count`
  /// components.
  void reset(uint32_t bytes, uint32_t bits, uint32_t count);

  uint32_t component(Epoch epoch) const { return epoch >> tickBits; }
  Epoch epoch(uint32_t component, Tick tick) const {
    return component << tickBits | (static_cast<uint32_t>(tick) & tickMask);
  }

  Conflict read(uint32_t offset, uint32_t size, const Actor &actor) {
    if (((offset & 15) | (size ^ 16)) == 0 &&
        readQuickly(cells[offset >> 4], actor))
      return {};
    return readSlow(offset, size, actor);
  }
  /// Looks only; `write` may follow.
  Conflict checkWrite(uint32_t offset, uint32_t size, const Actor &actor);
  void write(uint32_t offset, uint32_t size, const Actor &actor);

  /// In-flight counts; delta is 1 or -1.
  void addInFlightWrite(uint32_t offset, uint32_t size, int delta);
  void addInFlightRead(uint32_t offset, uint32_t size, int delta) {
    Cell &cell = cells[offset >> 4];
    if (((offset & 15) | (size ^ 16)) == 0 && !(cell.flags & Split))
      cell.readsInFlight = static_cast<uint16_t>(cell.readsInFlight + delta);
    else
      addInFlightReads(offset, size, delta);
  }

  void setBarrierObject(uint32_t offset, bool is);

private:
  enum : uint8_t {
    Initialised = 1,
    AsyncWritten = 2, ///< the last write was made by the async proxy
    AtomicWritten = 4,
    Split = 8,     ///< `link` is valid, not `write`
    Overflow = 16, ///< there is a list of further readers
    Barrier = 32,
    SplitBytes = 64, ///< finer cells are bytes, not words
  };
  /// As many as the warps of a CTA that read the same operand, usually.
  static constexpr uint32_t maxReaders = 8;
  /// What most accesses need; those of four words, or of 64 bytes, are in one
  /// line of the cache.
  struct Cell {
    /// The last write; of a split cell, the first of the finer cells.
    union {
      Epoch write;
      uint32_t link;
    };
    /// One who has read since.
    Epoch reader;
    uint16_t writesInFlight, readsInFlight;
    uint8_t numReaders;
    uint8_t flags;
    uint16_t padding;
  };
  static_assert(sizeof(Cell) == 16, "four to a line of the cache");
  /// Those who have read, too, and with `Overflow` a list of still others.
  struct alignas(32) Others {
    Epoch readers[maxReaders - 1];
    uint32_t list;
  };

  class Cells {
  public:
    void clear() { lines.clear(); }
    /// Other than new cells, `others` have no value until they are readers.
    void resize(uint32_t count) {
      lines.resize((count + 3) / 4);
      if (others.size() < lines.size() * 4)
        others.resize(lines.capacity() * 4);
    }
    uint32_t size() const { return static_cast<uint32_t>(lines.size()) * 4; }
    Cell &operator[](uint32_t i) { return lines[i / 4].cells[i % 4]; }
    Others &othersOf(uint32_t i) { return others[i]; }

  private:
    struct alignas(64) Line {
      Cell cells[4];
    };
    std::vector<Line> lines;
    std::vector<Others> others;
  };

  bool ordered(Epoch epoch, const Actor &actor) const {
    uint32_t who = epoch >> tickBits;
    return who == actor.thread->self || actor.thread->base->values[who] >=
                                            static_cast<Tick>(epoch & tickMask);
  }
  bool published(Epoch epoch, const Actor &actor) const {
    uint32_t who = epoch >> tickBits;
    Tick tick = static_cast<Tick>(epoch & tickMask);
    return actor.thread->base->values[components + who] >= tick ||
           (who == actor.thread->self && actor.thread->ownPublished >= tick);
  }
  /// Most reads: of what was written as a whole, and read by this thread, one
  /// that is ordered before it, or none. Returns false if it is another.
  bool readQuickly(Cell &cell, const Actor &actor) const {
    if ((cell.flags & ~AsyncWritten) != Initialised || cell.writesInFlight ||
        cell.numReaders > 1 || actor.asyncProxy ||
        !ordered(cell.write, actor) || !ordered(cell.reader, actor))
      return false;
    cell.reader = actor.epoch;
    cell.numReaders = 1;
    return true;
  }
  Conflict readSlow(uint32_t offset, uint32_t size, const Actor &actor);
  Hazard readCell(Cell &cell, Others &others, const Actor &actor);
  Hazard checkCell(const Cell &cell, const Others &others, const Actor &actor,
                   Epoch &other) const;
  void addInFlightReads(uint32_t offset, uint32_t size, int delta);
  void addReader(Cell &cell, Others &others, const Actor &actor);
  void split(uint32_t index, bool bytes);
  void copyToFiner(Cells &from, uint32_t i, uint32_t to);
  template <typename Function>
  void visit(uint32_t offset, uint32_t size, Function function);

  Cells cells;
  /// Blocks of 4 or 16 cells; freed blocks are chained through `link`.
  Cells finer;
  uint32_t freeWords = 0, freeBytes = 0;
  std::vector<std::vector<Epoch>> readerLists;
  std::vector<uint32_t> freeLists;
  uint32_t tickBits = 20, tickMask = 0, components = 0;
};

} // namespace varlen::executor

#endif // VARLEN_LIB_EXECUTOR_SHADOW_H
