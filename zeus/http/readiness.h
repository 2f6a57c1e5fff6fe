#pragma once

#include <functional>
#include <mutex>
#include <utility>

#include "zeus/base/clock.h"
#include "zeus/base/result.h"

namespace zeus::http {

// Returns whether the database accepts changes. A small change finds that out, but only once every
// few seconds, so that frequent health checks load neither the disk nor the database. One caller at
// a time makes the check; the others get the latest result. Logs each change between ready and not
// ready, with the reason. Thread-safe; the clock must outlive it.
class Readiness {
 public:
  static constexpr Seconds kValidity{5};
  // A check that takes longer means that the database hangs.
  static constexpr Seconds kLongestCheck{10};

  Readiness(std::function<Status()> check, const Clock& clock)
      : check_(std::move(check)), clock_(clock) {}

  Status Check();

 private:
  void Record(Status found);

  const std::function<Status()> check_;
  const Clock& clock_;
  std::mutex mutex_;
  // Guarded by mutex_, to the end of the class.
  bool checking_ = false;
  bool known_ = false;
  TimePoint checked_at_{};  // The start of the latest check.
  Status latest_ = Error{ErrorCode::kUnavailable, "the database was not checked yet: ask again"};
};

}  // namespace zeus::http
