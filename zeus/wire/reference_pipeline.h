#pragma once

#include "zeus/base/json_fwd.h"
#include "zeus/base/result.h"
#include "zeus/optimizer/pipeline/reference_schedule.h"
#include "zeus/plan/session_profile.h"
#include "zeus/plan/session_repository.h"

// What the server of the reference implementation's pipeline optimizer exchanges with its clients.
// Its readers ignore unknown fields, and so do these.
namespace zeus::wire::reference {

// JobInfo. kInvalidArgument when world_size is not the product of the degrees.
Result<PipelineSession> PipelineFromJson(const Json& json);

// RankInfo.
Result<SessionRank> RankFromJson(const Json& json);

// FrequencySchedule.
Json ToJson(int rank, const pipeline::RankClocks& clocks);

// ProfilingResult, measured at the clocks of the schedule; or OfflineProfilingResult, which says
// for each clock what it measured.
Result<RankReport> RankReportFromJson(const Json& json);

}  // namespace zeus::wire::reference
