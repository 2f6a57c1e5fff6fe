#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/optimizer/pipeline/frontier.h"
#include "zeus/optimizer/pipeline/plan.h"
#include "zeus/optimizer/pipeline/planner.h"
#include "zeus/optimizer/pipeline/profile.h"

namespace zeus {

// A pipeline that wants plans: what was measured and how it is scheduled.
struct PlanSpec {
  std::string id{};  // Empty: made up.
  pipeline::PipelineProfile profile{};
  std::string schedule = "1f1b";
  int microbatches = 0;
  int chunks = 1;
  std::string custom_schedule{};  // For "custom": pipeline::ParseSchedule().
  int data_parallel = 1;          // Replicas of the pipeline: the same plan for each.
  int tensor_parallel = 1;        // GPUs of a stage: the same clock on each.
  pipeline::ClockChangeRules clock_changes{};
  double slowdown = 1.0;  // How much longer than the baseline an iteration may take.

  friend bool operator==(const PlanSpec&, const PlanSpec&);
};

// What holds now for a pipeline.
struct CurrentPlan {
  std::string id{};
  std::int64_t version = 1;       // Grows when the plan changes: pick it up at the next iteration.
  std::optional<Seconds> pace{};  // Of a straggler, if there is one.
  pipeline::PipelinePlan plan{};
  Seconds baseline_time{0};  // All computations at their highest clock.
  Joules baseline_energy{};
  bool created = false;  // By this Submit(); false: there was one with the same spec.
  int ranks = 0;         // GPUs of all replicas; 0: not known, as it does not travel.
};

struct PlanFrontier {
  Seconds fastest_time{0};  // In true times: no plan is faster.
  Seconds baseline_time{0};
  Joules baseline_energy{};
  std::vector<pipeline::FrontierPoint> points{};
};

// Plans for pipelines, wherever they are made and kept: LocalPlanService here, RemotePlanService in
// client/. Thread-safe. Errors: kInvalidArgument, kNotFound, kConflict, kUnavailable.
class PlanService {
 public:
  virtual ~PlanService() = default;

  // Kept when it returns. The same spec again: the same answer; another one under the same id is a
  // kConflict.
  virtual Result<CurrentPlan> Submit(const PlanSpec& spec) = 0;
  virtual Result<CurrentPlan> Get(const std::string& id) = 0;
  // Without making the plan, where that can be avoided. False for an empty id.
  virtual Result<bool> Exists(const std::string& id) {
    const Result<CurrentPlan> found = Get(id);
    if (!found.ok() && found.error().code != ErrorCode::kNotFound) return found.error();
    return found.ok();
  }
  // nullopt when `version` is still the latest: cheap to ask at every iteration. Who knows a later
  // one knows that of a plan that was deleted, and gets the present one.
  virtual Result<std::optional<CurrentPlan>> GetNewer(const std::string& id, std::int64_t version) {
    ZEUS_TRY(CurrentPlan current, Get(id));
    if (current.version == version) return std::optional<CurrentPlan>();
    return std::optional(std::move(current));
  }
  virtual Result<PlanFrontier> GetFrontier(const std::string& id) = 0;
  // For any deadline, without changing the current plan.
  virtual Result<pipeline::PipelinePlan> PlanFor(const std::string& id, Seconds deadline) = 0;
  // A straggler makes iterations take `pace`; nullopt: it is gone. Answers with the new plan.
  virtual Result<CurrentPlan> ReportPace(const std::string& id, std::optional<Seconds> pace) = 0;
  virtual Result<std::vector<std::string>> List(const std::string& after, int limit) = 0;
  virtual Status Delete(const std::string& id) = 0;
};

}  // namespace zeus
