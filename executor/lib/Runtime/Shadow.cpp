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
  cells.clear();
  cells.resize(bytes / 16 + 1);
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

void Shadow::copyToFiner(Cells &from, uint32_t i, uint32_t to) {
  finer[to] = from[i];
  if (from[i].numReaders > 1 || from[i].flags & Overflow)
    finer.othersOf(to) = from.othersOf(i);
  if (from[i].flags & Overflow) {
    uint32_t list = from.othersOf(i).list;
    finer.othersOf(to).list = static_cast<uint32_t>(readerLists.size());
    readerLists.push_back(readerLists[list]);
  }
}

void Shadow::split(uint32_t index, bool bytes) {
  Cell &cell = cells[index];
  uint32_t count = bytes ? 16 : 4;
  uint32_t &chain = bytes ? freeBytes : freeWords;
  uint32_t first = chain;
  if (first) {
    chain = finer[first].link;
  } else {
    first = finer.size();
    finer.resize(first + count);
  }
  if (cell.flags & Split) {
    // From words to bytes.
    for (uint32_t i = 0; i < 16; ++i)
      copyToFiner(finer, cell.link + i / 4, first + i);
    finer[cell.link].link = freeWords;
    freeWords = cell.link;
    cell.flags |= SplitBytes;
  } else {
    for (uint32_t i = 0; i < count; ++i)
      copyToFiner(cells, index, first + i);
    if (cell.flags & Overflow)
      freeLists.push_back(cells.othersOf(index).list);
    cell.flags = Split | (bytes ? SplitBytes : 0);
  }
  cell.link = first;
}

/// Calls function(cell, its others, offset of the cell) for the cells that an
/// access is in, made as fine as the access; stops when it returns true.
template <typename Function>
void Shadow::visit(uint32_t offset, uint32_t size, Function function) {
  uint32_t end = offset + size;
  for (uint32_t at = offset & ~15U; at < end; at += 16) {
    uint32_t low = std::max(at, offset), high = std::min(at + 16, end);
    Cell &cell = cells[at >> 4];
    bool whole = high - low == 16;
    if (whole && !(cell.flags & Split)) {
      if (function(cell, cells.othersOf(at >> 4), at))
        return;
      continue;
    }
    bool bytes = ((low | high) & 3) != 0;
    if (!(cell.flags & Split) || (bytes && !(cell.flags & SplitBytes)))
      split(at >> 4, bytes);
    uint32_t unit = cell.flags & SplitBytes ? 1 : 4;
    uint32_t first = cell.link;
    for (uint32_t byte = low; byte < high; byte += unit) {
      uint32_t i = first + (byte - at) / unit;
      if (function(finer[i], finer.othersOf(i), byte))
        return;
    }
  }
}

//===----------------------------------------------------------------------===//
// Reads
//===----------------------------------------------------------------------===//

[[gnu::always_inline]] inline void Shadow::addReader(Cell &cell, Others &others,
                                                     const Actor &actor) {
  uint32_t self = component(actor.epoch);
  // A reader that is ordered before this one needs no memory of its own: who is
  // ordered after us is ordered after it.
  uint32_t kept = 0;
  auto keep = [&](Epoch reader) {
    (kept == 0 ? cell.reader : others.readers[kept - 1]) = reader;
    ++kept;
  };
  for (uint32_t i = 0; i < cell.numReaders; ++i) {
    Epoch reader = i == 0 ? cell.reader : others.readers[i - 1];
    if (component(reader) != self && !ordered(reader, actor))
      keep(reader);
  }
  if (cell.flags & Overflow) {
    std::vector<Epoch> &list = readerLists[others.list];
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
      others.list = static_cast<uint32_t>(readerLists.size());
      readerLists.emplace_back();
    } else {
      others.list = freeLists.back();
      freeLists.pop_back();
    }
    readerLists[others.list].assign(1, actor.epoch);
    return;
  }
  keep(actor.epoch);
  cell.numReaders = static_cast<uint8_t>(kept);
}

[[gnu::always_inline]] inline Hazard
Shadow::readCell(Cell &cell, Others &others, const Actor &actor) {
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
  Epoch last =
      cell.numReaders > 1 ? others.readers[cell.numReaders - 2] : cell.reader;
  if (cell.numReaders == 0 || last != actor.epoch)
    addReader(cell, others, actor);
  return Hazard::None;
}

// A Conflict is not kept in memory until its return: it is written in parts and
// read as a whole there, which waits for the stores.

Conflict Shadow::readSlow(uint32_t offset, uint32_t size, const Actor &actor) {
  uint32_t index = offset >> 4;
  Cell &whole = cells[index];
  if (((offset & 15) | (size ^ 16)) == 0 && !(whole.flags & Split)) {
    Hazard hazard = readCell(whole, cells.othersOf(index), actor);
    if (hazard == Hazard::None)
      return {};
    return {hazard, offset, whole.write};
  }
  Hazard found = Hazard::None;
  uint32_t where = 0;
  Epoch other = 0;
  visit(offset, size, [&](Cell &cell, Others &others, uint32_t at) {
    if (readQuickly(cell, actor))
      return false;
    Hazard hazard = readCell(cell, others, actor);
    if (hazard == Hazard::None)
      return false;
    found = hazard;
    where = at;
    other = cell.write;
    return true;
  });
  return {found, where, other};
}

//===----------------------------------------------------------------------===//
// Writes
//===----------------------------------------------------------------------===//

Hazard Shadow::checkCell(const Cell &cell, const Others &others,
                         const Actor &actor, Epoch &other) const {
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
  for (uint32_t i = 0; i < cell.numReaders; ++i) {
    Epoch reader = i == 0 ? cell.reader : others.readers[i - 1];
    if (!ordered(reader, actor)) {
      other = reader;
      return Hazard::AfterRead;
    }
  }
  if (cell.flags & Overflow)
    for (Epoch reader : readerLists[others.list])
      if (!ordered(reader, actor)) {
        other = reader;
        return Hazard::AfterRead;
      }
  return Hazard::None;
}

Conflict Shadow::checkWrite(uint32_t offset, uint32_t size,
                            const Actor &actor) {
  Hazard found = Hazard::None;
  uint32_t where = 0;
  Epoch other = 0;
  visit(offset, size, [&](const Cell &cell, const Others &others, uint32_t at) {
    found = checkCell(cell, others, actor, other);
    where = at;
    return found != Hazard::None;
  });
  return {found, where, other};
}

void Shadow::write(uint32_t offset, uint32_t size, const Actor &actor) {
  uint8_t flags = Initialised | (actor.asyncProxy ? AsyncWritten : 0) |
                  (actor.atomic ? AtomicWritten : 0);
  auto set = [&](Cell &cell, const Others &others) {
    if (cell.flags & Overflow)
      freeLists.push_back(others.list);
    cell.write = actor.epoch;
    cell.reader = 0;
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
            freeLists.push_back(finer.othersOf(cell.link + i).list);
        uint32_t &chain = bytes ? freeBytes : freeWords;
        finer[cell.link].link = chain;
        chain = cell.link;
        cell.flags = 0;
        cell.writesInFlight = cell.readsInFlight = 0;
      }
    }
    visit(low, high - low, [&](Cell &cell, const Others &others, uint32_t) {
      set(cell, others);
      return false;
    });
  }
}

//===----------------------------------------------------------------------===//
// Work in flight, mbarriers
//===----------------------------------------------------------------------===//

void Shadow::addInFlightWrite(uint32_t offset, uint32_t size, int delta) {
  visit(offset, size, [&](Cell &cell, const Others &, uint32_t) {
    cell.writesInFlight = static_cast<uint16_t>(cell.writesInFlight + delta);
    return false;
  });
}

void Shadow::addInFlightReads(uint32_t offset, uint32_t size, int delta) {
  visit(offset, size, [&](Cell &cell, const Others &, uint32_t) {
    cell.readsInFlight = static_cast<uint16_t>(cell.readsInFlight + delta);
    return false;
  });
}

void Shadow::setBarrierObject(uint32_t offset, bool is) {
  visit(offset, 8, [&](Cell &cell, const Others &, uint32_t) {
    // What becomes memory again has no value.
    cell = Cell();
    cell.flags = is ? Barrier : 0;
    return false;
  });
}
