#include "apps/zeus/job/energy_text.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

namespace zeus::cli {
namespace {

std::string ThreeDigits(double value, const char* unit) {
  const double size = std::abs(value);
  if (size >= 100) return fmt::format("{:.0f} {}", value, unit);
  return size >= 10 ? fmt::format("{:.1f} {}", value, unit) : fmt::format("{:.2f} {}", value, unit);
}

}  // namespace

std::string EnergyText(Joules energy) {
  struct Prefix {
    double scale;
    const char* unit;
  };
  constexpr std::array kPrefixes = {Prefix{1e9, "GJ"}, Prefix{1e6, "MJ"}, Prefix{1e3, "kJ"}};
  for (const Prefix& prefix : kPrefixes)
    if (std::abs(energy.value()) >= prefix.scale)
      return ThreeDigits(energy.value() / prefix.scale, prefix.unit);
  return ThreeDigits(energy.value(), "J");
}

std::string TimeText(Seconds time) {
  constexpr double kMinute = 60;
  constexpr double kHour = 3600;
  if (std::abs(time.count()) >= 2 * kHour) return ThreeDigits(time.count() / kHour, "h");
  if (std::abs(time.count()) >= 3 * kMinute) return ThreeDigits(time.count() / kMinute, "min");
  return ThreeDigits(time.count(), "s");
}

}  // namespace zeus::cli
