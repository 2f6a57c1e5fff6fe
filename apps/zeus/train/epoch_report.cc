#include "apps/zeus/train/epoch_report.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "zeus/base/json.h"

namespace zeus::cli {
namespace {

template <class Unit>
Status Read(const Json& json, const char* field, std::optional<Unit>& into) {
  ZEUS_TRY(const std::optional<double> number, GetOptionalField<double>(json, field));
  if (!number) return Ok();
  constexpr double kMost = 1e21;  // Beyond it sums lose what is added to them.
  if (!std::isfinite(*number) || *number < 0 || *number > kMost)
    return Error{ErrorCode::kInvalidArgument, fmt::format("\"{}\" cannot be {}", field, *number)};
  into = Unit(*number);
  return Ok();
}

Status ReadEpoch(const Json& json, EpochReport& report) {
  ZEUS_TRY(const std::optional<double> number, GetOptionalField<double>(json, "epoch"));
  if (!number) return Ok();
  constexpr double kMostEpochs = 1e9;
  if (!(*number >= 1 && *number <= kMostEpochs) || *number != std::floor(*number))
    return Error{ErrorCode::kInvalidArgument,
                 "\"epoch\" counts the completed epochs: a whole number from 1"};
  report.epoch = static_cast<int>(*number);
  return Ok();
}

}  // namespace

Result<EpochReport> ParseEpochReport(std::string_view line) {
  ZEUS_TRY(const Json json, ParseJson(line));
  if (!json.is_object())
    return Error{ErrorCode::kInvalidArgument, R"(a report is an object as {"metric": 0.93})"};
  EpochReport report;
  const auto metric = json.find("metric");
  if (metric != json.end() && metric->is_null()) {
    report.metric = std::numeric_limits<double>::quiet_NaN();
  } else {
    ZEUS_TRY(report.metric, GetField<double>(json, "metric"));
  }
  ZEUS_RETURN_IF_ERROR(ReadEpoch(json, report));
  ZEUS_RETURN_IF_ERROR(Read(json, "time_seconds", report.time));
  ZEUS_RETURN_IF_ERROR(Read(json, "energy_joules", report.energy));
  ZEUS_RETURN_IF_ERROR(Read(json, "power_limit_watts", report.power_limit));
  ZEUS_RETURN_IF_ERROR(Read(json, "epoch_time_seconds", report.epoch_time));
  ZEUS_RETURN_IF_ERROR(Read(json, "epoch_energy_joules", report.epoch_energy));
  return report;
}

}  // namespace zeus::cli
