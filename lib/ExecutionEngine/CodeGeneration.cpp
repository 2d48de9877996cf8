//===- CodeGeneration.cpp - From LLVM IR to an object file ----------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CodeGeneration.h"

#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/Pass.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/Utils.h"

using namespace mlir;

namespace {
/// Leaves out the reduction of loops' strength, which these loops need no more.
/// Where it is skipped when its turn comes, the analyses that it asks for, and
/// the pass that prepares for it, still take a sixth of code generation.
class CodeGenerationPasses : public llvm::legacy::PassManager {
public:
  void add(llvm::Pass *pass) override {
    llvm::StringRef name = pass->getPassName();
    bool isReduction = name == "Loop Strength Reduction";
    if (!isReduction && name != "Canonicalize Freeze Instructions in Loops") {
      llvm::legacy::PassManager::add(pass);
      return;
    }
    delete pass;
    // Code generation goes by the form of loops that it asks for.
    if (isReduction)
      llvm::legacy::PassManager::add(llvm::createLoopSimplifyPass());
  }
};
} // namespace

bool varlen::isExecutorKernel(const llvm::Function &function) {
  return !function.isDeclaration() &&
         function.getName().starts_with("varlen_sim.");
}

llvm::Error varlen::emitObject(llvm::Module &code, llvm::TargetMachine &machine,
                               std::string &object) {
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  CodeGenerationPasses passes;
  llvm::MCContext *context;
  if (machine.addPassesToEmitMC(passes, context, stream,
                                /*DisableVerify=*/true))
    return llvm::createStringError("the target has no object files");
  passes.run(code);
  object.assign(bytes.begin(), bytes.end());
  return llvm::Error::success();
}
