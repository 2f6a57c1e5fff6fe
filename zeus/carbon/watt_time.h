#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "zeus/base/clock.h"
#include "zeus/base/result.h"
#include "zeus/carbon/live_intensity.h"

namespace zeus {

// A user of watttime.org and the password.
struct WattTimeUser {
  std::string name;
  std::string password;
};

// Reads "NAME:PASSWORD" from the first line of a file or, without one, WATTTIME_USER and
// WATTTIME_PASSWORD.
Result<WattTimeUser> FindWattTimeUser(const std::optional<std::filesystem::path>& file);

struct WattTimeOptions {
  std::string base_url = "https://api.watttime.org";
  std::string region{};  // "CAISO_NORTH"
  WattTimeUser user;
  Seconds timeout{2};  // For each of: look-up, connection, read.
  LiveOptions live{};
};

// The marginal carbon intensity of a region from watttime.org and its forecast: what the plants
// emit that would run more for one more kilowatt-hour. Numbers are not comparable with those of
// sources that average over all plants.
struct WattTime {
  // `fallback` may be null. No network yet.
  static Result<std::unique_ptr<LiveIntensity>> Create(Clock& clock, WattTimeOptions options,
                                                       std::unique_ptr<IntensitySource> fallback);
};

}  // namespace zeus
