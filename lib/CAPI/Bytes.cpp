//===- Bytes.cpp - Bytes for one build of the library ---------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A mark, a checksum of all that follows, the identity of the library, and the
// content.
//
//===----------------------------------------------------------------------===//

#include "Bytes.h"

#include "Code.h"
#include "Status.h"
#include "varlen/Target/CPUTarget.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/xxhash.h"

#include <link.h>

using namespace varlen_capi;
using namespace mlir;

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
// Envelopes
//===----------------------------------------------------------------------===//

static std::string getChecksum(llvm::StringRef bytes) {
  llvm::XXH128_hash_t hash =
      llvm::xxh3_128bits(llvm::arrayRefFromStringRef(bytes));
  return std::string(reinterpret_cast<const char *>(&hash), sizeof hash);
}

VarlenStatus varlen_capi::seal(llvm::StringRef mark, VarlenCode *code,
                               llvm::function_ref<void(Writer &)> write) {
  const char *name = varlenGetIdentity();
  if (!name)
    return fail(VARLEN_UNSUPPORTED,
                "expected a library with a build id, which it was linked "
                "without");
  std::string content, identity = name;
  Writer writer(content);
  writer(identity);
  write(writer);
  code->ptr = new Code{mark.str() + getChecksum(content) + content, {}};
  return VARLEN_OK;
}

VarlenStatus varlen_capi::unseal(llvm::StringRef mark, const char *what,
                                 const void *data, size_t size,
                                 Reader &reader) {
  llvm::StringRef content(static_cast<const char *>(data), size);
  if (!content.consume_front(mark))
    return fail(VARLEN_INVALID_ARGUMENT,
                "expected the bytes of a %s, got %zu others", what, size);
  llvm::StringRef checksum = content.take_front(sizeof(llvm::XXH128_hash_t));
  content = content.drop_front(checksum.size());
  if (checksum != getChecksum(content))
    return fail(VARLEN_INVALID_ARGUMENT,
                "the bytes of the %s are not what was serialized: the checksum "
                "differs",
                what);
  std::string identity;
  reader = Reader(content);
  if (!reader(identity))
    return fail(VARLEN_INVALID_ARGUMENT, "the %s ends too early", what);
  const char *wanted = varlenGetIdentity();
  if (!wanted || identity != wanted)
    return fail(VARLEN_UNSUPPORTED, "expected a %s for %s, got one for %s",
                what, wanted ? wanted : "a library with a build id",
                identity.c_str());
  return VARLEN_OK;
}
