//===- serialize-launcher.cpp - Launchers as bytes ------------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Launchers become bytes and launchers again. Bytes that are cut or changed are
// refused by their checksum; with a checksum that is right they are refused, or
// make a launcher that measures its workspace without harm.
// test/CAPI/launches.c launches what was deserialized.
//
//===----------------------------------------------------------------------===//

// REQUIRES: package
// RUN: clang++-22 %sanitize -std=c++17 -Wall -Wextra -Werror -fno-rtti %s \
// RUN:   -isystem %mlir-libs/../include -isystem %S/Inputs -o %t %capi \
// RUN:   -L %mlir-libs -Wl,-rpath,%mlir-libs -lLLVM
// RUN: %t %S/Inputs/attention.mlir %S/Inputs/gradients.mlir | FileCheck %s
// CHECK: attention.mlir: [[#]] changes, [[#]] refused, [[#]] measured
// CHECK: gradients.mlir: [[#]] changes, [[#]] refused, [[#]] measured

#include "Test.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/xxhash.h"

#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <vector>

static const std::string mark = "VARLEN-LAUNCHER 1";
static constexpr size_t checksumBytes = sizeof(llvm::XXH128_hash_t);

static VarlenLauncher compileLauncher(const std::string &source) {
  VarlenKernelOptions options = VARLEN_KERNEL_OPTIONS_INIT;
  options.format = VARLEN_PTX;
  VarlenLauncher launcher = {nullptr};
  EXPECT(!varlenLauncherCompile(source.data(), source.size(), &options,
                                &launcher));
  return launcher;
}

static std::string serialize(VarlenLauncher launcher) {
  VarlenCode code = {nullptr};
  EXPECT(!varlenLauncherSerialize(launcher, &code));
  std::string bytes(static_cast<const char *>(varlenCodeGetData(code)),
                    varlenCodeGetSize(code));
  varlenCodeDestroy(code);
  return bytes;
}

/// With the checksum of what follows it.
static void correctChecksum(std::string &bytes) {
  size_t begin = mark.size() + checksumBytes;
  llvm::XXH128_hash_t hash = llvm::xxh3_128bits(
      llvm::ArrayRef(reinterpret_cast<const uint8_t *>(bytes.data()) + begin,
                     bytes.size() - begin));
  memcpy(&bytes[mark.size()], &hash, sizeof hash);
}

/// The status of measuring a workspace for tensors of the types that a launcher
/// says, whatever they are.
static VarlenStatus measure(VarlenLauncher launcher, size_t &size) {
  size_t count = varlenLauncherGetNumTensors(launcher);
  std::vector<VarlenTensor> tensors(count);
  std::vector<std::vector<int64_t>> shapes(count);
  std::vector<const VarlenTensor *> pointers(count);
  for (size_t i = 0; i < count; ++i) {
    const VarlenParameter *type = varlenLauncherGetTensor(launcher, i);
    for (int32_t d = 0; d < type->rank; ++d)
      shapes[i].push_back(type->shape[d] < 0 ? 9 : type->shape[d]);
    tensors[i].device = {VARLEN_CUDA, 0};
    tensors[i].ndim = type->rank;
    tensors[i].dtype = {type->code, type->bits, 1};
    tensors[i].shape = shapes[i].data();
    pointers[i] = &tensors[i];
  }
  return varlenLauncherGetWorkspaceSize(launcher, pointers.data(), count,
                                        &size);
}

static void expectRefused(const std::string &bytes, VarlenStatus status,
                          const char *text) {
  VarlenLauncher launcher = {nullptr};
  EXPECT_ERROR(varlenLauncherDeserialize(bytes.data(), bytes.size(), &launcher),
               status, text);
  EXPECT(!launcher.ptr);
}

/// Every end that is missing and every byte that is changed is found.
static void testDamage(const std::string &bytes) {
  auto words = [](size_t place) {
    return place < mark.size() ? "expected the bytes of a launcher"
                               : "the checksum differs";
  };
  expectRefused(bytes + '\0', VARLEN_INVALID_ARGUMENT, "checksum");
  for (size_t i = 0; i < bytes.size(); i += i < 512 ? 1 : 997) {
    std::string changed = bytes;
    changed[i] ^= 0x10;
    expectRefused(changed, VARLEN_INVALID_ARGUMENT, words(i));
    expectRefused(bytes.substr(0, i), VARLEN_INVALID_ARGUMENT, words(i));
  }
}

struct Tally {
  int refused = 0, measured = 0;
};

/// Bytes of another meaning, with the checksum that they should have.
static void testHostile(std::string bytes, Tally &tally) {
  correctChecksum(bytes);
  VarlenLauncher launcher = {nullptr};
  if (varlenLauncherDeserialize(bytes.data(), bytes.size(), &launcher)) {
    EXPECT(!launcher.ptr);
    ++tally.refused;
    return;
  }
  // A launcher, whose tensors may be of types that no tensor has.
  size_t size = 0;
  tally.measured += !measure(launcher, size);
  varlenLauncherDestroy(launcher);
}

static void test(const char *path) {
  std::ifstream file(path);
  std::stringstream source;
  source << file.rdbuf();
  VarlenLauncher launcher = compileLauncher(source.str());
  std::string bytes = serialize(launcher);
  testDamage(bytes);

  VarlenLauncher again = {nullptr};
  EXPECT(!varlenLauncherDeserialize(bytes.data(), bytes.size(), &again));
  EXPECT(serialize(again) == bytes);
  size_t size = 0, sizeAgain = 0;
  EXPECT(!measure(launcher, size) && !measure(again, sizeAgain));
  EXPECT(size > 0 && size == sizeAgain);
  varlenLauncherDestroy(again);
  expectRefused("VARLEN-PROGRAM 2" + bytes.substr(mark.size()),
                VARLEN_INVALID_ARGUMENT, "expected the bytes of a launcher");

  // Without the code, which is the driver's affair, and the longest part.
  EXPECT(!varlenLauncherSetImage(launcher, "x", 1));
  bytes = serialize(launcher);
  size_t begin = mark.size() + checksumBytes, tried = 0;
  Tally tally;
  for (size_t i = begin; i < bytes.size(); ++i, ++tried)
    testHostile(bytes.substr(0, i), tally);
  for (size_t i = begin; i < bytes.size(); ++i)
    for (int bit = 0; bit < 8; ++bit, ++tried) {
      std::string changed = bytes;
      changed[i] ^= 1 << bit;
      testHostile(changed, tally);
    }
  std::mt19937 random(0);
  static const char values[] = {0, 1, 2, 7, 127, -128, -2, -1};
  for (int i = 0; i < 5000; ++i, ++tried) {
    std::string changed = bytes;
    for (int n = random() % 4; n >= 0; --n)
      changed[begin + random() % (bytes.size() - begin)] = values[random() % 8];
    testHostile(changed, tally);
  }
  EXPECT(tally.refused > 0 && tally.measured > 0);
  printf("%s: %zu changes, %d refused, %d measured\n", path, tried,
         tally.refused, tally.measured);
  varlenLauncherDestroy(launcher);
}

int main(int argc, char **argv) {
  VarlenCode code;
  VarlenLauncher launcher = {nullptr};
  EXPECT_ERROR(varlenLauncherSerialize(launcher, &code),
               VARLEN_INVALID_ARGUMENT, "got null");
  EXPECT_ERROR(varlenLauncherDeserialize(nullptr, 0, &launcher),
               VARLEN_INVALID_ARGUMENT, "got null");
  for (int i = 1; i < argc; ++i)
    test(argv[i]);
  return failures != 0;
}
