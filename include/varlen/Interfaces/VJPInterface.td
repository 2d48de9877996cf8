//===- VJPInterface.td - Rules of the reverse mode ---------*- tablegen -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_INTERFACES_VJPINTERFACE_TD
#define VARLEN_INTERFACES_VJPINTERFACE_TD

include "mlir/IR/OpBase.td"

def Varlen_VJPOpInterface : OpInterface<"VJPOpInterface"> {
  let cppNamespace = "::mlir::varlen";
  let description = [{
    The vector-Jacobian product of an operation: from the cotangents of its
    results (the derivatives of some scalar by them) those of its operands.
    A value and its cotangent have the same type. Only values with float
    elements have one.

    An operation of another dialect gets its rule as an external model; see
    docs/gradients.md.
  }];
  let methods = [
    InterfaceMethod<[{
        Whether the results change smoothly with the value of the operand: not
        if only its shape counts, nor if it is read for where it is, not for
        what it holds. By default every operand with float elements does.
      }],
      "bool", "isDifferentiable", (ins "::mlir::OpOperand &":$operand), "",
      [{ return ::mlir::varlen::hasCotangent(operand.get().getType()); }]>,
    InterfaceMethod<[{
        Adds to the cotangents of the operands (`builder.accumulate`) what comes
        from those of the results (`builder.getCotangent`), at least one of
        which is not zero. `builder` is at a place that the operation dominates.
        On failure an error has been emitted.
      }],
      "::llvm::LogicalResult", "buildVJP",
      (ins "::mlir::varlen::VJPBuilder &":$builder)>,
  ];
}

#endif // VARLEN_INTERFACES_VJPINTERFACE_TD
