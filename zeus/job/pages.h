#pragma once

#include <string>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/job/job_service.h"

// Lists that a service returns only a page at a time, as a whole.
namespace zeus {

Result<std::vector<Job>> AllJobs(JobService& service, JobQuery query);
Result<std::vector<Trial>> AllTrials(JobService& service, const std::string& job_id);
Result<std::vector<JobEvent>> AllEvents(JobService& service, const std::string& job_id);

}  // namespace zeus
