//===- Tiles.h - Which tiles suit a target ----------------------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Tables of tile sizes, as data beside the tables of targets. A schedule
// attribute is made of a row by varlen-assign-schedule, or by hand. Nothing
// here depends on IR.
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_TARGET_TILES_H
#define VARLEN_TARGET_TILES_H

#include "varlen/Target/CPUTarget.h"
#include "varlen/Target/GPUTarget.h"

#include "llvm/ADT/PointerUnion.h"

#include <optional>

namespace mlir::varlen {

/// A row of one of the two tables of targets.
using Target = llvm::PointerUnion<const CPUTarget *, const GPUTarget *>;

/// The most rows of a tile or a block in a schedule: far more than a cache
/// holds, and few enough for no size in bytes to overflow.
inline constexpr int64_t kMaxTileRows = 1 << 16;

/// The largest head_dim that is tiled. On a CPU copies of a row are unrolled,
/// and so are the columns of a tile of gradients: code for a larger head_dim
/// takes minutes to compile. On a GPU the accumulators of the smallest tile
/// fill the registers of a multiprocessor at this size.
inline constexpr int64_t kMaxHeadDim = 4096;

/// Row counts of score tiles on a CPU are multiples of this, so that
/// micro-kernels of any height have no remainder.
inline constexpr int64_t kRegisterBlock = 8;

/// Tile sizes on a CPU; the parameters of `#varlen.cpu_schedule`.
struct CPUTiles {
  int64_t vectors, rows, panels, kvBlock;
};

/// kv blocks of a part of the keys on a CPU: reading them takes so long that a
/// thread may begin, and its state be merged, for nothing. The state of panels
/// is larger than that of few queries.
inline constexpr int64_t kPartBlocks = 16, kFewPartBlocks = 8;

/// The most blocks of a part: their rows are counted without overflow.
inline constexpr int64_t kMaxPartBlocks = 1 << 16;

/// The tiles that suit the vector registers of a CPU.
CPUTiles getCPUTiles(const CPUTarget &cpu, bool ofGradients);

/// Tile sizes of a contraction on a CPU.
struct ContractionTile {
  /// Rows and vectors of columns of a result that registers hold.
  int64_t rows, vectors;
  /// Rows of a result that a thread computes at a time, and how much of the
  /// contracted loop: what it reads of the left factor stays in the
  /// second-level cache, and one panel of the right factor in the first.
  int64_t blockRows, depth;
};

/// The tiles that suit the vector registers of a CPU.
ContractionTile getContractionTile(const CPUTarget &cpu);

/// Those for a right factor that is not copied to panels: the left factor has
/// few rows, and each row of the right one may be on a page of its own.
ContractionTile getContractionTileInPlace(const CPUTarget &cpu);

/// Those for few rows and a right factor of which squares are transposed in
/// registers.
ContractionTile getContractionTileTransposed(const CPUTarget &cpu);

/// Tile sizes of one kernel on a GPU; the parameters of
/// `#varlen.gpu_schedule`.
struct GPUTiles {
  int64_t warps, blockM, kvBlock, stages, ctas,
      slack = 0, lag = 0, rings = 1, rescaleThreshold = 0, scoresFirst = 0,
      fewPart = 0, producers = 0, maps = 0, fiveProducts = 0;
  /// Of tiles of keys: whether dk and dv have a kernel each.
  bool apart = false;

  /// Whether warps of a CTA may compute different blocks.
  bool areWarpsApart() const { return slack > 0 || rings > 1 || producers > 0; }
};

/// Registers of a thread of warps that compute and of warps that only copy.
struct RoleRegisters {
  int64_t consumers, producers;
};

/// What `ctas` CTAs of these tiles leave for either, where warpgroups can give
/// registers to others; nothing if they have none to give.
std::optional<RoleRegisters> getRoleRegisters(const GPUTiles &tiles);

/// What the tiles of a kernel own.
enum class GPUTileOwner {
  Queries,           // out, with q in shared memory
  QueryGradients,    // dq, with q and dout
  KeyValueGradients, // dk, or dk and dv, with k and v
  ValueGradients     // dv, with k
};

/// What the tiles of a kernel depend on.
struct GPUTileNeeds {
  GPUTileOwner owner;
  int64_t headDim, valueHeadDim;
  /// Bounds of the mask, for each of which a tile keeps limits in registers, or
  /// as many as what a score keeps there counts for: 0 to 2.
  int64_t maskBounds;
  bool isF32;
  /// Whether tangents lie beside all rows in shared memory, and beside what is
  /// summed in registers.
  bool hasTangents = false;
  /// Keys and values pass through registers, and each key has two scales there.
  bool isQuantised = false;
};

/// Returns the bytes of shared memory that a CTA needs: for a tile and `stages`
/// blocks, with their columns padded to full shared tiles, for the mbarriers of
/// the blocks, and for the number of an item, twice if there are producers, to
/// make tensor maps in, and with five products for a block of the gradients of
/// scores.
int64_t getSharedBytes(const GPUTiles &tiles, const GPUTileNeeds &needs);

/// The tiles that suit; null if none fits in the shared memory of the chip.
const GPUTiles *lookupGPUTiles(const GPUTarget &gpu, const GPUTileNeeds &needs);

} // namespace mlir::varlen

#endif // VARLEN_TARGET_TILES_H
