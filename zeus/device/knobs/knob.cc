#include "zeus/device/knobs/knob.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

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

}  // namespace zeus
