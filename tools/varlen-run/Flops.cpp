//===- Flops.cpp - The useful work of a run -------------------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Flops.h"

#include "varlen/Dialect/Varlen/Utils/SequenceMask.h"

using namespace varlen_run;
using llvm::ArrayRef;

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
    pairs += mlir::varlen::countVisiblePairs(
        attention.mask, length(*cuQ, usedQ), length(*cuK, usedK),
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
