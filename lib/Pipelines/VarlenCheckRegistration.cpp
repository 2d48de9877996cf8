//===- VarlenCheckRegistration.cpp - What a host has forgotten ------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Upstream registers the models of one interface for all operations of a
// dialect at once, so one operation stands for its dialect.
//
//===----------------------------------------------------------------------===//

#include "varlen/Pipelines/Passes.h"

#include "mlir/Conversion/ConvertToLLVM/ToLLVMInterface.h"
#include "mlir/Dialect/Bufferization/IR/BufferizableOpInterface.h"
#include "mlir/Dialect/GPU/IR/CompilationInterfaces.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/TilingInterface.h"
#include "mlir/Target/LLVMIR/LLVMTranslationInterface.h"

#include "llvm/ADT/StringSet.h"

namespace mlir::varlen {
#define GEN_PASS_DEF_VARLENCHECKREGISTRATION
#include "varlen/Pipelines/Passes.h.inc"
} // namespace mlir::varlen

using namespace mlir;
using namespace mlir::varlen;

//===----------------------------------------------------------------------===//
// What there is
//===----------------------------------------------------------------------===//

/// Whether an operation of a loaded dialect lacks an implementation.
template <typename Interface>
static bool lacksModel(StringRef operation, MLIRContext *context) {
  auto name = RegisteredOperationName::lookup(operation, context);
  return name && !name->hasInterface<Interface>();
}

/// The same of a dialect. Asking for an interface that the dialect has promised
/// ends the program if the promise has not been kept.
template <typename Interface>
static bool lacksInterface(StringRef name, MLIRContext *context) {
  Dialect *dialect = context->getLoadedDialect(name);
  TypeID interface = Interface::getInterfaceID();
  return dialect &&
         (dialect->hasPromisedInterface(dialect->getTypeID(), interface) ||
          !dialect->getRegisteredInterface(interface));
}

static bool lacksTarget(StringRef, MLIRContext *context) {
  return context->getLoadedDialect<NVVM::NVVMDialect>() &&
         !AbstractAttribute::lookup(NVVM::NVVMTargetAttr::getTypeID(), context)
              .hasInterface(gpu::TargetAttrInterface::getInterfaceID());
}

//===----------------------------------------------------------------------===//
// What there has to be
//===----------------------------------------------------------------------===//

namespace {
/// The subjects that have to implement one interface.
struct Rule {
  RegistrationStage stage;
  StringRef interface;
  bool (*isMissing)(StringRef subject, MLIRContext *context);
  /// Always; and if the module has operations of the dialect.
  ArrayRef<StringRef> always;
  ArrayRef<StringRef> ifUsed = {};
};
} // namespace

static constexpr StringRef bufferized[] = {"arith.constant", "func.call",
                                           "linalg.generic", "scf.if",
                                           "tensor.empty",   "varlen.attn"};
static constexpr StringRef bufferizedIfUsed[] = {"cf.br",
                                                 "vector.transfer_read"};
static constexpr StringRef tiled[] = {"linalg.generic"};
// There is a pass for what is left of vectors.
static constexpr StringRef hostDialects[] = {"arith", "cf",     "func",
                                             "math",  "memref", "ub"};
// And patterns for math in kernels.
static constexpr StringRef kernelDialects[] = {"arith", "cf", "memref", "ub"};
static constexpr StringRef dialectsIfUsed[] = {"complex", "index"};
static constexpr StringRef targets[] = {"nvvm.target"};
static constexpr StringRef translated[] = {"gpu", "llvm", "nvvm"};

static constexpr Rule rules[] = {
    {RegistrationStage::Bufferize, "BufferizableOpInterface",
     lacksModel<bufferization::BufferizableOpInterface>, bufferized,
     bufferizedIfUsed},
    {RegistrationStage::Bufferize, "TilingInterface",
     lacksModel<TilingInterface>, tiled},
    {RegistrationStage::ToLLVM, "ConvertToLLVMPatternInterface",
     lacksInterface<ConvertToLLVMPatternInterface>, hostDialects,
     dialectsIfUsed},
    {RegistrationStage::Kernels, "ConvertToLLVMPatternInterface",
     lacksInterface<ConvertToLLVMPatternInterface>, kernelDialects,
     dialectsIfUsed},
    {RegistrationStage::Kernels, "gpu::TargetAttrInterface", lacksTarget,
     targets},
    {RegistrationStage::PTX, "LLVMTranslationDialectInterface",
     lacksInterface<LLVMTranslationDialectInterface>, translated},
};

/// The dialects of the operations of a module.
static llvm::StringSet<> getDialects(ModuleOp module) {
  llvm::StringSet<> names;
  module.walk([&](Operation *op) {
    names.insert(op->getName().getDialectNamespace());
  });
  return names;
}

namespace {

struct VarlenCheckRegistration
    : varlen::impl::VarlenCheckRegistrationBase<VarlenCheckRegistration> {
  using VarlenCheckRegistrationBase::VarlenCheckRegistrationBase;

  void runOnOperation() override {
    llvm::StringSet<> used = getDialects(getOperation());
    for (const Rule &rule : rules) {
      if (rule.stage != stage)
        continue;
      for (StringRef subject : rule.always)
        check(rule, subject);
      for (StringRef subject : rule.ifUsed)
        if (used.contains(subject.split('.').first))
          check(rule, subject);
    }
  }

private:
  void check(const Rule &rule, StringRef subject) {
    if (!rule.isMissing(subject, &getContext()))
      return;
    StringRef function = subject.starts_with("varlen.")
                             ? "registerAllExtensions"
                             : "registerRequiredUpstream";
    getOperation().emitError("expected an implementation of ")
        << rule.interface << " for '" << subject
        << "', which mlir::varlen::" << function << " registers";
    signalPassFailure();
  }
};

} // namespace
