#include "zeus/plan/session_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "zeus/base/field_reader.h"
#include "zeus/base/text.h"

namespace zeus {
namespace {

constexpr std::size_t kMostClocks = 8;
constexpr double kLowestShare = 0.4;
constexpr std::string_view kSeparators = " \t\n,;";

Error BadWord(std::string_view word) {
  return FieldError("job_metadata",
                    fmt::format("{} makes no sense: use plan=ID, schedule=1f1b, microbatches=8, "
                                "slowdown=1.05 or blocking_power_watts=70",
                                Quote(word)));
}

Result<double> Positive(std::string_view word, std::string_view value) {
  const auto number = ParseDouble(value);
  if (number.ok() && std::isfinite(number.value()) && number.value() > 0) return number.value();
  return BadWord(word);
}

Status ReadWord(std::string_view word, SessionSettings& settings) {
  const auto equals = word.find('=');
  if (equals == std::string_view::npos) return Ok();
  const std::string_view name = word.substr(0, equals);
  const std::string_view value = word.substr(equals + 1);
  if (name == "plan") settings.plan = value;
  if (name == "schedule") settings.schedule = value;
  if ((name == "plan" || name == "schedule") && value.empty()) return BadWord(word);
  if (name == "slowdown") {
    ZEUS_TRY(settings.slowdown, Positive(word, value));
  }
  if (name == "blocking_power_watts") {
    ZEUS_TRY(const double power, Positive(word, value));
    settings.blocking_power = Watts(power);
  }
  if (name == "microbatches") {
    const auto count = ParseInteger(value);
    if (!count.ok() || count.value() < 1 || count.value() > 1'000'000) return BadWord(word);
    settings.microbatches = static_cast<int>(count.value());
  }
  return Ok();
}

}  // namespace

Result<SessionSettings> SettingsFrom(std::string_view metadata) {
  SessionSettings settings;
  while (!metadata.empty()) {
    const auto end = std::min(metadata.find_first_of(kSeparators), metadata.size());
    ZEUS_RETURN_IF_ERROR(ReadWord(metadata.substr(0, end), settings));
    metadata.remove_prefix(std::min(end + 1, metadata.size()));
  }
  return settings;
}

std::vector<int> ClocksToMeasure(const std::vector<SessionRank>& ranks) {
  std::vector<int> common;
  for (const SessionRank& rank : ranks) {
    std::vector<int> clocks = rank.clocks_mhz;
    std::ranges::sort(clocks, std::greater());
    if (&rank == &ranks.front()) {
      common = std::move(clocks);
      continue;
    }
    std::vector<int> both;
    std::ranges::set_intersection(common, clocks, std::back_inserter(both), std::greater());
    common = std::move(both);
  }
  common.erase(std::ranges::unique(common).begin(), common.end());
  if (common.empty()) return common;
  std::erase_if(common,
                [lowest = kLowestShare * common.front()](int clock) { return clock < lowest; });
  if (common.size() <= kMostClocks) return common;
  std::vector<int> spread;
  for (std::size_t i = 0; i < kMostClocks; ++i)
    spread.push_back(common[i * (common.size() - 1) / (kMostClocks - 1)]);
  return spread;
}

}  // namespace zeus
