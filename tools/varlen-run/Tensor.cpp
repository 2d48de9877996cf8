//===- Tensor.cpp - A dense array with an element type --------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Tensor.h"

#include "mlir/IR/BuiltinTypes.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"

#include <cinttypes>
#include <cstring>

using namespace varlen_run;
using llvm::ArrayRef;
using llvm::StringRef;

namespace {
struct DTypeInfo {
  DType dtype;
  const char *name;
  int64_t bytes;
};
} // namespace

static constexpr DTypeInfo dtypes[] = {
    {DType::Bool, "BOOL", 1}, {DType::U8, "U8", 1},
    {DType::I8, "I8", 1},     {DType::U16, "U16", 2},
    {DType::I16, "I16", 2},   {DType::U32, "U32", 4},
    {DType::I32, "I32", 4},   {DType::U64, "U64", 8},
    {DType::I64, "I64", 8},   {DType::F8E4M3, "F8_E4M3", 1},
    {DType::F16, "F16", 2},   {DType::BF16, "BF16", 2},
    {DType::F32, "F32", 4},   {DType::F64, "F64", 8},
};

static const DTypeInfo &getInfo(DType dtype) {
  return *llvm::find_if(
      dtypes, [&](const DTypeInfo &info) { return info.dtype == dtype; });
}

StringRef varlen_run::getName(DType dtype) { return getInfo(dtype).name; }
int64_t varlen_run::getBytes(DType dtype) { return getInfo(dtype).bytes; }

std::optional<DType> varlen_run::parseDType(StringRef name) {
  for (const DTypeInfo &info : dtypes)
    if (name == info.name)
      return info.dtype;
  return std::nullopt;
}

std::optional<DType> varlen_run::getDType(mlir::Type type) {
  if (llvm::isa<mlir::Float8E4M3FNType>(type))
    return DType::F8E4M3;
  if (type.isF16())
    return DType::F16;
  if (type.isBF16())
    return DType::BF16;
  if (type.isF32())
    return DType::F32;
  if (type.isF64())
    return DType::F64;
  if (type.isIndex())
    return DType::I64;
  bool isUnsigned = type.isUnsignedInteger();
  if (type.isInteger(1))
    return DType::Bool;
  if (type.isInteger(8))
    return isUnsigned ? DType::U8 : DType::I8;
  if (type.isInteger(16))
    return isUnsigned ? DType::U16 : DType::I16;
  if (type.isInteger(32))
    return isUnsigned ? DType::U32 : DType::I32;
  if (type.isInteger(64))
    return isUnsigned ? DType::U64 : DType::I64;
  return std::nullopt;
}

static bool isInteger(DType dtype) {
  return dtype >= DType::U8 && dtype <= DType::I64;
}

bool varlen_run::isPassableAs(DType from, DType to) {
  return from == to ||
         (isInteger(from) && isInteger(to) && getBytes(from) == getBytes(to));
}

std::optional<int64_t> varlen_run::getNumElements(ArrayRef<int64_t> shape) {
  int64_t product = 1;
  // An extent of 0 makes the product 0 whatever the others are.
  bool overflow = false;
  for (int64_t extent : shape) {
    if (extent < 0)
      return std::nullopt;
    overflow |= llvm::MulOverflow(product, extent, product);
  }
  if (llvm::is_contained(shape, 0))
    return 0;
  return overflow ? std::nullopt : std::optional(product);
}

std::string varlen_run::formatShape(ArrayRef<int64_t> shape) {
  constexpr size_t maxPrinted = 8;
  std::string text = "[";
  for (auto [i, extent] : llvm::enumerate(shape.take_front(maxPrinted))) {
    if (i)
      text += ", ";
    text += mlir::ShapedType::isDynamic(extent) ? "?" : std::to_string(extent);
  }
  if (shape.size() > maxPrinted)
    text += ", ...";
  return text + "]";
}

std::string varlen_run::quote(StringRef text) {
  constexpr size_t maxPrinted = 64;
  std::string quoted = "'";
  llvm::raw_string_ostream os(quoted);
  llvm::printEscapedString(text.take_front(maxPrinted), os);
  return quoted + (text.size() > maxPrinted ? "...'" : "'");
}

llvm::Expected<Tensor> Tensor::create(DType dtype, ArrayRef<int64_t> shape) {
  constexpr int64_t alignment = 64;
  std::optional<int64_t> elements = varlen_run::getNumElements(shape);
  int64_t bytes = 0, rounded = 0;
  if (!elements || llvm::MulOverflow(*elements, getBytes(dtype), bytes) ||
      llvm::AddOverflow(bytes, alignment, rounded))
    return makeError("a tensor of shape " + formatShape(shape) +
                     " is too large");
  Tensor tensor;
  tensor.dtype = dtype;
  tensor.shape.assign(shape.begin(), shape.end());
  tensor.data.reset(static_cast<char *>(
      aligned_alloc(alignment, rounded / alignment * alignment)));
  if (!tensor.data)
    return makeError("not enough memory for a tensor of %" PRId64 " bytes",
                     bytes);
  return tensor;
}

int64_t Tensor::getNumElements() const {
  return *varlen_run::getNumElements(shape);
}

template <typename T> static int64_t load(const char *data, int64_t i) {
  T value;
  memcpy(&value, data + i * sizeof(T), sizeof(T));
  return static_cast<int64_t>(value);
}

template <typename T> static void store(char *data, int64_t i, int64_t value) {
  T narrow = static_cast<T>(value);
  memcpy(data + i * sizeof(T), &narrow, sizeof(T));
}

int64_t Tensor::getInteger(int64_t i) const {
  switch (dtype) {
  case DType::Bool:
  case DType::U8:
    return load<uint8_t>(data.get(), i);
  case DType::I8:
    return load<int8_t>(data.get(), i);
  case DType::U16:
    return load<uint16_t>(data.get(), i);
  case DType::I16:
    return load<int16_t>(data.get(), i);
  case DType::U32:
    return load<uint32_t>(data.get(), i);
  case DType::I32:
    return load<int32_t>(data.get(), i);
  case DType::U64:
  case DType::I64:
    return load<int64_t>(data.get(), i);
  default:
    llvm_unreachable("not a tensor of integers");
  }
}

void Tensor::setInteger(int64_t i, int64_t value) {
  switch (getBytes(dtype)) {
  case 1:
    return store<int8_t>(data.get(), i, value);
  case 2:
    return store<int16_t>(data.get(), i, value);
  case 4:
    return store<int32_t>(data.get(), i, value);
  default:
    return store<int64_t>(data.get(), i, value);
  }
}
