#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <system_error>
#include <thread>

#include "zeus/base/clock.h"
#include "zeus/base/result.h"

namespace zeus {

// The one place where a background thread lives: calls `step` until destruction, each time sleeping
// until the moment that the last call returned. Real time only. Destruction interrupts the sleep,
// waits for a running step, and joins.
class Ticker {
 public:
  using Step = std::function<TimePoint()>;

  // Returned by a step that has nothing to do until Wake() is called.
  static constexpr TimePoint kWhenWoken = TimePoint::max();

  // `step` is first called at once. `name` shows in `top -H` (15 characters). Throws
  // std::system_error when the system has no thread left (NoThreadError() says so to people);
  // nothing is changed then.
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

// Whether an exception is the one of a Ticker that got no thread.
bool IsNoThread(const std::system_error& error);
// An error for people: kUnavailable, naming the settings that limit the number of threads.
Error NoThreadError();

}  // namespace zeus
