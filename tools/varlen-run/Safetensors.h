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
// range of its bytes after the header. The ranges cover all of the data, and no
// two of them overlap.
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_TOOLS_RUN_SAFETENSORS_H
#define VARLEN_TOOLS_RUN_SAFETENSORS_H

#include "Tensor.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/Support/raw_ostream.h"

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
    /// As the file has it: a dtype that is not supported is none of our
    /// business where the tensor is not read.
    std::string dtypeName;
    std::optional<DType> dtype;
    llvm::SmallVector<int64_t> shape;
    /// The offset of the first byte, from the start of the file.
    int64_t offset;
    int64_t bytes;
  };
  /// Null if there is no tensor of that name.
  const Entry *find(llvm::StringRef name) const;
  /// The names, sorted, for a message; of many, the first.
  std::string describeNames() const;
  llvm::StringRef getPath() const { return path; }
  /// Reads the tensor as the given type, of the same size as the entry's.
  llvm::Expected<Tensor> read(const Entry &entry, DType as) const;

private:
  SafetensorsFile(std::string path, int descriptor)
      : path(std::move(path)), descriptor(descriptor) {}
  llvm::Error readHeader();
  llvm::Error parseHeader(llvm::StringRef text, int64_t dataBegin,
                          int64_t dataBytes);
  llvm::Error checkRanges(int64_t dataBytes) const;

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

/// Writes a file of tensors.
void printSafetensors(llvm::ArrayRef<NamedTensor> tensors,
                      llvm::raw_ostream &stream);

} // namespace varlen_run

#endif // VARLEN_TOOLS_RUN_SAFETENSORS_H
