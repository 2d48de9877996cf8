//===- Report.h - What went wrong, once per kind and place ------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_LIB_EXECUTOR_REPORT_H
#define VARLEN_LIB_EXECUTOR_REPORT_H

#include <cstdint>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace varlen::executor {

/// The site of what belongs to no operation.
constexpr uint32_t noSite = ~0U;

struct Report {
  std::string kind;
  std::string site;
  std::string text;
};

/// The reports of one launch, filled by all of its host threads.
class Reports {
public:
  Reports(const std::vector<std::string> &sites, uint32_t limit)
      : sites(sites), limit(limit) {}

  void add(const char *kind, uint32_t site, const std::string &what,
           const std::string &where);
  const char *siteName(uint32_t site) const {
    return site < sites.size() ? sites[site].c_str() : "?";
  }
  std::vector<Report> take() { return std::move(reports); }

private:
  const std::vector<std::string> &sites;
  uint32_t limit;
  std::mutex mutex;
  std::set<std::pair<std::string, uint32_t>> seen;
  std::vector<Report> reports;
};

[[gnu::format(printf, 1, 2)]] std::string format(const char *format, ...);

/// Reports about the current thread.
[[gnu::format(printf, 3, 4)]] void report(const char *kind, uint32_t site,
                                          const char *format, ...);

} // namespace varlen::executor

#endif // VARLEN_LIB_EXECUTOR_REPORT_H
