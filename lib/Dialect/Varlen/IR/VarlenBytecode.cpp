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
constexpr uint64_t kCurrentVersion = 2;
/// The first version with captures, whose segment of operands came last; one
/// that is read without it has none, as properties have by default.
constexpr uint64_t kCaptures = 2;

/// MLIR's version of bytecode from which on these are no attribute.
constexpr int64_t kNativeSegmentSizes = 6;

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
};
} // namespace

//===----------------------------------------------------------------------===//
// Properties of gradients
//===----------------------------------------------------------------------===//

// As upstream encodes them, but for what a version lacks: upstream reads all
// that the operation has today.

template <typename Op>
static LogicalResult readGradProperties(DialectBytecodeReader &reader,
                                        OperationState &state) {
  auto &properties = state.getOrAddProperties<typename Op::Properties>();
  auto version = reader.getDialectVersion<VarlenDialect>();
  bool hasCaptures =
      failed(version) ||
      static_cast<const VarlenVersion *>(*version)->number >= kCaptures;
  MutableArrayRef<int32_t> segments(properties.operandSegmentSizes);
  bool isSparse = reader.getBytecodeVersion() >= kNativeSegmentSizes;
  DenseI32ArrayAttr sizes;
  if (failed(reader.readOptionalAttribute(properties.mask)) ||
      (!isSparse && failed(reader.readAttribute(sizes))) ||
      failed(reader.readOptionalAttribute(properties.scale)) ||
      (hasCaptures &&
       failed(reader.readOptionalAttribute(properties.wrt_captures))))
    return failure();
  if (isSparse)
    return reader.readSparseArray(segments);
  if (sizes.size() > static_cast<int64_t>(segments.size())) {
    reader.emitError("expected at most ")
        << segments.size() << " segments of operands, got " << sizes.size();
    return failure();
  }
  llvm::copy(sizes.asArrayRef(), segments.begin());
  return success();
}

template <typename Op>
static void writeGradProperties(Op op, DialectBytecodeWriter &writer) {
  auto &properties = op.getProperties();
  ArrayRef<int32_t> segments(properties.operandSegmentSizes);
  bool isSparse = writer.getBytecodeVersion() >= kNativeSegmentSizes;
  writer.writeOptionalAttribute(properties.mask);
  if (!isSparse)
    writer.writeAttribute(DenseI32ArrayAttr::get(op.getContext(), segments));
  writer.writeOptionalAttribute(properties.scale);
  writer.writeOptionalAttribute(properties.wrt_captures);
  if (isSparse)
    writer.writeSparseArray(segments);
}

LogicalResult AttnGradOp::readProperties(DialectBytecodeReader &reader,
                                         OperationState &state) {
  return readGradProperties<AttnGradOp>(reader, state);
}

void AttnGradOp::writeProperties(DialectBytecodeWriter &writer) {
  writeGradProperties(*this, writer);
}

LogicalResult AttnGradIntoOp::readProperties(DialectBytecodeReader &reader,
                                             OperationState &state) {
  return readGradProperties<AttnGradIntoOp>(reader, state);
}

void AttnGradIntoOp::writeProperties(DialectBytecodeWriter &writer) {
  writeGradProperties(*this, writer);
}

void VarlenDialect::addBytecodeInterface() {
  addInterfaces<VarlenBytecodeInterface>();
}
