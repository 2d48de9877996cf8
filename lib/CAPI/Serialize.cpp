//===- Serialize.cpp - Programs as bytes ----------------------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A mark, a checksum of all that follows, the identity of the library, the
// signatures, and the object files. Numbers are as the machine has them: code
// for it runs nowhere else.
//
//===----------------------------------------------------------------------===//

#include "Code.h"
#include "Program.h"
#include "Status.h"
#include "varlen/Target/CPUTarget.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/xxhash.h"

#include <link.h>
#include <type_traits>

using namespace varlen_capi;
using namespace mlir;

static constexpr llvm::StringLiteral mark = "VARLEN-PROGRAM 2";

//===----------------------------------------------------------------------===//
// Identity
//===----------------------------------------------------------------------===//

/// The beginning of this library's file.
// NOLINTNEXTLINE(readability-identifier-naming): the linker calls it so.
extern "C" [[gnu::visibility("hidden")]] const ElfW(Ehdr) __ehdr_start;

/// The build id in a segment of notes; empty if it has none.
static llvm::StringRef findBuildId(const char *notes, size_t size) {
  auto roundUp = [](size_t n) { return (n + 3) / 4 * 4; };
  while (size >= sizeof(ElfW(Nhdr))) {
    auto *note = reinterpret_cast<const ElfW(Nhdr) *>(notes);
    size_t nameBytes = roundUp(note->n_namesz);
    size_t noteBytes = sizeof *note + nameBytes + roundUp(note->n_descsz);
    if (noteBytes > size)
      break;
    const char *name = notes + sizeof *note;
    if (note->n_type == NT_GNU_BUILD_ID &&
        llvm::StringRef(name, note->n_namesz) == llvm::StringRef("GNU", 4))
      return {name + nameBytes, note->n_descsz};
    notes += noteBytes;
    size -= noteBytes;
  }
  return "";
}

static llvm::StringRef getBuildId() {
  auto *base = reinterpret_cast<const char *>(&__ehdr_start);
  auto *segments =
      reinterpret_cast<const ElfW(Phdr) *>(base + __ehdr_start.e_phoff);
  for (int i = 0; i < __ehdr_start.e_phnum; ++i)
    if (segments[i].p_type == PT_NOTE) {
      llvm::StringRef id =
          findBuildId(base + segments[i].p_vaddr, segments[i].p_memsz);
      if (!id.empty())
        return id;
    }
  return "";
}

static std::string makeIdentity() {
  llvm::StringRef id = getBuildId();
  if (id.empty())
    return "";
  const varlen::CPUTarget &host = varlen::getHostCPUTarget();
  return "varlen " VARLEN_VERSION ", build " +
         llvm::toHex(id, /*LowerCase=*/true) +
         ", LLVM " LLVM_VERSION_STRING ", " + host.name.str() + " on " +
         varlen::getCodegenNames(host).tuneCPU;
}

const char *varlenGetIdentity() {
  static const std::string identity = makeIdentity();
  return identity.empty() ? nullptr : identity.c_str();
}

//===----------------------------------------------------------------------===//
// Bytes
//===----------------------------------------------------------------------===//

// What there is of each, in the order of the bytes, for both directions.
template <typename Bytes> static bool transfer(Bytes &bytes, int64_t &number);
template <typename Bytes> static bool transfer(Bytes &bytes, std::string &text);
template <typename Bytes>
static bool transfer(Bytes &bytes, Parameter &parameter);
template <typename Bytes>
static bool transfer(Bytes &bytes, std::unique_ptr<Function> &function);

namespace {
/// Appends values to bytes.
class Writer {
public:
  explicit Writer(std::string &bytes) : bytes(bytes) {}

  void add(const void *data, size_t size) {
    bytes.append(static_cast<const char *>(data), size);
  }
  template <typename Number> bool operator()(const Number &value) {
    static_assert(std::is_arithmetic_v<Number>);
    add(&value, sizeof value);
    return true;
  }
  bool operator()(const std::string &text) {
    (*this)(text.size());
    add(text.data(), text.size());
    return true;
  }
  template <typename Item> bool operator()(std::vector<Item> &items) {
    (*this)(items.size());
    for (Item &item : items)
      transfer(*this, item);
    return true;
  }

private:
  std::string &bytes;
};

/// Takes values from the beginning of bytes; false where they end too early.
class Reader {
public:
  explicit Reader(llvm::StringRef bytes) : bytes(bytes) {}

  bool isAtEnd() const { return bytes.empty(); }
  template <typename Number> bool operator()(Number &value) {
    static_assert(std::is_arithmetic_v<Number>);
    if (bytes.size() < sizeof value)
      return false;
    memcpy(&value, bytes.data(), sizeof value);
    bytes = bytes.drop_front(sizeof value);
    return true;
  }
  bool operator()(std::string &text) {
    size_t size;
    if (!(*this)(size) || size > bytes.size())
      return false;
    text = bytes.take_front(size).str();
    bytes = bytes.drop_front(size);
    return true;
  }
  template <typename Item> bool operator()(std::vector<Item> &items) {
    size_t size;
    // Each has a byte at least.
    if (!(*this)(size) || size > bytes.size())
      return false;
    items.resize(size);
    for (Item &item : items)
      if (!transfer(*this, item))
        return false;
    return true;
  }

private:
  llvm::StringRef bytes;
};
} // namespace

template <typename Bytes> static bool transfer(Bytes &bytes, int64_t &number) {
  return bytes(number);
}

template <typename Bytes>
static bool transfer(Bytes &bytes, std::string &text) {
  return bytes(text);
}

template <typename Bytes>
static bool transfer(Bytes &bytes, Parameter &parameter) {
  return bytes(parameter.name) && bytes(parameter.shape) &&
         bytes(parameter.strides) && bytes(parameter.code) &&
         bytes(parameter.bits) && bytes(parameter.elementBytes) &&
         bytes(parameter.isScalar) && bytes(parameter.isWritten) &&
         bytes(parameter.isDense);
}

template <typename Bytes>
static bool transfer(Bytes &bytes, std::unique_ptr<Function> &function) {
  if (!function)
    function = std::make_unique<Function>();
  return bytes(function->name) && bytes(function->arguments) &&
         bytes(function->results) && bytes(function->numExtents) &&
         bytes(function->workspaceDependsOn);
}

template <typename Bytes>
static bool transfer(Bytes &bytes, std::string &identity, Program &program) {
  return bytes(identity) && bytes(program.target) && bytes(program.functions) &&
         bytes(program.objects);
}

//===----------------------------------------------------------------------===//
// Programs
//===----------------------------------------------------------------------===//

static std::string getChecksum(llvm::StringRef bytes) {
  llvm::XXH128_hash_t hash =
      llvm::xxh3_128bits(llvm::arrayRefFromStringRef(bytes));
  return std::string(reinterpret_cast<const char *>(&hash), sizeof hash);
}

VarlenStatus varlenProgramSerialize(VarlenProgram program, VarlenCode *code) {
  if (!program.ptr || !code)
    return fail(VARLEN_INVALID_ARGUMENT,
                "expected a program and where to store its bytes, got null");
  const char *name = varlenGetIdentity();
  if (!name)
    return fail(VARLEN_UNSUPPORTED,
                "expected a library with a build id, which it was linked "
                "without");
  std::string content, identity = name;
  Writer writer(content);
  transfer(writer, identity, *static_cast<Program *>(program.ptr));
  code->ptr = new Code{mark.str() + getChecksum(content) + content, {}};
  return VARLEN_OK;
}

VarlenStatus varlenProgramDeserialize(const void *data, size_t size,
                                      VarlenProgram *program) {
  if (!data || !program)
    return fail(VARLEN_INVALID_ARGUMENT,
                "expected a program's bytes and where to store it, got null");
  llvm::StringRef content(static_cast<const char *>(data), size);
  if (!content.consume_front(mark))
    return fail(VARLEN_INVALID_ARGUMENT,
                "expected the bytes of a program, got %zu others", size);
  llvm::StringRef checksum = content.take_front(sizeof(llvm::XXH128_hash_t));
  content = content.drop_front(checksum.size());
  if (checksum != getChecksum(content))
    return fail(VARLEN_INVALID_ARGUMENT,
                "the bytes of the program are not what was serialized: the "
                "checksum differs");
  auto result = std::make_unique<Program>();
  std::string identity;
  Reader reader(content);
  if (!transfer(reader, identity, *result) || !reader.isAtEnd())
    return fail(VARLEN_INVALID_ARGUMENT, "the program ends too early or late");
  const char *wanted = varlenGetIdentity();
  if (!wanted || identity != wanted)
    return fail(VARLEN_UNSUPPORTED, "expected a program for %s, got one for %s",
                wanted ? wanted : "a library with a build id",
                identity.c_str());
  const varlen::CPUTarget *target = varlen::lookupCPUTarget(result->target);
  std::string missing = result->target;
  if (!target || !varlen::hostSupports(*target, &missing))
    return fail(VARLEN_UNSUPPORTED, "this machine has no %s, which %s needs",
                missing.c_str(), result->target.c_str());
  for (std::unique_ptr<Function> &function : result->functions) {
    for (Parameter &parameter : function->arguments)
      parameter.finish();
    for (Parameter &parameter : function->results)
      parameter.finish();
  }
  if (VarlenStatus status = load(*result))
    return status;
  program->ptr = result.release();
  return VARLEN_OK;
}
