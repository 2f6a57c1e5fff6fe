#pragma once

#include <optional>
#include <string>
#include <vector>

#include "zeus/base/json_fwd.h"
#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/job/job_service.h"
#include "zeus/plan/plan_service.h"

// The bodies of answers of /v1 (docs/server.md). Readers ignore unknown fields, because a newer
// server may send more.
namespace zeus::wire {

// How far the policy of a job has come.
struct JobProgress {
  std::string stage{};
  int best_batch_size = 0;
};

// Job::policy_state is left out; JobArms has its meaning.
Json ToJson(const Job& job, const std::optional<JobProgress>& progress);
Result<Job> JobFromJson(const Json& json);

Json ToJson(const Trial& trial);
Result<Trial> TrialFromJson(const Json& json);

Json ToJson(const StartedTrial& started);
Result<StartedTrial> StartedTrialFromJson(const Json& json);

Json ToJson(const ReportAnswer& answer);
Result<ReportAnswer> ReportAnswerFromJson(const Json& json);

Json ToJson(const JobArms& arms);
Result<JobArms> JobArmsFromJson(const Json& json);

Json ToJson(const JobSavings& savings);
Result<JobSavings> JobSavingsFromJson(const Json& json);

Json ToJson(const JobEvent& event);
Result<JobEvent> JobEventFromJson(const Json& json);

// Pages of lists: {"jobs": […], "next": the `after` of the next page, or null at the end}.
Result<std::vector<Job>> JobsFromJson(const Json& json);
Result<std::vector<Trial>> TrialsFromJson(const Json& json);
Result<std::vector<JobEvent>> EventsFromJson(const Json& json);

// Returns "untried", "candidate" or "dropped".
std::string_view Name(ArmState state);

// The bodies of /v1/plans (docs/server.md). The JSON of a spec is in zeus/plan/plan_repository.h,
// that of a plan in zeus/optimizer/pipeline/plan.h.

// Answers. Readers ignore unknown fields.
Json ToJson(const CurrentPlan& plan);
Result<CurrentPlan> CurrentPlanFromJson(const Json& json);

Json ToJson(const PlanFrontier& frontier);
Result<PlanFrontier> PlanFrontierFromJson(const Json& json);

// {"plans": [ids], "next": …}
Result<std::vector<std::string>> PlanIdsFromJson(const Json& json);

struct PaceReport {
  std::optional<Seconds> pace{};
  std::optional<int> rank{};  // The rank that noticed it, for logs only.
};

// A request: {"pace_seconds": 3.4 or null}, optionally with a rank. Unknown fields are refused.
Json PaceToJson(std::optional<Seconds> pace);
Result<PaceReport> PaceFromJson(const Json& json);

}  // namespace zeus::wire
