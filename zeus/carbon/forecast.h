#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/result.h"
#include "zeus/carbon/intensity_source.h"
#include "zeus/carbon/tariff.h"
#include "zeus/optimizer/shift/signal.h"

namespace zeus {

// The carbon intensity or the price of the next hours, as far as somebody dares to say.
struct Forecast {
  Signal signal;
  WallTime made_at{};     // When it was made, or fetched where the service does not say.
  std::string source{};   // "electricity maps DE", "tariff.toml"
  bool marginal = false;  // About the plants that would run more, not about all of them.
  bool assumed = false;   // No forecast, but the mean of the last days.
  std::vector<std::string> notes{};
};

// A source of forecasts. An error gives a reason and means that nobody waits. Implementations are
// thread-safe and answer within a bounded time.
class ForecastSource {
 public:
  virtual ~ForecastSource() = default;
  // Values from `now` on, as far as they are known and at most until `until`.
  virtual Result<Forecast> Get(WallTime now, WallTime until) = 0;
};

// Sources that know their future: tariffs, constants and files with future rows. A file that has
// only a past gives the mean of its last days. `relative_error` is that of each value.
Result<Forecast> ForecastOf(IntensitySource& source, WallTime now, WallTime until,
                            double relative_error);
// Prices in tiers count with the tier that is reached now.
Result<Forecast> ForecastOf(PriceSource& source, WallTime now, WallTime until,
                            double relative_error);

// The mean of the last ten days at each hour, with their spread as its error. `known` returns what
// really was at a time, or nullopt. kNotFound when an hour has no day at all.
using KnownValue = std::function<std::optional<double>(WallTime)>;
Result<Signal> MeanOfLastDays(const KnownValue& known, WallTime now, WallTime until);

}  // namespace zeus
