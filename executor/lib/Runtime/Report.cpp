//===- Report.cpp - What went wrong, once per kind and place --------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Report.h"

#include "State.h"

#include <cstdarg>
#include <cstdio>

using namespace varlen::executor;

static std::string formatList(const char *format, va_list list) {
  char buffer[1024];
  int length = vsnprintf(buffer, sizeof(buffer), format, list);
  return length < 0 ? std::string() : std::string(buffer);
}

std::string varlen::executor::format(const char *format, ...) {
  va_list list;
  va_start(list, format);
  std::string text = formatList(format, list);
  va_end(list);
  return text;
}

void Reports::add(const char *kind, uint32_t site, const std::string &what,
                  const std::string &where) {
  std::lock_guard<std::mutex> lock(mutex);
  if (!seen.insert({kind, site}).second || reports.size() >= limit)
    return;
  std::string place =
      site == noSite ? "" : " at " + std::string(siteName(site));
  reports.push_back({kind, site == noSite ? "?" : siteName(site),
                     kind + place + ": " + what + where});
}

void varlen::executor::report(const char *kind, uint32_t site,
                              const char *format, ...) {
  va_list list;
  va_start(list, format);
  std::string what = formatList(format, list);
  va_end(list);
  std::string where;
  if (Thread *thread = worker ? worker->current : nullptr)
    where = executor::format(" [cta %u,%u,%u thread %u]", thread->block->id[0],
                             thread->block->id[1], thread->block->id[2],
                             thread->tid);
  worker->launch->reports->add(kind, site, what, where);
}
