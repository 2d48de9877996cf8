//===- Safetensors.h - Reading and writing safetensors files ----*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A file is 8 bytes of header length (little endian), a JSON header and the
// tensors' bytes. The header maps each name to its dtype, its shape and the
// range of its bytes after the header.
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_TOOLS_RUN_SAFETENSORS_H
#define VARLEN_TOOLS_RUN_SAFETENSORS_H

#include "Tensor.h"

#include "llvm/ADT/StringMap.h"

namespace varlen_run {

/// An open file whose header has been checked. Nothing of the tensors is read
/// before it is asked for.
class SafetensorsFile {
public:
  static llvm::Expected<SafetensorsFile> open(llvm::StringRef path);
  SafetensorsFile(SafetensorsFile &&other);
  SafetensorsFile &operator=(SafetensorsFile &&) = delete;
  ~SafetensorsFile();

  struct Entry {
    DType dtype;
    llvm::SmallVector<int64_t> shape;
    /// Of the first byte, from the start of the file.
    int64_t offset;
    int64_t bytes;
  };
  /// Null if there is no tensor of that name.
  const Entry *find(llvm::StringRef name) const;
  /// The names, sorted.
  std::vector<std::string> getNames() const;
  llvm::StringRef getPath() const { return path; }
  /// Reads the tensor as the given type, of the same size as the entry's.
  llvm::Expected<Tensor> read(const Entry &entry, DType as) const;

private:
  SafetensorsFile(std::string path, int descriptor)
      : path(std::move(path)), descriptor(descriptor) {}
  llvm::Error readHeader();
  llvm::Error parseHeader(llvm::StringRef text, int64_t dataBegin,
                          int64_t dataBytes);

  std::string path;
  int descriptor;
  llvm::StringMap<Entry> entries;
};

struct NamedTensor {
  std::string name;
  DType dtype;
  llvm::SmallVector<int64_t> shape;
  const char *data;
};

/// Writes all of the file or none of it: under a temporary name in the same
/// folder first.
llvm::Error writeSafetensors(llvm::StringRef path,
                             llvm::ArrayRef<NamedTensor> tensors);

} // namespace varlen_run

#endif // VARLEN_TOOLS_RUN_SAFETENSORS_H
