#pragma once

#include <condition_variable>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/result.h"
#include "zeus/base/ticker.h"
#include "zeus/carbon/forecast.h"
#include "zeus/carbon/grid_service.h"
#include "zeus/carbon/intensity_source.h"
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
    std::optional<GridService::ForecastRows> forecast{};  // Its `made_at` is never empty.
  };

  // `service` and `place` become the name of the file.
  IntensityCache(const std::filesystem::path& directory, const std::string& service,
                 const std::string& place);

  // kNotFound when there is none, kInvalidArgument when it is damaged.
  Result<Contents> Load() const;
  Status Store(const Contents& contents) const;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

struct LiveOptions {
  Seconds first_answer_timeout{2};  // How long At() and Get() wait for the first answer.
  std::optional<std::filesystem::path> cache_directory = DefaultCarbonCacheDirectory();
  bool with_forecast = false;   // The service is asked for its forecast as well.
  double forecast_error = 0.1;  // Relative error of a forecast whose service tells none.
};

// The live carbon intensity of a service, and its forecast. Only Step() uses the network, on a
// background thread from Start() on, so that measuring never waits. At() answers from received
// values, from the cache of earlier runs, or from the fallback, and says which. Thread-safe.
class LiveIntensity final : public IntensitySource, public ForecastSource {
 public:
  // Reads the cache; no network. `fallback` may be null. `clock` must outlive it.
  LiveIntensity(Clock& clock, std::unique_ptr<GridService> service, LiveOptions options,
                std::unique_ptr<IntensitySource> fallback);
  ~LiveIntensity() override;
  LiveIntensity(const LiveIntensity&) = delete;
  LiveIntensity& operator=(const LiveIntensity&) = delete;

  void Start();

  // Asks the server when values are due. Returns the time of the next call. One thread.
  TimePoint Step();

  // Asks the server now, however fresh the values are, and waits for the answer at most for
  // `first_answer_timeout`. Does nothing before Start().
  void Refresh();

  // After Start() the first call waits for the first answer, at most for `first_answer_timeout`.
  Result<IntensityReading> At(WallTime time) override;

  // The forecast that was received last, however old; without one the mean of the last days, which
  // is marked as assumed.
  Result<Forecast> Get(WallTime now, WallTime until) override;

 private:
  void LoadCache();
  std::optional<Seconds> FreshFor() const;
  // Each returns the time until its next attempt.
  Seconds AskForPast();
  Seconds AskForFuture();
  void Keep(const GridService::Rows& rows);
  void StoreCache();
  void WaitForFirstAnswer(std::unique_lock<std::mutex>& lock);
  Result<IntensityReading> FromFallback(WallTime time, const std::string& reason);
  Result<Forecast> FromLastDays(WallTime now, WallTime until, const std::string& reason);

  Clock& clock_;
  const LiveOptions options_;
  const std::unique_ptr<GridService> service_;
  const std::string title_;
  const std::string place_;
  const std::unique_ptr<IntensitySource> fallback_;
  const std::optional<IntensityCache> cache_;

  mutable std::mutex mutex_;
  std::condition_variable arrived_;
  // Guarded by mutex_.
  StepSeries series_;
  std::optional<WallTime> fetched_at_;
  std::string trouble_;  // Reason of the last failure; empty after a success.
  std::optional<GridService::ForecastRows> forecast_;
  std::string forecast_trouble_;
  bool first_wait_is_over_ = true;  // Whether a first reader need not wait.
  bool stale_ = false;              // The next step asks, however fresh the values are.
  int steps_ = 0;                   // Steps that have ended.

  std::optional<TimePoint> next_forecast_;  // Used by Step() alone.
  std::unique_ptr<Ticker> ticker_;  // The last member: stops before the others are destroyed.
};

}  // namespace zeus
