#pragma once

#include <span>
#include <string>

#include "zeus/base/json_fwd.h"
#include "zeus/base/result.h"
#include "zeus/job/job_overview.h"
#include "zeus/job/other_eta.h"
#include "zeus/job/recurrences.h"
#include "zeus/plan/plan_service.h"

// The bodies of answers that pages show (docs/server.md). Nothing reads them but people's programs.
namespace zeus::wire {

Json ToJson(const RecurrenceAmounts& recurrence);
Json ToJson(const MeasuredArm& arm);
// Without the recurrences, which have a route of their own.
Json ToJson(const JobOverview& overview);
Json ToJson(const OtherEta& other);
Json ToJson(const SpanSavings& span);
Json ToJson(const PlanSummary& summary);

// A job with its trials and events as JSON lines ("zeus.job_export/1", docs/formats.md): the answer
// of `zeus job export` and of the server. Returns kNotSupported when they would take more than
// `most_bytes`.
Result<std::string> ExportText(JobService& service, const std::string& job_id,
                               std::size_t most_bytes);

}  // namespace zeus::wire
