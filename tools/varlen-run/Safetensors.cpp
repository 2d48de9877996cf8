//===- Safetensors.cpp - Reading and writing safetensors files ------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Safetensors.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

#include <cerrno>
#include <cinttypes>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace varlen_run;
using llvm::ArrayRef;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;

/// Of a header; other readers have the same.
static constexpr int64_t maxHeaderBytes = 100 << 20;
/// How deep a header's JSON nests: {"name": {"shape": [...]}}, and its parser
/// recurses.
static constexpr int maxDepth = 8;

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

SafetensorsFile::SafetensorsFile(SafetensorsFile &&other)
    : path(std::move(other.path)), descriptor(other.descriptor),
      entries(std::move(other.entries)) {
  other.descriptor = -1;
}

SafetensorsFile::~SafetensorsFile() {
  if (descriptor >= 0)
    close(descriptor);
}

Expected<SafetensorsFile> SafetensorsFile::open(StringRef path) {
  std::string name = path.str();
  int descriptor = ::open(name.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0)
    return makeError("%s: cannot be opened: %s", name.c_str(), strerror(errno));
  SafetensorsFile file(name, descriptor);
  if (Error error = file.readHeader())
    return makeError(name + ": " + toString(std::move(error)));
  return file;
}

/// Reads exactly `bytes` bytes.
static Error readAt(int descriptor, char *data, int64_t bytes, int64_t offset) {
  while (bytes > 0) {
    ssize_t count = pread(descriptor, data, bytes, offset);
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      return makeError("cannot be read: %s", strerror(errno));
    if (count == 0)
      return makeError("became shorter while it was read");
    data += count;
    bytes -= count;
    offset += count;
  }
  return Error::success();
}

Error SafetensorsFile::readHeader() {
  struct stat status;
  if (fstat(descriptor, &status))
    return makeError("cannot be read: %s", strerror(errno));
  if (!S_ISREG(status.st_mode))
    return makeError("is not a regular file");
  int64_t fileBytes = status.st_size;
  char prefix[8];
  if (fileBytes < 8)
    return makeError("is truncated: a safetensors file has at least 8 bytes, "
                     "this one %" PRId64,
                     fileBytes);
  if (Error error = readAt(descriptor, prefix, 8, 0))
    return error;
  uint64_t headerBytes = llvm::support::endian::read64le(prefix);
  if (headerBytes > maxHeaderBytes)
    return makeError("is not a safetensors file: it would have a header of "
                     "%" PRIu64 " bytes",
                     headerBytes);
  int64_t dataBegin = 8 + static_cast<int64_t>(headerBytes);
  if (fileBytes < dataBegin)
    return makeError("is truncated: the header ends at byte %" PRId64
                     ", the file at %" PRId64,
                     dataBegin, fileBytes);
  std::string text(headerBytes, 0);
  if (Error error = readAt(descriptor, text.data(), headerBytes, 8))
    return error;
  return parseHeader(text, dataBegin, fileBytes - dataBegin);
}

/// Whether brackets outside strings nest too deep for a parser that recurses.
static bool isTooDeep(StringRef text) {
  int depth = 0;
  bool inString = false;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (inString) {
      if (c == '\\')
        ++i;
      else if (c == '"')
        inString = false;
    } else if (c == '"') {
      inString = true;
    } else if (c == '{' || c == '[') {
      if (++depth > maxDepth)
        return true;
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return false;
}

/// A list of non-negative integers.
static bool parseIntegers(const llvm::json::Value *value,
                          llvm::SmallVectorImpl<int64_t> &integers) {
  const llvm::json::Array *array = value ? value->getAsArray() : nullptr;
  if (!array)
    return false;
  for (const llvm::json::Value &element : *array) {
    std::optional<int64_t> integer = element.getAsInteger();
    if (!integer || *integer < 0)
      return false;
    integers.push_back(*integer);
  }
  return true;
}

/// Checks one entry of the header.
static Expected<SafetensorsFile::Entry>
parseEntry(const std::string &name, const llvm::json::Value &value) {
  const char *tensor = name.c_str();
  const llvm::json::Object *object = value.getAsObject();
  if (!object)
    return makeError("tensor '%s': expected an object in the header", tensor);
  SafetensorsFile::Entry entry;
  StringRef dtypeName = object->getString("dtype").value_or("");
  std::optional<DType> dtype = parseDType(dtypeName);
  if (!dtype)
    return makeError("tensor '%s' has dtype '%s', which is not supported",
                     tensor, dtypeName.str().c_str());
  entry.dtype = *dtype;
  llvm::SmallVector<int64_t> offsets;
  if (!parseIntegers(object->get("shape"), entry.shape))
    return makeError("tensor '%s': expected 'shape' to be a list of "
                     "non-negative integers",
                     tensor);
  if (!parseIntegers(object->get("data_offsets"), offsets) ||
      offsets.size() != 2 || offsets[0] > offsets[1])
    return makeError("tensor '%s': expected 'data_offsets' to be [begin, end]",
                     tensor);
  entry.offset = offsets[0];
  entry.bytes = offsets[1] - offsets[0];
  std::optional<int64_t> elements = getNumElements(entry.shape);
  int64_t wanted = 0;
  if (!elements || llvm::MulOverflow(*elements, getBytes(*dtype), wanted) ||
      wanted != entry.bytes)
    return makeError("tensor '%s' has %" PRId64
                     " bytes, which is not what dtype %s and shape %s need",
                     tensor, entry.bytes, dtypeName.str().c_str(),
                     formatShape(entry.shape).c_str());
  return entry;
}

Error SafetensorsFile::parseHeader(StringRef text, int64_t dataBegin,
                                   int64_t dataBytes) {
  if (isTooDeep(text))
    return makeError("the header nests more than %d deep", maxDepth);
  Expected<llvm::json::Value> header = llvm::json::parse(text);
  if (!header)
    return makeError("the header is not JSON: " + toString(header.takeError()));
  const llvm::json::Object *object = header->getAsObject();
  if (!object)
    return makeError("the header is not a JSON object");
  for (const auto &[key, value] : *object) {
    std::string name = StringRef(key).str();
    if (name == "__metadata__")
      continue;
    Expected<Entry> entry = parseEntry(name, value);
    if (!entry)
      return entry.takeError();
    if (entry->bytes > dataBytes || entry->offset > dataBytes - entry->bytes)
      return makeError("is truncated: tensor '%s' ends at byte %" PRId64
                       " of the data, the file at %" PRId64,
                       name.c_str(), entry->offset + entry->bytes, dataBytes);
    entry->offset += dataBegin;
    entries.try_emplace(name, std::move(*entry));
  }
  return Error::success();
}

const SafetensorsFile::Entry *SafetensorsFile::find(StringRef name) const {
  auto it = entries.find(name);
  return it == entries.end() ? nullptr : &it->second;
}

std::vector<std::string> SafetensorsFile::getNames() const {
  std::vector<std::string> names;
  for (const auto &entry : entries)
    names.push_back(entry.getKey().str());
  llvm::sort(names);
  return names;
}

Expected<Tensor> SafetensorsFile::read(const Entry &entry, DType as) const {
  Expected<Tensor> tensor = Tensor::create(as, entry.shape);
  if (!tensor)
    return tensor;
  if (Error error =
          readAt(descriptor, tensor->data.get(), entry.bytes, entry.offset))
    return makeError(path + ": " + toString(std::move(error)));
  return tensor;
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

Error varlen_run::writeSafetensors(StringRef path,
                                   ArrayRef<NamedTensor> tensors) {
  llvm::json::Object header;
  int64_t offset = 0;
  auto bytesOf = [](const NamedTensor &tensor) {
    return *getNumElements(tensor.shape) * getBytes(tensor.dtype);
  };
  for (const NamedTensor &tensor : tensors) {
    int64_t end = offset + bytesOf(tensor);
    header[tensor.name] =
        llvm::json::Object{{"dtype", getName(tensor.dtype)},
                           {"shape", llvm::json::Array(tensor.shape)},
                           {"data_offsets", llvm::json::Array{offset, end}}};
    offset = end;
  }
  std::string text;
  llvm::raw_string_ostream(text) << llvm::json::Value(std::move(header));
  // Readers that map the file want the data aligned.
  while (text.size() % 8)
    text += ' ';

  std::string name = path.str();
  Expected<llvm::sys::fs::TempFile> temporary =
      llvm::sys::fs::TempFile::create(name + ".%%%%%%%%.tmp");
  if (!temporary)
    return makeError(name +
                     ": cannot be written: " + toString(temporary.takeError()));
  llvm::raw_fd_ostream stream(temporary->FD, /*shouldClose=*/false);
  char prefix[8];
  llvm::support::endian::write64le(prefix, text.size());
  stream.write(prefix, 8);
  stream << text;
  for (const NamedTensor &tensor : tensors)
    stream.write(tensor.data, bytesOf(tensor));
  stream.flush();
  if (std::error_code code = stream.error()) {
    stream.clear_error();
    consumeError(temporary->discard());
    return makeError(name + ": cannot be written: " + code.message());
  }
  if (Error error = temporary->keep(name)) {
    std::string message = toString(std::move(error));
    consumeError(temporary->discard());
    return makeError(name + ": cannot be written: " + message);
  }
  return Error::success();
}
