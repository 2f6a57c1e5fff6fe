#include "zeus/server/readiness.h"

#include <utility>

#include "zeus/base/log.h"

namespace zeus::server {

Status Readiness::Check() {
  {
    const std::lock_guard lock(mutex_);
    const TimePoint now = clock_.Now();
    if (looking_) {
      if (now - looked_at_ > kLongestLook)
        return Error{ErrorCode::kUnavailable, "the database does not answer"};
      return latest_;
    }
    if (known_ && now - looked_at_ < kValidity) return latest_;
    looking_ = true;
    looked_at_ = now;
  }
  Status found = look_();
  Note(found);
  return found;
}

void Readiness::Note(Status found) {
  const std::lock_guard lock(mutex_);
  const bool was_ready = !known_ || latest_.ok();
  if (was_ready && !found.ok())
    log::Warning("not ready: {}", found.error().message);
  else if (!was_ready && found.ok())
    log::Warning("ready again");
  looking_ = false;
  known_ = true;
  latest_ = std::move(found);
}

}  // namespace zeus::server
