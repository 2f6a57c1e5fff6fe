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

// The plans of a `zeus serve`, over HTTP. Calls are repeated as those of RemoteJobService, and
// safely: every one of them is idempotent, but a Submit() whose id the server makes up, which is
// sent once. GetNewer() and ReportPace() give up within seconds: trainings make them between two
// iterations, and again later. Thread-safe.
class RemotePlanService final : public PlanService {
 public:
  // A frontier takes its time, and the server works on while it is asked again.
  static CallOptions PatientOptions(const std::string& url) {
    return {.url = url, .attempts = 6, .pause = Seconds(0.25), .answer_timeout = Seconds(75)};
  }

  // Does not connect yet. The clock must outlive it.
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
  RemotePlanService(std::unique_ptr<ServerCalls> calls, std::unique_ptr<ServerCalls> brisk)
      : calls_(std::move(calls)), brisk_(std::move(brisk)) {}

  std::unique_ptr<ServerCalls> calls_;
  std::unique_ptr<ServerCalls> brisk_;  // Of those that keep a training waiting.
};

}  // namespace zeus
