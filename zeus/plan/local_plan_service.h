#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/random.h"
#include "zeus/plan/plan_repository.h"
#include "zeus/plan/plan_service.h"
#include "zeus/plan/planner_cache.h"

namespace zeus {

// Makes plans for the pipelines of a repository, in the planning server or in a training process
// without one. Everything that must survive is in the repository, and plans follow from it
// deterministically, so any number of services may share one repository. A frontier is solved when
// it is first needed. Thread-safe; repository and clock must outlive it.
class LocalPlanService final : public PlanService {
 public:
  struct Options {
    SolveLimits solving{};
    // Greatest size of a pipeline: time and memory for its frontier grow faster than its size.
    int most_instructions = 1 << 16;
    Entropy entropy = SystemEntropy;
  };

  LocalPlanService(PlanRepository& repository, const Clock& clock);
  LocalPlanService(PlanRepository& repository, const Clock& clock, Options options);

  Result<CurrentPlan> Submit(const PlanSpec& spec) override;
  Result<CurrentPlan> Get(const std::string& id) override;
  Result<bool> Exists(const std::string& id) override;
  Result<std::optional<CurrentPlan>> GetNewer(const std::string& id, std::int64_t version) override;
  Result<PlanFrontier> GetFrontier(const std::string& id) override;
  Result<pipeline::PipelinePlan> PlanFor(const std::string& id, Seconds deadline) override;
  Result<CurrentPlan> ReportPace(const std::string& id, std::optional<Seconds> pace) override;
  Result<PlanSummary> Summarize(const std::string& id) override;
  Result<std::vector<std::string>> List(const std::string& after, int limit) override;
  Status Delete(const std::string& id) override;

  // Ends all calls that wait for a solve, and later ones, with kUnavailable.
  void Stop() { cache_.Stop(); }
  SolveFigures figures() const { return cache_.figures(); }

 private:
  Status CheckCanBePlanned(const PlanSpec& spec) const;
  Result<PlanRecord> FindOrInsert(const PlanSpec& spec, bool& created);
  Result<PlannerCache::Solved> Solve(const PlanRecord& record);
  Result<CurrentPlan> Current(const PlanRecord& record);

  PlanRepository& repository_;
  const Clock& clock_;
  const Options options_;
  PlannerCache cache_;
};

}  // namespace zeus
