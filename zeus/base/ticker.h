#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "zeus/base/clock.h"

namespace zeus {

// The one place where a background thread lives: calls `step` until destruction, each time sleeping
// until the moment that the last call returned. Real time only. Destruction interrupts the sleep,
// waits for a running step, and joins.
class Ticker {
 public:
  using Step = std::function<TimePoint()>;

  // For steps that have nothing to do until somebody wakes the thread.
  static constexpr TimePoint kWhenWoken = TimePoint::max();

  // `step` is first called at once. `name` shows in `top -H` (15 characters).
  Ticker(const char* name, Step step);
  ~Ticker();
  Ticker(const Ticker&) = delete;
  Ticker& operator=(const Ticker&) = delete;

  // Calls `step` now, or once more if it is running. From any thread; does not wait for it.
  void Wake();

 private:
  void Loop();

  Step step_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;  // Guarded by mutex_.
  bool woken_ = false;     // Guarded by mutex_.
  std::thread thread_;
};

}  // namespace zeus
