#include "zeus/session/epoch_report.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <utility>

#include "zeus/base/json.h"

namespace zeus {
namespace {

// An interval below this share of the mean epoch is not an epoch …
constexpr double kLeastShare = 0.05;
// … unless it lasts longer than this: the mean may contain a long compilation in the first epoch.
constexpr Seconds kLongestRest{1.0};
// A reader that was not stopped looks more often than this.
constexpr Seconds kBlind{0.2};

template <class Unit>
Status ReadQuantity(const Json& json, const char* field, std::optional<Unit>& into) {
  ZEUS_TRY(const std::optional<double> number, GetOptionalField<double>(json, field));
  if (!number) return Ok();
  constexpr double kMost = 1e21;  // Beyond it a sum loses small summands.
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
  ZEUS_RETURN_IF_ERROR(ReadQuantity(json, "time_seconds", report.time));
  ZEUS_RETURN_IF_ERROR(ReadQuantity(json, "energy_joules", report.energy));
  ZEUS_RETURN_IF_ERROR(ReadQuantity(json, "power_limit_watts", report.power_limit));
  ZEUS_RETURN_IF_ERROR(ReadQuantity(json, "epoch_time_seconds", report.epoch_time));
  ZEUS_RETURN_IF_ERROR(ReadQuantity(json, "epoch_energy_joules", report.epoch_energy));
  return report;
}

EpochTiming EpochArrivals::Judge(std::size_t epochs, TimePoint now, Seconds blind) {
  const std::size_t before = std::exchange(epochs_, epochs_ + epochs);
  const Seconds lasted = now - std::exchange(last_, now);
  const Seconds mean = Seconds(now - begun_) / static_cast<double>(epochs_);
  if (before > 0 && lasted < kLeastShare * mean && lasted < kLongestRest)
    return EpochTiming::kTooSoon;
  if (epochs > 1 || (blind > kBlind && blind > kLeastShare * mean)) return EpochTiming::kLumped;
  return EpochTiming::kKnown;
}

}  // namespace zeus
