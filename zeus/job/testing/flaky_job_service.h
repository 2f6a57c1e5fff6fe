#pragma once

#include <atomic>
#include <string>

#include "zeus/job/job_service.h"

namespace zeus::testing {

// Passes calls on to a real service. While `away` is true, the calls of a run fail as those of a
// server that cannot be reached.
class FlakyJobService final : public ForwardingJobService {
 public:
  using ForwardingJobService::ForwardingJobService;

  std::atomic<bool> away = false;
  std::atomic<int> heartbeats = 0;
  std::atomic<int> registrations = 0;

  Result<RegisteredJob> Register(const JobSpec& spec) override {
    ++registrations;
    if (away) return Gone();
    return service_.Register(spec);
  }
  Result<StartedTrial> StartTrial(const TrialRequest& request) override {
    if (away) return Gone();
    return service_.StartTrial(request);
  }
  Result<ReportAnswer> Report(const TrialReport& report) override {
    if (away) return Gone();
    return service_.Report(report);
  }
  Result<Trial> Heartbeat(const std::string& job_id, std::int64_t trial) override {
    ++heartbeats;
    if (away) return Gone();
    return service_.Heartbeat(job_id, trial);
  }
  Result<Trial> EndTrial(const TrialEnd& end) override {
    if (away) return Gone();
    return service_.EndTrial(end);
  }

 private:
  static Error Gone() { return {ErrorCode::kUnavailable, "away"}; }
};

}  // namespace zeus::testing
