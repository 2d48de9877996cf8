//===- ObjectCode.cpp - Machine code that can be kept ---------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "varlen/ExecutionEngine/ObjectCode.h"

#include "CodeGeneration.h"
#include "DivideModule.h"
#include "varlen/ExecutionEngine/ExecutionEngine.h"

#include "mlir/IR/Threading.h"
#include "mlir/Target/LLVMIR/Export.h"

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

#include <cstdlib>
#include <map>
#include <tuple>

using namespace mlir;
using namespace mlir::varlen;
using llvm::Error;
using llvm::Expected;

/// Entries of what runs when code is loaded and unloaded.
static constexpr llvm::StringLiteral constructors = "varlen.constructors";
static constexpr llvm::StringLiteral destructors = "varlen.destructors";

static std::string getEntryName(llvm::StringRef function) {
  return ("varlen_entry." + function).str();
}

/// Adds the function that takes the addresses of the arguments of `callee`, and
/// of where to store its result.
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
  llvm::Value *result = builder.CreateCall(&callee, arguments);
  if (!callee.getReturnType()->isVoidTy()) {
    llvm::Value *slot = builder.CreateConstGEP1_64(pointer, entry->getArg(0),
                                                   callee.arg_size());
    builder.CreateStore(result, builder.CreateLoad(pointer, slot));
  }
  builder.CreateRetVoid();
}

/// Makes one function of the constructors or destructors in a list of LLVM.
static void
addStructors(llvm::Module &code, llvm::StringRef name,
             llvm::iterator_range<llvm::orc::CtorDtorIterator> list) {
  // Functions of one priority keep the order of the list.
  std::multimap<unsigned, llvm::Function *> functions;
  for (llvm::orc::CtorDtorIterator::Element element : list)
    functions.insert({element.Priority, element.Func});
  if (functions.empty())
    return;
  llvm::IRBuilder<> builder(code.getContext());
  auto *entry = llvm::Function::Create(
      llvm::FunctionType::get(builder.getVoidTy(), builder.getPtrTy(),
                              /*isVarArg=*/false),
      llvm::Function::ExternalLinkage, getEntryName(name), code);
  builder.SetInsertPoint(
      llvm::BasicBlock::Create(code.getContext(), "entry", entry));
  for (auto [priority, function] : functions)
    builder.CreateCall(function);
  builder.CreateRetVoid();
}

namespace {
/// Keeps the errors of a code generation: LLVM by itself prints the first one
/// and ends the process. A frame beyond the limit that a function names is one.
class ErrorKeeper : public llvm::DiagnosticHandler {
public:
  explicit ErrorKeeper(std::string &errors) : errors(errors) {}
  bool handleDiagnostics(const llvm::DiagnosticInfo &info) override {
    const auto *frame = llvm::dyn_cast<llvm::DiagnosticInfoStackSize>(&info);
    if (info.getSeverity() != llvm::DS_Error && !frame)
      return true;
    llvm::raw_string_ostream os(errors);
    llvm::DiagnosticPrinterRawOStream printer(os);
    if (!errors.empty())
      os << "; ";
    if (frame)
      os << "expected a stack frame of at most " << frame->getStackLimit()
         << " bytes, got " << frame->getStackSize() << " in "
         << frame->getFunction().getName();
    else
      info.print(printer);
    return true;
  }

private:
  std::string &errors;
};
} // namespace

/// The LLVM module of a part, which lacks some of `functions`; null if there is
/// none.
static std::unique_ptr<llvm::Module>
translate(ModuleOp module, llvm::LLVMContext &context,
          llvm::ArrayRef<std::string> functions) {
  std::unique_ptr<llvm::Module> code = translateModuleToLLVMIR(module, context);
  if (!code)
    return nullptr;
  for (const std::string &name : functions)
    if (llvm::Function *callee = code->getFunction(name);
        callee && !callee->isDeclaration())
      addEntry(*callee);
  addStructors(*code, constructors, llvm::orc::getConstructors(*code));
  addStructors(*code, destructors, llvm::orc::getDestructors(*code));
  return code;
}

/// Whether VARLEN_CODEGEN asks for code that is made in less time.
static Expected<bool> isCodegenFast() {
  llvm::StringRef given = "";
  if (const char *variable = std::getenv("VARLEN_CODEGEN"))
    given = variable;
  if (given.empty() || given == "fast")
    return !given.empty();
  return llvm::createStringError(
      "VARLEN_CODEGEN: expected 'fast' or nothing, got '%s'", given.data());
}

/// Generates code for one object file.
static Error generate(llvm::Module &code, const CPUTarget &target, bool isFast,
                      std::string &object) {
  auto machine = makeTargetMachine(target);
  if (!machine)
    return machine.takeError();
  // These call the executor for all that takes time: LLVM's fastest selection
  // of instructions saves a third of a run, most of which is compilation.
  if (isFast || llvm::any_of(code, isExecutorKernel))
    (*machine)->setOptLevel(llvm::CodeGenOptLevel::None);
  code.setTargetTriple((*machine)->getTargetTriple());
  code.setDataLayout((*machine)->createDataLayout());
  if (Error error = makeOptimizingTransformer(target, **machine)(&code))
    return error;
  return emitObject(code, **machine, object);
}

/// Makes one object file of a part; returns what is wrong with it, or nothing.
static std::string compile(ModuleOp module, const CPUTarget &target,
                           bool isFast, llvm::ArrayRef<std::string> functions,
                           std::string &object) {
  llvm::LLVMContext context;
  std::string errors;
  context.setDiagnosticHandler(std::make_unique<ErrorKeeper>(errors));
  std::unique_ptr<llvm::Module> code = translate(module, context, functions);
  if (!code)
    return "the module cannot be translated to LLVM IR";
  if (Error error = generate(*code, target, isFast, object))
    errors += llvm::toString(std::move(error));
  return errors.empty() ? "" : "LLVM: " + errors;
}

Expected<std::vector<std::string>>
varlen::compileToObjects(ModuleOp module, const CPUTarget &target,
                         llvm::ArrayRef<std::string> functions) {
  Expected<bool> isFast = isCodegenFast();
  if (!isFast)
    return isFast.takeError();
  initializeNativeTarget();
  SmallVector<ModulePart> parts = divideModule(module);
  // Threads take the largest first.
  auto order = llvm::to_vector(llvm::seq(parts.size()));
  llvm::sort(order, [&](size_t a, size_t b) {
    return std::tie(parts[b].size, a) < std::tie(parts[a].size, b);
  });
  std::vector<std::string> objects(parts.size()), errors(parts.size());
  parallelForEach(module.getContext(), order, [&](size_t i) {
    errors[i] =
        compile(parts[i].module, target, *isFast, functions, objects[i]);
  });
  for (const std::string &error : errors)
    if (!error.empty())
      return llvm::createStringError(error);
  return objects;
}

//===----------------------------------------------------------------------===//
// Loading
//===----------------------------------------------------------------------===//

LoadedObjects::LoadedObjects(std::unique_ptr<llvm::orc::LLJIT> jit)
    : jit(std::move(jit)) {}

LoadedObjects::~LoadedObjects() { runIfPresent(destructors); }

void LoadedObjects::runIfPresent(llvm::StringRef function) const {
  if (auto entry = lookup(function))
    (*entry)(nullptr);
  else
    llvm::consumeError(entry.takeError());
}

Expected<std::unique_ptr<LoadedObjects>>
LoadedObjects::create(llvm::ArrayRef<std::string> objects, Symbols symbols) {
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
  for (const std::string &object : objects)
    if (Error error = (*jit)->addObjectFile(
            llvm::MemoryBuffer::getMemBufferCopy(object, "program")))
      return error;
  std::unique_ptr<LoadedObjects> loaded(new LoadedObjects(std::move(*jit)));
  loaded->runIfPresent(constructors);
  return loaded;
}

Expected<LoadedObjects::Entry>
LoadedObjects::lookup(llvm::StringRef function) const {
  auto found = jit->lookup(getEntryName(function));
  if (!found)
    return found.takeError();
  return found->toPtr<Entry>();
}
