//===- Matrix.cpp - ldmatrix, stmatrix ------------------------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "State.h"
#include "Warp.h"

#include <algorithm>
#include <cstring>

using namespace varlen::executor;

//===----------------------------------------------------------------------===//
// ldmatrix and stmatrix
//===----------------------------------------------------------------------===//

// Rows of tile i are those that lanes 8 i to 8 i + 7 name; its elements (row,
// 2 column and 2 column + 1) are in register i of lane 4 row + column, with
// rows and columns exchanged if it is transposed.

/// What a lane puts on the stage for varlen_sim_ldmatrix_batch.
namespace {
struct LoadOperands {
  void *const *rows;
  uint32_t *registers;
  const varlen_sim_matrix_load *loads;
  uint32_t count;
};
/// The same for stmatrix.
struct StoreOperands {
  uint32_t registers[4];
  void *row;
  uint32_t num;
  uint32_t transposed;
};
} // namespace
static_assert(sizeof(LoadOperands) <= sizeof(Warp::stage[0]), "fits a stage");
static_assert(sizeof(StoreOperands) <= sizeof(Warp::stage[0]), "fits a stage");

static LoadOperands &loadOf(Warp &warp, uint32_t lane) {
  return *reinterpret_cast<LoadOperands *>(warp.stage[lane]);
}
static StoreOperands &storeOf(Warp &warp, uint32_t lane) {
  return *reinterpret_cast<StoreOperands *>(warp.stage[lane]);
}

/// Rows in the same bank of 16 bytes take a cycle each, unless they are the
/// same row.
static uint32_t conflictsOf(void *const (&rows)[8]) {
  uint32_t banks = 0;
  for (void *row : rows)
    banks |= 1U << (reinterpret_cast<uint64_t>(row) >> 4 & 7);
  if (banks == 0xff)
    return 0;
  uint32_t inBank[8] = {}, worst = 1;
  for (uint32_t row = 0; row < 8; ++row)
    if (std::find(rows, rows + row, rows[row]) == rows + row)
      worst = std::max(
          worst, ++inBank[reinterpret_cast<uint64_t>(rows[row]) >> 4 & 7]);
  return worst - 1;
}

static void countConflicts(Warp &warp, void *const (&rows)[8], uint32_t site) {
  uint32_t conflicts = conflictsOf(rows);
  ++worker->stats.matrix_phases;
  worker->stats.matrix_conflicts += conflicts;
  if (BankRecorder *banks = warp.block->banks)
    banks->addMatrix(site, conflicts);
}

/// Whether the row that a lane names can be accessed; reports if not.
static bool checkRow(Warp &warp, uint32_t lane, void *row, uint32_t site,
                     bool store) {
  Thread &thread = *warp.threads[lane];
  // Reports are about the lane that gave the address.
  Thread *current = worker->current;
  worker->current = &thread;
  bool valid = false;
  if (reinterpret_cast<uint64_t>(row) & 15)
    report("misaligned", site,
           "%s row at an address that ends in 0x%x, wanted 16 bytes",
           store ? "stmatrix" : "ldmatrix",
           static_cast<uint32_t>(reinterpret_cast<uint64_t>(row) & 15));
  else
    valid = store ? writeShared(thread, row, 16, site)
                  : readShared(thread, row, 16, site);
  worker->current = current;
  return valid;
}

using Row = uint16_t __attribute__((vector_size(16)));
using FourWords = uint32_t __attribute__((vector_size(16)));

/// Three times the first and second halves of eight rows, one element of each
/// in turn.
static void transpose(Row (&rows)[8]) {
  for (uint32_t step = 0; step < 3; ++step) {
    Row next[8];
    for (uint32_t i = 0; i < 4; ++i) {
      next[2 * i] = __builtin_shufflevector(rows[i], rows[i + 4], 0, 8, 1, 9, 2,
                                            10, 3, 11);
      next[2 * i + 1] = __builtin_shufflevector(rows[i], rows[i + 4], 4, 12, 5,
                                                13, 6, 14, 7, 15);
    }
    memcpy(rows, next, sizeof(rows));
  }
}

/// The same for words: those of four tiles become those of four lanes.
static void transpose(FourWords (&words)[4]) {
  for (uint32_t step = 0; step < 2; ++step) {
    FourWords next[4];
    for (uint32_t i = 0; i < 2; ++i) {
      next[2 * i] = __builtin_shufflevector(words[i], words[i + 2], 0, 4, 1, 5);
      next[2 * i + 1] =
          __builtin_shufflevector(words[i], words[i + 2], 2, 6, 3, 7);
    }
    memcpy(words, next, sizeof(words));
  }
}

namespace {
/// A batch of loads by a warp, with what does not change in it.
class Loader {
public:
  explicit Loader(Warp &warp)
      : warp(warp), block(*warp.block), detector(worker->detector) {
    for (uint32_t lane = 0; lane < 32; ++lane) {
      rows[lane] = loadOf(warp, lane).rows;
      registers[lane] = loadOf(warp, lane).registers;
      if (detector)
        actors[lane] = actor(*warp.threads[lane]);
    }
  }
  void load(uint32_t index, const varlen_sim_matrix_load &load) const {
    if (load.num == 4)
      loadTiles<4>(index, load);
    else if (load.num == 2)
      loadTiles<2>(index, load);
    else
      loadTiles<1>(index, load);
  }

private:
  bool check(uint32_t lane, void *row, uint32_t site) const;
  template <uint32_t num>
  void loadTiles(uint32_t index, const varlen_sim_matrix_load &load) const;

  Warp &warp;
  Block &block;
  bool detector;
  void *const *rows[32];
  uint32_t *registers[32];
  Actor actors[32];
};
} // namespace

/// Most rows are in the own CTA's memory, with nothing to report. checkRow has
/// the others: a read that conflicts leaves the detector as it was.
[[gnu::always_inline]] inline bool Loader::check(uint32_t lane, void *row,
                                                 uint32_t site) const {
  uint64_t distance = reinterpret_cast<uint64_t>(row) -
                      reinterpret_cast<uint64_t>(block.shared);
  bool isOwn = (distance & 15) == 0 && distance < block.sharedBytes &&
               block.sharedBytes - distance >= 16;
  if (!isOwn || (detector && block.shadow.read(static_cast<uint32_t>(distance),
                                               16, actors[lane])))
    return checkRow(warp, lane, row, site, /*store=*/false);
  ++worker->stats.accesses;
  return true;
}

template <uint32_t num>
void Loader::loadTiles(uint32_t index,
                       const varlen_sim_matrix_load &load) const {
  Row tiles[num][8];
  for (uint32_t tile = 0; tile < num; ++tile) {
    void *at[8];
    for (uint32_t row = 0; row < 8; ++row)
      at[row] = rows[tile * 8 + row][index];
    countConflicts(warp, at, load.site);
    for (uint32_t row = 0; row < 8; ++row)
      if (check(tile * 8 + row, at[row], load.site))
        memcpy(&tiles[tile][row], at[row], 16);
      else
        memset(&tiles[tile][row], 0xff, 16);
    if (load.transposed)
      transpose(tiles[tile]);
  }
  // Four lanes have the words of a row.
  for (uint32_t row = 0; row < 8; ++row) {
    FourWords words[4] = {};
    for (uint32_t tile = 0; tile < num; ++tile)
      memcpy(&words[tile], &tiles[tile][row], 16);
    transpose(words);
    for (uint32_t i = 0; i < 4; ++i)
      memcpy(registers[4 * row + i] + 4 * index, &words[i], 4 * num);
  }
  if (warp.track)
    warp.track->add(Activity::Shared, "ldmatrix", load.site,
                    num * cost::matrixTile);
}

void varlen::executor::loadMatrix(Warp &warp) {
  const varlen_sim_matrix_load *loads = loadOf(warp, 0).loads;
  uint32_t count = loadOf(warp, 0).count;
  Loader loader(warp);
  for (uint32_t i = 0; i < count; ++i)
    loader.load(i, loads[i]);
}

void varlen::executor::storeMatrix(Warp &warp) {
  uint32_t num = storeOf(warp, 0).num, site = warp.threads[0]->site;
  bool transposed = storeOf(warp, 0).transposed;
  for (uint32_t tile = 0; tile < num; ++tile) {
    void *rows[8];
    for (uint32_t row = 0; row < 8; ++row)
      rows[row] = storeOf(warp, tile * 8 + row).row;
    countConflicts(warp, rows, site);
    uint16_t elements[8][8];
    for (uint32_t lane = 0; lane < 32; ++lane) {
      uint32_t row = lane / 4, column = 2 * (lane % 4);
      uint32_t value = storeOf(warp, lane).registers[tile];
      (transposed ? elements[column][row] : elements[row][column]) =
          static_cast<uint16_t>(value);
      (transposed ? elements[column + 1][row] : elements[row][column + 1]) =
          static_cast<uint16_t>(value >> 16);
    }
    for (uint32_t row = 0; row < 8; ++row)
      if (checkRow(warp, tile * 8 + row, rows[row], site, /*store=*/true))
        memcpy(rows[row], elements[row], 16);
  }
  if (warp.track)
    warp.track->add(Activity::Shared, "stmatrix", site, num * cost::matrixTile);
}

static bool checkNum(uint32_t num, uint32_t site) {
  if (num == 1 || num == 2 || num == 4)
    return true;
  report("unsupported", site, "%u matrices: wanted 1, 2 or 4", num);
  return false;
}

void varlen_sim_ldmatrix_batch(void *const *rows, void *registers,
                               const varlen_sim_matrix_load *loads,
                               uint32_t count) {
  for (uint32_t i = 0; i < count; ++i)
    if (!checkNum(loads[i].num, loads[i].site))
      return;
  Thread &self = *worker->current;
  loadOf(*self.warp, self.lane) = {rows, static_cast<uint32_t *>(registers),
                                   loads, count};
  collective(Collective::LdMatrix, ~0U, loads[0].site);
}

void varlen_sim_ldmatrix(void *row, uint32_t num, uint32_t transposed,
                         void *registers, uint32_t site) {
  varlen_sim_matrix_load load = {num, transposed, site};
  varlen_sim_ldmatrix_batch(&row, registers, &load, 1);
}

void varlen_sim_stmatrix(void *row, uint32_t num, uint32_t transposed,
                         const void *registers, uint32_t site) {
  Thread &self = *worker->current;
  if (!checkNum(num, site))
    return;
  StoreOperands &operands = storeOf(*self.warp, self.lane);
  operands.row = row;
  operands.num = num;
  operands.transposed = transposed;
  memcpy(operands.registers, registers, num * 4);
  collective(Collective::StMatrix, ~0U, site);
}
