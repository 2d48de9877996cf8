//===- CTypes.h - What C calls the types of arguments -----------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_OPT_CTYPES_H
#define VARLEN_OPT_CTYPES_H

#include "mlir/IR/Operation.h"
#include "mlir/IR/Types.h"
#include "mlir/Support/LLVM.h"

#include "llvm/ADT/StringSet.h"

#include <optional>
#include <string>
#include <vector>

namespace llvm {
class raw_ostream;
} // namespace llvm

namespace mlir::varlen {

/// An element: its type in C, and how names of structs have it.
struct CElement {
  StringRef c, name;
};
std::optional<CElement> getCElement(Type type);

/// Names for parameters of a declaration: what each is called in the source, in
/// lower case as macros are not, where C and C++ can have that and none of the
/// others, among them those that are `taken`, has it; else "arg" and its
/// number.
std::vector<std::string> getParameterNames(ArrayRef<std::string> names,
                                           ArrayRef<StringRef> taken = {});

/// Writes structs of tensors, each once. A tensor's is a memref descriptor.
class CTypes {
public:
  /// `withMakers`: and functions that make one of dense data.
  CTypes(llvm::raw_ostream &os, bool withMakers)
      : os(os), withMakers(withMakers) {}

  /// The C type of an argument; declares the struct of a tensor. An error at
  /// `op` is emitted for a type that C has no name for.
  FailureOr<std::string> get(Operation *op, Type type);

private:
  void declareStruct(StringRef name, CElement element, int64_t rank);

  llvm::raw_ostream &os;
  bool withMakers;
  llvm::StringSet<> structs;
};

} // namespace mlir::varlen

#endif // VARLEN_OPT_CTYPES_H
