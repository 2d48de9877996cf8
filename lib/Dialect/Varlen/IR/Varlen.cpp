//===- Varlen.cpp - The varlen dialect ------------------------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "varlen/Dialect/Varlen/IR/Varlen.h"

#include "varlen/Linalg/Attributes.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/BufferizableOpInterface.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/RuntimeVerifiableOpInterface.h"
#include "mlir/Transforms/InliningUtils.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::varlen;

#include "varlen/Dialect/Varlen/IR/VarlenDialect.cpp.inc"
#include "varlen/Dialect/Varlen/IR/VarlenEnums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "varlen/Dialect/Varlen/IR/VarlenAttrs.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "varlen/Dialect/Varlen/IR/VarlenTypes.cpp.inc"

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
  addTypes<
#define GET_TYPEDEF_LIST
#include "varlen/Dialect/Varlen/IR/VarlenTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "varlen/Dialect/Varlen/IR/VarlenOps.cpp.inc"
      >();
  addInterfaces<VarlenInlinerInterface>();
  addBytecodeInterface();
  // Implemented in the transforms library. An MLIR with assertions stops at the
  // use of one that registerAllExtensions was not called for; without this, the
  // operation would be passed over in silence there too.
  declarePromisedInterfaces<bufferization::BufferizableOpInterface, AttnOp,
                            AttnIntoOp, AttnGradOp, AttnGradIntoOp, AttnJVPOp,
                            AttnJVPIntoOp, AttnJVPGradOp, AttnJVPGradIntoOp>();
  declarePromisedInterfaces<RuntimeVerifiableOpInterface, AttnOp, AttnIntoOp,
                            AttnGradOp, AttnGradIntoOp, AttnJVPOp,
                            AttnJVPIntoOp, AttnJVPGradOp, AttnJVPGradIntoOp>();
}

static LogicalResult verifySchedule(Operation *op, NamedAttribute attr) {
  if (!isa<ScheduleAttrInterface>(attr.getValue()))
    return op->emitOpError("expected ")
           << attr.getName()
           << " to be a #varlen.cpu_schedule, #varlen.gpu_schedule or "
              "#varlen.gpu_grad_schedule, got "
           << attr.getValue();
  // Whether it fits is for the operation to say: it is not verified yet.
  if (isa<AttentionOpInterface, ForTilesOp>(op))
    return success();
  // What convert-varlen-to-cpu makes of a loop over tiles.
  if (!isa<scf::ForallOp, scf::IfOp>(op))
    return op->emitOpError("has no tiles that ")
           << attr.getName().getValue()
           << " could be for: expected an attention, varlen.for_tiles, "
              "scf.forall or scf.if";
  if (isa<CPUScheduleAttr>(attr.getValue()))
    return success();
  return op->emitOpError("expected ")
         << attr.getName().getValue()
         << " of a loop on a CPU to be a #varlen.cpu_schedule, got "
         << attr.getValue();
}

static LogicalResult verifyExp2Degree(Operation *op, NamedAttribute attr) {
  if (!isa<math::Exp2Op, WeightOp, AttentionOpInterface, StepOpInterface>(op))
    return op->emitOpError("has no exponentials that ")
           << attr.getName().getValue() << " could be for";
  auto degree = dyn_cast<IntegerAttr>(attr.getValue());
  if (degree && ((degree.getInt() >= kMinExp2Degree &&
                  degree.getInt() <= kMaxExp2Degree) ||
                 degree.getInt() == kExp2DegreeF64))
    return success();
  return op->emitOpError("expected ")
         << attr.getName().getValue() << " to be an integer from "
         << kMinExp2Degree << " to " << kMaxExp2Degree << ", or "
         << kExp2DegreeF64 << " for f64, got " << attr.getValue();
}

/// An attribute without a value, of operations of type `Op`.
template <typename Op>
static LogicalResult verifyMark(Operation *op, NamedAttribute attr) {
  if (!isa<UnitAttr>(attr.getValue()))
    return op->emitOpError("expected ")
           << attr.getName().getValue() << " without a value, got "
           << attr.getValue();
  if (!isa<Op>(op))
    return op->emitOpError("is no ")
           << Op::getOperationName() << " that " << attr.getName().getValue()
           << " could be for";
  return success();
}

static LogicalResult verifyMemoryDependsOn(Operation *op, NamedAttribute attr) {
  if (!isa<FunctionOpInterface>(op))
    return op->emitOpError("is no function that ")
           << attr.getName().getValue() << " could be for";
  auto name = dyn_cast<StringAttr>(attr.getValue());
  if (name && !name.empty())
    return success();
  return op->emitOpError("expected ")
         << attr.getName().getValue()
         << " to be the name of an operation, a non-empty string, got "
         << attr.getValue();
}

LogicalResult VarlenDialect::verifyOperationAttribute(Operation *op,
                                                      NamedAttribute attr) {
  if (attr.getName() == kScheduleAttrName)
    return verifySchedule(op, attr);
  if (attr.getName() == kExp2DegreeAttrName)
    return verifyExp2Degree(op, attr);
  if (attr.getName() == kInOrderAttrName || attr.getName() == kAddLastAttrName)
    return verifyMark<linalg::ContractOp>(op, attr);
  if (attr.getName() == kMemoryDependsOnAttrName)
    return verifyMemoryDependsOn(op, attr);
  return success();
}

/// A name is a non-empty string.
static LogicalResult verifyName(Operation *op, NamedAttribute attr) {
  if (attr.getName() != kNameAttrName)
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
