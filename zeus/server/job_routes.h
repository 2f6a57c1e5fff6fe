#pragma once

#include "zeus/job/job_service.h"
#include "zeus/server/router.h"
#include "zeus/server/server_metrics.h"

namespace zeus::server {

// /v1: jobs, trials, beliefs and events. What it is given must outlive the router.
void AddJobRoutes(JobService& service, ServerMetrics& metrics, Router& router);
void AddTrialRoutes(JobService& service, ServerMetrics& metrics, Router& router);

}  // namespace zeus::server
