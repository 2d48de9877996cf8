//===- AppendKernels.h - New rows of a cache, on a GPU ----------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_CONVERSION_VARLENTOKERNEL_APPENDKERNELS_H
#define VARLEN_CONVERSION_VARLENTOKERNEL_APPENDKERNELS_H

#include "../KernelLaunch.h"
#include "../StatusRecord.h"

#include <functional>
#include <limits>

namespace mlir::varlen {

/// Emits the kernels of a varlen.append on memrefs: first those that check
/// where rows go, then one that writes them, a warp for each row and head, if
/// nothing was found. What is wrong goes to the status record of the device
/// (GPU.h); the host does not wait for it. Every method emits at the builder's
/// place.
class AppendKernels {
public:
  explicit AppendKernels(AppendOp op);

  /// Replaces the operation. Fails, with an error at it, if it is in a kernel,
  /// or a name of the runtime is taken.
  LogicalResult emit();

private:
  /// A new row of a sequence that nothing is wrong with, and its place.
  struct NewRow {
    Value number, sequence, position;
    /// Which of the pages of the sequence, and which row of it.
    Value column, pageRow;
    /// Whether it is the first that goes to that page.
    Value isFirst;
  };

  /// A number of the row of a head, one of a lane's, which `visit` gets with
  /// its column: turned ones in the compute type, others as they are in memory.
  /// It returns what is carried to the next one.
  using Visit =
      function_ref<Values(Value number, Value column, ValueRange carried)>;
  /// Keys or values, the cache that they go to, its scales, or null, and how
  /// many pairs are turned.
  struct Target {
    Value packed, cache, scales;
    int64_t pairs;
  };

  std::string getName();
  /// For a new row whose numbers are in bounds of its sequence, of the lists
  /// and of the table, whatever these hold.
  void emitAtRow(Value row, function_ref<void(const NewRow &)> body);
  void emitWrites();
  void emitRow(const NewRow &row, Value head, Value lane);
  void emitHead(const Target &target, const NewRow &row, Value page, Value head,
                Value lane);
  ValueRange emitNumbers(const Target &target, const NewRow &row, Value head,
                         Value lane, ValueRange inits, Visit visit);

  // Checks, in AppendChecks.cpp.

  /// What the host knows.
  GPUFault checkExtents();
  /// What is wrong with entry `s` of the lists, of which N is the last.
  GPUFault checkSequence(Value s);
  void emitChecks();
  /// What one thread does in each of the phases, between which all threads
  /// wait, for the numbers from 0 to `bound`.
  SmallVector<std::function<void(Value)>> getPhases();
  /// For a row that is the first of a page: the key of its entry in the table,
  /// and the page, which may be none.
  void emitAtEntry(Value row, function_ref<void(Value key, Value page)> body);
  void emitNoteFault(Value key);
  Value isPage(Value page);
  /// Whether rows may be written, where the kernels of checks have run.
  Value emitIsGood();
  /// Reports what was found.
  void emitReport();

  AppendOp op;
  ImplicitLocOpBuilder b;
  IndexBuilder index;
  /// Extents, and how many rows a sequence has room for.
  Value rows, sequences, pages, pageRows, capacity;
  Value status;
  /// What is wrong with extents. The host knows it, a kernel reports it.
  GPUFault extents;
  /// memref<1xi64>: the key of the least fault that was found, kNone if there
  /// is none. A fault of a sequence has the key of the first entry of its row
  /// of the table, one of an entry the key of it, and one of an entry whose
  /// page another entry has, that and kSamePage.
  Value fault;
  /// memref<?xi64>: of each page the least key of the entries that write to it;
  /// null without a table.
  Value owners;
  static constexpr int64_t kSamePage = INT64_C(1) << 62;
  static constexpr int64_t kNone = std::numeric_limits<int64_t>::max();
};

} // namespace mlir::varlen

#endif // VARLEN_CONVERSION_VARLENTOKERNEL_APPENDKERNELS_H
