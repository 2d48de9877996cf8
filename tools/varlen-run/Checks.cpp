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
  std::optional<int64_t> getExtent(Extent extent) const {
    return attention.getExtent(extent, inputs);
  }
  const char *name(int64_t argument) const {
    return signature.arguments[argument].name.c_str();
  }
  /// That all arguments have the same extent, and that it is what types say.
  Error checkSame(Extent extent, const char *what) const;
  Error checkHeads() const;

  const Signature &signature;
  const Attention &attention;
  ArrayRef<Tensor> inputs;
};
} // namespace

Error Checker::checkSame(Extent extent, const char *what) const {
  const Attention::ExtentSource &source = attention[extent];
  auto size = [&](const ArgumentDim &of) {
    return inputs[of.argument].shape[of.dim];
  };
  for (const ArgumentDim &of : source.dims) {
    const ArgumentDim &first = source.dims.front();
    if (size(of) != size(first))
      return makeError("argument '%s' has %" PRId64 " %s and '%s' %" PRId64
                       ": expected the same number",
                       name(of.argument), size(of), what, name(first.argument),
                       size(first));
    if (size(of) != source.known.value_or(size(of)))
      return makeError("argument '%s' has %" PRId64 " %s: expected %" PRId64
                       ", as the attention's types have",
                       name(of.argument), size(of), what, *source.known);
  }
  return Error::success();
}

Error Checker::checkHeads() const {
  std::optional<int64_t> heads = getExtent(Extent::QueryHeads);
  std::optional<int64_t> kvHeads = getExtent(Extent::KvHeads);
  if (heads && kvHeads &&
      (*heads <= 0 || *kvHeads <= 0 || *heads % *kvHeads != 0))
    return makeError("an attention has %" PRId64 " query heads for %" PRId64
                     " kv heads: expected a multiple, and at least 1 of each",
                     *heads, *kvHeads);
  for (auto [extent, what] :
       {std::pair(Extent::HeadDim, "head"),
        std::pair(Extent::ValueHeadDim, "head of values")})
    if (std::optional<int64_t> size = getExtent(extent); size && *size <= 0)
      return makeError("an attention has %" PRId64
                       " elements in a %s: expected at least 1",
                       *size, what);
  return Error::success();
}

Error Checker::checkExtents() const {
  constexpr std::pair<Extent, const char *> meanings[] = {
      {Extent::QueryRows, "query rows"},
      {Extent::KeyRows, "key rows"},
      {Extent::QueryHeads, "query heads"},
      {Extent::KvHeads, "kv heads"},
      {Extent::HeadDim, "elements in a head"},
      {Extent::ValueHeadDim, "elements in a head of values"},
      {Extent::Pages, "pages"},
      {Extent::PageRows, "rows in a page"}};
  static_assert(std::size(meanings) == numExtents);
  for (auto [extent, what] : meanings)
    if (Error error = checkSame(extent, what))
      return error;
  return checkHeads();
}

Error Checker::checkSequences() const {
  const Attention &a = attention;
  std::optional<int64_t> queryRows = getExtent(Extent::QueryRows);
  std::optional<int64_t> keyRows = getExtent(Extent::KeyRows);
  for (int64_t list : {a.cuQ, a.cuK, a.usedQ, a.usedK, a.offset})
    if (list == Attention::Computed || !queryRows || !keyRows)
      return Error::success();
  auto data = [&](int64_t list) -> const void * {
    return list < 0 ? nullptr : inputs[list].data.get();
  };
  auto size = [&](int64_t list) {
    return list < 0 ? 0 : inputs[list].getNumElements();
  };
  // No head, no tiles: what is left are the runtime's checks.
  varlen_work_tile *tiles = nullptr;
  varlen_clear_error();
  int64_t count = varlen_work_tiles(
      data(a.cuQ), size(a.cuQ), data(a.cuK), size(a.cuK), data(a.usedQ),
      size(a.usedQ), data(a.usedK), size(a.usedK), data(a.offset),
      size(a.offset), static_cast<int32_t>(getBytes(inputs[a.cuQ].dtype)),
      *queryRows, *keyRows, /*kv_heads=*/0, /*group=*/0, /*block_m=*/1,
      /*mask=*/nullptr, &tiles);
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
