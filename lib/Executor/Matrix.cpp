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
static void countConflicts(Warp &warp, void *const (&rows)[8], uint32_t site) {
  uint32_t inBank[8] = {}, worst = 1;
  for (uint32_t row = 0; row < 8; ++row)
    if (std::find(rows, rows + row, rows[row]) == rows + row)
      worst = std::max(
          worst, ++inBank[reinterpret_cast<uint64_t>(rows[row]) >> 4 & 7]);
  ++worker->stats.matrix_phases;
  worker->stats.matrix_conflicts += worst - 1;
  if (BankRecorder *banks = warp.block->banks)
    banks->addMatrix(site, worst - 1);
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

/// The words of a tile by lane.
static void fromRows(const uint16_t (&rows)[8][8], bool transposed,
                     uint32_t (&words)[32]) {
  if (!transposed) {
    memcpy(words, rows, sizeof(words));
    return;
  }
  for (uint32_t row = 0; row < 8; ++row)
    for (uint32_t pair = 0; pair < 4; ++pair)
      words[4 * row + pair] = static_cast<uint32_t>(rows[2 * pair + 1][row])
                                  << 16 |
                              rows[2 * pair][row];
}

static void loadTiles(Warp &warp, uint32_t index,
                      const varlen_sim_matrix_load &load) {
  uint32_t words[4][32];
  for (uint32_t tile = 0; tile < load.num; ++tile) {
    void *rows[8];
    for (uint32_t row = 0; row < 8; ++row)
      rows[row] = loadOf(warp, tile * 8 + row).rows[index];
    countConflicts(warp, rows, load.site);
    uint16_t elements[8][8];
    for (uint32_t row = 0; row < 8; ++row)
      if (checkRow(warp, tile * 8 + row, rows[row], load.site, /*store=*/false))
        memcpy(elements[row], rows[row], 16);
      else
        memset(elements[row], 0xff, 16);
    fromRows(elements, load.transposed, words[tile]);
  }
  for (uint32_t lane = 0; lane < 32; ++lane)
    for (uint32_t tile = 0; tile < load.num; ++tile)
      loadOf(warp, lane).registers[4 * index + tile] = words[tile][lane];
  if (warp.track)
    warp.track->add(Activity::Shared, "ldmatrix", load.site,
                    load.num * cost::matrixTile);
}

void varlen::executor::loadMatrix(Warp &warp) {
  const LoadOperands &first = loadOf(warp, 0);
  for (uint32_t i = 0; i < first.count; ++i)
    loadTiles(warp, i, first.loads[i]);
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
