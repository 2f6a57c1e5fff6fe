#pragma once

#include "zeus/carbon/carbon_accounting.h"
#include "zeus/server/router.h"
#include "zeus/server/scoped_services.h"
#include "zeus/server/server_metrics.h"

namespace zeus::server {

// Adds /v1: jobs, trials, beliefs and events. The arguments must outlive the router. `carbon` says
// what saved energy is in emissions and money; null: it is not said.
void AddJobRoutes(const JobTenants& tenants, ServerMetrics& metrics, const CarbonAccounting* carbon,
                  Router& router);
void AddTrialRoutes(const JobTenants& tenants, ServerMetrics& metrics, Router& router);

}  // namespace zeus::server
