//===- Safetensors.cpp - Reading and writing safetensors files ------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Safetensors.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Endian.h"
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

/// The largest header; the format's own library has the same limit.
static constexpr int64_t maxHeaderBytes = 100'000'000;
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
  // A FIFO must not keep us waiting: it is refused below.
  int descriptor = ::open(name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
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

namespace {
/// Refuses what the JSON parser accepts and the format does not: names that
/// occur twice, numbers that are no integers, and nesting too deep for a parser
/// that recurses. What is no JSON is left to the parser.
class HeaderScanner {
public:
  explicit HeaderScanner(StringRef text) : rest(text) {}
  Error scan();

private:
  Error scanString();
  Error scanNumber();

  StringRef rest;
  /// The names in each of the objects around, with an empty set for an array.
  llvm::SmallVector<llvm::StringSet<>> names;
};
} // namespace

Error HeaderScanner::scan() {
  while (!rest.empty()) {
    char c = rest.front();
    if (c == '"') {
      if (Error error = scanString())
        return error;
      continue;
    }
    if (c == '-' || llvm::isDigit(c)) {
      if (Error error = scanNumber())
        return error;
      continue;
    }
    if (c == '{' || c == '[') {
      if (names.size() == maxDepth)
        return makeError("the header nests more than %d deep", maxDepth);
      names.emplace_back();
    } else if ((c == '}' || c == ']') && !names.empty()) {
      names.pop_back();
    }
    rest = rest.drop_front();
  }
  return Error::success();
}

Error HeaderScanner::scanString() {
  size_t end = 1;
  while (end < rest.size() && rest[end] != '"')
    end += rest[end] == '\\' ? 2 : 1;
  StringRef token = rest.take_front(end + 1);
  rest = rest.drop_front(token.size());
  // Only a name is followed by a colon.
  if (!rest.ltrim().starts_with(":") || names.empty())
    return Error::success();
  // There is more than one way to write a name.
  Expected<llvm::json::Value> name = llvm::json::parse(token);
  if (!name) {
    consumeError(name.takeError());
    return Error::success();
  }
  StringRef text = name->getAsString().value_or("");
  if (!names.back().insert(text).second)
    return makeError("the header has " + quote(text) + " twice");
  return Error::success();
}

Error HeaderScanner::scanNumber() {
  StringRef number = rest.take_while([](char c) {
    return llvm::isDigit(c) || llvm::is_contained("+-.eE", c);
  });
  rest = rest.drop_front(number.size());
  // -0 is not one to the format's own library.
  StringRef digits = number;
  bool isNegative = digits.consume_front("-");
  int64_t value;
  if (!number.getAsInteger(10, value) && llvm::all_of(digits, llvm::isDigit) &&
      (digits.front() != '0' || (digits == "0" && !isNegative)))
    return Error::success();
  return makeError("the header has the number " + quote(number) +
                   ": expected an integer of 64 bits");
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

/// The bytes of a tensor; none if they are too many.
static std::optional<int64_t> countBytes(ArrayRef<int64_t> shape, DType dtype) {
  // In order and without a sign, as the format's own library counts: it accepts
  // extents whose product overflows only where a 0 comes before.
  uint64_t product = 1;
  bool overflows = false;
  for (int64_t extent : shape) {
    product = llvm::SaturatingMultiply<uint64_t>(product, extent, &overflows);
    if (overflows)
      return std::nullopt;
  }
  product =
      llvm::SaturatingMultiply<uint64_t>(product, getBytes(dtype), &overflows);
  if (overflows || product > INT64_MAX)
    return std::nullopt;
  return static_cast<int64_t>(product);
}

/// Checks one entry of the header.
static Expected<SafetensorsFile::Entry>
parseEntry(StringRef name, const llvm::json::Value &value) {
  std::string tensor = "tensor " + quote(name);
  const llvm::json::Object *object = value.getAsObject();
  if (!object)
    return makeError(tensor + ": expected an object in the header");
  SafetensorsFile::Entry entry;
  std::optional<StringRef> dtypeName = object->getString("dtype");
  if (!dtypeName)
    return makeError(tensor + ": expected 'dtype' to be a string");
  entry.dtypeName = dtypeName->str();
  entry.dtype = parseDType(*dtypeName);
  llvm::SmallVector<int64_t> offsets;
  if (!parseIntegers(object->get("shape"), entry.shape))
    return makeError(tensor + ": expected 'shape' to be a list of non-negative "
                              "integers");
  if (!parseIntegers(object->get("data_offsets"), offsets) ||
      offsets.size() != 2 || offsets[0] > offsets[1])
    return makeError(tensor + ": expected 'data_offsets' to be [begin, end]");
  entry.offset = offsets[0];
  entry.bytes = offsets[1] - offsets[0];
  if (entry.dtype && countBytes(entry.shape, *entry.dtype) != entry.bytes)
    return makeError(tensor + " has " + std::to_string(entry.bytes) +
                     " bytes, which is not what dtype " + entry.dtypeName +
                     " and shape " + formatShape(entry.shape) + " need");
  return entry;
}

/// Free text of the file's author.
static Error checkMetadata(const llvm::json::Value &value) {
  const llvm::json::Object *object = value.getAsObject();
  bool isText = object && llvm::all_of(*object, [](const auto &entry) {
                  return entry.second.kind() == llvm::json::Value::String;
                });
  if (isText || value.kind() == llvm::json::Value::Null)
    return Error::success();
  return makeError("expected '__metadata__' to be an object of strings");
}

Error SafetensorsFile::parseHeader(StringRef text, int64_t dataBegin,
                                   int64_t dataBytes) {
  if (Error error = HeaderScanner(text).scan())
    return error;
  Expected<llvm::json::Value> header = llvm::json::parse(text);
  if (!header)
    return makeError("the header is not JSON: " + toString(header.takeError()));
  const llvm::json::Object *object = header->getAsObject();
  if (!object)
    return makeError("the header is not a JSON object");
  for (const auto &[key, value] : *object) {
    StringRef name = key;
    if (name == "__metadata__") {
      if (Error error = checkMetadata(value))
        return error;
      continue;
    }
    Expected<Entry> entry = parseEntry(name, value);
    if (!entry)
      return entry.takeError();
    entries.try_emplace(name, std::move(*entry));
  }
  if (Error error = checkRanges(dataBytes))
    return error;
  for (auto &entry : entries)
    entry.second.offset += dataBegin;
  return Error::success();
}

Error SafetensorsFile::checkRanges(int64_t dataBytes) const {
  auto sorted = llvm::to_vector(llvm::make_pointer_range(entries));
  llvm::sort(sorted, [](const auto *a, const auto *b) {
    return std::tuple(a->second.offset, a->second.bytes, a->getKey()) <
           std::tuple(b->second.offset, b->second.bytes, b->getKey());
  });
  int64_t end = 0;
  for (const auto *it : sorted) {
    const Entry &entry = it->second;
    std::string tensor = "tensor " + quote(it->getKey());
    if (entry.offset != end)
      return makeError(tensor + " begins at byte " +
                       std::to_string(entry.offset) +
                       " of the data: expected " + std::to_string(end) +
                       ", where the one before it ends");
    end += entry.bytes;
    if (end > dataBytes)
      return makeError("is truncated: " + tensor + " ends at byte " +
                       std::to_string(end) + " of the data, the file at " +
                       std::to_string(dataBytes));
  }
  if (end != dataBytes)
    return makeError("the last tensor ends at byte %" PRId64
                     " of the data: expected %" PRId64 ", where the file ends",
                     end, dataBytes);
  return Error::success();
}

const SafetensorsFile::Entry *SafetensorsFile::find(StringRef name) const {
  auto it = entries.find(name);
  return it == entries.end() ? nullptr : &it->second;
}

std::string SafetensorsFile::describeNames() const {
  constexpr size_t maxPrinted = 8;
  auto names = llvm::to_vector(entries.keys());
  if (names.empty())
    return "none";
  llvm::sort(names);
  std::string text = llvm::join(
      llvm::map_range(ArrayRef(names).take_front(maxPrinted), quote), ", ");
  if (names.size() > maxPrinted)
    text += " and " + std::to_string(names.size() - maxPrinted) + " more";
  return text;
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

void varlen_run::printSafetensors(ArrayRef<NamedTensor> tensors,
                                  llvm::raw_ostream &stream) {
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

  char prefix[8];
  llvm::support::endian::write64le(prefix, text.size());
  stream.write(prefix, 8);
  stream << text;
  for (const NamedTensor &tensor : tensors)
    stream.write(tensor.data, bytesOf(tensor));
}
