#include "zeus/optimizer/power_limit/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "zeus/base/json.h"
#include "zeus/base/text.h"
#include "zeus/base/wall_time_text.h"

namespace zeus {
namespace {

constexpr std::string_view kSchemaName = "zeus.power_profile/";
constexpr std::string_view kSchema = "zeus.power_profile/1";

// No measured number is outside of this range.
constexpr double kMost = 1e15;
constexpr double kLeast = 1e-12;

const char* SettingField(KnobKind knob) {
  return IsClock(knob) ? "clock_megahertz" : "limit_watts";
}

// Reads a number and checks its range, since files may be edited by hand or cut off.
Result<double> GetNumber(const Json& object, std::string_view field, double min, double max) {
  ZEUS_TRY(const double number, GetField<double>(object, field));
  if (number >= min && number <= max) return number;
  return InvalidArgument(fmt::format("field \"{}\" is {:g} and must lie between {:g} and {:g}",
                                     field, number, min, max));
}

template <class Integer>
Result<Integer> GetWhole(const Json& object, std::string_view field, double min) {
  const double max = static_cast<double>(std::numeric_limits<std::int32_t>::max());
  ZEUS_TRY(const double number, GetNumber(object, field, min, max));
  if (number == std::floor(number)) return static_cast<Integer>(number);
  return InvalidArgument(
      fmt::format("field \"{}\" is {:g} and must be a whole number", field, number));
}

Result<std::vector<Json>> GetPoints(const Json& json, std::string_view field) {
  ZEUS_TRY(const Json points, GetField<Json>(json, field));
  if (!points.is_array())
    return InvalidArgument(
        fmt::format("field \"{}\" has the wrong type ({})", field, points.type_name()));
  if (points.empty()) return InvalidArgument(fmt::format("field \"{}\" is empty", field));
  for (const Json& point : points)
    if (!point.is_object())
      return InvalidArgument(fmt::format("field \"{}\" holds something that is no object", field));
  return std::vector<Json>(points.begin(), points.end());
}

Json PointToJson(KnobKind knob, const ProfilePoint& point) {
  return {{SettingField(knob), ToNumber(point.setting)},
          {"steps", point.steps},
          {"time_per_step_seconds", point.time_per_step.count()},
          {"time_sigma_seconds", point.time_sigma.count()},
          {"energy_per_step_joules", point.energy_per_step.value()},
          {"energy_sigma_joules", point.energy_sigma.value()}};
}

Result<ProfilePoint> ParsePoint(KnobKind knob, const Json& json) {
  ZEUS_TRY(const double setting, GetNumber(json, SettingField(knob), kLeast, kMost));
  ZEUS_TRY(const std::int64_t steps, GetWhole<std::int64_t>(json, "steps", 1));
  ZEUS_TRY(const double time, GetNumber(json, "time_per_step_seconds", kLeast, kMost));
  ZEUS_TRY(const double time_sigma, GetNumber(json, "time_sigma_seconds", 0, kMost));
  ZEUS_TRY(const double energy, GetNumber(json, "energy_per_step_joules", 0, kMost));
  ZEUS_TRY(const double energy_sigma, GetNumber(json, "energy_sigma_joules", 0, kMost));
  return ProfilePoint{.setting = SettingOf(knob, setting),
                      .steps = steps,
                      .time_per_step = Seconds(time),
                      .time_sigma = Seconds(time_sigma),
                      .energy_per_step = Joules(energy),
                      .energy_sigma = Joules(energy_sigma)};
}

Result<WallTime> GetDate(const Json& json, std::string_view field) {
  ZEUS_TRY(const std::string text, GetField<std::string>(json, field));
  ZEUS_TRY(const WallTime date, ParseWallTime(text));
  // Years before 1970 or with five digits could not be written again.
  using namespace std::chrono;
  if (date >= WallTime() && date < sys_days(year(10000) / January / 1)) return date;
  return InvalidArgument(
      fmt::format("field \"{}\" is {}, when nobody measured", field, Quote(text)));
}

Result<ProfileContext> ParseContext(const Json& json) {
  ZEUS_TRY(std::string job, GetField<std::string>(json, "job"));
  ZEUS_TRY(const unsigned batch_size, GetWhole<unsigned>(json, "batch_size", 0));
  ZEUS_TRY(std::string model, GetField<std::string>(json, "device_model"));
  ZEUS_TRY(std::vector<std::string> uuids, GetField<std::vector<std::string>>(json, "uuids"));
  ZEUS_TRY(const int devices, GetWhole<int>(json, "devices", 1));
  ZEUS_TRY(std::string driver, GetField<std::string>(json, "driver"));
  ZEUS_TRY(const WallTime date, GetDate(json, "date"));
  return ProfileContext{.job = std::move(job),
                        .batch_size = batch_size,
                        .device_model = std::move(model),
                        .uuids = std::move(uuids),
                        .devices = devices,
                        .driver = std::move(driver),
                        .date = date};
}

// Sorts the points, fastest first; each setting may occur once.
Status PutInOrder(std::vector<ProfilePoint>& points) {
  const auto number = [](const ProfilePoint& point) { return ToNumber(point.setting); };
  std::ranges::sort(points, std::greater(), number);
  const auto twice = std::ranges::adjacent_find(points, {}, number);
  if (twice == points.end()) return Ok();
  return InvalidArgument(fmt::format("{} is there twice", ToText(twice->setting)));
}

Result<Profile> ParseOwn(const Json& json, const std::string& schema) {
  if (schema != kSchema && schema.starts_with(kSchemaName)) {
    return Error{ErrorCode::kNotSupported,
                 fmt::format("has the format {} and this Zeus reads {}: profile again",
                             Quote(schema), kSchema)};
  }
  if (schema != kSchema)
    return InvalidArgument(fmt::format("not a power profile: its format is {}", Quote(schema)));
  Profile profile;
  ZEUS_TRY(const std::string knob, GetField<std::string>(json, "knob"));
  ZEUS_TRY(profile.knob, ParseKnobKind(knob));
  ZEUS_TRY(profile.context, ParseContext(json));
  ZEUS_TRY(const double max_power, GetNumber(json, "max_power_watts", kLeast, kMost));
  profile.max_power = Watts(max_power);
  ZEUS_TRY(profile.shared_error, GetNumber(json, "shared_error", 0, 10));
  ZEUS_TRY(profile.complete, GetField<bool>(json, "complete"));
  ZEUS_TRY(const std::vector<Json> points, GetPoints(json, "points"));
  for (const Json& entry : points) {
    ZEUS_TRY(const ProfilePoint point, ParsePoint(profile.knob, entry));
    profile.points.push_back(point);
  }
  ZEUS_RETURN_IF_ERROR(PutInOrder(profile.points));
  return profile;
}

Result<Profile> ParseReference(const Json& json, int devices) {
  Profile profile{.context = {.devices = devices}, .complete = true};
  ZEUS_TRY(const std::vector<Json> measurements, GetPoints(json, "measurements"));
  for (const Json& entry : measurements) {
    ZEUS_TRY(const double limit, GetNumber(entry, "power_limit", kLeast, kMost));
    ZEUS_TRY(const double energy, GetNumber(entry, "energy", 0, kMost));
    ZEUS_TRY(const double time, GetNumber(entry, "time", kLeast, kMost));
    // The format does not contain the number of steps of a slice. Its slices have equally many.
    profile.points.push_back({.setting = Watts(limit),
                              .steps = 1,
                              .time_per_step = Seconds(time),
                              .energy_per_step = Joules(energy)});
  }
  ZEUS_RETURN_IF_ERROR(PutInOrder(profile.points));
  profile.max_power = Watts(ToNumber(profile.points.front().setting) * devices);
  return profile;
}

Json ReferenceMeasurements(const Profile& profile) {
  Json measurements = Json::array();
  for (const ProfilePoint& point : profile.points) {
    const double limit = ToNumber(point.setting);
    // Whole watts are written as integers, which the reader of this format expects.
    const bool whole = limit == std::floor(limit) && limit < kMost;
    measurements.push_back(
        {{"power_limit", whole ? Json(static_cast<std::int64_t>(limit)) : Json(limit)},
         {"energy", point.energy_per_step.value()},
         {"time", point.time_per_step.count()}});
  }
  return measurements;
}

}  // namespace

std::string ProfileToJson(const Profile& profile) {
  const ProfileContext& context = profile.context;
  Json points = Json::array();
  for (const ProfilePoint& point : profile.points)
    points.push_back(PointToJson(profile.knob, point));
  Json json = {{"schema", kSchema},
               {"knob", KnobKindName(profile.knob)},
               {"job", context.job},
               {"batch_size", context.batch_size},
               {"device_model", context.device_model},
               {"devices", context.devices},
               {"uuids", context.uuids},
               {"driver", context.driver},
               {"date", ToText(context.date)},
               {"max_power_watts", profile.max_power.value()},
               {"shared_error", profile.shared_error},
               {"complete", profile.complete},
               {"points", std::move(points)}};
  // For readers of the reference's format; ParseProfile() does not look at it.
  if (profile.knob == KnobKind::kGpuPowerLimit)
    json["measurements"] = ReferenceMeasurements(profile);
  return JsonText(json, 2) + "\n";
}

Result<Profile> ParseProfile(std::string_view text, int devices) {
  if (text.size() > kLargestProfileText)
    return InvalidArgument(
        fmt::format("larger than {} bytes: not a power profile", kLargestProfileText));
  ZEUS_TRY(const Json json, ParseJson(text));
  if (!json.is_object()) return InvalidArgument("not a power profile: not a JSON object");
  ZEUS_TRY(const auto schema, GetOptionalField<std::string>(json, "schema"));
  if (schema) return ParseOwn(json, *schema);
  if (json.contains("measurements")) return ParseReference(json, std::max(1, devices));
  return InvalidArgument(
      "not a power profile: neither field \"schema\" nor \"measurements\" is there");
}

}  // namespace zeus
