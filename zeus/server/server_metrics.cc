#include "zeus/server/server_metrics.h"

namespace zeus::server {
namespace {

// clang-format off
constexpr MetricDescription kJobs{"zeus_server_jobs_created_total", MetricType::kCounter, "",
    "Jobs that were registered for the first time."};
constexpr MetricDescription kTrials{"zeus_server_trial_answers_total", MetricType::kCounter,
    "status", "Answers to what runners ask and report, by the status of their trial."};
constexpr MetricDescription kExpired{"zeus_server_trials_expired_total", MetricType::kCounter, "",
    "Trials that were not heard of for the time of their lease."};
constexpr MetricDescription kPlans{"zeus_server_plans_created_total", MetricType::kCounter, "",
    "Plans that were submitted for the first time."};
constexpr MetricDescription kPaceReports{"zeus_server_pace_reports_total", MetricType::kCounter,
    "", "Reports that a straggler came or went."};
constexpr MetricDescription kSolves{"zeus_server_plan_solves_total", MetricType::kCounter,
    "outcome", "Frontiers that were solved, or could not be."};
constexpr MetricDescription kSolveTime{"zeus_server_plan_solve_seconds_total",
    MetricType::kCounter, "", "Time that solving frontiers took."};
constexpr MetricDescription kSolved{"zeus_server_plans_solved", MetricType::kGauge, "",
    "Pipelines whose frontier is in memory."};
constexpr MetricDescription kBudgetWatts{"zeus_budget_watts", MetricType::kGauge, "domain",
    "Power budget of a domain now."};
constexpr MetricDescription kBudgetLimit{"zeus_budget_limit_watts", MetricType::kGauge, "domain",
    "Part of the budget that may be granted now."};
constexpr MetricDescription kBudgetCommitted{"zeus_budget_committed_watts", MetricType::kGauge,
    "domain", "Watts that nodes may hold by any grant that may be in force."};
constexpr MetricDescription kBudgetDrawn{"zeus_budget_drawn_watts", MetricType::kGauge, "domain",
    "Watts that the devices of nodes that report draw."};
constexpr MetricDescription kBudgetPrice{"zeus_budget_price_per_watt", MetricType::kGauge,
    "domain", "Slowdown of all its GPUs together that one more watt would save."};
constexpr MetricDescription kBudgetMissing{"zeus_budget_missing_watts", MetricType::kGauge, "",
    "By which the lowest limits exceed the budget; 0 when everything fits."};
constexpr MetricDescription kBudgetNodes{"zeus_budget_nodes", MetricType::kGauge, "state",
    "Nodes of the power budget."};
constexpr MetricDescription kBudgetGrants{"zeus_budget_grants_total", MetricType::kCounter, "",
    "Grants of watts that were answered to nodes."};
constexpr MetricDescription kBudgetStoreFailures{"zeus_budget_store_failures_total",
    MetricType::kCounter, "", "Changes of the power budget that the database did not take."};
constexpr MetricDescription kBudgetSwing{"zeus_budget_swing_watts", MetricType::kGauge, "",
    "Sum of the changes of caps at the latest decision."};
constexpr MetricDescription kBudgetSlowdown{"zeus_budget_slowdown", MetricType::kGauge, "of",
    "Expected time of the jobs relative to that without caps, over the GPUs that work."};
// clang-format on

}  // namespace

void ServerMetrics::CountTrial(const Trial& trial) {
  const std::lock_guard lock(mutex_);
  ++trial_answers_[trial.status];
}

void ServerMetrics::AddTo(MetricSet& metrics) const {
  const auto number = [](const auto& value) { return static_cast<double>(value); };
  http_.AddTo(metrics);
  metrics.Add(kJobs, {}, number(jobs_created_.load()));
  metrics.Add(kExpired, {}, number(expired_.load()));
  metrics.Add(kPlans, {}, number(plans_created_.load()));
  metrics.Add(kPaceReports, {}, number(pace_reports_.load()));
  const std::lock_guard lock(mutex_);
  for (const auto& [status, count] : trial_answers_)
    metrics.Add(kTrials, {{"status", std::string(Name(status))}}, number(count));
}

void AddSolveFigures(const SolveFigures& figures, MetricSet& metrics) {
  metrics.Add(kSolves, {{"outcome", "solved"}}, static_cast<double>(figures.solves));
  metrics.Add(kSolves, {{"outcome", "failed"}}, static_cast<double>(figures.failures));
  metrics.Add(kSolveTime, {}, figures.time.count());
  metrics.Add(kSolved, {}, static_cast<double>(figures.pipelines));
}

void AddBudgetFigures(const budget::BudgetServer::Figures& figures, MetricSet& metrics) {
  for (const auto& domain : figures.domains) {
    const Labels labels = {{"domain", domain.name}};
    metrics.Add(kBudgetWatts, labels, domain.budget.value());
    metrics.Add(kBudgetLimit, labels, domain.limit.value());
    metrics.Add(kBudgetCommitted, labels, domain.committed.value());
    metrics.Add(kBudgetDrawn, labels, domain.drawn.value());
    metrics.Add(kBudgetPrice, labels, domain.price);
  }
  metrics.Add(kBudgetMissing, {}, figures.missing.value());
  metrics.Add(kBudgetNodes, {{"state", "reports"}},
              static_cast<double>(figures.nodes - figures.silent));
  metrics.Add(kBudgetNodes, {{"state", "silent"}}, static_cast<double>(figures.silent));
  metrics.Add(kBudgetGrants, {}, static_cast<double>(figures.grants));
  metrics.Add(kBudgetStoreFailures, {}, static_cast<double>(figures.store_failures));
  metrics.Add(kBudgetSwing, {}, figures.swing.value());
  if (figures.mean_slowdown) metrics.Add(kBudgetSlowdown, {{"of", "mean"}}, *figures.mean_slowdown);
  if (figures.worst_slowdown)
    metrics.Add(kBudgetSlowdown, {{"of", "worst"}}, *figures.worst_slowdown);
}

}  // namespace zeus::server
