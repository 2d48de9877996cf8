//===- Checks.cpp - Whether the inputs fit the attentions -----------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Checks.h"

#include "varlen/Runtime/Runtime.h"

#include "llvm/ADT/STLExtras.h"

#include <cinttypes>

using namespace varlen_run;
using llvm::ArrayRef;
using llvm::Error;

namespace {
/// Checks one attention.
class Checker {
public:
  Checker(const Signature &signature, const Attention &attention,
          ArrayRef<Tensor> inputs)
      : signature(signature), attention(attention), inputs(inputs) {}

  Error checkExtents() const;
  Error checkSequences() const;

private:
  /// The extent of an operand; none if it is not an argument.
  std::optional<int64_t> extent(int64_t operand, int dim) const {
    return operand < 0 ? std::nullopt
                       : std::optional(inputs[operand].shape[dim]);
  }
  const char *name(int64_t operand) const {
    return signature.arguments[operand].name.c_str();
  }
  /// Two extents that have to be the same. `what` is what they count.
  Error checkSame(int64_t a, int aDim, int64_t b, int bDim,
                  const char *what) const;
  Error checkHeads() const;

  const Signature &signature;
  const Attention &attention;
  ArrayRef<Tensor> inputs;
};
} // namespace

Error Checker::checkSame(int64_t a, int aDim, int64_t b, int bDim,
                         const char *what) const {
  std::optional<int64_t> first = extent(a, aDim), second = extent(b, bDim);
  if (!first || !second || *first == *second)
    return Error::success();
  return makeError("argument '%s' has %" PRId64 " %s and '%s' %" PRId64
                   ": expected the same number",
                   name(a), *first, what, name(b), *second);
}

Error Checker::checkHeads() const {
  std::optional<int64_t> heads = extent(attention.q, 1);
  std::optional<int64_t> kvHeads = extent(attention.k, 1);
  if (!heads || !kvHeads || (*kvHeads > 0 && *heads % *kvHeads == 0))
    return Error::success();
  return makeError("argument '%s' has %" PRId64 " heads: expected a multiple "
                   "of the %" PRId64 " of '%s', at least 1",
                   name(attention.q), *heads, *kvHeads, name(attention.k));
}

Error Checker::checkExtents() const {
  const Attention &a = attention;
  if (Error error = checkSame(a.v, 0, a.k, 0, "rows"))
    return error;
  if (Error error = checkSame(a.v, 1, a.k, 1, "heads"))
    return error;
  if (Error error = checkSame(a.q, 2, a.k, 2, "elements in a head"))
    return error;
  if (Error error = checkHeads())
    return error;
  if (a.sink < 0 || a.q < 0 || *extent(a.sink, 0) == *extent(a.q, 1))
    return Error::success();
  return makeError("argument '%s' has %" PRId64 " entries: expected one for "
                   "each of the %" PRId64 " heads of '%s'",
                   name(a.sink), *extent(a.sink, 0), *extent(a.q, 1),
                   name(a.q));
}

Error Checker::checkSequences() const {
  const Attention &a = attention;
  for (int64_t operand : {a.q, a.k, a.cuQ, a.cuK, a.usedQ, a.usedK, a.offset})
    if (operand == Attention::Computed)
      return Error::success();
  auto data = [&](int64_t operand) -> const void * {
    return operand < 0 ? nullptr : inputs[operand].data.get();
  };
  auto size = [&](int64_t operand) { return extent(operand, 0).value_or(0); };
  // No head, no tiles: what is left are the runtime's checks.
  varlen_work_tile *tiles = nullptr;
  varlen_clear_error();
  int64_t count = varlen_work_tiles(
      data(a.cuQ), size(a.cuQ), data(a.cuK), size(a.cuK), data(a.usedQ),
      size(a.usedQ), data(a.usedK), size(a.usedK), data(a.offset),
      size(a.offset), static_cast<int32_t>(getBytes(inputs[a.cuQ].dtype)),
      size(a.q), size(a.k), /*kv_heads=*/0, /*group=*/0, /*block_m=*/1, a.left,
      a.right, a.bottomRight, &tiles);
  varlen_free_tiles(tiles);
  if (count >= 0)
    return Error::success();
  return makeError(std::string(varlen_last_error()));
}

Error varlen_run::checkInputs(const Signature &signature,
                              ArrayRef<Tensor> inputs, bool deviceChecks) {
  for (const Attention &attention : signature.attentions) {
    Checker checker(signature, attention, inputs);
    if (Error error = checker.checkExtents())
      return error;
    if (deviceChecks)
      continue;
    if (Error error = checker.checkSequences())
      return error;
  }
  return Error::success();
}
