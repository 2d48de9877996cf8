//===- VarlenAssemble.cpp - PTX to machine code, by ptxas -----------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Upstream runs ptxas, too, but drops what it says. What it says decides
// whether a kernel is any good: that registers did not suffice, that wgmma was
// serialised, that setmaxnreg was ignored.
//
//===----------------------------------------------------------------------===//

#include "varlen/Target/NVVM/Passes.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Target/LLVM/NVVM/Utils.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/Regex.h"
#include "llvm/Support/raw_ostream.h"

namespace mlir::varlen {
#define GEN_PASS_DEF_VARLENASSEMBLE
#include "varlen/Target/NVVM/Passes.h.inc"
} // namespace mlir::varlen

using namespace mlir;
using namespace mlir::varlen;

/// How many bytes of a thread's registers a kernel may spill with only a
/// warning. Where ptxas is short of one or two, it keeps some addresses in
/// memory: a few loads in a loop of more than a thousand instructions. Smaller
/// tiles cost more (measured for dk and dv at head_dim 128 on an H200, 88
/// bytes: 5 %), and no kernel at all the most.
static constexpr int64_t kFewSpilledBytes = 256;

namespace {

/// A file that goes away with this object.
class TemporaryFile {
public:
  TemporaryFile() = default;
  TemporaryFile(const TemporaryFile &) = delete;
  TemporaryFile &operator=(const TemporaryFile &) = delete;
  /// An error is at `user`.
  LogicalResult create(Operation *user, StringRef suffix,
                       StringRef content = {});
  StringRef getPath() const { return path; }
  std::string read() const {
    auto buffer = llvm::MemoryBuffer::getFile(path);
    return buffer ? (*buffer)->getBuffer().str() : std::string();
  }

private:
  SmallString<64> path;
  llvm::FileRemover remover;
};

struct VarlenAssemble : varlen::impl::VarlenAssembleBase<VarlenAssemble> {
  using VarlenAssembleBase::VarlenAssembleBase;
  void runOnOperation() override;

private:
  FailureOr<std::string> findTool(Operation *user, StringRef name);
  /// Runs a tool; what it prints, or failure with an error at `user`.
  FailureOr<std::string> runTool(Operation *user, StringRef path,
                                 ArrayRef<StringRef> arguments);
  LogicalResult checkNotes(Operation *user, StringRef notes);
  FailureOr<gpu::ObjectAttr> assemble(gpu::BinaryOp binary,
                                      gpu::ObjectAttr object);
};

} // namespace

LogicalResult TemporaryFile::create(Operation *user, StringRef suffix,
                                    StringRef content) {
  int descriptor;
  std::error_code error =
      llvm::sys::fs::createTemporaryFile("varlen", suffix, descriptor, path);
  if (!error) {
    remover.setFile(path);
    llvm::raw_fd_ostream stream(descriptor, /*shouldClose=*/true);
    stream << content;
    stream.close();
    error = stream.error();
  }
  if (!error)
    return success();
  return emitError(user->getLoc(), "cannot write a temporary file: ")
         << error.message();
}

FailureOr<std::string> VarlenAssemble::findTool(Operation *user,
                                                StringRef name) {
  SmallString<128> folder(toolkit.empty() ? NVVM::getCUDAToolkitPath()
                                          : StringRef(toolkit.getValue()));
  if (!folder.empty()) {
    llvm::sys::path::append(folder, "bin");
    if (auto found = llvm::sys::findProgramByName(name, {folder}))
      return *found;
  }
  if (toolkit.empty())
    if (auto found = llvm::sys::findProgramByName(name))
      return *found;
  return emitError(user->getLoc(), "expected ")
         << name << " in "
         << (toolkit.empty() ? StringRef("$CUDA_HOME/bin or in PATH")
                             : StringRef(folder))
         << ", found none; PTX needs no tool";
}

FailureOr<std::string> VarlenAssemble::runTool(Operation *user, StringRef path,
                                               ArrayRef<StringRef> arguments) {
  TemporaryFile log;
  if (failed(log.create(user, "log")))
    return failure();
  std::optional<StringRef> redirects[] = {StringRef(), log.getPath(),
                                          log.getPath()};
  std::string message;
  int code = llvm::sys::ExecuteAndWait(path, arguments, /*Env=*/std::nullopt,
                                       redirects, /*SecondsToWait=*/0,
                                       /*MemoryLimit=*/0, &message);
  std::string notes = log.read();
  if (code == 0)
    return notes;
  return emitError(user->getLoc())
         << path << " failed: " << (message.empty() ? notes : message);
}

LogicalResult VarlenAssemble::checkNotes(Operation *user, StringRef notes) {
  // wgmma serialised (C7510 to C7519) or setmaxnreg ignored (C7508).
  static const llvm::Regex note("\\(C75(08|1[0-9])\\)");
  static const llvm::Regex spill("([0-9]+) bytes spill stores");
  static const llvm::Regex registers("Used ([0-9]+) registers");
  SmallVector<StringRef> lines, match;
  notes.split(lines, '\n');
  StringRef kernel;
  for (StringRef line : lines) {
    if (note.match(line))
      return emitError(user->getLoc(), "ptxas: ") << line.trim();
    if (line.consume_front("ptxas info    : Function properties for "))
      kernel = line.trim();
    int64_t spilled = 0;
    if (spill.match(line, &match) && !allowSpills)
      (void)match[1].getAsInteger(10, spilled);
    if (spilled > kFewSpilledBytes)
      return emitError(user->getLoc(), "ptxas spills ")
             << spilled << " bytes of registers in " << kernel
             << "; a schedule with smaller tiles would not";
    if (spilled != 0)
      emitWarning(user->getLoc(), "ptxas spills ")
          << spilled << " bytes of registers in " << kernel;
    if (registers.match(line, &match) && report)
      emitRemark(user->getLoc())
          << kernel << " uses " << match[1] << " registers";
  }
  return success();
}

FailureOr<gpu::ObjectAttr> VarlenAssemble::assemble(gpu::BinaryOp binary,
                                                    gpu::ObjectAttr object) {
  auto target = dyn_cast<NVVM::NVVMTargetAttr>(object.getTarget());
  if (!target)
    return emitError(binary.getLoc(),
                     "expected an object for #nvvm.target, got one for ")
           << object.getTarget();
  StringRef chip = target.getChip(), text = object.getObject().getValue();
  FailureOr<std::string> ptxas = findTool(binary, "ptxas");
  if (failed(ptxas))
    return failure();
  TemporaryFile ptx, cubin;
  if (failed(ptx.create(binary, "ptx", text.rtrim('\0'))) ||
      failed(cubin.create(binary, "cubin")))
    return failure();
  std::string arch = ("-arch=" + chip).str();
  FailureOr<std::string> notes =
      runTool(binary, *ptxas,
              {"ptxas", arch, "-v", ptx.getPath(), "-o", cubin.getPath()});
  if (failed(notes) || failed(checkNotes(binary, *notes)))
    return failure();
  ++numAssembled;
  auto make = [&](gpu::CompilationTarget format, StringRef content) {
    return gpu::ObjectAttr::get(&getContext(), target, format,
                                StringAttr::get(&getContext(), content),
                                object.getProperties(), object.getKernels());
  };
  if (!fatbin)
    return make(gpu::CompilationTarget::Binary, cubin.read());

  FailureOr<std::string> fatbinary = findTool(binary, "fatbinary");
  TemporaryFile fat;
  if (failed(fatbinary) || failed(fat.create(binary, "fatbin")))
    return failure();
  // Machine code for this chip, PTX for those that come after it.
  StringRef number = chip;
  number.consume_front("sm_");
  std::string create = ("--create=" + fat.getPath()).str();
  std::string elf =
      ("--image3=kind=elf,sm=" + number + ",file=" + cubin.getPath()).str();
  std::string source =
      ("--image3=kind=ptx,sm=" + number + ",file=" + ptx.getPath()).str();
  if (failed(runTool(binary, *fatbinary,
                     {"fatbinary", "-64", create, elf, source})))
    return failure();
  return make(gpu::CompilationTarget::Fatbin, fat.read());
}

void VarlenAssemble::runOnOperation() {
  SmallVector<std::pair<gpu::BinaryOp, ArrayAttr>> results;
  WalkResult walk = getOperation().walk([&](gpu::BinaryOp binary) {
    SmallVector<Attribute> objects;
    for (Attribute attribute : binary.getObjects()) {
      auto object = cast<gpu::ObjectAttr>(attribute);
      if (object.getFormat() == gpu::CompilationTarget::Assembly) {
        FailureOr<gpu::ObjectAttr> assembled = assemble(binary, object);
        if (failed(assembled))
          return WalkResult::interrupt();
        object = *assembled;
      }
      objects.push_back(object);
    }
    results.emplace_back(binary, ArrayAttr::get(&getContext(), objects));
    return WalkResult::advance();
  });
  if (walk.wasInterrupted())
    return signalPassFailure();
  for (auto [binary, objects] : results)
    binary.setObjectsAttr(objects);
}
