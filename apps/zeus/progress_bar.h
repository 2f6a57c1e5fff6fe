#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "zeus/base/clock.h"
#include "zeus/base/ticker.h"

namespace zeus::cli {

// Shows the progress of work on the last line of a terminal on standard error; shows nothing if
// that is not a terminal. The destructor removes the line. Thread-safe.
class ProgressBar {
 public:
  // `total` is the number of pieces of work, `what` their name ("seeds").
  ProgressBar(std::string what, std::int64_t total);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  void Add(std::int64_t done);

 private:
  const std::string what_;
  const std::int64_t total_;
  const bool active_;
  std::mutex mutex_;
  std::int64_t done_ = 0;    // Guarded by mutex_.
  std::int64_t shown_ = -1;  // In thousandths; guarded by mutex_.
};

// Shows a line "planning: 12 s" on standard error for work without known progress, from its second
// second to its end, if that is a terminal. Not thread-safe.
class BusyLine {
 public:
  BusyLine(std::string what, const Clock& clock);
  ~BusyLine();
  BusyLine(const BusyLine&) = delete;
  BusyLine& operator=(const BusyLine&) = delete;

 private:
  TimePoint Step();

  const std::string what_;
  const Clock& clock_;
  const TimePoint begin_;
  bool shown_ = false;
  std::unique_ptr<Ticker> ticker_;  // Null if standard error is not a terminal.
};

}  // namespace zeus::cli
