//===- MaskWindow.cpp - What a mask leaves of a sequence ------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "varlen/Dialect/Varlen/Utils/MaskWindow.h"

#include "varlen/Runtime/Runtime.h"

#include <algorithm>
#include <limits>

using namespace mlir;
using namespace mlir::varlen;

/// offset + bound, saturated.
static Value emitDistance(IndexBuilder &index, Value offset, int64_t bound) {
  constexpr int64_t far = VARLEN_FAR_POSITION;
  if (!offset)
    return index.constant(std::clamp(bound, -far, far));
  using Limits = std::numeric_limits<int64_t>;
  // Where the sum would wrap around, the nearest one that does not is taken.
  offset = bound < 0 ? index.max(offset, index.constant(Limits::min() - bound))
                     : index.min(offset, index.constant(Limits::max() - bound));
  return index.max(
      index.min(index.add(offset, index.constant(bound)), index.constant(far)),
      index.constant(-far));
}

MaskWindow varlen::emitMaskWindow(IndexBuilder &index, MaskAttr mask,
                                  Value queries, Value keys, Value offset) {
  Value diagonal = index.constant(0);
  if (mask.getAlignment() == Alignment::BottomRight)
    diagonal = index.sub(keys, queries);
  MaskWindow window;
  if (mask.getLeft() >= 0)
    window.begin =
        index.add(diagonal, emitDistance(index, offset, -mask.getLeft()));
  if (mask.getRight() >= 0)
    window.end = index.add(
        index.add(diagonal, emitDistance(index, offset, mask.getRight())), 1);
  return window;
}

MaskRange varlen::emitKeysOf(IndexBuilder &index, const MaskWindow &window,
                             Value first, Value last, Value keys) {
  Value zero = index.constant(0);
  MaskRange range{zero, zero, keys, keys};
  auto begin = [&](Value query) {
    return index.max(index.add(query, window.begin), zero);
  };
  auto end = [&](Value query) {
    return index.min(index.max(index.add(query, window.end), zero), keys);
  };
  if (window.begin) {
    range.begin = begin(first);
    range.wholeBegin = begin(last);
  }
  if (window.end) {
    range.wholeEnd = end(first);
    range.end = end(last);
  }
  return range;
}

MaskRange varlen::emitQueriesOf(IndexBuilder &index, const MaskWindow &window,
                                Value first, Value last, Value queries) {
  Value zero = index.constant(0);
  MaskRange range{zero, zero, queries, queries};
  // Query i sees key j if i + begin <= j < i + end, so j - end < i <= j -
  // begin.
  auto past = [&](Value key, Value side) {
    Value query = index.add(index.sub(key, side), 1);
    return index.min(index.max(query, zero), queries);
  };
  if (window.end) {
    range.begin = past(first, window.end);
    range.wholeBegin = past(last, window.end);
  }
  if (window.begin) {
    range.wholeEnd = past(first, window.begin);
    range.end = past(last, window.begin);
  }
  return range;
}
