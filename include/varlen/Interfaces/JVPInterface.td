//===- JVPInterface.td - Rules of the forward mode ---------*- tablegen -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_INTERFACES_JVPINTERFACE_TD
#define VARLEN_INTERFACES_JVPINTERFACE_TD

include "mlir/IR/OpBase.td"

def Varlen_JVPOpInterface : OpInterface<"JVPOpInterface"> {
  let cppNamespace = "::mlir::varlen";
  let description = [{
    The Jacobian-vector product of an operation: from the tangents of its operands
    (their derivatives along some direction) those of its results. A value and its
    tangent have the same type. Only values with float elements have one.

    An operation of another dialect gets its rule as an external model; see
    docs/gradients.md.
  }];
  let methods = [
    InterfaceMethod<[{
        Whether the results change smoothly with the value of the operand, as in
        `VJPOpInterface`.
      }],
      "bool", "isDifferentiable", (ins "::mlir::OpOperand &":$operand), "",
      [{ return ::mlir::varlen::hasCotangent(operand.get().getType()); }]>,
    InterfaceMethod<[{
        Sets the tangents of the results (`builder.setTangent`) from those of what
        the operation reads (`builder.getTangent`), at least one of which is not
        zero. `builder` is behind the operation. One that computes results and
        tangents together may replace it. On failure an error has been emitted.
      }],
      "::llvm::LogicalResult", "buildJVP",
      (ins "::mlir::varlen::JVPBuilder &":$builder)>,
  ];
}

#endif // VARLEN_INTERFACES_JVPINTERFACE_TD
