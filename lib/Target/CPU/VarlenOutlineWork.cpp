//===- VarlenOutlineWork.cpp - Parallel loops to ranges of work -----------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The runtime calls the body of a parallel loop through a C function pointer.
// What the body captures travels in a struct on the caller's stack. Memrefs are
// cast to their LLVM descriptor for that, so that every layout survives; the
// casts cancel when the rest of the function goes to the llvm dialect.
//
//===----------------------------------------------------------------------===//

#include "FlattenForall.h"
#include "varlen/Dialect/Varlen/Transforms/Transforms.h"
#include "varlen/Target/CPU/Passes.h"

#include "mlir/Conversion/LLVMCommon/MemRefBuilder.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/DataLayoutInterfaces.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include "mlir/Transforms/RegionUtils.h"

#include "llvm/Support/MathExtras.h"

#include <limits>

namespace mlir::varlen {
#define GEN_PASS_DEF_VARLENOUTLINEWORK
#include "varlen/Target/CPU/Passes.h.inc"
} // namespace mlir::varlen

using namespace mlir;
using namespace mlir::varlen;

namespace {

/// Alignment of the workspace that the runtime hands out, and of every slice.
constexpr int64_t kWorkspaceAlignment = 64;
/// What a workspace counts as that is larger: the runtime finds no memory for
/// it, and the sum of two does not overflow.
constexpr int64_t kMaxWorkspaceBytes = int64_t(1) << 62;

/// A buffer of the loop body that becomes a slice of the workspace.
struct Slice {
  memref::AllocOp alloc;
  /// Bytes, or bytes for each product of the dynamic sizes.
  int64_t bytes;

  bool isStatic() { return alloc.getType().hasStaticShape(); }
};

/// A number of bytes: a constant and maybe an index value. What overflows is
/// kMaxWorkspaceBytes.
struct Bytes {
  int64_t constant = 0;
  Value dynamic;

  void add(ImplicitLocOpBuilder &b, Slice slice);
  Value get(ImplicitLocOpBuilder &b) const;

private:
  static Value clamp(ImplicitLocOpBuilder &b, Value bytes);
};

class Outliner {
public:
  explicit Outliner(ModuleOp module)
      : module(module), symbols(module), converter(module.getContext()) {}

  LogicalResult outline(scf::ForallOp forall);

  int64_t numLoops = 0, numSlices = 0, numHeapAllocs = 0;

private:
  FailureOr<LLVM::LLVMStructType> getContextType(scf::ForallOp forall,
                                                 ValueRange captured);
  func::FuncOp createFunction(scf::ForallOp forall, FunctionType type);
  FailureOr<SmallVector<Slice>> planWorkspace(scf::ForallOp forall);
  void placeSlices(ImplicitLocOpBuilder &b, Value workspace,
                   ArrayRef<Slice> slices);
  void emitCall(scf::ForallOp forall, func::FuncOp function, func::FuncOp run,
                LLVM::LLVMStructType contextType, ValueRange captured,
                const Bytes &workspaceBytes);
  Value convert(ImplicitLocOpBuilder &b, Type type, Value value) {
    if (value.getType() == type)
      return value;
    return UnrealizedConversionCastOp::create(b, type, value).getResult(0);
  }

  ModuleOp module;
  SymbolTable symbols;
  LLVMTypeConverter converter;
  /// Loops outlined so far, by function: the number in the name of the next.
  llvm::DenseMap<Operation *, int64_t> counts;
};

} // namespace

/// Adds the memrefs that may be `operand` once `user` has used it; false if
/// they cannot be told. A region op is taken to mix all its operands.
static bool addAliases(OpOperand &operand, Region *home,
                       SmallVectorImpl<Value> &aliases) {
  Operation *user = operand.getOwner();
  if (user->hasTrait<OpTrait::IsTerminator>()) {
    if (user->getParentRegion() == home)
      return false;
    user = user->getParentOp();
    if (!isa<RegionBranchOpInterface>(user))
      return false;
  }
  bool known =
      isa<ViewLikeOpInterface, arith::SelectOp, RegionBranchOpInterface>(user);
  auto add = [&](ValueRange values) {
    for (Value value : values) {
      if (!isa<BaseMemRefType>(value.getType()))
        continue;
      if (!known)
        return false;
      aliases.push_back(value);
    }
    return true;
  };
  if (!add(user->getResults()))
    return false;
  for (Region &region : user->getRegions())
    if (!region.empty() && !add(region.getArguments()))
      return false;
  return true;
}

/// Whether a buffer is out of use when the region it was allocated in ends, so
/// that the next iteration may use the same memory. `deallocs` are those of the
/// buffer; where a deallocation may be of another one, the answer is no.
static bool isLocal(memref::AllocOp alloc,
                    SmallVectorImpl<memref::DeallocOp> &deallocs) {
  llvm::SetVector<Value> values;
  values.insert(alloc.getResult());
  for (unsigned i = 0; i < values.size(); ++i) {
    for (OpOperand &use : values[i].getUses()) {
      if (auto dealloc = dyn_cast<memref::DeallocOp>(use.getOwner())) {
        if (i != 0)
          return false;
        deallocs.push_back(dealloc);
        continue;
      }
      SmallVector<Value> aliases;
      if (!addAliases(use, alloc->getParentRegion(), aliases))
        return false;
      values.insert(aliases.begin(), aliases.end());
    }
  }
  return true;
}

/// Whether something frees the buffer, or what may be it. Every memref that
/// follows from one is taken for it.
static bool isFreed(memref::AllocOp alloc) {
  llvm::SetVector<Value> values;
  values.insert(alloc.getResult());
  auto add = [&](ValueRange range) {
    for (Value value : range)
      if (isa<BaseMemRefType>(value.getType()))
        values.insert(value);
  };
  for (unsigned i = 0; i < values.size(); ++i)
    for (Operation *user : values[i].getUsers()) {
      if (isa<memref::DeallocOp>(user))
        return true;
      Operation *branch =
          user->hasTrait<OpTrait::IsTerminator>() ? user->getParentOp() : user;
      add(branch->getResults());
      for (Region &region : branch->getRegions())
        if (!region.empty() && isa<RegionBranchOpInterface>(branch))
          add(region.getArguments());
    }
  return false;
}

/// Has a buffer that stays on the heap freed, once for each time that it is
/// allocated: where its region ends, if nothing outlives that.
static LogicalResult freeHeapAlloc(memref::AllocOp alloc) {
  SmallVector<memref::DeallocOp> deallocs;
  if (isLocal(alloc, deallocs)) {
    if (deallocs.empty()) {
      OpBuilder b(alloc->getBlock()->getTerminator());
      memref::DeallocOp::create(b, alloc.getLoc(), alloc);
    }
    return success();
  }
  if (isFreed(alloc))
    return success();
  return alloc.emitOpError(
      "expected a deallocation of a buffer of a work tile that outlives its "
      "region, as memory would grow with each tile, got none");
}

/// Allocates before an scf.if what a branch of it allocates and yields, if
/// nothing frees it: the branch runs once, so that the region around it may own
/// the buffer.
static void hoistYieldedAllocs(Region &body) {
  SmallVector<memref::AllocOp> allocs;
  body.walk([&](memref::AllocOp alloc) { allocs.push_back(alloc); });
  for (memref::AllocOp alloc : allocs)
    while (auto branches = dyn_cast<scf::IfOp>(alloc->getParentOp())) {
      SmallVector<memref::DeallocOp> deallocs;
      bool isFixed = llvm::any_of(alloc.getDynamicSizes(), [&](Value size) {
        return branches->isAncestor(size.getParentRegion()->getParentOp());
      });
      if (isFixed || isLocal(alloc, deallocs) || isFreed(alloc))
        break;
      alloc->moveBefore(branches);
    }
}

/// Decides which buffers of the body live in the workspace and removes their
/// deallocations. Buffers of static size come first. All sizes that are known
/// are within what 64 bits count.
FailureOr<SmallVector<Slice>> Outliner::planWorkspace(scf::ForallOp forall) {
  Region &body = forall.getRegion();
  DataLayout layout = DataLayout::closest(forall);
  SmallVector<Slice> slices, dynamicSlices;
  // Rounded up, so that offsets are within it, too.
  uint64_t total = 0;
  hoistYieldedAllocs(body);
  WalkResult result = body.walk([&](memref::AllocOp alloc) {
    MemRefType type = alloc.getType();
    StringRef reason;
    SmallVector<memref::DeallocOp> deallocs;
    bool isKnown = llvm::none_of(alloc.getDynamicSizes(), [&](Value size) {
      return body.isAncestor(size.getParentRegion());
    });
    if (!isKnown)
      reason = "its size is not known before the loop";
    else if (!type.getLayout().isIdentity() || type.getMemorySpace() ||
             alloc.getAlignment().value_or(1) > kWorkspaceAlignment)
      reason = "it asks for a layout, memory space or alignment of its own";
    else if (!isLocal(alloc, deallocs))
      reason = "it outlives the region it is allocated in";
    if (!reason.empty()) {
      if (failed(freeHeapAlloc(alloc)))
        return WalkResult::interrupt();
      alloc.emitRemark() << "allocated on the heap in every work tile: "
                         << reason;
      ++numHeapAllocs;
      return WalkResult::advance();
    }
    uint64_t bytes = layout.getTypeSize(type.getElementType()).getFixedValue();
    for (int64_t extent : type.getShape())
      if (ShapedType::isStatic(extent))
        bytes = llvm::SaturatingMultiply(bytes, static_cast<uint64_t>(extent));
    total = llvm::SaturatingAdd(total, bytes,
                                static_cast<uint64_t>(kWorkspaceAlignment));
    if (total > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
      return WalkResult(
          alloc.emitOpError("expected buffers of a work tile of less than 2^63 "
                            "bytes in all, got more with ")
          << type);
    for (memref::DeallocOp dealloc : deallocs)
      dealloc.erase();
    (type.hasStaticShape() ? slices : dynamicSlices)
        .push_back({alloc, static_cast<int64_t>(bytes)});
    return WalkResult::advance();
  });
  if (result.wasInterrupted())
    return failure();
  llvm::append_range(slices, dynamicSlices);
  return slices;
}

/// Adds the size of a slice, rounded up to the alignment of the next.
void Bytes::add(ImplicitLocOpBuilder &b, Slice slice) {
  if (slice.isStatic()) {
    constant += llvm::alignTo(slice.bytes, kWorkspaceAlignment);
    return;
  }
  memref::AllocOp alloc = slice.alloc;
  Value bytes = arith::ConstantIndexOp::create(b, slice.bytes);
  for (Value size : alloc.getDynamicSizes()) {
    auto product = arith::MulUIExtendedOp::create(b, bytes, size);
    Value zero = arith::ConstantIndexOp::create(b, 0);
    Value fits = arith::CmpIOp::create(b, arith::CmpIPredicate::eq,
                                       product.getHigh(), zero);
    bytes = arith::SelectOp::create(
        b, fits, clamp(b, product.getLow()),
        arith::ConstantIndexOp::create(b, kMaxWorkspaceBytes));
  }
  Value unit = arith::ConstantIndexOp::create(b, kWorkspaceAlignment);
  Value last = arith::ConstantIndexOp::create(b, kWorkspaceAlignment - 1);
  bytes = arith::AddIOp::create(b, bytes, last);
  bytes =
      arith::MulIOp::create(b, arith::DivUIOp::create(b, bytes, unit), unit);
  dynamic =
      dynamic ? clamp(b, arith::AddIOp::create(b, dynamic, bytes)) : bytes;
}

Value Bytes::get(ImplicitLocOpBuilder &b) const {
  Value bytes = arith::ConstantIndexOp::create(b, constant);
  return dynamic ? clamp(b, arith::AddIOp::create(b, bytes, dynamic)) : bytes;
}

Value Bytes::clamp(ImplicitLocOpBuilder &b, Value bytes) {
  return arith::MinUIOp::create(
      b, bytes, arith::ConstantIndexOp::create(b, kMaxWorkspaceBytes));
}

void Outliner::placeSlices(ImplicitLocOpBuilder &b, Value workspace,
                           ArrayRef<Slice> slices) {
  if (slices.empty())
    return;
  Bytes bytes;
  for (const Slice &slice : slices)
    bytes.add(b, slice);
  auto type = MemRefType::get(
      {bytes.dynamic ? ShapedType::kDynamic : bytes.constant}, b.getI8Type());
  Value descriptor;
  if (bytes.dynamic) {
    auto fields =
        MemRefDescriptor::poison(b, b.getLoc(), converter.convertType(type));
    fields.setAllocatedPtr(b, b.getLoc(), workspace);
    fields.setAlignedPtr(b, b.getLoc(), workspace);
    fields.setConstantOffset(b, b.getLoc(), 0);
    fields.setSize(b, b.getLoc(), 0, convert(b, b.getI64Type(), bytes.get(b)));
    fields.setConstantStride(b, b.getLoc(), 0, 1);
    descriptor = fields;
  } else {
    descriptor = MemRefDescriptor::fromStaticShape(b, b.getLoc(), converter,
                                                   type, workspace);
  }
  Value buffer = convert(b, type, descriptor);
  Bytes offset;
  for (const Slice &slice : slices) {
    memref::AllocOp alloc = slice.alloc;
    Value view =
        memref::ViewOp::create(b, alloc.getType(), buffer, offset.get(b),
                               SmallVector<Value>(alloc.getDynamicSizes()));
    offset.add(b, slice);
    view = memref::AssumeAlignmentOp::create(b, view, kWorkspaceAlignment);
    alloc.replaceAllUsesWith(view);
    alloc.erase();
    ++numSlices;
  }
}

FailureOr<LLVM::LLVMStructType> Outliner::getContextType(scf::ForallOp forall,
                                                         ValueRange captured) {
  SmallVector<Type> fields;
  for (Value value : captured) {
    Type field = converter.convertType(value.getType());
    if (!field)
      return forall.emitError()
             << "cannot hand a captured value to another thread: its type has "
                "no form in memory (got "
             << value.getType() << ")";
    fields.push_back(field);
  }
  return LLVM::LLVMStructType::getLiteral(module.getContext(), fields);
}

/// `func.func private @<f>_work_<n>(context, lo, hi, workspace)`, without a
/// body.
func::FuncOp Outliner::createFunction(scf::ForallOp forall, FunctionType type) {
  auto parent = forall->getParentOfType<func::FuncOp>();
  OpBuilder b(forall.getContext());
  std::string name = (parent.getName() + "_work_" +
                      llvm::Twine(counts[parent.getOperation()]++))
                         .str();
  auto function = func::FuncOp::create(forall.getLoc(), name, type);
  function.setPrivate();
  // Tells a JIT that these loops are blocked and vectorised already.
  function->setAttr("passthrough",
                    b.getArrayAttr(b.getStringAttr(kWorkFunctionAttrName)));
  // Neither pointer reaches the body in any other way, which tells LLVM that
  // scores written to the workspace leave keys and values as they are.
  for (unsigned argument : {0, 3})
    function.setArgAttr(argument, LLVM::LLVMDialect::getNoAliasAttrName(),
                        b.getUnitAttr());
  symbols.insert(function, std::next(parent->getIterator()));
  return function;
}

void Outliner::emitCall(scf::ForallOp forall, func::FuncOp function,
                        func::FuncOp run, LLVM::LLVMStructType contextType,
                        ValueRange captured, const Bytes &workspaceBytes) {
  Type pointer = LLVM::LLVMPointerType::get(forall.getContext());
  auto parent = forall->getParentOfType<func::FuncOp>();
  // In the entry block: a loop around the call must not grow the stack.
  ImplicitLocOpBuilder b =
      ImplicitLocOpBuilder::atBlockBegin(forall.getLoc(), &parent.front());
  Value one = LLVM::ConstantOp::create(b, b.getI64Type(), 1);
  Value context = LLVM::AllocaOp::create(b, pointer, contextType, one);

  b.setInsertionPoint(forall);
  for (auto [i, value] : llvm::enumerate(captured)) {
    Value field =
        LLVM::GEPOp::create(b, pointer, contextType, context,
                            ArrayRef<LLVM::GEPArg>{0, static_cast<int32_t>(i)});
    LLVM::StoreOp::create(b, convert(b, contextType.getBody()[i], value),
                          field);
  }
  Value count = arith::IndexCastOp::create(b, b.getI64Type(),
                                           forall.getUpperBound(b).front());
  Value bytes =
      b.createOrFold<arith::IndexCastOp>(b.getI64Type(), workspaceBytes.get(b));
  Value callee = func::ConstantOp::create(b, function.getFunctionType(),
                                          function.getName());
  func::CallOp::create(b, run, ValueRange{count, bytes, callee, context});
  forall.erase();
}

LogicalResult Outliner::outline(scf::ForallOp forall) {
  OpBuilder builder(forall.getContext());
  Type pointer = LLVM::LLVMPointerType::get(forall.getContext());
  Type i64 = builder.getI64Type();
  auto rangeType =
      builder.getFunctionType({pointer, i64, i64, pointer}, TypeRange());
  FailureOr<func::FuncOp> run = getRuntimeFunction(
      module, forall, "varlen_parallel_for",
      builder.getFunctionType({i64, i64, rangeType, pointer}, TypeRange()));
  if (failed(run))
    return failure();

  // A body that holds its own constants can be optimised on its own.
  Region &region = forall.getRegion();
  llvm::SetVector<Value> used;
  getUsedValuesDefinedAbove(region, used);
  SmallVector<Value> captured, constants;
  for (Value value : used) {
    if (matchPattern(value, m_Constant()))
      constants.push_back(value);
    else
      captured.push_back(value);
  }
  FailureOr<LLVM::LLVMStructType> contextType =
      getContextType(forall, captured);
  if (failed(contextType))
    return failure();
  // While sizes are those outside.
  FailureOr<SmallVector<Slice>> slices = planWorkspace(forall);
  if (failed(slices))
    return failure();
  ImplicitLocOpBuilder outside(forall.getLoc(), forall);
  Bytes workspaceBytes;
  for (const Slice &slice : *slices)
    workspaceBytes.add(outside, slice);

  func::FuncOp function = createFunction(forall, rangeType);
  Block *entry = function.addEntryBlock();
  ImplicitLocOpBuilder b =
      ImplicitLocOpBuilder::atBlockBegin(forall.getLoc(), entry);
  for (Value value : constants)
    replaceAllUsesInRegionWith(
        value, b.clone(*value.getDefiningOp())->getResult(0), region);
  for (auto [i, value] : llvm::enumerate(captured)) {
    Value field =
        LLVM::GEPOp::create(b, pointer, *contextType, entry->getArgument(0),
                            ArrayRef<LLVM::GEPArg>{0, static_cast<int32_t>(i)});
    Value loaded = LLVM::LoadOp::create(b, contextType->getBody()[i], field);
    replaceAllUsesInRegionWith(value, convert(b, value.getType(), loaded),
                               region);
  }

  placeSlices(b, entry->getArgument(3), *slices);

  Value lo =
      arith::IndexCastOp::create(b, b.getIndexType(), entry->getArgument(1));
  Value hi =
      arith::IndexCastOp::create(b, b.getIndexType(), entry->getArgument(2));
  Value step = arith::ConstantIndexOp::create(b, 1);
  auto loop = scf::ForOp::create(b, lo, hi, step);
  func::ReturnOp::create(b);
  forall.getInductionVars().front().replaceAllUsesWith(loop.getInductionVar());
  forall.getTerminator()->erase();
  Block *body = loop.getBody();
  body->getOperations().splice(body->getTerminator()->getIterator(),
                               forall.getBody()->getOperations());
  // The emptied loop is erased as a whole, and an empty block has no
  // terminator to look at.
  emitCall(forall, function, *run, *contextType, captured, workspaceBytes);
  ++numLoops;
  return success();
}

namespace {

struct VarlenOutlineWork
    : varlen::impl::VarlenOutlineWorkBase<VarlenOutlineWork> {
  void runOnOperation() override {
    numFlattened += flattenForalls(getOperation());
    SmallVector<scf::ForallOp> loops;
    getOperation().walk<WalkOrder::PreOrder>([&](scf::ForallOp forall) {
      if (!isWork(forall))
        return WalkResult::advance();
      loops.push_back(forall);
      return WalkResult::skip();
    });
    Outliner outliner(getOperation());
    for (scf::ForallOp forall : loops)
      if (failed(outliner.outline(forall)))
        return signalPassFailure();
    numLoops += outliner.numLoops;
    numSlices += outliner.numSlices;
    numHeapAllocs += outliner.numHeapAllocs;
  }

  /// A loop over 0 .. n with nothing but side effects, not meant for a GPU.
  static bool isWork(scf::ForallOp forall) {
    return forall.getRank() == 1 && forall.isNormalized() &&
           forall->getNumResults() == 0 && !forall.getMapping() &&
           forall->getParentOfType<func::FuncOp>();
  }
};

} // namespace
