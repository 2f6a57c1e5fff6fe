#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/optimizer/pipeline/frontier.h"
#include "zeus/optimizer/pipeline/plan.h"
#include "zeus/optimizer/pipeline/planner.h"
#include "zeus/optimizer/pipeline/profile.h"

namespace zeus {

// A pipeline that is to be planned: its profile and its schedule.
struct PlanSpec {
  std::string id{};  // Empty: the service makes one up.
  pipeline::PipelineProfile profile{};
  std::string schedule = "1f1b";
  int microbatches = 0;
  int chunks = 1;
  std::string custom_schedule{};  // Schedule "custom" in the format of pipeline::ParseSchedule().
  int data_parallel = 1;          // Replicas of the pipeline, which all have the same plan.
  int tensor_parallel = 1;        // GPUs of a stage, which all have the same clock.
  pipeline::ClockChangeRules clock_changes{};
  double slowdown = 1.0;  // Greatest time of an iteration relative to the baseline.

  friend bool operator==(const PlanSpec&, const PlanSpec&);
};

// The plan that is in force for a pipeline.
struct CurrentPlan {
  std::string id{};
  std::int64_t version = 1;       // Grows when the plan changes.
  std::optional<Seconds> pace{};  // Iteration time because of a straggler, if there is one.
  pipeline::PipelinePlan plan{};
  Seconds baseline_time{0};  // With all computations at their highest clock, as is the next.
  Joules baseline_energy{};
  bool created = false;  // Whether this Submit() made the plan; else it existed with the same spec.
  int ranks = 0;         // GPUs of all replicas; 0 if unknown, because it is not sent over HTTP.
};

// The time-energy frontier of a pipeline, and its baseline.
struct PlanFrontier {
  Seconds fastest_time{0};  // No plan is faster (in measured times).
  Seconds baseline_time{0};
  Joules baseline_energy{};
  std::vector<pipeline::FrontierPoint> points{};
};

// A pipeline in a list: its shape, and its plan where that is known without solving.
struct PlanSummary {
  std::string id{};
  WallTime created_at{};
  std::int64_t version = 1;
  std::optional<Seconds> pace{};
  int stages = 0;
  int microbatches = 0;
  std::string schedule{};
  int replicas = 1;
  int gpus = 0;  // GPUs of all replicas.

  // The plan that is in force, and the baseline.
  struct Solved {
    Seconds time{0};
    Joules energy{};
    Seconds baseline_time{0};
    Joules baseline_energy{};
  };
  std::optional<Solved> solved{};  // nullopt: the frontier is not in memory now.
};

// Makes and keeps plans for pipelines, in this process (LocalPlanService) or over HTTP
// (RemotePlanService in client/). Thread-safe. Errors: kInvalidArgument, kNotFound, kConflict,
// kUnavailable.
class PlanService {
 public:
  virtual ~PlanService() = default;

  // Stores the spec and returns its plan. The same spec may be submitted again; another spec under
  // the same id is a kConflict.
  virtual Result<CurrentPlan> Submit(const PlanSpec& spec) = 0;
  virtual Result<CurrentPlan> Get(const std::string& id) = 0;
  // Whether there is a plan, without making it where that can be avoided. False for an empty id.
  virtual Result<bool> Exists(const std::string& id) {
    const Result<CurrentPlan> found = Get(id);
    if (!found.ok() && found.error().code != ErrorCode::kNotFound) return found.error();
    return found.ok();
  }
  // Returns nullopt while `version` is the latest, which is cheap enough for every iteration. A
  // caller with a later version knows a plan that was deleted since, and gets the present one.
  virtual Result<std::optional<CurrentPlan>> GetNewer(const std::string& id, std::int64_t version) {
    ZEUS_TRY(CurrentPlan current, Get(id));
    if (current.version == version) return std::optional<CurrentPlan>();
    return std::optional(std::move(current));
  }
  virtual Result<PlanFrontier> GetFrontier(const std::string& id) = 0;
  // Plans for any deadline, without changing the current plan.
  virtual Result<pipeline::PipelinePlan> PlanFor(const std::string& id, Seconds deadline) = 0;
  // Reports that a straggler makes iterations take `pace`, or with nullopt that it is gone. Returns
  // the new plan.
  virtual Result<CurrentPlan> ReportPace(const std::string& id, std::optional<Seconds> pace) = 0;
  // Describes a plan without solving it. Only where the plans are kept; otherwise kNotSupported.
  virtual Result<PlanSummary> Summarize(const std::string& id) {
    return Error{ErrorCode::kNotSupported, "plan " + id + " is kept elsewhere: ask that server"};
  }
  virtual Result<std::vector<std::string>> List(const std::string& after, int limit) = 0;
  virtual Status Delete(const std::string& id) = 0;
};

}  // namespace zeus
