#include "zeus/budget/messages.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <set>
#include <utility>

#include "zeus/base/field_reader.h"
#include "zeus/base/json.h"
#include "zeus/base/text.h"

namespace zeus::budget {
namespace {

constexpr std::size_t kMostDevices = 256;
constexpr std::size_t kMostJobs = 1024;
constexpr std::size_t kMostPoints = 256;
constexpr double kMostWatts = 1e5;  // A device draws no more.
constexpr std::size_t kLongestName = 256;

bool IsOfNames(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte < 0x80 && (std::isalnum(byte) != 0 || c == '.' || c == '-' || c == '_');
}

bool IsPower(double watts) { return std::isfinite(watts) && watts >= 0 && watts <= kMostWatts; }

Status CheckName(const char* field, const std::string& name) {
  if (name.empty() || name.size() > kLongestName)
    return FieldError(field, fmt::format("must have 1 to {} characters", kLongestName));
  return Ok();
}

Result<DeviceReport> ParseDevice(const Json& json) {
  DeviceReport device;
  double lowest = 0;
  double highest = 0;
  double cap = 0;
  double fallback = 0;
  std::optional<double> power;
  FieldReader reader("a device", json);
  reader.Require("id", device.id);
  reader.Read("model", device.model);
  reader.Require("lowest_watts", lowest);
  reader.Require("highest_watts", highest);
  reader.Require("cap_watts", cap);
  reader.Require("fallback_watts", fallback);
  reader.ReadUnlessNull("power_watts", power);
  reader.ReadUnlessNull("utilization", device.utilization);
  ZEUS_RETURN_IF_ERROR(reader.Finish());
  ZEUS_RETURN_IF_ERROR(CheckName("id", device.id));
  if (!IsPower(lowest) || !IsPower(highest) || highest <= 0 || lowest > highest)
    return FieldError("highest_watts", "must be a power, and not less than lowest_watts");
  if (!IsPower(cap)) return FieldError("cap_watts", "must be a power");
  if (!IsPower(fallback)) return FieldError("fallback_watts", "must be a power");
  if (power && !IsPower(*power)) return FieldError("power_watts", "must be a power");
  if (device.utilization && !(*device.utilization >= 0 && *device.utilization <= 1))
    return FieldError("utilization", "must be 0 to 1");
  device.lowest = Watts(lowest);
  device.highest = Watts(highest);
  device.cap = Watts(cap);
  device.fallback = Watts(fallback);
  if (power) device.power = Watts(*power);
  return device;
}

Result<CurveReport> ParsePoint(const Json& json) {
  CurveReport point;
  double limit = 0;
  double draw = 0;
  FieldReader reader("a point of a curve", json);
  reader.Require("limit_watts", limit);
  reader.Require("draw_watts", draw);
  reader.Require("slowdown", point.slowdown);
  reader.Read("sigma", point.sigma);
  ZEUS_RETURN_IF_ERROR(reader.Finish());
  if (!IsPower(limit) || limit <= 0) return FieldError("limit_watts", "must be a power");
  if (!IsPower(draw)) return FieldError("draw_watts", "must be a power");
  if (!std::isfinite(point.slowdown) || point.slowdown <= 0)
    return FieldError("slowdown", "must be more than 0");
  if (!std::isfinite(point.sigma) || point.sigma < 0)
    return FieldError("sigma", "must not be negative");
  point.limit = Watts(limit);
  point.draw = Watts(draw);
  return point;
}

template <class T>
Result<std::vector<T>> ParseList(const char* field, const Json& list, std::size_t most,
                                 Result<T> (*parse)(const Json&)) {
  if (!list.is_array()) return FieldError(field, "must be a list");
  if (list.size() > most) return FieldError(field, fmt::format("may have {} entries", most));
  std::vector<T> all;
  for (const Json& one : list) {
    auto parsed = parse(one);
    if (!parsed.ok())
      return std::move(parsed).error().While(fmt::format("{}[{}]", field, all.size()));
    all.push_back(std::move(parsed).value());
  }
  return all;
}

Result<JobReport> ParseJob(const Json& json) {
  JobReport job;
  Json curve = Json::array();
  FieldReader reader("a job", json);
  reader.Require("id", job.id);
  reader.Read("name", job.name);
  reader.Require("devices", job.devices);
  reader.Read("partition", job.partition);
  reader.ReadUnlessNull("max_slowdown", job.max_slowdown);
  reader.Read("curve", curve);
  ZEUS_RETURN_IF_ERROR(reader.Finish());
  ZEUS_RETURN_IF_ERROR(CheckName("id", job.id));
  if (job.max_slowdown && !(std::isfinite(*job.max_slowdown) && *job.max_slowdown >= 1))
    return FieldError("max_slowdown", "must be 1 or more");
  ZEUS_TRY(job.curve, ParseList<CurveReport>("curve", curve, kMostPoints, ParsePoint));
  return job;
}

Result<DeviceCap> ParseCap(const Json& json) {
  DeviceCap cap;
  double watts = 0;
  double fallback = 0;
  FieldReader reader("a cap", json);
  reader.Require("device", cap.device);
  reader.Require("cap_watts", watts);
  reader.Require("fallback_watts", fallback);
  ZEUS_RETURN_IF_ERROR(reader.FinishAllowingOthers());
  if (!IsPower(watts) || watts <= 0) return FieldError("cap_watts", "must be a power");
  if (!IsPower(fallback) || fallback <= 0) return FieldError("fallback_watts", "must be a power");
  cap.cap = Watts(watts);
  cap.fallback = Watts(fallback);
  return cap;
}

Json WattsOrNull(const std::optional<Watts>& power) {
  return power ? FiniteOrNull(power->value()) : Json();
}

}  // namespace

Result<std::vector<CurveReport>> ParseCurveText(std::string_view text) {
  std::vector<CurveReport> curve;
  while (!(text = Trim(text)).empty()) {
    std::string_view point = text.substr(0, text.find(' '));
    text.remove_prefix(point.size());
    std::vector<double> numbers;
    while (!point.empty()) {
      const std::string_view part = point.substr(0, point.find(':'));
      point.remove_prefix(std::min(point.size(), part.size() + 1));
      ZEUS_TRY(numbers.emplace_back(), ParseDouble(part));
    }
    if (numbers.size() != 3 && numbers.size() != 4)
      return InvalidArgument("a point of a power curve is limit:draw:slowdown, or has :sigma, too");
    ZEUS_TRY(curve.emplace_back(), ParsePoint({{"limit_watts", numbers[0]},
                                               {"draw_watts", numbers[1]},
                                               {"slowdown", numbers[2]},
                                               {"sigma", numbers.size() == 4 ? numbers[3] : 0.0}}));
    if (curve.size() > kMostPoints)
      return InvalidArgument(fmt::format("a power curve may have {} points", kMostPoints));
  }
  return curve;
}

Status CheckNodeName(std::string_view name) {
  const bool begins_well = !name.empty() && std::string_view(".-_").find(name[0]) == name.npos;
  if (begins_well && name.size() <= kLongestName && std::ranges::all_of(name, IsOfNames))
    return Ok();
  return InvalidArgument(
      fmt::format("{} is no name of a node: write up to {} letters, digits, '.', '-' and '_', and "
                  "begin with a letter or a digit",
                  Quote(name), kLongestName));
}

Json ToJson(const NodeReport& report) {
  Json devices = Json::array();
  for (const DeviceReport& device : report.devices)
    devices.push_back({{"id", device.id},
                       {"model", device.model},
                       {"lowest_watts", device.lowest.value()},
                       {"highest_watts", device.highest.value()},
                       {"cap_watts", device.cap.value()},
                       {"fallback_watts", device.fallback.value()},
                       {"power_watts", WattsOrNull(device.power)},
                       {"utilization", device.utilization ? Json(*device.utilization) : Json()}});
  Json jobs = Json::array();
  for (const JobReport& job : report.jobs) {
    Json curve = Json::array();
    for (const CurveReport& point : job.curve)
      curve.push_back({{"limit_watts", point.limit.value()},
                       {"draw_watts", point.draw.value()},
                       {"slowdown", point.slowdown},
                       {"sigma", point.sigma}});
    jobs.push_back({{"id", job.id},
                    {"name", job.name},
                    {"devices", job.devices},
                    {"partition", job.partition},
                    {"max_slowdown", job.max_slowdown ? Json(*job.max_slowdown) : Json()},
                    {"curve", std::move(curve)}});
  }
  return {{"session", report.session}, {"sequence", report.sequence},   {"applied", report.applied},
          {"guarded", report.guarded}, {"devices", std::move(devices)}, {"jobs", std::move(jobs)}};
}

Json ToJson(const Grant& grant) {
  Json caps = Json::array();
  for (const DeviceCap& cap : grant.caps)
    caps.push_back({{"device", cap.device},
                    {"cap_watts", cap.cap.value()},
                    {"fallback_watts", cap.fallback.value()}});
  return {{"number", grant.number},
          {"valid_seconds", grant.valid.count()},
          {"next_report_seconds", grant.next_report.count()},
          {"caps", std::move(caps)}};
}

Result<NodeReport> ParseNodeReport(const Json& json) {
  NodeReport report;
  Json devices;
  Json jobs = Json::array();
  FieldReader reader("a report", json);
  reader.Require("session", report.session);
  reader.Require("sequence", report.sequence);
  reader.Require("applied", report.applied);
  reader.Read("guarded", report.guarded);
  reader.Require("devices", devices);
  reader.Read("jobs", jobs);
  ZEUS_RETURN_IF_ERROR(reader.Finish());
  ZEUS_RETURN_IF_ERROR(CheckName("session", report.session));
  ZEUS_TRY(report.devices, ParseList<DeviceReport>("devices", devices, kMostDevices, ParseDevice));
  ZEUS_TRY(report.jobs, ParseList<JobReport>("jobs", jobs, kMostJobs, ParseJob));
  std::set<std::string> ids;
  for (const DeviceReport& device : report.devices)
    if (!ids.insert(device.id).second)
      return FieldError("devices", Quote(device.id) + " is there twice");
  return report;
}

Result<Grant> ParseGrant(const Json& json) {
  Grant grant;
  double valid = 0;
  double next = 2;
  Json caps;
  FieldReader reader("a grant", json);
  reader.Require("number", grant.number);
  reader.Require("valid_seconds", valid);
  reader.Read("next_report_seconds", next);
  reader.Require("caps", caps);
  ZEUS_RETURN_IF_ERROR(reader.FinishAllowingOthers());
  if (!(valid >= 1 && valid <= 3600)) return FieldError("valid_seconds", "must be 1 to 3600");
  if (!(next >= 0.1 && next <= 600)) return FieldError("next_report_seconds", "must be 0.1 to 600");
  grant.valid = Seconds(valid);
  grant.next_report = Seconds(next);
  ZEUS_TRY(grant.caps, ParseList<DeviceCap>("caps", caps, kMostDevices, ParseCap));
  return grant;
}

}  // namespace zeus::budget
