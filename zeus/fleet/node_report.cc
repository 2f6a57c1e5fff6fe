#include "zeus/fleet/node_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "zeus/base/json.h"
#include "zeus/base/text.h"

namespace zeus::fleet {
namespace {

const Json& Field(const Json& object, const char* name) {
  static const Json none;
  if (!object.is_object()) return none;
  const auto found = object.find(name);
  return found == object.end() ? none : *found;
}

std::string TextOf(const Json& object, const char* name) {
  const Json& value = Field(object, name);
  return value.is_string() ? value.get<std::string>() : "";
}

std::optional<double> NumberOf(const Json& value) {
  if (!value.is_number()) return std::nullopt;
  const double number = value.get<double>();
  return std::isfinite(number) ? std::optional(number) : std::nullopt;
}

// The value of a series that many steps before its end; the last step has not ended yet.
std::optional<double> FromEnd(const Json& series, std::size_t back) {
  if (!series.is_array() || series.size() <= back) return std::nullopt;
  return NumberOf(series[series.size() - 1 - back]);
}

// The latest complete step that is known, of the last minute at most.
std::optional<std::size_t> LatestKnown(const Json& series) {
  constexpr std::size_t kMinute = 6;
  for (std::size_t back = 1; back <= kMinute; ++back)
    if (FromEnd(series, back)) return back;
  return std::nullopt;
}

struct GpuFacts {
  std::string model{};
  std::string name{};
};

// "A100", "8 × A100", or "2 × A100, 2 × H100" where a node has several.
std::string ModelsOf(const std::map<std::string, GpuFacts>& gpus) {
  std::map<std::string, std::size_t> counts;
  for (const auto& [device, facts] : gpus) ++counts[facts.model];
  std::string text;
  for (const auto& [model, count] : counts) {
    if (!text.empty()) text += ", ";
    text += gpus.size() == 1 ? model : fmt::format("{} × {}", count, model);
  }
  return text;
}

std::map<std::string, GpuFacts> Gpus(const Json& node, NodeReport& report) {
  std::map<std::string, GpuFacts> gpus;
  for (const Json& gpu : Field(node, "gpus")) {
    const std::string device = TextOf(gpu, "device");
    gpus[device] = {.model = TextOf(gpu, "model"), .name = TextOf(gpu, "name")};
    ++report.gpus;
    const auto holds = [&gpu](const char* name) { return Field(gpu, name) == Json(true); };
    if (holds("lost")) report.faults.push_back(TextOf(gpu, "name") + " is lost");
    if (holds("stuck")) report.faults.push_back(TextOf(gpu, "name") + " is stuck");
  }
  report.model = ModelsOf(gpus);
  for (const Json& absence : Field(node, "absent"))
    if (TextOf(absence, "what").starts_with("gpu:"))
      report.faults.push_back(TextOf(absence, "what") + ": " + TextOf(absence, "reason"));
  return gpus;
}

std::vector<std::optional<Watts>> PastOf(const Json& devices) {
  std::vector<std::optional<Watts>> past;
  for (std::size_t back = FleetTable::kPast; back >= 2; --back) {
    std::optional<Watts> sum;
    for (const Json& device : devices)
      if (const auto watts = FromEnd(Field(device, "mean_watts"), back))
        sum = sum.value_or(Watts(0)) + Watts(*watts);
    past.push_back(sum);
  }
  return past;
}

}  // namespace

Status AddBestLimit(std::string_view text, BestLimits& limits) {
  const auto equals = text.rfind('=');
  const auto watts = ParseDouble(equals == std::string_view::npos ? "" : text.substr(equals + 1));
  if (!watts.ok() || equals == 0 || !(watts.value() > 0) || !std::isfinite(watts.value()))
    return InvalidArgument("must be like \"NVIDIA A100-SXM4-40GB=250\": " + Quote(text));
  limits[std::string(Trim(text.substr(0, equals)))] = Watts(watts.value());
  return Ok();
}

Result<NodeReport> ReportOf(const Json& node, const Json& history, const BestLimits& best) {
  const Json& devices = Field(history, "devices");
  if (!node.is_object() || !devices.is_array())
    return Error{ErrorCode::kUnavailable, "this is no node of Zeus: its answers have no devices"};
  NodeReport report{.host = TextOf(node, "host")};
  const auto gpus = Gpus(node, report);
  for (const Json& device : devices) {
    const Json& means = Field(device, "mean_watts");
    const auto latest = LatestKnown(means);
    const auto gpu = gpus.find(TextOf(device, "device"));
    if (!latest) {
      if (gpu != gpus.end() && report.faults.empty())
        report.faults.push_back(gpu->second.name + " tells nothing");
      continue;
    }
    const double watts = *FromEnd(means, *latest);
    report.power += Watts(watts);
    const double idle = FromEnd(Field(device, "idle_watts"), *latest).value_or(0);
    report.idle += Watts(idle);
    if (gpu == gpus.end()) continue;
    const auto limit = best.find(gpu->second.model);
    if (limit != best.end() && idle < 0.5 * watts)
      report.above += std::max(Watts(watts) - limit->second, Watts(0));
  }
  report.past = PastOf(devices);
  return report;
}

double NextSince(const Json& history) {
  // The last minute once more: what was not settled at the last look.
  return NumberOf(Field(history, "at_seconds")).value_or(0) - 70;
}

Result<std::map<std::string, double>> ByInstance(const Json& answer) {
  const Json& result = Field(Field(answer, "data"), "result");
  if (TextOf(answer, "status") != "success" || !result.is_array())
    return Error{ErrorCode::kUnavailable,
                 "Prometheus answered with an error: " + Printable(TextOf(answer, "error"))};
  std::map<std::string, double> values;
  for (const Json& series : result) {
    const std::string instance = TextOf(Field(series, "metric"), "instance");
    const Json& value = Field(series, "value");
    if (instance.empty() || !value.is_array() || value.size() != 2 || !value[1].is_string())
      continue;
    const auto number = ParseDouble(value[1].get<std::string>());
    if (number.ok() && std::isfinite(number.value())) values[instance] = number.value();
  }
  return values;
}

}  // namespace zeus::fleet
