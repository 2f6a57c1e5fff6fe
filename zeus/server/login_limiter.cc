#include "zeus/server/login_limiter.h"

#include <algorithm>

namespace zeus::server {

LoginLimiter::Verdict LoginLimiter::Judge(const std::string& address, const std::string& name) {
  const std::lock_guard lock(mutex_);
  const TimePoint now = clock_.Now();
  auto found = records_.find(address);
  if (found == records_.end()) {
    if (records_.size() >= kMostAddresses) Forget();
    found = records_.try_emplace(address, Record{.at = now}).first;
  }
  Record& record = found->second;
  record.failures = std::max(0.0, record.failures - (now - record.at) / kRefill);
  record.at = now;
  if (!name.empty() && record.names.contains(name)) return Verdict::kAccept;
  if (record.failures + 1.0 > kMostFailures) return Verdict::kTooMany;
  if (name.empty()) {
    record.failures += 1.0;
    return Verdict::kReject;
  }
  if (record.names.size() < kMostNames) record.names.insert(name);
  return Verdict::kAccept;
}

// Makes room: the address that was silent for the longest time. One that guesses is not silent.
void LoginLimiter::Forget() {
  const auto oldest =
      std::ranges::min_element(records_, {}, [](const auto& entry) { return entry.second.at; });
  records_.erase(oldest);
}

}  // namespace zeus::server
