#pragma once

#include <memory>
#include <optional>
#include <string>

#include "zeus/base/clock.h"
#include "zeus/base/result.h"
#include "zeus/carbon/live_intensity.h"

namespace zeus {

// The carbon intensity of Great Britain from carbonintensity.org.uk, every half-hour, and its
// forecast for the next 48 hours. The service needs no key and tells what it had forecast for the
// last day beside what came, from which the error of its forecast is known.
struct GbCarbonIntensityOptions {
  std::string base_url = "https://api.carbonintensity.org.uk";
  Seconds timeout{2};  // For each of: look-up, connection, read.
  LiveOptions live{};
};

struct GbCarbonIntensity {
  // `fallback` may be null. No network yet.
  static Result<std::unique_ptr<LiveIntensity>> Create(Clock& clock,
                                                       const GbCarbonIntensityOptions& options,
                                                       std::unique_ptr<IntensitySource> fallback);
};

}  // namespace zeus
