#include "apps/zeus/profile/uncertain_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace zeus::cli {
namespace {

struct Prefix {
  double scale;
  const char* text;
};
constexpr std::array kPrefixes = {Prefix{1e-6, "µ"}, Prefix{1e-3, "m"}, Prefix{1, ""},
                                  Prefix{1e3, "k"}, Prefix{1e6, "M"}};

Prefix PrefixOf(double value) {
  Prefix best = kPrefixes.front();
  for (const Prefix& prefix : kPrefixes)
    if (std::abs(value) >= prefix.scale) best = prefix;
  // Four digits before the point are read more easily than a prefix.
  constexpr double kPlain = 1e4;
  if (value == 0 || (std::abs(value) >= 1 && std::abs(value) < kPlain)) return {1, ""};
  return best;
}

}  // namespace

std::string WithSigma(double value, double sigma, const char* unit) {
  const Prefix prefix = PrefixOf(value);
  const double shown = sigma / prefix.scale;
  constexpr int kMostDecimals = 3;
  const int decimals = shown > 0 && std::isfinite(shown)
                           ? static_cast<int>(std::clamp(1 - std::floor(std::log10(shown)), 0.0,
                                                         double{kMostDecimals}))
                           : kMostDecimals;
  return fmt::format("{:.{}f} ± {:.{}f} {}{}", value / prefix.scale, decimals, shown, decimals,
                     prefix.text, unit);
}

std::string Change(double value, double reference) {
  if (reference == 0) return "-";
  return fmt::format("{:+.1f} %", 100 * (value / reference - 1));
}

}  // namespace zeus::cli
