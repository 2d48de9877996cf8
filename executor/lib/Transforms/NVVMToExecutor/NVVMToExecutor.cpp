//===- NVVMToExecutor.cpp - GPU kernels to host functions -----------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "NVVMToExecutor.h"

#include "varlen/Executor/Executor.h"
#include "varlen/Executor/Passes.h"
#include "varlen/Runtime/GPU.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MD5.h"
#include "llvm/Support/raw_ostream.h"

namespace mlir::varlen {
#define GEN_PASS_DEF_CONVERTNVVMTOEXECUTOR
#include "varlen/Executor/Passes.h.inc"
} // namespace mlir::varlen

using namespace mlir;
using namespace mlir::varlen;
using namespace mlir::varlen::executor;

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

/// Converts one operation; an error names what the executor lacks.
static LogicalResult lowerOp(Operation *op, CallBuilder &b) {
  b.setOp(op);
  for (auto *lower : {lowerSync, lowerWarp, lowerWgmma, lowerCopy, lowerMath,
                      lowerIntrinsic, lowerMemory})
    if (lower(b) == Lowered::Yes)
      return success();
  // Plain operations of the llvm dialect are the host's, too.
  if (isa<LLVM::LLVMDialect>(op->getDialect()) && b.getRefusal().empty())
    return success();
  InFlightDiagnostic error =
      op->emitOpError("has no equivalent in the executor");
  if (!b.getRefusal().empty())
    error << ": " << b.getRefusal();
  return error;
}

static LogicalResult lowerFunction(LLVM::LLVMFuncOp function, CallBuilder &b) {
  if (function.isExternal())
    return success();
  if (failed(lowerAccumulators(b, function)))
    return failure();
  lowerBatches(b, function);
  SmallVector<Operation *> ops;
  function.walk([&](Operation *op) {
    if (op != function)
      ops.push_back(op);
  });
  bool isKnown = true;
  for (Operation *op : ops)
    isKnown &= succeeded(lowerOp(op, b));
  return success(isKnown);
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

static bool isKernel(LLVM::LLVMFuncOp function) {
  return function->hasAttr(gpu::GPUDialect::getKernelFuncAttrName()) ||
         function->hasAttr(NVVM::NVVMDialect::getKernelFuncAttrName());
}

/// Zeros without the attribute; dimensions that it leaves out are 1.
static std::array<int32_t, 3> getTriple(Operation *op, StringRef attribute) {
  auto values = op->getAttrOfType<DenseI32ArrayAttr>(attribute);
  if (!values || values.empty())
    return {};
  std::array<int32_t, 3> triple = {1, 1, 1};
  llvm::copy(values.asArrayRef().take_front(3), triple.begin());
  return triple;
}

/// What the kernel's attributes demand.
static HostKernel describe(LLVM::LLVMFuncOp function) {
  HostKernel kernel;
  kernel.function = function;
  kernel.name = function.getSymName().str();
  kernel.requiredBlock =
      getTriple(function, NVVM::NVVMDialect::getReqntidAttrName());
  kernel.requiredCluster =
      getTriple(function, NVVM::NVVMDialect::getClusterDimAttrName());
  kernel.maxThreads = llvm::product_of(
      getTriple(function, NVVM::NVVMDialect::getMaxntidAttrName()));
  if (auto registers = function->getAttrOfType<IntegerAttr>(
          NVVM::NVVMDialect::getMaxnregAttrName()))
    kernel.registers = static_cast<int32_t>(registers.getInt());
  return kernel;
}

/// The function that takes the arguments as a launch gives them: one pointer to
/// each. An argument byval is that pointer, to a copy.
static FailureOr<LLVM::LLVMFuncOp> makeEntry(LLVM::LLVMFuncOp kernel,
                                             ImplicitLocOpBuilder &b) {
  if (!isa<LLVM::LLVMVoidType>(kernel.getFunctionType().getReturnType()))
    return kernel.emitError("is a kernel with a result: expected none");
  OpBuilder::InsertionGuard guard(b);
  b.setLoc(kernel.getLoc());
  Type pointer = LLVM::LLVMPointerType::get(b.getContext());
  auto entry = LLVM::LLVMFuncOp::create(
      b, (kernel.getSymName() + ".entry").str(),
      LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(b.getContext()),
                                  {pointer}),
      LLVM::Linkage::Internal);
  Block *block = b.createBlock(&entry.getBody());
  Value list = block->addArgument(pointer, b.getLoc());
  SmallVector<Value> arguments;
  for (BlockArgument argument : kernel.getArguments()) {
    unsigned i = argument.getArgNumber();
    Value slot =
        LLVM::GEPOp::create(b, pointer, pointer, list,
                            ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(i)});
    Value address = LLVM::LoadOp::create(b, pointer, slot);
    auto byval = kernel.getArgAttrOfType<TypeAttr>(
        i, LLVM::LLVMDialect::getByValAttrName());
    if (!byval) {
      arguments.push_back(LLVM::LoadOp::create(b, argument.getType(), address));
      continue;
    }
    auto alignment = kernel.getArgAttrOfType<IntegerAttr>(
        i, LLVM::LLVMDialect::getAlignAttrName());
    Value one = LLVM::ConstantOp::create(b, b.getI32Type(), 1);
    Value copy = LLVM::AllocaOp::create(
        b, pointer, byval.getValue(), one,
        alignment ? static_cast<unsigned>(alignment.getInt()) : 16);
    Value value = LLVM::LoadOp::create(b, byval.getValue(), address,
                                       /*alignment=*/1);
    LLVM::StoreOp::create(b, value, copy);
    if (copy.getType() != argument.getType())
      copy = LLVM::AddrSpaceCastOp::create(b, argument.getType(), copy);
    arguments.push_back(copy);
  }
  LLVM::CallOp::create(b, kernel, arguments);
  LLVM::ReturnOp::create(b, ValueRange());
  return entry;
}

/// Removes what only a GPU understands, and limits what it has of a fiber's
/// stack.
static void makeHostFunction(LLVM::LLVMFuncOp function) {
  for (NamedAttribute attribute :
       llvm::to_vector(function->getDiscardableAttrs()))
    function->removeDiscardableAttr(attribute.getName());
  function.setCConv(LLVM::CConv::C);
  function.setLinkage(LLVM::Linkage::Internal);
  function.removeArgAttrsAttr();
  function.removeTargetCpuAttr();
  function.removeTuneCpuAttr();
  function.removeTargetFeaturesAttr();
  // A frame is as large as the code has values. It touches each of its pages,
  // so that one that is too large reaches the guard of its stack.
  Builder b(function.getContext());
  std::string limit = llvm::Twine(unsigned(VARLEN_SIM_FRAME_BYTES)).str();
  function.setPassthroughAttr(
      b.getArrayAttr({b.getStrArrayAttr({"warn-stack-size", limit}),
                      b.getStrArrayAttr({"probe-stack", "inline-asm"})}));
}

//===----------------------------------------------------------------------===//
// Modules
//===----------------------------------------------------------------------===//

/// A name that no other content has: a process may load several modules.
static std::string makeImageName(gpu::GPUModuleOp kernelModule) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  kernelModule.print(stream, OpPrintingFlags().enableDebugInfo());
  llvm::MD5::MD5Result hash =
      llvm::MD5::hash(llvm::arrayRefFromStringRef(text));
  return (kernelModule.getName() + "." + hash.digest().substr(0, 16)).str();
}

namespace {
/// The conversion of one gpu.module.
class ModuleConverter {
public:
  ModuleConverter(ModuleOp module, gpu::GPUModuleOp kernelModule)
      : module(module), kernelModule(kernelModule), b(module) {}

  LogicalResult run();
  unsigned getNumKernels() const { return kernels.size(); }

private:
  LogicalResult collect();
  void renameSymbols();
  LogicalResult placeSharedMemory();
  void markGlobalOrder();
  LogicalResult checkCalls();
  LogicalResult moveToHost();
  void replaceByBinary();

  ModuleOp module;
  gpu::GPUModuleOp kernelModule;
  CallBuilder b;
  std::string imageName;
  SmallVector<LLVM::LLVMFuncOp> functions;
  SmallVector<LLVM::GlobalOp> globals;
  SmallVector<HostKernel> kernels;
};
} // namespace

LogicalResult ModuleConverter::collect() {
  LLVM::GlobalOp waits;
  for (Operation &op : *kernelModule.getBody()) {
    if (auto function = dyn_cast<LLVM::LLVMFuncOp>(op)) {
      functions.push_back(function);
      if (isKernel(function))
        kernels.push_back(describe(function));
    } else if (auto global = dyn_cast<LLVM::GlobalOp>(op)) {
      if (global.getSymName() == VARLEN_GPU_WAITS_FOR_GRIDS)
        waits = global;
      else
        globals.push_back(global);
    } else {
      return op.emitOpError(
          "is not of the llvm dialect: expected functions and globals of it "
          "in a gpu.module for the executor");
    }
  }
  if (!waits)
    return success();
  for (HostKernel &kernel : kernels)
    kernel.waitsForGrids = true;
  waits.erase();
  return success();
}

/// The host's module may have the same names. All are changed by one walk,
/// where SymbolTable::rename would take one for each.
void ModuleConverter::renameSymbols() {
  SymbolTable table(kernelModule);
  llvm::DenseMap<StringAttr, StringAttr> names;
  auto rename = [&](Operation *op) {
    StringAttr name = SymbolTable::getSymbolName(op);
    auto changed = StringAttr::get(op->getContext(),
                                   "varlen_sim." + kernelModule.getName() +
                                       "." + name.getValue());
    if (table.lookup(changed))
      return;
    SymbolTable::setSymbolName(op, changed);
    names[name] = changed;
  };
  for (LLVM::LLVMFuncOp function : functions)
    if (!function.isExternal())
      rename(function);
  for (LLVM::GlobalOp global : globals)
    rename(global);
  AttrTypeReplacer replacer;
  replacer.addReplacement(
      [&](SymbolRefAttr use)
          -> std::optional<std::pair<Attribute, WalkResult>> {
        StringAttr changed = names.lookup(use.getRootReference());
        if (!changed)
          return std::pair(use, WalkResult::skip());
        return std::pair(SymbolRefAttr::get(changed, use.getNestedReferences()),
                         WalkResult::skip());
      });
  replacer.recursivelyReplaceElementsIn(kernelModule, /*replaceAttrs=*/true);
}

LogicalResult ModuleConverter::placeSharedMemory() {
  FailureOr<llvm::DenseMap<LLVM::GlobalOp, uint32_t>> offsets =
      layoutSharedMemory(kernelModule, kernels);
  if (failed(offsets))
    return failure();
  SymbolTable table(kernelModule);
  SmallVector<LLVM::AddressOfOp> addresses;
  kernelModule.walk(
      [&](LLVM::AddressOfOp address) { addresses.push_back(address); });
  for (LLVM::AddressOfOp address : addresses) {
    auto global = table.lookup<LLVM::GlobalOp>(address.getGlobalName());
    if (!global || !isShared(global))
      continue;
    b.setOp(address);
    Value base = b.call("varlen_sim_smem", b.pointer,
                        {b.i32Constant(offsets->lookup(global))},
                        /*isPure=*/true);
    b.replaceOp(b.castTo(address.getType(), base));
  }
  llvm::erase_if(globals, [](LLVM::GlobalOp global) {
    if (!isShared(global))
      return false;
    global.erase();
    return true;
  });
  return success();
}

/// Has kernels say first of all if their CTAs order each other; what a function
/// does any kernel may.
void ModuleConverter::markGlobalOrder() {
  auto orders = [](LLVM::LLVMFuncOp function) {
    return !function.isExternal() && hasGlobalOrder(function);
  };
  bool calleesDo = llvm::any_of(functions, [&](LLVM::LLVMFuncOp function) {
    return !isKernel(function) && orders(function);
  });
  for (LLVM::LLVMFuncOp function : functions) {
    if (!isKernel(function) || !(calleesDo || orders(function)))
      continue;
    b.setOp(&function.getBody().front().front());
    b.call("varlen_sim_order_global", {});
  }
}

/// No kernel may call an undefined function.
LogicalResult ModuleConverter::checkCalls() {
  llvm::DenseSet<StringAttr> undefined;
  for (LLVM::LLVMFuncOp function : functions)
    if (function.isExternal())
      undefined.insert(function.getSymNameAttr());
  if (undefined.empty())
    return success();
  bool isDefined = true;
  if (auto uses = SymbolTable::getSymbolUses(&kernelModule.getBodyRegion()))
    for (SymbolTable::SymbolUse use : *uses) {
      StringAttr name = use.getSymbolRef().getRootReference();
      if (!undefined.contains(name))
        continue;
      use.getUser()->emitError() << "the executor does not have the function '"
                                 << name.getValue() << "'";
      isDefined = false;
    }
  return success(isDefined);
}

LogicalResult ModuleConverter::moveToHost() {
  llvm::erase_if(functions, [](LLVM::LLVMFuncOp function) {
    return function.isExternal();
  });
  for (LLVM::GlobalOp global : globals)
    global->moveBefore(kernelModule);
  for (LLVM::LLVMFuncOp function : functions)
    function->moveBefore(kernelModule);
  // While arguments still have the attributes that say how they are passed.
  ImplicitLocOpBuilder builder(kernelModule.getLoc(), kernelModule);
  for (HostKernel &kernel : kernels) {
    FailureOr<LLVM::LLVMFuncOp> entry = makeEntry(kernel.function, builder);
    if (failed(entry))
      return failure();
    kernel.entry = *entry;
  }
  for (LLVM::LLVMFuncOp function : functions)
    makeHostFunction(function);
  return success();
}

/// Launches still name kernels of this module; its object now says which image
/// they are in.
void ModuleConverter::replaceByBinary() {
  OpBuilder builder(kernelModule);
  Attribute target;
  if (ArrayAttr targets = kernelModule.getTargetsAttr();
      targets && !targets.empty())
    target = targets[0];
  else
    target = NVVM::NVVMTargetAttr::get(module.getContext());
  Attribute object = gpu::ObjectAttr::get(
      module.getContext(), target, gpu::CompilationTarget::Binary,
      builder.getStringAttr("varlen-executor:" + imageName), DictionaryAttr(),
      gpu::KernelTableAttr());
  gpu::BinaryOp::create(builder, kernelModule.getLoc(), kernelModule.getName(),
                        /*offloadingHandler=*/Attribute(),
                        ArrayRef<Attribute>{object});
  kernelModule.erase();
}

LogicalResult ModuleConverter::run() {
  if (failed(collect()))
    return failure();
  imageName = makeImageName(kernelModule);
  renameSymbols();
  if (failed(placeSharedMemory()))
    return failure();
  markGlobalOrder();
  bool isLowered = true;
  for (LLVM::LLVMFuncOp function : functions)
    isLowered &= succeeded(lowerFunction(function, b));
  if (!isLowered || failed(checkCalls()) || failed(moveToHost()))
    return failure();
  addImage(module, kernelModule.getLoc(), imageName, kernels, b.getSites(),
           globals);
  replaceByBinary();
  return success();
}

namespace {

struct ConvertNVVMToExecutor
    : varlen::impl::ConvertNVVMToExecutorBase<ConvertNVVMToExecutor> {
  using ConvertNVVMToExecutorBase::ConvertNVVMToExecutorBase;

  void runOnOperation() override {
    for (gpu::GPUModuleOp kernelModule :
         llvm::to_vector(getOperation().getOps<gpu::GPUModuleOp>())) {
      ModuleConverter converter(getOperation(), kernelModule);
      if (failed(converter.run()))
        return signalPassFailure();
      numConverted += converter.getNumKernels();
    }
  }
};

} // namespace
