#pragma once

#include <cstdint>
#include <mutex>
#include <string>

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

}  // namespace zeus::cli
