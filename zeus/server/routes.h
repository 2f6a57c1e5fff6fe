#pragma once

#include "zeus/base/units.h"
#include "zeus/carbon/carbon_accounting.h"
#include "zeus/http/router.h"
#include "zeus/plan/pipeline_sessions.h"
#include "zeus/server/server_metrics.h"
#include "zeus/server/tenants.h"

// Each function adds a family of routes to the table. The referenced objects must outlive the
// router.
namespace zeus::server {

// /v1/jobs: jobs, beliefs, savings and events.
// `carbon` converts saved energy into emissions and money; null: answers have neither.
void AddJobRoutes(const JobTenants& tenants, ServerMetrics& metrics, const CarbonAccounting* carbon,
                  http::Router& router);

// /v1/jobs/{id}/trials.
void AddTrialRoutes(const JobTenants& tenants, ServerMetrics& metrics, http::Router& router);

// /v1/plans.
void AddPlanRoutes(const PlanTenants& tenants, ServerMetrics& metrics, http::Router& router);

// The endpoints of the Python implementation's batch size optimizer, for its clients.
void AddReferenceRoutes(const JobTenants& tenants, ServerMetrics& metrics, http::Router& router);

// The four endpoints of the Python implementation's pipeline optimizer, for its clients. A rank
// that asks for its schedule waits, without occupying a thread, until the other ranks have
// registered, at most for `timeout`. `quotas` may be null.
void AddPipelineRoutes(PipelineSessions& sessions, Quotas* quotas, Seconds timeout,
                       http::Router& router);

}  // namespace zeus::server
