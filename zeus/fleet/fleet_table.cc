#include "zeus/fleet/fleet_table.h"

#include <fmt/format.h>

#include <iterator>

#include "zeus/base/json.h"
#include "zeus/base/wall_time_text.h"

namespace zeus::fleet {
namespace {

std::string Quoted(const std::string& text) { return JsonText(Json(text)); }

}  // namespace

void FleetTable::Add(const std::string& name, const std::string& url) {
  const std::lock_guard lock(mutex_);
  if (nodes_.size() < kMostNodes || nodes_.contains(name)) nodes_[name].url = url;
}

void FleetTable::Report(const std::string& name, const NodeReport& report) {
  const std::lock_guard lock(mutex_);
  if (nodes_.size() >= kMostNodes && !nodes_.contains(name)) return;
  Node& node = nodes_[name];
  if (node.past.empty()) node.past.assign(report.past.begin(), report.past.end());
  node.past.emplace_back(report.power);
  while (node.past.size() > kPast) node.past.pop_front();
  node.report = report;
  node.report->past.clear();
  node.reported_at = clock_.Now();
  node.trouble.clear();
}

void FleetTable::Fail(const std::string& name, const std::string& why) {
  const std::lock_guard lock(mutex_);
  const auto found = nodes_.find(name);
  if (found == nodes_.end()) return;
  found->second.trouble = why;
  found->second.past.emplace_back(std::nullopt);
  while (found->second.past.size() > kPast) found->second.past.pop_front();
}

void FleetTable::Append(const std::string& name, const Node& node, TimePoint now, Past past,
                        std::string& text) {
  const auto out = std::back_inserter(text);
  fmt::format_to(out, R"({{"name":{},"url":{},"trouble":{})", Quoted(name), Quoted(node.url),
                 Quoted(node.trouble));
  if (node.report) {
    const NodeReport& report = *node.report;
    fmt::format_to(out,
                   R"(,"host":{},"model":{},"gpus":{},"power_watts":{:.1f},"idle_watts":{:.1f},)"
                   R"("above_watts":{:.1f},"age_seconds":{:.1f},"faults":[)",
                   Quoted(report.host), Quoted(report.model), report.gpus, report.power.value(),
                   report.idle.value(), report.above.value(), (now - node.reported_at).count());
    for (const std::string& fault : report.faults) text += Quoted(fault) + ",";
    if (!report.faults.empty()) text.pop_back();
    text += ']';
    if (report.temperature)
      fmt::format_to(out, R"(,"temperature_celsius":{:.0f})", report.temperature->value());
  }
  if (past == Past::kIncluded) {
    text += R"(,"past_watts":[)";
    for (const std::optional<Watts>& watts : node.past)
      text += watts ? fmt::format("{:.0f},", watts->value()) : "null,";
    if (!node.past.empty()) text.pop_back();
    text += ']';
  }
  text += "},";
}

std::string FleetTable::Document(Past past) const {
  const std::lock_guard lock(mutex_);
  const TimePoint now = clock_.Now();
  std::string text;
  text.reserve(128 + nodes_.size() * (past == Past::kIncluded ? 600 : 300));
  fmt::format_to(std::back_inserter(text), R"({{"time":"{}","nodes":[)",
                 ToExactText(clock_.WallNow()));
  for (const auto& [name, node] : nodes_) Append(name, node, now, past, text);
  if (!nodes_.empty()) text.pop_back();
  text += "]}";
  return text;
}

}  // namespace zeus::fleet
