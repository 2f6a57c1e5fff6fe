#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>

#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/budget/budget_server.h"
#include "zeus/carbon/carbon_accounting.h"
#include "zeus/http/message.h"
#include "zeus/http/router.h"
#include "zeus/job/job_overview.h"
#include "zeus/plan/pipeline_sessions.h"
#include "zeus/server/job_feed.h"
#include "zeus/server/server_metrics.h"
#include "zeus/server/tenants.h"

// The parts that all routes share: reading parameters, and turning errors into answers.
namespace zeus::server {

// Parameters of a query. The functions return kInvalidArgument, naming the parameter, for a
// malformed one. The router has already refused parameters that the route does not know.
using Query = std::map<std::string, std::string>;

struct IntegerRange {
  std::int64_t min = 0;
  std::int64_t max = std::numeric_limits<std::int64_t>::max();
};

std::optional<std::string> FindParameter(const Query& query, const std::string& name);
Result<std::string> RequireParameter(const Query& query, const std::string& name);
Result<std::int64_t> IntegerParameter(const Query& query, const std::string& name,
                                      std::int64_t otherwise, IntegerRange range = {});

// Returns a required, finite number greater than 0.
Result<double> PositiveParameter(const Query& query, const std::string& name);

// Returns the parameter `limit`, the number of entries of a page: 1 to 1000, 100 by default.
Result<int> PageSize(const Query& query);

// Reads `after`, `limit` and `label` ("key" or "key:value") of a list of jobs.
Result<JobQuery> ReadJobQuery(const Query& parameters);

// Parses the number of a trial in a path. Returns kNotFound for any other text.
Result<std::int64_t> TrialNumber(const std::string& text);

// Turns an error into an answer, with the status and the JSON of the dialect.
http::Answer ErrorAnswer(const Error& error, http::Dialect dialect);

// Each function adds a family of routes to the table. The referenced objects must outlive the
// router.

// /v1/jobs: jobs, beliefs, savings and events.
// `carbon` converts saved energy into emissions and money; null: answers have neither.
void AddJobRoutes(const JobTenants& tenants, ServerMetrics& metrics, const CarbonAccounting* carbon,
                  http::Router& router);

// /v1/job-overviews, /v1/savings and the like: what pages show, in one request. `overviews` is
// shared by all requests.
void AddOverviewRoutes(const JobTenants& tenants, JobOverviews& overviews, http::Router& router);

// /v1/events.
void AddFeedRoute(JobFeed& feed, http::Router& router);

// When trials are to begin that may wait for clean or cheap power. Both may be null: then they
// begin when they are asked for.
struct StartPlanning {
  const CarbonAccounting* carbon = nullptr;
  const Clock* clock = nullptr;
};

// /v1/jobs/{id}/trials.
void AddTrialRoutes(const JobTenants& tenants, ServerMetrics& metrics, StartPlanning planning,
                    http::Router& router);

// /v1/plans.
void AddPlanRoutes(const PlanTenants& tenants, ServerMetrics& metrics, http::Router& router);

// /v1/budget, and the reports of nodes.
void AddBudgetRoutes(budget::BudgetServer& budget, http::Router& router);

// The endpoints of the Python implementation's batch size optimizer, for its clients.
void AddReferenceRoutes(const JobTenants& tenants, ServerMetrics& metrics, http::Router& router);

// The four endpoints of the Python implementation's pipeline optimizer, for its clients. A rank
// that asks for its schedule waits, without occupying a thread, until the other ranks have
// registered, at most for `timeout`. `quotas` may be null.
void AddPipelineRoutes(PipelineSessions& sessions, Quotas* quotas, Seconds timeout,
                       http::Router& router);

}  // namespace zeus::server
