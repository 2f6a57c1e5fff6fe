#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>

#include "zeus/base/result.h"
#include "zeus/base/ticker.h"
#include "zeus/base/units.h"
#include "zeus/device/knobs/knob.h"

namespace zeus {

// Sets the clock of a knob on a thread of its own: a driver takes milliseconds, and training must
// not wait for it. If several clocks are requested while the driver works, the latest one is set.
// Requesting the present clock costs nothing. Requests come from one thread. The knob must outlive
// it and must not be set by others.
class ClockSetter {
 public:
  explicit ClockSetter(Knob& knob);
  // Drops a request that the driver has not got yet.
  ~ClockSetter() = default;

  // Requests a clock and returns at once.
  void Request(Hertz clock);

  // Waits until the driver has got the last request. For programs in virtual time, which stands
  // still until then.
  void WaitUntilDone();

  // The error of the last change; nullopt if it succeeded. The first error is logged.
  std::optional<Error> trouble() const;
  // Number of clocks that were given to the driver.
  std::int64_t changes() const;

 private:
  TimePoint Step();
  void Conclude(Hertz clock, const Status& outcome);

  Knob& knob_;
  mutable std::mutex mutex_;
  std::condition_variable done_;
  std::optional<Hertz> wanted_{};   // Guarded by mutex_, as is all that follows.
  std::optional<Hertz> applied_{};  // The last clock that the driver got, successfully or not.
  std::optional<Error> trouble_{};
  bool complained_ = false;
  std::int64_t changes_ = 0;
  Ticker thread_;  // The last member, so that the thread ends before the others are destroyed.
};

}  // namespace zeus
