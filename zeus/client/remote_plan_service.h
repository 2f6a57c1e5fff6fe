#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/client/server_calls.h"
#include "zeus/plan/plan_service.h"

namespace zeus {

// The plans of a `zeus serve`, over HTTP. Calls are repeated as CallOptions::retry says, which is
// safe: all of them are idempotent except a Submit() without an id, which is sent once. GetNewer()
// and ReportPace() follow kRetryBetweenIterations, because trainings call them between two
// iterations, and call them again later. Thread-safe.
class RemotePlanService final : public PlanService {
 public:
  // Options for callers that wait until a frontier is solved.
  static CallOptions OptionsForSolving(const std::string& url) {
    return {.url = url, .retry = kRetryForAFrontier};
  }

  // Does not connect yet. The clock must outlive the service.
  static Result<std::unique_ptr<RemotePlanService>> Connect(const CallOptions& options,
                                                            Clock& clock);

  Result<CurrentPlan> Submit(const PlanSpec& spec) override;
  Result<CurrentPlan> Get(const std::string& id) override;
  Result<std::optional<CurrentPlan>> GetNewer(const std::string& id, std::int64_t version) override;
  Result<PlanFrontier> GetFrontier(const std::string& id) override;
  Result<pipeline::PipelinePlan> PlanFor(const std::string& id, Seconds deadline) override;
  Result<CurrentPlan> ReportPace(const std::string& id, std::optional<Seconds> pace) override;
  Result<std::vector<std::string>> List(const std::string& after, int limit) override;
  Status Delete(const std::string& id) override;

 private:
  RemotePlanService(std::unique_ptr<ServerCalls> calls, std::unique_ptr<ServerCalls> quick_calls)
      : calls_(std::move(calls)), quick_calls_(std::move(quick_calls)) {}

  std::unique_ptr<ServerCalls> calls_;
  std::unique_ptr<ServerCalls> quick_calls_;  // For calls between two iterations.
};

}  // namespace zeus
