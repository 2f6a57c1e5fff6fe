#pragma once

#include <cstdint>
#include <string>

#include "zeus/base/json_fwd.h"
#include "zeus/base/result.h"
#include "zeus/job/job_service.h"

// Bodies of requests of /v1 (docs/server.md). The job and the trial are in the path, so they are
// parameters here. Readers refuse what they do not know: a misspelt field must not be lost quietly.
namespace zeus::wire {

// A job spec is that of zeus/job/job_spec.h.

Json ToJson(const TrialRequest& request);
Result<TrialRequest> TrialRequestFromJson(std::string job_id, const Json& json);

Json ToJson(const TrialReport& report);
Result<TrialReport> TrialReportFromJson(std::string job_id, std::int64_t trial, const Json& json);

Json ToJson(const TrialEnd& end);
Result<TrialEnd> TrialEndFromJson(std::string job_id, std::int64_t trial, const Json& json);

Json ToJson(const EpochCostReport& report);
Result<EpochCostReport> EpochCostReportFromJson(std::string job_id, const Json& json);

}  // namespace zeus::wire
