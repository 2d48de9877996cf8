//===- OutputFile.cpp - Files written whole or not at all -----------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "OutputFile.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Signals.h"

#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace varlen_tools;
using llvm::ArrayRef;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;

static Error makeError(const llvm::Twine &message) {
  return llvm::createStringError(message);
}

void varlen_tools::ignoreStreamSignals() {
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);
}

/// Where symbolic links lead, also to what does not exist.
static std::string followLinks(std::string path) {
  // As many as Linux follows.
  for (int i = 0; i < 40; ++i) {
    char buffer[PATH_MAX];
    ssize_t size = readlink(path.c_str(), buffer, sizeof buffer);
    if (size < 0)
      break;
    StringRef to(buffer, size);
    if (llvm::sys::path::is_absolute(to)) {
      path = to.str();
    } else {
      llvm::SmallString<128> joined = llvm::sys::path::parent_path(path);
      llvm::sys::path::append(joined, to);
      path = joined.str().str();
    }
  }
  return path;
}

//===----------------------------------------------------------------------===//
// checkOutputs
//===----------------------------------------------------------------------===//

/// The one name of a file that there is or may be.
static std::string getRealPath(StringRef path) {
  std::string target = followLinks(path.str());
  StringRef folder = llvm::sys::path::parent_path(target);
  llvm::SmallString<128> real;
  if (llvm::sys::fs::real_path(folder.empty() ? "." : folder, real))
    return target;
  llvm::sys::path::append(real, llvm::sys::path::filename(target));
  return real.str().str();
}

/// Whether writing one would replace the other.
static bool isSameFile(StringRef a, StringRef b) {
  llvm::sys::fs::file_status statusA, statusB;
  if (llvm::sys::fs::status(a, statusA) || llvm::sys::fs::status(b, statusB))
    return getRealPath(a) == getRealPath(b);
  return llvm::sys::fs::is_regular_file(statusA) &&
         llvm::sys::fs::equivalent(statusA, statusB);
}

Error varlen_tools::checkOutputs(ArrayRef<NamedFile> inputs,
                                 ArrayRef<NamedFile> outputs) {
  for (auto [i, output] : llvm::enumerate(outputs)) {
    std::string where = output.role + ": '" + output.path + "'";
    if (llvm::sys::fs::is_directory(output.path))
      return makeError(where + " is a folder: expected a file");
    for (const NamedFile &input : inputs)
      if (isSameFile(output.path, input.path))
        return makeError(where + " is " + input.role +
                         ": expected another file");
    for (const NamedFile &other : outputs.take_front(i))
      if (isSameFile(output.path, other.path))
        return makeError(where + " is written by " + other.role +
                         ", too: expected another file");
  }
  return Error::success();
}

//===----------------------------------------------------------------------===//
// OutputFile
//===----------------------------------------------------------------------===//

static Error makeWriteError(StringRef path, int code) {
  return makeError(path.str() + ": cannot be written: " + strerror(code));
}

OutputFile::OutputFile(OutputFile &&other)
    : path(std::move(other.path)), target(std::move(other.target)),
      temporary(std::exchange(other.temporary, "")) {}

OutputFile::~OutputFile() {
  if (temporary.empty())
    return;
  unlink(temporary.c_str());
  llvm::sys::DontRemoveFileOnSignal(temporary);
}

/// Opens a new file in the folder of `target`. llvm::sys::fs::TempFile would
/// take a % in the folder's name for one of its own.
static int openTemporary(StringRef target, std::string &name) {
  for (int i = 0;; ++i) {
    llvm::SmallString<128> path = llvm::sys::path::parent_path(target);
    llvm::sys::path::append(path, "varlen-" + std::to_string(getpid()) + "-" +
                                      std::to_string(i) + ".tmp");
    name = path.str().str();
    int descriptor =
        open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor >= 0 || errno != EEXIST)
      return descriptor;
  }
}

Expected<OutputFile>
OutputFile::write(StringRef path,
                  llvm::function_ref<void(llvm::raw_ostream &)> print) {
  OutputFile file(path.str(), followLinks(path.str()), "");
  struct stat status;
  bool exists = stat(file.path.c_str(), &status) == 0;
  if (!exists && errno != ENOENT)
    return makeWriteError(path, errno);
  bool isSpecial = exists && !S_ISREG(status.st_mode);
  int descriptor = -1;
  if (isSpecial) {
    descriptor = open(file.path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY);
  } else {
    // A new name would get around the permissions of the old file.
    if (exists && access(file.target.c_str(), W_OK) != 0)
      return makeWriteError(path, errno);
    std::string temporary;
    descriptor = openTemporary(file.target, temporary);
    if (descriptor >= 0) {
      file.temporary = temporary;
      llvm::sys::RemoveFileOnSignal(temporary);
    }
  }
  if (descriptor < 0)
    return makeWriteError(path, errno);
  if (exists && !isSpecial)
    fchmod(descriptor, status.st_mode & 0777);

  llvm::raw_fd_ostream stream(descriptor, /*shouldClose=*/false);
  print(stream);
  stream.flush();
  std::error_code error = stream.error();
  stream.clear_error();
  if (close(descriptor) != 0 && !error)
    return makeWriteError(path, errno);
  if (error)
    return makeWriteError(path, error.value());
  return file;
}

Error OutputFile::keep() {
  if (temporary.empty())
    return Error::success();
  if (rename(temporary.c_str(), target.c_str()) != 0)
    return makeWriteError(path, errno);
  llvm::sys::DontRemoveFileOnSignal(temporary);
  temporary.clear();
  return Error::success();
}
