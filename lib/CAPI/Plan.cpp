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

#include <memory>
#include <string>
#include <vector>

using namespace mlir;
using namespace varlen_capi;

namespace {
/// A plan, and what it is for but the mask, which lives in a context.
struct Plan {
  std::vector<int64_t> cuQ, cuK, qOffset;
  varlen::ContextParallelPlan chunks;
  std::vector<std::vector<VarlenPlanChunk>> ranks;

  varlen::ContextParallelBatch getBatch(varlen::MaskAttrInterface mask) const {
    return {cuQ, cuK, qOffset, mask};
  }
};
} // namespace

/// The mask of that text; null, with a message for the caller, if it is of
/// none.
static varlen::MaskAttrInterface parseMask(const char *text,
                                           MLIRContext &context) {
  context.loadDialect<varlen::VarlenDialect>();
  if (!text)
    return varlen::MaskAttr::getFull(&context);
  std::string error = "it is no mask";
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    error = diagnostic.str();
    return success();
  });
  auto mask = dyn_cast_if_present<varlen::MaskAttrInterface>(
      parseAttribute(text, &context));
  if (!mask)
    fail(VARLEN_INVALID_ARGUMENT,
         "expected a mask, as '#varlen.mask<causal>', got '%s': %s", text,
         error.c_str());
  return mask;
}

static VarlenPlanChunk convert(const varlen::ContextParallelChunk &chunk) {
  return {chunk.sequence,  chunk.begin,    chunk.end,    chunk.ownKeyBegin,
          chunk.ownKeyEnd, chunk.keyBegin, chunk.keyEnd, chunk.queryBegin,
          chunk.queryEnd,  chunk.qOffset,  chunk.pairs};
}

static VarlenPlan finish(std::unique_ptr<Plan> plan) {
  plan->ranks.clear();
  for (ArrayRef<varlen::ContextParallelChunk> chunks : plan->chunks) {
    plan->ranks.emplace_back();
    for (const varlen::ContextParallelChunk &chunk : chunks)
      plan->ranks.back().push_back(convert(chunk));
  }
  return {plan.release()};
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
  varlen::MaskAttrInterface mask = parseMask(read.mask, context);
  if (!mask)
    return VARLEN_INVALID_ARGUMENT;
  varlen::ContextParallelOptions options;
  options.ranks = numRanks;
  options.layout = static_cast<varlen::ContextParallelLayout>(read.layout);
  options.multiple = read.multiple ? read.multiple : 1;
  options.rowCost = read.rowCost;
  options.slack = read.slack;
  auto result = std::make_unique<Plan>();
  result->cuQ.assign(cuSeqlensQ, cuSeqlensQ + numSequences + 1);
  result->cuK.assign(cuSeqlensK, cuSeqlensK + numSequences + 1);
  if (qOffset)
    result->qOffset.assign(qOffset, qOffset + numSequences);
  auto made = varlen::planContextParallel(result->getBatch(mask), options);
  if (!made)
    return fail(VARLEN_BAD_DATA, "%s",
                llvm::toString(made.takeError()).c_str());
  result->chunks = std::move(*made);
  *plan = finish(std::move(result));
  return VARLEN_OK;
}

VarlenStatus varlenPlanWithMask(VarlenPlan plan, const char *text,
                                VarlenPlan *other) {
  if (!plan.ptr || !other)
    return fail(VARLEN_INVALID_ARGUMENT,
                "expected a plan and a place for another one, got null");
  MLIRContext context(MLIRContext::Threading::DISABLED);
  varlen::MaskAttrInterface mask = parseMask(text, context);
  if (!mask)
    return VARLEN_INVALID_ARGUMENT;
  auto result = std::make_unique<Plan>(*static_cast<const Plan *>(plan.ptr));
  result->chunks = varlen::withMask(result->getBatch(mask), result->chunks);
  *other = finish(std::move(result));
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
