//===- GPUTiles.cpp - Tile sizes for GPUs from a table --------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "varlen/Dialect/Kernel/IR/SharedTile.h"
#include "varlen/Target/Tiles.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>

using namespace mlir::varlen;

namespace {
/// What suits head sizes up to `headDim` and masks with up to `maskBounds`
/// bounds. The first row that fits those and the shared memory of the target is
/// taken.
struct GPURow {
  int64_t headDim, maskBounds;
  GPUTiles tiles;
};
} // namespace

/// Of keys, with a kernel each for dk and dv.
static constexpr GPUTiles apart(GPUTiles tiles) {
  tiles.apart = true;
  return tiles;
}

/// That rescale their accumulators where a maximum grows by a factor of 256 or
/// more, which few do behind the first blocks of a row.
static constexpr GPUTiles keepMaximum(GPUTiles tiles) {
  tiles.rescaleThreshold = 8;
  return tiles;
}

/// That compute the gradient of p beside p.
static constexpr GPUTiles scoresFirst(GPUTiles tiles) {
  tiles.scoresFirst = 1;
  return tiles;
}

/// That share the keys of few queries in parts of so many blocks.
static constexpr GPUTiles inParts(GPUTiles tiles, int64_t blocks) {
  tiles.fewPart = blocks;
  return tiles;
}

//===----------------------------------------------------------------------===//
// Tables
//===----------------------------------------------------------------------===//

// None of these spills at the sizes of test/Integration/gpu-schedules.py. Of
// all multiples of 8 with four masks a few do, 4 to 104 bytes: f32 at 56, 176
// and 240, and gradients of 16 bits with a window where head_dim is no multiple
// of 16. f32 takes three planes of shared memory for a tile, six products for
// one and registers for all of these.

// Two 16-row tiles to a warp read each operand B once for both, where the
// accumulators leave registers for that.
static constexpr GPURow attnTable[] = {
    {64, 1, {4, 128, 64, 2, 2}},  {64, 2, {4, 128, 48, 2, 2}},
    {64, 2, {4, 64, 32, 2, 2}},   {128, 2, {4, 64, 64, 2, 2}},
    {128, 2, {4, 64, 32, 2, 1}},  {256, 2, {8, 128, 32, 2, 1}},
    {256, 2, {8, 128, 16, 2, 1}}, {256, 2, {4, 64, 16, 2, 1}},
};
static constexpr GPURow attnTableF32[] = {
    {64, 2, {4, 64, 32, 2, 2}},  {128, 2, {4, 64, 32, 2, 1}},
    {128, 2, {4, 64, 16, 2, 1}}, {192, 2, {4, 64, 16, 2, 1}},
    {256, 2, {2, 32, 16, 2, 1}}, {256, 2, {1, 16, 16, 2, 1}},
};

// Tangents take as much of shared memory and of registers as what they are of:
// a warp has 16 queries, whose sums leave room for scores up to a head_dim of
// 128, and for three planes of f32 up to 48.
static constexpr GPURow tangentTable[] = {
    {64, 1, {4, 64, 64, 2, 2}},   {64, 2, {4, 64, 32, 2, 2}},
    {128, 1, {8, 128, 32, 2, 1}}, {128, 2, {8, 128, 16, 2, 1}},
    {128, 2, {4, 64, 16, 2, 1}},
};
static constexpr GPURow tangentTableF32[] = {{48, 2, {4, 64, 16, 2, 1}}};

// Of quantised keys. The scales of a block take as many registers as its
// columns of a score tile.
static constexpr GPURow attnTableQuantised[] = {
    {64, 1, {4, 64, 48, 2, 2}},   {64, 2, {4, 64, 32, 2, 2}},
    {128, 2, {4, 64, 32, 2, 2}},  {256, 2, {8, 128, 32, 2, 1}},
    {256, 2, {8, 128, 16, 2, 1}}, {256, 2, {4, 64, 16, 2, 1}},
};

// A tile has its queries and their dout in shared memory.
static constexpr GPURow dqTable[] = {
    {64, 2, {4, 64, 64, 2, 2}},  {128, 1, {4, 64, 32, 2, 2}},
    {128, 2, {4, 64, 16, 2, 2}}, {256, 2, {8, 128, 16, 2, 1}},
    {256, 2, {4, 64, 16, 2, 1}},
};
static constexpr GPURow dqTableF32[] = {
    {64, 1, {4, 64, 32, 2, 1}},  {64, 2, {4, 64, 16, 2, 1}},
    {128, 1, {4, 64, 16, 2, 1}}, {128, 2, {2, 32, 16, 2, 1}},
    {256, 2, {2, 32, 16, 2, 1}}, {256, 2, {1, 16, 16, 2, 1}},
};

// A tile has its keys and values in shared memory, and dk and dv in registers
// where both fit.
static constexpr GPURow dkTable[] = {
    {64, 1, {4, 64, 64, 2, 2}},          {64, 2, {4, 32, 64, 2, 2}},
    {128, 0, {4, 32, 64, 2, 2}},         {128, 2, {4, 16, 64, 2, 2}},
    {256, 2, apart({8, 16, 128, 2, 1})}, {256, 2, apart({4, 16, 64, 2, 1})},
};
static constexpr GPURow dkTableF32[] = {
    {64, 2, {4, 16, 64, 2, 1}},         {128, 2, apart({4, 16, 64, 2, 1})},
    {192, 2, apart({2, 16, 32, 2, 1})}, {256, 2, apart({2, 16, 32, 2, 1})},
    {256, 2, apart({1, 16, 16, 2, 1})},
};

// Gradients of tangents have four tiles of scores beside their sums, and the
// rows of four operands in shared memory. The smaller blocks are for scores
// that look up or read which keys are visible, at whatever bounds.
static constexpr GPURow tangentDqTable[] = {
    {64, 1, {4, 64, 32, 2, 2}},
    {64, 2, {4, 64, 16, 2, 2}},
    {128, 2, {8, 128, 16, 2, 1}},
    {128, 2, {4, 64, 16, 2, 1}},
};
static constexpr GPURow tangentDqTableF32[] = {{48, 2, {4, 64, 16, 2, 1}}};
static constexpr GPURow tangentDkTable[] = {
    {32, 1, {4, 32, 64, 2, 2}},          {64, 0, {4, 32, 64, 2, 2}},
    {64, 2, {4, 16, 64, 2, 2}},          {128, 1, {8, 16, 128, 2, 1}},
    {128, 2, apart({8, 16, 128, 2, 1})}, {128, 2, {4, 16, 64, 2, 1}},
};
static constexpr GPURow tangentDkTableF32[] = {{48, 2, {4, 16, 64, 2, 1}}};

// With wgmma a warpgroup of 4 warps has 64 rows, and reads each operand B once.
// Three warpgroups that share keys read a third of what three CTAs do, and are
// as fast only with slack. At head_dim 256 each instruction for scores reads
// more of its queries than of its keys: large blocks, for which rings of their
// own leave room. Tiles of 192 rows waste too much beside a window, and at the
// diagonal of short sequences with head_dim 64.
static constexpr GPURow attnTableWgmma[] = {
    {64, 0, {12, 192, 128, 3, 1, 1}},
    {64, 1, {4, 64, 128, 2, 3}},
    {64, 2, {4, 64, 64, 2, 4}},
    {128, 1, keepMaximum({12, 192, 96, 3, 1, 1, 1})},
    {128, 2, {4, 64, 48, 2, 3}},
    {256, 1, keepMaximum({8, 128, 80, 2, 1, 0, 0, 2})},
    {256, 2, {4, 64, 32, 2, 2}},
};
static constexpr GPURow tangentTableWgmma[] = {
    {64, 1, {4, 64, 64, 2, 2}},      {64, 2, {4, 64, 32, 2, 2}},
    {128, 0, {8, 128, 48, 3, 1, 1}}, {128, 1, {8, 128, 48, 2, 1}},
    {128, 2, {4, 64, 16, 2, 2}},
};
static constexpr GPURow tangentDqTableWgmma[] = {
    {64, 1, {4, 64, 64, 2, 2}},
    {64, 2, {4, 64, 32, 2, 2}},
    {128, 1, {8, 128, 48, 2, 1}},
    {128, 2, {8, 128, 16, 2, 1}},
};
static constexpr GPURow tangentDkTableWgmma[] = {
    {64, 1, {4, 32, 64, 2, 2}},
    {64, 2, {4, 16, 64, 2, 2}},
    {128, 1, {8, 16, 128, 2, 1}},
    {128, 2, apart({8, 16, 128, 2, 1})},
};
// Caches are quantised for decoding, where bytes are on their way for two
// blocks ahead.
static constexpr GPURow attnTableQuantisedWgmma[] = {
    {64, 2, inParts({4, 64, 64, 3, 2}, 16)},
    {128, 1, inParts({4, 64, 64, 3, 2}, 16)},
    {128, 2, inParts({4, 64, 48, 2, 2}, 21)},
    {256, 2, inParts({4, 64, 32, 2, 1}, 32)},
    {256, 2, inParts({4, 64, 16, 2, 1}, 64)},
};
static constexpr GPURow dqTableWgmma[] = {
    {64, 2, {4, 64, 64, 2, 3}},
    {128, 2, {4, 64, 64, 2, 2}},
    {256, 2, {8, 128, 32, 2, 1, 0, 0, 2}},
};
static constexpr GPURow dkTableWgmma[] = {
    {64, 2, scoresFirst({4, 64, 64, 2, 2})},
    {128, 1, {4, 64, 64, 2, 2}},
    {128, 2, {4, 48, 64, 2, 2}},
    {256, 2, apart({8, 32, 128, 2, 1, 0, 0, 2})},
};

//===----------------------------------------------------------------------===//
// Choice
//===----------------------------------------------------------------------===//

static llvm::ArrayRef<GPURow> getTable(const GPUTarget &gpu,
                                       const GPUTileNeeds &needs) {
  auto choose = [&](llvm::ArrayRef<GPURow> f32, llvm::ArrayRef<GPURow> wgmma,
                    llvm::ArrayRef<GPURow> mma) {
    return needs.isF32 ? f32 : gpu.hasWgmma ? wgmma : mma;
  };
  switch (needs.owner) {
  case GPUTileOwner::Queries:
    if (needs.hasTangents)
      return choose(tangentTableF32, tangentTableWgmma, tangentTable);
    if (needs.isQuantised)
      return choose(attnTableF32, attnTableQuantisedWgmma, attnTableQuantised);
    return choose(attnTableF32, attnTableWgmma, attnTable);
  case GPUTileOwner::QueryGradients:
    if (needs.hasTangents)
      return choose(tangentDqTableF32, tangentDqTableWgmma, tangentDqTable);
    return choose(dqTableF32, dqTableWgmma, dqTable);
  case GPUTileOwner::KeyValueGradients:
  case GPUTileOwner::ValueGradients:
    if (needs.hasTangents)
      return choose(tangentDkTableF32, tangentDkTableWgmma, tangentDkTable);
    return choose(dkTableF32, dkTableWgmma, dkTable);
  }
  llvm_unreachable("an owner of none of these kinds");
}

int64_t mlir::varlen::getSharedBytes(const GPUTiles &tiles,
                                     const GPUTileNeeds &needs) {
  int64_t qk = llvm::alignTo(needs.headDim, kernel::kSlabColumns);
  int64_t v = llvm::alignTo(needs.valueHeadDim, kernel::kSlabColumns);
  int64_t bytes =
      2 * (needs.isF32 ? kernel::kPlanes : 1) * (needs.hasTangents ? 2 : 1);
  bool ofQueries = needs.owner == GPUTileOwner::Queries ||
                   needs.owner == GPUTileOwner::QueryGradients;
  int64_t tile = ofQueries ? tiles.blockM : tiles.kvBlock;
  int64_t block = ofQueries ? tiles.kvBlock : tiles.blockM;
  bool ofBoth = needs.owner == GPUTileOwner::QueryGradients ||
                needs.owner == GPUTileOwner::KeyValueGradients;
  int64_t columns = ofBoth ? qk + v : qk;
  // Tangents of keys and of values have rings of their own, too.
  int64_t rings = tiles.rings * (tiles.rings > 1 && needs.hasTangents ? 2 : 1);
  int64_t mbarriers = tiles.areWarpsApart()
                          ? rings * tiles.stages * kernel::kSlotMBarrierBytes
                          : 0;
  // The tile has a slot of its own then, with its number.
  int64_t item = tiles.producers > 0
                     ? kernel::kSlotMBarrierBytes + kernel::kTakenBytes
                     : 0;
  // One for each warp that makes one, behind the number of the item.
  int64_t map =
      tiles.maps > 0 ? (tiles.producers + 1) * kernel::kTensorMapBytes : 0;
  // All warps read it, as a factor of dq.
  int64_t staged = tiles.fiveProducts
                       ? tile * llvm::alignTo(block, kernel::kSlabColumns)
                       : 0;
  return bytes * (tile * columns + tiles.stages * block * (qk + v) + staged) +
         map + mbarriers + item + kernel::kTakenBytes;
}

std::optional<RoleRegisters>
mlir::varlen::getRoleRegisters(const GPUTiles &tiles) {
  // What copies of cp.async and the arithmetic of an item take, and the most
  // that a thread that multiplies can use.
  constexpr int64_t kProducer = 32, kConsumer = 240;
  if (tiles.producers == 0 || tiles.producers % kernel::kWarpgroupWarps != 0 ||
      tiles.warps % kernel::kWarpgroupWarps != 0)
    return std::nullopt;
  int64_t warps = tiles.warps + tiles.producers;
  int64_t each = llvm::alignDown(kMultiprocessorRegisters /
                                     (tiles.ctas * warps * kernel::kWarpLanes),
                                 kernel::kRegisterUnit);
  if (each <= kProducer)
    return std::nullopt;
  int64_t left = each * warps - kProducer * tiles.producers;
  int64_t own = llvm::alignDown(left / tiles.warps, kernel::kRegisterUnit);
  return RoleRegisters{std::min(own, kConsumer), kProducer};
}

const GPUTiles *mlir::varlen::lookupGPUTiles(const GPUTarget &gpu,
                                             const GPUTileNeeds &needs) {
  int64_t headDim = std::max(needs.headDim, needs.valueHeadDim);
  llvm::ArrayRef<GPURow> table = getTable(gpu, needs);
  const GPURow *row = llvm::find_if(table, [&](const GPURow &candidate) {
    return headDim <= candidate.headDim &&
           needs.maskBounds <= candidate.maskBounds &&
           getSharedBytes(candidate.tiles, needs) <= gpu.sharedBytes;
  });
  return row == table.end() ? nullptr : &row->tiles;
}
