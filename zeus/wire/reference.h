#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "zeus/base/json_fwd.h"
#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/job/job_service.h"
#include "zeus/optimizer/pipeline/reference_schedule.h"
#include "zeus/plan/session_repository.h"

// The messages of the reference implementation's batch-size server and pipeline server, as its
// clients send and expect them, and their translation to our types. Readers ignore unknown fields,
// as those of the reference implementation do.
namespace zeus::wire::reference {

// --- batch sizes ---

// The lease of trials of these clients, which send no heartbeats between reports.
inline constexpr Seconds kLease = std::chrono::hours(24);

// JobSpecFromClient, in both directions. The policy is "zeus", which is the one of that server.
Json ToJson(const JobSpec& spec);
Result<JobSpec> JobSpecFromJson(const Json& json);

struct TrialId {
  std::string job_id{};
  int batch_size = 0;
  std::int64_t trial_number = 0;
  friend bool operator==(const TrialId&, const TrialId&) = default;
};
Json ToJson(const TrialId& trial);
Result<TrialId> TrialIdFromJson(const Json& json);

// TrainingResult: a report together with the batch size of its trial.
struct TrainingResult {
  TrialReport report{};
  int batch_size = 0;
};
Json ToJson(const TrainingResult& result);
Result<TrainingResult> TrainingResultFromJson(const Json& json);

// ReportResponse.
Json ToJson(const ReportAnswer& answer);

// {"detail": …} in the form of the reference's web framework: a list of locations for a body that
// is not valid, a sentence for other errors. `place` is where the mistake is: "body" or "query".
Json ErrorToJson(const Error& error, std::string_view place);

// --- pipelines ---

// JobInfo. Returns kInvalidArgument when world_size is not the product of the degrees.
Result<PipelineSession> PipelineFromJson(const Json& json);

// RankInfo.
Result<SessionRank> RankFromJson(const Json& json);

// FrequencySchedule.
Json ToJson(int rank, const pipeline::RankClocks& clocks);

// ProfilingResult, which was measured at the clocks of the schedule; or OfflineProfilingResult,
// which has measurements for each clock.
Result<RankReport> RankReportFromJson(const Json& json);

}  // namespace zeus::wire::reference
