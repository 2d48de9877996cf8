//===- ObjectCode.cpp - Machine code that can be kept ---------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "varlen/ExecutionEngine/ObjectCode.h"

#include "varlen/ExecutionEngine/ExecutionEngine.h"

#include "mlir/Target/LLVMIR/Export.h"

#include "llvm/ExecutionEngine/Orc/CompileUtils.h"
#include "llvm/ExecutionEngine/Orc/ExecutionUtils.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/ExecutionEngine/Orc/RTDyldObjectLinkingLayer.h"
#include "llvm/ExecutionEngine/SectionMemoryManager.h"
#include "llvm/IR/DiagnosticHandler.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/DiagnosticPrinter.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Target/TargetMachine.h"

using namespace mlir;
using namespace mlir::varlen;
using llvm::Error;
using llvm::Expected;

static std::string getEntryName(llvm::StringRef function) {
  return ("varlen_entry." + function).str();
}

/// Adds the function that takes the addresses of the arguments of `callee`.
static void addEntry(llvm::Function &callee) {
  llvm::LLVMContext &context = callee.getContext();
  llvm::IRBuilder<> builder(context);
  llvm::Type *pointer = builder.getPtrTy();
  auto *entry = llvm::Function::Create(
      llvm::FunctionType::get(builder.getVoidTy(), pointer, /*isVarArg=*/false),
      llvm::Function::ExternalLinkage, getEntryName(callee.getName()),
      callee.getParent());
  builder.SetInsertPoint(llvm::BasicBlock::Create(context, "entry", entry));
  llvm::SmallVector<llvm::Value *> arguments;
  for (llvm::Argument &argument : callee.args()) {
    llvm::Value *slot = builder.CreateConstGEP1_64(pointer, entry->getArg(0),
                                                   argument.getArgNo());
    llvm::Value *address = builder.CreateLoad(pointer, slot);
    arguments.push_back(builder.CreateLoad(argument.getType(), address));
  }
  builder.CreateCall(&callee, arguments);
  builder.CreateRetVoid();
}

namespace {
/// Keeps the errors of a code generation: LLVM by itself prints the first one
/// and ends the process.
class ErrorKeeper : public llvm::DiagnosticHandler {
public:
  explicit ErrorKeeper(std::string &errors) : errors(errors) {}
  bool handleDiagnostics(const llvm::DiagnosticInfo &info) override {
    if (info.getSeverity() != llvm::DS_Error)
      return true;
    llvm::raw_string_ostream os(errors);
    llvm::DiagnosticPrinterRawOStream printer(os);
    if (!errors.empty())
      os << "; ";
    info.print(printer);
    return true;
  }

private:
  std::string &errors;
};
} // namespace

Expected<std::unique_ptr<llvm::MemoryBuffer>>
varlen::compileToObject(ModuleOp module, const CPUTarget &target,
                        llvm::ArrayRef<std::string> functions) {
  initializeNativeTarget();
  auto machine = makeTargetMachine(target);
  if (!machine)
    return machine.takeError();
  llvm::LLVMContext context;
  std::string errors;
  context.setDiagnosticHandler(std::make_unique<ErrorKeeper>(errors));
  std::unique_ptr<llvm::Module> code = translateModuleToLLVMIR(module, context);
  if (!code)
    return llvm::createStringError(
        "the module cannot be translated to LLVM IR");
  code->setTargetTriple((*machine)->getTargetTriple());
  code->setDataLayout((*machine)->createDataLayout());
  for (const std::string &name : functions) {
    llvm::Function *callee = code->getFunction(name);
    if (!callee || !callee->getReturnType()->isVoidTy())
      return llvm::createStringError("expected a function " + name +
                                     " that returns nothing");
    addEntry(*callee);
  }
  if (Error error = makeOptimizingTransformer(target, **machine)(code.get()))
    return error;
  auto object = llvm::orc::SimpleCompiler(**machine)(*code);
  if (!object || errors.empty())
    return object;
  return llvm::createStringError("LLVM: " + errors);
}

LoadedObject::LoadedObject(std::unique_ptr<llvm::orc::LLJIT> jit)
    : jit(std::move(jit)) {}

LoadedObject::~LoadedObject() = default;

Expected<std::unique_ptr<LoadedObject>>
LoadedObject::create(llvm::MemoryBufferRef object, Symbols symbols) {
  initializeNativeTarget();
  // Nothing is unwound, so there is nothing to register for it.
  auto makeLinker = [](llvm::orc::ExecutionSession &session) {
    return std::make_unique<llvm::orc::RTDyldObjectLinkingLayer>(
        session, [](const llvm::MemoryBuffer &) {
          return std::make_unique<llvm::SectionMemoryManager>();
        });
  };
  auto jit = llvm::orc::LLJITBuilder()
                 .setObjectLinkingLayerCreator(makeLinker)
                 .setLinkProcessSymbolsByDefault(false)
                 .setPlatformSetUp(llvm::orc::setUpInactivePlatform)
                 .create();
  if (!jit)
    return jit.takeError();
  llvm::orc::JITDylib &library = (*jit)->getMainJITDylib();
  llvm::orc::SymbolMap map;
  symbols([&](llvm::StringRef name, void *address) {
    map[(*jit)->mangleAndIntern(name)] = {
        llvm::orc::ExecutorAddr::fromPtr(address),
        llvm::JITSymbolFlags::Exported};
  });
  if (Error error = library.define(llvm::orc::absoluteSymbols(std::move(map))))
    return error;
  auto process = llvm::orc::DynamicLibrarySearchGenerator::GetForCurrentProcess(
      (*jit)->getDataLayout().getGlobalPrefix());
  if (!process)
    return process.takeError();
  library.addGenerator(std::move(*process));
  if (Error error = (*jit)->addObjectFile(llvm::MemoryBuffer::getMemBufferCopy(
          object.getBuffer(), object.getBufferIdentifier())))
    return error;
  return std::unique_ptr<LoadedObject>(new LoadedObject(std::move(*jit)));
}

Expected<LoadedObject::Entry>
LoadedObject::lookup(llvm::StringRef function) const {
  auto found = jit->lookup(getEntryName(function));
  if (!found)
    return found.takeError();
  return found->toPtr<Entry>();
}
