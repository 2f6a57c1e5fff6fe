#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include "zeus/base/clock.h"
#include "zeus/base/result.h"
#include "zeus/carbon/step_series.h"

namespace zeus {

// $XDG_CACHE_HOME/zeus/carbon or ~/.cache/zeus/carbon; nullopt when neither is set.
std::optional<std::filesystem::path> DefaultCarbonCacheDirectory();

// Intensities that were fetched, kept on disk for the time without a network. One file per place,
// private to its user, replaced as a whole: a reader sees the old one or the new one.
class IntensityCache {
 public:
  struct Contents {
    WallTime fetched_at;
    std::vector<StepSeries::Row> rows;
  };

  IntensityCache(const std::filesystem::path& directory, const std::string& place);

  // kNotFound when there is none, kInvalidArgument when it is damaged.
  Result<Contents> Load() const;
  Status Store(const Contents& contents) const;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace zeus
