//===- MaskWindow.h - What a mask leaves of a sequence ----------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The one place where code is emitted for the bounds of a mask. A mask, the
// lengths of a sequence and its q_offset become a window relative to the
// position of a query; ranges of keys and of queries follow from that alone.
//
// Window bounds and offsets are any integers. Their sum saturates at
// VARLEN_FAR_POSITION, which lies beyond every row, so it is exact wherever a
// row can tell, and nothing that is computed from it overflows.
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_DIALECT_VARLEN_UTILS_MASKWINDOW_H
#define VARLEN_DIALECT_VARLEN_UTILS_MASKWINDOW_H

#include "varlen/Dialect/Varlen/IR/Varlen.h"
#include "varlen/Dialect/Varlen/Utils/IndexBuilder.h"

namespace mlir::varlen {

/// The query at position i of a sequence sees its keys from i + begin to before
/// i + end. A side that is open has no value.
struct MaskWindow {
  Value begin, end;
};

/// The window of a sequence with `queries` and `keys` rows in use and that
/// q_offset, which may be null.
MaskWindow emitMaskWindow(IndexBuilder &index, MaskAttr mask, Value queries,
                          Value keys, Value offset);

/// Rows of one side that those of a range of the other side meet: some of the
/// range meet [begin, end), all of it meet [wholeBegin, wholeEnd). `begin` and
/// `wholeBegin` may lie behind the last row.
struct MaskRange {
  Value begin, wholeBegin, wholeEnd, end;
};

/// The keys, of `keys`, that the queries at positions `first` to `last` see.
MaskRange emitKeysOf(IndexBuilder &index, const MaskWindow &window, Value first,
                     Value last, Value keys);
/// The queries, of `queries`, that see the keys `first` to `last`.
MaskRange emitQueriesOf(IndexBuilder &index, const MaskWindow &window,
                        Value first, Value last, Value queries);

} // namespace mlir::varlen

#endif // VARLEN_DIALECT_VARLEN_UTILS_MASKWINDOW_H
