#pragma once

#include <cstdint>
#include <string>

#include "zeus/base/json_fwd.h"
#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/job/job_service.h"

// What the batch-size server of the reference implementation exchanges with its clients, and how it
// maps to ours. Its readers ignore unknown fields, and so do these.
namespace zeus::wire::reference {

// Its clients send no signs of life between reports.
inline constexpr Seconds kLease = std::chrono::hours(24);

// JobSpecFromClient, both ways. The policy is "zeus", which is what that server does.
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

// TrainingResult: a report that also says which batch size it is about.
struct TrainingResult {
  TrialReport report{};
  int batch_size = 0;
};
Json ToJson(const TrainingResult& result);
Result<TrainingResult> TrainingResultFromJson(const Json& json);

// ReportResponse.
Json ToJson(const ReportAnswer& answer);

// {"detail": …} as its framework answers: a list of places for a body that makes no sense, a
// sentence for the rest. `place` is where the mistake is: "body" or "query".
Json ErrorToJson(const Error& error, std::string_view place);

}  // namespace zeus::wire::reference
