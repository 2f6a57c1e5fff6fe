#pragma once

#include <condition_variable>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/result.h"
#include "zeus/base/ticker.h"
#include "zeus/carbon/intensity_source.h"
#include "zeus/carbon/step_series.h"
#include "zeus/http/client.h"

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

// Reads the token from a file (first line) or, without one, from ELECTRICITY_MAPS_TOKEN.
Result<std::string> FindElectricityMapsToken(const std::optional<std::filesystem::path>& file);

// Creates a client for a service that requires a token, like "https://api.example.org". Plain HTTP
// is refused except to this machine, since it would send the token in the clear. Each step of a
// call takes at most `timeout`.
Result<std::unique_ptr<http::Client>> CreateGridClient(const std::string& base_url,
                                                       Seconds timeout);

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
  Seconds timeout{2};               // For each of: look-up, connection, read.
  Seconds first_answer_timeout{2};  // How long At() waits for the first answer.
  std::optional<std::filesystem::path> cache_directory = DefaultCarbonCacheDirectory();
};

// The live carbon intensity from electricitymaps.com. Only Step() uses the network, on a background
// thread from Start() on, so that measuring never waits. At() answers from received values, from
// the cache of earlier runs, or from the fallback, and says which. Thread-safe.
class ElectricityMaps final : public IntensitySource {
 public:
  // Validates and reads the cache; no network. `fallback` may be null.
  static Result<std::unique_ptr<ElectricityMaps>> Create(Clock& clock,
                                                         ElectricityMapsOptions options,
                                                         std::unique_ptr<IntensitySource> fallback);
  ~ElectricityMaps() override;

  void Start();

  // Asks the server when values are due. Returns the time of the next call. One thread.
  TimePoint Step();

  // After Start() the first call waits for the first answer, at most for `first_answer_timeout`.
  Result<IntensityReading> At(WallTime time) override;

 private:
  ElectricityMaps(Clock& clock, ElectricityMapsOptions options,
                  std::unique_ptr<IntensitySource> fallback, std::unique_ptr<http::Client> client);

  using Rows = std::vector<StepSeries::Row>;
  struct Failure {
    std::string reason;
    Seconds pause;  // Time until the next attempt.
  };
  using Fetched = std::variant<Rows, Failure>;

  void LoadCache();
  std::optional<Seconds> FreshFor() const;
  Fetched Fetch();
  Fetched Ask(const std::string& what);
  void Keep(const Rows& rows);
  Result<IntensityReading> FromFallback(WallTime time, const std::string& reason);

  Clock& clock_;
  const ElectricityMapsOptions options_;
  const std::string place_;
  const std::unique_ptr<IntensitySource> fallback_;
  const std::unique_ptr<http::Client> client_;
  const std::optional<IntensityCache> cache_;

  mutable std::mutex mutex_;
  std::condition_variable arrived_;
  // Guarded by mutex_.
  StepSeries series_;
  std::optional<WallTime> fetched_at_;
  std::string trouble_;             // Reason of the last failure; empty after a success.
  bool first_wait_is_over_ = true;  // Whether a first reader need not wait.

  std::unique_ptr<Ticker> ticker_;  // The last member: stops before the others are destroyed.
};

}  // namespace zeus
