//===- Flops.cpp - The useful work of a run -------------------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Flops.h"

#include <algorithm>

using namespace varlen_run;
using llvm::ArrayRef;

/// The number of (query, key) pairs of one sequence that the mask lets through.
static double countPairs(const Attention &attention, int64_t lq, int64_t lk,
                         int64_t offset) {
  if (attention.left < 0 && attention.right < 0)
    return static_cast<double>(lq) * static_cast<double>(lk);
  double pairs = 0;
  // Offsets and bounds may be any integers.
  using Wide = __int128;
  Wide diagonal = Wide(attention.bottomRight ? lk - lq : 0) + offset;
  for (int64_t i = 0; i < lq; ++i) {
    Wide middle = i + diagonal;
    Wide begin =
        attention.left < 0 ? 0 : std::max<Wide>(middle - attention.left, 0);
    Wide end = attention.right < 0
                   ? lk
                   : std::min<Wide>(middle + attention.right + 1, lk);
    pairs += static_cast<double>(std::max<Wide>(end - begin, 0));
  }
  return pairs;
}

static std::optional<double> countFlops(const Attention &attention,
                                        ArrayRef<Tensor> inputs) {
  std::optional<int64_t> heads =
      attention.getExtent(Extent::QueryHeads, inputs);
  std::optional<int64_t> headDim = attention.getExtent(Extent::HeadDim, inputs);
  std::optional<int64_t> valueHeadDim =
      attention.getExtent(Extent::ValueHeadDim, inputs);
  if (!heads || !headDim || !valueHeadDim)
    return std::nullopt;
  auto input = [&](int64_t argument) {
    return argument < 0 ? nullptr : &inputs[argument];
  };
  const Tensor *cuQ = input(attention.cuQ), *cuK = input(attention.cuK);
  const Tensor *usedQ = input(attention.usedQ), *usedK = input(attention.usedK);
  const Tensor *offset = input(attention.offset);
  for (int64_t operand : {attention.cuQ, attention.cuK, attention.usedQ,
                          attention.usedK, attention.offset})
    if (operand == Attention::Computed)
      return std::nullopt;
  double pairs = 0;
  for (int64_t s = 0, n = cuQ->getNumElements() - 1; s < n; ++s) {
    auto length = [&](const Tensor &cu, const Tensor *used) {
      return used ? used->getInteger(s)
                  : cu.getInteger(s + 1) - cu.getInteger(s);
    };
    pairs += countPairs(attention, length(*cuQ, usedQ), length(*cuK, usedK),
                        offset ? offset->getInteger(s) : 0);
  }
  auto products =
      static_cast<double>(attention.headDimProducts * *headDim +
                          attention.valueHeadDimProducts * *valueHeadDim);
  return 2.0 * products * static_cast<double>(*heads) * pairs;
}

std::optional<double> varlen_run::countUsefulFlops(const Signature &signature,
                                                   ArrayRef<Tensor> inputs) {
  if (signature.attentions.empty())
    return std::nullopt;
  double sum = 0;
  for (const Attention &attention : signature.attentions) {
    std::optional<double> flops = countFlops(attention, inputs);
    if (!flops)
      return std::nullopt;
    sum += *flops;
  }
  return sum;
}
