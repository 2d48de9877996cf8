//===- Varlen.cpp - The varlen dialect ------------------------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "varlen/Dialect/Varlen/IR/Varlen.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/BufferizableOpInterface.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/Interfaces/RuntimeVerifiableOpInterface.h"
#include "mlir/Transforms/InliningUtils.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::varlen;

#include "varlen/Dialect/Varlen/IR/VarlenDialect.cpp.inc"
#include "varlen/Dialect/Varlen/IR/VarlenEnums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "varlen/Dialect/Varlen/IR/VarlenAttrs.cpp.inc"

namespace {
/// Every op of the dialect may be inlined anywhere.
struct VarlenInlinerInterface : DialectInlinerInterface {
  using DialectInlinerInterface::DialectInlinerInterface;
  bool isLegalToInline(Operation *, Region *, bool, IRMapping &) const final {
    return true;
  }
};
} // namespace

void VarlenDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "varlen/Dialect/Varlen/IR/VarlenAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "varlen/Dialect/Varlen/IR/VarlenOps.cpp.inc"
      >();
  addInterfaces<VarlenInlinerInterface>();
  // Implemented in the transforms library. An MLIR with assertions stops at the
  // use of one that registerAllExtensions was not called for; without this, the
  // operation would be passed over in silence there too.
  declarePromisedInterface<bufferization::BufferizableOpInterface, AttnOp>();
  declarePromisedInterface<bufferization::BufferizableOpInterface,
                           AttnGradOp>();
  declarePromisedInterface<RuntimeVerifiableOpInterface, AttnOp>();
  declarePromisedInterface<RuntimeVerifiableOpInterface, AttnGradOp>();
}

/// Checks that warps can share the rows of their tile.
static LogicalResult verifyTileRows(function_ref<InFlightDiagnostic()> error,
                                    StringRef name, int64_t rows,
                                    int64_t warps) {
  if (rows % (16 * warps) == 0)
    return success();
  return error() << "expected " << name
                 << " to be a multiple of 16 * warps = " << 16 * warps
                 << ", got " << rows;
}

LogicalResult VarlenDialect::verifyOperationAttribute(Operation *op,
                                                      NamedAttribute attr) {
  if (attr.getName() != kScheduleAttrName)
    return success();
  if (!isa<CPUScheduleAttr, GPUScheduleAttr, GPUGradScheduleAttr>(
          attr.getValue()))
    return op->emitOpError("expected ")
           << attr.getName()
           << " to be a #varlen.cpu_schedule, #varlen.gpu_schedule or "
              "#varlen.gpu_grad_schedule, got "
           << attr.getValue();
  if (auto gpu = dyn_cast<GPUScheduleAttr>(attr.getValue()))
    return verifyTileRows([&] { return op->emitOpError(); }, "block_m",
                          gpu.getBlockM(), gpu.getWarps());
  return success();
}

/// A name is a non-empty string.
static LogicalResult verifyName(Operation *op, NamedAttribute attr) {
  if (attr.getName() != "varlen.name")
    return success();
  auto name = dyn_cast<StringAttr>(attr.getValue());
  if (name && !name.empty())
    return success();
  return op->emitOpError("expected varlen.name to be a non-empty string, got ")
         << attr.getValue();
}

LogicalResult VarlenDialect::verifyRegionArgAttribute(Operation *op, unsigned,
                                                      unsigned,
                                                      NamedAttribute attr) {
  return verifyName(op, attr);
}

LogicalResult VarlenDialect::verifyRegionResultAttribute(Operation *op,
                                                         unsigned, unsigned,
                                                         NamedAttribute attr) {
  return verifyName(op, attr);
}

//===----------------------------------------------------------------------===//
// MaskAttr
//===----------------------------------------------------------------------===//

Attribute MaskAttr::parse(AsmParser &parser, Type) {
  int64_t left = -1, right = -1;
  Alignment alignment = Alignment::BottomRight;
  StringRef kind;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseLess() || parser.parseKeyword(&kind))
    return {};
  if (kind == "causal") {
    right = 0;
  } else if (kind == "window") {
    if (parser.parseEqual() || parser.parseLParen() ||
        parser.parseInteger(left) || parser.parseComma() ||
        parser.parseInteger(right) || parser.parseRParen())
      return {};
  } else if (kind != "full") {
    parser.emitError(loc, "expected full, causal or window = (left, right), "
                          "got ")
        << kind;
    return {};
  }
  if (succeeded(parser.parseOptionalComma())) {
    StringRef name;
    loc = parser.getCurrentLocation();
    if (parser.parseKeyword(&name))
      return {};
    std::optional<Alignment> parsed = symbolizeAlignment(name);
    if (!parsed) {
      parser.emitError(loc, "expected bottom_right or top_left, got ") << name;
      return {};
    }
    alignment = *parsed;
  }
  if (parser.parseGreater())
    return {};
  return parser.getChecked<MaskAttr>(loc, parser.getContext(), left, right,
                                     alignment);
}

void MaskAttr::print(AsmPrinter &printer) const {
  printer << '<';
  if (isFull())
    printer << "full";
  else if (isCausal())
    printer << "causal";
  else
    printer << "window = (" << getLeft() << ", " << getRight() << ')';
  if (getAlignment() != Alignment::BottomRight)
    printer << ", " << stringifyAlignment(getAlignment());
  printer << '>';
}

LogicalResult MaskAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                               int64_t left, int64_t right, Alignment) {
  if (left < -1 || right < -1)
    return emitError() << "expected window bounds >= -1 (-1 is open), got ("
                       << left << ", " << right << ')';
  return success();
}

//===----------------------------------------------------------------------===//
// CPUScheduleAttr
//===----------------------------------------------------------------------===//

LogicalResult
CPUScheduleAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                        int64_t lanes, int64_t vectors, int64_t rows,
                        int64_t panels, int64_t kvBlock, KVStorage) {
  for (auto [name, size] :
       {std::pair("lanes", lanes), std::pair("vectors", vectors),
        std::pair("rows", rows), std::pair("panels", panels),
        std::pair("kv_block", kvBlock)})
    if (size < 1)
      return emitError() << "expected positive " << name << ", got " << size;
  if (kGranule % rows != 0)
    return emitError() << "expected rows to be 1, 2, 4 or 8, got " << rows;
  if (kvBlock % kGranule != 0)
    return emitError() << "expected kv_block to be a multiple of " << kGranule
                       << ", got " << kvBlock;
  return success();
}

LogicalResult GPUScheduleAttr::verify(function_ref<InFlightDiagnostic()> error,
                                      int64_t warps, int64_t blockM,
                                      int64_t kvBlock, int64_t stages,
                                      int64_t ctas) {
  // A block of CUDA has at most 1024 threads.
  if (warps < 1 || warps > 32)
    return error() << "expected warps from 1 to 32, got " << warps;
  // A product takes 16 rows of one side and contracts over 16 of the other.
  for (auto [name, size] :
       {std::pair("block_m", blockM), std::pair("kv_block", kvBlock)})
    if (size < 1 || size % 16 != 0)
      return error() << "expected " << name << " to be a multiple of 16, got "
                     << size;
  if (stages < 2)
    return error() << "expected at least 2 stages, got " << stages;
  if (ctas < 1)
    return error() << "expected positive ctas, got " << ctas;
  return success();
}

LogicalResult
GPUGradScheduleAttr::verify(function_ref<InFlightDiagnostic()> error,
                            GPUScheduleAttr dq, GPUScheduleAttr dk,
                            GPUScheduleAttr dv) {
  if (failed(verifyTileRows(error, "block_m of dq", dq.getBlockM(),
                            dq.getWarps())) ||
      failed(verifyTileRows(error, "kv_block of dk", dk.getKvBlock(),
                            dk.getWarps())))
    return failure();
  if (!dv)
    return success();
  if (dv.getKvBlock() != dk.getKvBlock())
    return error() << "expected dk and dv to have tiles of the same kv_block, "
                      "got "
                   << dk.getKvBlock() << " and " << dv.getKvBlock();
  return verifyTileRows(error, "kv_block of dv", dv.getKvBlock(),
                        dv.getWarps());
}
