#pragma once

#include "zeus/server/router.h"
#include "zeus/server/scoped_services.h"
#include "zeus/server/server_metrics.h"

namespace zeus::server {

// /v1/plans. What it is given must outlive the router.
void AddPlanRoutes(const PlanTenants& tenants, ServerMetrics& metrics, Router& router);

}  // namespace zeus::server
