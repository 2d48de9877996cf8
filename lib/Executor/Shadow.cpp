//===- Shadow.cpp - Who touched shared memory last ------------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Shadow.h"

#include <algorithm>

using namespace varlen::executor;

void Shadow::reset(uint32_t bytes, uint32_t bits, uint32_t count) {
  tickBits = bits;
  tickMask = (1U << bits) - 1;
  components = count;
  cells.assign(bytes / 16 + 1, Cell());
  finer.clear();
  // Block 0 stands for "none" in the chains of free blocks.
  finer.resize(16);
  freeWords = freeBytes = 0;
  readerLists.clear();
  freeLists.clear();
}

//===----------------------------------------------------------------------===//
// Cells of the right size
//===----------------------------------------------------------------------===//

void Shadow::split(Cell &cell, bool bytes) {
  uint32_t count = bytes ? 16 : 4;
  uint32_t &chain = bytes ? freeBytes : freeWords;
  uint32_t first = chain;
  if (first) {
    chain = finer[first].link;
  } else {
    first = static_cast<uint32_t>(finer.size());
    finer.resize(first + count);
  }
  if (cell.flags & Split) {
    // From words to bytes.
    for (uint32_t i = 0; i < 16; ++i) {
      finer[first + i] = finer[cell.link + i / 4];
      if (finer[first + i].flags & Overflow) {
        uint32_t list = finer[first + i].link;
        finer[first + i].link = static_cast<uint32_t>(readerLists.size());
        readerLists.push_back(readerLists[list]);
      }
    }
    finer[cell.link].link = freeWords;
    freeWords = cell.link;
    cell.flags |= SplitBytes;
  } else {
    for (uint32_t i = 0; i < count; ++i) {
      finer[first + i] = cell;
      if (cell.flags & Overflow) {
        finer[first + i].link = static_cast<uint32_t>(readerLists.size());
        readerLists.push_back(readerLists[cell.link]);
      }
    }
    if (cell.flags & Overflow)
      freeLists.push_back(cell.link);
    cell.flags = Split | (bytes ? SplitBytes : 0);
  }
  cell.link = first;
}

/// Calls function(cell, offset of the cell) for the cells that an access is in,
/// made as fine as the access; stops when it returns true.
template <typename Function>
void Shadow::visit(uint32_t offset, uint32_t size, Function function) {
  uint32_t end = offset + size;
  for (uint32_t at = offset & ~15U; at < end; at += 16) {
    uint32_t low = std::max(at, offset), high = std::min(at + 16, end);
    Cell &cell = cells[at >> 4];
    bool whole = high - low == 16;
    if (whole && !(cell.flags & Split)) {
      if (function(cell, at))
        return;
      continue;
    }
    bool bytes = ((low | high) & 3) != 0;
    if (!(cell.flags & Split) || (bytes && !(cell.flags & SplitBytes)))
      split(cell, bytes);
    uint32_t unit = cell.flags & SplitBytes ? 1 : 4;
    uint32_t first = cell.link;
    for (uint32_t byte = low; byte < high; byte += unit)
      if (function(finer[first + (byte - at) / unit], byte))
        return;
  }
}

//===----------------------------------------------------------------------===//
// Reads
//===----------------------------------------------------------------------===//

void Shadow::addReader(Cell &cell, const Actor &actor) {
  uint32_t self = component(actor.epoch);
  // A reader that is ordered before this one needs no memory of its own: who is
  // ordered after us is ordered after it.
  uint32_t kept = 0;
  for (uint32_t i = 0; i < cell.numReaders; ++i) {
    Epoch reader = cell.readers[i];
    if (component(reader) != self && !ordered(reader, actor))
      cell.readers[kept++] = reader;
  }
  if (cell.flags & Overflow) {
    std::vector<Epoch> &list = readerLists[cell.link];
    list.erase(std::remove_if(list.begin(), list.end(),
                              [&](Epoch reader) {
                                return component(reader) == self ||
                                       ordered(reader, actor);
                              }),
               list.end());
    list.push_back(actor.epoch);
    cell.numReaders = static_cast<uint8_t>(kept);
    return;
  }
  if (kept == maxReaders) {
    cell.flags |= Overflow;
    if (freeLists.empty()) {
      cell.link = static_cast<uint32_t>(readerLists.size());
      readerLists.emplace_back();
    } else {
      cell.link = freeLists.back();
      freeLists.pop_back();
    }
    readerLists[cell.link].assign(1, actor.epoch);
    return;
  }
  cell.readers[kept++] = actor.epoch;
  cell.numReaders = static_cast<uint8_t>(kept);
}

Hazard Shadow::readCell(Cell &cell, const Actor &actor, Epoch &other) {
  other = cell.write;
  if (cell.flags & Barrier)
    return Hazard::BarrierObject;
  if (cell.writesInFlight)
    return Hazard::InFlightWrite;
  if (!(cell.flags & Initialised))
    return Hazard::Uninitialised;
  if (!(actor.atomic && cell.flags & AtomicWritten) &&
      !ordered(cell.write, actor))
    return Hazard::AfterWrite;
  if (actor.asyncProxy && !(cell.flags & AsyncWritten) &&
      !published(cell.write, actor))
    return Hazard::Proxy;
  if (cell.numReaders == 0 || cell.readers[cell.numReaders - 1] != actor.epoch)
    addReader(cell, actor);
  return Hazard::None;
}

Conflict Shadow::readSlow(uint32_t offset, uint32_t size, const Actor &actor) {
  Conflict conflict;
  Cell &whole = cells[offset >> 4];
  if (((offset & 15) | (size ^ 16)) == 0 && !(whole.flags & Split)) {
    conflict.hazard = readCell(whole, actor, conflict.other);
    conflict.offset = offset;
    return conflict;
  }
  visit(offset, size, [&](Cell &cell, uint32_t at) {
    Hazard hazard = readCell(cell, actor, conflict.other);
    if (hazard == Hazard::None)
      return false;
    conflict.hazard = hazard;
    conflict.offset = at;
    return true;
  });
  return conflict;
}

//===----------------------------------------------------------------------===//
// Writes
//===----------------------------------------------------------------------===//

Hazard Shadow::checkCell(const Cell &cell, const Actor &actor,
                         Epoch &other) const {
  other = cell.write;
  if (cell.flags & Barrier)
    return Hazard::BarrierObject;
  if (cell.writesInFlight)
    return Hazard::InFlightWrite;
  if (cell.readsInFlight)
    return Hazard::InFlightRead;
  if (actor.atomic && !(cell.flags & Initialised))
    return Hazard::Uninitialised;
  if (cell.flags & Initialised) {
    if (!(actor.atomic && cell.flags & AtomicWritten) &&
        !ordered(cell.write, actor))
      return Hazard::AfterWrite;
    if (actor.asyncProxy && !(cell.flags & AsyncWritten) &&
        !published(cell.write, actor))
      return Hazard::Proxy;
  }
  for (uint32_t i = 0; i < cell.numReaders; ++i)
    if (!ordered(cell.readers[i], actor)) {
      other = cell.readers[i];
      return Hazard::AfterRead;
    }
  if (cell.flags & Overflow)
    for (Epoch reader : readerLists[cell.link])
      if (!ordered(reader, actor)) {
        other = reader;
        return Hazard::AfterRead;
      }
  return Hazard::None;
}

Conflict Shadow::checkWrite(uint32_t offset, uint32_t size,
                            const Actor &actor) {
  Conflict conflict;
  visit(offset, size, [&](Cell &cell, uint32_t at) {
    Hazard hazard = checkCell(cell, actor, conflict.other);
    if (hazard == Hazard::None)
      return false;
    conflict.hazard = hazard;
    conflict.offset = at;
    return true;
  });
  return conflict;
}

void Shadow::write(uint32_t offset, uint32_t size, const Actor &actor) {
  uint8_t flags = Initialised | (actor.asyncProxy ? AsyncWritten : 0) |
                  (actor.atomic ? AtomicWritten : 0);
  auto set = [&](Cell &cell) {
    if (cell.flags & Overflow)
      freeLists.push_back(cell.link);
    cell.write = actor.epoch;
    cell.readers[0] = 0;
    cell.numReaders = 0;
    cell.flags = flags;
  };
  uint32_t end = offset + size;
  for (uint32_t at = offset & ~15U; at < end; at += 16) {
    uint32_t low = std::max(at, offset), high = std::min(at + 16, end);
    Cell &cell = cells[at >> 4];
    if (high - low == 16 && cell.flags & Split) {
      // All 16 bytes have one writer again, and as one cell unless something is
      // in flight.
      bool bytes = cell.flags & SplitBytes;
      uint32_t count = bytes ? 16 : 4, inFlight = 0;
      for (uint32_t i = 0; i < count; ++i)
        inFlight |= finer[cell.link + i].writesInFlight |
                    finer[cell.link + i].readsInFlight;
      if (inFlight == 0) {
        for (uint32_t i = 0; i < count; ++i)
          if (finer[cell.link + i].flags & Overflow)
            freeLists.push_back(finer[cell.link + i].link);
        uint32_t &chain = bytes ? freeBytes : freeWords;
        finer[cell.link].link = chain;
        chain = cell.link;
        cell.flags = 0;
        cell.writesInFlight = cell.readsInFlight = 0;
      }
    }
    visit(low, high - low, [&](Cell &cell, uint32_t) {
      set(cell);
      return false;
    });
  }
}

//===----------------------------------------------------------------------===//
// Work in flight, mbarriers
//===----------------------------------------------------------------------===//

void Shadow::addInFlightWrite(uint32_t offset, uint32_t size, int delta) {
  visit(offset, size, [&](Cell &cell, uint32_t) {
    cell.writesInFlight = static_cast<uint16_t>(cell.writesInFlight + delta);
    return false;
  });
}

void Shadow::addInFlightReads(uint32_t offset, uint32_t size, int delta) {
  visit(offset, size, [&](Cell &cell, uint32_t) {
    cell.readsInFlight = static_cast<uint16_t>(cell.readsInFlight + delta);
    return false;
  });
}

void Shadow::setBarrierObject(uint32_t offset, bool is) {
  visit(offset, 8, [&](Cell &cell, uint32_t) {
    // What becomes memory again has no value.
    cell = Cell();
    cell.flags = is ? Barrier : 0;
    return false;
  });
}
