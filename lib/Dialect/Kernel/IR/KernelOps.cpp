//===- KernelOps.cpp - Operations of the kernel dialect -------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "varlen/Dialect/Kernel/IR/Kernel.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace mlir::varlen;
using namespace mlir::varlen::kernel;

/// The type of a sum, which says that of the sum while it is pending.
static ParseResult parsePendingSum(OpAsmParser &parser, Type &sum,
                                   Type &pending) {
  SMLoc place = parser.getCurrentLocation();
  VectorType fragment;
  if (parser.parseType(fragment))
    return failure();
  sum = fragment;
  pending = PendingType::getChecked([&] { return parser.emitError(place); },
                                    parser.getContext(), fragment);
  return success(static_cast<bool>(pending));
}

static void printPendingSum(OpAsmPrinter &printer, Operation *, Type sum,
                            Type) {
  printer << sum;
}

#define GET_OP_CLASSES
#include "varlen/Dialect/Kernel/IR/KernelOps.cpp.inc"

/// Checks shared memory that holds a tile of `element`: itself, or the planes
/// of an f32 tile.
static LogicalResult verifyPlanes(Operation *op, StringRef what, Type element,
                                  TypeRange memory) {
  auto first = memory.empty() ? MemRefType() : cast<MemRefType>(memory.front());
  if (!element.isF32()) {
    if (memory.size() != 1)
      return op->emitOpError("expected one shared tile for ")
             << what << " of " << element << ", got " << memory.size();
    if (first.getElementType() != element)
      return op->emitOpError("expected a shared tile of the element type of ")
             << what << ", " << element << ", got " << first.getElementType();
    return success();
  }
  if (memory.size() != kPlanes || !first.getElementType().isBF16() ||
      !llvm::all_equal(memory))
    return op->emitOpError("expected three shared tiles of bf16, of one type, "
                           "for ")
           << what << " of f32, got " << memory;
  return success();
}

//===----------------------------------------------------------------------===//
// TileOp
//===----------------------------------------------------------------------===//

LogicalResult TileOp::verify() {
  RankedTensorType tile = getTile().getType();
  if (failed(verifyPlanes(*this, "a tile", tile.getElementType(),
                          getMem().getTypes())))
    return failure();
  auto mem = cast<MemRefType>(getMem().front().getType());
  if (tile.getDimSize(0) != getSharedRows(mem))
    return emitOpError("expected the ")
           << getSharedRows(mem) << " rows of the memory, got a tile of "
           << tile.getDimSize(0);
  if (tile.getDimSize(1) % 8 != 0 || tile.getDimSize(1) == 0 ||
      tile.getDimSize(1) > getSharedColumns(mem))
    return emitOpError("expected a multiple of 8 columns, at most the ")
           << getSharedColumns(mem) << " of the memory, got "
           << tile.getDimSize(1);
  return success();
}

//===----------------------------------------------------------------------===//
// LoadOp, StoreOp
//===----------------------------------------------------------------------===//

/// Checks what memory has of rows: one tile of memory `T x H x D`, or the
/// values of each row of other memory.
static LogicalResult verifyRows(Operation *op, MemRefType mem, TypeRange values,
                                bool isPaged = false) {
  if (isPaged && mem.getRank() != 4)
    return op->emitOpError("expected memory of rank 4 (P x page x H x S) with "
                           "a block_table, got ")
           << mem;
  if (!isPaged && mem.getRank() > 3)
    return op->emitOpError("expected memory of rank 1 to 3, got ") << mem;
  if (kernel::isQuantised(mem.getElementType()))
    return op->emitOpError("expected memory of f16, bf16, f32 or i32, got ")
           << mem;
  for (Type type : values) {
    if (type != values.front())
      return op->emitOpError("expected values of one type, got ") << values;
    if (Type element = getElementTypeOrSelf(type);
        element != mem.getElementType())
      return op->emitOpError("expected memory and values of one element type, "
                             "got ")
             << mem.getElementType() << " and " << element;
  }
  bool isTile = !values.empty() && !isStatistic(values.front());
  if (isTile && (mem.getRank() != 3 || values.size() != 1))
    return op->emitOpError("expected one value for each row or column (R x 1 "
                           "or 1 x C, or the fragment of it), or one tile of "
                           "memory of rank 3 (T x H x D), got ")
           << values << " and " << mem;
  bool hasValues = mem.getRank() >= 3;
  if (hasValues && mem.getShape().back() <= 0)
    return op->emitOpError("expected memory of rank 3 to have a static number "
                           "of values for each row, got ")
           << mem;
  int64_t wanted = hasValues && !isTile ? mem.getShape().back() : 1;
  if (static_cast<int64_t>(values.size()) != wanted)
    return op->emitOpError("expected as many values as memory has for each "
                           "row, ")
           << wanted << ", got " << values.size();
  return success();
}

LogicalResult LoadOp::verify() {
  if (getOnePage() && !getBlockTable())
    return emitOpError("expected a block_table with one_page, got none");
  return verifyRows(*this, getMem().getType(), getValues().getTypes(),
                    /*isPaged=*/static_cast<bool>(getBlockTable()));
}

LogicalResult StoreOp::verify() {
  MemRefType mem = getMem().getType();
  if (mem.getRank() == 1)
    return emitOpError(
               "expected memory of rank 3 (T x H x D or H x T x S) or 2 "
               "(H x T), got ")
           << mem;
  if (failed(verifyRows(*this, mem, getValues().getTypes())))
    return failure();
  Type value = getValues().front().getType();
  if (isColumnStatistic(value))
    return emitOpError("expected one value for each row, got ") << value;
  if (getTransposed() && (!isa<VectorType>(value) || isStatistic(value)))
    return emitOpError("expected a fragment, rows by columns, with transposed, "
                       "got ")
           << value;
  return success();
}

//===----------------------------------------------------------------------===//
// ContractOp, StartOp
//===----------------------------------------------------------------------===//

/// Checks that a shared tile has the extents that a contraction reads of it.
static LogicalResult verifyExtents(Operation *op, StringRef name,
                                   MemRefType mem, int64_t rows,
                                   int64_t columns) {
  if (getSharedRows(mem) >= rows && getSharedColumns(mem) >= columns)
    return success();
  return op->emitOpError("expected ")
         << name << " to have at least " << rows << " rows and " << columns
         << " columns, got " << mem;
}

template <typename Op> static LogicalResult verifyContract(Op op) {
  VectorType acc = op.getAcc().getType();
  Type element = op.getB().getType().getElementType();
  int64_t k = op.getK();
  if (isStatistic(acc) || !acc.getElementType().isF32())
    return op.emitOpError("expected an accumulator vector<M x N x 2 x 2 x "
                          "f32>, got ")
           << acc;
  if (k % 16 != 0)
    return op.emitOpError("expected k to be a multiple of 16, got ") << k;
  if (getElementTypeOrSelf(op.getA().getType()) != element)
    return op.emitOpError("expected A and B of one element type, got ")
           << getElementTypeOrSelf(op.getA().getType()) << " and " << element;
  int64_t n = acc.getDimSize(1) * 8;
  if (failed(verifyExtents(op, "B", op.getB().getType(), op.getBT() ? k : n,
                           op.getBT() ? n : k)))
    return failure();
  if (auto a = dyn_cast<VectorType>(op.getA().getType())) {
    if (op.getAT())
      return op.emitOpError("expected a_t with A in shared memory only");
    if (a.getDimSize(0) != acc.getDimSize(0) || a.getDimSize(1) * 8 != k ||
        isStatistic(a))
      return op.emitOpError("expected A to be a fragment of ")
             << acc.getDimSize(0) << " x " << k / 8 << " x 2 x 2, got " << a;
    return success();
  }
  // How many rows A has depends on the number of warps: at least one has to be
  // there.
  auto a = cast<MemRefType>(op.getA().getType());
  int64_t m = acc.getDimSize(0) * 16;
  return verifyExtents(op, "A", a, op.getAT() ? k : m, op.getAT() ? m : k);
}

LogicalResult ContractOp::verify() { return verifyContract(*this); }

LogicalResult StartOp::verify() { return verifyContract(*this); }

//===----------------------------------------------------------------------===//
// AddInOrderOp, StageOp
//===----------------------------------------------------------------------===//

LogicalResult AddInOrderOp::verify() {
  Type part = getPart().getType();
  if (isStatistic(part) || !getElementTypeOrSelf(part).isF32())
    return emitOpError("expected a part of f32, rows by columns, got ") << part;
  return success();
}

LogicalResult StageOp::verify() {
  VectorType fragment = getFragment().getType();
  auto memory = cast<MemRefType>(getMemory().getType());
  if (isStatistic(fragment) ||
      fragment.getElementType() != memory.getElementType() ||
      fragment.getDimSize(1) * 8 > getSharedColumns(memory) ||
      getSharedRows(memory) % (16 * fragment.getDimSize(0)) != 0)
    return emitOpError("expected a fragment, rows by columns, that the memory "
                       "has room for, of its element type, got ")
           << fragment << " for " << memory;
  return success();
}

//===----------------------------------------------------------------------===//
// CopyOp
//===----------------------------------------------------------------------===//

LogicalResult CopyOp::verify() {
  MemRefType source = getSource().getType();
  if (getBlockTable() ? source.getRank() != 4 : source.getRank() != 3)
    return emitOpError("expected a source of rank ")
           << (getBlockTable() ? "4 (P x page x H x D) with a block_table"
                               : "3 (T x H x D) without a block_table")
           << ", got " << source;
  if (getOnePage() && !getBlockTable())
    return emitOpError("expected a block_table with one_page, got none");
  Type element = source.getElementType();
  // A slot has all numbers of a quantised source, whatever it holds.
  if (kernel::isQuantised(element))
    element = getSlot().size() == 1
                  ? getElementTypeOrSelf(getSlot().front().getType())
                  : Float32Type::get(getContext());
  if (failed(verifyPlanes(*this, "a source", element, getSlot().getTypes())))
    return failure();
  int64_t columns =
      getSharedColumns(cast<MemRefType>(getSlot().front().getType()));
  // A dynamic extent is negative.
  int64_t own = source.getShape().back();
  if (own < 1 || own > columns)
    return emitOpError("expected a source of 1 to ")
           << columns << " columns, as the slot has, got " << source;
  return success();
}

//===----------------------------------------------------------------------===//
// Tensor maps
//===----------------------------------------------------------------------===//

void TensorMapOp::build(OpBuilder &builder, OperationState &state, Value source,
                        Value memory, Value i, int64_t rows) {
  build(builder, state, LLVM::LLVMPointerType::get(builder.getContext()),
        source, memory, i, rows);
}

LogicalResult TensorMapOp::verify() {
  MemRefType source = getSource().getType();
  Type element = source.getElementType();
  if (source.getRank() == 3 && (element.isF16() || element.isBF16()))
    return success();
  return emitOpError("expected a source of rank 3 (T x H x D) of f16 or bf16, "
                     "got ")
         << source;
}

//===----------------------------------------------------------------------===//
// Rings
//===----------------------------------------------------------------------===//

LogicalResult RingOp::verify() {
  if (getSlack() >= getStages())
    return emitOpError("expected a slack of fewer than ")
           << getStages() << " stages, got " << getSlack();
  if (getLag() > std::min<uint64_t>(getSlack(), 1))
    return emitOpError("expected a lag of at most 1 and the slack, ")
           << getSlack() << ", got " << getLag();
  return success();
}

LogicalResult RingRestartOp::verify() {
  if (getRings().empty())
    return emitOpError("expected a ring, got none");
  if (SmallPtrSet<Value, 4>(getRings().begin(), getRings().end()).size() !=
      getRings().size())
    return emitOpError("expected each ring once");
  return success();
}

//===----------------------------------------------------------------------===//
// RolesOp
//===----------------------------------------------------------------------===//

/// Both regions have their terminator alone.
void RolesOp::build(OpBuilder &builder, OperationState &state,
                    int64_t consumers, int64_t producers,
                    IntegerAttr consumerRegisters,
                    IntegerAttr producerRegisters) {
  Properties &properties = state.getOrAddProperties<Properties>();
  properties.consumers = builder.getI64IntegerAttr(consumers);
  properties.producers = builder.getI64IntegerAttr(producers);
  properties.consumer_registers = consumerRegisters;
  properties.producer_registers = producerRegisters;
  for (int i = 0; i < 2; ++i)
    ensureTerminator(*state.addRegion(), builder, state.location);
}

LogicalResult RolesOp::verify() {
  std::optional<uint64_t> consumer = getConsumerRegisters();
  std::optional<uint64_t> producer = getProducerRegisters();
  if (consumer.has_value() != producer.has_value())
    return emitOpError("expected registers of both roles or of none");
  if (!consumer)
    return success();
  for (uint64_t registers : {*consumer, *producer})
    if (registers < kMinMovedRegisters || registers > kMaxMovedRegisters ||
        registers % kRegisterUnit != 0)
      return emitOpError("expected registers to be a multiple of ")
             << kRegisterUnit << " from " << kMinMovedRegisters << " to "
             << kMaxMovedRegisters << ", got " << registers;
  if (*producer > *consumer)
    return emitOpError("expected consumers to have no fewer registers than "
                       "producers, got ")
           << *consumer << " and " << *producer;
  for (uint64_t warps : {getConsumers(), getProducers()})
    if (warps % kWarpgroupWarps != 0)
      return emitOpError("expected whole warpgroups of ")
             << kWarpgroupWarps << " warps with registers, got " << warps
             << " warps";
  return success();
}

/// That no operation of a region is one of these.
template <typename... Ops>
static LogicalResult verifyWithout(Region &region, StringRef role) {
  WalkResult result = region.walk([&](Operation *op) -> WalkResult {
    if (!isa<Ops...>(op))
      return success();
    return op->emitOpError("is not what ") << role << " do in a kernel.roles";
  });
  return failure(result.wasInterrupted());
}

LogicalResult RolesOp::verifyRegions() {
  if (failed(verifyWithout<CopyOp, CopyByMapOp, TensorMapOp, TakeOp, PutOp,
                           RingAcquireOp, RingCommitOp, RingRestartOp>(
          getConsuming(), "consumers")))
    return failure();
  return verifyWithout<ContractOp, StartOp, WaitOp, TileOp, RingWaitOp,
                       RingSlotOp, RingReleaseOp, RingRestartOp>(getProducing(),
                                                                 "producers");
}

LogicalResult RingWaitOp::verify() {
  auto ring = getRing().getDefiningOp<RingOp>();
  if (ring && getYounger() >= ring.getStages())
    return emitOpError("expected fewer younger commits than the ")
           << ring.getStages() << " stages of the ring, got " << getYounger();
  return success();
}
