#include "zeus/http/readiness.h"

#include "zeus/base/log.h"

namespace zeus::http {

Status Readiness::Check() {
  {
    const std::lock_guard lock(mutex_);
    const TimePoint now = clock_.Now();
    if (checking_) {
      if (now - checked_at_ > kLongestCheck)
        return Error{ErrorCode::kUnavailable, "the database does not answer"};
      return latest_;
    }
    if (known_ && now - checked_at_ < kValidity) return latest_;
    checking_ = true;
    checked_at_ = now;
  }
  Status found = check_();
  Record(found);
  return found;
}

void Readiness::Record(Status found) {
  const std::lock_guard lock(mutex_);
  const bool was_ready = !known_ || latest_.ok();
  if (was_ready && !found.ok())
    log::Warning("not ready: {}", found.error().message);
  else if (!was_ready && found.ok())
    log::Warning("ready again");
  checking_ = false;
  known_ = true;
  latest_ = std::move(found);
}

}  // namespace zeus::http
