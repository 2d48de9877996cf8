//===- Tensor.h - A dense array with an element type ------------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_TOOLS_RUN_TENSOR_H
#define VARLEN_TOOLS_RUN_TENSOR_H

#include "mlir/IR/Types.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <cstdlib>
#include <memory>
#include <optional>
#include <string>

namespace varlen_run {

/// Element types, as safetensors has them.
enum class DType {
  Bool,
  U8,
  I8,
  U16,
  I16,
  U32,
  I32,
  U64,
  I64,
  F8E4M3,
  F16,
  BF16,
  F32,
  F64
};

/// The name in a safetensors header.
llvm::StringRef getName(DType dtype);
std::optional<DType> parseDType(llvm::StringRef name);
int64_t getBytes(DType dtype);

/// The element type that values of an MLIR type are passed as, if they can be.
std::optional<DType> getDType(mlir::Type type);

/// Whether values of type `from` may be used where `to` is wanted: MLIR's
/// integers have no sign.
bool isPassableAs(DType from, DType to);

/// The product of the extents; none if one is negative or it overflows.
std::optional<int64_t> getNumElements(llvm::ArrayRef<int64_t> shape);

/// "[2, 3]"; the first extents of a long one.
std::string formatShape(llvm::ArrayRef<int64_t> shape);

/// "'name'" for a message: what cannot be printed is escaped, and of a long one
/// only the beginning is there.
std::string quote(llvm::StringRef text);

struct FreeDeleter {
  void operator()(void *pointer) const { free(pointer); }
};

/// A dense row-major array that owns its memory (aligned to 64 bytes).
struct Tensor {
  DType dtype = DType::F32;
  llvm::SmallVector<int64_t> shape;
  std::unique_ptr<char, FreeDeleter> data;

  /// Uninitialised; an error if there is not enough memory.
  static llvm::Expected<Tensor> create(DType dtype,
                                       llvm::ArrayRef<int64_t> shape);

  int64_t getNumElements() const;
  int64_t getNumBytes() const { return getNumElements() * getBytes(dtype); }
  /// Element i of an integer tensor.
  int64_t getInteger(int64_t i) const;
  void setInteger(int64_t i, int64_t value);
};

/// An error of a user's input, with its message in printf style.
template <typename... Ts>
llvm::Error makeError(const char *format, const Ts &...values) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), format,
                                 values...);
}
inline llvm::Error makeError(const std::string &message) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), message);
}

} // namespace varlen_run

#endif // VARLEN_TOOLS_RUN_TENSOR_H
