//===- Warp.h - Collectives of the lanes of a warp --------------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_LIB_EXECUTOR_WARP_H
#define VARLEN_LIB_EXECUTOR_WARP_H

namespace varlen::executor {

struct Warp;

// Matrix.cpp
void loadMatrix(Warp &warp);
void storeMatrix(Warp &warp);
void multiplyMatrix(Warp &warp);

// Wgmma.cpp
void fenceWgmma(Warp &warp);
void commitWgmma(Warp &warp);
void waitWgmma(Warp &warp);
void issueWgmma(Warp &warp);

// DeviceMap.cpp
void publishMap(Warp &warp);

} // namespace varlen::executor

#endif // VARLEN_LIB_EXECUTOR_WARP_H
