#include "zeus/carbon/forecast.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "zeus/base/wall_time_text.h"

namespace zeus {
namespace {

using std::chrono::days;
using std::chrono::hours;

// Bounds how long a source with absurdly short steps is read: ten years of quarter-hours.
constexpr int kMostSteps = 400'000;
constexpr int kDaysOfMean = 10;
// A single day shows no spread: then the mean is believed to within a fifth.
constexpr double kSpreadOfOneDay = 0.2;

// One answer of a source, whatever its unit.
struct Answer {
  double value;
  ValidSpan valid;
  std::string source;
  bool known;  // False for values that are only the nearest ones.
};
using Ask = std::function<Result<Answer>(WallTime)>;

struct Walked {
  std::vector<Signal::Step> steps{};
  WallTime until{};
  std::string source{};
  std::string reason{};  // Why there are no more values.
};

Walked Walk(const Ask& ask, WallTime now, WallTime until, double relative_error) {
  Walked walked{.until = now};
  WallTime time = now;
  for (int count = 0; time < until && count < kMostSteps; ++count) {
    const auto answer = ask(time);
    if (!answer.ok()) {
      walked.reason = answer.error().message;
      break;
    }
    const Answer& found = answer.value();
    if (found.known) {
      walked.source = found.source;
      walked.steps.push_back(
          {.from = time, .value = found.value, .sigma = relative_error * std::abs(found.value)});
      walked.until = std::min(found.valid.until, until);
    }
    if (found.valid.until <= time) break;
    time = found.valid.until;
  }
  return walked;
}

Result<Forecast> Make(const Ask& ask, WallTime now, WallTime until, double relative_error) {
  Walked walked = Walk(ask, now, until, relative_error);
  if (!walked.steps.empty()) {
    ZEUS_TRY(Signal signal, Signal::Create(std::move(walked.steps), walked.until));
    Forecast forecast{.signal = std::move(signal), .made_at = now, .source = walked.source};
    if (walked.until < until)
      forecast.notes.push_back(fmt::format("{} ends at {}", forecast.source, ToText(walked.until)));
    return forecast;
  }
  std::string source;
  const auto known = [&](WallTime time) -> std::optional<double> {
    const auto answer = ask(time);
    if (!answer.ok() || !answer.value().known) return std::nullopt;
    source = answer.value().source;
    return answer.value().value;
  };
  auto mean = MeanOfLastDays(known, now, until);
  if (!mean.ok()) {
    if (walked.reason.empty()) return std::move(mean).error();
    return Error{ErrorCode::kNotFound, walked.reason};
  }
  Forecast forecast{.signal = std::move(mean).value(), .made_at = now, .source = source};
  forecast.assumed = true;
  forecast.notes.push_back(
      fmt::format("{} knows no future: the mean of its last days at each hour is assumed", source));
  return forecast;
}

}  // namespace

Result<Forecast> ForecastOf(IntensitySource& source, WallTime now, WallTime until,
                            double relative_error) {
  return Make(
      [&](WallTime time) -> Result<Answer> {
        ZEUS_TRY(const IntensityReading reading, source.At(time));
        return Answer{.value = reading.intensity.value(),
                      .valid = reading.valid,
                      .source = reading.source,
                      .known = reading.note.empty()};
      },
      now, until, relative_error);
}

Result<Forecast> ForecastOf(PriceSource& source, WallTime now, WallTime until,
                            double relative_error) {
  bool tiers = false;
  auto forecast = Make(
      [&](WallTime time) -> Result<Answer> {
        ZEUS_TRY(const PriceReading reading, source.At(time));
        const PriceReading::Tier* tier = &reading.tiers.back();
        for (const PriceReading::Tier& other : reading.tiers) {
          if (source.already_used() < other.up_to) {
            tier = &other;
            break;
          }
        }
        tiers = tiers || reading.tiers.size() > 1;
        return Answer{.value = tier->price.value(),
                      .valid = reading.valid,
                      .source = reading.source,
                      .known = reading.note.empty()};
      },
      now, until, relative_error);
  if (forecast.ok() && tiers)
    forecast.value().notes.emplace_back("prices are those of the tier that is reached now");
  return forecast;
}

Result<Signal> MeanOfLastDays(const KnownValue& known, WallTime now, WallTime until) {
  std::vector<Signal::Step> steps;
  const WallTime first = std::chrono::floor<hours>(now);
  int most_days = 0;
  for (int hour = 0; hour < 24; ++hour) {
    double sum = 0;
    double squares = 0;
    int count = 0;
    for (int day = 1; day <= kDaysOfMean; ++day) {
      const auto value = known(first + hours(hour) - days(day));
      if (!value || !std::isfinite(*value)) continue;
      ++count;
      sum += *value;
      squares += *value * *value;
    }
    if (count == 0)
      return Error{ErrorCode::kNotFound,
                   fmt::format("no forecast, and no value of the hour of {} in the last {} days",
                               ToText(first + hours(hour)), kDaysOfMean)};
    most_days = std::max(most_days, count);
    const double mean = sum / count;
    const double variance = count > 1 ? (squares - sum * mean) / (count - 1) : 0;
    const double sigma =
        count > 1 ? std::sqrt(std::max(variance, 0.0)) : kSpreadOfOneDay * std::abs(mean);
    steps.push_back({.from = first + hours(hour), .value = mean, .sigma = sigma});
  }
  const auto one_day = steps;
  for (auto later = days(1); first + later < until && steps.size() < kMostSteps; later += days(1))
    for (Signal::Step step : one_day) {
      step.from += later;
      steps.push_back(step);
    }
  return Signal::Create(std::move(steps), std::max<WallTime>(until, first + hours(1)));
}

}  // namespace zeus
