//===- StepPanel.h - A step of a panel of queries on a CPU ------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Part of varlen-online-softmax. On a CPU the rows of a score tile are keys,
// and its columns a panel of queries. Scores are computed in register blocks of
// 8 keys, and only where some query sees a key: the limits of a step, which do
// not fall from one query to the next, are the bounds of loops.
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_DIALECT_VARLEN_TRANSFORMS_STEPPANEL_H
#define VARLEN_DIALECT_VARLEN_TRANSFORMS_STEPPANEL_H

#include "varlen/Dialect/Varlen/IR/Varlen.h"
#include "varlen/Dialect/Varlen/Utils/TileLoops.h"
#include "varlen/Support/ControlFlow.h"
#include "varlen/Support/IndexBuilder.h"

#include "mlir/IR/OwningOpRef.h"

namespace mlir::varlen {

class StepPanel {
public:
  /// Keys from one to before another, as rows of the score tile.
  struct KeyRange {
    Value begin, end;
  };
  /// `width` queries from `column` on, and the keys that some of them see.
  struct Queries {
    Value column;
    int64_t width;
    KeyRange keys;
  };
  /// Queries whose scores are computed together: one or two vectors.
  struct Group : Queries {
    SmallVector<Queries, 2> vectors;
  };
  /// 8 keys from `row` on, of which some query of `group` sees one.
  struct RegisterBlock {
    const Group &group;
    Value row;
  };

  /// `step` has keys as rows, limits and the keys that all of its queries see.
  template <typename Step>
  StepPanel(ImplicitLocOpBuilder &b, CPUScheduleAttr schedule, Step step,
            OpFoldResult numKeys)
      : b(b), index{b}, schedule(schedule), lo(step.getLo()), hi(step.getHi()),
        k0(step.getK0()), seenBegin(step.getSeenBegin()),
        seenEnd(step.getSeenEnd()),
        numKeys(getValueOrCreateConstantIndexOp(b, b.getLoc(), numKeys)),
        numQueries(step.getLo().getType().getDimSize(1)) {
    isAllSeen = index.both(index.lessEqual(seenBegin, index.constant(0)),
                           index.lessEqual(this->numKeys, seenEnd));
  }

  /// Whether the step is one of a panel in a function for a CPU.
  template <typename Step>
  static bool isPanel(Step step, CPUScheduleAttr schedule) {
    auto keys = cast<RankedTensorType>(step.getK().getType()).getDimSize(0);
    return schedule && step.getOrientation() == Orientation::KQ &&
           step.getSeenBegin() && !step.getLo().getType().isDynamicDim(1) &&
           (ShapedType::isDynamic(keys) || keys % kRegisterBlock == 0);
  }

  /// The keys that some of the `count` queries from `first` on see, rounded
  /// outwards to multiples.
  KeyRange getKeysOf(Value first, int64_t count,
                     int64_t multiple = kRegisterBlock);
  Value getLength(const KeyRange &range);

  /// The groups of all queries, one after the other: `body` takes and returns
  /// what is carried.
  Values forEachGroup(ValueRange state,
                      function_ref<Values(const Group &, ValueRange)> body);
  /// The same for the register blocks of all groups.
  Values forEachRegisterBlock(
      ValueRange state,
      function_ref<Values(const RegisterBlock &, ValueRange)> body);
  /// What `body` returns for the queries whose vectors see a key of a register
  /// block: the group, or one of its vectors.
  Values forSeeing(const RegisterBlock &at,
                   function_ref<Values(const Queries &)> body);
  /// Whether all queries see all keys of a register block.
  Value isSeen(const RegisterBlock &at);

  /// `step` on the numbers that it reads of those queries, and on the keys from
  /// `row` on. Rows and destinations are all of those of `step`.
  template <typename Step>
  OwningOpRef<Step> cut(Step step, const Queries &queries, Value row) {
    OwningOpRef<Step> part(cast<Step>(step->clone()));
    for (OpOperand *number : getNumbers(*part))
      number->set(sliceColumns(number->get(), queries));
    for (MutableOperandRange keys :
         {part->getK0Mutable(), part->getFirstKeyMutable()})
      for (OpOperand &key : keys)
        key.set(addKeys(key.get(), row));
    part->getSeenBeginMutable().clear();
    part->getSeenEndMutable().clear();
    return part;
  }

  // Products, in tiles of the result that registers have room for.

  /// Adds the products of rows of a score tile, keys, with `queries` to `sums`.
  Value addToKeys(Value scores, Value queries, Value sums);
  /// Adds the products of columns of a score tile with `keys` to `sums`.
  Value addToQueries(Value scores, Value keys, Value sums);
  /// `tile` with its rows replaced by what `body` returns for some of them of
  /// the columns of a group: 8, or the rest.
  Value forEachRows(Value tile, const Group &group,
                    function_ref<Value(Value row, Value part)> body);
  /// Adds the products of columns of `values`, from `row` on as many as `sum`
  /// has rows, with the scores of a group to `sum`: of each of two vectors the
  /// keys that it alone sees, and those between them of both at once.
  Value addGroup(const Group &group, Value values, Value row, Value scores,
                 Value sum);

  /// Where queries of a group are in it.
  Value getOffset(const Group &group, const Queries &queries) {
    return index.sub(queries.column, group.column);
  }

  /// Parts of tiles; the tile where that is all of it.
  Value slice(Value tile, ArrayRef<OpFoldResult> offsets,
              ArrayRef<OpFoldResult> sizes);
  Value sliceRows(Value tile, Value row, int64_t count = kRegisterBlock);
  Value sliceRows(Value tile, const Queries &queries) {
    return sliceRows(tile, queries.column, queries.width);
  }
  Value sliceColumns(Value tile, const Queries &queries);
  /// The part of a score tile that is of these queries and of the keys that
  /// some of them see, and a tile with that part in it.
  Value sliceSeen(Value scores, const Queries &queries);
  Value insertSeen(Value part, Value scores, const Queries &queries);
  /// The rows of a register block.
  Value sliceRegisterBlock(Value scores, Value row, const Queries &queries);
  /// The tile with a part of it replaced.
  Value insert(Value part, Value tile, ArrayRef<OpFoldResult> offsets);
  Value insertColumns(Value part, Value tile, const Queries &queries);

private:
  Value getLimit(Value limits, Value query);
  Value advance(Value query, Value limits, Value row);
  KeyRange round(Value begin, Value end, Value total, int64_t multiple);
  Value hideBounds(Value position);
  Value addKeys(Value key, Value row);
  /// A loop over `count` rows of a result, `height` at a time, then the rest:
  /// `body` takes and returns what is carried.
  Value forEachRow(int64_t count, int64_t height, Value state,
                   function_ref<Value(Value row, int64_t height, Value)> body);
  /// A loop over columns of sums, whose tiles are as wide as a panel if they
  /// are a multiple of that; `body` also takes the width and how many rows
  /// a tile has.
  Value forEachColumns(
      Value sums,
      function_ref<Value(Value column, int64_t width, int64_t height, Value)>
          body);
  /// Products are unrolled: depths are multiples of two steps of them.
  int64_t getDepthStep() {
    return schedule.getKv() == KVStorage::Pairs ? 4 : 2;
  }

  ImplicitLocOpBuilder &b;
  IndexBuilder index;
  CPUScheduleAttr schedule;
  Value lo, hi, k0, seenBegin, seenEnd, numKeys, isAllSeen;
  int64_t numQueries;
};

} // namespace mlir::varlen

#endif // VARLEN_DIALECT_VARLEN_TRANSFORMS_STEPPANEL_H
