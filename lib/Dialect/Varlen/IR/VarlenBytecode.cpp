//===- VarlenBytecode.cpp - The version of bytecode -----------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A file says in which version of the dialect it is. An older one is upgraded
// when it is read, a newer one refused. docs/stability.md says what that
// covers.
//
//===----------------------------------------------------------------------===//

#include "varlen/Dialect/Varlen/IR/Varlen.h"

#include "mlir/Bytecode/BytecodeImplementation.h"

using namespace mlir;
using namespace mlir::varlen;

namespace {
/// Counts up with every change of what a file holds of the operations of the
/// graph level.
constexpr uint64_t kCurrentVersion = 1;

struct VarlenVersion : DialectVersion {
  explicit VarlenVersion(uint64_t number) : number(number) {}
  uint64_t number;
};

struct VarlenBytecodeInterface : BytecodeDialectInterface {
  explicit VarlenBytecodeInterface(Dialect *dialect)
      : BytecodeDialectInterface(dialect) {}

  void writeVersion(DialectBytecodeWriter &writer) const override {
    writer.writeVarInt(kCurrentVersion);
  }

  std::unique_ptr<DialectVersion>
  readVersion(DialectBytecodeReader &reader) const override {
    uint64_t number;
    if (failed(reader.readVarInt(number)))
      return nullptr;
    if (number == 0 || number > kCurrentVersion) {
      reader.emitError("expected version 1 to ")
          << kCurrentVersion << " of the varlen dialect, got " << number;
      return nullptr;
    }
    return std::make_unique<VarlenVersion>(number);
  }

  LogicalResult upgradeFromVersion(Operation *,
                                   const DialectVersion &) const override {
    // Version 1 is the first: there is nothing to upgrade from.
    return success();
  }
};
} // namespace

void VarlenDialect::addBytecodeInterface() {
  addInterfaces<VarlenBytecodeInterface>();
}
