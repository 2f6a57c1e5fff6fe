#include "zeus/base/quantity_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace zeus {
namespace {

constexpr std::array kSiPrefixes = {SiPrefix{1e-6, "µ"}, SiPrefix{1e-3, "m"}, SiPrefix{1, ""},
                                    SiPrefix{1e3, "k"},  SiPrefix{1e6, "M"},  SiPrefix{1e9, "G"}};
constexpr SiPrefix kNoPrefix = {};

// The prefix for a number of this size; numbers from 1 up to `plain_below` get none.
SiPrefix PrefixUnlessBelow(double plain_below, double size) {
  if (size == 0 || !std::isfinite(size) || (size >= 1 && size < plain_below)) return kNoPrefix;
  SiPrefix best = kSiPrefixes.front();
  for (const SiPrefix& prefix : kSiPrefixes)
    if (size >= prefix.scale) best = prefix;
  return best;
}

// A joule is J and a step rate is /s: the unit follows a blank, or nothing follows.
std::string WithUnit(std::string number, std::string_view prefix, std::string_view unit) {
  if (!unit.empty()) number += fmt::format(" {}{}", prefix, unit);
  return number;
}

// Decimals that show two digits of `sigma`.
int DecimalsFor(double sigma, int most) {
  const double decimals = 1 - std::floor(std::log10(sigma));
  return static_cast<int>(std::clamp(decimals, 0.0, static_cast<double>(most)));
}

// "" has no prefix, and "/s" none either: "m/s" would be read as metres.
bool TakesPrefix(std::string_view unit) { return !unit.empty() && unit.front() != '/'; }

bool IsKnown(double sigma) { return std::isfinite(sigma) && sigma > 0; }

std::string ThreeDigits(double value) {
  const double size = std::abs(value);
  if (!std::isfinite(value) || size == 0) return fmt::format("{:.2f}", value);
  constexpr double kMostDecimals = 9;
  const double decimals = std::clamp(2 - std::floor(std::log10(size)), 0.0, kMostDecimals);
  return fmt::format("{:.{}f}", value, static_cast<int>(decimals));
}

// Seconds, minutes or hours.
struct TimeUnit {
  double seconds;
  std::string_view name;
};
TimeUnit TimeUnitFor(Seconds time) {
  constexpr double kMinute = 60;
  constexpr double kHour = 3600;
  const double size = std::abs(time.count());
  if (size >= 2 * kHour) return {kHour, "h"};
  if (size >= 3 * kMinute) return {kMinute, "min"};
  return {1, "s"};
}

}  // namespace

SiPrefix PrefixFor(double size) { return PrefixUnlessBelow(1e3, size); }

std::string FixedWithSigma(double value, double sigma, int decimals) {
  return fmt::format("{:.{}f} ± {:.{}f}", value, decimals, sigma, decimals);
}

std::string WithSigma(double value, double sigma, std::string_view unit) {
  if (!IsKnown(sigma)) return NumberText(value, unit);
  constexpr double kPlainBelow = 1e4;  // Four digits are read more easily than a prefix.
  constexpr int kMostDecimals = 6;
  constexpr double kThreeDigits = 99.5;
  const double size = std::max(std::abs(value), sigma);
  // From 1000 on, a sigma with more than two digits before the point asks for a prefix.
  const double plain_below = sigma < kThreeDigits ? kPlainBelow : 1e3;
  const SiPrefix prefix = TakesPrefix(unit) ? PrefixUnlessBelow(plain_below, size) : kNoPrefix;
  const double shown = sigma / prefix.scale;
  return WithUnit(FixedWithSigma(value / prefix.scale, shown, DecimalsFor(shown, kMostDecimals)),
                  prefix.text, unit);
}

std::string WithSigma(Joules energy, Joules sigma) {
  return WithSigma(energy.value(), sigma.value(), "J");
}

std::string WithSigma(Watts power, Watts sigma) {
  return WithSigma(power.value(), sigma.value(), "W");
}

std::string WithSigma(Seconds time, Seconds sigma) {
  const TimeUnit unit = TimeUnitFor(time);
  if (unit.seconds == 1) return WithSigma(time.count(), sigma.count(), "s");
  if (!IsKnown(sigma.count())) return TimeText(time);
  const double shown = sigma.count() / unit.seconds;
  constexpr int kMostDecimals = 3;
  return WithUnit(
      FixedWithSigma(time.count() / unit.seconds, shown, DecimalsFor(shown, kMostDecimals)), "",
      unit.name);
}

std::string NumberText(double value, std::string_view unit) {
  const SiPrefix prefix = TakesPrefix(unit) ? PrefixFor(std::abs(value)) : kNoPrefix;
  return WithUnit(ThreeDigits(value / prefix.scale), prefix.text, unit);
}

std::string EnergyText(Joules energy) { return NumberText(energy.value(), "J"); }

std::string PowerText(Watts power) {
  return fmt::format("{:.{}f} W", power.value(), std::abs(power.value()) < 1000 ? 1 : 0);
}

std::string TimeText(Seconds time) {
  const TimeUnit unit = TimeUnitFor(time);
  if (unit.seconds == 1) return NumberText(time.count(), "s");
  return WithUnit(ThreeDigits(time.count() / unit.seconds), "", unit.name);
}

std::string PercentText(double share, int decimals) {
  return fmt::format("{:.{}f} %", 100 * share, decimals);
}

std::string PercentWithSigma(double percent, double sigma) {
  if (!IsKnown(sigma)) return fmt::format("{:.1f} %", percent);
  constexpr int kMostDecimals = 2;
  return FixedWithSigma(percent, sigma, DecimalsFor(sigma, kMostDecimals)) + " %";
}

std::string ChangeWithSigma(double percent, double sigma) {
  const double change = percent + 0.0;  // Turns -0 into 0, which has no minus.
  return (change >= 0 ? "+" : "") + PercentWithSigma(change, sigma);
}

std::string ChangeText(double value, double reference) {
  if (reference == 0) return "-";
  return fmt::format("{:+.1f} %", 100 * (value / reference - 1));
}

}  // namespace zeus
