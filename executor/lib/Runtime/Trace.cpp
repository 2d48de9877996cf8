//===- Trace.cpp - The timeline of one CTA --------------------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Trace.h"

#include <cinttypes>

using namespace varlen::executor;

static const char *category(Activity activity) {
  switch (activity) {
  case Activity::Matrix:
    return "matrix";
  case Activity::Shared:
    return "shared memory";
  case Activity::Exchange:
    return "exchange";
  case Activity::Copy:
    return "copy";
  case Activity::Wait:
    return "wait";
  }
  return "?";
}

/// Colours by which Chrome's viewer tells apart what Perfetto tells by name.
static const char *colour(Activity activity) {
  switch (activity) {
  case Activity::Matrix:
    return "good";
  case Activity::Shared:
    return "rail_load";
  case Activity::Exchange:
    return "rail_response";
  case Activity::Copy:
    return "thread_state_runnable";
  case Activity::Wait:
    return "grey";
  }
  return "grey";
}

static void writeString(FILE *file, const std::string &text) {
  fputc('"', file);
  for (char character : text) {
    if (character == '"' || character == '\\')
      fputc('\\', file);
    if (static_cast<unsigned char>(character) < 0x20)
      fprintf(file, "\\u%04x", static_cast<unsigned>(character));
    else
      fputc(character, file);
  }
  fputc('"', file);
}

static void writeTrack(FILE *file, const Track &track, size_t id,
                       const std::vector<std::string> &sites) {
  fprintf(file,
          ",\n{\"ph\":\"M\",\"pid\":0,\"tid\":%zu,\"name\":\"thread_name\","
          "\"args\":{\"name\":",
          id);
  writeString(file, track.name);
  fprintf(file,
          "}},\n{\"ph\":\"M\",\"pid\":0,\"tid\":%zu,"
          "\"name\":\"thread_sort_index\",\"args\":{\"sort_index\":%zu}}",
          id, id);
  for (const TraceEvent &event : track.events) {
    fprintf(file,
            ",\n{\"ph\":\"X\",\"pid\":0,\"tid\":%zu,\"ts\":%" PRIu64
            ",\"dur\":%" PRIu64 ",\"name\":",
            id, event.begin, event.end - event.begin);
    std::string name = event.name;
    if (event.activity == Activity::Wait)
      name = "wait: " + name;
    if (event.count > 1)
      name += " x" + std::to_string(event.count);
    writeString(file, name);
    fprintf(file, R"(,"cat":"%s","cname":"%s","args":{"site":)",
            category(event.activity), colour(event.activity));
    writeString(file, event.site < sites.size() ? sites[event.site] : "?");
    fputs("}}", file);
  }
}

void Trace::write(FILE *file, const std::vector<std::string> &sites) const {
  fputs("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n{\"ph\":\"M\","
        "\"pid\":0,\"name\":\"process_name\",\"args\":{\"name\":",
        file);
  writeString(file, name);
  fputs("}}", file);
  size_t id = 0;
  for (const Track &track : warps)
    writeTrack(file, track, id++, sites);
  for (const Track &track : products)
    if (!track.events.empty())
      writeTrack(file, track, id++, sites);
  // Copies overlap: as many rows as it takes.
  std::vector<Track> rows;
  for (const TraceEvent &event : copies.events) {
    Track *row = nullptr;
    for (Track &candidate : rows)
      if (candidate.now <= event.begin) {
        row = &candidate;
        break;
      }
    if (!row) {
      rows.emplace_back();
      row = &rows.back();
      row->name = "copies " + std::to_string(rows.size());
    }
    row->events.push_back(event);
    row->now = event.end;
  }
  for (const Track &track : rows)
    writeTrack(file, track, id++, sites);
  fputs("\n]}\n", file);
}
