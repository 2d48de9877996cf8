//===- CPUTiles.cpp - Tile sizes for CPUs from a table --------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "varlen/Target/Tiles.h"

using namespace mlir::varlen;

namespace {
/// What suits a CPU with this many vector registers of this size. The last row
/// that the target satisfies is taken.
struct CPURow {
  int64_t vectorBytes, vectorRegisters;
  CPUTiles tiles;
};
} // namespace

// rows x vectors accumulators, `vectors` columns and one broadcast scalar fit
// the registers. A panel reuses a kv block too little, so the block is copied
// once for several panels.
static constexpr CPURow attnRows[] = {
    {16, 16, {3, 4, 8, 128}},
    {16, 32, {4, 4, 6, 128}},
    {32, 16, {3, 4, 16, 128}},
    {64, 32, {2, 8, 24, 256}},
};

// The gradients of a kv block are summed over panels one at a time, from copies
// of everything; tiles of gradients are as wide as head_dim, so `vectors`
// divides the usual ones. The size of the registers makes no difference.
static constexpr CPURow gradRows[] = {
    {16, 16, {3, 4, 1, 128}},
    {16, 32, {4, 4, 1, 128}},
};

CPUTiles mlir::varlen::getCPUTiles(const CPUTarget &cpu, bool ofGradients) {
  llvm::ArrayRef<CPURow> table(attnRows);
  if (ofGradients)
    table = gradRows;
  const CPURow *row = &table[0];
  for (const CPURow &candidate : table)
    if (candidate.vectorBytes <= cpu.vectorBytes &&
        candidate.vectorRegisters <= cpu.vectorRegisters)
      row = &candidate;
  return row->tiles;
}

ContractionTile mlir::varlen::getContractionTile(const CPUTarget &cpu) {
  if (cpu.vectorRegisters >= 32)
    return {/*rows=*/8, /*vectors=*/2, /*blockRows=*/96, /*depth=*/256};
  return {/*rows=*/6, /*vectors=*/2, /*blockRows=*/96, /*depth=*/256};
}

ContractionTile mlir::varlen::getContractionTileInPlace(const CPUTarget &cpu) {
  // Half the registers are sums, as much of a row as there is room for.
  ContractionTile tile = getContractionTile(cpu);
  tile.rows = 2;
  tile.vectors = cpu.vectorRegisters / (2 * tile.rows);
  return tile;
}

ContractionTile
mlir::varlen::getContractionTileTransposed(const CPUTarget &cpu) {
  // Half the registers are a square. 4 rows take a fourth longer than one, for
  // transposing takes most of the time.
  ContractionTile tile = getContractionTile(cpu);
  tile.rows = 4;
  tile.vectors = 1;
  return tile;
}
