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

// Sets the clock of a knob on a thread of its own: a driver takes milliseconds, and training does
// not wait for it. Of clocks that are asked for meanwhile the latest wins; asking for the clock
// that is set already costs nothing. One thread asks. The knob must outlive it, and nobody else may
// turn it.
class ClockSetter {
 public:
  explicit ClockSetter(Knob& knob);
  // Forgets what was asked for and not done yet.
  ~ClockSetter() = default;

  // Returns at once.
  void Ask(Hertz clock);

  // Returns when the driver has been told what was asked for last. For programs whose time stands
  // still meanwhile.
  void WaitUntilDone();

  // Why the last change failed; nullopt if it did not. The first such failure is logged.
  std::optional<Error> trouble() const;
  // How often the driver was told a clock.
  std::int64_t changes() const;

 private:
  TimePoint Step();
  void Conclude(Hertz clock, const Status& outcome);

  Knob& knob_;
  mutable std::mutex mutex_;
  std::condition_variable done_;
  std::optional<Hertz> wanted_{};   // Guarded by mutex_, as is all that follows.
  std::optional<Hertz> applied_{};  // What the driver was told last, with success or without.
  std::optional<Error> trouble_{};
  bool complained_ = false;
  std::int64_t changes_ = 0;
  Ticker thread_;  // Ends before the rest.
};

}  // namespace zeus
