#pragma once

#include "zeus/plan/plan_service.h"
#include "zeus/server/router.h"
#include "zeus/server/server_metrics.h"

namespace zeus::server {

// /v1/plans. What it is given must outlive the router.
void AddPlanRoutes(PlanService& service, ServerMetrics& metrics, Router& router);

}  // namespace zeus::server
