//===- Timeline.h - A picture of a timeline ---------------------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_RUN_TIMELINE_H
#define VARLEN_RUN_TIMELINE_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <string>

namespace varlen_run {

/// Draws a timeline, the Chrome trace JSON of the executor, as SVG for any
/// browser: a row for each track, and what an event is in the text that shows
/// where the mouse rests.
llvm::Expected<std::string> drawTimeline(llvm::StringRef trace);

} // namespace varlen_run

#endif // VARLEN_RUN_TIMELINE_H
