#include "zeus/optimizer/clock/service_targets.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "zeus/base/text.h"

namespace zeus {
namespace {

constexpr std::string_view kExpected = "expected for example ttft=1s,tpot=50ms,percentile=90";

struct TimeUnit {
  std::string_view name;
  double seconds;
};
constexpr std::array kUnits{TimeUnit{"ms", 1e-3}, TimeUnit{"us", 1e-6}, TimeUnit{"s", 1.0}};

Result<Seconds> ParseTarget(std::string_view key, std::string_view text) {
  for (const TimeUnit& unit : kUnits) {
    if (!text.ends_with(unit.name)) continue;
    const auto number = ParseDouble(Trim(text.substr(0, text.size() - unit.name.size())));
    if (number.ok() && std::isfinite(number.value()) && number.value() > 0)
      return Seconds(number.value() * unit.seconds);
    break;
  }
  return InvalidArgument(
      fmt::format("{} needs a time above 0 with its unit s, ms or us, not {}", key, Quote(text)));
}

Result<double> ParsePercentile(std::string_view key, std::string_view text) {
  const auto number = ParseDouble(text);
  if (number.ok() && number.value() >= 1 && number.value() <= 99.99) return number.value() / 100;
  return InvalidArgument(fmt::format("{} is between 1 and 99.99, not {}", key, Quote(text)));
}

Status ReadPart(std::string_view part, ServiceTargets& targets) {
  const std::size_t equals = part.find('=');
  if (equals == std::string_view::npos)
    return InvalidArgument(
        fmt::format("service target {} has no value: {}", Quote(part), kExpected));
  const std::string_view key = Trim(part.substr(0, equals));
  const std::string_view value = Trim(part.substr(equals + 1));
  if (key == "ttft" || key == "tpot") {
    ZEUS_TRY(const Seconds target, ParseTarget(key, value));
    std::optional<Seconds>& place = key == "ttft" ? targets.ttft : targets.tpot;
    if (place) return InvalidArgument(fmt::format("{} is given twice", key));
    place = target;
    return Ok();
  }
  if (key != "percentile" && key != "ttft-percentile" && key != "tpot-percentile")
    return InvalidArgument(fmt::format("unknown service target {}: {}", Quote(key), kExpected));
  ZEUS_TRY(const double share, ParsePercentile(key, value));
  if (key != "tpot-percentile") targets.ttft_percentile = share;
  if (key != "ttft-percentile") targets.tpot_percentile = share;
  return Ok();
}

std::string TimeWithUnit(Seconds time) {
  return time >= Seconds(1) ? fmt::format("{:g} s", time.count())
                            : fmt::format("{:g} ms", time.count() * 1e3);
}

}  // namespace

Result<ServiceTargets> ParseServiceTargets(std::string_view text) {
  ServiceTargets targets;
  for (const std::string_view part : SplitAtCommas(text))
    ZEUS_RETURN_IF_ERROR(ReadPart(part, targets));
  if (!targets.ttft && !targets.tpot)
    return InvalidArgument(
        fmt::format("service targets {} name neither ttft nor tpot: {}", Quote(text), kExpected));
  return targets;
}

std::string ToText(const ServiceTargets& targets) {
  const auto share = [](double percentile) {
    return fmt::format(" for {:g} % of requests", percentile * 100);
  };
  if (!targets.ttft && !targets.tpot) return "no target";
  if (!targets.tpot) return "TTFT " + TimeWithUnit(*targets.ttft) + share(targets.ttft_percentile);
  std::string tpot = "TPOT " + TimeWithUnit(*targets.tpot) + share(targets.tpot_percentile);
  if (!targets.ttft) return tpot;
  const bool same = targets.ttft_percentile == targets.tpot_percentile;
  return "TTFT " + TimeWithUnit(*targets.ttft) + (same ? "" : share(targets.ttft_percentile)) +
         " and " + tpot;
}

}  // namespace zeus
