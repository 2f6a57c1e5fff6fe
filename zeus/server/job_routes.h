#pragma once

#include "zeus/server/router.h"
#include "zeus/server/scoped_services.h"
#include "zeus/server/server_metrics.h"

namespace zeus::server {

// /v1: jobs, trials, beliefs and events. What it is given must outlive the router.
void AddJobRoutes(const JobTenants& tenants, ServerMetrics& metrics, Router& router);
void AddTrialRoutes(const JobTenants& tenants, ServerMetrics& metrics, Router& router);

}  // namespace zeus::server
