#pragma once

#include <string>

#include "zeus/base/clock.h"
#include "zeus/base/result.h"
#include "zeus/carbon/quantities.h"

namespace zeus {

// The span of time for which an answer holds: [from, until).
struct ValidSpan {
  WallTime from = WallTime::min();
  WallTime until = WallTime::max();
};

// The carbon intensity of electricity at one moment, and how it is known.
struct IntensityReading {
  CarbonIntensity intensity{};
  CarbonIntensity sigma{};  // One standard deviation; 0 when the source does not know it.
  ValidSpan valid{};        // Contains the moment that was asked for.
  std::string source{};     // "DE 2024 (Ember)", "grid.csv"
  bool estimated = false;
  std::string note{};  // A warning: stale, outside the series, a fallback. Or empty.
};

// The carbon intensity of electricity over time. An error gives a reason and never ends a
// measurement. Implementations are thread-safe and answer within a bounded time.
class IntensitySource {
 public:
  virtual ~IntensitySource() = default;
  virtual Result<IntensityReading> At(WallTime time) = 0;
};

// One constant number, from a contract or a yearly report.
class ConstantIntensity final : public IntensitySource {
 public:
  explicit ConstantIntensity(CarbonIntensity intensity) : intensity_(intensity) {}
  Result<IntensityReading> At(WallTime) override {
    return IntensityReading{.intensity = intensity_, .source = "constant"};
  }

 private:
  const CarbonIntensity intensity_;
};

}  // namespace zeus
