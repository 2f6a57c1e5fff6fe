#pragma once

#include <cstdint>
#include <string>

#include "zeus/base/json_fwd.h"
#include "zeus/base/result.h"
#include "zeus/job/job_service.h"

// The bodies of requests of /v1 (docs/server.md), except job specs, whose JSON is in
// zeus/job/job_spec.h. The job and the trial are in the path, so they are parameters here. Readers
// refuse unknown fields, so that a misspelt one is noticed.
namespace zeus::wire {

Json ToJson(const TrialRequest& request);
Result<TrialRequest> TrialRequestFromJson(std::string job_id, const Json& json);

Json ToJson(const TrialReport& report);
Result<TrialReport> TrialReportFromJson(std::string job_id, std::int64_t trial, const Json& json);

Json ToJson(const TrialEnd& end);
Result<TrialEnd> TrialEndFromJson(std::string job_id, std::int64_t trial, const Json& json);

Json ToJson(const EpochCostReport& report);
Result<EpochCostReport> EpochCostReportFromJson(std::string job_id, const Json& json);

}  // namespace zeus::wire
