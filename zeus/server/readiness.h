#pragma once

#include <functional>
#include <mutex>

#include "zeus/base/clock.h"
#include "zeus/base/result.h"

namespace zeus::server {

// Whether the database takes changes, found out by a small one, but not more often than every few
// seconds however many ask: neither the disk nor the database is to feel who looks after the
// server. One caller at a time looks; the others get what was found last. A change from ready to
// not ready, and back, is logged with its reason. Thread-safe; the clock must outlive it.
class Readiness {
 public:
  static constexpr Seconds kValidity{5};
  // A look that takes longer means that the database hangs.
  static constexpr Seconds kLongestLook{10};

  Readiness(std::function<Status()> look, const Clock& clock)
      : look_(std::move(look)), clock_(clock) {}

  Status Check();

 private:
  void Note(Status found);

  const std::function<Status()> look_;
  const Clock& clock_;
  std::mutex mutex_;
  bool looking_ = false;  // Guarded by mutex_, as are the next.
  bool known_ = false;
  TimePoint looked_at_{};  // Began the latest look.
  Status latest_ = Error{ErrorCode::kUnavailable, "the database was not looked at yet: ask again"};
};

}  // namespace zeus::server
