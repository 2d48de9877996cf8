//===- Plan.cpp - Plans of context parallelism from C ---------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Status.h"
#include "varlen/Dialect/Varlen/Utils/ContextParallelPlan.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"

#include <string>
#include <vector>

using namespace mlir;
using namespace varlen_capi;

namespace {
struct Plan {
  std::vector<std::vector<VarlenPlanChunk>> ranks;
};
} // namespace

/// The mask of that text, or null with the first error in `error`.
static varlen::MaskAttrInterface
parseMask(const char *text, MLIRContext &context, std::string &error) {
  if (!text)
    return varlen::MaskAttr::getFull(&context);
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    if (error.empty())
      error = diagnostic.str();
    return success();
  });
  Attribute attribute = parseAttribute(text, &context);
  auto mask = dyn_cast_if_present<varlen::MaskAttrInterface>(attribute);
  if (attribute && !mask)
    error = "it is no mask";
  return mask;
}

static VarlenPlanChunk convert(const varlen::ContextParallelChunk &chunk) {
  return {chunk.sequence,  chunk.begin,    chunk.end,    chunk.ownKeyBegin,
          chunk.ownKeyEnd, chunk.keyBegin, chunk.keyEnd, chunk.queryBegin,
          chunk.queryEnd,  chunk.qOffset,  chunk.pairs};
}

VarlenStatus varlenPlanCreate(const int64_t *cuSeqlensQ,
                              const int64_t *cuSeqlensK, const int64_t *qOffset,
                              size_t numSequences, int64_t numRanks,
                              const VarlenPlanOptions *given,
                              VarlenPlan *plan) {
  if (!cuSeqlensQ || !cuSeqlensK || !plan)
    return fail(VARLEN_INVALID_ARGUMENT,
                "expected cu_seqlens_q, cu_seqlens_k and a place for the plan, "
                "got null");
  static constexpr VarlenPlanOptions defaults = VARLEN_PLAN_OPTIONS_INIT;
  VarlenPlanOptions read = given ? readOptions(given) : defaults;
  if (read.layout < VARLEN_DOCUMENTS || read.layout > VARLEN_ZIGZAG)
    return fail(VARLEN_INVALID_ARGUMENT,
                "expected a layout from 0 to %d, got %d", VARLEN_ZIGZAG,
                read.layout);
  MLIRContext context(MLIRContext::Threading::DISABLED);
  context.loadDialect<varlen::VarlenDialect>();
  std::string error;
  varlen::MaskAttrInterface mask = parseMask(read.mask, context, error);
  if (!mask)
    return fail(VARLEN_INVALID_ARGUMENT,
                "expected a mask, as '#varlen.mask<causal>', got '%s': %s",
                read.mask, error.c_str());
  varlen::ContextParallelOptions options;
  options.ranks = numRanks;
  options.layout = static_cast<varlen::ContextParallelLayout>(read.layout);
  options.multiple = read.multiple ? read.multiple : 1;
  options.rowCost = read.rowCost;
  options.slack = read.slack;
  varlen::ContextParallelBatch batch = {
      ArrayRef(cuSeqlensQ, numSequences + 1),
      ArrayRef(cuSeqlensK, numSequences + 1),
      ArrayRef(qOffset, qOffset ? numSequences : 0), mask};
  auto made = varlen::planContextParallel(batch, options);
  if (!made)
    return fail(VARLEN_BAD_DATA, "%s",
                llvm::toString(made.takeError()).c_str());
  auto *result = new Plan;
  for (ArrayRef<varlen::ContextParallelChunk> chunks : *made) {
    result->ranks.emplace_back();
    for (const varlen::ContextParallelChunk &chunk : chunks)
      result->ranks.back().push_back(convert(chunk));
  }
  plan->ptr = result;
  return VARLEN_OK;
}

void varlenPlanDestroy(VarlenPlan plan) {
  delete static_cast<Plan *>(plan.ptr);
}

const VarlenPlanChunk *varlenPlanGetChunks(VarlenPlan plan, int64_t rank,
                                           size_t *numChunks) {
  const auto &ranks = static_cast<const Plan *>(plan.ptr)->ranks;
  if (rank < 0 || rank >= static_cast<int64_t>(ranks.size()))
    return nullptr;
  *numChunks = ranks[rank].size();
  return ranks[rank].data();
}
