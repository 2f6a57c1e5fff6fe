#pragma once

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/carbon/step_series.h"
#include "zeus/http/client.h"
#include "zeus/optimizer/shift/signal.h"

namespace zeus {

// The dialect of one service that publishes carbon intensities over HTTP: LiveIntensity asks it in
// the background. Calls come from one thread, except Cancel(), and take a bounded time.
class GridService {
 public:
  struct Failure {
    std::string reason;
    Seconds pause;  // Time until the next attempt.
  };
  template <class T>
  using Answer = std::variant<T, Failure>;
  using Rows = std::vector<StepSeries::Row>;
  struct ForecastRows {
    std::vector<Signal::Step> steps{};
    WallTime until{};
    WallTime made_at{};  // As the service says; the begin of time when it does not.
  };

  virtual ~GridService() = default;

  virtual std::string title() const = 0;  // "electricity maps"
  virtual std::string place() const = 0;  // "DE"
  virtual bool marginal() const { return false; }
  virtual Seconds step() const = 0;  // The time for which a value holds.

  // The present value, and as many of the last day as there are.
  virtual Answer<Rows> Past(WallTime now) = 0;
  // The values of the coming hours. `relative_error` is that of each where the service does not
  // tell how wrong it was.
  virtual Answer<ForecastRows> Future(WallTime now, double relative_error) = 0;

  // Makes running and later calls fail soon.
  virtual void Cancel() = 0;
};

inline constexpr Seconds kGridRefresh = std::chrono::minutes(15);
inline constexpr Seconds kGridRetry = std::chrono::minutes(1);    // After a passing failure.
inline constexpr Seconds kGridLongPause = std::chrono::hours(1);  // After one that a person mends.

// The body of an answer with status 200; else why there is none, and when to ask again.
GridService::Answer<std::string> BodyOf(const Result<http::Reply>& reply, const std::string& place);

// Whether this number can be an intensity in g/kWh.
bool IsIntensity(double value);

// Checks that a secret from a user is one word, so that it cannot break a header.
bool IsOneWord(std::string_view text);

// Creates a client for a service that requires a token, like "https://api.example.org". Plain HTTP
// is refused except to this machine, since it would send the token in the clear. Each step of a
// call takes at most `timeout`.
Result<std::unique_ptr<http::Client>> CreateGridClient(const std::string& base_url,
                                                       Seconds timeout);

}  // namespace zeus
