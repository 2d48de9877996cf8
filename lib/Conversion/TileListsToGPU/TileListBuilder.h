//===- TileListBuilder.h - Kernels of the list of a batch ------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_LIB_CONVERSION_TILELISTSTOGPU_TILELISTBUILDER_H
#define VARLEN_LIB_CONVERSION_TILELISTSTOGPU_TILELISTBUILDER_H

#include "../KernelLaunch.h"
#include "../StatusRecord.h"

#include <limits>

namespace mlir::varlen {

/// The bounds of the keys of a sequence, as emitPackedRows; in pages, those
/// that its pages have room for, from 0 on.
PackedRows emitKeyRows(IndexBuilder &index, BatchOp batch, Value s);

/// Emits allocations and kernels that check cu_seqlens and seqused and make the
/// list of the tiles of a type: pairs of a query row and a head of the group,
/// with as much work as there are keys; or keys, with as much work as there are
/// queries; or with the work that weights tell. What is wrong with them goes
/// to the status record of the device (GPU.h); the host does not wait for it.
/// Every method emits at the builder's place.
class TileListBuilder {
public:
  /// At `op`, in whose place the list is.
  TileListBuilder(ImplicitLocOpBuilder &b, ListTilesOp op, BatchOp batch,
                  Value sequences)
      : b(b), index{b}, list(op), op(batch), group(batch.getGroup()),
        ofQueries(cast<TileType>(op.getTile()).getAxis() == Axis::Queries),
        size(cast<TileType>(op.getTile()).getSize()), parts(op.getKeyParts()),
        checked(op.getChecked()), hasWeights(!op.getWeights().empty()),
        tq(batch.getTq()), tk(batch.getTk()), sequences(sequences) {}

  /// What takes the place of the results. Fails, with an error at the batch, if
  /// a name of the runtime is taken.
  FailureOr<SmallVector<Value>> emit();

private:
  /// What the table has of each segment: its work, its number, and, behind it
  /// in its sorted run, how many tiles there are so far.
  enum Field { Work, Number, Tiles, NumFields };
  struct Sequence {
    PackedRows q, k;
    /// How long a tile takes: rows in use on the other side, without weights.
    /// And the tiles.
    Value work, tiles;
  };
  Sequence sequence(Value s);

  /// What the kernels of the list are called, but for a suffix.
  std::string getName();
  /// A launch of a kernel for the numbers from 0 to `extent`, a thread each.
  void emitThreads(const Twine &suffix, Value extent,
                   function_ref<void(Value)> body);
  /// The same with a warp each.
  void emitWarps(const Twine &suffix, Value extent,
                 function_ref<void(Value i, Value lane)> body);

  /// A number of the table, of the type of `at`.
  Value load(Value parity, Field field, Value at);
  void store(Value value, Value parity, Field field, Value at);
  /// Work of a sequence with an error, and more than that of any without.
  int64_t getFault();
  /// Stores an integer as one of the type of `memref`.
  void emitStore(Value value, Value memref, ValueRange at);

  /// Whether nothing of the batch may be read.
  Value emitIsBad();
  void emitSegments();
  void emitSegment(Value i);
  /// Sorts, with arithmetic on integers of `type`; the half of the table where
  /// the result is. `emitPass` emits a pass, in which each segment is merged
  /// and so many runs become one.
  Value emitSort(Type type, int64_t runs,
                 function_ref<void(function_ref<void(Value)>)> emitPass);
  /// Merges so many `runs` of `run` segments, in the half `from` of the table,
  /// to the other: the new place of segment `i`.
  void emitMerge(Value i, Value run, int64_t runs, Value from);
  /// The tile `i`, if there is one: by a thread, or with weights by a warp, of
  /// which this is `lane`.
  void emitTile(Value i, Value lane, Value sorted);

  /// Emits one kernel for a list of few segments, or one for each step.
  void emitInOneCTA();
  void emitInManyCTAs();

  // Checks, in BatchChecks.cpp.

  /// Whether each list has as many entries as there are sequences, and other
  /// extents agree. The host can tell.
  GPUFault checkExtents();
  /// What is wrong with the entries of sequence `s`, whose rows are these; only
  /// a kernel can tell.
  GPUFault checkEntries(Value s, const Sequence &sequence);
  /// Of keys in pages, a kernel that looks for entries of the block table that
  /// are used and are no pages, a warp for each sequence.
  void emitPages();
  /// The first of them that a lane comes across, every 32nd of `count` entries
  /// of sequence `s`; kNoColumn if there is none. An i32.
  Value emitStrayPage(Value s, Value count, Value lane);
  /// The fault of the one that was found of sequence `s`.
  GPUFault checkPages(Value s);
  /// Stores what is wrong, of which `segment` is the first instance.
  void emitFault(Value segment);

  // Weights, in TileListWeights.cpp.

  /// Where the tiles of a segment are among the weights of all, one after the
  /// other: there is room for one tile that is not whole in each segment.
  Value emitSlot(Value segment);
  void emitWeights();
  /// The work of a tile that there is, as the operation's region has it.
  Value emitWork(Value s, Value tile, Value kvHead);
  /// The entry of a tile of a kv head, if there is one in that place.
  void emitWeight(Value slot, Value kvHead, Value lane);
  /// How many of the tiles of a segment, so many, come before that one.
  Value emitRank(Value segment, Value tile, Value tiles, Value lane);

  ImplicitLocOpBuilder &b;
  IndexBuilder index;
  ListTilesOp list;
  BatchOp op;
  Value group;
  bool ofQueries;
  int64_t size;
  std::optional<KeyParts> parts;
  /// What the kernel of another list of the same batch found; null if none has
  /// looked. Tiles with weights have no parts.
  Value checked;
  bool hasWeights;
  Value tq, tk, sequences, status;
  /// Where the results of the operation are.
  struct {
    Value list, count, firstParts;
  } memory;
  /// What is wrong with extents. The host knows it, a kernel reports it.
  GPUFault extents;
  /// The sequences, and the rows past the last.
  Value segments;
  /// Two halves of NumFields x segments: what a pass reads, and what it writes.
  /// In shared memory, while the kernel of one CTA is emitted.
  Value table;
  /// The most tiles that there can be, and so many weights.
  Value bound, slots;
  /// Of keys in pages, for each sequence the first column of its row of the
  /// block table that is used and is no page, kNoColumn if all are.
  static constexpr int64_t kNoColumn = std::numeric_limits<int32_t>::max();
  Value strayPages;
};

} // namespace mlir::varlen

#endif // VARLEN_LIB_CONVERSION_TILELISTSTOGPU_TILELISTBUILDER_H
