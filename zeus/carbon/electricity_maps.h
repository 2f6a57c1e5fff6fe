#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "zeus/base/clock.h"
#include "zeus/base/result.h"
#include "zeus/carbon/live_intensity.h"

namespace zeus {

// Reads the token from a file (first line) or, without one, from ELECTRICITY_MAPS_TOKEN.
Result<std::string> FindElectricityMapsToken(const std::optional<std::filesystem::path>& file);

struct ElectricityMapsOptions {
  struct Coordinates {
    double latitude;
    double longitude;
  };

  std::string base_url = "https://api.electricitymaps.com";
  std::string api_version = "v3";
  std::string zone{};                        // "DE", "US-CAL-CISO"; or
  std::optional<Coordinates> coordinates{};  // a place in the zone.
  std::string token;
  Seconds timeout{2};  // For each of: look-up, connection, read.
  LiveOptions live{};
};

// The live carbon intensity from electricitymaps.com, and with a token that includes them its
// forecasts. `fallback` may be null. No network yet.
struct ElectricityMaps {
  static Result<std::unique_ptr<LiveIntensity>> Create(Clock& clock, ElectricityMapsOptions options,
                                                       std::unique_ptr<IntensitySource> fallback);
};

}  // namespace zeus
