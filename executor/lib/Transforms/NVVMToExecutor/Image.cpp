//===- Image.cpp - What the runtime is told -------------------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "NVVMToExecutor.h"
#include "varlen/Runtime/GPUExecutor.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"

#include <cstddef>

using namespace mlir;
using namespace mlir::varlen;
using namespace mlir::varlen::executor;

//===----------------------------------------------------------------------===//
// Layout of shared memory
//===----------------------------------------------------------------------===//

bool executor::isShared(LLVM::GlobalOp global) {
  return global.getAddrSpace() ==
         static_cast<unsigned>(NVVM::NVVMMemorySpace::Shared);
}

/// [0 x T]: as much as the launch gives.
static bool isDynamic(LLVM::GlobalOp global) {
  auto array = dyn_cast<LLVM::LLVMArrayType>(global.getType());
  return array && array.getNumElements() == 0;
}

/// The shared memory that a kernel and the functions it calls name.
static llvm::SetVector<LLVM::GlobalOp> findShared(const SymbolTable &symbols,
                                                  LLVM::LLVMFuncOp kernel) {
  llvm::SetVector<LLVM::GlobalOp> found;
  llvm::SetVector<Operation *> functions;
  functions.insert(kernel);
  for (size_t i = 0; i < functions.size(); ++i)
    functions[i]->walk([&](Operation *op) {
      if (auto address = dyn_cast<LLVM::AddressOfOp>(op)) {
        auto global = symbols.lookup<LLVM::GlobalOp>(address.getGlobalName());
        if (global && isShared(global))
          found.insert(global);
      } else if (auto call = dyn_cast<LLVM::CallOp>(op);
                 call && call.getCalleeAttr()) {
        if (Operation *callee = symbols.lookup(*call.getCallee()))
          functions.insert(callee);
      }
    });
  return found;
}

FailureOr<llvm::DenseMap<LLVM::GlobalOp, uint32_t>>
executor::layoutSharedMemory(Operation *kernelModule,
                             MutableArrayRef<HostKernel> kernels) {
  llvm::DenseMap<LLVM::GlobalOp, uint32_t> offsets;
  SmallVector<llvm::SetVector<LLVM::GlobalOp>> used;
  llvm::DenseMap<LLVM::GlobalOp, unsigned> users;
  SymbolTable symbols(kernelModule);
  for (const HostKernel &kernel : kernels) {
    used.push_back(findShared(symbols, kernel.function));
    for (LLVM::GlobalOp global : used.back())
      ++users[global];
  }
  auto align = [](uint64_t end, LLVM::GlobalOp global) {
    return llvm::alignTo(
        end, std::max<uint64_t>(global.getAlignment().value_or(16), 16));
  };
  auto place = [&](uint64_t end, LLVM::GlobalOp global) {
    end = align(end, global);
    offsets[global] = static_cast<uint32_t>(end);
    return end + DataLayout::closest(global).getTypeSize(global.getType());
  };

  // What several kernels name lies at one offset for all of them; the kernels'
  // own globals follow.
  uint64_t common = 0;
  for (const auto &globals : used)
    for (LLVM::GlobalOp global : globals)
      if (users[global] > 1 && !isDynamic(global) && !offsets.contains(global))
        common = place(common, global);
  llvm::DenseMap<LLVM::GlobalOp, uint64_t> dynamic;
  for (auto &&[kernel, globals] : llvm::zip_equal(kernels, used)) {
    uint64_t end = common;
    for (LLVM::GlobalOp global : globals)
      if (users[global] == 1 && !isDynamic(global))
        end = place(end, global);
    // Dynamic memory of all names starts where the last static global ends.
    for (LLVM::GlobalOp global : globals)
      if (isDynamic(global))
        end = align(end, global);
    if (end > INT32_MAX)
      return kernel.function.emitError("has more than 2 GiB of shared memory");
    kernel.sharedBytes = static_cast<uint32_t>(end);
    for (LLVM::GlobalOp global : globals)
      if (isDynamic(global))
        dynamic[global] = std::max<uint64_t>(dynamic[global], end);
  }
  for (auto &&[kernel, globals] : llvm::zip_equal(kernels, used))
    for (LLVM::GlobalOp global : globals)
      if (isDynamic(global)) {
        offsets[global] = static_cast<uint32_t>(dynamic[global]);
        kernel.sharedBytes = std::max(kernel.sharedBytes, offsets[global]);
      }
  return offsets;
}

//===----------------------------------------------------------------------===//
// The image
//===----------------------------------------------------------------------===//

namespace {
/// Builds the initializer of one constant.
class ConstantBuilder {
public:
  ConstantBuilder(ImplicitLocOpBuilder &b, StringRef name, Type type)
      : b(b), guard(b) {
    global = LLVM::GlobalOp::create(b, type, /*isConstant=*/true,
                                    LLVM::Linkage::Internal, name, Attribute());
    b.createBlock(&global.getInitializerRegion());
    value = LLVM::PoisonOp::create(b, type);
  }
  void set(ArrayRef<int64_t> position, Value element) {
    value = LLVM::InsertValueOp::create(b, value, element, position);
  }
  void setAddress(ArrayRef<int64_t> position, Operation *symbol) {
    auto global = dyn_cast<LLVM::GlobalOp>(symbol);
    Type flat = LLVM::LLVMPointerType::get(b.getContext());
    Type type = LLVM::LLVMPointerType::get(b.getContext(),
                                           global ? global.getAddrSpace() : 0);
    Value address =
        LLVM::AddressOfOp::create(b, type, SymbolTable::getSymbolName(symbol));
    if (type != flat)
      address = LLVM::AddrSpaceCastOp::create(b, flat, address);
    set(position, address);
  }
  void setInteger(ArrayRef<int64_t> position, unsigned width, int64_t number) {
    set(position, LLVM::ConstantOp::create(b, b.getIntegerType(width), number));
  }
  LLVM::GlobalOp finish() {
    LLVM::ReturnOp::create(b, value);
    return global;
  }

private:
  ImplicitLocOpBuilder &b;
  OpBuilder::InsertionGuard guard;
  LLVM::GlobalOp global;
  Value value;
};
} // namespace

static LLVM::GlobalOp addText(ImplicitLocOpBuilder &b, StringRef name,
                              StringRef text) {
  auto type = LLVM::LLVMArrayType::get(b.getI8Type(), text.size() + 1);
  return LLVM::GlobalOp::create(b, type, /*isConstant=*/true,
                                LLVM::Linkage::Internal, name,
                                b.getStringAttr(text + StringRef("\0", 1)));
}

// Members are stored by number below: each is where LLVM puts it.
static_assert(offsetof(varlen_sim_kernel_info, name) == 0 &&
              offsetof(varlen_sim_kernel_info, entry) == 8 &&
              offsetof(varlen_sim_kernel_info, static_shared_bytes) == 16 &&
              offsetof(varlen_sim_kernel_info, required_block) == 20 &&
              offsetof(varlen_sim_kernel_info, max_threads) == 32 &&
              offsetof(varlen_sim_kernel_info, required_cluster) == 36 &&
              offsetof(varlen_sim_kernel_info, registers) == 48 &&
              offsetof(varlen_sim_kernel_info, waits_for_grids) == 52 &&
              sizeof(varlen_sim_kernel_info) == 56);
static_assert(offsetof(varlen_gpu_executor_block, memory) == 0 &&
              offsetof(varlen_gpu_executor_block, bytes) == 8 &&
              sizeof(varlen_gpu_executor_block) == 16);
static_assert(offsetof(varlen_gpu_executor_image, name) == 0 &&
              offsetof(varlen_gpu_executor_image, sites) == 8 &&
              offsetof(varlen_gpu_executor_image, num_sites) == 16 &&
              offsetof(varlen_gpu_executor_image, kernels) == 24 &&
              offsetof(varlen_gpu_executor_image, num_kernels) == 32 &&
              offsetof(varlen_gpu_executor_image, blocks) == 40 &&
              offsetof(varlen_gpu_executor_image, num_blocks) == 48 &&
              sizeof(varlen_gpu_executor_image) == 56);

/// varlen_sim_kernel_info of each kernel.
static LLVM::GlobalOp addKernels(ImplicitLocOpBuilder &b, const Twine &prefix,
                                 ArrayRef<HostKernel> kernels) {
  Type pointer = LLVM::LLVMPointerType::get(b.getContext());
  Type i32 = b.getI32Type();
  Type triple = LLVM::LLVMArrayType::get(i32, 3);
  auto infoType = LLVM::LLVMStructType::getLiteral(
      b.getContext(), {pointer, pointer, i32, triple, i32, triple, i32, i32});
  SmallVector<LLVM::GlobalOp> names;
  for (const HostKernel &kernel : kernels)
    names.push_back(
        addText(b, (prefix + kernel.name + ".name").str(), kernel.name));
  ConstantBuilder table(b, (prefix + "kernels").str(),
                        LLVM::LLVMArrayType::get(infoType, kernels.size()));
  for (auto [i, kernel] : llvm::enumerate(kernels)) {
    auto index = static_cast<int64_t>(i);
    auto setTriple = [&](int64_t member, ArrayRef<int32_t> values) {
      for (int64_t d = 0; d < 3; ++d)
        table.setInteger({index, member, d}, 32, values[d]);
    };
    table.setAddress({index, 0}, names[i]);
    table.setAddress({index, 1}, kernel.entry);
    table.setInteger({index, 2}, 32, kernel.sharedBytes);
    setTriple(3, kernel.requiredBlock);
    table.setInteger({index, 4}, 32, kernel.maxThreads);
    setTriple(5, kernel.requiredCluster);
    table.setInteger({index, 6}, 32, kernel.registers);
    table.setInteger({index, 7}, 32, kernel.waitsForGrids);
  }
  return table.finish();
}

/// Address and size of each global that kernels may access.
static LLVM::GlobalOp addBlocks(ImplicitLocOpBuilder &b, const Twine &prefix,
                                ArrayRef<LLVM::GlobalOp> globals) {
  Type pointer = LLVM::LLVMPointerType::get(b.getContext());
  auto blockType = LLVM::LLVMStructType::getLiteral(b.getContext(),
                                                    {pointer, b.getI64Type()});
  ConstantBuilder table(b, (prefix + "blocks").str(),
                        LLVM::LLVMArrayType::get(blockType, globals.size()));
  for (auto [i, global] : llvm::enumerate(globals)) {
    auto index = static_cast<int64_t>(i);
    table.setAddress({index, 0}, global);
    table.setInteger({index, 1}, 64,
                     DataLayout::closest(global).getTypeSize(
                         LLVM::GlobalOp(global).getType()));
  }
  return table.finish();
}

void executor::addImage(ModuleOp module, Location loc, StringRef name,
                        ArrayRef<HostKernel> kernels,
                        ArrayRef<std::string> sites,
                        ArrayRef<LLVM::GlobalOp> globals) {
  auto b = ImplicitLocOpBuilder::atBlockEnd(loc, module.getBody());
  Type pointer = LLVM::LLVMPointerType::get(module.getContext());
  Type i64 = b.getI64Type();
  std::string prefix = ("varlen_sim." + name + ".").str();
  std::string text = llvm::join(sites, StringRef("\0", 1));

  LLVM::GlobalOp nameText = addText(b, prefix + "name", name);
  LLVM::GlobalOp siteText = addText(b, prefix + "sites", text);
  LLVM::GlobalOp kernelTable = addKernels(b, prefix, kernels);
  LLVM::GlobalOp blockTable = addBlocks(b, prefix, globals);
  ConstantBuilder image(b, prefix + "image",
                        LLVM::LLVMStructType::getLiteral(
                            module.getContext(), {pointer, pointer, i64,
                                                  pointer, i64, pointer, i64}));
  image.setAddress({0}, nameText);
  image.setAddress({1}, siteText);
  image.setInteger({2}, 64, static_cast<int64_t>(sites.size()));
  image.setAddress({3}, kernelTable);
  image.setInteger({4}, 64, static_cast<int64_t>(kernels.size()));
  image.setAddress({5}, blockTable);
  image.setInteger({6}, 64, static_cast<int64_t>(globals.size()));
  LLVM::GlobalOp imageTable = image.finish();

  // Registered when the program, or the module of a JIT, is loaded.
  b.setInsertionPointToEnd(module.getBody());
  StringRef registrar = "varlen_gpu_executor_register";
  Type none = LLVM::LLVMVoidType::get(module.getContext());
  if (!module.lookupSymbol(registrar))
    LLVM::LLVMFuncOp::create(b, registrar,
                             LLVM::LLVMFunctionType::get(none, {pointer}));
  auto constructor = LLVM::LLVMFuncOp::create(
      b, prefix + "register", LLVM::LLVMFunctionType::get(none, {}),
      LLVM::Linkage::Internal);
  b.createBlock(&constructor.getBody());
  Value address =
      LLVM::AddressOfOp::create(b, pointer, imageTable.getSymName());
  LLVM::CallOp::create(b, TypeRange(), registrar, ValueRange(address));
  LLVM::ReturnOp::create(b, ValueRange());
  b.setInsertionPointToEnd(module.getBody());
  LLVM::GlobalCtorsOp::create(
      b, b.getArrayAttr(FlatSymbolRefAttr::get(constructor.getNameAttr())),
      b.getI32ArrayAttr({0}),
      b.getArrayAttr(LLVM::ZeroAttr::get(module.getContext())));
}
