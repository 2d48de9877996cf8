//===- Emit.h - Compiled code as files --------------------------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_OPT_EMIT_H
#define VARLEN_OPT_EMIT_H

namespace mlir {
class DialectRegistry;
} // namespace mlir

namespace mlir::varlen {

/// varlen-opt FILE --emit=llvm|obj|so [--target=host] [--strided]
/// [--header=FILE] -o OUT: runs varlen-to-cpu, with results in memory of the
/// caller, and writes LLVM IR or an object, and what C declares of it. Returns
/// the exit code of the program.
int emitHost(int argc, char **argv, DialectRegistry &registry);

/// varlen-opt FILE --emit=ptx|cubin|fatbin|c-launcher [--chip=sm_80] [--ptx=90]
/// [--allow-spills] [--report] [--manifest=FILE] -o OUT: runs varlen-to-nvvm on
/// a file and writes the code of its kernels, or C that launches them (with
/// [--header=FILE] [--image=cubin] [--strided]). Returns the exit code of the
/// program.
int emitKernels(int argc, char **argv, DialectRegistry &registry);

} // namespace mlir::varlen

#endif // VARLEN_OPT_EMIT_H
