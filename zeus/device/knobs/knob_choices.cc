#include "zeus/device/knobs/knob_choices.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <utility>

namespace zeus {
namespace {

constexpr Watts kUsualStride(25);
constexpr std::ptrdiff_t kUsualSteps = 15;

// Closer than this two settings are one: half of the finest step of any hardware.
constexpr double kSameNumber = 0.05;

Setting With(const Setting& unit, double number) {
  if (std::holds_alternative<Hertz>(unit)) return Hertz::FromMega(number);
  return Watts(number);
}

std::vector<Setting> SpreadRange(const KnobChoices& choices, double stride) {
  const double lowest = ToNumber(choices.lowest);
  const double highest = ToNumber(choices.highest);
  std::vector<Setting> settings;
  for (int i = 0; highest - i * stride > lowest + kSameNumber; ++i)
    settings.push_back(With(choices.highest, highest - i * stride));
  settings.push_back(choices.lowest);
  return settings;
}

// The highest step at or below each multiple of the stride.
std::vector<Setting> ThinByDistance(const std::vector<Setting>& steps, double stride) {
  std::vector<Setting> settings;
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    const bool far_enough =
        settings.empty() || ToNumber(settings.back()) - ToNumber(*step) >= stride - kSameNumber;
    if (far_enough || std::next(step) == steps.rend()) settings.push_back(*step);
  }
  return settings;
}

std::vector<Setting> ThinByCount(const std::vector<Setting>& steps) {
  std::vector<Setting> settings;
  for (std::ptrdiff_t i = std::ssize(steps) - 1; i > 0; i -= kUsualSteps)
    settings.push_back(steps[static_cast<std::size_t>(i)]);
  settings.push_back(steps.front());
  return settings;
}

}  // namespace

Result<KnobChoices> InBoth(const KnobChoices& a, const KnobChoices& b) {
  KnobChoices both{.lowest = std::max(a.lowest, b.lowest),
                   .highest = std::min(a.highest, b.highest)};
  if (!a.steps.empty() && !b.steps.empty()) {
    std::ranges::set_intersection(a.steps, b.steps, std::back_inserter(both.steps));
  } else {
    std::ranges::copy_if(
        a.steps.empty() ? b.steps : a.steps, std::back_inserter(both.steps),
        [&both](const Setting& step) { return step >= both.lowest && step <= both.highest; });
  }
  const bool listed = !a.steps.empty() || !b.steps.empty();
  if (both.lowest > both.highest || (listed && both.steps.empty())) {
    return Error{
        ErrorCode::kNotSupported,
        fmt::format("the devices have no setting in common: {} to {} and {} to {}",
                    ToText(a.lowest), ToText(a.highest), ToText(b.lowest), ToText(b.highest))};
  }
  if (listed) {
    both.lowest = both.steps.front();
    both.highest = both.steps.back();
  }
  return both;
}

KnobChoices UpTo(const Setting& ceiling, KnobChoices choices) {
  if (choices.highest <= ceiling) return choices;
  if (choices.steps.empty()) {
    choices.highest = ceiling;
    choices.lowest = std::min(choices.lowest, ceiling);
    return choices;
  }
  const auto above = std::ranges::upper_bound(choices.steps, ceiling);
  choices.steps.erase(std::max(above, std::next(choices.steps.begin())), choices.steps.end());
  choices.highest = choices.steps.back();
  return choices;
}

Result<std::vector<Setting>> Spread(const KnobChoices& choices, const Setting& stride) {
  const double distance = ToNumber(stride);
  if (stride.index() != choices.lowest.index() || !(distance >= 0) || !std::isfinite(distance)) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("a stride of {} means nothing for settings from {} to {}",
                             ToText(stride), ToText(choices.lowest), ToText(choices.highest))};
  }
  if (choices.steps.empty())
    return SpreadRange(choices, distance > 0 ? std::max(distance, 1.0) : kUsualStride.value());
  return distance > 0 ? ThinByDistance(choices.steps, distance) : ThinByCount(choices.steps);
}

}  // namespace zeus
