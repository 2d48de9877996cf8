//===- Timeline.cpp - A picture of a timeline -----------------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Timeline.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <map>
#include <vector>

using namespace varlen_run;
using llvm::StringRef;

namespace {
struct Event {
  int64_t track, begin, length;
  StringRef name, category, site;
};

struct Timeline {
  StringRef title;
  std::map<int64_t, StringRef> tracks; // by number, in which they are sorted
  std::vector<Event> events;
  int64_t end = 1;
};

struct Category {
  StringRef name, color;
};
} // namespace

static constexpr Category categories[] = {{"matrix", "#1f5fa8"},
                                          {"shared memory", "#5fa88f"},
                                          {"copy", "#e08b2c"},
                                          {"exchange", "#9b6fb8"},
                                          {"wait", "#d4d4d4"}};

// In pixels.
static constexpr int64_t kLabels = 130, kRow = 22, kTop = 56, kBottom = 30;
static constexpr double kLetter = 6;

static Timeline read(const llvm::json::Array &events) {
  Timeline timeline;
  for (const llvm::json::Value &value : events) {
    const llvm::json::Object *event = value.getAsObject();
    if (!event)
      continue;
    const llvm::json::Object *arguments = event->getObject("args");
    StringRef name = event->getString("name").value_or("");
    auto get = [&](StringRef key) {
      return arguments ? arguments->getString(key).value_or("") : "";
    };
    int64_t track = event->getInteger("tid").value_or(0);
    if (name == "process_name")
      timeline.title = get("name");
    else if (name == "thread_name")
      timeline.tracks[track] = get("name");
    else if (event->getString("ph") == StringRef("X")) {
      int64_t begin = event->getInteger("ts").value_or(0);
      int64_t length = event->getInteger("dur").value_or(0);
      timeline.events.push_back({track, begin, length, name,
                                 event->getString("cat").value_or(""),
                                 get("site")});
      timeline.end = std::max(timeline.end, begin + length);
    }
  }
  return timeline;
}

/// A text; `rest` are attributes.
static void writeText(llvm::raw_ostream &os, double x, int64_t y,
                      StringRef rest, StringRef text) {
  os << llvm::format("<text x=\"%.1f\" y=\"%lld\"", x,
                     static_cast<long long>(y))
     << rest << ">";
  llvm::printHTMLEscaped(text, os);
  os << "</text>\n";
}

static void writeEvent(llvm::raw_ostream &os, const Event &event, double scale,
                       int64_t row) {
  const Category *category = llvm::find_if(
      categories, [&](const Category &c) { return c.name == event.category; });
  StringRef color =
      category == std::end(categories) ? "#888888" : category->color;
  double x = kLabels + scale * static_cast<double>(event.begin);
  double width = std::max(0.3, scale * static_cast<double>(event.length));
  int64_t y = kTop + row * kRow;
  os << llvm::format(
            "<rect x=\"%.1f\" y=\"%lld\" width=\"%.1f\" height=\"%lld\" "
            "fill=\"",
            x, static_cast<long long>(y), width,
            static_cast<long long>(kRow - 4))
     << color << "\"><title>";
  llvm::printHTMLEscaped(event.name, os);
  os << "\n" << event.begin << " to " << event.begin + event.length << "\n";
  llvm::printHTMLEscaped(event.site, os);
  os << "</title></rect>\n";
  StringRef word = event.name.split(' ').first.rtrim(':');
  if (width > kLetter * static_cast<double>(word.size() + 1))
    writeText(os, x + width / 2, y + kRow - 9,
              event.category == "wait"
                  ? " text-anchor=\"middle\" fill=\"#222222\""
                  : " text-anchor=\"middle\" fill=\"#ffffff\"",
              word);
}

llvm::Expected<std::string> varlen_run::drawTimeline(StringRef trace) {
  llvm::Expected<llvm::json::Value> value = llvm::json::parse(trace);
  if (!value)
    return value.takeError();
  const llvm::json::Object *object = value->getAsObject();
  const llvm::json::Array *events =
      object ? object->getArray("traceEvents") : nullptr;
  if (!events)
    return llvm::createStringError("expected a list of traceEvents");
  Timeline timeline = read(*events);

  std::string text;
  llvm::raw_string_ostream os(text);
  // Pixels for each cycle, as far as browsers scroll well: they zoom, too.
  double scale = std::min(1.0, 8000.0 / static_cast<double>(timeline.end));
  int64_t width =
      kLabels +
      static_cast<int64_t>(scale * static_cast<double>(timeline.end)) + 20;
  int64_t height =
      kTop + kRow * static_cast<int64_t>(timeline.tracks.size()) + kBottom;
  os << "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" << width
     << "\" height=\"" << height
     << "\" font-family=\"sans-serif\" font-size=\"10\">\n"
     << "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n";
  writeText(os, 8, 18, " font-size=\"13\"", timeline.title);
  double x = 8;
  for (const Category &category : categories) {
    os << llvm::format("<rect x=\"%.1f\" y=\"30\" width=\"12\" height=\"12\"",
                       x)
       << " fill=\"" << category.color << "\"/>\n";
    writeText(os, x + 16, 40, "", category.name);
    x += 30 + kLetter * static_cast<double>(category.name.size());
  }
  std::map<int64_t, int64_t> rows;
  for (auto [track, name] : timeline.tracks) {
    int64_t row = static_cast<int64_t>(rows.size());
    rows[track] = row;
    writeText(os, 8, kTop + row * kRow + kRow - 9, "", name);
  }
  for (const Event &event : timeline.events)
    if (auto row = rows.find(event.track); row != rows.end())
      writeEvent(os, event, scale, row->second);
  // An axis of about one number for each 100 pixels.
  int64_t step = 1;
  while (scale * static_cast<double>(step) < 100)
    step *= 10;
  for (int64_t at = 0; at <= timeline.end; at += step)
    writeText(os, kLabels + scale * static_cast<double>(at), height - 10,
              " fill=\"#666666\"", std::to_string(at));
  os << "</svg>\n";
  return text;
}
