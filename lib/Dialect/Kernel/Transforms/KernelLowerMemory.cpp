//===- KernelLowerMemory.cpp - Shared memory and copies to it -------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CopyRows.h"
#include "MemRefAddress.h"
#include "RingProtocol.h"
#include "TensorMaps.h"
#include "varlen/Dialect/Kernel/IR/Kernel.h"
#include "varlen/Dialect/Kernel/Transforms/Passes.h"
#include "varlen/Support/ControlFlow.h"
#include "varlen/Support/IndexBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/PatternMatch.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

namespace mlir::varlen::kernel {
#define GEN_PASS_DEF_KERNELLOWERMEMORY
#include "varlen/Dialect/Kernel/Transforms/Passes.h.inc"
} // namespace mlir::varlen::kernel

using namespace mlir;
using namespace mlir::varlen;
using namespace mlir::varlen::kernel;

/// A shared tile's size is a multiple of this, the period of its swizzle; TMA
/// and wgmma want tiles to start at one, too.
static constexpr int64_t kTileAlignment = 1024;

/// A multiple of the size of any number.
static constexpr int64_t kNumbersAlignment = 8;

static int64_t getSize(MemRefType type) {
  return type.getNumElements() * type.getElementTypeBitWidth() / 8;
}

static int64_t getAlignment(MemRefType type) {
  return isSharedTile(type) ? kTileAlignment : kNumbersAlignment;
}

/// Bytes from one tile, or numbers, to the next.
static int64_t getBytes(MemRefType type) {
  return llvm::alignTo(getSize(type), getAlignment(type));
}

namespace {

/// The shared memory of one kernel.
class SharedMemory {
public:
  /// Threads can wait for mbarriers with `hasMBarriers`.
  SharedMemory(const RingUse &use, bool hasMBarriers)
      : use(use), hasMBarriers(hasMBarriers) {}

  /// Replaces allocations and the operations on rings; bytes taken.
  int64_t lower();

private:
  int64_t allocate(int64_t alignment, int64_t size, int64_t count = 1) {
    int64_t offset = llvm::alignTo(bytes, alignment);
    bytes = std::min<uint64_t>(
        llvm::SaturatingMultiplyAdd<uint64_t>(size, count, offset),
        kTooManyBytes);
    return offset;
  }
  Value base(OpBuilder &b);
  Value view(ImplicitLocOpBuilder &b, MemRefType tile, Value offset);
  void lowerAllocs(bool ofTiles);
  void lowerTensorMaps();
  void lowerStages();
  void lower(StageOp stage, Value memory);
  SmallVector<int64_t> allocateSlots(RingOp ring);
  void lowerRing(RingOp ring, ArrayRef<int64_t> offsets);
  std::unique_ptr<RingProtocol> createProtocol(RingOp ring);
  SmallVector<Value> slot(ThreadBuilder &b, RingOp ring, Value i,
                          ArrayRef<int64_t> offsets);

  RingUse use;
  /// Whether there are several.
  bool hasRings = false;
  bool hasMBarriers;
  int64_t bytes = 0;
  Value dynamic;
};

struct KernelLowerMemory
    : kernel::impl::KernelLowerMemoryBase<KernelLowerMemory> {
  using KernelLowerMemoryBase::KernelLowerMemoryBase;
  void runOnOperation() override;
  LogicalResult checkRoles(gpu::GPUFuncOp kernel);
  LogicalResult lower(gpu::GPUFuncOp kernel);
};

} // namespace

Value SharedMemory::base(OpBuilder &b) {
  if (!dynamic) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(&use.kernel.getBody().front());
    auto space = gpu::AddressSpaceAttr::get(
        b.getContext(), gpu::GPUDialect::getWorkgroupAddressSpace());
    auto type = MemRefType::get({ShapedType::kDynamic}, b.getI8Type(),
                                AffineMap(), space);
    dynamic = gpu::DynamicSharedMemoryOp::create(b, use.kernel.getLoc(), type);
  }
  return dynamic;
}

Value SharedMemory::view(ImplicitLocOpBuilder &b, MemRefType tile,
                         Value offset) {
  return memref::ViewOp::create(b, tile, base(b), offset, ValueRange{});
}

SmallVector<Value> SharedMemory::slot(ThreadBuilder &b, RingOp ring, Value i,
                                      ArrayRef<int64_t> offsets) {
  // The remainder of a power of two folds to a mask in LLVM.
  Value stage = b.rem(i, ring.getStages());
  SmallVector<Value> memory;
  for (auto [tile, offset] :
       llvm::zip(ring.getRing().getType().getSlot(), offsets)) {
    Value at = b.add(b.mul(stage, getBytes(tile)), offset);
    memory.push_back(view(
        b, tile, b.createOrFold<arith::IndexCastUIOp>(b.getIndexType(), at)));
  }
  return memory;
}

/// All stages of a tile of the slot lie one after the other.
SmallVector<int64_t> SharedMemory::allocateSlots(RingOp ring) {
  SmallVector<int64_t> offsets;
  for (MemRefType tile : ring.getRing().getType().getSlot())
    offsets.push_back(
        allocate(getAlignment(tile), getBytes(tile), ring.getStages()));
  return offsets;
}

namespace {
/// A copy of quantised rows as bytes, and which memory of a slot it is to.
struct CopyOfBytes {
  CopyOp copy;
  SmallVector<unsigned> numbers;
};
} // namespace

/// Those to one slot of the ring, which are like those to each other one.
static SmallVector<CopyOfBytes> findCopiesOfBytes(RingOp ring) {
  SmallVector<CopyOfBytes> copies;
  auto acquires =
      llvm::make_filter_range(ring->getUsers(), llvm::IsaPred<RingAcquireOp>);
  if (acquires.empty())
    return copies;
  llvm::SmallSetVector<Operation *, 4> filling;
  filling.insert_range((*acquires.begin())->getUsers());
  for (Operation *op : filling)
    if (auto copy = dyn_cast<CopyOp>(op); copy && canCopyBytesAsync(copy))
      copies.push_back(
          {copy, llvm::map_to_vector(copy.getSlot(), [](Value value) {
             return cast<OpResult>(value).getResultNumber();
           })});
  return copies;
}

void SharedMemory::lowerRing(RingOp ring, ArrayRef<int64_t> offsets) {
  std::unique_ptr<RingProtocol> protocol = createProtocol(ring);
  protocol->lower(ring);
  // An operation finds the others of its slot.
  SmallVector<Operation *> users(ring->getUsers());
  SmallVector<CopyOfBytes> ofBytes = findCopiesOfBytes(ring);
  auto giveMemory = [&](auto op) {
    ThreadBuilder b(op.getLoc(), op);
    op->replaceAllUsesWith(slot(b, ring, op.getI(), offsets));
  };
  for (Operation *user : users)
    TypeSwitch<Operation *>(user)
        .Case([&](RingAcquireOp op) {
          protocol->lower(op);
          giveMemory(op);
        })
        .Case([&](RingWaitOp op) {
          protocol->lower(op, [&](ThreadBuilder &b) {
            if (ofBytes.empty())
              return;
            SmallVector<Value> memory = slot(b, ring, op.getI(), offsets);
            for (const CopyOfBytes &of : ofBytes)
              emitWidening(b, of.copy,
                           llvm::map_to_vector(
                               of.numbers,
                               [&](unsigned number) { return memory[number]; }),
                           getCopyingThreads(use.kernel));
          });
          giveMemory(op);
        })
        .Case([&](RingSlotOp op) { giveMemory(op); })
        .Case<RingRestartOp, RingCommitOp, RingReleaseOp>(
            [&](auto op) { protocol->lower(op); });
  for (Operation *user : users)
    // A restart goes with the last of its rings.
    if (isa<RingRestartOp>(user) && user->getNumOperands() > 1)
      user->eraseOperand(
          llvm::find(user->getOperands(), ring.getRing()).getIndex());
    else
      user->erase();
  ring->erase();
}

template <typename CopyingOp> static bool isFilledBy(Value tile) {
  return llvm::any_of(tile.getUsers(), llvm::IsaPred<CopyingOp>);
}

static RingArrivals getArrivals(RingOp ring) {
  RingArrivals arrivals = {};
  arrivals.wholeByMap = true;
  for (Operation *user : ring->getUsers()) {
    if (!isa<RingAcquireOp>(user))
      continue;
    for (Value tile : user->getResults())
      if (isFilledBy<CopyOp>(tile) && !isFilledBy<CopyByMapOp>(tile))
        arrivals.wholeByMap = false;
    for (Operation *filling : user->getUsers()) {
      if (isa<CopyByMapOp>(filling)) {
        arrivals.ofBytes = true;
        continue;
      }
      auto copy = dyn_cast<CopyOp>(filling);
      bool isAsync = copy && canCopyAsync(copy);
      arrivals.ofCopies |= isAsync;
      arrivals.ofStores |= !isAsync;
    }
  }
  // A slot without anything is full when its threads say so.
  arrivals.ofCopies |= !arrivals.ofStores;
  return arrivals;
}

std::unique_ptr<RingProtocol> SharedMemory::createProtocol(RingOp ring) {
  if (!getRoles(use.kernel) &&
      ((ring.getSlack() == 0 && !hasRings) || !hasMBarriers || !use.allAsync ||
       !use.kernel.getKnownBlockSize()))
    return createBarrierProtocol(use);
  int64_t size = kSlotMBarrierBytes * ring.getStages();
  ImplicitLocOpBuilder b(ring.getLoc(), ring);
  Value offset =
      arith::ConstantIndexOp::create(b, allocate(kNumbersAlignment, size));
  Value mbarriers =
      view(b, getSharedNumbersType(size / 8, b.getI64Type()), offset);
  return createMBarrierProtocol(use, getArrivals(ring), mbarriers,
                                ring.getStages());
}

void SharedMemory::lowerAllocs(bool ofTiles) {
  use.kernel.walk([&](AllocOp alloc) {
    auto type = cast<MemRefType>(alloc.getType());
    if (isSharedTile(type) != ofTiles)
      return;
    ImplicitLocOpBuilder b(alloc.getLoc(), alloc);
    int64_t offset =
        allocate(getAlignment(type), ofTiles ? getBytes(type) : getSize(type));
    alloc->replaceAllUsesWith(
        ValueRange{view(b, type, arith::ConstantIndexOp::create(b, offset))});
    alloc->erase();
  });
}

void SharedMemory::lowerTensorMaps() {
  SmallVector<TensorMapOp> maps;
  use.kernel.walk([&](TensorMapOp map) { maps.push_back(map); });
  if (maps.empty())
    return;
  int64_t size = getMapsAtOnce(use.kernel, maps.size()) * kTensorMapBytes;
  ImplicitLocOpBuilder b(maps.front().getLoc(), maps.front());
  Value offset =
      arith::ConstantIndexOp::create(b, allocate(kTensorMapBytes, size));
  Value scratch =
      view(b, getSharedNumbersType(size / 8, b.getI64Type()), offset);
  kernel::lowerTensorMaps(use.kernel, maps, scratch);
}

/// All have the same memory.
void SharedMemory::lowerStages() {
  SmallVector<StageOp> stages;
  use.kernel.walk([&](StageOp stage) { stages.push_back(stage); });
  int64_t size = 0;
  for (StageOp stage : stages)
    size = std::max(size, getBytes(cast<MemRefType>(stage.getType())));
  if (stages.empty())
    return;
  int64_t offset = allocate(kTileAlignment, size);
  for (StageOp stage : stages) {
    ThreadBuilder b(stage.getLoc(), stage);
    Value memory = view(b, cast<MemRefType>(stage.getType()),
                        arith::ConstantIndexOp::create(b, offset));
    lower(stage, memory);
    stage.replaceAllUsesWith(memory);
    stage.erase();
  }
}

/// Two neighbours at a time: the four lanes of a row have one chunk of it, and
/// eight rows have chunks in different banks.
void SharedMemory::lower(StageOp stage, Value memory) {
  ThreadBuilder b(stage.getLoc(), stage);
  constexpr int64_t kChunks = 8, kChunkBytes = kRowBytes / kChunks;
  auto type = cast<VectorType>(stage.getFragment().getType());
  auto tile = cast<MemRefType>(stage.getType());
  int64_t rows = getSharedRows(tile), warps = rows / (16 * type.getDimSize(0));
  Value base = getAddress(b, memory), firstRow = b.firstRow();
  Value first = b.add(b.mul(firstRow, kRowBytes),
                      b.add(b.mul(b.bitAnd(firstRow, 7), kChunkBytes),
                            b.mul(b.firstColumn(), 2)));
  for (int64_t j = 0; j < type.getDimSize(1); ++j) {
    Value chunk = advance(b, base, b.getI8Type(),
                          b.bitXor(first, j % kChunks * kChunkBytes));
    for (int64_t i = 0; i < type.getDimSize(0); ++i)
      for (int64_t half = 0; half < 2; ++half) {
        int64_t row = j / kChunks * rows + 16 * warps * i + 8 * half;
        Value pair = vector::ExtractOp::create(b, stage.getFragment(),
                                               ArrayRef<int64_t>{i, j, half});
        Value at = advance(b, chunk, b.getI8Type(),
                           static_cast<int32_t>(row * kRowBytes));
        LLVM::StoreOp::create(b, pair, at, /*alignment=*/4);
      }
  }
  if (use.readByProxy)
    emitProxyFence(b);
  gpu::BarrierOp::create(b);
}

int64_t SharedMemory::lower() {
  lowerAllocs(/*ofTiles=*/true);
  lowerStages();
  // Their users go with them, the next of a walk among these.
  SmallVector<RingOp> rings;
  use.kernel.walk([&](RingOp ring) { rings.push_back(ring); });
  hasRings = rings.size() > 1;
  // What does not begin where tiles do comes behind all of them.
  auto offsets = llvm::map_to_vector(
      rings, [&](RingOp ring) { return allocateSlots(ring); });
  lowerTensorMaps();
  for (auto [ring, offsets] : llvm::zip_equal(rings, offsets))
    lowerRing(ring, offsets);
  lowerAllocs(/*ofTiles=*/false);
  return bytes;
}

/// Whether the calling thread is the first of those that copy.
static Value emitIsFirst(ImplicitLocOpBuilder &b, int64_t first) {
  IndexBuilder index{b};
  return index.equal(gpu::ThreadIdOp::create(b, gpu::Dimension::x),
                     index.constant(first));
}

static void lowerPut(PutOp put, int64_t first) {
  ImplicitLocOpBuilder b(put.getLoc(), put);
  IndexBuilder index{b};
  emitIf(b, emitIsFirst(b, first), [&] {
    memref::StoreOp::create(b, put.getNumber(), put.getSlot(),
                            ValueRange{index.constant(0)});
  });
  put->erase();
}

static void lowerTake(TakeOp take, int64_t first) {
  ImplicitLocOpBuilder b(take.getLoc(), take);
  Type type = take.getSlot().getType().getElementType();
  IndexBuilder index{b}, number{b, type};
  Value isFirst = emitIsFirst(b, first);
  // Of relaxed order: the number is all that CTAs tell each other.
  auto add = [&]() -> Value {
    Value base = getAddress(b, take.getCounters());
    Value i = arith::IndexCastOp::create(b, b.getI64Type(), take.getI());
    Value counter =
        LLVM::GEPOp::create(b, base.getType(), type, base, ValueRange{i});
    return LLVM::AtomicRMWOp::create(b, LLVM::AtomicBinOp::add, counter,
                                     number.constant(1),
                                     LLVM::AtomicOrdering::monotonic, "device");
  };
  Value taken = emitChoice(
      b, isFirst, [&] { return Values{add()}; },
      [&] { return Values{number.constant(0)}; })[0];
  // As late as it may be: the thread waits for its number there.
  b.setInsertionPoint(getNextOrEnd<gpu::BarrierOp>(take));
  emitIf(b, isFirst, [&] {
    memref::StoreOp::create(b, taken, take.getSlot(),
                            ValueRange{index.constant(0)});
  });
  take->erase();
}

/// That the memory of each ring is known where it is used.
static LogicalResult checkRings(gpu::GPUFuncOp kernel) {
  WalkResult result = kernel.walk([](Operation *op) -> WalkResult {
    auto isUnknown = [&](Value operand) {
      return isa<RingType>(operand.getType()) &&
             !(operand.getDefiningOp<RingOp>() &&
               isa<RingRestartOp, RingAcquireOp, RingCommitOp, RingWaitOp,
                   RingSlotOp, RingReleaseOp>(op));
    };
    if (llvm::none_of(op->getOperands(), isUnknown))
      return success();
    return op->emitOpError("expected a ring to be of kernel.ring, and only to "
                           "be restarted, acquired, committed, waited for and "
                           "released");
  });
  return failure(result.wasInterrupted());
}

/// That roles have mbarriers to wait for, and that nothing else is on a ring.
LogicalResult KernelLowerMemory::checkRoles(gpu::GPUFuncOp kernel) {
  RolesOp roles = getRoles(kernel);
  if (!roles)
    return success();
  if (!mbarriers)
    return roles.emitOpError("expected a target whose threads can wait for an "
                             "mbarrier: the pass has mbarriers=false");
  WalkResult result = kernel.walk([&](Operation *op) -> WalkResult {
    if (!isa<CopyOp, CopyByMapOp, TensorMapOp, TakeOp, PutOp, RingRestartOp,
             RingAcquireOp, RingCommitOp, RingWaitOp, RingSlotOp,
             RingReleaseOp>(op) ||
        roles->isProperAncestor(op))
      return success();
    return op->emitOpError("expected to be in the kernel.roles of its kernel");
  });
  return failure(result.wasInterrupted());
}

/// That all producers come by where maps are made, before the first use of one.
static LogicalResult checkPlace(TensorMapOp map) {
  if (!isa<RolesOp>(map->getParentOp()))
    return map.emitOpError("expected to be in the block of producers of a "
                           "kernel.roles");
  Block *block = map->getBlock();
  Operation *last = map;
  for (TensorMapOp other : block->getOps<TensorMapOp>())
    last = other;
  auto isEarly = [&](Operation *user) {
    return block->findAncestorOpInBlock(*user)->isBeforeInBlock(last);
  };
  if (llvm::none_of(map->getUsers(), isEarly))
    return success();
  return map.emitOpError("expected all maps of the kernel before the first "
                         "copy by one");
}

/// That maps are of memory that has one, and copies by them to slots that have
/// mbarriers.
static LogicalResult checkMaps(gpu::GPUFuncOp kernel) {
  WalkResult result = kernel.walk([&](Operation *op) -> WalkResult {
    if (isa<CopyByMapOp, TensorMapOp>(op) && !getRoles(kernel))
      return op->emitOpError("expected a kernel with a kernel.roles");
    if (auto map = dyn_cast<TensorMapOp>(op)) {
      if (!canHaveMap(map.getSource().getType()))
        return op->emitOpError("expected rows of whole 16-byte chunks, each "
                               "aligned to its size, got ")
               << map.getSource().getType();
      return checkPlace(map);
    }
    if (auto copy = dyn_cast<CopyByMapOp>(op);
        copy && !copy.getSlot().getDefiningOp<RingAcquireOp>())
      return op->emitOpError("expected the memory of a kernel.ring.acquire");
    return success();
  });
  return failure(result.wasInterrupted());
}

LogicalResult KernelLowerMemory::lower(gpu::GPUFuncOp kernel) {
  if (failed(checkRings(kernel)) || failed(verifyRoles(kernel)) ||
      failed(checkRoles(kernel)) || failed(checkMaps(kernel)))
    return failure();
  SmallVector<CopyOp> copies;
  kernel.walk([&](CopyOp copy) { copies.push_back(copy); });
  std::optional<ArrayRef<int32_t>> blockSize = kernel.getKnownBlockSize();
  if (!copies.empty() && !blockSize)
    return kernel.emitOpError("expected known_block_size, which says how many "
                              "threads share a copy");
  ThreadRange threads =
      blockSize ? getCopyingThreads(kernel) : ThreadRange{0, 0};
  for (CopyOp copy : copies)
    if (threads.count < getThreadsPerRow(copy))
      return copy.emitOpError("expected at least ")
             << getThreadsPerRow(copy)
             << " threads, as many as share a row, got " << threads.count;
  RingUse use;
  use.kernel = kernel;
  use.allAsync = llvm::all_of(copies, canCopyAsync);
  auto isAsync = [](CopyOp copy) {
    return canCopyAsync(copy) || canCopyBytesAsync(copy);
  };
  use.anyAsync = copies.empty() || llvm::any_of(copies, isAsync);
  use.readByProxy = kernel
                        ->walk([](NVVM::WgmmaFenceAlignedOp) {
                          return WalkResult::interrupt();
                        })
                        .wasInterrupted();
  kernel.walk([&](TakeOp take) { lowerTake(take, threads.first); });
  // While they say which slot they copy to.
  llvm::SmallPtrSet<Operation *, 8> async;
  for (CopyOp copy : copies)
    if (isAsync(copy))
      async.insert(copy);
  int64_t bytes = SharedMemory(use, mbarriers).lower();
  if (bytes > sharedBytes || bytes == kTooManyBytes)
    return kernel.emitOpError("needs ")
           << bytes << (bytes == kTooManyBytes ? " or more" : "")
           << " bytes of shared memory, expected at most "
           << sharedBytes.getValue();
  for (CopyOp copy : copies) {
    ThreadBuilder b(copy.getLoc(), copy);
    if (async.contains(copy)) {
      emitCopyAsync(b, copy, threads);
      ++numAsync;
    } else {
      emitCopyThroughRegisters(b, copy, threads);
      ++numSynchronous;
    }
    copy->erase();
  }
  // Behind the rings, which look at what fills their slots.
  kernel.walk([&](PutOp put) { lowerPut(put, threads.first); });
  if (bytes == 0)
    return success();
  auto module = kernel->getParentOfType<ModuleOp>();
  module.walk([&](gpu::LaunchFuncOp launch) {
    if (SymbolTable::lookupNearestSymbolFrom(launch, launch.getKernel()) !=
        kernel)
      return;
    OpBuilder b(launch);
    Value size = arith::ConstantOp::create(b, launch.getLoc(),
                                           b.getI32IntegerAttr(bytes));
    launch.getDynamicSharedMemorySizeMutable().assign(size);
  });
  return success();
}

void KernelLowerMemory::runOnOperation() {
  WalkResult result = getOperation().walk([&](gpu::GPUFuncOp kernel) {
    return failed(lower(kernel)) ? WalkResult::interrupt()
                                 : WalkResult::advance();
  });
  if (result.wasInterrupted())
    signalPassFailure();
}
