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

// Plans for the pipelines of a repository: the heart of the planning server, and of training
// without one. Everything that must survive is in the repository, and plans follow from it in the
// same way everywhere, so any number of these may share one. Frontiers are solved when they are
// first asked for. Thread-safe; what it is given must outlive it.
class LocalPlanService final : public PlanService {
 public:
  struct Options {
    SolveLimits solving{};
    // Of one pipeline; its frontier takes time and memory that grow faster than this.
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
  Result<std::vector<std::string>> List(const std::string& after, int limit) override;
  Status Delete(const std::string& id) override;

  // Lets nobody wait any longer: what is not answered yet becomes kUnavailable.
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
