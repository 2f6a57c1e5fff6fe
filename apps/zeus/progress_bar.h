#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "zeus/base/clock.h"
#include "zeus/base/ticker.h"

namespace zeus::cli {

// How much of the work is done, on the last line of a terminal on standard error; nothing
// elsewhere. The line goes away with the bar. Thread-safe.
class ProgressBar {
 public:
  // `total` pieces of work of some kind ("seeds").
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
  std::int64_t shown_ = -1;  // Thousandths; guarded by mutex_.
};

// For work that does not tell how far it is: a line "planning: 12 s" on standard error, from its
// second second to its end, where that is a terminal. One owner.
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
  std::unique_ptr<Ticker> ticker_;  // Null where nobody looks.
};

}  // namespace zeus::cli
