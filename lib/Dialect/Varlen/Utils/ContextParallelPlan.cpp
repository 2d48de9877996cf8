//===- ContextParallelPlan.cpp - Who owns which rows ----------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Rows are divided in units of `multiple` rows of a sequence. A layout is an
// order of units, and ranks take what follows each other in that order until
// they have their share of all work.
//
//===----------------------------------------------------------------------===//

#include "varlen/Dialect/Varlen/Utils/ContextParallelPlan.h"

#include "varlen/Dialect/Varlen/Utils/SequenceMask.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/Support/FormatVariadic.h"

#include <algorithm>
#include <cmath>

using namespace mlir;
using namespace mlir::varlen;
using llvm::Error;

/// As compiled code has it (VARLEN_MAX_SEQUENCE).
static constexpr int64_t kMaxSequence = int64_t(1) << 30;

/// Of any cluster, and few enough for the memory of a list of each.
static constexpr int64_t kMaxRanks = int64_t(1) << 20;

template <typename... Args>
static Error makeError(const char *format, Args &&...args) {
  return llvm::createStringError(
      std::errc::invalid_argument,
      llvm::formatv(format, std::forward<Args>(args)...).str().c_str());
}

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

static Error checkCuSeqlens(StringRef name, ArrayRef<int64_t> cu) {
  if (cu.empty())
    return makeError("{0} is empty: expected at least 1 entry, the 0 it starts "
                     "with",
                     name);
  if (cu.front() != 0)
    return makeError("{0}[0] = {1}: cu_seqlens must start at 0", name,
                     cu.front());
  for (size_t i = 1; i < cu.size(); ++i) {
    if (cu[i] < cu[i - 1])
      return makeError("{0}[{1}] = {2} is smaller than {0}[{3}] = {4}: "
                       "cu_seqlens must not decrease",
                       name, i, cu[i], i - 1, cu[i - 1]);
    if (cu[i] - cu[i - 1] > kMaxSequence)
      return makeError("sequence {0} of {1} has {2} rows: expected at most {3}",
                       i - 1, name, cu[i] - cu[i - 1], kMaxSequence);
  }
  return Error::success();
}

static Error check(const ContextParallelBatch &batch,
                   const ContextParallelOptions &options) {
  if (Error error = checkCuSeqlens("cu_seqlens_q", batch.cuQ))
    return error;
  if (Error error = checkCuSeqlens("cu_seqlens_k", batch.cuK))
    return error;
  if (batch.cuQ.size() != batch.cuK.size())
    return makeError("expected cu_seqlens_q and cu_seqlens_k to have the same "
                     "number of entries, got {0} and {1}",
                     batch.cuQ.size(), batch.cuK.size());
  if (!batch.qOffset.empty() && batch.qOffset.size() != batch.cuQ.size() - 1)
    return makeError("expected q_offset to have one entry for each of the {0} "
                     "sequences, got {1}",
                     batch.cuQ.size() - 1, batch.qOffset.size());
  if (options.ranks < 1 || options.ranks > kMaxRanks)
    return makeError("expected a number of ranks from 1 to {0}, got {1}",
                     kMaxRanks, options.ranks);
  if (options.multiple < 1 || options.multiple > kMaxSequence)
    return makeError("expected a multiple from 1 to {0} rows, got {1}",
                     kMaxSequence, options.multiple);
  if (!(options.rowCost >= 0) || !std::isfinite(options.rowCost))
    return makeError("expected a row_cost that is finite and not negative, "
                     "got {0}",
                     options.rowCost);
  if (!(options.slack >= 0) || !std::isfinite(options.slack))
    return makeError("expected a slack that is finite and not negative, got "
                     "{0}",
                     options.slack);
  return Error::success();
}

//===----------------------------------------------------------------------===//
// Units
//===----------------------------------------------------------------------===//

namespace {
/// The units of all sequences, one after the other.
class Units {
public:
  Units(const ContextParallelBatch &batch,
        const ContextParallelOptions &options);

  /// The chunks of a sequence are numbered from firstOf(s) to firstOf(s + 1).
  int64_t firstOf(int64_t sequence) const { return first[sequence]; }
  int64_t getNumSequences() const { return first.size() - 1; }
  double getWorkOf(int64_t sequence) const;

  /// Units of a sequence so that any that follow each other are, under a causal
  /// mask, as much work as others: the first, the last, the second, and so on.
  void appendFolded(int64_t sequence, SmallVectorImpl<int64_t> &order) const;

  SmallVector<double> work;
  SmallVector<int32_t> owner;

private:
  SmallVector<int64_t> first;
};
} // namespace

static SequenceMask getMask(const ContextParallelBatch &batch, int64_t s) {
  PositionBuilder b;
  return {b, batch.mask, batch.cuQ[s + 1] - batch.cuQ[s],
          batch.cuK[s + 1] - batch.cuK[s],
          batch.qOffset.empty() ? 0 : batch.qOffset[s]};
}

/// The keys, of `keys`, that some query of [first, end) sees.
static std::pair<int64_t, int64_t>
getKeysOf(const SequenceMask &mask, int64_t first, int64_t end, int64_t keys) {
  PositionBuilder b;
  MaskRange<Position> range = mask.getKeysOf(b, first, end - 1, keys);
  int64_t last = range.end.getNumber();
  return {std::min(range.begin.getNumber(), last), last};
}

Units::Units(const ContextParallelBatch &batch,
             const ContextParallelOptions &options) {
  first.push_back(0);
  double all = 0;
  for (int64_t s = 0, n = batch.cuQ.size() - 1; s < n; ++s) {
    int64_t rows = batch.cuQ[s + 1] - batch.cuQ[s];
    int64_t keys = batch.cuK[s + 1] - batch.cuK[s];
    SequenceMask mask = getMask(batch, s);
    for (int64_t begin = 0; begin < rows; begin += options.multiple) {
      int64_t end = std::min(begin + options.multiple, rows);
      double pairs = 0;
      for (int64_t row = begin; row < end; ++row) {
        auto [from, to] = getKeysOf(mask, row, row + 1, keys);
        pairs += static_cast<double>(to - from);
      }
      work.push_back(pairs +
                     options.rowCost * static_cast<double>(end - begin));
      all += work.back();
    }
    first.push_back(work.size());
  }
  // Where nothing is to be computed, rows are shared out.
  if (all == 0)
    llvm::fill(work, 1);
  owner.resize(work.size());
}

double Units::getWorkOf(int64_t sequence) const {
  double sum = 0;
  for (int64_t i = firstOf(sequence); i < firstOf(sequence + 1); ++i)
    sum += work[i];
  return sum;
}

void Units::appendFolded(int64_t sequence,
                         SmallVectorImpl<int64_t> &order) const {
  int64_t front = firstOf(sequence), back = firstOf(sequence + 1) - 1;
  while (front < back) {
    order.push_back(front++);
    order.push_back(back--);
  }
  if (front == back)
    order.push_back(front);
}

//===----------------------------------------------------------------------===//
// Layouts
//===----------------------------------------------------------------------===//

namespace {
/// What a rank may still take.
struct Room {
  int32_t rank;
  double work;
};
} // namespace

/// Gives units, in that order, to ranks in that order. A unit goes to the rank
/// in whose room its middle is.
static void fill(Units &units, ArrayRef<int64_t> order, ArrayRef<Room> rooms) {
  double done = 0, bound = rooms.front().work;
  for (int64_t unit : order) {
    double middle = done + units.work[unit] / 2;
    while (rooms.size() > 1 && middle >= bound) {
      rooms = rooms.drop_front();
      bound += rooms.front().work;
    }
    units.owner[unit] = rooms.front().rank;
    done += units.work[unit];
  }
}

/// Gives whole sequences to ranks, longest first and each to the rank with
/// least work, as long as no rank has more than `most`. Returns the others, and
/// what each rank has.
static SmallVector<int64_t> placeWhole(Units &units, double most,
                                       MutableArrayRef<Room> ranks) {
  SmallVector<std::pair<double, int64_t>> sequences;
  for (int64_t s : llvm::seq(units.getNumSequences()))
    if (units.firstOf(s) < units.firstOf(s + 1))
      sequences.push_back({-units.getWorkOf(s), s});
  llvm::sort(sequences);
  // A heap with the least work on top.
  auto isAfter = [](const Room &a, const Room &b) {
    return std::pair(a.work, a.rank) > std::pair(b.work, b.rank);
  };
  std::make_heap(ranks.begin(), ranks.end(), isAfter);
  SmallVector<int64_t> others;
  for (auto [minusWork, s] : sequences) {
    double work = -minusWork;
    if (ranks.front().work + work > most) {
      others.push_back(s);
      continue;
    }
    std::pop_heap(ranks.begin(), ranks.end(), isAfter);
    Room &least = ranks.back();
    std::fill(units.owner.begin() + units.firstOf(s),
              units.owner.begin() + units.firstOf(s + 1), least.rank);
    least.work += work;
    std::push_heap(ranks.begin(), ranks.end(), isAfter);
  }
  return others;
}

/// The rooms that are left below a level, which is as high as it has to be for
/// `rest`; those with most room first.
static SmallVector<Room> getRooms(MutableArrayRef<Room> ranks, double rest) {
  llvm::sort(ranks, [](const Room &a, const Room &b) {
    return std::pair(a.work, a.rank) < std::pair(b.work, b.rank);
  });
  double sum = rest, level = 0;
  size_t count = 0;
  // A rank counts if the level of those before it is above what it has.
  do {
    sum += ranks[count].work;
    level = sum / static_cast<double>(++count);
  } while (count < ranks.size() && ranks[count].work < level);
  SmallVector<Room> rooms;
  for (const Room &room : ranks.take_front(count))
    rooms.push_back({room.rank, level - room.work});
  return rooms;
}

static void assignOwners(Units &units, const ContextParallelOptions &options) {
  double all = 0;
  for (double work : units.work)
    all += work;
  double share = all / static_cast<double>(options.ranks);
  SmallVector<Room> ranks;
  for (int32_t rank : llvm::seq(static_cast<int32_t>(options.ranks)))
    ranks.push_back({rank, share});

  SmallVector<int64_t> order;
  switch (options.layout) {
  case ContextParallelLayout::Contiguous:
    llvm::append_range(order, llvm::seq<int64_t>(0, units.work.size()));
    return fill(units, order, ranks);
  case ContextParallelLayout::Zigzag:
    for (int64_t s : llvm::seq(units.getNumSequences()))
      units.appendFolded(s, order);
    return fill(units, order, ranks);
  case ContextParallelLayout::Documents:
    for (Room &rank : ranks)
      rank.work = 0;
    double rest = 0;
    for (int64_t s : placeWhole(units, share * (1 + options.slack), ranks)) {
      rest += units.getWorkOf(s);
      units.appendFolded(s, order);
    }
    return fill(units, order, getRooms(ranks, rest));
  }
}

//===----------------------------------------------------------------------===//
// Chunks
//===----------------------------------------------------------------------===//

static ContextParallelChunk makeChunk(const ContextParallelBatch &batch,
                                      int64_t s, int64_t begin, int64_t end) {
  int64_t rows = batch.cuQ[s + 1] - batch.cuQ[s];
  int64_t keys = batch.cuK[s + 1] - batch.cuK[s];
  ContextParallelChunk chunk = {s, begin, end, 0, keys, 0, 0, 0, 0, 0, 0};
  if (rows == 0)
    return chunk;
  // As far into the keys as into the queries. Lengths have 30 bits.
  chunk.ownKeyBegin = begin * keys / rows;
  chunk.ownKeyEnd = end * keys / rows;
  SequenceMask mask = getMask(batch, s);
  std::tie(chunk.keyBegin, chunk.keyEnd) = getKeysOf(mask, begin, end, keys);
  if (chunk.ownKeyBegin < chunk.ownKeyEnd) {
    PositionBuilder b;
    MaskRange<Position> range =
        mask.getQueriesOf(b, chunk.ownKeyBegin, chunk.ownKeyEnd - 1, rows);
    chunk.queryEnd = range.end.getNumber();
    chunk.queryBegin = std::min(range.begin.getNumber(), chunk.queryEnd);
  }
  for (int64_t row = begin; row < end; ++row) {
    auto [from, to] = getKeysOf(mask, row, row + 1, keys);
    chunk.pairs += to - from;
  }
  // Of row `begin`, among the keys from keyBegin on; less where the mask puts
  // the first row of a sequence by itself.
  // Beyond `far` it changes nothing, and sums would overflow.
  constexpr int64_t far = int64_t(1) << 40;
  int64_t offset =
      batch.qOffset.empty() ? 0 : std::clamp(batch.qOffset[s], -far, far);
  int64_t shift = 0, ownShift = 0;
  if (batch.mask.getAlignment() == Alignment::BottomRight) {
    shift = keys - rows;
    ownShift = (chunk.keyEnd - chunk.keyBegin) - (end - begin);
  }
  chunk.qOffset = offset + begin + shift - chunk.keyBegin - ownShift;
  return chunk;
}

llvm::Expected<ContextParallelPlan>
varlen::planContextParallel(const ContextParallelBatch &batch,
                            const ContextParallelOptions &options) {
  if (Error error = check(batch, options))
    return std::move(error);
  Units units(batch, options);
  assignOwners(units, options);
  ContextParallelPlan plan(options.ranks);
  for (int64_t s : llvm::seq(units.getNumSequences())) {
    int64_t first = units.firstOf(s), last = units.firstOf(s + 1);
    if (first == last && batch.cuK[s] < batch.cuK[s + 1])
      plan[s % options.ranks].push_back(makeChunk(batch, s, 0, 0));
    for (int64_t unit = first, next; unit < last; unit = next) {
      next = unit + 1;
      while (next < last && units.owner[next] == units.owner[unit])
        ++next;
      int64_t begin = (unit - first) * options.multiple;
      int64_t end = std::min((next - first) * options.multiple,
                             batch.cuQ[s + 1] - batch.cuQ[s]);
      plan[units.owner[unit]].push_back(makeChunk(batch, s, begin, end));
    }
  }
  return plan;
}

ContextParallelPlan varlen::withMask(const ContextParallelBatch &batch,
                                     const ContextParallelPlan &plan) {
  ContextParallelPlan result(plan);
  for (auto &chunks : result)
    for (ContextParallelChunk &chunk : chunks)
      chunk = makeChunk(batch, chunk.sequence, chunk.begin, chunk.end);
  return result;
}
