#pragma once

#include <optional>
#include <string>
#include <vector>

#include "zeus/base/json_fwd.h"
#include "zeus/base/result.h"
#include "zeus/job/job_service.h"

// Bodies of answers of /v1 (docs/server.md). Readers ignore what they do not know: a newer server
// may say more.
namespace zeus::wire {

// What the policy of a job makes of its state.
struct JobProgress {
  std::string stage{};
  int best_batch_size = 0;
};

// The state of the policy stays behind: `arms` says what it means.
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

// Pages: {"jobs": […], "next": what to ask for as `after`, or null at the end}.
Result<std::vector<Job>> JobsFromJson(const Json& json);
Result<std::vector<Trial>> TrialsFromJson(const Json& json);
Result<std::vector<JobEvent>> EventsFromJson(const Json& json);

// untried, candidate, dropped.
std::string_view Name(ArmState state);

// One line, and valid UTF-8 whatever is inside.
std::string Text(const Json& json);

}  // namespace zeus::wire
