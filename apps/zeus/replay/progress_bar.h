#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "zeus/base/clock.h"
#include "zeus/base/ticker.h"

namespace zeus::cli {

// Shows on standard error how far some work is, five times a second, for as long as it lives; then
// wipes its line. Silent where standard error is no terminal.
class ProgressBar {
 public:
  // `done` counts up to `total`, from any thread.
  ProgressBar(std::string what, const std::atomic<std::int64_t>& done, std::int64_t total);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

 private:
  TimePoint Draw();

  const std::string what_;
  const std::atomic<std::int64_t>& done_;
  const std::int64_t total_;
  SystemClock clock_{};
  const TimePoint started_;
  std::unique_ptr<Ticker> ticker_{};  // None: nobody watches.
};

}  // namespace zeus::cli
