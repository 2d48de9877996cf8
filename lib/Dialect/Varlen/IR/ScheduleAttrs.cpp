//===- ScheduleAttrs.cpp - What a schedule must satisfy -------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A verifier says what the attribute alone can say, `verifyFits` what depends
// on the attention, `verifyFitsTarget` what depends on the target, which
// varlen-assign-schedule names.
//
//===----------------------------------------------------------------------===//

#include "GPULimits.h"
#include "varlen/Dialect/Varlen/IR/Varlen.h"
#include "varlen/Dialect/Varlen/IR/VarlenScore.h"

#include "mlir/IR/Diagnostics.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::varlen;

#include "varlen/Dialect/Varlen/IR/VarlenAttrInterfaces.cpp.inc"

using EmitError = function_ref<InFlightDiagnostic()>;

/// Of any target that there is code for.
static constexpr int64_t kMaxVectorRegisters = 32;
/// A mask of the lanes of a vector is one integer.
static constexpr int64_t kMaxLanes = 64;
/// Shared memory of at most 256 KiB in blocks of 16 keys and 16 values of 16
/// elements of two bytes.
static constexpr int64_t kMaxStages = 256;

static LogicalResult verifyRange(EmitError error, StringRef name, int64_t value,
                                 int64_t least, int64_t most) {
  if (least <= value && value <= most)
    return success();
  return error() << "expected " << name << " from " << least << " to " << most
                 << ", got " << value;
}

static LogicalResult verifyMultiple(EmitError error, StringRef name,
                                    int64_t value, int64_t factor) {
  if (value % factor == 0)
    return success();
  return error() << "expected " << name << " to be a multiple of " << factor
                 << ", got " << value;
}

/// Head sizes are extents of tiles.
static LogicalResult verifyHeads(AttentionOpInterface op) {
  for (auto [name, size] : {std::pair("head_dim of q", op.getHeadDim()),
                            std::pair("head_dim of v", op.getValueHeadDim())}) {
    if (ShapedType::isDynamic(size))
      return op->emitOpError("expected a static ")
             << name << " with a schedule, got a dynamic one";
    if (size > kMaxHeadDim)
      return op->emitOpError("expected ")
             << name << " to be at most " << kMaxHeadDim
             << " with a schedule, got " << size;
  }
  if (op.hasDynamicHeadDim())
    return op->emitOpError("expected a static head_dim of every operand with a "
                           "schedule, got a dynamic one");
  return success();
}

/// The error of a schedule for another kind of target than that one.
static LogicalResult emitWrongKind(Operation *op, Attribute schedule,
                                   Target target) {
  return op->emitOpError("expected a schedule for a ")
         << (isa<const GPUTarget *>(target) ? "GPU" : "CPU") << ", got "
         << schedule;
}

//===----------------------------------------------------------------------===//
// CPUScheduleAttr
//===----------------------------------------------------------------------===//

// NOLINTBEGIN(readability-identifier-naming): keywords of the attribute
LogicalResult CPUScheduleAttr::verify(EmitError error, int64_t lanes,
                                      int64_t vectors, int64_t rows,
                                      int64_t panels, int64_t kv_block,
                                      KVStorage /*kv*/, int64_t part,
                                      int64_t few_part) {
  // NOLINTEND(readability-identifier-naming)
  // Vectors are transposed by exchanging halves.
  if (lanes < 1 || lanes > kMaxLanes || !llvm::isPowerOf2_64(lanes))
    return error() << "expected lanes to be a power of two from 1 to "
                   << kMaxLanes << ", got " << lanes;
  if (failed(verifyRange(error, "vectors", vectors, 1, kMaxVectorRegisters)))
    return failure();
  if (rows < 1 || kRegisterBlock % rows != 0)
    return error() << "expected rows to be 1, 2, 4 or 8, got " << rows;
  if (failed(verifyRange(error, "panels", panels, 1,
                         kMaxTileRows / (lanes * vectors))) ||
      failed(verifyRange(error, "kv_block", kv_block, kRegisterBlock,
                         kMaxTileRows)) ||
      failed(verifyMultiple(error, "kv_block", kv_block, kRegisterBlock)) ||
      failed(verifyRange(error, "part", part, 0, kMaxPartBlocks)) ||
      failed(verifyRange(error, "few_part", few_part, 0, kMaxPartBlocks)))
    return failure();
  if ((part == 0) != (few_part == 0))
    return error() << "expected part and few_part to be 0 both or neither, got "
                   << part << " and " << few_part;
  return success();
}

PartSizes CPUScheduleAttr::getPartSizes() const {
  return {getPart(), getFewPart()};
}

LogicalResult CPUScheduleAttr::verifyFits(Operation *operation) const {
  auto op = cast<AttentionOpInterface>(operation);
  if (failed(verifyHeads(op)))
    return failure();
  if (getKv() != KVStorage::Pairs)
    return success();
  if (!op.getElementType().isBF16())
    return op->emitOpError("expected elements of bf16 for kv = pairs, got ")
           << op.getElementType();
  auto error = [&] { return op->emitOpError(); };
  if (failed(verifyMultiple(error, "head_dim of q with kv = pairs",
                            op.getHeadDim(), 2)))
    return failure();
  // Values have their pairs across rows; a gradient multiplies them the other
  // way round, too.
  if (op.isGradient())
    return verifyMultiple(error, "head_dim of v with kv = pairs",
                          op.getValueHeadDim(), 2);
  return success();
}

LogicalResult CPUScheduleAttr::verifyFitsTarget(Operation *op,
                                                Target target) const {
  // LLVM splits vectors that are too long, and spills.
  return isa<const CPUTarget *>(target) ? success()
                                        : emitWrongKind(op, *this, target);
}

//===----------------------------------------------------------------------===//
// GPUScheduleAttr
//===----------------------------------------------------------------------===//

/// Checks that warps can share the rows of their tile.
static LogicalResult verifyTileRows(EmitError error, StringRef name,
                                    int64_t rows, int64_t warps) {
  if (rows % (16 * warps) == 0)
    return success();
  return error() << "expected " << name
                 << " to be a multiple of 16 * warps = " << 16 * warps
                 << ", got " << rows;
}

// Parameters are declared by the keywords of the attribute.
// NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name)
LogicalResult GPUScheduleAttr::verify(
    EmitError error, int64_t warps, int64_t blockM, int64_t kvBlock,
    int64_t stages, int64_t ctas, int64_t slack, int64_t lag, int64_t rings,
    int64_t rescaleThreshold, int64_t scoresFirst, int64_t fewPart,
    int64_t producers, int64_t maps, int64_t fiveProducts) {
  if (failed(verifyRange(error, "warps", warps, 1, kMaxWarps)))
    return failure();
  // A product takes 16 rows of one side and contracts over 16 of the other.
  for (auto [name, size] :
       {std::pair("block_m", blockM), std::pair("kv_block", kvBlock)})
    if (failed(verifyRange(error, name, size, 16, kMaxTileRows)) ||
        failed(verifyMultiple(error, name, size, 16)))
      return failure();
  if (blockM * kvBlock > kMultiprocessorRegisters)
    return error() << "expected block_m * kv_block to be at most "
                   << kMultiprocessorRegisters
                   << ", as a multiprocessor has registers for scores, got "
                   << blockM * kvBlock;
  // One block is read and one is fetched.
  if (failed(verifyRange(error, "stages", stages, 2, kMaxStages)) ||
      failed(verifyRange(error, "slack", slack, 0, stages - 2)) ||
      failed(verifyRange(error, "lag", lag, 0, std::min<int64_t>(slack, 1))) ||
      failed(verifyRange(error, "rings", rings, 1, 2 - lag)) ||
      failed(verifyRange(error, "rescale_threshold", rescaleThreshold, 0,
                         kMaxRescaleThreshold)) ||
      failed(verifyRange(error, "scores_first", scoresFirst, 0, 1)) ||
      failed(verifyRange(error, "few_part", fewPart, 0, kMaxPartBlocks)) ||
      failed(
          verifyRange(error, "producers", producers, 0, kMaxWarps - warps)) ||
      failed(verifyRange(error, "maps", maps, 0, 1)) ||
      failed(verifyRange(error, "five_products", fiveProducts, 0, 1)))
    return failure();
  if (maps > 0 && producers == 0)
    return error() << "expected maps with producers only, which copy by them";
  return verifyRange(error, "ctas", ctas, 1, kMaxCTAs);
}

/// Sequences of more queries have tiles enough for all CTAs.
PartSizes GPUScheduleAttr::getPartSizes() const {
  return {/*blocks=*/0, getFewPart()};
}

/// What every kernel of an attention needs.
static LogicalResult verifyKernel(AttentionOpInterface op, Attribute schedule) {
  if (failed(verifyHeads(op)))
    return failure();
  if (op.getElementType().isF64())
    return op->emitOpError("expected elements of f16, bf16 or f32 for ")
           << schedule << ", got " << op.getElementType();
  return success();
}

/// That registers have room for `rows` rows of `columns` sums, and for their
/// tangents: gradients have none.
static LogicalResult verifyAccumulator(AttentionOpInterface op, StringRef name,
                                       int64_t rows, int64_t columns) {
  bool hasTangents = op.isTangent() && !op.isGradient();
  int64_t most = kMultiprocessorRegisters / rows / (hasTangents ? 2 : 1);
  if (columns <= most)
    return success();
  return op->emitOpError("expected ")
         << name << " to be at most " << most << ", as a multiprocessor has "
         << kMultiprocessorRegisters << " registers for accumulators of "
         << rows << " rows" << (hasTangents ? " and their tangents" : "")
         << ", got " << columns;
}

/// That a chip has shared memory for the tiles of `schedule`, and what its
/// producers need.
static LogicalResult verifyChip(Operation *op, GPUScheduleAttr schedule,
                                GPUTileOwner owner, const GPUTarget &gpu) {
  if (schedule.getProducers() > 0 && !gpu.hasTryWait)
    return op->emitOpError("expected no producers on ")
           << gpu.name << ", whose threads cannot wait for an mbarrier, got "
           << schedule;
  if (schedule.getMaps() > 0 && !gpu.makesTensorMaps)
    return op->emitOpError("expected no maps on ")
           << gpu.name << ", whose kernels make no tensor maps, got "
           << schedule;
  int64_t bytes =
      getSharedBytes(schedule.getTiles(),
                     cast<AttentionOpInterface>(op).getGPUTileNeeds(owner));
  if (bytes <= gpu.sharedBytes)
    return success();
  return op->emitOpError("expected tiles that take at most ")
         << gpu.sharedBytes << " bytes of shared memory of " << gpu.name
         << ", got " << bytes << " bytes of " << schedule;
}

LogicalResult GPUScheduleAttr::verifyFits(Operation *operation) const {
  auto op = cast<AttentionOpInterface>(operation);
  if (op.isGradient())
    return op->emitOpError("expected a #varlen.gpu_grad_schedule for "
                           "gradients on a GPU, got ")
           << *this;
  if (getScoresFirst())
    return op->emitOpError("expected scores_first of gradients only, got ")
           << *this;
  if (getFiveProducts())
    return op->emitOpError("expected five_products of gradients only, got ")
           << *this;
  if (op.isTangent() && getRescaleThreshold() != 0)
    return op->emitOpError("expected a rescale_threshold of an attention "
                           "without tangents only, got ")
           << *this;
  if (failed(verifyKernel(op, *this)) ||
      failed(verifyTileRows([&] { return op->emitOpError(); }, "block_m",
                            getBlockM(), getWarps())))
    return failure();
  return verifyAccumulator(op, "head_dim of v", getBlockM(),
                           op.getValueHeadDim());
}

LogicalResult GPUScheduleAttr::verifyFitsTarget(Operation *op,
                                                Target target) const {
  auto *gpu = dyn_cast<const GPUTarget *>(target);
  if (!gpu)
    return emitWrongKind(op, *this, target);
  return verifyChip(op, *this, GPUTileOwner::Queries, *gpu);
}

//===----------------------------------------------------------------------===//
// GPUGradScheduleAttr
//===----------------------------------------------------------------------===//

/// That only one kernel adds up dq, and that its warps are at the same block:
/// they share the gradients of its scores.
static LogicalResult verifyFiveProducts(EmitError error, GPUScheduleAttr dq,
                                        GPUScheduleAttr dk,
                                        GPUScheduleAttr dv) {
  if (dq.getFiveProducts() || (dv && dv.getFiveProducts()))
    return error() << "expected five_products of dk only, got "
                   << (dq.getFiveProducts() ? dq : dv);
  if (!dk.getFiveProducts())
    return success();
  if (dv)
    return error() << "expected dk and dv in one kernel with five_products";
  if (dk.getTiles().areWarpsApart())
    return error() << "expected no slack, one ring and no producers with "
                      "five_products, got "
                   << dk;
  return success();
}

LogicalResult GPUGradScheduleAttr::verify(EmitError error, GPUScheduleAttr dq,
                                          GPUScheduleAttr dk,
                                          GPUScheduleAttr dv) {
  for (GPUScheduleAttr schedule : {dq, dk, dv})
    if (schedule && schedule.getRescaleThreshold() != 0)
      return error() << "expected a rescale_threshold of the forward only, got "
                     << schedule;
  for (GPUScheduleAttr schedule : {dq, dk, dv})
    if (schedule && schedule.getFewPart() != 0)
      return error() << "expected a few_part of the forward only, got "
                     << schedule;
  if (failed(verifyTileRows(error, "block_m of dq", dq.getBlockM(),
                            dq.getWarps())) ||
      failed(verifyTileRows(error, "kv_block of dk", dk.getKvBlock(),
                            dk.getWarps())))
    return failure();
  if (failed(verifyFiveProducts(error, dq, dk, dv)))
    return failure();
  if (!dv)
    return success();
  if (dv.getKvBlock() != dk.getKvBlock())
    return error() << "expected dk and dv to have tiles of the same kv_block, "
                      "got "
                   << dk.getKvBlock() << " and " << dv.getKvBlock();
  return verifyTileRows(error, "kv_block of dv", dv.getKvBlock(),
                        dv.getWarps());
}

/// That nothing is made of dq's kernel but dq, that the mask alone says which
/// blocks a tile visits, and that warps can share a block of dq.
static LogicalResult verifyFitsFiveProducts(AttentionOpInterface op,
                                            GPUGradScheduleAttr schedule) {
  auto refuse = [&](StringRef expected) {
    return op->emitOpError("expected ")
           << expected << " with five_products, got " << schedule;
  };
  if (op.isTangent())
    return refuse("gradients of an attention without tangents");
  int64_t shared = 16 * schedule.getDk().getWarps();
  if (schedule.getDk().getBlockM() % shared != 0 &&
      llvm::alignTo(op.getHeadDim(), 16) % shared != 0)
    return op->emitOpError("expected block_m of dk or head_dim to be a "
                           "multiple of 16 * warps = ")
           << shared << " with five_products, got " << schedule;
  if (op.getElementType().isF32())
    return refuse("elements of f16 or bf16");
  Block *score = op.getScoreBody();
  if (score && getVisible(score))
    return refuse("a score region that hides no keys");
  if (llvm::any_of(op.getWrtCaptures(),
                   [&](int64_t number) { return !isKeyTable(score, number); }))
    return refuse("no gradients of captures but of tables of keys");
  return success();
}

LogicalResult GPUGradScheduleAttr::verifyFits(Operation *operation) const {
  auto op = cast<AttentionOpInterface>(operation);
  if (!op.isGradient())
    return op->emitOpError("expected a #varlen.gpu_schedule for an "
                           "attention on a GPU, got ")
           << *this;
  if (failed(verifyKernel(op, *this)))
    return failure();
  if (getDk().getFiveProducts() && failed(verifyFitsFiveProducts(op, *this)))
    return failure();
  GPUScheduleAttr dv = getDv() ? getDv() : getDk();
  if (failed(verifyAccumulator(op, "head_dim of q", getDq().getBlockM(),
                               op.getHeadDim())) ||
      failed(verifyAccumulator(op, "head_dim of k", getDk().getKvBlock(),
                               op.getHeadDim())))
    return failure();
  return verifyAccumulator(op, "head_dim of v", dv.getKvBlock(),
                           op.getValueHeadDim());
}

LogicalResult GPUGradScheduleAttr::verifyFitsTarget(Operation *op,
                                                    Target target) const {
  auto *gpu = dyn_cast<const GPUTarget *>(target);
  if (!gpu)
    return emitWrongKind(op, *this, target);
  if (failed(verifyChip(op, getDq(), GPUTileOwner::QueryGradients, *gpu)) ||
      failed(verifyChip(op, getDk(), GPUTileOwner::KeyValueGradients, *gpu)))
    return failure();
  return getDv() ? verifyChip(op, getDv(), GPUTileOwner::ValueGradients, *gpu)
                 : success();
}
