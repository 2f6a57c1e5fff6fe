#include "zeus/device/knobs/knob.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <string>
#include <utility>

#include "zeus/base/file.h"
#include "zeus/base/json.h"
#include "zeus/base/log.h"
#include "zeus/base/text.h"

namespace zeus {
namespace {

constexpr std::array kKinds = {KnobKind::kGpuPowerLimit, KnobKind::kGraphicsClock,
                               KnobKind::kCpuPowerLimit, KnobKind::kMemoryClock};

}  // namespace

const char* KnobKindName(KnobKind kind) {
  switch (kind) {
    case KnobKind::kGpuPowerLimit:
      return "gpu_power_limit";
    case KnobKind::kGraphicsClock:
      return "graphics_clock";
    case KnobKind::kCpuPowerLimit:
      return "cpu_power_limit";
    case KnobKind::kMemoryClock:
      return "memory_clock";
    case KnobKind::kPersistence:
      return "persistence";
  }
  return "unknown";
}

Result<KnobKind> ParseKnobKind(std::string_view name) {
  for (const KnobKind kind : kKinds)
    if (name == KnobKindName(kind)) return kind;
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("{} is not a knob: use gpu_power_limit, graphics_clock, "
                           "memory_clock or cpu_power_limit",
                           Quote(name))};
}

std::string ToText(const Setting& setting) {
  return fmt::format("{:g} {}", ToNumber(setting),
                     std::holds_alternative<Watts>(setting) ? "W" : "MHz");
}

double ToNumber(const Setting& setting) {
  if (const Watts* power = std::get_if<Watts>(&setting)) return power->value();
  return std::get<Hertz>(setting).ToMega();
}

bool SameSetting(const Setting& a, const Setting& b) {
  constexpr double kRounding = 0.5;
  return a.index() == b.index() && std::abs(ToNumber(a) - ToNumber(b)) <= kRounding;
}

Setting SettingOf(KnobKind kind, double number) {
  if (IsClock(kind)) return Hertz::FromMega(number);
  return Watts(number);
}

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

namespace {

namespace fs = std::filesystem;

constexpr const char* kFile = "/etc/zeus/knobs.json";

Status CheckOwner(const fs::path& file) {
  struct stat status {};
  if (::stat(file.c_str(), &status) != 0) return FileError(file, errno);
  if (status.st_uid == 0 && (status.st_mode & (S_IWGRP | S_IWOTH)) == 0) return Ok();
  return Error{ErrorCode::kPermissionDenied,
               fmt::format("{} is not used: it must belong to root, and nobody else may write it",
                           Printable(file.string()))};
}

Result<KnobPolicy> Parse(const std::string& text) {
  ZEUS_TRY(const Json json, ParseJson(text));
  if (!json.is_object()) return Error{ErrorCode::kInvalidArgument, "not a JSON object"};
  for (const auto& [key, value] : json.items())
    if (key != "may_raise" && key != "caps_are_intended")
      return Error{
          ErrorCode::kInvalidArgument,
          fmt::format("{} is not a setting: use may_raise or caps_are_intended", Quote(key))};
  KnobPolicy policy;
  ZEUS_TRY(const auto may_raise, GetOptionalField<bool>(json, "may_raise"));
  ZEUS_TRY(const auto intended, GetOptionalField<bool>(json, "caps_are_intended"));
  policy.may_raise = may_raise.value_or(false);
  policy.caps_are_intended = intended.value_or(false);
  return policy;
}

}  // namespace

Result<KnobPolicy> ReadKnobPolicy(const fs::path& file) {
  const auto text = ReadSmallFile(file);
  if (!text.ok() && text.error().code == ErrorCode::kNotFound) return KnobPolicy{};
  if (!text.ok()) return text.error();
  ZEUS_RETURN_IF_ERROR(CheckOwner(file));
  auto policy = Parse(text.value());
  if (!policy.ok()) return std::move(policy).error().While(Printable(file.string()));
  return policy;
}

const KnobPolicy& KnobPolicyOfMachine() {
  static const KnobPolicy kPolicy = [] {
    const auto policy = ReadKnobPolicy(kFile);
    if (policy.ok()) return policy.value();
    log::Warning("{}", policy.error().message);
    return KnobPolicy{};
  }();
  return kPolicy;
}

}  // namespace zeus
