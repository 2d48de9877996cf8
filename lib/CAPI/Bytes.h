//===- Bytes.h - Values as bytes --------------------------------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What programs and launchers are serialized with. A function
// `transfer(bytes, value)` says what there is of a type, in the order of the
// bytes; `bytes` is a Writer or a Reader, so that it serves both directions.
// Numbers are as the machine has them: the bytes are for one build only.
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_LIB_CAPI_BYTES_H
#define VARLEN_LIB_CAPI_BYTES_H

#include "Program.h"

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"

#include <cstring>
#include <type_traits>

namespace varlen_capi {

template <typename Value>
inline constexpr bool isNumber =
    std::is_arithmetic_v<Value> || std::is_enum_v<Value>;

/// Appends values to bytes.
class Writer {
public:
  explicit Writer(std::string &bytes) : bytes(bytes) {}

  template <typename Value> bool operator()(Value &value) {
    if constexpr (!isNumber<Value>)
      return transfer(*this, value);
    else
      bytes.append(reinterpret_cast<const char *>(&value), sizeof value);
    return true;
  }
  bool operator()(std::string &text) {
    size_t size = text.size();
    (*this)(size);
    bytes.append(text);
    return true;
  }
  template <typename Items> bool list(Items &items) {
    size_t size = items.size();
    (*this)(size);
    for (auto &item : items)
      (*this)(item);
    return true;
  }

private:
  std::string &bytes;
};

/// Takes values from the beginning of bytes; false where they end too early, or
/// are no such value.
class Reader {
public:
  explicit Reader(llvm::StringRef bytes = "") : bytes(bytes) {}

  bool isAtEnd() const { return bytes.empty(); }
  template <typename Value> bool operator()(Value &value) {
    if constexpr (!isNumber<Value>)
      return transfer(*this, value);
    if (bytes.size() < sizeof value)
      return false;
    memcpy(static_cast<void *>(&value), bytes.data(), sizeof value);
    bytes = bytes.drop_front(sizeof value);
    return true;
  }
  bool operator()(bool &value) {
    uint8_t byte = 0;
    if (!(*this)(byte) || byte > 1)
      return false;
    value = byte != 0;
    return true;
  }
  bool operator()(std::string &text) {
    size_t size = 0;
    if (!(*this)(size) || size > bytes.size())
      return false;
    text = bytes.take_front(size).str();
    bytes = bytes.drop_front(size);
    return true;
  }
  /// Items are made one by one: their number may be anything.
  template <typename Items> bool list(Items &items) {
    size_t size = 0;
    if (!(*this)(size))
      return false;
    for (items.clear(); items.size() < size;) {
      items.emplace_back();
      if (!(*this)(items.back()))
        return false;
    }
    return true;
  }

private:
  llvm::StringRef bytes;
};

template <typename Bytes> bool transfer(Bytes &bytes, Parameter &parameter) {
  return bytes(parameter.name) && bytes.list(parameter.shape) &&
         bytes.list(parameter.strides) && bytes(parameter.code) &&
         bytes(parameter.bits) && bytes(parameter.elementBytes) &&
         bytes(parameter.isScalar) && bytes(parameter.isWritten) &&
         bytes(parameter.isResult) && bytes(parameter.isDense);
}

/// Stores what `write` writes as a VarlenCode, for `unseal` in processes with
/// the same varlenGetIdentity. `mark` is of what it is, and its version.
VarlenStatus seal(llvm::StringRef mark, VarlenCode *code,
                  llvm::function_ref<void(Writer &)> write);

/// Begins to read what `seal` has made with this mark; an error, about `what`,
/// where the bytes are others, were changed or are for another identity.
VarlenStatus unseal(llvm::StringRef mark, const char *what, const void *data,
                    size_t size, Reader &reader);

} // namespace varlen_capi

#endif // VARLEN_LIB_CAPI_BYTES_H
