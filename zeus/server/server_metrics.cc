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

}  // namespace zeus::server
